//! How long the kernels of every family take, kernel by kernel: each launch is waited for, so that a figure holds a launch's
//! overhead of some microseconds. Copies to and from the host are not in it. On a simulated device the times are modelled.

use crate::suite::{graph, texts};
use crate::{Job, Outcome};
use rnnc::codegen::Tuning;
use rnnc::{Cell, Device, Error, Options, compile_gradient};
use rnnc_runtime::cuda::Cuda;
use rnnc_runtime::engine::{Data, Engine, RunError};
use rnnc_runtime::exec::{Arg, Gemm, Gpu, LaunchShape, Limits, Word};
use rnnc_runtime::nvrtc::Compiled;
use rnnc_runtime::plan::{BufferId, Elem, Role, Scope};
use rnnc_runtime::sim;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// A cell at some sizes.
#[derive(Clone, Copy)]
struct Case {
    cell: &'static str,
    size: i64,
    elem: Elem,
    frames: usize,
    batch: usize,
}

const fn case(cell: &'static str, size: i64, elem: Elem, (frames, batch): (usize, usize)) -> Case {
    Case {
        cell,
        size,
        elem,
        frames,
        batch,
    }
}

/// Loops (of which cuDNN knows the first four), scans, channel loops, matrix states.
const CASES: &[Case] = &[
    case("lstm", 768, Elem::Bf16, (1024, 16)),
    case("lstm", 256, Elem::F32, (1024, 8)),
    case("gru", 512, Elem::Bf16, (1024, 16)),
    case("elman", 512, Elem::F32, (1024, 16)),
    case("lstm_layer_norm", 512, Elem::Bf16, (512, 16)),
    case("slstm", 512, Elem::Bf16, (512, 16)),
    case("mingru", 1024, Elem::F32, (2048, 32)),
    case("gilr", 1024, Elem::F32, (2048, 32)),
    case("sru", 1024, Elem::Bf16, (2048, 32)),
    case("indrnn", 1024, Elem::F32, (2048, 32)),
    case("rwkv4", 1024, Elem::F32, (2048, 8)),
    case("mamba_s6", 64, Elem::F32, (1024, 8)),
    case("gla", 64, Elem::F32, (1024, 8)),
    case("deltanet", 64, Elem::F32, (1024, 8)),
    case("mlstm", 64, Elem::F32, (1024, 8)),
];

/// What a simulated device does instead.
const DRY: &[Case] = &[
    case("lstm", 16, Elem::F32, (3, 2)),
    case("mingru", 32, Elem::F32, (8, 2)),
];

/// Runs of which the median counts.
const RUNS: usize = 5;

/// A pass of a cell.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The cell.
    pub cell: String,
    /// `forward` or `backward`.
    pub pass: &'static str,
    /// Every dimension.
    pub size: i64,
    /// How reals are stored.
    pub elem: String,
    /// T.
    pub frames: usize,
    /// B.
    pub batch: usize,
    /// Milliseconds of all kernels; modelled: the slow end.
    pub ms: Option<f64>,
    /// Microseconds a frame.
    pub us_a_frame: Option<f64>,
    /// Bytes that have to be read and written, over the time: gigabytes a second.
    pub gigabytes: Option<f64>,
    /// Milliseconds by kernel.
    pub kernels: BTreeMap<String, f64>,
    /// Whether the times are modelled, not measured.
    pub modelled: bool,
    /// Why it did not run.
    pub message: Option<String>,
}

/// Times every case, forward with the tape and backward.
pub fn run(job: &Job) -> Outcome<Vec<Row>> {
    let texts = texts(&job.data.join("cells"))?;
    let mut rows = Vec::new();
    for case in if job.simulated() { DRY } else { CASES } {
        let text = texts
            .get(case.cell)
            .ok_or_else(|| format!("there is no cell {}", case.cell))?;
        rows.extend(passes(job, *case, text));
    }
    Ok(rows)
}

