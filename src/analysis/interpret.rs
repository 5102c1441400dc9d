//! The abstract interpretation: each member of a recurrence as a sum of linear chains on its delayed reads.
//!
//! Comes in: a recurrence and an [`Algebra`]. Goes out: the terms of every member, or the first operation that is not
//! linear. No operation is recognised by its surroundings: each maps the terms of its operands to terms of its result,
//! as the table in `algebra` says.

use super::algebra::Algebra;
use super::operations::broken;
use super::term::{Factor, Labels, Source, Term};
use crate::ir::{Graph, NodeId, Op, Read};
use std::collections::BTreeMap;
use std::rc::Rc;

/// More terms with a source than this in one value are not told apart any more.
const MAX_TERMS: usize = 32;
/// More terms without one are not told apart.
const MAX_CONSTANTS: usize = 4;

/// A recurrence of a graph, ready to be interpreted.
pub(super) struct Subject<'a> {
    pub(super) graph: &'a Graph,
    /// Its members in an order of dependence within a frame.
    pub(super) order: Vec<NodeId>,
    /// By [`NodeId::index`].
    pub(super) inside: &'a [Option<usize>],
    /// Its number among the recurrences.
    pub(super) number: usize,
    /// By [`NodeId::index`]: the place in an order of dependence within a frame.
    pub(super) position: &'a [usize],
    /// Along which axes values vary.
    pub(super) varies: &'a [Vec<bool>],
    /// The delayed reads of members by members, ascending. One that is missing counts as a read of something outside.
    pub(super) reads: Vec<Edge>,
}

/// A delayed read within a recurrence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Edge {
    pub(super) reader: NodeId,
    pub(super) port: usize,
    pub(super) source: Source,
}

impl Subject<'_> {
    /// Whether a node is a member.
    pub(super) fn contains(&self, id: NodeId) -> bool {
        self.inside[id.index()] == Some(self.number)
    }
}

/// The delayed reads among members, in order.
pub(super) fn edges(graph: &Graph, members: &[NodeId], inside: &dyn Fn(NodeId) -> bool) -> Vec<Edge> {
    let mut found = Vec::new();
    for reader in members {
        for (port, read) in graph.operands(*reader).into_iter().enumerate() {
            if read.delay != 0 && inside(read.node) {
                let source = Source {
                    state: read.node,
                    delay: read.delay,
                };
                found.push(Edge {
                    reader: *reader,
                    port,
                    source,
                });
            }
        }
    }
    found
}

/// Where linearity ends: an operation that is not linear in an operand.
#[derive(Clone, Debug)]
pub(super) struct Break {
    pub(super) node: NodeId,
    /// The delayed reads that reach it through that operand.
    pub(super) reads: Vec<u32>,
    /// For a product of two values of the recurrence, the other one's port.
    pub(super) other: Option<usize>,
}

/// The value of a node: a sum of terms.
pub(super) type Value = Rc<Vec<Term>>;

/// An interpretation under way.
pub(super) struct Interpreter<'a> {
    pub(super) subject: &'a Subject<'a>,
    pub(super) algebra: Algebra,
    pub(super) labels: Labels,
    values: BTreeMap<NodeId, Value>,
    constants: BTreeMap<NodeId, Value>,
    /// How many values from outside have been taken apart.
    pub(super) looked_into: usize,
}

/// An operand with its axes.
pub(super) struct Operand {
    pub(super) read: Read,
    pub(super) value: Value,
    pub(super) moving: bool,
}

