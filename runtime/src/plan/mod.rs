//! The plan: what runs, on which buffers, in which order, as data.
//!
//! `rnnc::schedule` makes it, `rnnc::codegen` prints it as CUDA, the `cpu` engine executes the very same data. Dimensions
//! have values here; frames T and batch B do not, they are arguments of a run.
//!
//! A run: the engine holds parameters and has run [`Plan::prologue`] since they last changed. Initial windows that the
//! caller does not give are filled ([`Initial`]). Then [`Plan::launches`] in order (a launch may start when those in its
//! `after` are done), then the copies in [`Plan::finals`].
//!
//! Layouts are row-major: `[shape]`, `[B, shape]`, `[T, B, shape]`, and `[k, B, shape]` (oldest first) for the window of
//! the k frames before the first, or after the last.

pub mod access;
mod body;
mod check;
mod cost;
mod depend;
mod index;
pub mod interpret;
mod lanes;
mod number;
#[cfg(test)]
pub(crate) mod samples;

pub use access::{Matrix, Site, SiteKind};
pub use body::{Body, Frame, Guard, Load, Reg, Step, Store, StoreFrame};
pub use check::check;
pub use cost::{Cost, cost};
pub use index::{Atom, Index, Term};
pub use lanes::Lanes;

use crate::scalar::Reduce;
use serde::{Deserialize, Serialize};

/// A buffer's place in [`Plan::buffers`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BufferId(pub u32);

/// Everything that runs for one cell at given dimensions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The cell's name.
    pub cell: String,
    /// Dimensions and their values, in declared order.
    pub dims: Vec<(String, i64)>,
    /// Every buffer.
    pub buffers: Vec<Buffer>,
    /// Work that depends on parameters alone: once per parameter change.
    pub prologue: Vec<Launch>,
    /// Work of once a sequence: initial windows whose default is not a literal, and what follows from static inputs. In
    /// order, before [`Plan::launches`]; those that [`Plan::needed_initial`] leaves out need not run.
    pub initial: Vec<Launch>,
    /// The work of a run.
    pub launches: Vec<Launch>,
    /// Final windows that no kernel writes: copies of what the caller gave.
    pub finals: Vec<FinalCopy>,
    /// Whether the run goes from the last frame to the first: the caller, who has frames in the order of time, turns inputs
    /// and windows round before a run, and outputs and windows after it ([`reverse_frames`]).
    #[serde(default)]
    pub against_time: bool,
}

/// The frames of a buffer of this scope in reverse, in place: `frame` elements each. What has no frames stays.
pub fn reverse_frames<T>(scope: Scope, frame: usize, elements: &mut [T]) {
    if !matches!(scope, Scope::Frame | Scope::Window(_)) || frame == 0 {
        return;
    }
    let frames = elements.len() / frame;
    for t in 0..frames / 2 {
        let (early, late) = elements.split_at_mut((frames - 1 - t) * frame);
        early[t * frame..(t + 1) * frame].swap_with_slice(&mut late[..frame]);
    }
}

impl Plan {
    /// A buffer.
    pub fn buffer(&self, id: BufferId) -> &Buffer {
        &self.buffers[id.0 as usize]
    }

    /// The launches of [`Plan::initial`] that a run needs: all but those that write nothing but windows that the caller
    /// gave. One that computes several windows may write over a given one, which must be set after it.
    pub fn needed_initial(&self, is_given: impl Fn(BufferId) -> bool) -> Vec<usize> {
        let is_window = |id: &BufferId| matches!(self.buffer(*id).role, Role::Initial(_));
        let launches = self.initial.iter().enumerate();
        let needed = launches.filter(|(_, l)| !l.writes().iter().all(|id| is_window(id) && is_given(*id)));
        needed.map(|(at, _)| at).collect()
    }

    /// Buffers with their ids.
    pub fn ids(&self) -> impl Iterator<Item = (BufferId, &Buffer)> {
        self.buffers.iter().enumerate().map(|(i, b)| (BufferId(i as u32), b))
    }
}

/// A region of device memory with a meaning.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Buffer {
    /// The user's name, or one made from it; unique among buffers of its role.
    pub name: String,
    /// What it is for.
    pub role: Role,
    /// How often its shape exists.
    pub scope: Scope,
    /// The axes of one frame of one sequence.
    pub shape: Vec<usize>,
    /// How an element is stored.
    pub elem: Elem,
}

impl Buffer {
    /// Elements of one frame of one sequence.
    pub fn elements(&self) -> usize {
        self.shape.iter().product()
    }

    /// All elements at `frames` frames and `batch` sequences.
    pub fn len(&self, frames: usize, batch: usize) -> usize {
        self.elements() * self.scope.copies(frames, batch)
    }
}

