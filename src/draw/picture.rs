//! What is drawn: boxes, arrows and groups.
//!
//! A box is a value that has a name, a product or reduction, or something that several others read; what lies between is
//! written out inside the box that reads it, and so are parameters and numbers. An arrow carries its delay.

use super::Kernel;
use crate::analysis::{Facts, express, report};
use crate::ir::{Graph, Kind, NodeId, Op, Read};
use std::collections::{BTreeMap, BTreeSet};

/// Longer text in a box is cut.
const MAX_TEXT: usize = 44;

/// A drawing before it is laid out.
pub(super) struct Picture {
    pub(super) title: String,
    pub(super) boxes: Vec<Box>,
    pub(super) arrows: Vec<Arrow>,
    /// The recurrences; a box's `recurrence` is a place here.
    pub(super) recurrences: Vec<Group>,
    /// The kernels; a box's `kernels` are places here.
    pub(super) kernels: Vec<Group>,
}

/// A value.
pub(super) struct Box {
    /// Its name, or what it is.
    pub(super) title: String,
    /// What it computes, where that is not its title.
    pub(super) text: String,
    /// Its axes.
    pub(super) axes: String,
    pub(super) shape: Shape,
    /// Whether it is an output of the cell.
    pub(super) output: bool,
    pub(super) recurrence: Option<usize>,
    pub(super) kernels: Vec<usize>,
}

/// What kind of thing a box stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// What the caller gives every frame or once a sequence.
    Input,
    /// What depends on parameters alone.
    Constant,
    /// A product or a reduction.
    Product,
    /// Anything else.
    Value,
}

/// A read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Arrow {
    pub(super) from: usize,
    pub(super) to: usize,
    /// Frames back; negative: ahead.
    pub(super) delay: i32,
}

/// A recurrence or a kernel, for the legend.
pub(super) struct Group {
    pub(super) name: String,
    pub(super) what: String,
    /// Longer, for a reader who points at it.
    pub(super) detail: String,
}

/// Decides what is drawn.
pub(super) fn picture(graph: &Graph, facts: &Facts, kernels: &[Kernel]) -> Picture {
    let drawn = Drawn::new(graph);
    let numbers: BTreeMap<NodeId, usize> = drawn.boxes.iter().enumerate().map(|(i, id)| (*id, i)).collect();
    let mut arrows = BTreeSet::new();
    for (to, id) in drawn.boxes.iter().enumerate() {
        for read in drawn.sources(*id) {
            let from = numbers.get(&read.node).copied();
            arrows.extend(from.map(|from| Arrow {
                from,
                to,
                delay: read.delay,
            }));
        }
    }
    let kernels_of = kernels_of(&drawn, kernels);
    let of_id = |id: &NodeId| Box {
        recurrence: facts.recurrence_of(*id),
        kernels: kernels_of.get(id).cloned().unwrap_or_default(),
        ..drawn.box_of(*id)
    };
    Picture {
        title: graph.name.clone(),
        boxes: drawn.boxes.iter().map(of_id).collect(),
        arrows: arrows.into_iter().collect(),
        recurrences: recurrences(graph, facts),
        kernels: kernels.iter().map(group_of_kernel).collect(),
    }
}

/// The kernels that compute each box; where none computes the box itself, those that compute what is written out in it.
fn kernels_of(drawn: &Drawn, kernels: &[Kernel]) -> BTreeMap<NodeId, Vec<usize>> {
    let (mut itself, mut within) = (BTreeMap::new(), BTreeMap::new());
    for (number, kernel) in kernels.iter().enumerate() {
        for id in &kernel.nodes {
            let shown = drawn.representative(*id);
            let own = shown == *id || drawn.value_of_state(*id) || matches!(drawn.graph.node(*id).op, Op::State { .. });
            let map: &mut BTreeMap<NodeId, Vec<usize>> = if own { &mut itself } else { &mut within };
            let list = map.entry(shown).or_default();
            if list.last() != Some(&number) {
                list.push(number);
            }
        }
    }
    within.append(&mut itself);
    within
}

fn recurrences(graph: &Graph, facts: &Facts) -> Vec<Group> {
    let rows = report::report(graph, facts).0.into_iter();
    rows.map(|row| Group {
        name: format!("{{{}}}", row.members.join(", ")),
        what: row.headline(),
        detail: row.reason,
    })
    .collect()
}

fn group_of_kernel(kernel: &Kernel) -> Group {
    Group {
        name: kernel.name.clone(),
        what: kernel.what.clone(),
        detail: String::new(),
    }
}

/// Which nodes are boxes.
struct Drawn<'a> {
    graph: &'a Graph,
    boxes: Vec<NodeId>,
    is_box: Vec<bool>,
}

