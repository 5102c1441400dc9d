//! rnnc: a few lines that state a recurrent cell go in, fused CUDA kernels come out.

pub mod analysis;
mod api;
pub mod codegen;
pub mod diagnostics;
pub mod draw;
pub mod driver;
pub mod ir;
pub mod lower;
pub mod reference;
pub mod schedule;
pub mod syntax;
pub mod transform;
pub use api::modelled;
pub use api::optim;
pub use api::sanitize as check;
pub use api::{
    Cell, Device, Error, Gradients, Loaded, Options, Run, Tape, Tensor, Tensors, Trainable, Training, compile,
    compile_gradient,
};
