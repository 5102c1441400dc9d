//! The device memory of a plan: each buffer is as large as the largest run so far needed, and stays for the next.

use super::{Gpu, bytes};
use crate::engine::{Data, RunError};
use crate::plan::{Buffer, BufferId, Plan, Scope};

/// One region a buffer.
pub(super) struct Buffers<G: Gpu> {
    regions: Vec<Option<Region<G::Memory>>>,
}

struct Region<M> {
    memory: M,
    capacity: usize,
}

impl<G: Gpu> Buffers<G> {
    pub(super) fn new(plan: &Plan) -> Buffers<G> {
        Buffers {
            regions: plan.buffers.iter().map(|_| None).collect(),
        }
    }

    /// Makes room for every buffer that exists once: parameters, and what the prologue computes.
    pub(super) fn reserve_constants(&mut self, gpu: &mut G, plan: &Plan) -> Result<(), RunError> {
        let constants = plan.ids().filter(|(_, b)| b.scope == Scope::Const);
        for (id, buffer) in constants {
            self.reserve(gpu, id, buffer, (1, 1))?;
        }
        Ok(())
    }

    /// Makes room for every buffer of a run of (T, B).
    pub(super) fn reserve_all(&mut self, gpu: &mut G, plan: &Plan, run: (usize, usize)) -> Result<(), RunError> {
        plan.ids()
            .try_for_each(|(id, buffer)| self.reserve(gpu, id, buffer, run))
    }

    fn reserve(&mut self, gpu: &mut G, id: BufferId, buffer: &Buffer, run: (usize, usize)) -> Result<(), RunError> {
        let slot = &mut self.regions[id.0 as usize];
        let needed = bytes_of(buffer, run).ok_or_else(|| too_large(gpu, buffer))?.max(1);
        if slot.as_ref().is_some_and(|region| region.capacity >= needed) {
            return Ok(());
        }
        // The old region goes first, so that both need not fit.
        *slot = None;
        *slot = Some(Region {
            memory: gpu.alloc(needed, &buffer.name)?,
            capacity: needed,
        });
        Ok(())
    }

    /// The memory of a buffer.
    pub(super) fn memory(&self, id: BufferId) -> Result<&G::Memory, RunError> {
        let region = self.regions.get(id.0 as usize).and_then(Option::as_ref);
        region.map(|r| &r.memory).ok_or_else(|| unreserved(id))
    }

    fn memory_mut(&mut self, id: BufferId) -> Result<&mut G::Memory, RunError> {
        let region = self.regions.get_mut(id.0 as usize).and_then(Option::as_mut);
        region.map(|r| &mut r.memory).ok_or_else(|| unreserved(id))
    }

    pub(super) fn upload(&mut self, gpu: &mut G, plan: &Plan, id: BufferId, data: &Data) -> Result<(), RunError> {
        let bytes = bytes::encode(data, plan.buffer(id).elem);
        gpu.upload(self.memory_mut(id)?, &bytes)
    }

    pub(super) fn download(
        &self,
        gpu: &mut G,
        buffer: &Buffer,
        id: BufferId,
        run: (usize, usize),
    ) -> Result<Data, RunError> {
        let mut bytes = vec![0; bytes_of(buffer, run).ok_or_else(|| too_large(gpu, buffer))?];
        gpu.download(self.memory(id)?, &mut bytes)?;
        Ok(bytes::decode(&bytes, buffer.elem))
    }

    /// Every element becomes `value`.
    pub(super) fn fill(
        &mut self,
        gpu: &mut G,
        plan: &Plan,
        id: BufferId,
        value: f64,
        batch: usize,
    ) -> Result<(), RunError> {
        let buffer = plan.buffer(id);
        let word = bytes::word(value, buffer.elem);
        gpu.fill(self.memory_mut(id)?, word, buffer.len(1, batch))
    }

    /// Whole frames from one buffer to another of the same shape: `count` frames of `frame` bytes each.
    pub(super) fn copy_frames(
        &mut self,
        gpu: &mut G,
        (from, from_frame): (BufferId, usize),
        (to, to_frame): (BufferId, usize),
        count: usize,
        frame: usize,
    ) -> Result<(), RunError> {
        if count == 0 || frame == 0 {
            return Ok(());
        }
        let distinct = self.regions.get_disjoint_mut([from.0 as usize, to.0 as usize]);
        let Ok([Some(from_region), Some(to_region)]) = distinct else {
            return Err(unreserved(to));
        };
        let source = (&from_region.memory, from_frame * frame);
        gpu.copy(source, (&mut to_region.memory, to_frame * frame), count * frame)
    }
}

/// Bytes of a buffer in a run, if they can be counted.
fn bytes_of(buffer: &Buffer, (frames, batch): (usize, usize)) -> Option<usize> {
    let copies = match buffer.scope {
        Scope::Const => 1,
        Scope::Batch => batch,
        Scope::Frame => frames.checked_mul(batch)?,
        Scope::Window(k) => k.checked_mul(batch)?,
    };
    buffer.elements().checked_mul(copies)?.checked_mul(buffer.elem.bytes())
}

fn too_large<G: Gpu>(gpu: &G, buffer: &Buffer) -> RunError {
    RunError::Unsupported {
        device: gpu.name(),
        reason: format!("{} would have more bytes than can be counted", buffer.name),
    }
}

/// Only a plan whose parts contradict each other gets here.
fn unreserved(id: BufferId) -> RunError {
    RunError::Device(format!("buffer {} of the plan has no memory", id.0))
}