impl<'a> Drawn<'a> {
    fn new(graph: &'a Graph) -> Drawn<'a> {
        let mut drawn = Drawn {
            graph,
            boxes: Vec::new(),
            is_box: vec![false; graph.bound()],
        };
        for id in graph.ids() {
            if drawn.is_drawn(id) {
                drawn.is_box[id.index()] = true;
                drawn.boxes.push(id);
            }
        }
        drawn
    }

    fn is_drawn(&self, id: NodeId) -> bool {
        let node = self.graph.node(id);
        match node.op {
            Op::Input | Op::StaticInput => true,
            Op::Param | Op::Literal(_) | Op::SizeValue(_) | Op::Iota => false,
            Op::State { .. } => !self.is_alias(id),
            _ if self.value_of_state(id) => false,
            _ if node.name.is_some() => true,
            _ if node.kind == Kind::Const || node.op.is_view() => false,
            Op::Contract { .. } | Op::Reduce { .. } => true,
            _ => self.graph.uses(id).len() > 1,
        }
    }

    /// Whether a state is drawn as the value that it keeps.
    fn is_alias(&self, state: NodeId) -> bool {
        let value = self.graph.operands(state).first().copied();
        value.is_some_and(|read| {
            let kept = self.graph.node(read.node);
            let same = kept.name == self.graph.node(state).name;
            read.delay == 0 && same && !self.value_of_state(read.node)
        })
    }

    /// Whether a node is nothing but the value of a state, which is drawn in its place.
    fn value_of_state(&self, id: NodeId) -> bool {
        let node = self.graph.node(id);
        let given = matches!(node.op, Op::Input | Op::StaticInput | Op::Param | Op::State { .. });
        match self.graph.uses(id).as_slice() {
            [only] if !given && only.delay == 0 => {
                let reader = self.graph.node(only.reader);
                let keeps = matches!(reader.op, Op::State { .. }) && only.port == 0;
                keeps && (node.name.is_none() || node.name == reader.name)
            }
            _ => false,
        }
    }

    /// The box that stands for a node: itself, or the first box that reads it.
    fn representative(&self, mut id: NodeId) -> NodeId {
        while !self.is_box[id.index()] {
            let kept = match self.graph.node(id).op {
                Op::State { .. } => self.graph.operands(id).first().map(|r| r.node),
                _ => self.graph.uses(id).first().map(|u| u.reader),
            };
            match kept {
                Some(next) => id = next,
                None => break,
            }
        }
        id
    }

    /// The boxes that a box reads, through everything that is written out inside it.
    fn sources(&self, id: NodeId) -> Vec<Read> {
        let (mut found, mut seen) = (BTreeSet::new(), BTreeSet::from([id]));
        let mut next = self.graph.operands(id);
        while let Some(read) = next.pop() {
            if self.is_box[read.node.index()] {
                found.insert(read);
            } else if let (Op::State { .. }, Some(kept)) = (&self.graph.node(read.node).op, self.kept(read.node)) {
                found.insert(Read {
                    node: kept,
                    delay: read.delay,
                });
            } else if seen.insert(read.node) {
                next.extend(self.graph.operands(read.node));
            }
        }
        found.into_iter().collect()
    }

    fn kept(&self, state: NodeId) -> Option<NodeId> {
        self.graph.operands(state).first().map(|read| read.node)
    }

    /// What a slice cuts out: the range, and a name or the length of the axis.
    fn part(&self, slice: NodeId) -> String {
        let (Op::Slice { axis, lo, hi }, Some(whole)) = (&self.graph.node(slice).op, self.kept(slice)) else {
            return String::new();
        };
        let node = self.graph.node(whole);
        let of = match (&node.name, node.ty.axes.get(*axis)) {
            (Some(name), _) => name.to_string(),
            (None, Some(size)) => size.to_string(),
            (None, None) => String::new(),
        };
        format!("{lo} .. {hi} of {of}")
    }

    /// The parts of parameters that a product takes, which its text does not show.
    fn parts(&self, id: NodeId) -> String {
        let operands = self.graph.operands(id).into_iter().map(|read| read.node);
        let cut = operands.filter(|o| !self.is_box[o.index()] && self.graph.node(*o).name.is_none());
        let parts: Vec<String> = cut.map(|o| self.part(o)).filter(|text| !text.is_empty()).collect();
        shortened(&parts.join(", "))
    }

    fn box_of(&self, id: NodeId) -> Box {
        let node = self.graph.node(id);
        let value = match node.op {
            Op::State { .. } => self.kept(id).filter(|v| !self.is_box[v.index()]).unwrap_or(id),
            _ => id,
        };
        let op = &self.graph.node(value).op;
        let text = match op {
            Op::Input | Op::StaticInput => String::new(),
            Op::Slice { .. } => self.part(value),
            _ => shortened(&express::definition(self.graph, value)),
        };
        let (title, text) = match &node.name {
            Some(name) => (name.to_string(), text),
            None => (text, self.parts(value)),
        };
        let shape = match op {
            Op::Input | Op::StaticInput => Shape::Input,
            _ if node.kind == Kind::Const => Shape::Constant,
            Op::Contract { .. } | Op::Reduce { .. } => Shape::Product,
            _ => Shape::Value,
        };
        Box {
            title,
            text,
            axes: node.ty.to_string(),
            shape,
            output: self.graph.outputs.iter().any(|o| self.representative(o.node) == id),
            recurrence: None,
            kernels: Vec::new(),
        }
    }
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(MAX_TEXT) {
        Some((at, _)) => format!("{}...", &text[..at]),
        None => text.to_owned(),
    }
}
