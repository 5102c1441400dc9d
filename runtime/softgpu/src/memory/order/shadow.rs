//! The shadow of an area: who used it last, where. A request of a warp is checked against it and recorded in it, run by run;
//! the common case is a compare a sector.

use super::super::access::Scope;
use super::super::wide::{self, Known};
use super::clock::Clock;
use super::page::{PAGE, Page, Stretch};
use super::readers::{Mapping, Reading};
use super::site::{Site, Sites};
use super::track::{Entry, Sets, Track};
use super::view::{AGENT, Numbering, PENDING};

/// Bytes of a word.
const WORD: usize = 4;

/// Elements that lie one after another, each the matter of some lanes of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    /// Where the first element begins.
    pub offset: u32,
    /// Bytes of an element.
    pub span: u32,
    /// How many elements.
    pub count: u32,
    /// The lanes of the first.
    pub pattern: u32,
    /// How many lanes on those of the next are.
    pub step: u32,
}

impl Run {
    /// One element of some lanes.
    pub fn one(offset: u32, span: u32, pattern: u32) -> Self {
        Self {
            offset,
            span,
            count: 1,
            pattern,
            step: 0,
        }
    }
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
    /// The class of the instruction.
    pub class: u32,
    /// All threads that may have been in this area are known up to here.
    pub common: u32,
    /// And to all of them, up to here.
    pub settled: u32,
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

/// The shadow of an area.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shadow {
    pages: Vec<Option<Box<Page>>>,
    sets: Sets,
    /// Whether asynchronous operations, or threads of other blocks where it is shared memory, have been here.
    pub agents: bool,
}

impl Visit<'_> {
    /// The instruction.
    pub fn site(&self) -> &Site {
        self.sites.get(self.site)
    }

    /// A record of it.
    pub fn entry(&self, lanes: u32) -> Entry {
        Entry {
            first: self.mark,
            lanes,
            stamp: self.stamp,
            site: self.site,
        }
    }

    /// A record of it as a read of cells of a sector.
    #[inline]
    pub(super) fn reading(&self, cells: u32, mapping: Mapping) -> Reading {
        Reading {
            first: self.mark,
            stamp: self.stamp,
            site: self.site,
            cells,
            mapping,
        }
    }

    /// Whether these lanes know an earlier access.
    pub fn knows(&self, lanes: u32, entry: &Entry) -> bool {
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
        let least = mine.scope.min(other.scope);
        let alike = mine.strong() && other.strong() && mine.bytes == other.bytes;
        alike
            && (least >= Scope::Gpu || {
                let (me, it) = (self.ids.block_of(self.mark + lane), self.ids.block_of(entry.first));
                super::within(least, me, it, self.ids)
            })
    }

    /// The first access of a cell that is neither known nor excused.
    pub fn clash(&self, lanes: u32, entries: &[Entry]) -> Option<(u32, Entry)> {
        let lane = lanes.trailing_zeros();
        let bad = entries
            .iter()
            .find(|entry| !self.excuses(lane, entry) && !self.knows(lanes, entry))?;
        let mut whos = super::super::place::each(bad.lanes).map(|other| bad.first + other as u32);
        let who = whos.find(|&who| !self.clock.knows(lane, who, bad.stamp, self.ids));
        Some((who.unwrap_or(bad.first + bad.lanes.trailing_zeros()), *bad))
    }

    /// Whether all cells of a stretch are known by the numbers alone.
    #[inline]
    pub(super) fn all_known(&self, track: &Track, s: &Stretch) -> bool {
        let stamps = &track.stamp[s.first..s.first + s.cells];
        let whos = &track.who[s.first..s.first + s.cells];
        if s.cells <= 4 {
            let own = |i: usize, who: u32| s.lane_by_lane() && who == self.clock.first + s.lanes_of(i).trailing_zeros();
            let mut both = whos.iter().zip(stamps).enumerate();
            return both.all(|(i, (&who, &stamp))| own(i, who) || self.clock.knows_quickly(who, stamp));
        }
        let own = if s.lane_by_lane() {
            self.clock.first + s.first_lane()
        } else {
            AGENT
        };
        let (ticks, block, warp) = (self.clock.known, self.clock.block, self.clock.first);
        wide::all_known(
            stamps,
            whos,
            &Known {
                ticks,
                block,
                warp,
                own,
                shift: s.shift,
            },
        )
    }
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

    /// Records a write.
    pub fn write(&mut self, v: &Visit, run: Run) {
        let never = self.each_stretch(v.site().bytes, run, |page, sets, s| {
            page.write(sets, v, s);
            Ok(())
        });
        debug_assert!(never.is_ok(), "recording does not fail");
    }

    /// Checks and records writes of small elements by a lane each, if all are in order by a look at what is at hand; else it
    /// does nothing, and is false.
    pub fn write_elements(&mut self, v: &Visit, runs: &[Run]) -> bool {
        let (span, fine) = (runs[0].span as usize, WORD.trailing_zeros());
        let cells = span / WORD;
        if v.site().bytes < WORD as u32 || span > 4 * WORD {
            return false;
        }
        // Page, first cell, and thread of each element.
        let places = || {
            let each = |run: &Run| {
                let run = *run;
                (0..run.count)
                    .map(move |element| (run.offset + element * run.span, run.pattern << (run.step * element)))
            };
            runs.iter().flat_map(each).map(|(offset, lanes)| {
                let (number, inside) = (offset as usize / PAGE, offset as usize % PAGE);
                (number, inside / WORD, v.mark + lanes.trailing_zeros())
            })
        };
        let good = |(number, cell, who): (usize, usize, u32)| {
            let page = self.pages.get(number).and_then(Option::as_ref);
            page.is_some_and(|page| page.shift == fine && page.element_is_fine(v, cell..cell + cells, who))
        };
        if !runs.iter().all(|run| run.pattern.is_power_of_two()) || !places().all(good) {
            return false;
        }
        let weak = !v.site().strong();
        for (number, cell, who) in places() {
            if let Some(page) = &mut self.pages[number] {
                page.write_element(v, cell..cell + cells, who, weak);
            }
        }
        true
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
        let done = self.each_stretch(4, Run::one(offset, bytes, 1), |page, sets, s| {
            page.restamp(sets, s, write, &stamp);
            Ok(())
        });
        debug_assert!(done.is_ok(), "stamping does not fail");
    }

    /// The first access that `of` picks, with its offset.
    pub fn find(&self, of: impl Fn(&Entry) -> bool) -> Option<(Entry, u32)> {
        let pages = self.pages.iter().enumerate();
        let mut pages = pages.filter_map(|(number, page)| Some((number, page.as_ref()?)));
        pages.find_map(|(number, page)| {
            let (entry, cell) = page.find(&self.sets, &of)?;
            Some((entry, (number * PAGE + (cell << page.shift)) as u32))
        })
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
            let shift = if run.count == 1 {
                Mapping::ONE_ELEMENT
            } else {
                (run.span >> page.shift).trailing_zeros()
            };
            let stretch = Stretch {
                first: inside >> page.shift,
                cells: here >> page.shift,
                skipped: (done >> page.shift) as u32,
                shift,
                pattern: run.pattern,
                step: run.step,
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
