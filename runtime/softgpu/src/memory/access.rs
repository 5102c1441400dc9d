//! What the machine asks of memory: one request for the lanes of a warp that reach an instruction together.

use crate::fault::Kind;
use crate::ptx::ast::Space;

/// A value for each lane of a warp.
pub type Lanes<T> = [T; 32];

/// Generic addresses from here on mean shared memory: the base plus a shared address.
pub const SHARED_BASE: u64 = 0x7000_0000_0000;
/// Generic addresses from here on mean the thread's local memory.
pub const LOCAL_BASE: u64 = 0x7100_0000_0000;
/// A shared address below this is in the block's own memory; address `(rank + 1) * SHARED_WINDOW + offset` is `offset` in
/// the memory of the block of that rank in the cluster (what `mapa` returns).
pub const SHARED_WINDOW: u64 = 1 << 24;

/// A warp of the grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Warp {
    /// The block, counted x fastest.
    pub block: u32,
    /// The warp in the block.
    pub warp: u32,
}

/// How an access orders others. A volatile one is a relaxed one of system scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    /// Orders nothing, and is in a race with any unordered access.
    Weak,
    /// A load through the non-coherent cache.
    NonCoherent,
    /// Strong, orders nothing.
    Relaxed,
    /// Strong; later accesses of the thread come after what it has read.
    Acquire,
    /// Strong; earlier accesses of the thread come before what it writes.
    Release,
    /// Both.
    AcquireRelease,
}

/// The threads among which a strong access is strong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scope {
    /// The block.
    Block,
    /// The cluster.
    Cluster,
    /// The device.
    Gpu,
    /// Host and peers too.
    System,
}

/// A load, store or atomic operation of some lanes of a warp.
#[derive(Clone, Debug)]
pub struct Access<'a> {
    /// Who.
    pub warp: Warp,
    /// Which lanes.
    pub lanes: u32,
    /// The space that the instruction names; `shared::cluster` and `shared::cta` are both `Shared`.
    pub space: Space,
    /// Whether the instruction names `shared::cta`, which must not reach a peer.
    pub own_block: bool,
    /// An address for each lane.
    pub addresses: &'a Lanes<u64>,
    /// Bytes of an element: 1, 2, 4, 8 or 16.
    pub bytes: u32,
    /// Elements of a vector access: 1, 2, 4 or 8, one after another.
    pub elements: u32,
    /// How it orders others.
    pub order: Order,
    /// Among which threads.
    pub scope: Scope,
    /// The instruction's place in the program: comes back in reports.
    pub at: u32,
}

/// What an atomic operation does with the old value `o` and its operands `b` (and `c`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names are those of PTX")]
pub enum Atomic {
    Exchange,
    /// Writes `c` where `o` is `b`.
    CompareAndSwap,
    Add,
    And,
    Or,
    Xor,
    MinSigned,
    MaxSigned,
    MinUnsigned,
    MaxUnsigned,
    /// `o >= b ? 0 : o + 1`.
    Increment,
    /// `o == 0 || o > b ? b : o - 1`.
    Decrement,
    AddF32,
    AddF64,
    AddF16x2,
    AddBF16x2,
    AddF16,
    AddBF16,
}

/// What is wrong with an access, in memory's terms; the machine adds names and places.
#[derive(Clone, Debug)]
pub struct Wrong {
    /// The kind.
    pub kind: Kind,
    /// The lane that did it.
    pub lane: u32,
    /// The address, named by its allocation.
    pub address: Option<String>,
    /// One sentence, with numbers.
    pub message: String,
    /// The access it collides with: block, thread in the block (linear), place in the program, what it did.
    pub earlier: Option<(u32, u32, u32, String)>,
    /// What to do.
    pub hint: Option<String>,
}
