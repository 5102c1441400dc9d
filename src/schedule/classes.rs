//! Which axes of a group of nodes are the same axis, and whether the group runs without crossing channels.
//!
//! Axes that elementwise operations, broadcasts and labels identify form a class. Classes that some reduction or
//! contraction folds are *inner*, the others are *channels*. A group is feasible if every one of its values has an element
//! of its own in each channel, so that nothing is ever read from another channel.

use super::point::summed_labels;
use super::shapes::Shapes;
use crate::ir::{Graph, NodeId, Op};
use std::collections::{BTreeMap, BTreeSet};

/// An axis of a node, or (from `LABEL` up) a label of a contraction or a folded axis of a reduction.
type Key = (NodeId, usize);
const LABEL: usize = 1 << 20;

/// How the axes of a feasible group map to variables.
#[derive(Clone, Debug)]
pub struct Classes {
    /// Extents of the channel variables.
    pub channels: Vec<usize>,
    /// Extents of the inner variables, which come after them.
    pub inner: Vec<usize>,
    variables: BTreeMap<Key, u8>,
}

impl Classes {
    /// The variable of a node's axis.
    pub fn axis(&self, node: NodeId, axis: usize) -> Option<u8> {
        self.variables.get(&(node, axis)).copied()
    }

    /// The variable of what a contraction's label or a reduction's axis runs over.
    pub fn folded(&self, node: NodeId, label: usize) -> Option<u8> {
        self.variables.get(&(node, LABEL + label)).copied()
    }

    /// Extents of all variables.
    pub fn extents(&self) -> Vec<usize> {
        self.channels.iter().chain(&self.inner).copied().collect()
    }
}

/// Finds the classes of `nodes`, or `None` where they cannot run without crossing channels. With `external`, axes of what
/// they read from outside are identified too (which lets reductions of one value share a group).
pub fn classes(graph: &Graph, shapes: &Shapes, nodes: &BTreeSet<NodeId>, external: bool) -> Option<Classes> {
    let mut finder = Finder {
        graph,
        shapes,
        nodes,
        external,
        parent: BTreeMap::new(),
    };
    for node in nodes {
        finder.identify(*node)?;
    }
    let inner = finder.inner(nodes)?;
    finder.check(nodes, &inner)?;
    finder.number(nodes, &inner)
}

struct Finder<'a> {
    graph: &'a Graph,
    shapes: &'a Shapes,
    nodes: &'a BTreeSet<NodeId>,
    external: bool,
    parent: BTreeMap<Key, Key>,
}

