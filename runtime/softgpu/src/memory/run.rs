//! A request cut into runs: lanes one after another, or several at one place.

use super::order::shadow::Run;
use super::place::{Group, Pattern};

/// The runs of a group whose lanes access `span` bytes each.
pub(crate) fn runs(group: &Group, span: u32, pattern: Pattern) -> impl Iterator<Item = Run> + '_ {
    let mut left = group.lanes;
    std::iter::from_fn(move || {
        if left == 0 {
            return None;
        }
        let lane = left.trailing_zeros();
        let offset = group.offsets[lane as usize];
        let (count, lanes) = match pattern {
            Pattern::Consecutive => (32, 0),
            Pattern::Broadcast => (1, group.lanes),
            Pattern::Scattered => scattered(group, left, lane, span),
        };
        let taken = if lanes != 0 { lanes } else { ones(count) << lane };
        left &= !taken;
        let lanes = if lanes.is_power_of_two() { 0 } else { lanes };
        Some(Run {
            offset,
            span,
            lane,
            count,
            lanes,
        })
    })
}

fn ones(count: u32) -> u32 {
    if count == 32 { u32::MAX } else { (1 << count) - 1 }
}

/// From a lane on: how many follow one another, or which are at its place.
fn scattered(group: &Group, left: u32, lane: u32, span: u32) -> (u32, u32) {
    let first = group.offsets[lane as usize];
    let next = |after: u32, step: u32| {
        let other = lane + after;
        other < 32 && left & 1 << other != 0 && group.offsets[other as usize] == first.wrapping_add(step)
    };
    let same = 1 + (1..).take_while(|&after| next(after, 0)).count() as u32;
    if same > 1 {
        return (1, ones(same) << lane);
    }
    (
        1 + (1..).take_while(|&after| next(after, after * span)).count() as u32,
        0,
    )
}
