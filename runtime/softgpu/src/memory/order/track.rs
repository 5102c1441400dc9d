//! Records of accesses to the cells of a page: who was last, when, and by which instruction; a set of accesses where several
//! are unordered.

use super::view::SET;

/// Accesses of lanes of one warp (or of one asynchronous copy).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// The number of lane 0 of the warp, or of the copies of lane 0.
    pub first: u32,
    /// The lanes.
    pub lanes: u32,
    /// When.
    pub stamp: u32,
    /// By which instruction.
    pub site: u32,
}

impl Entry {
    /// An access of one accessor.
    pub fn single(who: u32, stamp: u32, site: u32) -> Self {
        Self {
            first: who & !31,
            lanes: 1 << (who & 31),
            stamp,
            site,
        }
    }
}

/// How many unordered accesses a word remembers: those of all warps of a block. Beyond it only one in eight is remembered, in
/// the place of another, chosen by where and when it was, so that over several words each accessor is remembered somewhere.
const MOST: usize = 32;

/// Sets of accesses, by number.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sets {
    all: Vec<Vec<Entry>>,
    free: Vec<u32>,
}

impl Sets {
    fn make(&mut self) -> u32 {
        if let Some(number) = self.free.pop() {
            return number;
        }
        self.all.push(Vec::new());
        self.all.len() as u32 - 1
    }
}

/// The last writes of each cell.
#[derive(Clone, Debug)]
pub(crate) struct Track {
    /// When; 0 for never.
    pub stamp: Vec<u32>,
    /// Who, or a set.
    pub who: Vec<u32>,
    /// By which instruction.
    pub site: Vec<u32>,
    /// How many cells have a set.
    sets: u32,
}

impl Track {
    /// No accesses yet.
    pub fn new(cells: usize) -> Self {
        Self {
            stamp: vec![0; cells],
            who: vec![0; cells],
            site: vec![0; cells],
            sets: 0,
        }
    }

    /// The accesses of a cell.
    pub fn entries<'a>(&'a self, cell: usize, sets: &'a Sets, single: &'a mut Entry) -> &'a [Entry] {
        let (who, stamp) = (self.who[cell], self.stamp[cell]);
        if who & SET != 0 {
            return &sets.all[(who & !SET) as usize];
        }
        if stamp == 0 {
            return &[];
        }
        *single = Entry::single(who, stamp, self.site[cell]);
        std::slice::from_ref(single)
    }

    /// Forgets a cell.
    pub fn clear(&mut self, cell: usize, sets: &mut Sets) {
        if self.who[cell] & SET != 0 {
            let number = self.who[cell] & !SET;
            sets.all[number as usize].clear();
            sets.free.push(number);
            self.sets -= 1;
        }
        self.who[cell] = 0;
        self.stamp[cell] = 0;
    }

    /// One access is all that matters of a cell.
    pub fn put(&mut self, cell: usize, entry: Entry, sets: &mut Sets) {
        if entry.lanes.is_power_of_two() {
            self.clear(cell, sets);
            self.who[cell] = entry.first + entry.lanes.trailing_zeros();
        } else {
            let number = self.set_of(cell, sets);
            sets.all[number].clear();
            sets.all[number].push(entry);
        }
        self.stamp[cell] = entry.stamp;
        self.site[cell] = entry.site;
    }

    /// The set of a cell, made of what it holds.
    fn set_of(&mut self, cell: usize, sets: &mut Sets) -> usize {
        if self.who[cell] & SET == 0 {
            let number = sets.make();
            if self.stamp[cell] != 0 {
                let entry = Entry::single(self.who[cell], self.stamp[cell], self.site[cell]);
                sets.all[number as usize].push(entry);
            }
            self.who[cell] = SET | number;
            self.sets += 1;
        }
        (self.who[cell] & !SET) as usize
    }

    /// Adds an access beside those that `keep` says still matter.
    pub fn add(&mut self, cell: usize, entry: Entry, sets: &mut Sets, keep: impl Fn(&Entry) -> bool) {
        let number = self.set_of(cell, sets);
        let set = &mut sets.all[number];
        self.stamp[cell] = entry.stamp;
        self.site[cell] = entry.site;
        if let Some(last) = set.last_mut()
            && (last.first, last.lanes) == (entry.first, entry.lanes)
        {
            *last = entry;
            return;
        }
        if set.len() >= MOST {
            let dice = (entry.stamp as usize)
                .wrapping_mul(31)
                .wrapping_add(cell)
                .wrapping_mul(0x9e37_79b9)
                >> 7;
            if dice.is_multiple_of(8) {
                set[dice / 8 % MOST] = entry;
            }
            return;
        }
        let mut gone = false;
        for old in set.iter_mut().filter(|old| old.first == entry.first) {
            if (old.stamp, old.site) == (entry.stamp, entry.site) {
                old.lanes |= entry.lanes;
                return;
            }
            old.lanes &= !entry.lanes;
            gone |= old.lanes == 0;
        }
        if gone {
            set.retain(|old| old.lanes != 0);
        }
        if set.len() >= 8 && set.len().is_power_of_two() {
            set.retain(keep);
        }
        set.push(entry);
    }

    /// Changes the stamps of a cell.
    pub fn restamp(&mut self, cell: usize, sets: &mut Sets, stamp: impl Fn(u32, u32) -> u32) {
        if self.who[cell] & SET != 0 {
            let set = &mut sets.all[(self.who[cell] & !SET) as usize];
            for entry in set.iter_mut() {
                entry.stamp = stamp(entry.first + entry.lanes.trailing_zeros(), entry.stamp);
            }
            self.stamp[cell] = set.iter().map(|entry| entry.stamp).max().unwrap_or(0);
        } else if self.stamp[cell] != 0 {
            self.stamp[cell] = stamp(self.who[cell], self.stamp[cell]);
        }
    }

    /// Whether some cell has a set.
    pub fn has_sets(&self) -> bool {
        self.sets != 0
    }

    /// The same with cells of half the size.
    pub fn halve(&self, sets: &mut Sets) -> Self {
        let mut finer = Self::new(self.who.len() * 2);
        for cell in 0..finer.who.len() {
            let old = cell / 2;
            finer.stamp[cell] = self.stamp[old];
            finer.site[cell] = self.site[old];
            finer.who[cell] = self.who[old];
            if self.who[old] & SET != 0 {
                finer.sets += 1;
                if cell % 2 == 1 {
                    let number = sets.make();
                    sets.all[number as usize] = sets.all[(self.who[old] & !SET) as usize].clone();
                    finer.who[cell] = SET | number;
                }
            }
        }
        finer
    }
}
