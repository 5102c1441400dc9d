//! The microbenchmarks of softgpu's model, measured: the time of a step is the slope between two numbers of steps, of the best
//! of several launches each. On a simulated device the modelled figures are given.

use crate::{Job, Outcome};
use rnnc::Device;
use rnnc_runtime::cuda::Cuda;
use rnnc_runtime::exec::{Arg, Gpu, LaunchShape, Word};
use rnnc_runtime::nvrtc::{Compiled, Compiler};
use serde::Serialize;
use softgpu::cost::microbench::{self, ALL, Microbench, Prepared, Unit};
use std::time::Instant;

/// A figure.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The microbenchmark.
    pub name: String,
    /// Measured on the device, in the unit; none where nothing can be measured, or it failed.
    pub measured: Option<f64>,
    /// Modelled, for the card or the nearest one.
    pub modelled: Option<[f64; 2]>,
    /// Published.
    pub published: Option<[f64; 2]>,
    /// The unit.
    pub unit: &'static str,
    /// Why it failed.
    pub message: Option<String>,
}

/// Launches of which the best counts.
const TRIES: usize = 7;
/// On a card, so many times the steps of the model.
const MORE: i32 = 512;
/// Of which microbenchmarks a dry run gives modelled figures.
const DRY: [&str; 3] = ["shared memory, chain", "mma m16n8k16, rate", "hand-over by words"];

/// Measures, or models.
pub fn run(job: &Job) -> Outcome<Vec<Row>> {
    match &job.device {
        Device::Cuda { ordinal } => {
            let gpu = Cuda::open(*ordinal).map_err(|e| e.to_string())?;
            measured(gpu)
        }
        Device::Sim { model, .. } => modelled(model.name),
        Device::Cpu { .. } => Err("a processor has no such figures".to_owned()),
    }
}

fn row(bench: &Microbench, card: &str) -> Row {
    Row {
        name: bench.name.to_owned(),
        measured: None,
        modelled: None,
        published: microbench::published(bench.name, card),
        unit: bench.unit.name(),
        message: None,
    }
}

fn modelled(card: &str) -> Outcome<Vec<Row>> {
    let arch = softgpu::Device::named(card).map_or(90, |device| device.capability);
    let compiler = Compiler::open().map_err(|e| e.to_string())?;
    let text = compiler
        .compile(microbench::ANY, "any.cu", &format!("sm_{arch}"), &[])
        .map_err(|e| e.to_string())?;
    let benches = ALL.iter().filter(|bench| DRY.contains(&bench.name));
    let one = |bench: &Microbench| {
        let mut row = row(bench, card);
        match bench.modelled(&text.ptx, card) {
            Ok(figure) => row.modelled = Some(figure),
            Err(e) => row.message = Some(e.to_string()),
        }
        row
    };
    Ok(benches.map(one).collect())
}

/// The card of the tables that this product is, or is nearest to.
fn card(product: &str) -> &'static str {
    let named = [
        ("H200", "h200"),
        ("H100", "h100"),
        ("A100", "a100"),
        ("L4", "l4"),
        ("4090", "rtx4090"),
    ];
    named
        .iter()
        .find(|(part, _)| product.contains(part))
        .map_or("h100", |(_, card)| card)
}

fn measured(mut gpu: Cuda) -> Outcome<Vec<Row>> {
    let limits = gpu.limits().clone();
    let compiler = Compiler::open_for(&limits.arch, limits.driver).map_err(|e| e.to_string())?;
    let compile = |text: &str, options: &[&str]| {
        compiler
            .compile(text, "micro.cu", &limits.arch, options)
            .map_err(|e| e.to_string())
    };
    let any = compile(microbench::ANY, &[])?;
    let clusters = limits
        .arch
        .trim_start_matches("sm_")
        .parse::<u32>()
        .is_ok_and(|capability| capability >= 90);
    let clock = clock(&mut gpu, &any)?;
    let card = card(&limits.product);
    let mut rows = Vec::new();
    for bench in ALL.iter().filter(|bench| clusters || !bench.of_cluster()) {
        let mut row = row(bench, card);
        let found = match bench.of_cluster() {
            true => compile(microbench::CLUSTER, &[&format!("-DCLUSTER_BLOCKS={}", bench.cluster)])
                .and_then(|text| figure(&mut gpu, &text, bench, clock)),
            false => figure(&mut gpu, &any, bench, clock),
        };
        match found {
            Ok(value) => row.measured = Some(value),
            Err(message) => row.message = Some(message),
        }
        rows.push(row);
    }
    Ok(rows)
}

