//! Who read 32 neighbouring cells of memory: a record a request, for all the cells that it read there, and not one a cell.
//!
//! Lanes read in patterns: one after another, several at one place, over and over. A [`Mapping`] states such a pattern, so that
//! a record says exactly which lanes read which cell.

use super::clock::Clock;
use super::track::Entry;

/// How many unordered reads of a cell are remembered: those of all warps of a block. Beyond it only one in eight is, in the
/// place of another, chosen by where and when it was, so that over several cells each reader is remembered somewhere.
const MOST: u32 = 32;

/// Cells of a sector.
pub(super) const SECTOR: usize = 32;

/// Which lanes access which cells: elements of some cells lie one after another, and each is the matter of some lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mapping {
    /// The lanes of the first element.
    pub pattern: u32,
    /// How many lanes on those of the next element are.
    pub step: u32,
    /// log2 of the cells of an element.
    pub shift: u32,
    /// The first cell of the first element, counted from the sector's first.
    pub base: i32,
}

impl Mapping {
    /// The lanes that access a cell.
    #[inline]
    pub fn lanes(&self, cell: u32) -> u32 {
        let element = (cell as i32 - self.base) >> self.shift;
        self.pattern << (self.step * element as u32)
    }

    /// Whether each cell is the matter of one lane.
    pub fn single(&self) -> bool {
        self.pattern.is_power_of_two()
    }

    /// The same for one half of the sector, cut into cells of half the size.
    fn halve(self, high: bool) -> Self {
        if self.shift == Self::ONE_ELEMENT {
            return self;
        }
        Self {
            shift: self.shift + 1,
            base: (self.base - if high { 16 } else { 0 }) * 2,
            ..self
        }
    }

    /// The shift of a mapping with one element, from cell 0 on: its lanes access every cell.
    pub const ONE_ELEMENT: u32 = 31;
}

/// A request of lanes of one warp (or of one asynchronous copy) that read cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reading {
    /// The number of lane 0 of the warp, or of the copies of lane 0.
    pub first: u32,
    /// When.
    pub stamp: u32,
    /// By which instruction.
    pub site: u32,
    /// The cells, a bit each.
    pub cells: u32,
    /// The lanes of each.
    pub mapping: Mapping,
}

impl Reading {
    /// What it did to a cell.
    pub fn entry(&self, cell: u32) -> Entry {
        Entry {
            first: self.first,
            lanes: self.mapping.lanes(cell),
            stamp: self.stamp,
            site: self.site,
        }
    }
}

/// The reads of a sector that matter.
#[derive(Clone, Debug, Default)]
pub(super) struct Readers {
    /// No read is later.
    newest: u32,
    /// The class of all of them, if they are of one.
    class: u32,
    list: Vec<Reading>,
}

impl Readers {
    /// Whether all reads are before `common`, or are morally strong with any access of a class.
    #[inline]
    pub fn are_fine(&self, common: u32, class: u32) -> bool {
        self.newest < common || (class != 0 && class == self.class)
    }

    /// Whether any of these cells was read.
    #[inline]
    pub fn are_at(&self, cells: u32) -> bool {
        self.list.iter().any(|old| old.cells & cells != 0)
    }

    /// The reads.
    pub fn all(&self) -> &[Reading] {
        &self.list
    }

    /// Adds a read. What `clock` knows of those before it at these cells no longer matters: a write that is ordered after the
    /// new read is ordered after them. What is older than `settled` everybody knows.
    #[inline]
    pub fn add(
        &mut self,
        new: Reading,
        (class, settled): (u32, u32),
        clock: &Clock,
        knows: impl Fn(u32, &Entry) -> bool,
    ) {
        if self.newest < settled {
            self.list.clear();
        }
        self.note(&new, class);
        let again = |old: &&mut Reading| (old.first, old.cells, old.mapping) == (new.first, new.cells, new.mapping);
        if let Some(old) = self.list.iter_mut().find(again) {
            *old = new;
            return;
        }
        self.add_first(new, clock, knows);
    }

    fn note(&mut self, new: &Reading, class: u32) {
        if self.list.is_empty() {
            self.class = class;
        } else if self.class != class {
            self.class = 0;
        }
        self.newest = self.newest.max(new.stamp);
    }

