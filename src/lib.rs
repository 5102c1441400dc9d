//! rnnc: a few lines that state a recurrent cell go in, fused CUDA kernels come out.

pub mod analysis;
pub mod diagnostics;
pub mod ir;
pub mod syntax;
