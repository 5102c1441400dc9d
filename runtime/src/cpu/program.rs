//! A compiled body: steps in order, each over whole runs of registers, and where each register lies.
//!
//! The steps are split into those that stay the same from frame to frame and the rest. A register is as wide as what it
//! depends on: one number a copy (frame and sequence), one a channel, or one a point.

use super::access::Access;
use crate::plan::{BufferId, Elem, Frame, StoreFrame};
use crate::scalar::{Binary, Reduce, Unary};

/// What a register varies with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Width {
    /// Frame and sequence only.
    Copy,
    /// Channels, too.
    Channel,
    /// Channels and inner axes.
    Point,
}

/// Where a register lies: a slot among those of its width. States lie in rings of slots, by frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) width: Width,
    pub(super) slot: usize,
    /// Slots of the ring; 1 for other registers.
    pub(super) ring: usize,
    /// Frames back in the ring.
    pub(super) delay: usize,
}

/// Where a load reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// A buffer of so many elements a copy.
    Buffer {
        id: BufferId,
        frame: Frame,
        elements: usize,
        /// Frames of the initial window.
        window: usize,
        integer: bool,
    },
    /// A value of a loop.
    Value { value: usize, delay: usize },
}

/// A table of rows, and which of its elements exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Table {
    pub(super) id: BufferId,
    pub(super) rows: usize,
    pub(super) stride: usize,
    pub(super) elements: usize,
}

/// One step over a block.
#[derive(Clone, Debug)]
pub(super) enum Op {
    Fill {
        value: f32,
        out: Place,
    },
    /// One number a channel or point, the same for every copy.
    Numbers {
        values: Vec<f32>,
        out: Place,
    },
    Load {
        source: Source,
        access: Access,
        out: Place,
    },
    Slot {
        slot: usize,
        out: Place,
    },
    Gather {
        table: Table,
        row: Place,
        access: Access,
        out: Place,
    },
    Unary {
        op: Unary,
        a: Place,
        out: Place,
    },
    Binary {
        op: Binary,
        a: Place,
        b: Place,
        out: Place,
    },
    Select {
        c: Place,
        a: Place,
        b: Place,
        out: Place,
    },
    Clamp {
        x: Place,
        lo: Place,
        hi: Place,
        out: Place,
    },
    Reduce {
        op: Reduce,
        a: Place,
        out: Place,
    },
    /// Repeats each number for what the wider register varies with.
    Widen {
        a: Place,
        out: Place,
    },
}

/// What is written after the steps.
#[derive(Clone, Debug)]
pub(super) struct StoreOp {
    pub(super) buffer: BufferId,
    pub(super) frame: StoreFrame,
    pub(super) elem: Elem,
    pub(super) elements: usize,
    /// Frames of a window.
    pub(super) window: usize,
    pub(super) access: Access,
    pub(super) value: Place,
}

/// A state and the register that becomes its next frame.
#[derive(Clone, Debug)]
pub(super) struct State {
    pub(super) ring: Place,
    pub(super) window: usize,
    pub(super) initial: BufferId,
    pub(super) initial_frames: usize,
    pub(super) elements: usize,
    pub(super) access: Access,
    pub(super) value: Place,
}

/// A compiled body.
#[derive(Clone, Debug)]
pub(super) struct Program {
    /// Points of the channel axes.
    pub(super) channels: usize,
    /// Points of the inner axes.
    pub(super) inner: usize,
    /// Steps that stay the same from frame to frame of a block.
    pub(super) once: Vec<Op>,
    /// The rest, frame by frame.
    pub(super) each: Vec<Op>,
    pub(super) states: Vec<State>,
    pub(super) stores: Vec<StoreOp>,
    /// The registers asked for, in the widths asked for.
    pub(super) results: Vec<Place>,
    /// Slots of each width.
    pub(super) slots: [usize; 3],
}

