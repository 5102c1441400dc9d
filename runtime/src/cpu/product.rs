//! Product kernels: operands are evaluated into a block of rows, multiplied with packed weights, and the sums go through
//! the epilogue while they are in the cache.

use super::Launching;
use super::channel::{Shape, run_blocks};
use super::compile::{Space, compile};
use super::memory::Memory;
use super::pool::Scratch;
use super::program::{Op, Program, Source, Width};
use super::tile::{PANEL, Panel, Rows, multiply, pack};
use super::vector::{Block, Env, SlotView};
use crate::plan::{Frame, Plan, Product, ProductOperand, Scope, Segment, Weight};
use std::ops::Range;

/// Rows of a block: eight full tiles.
const BLOCK_ROWS: usize = 48;
/// Lanes of programs for operands and epilogues.
const POINTS: usize = 512;
/// Panels handed to the tiles at once, for blocks of few rows.
const GROUP: usize = 12;
/// Sums of a block, so that they stay in the second-level cache.
const BLOCK_SUMS: usize = 1 << 16;

/// A compiled product.
pub(super) struct ProductKernel {
    scope: Scope,
    operands: Vec<Operand>,
    segments: Vec<Epilogue>,
    /// Terms of a sum: all operands one after another.
    k: usize,
    /// Outputs: all segments one after another.
    rows: usize,
    packed: Vec<f32>,
}

struct Operand {
    program: Program,
    extent: usize,
    /// Its first place among the terms.
    first: usize,
}

struct Epilogue {
    program: Program,
    /// Its outputs.
    rows: Range<usize>,
    weights: Vec<Weight>,
}

impl Epilogue {
    /// Finishes those of the computed outputs that are its own; `view(row, output)` says where sums lie.
    fn run(
        &self,
        env: &Env<'_>,
        copies: &Range<usize>,
        computed: &Range<usize>,
        view: impl Fn(usize, usize) -> SlotView,
        registers: &mut Vec<f32>,
    ) {
        let own = self.rows.start.max(computed.start)..self.rows.end.min(computed.end);
        if own.is_empty() {
            return;
        }
        let channels = own.start - self.rows.start..own.end - self.rows.start;
        let slots = [view(channels.start, own.start)];
        let part = Block {
            copies: copies.clone(),
            channels,
        };
        blocks(
            &self.program,
            &Env { slots: &slots, ..*env },
            &part,
            registers,
            |_, _| {},
        );
    }
}

impl ProductKernel {
    pub(super) fn new(plan: &Plan, product: &Product) -> ProductKernel {
        let mut k = 0;
        let operands: Vec<Operand> = product
            .operands
            .iter()
            .map(|operand| {
                let first = k;
                k += operand.extent;
                Operand {
                    program: operand_program(plan, operand),
                    extent: operand.extent,
                    first,
                }
            })
            .collect();
        let mut rows = 0;
        let segments = product
            .segments
            .iter()
            .map(|segment| {
                let first = rows;
                rows += segment.rows;
                Epilogue {
                    program: epilogue(plan, segment),
                    rows: first..rows,
                    weights: segment.weights.clone(),
                }
            })
            .collect();
        ProductKernel {
            scope: product.scope,
            operands,
            segments,
            k,
            rows,
            packed: Vec::new(),
        }
    }

    /// Packs the weights from where they lie now.
    pub(super) fn pack(&mut self, memory: &Memory) {
        let (operands, segments) = (&self.operands, &self.segments);
        let place = |k: usize| operands.iter().rposition(|o| o.first <= k).unwrap_or(0);
        let places: Vec<(usize, usize)> = (0..self.k).map(|k| (place(k), k - operands[place(k)].first)).collect();
        let owner = |row: usize| segments.iter().rposition(|s| s.rows.start <= row).unwrap_or(0);
        self.packed.clear();
        for first in (0..self.rows).step_by(PANEL) {
            let count = PANEL.min(self.rows - first);
            let owners: Vec<usize> = (first..first + count).map(owner).collect();
            pack(&mut self.packed, count, self.k, |i, k| {
                let segment = &segments[owners[i]];
                let weight = &segment.weights[places[k].0];
                let row = (first + i - segment.rows.start) as i64;
                let at = weight.offset + row * weight.row_stride + places[k].1 as i64 * weight.k_stride;
                memory.get(weight.buffer)[at as usize]
            });
        }
    }

    pub(super) fn run(&self, launching: &Launching<'_>) {
        let (time, copies) = launching.copies(self.scope);
        let panels = self.rows.div_ceil(PANEL);
        let threads = launching.pool.threads();
        // Enough tasks for all threads: smaller blocks first, then, where there are few rows, ranges of panels.
        let few = copies.div_ceil(4 * threads).next_multiple_of(6);
        let block = few
            .clamp(6, BLOCK_ROWS)
            .min((BLOCK_SUMS / (panels * PANEL)).max(6))
            .min(copies);
        let blocks = copies.div_ceil(block);
        let ranges = (2 * threads).div_ceil(blocks).min(panels.div_ceil(4)).max(1);
        let per_range = panels.div_ceil(ranges);
        let tasks = blocks * panels.div_ceil(per_range);
        launching.tasks(tasks, 2 * copies * self.rows * self.k / 8, |task, scratch| {
            let (part, range) = (task % blocks, task / blocks);
            let copies = part * block..((part + 1) * block).min(copies);
            let panels = range * per_range..((range + 1) * per_range).min(panels);
            self.block(&launching.env(time), copies, panels, scratch);
        });
    }

