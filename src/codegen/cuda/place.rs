//! One step of a body as a C expression, given where it is evaluated.
//!
//! Frames and sequences are addressed by one 64-bit number, `at = t * B + seq`: a delay of d frames is `at - d * B`, and
//! `t >= d` is `at >= d * B`, so a time-parallel kernel never divides by B.

use super::expr::{Expr, Prec, Type};
use super::index::{self, Variable};
use super::pointers::Pointers;
use super::spelling;
use rnnc_runtime::plan::{Buffer, BufferId, Elem, Frame, Index, Load, Plan, Reg, Scope, Step, Store, StoreFrame};

/// The names of the frame and the sequence at hand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrameNames {
    /// `t * B + seq`, 64-bit; binds like a name.
    pub at: String,
    /// The sequence, 64-bit; binds like a name.
    pub seq: String,
    /// The frame where the kernel has it at hand (conditions read better with it).
    pub t: Option<String>,
}

/// Answers for steps that only the surrounding kernel can print: carried states, values, slots, reductions.
pub type Leaf<'a> = dyn Fn(&Step) -> Option<Expr> + 'a;

/// Where a body is evaluated.
pub struct Place<'a> {
    /// The plan that owns the buffers.
    pub plan: &'a Plan,
    /// What buffers are called.
    pub pointers: &'a Pointers,
    /// The variables of indices.
    pub vars: &'a [Variable],
    /// Which frame and sequence.
    pub frame: FrameNames,
    /// Asked first, for every step.
    pub leaf: &'a Leaf<'a>,
    /// Whether approximate functions are welcome.
    pub fast_math: bool,
}

