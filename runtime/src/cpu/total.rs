//! Products summed over frames and sequences: factors are evaluated a chunk of copies at a time, turned so that the copies
//! are what is summed over, and multiplied by the tiles of products.
//!
//! A task has some rows of one group, and the columns of all parts, each of which begins a panel of its own; the sums of a
//! chunk are added to those before it in the order of time, whatever the number of threads.

use super::Launching;
use super::compile::{Space, compile};
use super::pool::Scratch;
use super::product::{blocks, operand_program};
use super::program::{Program, Width};
use super::tile::{PANEL, Panel, Rows, multiply};
use super::vector::{Block, Env, SlotView, Time};
use crate::plan::{Plan, Scope, Total, TotalPart};
use std::ops::Range;

/// Fewest rows of a task: eight full tiles.
const BLOCK_ROWS: usize = 48;
/// Most sums of a task of more rows, so that they stay in the second-level cache.
const MOST_SUMS: usize = 1 << 16;
/// Terms of a chunk: a panel of them and the sums stay in the first cache.
const CHUNK: usize = 256;

/// A compiled total.
pub(super) struct TotalKernel {
    over: Scope,
    scope: Scope,
    groups: usize,
    rows: usize,
    inner: usize,
    left: Program,
    parts: Vec<Part>,
    /// Columns of all parts, each filled up to whole panels.
    stride: usize,
}

/// A result.
struct Part {
    columns: usize,
    /// Its first column among those of all parts.
    first: usize,
    right: Program,
    body: Program,
}

/// Work areas of a task.
#[derive(Default)]
pub(super) struct Areas {
    /// Values of a factor, a copy after another.
    values: Vec<f32>,
    /// The left factor, a row after another.
    left: Vec<f32>,
    /// The right factor in panels.
    right: Vec<f32>,
    /// Sums of a chunk.
    chunk: Vec<f32>,
    /// Sums of all chunks so far.
    sums: Vec<f32>,
}

/// What a task computes.
struct Task {
    sequence: Option<usize>,
    group: usize,
    rows: Range<usize>,
}

impl TotalKernel {
    pub(super) fn new(plan: &Plan, total: &Total) -> TotalKernel {
        let mut stride = 0;
        let mut part = |part: &TotalPart| {
            let first = stride;
            stride += part.columns.next_multiple_of(PANEL);
            Part::new(plan, total, part, first)
        };
        TotalKernel {
            over: total.over,
            scope: total.scope,
            groups: total.groups,
            rows: total.rows,
            inner: total.inner,
            left: operand_program(plan, &total.left),
            parts: total.parts.iter().map(&mut part).collect(),
            stride,
        }
    }

    pub(super) fn run(&self, launching: &Launching<'_>) {
        let (time, copies) = launching.copies(self.over);
        let sequences = match self.scope {
            Scope::Batch => launching.batch,
            _ => 1,
        };
        // As few strips as give every thread two: each evaluates the right factor anew.
        let each = (sequences * self.groups * self.rows).div_ceil(2 * launching.pool.threads());
        let most = (MOST_SUMS / self.stride).max(BLOCK_ROWS) / BLOCK_ROWS * BLOCK_ROWS;
        let block = each.next_multiple_of(BLOCK_ROWS).min(most);
        let strips = self.rows.div_ceil(block);
        let tasks = sequences * self.groups * strips;
        let terms = copies / sequences * self.inner;
        let work = 2 * terms * sequences * self.groups * self.rows * self.stride / 8;
        launching.tasks(tasks, work, |task, scratch| {
            let strip = task % strips * block;
            let task = Task {
                sequence: (self.scope == Scope::Batch).then_some(task / strips / self.groups),
                group: task / strips % self.groups,
                rows: strip..(strip + block).min(self.rows),
            };
            self.task(launching, time, copies, &task, scratch);
        });
    }

