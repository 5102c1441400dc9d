//! A kernel, decoded: the functions that it reaches as one list of compact instructions, with numbered registers.
//!
//! In comes the syntax tree and where its variables lie; out goes a [`Program`]. Every instruction has its function chosen
//! and its operands bound: immediates are registers that are filled once a frame, special registers too, parameters are words
//! of registers. Whatever is not known is a [`ProgramError`] with its line.

mod allocate;
mod asynchronous;
mod bind;
mod call;
mod control;
mod decode;
mod layout;
mod matrix;
mod memory;
mod modifiers;
mod names;
mod pure;
mod registers;
mod special;
mod sync;

pub use decode::decode;
pub use layout::{Globals, Param, Shared, define_globals};
pub use special::Special;

use crate::cost::kind::Facts;
use crate::memory::Mbarrier;
use crate::memory::access::{Atomic, Order, Scope};
use crate::ops::mma::Mma;
use crate::ops::{Args, File, Run};
use crate::ptx::ast::Space;
use std::sync::Arc;

/// Why a module cannot be run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {message}")]
pub struct ProgramError {
    /// The line of the PTX.
    pub line: u32,
    /// What is wrong there.
    pub message: String,
}

/// A kernel and the functions that it calls.
#[derive(Debug)]
pub struct Program {
    /// The kernel's name.
    pub kernel: Arc<str>,
    /// All instructions; functions lie one after another, the kernel first.
    pub code: Vec<Inst>,
    /// How many instructions from each one on only compute, and are under no predicate.
    pub straight: Vec<u32>,
    /// Where each comes from.
    pub places: Vec<Origin>,
    /// What each takes, for the model of cost.
    pub facts: Vec<Facts>,
    /// The functions, the kernel first.
    pub functions: Vec<Function>,
    /// The kernel's parameters.
    pub params: Vec<Param>,
    /// Its static shared memory, in bytes; dynamic shared memory begins at a multiple of 16 from here.
    pub shared: u32,
    /// Its local memory, in bytes a thread.
    pub local: u32,
    /// Directives of its head.
    pub directives: Vec<(String, Vec<u32>)>,
    /// Whether it starts asynchronous operations.
    pub asynchronous: bool,
    /// Whether it uses `barrier.cluster`.
    pub cluster: bool,
}

/// Where an instruction comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// The line of the PTX.
    pub line: u32,
    /// Number of the file and line of the CUDA text; zero where unknown.
    pub source: (u32, u32),
}

/// A function of a program.
#[derive(Debug, Default)]
pub struct Function {
    /// Its name.
    pub name: Arc<str>,
    /// Its first instruction.
    pub start: u32,
    /// Registers of each file (predicates, words, doubles), constants included.
    pub registers: [usize; 3],
    /// Registers that hold one value for all lanes.
    pub constants: Vec<(File, u32, u64)>,
    /// Registers that hold a special register.
    pub specials: Vec<(Special, File, u32)>,
    /// Registers that hold an address of local memory: the offset from the frame's own.
    pub locals: Vec<(File, u32, u64)>,
    /// Words of its parameters, in order; of the kernel's, by offset.
    pub params: Vec<u32>,
    /// Words of its results.
    pub results: Vec<u32>,
    /// Its local memory in bytes.
    pub local: u32,
}

/// Under which predicate an instruction runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guard(u32);

impl Guard {
    /// Always.
    pub const NONE: Guard = Guard(u32::MAX);

    /// Where the predicate is true, or false.
    pub fn new(register: u32, negated: bool) -> Guard {
        Guard(register << 1 | u32::from(negated))
    }

    /// The register and whether it is negated.
    #[inline(always)]
    pub fn get(self) -> Option<(usize, bool)> {
        (self != Guard::NONE).then_some(((self.0 >> 1) as usize, self.0 & 1 != 0))
    }
}

/// An instruction.
#[derive(Debug)]
pub struct Inst {
    /// What it does.
    pub action: Action,
    /// Its registers.
    pub args: Args,
    /// Its guard.
    pub guard: Guard,
}

