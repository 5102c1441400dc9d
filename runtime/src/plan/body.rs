//! Bodies: the scalar work of one point of a kernel's iteration space, as a list of steps in order.

use super::{BufferId, Index};
use crate::scalar::{Binary, Reduce, Unary};
use serde::{Deserialize, Serialize};

/// The result of the step of this number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Reg(pub u32);

/// Straight-line code: step i defines `Reg(i)` and reads only earlier registers; stores come last.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Body {
    /// The computation.
    pub steps: Vec<Step>,
    /// The user's names of registers, where they have one (for readable code); never needed for meaning.
    pub names: Vec<(Reg, String)>,
    /// What is written.
    pub stores: Vec<Store>,
}

/// One scalar operation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// A number.
    Const(#[serde(with = "super::number")] f64),
    /// An element of a buffer.
    Load(Load),
    /// The value of an index, as a number.
    Number(Index),
    /// 1 where every guard holds, else 0.
    Inside(Vec<Guard>),
    /// Row `row` (a whole number in a register; outside `0..rows` it reads the nearest) of a table of scope const:
    /// element `row * stride + index`.
    Gather {
        /// The table.
        table: BufferId,
        /// The row.
        row: Reg,
        /// How many rows there are.
        rows: usize,
        /// Elements a row.
        stride: usize,
        /// Within the row.
        index: Index,
    },
    /// A function of one number.
    Unary(Unary, Reg),
    /// A function of two numbers.
    Binary(Binary, Reg, Reg),
    /// Where the first is not 0 the second, else the third.
    Select(Reg, Reg, Reg),
    /// The first, clamped to at least the second, then to at most the third.
    Clamp(Reg, Reg, Reg),
    /// Folds a register over the inner axes of a channel kernel.
    Reduce(Reduce, Reg),
    /// In a channel kernel: carried state `state` of `delay` (>= 1) frames ago.
    Carried {
        /// Index into the kernel's `carried`.
        state: usize,
        /// Frames ago.
        delay: usize,
    },
    /// In a loop: element `index` of a value, of `delay` frames ago (0: set earlier in this frame). `index` is
    /// `Var(0)` unless the value is shared.
    Value {
        /// Index into the loop's `values`.
        value: usize,
        /// Frames ago.
        delay: usize,
        /// Which element.
        index: Index,
    },
    /// In a loop: the slot of this number. In a product's epilogue: slot 0 is the sum.
    Slot(usize),
}

/// Reads an element of a buffer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Load {
    /// From where.
    pub buffer: BufferId,
    /// Which frame and sequence.
    pub frame: Frame,
    /// Which element within the shape.
    pub index: Index,
    /// Where one does not hold the result is 0 and nothing is read.
    pub guards: Vec<Guard>,
}

/// Which copy of a buffer's shape is meant, at frame t of sequence b.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Frame {
    /// The only one (scope const).
    Const,
    /// Sequence b (scope batch).
    Batch,
    /// Frame t - delay of sequence b (scope frame). Before the first frame: frame `k + t - delay` of the window, which has
    /// k frames; at or past T (negative delays): 0.
    At {
        /// Frames back; negative is ahead.
        delay: i32,
        /// The initial window, if delay > 0.
        window: Option<BufferId>,
    },
}

/// Holds where `lo <= index < hi`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Guard {
    /// The index.
    pub index: Index,
    /// Least.
    pub lo: i64,
    /// One past the greatest.
    pub hi: i64,
}

/// Writes a register.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Store {
    /// To where.
    pub buffer: BufferId,
    /// Which frame and sequence.
    pub frame: StoreFrame,
    /// Which element.
    pub index: Index,
    /// What.
    pub value: Reg,
}

/// Which copy of the shape is written, at frame t of sequence b.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StoreFrame {
    /// The only one.
    Const,
    /// Sequence b.
    Batch,
    /// Frame t of sequence b.
    Now,
    /// Frame `t - (T - k)` of a final window of k frames, if t >= T - k. (If T < k, the frames before hold the last
    /// `k - T` of the initial window: the engine copies them.)
    Final,
    /// Frame j of an initial window.
    Window(usize),
}

impl Step {
    /// The registers it reads.
    pub fn reads(&self) -> Vec<Reg> {
        match self {
            Step::Const(_) | Step::Load(_) | Step::Number(_) | Step::Inside(_) | Step::Carried { .. } => vec![],
            Step::Value { .. } | Step::Slot(_) => vec![],
            Step::Gather { row, .. } => vec![*row],
            Step::Unary(_, a) | Step::Reduce(_, a) => vec![*a],
            Step::Binary(_, a, b) => vec![*a, *b],
            Step::Select(a, b, c) | Step::Clamp(a, b, c) => vec![*a, *b, *c],
        }
    }
}
