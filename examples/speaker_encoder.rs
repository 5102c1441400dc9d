//! A real model on real speech: the speaker encoder of Resemblyzer, three LSTMs in a row and a linear layer, compiled from
//! `examples/cells/lstm.rnn` and compared with recorded outputs. Where the data come from: `examples/data/NOTICE.md`.
//!
//! ```sh
//! cargo xtask demo
//! ```

use rnnc::codegen::{self, Target};
use rnnc::{Cell, Device, Loaded, Options, Tensor, Tensors, compile};
use rnnc_runtime::cache::Cache;
use rnnc_runtime::cuda::Cuda;
use rnnc_runtime::exec::Gpu;
use rnnc_runtime::nvrtc::{self, Job};
use safetensors::SafeTensors;
use std::error::Error;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

const SOURCE: &str = include_str!("cells/lstm.rnn");
const LAYERS: usize = 3;
const HIDDEN: usize = 256;

/// What the outputs may differ from the recorded ones, which were computed in f64.
const TOLERANCE: f32 = 1e-5;

/// Without a GPU, what the CUDA text is written and compiled for.
const ARCH: &str = "sm_90";

fn main() -> ExitCode {
    match run() {
        Ok(largest) if largest <= TOLERANCE => ExitCode::SUCCESS,
        Ok(_) => {
            eprintln!("the error is above {TOLERANCE:e}");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Compiles and runs the encoder; the largest error against the recorded outputs.
fn run() -> Result<f32, Box<dyn Error>> {
    let weights = read("speaker_encoder.weights.safetensors")?;
    let recorded = read("speaker_encoder.io.safetensors")?;
    let x = &recorded["x"];
    let (frames, batch, mels) = (x.shape[0], x.shape[1], x.shape[2]);
    println!("speaker encoder: LSTM {mels} -> {HIDDEN} -> {HIDDEN} -> {HIDDEN} on {frames} frames of {batch} voices\n");

    let cells = [mels, HIDDEN, HIDDEN].map(|inputs| compile_layer(inputs).map_err(|e| e.to_string()));
    let cells: Vec<Cell> = cells.into_iter().collect::<Result<_, _>>()?;
    let gpu = Cuda::open(0).ok().map(|gpu| gpu.limits().clone());
    show_plan(&cells[0]);
    show_cuda(&cells[0], gpu.as_ref().map_or(ARCH, |limits| &limits.arch))?;

    let mut layers = load(&cells, gpu.is_some())?;
    for (n, layer) in layers.iter_mut().enumerate() {
        layer.set_params(&layer_params(&weights, n))?;
    }
    forward(&mut layers, x)?; // the first run also touches memory for the first time
    let start = Instant::now();
    let (y, states) = forward(&mut layers, x)?;
    show_time(&layers[0].device(), start.elapsed(), frames * batch);

    let largest = largest_error(&y, &states, &weights, &recorded);
    println!("largest error: {largest:.1e}");
    Ok(largest)
}

fn compile_layer(inputs: usize) -> Result<Cell, rnnc::Error> {
    compile(
        SOURCE,
        &Options::default().dim("I", inputs as i64).dim("H", HIDDEN as i64),
    )
}

/// All layers on the GPU, if there is one that takes them, else on the processor.
fn load(cells: &[Cell], try_gpu: bool) -> Result<Vec<Loaded>, rnnc::Error> {
    let all = |device: &Device| {
        cells
            .iter()
            .map(|cell| cell.load(device))
            .collect::<Result<Vec<_>, _>>()
    };
    if try_gpu {
        match all(&Device::Cuda { ordinal: 0 }) {
            Ok(layers) => return Ok(layers),
            Err(error) => eprintln!("not on the GPU: {error}"),
        }
    }
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    all(&Device::Cpu { threads })
}

/// PyTorch's two biases of a layer are one here: they are only ever added.
fn layer_params(weights: &Tensors, n: usize) -> Tensors {
    let get = |name: &str| weights[&format!("lstm.{name}_l{n}")].clone();
    let (ih, hh) = (get("bias_ih"), get("bias_hh"));
    let bias = ih.values().iter().zip(hh.values()).map(|(a, b)| a + b).collect();
    Tensors::from([
        ("W".to_owned(), get("weight_ih")),
        ("R".to_owned(), get("weight_hh")),
        ("b".to_owned(), Tensor::new(&ih.shape, bias)),
    ])
}

/// The outputs of the last layer, and the final states of all.
fn forward(layers: &mut [Loaded], x: &Tensor) -> Result<(Tensor, Vec<Tensors>), rnnc::Error> {
    let mut y = x.clone();
    let mut states = Vec::new();
    for layer in layers {
        let mut run = layer.forward(&Tensors::from([("x".to_owned(), y)]), &Tensors::new())?;
        y = run.outputs.remove("h").unwrap_or_else(|| Tensor::new(&[], vec![]));
        states.push(run.states);
    }
    Ok((y, states))
}

/// Over the outputs, the final states and the embeddings.
fn largest_error(y: &Tensor, states: &[Tensors], weights: &Tensors, recorded: &Tensors) -> f32 {
    let joined = |name: &str| {
        states
            .iter()
            .flat_map(|s| s[name].values().to_vec())
            .collect::<Vec<f32>>()
    };
    let last = states[LAYERS - 1]["h"].values();
    let pairs = [
        (y.values().to_vec(), &recorded["y"]),
        (joined("h"), &recorded["hT"]),
        (joined("c"), &recorded["cT"]),
        (embed(last, weights), &recorded["embedding"]),
    ];
    pairs
        .iter()
        .map(|(got, want)| difference(got, want.values()))
        .fold(0.0, f32::max)
}

/// The largest difference, relative where the recorded number is above 1; infinite where there is none to be had: another
/// number of elements, or a NaN.
fn difference(got: &[f32], want: &[f32]) -> f32 {
    let each = got.iter().zip(want).map(|(a, b)| (a - b).abs() / b.abs().max(1.0));
    if got.len() != want.len() || each.clone().any(f32::is_nan) {
        return f32::INFINITY;
    }
    each.fold(0.0, f32::max)
}

/// What identifies the voice: `relu(W h + b)`, of length 1.
fn embed(h: &[f32], weights: &Tensors) -> Vec<f32> {
    let (weight, bias) = (weights["linear.weight"].values(), weights["linear.bias"].values());
    let mut all = Vec::new();
    for voice in h.chunks(HIDDEN) {
        let dot = |row: &[f32]| row.iter().zip(voice).map(|(w, h)| w * h).sum::<f32>();
        let raw: Vec<f32> = weight
            .chunks(HIDDEN)
            .zip(bias)
            .map(|(row, b)| (dot(row) + b).max(0.0))
            .collect();
        let norm = raw.iter().map(|v| v * v).sum::<f32>().sqrt();
        all.extend(raw.iter().map(|v| v / norm));
    }
    all
}

fn show_plan(cell: &Cell) {
    println!("plan of the first layer:");
    for launch in &cell.plan().launches {
        println!(
            "  {:<8} {}: {}",
            launch.family.name(),
            launch.name,
            launch.equations.join("; ")
        );
    }
}

/// The CUDA text of a layer, and what NVRTC makes of it.
fn show_cuda(cell: &Cell, arch: &str) -> Result<(), Box<dyn Error>> {
    let target = Target {
        arch: arch.to_owned(),
        ..Target::default()
    };
    let emitted = codegen::cuda::emit(cell.plan(), &target);
    println!("CUDA:   {} lines for {arch}", emitted.text.lines().count());
    let job = Job {
        text: &emitted.text,
        name: "lstm.cu",
        arch,
        options: &[],
        driver: None,
    };
    let start = Instant::now();
    let built = nvrtc::build(&Cache::of_user(), &job)?;
    let how = if built.cached { "from the cache" } else { "by NVRTC" };
    let bytes = built.compiled.cubin.len();
    println!("cubin:  {bytes} bytes {how} in {:.0} ms", milliseconds(start.elapsed()));
    for kernel in built.compiled.kernels() {
        println!(
            "        {}: {} registers, {} bytes spilled",
            kernel.name, kernel.registers, kernel.spill_stores
        );
    }
    Ok(())
}

fn show_time(device: &str, time: Duration, frames: usize) {
    println!("device: {device}");
    let each = time.as_secs_f64() * 1e6 / frames as f64;
    println!(
        "time:   {:.1} ms, {each:.1} us a frame of one voice",
        milliseconds(time)
    );
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// All tensors of a file in `examples/data`.
fn read(name: &str) -> Result<Tensors, Box<dyn Error>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/data").join(name);
    let bytes = std::fs::read(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    let file = SafeTensors::deserialize(&bytes)?;
    let tensor = |view: &safetensors::tensor::TensorView<'_>| {
        let (numbers, _) = view.data().as_chunks::<4>();
        Tensor::new(view.shape(), numbers.iter().map(|b| f32::from_le_bytes(*b)).collect())
    };
    Ok(file
        .iter()
        .map(|(name, view)| (name.to_owned(), tensor(&view)))
        .collect())
}
