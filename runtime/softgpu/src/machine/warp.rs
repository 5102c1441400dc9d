//! A warp: groups of lanes that share a program counter, and the frames of the functions that they are in.
//!
//! The lanes of a warp are spread over its groups, each lane in one; exited lanes are in none. Groups at the same place of the
//! same frame become one as soon as they meet.

use crate::memory::access::Warp as WarpId;
use crate::ops::Regs;

/// The registers of a function that some lanes are in.
#[derive(Debug)]
pub struct Frame {
    /// The registers.
    pub regs: Regs,
    /// The function.
    pub function: u32,
    /// The caller's frame.
    pub parent: Option<usize>,
    /// Where to go back to.
    pub return_to: u32,
    /// How many callers there are.
    pub depth: u32,
    /// Where the frame's local memory begins.
    pub local: u64,
}

/// What a group waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Nothing: it can run.
    No,
    /// The lanes of this mask, at this instruction.
    Lanes(u32),
    /// A barrier of the block.
    Barrier(u32),
    /// The cluster.
    Cluster,
    /// Something that is asked for again and again.
    Poll,
}

/// Lanes with one program counter.
#[derive(Clone, Copy, Debug)]
pub struct Group {
    /// The lanes.
    pub lanes: u32,
    /// The next instruction.
    pub pc: u32,
    /// The frame.
    pub frame: usize,
    /// What it waits for.
    pub wait: Wait,
}

/// A warp.
#[derive(Debug)]
pub struct Warp {
    /// Which one.
    pub id: WarpId,
    /// The place of its block among the resident ones.
    pub slot: usize,
    /// Lanes that exist: the last warp of a block may have fewer.
    pub lanes: u32,
    /// Lanes that have exited.
    pub exited: u32,
    /// Its groups.
    pub groups: Vec<Group>,
    /// Its frames; the first is the kernel's.
    pub frames: Vec<Frame>,
    /// Lanes that arrived at the cluster's barrier and did not wait yet.
    pub cluster_arrived: u32,
    /// The phase of the cluster's barrier at their arrival.
    pub cluster_phase: [u64; 32],
    /// Whether it is among those that can be picked.
    pub ready: bool,
}

impl Warp {
    /// Lanes that still run.
    pub fn live(&self) -> u32 {
        self.lanes & !self.exited
    }

    /// Makes one group of those that stand at the same place.
    pub fn merge(&mut self) {
        let mut at = 0;
        while at < self.groups.len() {
            let Group { pc, frame, .. } = self.groups[at];
            let mut other = at + 1;
            while other < self.groups.len() {
                let Group {
                    pc: its,
                    frame: there,
                    wait,
                    lanes,
                } = self.groups[other];
                if its == pc && there == frame && mergeable(wait) && mergeable(self.groups[at].wait) {
                    self.groups[at].lanes |= lanes;
                    self.groups[at].wait = Wait::No;
                    self.groups.swap_remove(other);
                } else {
                    other += 1;
                }
            }
            at += 1;
        }
    }

    /// The group to run: the innermost function first, and there the lowest place, so that lanes come together again.
    pub fn lowest(&self) -> Option<usize> {
        let runs = |at: &usize| matches!(self.groups[*at].wait, Wait::No | Wait::Poll);
        (0..self.groups.len()).filter(runs).min_by_key(|at| {
            let group = &self.groups[*at];
            let polls = group.wait == Wait::Poll;
            (polls, u32::MAX - self.frames[group.frame].depth, group.pc)
        })
    }

    /// The groups that can run.
    pub fn runnable(&self) -> usize {
        self.groups
            .iter()
            .filter(|group| matches!(group.wait, Wait::No | Wait::Poll))
            .count()
    }

    /// The next place after `pc` where other lanes of the frame stand.
    pub fn next_meeting(&self, running: usize) -> u32 {
        let Group { pc, frame, .. } = self.groups[running];
        let others = self
            .groups
            .iter()
            .enumerate()
            .filter(|(at, other)| *at != running && other.frame == frame);
        others
            .map(|(_, other)| other.pc)
            .filter(|other| *other > pc)
            .min()
            .unwrap_or(u32::MAX)
    }

    /// Lets groups that wait for lanes try again: lanes came or went.
    pub fn retry(&mut self) {
        for group in &mut self.groups {
            if matches!(group.wait, Wait::Lanes(_)) {
                group.wait = Wait::No;
            }
        }
    }

    /// Whether every group waits for lanes of this warp, so that nobody outside can help.
    pub fn stuck(&self) -> bool {
        !self.groups.is_empty() && self.groups.iter().all(|group| matches!(group.wait, Wait::Lanes(_)))
    }
}

/// Whether a group may be joined where it stands: one that waits for a barrier has been counted there already.
fn mergeable(wait: Wait) -> bool {
    matches!(wait, Wait::No | Wait::Lanes(_) | Wait::Poll)
}
