//! Runs programs over blocks: some copies (frames and sequences) times a range of channels, one tight loop a step.

use super::fold;
use super::isa::Isa;
use super::memory::{View, round};
use super::program::{Op, Place, Program, Source, State, StoreOp, Width};
use crate::plan::{BufferId, Frame, StoreFrame};
use std::ops::Range;

/// What the copies of a kernel are.
#[derive(Clone, Copy, Debug)]
pub(super) enum Time {
    /// There is one.
    Const,
    /// The sequences.
    Batch,
    /// The sequences of all frames.
    Frames,
    /// The sequences of this frame.
    At(usize),
}

/// What programs of a launch see.
pub(super) struct Env<'a> {
    pub(super) isa: Isa,
    pub(super) view: &'a View,
    pub(super) frames: usize,
    pub(super) batch: usize,
    pub(super) time: Time,
    pub(super) values: &'a [ValueView],
    pub(super) slots: &'a [SlotView],
}

/// A value of a loop: a ring of frames, each `[batch, extent]`.
#[derive(Clone, Copy)]
pub(super) struct ValueView {
    pub(super) start: *mut f32,
    pub(super) ring: usize,
    pub(super) extent: usize,
}

impl ValueView {
    /// Sequence `b` of the frame `delay` before frame `t`.
    pub(super) fn row(&self, batch: usize, t: usize, delay: usize, b: usize) -> *mut f32 {
        let frame = (t + self.ring - delay) % self.ring;
        self.start.wrapping_add((frame * batch + b) * self.extent)
    }
}

/// A slot: element `channel - first_channel` of row `copy - first_copy`, or one element a row.
#[derive(Clone, Copy)]
pub(super) struct SlotView {
    pub(super) start: *const f32,
    pub(super) first_copy: usize,
    pub(super) first_channel: usize,
    /// Elements between rows.
    pub(super) stride: usize,
}

// SAFETY: these are addresses; whoever makes an `Env` keeps what they point to alive, and threads apart.
unsafe impl Send for ValueView {}
// SAFETY: as above.
unsafe impl Sync for ValueView {}
// SAFETY: as above.
unsafe impl Send for SlotView {}
// SAFETY: as above.
unsafe impl Sync for SlotView {}

impl Env<'_> {
    /// Frame and sequence of a copy.
    fn position(&self, copy: usize) -> (usize, usize) {
        match self.time {
            Time::Const => (0, 0),
            Time::Batch => (0, copy),
            Time::Frames => (copy / self.batch, copy % self.batch),
            Time::At(t) => (t, copy),
        }
    }

    fn t(&self) -> usize {
        match self.time {
            Time::At(t) => t,
            _ => 0,
        }
    }

    /// The buffer and copy within it that a load of this copy reads; none past the end.
    fn resolve(&self, id: BufferId, frame: Frame, window_frames: usize, copy: usize) -> Option<(BufferId, usize)> {
        let (t, b) = self.position(copy);
        match frame {
            Frame::Const => Some((id, 0)),
            Frame::Batch => Some((id, b)),
            Frame::At { delay, window } => {
                let t = t as i64 - i64::from(delay);
                match window {
                    _ if t >= self.frames as i64 => None,
                    _ if t >= 0 => Some((id, t as usize * self.batch + b)),
                    Some(window) => Some((window, (window_frames as i64 + t) as usize * self.batch + b)),
                    None => None,
                }
            }
        }
    }
}

/// Copies `copies` times channels `channels`.
#[derive(Clone, Debug)]
pub(super) struct Block {
    pub(super) copies: Range<usize>,
    pub(super) channels: Range<usize>,
}

/// Registers are laid out by width: slots of one width lie side by side, so far apart.
#[derive(Clone, Copy)]
struct Layout {
    start: [usize; 3],
    stride: [usize; 3],
}

/// Registers of a block in a worker's scratch memory.
pub(super) struct Registers<'a> {
    memory: &'a mut [f32],
    layout: Layout,
}

impl Program {
    fn sizes(&self, copies: usize, channels: usize) -> [usize; 3] {
        [copies, copies * channels, copies * channels * self.inner]
    }

