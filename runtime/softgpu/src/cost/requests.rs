//! What the recorder makes of requests of memory: latencies, bytes, and who waits for whom.

use super::access::{SECTOR, passes, sectors};
use super::cache::Level;
use super::kind::{Class, Facts};
use super::recorder::{Recorder, Who};
use super::trace::{Ends, From, Node, Term, Wait};
use super::words::{Key, place};
use crate::memory::place::each;
use crate::memory::{Lanes, Order};
use crate::ptx::ast::Space;

/// What lanes of a warp ask of memory.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The space that the instruction names.
    pub space: Space,
    /// An address for each lane.
    pub addresses: &'a Lanes<u64>,
    /// Which lanes.
    pub lanes: u32,
    /// Bytes of an element.
    pub bytes: u32,
    /// Elements of a lane.
    pub elements: u32,
    /// How it orders others.
    pub order: Order,
}

impl Request<'_> {
    fn span(&self) -> u32 {
        self.bytes * self.elements
    }

    fn strong(&self) -> bool {
        !matches!(self.order, Order::Weak | Order::NonCoherent)
    }

    fn releases(&self) -> bool {
        matches!(self.order, Order::Release | Order::AcquireRelease)
    }

    /// The places of the elements.
    fn keys(&self, block: u32, cluster: u32) -> Vec<Key> {
        let elements = |lane: usize| (0..self.elements).map(move |e| (lane, u64::from(e * self.bytes)));
        let mut keys: Vec<Key> = each(self.lanes)
            .flat_map(elements)
            .filter_map(|(lane, step)| place(self.space, self.addresses[lane] + step, block, cluster))
            .collect();
        keys.sort_unstable();
        keys.dedup();
        keys
    }
}

/// Where the bytes of a request are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Home {
    Global,
    Shared,
    Peer,
    Local,
}

impl Recorder {
    fn home(&self, who: Who, request: &Request<'_>) -> Home {
        let lane = request.lanes.trailing_zeros() as usize % 32;
        match place(request.space, request.addresses[lane], who.block, self.cluster_blocks) {
            Some(Key::Global(_)) => Home::Global,
            Some(Key::Shared { block, .. }) if block != who.block => Home::Peer,
            Some(Key::Shared { .. }) => Home::Shared,
            None => Home::Local,
        }
    }

    /// A load.
    pub fn load(&mut self, who: Who, facts: &Facts, request: &Request<'_>) {
        let home = self.home(who, request);
        let again = request.strong() && self.looks_again(who, fingerprint(request));
        let (latency, term) = match home {
            Home::Global => (self.global_load(who, request), Term::Global),
            Home::Shared => (self.shared_pass(who, request), Term::Shared),
            Home::Peer => (self.ends(|r| r.peer), Term::Cluster),
            Home::Local => (self.ends(|r| r.l1), Term::Global),
        };
        let class = match home {
            Home::Global => Class::LoadGlobal,
            Home::Local => Class::Local,
            Home::Shared | Home::Peer => Class::LoadShared,
        };
        self.issue_for(who, facts, class, (latency, term, home == Home::Global));
        if again {
            // The look before was counted.
            self.counts.instructions.entry(class).and_modify(|count| *count -= 1);
        }
        if request.strong() {
            self.look(who, request, latency);
            if !again {
                self.mark(who);
            }
        }
    }

    /// Waits for those who wrote what a warp sees now.
    fn look(&mut self, who: Who, request: &Request<'_>, latency: Ends) {
        let keys = request.keys(who.block, self.cluster_blocks);
        let mut any = false;
        for key in keys {
            let (way, term) = self.way(who.block, key);
            for writer in self.news(who, key) {
                any = true;
                let board = &mut self.warp(who).board;
                let at = [0, 1].map(|end| board.cursor[end] + latency[end]);
                board.wait(Wait {
                    from: From::End(writer),
                    latency: way,
                    at,
                    term,
                });
            }
        }
        self.counts.exchanges += u64::from(any);
        if matches!(request.order, Order::Acquire | Order::AcquireRelease) {
            // What the first-level cache holds may be old now.
            self.caches.forget(who.block);
        }
    }

    /// From a write to a value in a register.
    fn way(&self, block: u32, key: Key) -> (Ends, Term) {
        match key {
            Key::Global(_) => (self.ends(|r| r.hand_over), Term::HandOver),
            Key::Shared { block: owner, .. } if owner == block => (self.ends(|r| r.shared), Term::Shared),
            Key::Shared { .. } => (self.ends(|r| r.peer), Term::Cluster),
        }
    }

    fn global_load(&mut self, who: Who, request: &Request<'_>) -> Ends {
        let (touched, least) = sectors(request.addresses, request.lanes, request.span());
        self.count_global(touched.len() as u64, least);
        let mut farthest = Level::First;
        let (mut cache, mut memory) = (0u64, 0u64);
        for sector in &touched {
            let level = self.caches.load(who.block, *sector, !request.strong());
            farthest = farthest.max(level);
            cache += u64::from(level >= Level::Second);
            memory += u64::from(level == Level::Memory);
        }
        self.counts.memory_sectors += memory;
        let work = &mut self.warp(who).board.open.work;
        work.lsu += (touched.len() as f64 / 4.0).max(1.0);
        work.cache += (cache * SECTOR) as f64;
        work.memory += (memory * SECTOR) as f64;
        self.ends(|r| match farthest {
            Level::First => r.l1,
            Level::Second => r.l2,
            Level::Memory => r.dram,
        })
    }

