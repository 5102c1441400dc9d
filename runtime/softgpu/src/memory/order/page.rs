//! The shadow of a page: for each cell of four bytes (finer where accesses are) the last writes, and for each sector of 32
//! cells the reads that matter. A sector also knows how late its latest accesses are: mostly that alone says that whoever comes
//! knows them all.

use super::super::access::Order;
use super::super::place::each;
use super::super::wide;
use super::readers::{Mapping, Readers, SECTOR, double};
use super::shadow::{Clash, Visit};
use super::track::{Entry, Sets, Track};
use std::ops::Range;

/// Bytes of a page of shadow.
pub(super) const PAGE: usize = 4096;

/// What is known of 32 cells together.
#[derive(Clone, Debug, Default)]
struct Sector {
    /// No write is later.
    newest_write: u32,
    /// The class of all writes, if they are of one.
    class: u32,
    /// Cells that a non-coherent load has read in this launch.
    non_coherent: u32,
    readers: Readers,
}

/// The cells of a page.
#[derive(Clone, Debug)]
pub(super) struct Page {
    /// log2 of the bytes of a cell.
    pub shift: u32,
    pub writes: Track,
    sectors: Vec<Sector>,
}

/// A stretch of cells in a page that a request accesses.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stretch {
    /// The first cell.
    pub first: usize,
    /// How many.
    pub cells: usize,
    /// Cells of the request before the first.
    pub skipped: u32,
    /// log2 of the cells of an element.
    pub shift: u32,
    /// The lanes of the request's first element.
    pub pattern: u32,
    /// How many lanes on those of the next element are.
    pub step: u32,
}

impl Stretch {
    #[inline]
    pub fn lanes_of(&self, i: usize) -> u32 {
        self.pattern << (self.step * ((i as u32 + self.skipped) >> self.shift))
    }

    fn lane_of(&self, i: usize) -> u32 {
        self.lanes_of(i).trailing_zeros()
    }

    /// Whether each cell is the matter of one lane, lane after lane.
    #[inline]
    pub fn lane_by_lane(&self) -> bool {
        self.pattern.is_power_of_two() && (self.step == 1 || self.shift == Mapping::ONE_ELEMENT)
    }

    /// The lane of the first cell.
    pub fn first_lane(&self) -> u32 {
        self.lane_of(0)
    }

    /// The sectors that it touches.
    #[inline]
    fn range(&self) -> std::ops::Range<usize> {
        self.first / SECTOR..(self.first + self.cells).div_ceil(SECTOR)
    }

    /// Its cells in a sector.
    #[inline]
    fn cells_in(&self, sector: usize) -> u32 {
        let from = self.first.max(sector * SECTOR) - sector * SECTOR;
        let to = (self.first + self.cells - sector * SECTOR).min(SECTOR);
        ones(to - from) << from
    }

    /// Its lanes, as a sector counts cells.
    #[inline]
    fn mapping(&self, sector: usize) -> Mapping {
        let whole = self.shift == Mapping::ONE_ELEMENT;
        let base = self.first as i32 - self.skipped as i32 - (sector * SECTOR) as i32;
        Mapping {
            pattern: self.pattern,
            step: self.step,
            shift: self.shift,
            base: if whole { 0 } else { base },
        }
    }
}

impl Page {
    pub fn new(shift: u32) -> Self {
        let cells = PAGE >> shift;
        Self {
            shift,
            writes: Track::new(cells),
            sectors: vec![Sector::default(); cells / SECTOR],
        }
    }

    /// Cuts the cells until they are of `1 << shift` bytes.
    pub fn refine(&mut self, shift: u32, sets: &mut Sets) {
        while self.shift > shift {
            self.writes = self.writes.halve(sets);
            let halves = self
                .sectors
                .iter()
                .flat_map(|sector| [sector.halve(false), sector.halve(true)]);
            self.sectors = halves.collect();
            self.shift -= 1;
        }
    }

    fn check_writes(&self, sets: &Sets, v: &Visit, s: &Stretch) -> Result<(), Clash> {
        if self.sectors[s.range()].iter().all(|sector| sector.writes_are_fine(v)) || v.all_known(&self.writes, s) {
            return Ok(());
        }
        let (mut single, mut last) = (Entry::single(0, 0, 0), None);
        for i in 0..s.cells {
            let (cell, lanes) = (s.first + i, s.lanes_of(i));
            // Cells of one element are mostly the matter of one write.
            let same = Some((
                lanes,
                self.writes.who[cell],
                self.writes.stamp[cell],
                self.writes.site[cell],
            ));
            if std::mem::replace(&mut last, same) == same {
                continue;
            }
            if let Some((who, entry)) = v.clash(lanes, self.writes.entries(cell, sets, &mut single)) {
                return Err(self.clash(s, i, who, entry));
            }
        }
        Ok(())
    }

