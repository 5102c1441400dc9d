//! Where a load finds its bytes: in the first-level cache of its multiprocessor, in the second-level cache, in device memory.
//!
//! A sector is in a cache if it was fetched there and not more bytes than the cache holds were fetched since. That is a
//! least-recently-used cache without sets, one for each block in place of each multiprocessor. A launch begins with nothing
//! cached.

use super::access::SECTOR;
use crate::memory::hash::QuickMap;

/// What answers a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// The first-level cache.
    First,
    /// The second-level cache.
    Second,
    /// Device memory.
    Memory,
}

/// One cache.
#[derive(Debug, Default)]
struct Recent {
    /// When each sector was last fetched or used, in sectors fetched before.
    stamps: QuickMap<u64, u64>,
    fetched: u64,
}

impl Recent {
    /// Whether a sector is there; afterwards it is.
    fn touch(&mut self, sector: u64, capacity: u64) -> bool {
        let now = self.fetched;
        let before = self.stamps.insert(sector, now);
        let hit = before.is_some_and(|then| (now - then) * SECTOR < capacity);
        self.fetched += u64::from(!hit);
        hit
    }
}

/// The caches of a launch.
#[derive(Debug, Default)]
pub struct Caches {
    blocks: QuickMap<u32, Recent>,
    second: Recent,
    /// Bytes of each level.
    capacity: (u64, u64),
}

impl Caches {
    /// Empty ones of these sizes in bytes.
    pub fn new(first: u64, second: u64) -> Caches {
        Caches {
            capacity: (first, second),
            ..Caches::default()
        }
    }

    /// A load of a sector by a block; strong loads pass the first level by.
    pub fn load(&mut self, block: u32, sector: u64, weak: bool) -> Level {
        if weak && self.blocks.entry(block).or_default().touch(sector, self.capacity.0) {
            return Level::First;
        }
        if self.second.touch(sector, self.capacity.1) {
            Level::Second
        } else {
            Level::Memory
        }
    }

    /// A store of a sector, which goes to the second level; whether it has to reach device memory anew.
    pub fn store(&mut self, sector: u64) -> bool {
        !self.second.touch(sector, self.capacity.1)
    }

    /// A block has ended, or its first-level cache is emptied.
    pub fn forget(&mut self, block: u32) {
        self.blocks.remove(&block);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sectors_stay_until_the_cache_is_full() {
        let mut caches = Caches::new(4 * SECTOR, 16 * SECTOR);
        assert_eq!(caches.load(0, 7, true), Level::Memory);
        assert_eq!(caches.load(0, 7, true), Level::First);
        assert_eq!(caches.load(1, 7, true), Level::Second);
        assert_eq!(caches.load(0, 7, false), Level::Second);
        (20..24).for_each(|sector| {
            caches.load(0, sector, true);
        });
        assert_eq!(caches.load(0, 7, true), Level::Second);
        (40..60).for_each(|sector| {
            caches.load(0, sector, true);
        });
        assert_eq!(caches.load(0, 7, true), Level::Memory);
        assert!(caches.store(99) && !caches.store(99));
        assert_eq!(caches.load(2, 99, true), Level::Second);
    }
}
