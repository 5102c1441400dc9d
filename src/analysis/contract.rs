//! Products of terms: a chain times a constant, element by element or contracted over axes.
//!
//! Comes in: a term and the labels of its axes, perhaps a constant term with those of its own, and the labels of the
//! result. Goes out: the term of the result. Elementwise scaling is the case in which all three lists are equal.

use super::term::{Axis, Factor, Label, Labels, Term};
use crate::ir::{Kind, NodeId, Size};
use std::collections::BTreeMap;

/// A constant that takes part in a product.
pub(super) struct Constant<'a> {
    /// Its term, whose variables are not those of the other operand.
    pub(super) term: Term,
    /// The node that it comes from, for when its structure must be given up.
    pub(super) node: NodeId,
    /// How often that exists.
    pub(super) kind: Kind,
    /// The extents of its axes.
    pub(super) sizes: &'a [Size],
}

/// The einsum labels of both operands and the result.
pub(super) struct Einsum<'a> {
    pub(super) left: &'a [u32],
    pub(super) right: &'a [u32],
    pub(super) out: &'a [u32],
}

/// The product of `term` with a constant.
pub(super) fn product(term: Term, constant: Constant, einsum: &Einsum, labels: &mut Labels) -> Term {
    let (simple, factors) = match is_simple(&constant.term, constant.sizes, labels) {
        true => (constant.term.to, constant.term.factors),
        false => atom_of(&constant, labels),
    };
    let (mut term, bound) = match contraction(term, einsum.left, einsum.right, &simple, einsum.out) {
        Ok(found) => found,
        Err(term) => {
            let mut term = term.inexact();
            let stripped = factors.into_iter().map(|f| Factor {
                labels: Vec::new(),
                ..f
            });
            stripped.for_each(|factor| term.scale(factor));
            return term;
        }
    };
    for mut factor in factors {
        factor.labels = factor
            .labels
            .iter()
            .flat_map(|l| bound.get(l).map_or(vec![*l], |axis| axis.labels.clone()))
            .collect();
        factor.labels.sort_unstable();
        factor.labels.dedup();
        term.scale(factor);
    }
    term
}

/// `term` contracted, permuted or restricted to a diagonal by itself.
pub(super) fn alone(term: Term, left: &[u32], out: &[u32]) -> Term {
    match contraction(term, left, &[], &[], out) {
        Ok((term, _)) => term,
        Err(term) => term.inexact(),
    }
}

/// Whether every axis is whole and written by one variable: then each can be bound to an axis of the other operand.
fn is_simple(term: &Term, sizes: &[Size], labels: &Labels) -> bool {
    let one = |(axis, size): (&Axis, &Size)| axis.labels.len() <= 1 && labels.is_whole(axis, size);
    term.exact && term.to.iter().zip(sizes).all(one)
}

/// The constant as a single factor that varies along every axis that the term's factors vary along.
fn atom_of(constant: &Constant, labels: &mut Labels) -> (Vec<Axis>, Vec<Factor>) {
    let axes: Vec<Axis> = constant.sizes.iter().map(|size| labels.whole(size)).collect();
    let varies = |at: usize| {
        let term = &constant.term;
        !term.exact
            || !labels.is_whole(&term.to[at], &constant.sizes[at])
            || term.to[at].labels.iter().any(|l| used(term, *l, at))
    };
    let along = (0..axes.len())
        .filter(|at| varies(*at))
        .flat_map(|at| axes[at].labels.clone());
    let factor = Factor {
        node: constant.node,
        inverse: false,
        kind: constant.kind,
        labels: along.collect(),
    };
    (axes, vec![factor])
}

/// Whether a variable occurs in a factor, or in a second axis.
fn used(term: &Term, label: Label, at: usize) -> bool {
    let elsewhere = |(i, axis): (usize, &Axis)| i != at && axis.labels.contains(&label);
    term.factors.iter().any(|f| f.labels.contains(&label)) || term.to.iter().enumerate().any(elsewhere)
}

type Bound = BTreeMap<Label, Axis>;

/// Joins the axes of both operands by their einsum labels: the term with the result's axes and what the constant's
/// variables became, or the term as it was where that cannot be written exactly.
fn contraction(term: Term, left: &[u32], right: &[u32], constant: &[Axis], out: &[u32]) -> Result<(Term, Bound), Term> {
    if !term.exact {
        return Err(term);
    }
    let mut join = Join {
        term,
        placed: BTreeMap::new(),
        bound: BTreeMap::new(),
    };
    match join.run(left, right, constant, out) {
        Some(()) => Ok((join.term, join.bound)),
        None => Err(join.term),
    }
}

struct Join {
    term: Term,
    /// The axis that each einsum label stands for.
    placed: BTreeMap<u32, Axis>,
    /// The axis that each variable of the constant stands for.
    bound: Bound,
}

impl Join {
    fn run(&mut self, left: &[u32], right: &[u32], constant: &[Axis], out: &[u32]) -> Option<()> {
        for (at, label) in left.iter().enumerate() {
            self.place(*label, at)?;
        }
        // Variables that meet an axis of the term first, so that a diagonal constant passes that axis on.
        let (met, free): (Vec<_>, Vec<_>) = right
            .iter()
            .zip(constant)
            .partition(|(label, _)| self.placed.contains_key(label));
        for (label, axis) in met.into_iter().chain(free) {
            self.bind(*label, axis)?;
        }
        self.term.to = out.iter().map(|l| self.placed.get(l).cloned()).collect::<Option<_>>()?;
        Some(())
    }

    /// Lets an einsum label stand for axis `at` of the term; where it already stands for one, takes the diagonal.
    fn place(&mut self, label: u32, at: usize) -> Option<()> {
        let axis = self.term.to[at].clone();
        let Some(earlier) = self.placed.get(&label).cloned() else {
            self.placed.insert(label, axis);
            return Some(());
        };
        if earlier == axis {
            return Some(());
        }
        let ([keep], [gone]) = (earlier.labels.as_slice(), axis.labels.as_slice()) else {
            return None;
        };
        if earlier.lo != axis.lo {
            return None;
        }
        self.term.rename(*gone, *keep);
        for placed in self.placed.values_mut() {
            placed.labels.iter_mut().filter(|l| *l == gone).for_each(|l| *l = *keep);
        }
        Some(())
    }

    /// Lets an einsum label stand for an axis of the constant too.
    fn bind(&mut self, label: u32, axis: &Axis) -> Option<()> {
        let variable = axis.labels.first();
        let known = variable.and_then(|v| self.bound.get(v)).cloned();
        match (self.placed.get(&label).cloned(), known) {
            (Some(placed), Some(known)) => (placed == known).then_some(()),
            (Some(placed), None) => {
                variable.map(|v| self.bound.insert(*v, placed));
                Some(())
            }
            (None, known) => {
                let stands_for = known.unwrap_or_else(|| axis.clone());
                variable.map(|v| self.bound.insert(*v, stands_for.clone()));
                self.placed.insert(label, stands_for);
                Some(())
            }
        }
    }
}
