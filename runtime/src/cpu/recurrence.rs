//! Dense loops: frames one after another, phases within a frame, between them every thread sees what all have set.
//!
//! Threads share out the sequences and, where there are few, the units. Sums with weights are products with panels packed
//! beforehand; each value is a ring of frames.

use super::Launching;
use super::compile::{Space, compile};
use super::memory::Memory;
use super::pool::{Barrier, Scratch};
use super::product::blocks;
use super::program::{Program, Width};
use super::tile::{PANEL, Panel, Rows, multiply, pack};
use super::vector::{Block, Env, SlotView, Time, ValueView};
use crate::plan::{Body, BufferId, Frame, Index, Load, Loop, LoopPart, LoopValue, Plan, Reg, Slot, Step};
use crate::scalar::{Binary, Reduce};
use std::collections::BTreeMap;
use std::ops::Range;

/// Sequences that are worth a thread of their own: enough rows for full tiles.
const SEQUENCES: usize = 4;
/// Multiplications of a frame that are worth an exchange between threads.
const SHARE: usize = 1 << 15;
/// Panels handed to the tiles at once.
const GROUP: usize = 12;

/// A compiled loop.
pub(super) struct LoopKernel {
    values: Vec<LoopValue>,
    /// Frames and elements of a frame of each value's initial window.
    windows: Vec<(usize, usize)>,
    phases: Vec<Vec<Part>>,
    /// Multiplications of a frame and sequence.
    work: usize,
    rings: Vec<f32>,
}

struct Part {
    units: usize,
    widths: Vec<Width>,
    dots: Vec<Dots>,
    packed: Vec<f32>,
    folds: Vec<Fold>,
    program: Program,
    sets: Vec<usize>,
}

/// Sums that share their vector: elements `offset..offset + k` of a value.
struct Dots {
    value: usize,
    delay: usize,
    offset: usize,
    k: usize,
    /// In the order of their units.
    panels: Vec<PanelAt>,
}

/// Weights of some neighbouring units of one slot.
struct PanelAt {
    slot: usize,
    unit: usize,
    count: usize,
    /// Where they lie among the packed weights of the part.
    place: usize,
    weight: BufferId,
    index: Index,
}

/// A slot that is a fold, as a program whose inner axis is k.
struct Fold {
    slot: usize,
    program: Program,
    width: Width,
}

impl LoopKernel {
    pub(super) fn new(plan: &Plan, kernel: &Loop) -> LoopKernel {
        let window = |v: &LoopValue| {
            v.initial.map_or((0, 0), |id| {
                (plan.buffer(id).scope.copies(1, 1), plan.buffer(id).elements())
            })
        };
        let parts = kernel
            .phases
            .iter()
            .map(|phase| phase.parts.iter().map(|part| Part::new(plan, part)).collect());
        let phases: Vec<Vec<Part>> = parts.collect();
        let work = phases.iter().flatten().map(Part::work).sum();
        LoopKernel {
            windows: kernel.values.iter().map(window).collect(),
            values: kernel.values.clone(),
            phases,
            work,
            rings: Vec::new(),
        }
    }

    /// Packs the weights from where they lie now.
    pub(super) fn pack(&mut self, memory: &Memory) {
        self.phases.iter_mut().flatten().for_each(|part| part.pack(memory));
    }

    pub(super) fn run(&mut self, launching: &Launching<'_>) {
        let batch = launching.batch;
        let mut rings = std::mem::take(&mut self.rings);
        rings.resize(self.values.iter().map(|v| (v.window + 1) * batch * v.extent).sum(), 0.0);
        let views = self.views(launching, &mut rings);
        let (groups, members) = self.team(launching);
        let barriers: Vec<Barrier> = (0..groups).map(|_| Barrier::new(members)).collect();
        let member = |number: usize, scratch: &mut Scratch| {
            let (group, member) = (number / members, number % members);
            let share = Share {
                sequences: group * batch / groups..(group + 1) * batch / groups,
                member,
                members,
            };
            if let Some(barrier) = barriers.get(group) {
                let _member = barrier.member();
                self.frames(launching, &views, &share, barrier, scratch);
            }
        };
        if groups * members == 1 {
            launching.pool.alone(1, member);
        } else {
            launching.pool.team(member);
        }
        self.rings = rings;
    }

