//! The contents of a plan's buffers. Reals are held as f32, rounded to the buffer's 16-bit type where it has one; indices
//! are held as their bits, so that a buffer is a slice of f32 in any case.

use crate::engine::Data;
use crate::plan::{Buffer, BufferId, Elem, Plan};

/// All buffers at the current frames and batch. They grow and are kept.
#[derive(Default)]
pub(super) struct Memory {
    buffers: Vec<Vec<f32>>,
}

impl Memory {
    /// Gives every buffer its size; contents stay only where the size does.
    pub(super) fn resize(&mut self, plan: &Plan, frames: usize, batch: usize) {
        self.buffers.resize_with(plan.buffers.len(), Vec::new);
        for (memory, buffer) in self.buffers.iter_mut().zip(&plan.buffers) {
            memory.resize(buffer.len(frames, batch), 0.0);
        }
    }

    pub(super) fn get(&self, id: BufferId) -> &[f32] {
        &self.buffers[id.0 as usize]
    }

    pub(super) fn get_mut(&mut self, id: BufferId) -> &mut [f32] {
        &mut self.buffers[id.0 as usize]
    }

    /// Takes over what the caller gave, of the right length.
    pub(super) fn set(&mut self, buffer: &Buffer, id: BufferId, data: &Data) {
        let memory = self.get_mut(id);
        match data {
            Data::F32(values) => {
                memory.copy_from_slice(values);
                round(buffer.elem, memory);
            }
            Data::I32(values) => {
                let bits = values.iter().map(|v| f32::from_bits(v.cast_unsigned()));
                memory.iter_mut().zip(bits).for_each(|(to, from)| *to = from);
            }
        }
    }

    /// Copies elements between buffers of one type.
    pub(super) fn copy(&mut self, source: BufferId, from: usize, target: BufferId, to: usize, len: usize) {
        if let Ok([source, target]) = self.buffers.get_disjoint_mut([source.0 as usize, target.0 as usize]) {
            target[to..to + len].copy_from_slice(&source[from..from + len]);
        }
    }

    /// This number everywhere.
    pub(super) fn fill(&mut self, buffer: &Buffer, id: BufferId, value: f64) {
        let mut stored = [value as f32];
        round(buffer.elem, &mut stored);
        self.get_mut(id).fill(stored[0]);
    }

    /// A copy for the caller.
    pub(super) fn data(&self, buffer: &Buffer, id: BufferId) -> Data {
        let memory = self.get(id);
        match buffer.elem {
            Elem::I32 => Data::I32(memory.iter().map(|x| x.to_bits().cast_signed()).collect()),
            _ => Data::F32(memory.to_vec()),
        }
    }

    /// Access for kernels, from several threads.
    pub(super) fn view(&mut self) -> View {
        let region = |memory: &mut Vec<f32>| Region {
            start: memory.as_mut_ptr(),
            len: memory.len(),
        };
        View {
            regions: self.buffers.iter_mut().map(region).collect(),
        }
    }

    /// Renews a view after the buffers changed, without allocating.
    pub(super) fn renew(&mut self, view: &mut View) {
        view.regions.clear();
        let region = |memory: &mut Vec<f32>| Region {
            start: memory.as_mut_ptr(),
            len: memory.len(),
        };
        view.regions.extend(self.buffers.iter_mut().map(region));
    }
}

/// Converts registers to what an element holds.
pub(super) fn round(elem: Elem, values: &mut [f32]) {
    match elem {
        Elem::F32 => {}
        Elem::F16 => values.iter_mut().for_each(|x| *x = half::f16::from_f32(*x).to_f32()),
        Elem::Bf16 => values.iter_mut().for_each(|x| *x = half::bf16::from_f32(*x).to_f32()),
        Elem::I32 => values
            .iter_mut()
            .for_each(|x| *x = f32::from_bits((*x as i32).cast_unsigned())),
    }
}

/// Where a buffer lies.
#[derive(Clone, Copy)]
struct Region {
    start: *mut f32,
    len: usize,
}

/// What kernels see of the memory. Threads of one launch write elements of their own and read only buffers, or elements,
/// that no thread writes meanwhile: the plan's checker guarantees it.
pub(super) struct View {
    regions: Vec<Region>,
}

// SAFETY: the regions are plain memory that outlives every launch (the engine owns both), and the methods that touch it
// state who may do so when.
unsafe impl Send for View {}
// SAFETY: as above.
unsafe impl Sync for View {}

impl View {
    /// Elements `start..start + len`.
    ///
    /// # Safety
    /// The memory behind the view is alive and nobody writes these elements while the result lives.
    pub(super) unsafe fn read(&self, id: BufferId, start: usize, len: usize) -> &[f32] {
        let region = self.regions[id.0 as usize];
        assert!(
            start <= region.len && len <= region.len - start,
            "a read within the buffer"
        );
        // SAFETY: within the region, checked above; the rest is the caller's promise.
        unsafe { std::slice::from_raw_parts(region.start.add(start), len) }
    }

    /// Elements `start..start + len`, as a pointer that may be written through.
    ///
    /// # Safety
    /// The memory behind the view is alive, and each element is written by one thread, while nobody reads it.
    pub(super) unsafe fn write(&self, id: BufferId, start: usize, len: usize) -> *mut f32 {
        let region = self.regions[id.0 as usize];
        assert!(
            start <= region.len && len <= region.len - start,
            "a write within the buffer"
        );
        // SAFETY: within the region, checked above.
        unsafe { region.start.add(start) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sixteen_bit_buffers_hold_what_sixteen_bits_can() {
        let mut values = [1.0, 1.0 + 1.0 / 512.0, 1e30, f32::NAN];
        round(Elem::Bf16, &mut values);
        assert_eq!(values[..2], [1.0, 1.0]);
        assert!((values[2] / 1e30 - 1.0).abs() < 4e-3 && values[3].is_nan());
        let mut values = [1.0 + 1.0 / 4096.0, 1e30];
        round(Elem::F16, &mut values);
        assert_eq!(values, [1.0, f32::INFINITY]);
    }
}
