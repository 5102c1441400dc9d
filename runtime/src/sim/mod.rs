//! Simulated GPUs: a model and a seed go in, a [`Gpu`](crate::exec::Gpu) comes out that runs the very PTX that NVRTC made,
//! in an order drawn from the seed, and reports every race, stray access and misused barrier as an error.
//!
//! The work is done by the crate softgpu, which knows nothing of plans.

mod device;
#[cfg(test)]
mod tests;

pub use device::{Counts, Memory, Options, Sim};
pub use softgpu::cost::trace::Term;
pub use softgpu::cost::{Cost, Counts as CostCounts, Modelled};
pub use softgpu::fault::Fault;

/// A model of a GPU that can be simulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Model {
    /// Its short name, as in `--device sim:h100`.
    pub name: &'static str,
    /// The product's name.
    pub product: &'static str,
    /// Device memory in bytes.
    pub memory: u64,
}

/// The models, the default first.
pub const MODELS: &[Model] = &[
    model("h100", "NVIDIA H100 SXM", 80),
    model("h200", "NVIDIA H200", 141),
    model("a100", "NVIDIA A100 SXM", 80),
    model("l4", "NVIDIA L4", 24),
    model("rtx4090", "NVIDIA GeForce RTX 4090", 24),
];

const fn model(name: &'static str, product: &'static str, gigabytes: u64) -> Model {
    Model {
        name,
        product,
        memory: gigabytes << 30,
    }
}

impl Model {
    /// The model of this short name.
    pub fn named(name: &str) -> Option<Model> {
        MODELS.iter().copied().find(|model| model.name == name)
    }
}
