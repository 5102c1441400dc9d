//! What tests share: golden files, tensors made from a seed, and how far two results are apart.

use rnnc::reference::Tensor;
use safetensors::{Dtype, SafeTensors};
use std::collections::BTreeMap;
use std::path::Path;

/// Named tensors.
pub type Tensors = BTreeMap<String, Tensor>;

/// Every tensor of a `.safetensors` file, as f64.
pub fn read_tensors(path: &Path) -> Tensors {
    let bytes = std::fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let file = SafeTensors::deserialize(&bytes).unwrap();
    let tensor = |(key, view): (String, safetensors::tensor::TensorView<'_>)| {
        let data = match view.dtype() {
            Dtype::F64 => numbers(view.data(), f64::from_le_bytes),
            Dtype::F32 => numbers(view.data(), |b| f64::from(f32::from_le_bytes(b))),
            Dtype::I32 => numbers(view.data(), |b| f64::from(i32::from_le_bytes(b))),
            Dtype::I64 => numbers(view.data(), |b| i64::from_le_bytes(b) as f64),
            other => panic!("{key} is {other:?}"),
        };
        let shape = view.shape().to_vec();
        (key, Tensor { shape, data })
    };
    file.tensors().into_iter().map(tensor).collect()
}

fn numbers<const N: usize>(bytes: &[u8], from: impl Fn([u8; N]) -> f64) -> Vec<f64> {
    bytes.as_chunks::<N>().0.iter().map(|b| from(*b)).collect()
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
