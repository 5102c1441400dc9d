//! Which linear surrogate would free a nonlinear recurrence (Martin & Cundy 2018, arXiv 1709.04057: GILR).
//!
//! Comes in: a nonlinear recurrence. Goes out: a hint that names the delayed reads which, replaced by a linear recurrence
//! of the input, would leave only linear ones. Found by taking every read at fault for a value from outside, and
//! interpreting again, until nothing is at fault.

use super::algebra::Algebra;
use super::interpret::{Edge, Interpreter, Subject};
use super::reason::{listed, source_text};
use super::{Semiring, express};
use crate::ir::Op;
use std::collections::BTreeSet;

/// Rounds after which a hint is not worth the search.
const MAX_ROUNDS: usize = 16;
/// Larger recurrences get no hint.
const MAX_READS: usize = 1000;

/// The hint, if the reads at fault can be told.
pub(super) fn suggest(subject: &Subject) -> Option<String> {
    if subject.reads.len() > MAX_READS {
        return None;
    }
    let (cut, kept) = faults(subject)?;
    let cut: Vec<&Edge> = cut
        .iter()
        .filter_map(|number| subject.reads.get(*number as usize))
        .collect();
    let mut places: Vec<String> = Vec::new();
    for edge in &cut {
        let text = place_text(subject, edge);
        if !places.contains(&text) {
            places.push(text);
        }
    }
    let mut rest: Vec<String> = Vec::new();
    for edge in &kept {
        let text = source_text(subject, edge);
        if !rest.contains(&text) {
            rest.push(text);
        }
    }
    let then = match rest.is_empty() {
        true => "all frames run in parallel".to_owned(),
        false => format!("what remains is linear in {} and runs as a scan", listed(&rest)),
    };
    Some(format!(
        "replace {} by a linear recurrence of the input, such as `s = g * s[t-1] + (1 - g) * j` with g and j computed \
         from the input (GILR): {then}",
        listed(&places)
    ))
}

/// The reads at fault, and those that stay in linear chains once the others are values from outside.
fn faults(subject: &Subject) -> Option<(BTreeSet<u32>, Vec<Edge>)> {
    let mut cut: BTreeSet<u32> = BTreeSet::new();
    for _ in 0..MAX_ROUNDS {
        let before = cut.clone();
        let mut interpreter = Interpreter::new(subject, Algebra::Linear(Semiring::SumProduct), &before);
        let through = interpreter.run(|found| {
            cut.extend(&found.reads);
            !found.reads.is_empty()
        });
        through.ok()?;
        if cut == before {
            let kept: BTreeSet<u32> = subject
                .order
                .iter()
                .filter(|id| matches!(subject.graph.node(**id).op, Op::State { .. }))
                .flat_map(|id| {
                    interpreter
                        .value(*id)
                        .iter()
                        .flat_map(|t| t.reads.clone())
                        .collect::<Vec<_>>()
                })
                .collect();
            let kept = kept.iter().filter_map(|number| subject.reads.get(*number as usize));
            return (!cut.is_empty()).then(|| (cut.clone(), kept.copied().collect()));
        }
    }
    None
}

/// A read with the expression that it stands in: "`h[t-1]` in `R @ h[t-1]`".
fn place_text(subject: &Subject, edge: &Edge) -> String {
    let source = source_text(subject, edge);
    let place = express::definition(subject.graph, edge.reader);
    match format!("`{place}`") == source {
        true => source,
        false => format!("{source} in `{place}`"),
    }
}