/// What an instruction does. Pure ones are a function; the others are done by the machine.
#[derive(Debug)]
pub enum Action {
    /// Computes, lane by lane.
    Compute(Run),
    /// Loads.
    Load(Box<Transfer>),
    /// Stores.
    Store(Box<Transfer>),
    /// An atomic operation.
    Atomic(Box<AtomicTransfer>),
    /// A branch.
    Jump(u32),
    /// `brx.idx`: a branch to one of several, by a register.
    JumpTable(Box<[u32]>),
    /// A call.
    Call(Box<CallSite>),
    /// Back to the caller.
    Return,
    /// The thread is done.
    Exit,
    /// The kernel stops with this message.
    Trap(&'static str),
    /// `nanosleep`: others go first.
    Sleep,
    /// Reads a clock.
    Clock {
        /// Whether 64 bits are read.
        wide: bool,
    },
    /// `activemask`.
    ActiveMask,
    /// `bar.warp.sync`.
    WarpSync,
    /// `shfl.sync`.
    Shuffle(Shuffle),
    /// `vote.sync`.
    Vote(Vote),
    /// `match.sync` of 32 or 64 bits, any or all.
    Match {
        /// Whether 64 bits are compared.
        wide: bool,
        /// Whether all must match.
        all: bool,
    },
    /// `redux.sync`.
    Reduce(Reduce),
    /// `elect.sync`.
    Elect,
    /// A barrier of the block.
    Barrier(Box<Barrier>),
    /// `barrier.cluster.arrive`.
    ClusterArrive {
        /// Whether it is a release.
        release: bool,
        /// Whether all lanes must come together.
        aligned: bool,
    },
    /// `barrier.cluster.wait`.
    ClusterWait {
        /// Whether it is an acquire.
        acquire: bool,
        /// Whether all lanes must come together.
        aligned: bool,
    },
    /// A fence.
    Fence(Order, Scope),
    /// `fence.proxy.async`.
    ProxyFence,
    /// `fence.mbarrier_init`.
    MbarrierInitFence,
    /// `mma.sync`.
    Mma(Box<Matrices>),
    /// `ldmatrix`, `stmatrix`.
    Matrix(Box<MatrixTransfer>),
    /// `movmatrix`.
    Transpose,
    /// An operation on an mbarrier.
    Mbarrier(Box<MbarrierOp>),
    /// Starts an asynchronous operation.
    Async(Box<AsyncStart>),
    /// Ends a group of copies: bulk or not.
    Commit {
        /// Of bulk copies.
        bulk: bool,
    },
    /// Waits for groups of copies.
    WaitGroup {
        /// How many may be pending; none: also what is in no group.
        most: Option<u32>,
        /// Of bulk copies.
        bulk: bool,
        /// Only until their sources are read.
        read: bool,
    },
    /// Nothing that can be seen here.
    Nothing,
}

/// An address: a register plus an offset, or the offset alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address {
    /// The register.
    pub base: Option<(File, u32)>,
    /// What is added.
    pub offset: i64,
}

/// A register that a transfer fills or reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// Its file.
    pub file: File,
    /// Its number.
    pub register: u32,
    /// Bits of the register, to which a narrow load is extended.
    pub bits: u32,
}

/// What memory an instruction reaches, and how.
#[derive(Clone, Debug)]
pub struct Transfer {
    /// The space.
    pub space: Space,
    /// Whether it names the own block's shared memory.
    pub own_block: bool,
    /// The address.
    pub address: Address,
    /// Bytes of an element.
    pub bytes: u32,
    /// Elements.
    pub elements: u32,
    /// Whether narrow loads are extended with their sign.
    pub signed: bool,
    /// The order.
    pub order: Order,
    /// The scope.
    pub scope: Scope,
    /// A register for each element; two for elements of 128 bits.
    pub targets: Vec<Target>,
}

/// An atomic operation. `targets` are the results, if any; then come the operands.
#[derive(Clone, Debug)]
pub struct AtomicTransfer {
    /// Where and how.
    pub at: Transfer,
    /// What.
    pub op: Atomic,
    /// The first operand, one for each element.
    pub operands: Vec<Target>,
    /// The second operand of compare-and-swap.
    pub second: Option<Target>,
}

