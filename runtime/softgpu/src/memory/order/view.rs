//! What a thread knows: which accesses of others come before whatever it does next.
//!
//! Time is one counter of the launch, the tick; it goes on at each event that orders something. An access is stamped with its
//! tick. "Knows thread t up to T" means that every access of t with a stamp below T happened before. What is known of all
//! threads of a warp or a block is kept once for the warp or block, so that a view of a grid after a grid-wide barrier is a
//! number a block.

/// Set in the name of an accessor that is no thread: the asynchronous copies of the thread whose number is in the low bits.
pub(crate) const AGENT: u32 = 1 << 30;
/// Names of accessors from here on are the copies that complete at an mbarrier.
pub(crate) const AT_MBARRIER: u32 = AGENT | 1 << 29;
/// The bulk copies of a thread that complete by groups, as readers of their source.
pub(crate) const BULK_READ: u32 = AGENT | 1 << 28;
/// The same, as writers of their destination.
pub(crate) const BULK_WRITE: u32 = AGENT | 1 << 27;
/// The number of the thread in all of these but the copies at an mbarrier.
pub(crate) const THREAD: u32 = (1 << 27) - 1;
/// The stamp of what is not complete: nobody knows it.
pub(crate) const PENDING: u32 = u32::MAX;
/// Set in a record: the low bits are the number of a set of accesses.
pub(crate) const SET: u32 = 1 << 31;

/// How threads are numbered: warp by warp, 32 a warp, block by block.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Numbering {
    /// Warps a block.
    pub warps: u32,
    /// Blocks a cluster.
    pub cluster: u32,
    /// Blocks of the grid.
    pub blocks: u32,
}

impl Numbering {
    /// The block of a thread, or of the thread that started an asynchronous copy.
    pub fn block_of(self, who: u32) -> u32 {
        (who & THREAD) / 32 / self.warps
    }

    /// The cluster of a block.
    pub fn cluster_of(self, block: u32) -> u32 {
        block / self.cluster
    }
}

/// Ticks by number, sorted.
#[derive(Clone, Debug, Default, PartialEq)]
struct Ticks(Vec<(u32, u32)>);

impl Ticks {
    fn get(&self, key: u32) -> u32 {
        match self.0.as_slice() {
            [] => 0,
            [(only, tick)] => {
                if *only == key {
                    *tick
                } else {
                    0
                }
            }
            many => many
                .binary_search_by_key(&key, |entry| entry.0)
                .map_or(0, |found| many[found].1),
        }
    }

    fn raise(&mut self, key: u32, tick: u32) {
        match self.0.binary_search_by_key(&key, |entry| entry.0) {
            Ok(found) => self.0[found].1 = self.0[found].1.max(tick),
            Err(place) => self.0.insert(place, (key, tick)),
        }
    }

    fn covers(&self, other: &Self) -> bool {
        let mut mine = self.0.iter();
        other.0.iter().all(|&(key, tick)| {
            mine.find(|entry| entry.0 >= key)
                .is_some_and(|e| e.0 == key && e.1 >= tick)
        })
    }

    fn join(&mut self, other: &Self) {
        if other.0.is_empty() || self.covers(other) {
            return;
        }
        let mut merged = Vec::with_capacity(self.0.len() + other.0.len());
        let (mut mine, mut theirs) = (self.0.iter().peekable(), other.0.iter().peekable());
        while let (Some(&&a), Some(&&b)) = (mine.peek(), theirs.peek()) {
            merged.push(match a.0.cmp(&b.0) {
                std::cmp::Ordering::Less => a,
                std::cmp::Ordering::Greater => b,
                std::cmp::Ordering::Equal => (a.0, a.1.max(b.1)),
            });
            if a.0 <= b.0 {
                mine.next();
            }
            if b.0 <= a.0 {
                theirs.next();
            }
        }
        merged.extend(mine.chain(theirs));
        self.0 = merged;
    }
}

/// What is known of others.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct View {
    /// All threads of the grid are known up to here.
    pub floor: u32,
    blocks: Ticks,
    warps: Ticks,
    threads: Ticks,
}

impl View {
    /// Knows what the whole grid did before `tick`, and no more.
    pub fn of_everything_before(tick: u32) -> Self {
        Self {
            floor: tick,
            ..Self::default()
        }
    }

    /// Whether an access is known.
    pub fn knows(&self, who: u32, stamp: u32, ids: Numbering) -> bool {
        if who & AT_MBARRIER == AT_MBARRIER {
            return stamp < self.threads.get(who);
        }
        if who & AGENT != 0 {
            return stamp < self.warps.get(((who & !AGENT) / 32) | AGENT) || stamp < self.threads.get(who);
        }
        stamp < self.floor
            || stamp < self.blocks.get(who / 32 / ids.warps)
            || stamp < self.warps.get(who / 32)
            || stamp < self.threads.get(who)
    }

    /// Up to where what is named so is known: copies at an mbarrier, or its phases.
    pub fn up_to(&self, who: u32) -> u32 {
        self.threads.get(who)
    }

    /// Up to where a whole block is known.
    pub fn block(&self, block: u32) -> u32 {
        self.blocks.get(block).max(self.floor)
    }

    /// Knows a block up to a tick.
    pub fn raise_block(&mut self, block: u32, tick: u32, ids: Numbering) {
        self.blocks.raise(block, tick);
        let (first, end) = (block * ids.warps, (block + 1) * ids.warps);
        self.warps
            .0
            .retain(|&(warp, t)| !(first..end).contains(&warp) || t > tick);
        self.threads
            .0
            .retain(|&(thread, t)| !(first * 32..end * 32).contains(&thread) || t > tick);
        self.settle(ids);
    }

    /// Knows a warp (or its copies) up to a tick.
    pub fn raise_warp(&mut self, warp: u32, tick: u32) {
        self.warps.raise(warp, tick);
    }

    /// Knows a thread (or its copies) up to a tick.
    pub fn raise_thread(&mut self, thread: u32, tick: u32) {
        self.threads.raise(thread, tick);
    }

    /// Whether all that the other knows is known.
    pub fn covers(&self, other: &Self) -> bool {
        self.floor >= other.floor
            && self.blocks.covers(&other.blocks)
            && self.warps.covers(&other.warps)
            && self.threads.covers(&other.threads)
    }

    /// Knows what the other knows too.
    pub fn join(&mut self, other: &Self, ids: Numbering) {
        self.floor = self.floor.max(other.floor);
        self.blocks.join(&other.blocks);
        self.warps.join(&other.warps);
        self.threads.join(&other.threads);
        self.settle(ids);
    }

    /// Drops what follows from the rest: where every block is known, so is the grid.
    fn settle(&mut self, ids: Numbering) {
        if self.blocks.0.len() == ids.blocks as usize {
            let least = self.blocks.0.iter().map(|entry| entry.1).min().unwrap_or(0);
            self.floor = self.floor.max(least);
        }
        let (floor, blocks) = (self.floor, &self.blocks);
        let known = |warp: u32| floor.max(blocks.get(warp / ids.warps));
        self.warps
            .0
            .retain(|&(warp, tick)| warp & AGENT != 0 || tick > known(warp));
        self.threads
            .0
            .retain(|&(thread, tick)| thread & AGENT != 0 || tick > known(thread / 32));
    }
}