impl Finder<'_> {
    fn find(&mut self, key: Key) -> Key {
        let mut root = key;
        while let Some(next) = self.parent.get(&root) {
            root = *next;
        }
        let mut at = key;
        while at != root {
            let next = self.parent.insert(at, root).unwrap_or(root);
            at = next;
        }
        root
    }

    fn unite(&mut self, a: Key, b: Key) {
        let (a, b) = (self.find(a), self.find(b));
        if a != b {
            self.parent.insert(b.max(a), a.min(b));
        }
    }

    /// Whether the axes of an operand take part.
    fn takes_part(&self, operand: NodeId) -> bool {
        self.nodes.contains(&operand) || self.external
    }

    fn identify(&mut self, node: NodeId) -> Option<()> {
        let mut operands = self.graph.operands(node);
        match self.graph.node(node).op.clone() {
            Op::Unary(_) | Op::Binary(_) | Op::Where | Op::Clamp => {}
            Op::State { .. } => operands.truncate(1),
            Op::Broadcast { map } => return self.broadcast(node, operands[0].node, &map),
            Op::Contract { labels, out } => return self.contract(node, &labels, &out),
            Op::Reduce { axes, .. } => return self.reduce(node, operands[0].node, &axes),
            _ => return operands.iter().all(|r| !self.nodes.contains(&r.node)).then_some(()),
        }
        for operand in operands {
            for axis in 0..self.shapes.of(node).len() {
                if self.takes_part(operand.node) {
                    self.unite((operand.node, axis), (node, axis));
                }
            }
        }
        Some(())
    }

    fn broadcast(&mut self, node: NodeId, operand: NodeId, map: &[usize]) -> Option<()> {
        for (axis, to) in map.iter().enumerate() {
            if self.takes_part(operand) {
                self.unite((operand, axis), (node, *to));
            }
        }
        Some(())
    }

    fn contract(&mut self, node: NodeId, labels: &[Vec<u32>], out: &[u32]) -> Option<()> {
        for (read, labels) in self.graph.operands(node).into_iter().zip(labels) {
            for (axis, label) in labels.iter().enumerate() {
                if self.takes_part(read.node) {
                    self.unite((read.node, axis), (node, LABEL + *label as usize));
                }
            }
        }
        for (axis, label) in out.iter().enumerate() {
            self.unite((node, axis), (node, LABEL + *label as usize));
        }
        Some(())
    }

    fn reduce(&mut self, node: NodeId, operand: NodeId, axes: &[usize]) -> Option<()> {
        let mut kept = 0;
        for axis in 0..self.shapes.of(operand).len() {
            let own = if axes.contains(&axis) {
                (node, LABEL + axis)
            } else {
                kept += 1;
                (node, kept - 1)
            };
            if self.takes_part(operand) {
                self.unite((operand, axis), own);
            }
        }
        Some(())
    }

    /// What a node folds, as keys, and every axis of what it folds; `None` if it folds nothing.
    fn folds(&self, node: NodeId) -> Option<(Vec<Key>, Vec<Key>)> {
        match &self.graph.node(node).op {
            Op::Contract { labels, out } => {
                let key = |label: u32| (node, LABEL + label as usize);
                let summed: Vec<Key> = summed_labels(labels, out).into_iter().map(key).collect();
                let all = labels.iter().flatten().map(|l| key(*l)).collect();
                (!summed.is_empty()).then_some((summed, all))
            }
            Op::Reduce { axes, .. } => {
                let summed: Vec<Key> = axes.iter().map(|axis| (node, LABEL + axis)).collect();
                let own = (0..self.shapes.of(node).len()).map(|axis| (node, axis));
                let all = summed.iter().copied().chain(own).collect();
                (!summed.is_empty()).then_some((summed, all))
            }
            _ => None,
        }
    }

    /// The inner classes: every fold must fold exactly these.
    fn inner(&mut self, nodes: &BTreeSet<NodeId>) -> Option<BTreeSet<Key>> {
        let mut inner: Option<BTreeSet<Key>> = None;
        for node in nodes {
            let Some((summed, _)) = self.folds(*node) else { continue };
            let count = summed.len();
            let summed: BTreeSet<Key> = summed.into_iter().map(|key| self.find(key)).collect();
            if summed.len() != count || inner.as_ref().is_some_and(|same| *same != summed) {
                return None;
            }
            inner = Some(summed);
        }
        Some(inner.unwrap_or_default())
    }

    /// No value has a class twice, and the result of a fold has none of the folded classes.
    fn check(&mut self, nodes: &BTreeSet<NodeId>, inner: &BTreeSet<Key>) -> Option<()> {
        for node in nodes {
            let axes = self.shapes.of(*node).len();
            let own: BTreeSet<Key> = (0..axes).map(|axis| self.find((*node, axis))).collect();
            if own.len() != axes {
                return None;
            }
            if self.folds(*node).is_some() && !own.is_disjoint(inner) {
                return None;
            }
        }
        Some(())
    }

    fn number(&mut self, nodes: &BTreeSet<NodeId>, inner: &BTreeSet<Key>) -> Option<Classes> {
        let mut order: Vec<NodeId> = nodes.iter().copied().collect();
        order.sort_by_key(|id| (!matches!(self.graph.node(*id).op, Op::State { .. }), *id));
        let mut keys: Vec<Key> = Vec::new();
        for node in order {
            keys.extend((0..self.shapes.of(node).len()).map(|axis| (node, axis)));
            keys.extend(self.folds(node).map_or_else(Vec::new, |(_, all)| all));
            keys.extend(self.free_labels(node));
        }
        let mut numbers: BTreeMap<Key, u8> = BTreeMap::new();
        let mut classes = Classes {
            channels: Vec::new(),
            inner: Vec::new(),
            variables: BTreeMap::new(),
        };
        for pass_inner in [false, true] {
            for key in &keys {
                let class = self.find(*key);
                if inner.contains(&class) != pass_inner || numbers.contains_key(&class) {
                    continue;
                }
                numbers.insert(class, u8::try_from(numbers.len()).ok()?);
                let extent = self.extent(*key);
                if pass_inner {
                    &mut classes.inner
                } else {
                    &mut classes.channels
                }
                .push(extent);
            }
        }
        for key in keys {
            let class = self.find(key);
            classes.variables.insert(key, numbers[&class]);
        }
        Some(classes)
    }

    /// Labels of a contraction that sums nothing.
    fn free_labels(&self, node: NodeId) -> Vec<Key> {
        match &self.graph.node(node).op {
            Op::Contract { out, .. } => out.iter().map(|l| (node, LABEL + *l as usize)).collect(),
            _ => Vec::new(),
        }
    }

    fn extent(&self, (node, axis): Key) -> usize {
        if axis < LABEL {
            return self.shapes.of(node)[axis];
        }
        let label = axis - LABEL;
        let operands = self.graph.operands(node);
        match &self.graph.node(node).op {
            Op::Contract { labels, .. } => operands
                .iter()
                .zip(labels)
                .find_map(|(read, labels)| {
                    labels
                        .iter()
                        .position(|l| *l as usize == label)
                        .map(|axis| self.shapes.of(read.node)[axis])
                })
                .unwrap_or(1),
            _ => self.shapes.of(operands[0].node)[label],
        }
    }
}
