//! The shadow of an area: for each cell of four bytes (finer where accesses are) the last writes and reads. A request of a warp
//! is checked against it and recorded in it, run by run; the common case is a compare or two a cell.

use super::super::access::Order;
use super::super::wide::{self, Known};
use super::clock::Clock;
use super::site::{Site, Sites};
use super::track::{Entry, Sets, Track};
use super::view::{AGENT, Numbering, PENDING};

/// Bytes of a page of shadow.
const PAGE: usize = 4096;

/// Lanes whose accesses lie one after another, or several lanes at one place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    /// Where the first lane's access begins.
    pub offset: u32,
    /// Bytes of a lane.
    pub span: u32,
    /// The first lane.
    pub lane: u32,
    /// How many lanes, one after another.
    pub count: u32,
    /// The lanes, where several are at one place; `count` is 1 then.
    pub lanes: u32,
}

/// An access that is checked and recorded: who, when, how.
#[derive(Debug)]
pub(crate) struct Visit<'a> {
    /// What the accessor knows.
    pub clock: &'a Clock,
    /// Numbers of threads.
    pub ids: Numbering,
    /// What instructions do.
    pub sites: &'a Sites,
    /// This instruction.
    pub site: u32,
    /// When.
    pub stamp: u32,
    /// What records call lane 0.
    pub mark: u32,
}

/// Two accesses that collide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Clash {
    /// The lane of the later one.
    pub lane: u32,
    /// The earlier one.
    pub who: u32,
    /// Its instruction.
    pub site: u32,
    /// Where.
    pub offset: u32,
    /// Whether the matter is a non-coherent read of what the kernel writes.
    pub non_coherent: bool,
}

/// The cells of a page.
#[derive(Clone, Debug)]
struct Page {
    /// log2 of the bytes of a cell.
    shift: u32,
    writes: Track,
    reads: Track,
    /// Cells that a non-coherent load has read in this launch.
    non_coherent: Option<Box<[bool]>>,
}

/// The shadow of an area.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shadow {
    pages: Vec<Option<Box<Page>>>,
    sets: Sets,
    /// Whether asynchronous operations, or threads of other blocks where it is shared memory, have been here.
    pub agents: bool,
}

/// A stretch of cells in a page: the first, how many, the lane of the first, and log2 of the cells of a lane.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    first: usize,
    cells: usize,
    lane: u32,
    lane_shift: u32,
    lanes: u32,
}

impl Stretch {
    fn lane_of(&self, i: usize) -> u32 {
        self.lane + (i as u32 >> self.lane_shift)
    }

    fn lanes_of(&self, i: usize) -> u32 {
        if self.lanes != 0 {
            self.lanes
        } else {
            1 << self.lane_of(i)
        }
    }
}

impl Visit<'_> {
    fn site(&self) -> &Site {
        self.sites.get(self.site)
    }

    fn entry(&self, lanes: u32) -> Entry {
        Entry {
            first: self.mark,
            lanes,
            stamp: self.stamp,
            site: self.site,
        }
    }

    /// Whether these lanes know an earlier access.
    fn knows(&self, lanes: u32, entry: &Entry) -> bool {
        if self.clock.knows_quickly(entry.first, entry.stamp) {
            return true;
        }
        let mut others = entry.lanes;
        while others != 0 {
            let who = entry.first + others.trailing_zeros();
            others &= others - 1;
            if !super::super::place::each(lanes).all(|lane| self.clock.knows(lane as u32, who, entry.stamp, self.ids)) {
                return false;
            }
        }
        true
    }

    /// Whether two accesses are morally strong: both strong, of one size, and each in the other's scope.
    fn excuses(&self, lane: u32, entry: &Entry) -> bool {
        let (mine, other) = (self.site(), self.sites.get(entry.site));
        mine.strong() && other.strong() && mine.bytes == other.bytes && {
            let (me, it) = (self.ids.block_of(self.mark + lane), self.ids.block_of(entry.first));
            let least = mine.scope.min(other.scope);
            super::within(least, me, it, self.ids)
        }
    }

    /// The first access of a cell that is neither known nor excused.
    fn clash(&self, lanes: u32, entries: &[Entry]) -> Option<(u32, Entry)> {
        let lane = lanes.trailing_zeros();
        let bad = entries
            .iter()
            .find(|entry| !self.knows(lanes, entry) && !self.excuses(lane, entry))?;
        let mut whos = super::super::place::each(bad.lanes).map(|other| bad.first + other as u32);
        let who = whos.find(|&who| !self.clock.knows(lane, who, bad.stamp, self.ids));
        Some((who.unwrap_or(bad.first + bad.lanes.trailing_zeros()), *bad))
    }

    /// Whether all cells of a stretch are known by the numbers alone.
    #[inline]
    fn all_known(&self, track: &Track, s: &Stretch) -> bool {
        let stamps = &track.stamp[s.first..s.first + s.cells];
        let whos = &track.who[s.first..s.first + s.cells];
        let own = if s.lanes == 0 { self.clock.first + s.lane } else { AGENT };
        let (ticks, block, warp) = (self.clock.known, self.clock.block, self.clock.first);
        wide::all_known(
            stamps,
            whos,
            &Known {
                ticks,
                block,
                warp,
                own,
                shift: s.lane_shift,
            },
        )
    }
}

