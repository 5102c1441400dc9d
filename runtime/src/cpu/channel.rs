//! Channel kernels: pointwise work in chunks over all threads, or a walk along the frames for every block of channels.

use super::Launching;
use super::compile::{Space, compile};
use super::program::Program;
use super::vector::{Block, Env, Time};
use crate::plan::{Channel, Plan, Scope};
use std::ops::Range;

/// Points of a block: registers of a dozen steps fit the first-level cache.
const POINTS: usize = 512;
/// Fewer points of a block are not worth a task.
const FEW_POINTS: usize = 64;
/// Points of a task that runs through frames in any order.
const TASK_POINTS: usize = 32_768;

/// A compiled channel kernel.
pub(super) struct ChannelKernel {
    program: Program,
    scope: Scope,
    sequential: bool,
}

impl ChannelKernel {
    pub(super) fn new(plan: &Plan, channel: &Channel) -> ChannelKernel {
        let space = Space {
            plan,
            channels: &channel.channels,
            inner: &channel.inner,
            carried: &channel.carried,
            slots: &[],
            sequences_stay: channel.sequential,
        };
        ChannelKernel {
            program: compile(&channel.body, &space, &[]),
            scope: channel.scope,
            sequential: channel.sequential,
        }
    }

    pub(super) fn run(&self, launching: &Launching<'_>) {
        if self.sequential {
            self.walk(launching);
        } else {
            self.spread(launching);
        }
    }

    /// Every block of channels and sequences runs through its frames in order.
    fn walk(&self, launching: &Launching<'_>) {
        let (program, batch) = (&self.program, launching.batch);
        let all = batch * program.channels * program.inner;
        let shape = Shape::new(
            program,
            batch,
            (all / (2 * launching.pool.threads())).clamp(FEW_POINTS, POINTS),
        );
        launching.tasks(
            shape.tasks(shape.copies),
            all * launching.frames * program.each.len(),
            |task, scratch| {
                let block = shape.block(task, shape.copies);
                let mut registers = program.registers(shape.copies, shape.channels, &mut scratch.registers);
                program.once(&launching.env(Time::At(0)), &block, &mut registers);
                program.begin(&launching.env(Time::At(0)), &block, &mut registers);
                for t in 0..launching.frames {
                    program.frame(&launching.env(Time::At(t)), &block, &mut registers);
                }
            },
        );
    }

    /// Frames and sequences are all alike.
    fn spread(&self, launching: &Launching<'_>) {
        let program = &self.program;
        let (time, copies) = launching.copies(self.scope);
        let shape = Shape::new(program, copies, POINTS);
        let points = shape.channels * program.inner;
        let chunk = (TASK_POINTS / points).max(1).next_multiple_of(shape.copies);
        let work = copies * program.channels * program.inner * program.each.len();
        let env = launching.env(time);
        launching.tasks(shape.tasks(chunk), work, |task, scratch| {
            run_blocks(
                program,
                &env,
                &shape.block(task, chunk),
                shape.copies,
                &mut scratch.registers,
                |_, _| {},
            );
        });
    }
}

/// Runs a program over a range of copies, `step` copies at a time, and shows every block with its registers.
pub(super) fn run_blocks(
    program: &Program,
    env: &Env<'_>,
    part: &Block,
    step: usize,
    scratch: &mut Vec<f32>,
    mut seen: impl FnMut(&Block, &super::vector::Registers<'_>),
) {
    let mut registers = program.registers(step, part.channels.len(), scratch);
    let mut filled = 0;
    for first in part.copies.clone().step_by(step) {
        let block = Block {
            copies: first..(first + step).min(part.copies.end),
            channels: part.channels.clone(),
        };
        // What stays the same was repeated for the copies of the first block; later ones have as many or fewer.
        if filled == 0 {
            program.once(env, &block, &mut registers);
            filled = block.copies.len();
        }
        program.frame(env, &block, &mut registers);
        seen(&block, &registers);
    }
}

/// How copies and channels are cut into blocks.
pub(super) struct Shape {
    /// All copies and channels.
    all: (usize, usize),
    /// Copies of a block.
    pub(super) copies: usize,
    /// Channels of a block.
    pub(super) channels: usize,
}

impl Shape {
    /// Blocks of about so many points: a range of channels of one copy or, where channels are few, several copies.
    pub(super) fn new(program: &Program, copies: usize, points: usize) -> Shape {
        let channels = (points / program.inner).clamp(1, program.channels.max(1));
        let whole = channels == program.channels;
        let at_once = if whole { points / (channels * program.inner) } else { 1 };
        Shape {
            all: (copies, program.channels),
            copies: at_once.clamp(1, copies.max(1)),
            channels,
        }
    }

    fn rows(&self) -> usize {
        self.all.1.div_ceil(self.channels)
    }

    /// Tasks of `chunk` copies and the channels of a block.
    fn tasks(&self, chunk: usize) -> usize {
        self.all.0.div_ceil(chunk) * self.rows()
    }

    fn block(&self, task: usize, chunk: usize) -> Block {
        let (part, row) = (task / self.rows(), task % self.rows());
        let cut = |i: usize, n: usize, end: usize| i * n..((i + 1) * n).min(end);
        Block {
            copies: cut(part, chunk, self.all.0),
            channels: cut(row, self.channels, self.all.1),
        }
    }

    /// The ranges of channels of blocks within `of`.
    pub(super) fn channel_ranges(&self, of: Range<usize>) -> impl Iterator<Item = Range<usize>> + use<> {
        let (step, end) = (self.channels, of.end);
        of.step_by(step).map(move |first| first..(first + step).min(end))
    }
}