    /// The outputs of a range of panels for a range of copies.
    fn block(&self, env: &Env<'_>, copies: Range<usize>, panels: Range<usize>, scratch: &mut Scratch) {
        let Scratch {
            registers,
            operands,
            sums,
            ..
        } = scratch;
        let rows = match self.direct(env, &copies) {
            Some(rows) => rows,
            None => self.evaluate(env, &copies, registers, operands),
        };
        // An odd number of cache lines: rows do not lie powers of two apart.
        let stride = panels.len() * PANEL + PANEL;
        if sums.len() < copies.len() * stride {
            sums.resize(copies.len() * stride, 0.0);
        }
        let out = sums.as_mut_ptr();
        for first in panels.clone().step_by(GROUP) {
            let panel = |i: usize| Panel {
                weights: self.packed[(first + i).min(panels.end - 1) * PANEL * self.k..].as_ptr(),
                out: out.wrapping_add((first + i - panels.start) * PANEL),
                count: PANEL,
            };
            let group: [Panel; GROUP] = std::array::from_fn(panel);
            // SAFETY: the rows have k elements each, panels k * PANEL weights, and every row of sums has room for all
            // panels of the range.
            unsafe { multiply(env.isa, &rows, &group[..(panels.end - first).min(GROUP)], stride) };
        }
        let first = panels.start * PANEL;
        let view = |channel: usize, output: usize| SlotView {
            start: out.wrapping_add(output - first),
            first_copy: copies.start,
            first_channel: channel,
            stride,
        };
        let computed = first..(panels.end * PANEL).min(self.rows);
        for segment in &self.segments {
            segment.run(env, &copies, &computed, view, registers);
        }
    }

    /// The operand where it lies, if it is one plain buffer.
    fn direct(&self, env: &Env<'_>, copies: &Range<usize>) -> Option<Rows> {
        let [operand] = self.operands.as_slice() else {
            return None;
        };
        let (([Op::Load { source, access, .. }], []) | ([], [Op::Load { source, access, .. }])) =
            (operand.program.each.as_slice(), operand.program.once.as_slice())
        else {
            return None;
        };
        let Source::Buffer {
            id,
            frame,
            elements,
            integer: false,
            ..
        } = *source
        else {
            return None;
        };
        let first = access.contiguous()?;
        let plain = match frame {
            Frame::Const => copies.len() == 1,
            Frame::Batch => self.scope == Scope::Batch,
            Frame::At { delay, .. } => delay == 0,
        };
        if !plain {
            return None;
        }
        let start = copies.start * elements + first;
        let len = (copies.len() - 1) * elements + operand.extent;
        // SAFETY: a launch does not read what it writes, and the engine keeps the buffers until it is done.
        let start = unsafe { env.view.read(id, start, len) }.as_ptr();
        Some(Rows {
            start,
            stride: elements,
            count: copies.len(),
            k: self.k,
        })
    }

    /// The operands side by side, a row a copy.
    fn evaluate(&self, env: &Env<'_>, copies: &Range<usize>, registers: &mut Vec<f32>, out: &mut Vec<f32>) -> Rows {
        if out.len() < copies.len() * self.k {
            out.resize(copies.len() * self.k, 0.0);
        }
        for operand in &self.operands {
            let part = Block {
                copies: copies.clone(),
                channels: 0..operand.extent,
            };
            let program = &operand.program;
            blocks(program, env, &part, registers, |block, registers| {
                let values = program.result(env, block, registers, 0);
                for (copy, values) in block.copies.clone().zip(values.chunks(block.channels.len())) {
                    let at = (copy - copies.start) * self.k + operand.first + block.channels.start;
                    out[at..at + values.len()].copy_from_slice(values);
                }
            });
        }
        Rows {
            start: out.as_ptr(),
            stride: self.k,
            count: copies.len(),
            k: self.k,
        }
    }
}

/// Runs a program over a block of any size, in blocks that fit the cache.
pub(super) fn blocks(
    program: &Program,
    env: &Env<'_>,
    part: &Block,
    scratch: &mut Vec<f32>,
    mut seen: impl FnMut(&Block, &super::vector::Registers<'_>),
) {
    let shape = Shape::new(program, part.copies.len(), POINTS);
    for channels in shape.channel_ranges(part.channels.clone()) {
        let part = Block {
            copies: part.copies.clone(),
            channels,
        };
        run_blocks(program, env, &part, shape.copies, scratch, &mut seen);
    }
}

pub(super) fn operand_program(plan: &Plan, operand: &ProductOperand) -> Program {
    let space = Space {
        plan,
        channels: &[operand.extent],
        inner: &[],
        carried: &[],
        slots: &[],
        sequences_stay: false,
    };
    compile(&operand.body, &space, &[(operand.result, Width::Channel)])
}

fn epilogue(plan: &Plan, segment: &Segment) -> Program {
    let space = Space {
        plan,
        channels: &[segment.rows],
        inner: &[],
        carried: &[],
        slots: &[Width::Channel],
        sequences_stay: false,
    };
    compile(&segment.body, &space, &[])
}
