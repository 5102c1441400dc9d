//! mbarriers and asynchronous operations as the recorder sees them: who arrives in which phase, and who waits for it.

use super::access::{SECTOR, sectors};
use super::board::{Board, Pending};
use super::cache::Level;
use super::kind::{Class, Facts};
use super::recorder::{Recorder, Who};
use super::trace::{Ends, From, Term, Wait};
use super::words::{Key, code};
use crate::memory::Lanes;

/// An mbarrier, and the phase that it is in.
pub type Signal = (Key, u64);

/// Cycles from issue to the way, and from the way to a wait that notices: the design's estimate for `st.async`, of which
/// nobody has published the latency.
const SEND: f64 = 40.0;

impl Recorder {
    /// Arrivals at mbarriers.
    pub fn signal(&mut self, who: Who, facts: &Facts, to: &[Signal]) {
        self.issue_for(who, facts, Class::Sync, (self.ends(|r| r.shared), Term::Shared, false));
        let node = self.cut_warp(who);
        for (key, phase) in to {
            let own = matches!(key, Key::Shared { block, .. } if *block == who.block);
            let (latency, term) = match own {
                true => (self.ends(|r| r.mbarrier), Term::Shared),
                false => (self.ends(|r| r.peer), Term::Cluster),
            };
            self.arrives(*key, *phase, (From::End(node), latency, term));
        }
    }

    fn arrives(&mut self, key: Key, phase: u64, (from, latency, term): (From, Ends, Term)) {
        let wait = Wait {
            from,
            latency,
            at: [0.0; 2],
            term,
        };
        let phases = self.phases(key);
        match phases.iter_mut().find(|(number, _)| *number == phase) {
            Some((_, waits)) => waits.push(wait),
            None => phases.push_back((phase, vec![wait])),
        }
        // Who waits is at most one phase behind.
        while phases.len() > 4 {
            phases.pop_front();
        }
    }

    /// A test of an mbarrier: whether it said yes, and the phases that are complete.
    pub fn test(&mut self, who: Who, facts: &Facts, (key, done): Signal, yes: bool) {
        let again = self.looks_again(who, code(key));
        let latency = self.ends(|r| r.shared);
        let board = &mut self.warp(who).board;
        board.issue(who.frame, &facts.reads, 1.0);
        board.spend(Term::Shared, latency);
        if !again {
            self.counts.instruction(Class::Sync);
            self.mark(who);
        }
        if !yes || done == 0 {
            return;
        }
        let waits: Vec<Wait> = self
            .phases(key)
            .iter()
            .find(|(number, _)| *number == done - 1)
            .map(|(_, waits)| waits.clone())
            .unwrap_or_default();
        self.counts.exchanges += u64::from(!waits.is_empty());
        let board = &mut self.warp(who).board;
        for wait in waits {
            let at = board.cursor;
            board.wait(Wait { at, ..wait });
        }
    }

    /// `st.async` and bulk copies: bytes that complete on mbarriers; `from_memory` are addresses in device memory that are
    /// read for it, and how many bytes from each.
    pub fn send(&mut self, who: Who, facts: &Facts, bytes: u64, to: &[Signal], from_memory: &[(u64, u64)]) {
        let mut reads = Level::First;
        for (address, length) in from_memory {
            let touched = address / SECTOR..=(address + length.saturating_sub(1)) / SECTOR;
            for sector in touched {
                let level = self.caches.load(who.block, sector, false);
                reads = reads.max(level);
                let work = &mut self.warp(who).board.open.work;
                work.cache += SECTOR as f64;
                work.memory += if level == Level::Memory { SECTOR as f64 } else { 0.0 };
            }
        }
        self.issue_for(who, facts, Class::Async, ([0.0; 2], Term::Arithmetic, false));
        if from_memory.is_empty() {
            self.warp(who).board.open.work.peer += bytes as f64;
        }
        let node = self.cut_warp(who);
        let (latency, term) = match reads {
            Level::First => (self.ends(|r| r.peer + 2.0 * SEND), Term::Cluster),
            Level::Second => (self.ends(|r| r.l2 + SEND), Term::Global),
            Level::Memory => (self.ends(|r| r.dram + SEND), Term::Global),
        };
        for (key, phase) in to {
            self.arrives(*key, *phase, (From::End(node), latency, term));
        }
    }

    /// `cp.async`: a load into shared memory that a group waits for.
    pub fn copy(&mut self, who: Who, facts: &Facts, from: &Lanes<u64>, lanes: u32, bytes: u32) {
        let (touched, least) = sectors(from, lanes, bytes);
        self.counts.global_requests += 1;
        self.counts.global_sectors += touched.len() as u64;
        self.counts.global_least_sectors += least;
        let mut farthest = Level::First;
        for sector in &touched {
            let level = self.caches.load(who.block, *sector, false);
            farthest = farthest.max(level);
            self.counts.memory_sectors += u64::from(level == Level::Memory);
            let work = &mut self.warp(who).board.open.work;
            work.cache += SECTOR as f64;
            work.memory += if level == Level::Memory { SECTOR as f64 } else { 0.0 };
        }
        self.issue_for(who, facts, Class::Async, ([0.0; 2], Term::Arithmetic, false));
        let latency = self.ends(|r| if farthest == Level::Memory { r.dram } else { r.l2 });
        let warp = self.warp(who);
        warp.board.open.work.lsu += (touched.len() as f64 / 4.0).max(1.0);
        let value = warp.board.later(latency, Term::Global, true);
        warp.copies = Some(warp.copies.map_or(value, |other| Board::latest(value, other)));
    }

    /// `cp.async.commit_group`.
    pub fn commit(&mut self, who: Who) {
        let warp = self.warp(who);
        let group = warp.copies.take();
        warp.groups.push_back(group.unwrap_or(Pending::NOW));
    }

    /// `cp.async.wait_group` for all but `most`, or for everything.
    pub fn wait_group(&mut self, who: Who, most: Option<u32>) {
        let warp = self.warp(who);
        warp.board.issue(who.frame, &[], 1.0);
        while warp.groups.len() > most.unwrap_or(0) as usize {
            if let Some(group) = warp.groups.pop_front() {
                warp.board.need(group);
            }
        }
        if let Some(rest) = warp.copies.filter(|_| most.is_none()) {
            warp.board.need(rest);
        }
        self.counts.instruction(Class::Sync);
    }
}