impl Page {
    fn new(shift: u32) -> Self {
        let cells = PAGE >> shift;
        Self {
            shift,
            writes: Track::new(cells),
            reads: Track::new(cells),
            non_coherent: None,
        }
    }

    fn refine(&mut self, shift: u32, sets: &mut Sets) {
        while self.shift > shift {
            self.writes = self.writes.halve(sets);
            self.reads = self.reads.halve(sets);
            self.shift -= 1;
            if let Some(old) = self.non_coherent.take() {
                self.non_coherent = Some(old.iter().flat_map(|&read| [read, read]).collect());
            }
        }
    }

    fn check(&self, track: &Track, sets: &Sets, v: &Visit, s: &Stretch) -> Result<(), Clash> {
        if v.all_known(track, s) {
            return Ok(());
        }
        let mut single = Entry::single(0, 0, 0);
        for i in 0..s.cells {
            let cell = s.first + i;
            if let Some((who, entry)) = v.clash(s.lanes_of(i), track.entries(cell, sets, &mut single)) {
                let offset = (cell << self.shift) as u32;
                return Err(Clash {
                    lane: s.lane_of(i),
                    who,
                    site: entry.site,
                    offset,
                    non_coherent: false,
                });
            }
        }
        Ok(())
    }

    fn read(&mut self, sets: &mut Sets, v: &Visit, s: &Stretch) -> Result<(), Clash> {
        if v.site().order == Order::NonCoherent {
            return self.read_non_coherent(sets, v, s);
        }
        let clash = self.check(&self.writes, sets, v, s);
        if s.lanes == 0 && v.all_known(&self.reads, s) {
            record(&mut self.reads, v, s);
            return clash;
        }
        let mut single = Entry::single(0, 0, 0);
        let (grid, block, warp) = v.clock.known;
        let newest = grid.max(block).max(warp);
        for i in 0..s.cells {
            let (cell, lanes) = (s.first + i, s.lanes_of(i));
            // What is later than all that the numbers say is hardly ever known by other means: then no entry is looked at.
            let recent = self.reads.is_set(cell) && self.reads.stamp[cell] >= newest;
            let old = self.reads.entries(cell, sets, &mut single);
            if !recent && old.iter().all(|old| v.knows(lanes, old)) {
                self.reads.put(cell, v.entry(lanes), sets);
            } else {
                self.reads.add(cell, v.entry(lanes), sets, |old| !v.knows(lanes, old));
            }
        }
        clash
    }

    fn read_non_coherent(&mut self, sets: &mut Sets, v: &Visit, s: &Stretch) -> Result<(), Clash> {
        let cells = s.first..s.first + s.cells;
        let written = self.writes.stamp[cells.clone()].iter().position(|&stamp| stamp != 0);
        let bits = self
            .non_coherent
            .get_or_insert_with(|| vec![false; PAGE >> self.shift].into_boxed_slice());
        bits[cells].fill(true);
        for i in 0..s.cells {
            self.reads.put(s.first + i, v.entry(s.lanes_of(i)), sets);
        }
        written.map_or(Ok(()), |i| Err(self.non_coherent_clash(&self.writes, sets, s, i)))
    }

