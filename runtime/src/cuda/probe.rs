//! What the machine's driver says of itself and its GPUs, without keeping any of them.

use super::{Cuda, CudaError, OLDEST};
use crate::exec::{Gpu, Limits};
use crate::nvrtc::Version;
use cudarc::driver::{CudaContext, DriverError, result, sys};

/// The driver and its GPUs.
#[derive(Debug)]
pub struct Probe {
    /// The CUDA version that the driver is for.
    pub driver: Version,
    /// Each GPU, or why it cannot be used.
    pub devices: Vec<Result<Limits, CudaError>>,
}

/// Asks the driver.
///
/// # Errors
/// There is none, or it does not start. No GPU is no error here.
pub fn probe() -> Result<Probe, CudaError> {
    let (driver, count) = start()?;
    let devices = (0..count).map(|ordinal| Cuda::open(ordinal).map(|cuda| cuda.limits().clone()));
    Ok(Probe {
        driver,
        devices: devices.collect(),
    })
}

/// Whether cuBLASLt is on the loader's path.
pub fn has_cublaslt() -> bool {
    // SAFETY: loading runs the initialisers of the library, which are made to be run so.
    unsafe { cudarc::cublaslt::sys::is_culib_present() }
}

/// Loads and starts the driver: its version and how many GPUs it has.
pub(super) fn start() -> Result<(Version, usize), CudaError> {
    // Without this look first, the bindings would panic.
    // SAFETY: as above, for the driver's library.
    if !unsafe { sys::is_culib_present() } {
        return Err(CudaError::NoDriver);
    }
    let found = version()?;
    if found < OLDEST {
        return Err(CudaError::OldDriver { found });
    }
    match result::init() {
        Ok(()) => {}
        // A driver on a machine whose GPU is absent or hidden.
        Err(DriverError(sys::CUresult::CUDA_ERROR_NO_DEVICE)) => return Ok((found, 0)),
        Err(error) => return Err(failed("start", error)),
    }
    let count = CudaContext::device_count().map_err(|e| failed("count its GPUs", e))?;
    Ok((found, usize::try_from(count).unwrap_or(0)))
}

fn version() -> Result<Version, CudaError> {
    let mut number = 0;
    // SAFETY: the pointer is to a live integer; this function alone may be called before the driver is started.
    let code = unsafe { sys::cuDriverGetVersion(&raw mut number) };
    code.result().map_err(|e| failed("tell its version", e))?;
    Ok(Version {
        major: number / 1000,
        minor: number % 1000 / 10,
    })
}

/// An error of the driver in its own words.
pub(super) fn failed(what: &'static str, error: DriverError) -> CudaError {
    CudaError::Driver {
        what,
        reason: words(error),
    }
}

/// `an illegal memory access was encountered (CUDA_ERROR_ILLEGAL_ADDRESS)`
pub(super) fn words(error: DriverError) -> String {
    let text = error.error_string().map(|s| s.to_string_lossy().into_owned());
    match text {
        Ok(text) => format!("{text} ({:?})", error.0),
        Err(_) => format!("{:?}", error.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_without_a_driver_is_told_so() {
        match probe() {
            Err(CudaError::NoDriver) => {
                let error = Cuda::open(0).err().map(|e| e.to_string()).unwrap_or_default();
                assert!(
                    error.contains("libcuda.so.1") && error.contains("--device cpu"),
                    "{error}"
                );
            }
            Err(other) => eprintln!("there is a driver, but: {other}"),
            Ok(probe) => {
                let beyond = probe.devices.len();
                assert!(matches!(Cuda::open(beyond), Err(CudaError::NoDevice { .. })));
            }
        }
    }
}
