//! Made-up arguments, and how far two results are apart: what a device is held to where nobody recorded numbers.

use super::{Argument, Tensor};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeMap;

/// Named tensors.
type Tensors = BTreeMap<String, Tensor>;

/// A tensor for every argument, of numbers within -1..1 that f32 holds, so that an engine in f32 starts from the same: weights
/// by the square root of their last axis, so that products neither grow nor vanish; windows positive, because cells keep
/// denominators in them.
pub fn sample(arguments: &[Argument], seed: u64) -> Tensors {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    arguments
        .iter()
        .map(|a| (a.key.clone(), argument(a, &mut rng)))
        .collect()
}

fn argument(about: &Argument, rng: &mut ChaCha8Rng) -> Tensor {
    let is_weight = about.key.starts_with("p.") && about.shape.len() > 1;
    let fan_in = about.shape.last().filter(|_| is_weight).copied().unwrap_or(1);
    let scale = 1.0 / (fan_in as f32).sqrt();
    Tensor::from_fn(&about.shape, |_| match about.range {
        Some(rows) => rng.random_range(0..rows) as f64,
        None if about.is_window => f64::from(rng.random_range(0.25f32..1.0)),
        None => f64::from(rng.random_range(-1.0f32..1.0) * scale),
    })
}

/// The norm of the difference over that of `want`, but over 0.02 an element where `want` is smaller than that: what
/// cancels to nothing has no relative error. Infinite where only one is a number, or the shapes differ.
pub fn distance(got: &Tensor, want: &Tensor) -> f64 {
    if got.shape != want.shape {
        return f64::INFINITY;
    }
    let squares = |values: &mut dyn Iterator<Item = f64>| values.map(|v| v * v).sum::<f64>().sqrt();
    let apart = |(a, b): (&f64, &f64)| {
        if a == b || (a.is_nan() && b.is_nan()) {
            0.0
        } else {
            a - b
        }
    };
    let off = squares(&mut got.data.iter().zip(&want.data).map(apart));
    let finite = squares(&mut want.data.iter().copied().filter(|v| v.is_finite()));
    let distance = off / finite.max(0.02 * (want.data.len() as f64).sqrt());
    if distance.is_nan() { f64::INFINITY } else { distance }
}

/// The key at which two results are farthest apart, and how far. A key that only one has is infinitely far.
pub fn farthest(got: &Tensors, want: &Tensors) -> (String, f64) {
    let keys = got.keys().chain(want.keys());
    let far = |key: &String| match (got.get(key), want.get(key)) {
        (Some(a), Some(b)) => distance(a, b),
        _ => f64::INFINITY,
    };
    keys.map(|k| (k.clone(), far(k)))
        .max_by(|a, b| a.1.total_cmp(&b.1))
        .unwrap_or_default()
}