    fn non_coherent_clash(&self, track: &Track, sets: &Sets, s: &Stretch, i: usize) -> Clash {
        let mut single = Entry::single(0, 0, 0);
        let entry = track.entries(s.first + i, sets, &mut single).first().copied();
        let entry = entry.unwrap_or(Entry::single(0, 0, track.site[s.first + i]));
        Clash {
            lane: s.lane_of(i),
            who: entry.first + entry.lanes.trailing_zeros(),
            site: entry.site,
            offset: ((s.first + i) << self.shift) as u32,
            non_coherent: true,
        }
    }

    fn check_write(&self, sets: &Sets, v: &Visit, s: &Stretch) -> Result<(), Clash> {
        if let Some(bits) = &self.non_coherent
            && let Some(i) = bits[s.first..s.first + s.cells].iter().position(|&read| read)
        {
            return Err(self.non_coherent_clash(&self.reads, sets, s, i));
        }
        self.check(&self.writes, sets, v, s)?;
        self.check(&self.reads, sets, v, s)
    }

    /// Records a write; true where another lane of the same request wrote a cell too.
    fn write(&mut self, sets: &mut Sets, v: &Visit, s: &Stretch) -> bool {
        let strong = v.site().strong();
        let known = !strong || (v.all_known(&self.writes, s) && v.all_known(&self.reads, s));
        let mut twice = s.lanes != 0;
        if known && !self.writes.has_sets() && !self.reads.has_sets() {
            let whos = &self.writes.who[s.first..s.first + s.cells];
            let stamps = &self.writes.stamp[s.first..s.first + s.cells];
            for (i, (&who, &stamp)) in whos.iter().zip(stamps).enumerate() {
                let other = who.wrapping_sub(v.mark) < 32 && who != v.mark + s.lane_of(i);
                twice |= other & (stamp == v.stamp);
            }
            record(&mut self.writes, v, s);
            self.reads.stamp[s.first..s.first + s.cells].fill(0);
            self.reads.who[s.first..s.first + s.cells].fill(0);
            return twice;
        }
        for i in 0..s.cells {
            twice |= self.write_cell(s.first + i, sets, v, s.lanes_of(i), strong);
        }
        twice
    }

    fn write_cell(&mut self, cell: usize, sets: &mut Sets, v: &Visit, lanes: u32, strong: bool) -> bool {
        let (mut single, entry) = (Entry::single(0, 0, 0), v.entry(lanes));
        let olds = self.writes.entries(cell, sets, &mut single);
        let twice = olds
            .iter()
            .any(|old| old.first == v.mark && old.stamp == v.stamp && old.lanes & !lanes != 0);
        if strong && olds.iter().any(|old| !v.knows(lanes, old)) {
            self.writes.add(cell, entry, sets, |old| !v.knows(lanes, old));
        } else {
            self.writes.put(cell, entry, sets);
        }
        if strong {
            self.reads.keep(cell, sets, |old| !v.knows(lanes, old));
        } else {
            self.reads.clear(cell, sets);
        }
        twice
    }
}

/// One lane a cell was there last.
#[inline]
fn record(track: &mut Track, v: &Visit, s: &Stretch) {
    let cells = s.first..s.first + s.cells;
    track.stamp[cells.clone()].fill(v.stamp);
    track.site[cells.clone()].fill(v.site);
    wide::number(&mut track.who[cells], v.mark + s.lane, s.lane_shift);
}

impl Shadow {
    /// Checks a read and records it.
    pub fn read(&mut self, v: &Visit, run: Run) -> Result<(), Clash> {
        self.each_stretch(v.site().bytes, run, |page, sets, s| page.read(sets, v, s))
    }

    /// Checks a write.
    pub fn check_write(&mut self, v: &Visit, run: Run) -> Result<(), Clash> {
        self.each_stretch(v.site().bytes, run, |page, sets, s| page.check_write(sets, v, s))
    }

