//! Loads, stores and atomic operations of a warp: checked against the order of accesses, then done.
//!
//! An access that races is done all the same before it is reported, so that the machine may go on.

use super::Memory;
use super::access::{Access, Atomic, Lanes, Order, Wrong};
use super::area::{Area, Sort};
use super::atomic;
use super::order::Causality;
use super::order::shadow::{Clash, Run, Visit};
use super::order::site::{Site, What};
use super::place::{Group, Pattern, each, wrong};
use super::run::runs;
use super::wide;
use crate::fault::Kind;

/// Bytes of a row: an element of 16 bytes takes two rows.
fn rows(a: &Access) -> (u32, u32) {
    if a.bytes == 16 {
        (8, a.elements * 2)
    } else {
        (a.bytes, a.elements)
    }
}

impl Memory {
    /// Loads; `out` has a row an element (two for `.b128`), `valid` the lanes of each row whose bytes were all written.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn load(&mut self, a: &Access, out: &mut [Lanes<u64>], valid: &mut [u32]) -> Result<(), Wrong> {
        let mut left = a.lanes;
        valid.fill(0);
        let mut result = Ok(());
        while left != 0 {
            let group = self.group(a, &mut left)?;
            let pattern = group.pattern(a.bytes * a.elements);
            result = result.and(self.order_read(a, &group, pattern));
            self.load_group(a, &group, pattern, out, valid);
            self.read_older(a, &group, out);
        }
        result
    }

    fn load_group(&self, a: &Access, group: &Group, pattern: Pattern, out: &mut [Lanes<u64>], valid: &mut [u32]) {
        let (bytes, rows) = rows(a);
        let area = &self.areas[group.area];
        let (first, stride) = (group.lanes.trailing_zeros() as usize, (bytes * rows) as usize);
        let from = group.offsets[first] as usize;
        let whole = match pattern {
            Pattern::Consecutive => area.is_valid(from, 32 * stride),
            Pattern::Broadcast => false,
            _ => self.all_written(group, stride),
        };
        for row in 0..rows as usize {
            let step = row as u32 * bytes;
            let at = from + step as usize;
            match pattern {
                Pattern::Broadcast => {
                    let (value, good) = area.get(at, bytes);
                    spread(&mut out[row], group.lanes, value);
                    valid[row] |= if good { group.lanes } else { 0 };
                    continue;
                }
                Pattern::Consecutive => area.row(at, stride, bytes, &mut out[row]),
                Pattern::Grouped(lanes) => {
                    for (element, out) in out[row].chunks_exact_mut(lanes as usize).enumerate() {
                        out.fill(area.get(at + element * stride, bytes).0);
                    }
                }
                Pattern::Periodic(lanes) => {
                    let (first, others) = out[row].split_at_mut(lanes as usize);
                    for (element, out) in first.iter_mut().enumerate() {
                        *out = area.get(at + element * stride, bytes).0;
                    }
                    others
                        .chunks_exact_mut(lanes as usize)
                        .for_each(|out| out.copy_from_slice(first));
                }
                _ => area.gather(&group.offsets, group.lanes, step, bytes, &mut out[row]),
            }
            valid[row] |= if whole {
                group.lanes
            } else {
                let written = |lane: &usize| area.is_valid_element((group.offsets[*lane] + step) as usize, bytes);
                each(group.lanes)
                    .filter(written)
                    .fold(0, |lanes, lane| lanes | 1 << lane)
            };
        }
    }

    /// Whether all bytes between the first and the last of a group were written, where these are near each other.
    fn all_written(&self, group: &Group, span: usize) -> bool {
        let (least, most) = wide::extent(&group.offsets, group.lanes);
        let bytes = (most - least) as usize + span;
        bytes <= 4096 && self.areas[group.area].is_valid(least as usize, bytes)
    }

    /// Stores; rows as in [`Memory::load`]. Where lanes meet, one of them wins.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn store(&mut self, a: &Access, values: &[Lanes<u64>], valid: &[u32]) -> Result<(), Wrong> {
        let mut left = a.lanes;
        let mut result = Ok(());
        while left != 0 {
            let group = self.group(a, &mut left)?;
            let pattern = group.pattern(a.bytes * a.elements);
            let (order, twice) = self.order_write(a, &group, pattern);
            result = result.and(order);
            if twice && result.is_ok() {
                result = self.one_winner(a, &group, values);
            }
            self.keep_older(a, &group);
            self.store_group(a, &group, pattern, values, valid);
            self.strong_writes(a, &group, false);
        }
        result
    }

    fn store_group(&mut self, a: &Access, group: &Group, pattern: Pattern, values: &[Lanes<u64>], valid: &[u32]) {
        let (bytes, rows) = rows(a);
        let area = &mut self.areas[group.area];
        let (from, stride) = (group.offsets[0] as usize, (bytes * rows) as usize);
        let whole = pattern == Pattern::Consecutive && valid[..rows as usize].iter().all(|lanes| *lanes == u32::MAX);
        if whole {
            area.set_valid(from, 32 * stride, true);
        }
        for row in 0..rows as usize {
            let step = row as u32 * bytes;
            if pattern == Pattern::Consecutive {
                area.put_row(from + step as usize, stride, bytes, &values[row]);
            } else {
                area.scatter(&group.offsets, group.lanes, step, bytes, &values[row]);
            }
            if !whole {
                each(group.lanes).for_each(|lane| {
                    let at = (group.offsets[lane] + step) as usize;
                    area.set_valid_element(at, bytes, valid[row] & 1 << lane != 0);
                });
            }
        }
    }

    /// Lanes of one store that meet must write the same.
    fn one_winner(&self, a: &Access, group: &Group, values: &[Lanes<u64>]) -> Result<(), Wrong> {
        for lane in each(group.lanes) {
            let earlier = each(group.lanes & ((1 << lane) - 1));
            let meets = |other: &usize| group.offsets[*other] == group.offsets[lane];
            // A narrow store takes the low bytes of a wider register.
            let kept = u64::MAX >> (64 - 8 * a.bytes.min(8));
            let differs = |other: &usize| values.iter().any(|row| (row[*other] ^ row[lane]) & kept != 0);
            if let Some(other) = earlier.filter(meets).find(differs) {
                let name = self.name(group.area, u64::from(group.offsets[lane]));
                let text = format!("lanes {other} and {lane} write different values to {name} in one instruction");
                let mut w = wrong(self.race_kind(group.area), text);
                w.address = Some(name);
                w.hint = Some("let one lane write".into());
                return Err(w.by(a, lane as u32));
            }
        }
        Ok(())
    }

    /// An atomic operation: `out` is the old value. The lanes take their turns in an order that the seed decides.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn atomic(
        &mut self,
        a: &Access,
        op: Atomic,
        b: &Lanes<u64>,
        c: &Lanes<u64>,
        out: &mut Lanes<u64>,
    ) -> Result<(), Wrong> {
        let mut left = a.lanes;
        let mut result = Ok(());
        while left != 0 {
            let group = self.group(a, &mut left)?;
            let turn = self.random.below(32);
            for lane in each(group.lanes.rotate_right(turn)).map(|lane| (lane + turn as usize) % 32) {
                let alone = Group {
                    lanes: 1 << lane,
                    ..group.clone()
                };
                result = result.and(self.order_atomic(a, &alone));
                let area = &mut self.areas[group.area];
                let at = group.offsets[lane] as usize;
                let (old, valid) = area.get(at, a.bytes);
                area.put(at, a.bytes, atomic::apply(op, a.bytes, old, b[lane], c[lane]), valid);
                out[lane] = old;
            }
        }
        result
    }

    /// Whether accesses of an area are ordered: no two threads share the others.
    pub(crate) fn is_shared(&self, area: usize) -> bool {
        matches!(self.areas[area].sort, Sort::Global | Sort::Shared { .. })
    }

    /// Notes that a thread of another block has been in shared memory.
    fn note_visitor(&mut self, a: &Access, area: usize) {
        if let Sort::Shared { block } = self.areas[area].sort
            && block != a.warp.block
        {
            self.areas[area].shadow.agents = true;
        }
    }

    fn order_read(&mut self, a: &Access, group: &Group, pattern: Pattern) -> Result<(), Wrong> {
        if !self.is_shared(group.area) {
            return Ok(());
        }
        self.note_visitor(a, group.area);
        let site = self.order.sites.number(Site::of(a, What::Read));
        let area = &mut self.areas[group.area];
        let visit = visit(&self.order, a, site, area);
        let shadow = &mut area.shadow;
        let span = a.bytes * a.elements;
        let mut result: Result<(), Clash> = Ok(());
        runs(group, span, pattern)
            .iter()
            .for_each(|run| result = result.and(shadow.read(&visit, *run)));
        if self.order.sites.get(site).strong() {
            self.strong_reads(a, group);
        }
        result.map_err(|clash| self.race(a, group.area, site, clash))
    }

    fn order_write(&mut self, a: &Access, group: &Group, pattern: Pattern) -> (Result<(), Wrong>, bool) {
        if !self.is_shared(group.area) {
            return (Ok(()), false);
        }
        let site = self.order.sites.number(Site::of(a, What::Write));
        self.order_write_of(a, group, pattern, site)
    }

    /// Checks and records a write of some other kind by a lane.
    pub(crate) fn order_write_as(&mut self, a: &Access, group: &Group, what: What) -> Result<(), Wrong> {
        let site = self.order.sites.number(Site {
            order: Order::Weak,
            ..Site::of(a, what)
        });
        self.order_write_of(a, group, Pattern::Scattered, site).0
    }

    fn order_write_of(&mut self, a: &Access, group: &Group, pattern: Pattern, site: u32) -> (Result<(), Wrong>, bool) {
        self.note_visitor(a, group.area);
        let area = &mut self.areas[group.area];
        let visit = visit(&self.order, a, site, area);
        let shadow = &mut area.shadow;
        let span = a.bytes * a.elements;
        let mut result: Result<(), Clash> = Ok(());
        let runs = runs(group, span, pattern);
        if runs.len() > 1 && shadow.write_elements(&visit, &runs) {
            return (Ok(()), false);
        }
        runs.iter()
            .for_each(|run| result = result.and(shadow.check_write(&visit, *run)));
        runs.iter().for_each(|run| shadow.write(&visit, *run));
        // Lanes meet only at the same element, for elements lie at multiples of their size.
        let twice = runs.iter().any(|run| !run.pattern.is_power_of_two());
        (result.map_err(|clash| self.race(a, group.area, site, clash)), twice)
    }

    fn order_atomic(&mut self, a: &Access, alone: &Group) -> Result<(), Wrong> {
        if !self.is_shared(alone.area) {
            return Ok(());
        }
        self.note_visitor(a, alone.area);
        let site = self.order.sites.number(Site::of(a, What::Atomic));
        let area = &mut self.areas[alone.area];
        let visit = visit(&self.order, a, site, area);
        let shadow = &mut area.shadow;
        let mut result = Ok(());
        let run = Run::one(
            alone.offsets[alone.lanes.trailing_zeros() as usize],
            a.bytes,
            alone.lanes,
        );
        result = result.and(shadow.check_write(&visit, run));
        shadow.write(&visit, run);
        self.drop_older(a, alone);
        self.strong_reads(a, alone);
        self.strong_writes(a, alone, true);
        result.map_err(|clash| self.race(a, alone.area, site, clash))
    }

    /// Strong reads take what the last strong write carries.
    fn strong_reads(&mut self, a: &Access, group: &Group) {
        if !self.order.carries_anything() {
            return;
        }
        for lane in each(group.lanes) {
            for element in 0..a.elements {
                let offset = group.offsets[lane] + element * a.bytes;
                let last = self.areas[group.area].shadow.last_write(offset);
                if last.is_some_and(|(_, _, site)| self.order.sites.get(site).strong()) {
                    self.order
                        .strong_read(a.warp, lane as u32, (group.area as u32, offset), a.order, a.scope);
                }
            }
        }
    }

    fn strong_writes(&mut self, a: &Access, group: &Group, passes_on: bool) {
        if !Site::of(a, What::Write).strong() || !self.is_shared(group.area) {
            return;
        }
        for lane in each(group.lanes) {
            for element in 0..a.elements {
                let place = (group.area as u32, group.offsets[lane] + element * a.bytes);
                self.order
                    .strong_write(a.warp, lane as u32, place, (a.order, a.scope), passes_on);
            }
        }
    }

    fn race_kind(&self, area: usize) -> Kind {
        if self.areas[area].sort == Sort::Global {
            Kind::GlobalRace
        } else {
            Kind::SharedRace
        }
    }

    /// Names a collision.
    fn race(&self, a: &Access, area: usize, site: u32, clash: Clash) -> Wrong {
        super::clash::describe(self, self.race_kind(area), area, (site, clash)).by(a, clash.lane)
    }
}

/// An access of a warp to an area, to be checked.
fn visit<'a>(order: &'a Causality, a: &Access, site: u32, area: &Area) -> Visit<'a> {
    let clock = order.clock(a.warp);
    let own = area.sort == Sort::Shared { block: a.warp.block };
    let (common, settled) = match (area.shadow.agents, own) {
        (true, _) => (0, 0),
        (false, true) if order.ids.cluster == 1 => (clock.known.0.max(clock.known.1), order.met(a.warp.block)),
        (false, true) => (clock.known.0.max(clock.known.1), 0),
        (false, false) => (clock.known.0, 0),
    };
    Visit {
        clock,
        ids: order.ids,
        sites: &order.sites,
        site,
        stamp: order.tick,
        mark: clock.first,
        class: order.sites.get(site).class(),
        common,
        settled,
    }
}

/// Gives lanes one value.
fn spread(out: &mut Lanes<u64>, lanes: u32, value: u64) {
    if lanes == u32::MAX {
        out.fill(value);
    } else {
        each(lanes).for_each(|lane| out[lane] = value);
    }
}
