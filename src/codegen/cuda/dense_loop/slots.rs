//! What a loop's slots and bodies read.

use rnnc_runtime::plan::{Body, Guard, Index, Load, LoopPart, Slot, Step};

/// Whether the slot has one value for all units of a sequence.
pub fn is_common(slot: &Slot) -> bool {
    match slot {
        Slot::Dot {
            weight_index,
            value_index,
            ..
        } => !weight_index.uses(0) && !value_index.uses(0),
        Slot::Fold { body, .. } => !body.steps.iter().any(|s| indices(s).iter().any(|i| i.uses(0))),
    }
}

/// A read of a loop's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Read<'a> {
    /// Which value.
    pub value: usize,
    /// Of how many frames ago.
    pub delay: usize,
    /// Which element.
    pub index: &'a Index,
}

/// The values that a body reads.
pub fn body_reads(body: &Body) -> impl Iterator<Item = Read<'_>> {
    body.steps.iter().filter_map(|s| match s {
        Step::Value { value, delay, index } => Some(Read {
            value: *value,
            delay: *delay,
            index,
        }),
        _ => None,
    })
}

/// The values that a part's slots read.
pub fn slot_reads(part: &LoopPart) -> impl Iterator<Item = Read<'_>> {
    part.slots
        .iter()
        .flat_map(|slot| -> Box<dyn Iterator<Item = Read<'_>>> {
            match slot {
                Slot::Dot {
                    value,
                    delay,
                    value_index,
                    ..
                } => Box::new(std::iter::once(Read {
                    value: *value,
                    delay: *delay,
                    index: value_index,
                })),
                Slot::Fold { body, .. } => Box::new(body_reads(body)),
            }
        })
}

/// The loads of a body.
pub fn loads(body: &Body) -> impl Iterator<Item = (usize, &Load)> {
    body.steps.iter().enumerate().filter_map(|(i, s)| match s {
        Step::Load(load) => Some((i, load)),
        _ => None,
    })
}

fn indices(step: &Step) -> Vec<&Index> {
    let guards: &[Guard] = match step {
        Step::Load(load) => &load.guards,
        Step::Inside(guards) => guards,
        _ => &[],
    };
    let own = match step {
        Step::Load(load) => Some(&load.index),
        Step::Number(index) | Step::Gather { index, .. } | Step::Value { index, .. } => Some(index),
        _ => None,
    };
    own.into_iter().chain(guards.iter().map(|g| &g.index)).collect()
}
