//! Compares gradients with finite differences of the reference.
//!
//! The loss is the sum of cotangents times results; its slope along a direction, by a central difference, must be the
//! direction times the gradient. Small tensors are moved element by element, large ones along random directions.

use super::{ReferenceError, Tensor, evaluate, gradients};
use crate::ir::{Graph, Name};
use crate::transform::gradient::Gradient;
use rand::{Rng, RngExt};
use std::collections::BTreeMap;

/// The step: the error of a central difference goes with its square, rounding with its inverse.
const STEP: f64 = 1e-5;
/// A slope below this has no relative error worth the name.
const FLOOR: f64 = 0.1;

/// Along how many directions a tensor is moved.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Tensors of no more elements are moved one by one.
    pub small: usize,
    /// Random directions for larger ones.
    pub directions: usize,
}

impl Default for Effort {
    fn default() -> Effort {
        Effort {
            small: 24,
            directions: 8,
        }
    }
}

/// A tensor whose gradient was compared.
#[derive(Clone, Debug)]
pub struct Difference {
    /// The gradient's key: `dx.NAME`, `dp.NAME` or `ds0.NAME`.
    pub key: String,
    /// Its extents.
    pub shape: Vec<usize>,
    /// Along how many directions.
    pub directions: usize,
    /// The largest error, relative to the slope.
    pub error: f64,
}

/// Every real tensor that a graph was given, compared. `gradient` is the graph's.
///
/// # Errors
/// What [`gradients`] reports of the tensors.
pub fn differences(
    graph: &Graph,
    gradient: &Gradient,
    dims: &BTreeMap<Name, i64>,
    size: (usize, usize),
    (given, cotangents): (&BTreeMap<String, Tensor>, &BTreeMap<String, Tensor>),
    effort: Effort,
    random: &mut impl Rng,
) -> Result<Vec<Difference>, ReferenceError> {
    let found = gradients(gradient, dims, size, given, cotangents)?;
    let loss = |given: &BTreeMap<String, Tensor>| -> Result<f64, ReferenceError> {
        let results = evaluate(graph, dims, size.0, size.1, given)?;
        let product = |(key, tensor): (&String, &Tensor)| Some(dot(tensor, cotangents.get(&format!("d{key}"))?));
        Ok(results.iter().filter_map(product).sum())
    };
    let mut rows = Vec::new();
    for (key, tensor) in given {
        let name = format!("d{key}");
        let Some(gradient) = found.get(&name) else {
            continue; // an index
        };
        let directions = directions(&tensor.shape, effort, random);
        let mut error: f64 = 0.0;
        for direction in &directions {
            let above = loss(&moved(given, key, direction, STEP))?;
            let below = loss(&moved(given, key, direction, -STEP))?;
            let (slope, expected) = ((above - below) / (2.0 * STEP), dot(gradient, direction));
            let apart = (slope - expected).abs() / slope.abs().max(FLOOR);
            error = if apart.is_nan() {
                f64::INFINITY
            } else {
                error.max(apart)
            };
        }
        rows.push(Difference {
            key: name,
            shape: tensor.shape.clone(),
            directions: directions.len(),
            error,
        });
    }
    Ok(rows)
}

/// Numbers away from 0, where some functions have a corner.
pub fn draw(random: &mut impl Rng, shape: &[usize]) -> Tensor {
    Tensor::from_fn(shape, |_| {
        let size = random.random_range(0.05..0.95);
        if random.random_bool(0.5) { size } else { -size }
    })
}

fn directions(shape: &[usize], effort: Effort, random: &mut impl Rng) -> Vec<Tensor> {
    let elements: usize = shape.iter().product();
    if elements <= effort.small {
        let unit = |place| Tensor::from_fn(shape, |i| f64::from(u8::from(i == place)));
        return (0..elements).map(unit).collect();
    }
    (0..effort.directions).map(|_| draw(random, shape)).collect()
}

fn moved(given: &BTreeMap<String, Tensor>, key: &str, direction: &Tensor, by: f64) -> BTreeMap<String, Tensor> {
    let mut given = given.clone();
    if let Some(tensor) = given.get_mut(key) {
        tensor
            .data
            .iter_mut()
            .zip(&direction.data)
            .for_each(|(a, d)| *a += by * d);
    }
    given
}

fn dot(a: &Tensor, b: &Tensor) -> f64 {
    a.data.iter().zip(&b.data).map(|(a, b)| a * b).sum()
}
