//! Starts asynchronous operations: finds their places, checks them against what came before, and spoils their destination.

use std::sync::Arc;

use super::super::Memory;
use super::super::access::{Access, Atomic, Lanes, Order, Scope, Wrong};
use super::super::area::Sort;
use super::super::order::clock::Clock;
use super::super::order::shadow::{Run, Visit};
use super::super::order::site::{Site, What};
use super::super::order::view::{AGENT, AT_MBARRIER, BULK_READ, BULK_WRITE, PENDING};
use super::super::place::{each, wrong};
use super::{AsyncOp, CopyAsync, Done, Image, Operation, Piece, site};
use crate::fault::Kind;
use crate::ptx::ast::Space;

impl CopyAsync<'_> {
    fn access<'b>(&self, space: Space, addresses: &'b Lanes<u64>, lanes: u32, bytes: u32) -> Access<'b> {
        Access {
            warp: self.warp,
            lanes,
            space,
            own_block: false,
            addresses,
            bytes,
            elements: 1,
            order: Order::Weak,
            scope: Scope::Block,
            at: self.at,
        }
    }

    /// What the addresses of a piece of `bytes` must be a multiple of.
    fn align(&self, bytes: u32) -> u32 {
        match self.op {
            AsyncOp::Copy { bytes: written, .. } => written,
            AsyncOp::Bulk { .. } => 16,
            AsyncOp::Store { .. } | AsyncOp::Reduce { .. } => bytes,
        }
    }

    fn fault(&self, lane: usize, kind: Kind, text: &str, addresses: &Lanes<u64>) -> Wrong {
        wrong(kind, text.into()).by(&self.access(Space::Generic, addresses, 1 << lane, 1), lane as u32)
    }
}

