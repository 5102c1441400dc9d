//! Evaluates a graph in f64, slow and obvious: what every plan, pass and device is measured against.
//!
//! A graph, sizes and tensors come in under the keys `x.NAME`, `p.NAME` and `s0.NAME`; outputs and final windows go out as
//! `y.NAME` and `sT.NAME`. The outputs of a graph that runs against time have no more extents than their kind. Layouts: a parameter `[axes]`; a static input `[B, axes]`; an input and an output `[T, B, axes]`;
//! a window `[B, axes]`, or `[k, B, axes]` oldest first where the largest delay k is above 1. Everything is row-major.
//!
//! Nothing here is shared with the plan or the engines except the functions of one and two numbers, so that an error
//! would have to be made twice to go unseen.

mod bind;
mod differences;
mod error;
mod gradients;
mod op;
mod reverse;
mod run;
mod sample;

pub use differences::{Difference, Effort, differences, draw};
pub use error::ReferenceError;
pub use gradients::{backward_arguments, gradients};
pub use sample::{distance, farthest, sample};

use crate::ir::{Graph, Name};
use std::collections::BTreeMap;

/// Numbers in row-major order under a shape. Indices are whole numbers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tensor {
    /// The extents; none for a scalar.
    pub shape: Vec<usize>,
    /// As many numbers as the product of the extents.
    pub data: Vec<f64>,
}

impl Tensor {
    /// A tensor of this shape whose element at each position is given by `element(position)`.
    pub fn from_fn(shape: &[usize], element: impl FnMut(usize) -> f64) -> Tensor {
        Tensor {
            shape: shape.to_vec(),
            data: (0..shape.iter().product()).map(element).collect(),
        }
    }
}

/// A tensor that a graph takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Argument {
    /// `x.NAME`, `p.NAME` or `s0.NAME`.
    pub key: String,
    /// Its extents.
    pub shape: Vec<usize>,
    /// For indices: they are below this.
    pub range: Option<usize>,
    /// Whether it is an initial window, which need not be given.
    pub is_window: bool,
}

/// Every tensor that [`evaluate`] takes: inputs and parameters in declared order, then windows.
///
/// # Errors
/// A dimension is missing or unknown; a size is not positive or too large.
pub fn arguments(
    graph: &Graph,
    dims: &BTreeMap<Name, i64>,
    frames: usize,
    batch: usize,
) -> Result<Vec<Argument>, ReferenceError> {
    let sizes = bind::sizes(graph, dims, frames, batch)?;
    Ok(bind::arguments(graph, &sizes).into_iter().map(|(_, a)| a).collect())
}

/// Runs `frames` frames of `batch` sequences of the cell, which must satisfy `ir::verify`.
///
/// # Errors
/// A tensor is missing, misshapen or of a name that the cell does not have; a dimension is missing or unknown; a size is not
/// positive or too large; an index is outside its range.
pub fn evaluate(
    graph: &Graph,
    dims: &BTreeMap<Name, i64>,
    frames: usize,
    batch: usize,
    given: &BTreeMap<String, Tensor>,
) -> Result<BTreeMap<String, Tensor>, ReferenceError> {
    let sizes = bind::sizes(graph, dims, frames, batch)?;
    if !graph.against_time {
        return run::run(graph, &sizes, &bind::bind(graph, &sizes, given)?);
    }
    bind::bind(graph, &sizes, given)?;
    let turned = reverse::given(graph, batch, given);
    let results = run::run(graph, &sizes, &bind::bind(graph, &sizes, &turned)?)?;
    Ok(reverse::results(graph, batch, results))
}

#[cfg(test)]
mod tests;