    /// Groups of sequences, and members of a group that share out the units.
    fn team(&self, launching: &Launching<'_>) -> (usize, usize) {
        let threads = launching.pool.threads();
        let worth = (self.work * launching.batch / SHARE).clamp(1, threads);
        let groups = (launching.batch / SEQUENCES).clamp(1, worth);
        let most = self
            .phases
            .iter()
            .flatten()
            .map(|part| part.units.div_ceil(PANEL))
            .max()
            .unwrap_or(1);
        (groups, (worth / groups).clamp(1, most.max(1)))
    }

    /// The rings, filled with the initial windows.
    fn views(&self, launching: &Launching<'_>, rings: &mut [f32]) -> Vec<ValueView> {
        let (batch, mut rest) = (launching.batch, rings);
        let mut views = Vec::new();
        for (value, (frames, elements)) in self.values.iter().zip(&self.windows) {
            let ring = value.window + 1;
            let (own, others) = rest.split_at_mut(ring * batch * value.extent);
            rest = others;
            if let Some(id) = value.initial {
                let row = batch * value.extent;
                for back in 1..=value.window {
                    // SAFETY: no launch is running, and the engine keeps its buffers.
                    let window = unsafe { launching.view.read(id, (frames - back) * batch * elements, row) };
                    own[(ring - back) * row..][..row].copy_from_slice(window);
                }
            }
            views.push(ValueView {
                start: own.as_mut_ptr(),
                ring,
                extent: value.extent,
            });
        }
        views
    }

    /// All frames of a member's share.
    fn frames(
        &self,
        launching: &Launching<'_>,
        views: &[ValueView],
        share: &Share,
        barrier: &Barrier,
        scratch: &mut Scratch,
    ) {
        for t in 0..launching.frames {
            let env = Env {
                values: views,
                ..launching.env(Time::At(t))
            };
            for phase in &self.phases {
                phase.iter().for_each(|part| part.run(&env, t, share, scratch));
                barrier.wait();
            }
        }
    }
}

/// What one thread computes.
struct Share {
    sequences: Range<usize>,
    member: usize,
    members: usize,
}

impl Share {
    /// Its units, whole panels of them.
    fn units(&self, units: usize) -> Range<usize> {
        let panels = units.div_ceil(PANEL);
        let cut = |i: usize| (panels * i / self.members * PANEL).min(units);
        cut(self.member)..cut(self.member + 1)
    }
}

impl Part {
    fn new(plan: &Plan, part: &LoopPart) -> Part {
        let mut groups: BTreeMap<(usize, usize, usize, usize), Vec<PanelAt>> = BTreeMap::new();
        let (mut widths, mut folds) = (Vec::new(), Vec::new());
        for (number, slot) in part.slots.iter().enumerate() {
            if add_panels(&mut groups, number, slot, part.units) {
                widths.push(Width::Channel);
            } else {
                let fold = Fold::new(plan, number, slot, part.units);
                widths.push(fold.width);
                folds.push(fold);
            }
        }
        let results: Vec<(Reg, Width)> = part.sets.iter().map(|(_, reg)| (*reg, Width::Channel)).collect();
        let space = Space {
            plan,
            channels: &[part.units],
            inner: &[],
            carried: &[],
            slots: &widths,
            sequences_stay: false,
        };
        let program = compile(&part.body, &space, &results);
        Part {
            units: part.units,
            dots: place_panels(groups),
            packed: Vec::new(),
            folds,
            program,
            sets: part.sets.iter().map(|(value, _)| *value).collect(),
            widths,
        }
    }

    /// Multiplications, or their like, of a frame and sequence.
    fn work(&self) -> usize {
        let dots = self.dots.iter().map(|d| d.k * d.panels.len() * PANEL).sum::<usize>();
        let folds = self
            .folds
            .iter()
            .map(|f| f.program.channels * f.program.inner * f.program.each.len())
            .sum::<usize>();
        dots + folds + self.units * self.program.each.len()
    }