/// What a buffer is for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// An input of the cell (scope frame, or batch for a static one).
    Input,
    /// A parameter.
    Param,
    /// The window `s0.<name>` before the first frame.
    Initial(Initial),
    /// An output of the cell.
    Output,
    /// The window `sT.<name>` at the end.
    Final,
    /// Computed by the prologue from parameters.
    Prologue,
    /// Lives within a run.
    Temp,
}

/// What an initial window holds where the caller gives none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Initial {
    /// This number everywhere.
    Fill(#[serde(with = "number")] f64),
    /// What this launch of [`Plan::initial`] writes.
    Launch(usize),
}

impl Eq for Initial {}

/// How often a buffer's shape, or a kernel's iteration space, exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Once.
    Const,
    /// Once a sequence.
    Batch,
    /// Once a frame of a sequence.
    Frame,
    /// So many frames of each sequence.
    Window(usize),
}

impl Scope {
    /// How many copies of the shape there are.
    pub fn copies(self, frames: usize, batch: usize) -> usize {
        match self {
            Scope::Const => 1,
            Scope::Batch => batch,
            Scope::Frame => frames * batch,
            Scope::Window(k) => k * batch,
        }
    }
}

/// How an element is stored; arithmetic is in f32 whatever the storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Elem {
    /// IEEE single.
    F32,
    /// IEEE half.
    F16,
    /// bfloat16.
    Bf16,
    /// 32-bit signed integer (indices).
    I32,
}

impl Elem {
    /// Bytes an element.
    pub fn bytes(self) -> usize {
        match self {
            Elem::F32 | Elem::I32 => 4,
            Elem::F16 | Elem::Bf16 => 2,
        }
    }
}

/// One kernel and when it may start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Launch {
    /// The kernel's name: unique in the plan, a C identifier.
    pub name: String,
    /// What `explain-plan` calls it.
    pub family: Family,
    /// The equations that it computes, as the user would write them.
    pub equations: Vec<String>,
    /// Launches of the same list that must be done before.
    pub after: Vec<usize>,
    /// What it does.
    pub kernel: Kernel,
}

/// The families of kernels as users know them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Family {
    /// Matrix products for all frames at once.
    Product,
    /// Products summed over all frames: gradients of weights.
    Total,
    /// Elementwise work for all frames at once.
    Pointwise,
    /// Reductions and what follows from them, for all frames at once.
    Rows,
    /// Linear recurrences, a channel each.
    Scan,
    /// Linear recurrences whose channels hold several elements of the state and fold over them.
    MatrixState,
    /// Nonlinear recurrences whose channels are independent.
    ChannelLoop,
    /// Recurrences whose units exchange values.
    Loop,
}

impl Family {
    /// Its name, as serialised.
    pub fn name(self) -> &'static str {
        match self {
            Family::Product => "product",
            Family::Total => "total",
            Family::Pointwise => "pointwise",
            Family::Rows => "rows",
            Family::Scan => "scan",
            Family::MatrixState => "matrix_state",
            Family::ChannelLoop => "channel_loop",
            Family::Loop => "loop",
        }
    }
}

/// The forms of kernels.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kernel {
    /// Products of weights with a common operand.
    Product(Product),
    /// Products summed over frames or sequences: at least one, alike in all but their factors, rows and columns.
    Total(Vec<Total>),
    /// Independent channels: pointwise work, scans, channel loops, matrix states.
    Channel(Channel),
    /// A loop over frames whose units exchange values within a frame.
    Loop(Loop),
}

/// `out[row] = epilogue(sum over operands i of sum over k of weight_i[row, k] * operand_i[k])`, for every frame and
/// sequence of the scope, and for each segment (all share the operands).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Product {
    /// Const: one vector; batch: B; frame: T * B.
    pub scope: Scope,
    /// What is multiplied; their products are added.
    pub operands: Vec<ProductOperand>,
    /// Row blocks with weights and epilogues of their own.
    pub segments: Vec<Segment>,
}

/// A vector of each frame and sequence, computed where it is read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProductOperand {
    /// Its length.
    pub extent: usize,
    /// Computes element `Var(0)`; no stores.
    pub body: Body,
    /// The element.
    pub result: Reg,
}

/// Rows of a product.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Segment {
    /// How many.
    pub rows: usize,
    /// One weight an operand.
    pub weights: Vec<Weight>,
    /// Computes and stores what becomes of row `Var(0)`; [`Step::Slot`]`(0)` is the sum.
    pub body: Body,
}

/// A matrix within a buffer of scope const: element (row, k) lies at `offset + row * row_stride + k * k_stride`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Weight {
    /// Where.
    pub buffer: BufferId,
    /// Of element (0, 0).
    pub offset: i64,
    /// Between rows.
    pub row_stride: i64,
    /// Between columns.
    pub k_stride: i64,
}