    /// Registers for blocks up to this size. The scratch memory grows and is kept.
    pub(super) fn registers<'a>(&self, copies: usize, channels: usize, scratch: &'a mut Vec<f32>) -> Registers<'a> {
        // Whole vectors, and one more so that slots do not lie powers of two apart.
        let stride = self.sizes(copies, channels).map(|n| n.next_multiple_of(16) + 16);
        let mut start = [0; 3];
        let mut end = 0;
        for (width, start) in start.iter_mut().enumerate() {
            *start = end;
            end += self.slots[width] * stride[width];
        }
        // Beyond them a place for values on their way to 16 bits.
        let total = end + stride[Width::Point as usize];
        if scratch.len() < total {
            scratch.resize(total, 0.0);
        }
        Registers {
            memory: &mut scratch[..total],
            layout: Layout { start, stride },
        }
    }

    /// Runs the steps that stay the same for a block.
    pub(super) fn once(&self, env: &Env<'_>, block: &Block, registers: &mut Registers<'_>) {
        let run = Run {
            program: self,
            env,
            block,
        };
        self.once.iter().for_each(|op| run.step(op, registers));
    }

    /// Loads the initial windows of the states of a block.
    pub(super) fn begin(&self, env: &Env<'_>, block: &Block, registers: &mut Registers<'_>) {
        let run = Run {
            program: self,
            env,
            block,
        };
        self.states.iter().for_each(|state| run.begin(state, registers));
    }

    /// Runs the steps of a frame, then states move on and results are stored.
    pub(super) fn frame(&self, env: &Env<'_>, block: &Block, registers: &mut Registers<'_>) {
        let run = Run {
            program: self,
            env,
            block,
        };
        self.each.iter().for_each(|op| run.step(op, registers));
        for state in &self.states {
            let (to, from) = (run.place(&state.ring, registers), run.place(&state.value, registers));
            registers.memory.copy_within(from.clone(), to.start);
        }
        self.stores.iter().for_each(|store| run.store(store, registers));
    }

    /// The numbers of result `i` of the block that was run last.
    pub(super) fn result<'a>(&self, env: &Env<'_>, block: &Block, registers: &'a Registers<'_>, i: usize) -> &'a [f32] {
        let run = Run {
            program: self,
            env,
            block,
        };
        &registers.memory[run.place(&self.results[i], registers)]
    }
}

/// One program on one block.
struct Run<'a> {
    program: &'a Program,
    env: &'a Env<'a>,
    block: &'a Block,
}