/// A call.
#[derive(Clone, Debug)]
pub struct CallSite {
    /// The function; none for one of the runtime that prints.
    pub function: Option<u32>,
    /// Words of the caller that become the words of the callee's parameters.
    pub arguments: Vec<u32>,
    /// Words of the caller that take the results.
    pub results: Vec<u32>,
}

/// From which lane a shuffle reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shuffle {
    /// A lower lane.
    Up,
    /// A higher lane.
    Down,
    /// The lane with some bits flipped.
    Butterfly,
    /// The lane given.
    Index,
}

/// What a vote asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vote {
    /// Whether all are true.
    All,
    /// Whether one is.
    Any,
    /// Whether all are the same.
    Uniform,
    /// Which are.
    Ballot,
}

/// A reduction over lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of PTX")]
pub enum Reduce {
    Add,
    MinSigned,
    MaxSigned,
    MinUnsigned,
    MaxUnsigned,
    And,
    Or,
    Xor,
    MinFloat,
    MaxFloat,
}

/// What a barrier does beside waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BarrierKind {
    /// Waits.
    Sync,
    /// Does not wait.
    Arrive,
    /// Counts the lanes whose predicate is true.
    Count,
    /// Whether the predicate is true in all.
    And,
    /// Whether it is true in one.
    Or,
}

/// A barrier of the block. The number is register `a`, the count of threads register `b`, the predicate register `c`.
#[derive(Clone, Debug)]
pub struct Barrier {
    /// What it does.
    pub kind: BarrierKind,
    /// Whether all lanes of a warp must come together.
    pub aligned: bool,
    /// Whether a count is given.
    pub counted: bool,
}

/// Fragments of a matrix product: registers of the word file (of the double file for f64).
#[derive(Clone, Debug)]
pub struct Matrices {
    /// The product.
    pub mma: Mma,
    /// The registers of the result.
    pub d: Vec<u32>,
    /// Of the factors.
    pub a: Vec<u32>,
    /// Of the factors.
    pub b: Vec<u32>,
    /// Of what is added.
    pub c: Vec<u32>,
}

/// `ldmatrix` and `stmatrix` of 8x8 matrices of 16 bits.
#[derive(Clone, Debug)]
pub struct MatrixTransfer {
    /// Whether it stores.
    pub store: bool,
    /// Whether each matrix is transposed.
    pub transpose: bool,
    /// The space, shared or generic.
    pub space: Space,
    /// Rows' addresses, one a lane.
    pub address: Address,
    /// A word a matrix.
    pub registers: Vec<u32>,
}

/// An operation on an mbarrier.
#[derive(Clone, Debug)]
pub struct MbarrierOp {
    /// What it does.
    pub op: Mbarrier,
    /// Where.
    pub at: Transfer,
    /// The operand.
    pub operand: Option<Target>,
    /// Where the result goes.
    pub result: Option<Target>,
    /// `cp.async.mbarrier.arrive`: an arrival of the copies so far, without a count of its own if true.
    pub of_copies: Option<bool>,
}

/// An asynchronous operation.
#[derive(Clone, Debug)]
pub enum AsyncStart {
    /// `cp.async`.
    Copy {
        /// Destination in shared memory.
        to: Address,
        /// Source in device memory.
        from: Address,
        /// Bytes written.
        bytes: u32,
        /// Bytes read.
        read: Option<Target>,
        /// Where true, nothing is read.
        ignore: Option<u32>,
    },
    /// `cp.async.bulk` and `cp.reduce.async.bulk`.
    Bulk {
        /// Destination.
        to: (Space, Address),
        /// Source.
        from: (Space, Address),
        /// Bytes.
        bytes: Target,
        /// The mbarrier; none: a group.
        mbarrier: Option<Address>,
        /// The blocks that get it.
        multicast: Option<Target>,
        /// The operation.
        reduce: Option<(Atomic, u32)>,
    },
    /// `st.async` and `red.async`.
    Store {
        /// Destination in shared memory.
        to: Address,
        /// Values.
        values: Vec<Target>,
        /// Bytes of each.
        bytes: u32,
        /// The mbarrier.
        mbarrier: Address,
        /// The operation of `red.async`.
        reduce: Option<Atomic>,
    },
}