impl Op {
    /// What it reads, then what it writes.
    pub(super) fn places_mut(&mut self) -> Vec<&mut Place> {
        match self {
            Op::Fill { out, .. } | Op::Numbers { out, .. } | Op::Load { out, .. } | Op::Slot { out, .. } => vec![out],
            Op::Gather { row, out, .. } => vec![row, out],
            Op::Unary { a, out, .. } | Op::Reduce { a, out, .. } | Op::Widen { a, out } => vec![a, out],
            Op::Binary { a, b, out, .. } => vec![a, b, out],
            Op::Select { c, a, b, out } => vec![c, a, b, out],
            Op::Clamp { x, lo, hi, out } => vec![x, lo, hi, out],
        }
    }

    /// The numbers that it reads, then the one that it defines.
    fn numbers(&self) -> Vec<usize> {
        match self {
            Op::Fill { out, .. } | Op::Numbers { out, .. } | Op::Load { out, .. } | Op::Slot { out, .. } => {
                vec![out.slot]
            }
            Op::Gather { row, out, .. } => vec![row.slot, out.slot],
            Op::Unary { a, out, .. } | Op::Reduce { a, out, .. } | Op::Widen { a, out } => vec![a.slot, out.slot],
            Op::Binary { a, b, out, .. } => vec![a.slot, b.slot, out.slot],
            Op::Select { c, a, b, out } => vec![c.slot, a.slot, b.slot, out.slot],
            Op::Clamp { x, lo, hi, out } => vec![x.slot, lo.slot, hi.slot, out.slot],
        }
    }
}

/// A register before it has a place: how wide it is, and where it lies if it is a state.
#[derive(Clone, Copy)]
pub(super) struct Number {
    pub(super) width: Width,
    /// Whether it stays the same from frame to frame.
    pub(super) once: bool,
    pub(super) ring: Option<Place>,
}

/// The place of a number that has none yet: the slot is the number.
pub(super) fn unplaced(width: Width, number: usize) -> Place {
    Place {
        width,
        slot: number,
        ring: 1,
        delay: 0,
    }
}

/// Gives every number a place. Those computed once keep theirs; the others give it back after their last use.
pub(super) fn allocate(
    numbers: &[Number],
    program: &[(bool, Op)],
    ends: &[Place],
    first: [usize; 3],
) -> (Vec<Place>, [usize; 3]) {
    let mut last = vec![0; numbers.len()];
    for (at, (_, op)) in program.iter().enumerate() {
        // Its own number too: what nobody reads is free at once.
        op.numbers().into_iter().for_each(|n| last[n] = at);
    }
    ends.iter().for_each(|end| last[end.slot] = usize::MAX);
    let mut used = first;
    let mut free: [Vec<usize>; 3] = Default::default();
    let mut places: Vec<Place> = numbers.iter().map(|n| n.ring.unwrap_or(unplaced(n.width, 0))).collect();
    let fresh = |used: &mut [usize; 3], width: Width| {
        used[width as usize] += 1;
        used[width as usize] - 1
    };
    for (_, op) in program.iter().filter(|(once, _)| *once) {
        let out = op.numbers().pop().unwrap_or_default();
        places[out].slot = fresh(&mut used, numbers[out].width);
    }
    for (at, (_, op)) in program.iter().enumerate().filter(|(_, (once, _))| !once) {
        let mut ended = op.numbers();
        let out = ended.last().copied().unwrap_or_default();
        let width = numbers[out].width;
        // Before the operands' places are free again: a step never writes what it reads.
        places[out].slot = free[width as usize].pop().unwrap_or_else(|| fresh(&mut used, width));
        ended.sort_unstable();
        ended.dedup();
        ended.retain(|n| last[*n] == at && numbers[*n].ring.is_none() && !numbers[*n].once);
        ended
            .into_iter()
            .for_each(|n| free[numbers[n].width as usize].push(places[n].slot));
    }
    (places, used)
}