    fn pack(&mut self, memory: &Memory) {
        self.packed.clear();
        for dots in &self.dots {
            for panel in &dots.panels {
                let weights = memory.get(panel.weight);
                pack(&mut self.packed, panel.count, dots.k, |i, k| {
                    weights[panel.index.eval(&[(panel.unit + i) as i64, k as i64]) as usize]
                });
            }
        }
    }

    fn run(&self, env: &Env<'_>, t: usize, share: &Share, scratch: &mut Scratch) {
        let units = share.units(self.units);
        if units.is_empty() {
            return;
        }
        let Scratch {
            registers, sums, slots, ..
        } = scratch;
        let table = SlotTable {
            sequences: share.sequences.clone(),
            stride: self.units.next_multiple_of(PANEL),
        };
        let needed = table.start(self.widths.len());
        if sums.len() < needed {
            sums.resize(needed, 0.0);
        }
        for dots in &self.dots {
            self.multiply(dots, env, t, &table, &units, sums.as_mut_ptr());
        }
        for fold in &self.folds {
            fold.run(env, &table, &units, registers, sums);
        }
        slots.clear();
        slots.extend((0..self.widths.len()).map(|slot| table.view(slot, sums)));
        let part = Block {
            copies: share.sequences.clone(),
            channels: units,
        };
        self.advance(&Env { slots, ..*env }, t, &part, registers);
    }

    /// The units' own work, once their slots are there.
    fn advance(&self, env: &Env<'_>, t: usize, part: &Block, registers: &mut Vec<f32>) {
        blocks(&self.program, env, part, registers, |block, registers| {
            for (i, value) in self.sets.iter().enumerate() {
                let values = self.program.result(env, block, registers, i);
                for (copy, values) in block.copies.clone().zip(values.chunks(block.channels.len())) {
                    let row = env.values[*value].row(env.batch, t, 0, copy);
                    // SAFETY: these units of this frame are this thread's alone until the phase ends.
                    unsafe {
                        std::ptr::copy_nonoverlapping(values.as_ptr(), row.add(block.channels.start), values.len())
                    };
                }
            }
        });
    }

    /// The sums of the panels within `units`, into a table of slots that starts at `out`.
    fn multiply(&self, dots: &Dots, env: &Env<'_>, t: usize, table: &SlotTable, units: &Range<usize>, out: *mut f32) {
        let value = &env.values[dots.value];
        let rows = Rows {
            start: value
                .row(env.batch, t, dots.delay, table.sequences.start)
                .wrapping_add(dots.offset),
            stride: value.extent,
            count: table.sequences.len(),
            k: dots.k,
        };
        let first = dots.panels.partition_point(|p| p.unit < units.start);
        let end = dots.panels.partition_point(|p| p.unit < units.end);
        for own in dots.panels[first..end].chunks(GROUP) {
            let panel = |i: usize| {
                let at = &own[i.min(own.len() - 1)];
                Panel {
                    weights: self.packed[at.place..].as_ptr(),
                    out: out.wrapping_add(table.start(at.slot) + at.unit),
                    count: at.count,
                }
            };
            let panels: [Panel; GROUP] = std::array::from_fn(panel);
            // SAFETY: the value's row has `offset + k` elements, set in an earlier phase or frame; panels are packed for
            // k terms; a slot's row has room for all units.
            unsafe { multiply(env.isa, &rows, &panels[..own.len()], table.stride) };
        }
    }
}

/// Where a thread keeps the slots of a part: for each slot a row of units for each of its sequences.
struct SlotTable {
    sequences: Range<usize>,
    /// Elements of a row.
    stride: usize,
}

impl SlotTable {
    /// Where a slot starts.
    fn start(&self, slot: usize) -> usize {
        slot * self.sequences.len() * self.stride
    }

    fn view(&self, slot: usize, sums: &[f32]) -> SlotView {
        SlotView {
            start: sums[self.start(slot)..].as_ptr(),
            first_copy: self.sequences.start,
            first_channel: 0,
            stride: self.stride,
        }
    }
}