/// Cycles a nanosecond while kernels run.
fn clock(gpu: &mut Cuda, text: &Compiled) -> Outcome<f64> {
    const CYCLES: i32 = 1 << 20;
    let kernel = Kernel::new(gpu, text, "spin", 1 << 12)?;
    let shape = shape(1, 32, false);
    let times = [1, 5].map(|times| kernel.best(gpu, shape, [times * CYCLES, 0]));
    let [short, long] = times;
    Ok(4.0 * f64::from(CYCLES) / ((long? - short?) * 1e9))
}

fn shape(grid: u32, block: u32, cooperative: bool) -> LaunchShape {
    LaunchShape {
        grid,
        block,
        shared: 0,
        cooperative,
    }
}

/// A kernel with memory.
struct Kernel {
    function: <Cuda as Gpu>::Function,
    memory: <Cuda as Gpu>::Memory,
}

impl Kernel {
    fn new(gpu: &mut Cuda, text: &Compiled, name: &str, bytes: usize) -> Outcome<Kernel> {
        let words = |e: rnnc_runtime::engine::RunError| e.to_string();
        let module = gpu.load(text).map_err(words)?;
        let mut memory = gpu.alloc(bytes, "memory").map_err(words)?;
        gpu.fill(&mut memory, Word::Bits32(0), bytes / 4).map_err(words)?;
        let function = gpu.function(&module, name, 0).map_err(words)?;
        Ok(Kernel { function, memory })
    }

    /// Seconds of the best of several launches.
    fn best(&self, gpu: &mut Cuda, shape: LaunchShape, [n, argument]: [i32; 2]) -> Outcome<f64> {
        let words = |e: rnnc_runtime::engine::RunError| e.to_string();
        let mut best = f64::INFINITY;
        for _ in 0..TRIES {
            gpu.synchronize().map_err(words)?;
            let start = Instant::now();
            let arguments = [Arg::Memory(&self.memory), Arg::Int(n), Arg::Int(argument)];
            gpu.launch(&self.function, shape, &arguments).map_err(words)?;
            gpu.synchronize().map_err(words)?;
            best = best.min(start.elapsed().as_secs_f64());
        }
        Ok(best)
    }
}

/// Memory and steps on a card: rings longer than the caches they are to miss, and enough steps for a clock of the host.
fn on_card(bench: &Microbench) -> (usize, Option<(i32, i32)>, [i32; 2]) {
    match (bench.memory, bench.kernel) {
        (Prepared::Ring { stride: 4096, .. }, _) => (1 << 28, Some((1 << 19, 512)), [1 << 19, 1 << 20]),
        (Prepared::Ring { stride, count }, _) => {
            (stride * count, Some((count as i32, stride as i32)), [1 << 16, 1 << 17])
        }
        (_, "copy") => (1 << 28, None, [256, 1024]),
        (Prepared::Zeros(bytes), _) => (bytes.max(1 << 22), None, bench.steps.map(|n| n * MORE)),
    }
}

fn figure(gpu: &mut Cuda, text: &Compiled, bench: &Microbench, clock: f64) -> Outcome<f64> {
    let (bytes, ring, steps) = on_card(bench);
    let kernel = Kernel::new(gpu, text, bench.kernel, bytes)?;
    if let Some((count, stride)) = ring {
        let lay = Kernel::new(gpu, text, "lay_ring", 4096)?;
        let lay = Kernel {
            memory: kernel.memory,
            ..lay
        };
        lay.best(gpu, shape(1, 256, false), [count, stride])?;
        let kernel = Kernel {
            memory: lay.memory,
            ..kernel
        };
        return slope(gpu, &kernel, bench, (steps, clock));
    }
    slope(gpu, &kernel, bench, (steps, clock))
}

fn slope(gpu: &mut Cuda, kernel: &Kernel, bench: &Microbench, (steps, clock): ([i32; 2], f64)) -> Outcome<f64> {
    let blocks = bench.blocks.unwrap_or(gpu.limits().processors);
    let shape = shape(blocks, bench.threads, bench.cooperative);
    let [short, long] = steps.map(|n| kernel.best(gpu, shape, [n, bench.argument]));
    let ns = (long? - short?) * 1e9 / (f64::from(steps[1] - steps[0]) * bench.parts);
    Ok(match bench.unit {
        Unit::Cycles => ns * clock,
        Unit::Nanoseconds => ns,
        Unit::Gigabytes(bytes) => bytes / ns,
    })
}
