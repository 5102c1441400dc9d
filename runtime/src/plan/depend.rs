//! Which variables of its space each register of a body varies with.

use super::access::{Site, SiteKind};
use super::{Atom, Channel, Index, Kernel, Slot, Step};

/// For each register, the variables it depends on, as bits. States of channel kernels depend on what their index and
/// their value depend on, found by iteration.
pub(crate) fn dependence(kernel: &Kernel, site: &Site<'_>) -> Vec<u64> {
    let (carried, inner) = match kernel {
        Kernel::Channel(channel) => (channel.carried.as_slice(), inner_bits(channel)),
        _ => (&[][..], 0),
    };
    let mut states: Vec<u64> = carried.iter().map(|c| bits([&c.index])).collect();
    loop {
        let mut sets: Vec<u64> = Vec::with_capacity(site.body.steps.len());
        for step in &site.body.steps {
            sets.push(of_step(kernel, site.kind, step, &sets, &states, inner));
        }
        let value = |c: &super::Carried| sets.get(c.value.0 as usize).copied().unwrap_or(0);
        let next: Vec<u64> = carried.iter().zip(&states).map(|(c, s)| s | value(c)).collect();
        if next == states {
            return sets;
        }
        states = next;
    }
}

/// The inner variables of a channel kernel.
pub(crate) fn inner_bits(channel: &Channel) -> u64 {
    let first = channel.channels.len();
    (first..first + channel.inner.len()).fold(0, |set, v| set | 1 << v.min(63))
}

fn of_step(kernel: &Kernel, kind: SiteKind, step: &Step, before: &[u64], states: &[u64], inner: u64) -> u64 {
    let read = step
        .reads()
        .iter()
        .fold(0, |set, r| set | before.get(r.0 as usize).copied().unwrap_or(0));
    match step {
        Step::Load(load) => bits(std::iter::once(&load.index).chain(load.guards.iter().map(|g| &g.index))),
        Step::Number(index) | Step::Value { index, .. } => bits([index]),
        Step::Inside(guards) => bits(guards.iter().map(|g| &g.index)),
        Step::Gather { index, .. } => read | bits([index]),
        Step::Carried { state, .. } => states.get(*state).copied().unwrap_or(0),
        Step::Reduce(..) => read & !inner,
        Step::Slot(slot) => slot_bits(kernel, kind, *slot),
        Step::Const(_) | Step::Unary(..) | Step::Binary(..) | Step::Select(..) | Step::Clamp(..) => read,
    }
}

/// A sum varies by row or unit, except a fold in which the unit does not occur.
fn slot_bits(kernel: &Kernel, kind: SiteKind, slot: usize) -> u64 {
    let (Kernel::Loop(kernel), SiteKind::Part { phase, part }) = (kernel, kind) else {
        return 1;
    };
    let part = kernel.phases.get(phase).and_then(|p| p.parts.get(part));
    part.and_then(|p| p.slots.get(slot))
        .map_or(1, |slot| u64::from(slot.varies_by_unit()))
}

impl Slot {
    /// Whether units have different values of it; the moments of a norm are one value a sequence.
    pub fn varies_by_unit(&self) -> bool {
        match self {
            Slot::Dot { .. } => true,
            Slot::Fold { body, .. } => body.steps.iter().any(|step| step.uses(0)),
        }
    }
}

impl Step {
    /// Whether the variable occurs in an index of it.
    pub fn uses(&self, v: u8) -> bool {
        match self {
            Step::Load(load) => load.index.uses(v) || load.guards.iter().any(|g| g.index.uses(v)),
            Step::Number(index) | Step::Gather { index, .. } | Step::Value { index, .. } => index.uses(v),
            Step::Inside(guards) => guards.iter().any(|g| g.index.uses(v)),
            _ => false,
        }
    }
}

/// The variables that occur in indices.
pub(crate) fn bits<'a>(indices: impl IntoIterator<Item = &'a Index>) -> u64 {
    indices.into_iter().flat_map(|index| &index.terms).fold(0, |set, term| {
        set | match &term.atom {
            Atom::Var(v) => 1 << (*v).min(63),
            Atom::DivMod { of, .. } => bits([of.as_ref()]),
        }
    })
}