impl Run<'_> {
    /// Numbers of this width in the block.
    fn count(&self, width: Width) -> usize {
        self.program.sizes(self.block.copies.len(), self.block.channels.len())[width as usize]
    }

    /// First point of the block, and points a copy, at this width.
    fn points(&self, width: Width) -> (usize, usize) {
        let (first, n) = (self.block.channels.start, self.block.channels.len());
        match width {
            Width::Copy => (0, 1),
            Width::Channel => (first, n),
            Width::Point => (first * self.program.inner, n * self.program.inner),
        }
    }

    /// Where a register lies in the scratch memory.
    fn place(&self, place: &Place, registers: &Registers<'_>) -> Range<usize> {
        let turn = if place.ring > 1 {
            (self.env.t() + place.ring - place.delay) % place.ring
        } else {
            0
        };
        let width = place.width as usize;
        let start = registers.layout.start[width] + (place.slot + turn) * registers.layout.stride[width];
        start..start + self.count(place.width)
    }

    /// A register to write, with those that are read to do so.
    fn split<'m, const N: usize>(
        &self,
        registers: &'m mut Registers<'_>,
        out: &Place,
        reads: [&Place; N],
    ) -> (&'m mut [f32], [&'m [f32]; N]) {
        let out = self.place(out, registers);
        let reads = reads.map(|read| self.place(read, registers));
        assert!(
            reads.iter().all(|r| r.end <= out.start || out.end <= r.start),
            "a step does not write what it reads"
        );
        let memory = registers.memory.as_mut_ptr();
        let slice = |r: &Range<usize>| {
            assert!(r.end <= registers.memory.len(), "a register within the scratch memory");
            (r.start, r.len())
        };
        let (start, len) = slice(&out);
        // SAFETY: within the memory that is borrowed for as long as the results, and apart from what is read.
        let out = unsafe { std::slice::from_raw_parts_mut(memory.add(start), len) };
        // SAFETY: within the same memory; apart from what is written.
        let reads = reads.map(|r| unsafe { std::slice::from_raw_parts(memory.add(slice(&r).0), r.len()) });
        (out, reads)
    }

    fn step(&self, op: &Op, registers: &mut Registers<'_>) {
        let isa = self.env.isa;
        match op {
            Op::Fill { value, out } => self.split(registers, out, []).0.fill(*value),
            Op::Numbers { values, out } => {
                let (first, n) = self.points(out.width);
                let out = self.split(registers, out, []).0;
                out.chunks_mut(n)
                    .for_each(|copy| copy.copy_from_slice(&values[first..first + n]));
            }
            Op::Load { source, access, out } => self.load(source, access, out, registers),
            Op::Slot { slot, out } => self.slot(*slot, out, registers),
            Op::Gather { .. } => self.gather(op, registers),
            Op::Unary { op, a, out } => {
                let (out, [a]) = self.split(registers, out, [a]);
                fold::unary(isa, *op, out, a);
            }
            Op::Binary { op, a, b, out } => {
                let (out, [a, b]) = self.split(registers, out, [a, b]);
                fold::binary(isa, *op, out, a, b);
            }
            Op::Select { c, a, b, out } => {
                let (out, [c, a, b]) = self.split(registers, out, [c, a, b]);
                fold::select(isa, out, c, a, b);
            }
            Op::Clamp { x, lo, hi, out } => {
                let (out, [x, lo, hi]) = self.split(registers, out, [x, lo, hi]);
                fold::clamp(isa, out, x, lo, hi);
            }
            Op::Reduce { op, a, out } => self.reduce(*op, a, out, registers),
            Op::Widen { a, out } => {
                let (wide, [narrow]) = self.split(registers, out, [a]);
                let repeat = wide.len() / narrow.len();
                wide.chunks_mut(repeat).zip(narrow).for_each(|(wide, x)| wide.fill(*x));
            }
        }
    }

    /// Folds the inner axes; a result a copy takes the first channel's, all are equal.
    fn reduce(&self, op: crate::scalar::Reduce, a: &Place, out: &Place, registers: &mut Registers<'_>) {
        let isa = self.env.isa;
        let (out_slice, [terms]) = self.split(registers, out, [a]);
        let n = self.program.inner;
        if out.width == Width::Channel {
            fold::reduce(isa, op, out_slice, terms, n);
            return;
        }
        let per_copy = self.block.channels.len() * n;
        for (out, terms) in out_slice.chunks_mut(1).zip(terms.chunks(per_copy)) {
            fold::reduce(isa, op, out, &terms[..n], n);
        }
    }

    /// Calls `read(copies, elements)` for runs of copies whose shapes follow one another; without elements past the end.
    fn sources<'s>(&'s self, source: &Source, mut read: impl FnMut(Range<usize>, Option<&'s [f32]>)) {
        let Source::Buffer {
            id,
            frame,
            elements,
            window,
            ..
        } = *source
        else {
            return;
        };
        let copies = &self.block.copies;
        let n = copies.len();
        let found = |copy: usize| self.env.resolve(id, frame, window, copy);
        // Both ends in one buffer and as far apart as there are copies: so are those between.
        if let (Some(first), Some(last)) = (found(copies.start), found(copies.end - 1))
            && first.0 == last.0
            && first.1 + n - 1 == last.1
        {
            read(0..n, Some(self.elements(first, elements, n)));
            return;
        }
        for (i, copy) in copies.clone().enumerate() {
            read(i..i + 1, found(copy).map(|at| self.elements(at, elements, 1)));
        }
    }

    fn elements(&self, (id, copy): (BufferId, usize), elements: usize, copies: usize) -> &[f32] {
        // SAFETY: a launch does not read what it writes, and the engine keeps the buffers until it is done.
        unsafe { self.env.view.read(id, copy * elements, copies * elements) }
    }

    fn load(&self, source: &Source, access: &super::access::Access, out: &Place, registers: &mut Registers<'_>) {
        let (first, n) = self.points(out.width);
        let out = self.split(registers, out, []).0;
        match source {
            Source::Value { value, delay } => {
                let view = &self.env.values[*value];
                for (copy, out) in self.block.copies.clone().zip(out.chunks_mut(n)) {
                    let row = view.row(self.env.batch, self.env.t(), *delay, copy);
                    // SAFETY: the loop keeps its values alive; nobody sets this frame of it in this phase.
                    access.read(unsafe { std::slice::from_raw_parts(row, view.extent) }, first, out);
                }
            }
            Source::Buffer { elements, integer, .. } => {
                let whole = n == *elements && access.is_identity(n);
                self.sources(source, |copies, source| {
                    let out = &mut out[copies.start * n..copies.end * n];
                    match source {
                        None => out.fill(0.0),
                        Some(source) if whole => out.copy_from_slice(source),
                        Some(source) => {
                            let rows = out.chunks_mut(n).zip(source.chunks(*elements));
                            rows.for_each(|(out, source)| access.read(source, first, out));
                        }
                    }
                });
                if *integer {
                    out.iter_mut().for_each(|x| *x = x.to_bits().cast_signed() as f32);
                }
            }
        }
    }

    fn slot(&self, slot: usize, out: &Place, registers: &mut Registers<'_>) {
        let view = self.env.slots[slot];
        let (first, n) = self.points(out.width);
        let offset = if out.width == Width::Copy {
            0
        } else {
            first - view.first_channel
        };
        let out = self.split(registers, out, []).0;
        for (copy, out) in self.block.copies.clone().zip(out.chunks_mut(n)) {
            let row = view.start.wrapping_add((copy - view.first_copy) * view.stride + offset);
            // SAFETY: the kernel that made the view filled these elements, and nobody writes them meanwhile.
            out.copy_from_slice(unsafe { std::slice::from_raw_parts(row, n) });
        }
    }

    fn gather(&self, op: &Op, registers: &mut Registers<'_>) {
        let Op::Gather {
            table,
            row,
            access,
            out,
        } = op
        else {
            return;
        };
        // NaN becomes row 0.
        let nearest = |x: f32| (x.max(0.0) as usize).min(table.rows - 1);
        let (first, n) = self.points(out.width);
        let (width, one_row) = (out.width, row.width == Width::Copy);
        let (out, [row]) = self.split(registers, out, [row]);
        let (per_copy, step) = if one_row && width != Width::Copy {
            (1, n)
        } else {
            (n, 1)
        };
        for (copy, out) in out.chunks_mut(n).enumerate() {
            for (i, out) in out.chunks_mut(step).enumerate() {
                let start = nearest(row[copy * per_copy + i]) * table.stride;
                // SAFETY: tables are constant during a launch.
                let row = unsafe { self.env.view.read(table.id, start, table.elements - start) };
                access.read(row, first + i, out);
            }
        }
    }

    fn begin(&self, state: &State, registers: &mut Registers<'_>) {
        for back in 1..=state.window {
            let mut ring = state.ring;
            // As frame 0 sees it.
            ring.delay = back;
            let (first, n) = self.points(ring.width);
            let run = Run {
                program: self.program,
                env: &Env {
                    time: Time::At(0),
                    ..*self.env
                },
                block: self.block,
            };
            let out = run.split(registers, &ring, []).0;
            for (copy, out) in self.block.copies.clone().zip(out.chunks_mut(n)) {
                let at = (state.initial_frames - back) * self.env.batch + copy;
                state
                    .access
                    .read(self.elements((state.initial, at), state.elements, 1), first, out);
            }
        }
    }

    fn store(&self, store: &StoreOp, registers: &mut Registers<'_>) {
        let (first, n) = self.points(store.value.width);
        let from = self.place(&store.value, registers);
        let from = self.converted(store, from, registers);
        for (copy, values) in self.block.copies.clone().zip(registers.memory[from].chunks(n)) {
            let Some(at) = self.target(store, copy) else {
                continue;
            };
            // SAFETY: each element is stored by one point of one launch, and this launch does not read the buffer.
            unsafe {
                let target = self.env.view.write(store.buffer, at * store.elements, store.elements);
                store.access.write(target, store.elements, first, values);
            }
        }
    }

    /// The values as their buffer holds them: converted beside the registers, which keep theirs.
    fn converted(&self, store: &StoreOp, from: Range<usize>, registers: &mut Registers<'_>) -> Range<usize> {
        if store.elem == crate::plan::Elem::F32 {
            return from;
        }
        let start = registers.memory.len() - registers.layout.stride[Width::Point as usize];
        let to = start..start + from.len();
        registers.memory.copy_within(from, start);
        round(store.elem, &mut registers.memory[to.clone()]);
        to
    }

    /// The copy of the shape that a copy of the block stores to, if any.
    fn target(&self, store: &StoreOp, copy: usize) -> Option<usize> {
        let (t, b) = self.env.position(copy);
        let batch = self.env.batch;
        match store.frame {
            StoreFrame::Const => Some(0),
            StoreFrame::Batch => Some(b),
            StoreFrame::Now => Some(t * batch + b),
            StoreFrame::Window(j) => Some(j * batch + b),
            StoreFrame::Final => (t + store.window).checked_sub(self.env.frames).map(|j| j * batch + b),
        }
    }
}
