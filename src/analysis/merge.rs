//! Keeps sums of terms short: terms of one form are one term.

use super::algebra::Algebra;
use super::term::{Axis, Label, Labels, Term};
use std::collections::BTreeSet;

/// A term that stands for more reads than this lists no further ones.
const MAX_READS: usize = 64;

/// Whether two terms read the same elements into the same places, so that their sum is one term. Over a semiring that is
/// only said of terms without a contraction: two terms of rank 1 are not one.
pub(super) fn same_form(a: &Term, b: &Term, algebra: Algebra, labels: &Labels) -> bool {
    if a.source != b.source || a.source.is_none() || a.exact != b.exact {
        return false;
    }
    let plain = |t: &Term| t.from.iter().all(|axis| t.to.contains(axis)) && t.from.len() == t.to.len();
    (algebra == Algebra::Dependence || !a.exact || plain(a) && plain(b)) && renaming(a, b, labels).is_some()
}

/// The pairs of variables by which two terms' axes are the same.
fn renaming(a: &Term, b: &Term, labels: &Labels) -> Option<Vec<(Label, Label)>> {
    let mut pairs: Vec<(Label, Label)> = Vec::new();
    let axes = |t: &Term| -> Vec<Axis> { t.from.iter().chain(&t.to).cloned().collect() };
    let (a, b) = (axes(a), axes(b));
    if a.len() != b.len() {
        return None;
    }
    for (x, y) in a.iter().zip(&b) {
        if x.lo != y.lo || x.labels.len() != y.labels.len() {
            return None;
        }
        for (l, m) in x.labels.iter().zip(&y.labels) {
            match pairs.iter().find(|(p, q)| p == l || q == m) {
                Some(known) if *known == (*l, *m) => {}
                Some(_) => return None,
                None if labels.size(*l) != labels.size(*m) => return None,
                None => pairs.push((*l, *m)),
            }
        }
    }
    Some(pairs)
}

/// Adds a term of the same form.
pub(super) fn absorb(known: &mut Term, term: Term, labels: &Labels) {
    let pairs = renaming(known, &term, labels).unwrap_or_default();
    for mut factor in term.factors {
        for label in &mut factor.labels {
            *label = pairs.iter().find(|(_, m)| m == label).map_or(*label, |(l, _)| *l);
        }
        known.scale(factor);
    }
    let reads: BTreeSet<u32> = known.reads.iter().copied().chain(term.reads).collect();
    known.reads = reads.into_iter().take(MAX_READS).collect();
}

/// One inexact term for all. The source kept is the first; its structure is given up anyway.
pub(super) fn collapse(terms: Vec<Term>, labels: &Labels) -> Vec<Term> {
    let mut terms = terms.into_iter().map(Term::inexact);
    let sum = terms.next().map(|first| {
        terms.fold(first, |mut sum, term| {
            absorb(&mut sum, term, labels);
            sum
        })
    });
    sum.into_iter().collect()
}
