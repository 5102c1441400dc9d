//! Running a plan on a GPU, whichever: a plan, its manifest and its compiled module go in, an [`Engine`](crate::engine::Engine)
//! comes out.
//!
//! A [`Gpu`] is memory, modules and launches and knows nothing of plans: NVIDIA's driver is one
//! ([`Cuda`](crate::cuda::Cuda)), a simulator can be another. [`GpuEngine`] knows everything else: which buffers exist,
//! what runs in which order with which arguments, what windows hold, how exchanges between blocks count their epochs.

mod buffers;
mod bytes;
mod engine;
mod gpu;
mod launch;
mod library;
mod signature;

#[cfg(test)]
mod fake;
#[cfg(test)]
mod plans;
#[cfg(test)]
pub(crate) mod samples;
#[cfg(test)]
mod tests;

pub use engine::GpuEngine;
pub use gpu::{Arg, Gemm, Gpu, LaunchShape, Limits, Rows, Word};
