//! What a launch did, as a graph of events: segments of warps, joined by barriers and by what they wait for.
//!
//! A segment is what one warp executes between two events that others can see: a barrier, a strong store, an atomic
//! operation, a signal. It has the work that it takes of its multiprocessor, and the length of its chain of dependent
//! instructions; its end may wait for other segments. `evaluate` finds the longest path.

use serde::Serialize;

/// What time is spent on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Term {
    /// Issue slots.
    Issue,
    /// Waiting for results of arithmetic, or for its pipe.
    Arithmetic,
    /// Matrix products.
    Mma,
    /// Special functions.
    Special,
    /// Shared memory of the own block.
    Shared,
    /// Shuffles.
    Shuffle,
    /// Latency of device memory and its caches.
    Global,
    /// Bytes of device memory, of the cache, of other blocks' shared memory.
    Bytes,
    /// Barriers of blocks.
    Barrier,
    /// Values and signals from other blocks through device memory.
    HandOver,
    /// Fences.
    Fence,
    /// Barriers, loads and signals of a cluster.
    Cluster,
}

/// How many terms there are.
pub const TERMS: usize = 12;

impl Term {
    /// All, in order.
    pub const ALL: [Term; TERMS] = [
        Term::Issue,
        Term::Arithmetic,
        Term::Mma,
        Term::Special,
        Term::Shared,
        Term::Shuffle,
        Term::Global,
        Term::Bytes,
        Term::Barrier,
        Term::HandOver,
        Term::Fence,
        Term::Cluster,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Term::Issue => "issue",
            Term::Arithmetic => "arithmetic",
            Term::Mma => "mma",
            Term::Special => "special functions",
            Term::Shared => "shared memory",
            Term::Shuffle => "shuffles",
            Term::Global => "device memory",
            Term::Bytes => "bytes",
            Term::Barrier => "barriers",
            Term::HandOver => "hand-over",
            Term::Fence => "fences",
            Term::Cluster => "cluster",
        }
    }
}

/// Cycles by term.
pub type Terms = [f64; TERMS];
/// A value for the fast and for the slow end of the rates.
pub type Ends = [f64; 2];
/// A segment: the warp, counted through the grid, and the segment's number there.
pub type Node = (u32, u32);

/// What a segment takes, in cycles of the unit that does it, or bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Work {
    /// Issue slots.
    pub issue: f64,
    /// Slots of the pipe for reals.
    pub reals: f64,
    /// Matrix products, by type, in units of 1024 multiply-adds.
    pub tensor: [f64; 4],
    /// Special functions of warps.
    pub special: f64,
    /// Transfers of 128 bytes of shared memory and the first-level cache.
    pub lsu: f64,
    /// Bytes through the port to the second-level cache.
    pub cache: f64,
    /// Bytes of device memory.
    pub memory: f64,
    /// Bytes to other blocks of the cluster.
    pub peer: f64,
}

/// From what moment a wait counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From {
    /// The start of a segment.
    Start(Node),
    /// The end of a segment.
    End(Node),
}

/// The end of a segment is not before `from + latency + (chain - at)`: it needs something at `at` of its own chain.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wait {
    /// Whose moment.
    pub from: From,
    /// From there to the value.
    pub latency: Ends,
    /// Where in the chain it is needed.
    pub at: Ends,
    /// What the latency is spent on.
    pub term: Term,
}

/// A segment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Segment {
    /// It begins after this join.
    pub after: Option<u32>,
    /// What it takes.
    pub work: Work,
    /// The length of its chain of dependent instructions.
    pub chain: Ends,
    /// That length by term.
    pub terms: [Terms; 2],
    /// What its end waits for.
    pub waits: Vec<Wait>,
    /// Whether it uses what it loads, so that it ends after its bytes came.
    pub uses_bytes: bool,
}

/// Segments that all must have ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Join {
    /// They.
    pub arrivals: Vec<Node>,
    /// From the last one to those that wait.
    pub latency: Ends,
    /// What that is.
    pub term: Term,
}

/// A launch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trace {
    /// The segments of each warp of the grid.
    pub warps: Vec<Vec<Segment>>,
    /// The joins.
    pub joins: Vec<Join>,
    /// Warps a block.
    pub block_warps: u32,
    /// Blocks in the order in which they began.
    pub order: Vec<u32>,
    /// Blocks that a multiprocessor holds.
    pub blocks_a_processor: u32,
    /// Multiprocessors.
    pub processors: u32,
}
