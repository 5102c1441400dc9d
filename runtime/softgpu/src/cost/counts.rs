//! What is counted of a launch: instructions of warps by class, sectors and conflicts of memory, exchanges.

use super::kind::Class;
use serde::Serialize;
use std::collections::BTreeMap;

/// Counts of one or more launches.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Instructions of warps by class; looks in vain of a warp that polls are not among them.
    pub instructions: BTreeMap<Class, u64>,
    /// Loads and stores of device memory by warps.
    pub global_requests: u64,
    /// Sectors of 32 bytes that they touch.
    pub global_sectors: u64,
    /// Sectors that would do for as many bytes.
    pub global_least_sectors: u64,
    /// Sectors that came from, or went to, device memory itself.
    pub memory_sectors: u64,
    /// Loads and stores of shared memory by warps.
    pub shared_requests: u64,
    /// Passes over the banks that they take.
    pub shared_passes: u64,
    /// Passes that would do without conflicts.
    pub shared_least_passes: u64,
    /// Looks at a word or mbarrier that showed a value of another block or warp which the warp had not seen.
    pub exchanges: u64,
    /// Barriers of blocks.
    pub barriers: u64,
    /// Barriers of clusters.
    pub cluster_barriers: u64,
    /// Fences.
    pub fences: u64,
}

impl Counts {
    /// Adds an instruction.
    pub fn instruction(&mut self, class: Class) {
        *self.instructions.entry(class).or_default() += 1;
    }

    /// The part of the sectors touched that was needed: 1 where accesses are coalesced.
    pub fn coalescing(&self) -> f64 {
        ratio(self.global_least_sectors, self.global_sectors)
    }

    /// Passes a request of shared memory beyond those that are needed.
    pub fn conflicts(&self) -> u64 {
        self.shared_passes - self.shared_least_passes
    }

    /// Adds those of another launch.
    pub fn add(&mut self, other: &Counts) {
        for (class, count) in &other.instructions {
            *self.instructions.entry(*class).or_default() += count;
        }
        let pairs = [
            (&mut self.global_requests, other.global_requests),
            (&mut self.global_sectors, other.global_sectors),
            (&mut self.global_least_sectors, other.global_least_sectors),
            (&mut self.memory_sectors, other.memory_sectors),
            (&mut self.shared_requests, other.shared_requests),
            (&mut self.shared_passes, other.shared_passes),
            (&mut self.shared_least_passes, other.shared_least_passes),
            (&mut self.exchanges, other.exchanges),
            (&mut self.barriers, other.barriers),
            (&mut self.cluster_barriers, other.cluster_barriers),
            (&mut self.fences, other.fences),
        ];
        pairs.into_iter().for_each(|(sum, more)| *sum += more);
    }
}

fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 1.0 } else { part as f64 / whole as f64 }
}