/// `out[group, row, column] = sum over copies of sum over inner of left[group, row, inner] * right[group, column, inner]`, where
/// the copies are all frames and sequences (or, of scope batch, the frames of a sequence). Several parts may share the left
/// factor, as the gradients of all weights that feed the same gates do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Total {
    /// What is summed: batch (sequences) or frame.
    pub over: Scope,
    /// What the sum is of: const (everything), or batch (the frames of each sequence).
    pub scope: Scope,
    /// Blocks of the result with factors of their own.
    pub groups: usize,
    /// Rows of a block.
    pub rows: usize,
    /// Terms within each copy.
    pub inner: usize,
    /// Its `groups * rows * inner` elements, the last fastest.
    pub left: ProductOperand,
    /// What it is multiplied with: at least one.
    pub parts: Vec<TotalPart>,
}

/// A result of a [`Total`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TotalPart {
    /// Columns of a block.
    pub columns: usize,
    /// Its `groups * columns * inner` elements, the last fastest.
    pub right: ProductOperand,
    /// Stores element `Var(0)` of the `groups * rows * columns`; [`Step::Slot`]`(0)` is the sum.
    pub body: Body,
}

/// Work that never crosses channels. Variables of its indices: `Var(0..channels.len())` are the channel axes, those
/// after them the inner axes. A step that depends on no inner variable has one value a channel; [`Step::Reduce`] folds the
/// inner axes away. A store whose index lacks some channel variable is done by the channels where that variable is 0.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Channel {
    /// Const, batch or frame.
    pub scope: Scope,
    /// Whether frames run one after another (only with scope frame); needed exactly if something is carried.
    pub sequential: bool,
    /// Extents of the channel axes; one thread, or one group of lanes, a channel and sequence.
    pub channels: Vec<usize>,
    /// Extents of the inner axes, which a channel walks, or spreads over its lanes.
    pub inner: Vec<usize>,
    /// What is kept from frame to frame.
    pub carried: Vec<Carried>,
    /// The work of one frame.
    pub body: Body,
}

/// A state that a channel keeps in registers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Carried {
    /// The user's name.
    pub name: String,
    /// How many earlier frames are kept.
    pub window: usize,
    /// Where its first window comes from (scope window).
    pub initial: BufferId,
    /// Which element of a frame of that window is this channel's.
    pub index: Index,
    /// The register of the body that is this frame's value.
    pub value: Reg,
}

/// A recurrence whose units need each other's values: frames one after another, phases within a frame, and between two
/// phases every unit may read every value that is [`LoopValue::shared`] and was set before.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Loop {
    /// What is kept between phases and frames.
    pub values: Vec<LoopValue>,
    /// The phases of a frame, in order.
    pub phases: Vec<Phase>,
}

/// A vector of each sequence, known within the loop.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoopValue {
    /// The user's name, or one made from it; unique in the loop.
    pub name: String,
    /// Its length; unit u sets element u.
    pub extent: usize,
    /// How many earlier frames are read; 0 where only this frame's value is.
    pub window: usize,
    /// Whether units read elements other than their own.
    pub shared: bool,
    /// Where its first window comes from, if `window > 0`.
    pub initial: Option<BufferId>,
}

/// Work between two exchanges. Its parts read only shared values set in earlier phases or frames.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    /// Groups of units; each value is set by exactly one part of one phase.
    pub parts: Vec<LoopPart>,
}

/// Units 0..units of one phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoopPart {
    /// How many units.
    pub units: usize,
    /// What each unit sums or folds first; read by [`Step::Slot`].
    pub slots: Vec<Slot>,
    /// Then each unit's own work (`Var(0)` is the unit), with stores.
    pub body: Body,
    /// Values that it sets: (index into [`Loop::values`], register of the body).
    pub sets: Vec<(usize, Reg)>,
}

/// A fold over k for each unit: `Var(0)` is the unit, `Var(1)` is k. One in which `Var(0)` does not occur (the moments of
/// a layer norm) has the same value for all units of a sequence: engines compute it once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Slot {
    /// `sum over k of weight[weight_index] * value[delay][value_index]`: a row of a constant matrix with a shared value.
    Dot {
        /// How many terms.
        extent: usize,
        /// A buffer of scope const.
        weight: BufferId,
        /// Element of the weight.
        weight_index: Index,
        /// Index into [`Loop::values`].
        value: usize,
        /// Of how many frames ago.
        delay: usize,
        /// Element of the value.
        value_index: Index,
    },
    /// `fold over k of body`, for everything else.
    Fold {
        /// The fold.
        op: Reduce,
        /// How many terms.
        extent: usize,
        /// Computes one term; no stores.
        body: Body,
        /// The term.
        result: Reg,
    },
}

/// A final window that is the end of an input: frames `T-k..T` of `window ++ source`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FinalCopy {
    /// The final window.
    pub target: BufferId,
    /// Scope frame.
    pub source: BufferId,
    /// The initial window of the same name, for frames before the first.
    pub initial: BufferId,
}