fn passes(job: &Job, case: Case, text: &str) -> Vec<Row> {
    let empty = |pass| Row {
        cell: case.cell.to_owned(),
        pass,
        size: case.size,
        elem: format!("{:?}", case.elem).to_lowercase(),
        frames: case.frames,
        batch: case.batch,
        ms: None,
        us_a_frame: None,
        gigabytes: None,
        kernels: BTreeMap::new(),
        modelled: job.simulated(),
        message: None,
    };
    let compiled = options(case, text).and_then(|o| compile_gradient(text, &o).map_err(|e| e.to_string()));
    let trainable = match compiled {
        Ok(trainable) => trainable,
        Err(message) => {
            let message = Some(message);
            return vec![Row {
                message,
                ..empty("forward")
            }];
        }
    };
    let one = |pass, cell: &Cell| {
        let mut row = empty(pass);
        match kernels(job, cell, case) {
            Ok(kernels) => fill(&mut row, cell, kernels),
            Err(e) => row.message = Some(e.to_string()),
        }
        row
    };
    vec![
        one("forward", trainable.forward()),
        one("backward", trainable.backward()),
    ]
}

/// All dimensions are the same.
fn options(case: Case, text: &str) -> Outcome<Options> {
    let graph = graph(case.cell, text)?;
    let options = Options {
        file: format!("{}.rnn", case.cell),
        elem: case.elem,
        ..Options::default()
    };
    Ok(graph
        .dims
        .iter()
        .fold(options, |options, dim| options.dim(dim, case.size)))
}

fn fill(row: &mut Row, cell: &Cell, kernels: BTreeMap<String, f64>) {
    let ms: f64 = kernels.values().sum();
    let outside = |role: &Role| !matches!(role, Role::Prologue | Role::Temp);
    let buffers = cell.plan().buffers.iter().filter(|b| outside(&b.role));
    let count = |b: &rnnc_runtime::plan::Buffer| {
        let times = match b.scope {
            Scope::Const => 1,
            Scope::Batch | Scope::Window(1) => row.batch,
            Scope::Frame => row.frames * row.batch,
            Scope::Window(k) => k * row.batch,
        };
        times * b.elements() * b.elem.bytes()
    };
    let bytes: usize = buffers.map(count).sum();
    row.ms = Some(ms);
    row.us_a_frame = Some(ms * 1e3 / row.frames as f64);
    row.gigabytes = Some(bytes as f64 / (ms * 1e6));
    row.kernels = kernels;
}

/// Milliseconds by kernel.
fn kernels(job: &Job, cell: &Cell, case: Case) -> Result<BTreeMap<String, f64>, Error> {
    match job.device {
        Device::Cuda { ordinal } => {
            let gpu = Cuda::open(ordinal).map_err(RunError::from)?;
            let times = Times::default();
            let timed = Timed {
                gpu,
                times: Arc::clone(&times),
            };
            let mut engine = cell.on_gpu(timed)?;
            let inputs = prepare(&mut engine, cell, case)?;
            let mut runs = Vec::new();
            for _ in 0..=RUNS {
                times.lock().unwrap_or_else(PoisonError::into_inner).clear();
                engine.run(case.frames, case.batch, &inputs)?;
                runs.push(times.lock().unwrap_or_else(PoisonError::into_inner).clone());
            }
            // The first run makes buffers.
            Ok(median(&runs[1..]))
        }
        Device::Sim { model, options } => {
            let options = sim::Options {
                modelled: true,
                ..options
            };
            let mut engine = cell.simulate(model, options, Tuning::default())?;
            let inputs = prepare(&mut engine, cell, case)?;
            let before = engine.gpu().costs().len();
            engine.run(case.frames, case.batch, &inputs)?;
            let mut kernels = BTreeMap::new();
            for (name, cost) in &engine.gpu().costs()[before..] {
                *kernels.entry(name.clone()).or_default() += cost.modelled.microseconds[1] / 1e3;
            }
            Ok(kernels)
        }
        Device::Cpu { .. } => Ok(BTreeMap::new()),
    }
}

fn median(runs: &[BTreeMap<String, f64>]) -> BTreeMap<String, f64> {
    let mut kernels = BTreeMap::new();
    for name in runs.iter().flat_map(BTreeMap::keys) {
        let mut times: Vec<f64> = runs.iter().filter_map(|run| run.get(name).copied()).collect();
        times.sort_by(f64::total_cmp);
        kernels.insert(name.clone(), times[times.len() / 2] * 1e3);
    }
    kernels
}

