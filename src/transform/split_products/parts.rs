//! What is read of a value: all of it, or ranges of one axis.

use crate::ir::Size;
use std::collections::{BTreeMap, BTreeSet};

/// From the first position to one past the last.
pub(super) type Range = (Size, Size);

/// How long a range is.
pub(super) fn extent((lo, hi): &Range) -> Option<Size> {
    hi.sub(lo)
}

/// Ranges of an axis.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Parts {
    /// Which axis.
    pub(super) axis: usize,
    /// The ranges; where they are those of a value that is taken apart, each once and sorted.
    pub(super) ranges: Vec<Range>,
}

impl Parts {
    /// A single range.
    pub(super) fn one(axis: usize, lo: &Size, hi: &Size) -> Parts {
        Parts {
            axis,
            ranges: vec![(lo.clone(), hi.clone())],
        }
    }
}

/// What all readers of a value read of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) enum Demand {
    /// Nobody reads it yet.
    #[default]
    Nothing,
    /// Ranges of one axis, as often as they are read.
    Parts(Parts),
    /// All of it, or ranges of different axes.
    Whole,
}

impl Demand {
    /// One more reader, of parts or of everything.
    pub(super) fn join(&mut self, parts: Option<Parts>) {
        match (&mut *self, parts) {
            (Demand::Nothing, Some(parts)) => *self = Demand::Parts(parts),
            (Demand::Parts(own), Some(parts)) if own.axis == parts.axis => own.ranges.extend(parts.ranges),
            _ => *self = Demand::Whole,
        }
    }

    /// The parts into which the value falls apart: if only ranges are read, of which no two overlap.
    pub(super) fn parts(self) -> Option<Parts> {
        let Demand::Parts(mut parts) = self else {
            return None;
        };
        parts.ranges.sort();
        parts.ranges.dedup();
        disjoint(&parts.ranges).then_some(parts)
    }
}

/// At most so many gaps between ranges are looked at, each against each.
const MOST_GAPS: usize = 16;

/// Whether no two ranges overlap, whatever the values of dimensions. Ranges that touch form chains, and chains are
/// compared by the sign of their distance.
fn disjoint(ranges: &[Range]) -> bool {
    let after: BTreeMap<&Size, &Size> = ranges.iter().map(|(lo, hi)| (lo, hi)).collect();
    let ends: BTreeSet<&Size> = ranges.iter().map(|(_, hi)| hi).collect();
    if after.len() < ranges.len() || ends.len() < ranges.len() {
        return false; // two begin, or end, at one place
    }
    let starts: Vec<&Size> = after.keys().copied().filter(|lo| !ends.contains(lo)).collect();
    if starts.len() > MOST_GAPS {
        return false;
    }
    let end = |start| {
        std::iter::successors(Some(start), |at| after.get(at).copied())
            .last()
            .unwrap_or(start)
    };
    let chains: Vec<Range> = starts.into_iter().map(|lo| (lo.clone(), end(lo).clone())).collect();
    let before = |a: &Range, b: &Range| b.0.sub(&a.1).is_some_and(|gap| gap.is_never_negative());
    let apart = |i: usize, j: usize| before(&chains[i], &chains[j]) || before(&chains[j], &chains[i]);
    (0..chains.len()).all(|i| (0..i).all(|j| apart(i, j)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::testing::Build;

    fn disjoint_text(ranges: &[(&str, &str)]) -> bool {
        let size = |s: &str| Build::axes(&[s]).remove(0);
        let ranges: Vec<Range> = ranges.iter().map(|(lo, hi)| (size(lo), size(hi))).collect();
        let mut demand = Demand::Nothing;
        demand.join(Some(Parts { axis: 0, ranges }));
        demand.parts().is_some()
    }

    #[test]
    fn ranges_may_touch_and_leave_gaps_but_not_overlap() {
        assert!(disjoint_text(&[("0", "H"), ("H", "2*H"), ("2*H", "3*H")]));
        assert!(disjoint_text(&[("2*H", "3*H"), ("0", "H")]));
        assert!(disjoint_text(&[("0", "1"), ("H", "2*H")]));
        assert!(!disjoint_text(&[("0", "2*H"), ("H", "3*H")]));
        assert!(!disjoint_text(&[("0", "2*H"), ("0", "H")]));
        assert!(!disjoint_text(&[("0", "I"), ("H", "2*H")])); // I may be above H
        assert!(disjoint_text(&[("0", "H"), ("0", "H")])); // the same range twice
    }

    #[test]
    fn different_axes_take_the_whole() {
        let mut demand = Demand::Nothing;
        demand.join(Some(Parts::one(0, &Size::int(0), &Size::int(1))));
        demand.join(Some(Parts::one(1, &Size::int(0), &Size::int(1))));
        assert_eq!(demand, Demand::Whole);
    }
}