/// Adds the panels of a slot that sums a row of weights with neighbouring elements of a value; false for any other.
fn add_panels(
    groups: &mut BTreeMap<(usize, usize, usize, usize), Vec<PanelAt>>,
    number: usize,
    slot: &Slot,
    units: usize,
) -> bool {
    let Slot::Dot {
        extent,
        weight,
        weight_index,
        value,
        delay,
        value_index,
    } = slot
    else {
        return false;
    };
    if value_index.stride_of(1) != Some(1) {
        return false;
    }
    let offset = |u: usize| value_index.eval(&[u as i64, 0]) as usize;
    let mut unit = 0;
    while unit < units {
        let end = (unit + 1).next_multiple_of(PANEL).min(units);
        let count = (unit..end).take_while(|u| offset(*u) == offset(unit)).count();
        groups
            .entry((*value, *delay, offset(unit), *extent))
            .or_default()
            .push(PanelAt {
                slot: number,
                unit,
                count,
                place: 0,
                weight: *weight,
                index: weight_index.clone(),
            });
        unit += count;
    }
    true
}

/// Orders the panels of each group by unit and says where each lies once packed.
fn place_panels(groups: BTreeMap<(usize, usize, usize, usize), Vec<PanelAt>>) -> Vec<Dots> {
    let mut place = 0;
    let dots = groups.into_iter().map(|((value, delay, offset, k), mut panels)| {
        panels.sort_by_key(|p| (p.unit, p.slot));
        for panel in &mut panels {
            panel.place = place;
            place += k * PANEL;
        }
        Dots {
            value,
            delay,
            offset,
            k,
            panels,
        }
    });
    dots.collect()
}

impl Fold {
    /// Folds for some units, or once a sequence, into the table of slots.
    fn run(&self, env: &Env<'_>, table: &SlotTable, units: &Range<usize>, registers: &mut Vec<f32>, sums: &mut [f32]) {
        let channels = if self.width == Width::Copy { 0..1 } else { units.clone() };
        let part = Block {
            copies: table.sequences.clone(),
            channels,
        };
        blocks(&self.program, env, &part, registers, |block, registers| {
            let values = self.program.result(env, block, registers, 0);
            for (copy, values) in block.copies.clone().zip(values.chunks(block.channels.len())) {
                let row = table.start(self.slot) + (copy - table.sequences.start) * table.stride;
                let at = row + block.channels.start;
                sums[at..at + values.len()].copy_from_slice(values);
            }
        });
    }

    fn new(plan: &Plan, number: usize, slot: &Slot, units: usize) -> Fold {
        let (extent, body, result) = fold_body(slot);
        // The same for all units: computed for one.
        let (units, width) = if slot.varies_by_unit() {
            (units, Width::Channel)
        } else {
            (1, Width::Copy)
        };
        let space = Space {
            plan,
            channels: &[units],
            inner: &[extent],
            carried: &[],
            slots: &[],
            sequences_stay: false,
        };
        let program = compile(&body, &space, &[(result, Width::Channel)]);
        Fold {
            slot: number,
            program,
            width,
        }
    }
}

/// The slot as a body that reduces its terms: (terms, body, register of the result).
fn fold_body(slot: &Slot) -> (usize, Body, Reg) {
    let (extent, op, mut body, term) = match slot {
        Slot::Fold {
            op,
            extent,
            body,
            result,
        } => (*extent, *op, body.clone(), *result),
        Slot::Dot {
            extent,
            weight,
            weight_index,
            value,
            delay,
            value_index,
        } => {
            let weight = Load {
                buffer: *weight,
                frame: Frame::Const,
                index: weight_index.clone(),
                guards: Vec::new(),
            };
            let value = Step::Value {
                value: *value,
                delay: *delay,
                index: value_index.clone(),
            };
            let product = Step::Binary(Binary::Mul, Reg(0), Reg(1));
            let steps = vec![Step::Load(weight), value, product];
            (
                *extent,
                Reduce::Sum,
                Body {
                    steps,
                    ..Body::default()
                },
                Reg(2),
            )
        }
    };
    body.steps.push(Step::Reduce(op, term));
    let result = Reg(body.steps.len() as u32 - 1);
    (extent, body, result)
}
