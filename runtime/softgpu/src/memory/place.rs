//! From an address to a place: the area that it lies in and the offset there, or what is wrong with it.

use super::access::{Access, LOCAL_BASE, Lanes, SHARED_BASE, SHARED_WINDOW, Wrong};
use super::area::{Area, Sort};
use super::wide;
use super::{GLOBAL_BASE, Memory, SLOT};
use crate::fault::Kind;
use crate::ptx::ast::Space;

/// Lanes of a request that fall into the same area.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    /// The area.
    pub area: usize,
    /// Those lanes.
    pub lanes: u32,
    /// Their offsets there; other lanes hold anything.
    pub offsets: Lanes<u32>,
}

/// How the offsets of a group lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pattern {
    /// All 32 lanes, lane after lane.
    Consecutive,
    /// All lanes of the group at the same offset.
    Broadcast,
    /// All 32 lanes: so many neighbours at one place, the next ones at the next.
    Grouped(u32),
    /// All 32 lanes: so many lane after lane, and the next ones at the same places.
    Periodic(u32),
    /// Anything else.
    Scattered,
}

impl Group {
    /// How the offsets lie, for accesses of `span` bytes.
    #[inline]
    pub fn pattern(&self, span: u32) -> Pattern {
        let first = self.offsets[self.lanes.trailing_zeros() as usize];
        if self.lanes != u32::MAX {
            let same = wide::equal(&self.offsets, first);
            return if same & self.lanes == self.lanes {
                Pattern::Broadcast
            } else {
                Pattern::Scattered
            };
        }
        let (same, next) = wide::neighbours(&self.offsets, span);
        match (same | 1, next | 1) {
            (1, u32::MAX) => Pattern::Consecutive,
            (u32::MAX, 1) => Pattern::Broadcast,
            (same, starts) => self.regular(same, starts, first),
        }
    }

    /// The same of lanes some of which are where the one before them is, or just behind it: `starts` are the latter.
    fn regular(&self, same: u32, starts: u32, first: u32) -> Pattern {
        // Bits 0, n, 2n...: where groups of n lanes begin.
        for (lanes, begins) in [(2, 0x5555_5555), (4, 0x1111_1111), (8, 0x0101_0101), (16, 0x0001_0001)] {
            if starts == begins && same == !begins | 1 {
                return Pattern::Grouped(lanes);
            }
            let back = || {
                (lanes..32)
                    .step_by(lanes as usize)
                    .all(|lane| self.offsets[lane as usize] == first)
            };
            if starts == !begins | 1 && back() {
                return Pattern::Periodic(lanes);
            }
        }
        Pattern::Scattered
    }
}

/// The lanes of a mask, lowest first.
#[inline]
pub(crate) fn each(mut lanes: u32) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        if lanes == 0 {
            return None;
        }
        let lane = lanes.trailing_zeros() as usize;
        lanes &= lanes - 1;
        Some(lane)
    })
}

impl Memory {
    /// Takes from `left` the lanes that reach the same area as the first of them.
    ///
    /// # Errors
    /// Where that lane is out of bounds or misaligned, or the memory was freed.
    pub(crate) fn group(&self, a: &Access, left: &mut u32) -> Result<Group, Wrong> {
        self.group_aligned(a, left, a.bytes * a.elements)
    }

    /// The same for addresses that must be multiples of `align`.
    pub(crate) fn group_aligned(&self, a: &Access, left: &mut u32, align: u32) -> Result<Group, Wrong> {
        let first = left.trailing_zeros();
        let span = a.bytes * a.elements;
        let (area, origin) = self.home(a, first)?;
        let local = self.areas[area].sort == Sort::Local;
        // A local address counts from the thread's own bytes; where those lie in the area is added below.
        let len = if local {
            u64::from(self.shape.local)
        } else {
            self.areas[area].len() as u64
        };
        let mut offsets = [0u32; 32];
        let Some(most) = len.checked_sub(u64::from(span)) else {
            return Err(self.outside(a, first, area, origin));
        };
        let (inside, bits) = wide::offsets(a.addresses, origin, most, &mut offsets);
        let lanes = inside & *left;
        if lanes & 1 << first == 0 {
            return Err(self.outside(a, first, area, origin));
        }
        if bits & (align - 1) != 0 && each(lanes).any(|lane| offsets[lane] & (align - 1) != 0) {
            return Err(self.misaligned(a, lanes, &offsets, area, align));
        }
        if local {
            let stride = self.local_stride() as u32;
            let place = |lane: usize| (a.warp.warp * 32 + lane as u32) * stride;
            offsets
                .iter_mut()
                .enumerate()
                .for_each(|(lane, offset)| *offset = offset.wrapping_add(place(lane)));
        }
        *left &= !lanes;
        Ok(Group { area, lanes, offsets })
    }

    /// The area of a lane's address, and the address at which that area begins for this access.
    fn home(&self, a: &Access, lane: u32) -> Result<(usize, u64), Wrong> {
        let address = a.addresses[lane as usize];
        match a.space {
            Space::Shared => self.shared_home(a, lane, address, 0),
            Space::Local => self.local_home(a, lane, 0),
            Space::Generic if address >= LOCAL_BASE => self.local_home(a, lane, LOCAL_BASE),
            Space::Generic if address >= SHARED_BASE => self.shared_home(a, lane, address - SHARED_BASE, SHARED_BASE),
            Space::Param => Ok((self.params, 0)),
            Space::Global | Space::Const | Space::Generic => self.global_home(address).map_err(|m| m.by(a, lane)),
        }
    }