    fn task(&self, launching: &Launching<'_>, time: Time, copies: usize, task: &Task, scratch: &mut Scratch) {
        let env = launching.env(time);
        let count = task.rows.len();
        let Scratch { registers, areas, .. } = scratch;
        areas.sums.clear();
        areas.sums.resize(count * self.stride, 0.0);
        let each = (CHUNK / self.inner).max(1);
        let all = match task.sequence {
            Some(_) => copies / launching.batch,
            None => copies,
        };
        for first in (0..all).step_by(each) {
            let chunk = first..(first + each).min(all);
            let ranges: Vec<Range<usize>> = match task.sequence {
                Some(b) => chunk
                    .map(|t| t * launching.batch + b..t * launching.batch + b + 1)
                    .collect(),
                None => vec![chunk],
            };
            self.add_chunk(&env, &ranges, task, registers, areas);
        }
        self.finish(launching, task, registers, areas);
    }

    /// Adds what some copies contribute.
    fn add_chunk(
        &self,
        env: &Env<'_>,
        ranges: &[Range<usize>],
        task: &Task,
        registers: &mut Vec<f32>,
        areas: &mut Areas,
    ) {
        let copies: usize = ranges.iter().map(Range::len).sum();
        let (terms, count) = (copies * self.inner, task.rows.len());
        let own = |first: usize, last: usize| first * self.inner..last * self.inner;
        let rows = task.group * self.rows;
        let channels = own(rows + task.rows.start, rows + task.rows.end);
        evaluate(&self.left, env, ranges, &channels, registers, &mut areas.values);
        areas.left.resize(count * terms, 0.0);
        turn(&areas.values, count, self.inner, &mut areas.left);
        areas.right.clear();
        areas.right.resize(terms * self.stride, 0.0);
        for part in &self.parts {
            let columns = task.group * part.columns;
            let channels = own(columns, columns + part.columns);
            evaluate(&part.right, env, ranges, &channels, registers, &mut areas.values);
            let panels = &mut areas.right[part.first * terms..];
            to_panels(&areas.values, part.columns, self.inner, panels);
        }
        let (panels, stride) = (self.stride / PANEL, self.stride);
        areas.chunk.resize(count * stride, 0.0);
        let left = Rows {
            start: areas.left.as_ptr(),
            stride: terms,
            count,
            k: terms,
        };
        let out = areas.chunk.as_mut_ptr();
        for p in 0..panels {
            let panel = Panel {
                weights: areas.right[p * terms * PANEL..].as_ptr(),
                out: out.wrapping_add(p * PANEL),
                count: PANEL,
            };
            // SAFETY: `left` has `count` rows of `terms` elements, a panel `terms * PANEL`; each row of sums has all panels.
            unsafe { multiply(env.isa, &left, &[panel], stride) };
        }
        areas
            .sums
            .iter_mut()
            .zip(&areas.chunk)
            .for_each(|(sum, part)| *sum += part);
    }

    /// Stores the sums.
    fn finish(&self, launching: &Launching<'_>, task: &Task, registers: &mut Vec<f32>, areas: &mut Areas) {
        let (time, copy) = match task.sequence {
            Some(b) => (Time::Batch, b),
            None => (Time::Const, 0),
        };
        let env = launching.env(time);
        for (i, row) in task.rows.clone().enumerate() {
            for part in &self.parts {
                let first = (task.group * self.rows + row) * part.columns;
                let slots = [SlotView {
                    start: areas.sums.as_mut_ptr().wrapping_add(i * self.stride + part.first),
                    first_copy: copy,
                    first_channel: first,
                    stride: self.stride,
                }];
                let of = Block {
                    copies: copy..copy + 1,
                    channels: first..first + part.columns,
                };
                blocks(&part.body, &Env { slots: &slots, ..env }, &of, registers, |_, _| {});
            }
        }
    }
}

impl Part {
    fn new(plan: &Plan, total: &Total, part: &TotalPart, first: usize) -> Part {
        let results = total.groups * total.rows * part.columns;
        let space = Space {
            plan,
            channels: &[results],
            inner: &[],
            carried: &[],
            slots: &[Width::Channel],
            sequences_stay: false,
        };
        Part {
            columns: part.columns,
            first,
            right: operand_program(plan, &part.right),
            body: compile(&part.body, &space, &[]),
        }
    }
}