impl<'a> Place<'a> {
    /// The same place in another frame.
    pub fn in_frame(&self, frame: FrameNames) -> Place<'a> {
        Place { frame, ..*self }
    }

    /// The expression of a step whose operands are `regs`.
    pub fn step(&self, step: &Step, regs: &dyn Fn(Reg) -> Expr) -> Expr {
        if let Some(e) = (self.leaf)(step) {
            return e;
        }
        match step {
            Step::Const(value) => Expr::number(*value),
            Step::Load(load) => self.load(load),
            Step::Number(i) => self.number(i),
            Step::Inside(guards) => {
                let always = Expr::new("true", Prec::Primary, Type::Bool);
                index::print_guards(guards, self.vars).unwrap_or(always)
            }
            Step::Gather {
                table,
                row,
                rows,
                stride,
                index,
            } => self.gather(*table, &regs(*row), *rows, *stride, index),
            Step::Unary(op, a) => spelling::unary(*op, &regs(*a), self.fast_math),
            Step::Binary(op, a, b) => spelling::binary(*op, &regs(*a), &regs(*b)),
            Step::Select(c, a, b) => Expr::select(&regs(*c), &regs(*a).as_float(), &regs(*b).as_float()),
            Step::Clamp(x, lo, hi) => spelling::clamp(&regs(*x), &regs(*lo), &regs(*hi)),
            // The kernel's `leaf` prints these; a plan that has them elsewhere is wrong, and the text will not compile.
            Step::Reduce(..) | Step::Carried { .. } | Step::Value { .. } | Step::Slot(_) => Expr::float("not_here"),
        }
    }

    /// The element that a load reads, with its guards and its window.
    fn load(&self, load: &Load) -> Expr {
        let buffer = self.plan.buffer(load.buffer);
        let value = match load.frame {
            Frame::Const => self.element(load.buffer, None, &load.index),
            Frame::Batch => self.element(load.buffer, Some(Expr::int(&self.frame.seq)), &load.index),
            Frame::At { delay: 0, .. } => self.element(load.buffer, Some(Expr::int(&self.frame.at)), &load.index),
            Frame::At { delay, window } => self.delayed(load, delay, window),
        };
        match index::print_guards(&load.guards, self.vars) {
            None => value,
            Some(guard) => Expr::select(&guard, &value, &zero(buffer)),
        }
    }

    fn delayed(&self, load: &Load, delay: i32, window: Option<BufferId>) -> Expr {
        let inside = self.element(load.buffer, Some(self.moved(-i64::from(delay))), &load.index);
        let outside = match window {
            Some(w) if delay > 0 => {
                let row = self.moved(window_frames(self.plan.buffer(w)) - i64::from(delay));
                self.element(w, Some(row), &load.index)
            }
            _ => zero(self.plan.buffer(load.buffer)),
        };
        Expr::select(&self.frame_exists(delay), &inside, &outside)
    }

    /// Whether frame t - delay is one of the sequence's.
    fn frame_exists(&self, delay: i32) -> Expr {
        let distance = delay.unsigned_abs();
        let text = match (&self.frame.t, delay > 0) {
            (Some(t), true) => format!("{t} >= {distance}"),
            (Some(t), false) => format!("{t} + {distance} < T"),
            (None, true) => format!("{} >= {}", self.frame.at, batches(distance.into())),
            (None, false) => format!("{} + {} < (long long)T * B", self.frame.at, batches(distance.into())),
        };
        Expr::new(text, Prec::Relational, Type::Bool)
    }

    /// `at`, moved by so many frames.
    fn moved(&self, frames: i64) -> Expr {
        match frames {
            0 => Expr::int(&self.frame.at),
            n => {
                let sign = if n < 0 { '-' } else { '+' };
                let text = format!("{} {sign} {}", self.frame.at, batches(n.unsigned_abs()));
                Expr::new(text, Prec::Sum, Type::Int)
            }
        }
    }

    /// `pointer[copy * elements + index]`
    pub fn element(&self, id: BufferId, copy: Option<Expr>, index: &Index) -> Expr {
        let buffer = self.plan.buffer(id);
        let offset = match copy {
            None => index::print(index, self.vars),
            Some(copy) => index::print_within(&copy, buffer.elements(), index, self.vars),
        };
        Expr::new(
            format!("{}[{}]", self.pointers.get(id), offset.text),
            Prec::Primary,
            value_type(buffer),
        )
    }

    fn number(&self, i: &Index) -> Expr {
        let e = index::print(i, self.vars);
        // A 64-bit number has no variable type of its own: it is a float from here on.
        if index::is_wide(i, self.vars) { e.as_float() } else { e }
    }

    fn gather(&self, table: BufferId, row: &Expr, rows: usize, stride: usize, i: &Index) -> Expr {
        let nearest = format!("nearest_row({}, {rows})", row.text);
        let wide = (rows as i64).saturating_mul(stride as i64) > i64::from(i32::MAX);
        let copy = if wide {
            Expr::new(format!("(long long){nearest}"), Prec::Prefix, Type::Int)
        } else {
            Expr::int(nearest)
        };
        let offset = index::print_within(&copy, stride, i, self.vars);
        Expr::new(
            format!("{}[{}]", self.pointers.get(table), offset.text),
            Prec::Primary,
            value_type(self.plan.buffer(table)),
        )
    }

    /// Where a store goes, and the condition that its frame exists there.
    pub fn target(&self, store: &Store) -> (Option<Expr>, Expr) {
        let (condition, copy) = match store.frame {
            StoreFrame::Const => (None, None),
            StoreFrame::Batch => (None, Some(Expr::int(&self.frame.seq))),
            StoreFrame::Now => (None, Some(Expr::int(&self.frame.at))),
            StoreFrame::Final => self.final_frame(window_frames(self.plan.buffer(store.buffer))),
            StoreFrame::Window(0) => (None, Some(Expr::int(&self.frame.seq))),
            StoreFrame::Window(j) => {
                let text = format!("{} + {}", self.frame.seq, batches(j as u64));
                (None, Some(Expr::new(text, Prec::Sum, Type::Int)))
            }
        };
        (condition, self.element(store.buffer, copy, &store.index))
    }

    /// Frame t - (T - k) of a final window of k frames, where t >= T - k.
    fn final_frame(&self, k: i64) -> (Option<Expr>, Option<Expr>) {
        let first = format!("(long long)(T - {k}) * B");
        let test = match &self.frame.t {
            Some(t) => format!("{t} >= T - {k}"),
            None => format!("{} >= {first}", self.frame.at),
        };
        let copy = Expr::new(format!("{} - {first}", self.frame.at), Prec::Sum, Type::Int);
        // The last frame's only copy is that of its sequence.
        let copy = if k == 1 && self.frame.t.is_some() {
            Expr::int(&self.frame.seq)
        } else {
            copy
        };
        (Some(Expr::new(test, Prec::Relational, Type::Bool)), Some(copy))
    }
}

/// How many frames a window holds.
pub fn window_frames(buffer: &Buffer) -> i64 {
    match buffer.scope {
        Scope::Window(k) => k as i64,
        Scope::Const | Scope::Batch | Scope::Frame => 1,
    }
}

/// `frames * B`; 64-bit where it can pass 2^31.
fn batches(frames: u64) -> String {
    match frames {
        1 => "B".to_string(),
        n => format!("{n}LL * B"),
    }
}

fn value_type(buffer: &Buffer) -> Type {
    match buffer.elem {
        Elem::I32 => Type::Int,
        _ => Type::Float,
    }
}

/// What a read outside gives, in the type of the buffer's elements.
fn zero(buffer: &Buffer) -> Expr {
    match buffer.elem {
        Elem::I32 => Expr::int("0"),
        Elem::F32 => Expr::number(0.0),
        Elem::F16 | Elem::Bf16 => Expr::float(format!("{}(0.0f)", super::pointers::element_type(buffer.elem))),
    }
}
