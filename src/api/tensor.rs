//! Tensors as callers of the Rust API hold them.

use rnnc_runtime::engine::Data;
use std::ops::Range;

/// A dense row-major tensor on the host. Sequences are time-major: `[T, B, axes]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    /// Its extents.
    pub shape: Vec<usize>,
    /// Its elements.
    pub data: Data,
}

impl Tensor {
    /// A tensor of reals.
    ///
    /// # Panics
    /// Never; a wrong number of elements is reported where the tensor is used.
    pub fn new(shape: &[usize], data: Vec<f32>) -> Tensor {
        Tensor {
            shape: shape.to_vec(),
            data: Data::F32(data),
        }
    }

    /// A tensor of indices.
    pub fn indices(shape: &[usize], data: Vec<i32>) -> Tensor {
        Tensor {
            shape: shape.to_vec(),
            data: Data::I32(data),
        }
    }

    /// Some of its frames: positions along the first axis. None past the end.
    pub(super) fn frames(&self, frames: &Range<usize>) -> Tensor {
        let all = self.shape.first().copied().unwrap_or(0);
        let (first, last) = (frames.start.min(all), frames.end.min(all));
        let frame = self.data.len() / all.max(1);
        let own = first * frame..last * frame;
        let mut shape = self.shape.clone();
        if let Some(extent) = shape.first_mut() {
            *extent = last - first;
        }
        let data = match &self.data {
            Data::F32(values) => Data::F32(values[own].to_vec()),
            Data::I32(values) => Data::I32(values[own].to_vec()),
        };
        Tensor { shape, data }
    }

    /// Adds the frames of a tensor of the same type and axes.
    pub(super) fn append(&mut self, more: Tensor) {
        if let (Some(extent), Some(further)) = (self.shape.first_mut(), more.shape.first()) {
            *extent += further;
        }
        match (&mut self.data, more.data) {
            (Data::F32(values), Data::F32(more)) => values.extend(more),
            (Data::I32(values), Data::I32(more)) => values.extend(more),
            _ => {}
        }
    }

    /// Adds a tensor of reals of the same shape, element by element.
    pub(super) fn add(&mut self, more: &Tensor) {
        if let Data::F32(values) = &mut self.data {
            values.iter_mut().zip(more.values()).for_each(|(v, m)| *v += m);
        }
    }

    /// Its reals; empty if it holds indices.
    pub fn values(&self) -> &[f32] {
        match &self.data {
            Data::F32(values) => values,
            Data::I32(_) => &[],
        }
    }
}

/// Tensors by name.
pub type Tensors = std::collections::BTreeMap<String, Tensor>;
