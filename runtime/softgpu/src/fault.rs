//! What is wrong with a kernel, where, and what it collided with.

use serde::Serialize;

/// The kind of a fault. The numbers of `docs/softgpu.md` are the order of this list where they coincide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// An access outside every allocation, or across the end of one.
    OutOfBounds,
    /// An address that is not a multiple of the access.
    Misaligned,
    /// An access to memory that was freed.
    UseAfterFree,
    /// A value that nobody wrote: a register, or bytes of memory.
    Uninitialised,
    /// Two unordered accesses to shared memory.
    SharedRace,
    /// Two unordered accesses to global memory.
    GlobalRace,
    /// Threads of a block at different barriers, a wrong count, or threads that have exited.
    BarrierDivergence,
    /// A mask of a shuffle, vote, match, reduction or `bar.warp.sync` that disagrees with the lanes that arrive, or a read from a lane
    /// that does not take part.
    WarpMask,
    /// An aligned instruction that not all lanes of the warp reach together.
    Unaligned,
    /// Nothing changes while every thread waits.
    Deadlock,
    /// More instructions than the launch allows.
    Budget,
    /// A grid that must be resident at once and is not.
    CoResidency,
    /// A non-coherent load (`ld.global.nc`) of a word that the kernel writes.
    NonCoherent,
    /// The source or destination of an asynchronous copy touched before its completion was observed, or a missing proxy fence.
    AsyncRace,
    /// A misused mbarrier: phases skipped, counts out of range, used before it was initialised.
    Mbarrier,
    /// Shared memory of a peer used before the cluster synchronised, after the peer exited, or outside the cluster.
    Cluster,
    /// A launch that the device refuses: shared bytes, cluster size, threads, arguments.
    Launch,
    /// A trap, `assert`, or an instruction with undefined behaviour.
    Trap,
}

/// A place in the text: the line of the PTX, and of the CUDA text where `.loc` tells.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Place {
    /// The line of the PTX.
    pub ptx_line: u32,
    /// The instruction's text.
    pub instruction: String,
    /// File and line of the CUDA text.
    pub source: Option<(String, u32)>,
}

/// A thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct Thread {
    /// The block in the grid.
    pub block: [u32; 3],
    /// The thread in the block.
    pub thread: [u32; 3],
}

/// An access that another one collides with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Earlier {
    /// Who.
    pub thread: Thread,
    /// Where.
    pub place: Place,
    /// What it did: `weak write of 4 bytes`.
    pub what: String,
}

/// A fault.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fault {
    /// Its kind.
    pub kind: Kind,
    /// The kernel.
    pub kernel: String,
    /// What is wrong, in one sentence, with numbers.
    pub message: String,
    /// Where; none for a launch that never began.
    pub place: Option<Place>,
    /// Which thread (the first of several).
    pub thread: Option<Thread>,
    /// The address, as `allocation + offset` where it lies in one.
    pub address: Option<String>,
    /// The access it collides with.
    pub earlier: Option<Earlier>,
    /// What to do.
    pub hint: Option<String>,
}
