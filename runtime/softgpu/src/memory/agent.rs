//! Asynchronous operations: copies and stores that somebody else does later.

use super::Memory;
use super::access::{Access, Atomic, Lanes, Order, Scope, Warp, Wrong};
use super::area::Sort;
use super::atomic;
use super::place::{each, wrong};
use crate::fault::Kind;
use crate::ptx::ast::Space;

/// How the completion of an asynchronous operation is observed.
#[derive(Clone, Copy, Debug)]
pub enum Done<'a> {
    /// Its bytes are counted at this mbarrier (an address in shared memory for each lane).
    Mbarrier(&'a Lanes<u64>),
    /// By waiting for its group.
    Group,
}

/// What is done. Addresses and values are one for each lane.
#[derive(Clone, Copy, Debug)]
pub enum AsyncOp<'a> {
    /// `cp.async`: from device memory to the block's shared memory; part of a group.
    Copy {
        /// Where to, in shared memory.
        to: &'a Lanes<u64>,
        /// Where from, in device memory.
        from: &'a Lanes<u64>,
        /// Bytes that are written: 4, 8 or 16.
        bytes: u32,
        /// Bytes that are read; the rest is zero. None: all.
        read: Option<&'a Lanes<u64>>,
    },
    /// `cp.async.bulk`, or `cp.reduce.async.bulk` with an operation.
    Bulk {
        /// The space and addresses of the destination.
        to: (Space, &'a Lanes<u64>),
        /// The space and addresses of the source.
        from: (Space, &'a Lanes<u64>),
        /// Bytes, a multiple of 16.
        bytes: &'a Lanes<u64>,
        /// How completion is observed.
        done: Done<'a>,
        /// `.multicast::cluster`: the blocks of the cluster that get it, a bit a rank.
        multicast: Option<&'a Lanes<u64>>,
        /// The operation of a reduction, and the bytes of an element.
        reduce: Option<(Atomic, u32)>,
    },
    /// `st.async`: to the shared memory of a peer.
    Store {
        /// Where to, in shared memory of the cluster.
        to: &'a Lanes<u64>,
        /// A row an element.
        values: &'a [Lanes<u64>],
        /// Bytes an element.
        bytes: u32,
        /// The mbarrier.
        mbarrier: &'a Lanes<u64>,
    },
    /// `red.async`: on the shared memory of a peer.
    Reduce {
        /// Where, in shared memory of the cluster.
        to: &'a Lanes<u64>,
        /// The operand.
        value: &'a Lanes<u64>,
        /// Bytes.
        bytes: u32,
        /// The operation.
        op: Atomic,
        /// The mbarrier.
        mbarrier: &'a Lanes<u64>,
    },
}

/// An asynchronous operation of some lanes.
#[derive(Clone, Copy, Debug)]
pub struct CopyAsync<'a> {
    /// Who starts it.
    pub warp: Warp,
    /// Which lanes.
    pub lanes: u32,
    /// The instruction's place in the program.
    pub at: u32,
    /// What is done.
    pub op: AsyncOp<'a>,
}

impl CopyAsync<'_> {
    /// What the addresses of a piece of `bytes` must be a multiple of.
    fn align(&self, bytes: u32) -> u32 {
        match self.op {
            AsyncOp::Copy { bytes: written, .. } => written,
            AsyncOp::Bulk { .. } => 16,
            AsyncOp::Store { .. } | AsyncOp::Reduce { .. } => bytes,
        }
    }

    fn access<'b>(&self, space: Space, addresses: &'b Lanes<u64>, lane: usize, bytes: u32) -> Access<'b> {
        Access {
            warp: self.warp,
            lanes: 1 << lane,
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
}

