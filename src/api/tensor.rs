//! Tensors as callers of the Rust API hold them.

use rnnc_runtime::engine::Data;

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
