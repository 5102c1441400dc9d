//! What each operation does to terms.
//!
//! Comes in: an operation and the values of its operands, at least one of which moves with the recurrence. Goes out: the
//! terms of the result, or where linearity ends.

use super::Semiring::{MaxMin, MaxPlus, MinPlus};
use super::algebra::{Algebra, BinaryRole, UnaryRole};
use super::contract::{self, Constant, Einsum};
use super::interpret::{Break, Interpreter, Operand, literal};
use super::term::{Factor, Term};
use crate::ir::op::Reduce;
use crate::ir::{NodeId, Op, Read, Size};
use std::collections::BTreeSet;
use std::rc::Rc;

impl Interpreter<'_> {
    pub(super) fn unary(&mut self, id: NodeId, role: UnaryRole, operands: &[Operand]) -> Result<Vec<Term>, Break> {
        let terms = operands[0].value.to_vec();
        match role {
            UnaryRole::Identity | UnaryRole::Scale => Ok(terms),
            UnaryRole::AddConstant => {
                let constant = self.without_factors(id);
                Ok(self.union(terms, vec![constant]))
            }
            UnaryRole::Nonlinear => Err(broken(id, 0, operands, None)),
        }
    }

    /// A number, repeated along the axes of a node.
    fn without_factors(&mut self, id: NodeId) -> Term {
        let mut term = self.atom(Read::now(id));
        term.factors.clear();
        term
    }

    pub(super) fn binary(&mut self, id: NodeId, role: BinaryRole, operands: &[Operand]) -> Result<Vec<Term>, Break> {
        let (a, b) = (&operands[0], &operands[1]);
        match role {
            BinaryRole::Plus | BinaryRole::Minus => Ok(self.union(a.value.to_vec(), b.value.to_vec())),
            BinaryRole::Times if a.moving && b.moving => Err(product_of_two(id, operands)),
            BinaryRole::Times if b.moving => Ok(self.scaled(b, a)),
            BinaryRole::Times => Ok(self.scaled(a, b)),
            BinaryRole::Over if !b.moving => Ok(self.unscaled(a, b)),
            BinaryRole::Over if a.moving => Err(broken(id, 1, operands, Some(0))),
            BinaryRole::Over => Err(broken(id, 1, operands, None)),
            BinaryRole::Nonlinear => Err(broken(id, usize::from(!a.moving), operands, None)),
        }
    }

    /// Every term of one operand times the other, which does not move.
    fn scaled(&mut self, operand: &Operand, by: &Operand) -> Vec<Term> {
        let rank = self.subject.graph.node(by.read.node).ty.axes.len() as u32;
        let axes: Vec<u32> = (0..rank).collect();
        let einsum = Einsum {
            left: &axes,
            right: &axes,
            out: &axes,
        };
        self.product(operand, by, &einsum)
    }

    /// Every term of one operand times the inverse of the other, which does not move.
    fn unscaled(&mut self, operand: &Operand, by: &Operand) -> Vec<Term> {
        let inverse = Operand {
            read: by.read,
            value: Rc::new(vec![self.inverse(by.read)]),
            moving: false,
        };
        self.scaled(operand, &inverse)
    }

    /// The inverse of a value as one factor.
    pub(super) fn inverse(&mut self, read: Read) -> Term {
        let mut term = self.atom(read);
        term.factors.iter_mut().for_each(|f| f.inverse = true);
        term
    }

    /// Every term of one operand with a constant one. If that is a sum, its addends are not told apart when it scales
    /// element by element; in a contraction they are, since a matrix may be a diagonal plus an outer product.
    fn product(&mut self, operand: &Operand, by: &Operand, einsum: &Einsum) -> Vec<Term> {
        let scales_only = einsum.left == einsum.out && einsum.right == einsum.out;
        let addends = match by.value.as_slice() {
            [] => return Vec::new(),
            [_, _, ..] if scales_only => vec![self.atom(by.read)],
            terms => terms.to_vec(),
        };
        let mut sum = Vec::new();
        for addend in &addends {
            for term in operand.value.iter() {
                sum.push(self.times(term.clone(), addend, by.read.node, einsum));
            }
        }
        sum
    }

    /// One term times a constant one.
    pub(super) fn times(&mut self, term: Term, constant: &Term, node: NodeId, einsum: &Einsum) -> Term {
        let origin = self.subject.graph.node(node);
        let constant = Constant {
            term: constant.renamed(&mut self.labels),
            node,
            kind: origin.kind,
            sizes: &origin.ty.axes,
        };
        contract::product(term, constant, einsum, &mut self.labels)
    }

    pub(super) fn select(&mut self, id: NodeId, operands: &[Operand]) -> Result<Vec<Term>, Break> {
        if operands[0].moving && self.algebra != Algebra::Dependence {
            return Err(broken(id, 0, operands, None));
        }
        let mut sum = self.scaled(&operands[1], &operands[0]);
        let other = self.scaled(&operands[2], &operands[0]);
        sum = self.union(sum, other);
        if operands[0].moving {
            sum = self.union(sum, operands[0].value.to_vec());
        }
        Ok(sum)
    }

    /// `clamp(x, lo, hi)` is x times hi plus lo over (max,min), and a sum with one bound where the other is infinite.
    pub(super) fn clamp(&mut self, id: NodeId, operands: &[Operand]) -> Result<Vec<Term>, Break> {
        let (x, lo, hi) = (&operands[0], &operands[1], &operands[2]);
        if self.algebra == Algebra::Dependence {
            let sum = self.union(x.value.to_vec(), lo.value.to_vec());
            return Ok(self.union(sum, hi.value.to_vec()));
        }
        if let Some(port) = [1, 2].into_iter().find(|port| operands[*port].moving) {
            return Err(broken(id, port, operands, None));
        }
        match self.algebra {
            Algebra::Linear(MaxMin) => {
                let scaled = self.scaled(x, hi);
                Ok(self.union(scaled, lo.value.to_vec()))
            }
            Algebra::Linear(MaxPlus) if self.is_number(hi.read.node, f64::INFINITY) => {
                Ok(self.union(x.value.to_vec(), lo.value.to_vec()))
            }
            Algebra::Linear(MinPlus) if self.is_number(lo.read.node, f64::NEG_INFINITY) => {
                Ok(self.union(x.value.to_vec(), hi.value.to_vec()))
            }
            _ => Err(broken(id, 0, operands, None)),
        }
    }

    /// Whether a node is this number, perhaps repeated along axes.
    pub(super) fn is_number(&self, id: NodeId, number: f64) -> bool {
        literal(self.subject.graph, id) == Some(number)
    }

    pub(super) fn contract(
        &mut self,
        id: NodeId,
        labels: &[Vec<u32>],
        out: &[u32],
        operands: &[Operand],
    ) -> Result<Vec<Term>, Break> {
        let summed = labels.iter().flatten().any(|l| !out.contains(l));
        match (labels, operands) {
            ([only], [operand]) if !summed || self.algebra.sums(Reduce::Sum) => {
                let terms = operand.value.iter().cloned();
                Ok(terms.map(|t| contract::alone(t, only, out)).collect())
            }
            ([left, right], [a, b]) if self.algebra == Algebra::Dependence => {
                Ok(self.depends_on_both(left, right, out, a, b))
            }
            ([left, right], [a, b]) if self.algebra.is_arithmetic() && !(a.moving && b.moving) => {
                let (moving, fixed, left, right) = match a.moving {
                    true => (a, b, left, right),
                    false => (b, a, right, left),
                };
                let einsum = Einsum { left, right, out };
                Ok(self.product(moving, fixed, &einsum))
            }
            ([_, _], [a, b]) if a.moving && b.moving => Err(product_of_two(id, operands)),
            _ => Err(broken(
                id,
                operands.iter().position(|o| o.moving).unwrap_or(0),
                operands,
                None,
            )),
        }
    }

    fn depends_on_both(&mut self, left: &[u32], right: &[u32], out: &[u32], a: &Operand, b: &Operand) -> Vec<Term> {
        let mut sum = Vec::new();
        for (operand, other, left, right) in [(a, b, left, right), (b, a, right, left)] {
            let einsum = Einsum { left, right, out };
            let constant = self.atom(other.read);
            for term in operand.value.iter().filter(|t| t.source.is_some()) {
                let term = self.times(term.clone(), &constant, other.read.node, &einsum);
                sum = self.union(sum, vec![term]);
            }
        }
        sum
    }

    pub(super) fn reduce(&mut self, axes: &[usize], operand: &Operand) -> Vec<Term> {
        let rank = self.subject.graph.node(operand.read.node).ty.axes.len();
        let all: Vec<u32> = (0..rank as u32).collect();
        let kept: Vec<u32> = all.iter().copied().filter(|a| !axes.contains(&(*a as usize))).collect();
        let terms = operand.value.iter().cloned();
        terms.map(|t| contract::alone(t, &all, &kept)).collect()
    }

    /// A row of a table of the recurrence: its first axis contracted with an index from outside.
    pub(super) fn gather(&mut self, id: NodeId, operands: &[Operand]) -> Result<Vec<Term>, Break> {
        let index = operands[1].read.node;
        let mut rows = Vec::new();
        for term in operands[0].value.iter() {
            let mut term = term.clone();
            let labels = match term.exact {
                true => term.to.remove(0).labels,
                false => Vec::new(),
            };
            term.factors.push(Factor {
                node: index,
                inverse: false,
                kind: self.subject.graph.node(id).kind,
                labels,
            });
            rows.push(term);
        }
        Ok(rows)
    }

    /// A view of terms: `None` where a term has no part in it.
    pub(super) fn view(&mut self, id: NodeId, operands: &[Operand]) -> Vec<Term> {
        let graph = self.subject.graph;
        let node = graph.node(id);
        let mut sum = Vec::new();
        let mut offset = Size::int(0);
        for operand in operands {
            let sizes = &graph.node(operand.read.node).ty.axes;
            for term in operand.value.iter() {
                let term = self.view_of_term(&node.op, term.clone(), sizes, &node.ty.axes, &offset);
                sum = self.union(sum, term.into_iter().collect());
            }
            if let Op::Concat { axis } = node.op {
                offset = offset.add(&sizes[axis]).unwrap_or(offset);
            }
        }
        if matches!(node.op, Op::Shift { .. }) && self.algebra.zero() != Some(0.0) {
            let filled = self.atom(Read::now(id));
            sum.push(filled);
        }
        sum
    }

    /// A view of one term; a part of a concatenation lies at `offset`.
    pub(super) fn view_of_term(
        &mut self,
        op: &Op,
        term: Term,
        old: &[Size],
        new: &[Size],
        offset: &Size,
    ) -> Option<Term> {
        let labels = &mut self.labels;
        match op {
            Op::Broadcast { map } => Some(term.broadcast(map, new, labels)),
            Op::Slice { axis, lo, hi } => term.slice(*axis, lo, hi, labels),
            Op::Reshape => Some(term.reshape(old, new, labels)),
            Op::Shift { axis, by } => term.shift(*axis, *by, &old[*axis], labels),
            Op::Concat { axis } => Some(term.moved(*axis, offset)),
            _ => Some(term.inexact()),
        }
    }
}

fn reads_of(value: &[Term]) -> Vec<u32> {
    let all: BTreeSet<u32> = value.iter().flat_map(|t| t.reads.iter().copied()).collect();
    all.into_iter().collect()
}

pub(super) fn broken(node: NodeId, port: usize, operands: &[Operand], other: Option<usize>) -> Break {
    Break {
        node,
        reads: reads_of(&operands[port].value),
        other,
    }
}

/// The operand with fewer reads is the one at fault: without it the product would be a scaling.
fn product_of_two(node: NodeId, operands: &[Operand]) -> Break {
    let count = |port: usize| reads_of(&operands[port].value).len();
    let port = usize::from(count(1) < count(0));
    broken(node, port, operands, Some(1 - port))
}