/// Sets parameters; the inputs.
fn prepare(engine: &mut dyn Engine, cell: &Cell, case: Case) -> Result<BTreeMap<BufferId, Data>, Error> {
    let data = |wanted: fn(&Role) -> bool| -> BTreeMap<BufferId, Data> {
        let buffers = cell.plan().ids().filter(|(_, b)| wanted(&b.role));
        let numbers = |b: &rnnc_runtime::plan::Buffer| {
            let times = match b.scope {
                Scope::Const => 1,
                Scope::Batch | Scope::Window(1) => case.batch,
                Scope::Frame => case.frames * case.batch,
                Scope::Window(k) => k * case.batch,
            };
            let count = times * b.elements();
            match b.elem {
                Elem::I32 => Data::I32(vec![0; count]),
                _ => Data::F32((0..count).map(|i| (i * 37 % 101) as f32 / 2000.0 - 0.02).collect()),
            }
        };
        buffers.map(|(id, b)| (id, numbers(b))).collect()
    };
    engine.set_params(&data(|role| *role == Role::Param))?;
    Ok(data(|role| matches!(role, Role::Input | Role::Initial(_))))
}

/// Seconds by kernel.
type Times = Arc<Mutex<BTreeMap<String, f64>>>;

/// A device whose launches are waited for and timed.
struct Timed {
    gpu: Cuda,
    times: Times,
}

/// A kernel with its name.
struct Named {
    name: String,
    function: <Cuda as Gpu>::Function,
}

impl Timed {
    fn timed<T>(&mut self, name: &str, work: impl FnOnce(&mut Cuda) -> Result<T, RunError>) -> Result<T, RunError> {
        self.gpu.synchronize()?;
        let start = Instant::now();
        let done = work(&mut self.gpu)?;
        self.gpu.synchronize()?;
        let mut times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
        *times.entry(name.to_owned()).or_default() += start.elapsed().as_secs_f64();
        Ok(done)
    }
}

impl Gpu for Timed {
    type Memory = <Cuda as Gpu>::Memory;
    type Module = <Cuda as Gpu>::Module;
    type Function = Named;

    fn name(&self) -> String {
        self.gpu.name()
    }

    fn limits(&self) -> &Limits {
        self.gpu.limits()
    }

    fn alloc(&mut self, bytes: usize, name: &str) -> Result<Self::Memory, RunError> {
        self.gpu.alloc(bytes, name)
    }

    fn upload(&mut self, to: &mut Self::Memory, bytes: &[u8]) -> Result<(), RunError> {
        self.gpu.upload(to, bytes)
    }

    fn download(&mut self, from: &Self::Memory, bytes: &mut [u8]) -> Result<(), RunError> {
        self.gpu.download(from, bytes)
    }

    fn copy(
        &mut self,
        from: (&Self::Memory, usize),
        to: (&mut Self::Memory, usize),
        bytes: usize,
    ) -> Result<(), RunError> {
        self.gpu.copy(from, to, bytes)
    }

    fn fill(&mut self, to: &mut Self::Memory, word: Word, count: usize) -> Result<(), RunError> {
        self.gpu.fill(to, word, count)
    }

    fn load(&mut self, module: &Compiled) -> Result<Self::Module, RunError> {
        self.gpu.load(module)
    }

    fn function(&mut self, module: &Self::Module, name: &str, shared: u32) -> Result<Named, RunError> {
        let function = self.gpu.function(module, name, shared)?;
        Ok(Named {
            name: name.to_owned(),
            function,
        })
    }

    fn resident(&mut self, function: &Named, block: u32, shared: u32) -> Result<u64, RunError> {
        self.gpu.resident(&function.function, block, shared)
    }

    fn launch(
        &mut self,
        function: &Named,
        shape: LaunchShape,
        arguments: &[Arg<'_, Self::Memory>],
    ) -> Result<(), RunError> {
        self.timed(&function.name, |gpu| gpu.launch(&function.function, shape, arguments))
    }

    fn gemm(&mut self, gemm: &Gemm<'_, Self::Memory>) -> Result<bool, RunError> {
        self.timed("product of the library", |gpu| gpu.gemm(gemm))
    }

    fn synchronize(&mut self) -> Result<(), RunError> {
        self.gpu.synchronize()
    }
}