    fn clash(&self, s: &Stretch, i: usize, who: u32, entry: Entry) -> Clash {
        Clash {
            lane: s.lane_of(i),
            who,
            site: entry.site,
            offset: ((s.first + i) << self.shift) as u32,
            non_coherent: false,
        }
    }

    /// Checks a read and records it.
    pub fn read(&mut self, sets: &Sets, v: &Visit, s: &Stretch) -> Result<(), Clash> {
        if v.site().order == Order::NonCoherent {
            return self.read_non_coherent(sets, v, s);
        }
        let clash = self.check_writes(sets, v, s);
        for number in s.range() {
            let reading = v.reading(s.cells_in(number), s.mapping(number));
            let readers = &mut self.sectors[number].readers;
            readers.add(reading, (v.class, v.settled), v.clock, |lanes, old| v.knows(lanes, old));
        }
        clash
    }

    fn read_non_coherent(&mut self, sets: &Sets, v: &Visit, s: &Stretch) -> Result<(), Clash> {
        let mut written = false;
        for number in s.range() {
            let (sector, cells) = (&self.sectors[number], s.cells_in(number));
            // One reader a cell is enough: any write is at fault.
            if sector.non_coherent & cells == cells && sector.newest_write == 0 {
                continue;
            }
            let sector = &mut self.sectors[number];
            sector.non_coherent |= cells;
            sector.readers.put(v.reading(cells, s.mapping(number)));
            written |= sector.newest_write != 0;
        }
        let stamps = &self.writes.stamp[s.first..s.first + s.cells];
        let Some(i) = stamps.iter().position(|&stamp| written && stamp != 0) else {
            return Ok(());
        };
        let mut single = Entry::single(0, 0, 0);
        let entries = self.writes.entries(s.first + i, sets, &mut single);
        let entry = entries.first().copied().unwrap_or(Entry::single(0, 0, 0));
        let who = entry.first + entry.lanes.trailing_zeros();
        Err(Clash {
            non_coherent: true,
            ..self.clash(s, i, who, entry)
        })
    }

    /// Checks a write.
    pub fn check_write(&self, sets: &Sets, v: &Visit, s: &Stretch) -> Result<(), Clash> {
        for number in s.range() {
            let read = self.sectors[number].non_coherent & s.cells_in(number);
            if read != 0 {
                return Err(self.non_coherent_clash(s, number, read.trailing_zeros()));
            }
        }
        self.check_writes(sets, v, s)?;
        for number in s.range() {
            if !self.sectors[number].readers.are_fine(v.common, v.class) {
                self.check_readers(v, s, number)?;
            }
        }
        Ok(())
    }

    fn non_coherent_clash(&self, s: &Stretch, number: usize, cell: u32) -> Clash {
        let i = number * SECTOR + cell as usize - s.first;
        let readings = self.sectors[number].readers.all();
        let reading = readings.iter().find(|reading| reading.cells & 1 << cell != 0);
        let entry = reading.map_or(Entry::single(0, 0, 0), |reading| reading.entry(cell));
        let who = entry.first + entry.lanes.trailing_zeros();
        Clash {
            non_coherent: true,
            ..self.clash(s, i, who, entry)
        }
    }

    /// Whether a write comes after the reads of a sector: the collision at the lowest cell.
    fn check_readers(&self, v: &Visit, s: &Stretch, number: usize) -> Result<(), Clash> {
        let (cells, mapping) = (s.cells_in(number), s.mapping(number));
        let mut lowest: Option<(usize, u32, Entry)> = None;
        for reading in self.sectors[number].readers.all() {
            let own = reading.first == v.clock.first && reading.mapping == mapping && mapping.single();
            let met = reading.cells & cells;
            let excused = || v.class != 0 && v.class == v.sites.get(reading.site).class();
            if met == 0 || own || v.clock.knows_quickly(reading.first, reading.stamp) || excused() {
                continue;
            }
            for cell in each(met) {
                let lanes = mapping.lanes(cell as u32);
                if lowest.is_none_or(|(at, _, _)| cell < at)
                    && let Some((who, entry)) = v.clash(lanes, &[reading.entry(cell as u32)])
                {
                    lowest = Some((cell, who, entry));
                }
            }
        }
        match lowest {
            None => Ok(()),
            Some((cell, who, entry)) => Err(self.clash(s, number * SECTOR + cell - s.first, who, entry)),
        }
    }

    /// Records a write.
    pub fn write(&mut self, sets: &mut Sets, v: &Visit, s: &Stretch) {
        let strong = v.site().strong();
        for number in s.range() {
            let (sector, cells) = (&mut self.sectors[number], s.cells_in(number));
            sector.note_write(v);
            // What a strong write knows of is left: a later one, that it is not ordered with, may race with it.
            if !strong {
                sector.readers.forget(cells);
            }
        }
        let plain = s.lane_by_lane() && !self.writes.has_sets();
        if plain && (!strong || v.all_known(&self.writes, s)) {
            record(&mut self.writes, v, s);
            return;
        }
        for i in 0..s.cells {
            self.write_cell(s.first + i, sets, v, s.lanes_of(i), strong);
        }
    }