/// The parts of a bulk copy.
struct Bulk<'a> {
    to: (Space, &'a Lanes<u64>),
    from: (Space, &'a Lanes<u64>),
    bytes: &'a Lanes<u64>,
    done: Done<'a>,
    multicast: Option<&'a Lanes<u64>>,
    reduce: Option<(Atomic, u32)>,
}

/// One side of an operation: its accessor, and what it does there.
struct Side {
    mark: u32,
    site: Site,
    stamp: u32,
    write: bool,
    /// Whether it goes through the asynchronous proxy.
    proxy: bool,
}

impl Memory {
    /// Starts asynchronous operations.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn copy_async(&mut self, a: &CopyAsync) -> Result<(), Wrong> {
        match a.op {
            AsyncOp::Copy { to, from, bytes, read } => self.start_copy(a, (to, from), bytes, read),
            AsyncOp::Bulk {
                to,
                from,
                bytes,
                done,
                multicast,
                reduce,
            } => {
                let bulk = Bulk {
                    to,
                    from,
                    bytes,
                    done,
                    multicast,
                    reduce,
                };
                each(a.lanes).try_for_each(|lane| self.start_bulk(a, lane, &bulk))
            }
            AsyncOp::Store {
                to,
                values,
                bytes,
                mbarrier,
            } => each(a.lanes).try_for_each(|lane| {
                let row = |row: &Lanes<u64>| row[lane].to_le_bytes()[..bytes as usize].to_vec();
                let image = values.iter().flat_map(row).map(|byte| (byte, true)).collect();
                self.start_store(a, lane, (to, mbarrier), image, None)
            }),
            AsyncOp::Reduce {
                to,
                value,
                bytes,
                op,
                mbarrier,
            } => each(a.lanes).try_for_each(|lane| {
                let image = value[lane].to_le_bytes()[..bytes as usize]
                    .iter()
                    .map(|byte| (*byte, true))
                    .collect();
                self.start_store(a, lane, (to, mbarrier), image, Some((op, bytes)))
            }),
        }
    }

    /// `cp.async`: one operation for all lanes; records call it the copies of the threads.
    fn start_copy(
        &mut self,
        a: &CopyAsync,
        (to, from): (&Lanes<u64>, &Lanes<u64>),
        bytes: u32,
        read: Option<&Lanes<u64>>,
    ) -> Result<(), Wrong> {
        let mark = AGENT | self.order.clock(a.warp).first;
        let stamp = self.order.tick;
        let clock = self.order.clock(a.warp).clone();
        let mut result = Ok(());
        let (mut sources, mut destinations) = (Vec::new(), Vec::new());
        for lane in each(a.lanes) {
            let taken = read.map_or(bytes, |read| (read[lane] as u32).min(bytes));
            let source = self.piece(a, (Space::Global, from), lane, taken)?;
            let destination = self.piece(a, (Space::Shared, to), lane, bytes)?;
            let reading = Side {
                mark,
                site: site(a.at, What::CopyRead, taken, Order::Weak),
                stamp,
                write: false,
                proxy: false,
            };
            let writing = Side {
                mark,
                site: site(a.at, What::CopyWrite, bytes, Order::Weak),
                stamp,
                write: true,
                proxy: false,
            };
            result = result.and(self.visit_piece(&clock, lane as u32, &reading, source));
            result = result.and(self.visit_piece(&clock, lane as u32, &writing, destination));
            self.areas[destination.area].spoil(destination.offset as usize, bytes as usize, Self::poison());
            sources.push(source);
            destinations.push(destination);
        }
        let how = site(a.at, What::CopyRead, bytes, Order::Weak);
        let idle = Operation::of(a.warp, a.lanes.trailing_zeros(), (mark, mark), how);
        let operation = Operation {
            sources,
            destinations,
            ..idle
        };
        let id = self.agents.start(operation);
        self.agents.queues.entry(a.warp).or_default().push(id, a.lanes, false);
        self.maybe_read_now(id);
        result
    }

    fn start_bulk(&mut self, a: &CopyAsync, lane: usize, bulk: &Bulk) -> Result<(), Wrong> {
        let bytes = bulk.bytes[lane] as u32;
        if bytes == 0 || !bytes.is_multiple_of(16) {
            let text = format!("a bulk copy of {bytes} bytes, which is not a multiple of 16");
            return Err(a.fault(lane, Kind::Misaligned, &text, bulk.from.1));
        }
        let tick = self.order.advance();
        let ranks = bulk.multicast.map_or(1, |ranks| ranks[lane] as u32);
        let there = |address: u64, rank| bulk.multicast.map_or(address, |_| peer(address, rank as u64));
        let thread = self.order.clock(a.warp).first + lane as u32;
        let marks = (BULK_READ | thread, BULK_WRITE | thread);
        let how = site(a.at, What::CopyWrite, bytes, Order::Weak);
        let mut operation = Operation::of(a.warp, lane as u32, marks, how);
        operation.view = self.order.clock(a.warp).tell(lane as u32, tick, self.order.ids);
        operation.sources.push(self.piece(a, bulk.from, lane, bytes)?);
        operation.reduce = bulk.reduce;
        for rank in each(ranks) {
            let to = [there(bulk.to.1[lane], rank); 32];
            operation
                .destinations
                .push(self.piece(a, (bulk.to.0, &to), lane, bytes)?);
            if let Done::Mbarrier(mbarrier) = bulk.done {
                let (place, mark) = self.counting(a, lane, there(mbarrier[lane], rank), thread)?;
                operation.counted.push((place.0, place.1, bytes));
                operation.marks = (mark, mark);
            }
        }
        self.finish_start(a, lane, operation, true)
    }

    fn start_store(
        &mut self,
        a: &CopyAsync,
        lane: usize,
        (to, mbarrier): (&Lanes<u64>, &Lanes<u64>),
        image: Image,
        reduce: Option<(Atomic, u32)>,
    ) -> Result<(), Wrong> {
        let (bytes, tick) = (image.len() as u32, self.order.advance());
        if self.order.ids.cluster < 2 {
            let text = "st.async and red.async need a cluster of more than one block";
            return Err(a.fault(lane, Kind::Cluster, text, to));
        }
        let thread = self.order.clock(a.warp).first + lane as u32;
        let view = self.order.clock(a.warp).tell(lane as u32, tick, self.order.ids);
        let destination = self.piece(a, (Space::Shared, to), lane, bytes)?;
        let (place, mark) = self.counting(a, lane, mbarrier[lane], thread)?;
        let into = self.block_of_area(destination.area);
        if into != Some(place.0) {
            let text = "the destination and the mbarrier are in different blocks";
            return Err(a.fault(lane, Kind::Mbarrier, text, to));
        }
        if reduce.is_some() && into == Some(a.warp.block) {
            return Err(a.fault(
                lane,
                Kind::Cluster,
                "red.async on the shared memory of the own block",
                to,
            ));
        }
        let order = if reduce.is_some() { Order::Relaxed } else { Order::Weak };
        let how = site(a.at, What::CopyWrite, bytes, order);
        let operation = Operation {
            view,
            images: vec![image],
            destinations: vec![destination],
            reduce,
            counted: vec![(place.0, place.1, bytes)],
            ..Operation::of(a.warp, lane as u32, (mark, mark), how)
        };
        self.finish_start(a, lane, operation, false)
    }

    /// Checks and records both sides, spoils the destination, and lets it run.
    fn finish_start(&mut self, a: &CopyAsync, lane: usize, operation: Operation, proxy: bool) -> Result<(), Wrong> {
        let clock = Clock::agent(Arc::new(operation.view.clone()));
        let mut result = Ok(());
        let reading = Site {
            what: What::CopyRead,
            order: Order::Weak,
            ..operation.site
        };
        let reading = Side {
            mark: operation.marks.0,
            site: reading,
            stamp: PENDING,
            write: false,
            proxy,
        };
        let writing = Side {
            mark: operation.marks.1,
            site: operation.site,
            stamp: PENDING,
            write: true,
            proxy: false,
        };
        for &source in &operation.sources {
            result = result.and(self.visit_piece(&clock, 0, &reading, source));
        }
        for &destination in &operation.destinations {
            result = result.and(self.visit_piece(&clock, 0, &writing, destination));
            if operation.reduce.is_none() {
                let (at, bytes) = (destination.offset as usize, destination.bytes as usize);
                self.areas[destination.area].spoil(at, bytes, Self::poison());
            }
        }
        let group = operation.counted.is_empty();
        let id = self.agents.start(operation);
        if group {
            self.agents.queues.entry(a.warp).or_default().push(id, 1 << lane, true);
        }
        self.maybe_read_now(id);
        result.map_err(|mut w| {
            w.lane = lane as u32;
            w
        })
    }

    /// Half of the operations read their source as early as can be.
    fn maybe_read_now(&mut self, id: u64) {
        if self.random.one_in(2) {
            let read = self.perform_read(id);
            debug_assert!(read.is_ok(), "the source was found before");
        }
    }

    /// The mbarrier that counts an operation, and what records call the operation by it.
    fn counting(&mut self, a: &CopyAsync, lane: usize, mbarrier: u64, thread: u32) -> Result<((u32, u32), u32), Wrong> {
        let addresses = [mbarrier; 32];
        let access = a.access(Space::Shared, &addresses, 1 << lane, 8);
        let group = self.group(&access, &mut (1 << lane))?;
        let Some(block) = self.block_of_area(group.area) else {
            return Err(a.fault(lane, Kind::Mbarrier, "an mbarrier outside shared memory", &addresses));
        };
        let place = (block, group.offsets[lane]);
        let number = self.usable_mbarrier(&access, lane as u32, place)?;
        self.agents.starters[number as usize] = thread;
        Ok((place, AT_MBARRIER | (number * 32)))
    }

    fn block_of_area(&self, area: usize) -> Option<u32> {
        match self.areas[area].sort {
            Sort::Shared { block } => Some(block),
            _ => None,
        }
    }

    fn piece(&self, a: &CopyAsync, at: (Space, &Lanes<u64>), lane: usize, bytes: u32) -> Result<Piece, Wrong> {
        if bytes == 0 {
            return Ok(Piece {
                area: self.params,
                offset: 0,
                bytes: 0,
            });
        }
        let access = a.access(at.0, at.1, 1 << lane, bytes);
        let group = self.group_aligned(&access, &mut (1 << lane), a.align(bytes))?;
        Ok(Piece {
            area: group.area,
            offset: group.offsets[lane],
            bytes,
        })
    }

    fn visit_piece(&mut self, clock: &Clock, lane: u32, side: &Side, piece: Piece) -> Result<(), Wrong> {
        if piece.bytes == 0 || !matches!(self.areas[piece.area].sort, Sort::Global | Sort::Shared { .. }) {
            return Ok(());
        }
        let site = self.order.sites.number(side.site);
        let visit = Visit {
            clock,
            ids: self.order.ids,
            sites: &self.order.sites,
            site,
            stamp: side.stamp,
            mark: side.mark,
            class: side.site.class(),
            common: 0,
            settled: 0,
        };
        let run = Run::one(piece.offset, piece.bytes, 1 << lane);
        let shadow = &mut self.areas[piece.area].shadow;
        shadow.agents = true;
        let result = if side.write {
            let checked = shadow.check_write(&visit, run);
            shadow.write(&visit, run);
            checked
        } else {
            shadow.read(&visit, run)
        };
        result.map_err(|clash| {
            let mut w = super::super::clash::describe(self, Kind::AsyncRace, piece.area, (site, clash));
            w.lane = lane;
            w
        })?;
        if side.proxy { self.proxy_fenced(piece) } else { Ok(()) }
    }

    /// The asynchronous proxy sees what threads wrote only after a proxy fence of each of them.
    fn proxy_fenced(&self, piece: Piece) -> Result<(), Wrong> {
        for offset in (piece.offset..piece.offset + piece.bytes).step_by(4) {
            let Some((who, stamp, number)) = self.areas[piece.area].shadow.last_write(offset) else {
                continue;
            };
            if who & AGENT != 0 || stamp < self.order.proxy_fence_of(who) {
                continue;
            }
            let name = self.name(piece.area, u64::from(offset));
            let other = self.order.sites.get(number);
            let text = format!(
                "a bulk copy reads {name} after a {} without fence.proxy.async",
                other.describe()
            );
            let mut w = wrong(Kind::AsyncRace, text);
            w.address = Some(name);
            let a_block = self.order.ids.warps * 32;
            w.earlier = Some((who / a_block, who % a_block, other.at, other.describe()));
            w.hint = Some("each thread that wrote it needs fence.proxy.async before the barrier".into());
            return Err(w);
        }
        Ok(())
    }
}

/// The same offset in the shared memory of the block of that rank.
fn peer(address: u64, rank: u64) -> u64 {
    use super::super::access::SHARED_WINDOW;
    address % SHARED_WINDOW + (rank + 1) * SHARED_WINDOW
}