    /// Records a write; true where another lane of the same request wrote there too.
    pub fn write(&mut self, v: &Visit, run: Run) -> bool {
        let mut twice = false;
        let never = self.each_stretch(v.site().bytes, run, |page, sets, s| {
            twice |= page.write(sets, v, s);
            Ok(())
        });
        debug_assert!(never.is_ok(), "recording does not fail");
        twice
    }

    /// Who wrote a place last, when, by which instruction.
    pub fn last_write(&self, offset: u32) -> Option<(u32, u32, u32)> {
        let page = self.pages.get(offset as usize / PAGE)?.as_ref()?;
        let cell = (offset as usize % PAGE) >> page.shift;
        let mut single = Entry::single(0, 0, 0);
        let last = page.writes.entries(cell, &self.sets, &mut single).last()?;
        Some((last.first + last.lanes.trailing_zeros(), last.stamp, last.site))
    }

    /// An asynchronous operation has read or written a place: what was pending is stamped.
    pub fn complete(&mut self, offset: u32, bytes: u32, mark: u32, stamp: u32, write: bool) {
        self.restamp(offset, bytes, write, |who, old| {
            if who == mark && old == PENDING { stamp } else { old }
        });
    }

    /// The last writes of a place become pending for ever, or are forgotten.
    pub fn pend(&mut self, offset: u32, bytes: u32, pending: bool) {
        self.restamp(offset, bytes, true, |_, _| if pending { PENDING } else { 0 });
    }

    fn restamp(&mut self, offset: u32, bytes: u32, write: bool, stamp: impl Fn(u32, u32) -> u32) {
        let run = Run {
            offset,
            span: bytes,
            lane: 0,
            count: 1,
            lanes: 0,
        };
        let done = self.each_stretch(4, run, |page, sets, s| {
            let track = if write { &mut page.writes } else { &mut page.reads };
            (s.first..s.first + s.cells).for_each(|cell| track.restamp(cell, sets, &stamp));
            Ok(())
        });
        debug_assert!(done.is_ok(), "stamping does not fail");
    }

    /// Accesses by accessors that `of` picks and `known` does not know: the first of them, with its offset.
    pub fn find(&self, of: impl Fn(&Entry) -> bool) -> Option<(Entry, u32)> {
        for (number, page) in self.pages.iter().enumerate() {
            let Some(page) = page else { continue };
            let mut single = Entry::single(0, 0, 0);
            for track in [&page.writes, &page.reads] {
                for cell in 0..track.who.len() {
                    if let Some(entry) = track
                        .entries(cell, &self.sets, &mut single)
                        .iter()
                        .find(|entry| of(entry))
                    {
                        return Some((*entry, (number * PAGE + (cell << page.shift)) as u32));
                    }
                }
            }
        }
        None
    }

    fn each_stretch(
        &mut self,
        bytes: u32,
        run: Run,
        mut f: impl FnMut(&mut Page, &mut Sets, &Stretch) -> Result<(), Clash>,
    ) -> Result<(), Clash> {
        let fine = bytes.min(4).trailing_zeros();
        let (total, mut done) = ((run.span * run.count) as usize, 0);
        let mut first = Ok(());
        while done < total {
            let at = run.offset as usize + done;
            let (number, inside) = (at / PAGE, at % PAGE);
            let here = (total - done).min(PAGE - inside);
            let page = page(&mut self.pages, number, fine);
            if page.shift > fine {
                page.refine(fine, &mut self.sets);
            }
            let lane_shift = if run.count == 1 {
                31
            } else {
                (run.span >> page.shift).trailing_zeros()
            };
            let stretch = Stretch {
                first: inside >> page.shift,
                cells: here >> page.shift,
                lane: run.lane + if run.count == 1 { 0 } else { done as u32 / run.span },
                lane_shift,
                lanes: run.lanes,
            };
            let result = f(page, &mut self.sets, &stretch).map_err(|clash| Clash {
                offset: clash.offset + (number * PAGE) as u32,
                ..clash
            });
            first = first.and(result);
            done += here;
        }
        first
    }
}

fn page(pages: &mut Vec<Option<Box<Page>>>, number: usize, shift: u32) -> &mut Page {
    if pages.len() <= number {
        pages.resize_with(number + 1, || None);
    }
    pages[number].get_or_insert_with(|| Box::new(Page::new(shift)))
}