impl<'a> Interpreter<'a> {
    /// Nothing is known yet.
    pub(super) fn new(subject: &'a Subject<'a>, algebra: Algebra) -> Interpreter<'a> {
        Interpreter {
            subject,
            algebra,
            labels: Labels::default(),
            values: BTreeMap::new(),
            constants: BTreeMap::new(),
            looked_into: 0,
        }
    }

    /// The value of a member, once [`Interpreter::run`] is through.
    pub(super) fn value(&self, id: NodeId) -> Value {
        self.values.get(&id).cloned().unwrap_or_default()
    }

    /// Interprets every member.
    ///
    /// # Errors
    /// The first operation that is not linear.
    pub(super) fn run(&mut self) -> Result<(), Break> {
        for id in &self.subject.order {
            let terms = self.evaluate(*id)?;
            let value = Rc::new(self.capped(terms));
            self.values.insert(*id, value);
        }
        Ok(())
    }

    fn evaluate(&mut self, id: NodeId) -> Result<Vec<Term>, Break> {
        let operands = self.operands(id);
        if operands.iter().all(|o| !o.moving) {
            return Ok(vec![self.atom(Read::now(id))]);
        }
        let graph = self.subject.graph;
        match &graph.node(id).op {
            Op::State { .. } => Ok(operands[0].value.to_vec()),
            Op::Unary(f) => self.unary(id, self.algebra.unary(*f), &operands),
            Op::Binary(f) => self.binary(id, self.algebra.binary(*f), &operands),
            Op::Where => self.select(id, &operands),
            Op::Clamp => self.clamp(id, &operands),
            Op::Contract { labels, out } => self.contract(id, labels, out, &operands),
            Op::Reduce { op, axes } if self.algebra.sums(*op) => Ok(self.reduce(axes, &operands[0])),
            Op::Gather => self.gather(id, &operands),
            op if op.is_view() => Ok(self.view(id, &operands)),
            _ => Err(broken(id, 0, &operands, None)),
        }
    }

    fn operands(&mut self, id: NodeId) -> Vec<Operand> {
        let reads = self.subject.graph.operands(id);
        let state = matches!(self.subject.graph.node(id).op, Op::State { .. });
        let used = if state { 1 } else { reads.len() };
        let wanted = reads.into_iter().take(used).enumerate();
        wanted.map(|(port, read)| self.operand(id, port, read)).collect()
    }

    fn operand(&mut self, reader: NodeId, port: usize, read: Read) -> Operand {
        let value = match (self.subject.contains(read.node), read.delay) {
            (true, 0) => self.value(read.node),
            (true, delay) => Rc::new(vec![self.delayed(reader, port, read.node, delay)]),
            (false, 0) => self.constant(read.node),
            (false, _) => Rc::new(vec![self.atom(read)]),
        };
        let moving = value.iter().any(|t| t.source.is_some());
        Operand { read, value, moving }
    }

    fn delayed(&mut self, reader: NodeId, port: usize, state: NodeId, delay: i32) -> Term {
        let source = Source { state, delay };
        let edge = Edge { reader, port, source };
        let Ok(number) = self.subject.reads.binary_search(&edge) else {
            return self.atom(Read { node: state, delay });
        };
        let sizes = &self.subject.graph.node(state).ty.axes;
        let axes: Vec<_> = sizes.iter().map(|size| self.labels.whole(size)).collect();
        Term {
            source: Some(source),
            reads: vec![number as u32],
            exact: true,
            from: axes.clone(),
            to: axes,
            factors: Vec::new(),
        }
    }

    /// A value as one factor that varies along the axes where it may. (Before the first frame a delayed value is a window
    /// that the caller gives, which may vary along any.)
    pub(super) fn atom(&mut self, read: Read) -> Term {
        let node = self.subject.graph.node(read.node);
        let to: Vec<_> = node.ty.axes.iter().map(|size| self.labels.whole(size)).collect();
        let flags = &self.subject.varies[read.node.index()];
        let along = to.iter().zip(flags).filter(|(_, varies)| **varies || read.delay != 0);
        let factor = Factor {
            node: read.node,
            inverse: false,
            kind: node.kind,
            labels: along.flat_map(|(axis, _)| axis.labels.clone()).collect(),
        };
        Term {
            source: None,
            reads: Vec::new(),
            exact: true,
            from: Vec::new(),
            to,
            factors: vec![factor],
        }
    }

    fn constant(&mut self, id: NodeId) -> Value {
        if let Some(known) = self.constants.get(&id) {
            return known.clone();
        }
        let value = Rc::new(self.decompose(id));
        self.constants.insert(id, value.clone());
        value
    }

    /// The sum of two lists of terms; terms of one form become one.
    pub(super) fn union(&mut self, mut sum: Vec<Term>, more: Vec<Term>) -> Vec<Term> {
        for term in more {
            match sum
                .iter_mut()
                .find(|t| super::merge::same_form(t, &term, self.algebra, &self.labels))
            {
                Some(known) => super::merge::absorb(known, term, &self.labels),
                None => sum.push(term),
            }
        }
        sum
    }

    /// Too many terms become one of unknown structure; those that move and those that do not are counted apart.
    fn capped(&self, terms: Vec<Term>) -> Vec<Term> {
        let (mut moving, mut fixed): (Vec<Term>, Vec<Term>) = terms.into_iter().partition(|t| t.source.is_some());
        if moving.len() > MAX_TERMS {
            moving = super::merge::collapse(moving, &self.labels);
        }
        if fixed.len() > MAX_CONSTANTS {
            fixed = super::merge::collapse(fixed, &self.labels);
        }
        moving.append(&mut fixed);
        moving
    }
}

/// The number that a node is, if it is one, perhaps repeated along axes.
pub(super) fn literal(graph: &Graph, mut id: NodeId) -> Option<f64> {
    loop {
        match &graph.node(id).op {
            Op::Literal(x) => return Some(*x),
            Op::Broadcast { .. } | Op::Reshape | Op::Slice { .. } => id = graph.operands(id).first()?.node,
            _ => return None,
        }
    }
}
