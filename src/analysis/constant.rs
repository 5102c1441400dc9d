//! The structure of values from outside a recurrence: products of factors, each with the axes that it varies along.
//!
//! Comes in: a node outside. Goes out: its terms, none of them with a source. An outer product keeps its factors apart, a
//! matrix that is a diagonal plus an outer product is two terms; whatever else, a vector say, is one factor.

use super::algebra::{BinaryRole, UnaryRole};
use super::contract::{self, Einsum};
use super::interpret::{Interpreter, literal};
use super::term::Term;
use crate::ir::op::Binary;
use crate::ir::{NodeId, Op, Read, Size};
use std::collections::BTreeMap;

/// A constant of more addends than this is one factor.
const MAX_ADDENDS: usize = 8;
/// How many operations below a node are looked into.
const MAX_NODES: usize = 64;
/// How many nodes are looked into at all: beyond, each is one factor.
const MAX_ROOTS: usize = 1000;

impl Interpreter<'_> {
    /// The terms of a node outside the recurrence.
    pub(super) fn decompose(&mut self, root: NodeId) -> Vec<Term> {
        if self.looked_into > MAX_ROOTS {
            return vec![self.atom(Read::now(root))];
        }
        self.looked_into += 1;
        let mut known: BTreeMap<NodeId, Vec<Term>> = BTreeMap::new();
        for id in self.below(root) {
            let terms = self
                .structure(id, &known)
                .filter(|t| t.len() <= MAX_ADDENDS && t.iter().all(|t| t.exact));
            let terms = terms.unwrap_or_else(|| vec![self.atom(Read::now(id))]);
            known.insert(id, terms);
        }
        known.remove(&root).unwrap_or_default()
    }

    /// The nodes outside that a node is made of by this frame's reads, operands first, up to a number.
    fn below(&self, root: NodeId) -> Vec<NodeId> {
        let graph = self.subject.graph;
        let mut found = vec![root];
        let mut next = 0;
        while next < found.len() && found.len() < MAX_NODES {
            let taken_apart = graph.node(found[next]).ty.axes.len() >= 2;
            for read in graph.operands(found[next]).into_iter().filter(|_| taken_apart) {
                if read.delay == 0 && !found.contains(&read.node) && !self.subject.contains(read.node) {
                    found.push(read.node);
                }
            }
            next += 1;
        }
        found.sort_by_key(|id| self.subject.position[id.index()]);
        found
    }

    /// The terms of a node from those of its operands; `None` where it is best taken as one factor.
    fn structure(&mut self, id: NodeId, known: &BTreeMap<NodeId, Vec<Term>>) -> Option<Vec<Term>> {
        let graph = self.subject.graph;
        if let Some(number) = literal(graph, id) {
            return Some(self.number(id, number));
        }
        let node = graph.node(id);
        if node.ty.axes.len() < 2 {
            return None;
        }
        let reads = graph.operands(id);
        let mut operands: Vec<(Read, Vec<Term>)> = Vec::new();
        for read in reads {
            let terms = known.get(&read.node).filter(|_| read.delay == 0).cloned();
            operands.push((read, terms.unwrap_or_else(|| vec![self.atom(read)])));
        }
        match &node.op {
            Op::State { .. } => Some(operands.swap_remove(0).1),
            Op::Unary(f) => match self.algebra.unary(*f) {
                UnaryRole::Identity => Some(operands.swap_remove(0).1),
                UnaryRole::Scale => Some(operands.swap_remove(0).1),
                UnaryRole::AddConstant | UnaryRole::Nonlinear => None,
            },
            Op::Binary(Binary::Eq) => self.diagonal(id),
            Op::Binary(f) => self.structure_of_binary(self.algebra.binary(*f), operands),
            Op::Contract { labels, out } if self.algebra.is_arithmetic() => {
                Some(self.structure_of_contract(labels, out, operands))
            }
            op if op.is_view() && !matches!(op, Op::Shift { .. }) => {
                let mut sum = Vec::new();
                let mut offset = Size::int(0);
                for (read, terms) in operands {
                    let old = &graph.node(read.node).ty.axes;
                    let views = terms.into_iter();
                    sum.extend(views.filter_map(|t| self.view_of_term(op, t, old, &node.ty.axes, &offset)));
                    if let Op::Concat { axis } = op {
                        offset = offset.add(&old[*axis])?;
                    }
                }
                Some(sum)
            }
            _ => None,
        }
    }

    /// A number: nothing if it adds nothing, no factor if it scales nothing.
    fn number(&mut self, id: NodeId, number: f64) -> Vec<Term> {
        if self.algebra.zero() == Some(number) {
            return Vec::new();
        }
        let mut term = self.atom(Read::now(id));
        if self.algebra.one() == Some(number) {
            term.factors.clear();
        }
        vec![term]
    }

    fn structure_of_binary(&mut self, role: BinaryRole, mut operands: Vec<(Read, Vec<Term>)>) -> Option<Vec<Term>> {
        let (b, right) = operands.pop()?;
        let (a, left) = operands.pop()?;
        match role {
            BinaryRole::Plus | BinaryRole::Minus => Some(left.into_iter().chain(right).collect()),
            BinaryRole::Times | BinaryRole::Over => {
                let rank = self.subject.graph.node(a.node).ty.axes.len() as u32;
                let axes: Vec<u32> = (0..rank).collect();
                let right = match role {
                    BinaryRole::Over => vec![self.inverse(b)],
                    _ => right,
                };
                Some(self.structure_of_product((a, left), (b, right), &axes, &axes, &axes))
            }
            BinaryRole::Nonlinear => None,
        }
    }

    fn structure_of_contract(
        &mut self,
        labels: &[Vec<u32>],
        out: &[u32],
        mut operands: Vec<(Read, Vec<Term>)>,
    ) -> Vec<Term> {
        match (labels, operands.pop(), operands.pop()) {
            ([left, right], Some(b), Some(a)) => self.structure_of_product(a, b, left, right, out),
            ([only], Some((_, terms)), None) => terms.into_iter().map(|t| contract::alone(t, only, out)).collect(),
            _ => Vec::new(),
        }
    }

    /// A product of two constants; one that is a sum counts as one factor.
    fn structure_of_product(
        &mut self,
        (a, left): (Read, Vec<Term>),
        (b, right): (Read, Vec<Term>),
        left_labels: &[u32],
        right_labels: &[u32],
        out: &[u32],
    ) -> Vec<Term> {
        let (Some(left), Some(right)) = (self.one_term(a, left), self.one_term(b, right)) else {
            return Vec::new();
        };
        let left = left.renamed(&mut self.labels);
        let einsum = Einsum {
            left: left_labels,
            right: right_labels,
            out,
        };
        vec![self.times(left, &right, b.node, &einsum)]
    }

    fn one_term(&mut self, read: Read, mut terms: Vec<Term>) -> Option<Term> {
        match terms.len() {
            0 => None,
            1 => terms.pop(),
            _ => Some(self.atom(read)),
        }
    }

    /// `iota == iota` along two axes of one size is 1 on the diagonal: both axes are one variable.
    fn diagonal(&mut self, id: NodeId) -> Option<Vec<Term>> {
        let graph = self.subject.graph;
        let mut places = Vec::new();
        for read in graph.operands(id) {
            let Op::Broadcast { map } = &graph.node(read.node).op else {
                return None;
            };
            let source = graph.operands(read.node).first()?.node;
            if !matches!(graph.node(source).op, Op::Iota) {
                return None;
            }
            places.push(*map.first()?);
        }
        let [i, j] = places[..] else { return None };
        let sizes = &graph.node(id).ty.axes;
        if i == j || sizes[i] != sizes[j] || !self.algebra.is_arithmetic() {
            return None;
        }
        let mut term = self.atom(Read::now(id));
        term.factors.clear();
        term.to[j] = term.to[i].clone();
        Some(vec![term])
    }
}