    /// Adds a read that is not there yet.
    fn add_first(&mut self, new: Reading, clock: &Clock, knows: impl Fn(u32, &Entry) -> bool) {
        let (mut at, mut others) = (0, 0);
        while let Some(old) = self.list.get_mut(at) {
            if old.cells & new.cells != 0 || old.site == new.site {
                if (old.first, old.mapping) == (new.first, new.mapping) {
                    let same = (old.stamp, old.site) == (new.stamp, new.site);
                    if same || old.cells == new.cells {
                        *old = Reading {
                            cells: old.cells | new.cells,
                            ..new
                        };
                        return;
                    }
                    old.cells &= !new.cells;
                } else if clock.knows_quickly(old.first, old.stamp) {
                    old.cells &= !new.cells;
                }
                if old.cells == 0 {
                    self.list.swap_remove(at);
                    continue;
                }
                others += u32::from(old.cells & new.cells != 0);
            }
            at += 1;
        }
        if others >= MOST {
            self.take_a_place(new);
            return;
        }
        if others >= 8 && others.is_power_of_two() {
            self.drop_at(new.cells, |cell, old| knows(new.mapping.lanes(cell), old));
        }
        self.list.push(new);
    }

    /// One of those that read these cells is forgotten for the new read, if the dice say so.
    fn take_a_place(&mut self, new: Reading) {
        let dice = (new.stamp.wrapping_mul(31))
            .wrapping_add(new.first / 32)
            .wrapping_add(new.cells.trailing_zeros())
            .wrapping_mul(0x9e37_79b9)
            >> 7;
        if !dice.is_multiple_of(8) {
            return;
        }
        let meeting = self.list.iter_mut().filter(|old| old.cells & new.cells != 0);
        if let Some(old) = meeting.into_iter().nth((dice / 8 % MOST) as usize) {
            old.cells &= !new.cells;
            self.list.push(new);
        }
    }

    /// A non-coherent read: who read a cell last is all that matters, for any write is at fault.
    pub fn put(&mut self, new: Reading) {
        self.note(&new, 0);
        let same = |old: &&mut Reading| old.mapping == new.mapping && old.cells == new.cells;
        if let Some(old) = self.list.iter_mut().find(same) {
            *old = new;
            return;
        }
        self.forget(new.cells);
        self.note(&new, 0);
        self.list.push(new);
    }

    /// Forgets the reads of cells.
    #[inline]
    pub fn forget(&mut self, cells: u32) {
        if self.list.is_empty() {
            return;
        }
        self.list.iter_mut().for_each(|old| old.cells &= !cells);
        self.tidy();
    }

    /// Forgets the reads of cells that `known` picks.
    fn drop_at(&mut self, cells: u32, known: impl Fn(u32, &Entry) -> bool) {
        for old in &mut self.list {
            for cell in super::super::place::each(old.cells & cells) {
                if known(cell as u32, &old.entry(cell as u32)) {
                    old.cells &= !(1 << cell);
                }
            }
        }
        self.tidy();
    }

    fn tidy(&mut self) {
        self.list.retain(|old| old.cells != 0);
        if self.list.is_empty() {
            self.newest = 0;
        }
    }

    /// Changes the stamps of cells.
    pub fn restamp(&mut self, cells: u32, stamp: impl Fn(u32, u32) -> u32) {
        for at in 0..self.list.len() {
            let old = self.list[at];
            let here = old.cells & cells;
            if here == 0 {
                continue;
            }
            let who = old.first + old.mapping.lanes(here.trailing_zeros()).trailing_zeros();
            let changed = stamp(who, old.stamp);
            if changed == old.stamp {
                continue;
            }
            self.list[at] = Reading {
                stamp: changed,
                cells: here,
                ..old
            };
            if old.cells != here {
                let cells = old.cells & !here;
                self.list.push(Reading { cells, ..old });
            }
        }
        self.newest = self.list.iter().map(|old| old.stamp).max().unwrap_or(0);
    }

    /// The same for one half of the sector, cut into cells of half the size.
    pub fn halve(&self, high: bool) -> Self {
        let half = |old: &Reading| Reading {
            cells: double(old.cells >> if high { 16 } else { 0 }),
            mapping: old.mapping.halve(high),
            ..*old
        };
        let list: Vec<Reading> = self.list.iter().map(half).filter(|old| old.cells != 0).collect();
        Self {
            newest: self.newest,
            class: self.class,
            list,
        }
    }
}

/// Each of the low 16 bits, twice.
pub(super) fn double(bits: u32) -> u32 {
    (0..16).fold(0, |wide, bit| wide | ((bits >> bit & 1) * 3) << (2 * bit))
}
