//! The device that a command runs on.

use super::Failure;
use rnnc::{Device, Error};
use rnnc_runtime::sim::{MODELS, Model, Options};

/// Where to run, as the user names it.
#[derive(Clone, Debug, clap::Args)]
pub struct DeviceArgs {
    /// Where to run: cpu, cuda:0, sim, sim:a100 (a simulated GPU that checks every access; default: a GPU if there is one,
    /// else cpu)
    #[arg(long, value_name = "DEVICE")]
    device: Option<String>,
    /// Threads of the cpu device (default: all processors)
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
}

impl DeviceArgs {
    /// Whether a simulated device is asked for.
    pub fn is_simulated(&self) -> bool {
        let name = self.device.as_deref().unwrap_or("");
        name == "sim" || name.starts_with("sim:")
    }

    /// The device chosen; a simulated one takes its order of events from the seed.
    pub fn device(&self, seed: u64) -> Result<Device, Failure> {
        let threads = self.threads.filter(|n| *n > 0);
        let threads = threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, Into::into));
        let Some(name) = &self.device else {
            return Ok(if has_gpu() {
                Device::Cuda { ordinal: 0 }
            } else {
                Device::Cpu { threads }
            });
        };
        match name.split_once(':').unwrap_or((name, "0")) {
            ("cpu", "0") => Ok(Device::Cpu { threads }),
            ("cuda", ordinal) if ordinal.parse::<usize>().is_ok() => Ok(Device::Cuda {
                ordinal: ordinal.parse().unwrap_or(0),
            }),
            ("sim", model) => Ok(Device::Sim {
                model: named(if name == "sim" { MODELS[0].name } else { model })?,
                options: Options {
                    seed,
                    ..Options::default()
                },
            }),
            _ => Err(Failure::Usage(format!(
                "`{name}` is not a device; devices are cpu, cuda:0, cuda:1, ..., and sim"
            ))),
        }
    }
}

/// The model of a simulated GPU.
pub fn named(name: &str) -> Result<Model, Failure> {
    let known = || MODELS.iter().map(|m| m.name).collect::<Vec<_>>().join(", ");
    Model::named(name).ok_or_else(|| {
        Failure::Usage(format!(
            "`{name}` is no GPU that can be simulated; there are {}",
            known()
        ))
    })
}

/// What a failed run means for the exit code: the device's fault is the machine's, all else the input's.
pub fn failure(error: &Error) -> Failure {
    use rnnc_runtime::engine::RunError;
    match error {
        Error::Run(RunError::Device(_) | RunError::Unsupported { .. }) => Failure::Machine(error.to_string()),
        _ => Failure::Input(error.to_string()),
    }
}

/// Whether a GPU of this machine can be used.
fn has_gpu() -> bool {
    rnnc_runtime::cuda::probe().is_ok_and(|probe| probe.devices.iter().any(Result::is_ok))
}