/// The left factor: `values[copy][row][inner]` as `out[row][copy * inner]`, in squares, so that neither side is walked in
/// long strides.
fn turn(values: &[f32], rows: usize, inner: usize, out: &mut [f32]) {
    const SIDE: usize = 16;
    let copies = values.len() / (rows * inner).max(1);
    for first_row in (0..rows).step_by(SIDE) {
        for first_copy in (0..copies).step_by(SIDE) {
            for row in first_row..(first_row + SIDE).min(rows) {
                for copy in first_copy..(first_copy + SIDE).min(copies) {
                    let (from, to) = ((copy * rows + row) * inner, (row * copies + copy) * inner);
                    out[to..to + inner].copy_from_slice(&values[from..from + inner]);
                }
            }
        }
    }
}

/// The right factor: `values[copy][column][inner]` as panels of columns, `out[panel][copy * inner][PANEL]`.
fn to_panels(values: &[f32], columns: usize, inner: usize, out: &mut [f32]) {
    let each = columns * inner;
    let terms = values.len() / columns.max(1);
    for (copy, values) in values.chunks_exact(each).enumerate() {
        for (panel, values) in values.chunks(PANEL * inner).enumerate() {
            let start = (panel * terms + copy * inner) * PANEL;
            if inner == 1 {
                out[start..start + values.len()].copy_from_slice(values);
                continue;
            }
            for (column, terms) in values.chunks_exact(inner).enumerate() {
                for (j, value) in terms.iter().enumerate() {
                    out[start + j * PANEL + column] = *value;
                }
            }
        }
    }
}

/// The values of some channels of a factor, a copy after another.
fn evaluate(
    program: &Program,
    env: &Env<'_>,
    ranges: &[Range<usize>],
    channels: &Range<usize>,
    registers: &mut Vec<f32>,
    out: &mut Vec<f32>,
) {
    let copies: usize = ranges.iter().map(Range::len).sum();
    out.resize(copies * channels.len(), 0.0);
    let mut before = 0;
    for range in ranges {
        let part = Block {
            copies: range.clone(),
            channels: channels.clone(),
        };
        blocks(program, env, &part, registers, |block, registers| {
            let values = program.result(env, block, registers, 0);
            for (copy, values) in block.copies.clone().zip(values.chunks(block.channels.len())) {
                let at = (before + copy - range.start) * channels.len() + block.channels.start - channels.start;
                out[at..at + values.len()].copy_from_slice(values);
            }
        });
        before += range.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both arrangements against their definition, with edges that fill neither a square nor a panel.
    #[test]
    fn factors_are_arranged_as_the_tiles_read_them() {
        for (copies, elements, inner) in [(1, 1usize, 1), (5, 17, 1), (33, 40, 1), (7, 35, 3), (19, 16, 2)] {
            let values: Vec<f32> = (0..copies * elements * inner).map(|i| i as f32 + 1.0).collect();
            let (terms, panels) = (copies * inner, elements.div_ceil(PANEL));
            let mut left = vec![0.0; elements * terms];
            turn(&values, elements, inner, &mut left);
            let mut right = vec![0.0; panels * terms * PANEL];
            to_panels(&values, elements, inner, &mut right);
            for e in 0..elements {
                for (copy, j) in (0..copies).flat_map(|copy| (0..inner).map(move |j| (copy, j))) {
                    let (want, term) = (values[(copy * elements + e) * inner + j], copy * inner + j);
                    assert_eq!(left[e * terms + term], want);
                    assert_eq!(right[(e / PANEL * terms + term) * PANEL + e % PANEL], want);
                }
            }
            assert_eq!(left.iter().filter(|v| **v == 0.0).count(), 0);
            assert_eq!(
                right.iter().filter(|v| **v != 0.0).count(),
                values.len(),
                "nothing else is written"
            );
        }
    }
}
