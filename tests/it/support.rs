//! What tests share: golden files, tensors made from a seed, and how far two results are apart.

use rnnc::reference::Tensor;
pub use rnnc::reference::{distance, farthest};
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
