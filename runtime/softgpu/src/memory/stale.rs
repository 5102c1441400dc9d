//! Older values: a strong read that nothing orders after the last write of a word may return what was there before it. Each
//! element of a vector access is a word of its own, so that vectors tear.

use super::Memory;
use super::access::{Access, Lanes, Order};
use super::hash::QuickMap;
use super::order::site::{Site, What};
use super::place::{Group, each};

/// What a word held before its last strong write.
#[derive(Clone, Debug)]
struct Before {
    value: u64,
    bytes: u32,
    /// Warps that have seen the new value: they never see the old one again.
    seen: Vec<u32>,
}

/// The older values of words, by area and offset.
#[derive(Clone, Debug, Default)]
pub(crate) struct Older(QuickMap<(u32, u32), Before>);

impl Older {
    /// Forgets an area.
    pub fn forget(&mut self, area: u32) {
        self.0.retain(|place, _| place.0 != area);
    }
}

impl Memory {
    /// Keeps what a strong store is about to write over. A word that carries a release has no older value: whoever reads it
    /// would have to be given the older release too.
    pub(crate) fn keep_older(&mut self, a: &Access, group: &Group) {
        if !Site::of(a, What::Write).strong() || a.bytes > 8 || !self.is_shared(group.area) {
            return;
        }
        for lane in each(group.lanes) {
            for element in 0..a.elements {
                let place = (group.area as u32, group.offsets[lane] + element * a.bytes);
                let (value, valid) = self.areas[group.area].get(place.1 as usize, a.bytes);
                if valid && !self.order.carries(place) {
                    self.older.0.insert(
                        place,
                        Before {
                            value,
                            bytes: a.bytes,
                            seen: Vec::new(),
                        },
                    );
                } else {
                    self.older.0.remove(&place);
                }
            }
        }
    }

    /// An atomic operation reads the last value of a word: there is no older one from here on.
    pub(crate) fn drop_older(&mut self, a: &Access, alone: &Group) {
        if !self.older.0.is_empty() {
            each(alone.lanes).for_each(|lane| drop(self.older.0.remove(&(alone.area as u32, alone.offsets[lane]))));
        }
        debug_assert_eq!(a.elements, 1, "atomic operations are of one element");
    }

    /// Lets a relaxed read return older values, where the seed says so; `out` holds the new ones.
    pub(crate) fn read_older(&mut self, a: &Access, group: &Group, out: &mut [Lanes<u64>]) {
        if a.order != Order::Relaxed || self.older.0.is_empty() || a.bytes > 8 {
            return;
        }
        for element in 0..a.elements {
            for lane in each(group.lanes) {
                let offset = group.offsets[lane] + element * a.bytes;
                if let Some(value) = self.older_value(a, lane as u32, group.area, offset) {
                    out[element as usize][lane] = value;
                }
            }
        }
    }

    fn older_value(&mut self, a: &Access, lane: u32, area: usize, offset: u32) -> Option<u64> {
        let before = self.older.0.get_mut(&(area as u32, offset))?;
        let clock = self.order.clock(a.warp);
        let (who, stamp, _) = self.areas[area].shadow.last_write(offset)?;
        let warp = clock.first / 32;
        let fresh = before.bytes != a.bytes
            || who / 32 == warp
            || before.seen.contains(&warp)
            || clock.knows(lane, who, stamp, self.order.ids);
        if !fresh && self.random.one_in(4) {
            return Some(before.value);
        }
        if !before.seen.contains(&warp) {
            before.seen.push(warp);
        }
        None
    }
}