    fn count_global(&mut self, touched: u64, least: u64) {
        self.counts.global_requests += 1;
        self.counts.global_sectors += touched;
        self.counts.global_least_sectors += least;
    }

    fn shared_pass(&mut self, who: Who, request: &Request<'_>) -> Ends {
        let (taken, least) = passes(request.addresses, request.lanes, request.span());
        self.counts.shared_requests += 1;
        self.counts.shared_passes += taken;
        self.counts.shared_least_passes += least;
        self.warp(who).board.open.work.lsu += taken as f64;
        self.ends(|r| r.shared + r.way * (taken - 1) as f64)
    }

    /// A store.
    pub fn store(&mut self, who: Who, facts: &Facts, request: &Request<'_>) {
        if request.releases() {
            self.drain(who);
        }
        let home = self.home(who, request);
        match home {
            Home::Global => self.global_store(who, request),
            Home::Shared => {
                self.shared_pass(who, request);
            }
            Home::Peer => {
                let bytes = f64::from(request.span() * request.lanes.count_ones());
                self.warp(who).board.open.work.peer += bytes;
            }
            Home::Local => {}
        }
        let class = match home {
            Home::Global => Class::StoreGlobal,
            Home::Local => Class::Local,
            Home::Shared | Home::Peer => Class::StoreShared,
        };
        let nothing = ([0.0; 2], Term::Arithmetic, false);
        self.issue_for(who, facts, class, nothing);
        if request.strong() {
            self.publish(who, request, false);
        }
    }

    fn global_store(&mut self, who: Who, request: &Request<'_>) {
        let (touched, least) = sectors(request.addresses, request.lanes, request.span());
        self.count_global(touched.len() as u64, least);
        let fresh = touched.iter().filter(|sector| self.caches.store(**sector)).count() as u64;
        self.counts.memory_sectors += fresh;
        let work = &mut self.warp(who).board.open.work;
        work.lsu += (touched.len() as f64 / 4.0).max(1.0);
        work.cache += (touched.len() as u64 * SECTOR) as f64;
        work.memory += (fresh * SECTOR) as f64;
        self.stored.insert(who.block, true);
    }

    /// Others can see what was written.
    fn publish(&mut self, who: Who, request: &Request<'_>, update: bool) {
        let node = self.cut_warp(who);
        for key in request.keys(who.block, self.cluster_blocks) {
            match update {
                true => self.words.update(key, node),
                false => self.words.store(key, node),
            }
        }
    }

    pub(super) fn cut_warp(&mut self, who: Who) -> Node {
        self.cut(self.number(who.block, who.warp))
    }

    /// A fence: it waits until what the block has stored is there for all.
    pub fn fence(&mut self, who: Who, device_wide: bool) {
        self.counts.instruction(Class::Sync);
        self.counts.fences += 1;
        if device_wide {
            self.drain(who);
            self.caches.forget(who.block);
        }
    }

    fn drain(&mut self, who: Who) {
        let busy = self.stored.insert(who.block, false).unwrap_or(false);
        let cycles = self.ends(|r| if busy { r.fence.1 } else { r.fence.0 });
        self.warp(who).board.spend(Term::Fence, cycles);
    }

    /// An atomic operation, and whether it changed memory. One that compares, or changes nothing, looks.
    pub fn atomic(&mut self, who: Who, facts: &Facts, request: &Request<'_>, (compares, changed): (bool, bool)) {
        if request.releases() {
            self.drain(who);
        }
        let home = self.home(who, request);
        let looks = compares || !changed;
        let again = looks && self.looks_again(who, fingerprint(request));
        let (latency, term) = match home {
            Home::Global => (self.ends(|r| r.l2), Term::Global),
            Home::Peer => (self.ends(|r| r.peer), Term::Cluster),
            Home::Shared | Home::Local => (self.ends(|r| r.shared), Term::Shared),
        };
        if home == Home::Global {
            let (touched, least) = sectors(request.addresses, request.lanes, request.span());
            self.count_global(touched.len() as u64, least);
            self.warp(who).board.open.work.cache += (touched.len() as u64 * SECTOR) as f64;
        }
        self.issue_for(who, facts, Class::Atomic, (latency, term, false));
        if again {
            self.counts
                .instructions
                .entry(Class::Atomic)
                .and_modify(|count| *count -= 1);
        }
        if looks {
            self.look(who, request, latency);
            if !again {
                self.mark(who);
            }
        }
        if changed {
            self.publish(who, request, true);
        }
    }
}

/// What a request looks at.
fn fingerprint(request: &Request<'_>) -> u64 {
    let mix =
        |sum: u64, lane: usize| (sum.rotate_left(7) ^ request.addresses[lane]).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    each(request.lanes).fold(u64::from(request.lanes), mix)
}
