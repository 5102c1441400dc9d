//! A request cut into runs: elements one after another in memory, each the matter of some lanes.

use std::ops::Deref;

use super::order::shadow::Run;
use super::place::{Group, Pattern, each};
use super::wide;

/// The runs of a request: mostly one, and one for each lane at most.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "it stays on the stack, and a box for many would cost more than the room"
)]
pub(crate) enum Runs {
    One([Run; 1]),
    Many([Run; 32], usize),
}

impl Deref for Runs {
    type Target = [Run];

    fn deref(&self) -> &[Run] {
        match self {
            Self::One(run) => run,
            Self::Many(runs, count) => &runs[..*count],
        }
    }
}

/// The runs of a group whose lanes access `span` bytes each.
pub(crate) fn runs(group: &Group, span: u32, pattern: Pattern) -> Runs {
    let offset = group.offsets[group.lanes.trailing_zeros() as usize];
    let (count, pattern, step) = match pattern {
        Pattern::Consecutive => (32, 1, 1),
        Pattern::Broadcast => (1, group.lanes, 0),
        Pattern::Grouped(lanes) => (32 / lanes, ones(lanes), lanes),
        Pattern::Periodic(lanes) => (lanes, u32::MAX / ones(lanes), 1),
        Pattern::Scattered => return all_scattered(group, span),
    };
    Runs::One([Run {
        offset,
        span,
        count,
        pattern,
        step,
    }])
}

/// Lanes that follow one another make a run; so do those at one place, if any lane is where an earlier one was.
fn all_scattered(group: &Group, span: u32) -> Runs {
    let (mut list, mut count) = ([Run::one(0, span, 0); 32], 0);
    // Where the next lane is if it follows the last one: its number, and its offset.
    let (mut next, mut end) = (u32::MAX, 0);
    for lane in each(group.lanes) {
        let offset = group.offsets[lane];
        if offset < end {
            return by_place(group, span);
        }
        if (lane as u32, offset) == (next, end) {
            list[count - 1].count += 1;
            list[count - 1].step = 1;
        } else {
            list[count] = Run::one(offset, span, 1 << lane);
            count += 1;
        }
        (next, end) = (lane as u32 + 1, offset + span);
    }
    Runs::Many(list, count)
}

/// The same where lanes are not in the order of their places.
fn by_place(group: &Group, span: u32) -> Runs {
    let (mut left, mut count, mut list) = (group.lanes, 0, [Run::one(0, span, 0); 32]);
    while left != 0 {
        let run = scattered(group, left, span);
        left &= !taken(run);
        list[count] = run;
        count += 1;
    }
    Runs::Many(list, count)
}

fn ones(count: u32) -> u32 {
    u32::MAX >> (32 - count)
}

/// The lanes of a run.
fn taken(run: Run) -> u32 {
    (0..run.count).fold(0, |lanes, element| lanes | run.pattern << (run.step * element))
}

/// From the first lane left on: those that follow one another, or all that are at its place.
fn scattered(group: &Group, left: u32, span: u32) -> Run {
    let lane = left.trailing_zeros();
    let first = group.offsets[lane as usize];
    let same = wide::equal(&group.offsets, first) & left;
    if !same.is_power_of_two() {
        return Run::one(first, span, same);
    }
    let follows = |after: u32| {
        let other = lane + after;
        other < 32 && left & 1 << other != 0 && group.offsets[other as usize] == first.wrapping_add(after * span)
    };
    let count = (1..).find(|&after| !follows(after)).unwrap_or(1);
    Run {
        offset: first,
        span,
        count,
        pattern: 1 << lane,
        step: u32::from(count > 1),
    }
}