    fn write_cell(&mut self, cell: usize, sets: &mut Sets, v: &Visit, lanes: u32, strong: bool) {
        let (mut single, entry) = (Entry::single(0, 0, 0), v.entry(lanes));
        let olds = self.writes.entries(cell, sets, &mut single);
        if strong && olds.iter().any(|old| !v.knows(lanes, old)) {
            self.writes.add(cell, entry, sets, |old| !v.knows(lanes, old));
        } else {
            self.writes.put(cell, entry, sets);
        }
    }

    /// Whether a write of an element, by one lane, is in order by a look at what is at hand. False says nothing.
    #[inline]
    pub fn element_is_fine(&self, v: &Visit, cells: Range<usize>, who: u32) -> bool {
        let sector = &self.sectors[cells.start / SECTOR];
        let here = ones(cells.len()) << (cells.start % SECTOR);
        let last = self.writes.stamp[cells.clone()].iter().zip(&self.writes.who[cells]);
        let known = last.fold(true, |known, (&stamp, &by)| known & ((stamp < v.common) | (by == who)));
        let read = !sector.readers.are_fine(v.common, v.class) && sector.readers.are_at(here);
        known && !read && sector.non_coherent == 0 && !self.writes.has_sets()
    }

    /// Records such a write.
    #[inline]
    pub fn write_element(&mut self, v: &Visit, cells: Range<usize>, who: u32, weak: bool) {
        let sector = &mut self.sectors[cells.start / SECTOR];
        sector.note_write(v);
        if weak {
            sector.readers.forget(ones(cells.len()) << (cells.start % SECTOR));
        }
        self.writes.stamp[cells.clone()].fill(v.stamp);
        self.writes.who[cells.clone()].fill(who);
        self.writes.site[cells].fill(v.site);
    }

    /// Changes the stamps of the writes, or of the reads, of a stretch.
    pub fn restamp(&mut self, sets: &mut Sets, s: &Stretch, write: bool, stamp: &impl Fn(u32, u32) -> u32) {
        if write {
            (s.first..s.first + s.cells).for_each(|cell| self.writes.restamp(cell, sets, stamp));
        }
        for number in s.range() {
            let sector = &mut self.sectors[number];
            if write {
                let stamps = &self.writes.stamp[number * SECTOR..(number + 1) * SECTOR];
                sector.newest_write = stamps.iter().copied().max().unwrap_or(0);
            } else {
                sector.readers.restamp(s.cells_in(number), stamp);
            }
        }
    }

    /// The first access that `of` picks, and its cell.
    pub fn find(&self, sets: &Sets, of: &impl Fn(&Entry) -> bool) -> Option<(Entry, usize)> {
        let mut single = Entry::single(0, 0, 0);
        for cell in 0..self.writes.who.len() {
            let entries = self.writes.entries(cell, sets, &mut single);
            if let Some(entry) = entries.iter().find(|entry| of(entry)) {
                return Some((*entry, cell));
            }
        }
        let sectors = self.sectors.iter().enumerate();
        let mut readings = sectors.flat_map(|(number, sector)| sector.readers.all().iter().map(move |r| (number, r)));
        readings.find_map(|(number, reading)| {
            let mut cells = each(reading.cells).map(|cell| (reading.entry(cell as u32), number * SECTOR + cell));
            cells.find(|(entry, _)| of(entry))
        })
    }
}

impl Sector {
    #[inline]
    fn note_write(&mut self, v: &Visit) {
        if self.newest_write == 0 {
            self.class = v.class;
        } else if self.class != v.class {
            self.class = 0;
        }
        self.newest_write = self.newest_write.max(v.stamp);
    }

    /// Whether all writes are before what the visitor knows of everybody, or are morally strong with what it does.
    #[inline]
    fn writes_are_fine(&self, v: &Visit) -> bool {
        self.newest_write < v.common || (v.class != 0 && v.class == self.class)
    }

    fn halve(&self, high: bool) -> Self {
        Self {
            newest_write: self.newest_write,
            class: self.class,
            non_coherent: double(self.non_coherent >> if high { 16 } else { 0 }),
            readers: self.readers.halve(high),
        }
    }
}

/// So many bits, from the lowest on.
fn ones(count: usize) -> u32 {
    u32::MAX >> (SECTOR - count)
}

/// One lane a cell was there last.
#[inline]
fn record(track: &mut Track, v: &Visit, s: &Stretch) {
    let cells = s.first..s.first + s.cells;
    if s.shift == Mapping::ONE_ELEMENT && s.cells <= 4 {
        for cell in cells {
            track.stamp[cell] = v.stamp;
            track.site[cell] = v.site;
            track.who[cell] = v.mark + s.first_lane();
        }
        return;
    }
    track.stamp[cells.clone()].fill(v.stamp);
    track.site[cells.clone()].fill(v.site);
    wide::number(&mut track.who[cells], v.mark + s.first_lane(), s.shift);
}
