//! Pushes slices through what computes the sliced value, so that gates become row blocks of one weight.
//!
//! `split(W @ x + R @ h[t-1] + b, 4)` becomes four sums of products with `slice(W)`, `slice(R)` and `slice(b)`, each with
//! the axes of a gate. A value is taken apart only if everything that reads it reads disjoint slices along one axis, so
//! nothing is ever computed twice, and what is needed whole (under a norm, say) stays whole.

mod parts;
mod push;

use super::rebuild::Rebuild;
use crate::diagnostics::Span;
use crate::ir::{Graph, NodeId, Op, Read, Size};
use parts::{Demand, Parts, Range};
use push::push;
use std::collections::BTreeMap;

/// Returns how many values were taken apart.
pub fn run(graph: &mut Graph) -> usize {
    let order = graph.topological();
    let splits = decide(graph, &order);
    let changes = splits.iter().flatten().count();
    if changes == 0 {
        return 0;
    }
    let mut apart = Apart {
        graph,
        splits: &splits,
        rebuild: Rebuild::new(graph, |_| true),
        parts: vec![Vec::new(); graph.bound()],
        slices: BTreeMap::new(),
    };
    for id in order {
        apart.node(id);
    }
    *graph = apart.rebuild.finish();
    changes
}

/// A value that is taken apart: into what, and which parts of its operands that takes (`None`: all of it).
struct Split {
    parts: Parts,
    operands: Vec<Option<Parts>>,
}

/// Readers before operands: what is read of a node is known when its turn comes.
fn decide(graph: &Graph, order: &[NodeId]) -> Vec<Option<Split>> {
    let mut demands: Vec<Demand> = vec![Demand::default(); graph.bound()];
    for output in &graph.outputs {
        demands[output.node.index()] = Demand::Whole;
    }
    let mut splits: Vec<Option<Split>> = (0..graph.bound()).map(|_| None).collect();
    let mut budget = 4 * graph.len() + 1024; // new nodes, so that long chains under many slices do not multiply
    for id in order.iter().rev() {
        let demand = std::mem::take(&mut demands[id.index()]);
        let split = demand.parts().filter(|p| p.ranges.len() <= budget).and_then(|parts| {
            let operands = push(graph, *id, &parts)?;
            Some(Split { parts, operands })
        });
        budget -= split.as_ref().map_or(0, |s| s.parts.ranges.len());
        for (port, read) in graph.operands(*id).into_iter().enumerate() {
            let part = match (&split, &graph.node(*id).op) {
                _ if read.delay != 0 => None,
                (Some(split), _) => split.operands[port].clone(),
                (None, Op::Slice { axis, lo, hi }) => Some(Parts::one(*axis, lo, hi)),
                (None, _) => None,
            };
            demands[read.node.index()].join(part);
        }
        splits[id.index()] = split;
    }
    splits
}

/// The new graph in the making.
struct Apart<'g> {
    graph: &'g Graph,
    splits: &'g [Option<Split>],
    rebuild: Rebuild<'g>,
    /// By old node: its parts in the new graph, as its split lists them.
    parts: Vec<Vec<NodeId>>,
    /// Slices of what stays whole.
    slices: BTreeMap<(Read, usize, Range), NodeId>,
}

impl Apart<'_> {
    fn node(&mut self, id: NodeId) {
        let node = self.graph.node(id);
        if let Some(split) = &self.splits[id.index()] {
            for k in 0..split.parts.ranges.len() {
                let part = self.part(id, split, k);
                self.parts[id.index()].push(part);
            }
            return;
        }
        let slice = match &node.op {
            Op::Slice { axis, lo, hi } => {
                let read = self.graph.operands(id)[0];
                self.find(read, *axis, &(lo.clone(), hi.clone()))
            }
            _ => None,
        };
        match slice {
            Some(part) => self.rebuild.put(id, Read::now(part)),
            None => self.rebuild.copy(id),
        }
    }

    /// Part k of a node that is taken apart: the same operation on parts of its operands.
    fn part(&mut self, id: NodeId, split: &Split, k: usize) -> NodeId {
        let node = self.graph.node(id);
        let operands: Vec<Read> = self.graph.operands(id);
        let operands: Vec<Read> = operands
            .into_iter()
            .zip(&split.operands)
            .map(|(read, parts)| match parts {
                None => self.rebuild.read(read),
                Some(parts) => Read::now(self.slice(read, parts.axis, &parts.ranges[k], node.span)),
            })
            .collect();
        let mut ty = node.ty.clone();
        ty.axes[split.parts.axis] = parts::extent(&split.parts.ranges[k]).unwrap_or_else(|| Size::int(0));
        self.rebuild.add(node.op.clone(), ty, node.span, &operands)
    }

    /// The part that a range of an operand is, if that was taken apart.
    fn find(&self, read: Read, axis: usize, range: &Range) -> Option<NodeId> {
        let split = self.splits[read.node.index()]
            .as_ref()
            .filter(|s| read.delay == 0 && s.parts.axis == axis)?;
        let k = split.parts.ranges.binary_search(range).ok()?;
        self.parts[read.node.index()].get(k).copied()
    }

    fn slice(&mut self, read: Read, axis: usize, range: &Range, span: Span) -> NodeId {
        if let Some(part) = self.find(read, axis, range) {
            return part;
        }
        let read = self.rebuild.read(read);
        if let Some(slice) = self.slices.get(&(read, axis, range.clone())) {
            return *slice;
        }
        let mut ty = self.rebuild.graph().node(read.node).ty.clone();
        ty.axes[axis] = parts::extent(range).unwrap_or_else(|| Size::int(0));
        let (lo, hi) = range.clone();
        let slice = self.rebuild.add(Op::Slice { axis, lo, hi }, ty, span, &[read]);
        self.slices.insert((read, axis, range.clone()), slice);
        slice
    }
}
