//! NVIDIA's GPUs: a number goes in, a [`Gpu`](crate::exec::Gpu) comes out, or a reason why there is none.
//!
//! The driver is loaded when a device is first asked for, never linked: on a machine without one everything else works,
//! and [`Cuda::open`] says what is missing. Nothing here panics for want of a library.

mod blaslt;
mod device;
mod probe;

#[cfg(test)]
mod tests;

pub use device::Cuda;
pub use probe::{Probe, has_cublaslt, probe};

use crate::engine::RunError;
use crate::nvrtc::Version;

/// Why there is no GPU.
#[derive(Debug, thiserror::Error)]
pub enum CudaError {
    /// libcuda is not on the loader's path.
    #[error(
        "there is no NVIDIA driver (libcuda.so.1) on this machine: install one, or run with `--device cpu`; inside a \
         container start it with access to the GPU"
    )]
    NoDriver,
    /// The driver is too old.
    #[error(
        "the NVIDIA driver is for CUDA {found}, and {OLDEST} or newer is needed: update the driver, or run with `--device cpu`"
    )]
    OldDriver {
        /// What it is for.
        found: Version,
    },
    /// There is a driver, but no such GPU.
    #[error("there is no GPU {ordinal}: the driver has {count}; run `rnnc doctor`, or with `--device cpu`")]
    NoDevice {
        /// The number asked for.
        ordinal: usize,
        /// How many there are.
        count: usize,
    },
    /// The driver refused.
    #[error("the NVIDIA driver cannot {what}: {reason}")]
    Driver {
        /// What it was to do.
        what: &'static str,
        /// Its words.
        reason: String,
    },
}

impl From<CudaError> for RunError {
    fn from(error: CudaError) -> RunError {
        RunError::Device(error.to_string())
    }
}

/// The first version with everything that is used here.
const OLDEST: Version = Version { major: 12, minor: 0 };
