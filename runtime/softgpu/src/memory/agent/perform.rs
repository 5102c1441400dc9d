//! Does what was started: reads the source, writes the destination, tells the mbarrier.

use super::super::Memory;
use super::super::access::{Scope, Wrong};
use super::super::atomic;
use super::super::order::view::AT_MBARRIER;
use super::super::place::wrong;
use super::{Image, Operation};
use crate::fault::Kind;

impl Memory {
    /// The next half of an operation: it reads, or it writes and is done.
    pub(super) fn perform(&mut self, id: u64) -> Result<(), Wrong> {
        let reads = self
            .agents
            .running
            .get(&id)
            .is_some_and(|operation| !operation.sources.is_empty());
        if reads && self.random.one_in(2) {
            self.perform_read(id)
        } else {
            self.perform_whole(id)
        }
    }

    /// Reads the source, where that is not done.
    pub(super) fn perform_read(&mut self, id: u64) -> Result<(), Wrong> {
        let Some(operation) = self.agents.running.get_mut(&id) else {
            return Ok(());
        };
        let sources = std::mem::take(&mut operation.sources);
        let mark = operation.marks.0;
        let images: Vec<Image> = sources
            .iter()
            .map(|piece| self.areas[piece.area].image(piece.offset as usize, piece.bytes as usize))
            .collect();
        if let Some(operation) = self.agents.running.get_mut(&id)
            && !images.is_empty()
        {
            operation.images = images;
        }
        let stamp = self.order.tick;
        for piece in sources {
            self.areas[piece.area]
                .shadow
                .complete(piece.offset, piece.bytes, mark, stamp, false);
        }
        Ok(())
    }

    /// Does all that is left of an operation.
    pub(super) fn perform_whole(&mut self, id: u64) -> Result<(), Wrong> {
        self.perform_read(id)?;
        let Some(operation) = self.agents.running.remove(&id) else {
            return Ok(());
        };
        let stamp = self.order.tick;
        for (i, piece) in operation.destinations.iter().enumerate() {
            let Some(image) = operation.images.get(i).or(operation.images.first()) else {
                continue;
            };
            let at = piece.offset as usize;
            let mut image = image.clone();
            image.resize(piece.bytes as usize, (0, true));
            if let Some((op, bytes)) = operation.reduce {
                image = reduced(&self.areas[piece.area].image(at, image.len()), &image, op, bytes);
            }
            self.areas[piece.area].paint(at, &image);
            self.areas[piece.area]
                .shadow
                .complete(piece.offset, piece.bytes, operation.marks.1, stamp, true);
        }
        self.tell_mbarriers(&operation)
    }

    fn tell_mbarriers(&mut self, operation: &Operation) -> Result<(), Wrong> {
        if operation.counted.is_empty() {
            return Ok(());
        }
        let tick = self.order.advance();
        for &(block, offset, bytes) in &operation.counted {
            let mut view = operation.view.clone();
            if operation.marks.1 & AT_MBARRIER == AT_MBARRIER {
                view.raise_thread(operation.marks.1, tick);
            }
            let from = (operation.warp.block, Scope::Cluster, view);
            let told = self.told_by_agent((block, offset), bytes, operation.arrival.is_some(), from);
            told.map_err(|text| Wrong {
                lane: operation.lane,
                ..wrong(Kind::Mbarrier, text)
            })?;
        }
        Ok(())
    }

    /// Ends the operations of a block that is done; those that would still touch its shared memory are dropped.
    pub(crate) fn end_agents(&mut self, block: u32, shared: usize) {
        let mine: Vec<u64> = self
            .agents
            .running
            .iter()
            .filter(|(_, o)| o.warp.block == block)
            .map(|(&id, _)| id)
            .collect();
        for id in mine {
            let groups_only = self
                .agents
                .running
                .get(&id)
                .is_some_and(|operation| operation.counted.is_empty());
            if groups_only {
                let done = self.perform_whole(id);
                debug_assert!(done.is_ok(), "no mbarrier is told");
            }
        }
        self.agents.queues.retain(|warp, _| warp.block != block);
        let touches = |o: &Operation| {
            o.sources
                .iter()
                .chain(&o.destinations)
                .any(|piece| piece.area == shared)
        };
        self.agents.running.retain(|_, operation| !touches(operation));
    }
}

/// The old bytes with those of the operation added to them, element by element.
fn reduced(old: &[(u8, bool)], new: &[(u8, bool)], op: super::Atomic, bytes: u32) -> Image {
    let number = |piece: &[(u8, bool)]| piece.iter().rev().fold(0u64, |n, (byte, _)| n << 8 | u64::from(*byte));
    let pieces = old.chunks(bytes as usize).zip(new.chunks(bytes as usize));
    let sums = pieces.map(|(old, new)| {
        let valid = old.iter().chain(new).all(|byte| byte.1);
        (
            atomic::apply(op, bytes, number(old), number(new), 0).to_le_bytes(),
            valid,
        )
    });
    sums.flat_map(|(sum, valid)| sum.into_iter().take(bytes as usize).map(move |byte| (byte, valid)))
        .collect()
}
