//! Every byte that a kernel can reach, and whether it may: allocations, validity, and the order of accesses.
//!
//! What comes in are the requests of [`access`]: an instruction of some lanes of a warp. What goes out are values with their
//! validity, or what is [`Wrong`]. The host allocates and copies; a launch goes through [`Memory::begin`],
//! [`Memory::start_block`], accesses, [`Memory::end_block`], [`Memory::end`].

pub mod access;
mod agent;
mod area;
mod atomic;
mod clash;
pub(crate) mod hash;
mod host;
mod launch;
mod mbarrier;
mod order;
pub(crate) mod place;
pub mod random;
mod run;
mod stale;
mod sync;
mod transfer;
pub(crate) mod wide;

#[cfg(test)]
mod tests;

pub use access::{Access, Atomic, Lanes, Order, Scope, Warp, Wrong};
pub use agent::{AsyncOp, CopyAsync, Done};
pub use launch::Shape;
pub use mbarrier::Mbarrier;

use agent::Agents;
use area::Area;
use launch::Block;
use order::Causality;
use random::Random;
use stale::Older;

/// Where device memory begins.
const GLOBAL_BASE: u64 = 0x1_0000_0000;
/// Device memory is looked up in slots of this size; an allocation has all the slots that it touches to itself, so that
/// whatever runs past its end by less than a slot hits nothing.
const SLOT: u64 = 1 << 20;

/// The memory of a device, and of the launch that runs on it.
#[derive(Debug)]
pub struct Memory {
    random: Random,
    /// Every area; those of ended blocks are used again.
    areas: Vec<Area>,
    spare: Vec<usize>,
    /// The area of each slot of device memory.
    slots: Vec<u32>,
    params: usize,
    shape: Shape,
    order: Causality,
    agents: Agents,
    older: Older,
    /// The blocks of the launch that run.
    blocks: Vec<Option<Block>>,
}