impl Memory {
    /// Starts asynchronous operations.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn copy_async(&mut self, a: &CopyAsync) -> Result<(), Wrong> {
        each(a.lanes).try_for_each(|lane| self.copy_lane(a, lane))
    }

    fn copy_lane(&mut self, a: &CopyAsync, lane: usize) -> Result<(), Wrong> {
        match a.op {
            AsyncOp::Copy { to, from, bytes, read } => {
                let taken = read.map_or(bytes, |read| (read[lane] as u32).min(bytes));
                let mut image = self.read_range(a, (Space::Global, from), lane, taken)?;
                image.resize(bytes as usize, (0, true));
                self.write_range(a, (Space::Shared, to), lane, &image)
            }
            AsyncOp::Bulk {
                to,
                from,
                bytes,
                done,
                multicast,
                reduce,
            } => {
                let size = bytes[lane] as u32;
                let image = self.read_range(a, from, lane, size)?;
                let ranks = multicast.map_or(1, |ranks| ranks[lane] as u32);
                for rank in each(ranks) {
                    let there = |address: u64| multicast.map_or(address, |_| peer(address, rank as u64));
                    self.bulk_into(a, (to.0, there(to.1[lane])), lane, &image, reduce)?;
                    if let Done::Mbarrier(mbarrier) = done {
                        self.bytes_came(a, there(mbarrier[lane]), lane, size)?;
                    }
                }
                Ok(())
            }
            AsyncOp::Store {
                to,
                values,
                bytes,
                mbarrier,
            } => {
                let image: Vec<_> = values
                    .iter()
                    .flat_map(|row| row[lane].to_le_bytes()[..bytes as usize].to_vec())
                    .map(|b| (b, true))
                    .collect();
                self.write_range(a, (Space::Shared, to), lane, &image)?;
                self.bytes_came(a, mbarrier[lane], lane, image.len() as u32)
            }
            AsyncOp::Reduce {
                to,
                value,
                bytes,
                op,
                mbarrier,
            } => {
                let image: Vec<_> = value[lane].to_le_bytes()[..bytes as usize]
                    .iter()
                    .map(|b| (*b, true))
                    .collect();
                self.bulk_into(a, (Space::Shared, to[lane]), lane, &image, Some((op, bytes)))?;
                self.bytes_came(a, mbarrier[lane], lane, bytes)
            }
        }
    }

    fn bulk_into(
        &mut self,
        a: &CopyAsync,
        to: (Space, u64),
        lane: usize,
        image: &[(u8, bool)],
        reduce: Option<(Atomic, u32)>,
    ) -> Result<(), Wrong> {
        let addresses = [to.1; 32];
        let Some((op, bytes)) = reduce else {
            return self.write_range(a, (to.0, &addresses), lane, image);
        };
        let old = self.read_range(a, (to.0, &addresses), lane, image.len() as u32)?;
        let number = |piece: &[(u8, bool)]| piece.iter().rev().fold(0u64, |n, (byte, _)| n << 8 | u64::from(*byte));
        let pieces = old.chunks(bytes as usize).zip(image.chunks(bytes as usize));
        let new = pieces.flat_map(|(old, new)| {
            let sum = atomic::apply(op, bytes, number(old), number(new), 0).to_le_bytes();
            old.iter()
                .zip(new)
                .zip(sum)
                .map(|((old, new), byte)| (byte, old.1 && new.1))
                .collect::<Vec<_>>()
        });
        self.write_range(a, (to.0, &addresses), lane, &new.collect::<Vec<_>>())
    }

    fn read_range(
        &self,
        a: &CopyAsync,
        from: (Space, &Lanes<u64>),
        lane: usize,
        bytes: u32,
    ) -> Result<Vec<(u8, bool)>, Wrong> {
        if bytes == 0 {
            return Ok(Vec::new());
        }
        let group = self.group_aligned(&a.access(from.0, from.1, lane, bytes), &mut (1 << lane), a.align(bytes))?;
        Ok(self.areas[group.area].image(group.offsets[lane] as usize, bytes as usize))
    }

    fn write_range(
        &mut self,
        a: &CopyAsync,
        to: (Space, &Lanes<u64>),
        lane: usize,
        image: &[(u8, bool)],
    ) -> Result<(), Wrong> {
        if image.is_empty() {
            return Ok(());
        }
        let bytes = image.len() as u32;
        let group = self.group_aligned(&a.access(to.0, to.1, lane, bytes), &mut (1 << lane), a.align(bytes))?;
        self.areas[group.area].paint(group.offsets[lane] as usize, image);
        Ok(())
    }

    fn bytes_came(&mut self, a: &CopyAsync, mbarrier: u64, lane: usize, bytes: u32) -> Result<(), Wrong> {
        let addresses = [mbarrier; 32];
        let access = a.access(Space::Shared, &addresses, lane, 8);
        let group = self.group(&access, &mut (1 << lane))?;
        let Sort::Shared { block } = self.areas[group.area].sort else {
            return Err(wrong(Kind::Mbarrier, "an mbarrier outside shared memory".into()).by(&access, lane as u32));
        };
        self.complete_bytes(block, group.offsets[lane], bytes)
            .map_err(|w| w.by(&access, lane as u32))
    }

    /// The thread that started the last copy of an mbarrier.
    pub(crate) fn starter(&self, who: u32) -> u32 {
        who & 31
    }

    /// `cp.async.commit_group`.
    pub fn commit_group(&mut self, _warp: Warp, _lanes: u32) {}

    /// `cp.async.wait_group N`, or `wait_all` for none: whether the lanes can go on.
    pub fn groups_done(&mut self, _warp: Warp, _lanes: u32, _most_pending: Option<u32>) -> bool {
        true
    }

    /// `cp.async.bulk.commit_group`.
    pub fn commit_bulk_group(&mut self, _warp: Warp, _lanes: u32) {}

    /// `cp.async.bulk.wait_group{.read} N`: whether the lanes can go on.
    pub fn bulk_groups_done(&mut self, _warp: Warp, _lanes: u32, _most_pending: u32, _only_read: bool) -> bool {
        true
    }

    /// `cp.async.mbarrier.arrive{.noinc}`: an arrival once the copies of each lane so far are done.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn cp_async_arrive(&mut self, a: &Access, no_increment: bool) -> Result<(), Wrong> {
        let _ = (a, no_increment);
        Ok(())
    }

    /// Lets asynchronous operations go on; true if something changed.
    ///
    /// # Errors
    /// What is wrong with one.
    pub fn step(&mut self) -> Result<bool, Wrong> {
        Ok(false)
    }
}

/// The same offset in the shared memory of the block of that rank.
fn peer(address: u64, rank: u64) -> u64 {
    use super::access::SHARED_WINDOW;
    address % SHARED_WINDOW + (rank + 1) * SHARED_WINDOW
}
