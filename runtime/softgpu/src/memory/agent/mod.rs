//! Asynchronous operations: copies and stores that somebody else does later. Each is an agent: it knows what its thread knew
//! when it started, reads its source when the seed says so (at once, or as late as can be), and its destination holds
//! nothing until then. Its accesses are recorded like those of threads; who touches its source or destination before its
//! completion was observed is in a race with it.

mod groups;
mod issue;
mod perform;

use std::collections::{BTreeMap, HashMap};

use super::Memory;
use super::access::{Atomic, Lanes, Order, Scope, Warp, Wrong};
use super::order::site::{Site, What};
use super::order::view::View;
use crate::ptx::ast::Space;
use groups::Queue;

/// How the completion of an asynchronous operation is observed.
#[derive(Clone, Copy, Debug)]
pub enum Done<'a> {
    /// Its bytes are counted at this mbarrier (an address in shared memory for each lane).
    Mbarrier(&'a Lanes<u64>),
    /// By waiting for its group.
    Group,
}

/// What is done. Addresses and values are one for each lane.
#[derive(Clone, Copy, Debug)]
pub enum AsyncOp<'a> {
    /// `cp.async`: from device memory to the block's shared memory; part of a group.
    Copy {
        /// Where to, in shared memory.
        to: &'a Lanes<u64>,
        /// Where from, in device memory.
        from: &'a Lanes<u64>,
        /// Bytes that are written: 4, 8 or 16.
        bytes: u32,
        /// Bytes that are read; the rest is zero. None: all.
        read: Option<&'a Lanes<u64>>,
    },
    /// `cp.async.bulk`, or `cp.reduce.async.bulk` with an operation.
    Bulk {
        /// The space and addresses of the destination.
        to: (Space, &'a Lanes<u64>),
        /// The space and addresses of the source.
        from: (Space, &'a Lanes<u64>),
        /// Bytes, a multiple of 16.
        bytes: &'a Lanes<u64>,
        /// How completion is observed.
        done: Done<'a>,
        /// `.multicast::cluster`: the blocks of the cluster that get it, a bit a rank.
        multicast: Option<&'a Lanes<u64>>,
        /// The operation of a reduction, and the bytes of an element.
        reduce: Option<(Atomic, u32)>,
    },
    /// `st.async`: to the shared memory of a peer.
    Store {
        /// Where to, in shared memory of the cluster.
        to: &'a Lanes<u64>,
        /// A row an element.
        values: &'a [Lanes<u64>],
        /// Bytes an element.
        bytes: u32,
        /// The mbarrier.
        mbarrier: &'a Lanes<u64>,
    },
    /// `red.async`: on the shared memory of a peer.
    Reduce {
        /// Where, in shared memory of the cluster.
        to: &'a Lanes<u64>,
        /// The operand.
        value: &'a Lanes<u64>,
        /// Bytes.
        bytes: u32,
        /// The operation.
        op: Atomic,
        /// The mbarrier.
        mbarrier: &'a Lanes<u64>,
    },
}

/// An asynchronous operation of some lanes.
#[derive(Clone, Copy, Debug)]
pub struct CopyAsync<'a> {
    /// Who starts it.
    pub warp: Warp,
    /// Which lanes.
    pub lanes: u32,
    /// The instruction's place in the program.
    pub at: u32,
    /// What is done.
    pub op: AsyncOp<'a>,
}

/// A piece of an area.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Piece {
    area: usize,
    offset: u32,
    bytes: u32,
}

/// Bytes with their validity.
type Image = Vec<(u8, bool)>;

/// An operation that is not complete.
#[derive(Debug)]
struct Operation {
    warp: Warp,
    lane: u32,
    /// What records call it as a reader, and as a writer.
    marks: (u32, u32),
    /// The instruction.
    site: Site,
    /// What it knew when it started.
    view: View,
    /// What is still to be read, lane by lane.
    sources: Vec<Piece>,
    /// What was read.
    images: Vec<Image>,
    /// What is to be written: a piece for each image, or several for one (multicast).
    destinations: Vec<Piece>,
    reduce: Option<(Atomic, u32)>,
    /// The mbarriers that count it: block, offset, bytes.
    counted: Vec<(u32, u32, u32)>,
    /// An arrival at those mbarriers instead of bytes, once these operations are complete.
    arrival: Option<Vec<u64>>,
}

impl Operation {
    /// An operation that does nothing yet.
    fn of(warp: Warp, lane: u32, marks: (u32, u32), site: Site) -> Self {
        Self {
            warp,
            lane,
            marks,
            site,
            view: View::default(),
            sources: Vec::new(),
            images: Vec::new(),
            destinations: Vec::new(),
            reduce: None,
            counted: Vec::new(),
            arrival: None,
        }
    }
}

/// The operations of a launch.
#[derive(Debug, Default)]
pub(crate) struct Agents {
    next: u64,
    running: BTreeMap<u64, Operation>,
    queues: HashMap<Warp, Queue>,
    /// The thread that last started a copy for each mbarrier, by the number of the mbarrier.
    starters: Vec<u32>,
}

impl Agents {
    /// A number for an mbarrier.
    pub fn number_mbarrier(&mut self) -> u32 {
        self.starters.push(0);
        self.starters.len() as u32 - 1
    }

    fn start(&mut self, operation: Operation) -> u64 {
        self.next += 1;
        self.running.insert(self.next, operation);
        self.next
    }

    fn is_done(&self, id: u64) -> bool {
        !self.running.contains_key(&id)
    }
}

impl Memory {
    /// The thread that started the last copy of an mbarrier.
    pub(crate) fn starter(&self, who: u32) -> u32 {
        let number = (who & !super::order::view::AT_MBARRIER) / 32;
        self.agents.starters.get(number as usize).copied().unwrap_or(0)
    }

    /// Lets asynchronous operations go on; true if something changed.
    ///
    /// # Errors
    /// What is wrong with one.
    pub fn step(&mut self) -> Result<bool, Wrong> {
        if self.agents.running.is_empty() {
            return Ok(false);
        }
        let ready: Vec<u64> = self.ready();
        let Some(&sure) = ready.get(self.random.below(ready.len().max(1) as u32) as usize) else {
            return Ok(false);
        };
        for id in ready {
            if id == sure || self.random.one_in(3) {
                self.perform(id)?;
            }
        }
        Ok(true)
    }

    /// Operations that can go on: all but arrivals that wait for others.
    fn ready(&self) -> Vec<u64> {
        let waits = |operation: &Operation| {
            operation
                .arrival
                .as_ref()
                .is_some_and(|after| after.iter().any(|&id| !self.agents.is_done(id)))
        };
        self.agents
            .running
            .iter()
            .filter(|(_, operation)| !waits(operation))
            .map(|(&id, _)| id)
            .collect()
    }
}

/// The site of an asynchronous operation.
fn site(at: u32, what: What, bytes: u32, order: Order) -> Site {
    Site {
        at,
        what,
        order,
        scope: Scope::Cluster,
        bytes,
    }
}