    fn shared_home(&self, a: &Access, lane: u32, address: u64, base: u64) -> Result<(usize, u64), Wrong> {
        let cluster = self.shape.cluster.max(1);
        let window = address / SHARED_WINDOW;
        let (block, origin) = if window == 0 {
            (a.warp.block, base)
        } else {
            let rank = (window - 1) as u32;
            if window > u64::from(cluster) {
                let text = format!("shared address {address:#x} is in no block of the cluster of {cluster}");
                return Err(wrong(Kind::Cluster, text).by(a, lane));
            }
            (a.warp.block / cluster * cluster + rank, base + window * SHARED_WINDOW)
        };
        if a.own_block && block != a.warp.block {
            let text = "an address of a peer's shared memory in an instruction that names shared::cta".to_string();
            return Err(wrong(Kind::Cluster, text).by(a, lane));
        }
        if block != a.warp.block && !self.order.clock(a.warp).met_cluster {
            let text = format!("shared memory of block {block} before a barrier of the cluster: it may not run yet");
            let mut w = wrong(Kind::Cluster, text).by(a, lane);
            w.hint = Some("let the blocks of the cluster meet (barrier.cluster, cluster.sync()) first".into());
            return Err(w);
        }
        match self.blocks.get(block as usize).and_then(Option::as_ref) {
            Some(resident) => Ok((resident.shared, origin)),
            None => {
                let text = format!("shared memory of block {block}, which has exited");
                Err(wrong(Kind::Cluster, text).by(a, lane))
            }
        }
    }

    fn local_home(&self, a: &Access, lane: u32, base: u64) -> Result<(usize, u64), Wrong> {
        match self.blocks.get(a.warp.block as usize).and_then(Option::as_ref) {
            Some(resident) => Ok((resident.local, base)),
            None => Err(wrong(Kind::OutOfBounds, format!("block {} does not run", a.warp.block)).by(a, lane)),
        }
    }

    /// Bytes from the local memory of a thread to that of the next.
    pub(crate) fn local_stride(&self) -> u64 {
        u64::from(self.shape.local).next_multiple_of(16)
    }

    /// The area that a global address lies in or after, and its base.
    pub(crate) fn global_home(&self, address: u64) -> Result<(usize, u64), Wrong> {
        let slot = address.wrapping_sub(GLOBAL_BASE) / SLOT;
        let Some(&found) = usize::try_from(slot).ok().and_then(|slot| self.slots.get(slot)) else {
            return Err(wrong(
                Kind::OutOfBounds,
                format!("address {address:#x} is in no allocation"),
            ));
        };
        let area = found as usize;
        let base = self.areas[area].base;
        if self.areas[area].freed {
            let name = self.name(area, address.wrapping_sub(base));
            let mut w = wrong(Kind::UseAfterFree, format!("{name} was freed"));
            w.address = Some(name);
            return Err(w);
        }
        Ok((area, base))
    }

    /// `name + offset`.
    pub(crate) fn name(&self, area: usize, offset: u64) -> String {
        let Area { name, .. } = &self.areas[area];
        let offset = offset as i64;
        if offset < 0 {
            format!("{name} - {}", -offset)
        } else {
            format!("{name} + {offset}")
        }
    }

    fn outside(&self, a: &Access, lane: u32, area: usize, origin: u64) -> Wrong {
        let address = a.addresses[lane as usize];
        let offset = address.wrapping_sub(origin) as i64;
        let local = self.areas[area].sort == Sort::Local;
        let len = if local {
            i64::from(self.shape.local)
        } else {
            self.areas[area].len() as i64
        };
        let span = i64::from(a.bytes * a.elements);
        let name = &self.areas[area].name;
        let text = if offset < 0 {
            format!("{span} bytes at {address:#x}, {} bytes before {name} begins", -offset)
        } else if offset < len {
            format!("{span} bytes at offset {offset} of {name}, which has {len} bytes: the access runs over its end")
        } else {
            format!("{span} bytes at offset {offset} of {name}, which has {len} bytes")
        };
        let mut w = wrong(Kind::OutOfBounds, text).by(a, lane);
        w.address = Some(self.name(area, offset as u64));
        w
    }

    fn misaligned(&self, a: &Access, lanes: u32, offsets: &Lanes<u32>, area: usize, align: u32) -> Wrong {
        let span = a.bytes * a.elements;
        let lane = each(lanes)
            .find(|&lane| !offsets[lane].is_multiple_of(align))
            .unwrap_or(0);
        let name = self.name(area, u64::from(offsets[lane]));
        let text = format!("{span} bytes at {name}, which is not a multiple of {align}");
        let mut w = wrong(Kind::Misaligned, text).by(a, lane as u32);
        w.address = Some(name);
        w
    }
}

/// A fault of nobody yet.
pub(crate) fn wrong(kind: Kind, message: String) -> Wrong {
    Wrong {
        kind,
        lane: 0,
        address: None,
        message,
        earlier: None,
        hint: None,
    }
}

impl Wrong {
    /// Done by this lane.
    pub(crate) fn by(mut self, a: &Access, lane: u32) -> Self {
        self.lane = lane;
        let address = a.addresses[lane as usize];
        self.address.get_or_insert_with(|| format!("{address:#x}"));
        self
    }
}
