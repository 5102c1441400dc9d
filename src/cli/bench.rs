//! `rnnc bench`: how long the compiler takes, and how long a run takes.

use super::device::{DeviceArgs, failure, named};
use super::run::Random;
use super::{CellArgs, Dtype, Failure, Outcome, compile, source};
use rnnc::codegen::{self, Target};
use rnnc::driver::{Choice, Planned};
use rnnc::{Options, Tensors};
use rnnc_runtime::cache::Cache;
use rnnc_runtime::nvrtc::{self, Job};
use rnnc_runtime::plan::Role;
use rnnc_runtime::sim::Model;
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Instant;

/// Arguments of `rnnc bench`.
#[derive(clap::Args)]
pub struct BenchArgs {
    #[command(flatten)]
    cell: CellArgs,
    /// Time the compiler: text to CUDA, to a cubin, and from the cache
    #[arg(long)]
    compile: bool,
    /// The GPU architecture to compile for
    #[arg(long, default_value = "sm_90")]
    arch: String,
    /// How reals are stored
    #[arg(long, value_enum, default_value_t)]
    dtype: Dtype,
    #[command(flatten)]
    device: DeviceArgs,
    /// With --device sim: counts, and a range of time modelled from published rates, for these cards (h100, h200, a100, l4,
    /// rtx4090); no measurement, and no speed. Take few frames: simulation is slow
    #[arg(long, value_name = "GPU,...", value_delimiter = ',')]
    model: Vec<String>,
    /// Seed of the order of events on a simulated device
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Frames
    #[arg(short = 'T', long, default_value_t = 128)]
    frames: usize,
    /// Sequences
    #[arg(short = 'B', long, default_value_t = 16)]
    batch: usize,
    /// Timed runs
    #[arg(short = 'n', long, default_value_t = 11)]
    runs: usize,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

/// Times of one thing, in seconds.
#[derive(Serialize)]
struct Times {
    what: String,
    median: f64,
    least: f64,
    most: f64,
    runs: usize,
}

/// Times compiling or running.
pub fn run(args: &BenchArgs) -> Outcome {
    let file = source::read(&args.cell.file)?;
    if !args.model.is_empty() {
        return modelled(args, &file);
    }
    let times = if args.compile {
        compiling(args, &file)?
    } else {
        vec![running(args, &file)?]
    };
    if args.json {
        return super::print_json(&times);
    }
    for t in &times {
        let (median, least, most) = (t.median * 1e3, t.least * 1e3, t.most * 1e3);
        super::print(&format!(
            "{:<34} {median:9.3} ms  (least {least:.3}, most {most:.3}, {} runs)",
            t.what, t.runs
        ))?;
    }
    if args.compile {
        super::print(
            "for comparison, LSTM and layer-norm LSTM, forward and backward, on the CPU: JAX (jit) 0.6 s and 1.0 s,",
        )?;
        super::print("torch.compile 110 s (measured 2026-11-30 on a 2-core AVX-512 machine; see docs/performance.md)")?;
    }
    Ok(())
}

/// What the kernels would cost on cards that are not there.
fn modelled(args: &BenchArgs, file: &source::Source) -> Outcome {
    if !args.device.is_simulated() || args.compile {
        return Err(Failure::Usage(
            "--model goes with --device sim, and not with --compile".to_owned(),
        ));
    }
    let models: Vec<Model> = args.model.iter().map(|name| named(name)).collect::<Result<_, _>>()?;
    let (planned, _) = compile::plan(file, &args.cell, args.dtype)?;
    let options = options(args, file, &planned);
    let run = (args.frames.max(1), args.batch.max(1));
    let costs = rnnc::modelled::costs(&file.text(), &options, &models, run).map_err(|e| failure(&e))?;
    if args.json {
        return super::print_json(&costs);
    }
    super::print(super::cost::table(&planned.plan.cell, &costs).trim_end())
}

fn options(args: &BenchArgs, file: &source::Source, planned: &Planned) -> Options {
    Options {
        file: file.name.clone(),
        cell: args.cell.cell.clone(),
        dims: planned.plan.dims.iter().cloned().collect(),
        elem: args.dtype.into(),
        ..Options::default()
    }
}

fn times(what: &str, mut seconds: Vec<f64>) -> Times {
    seconds.sort_by(f64::total_cmp);
    let at = |i: usize| seconds.get(i).copied().unwrap_or(0.0);
    let runs = seconds.len();
    Times {
        what: what.to_owned(),
        median: at(runs / 2),
        least: at(0),
        most: at(runs.saturating_sub(1)),
        runs,
    }
}

fn timed<T>(runs: usize, mut work: impl FnMut() -> Result<T, Failure>) -> Result<Vec<f64>, Failure> {
    let mut seconds = Vec::new();
    for _ in 0..runs.max(1) {
        let start = Instant::now();
        work()?;
        seconds.push(start.elapsed().as_secs_f64());
    }
    Ok(seconds)
}

fn compiling(args: &BenchArgs, file: &source::Source) -> Result<Vec<Times>, Failure> {
    let (planned, _) = compile::plan(file, &args.cell, args.dtype)?;
    let choice: Choice = source::choice(&args.cell);
    let dims: BTreeMap<rnnc::ir::Name, i64> = planned.plan.dims.iter().map(|(k, v)| (k.as_str().into(), *v)).collect();
    let target = Target {
        arch: args.arch.clone(),
        fast_math: false,
        ..Target::default()
    };
    let emit = || {
        let planned = rnnc::driver::plan(&file.bytes, &choice, &dims, args.dtype.into()).map_err(|d| file.fail(&d))?;
        Ok(codegen::cuda::emit(&planned.plan, &target))
    };
    let to_cuda = timed(args.runs, emit)?;
    let emitted = emit()?;
    let name = format!("{}.cu", planned.plan.cell);
    // As a run does it: in several modules, side by side.
    let texts = emitted.split(nvrtc::side_by_side());
    let job = |text| Job {
        text,
        name: &name,
        arch: &args.arch,
        options: &[],
        driver: None,
    };
    let jobs: Vec<Job> = texts.iter().map(|text| job(text)).collect();
    let build = |cache: &Cache| nvrtc::build_all(cache, &jobs).map_err(|e| Failure::Machine(e.to_string()));
    // The first compile of a process also opens NVRTC; it is what a user waits for, so it is timed by itself.
    let first = timed(1, || build(&Cache::off()))?;
    let again = timed(args.runs.min(5), || build(&Cache::off()))?;
    let cache = Cache::of_user();
    build(&cache)?;
    let cached = timed(args.runs, || build(&cache))?;
    Ok(vec![
        times("text to CUDA", to_cuda),
        times("CUDA to cubin, first of a process", first),
        times("CUDA to cubin, again", again),
        times("cubin from the cache", cached),
    ])
}

fn running(args: &BenchArgs, file: &source::Source) -> Result<Times, Failure> {
    let (planned, _) = compile::plan(file, &args.cell, args.dtype)?;
    let options = options(args, file, &planned);
    let cell = rnnc::compile(&file.text(), &options).map_err(|e| Failure::Input(e.to_string()))?;
    let mut random = Random::seeded(0, args.frames, args.batch);
    let mut make = |wanted: Role| -> Tensors {
        let buffers = cell.plan().buffers.iter().filter(|b| b.role == wanted);
        buffers.map(|b| (b.name.clone(), random.tensor(&cell, b))).collect()
    };
    let (params, inputs) = (make(Role::Param), make(Role::Input));
    let mut loaded = cell.load(&args.device.device(args.seed)?).map_err(|e| failure(&e))?;
    loaded.set_params(&params).map_err(|e| failure(&e))?;
    let mut forward = || loaded.forward(&inputs, &Tensors::new()).map_err(|e| failure(&e));
    forward()?; // warms caches and makes the buffers
    let seconds = timed(args.runs, forward)?;
    let what = format!(
        "{} T={} B={} on {}",
        planned.plan.cell,
        args.frames,
        args.batch,
        loaded.device()
    );
    Ok(times(&what, seconds))
}
