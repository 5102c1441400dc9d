//! Chooses the shape of a loop's blocks: a model of the cycles of a frame, and the layout for which it says least.
//!
//! The model's constants are latencies and rates of data-centre cards; it ranks shapes, it does not predict times.

use super::dots::{DotGroup, WeightPlace};
use super::layout::{Layout, PhaseLayout, WORD};
use super::machine::Machine;
use super::places::{Memory, Shape};
use rnnc_runtime::plan::{Loop, Plan, Slot};

/// From publishing a word to having received those of all others, through the L2 cache.
const HAND_OVER: u64 = 700;

/// Waiting for the warps of the own block.
const BARRIER: u64 = 50;

/// From the last sum to the value of a unit.
const BODY: u64 = 200;

/// Bytes a cycle: of one block's shared memory, from the L2 cache to one multiprocessor, and from it to all.
const SHARED_RATE: u64 = 128;
const PORT_RATE: u64 = 64;
const CACHE_RATE: u64 = 3000;

/// Multiplications and additions a cycle of one multiprocessor.
const FMA_RATE: u64 = 128;

/// The layout of least cost for runs of about `batch` sequences.
pub fn choose(plan: &Plan, looped: &Loop, machine: &Machine, batch: usize) -> Layout {
    let layouts = shapes(looped, machine, batch).into_iter().map(|shape| {
        let layout = Layout::new(plan, looped, shape, machine);
        (cost(looped, &layout, machine, batch), layout)
    });
    // Of equal ones the first stays: the one with fewest blocks.
    let best = layouts.reduce(|a, b| if b.0 < a.0 { b } else { a });
    best.map_or_else(|| Layout::new(plan, looped, ONE, machine), |(_, layout)| layout)
}

/// One block of one warp.
const ONE: Shape = Shape {
    blocks: 1,
    warps: 1,
    sequences: 1,
};

/// Shapes worth trying: numbers of blocks that give a block fewer units than any smaller number does.
fn shapes(looped: &Loop, machine: &Machine, batch: usize) -> Vec<Shape> {
    let parts = looped.phases.iter().flat_map(|p| &p.parts);
    let units = parts.map(|p| p.units).max().unwrap_or(1);
    // As many blocks as there are when each takes ceil(units / b) units, for each b that the device holds.
    let mut blocks: Vec<usize> = (1..=machine.sms).map(|b| units.div_ceil(units.div_ceil(b))).collect();
    blocks.dedup();
    let widest = batch.next_power_of_two().min(8);
    let mut shapes = Vec::new();
    for blocks in blocks {
        for warps in [8, 4, 2] {
            for sequences in [1, 2, 4, 8].into_iter().filter(|n| *n <= widest && n * 4 >= widest) {
                shapes.push(Shape {
                    blocks,
                    warps,
                    sequences,
                });
            }
        }
    }
    shapes
}

/// Cycles of a frame, times how often a group walks the frames.
fn cost(looped: &Loop, layout: &Layout, machine: &Machine, batch: usize) -> u64 {
    let tiles = batch.div_ceil(layout.shape.sequences);
    let groups = (machine.sms / layout.shape.blocks).min(tiles).max(1);
    let frame: u64 = (0..layout.phases.len())
        .map(|p| phase_cost(looped, layout, p, groups))
        .sum();
    frame * tiles.div_ceil(groups) as u64
}

fn phase_cost(looped: &Loop, layout: &Layout, number: usize, groups: usize) -> u64 {
    let phase = &layout.phases[number];
    let Shape { warps, sequences, .. } = layout.shape;
    let dots = || phase.parts.iter().flat_map(|p| &p.dots);
    let fma: u64 = dots().map(|d| fmas(d, warps, sequences) / FMA_RATE).sum();
    let moved: u64 = dots().map(|d| feed(layout, d)).sum();
    let bodies: u64 = phase.parts.iter().map(|p| BODY * p.slice.rounds as u64).sum();
    // Steps of a fold follow each other at about 8 cycles, and each lane makes a 32nd of them.
    let folds = fold_steps(looped, phase, number, layout.shape) * 8 / 32;
    fma.max(moved) + bodies + folds + exchange_cost(layout, phase, groups)
}

fn fmas(d: &DotGroup, warps: usize, sequences: usize) -> u64 {
    (warps * d.tile.warp_units() * d.rows() * d.tile.row() * sequences) as u64
}

/// Cycles for bringing weights and vectors to the multipliers.
fn feed(layout: &Layout, d: &DotGroup) -> u64 {
    let Shape { warps, sequences, .. } = layout.shape;
    let walks = warps * d.tile.count * d.tile.strips();
    let vector = walks * d.tile.row() * sequences * 4;
    let weights = warps * d.tile.warp_units() * d.rows() * d.tile.row() * d.elem.bytes();
    let weights = match d.weights {
        WeightPlace::Registers => 0,
        WeightPlace::Shared(_) => weights as u64 / SHARED_RATE,
        // Half the port's rate is what scattered loads reach.
        WeightPlace::Global => weights as u64 / (PORT_RATE / 2),
    };
    weights + vector as u64 / SHARED_RATE
}

fn fold_steps(looped: &Loop, phase: &PhaseLayout, number: usize, shape: Shape) -> u64 {
    let steps = |part: usize, slot: usize| match &looped.phases[number].parts[part].slots[slot] {
        Slot::Dot { extent, .. } => extent * 2,
        Slot::Fold { extent, body, .. } => extent * (body.steps.len() + 1) * 2,
    };
    let common: usize = phase.common.iter().map(|(p, s)| steps(*p, *s) * shape.sequences).sum();
    let own = phase.parts.iter().enumerate();
    let own: usize = own
        .map(|(p, l)| l.folds.iter().map(|s| steps(p, *s) * l.slice.items).sum::<usize>())
        .sum();
    (common.div_ceil(shape.warps) + own) as u64
}

fn exchange_cost(layout: &Layout, phase: &PhaseLayout, groups: usize) -> u64 {
    let Some(exchange) = &phase.exchange else {
        return BARRIER;
    };
    let ring = match layout.rings[exchange.ring].memory {
        Memory::Shared(_) => 0,
        Memory::Scratch(_) => HAND_OVER,
    };
    if layout.shape.blocks == 1 {
        return BARRIER + ring;
    }
    let received = (layout.shape.blocks * exchange.words * layout.shape.warps * WORD) as u64;
    let all = received * (layout.shape.blocks * groups) as u64;
    HAND_OVER + BARRIER + ring + (received / PORT_RATE).max(all / CACHE_RATE)
}
