//! What a machine with a GPU is used for, in one go: every emitted kernel against the reference, microbenchmarks, times of
//! every family. `cargo xtask gpu-check` packs this program with its data; `run.py` beside it runs it and the peers.
//!
//! ```sh
//! gpu_check --device cuda:0 --data DATA -o rnnc.json      # on a GPU
//! gpu_check --device sim:h100 --data DATA -o rnnc.json    # without: a part of the suite, modelled figures instead of times
//! ```

mod micro;
mod suite;
mod timing;

use rnnc::Device;
use rnnc_runtime::sim::{Model, Options};
use serde::Serialize;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

/// What was asked for.
pub struct Job {
    /// Where kernels run.
    pub device: Device,
    /// `cells/*.rnn`, and golden vectors in `golden/`.
    pub data: PathBuf,
    /// Where the results go.
    pub out: PathBuf,
}

/// All results.
#[derive(Serialize)]
struct Results {
    device: String,
    suite: Vec<suite::Row>,
    micro: Vec<micro::Row>,
    times: Vec<timing::Row>,
    seconds: [f64; 3],
}

/// Any error, in words.
pub type Outcome<T> = Result<T, String>;

impl Job {
    fn name(&self) -> String {
        match &self.device {
            Device::Cuda { ordinal } => format!("cuda:{ordinal}"),
            Device::Sim { model, .. } => format!("{}, simulated", model.product),
            Device::Cpu { .. } => "cpu".to_owned(),
        }
    }

    /// Whether nothing can be measured.
    pub fn simulated(&self) -> bool {
        !matches!(self.device, Device::Cuda { .. })
    }
}

fn main() -> ExitCode {
    match arguments().and_then(|job| run(&job)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("gpu_check: {message}");
            ExitCode::from(2)
        }
    }
}

fn arguments() -> Outcome<Job> {
    let mut job = Job {
        device: Device::Cuda { ordinal: 0 },
        data: PathBuf::from("."),
        out: PathBuf::from("rnnc.json"),
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let value = words.next().ok_or_else(|| format!("{word} needs a value"))?;
        match word.as_str() {
            "--device" => job.device = device(&value)?,
            "--data" => job.data = value.into(),
            "-o" => job.out = value.into(),
            _ => return Err(format!("{word} is not known: --device, --data, -o")),
        }
    }
    Ok(job)
}

fn device(name: &str) -> Outcome<Device> {
    let unknown = || format!("{name} is no device: cuda:0, or sim:h100");
    match name.split_once(':').ok_or_else(unknown)? {
        ("cuda", ordinal) => Ok(Device::Cuda {
            ordinal: ordinal.parse().map_err(|_| unknown())?,
        }),
        ("sim", model) => Ok(Device::Sim {
            model: Model::named(model).ok_or_else(unknown)?,
            options: Options::default(),
        }),
        _ => Err(unknown()),
    }
}

/// Runs everything; false where a kernel is wrong, or something did not run.
fn run(job: &Job) -> Outcome<bool> {
    let start = Instant::now();
    let suite = suite::run(job)?;
    let after_suite = start.elapsed().as_secs_f64();
    let micro = micro::run(job)?;
    let after_micro = start.elapsed().as_secs_f64();
    let times = timing::run(job)?;
    let failed = micro
        .iter()
        .map(|row| &row.message)
        .chain(times.iter().map(|row| &row.message));
    let ok = suite.iter().all(|row| row.ok) && failed.flatten().next().is_none();
    let results = Results {
        device: job.name(),
        suite,
        micro,
        times,
        seconds: [
            after_suite,
            after_micro - after_suite,
            start.elapsed().as_secs_f64() - after_micro,
        ],
    };
    let text = serde_json::to_string_pretty(&results).map_err(|e| e.to_string())?;
    std::fs::write(&job.out, text).map_err(|e| format!("cannot write {}: {e}", job.out.display()))?;
    Ok(ok)
}
