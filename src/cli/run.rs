//! `rnnc run`.

use super::compile::DEFAULT_DIM;
use super::device::{DeviceArgs, failure};
use super::tensors::{self, Array, Arrays};
use super::weights::NameMap;
use super::{CellArgs, Dtype, Failure, Outcome, source};
use rand::{Rng, RngExt, SeedableRng};
use rnnc::ir::{Graph, Name, solve};
use rnnc::{Cell, Options, Run, Tensor, Tensors, driver};
use rnnc_runtime::plan::{Buffer, Elem, Role, Scope};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Instant;

/// Arguments of `rnnc run`.
#[derive(clap::Args)]
pub struct RunArgs {
    #[command(flatten)]
    cell: CellArgs,
    /// Parameters (.safetensors or .npz), called NAME or p.NAME (random where no file is given)
    #[arg(long, value_name = "FILE")]
    weights: Option<PathBuf>,
    /// Inputs [T, B, axes], called NAME or x.NAME, and initial states s0.NAME (random where no file is given)
    #[arg(long, value_name = "FILE")]
    input: Option<PathBuf>,
    /// Parameters under other names: W=lstm.weight_ih_l0,b=lstm.bias_ih_l0+lstm.bias_hh_l0 (a sum), or a file of such lines
    #[arg(long, value_name = "MAP")]
    map: Option<String>,
    /// Where to write outputs y.NAME and final states sT.NAME (.safetensors)
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    device: DeviceArgs,
    /// How reals are stored on the device
    #[arg(long, value_enum, default_value_t)]
    dtype: Dtype,
    /// Seed of random weights and inputs, and of the order of events on a simulated device
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Frames of a random input
    #[arg(short = 'T', long, default_value_t = 16)]
    frames: usize,
    /// Sequences of a random input
    #[arg(short = 'B', long, default_value_t = 1)]
    batch: usize,
    /// Print the summary as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Summary {
    cell: String,
    device: String,
    seconds: f64,
    tensors: Vec<TensorSummary>,
}

#[derive(Serialize)]
struct TensorSummary {
    name: String,
    shape: Vec<usize>,
    rms: f64,
}

/// Runs the cell.
pub fn run(args: &RunArgs) -> Outcome {
    let device = args.device.device(args.seed)?;
    let file = source::read(&args.cell.file)?;
    let map = args
        .map
        .as_deref()
        .map_or_else(|| Ok(NameMap::default()), NameMap::parse)?;
    let weights = args.weights.as_ref().map(|p| tensors::read(p)).transpose()?;
    let inputs = args.input.as_ref().map(|p| tensors::read(p)).transpose()?;
    let cell = compile(args, &file, &map, weights.as_ref(), inputs.as_ref())?;
    file.report(cell.warnings());
    let mut random = Random::new(args);
    let params = bind(&cell, "p.", |r| *r == Role::Param, weights.as_ref(), &map, &mut random)?;
    let none = NameMap::default();
    let given = bind(&cell, "x.", |r| *r == Role::Input, inputs.as_ref(), &none, &mut random)?;
    let states = initial(&cell, inputs.as_ref());
    let mut loaded = cell.load(&device).map_err(|e| failure(&e))?;
    loaded.set_params(&params).map_err(|e| failure(&e))?;
    let start = Instant::now();
    let result = loaded.forward(&given, &states).map_err(|e| failure(&e))?;
    let seconds = start.elapsed().as_secs_f64();
    let tensors = named(result);
    if let Some(path) = &args.output {
        tensors::write(path, &tensors)?;
    }
    let summary = Summary {
        cell: cell.plan().cell.clone(),
        device: loaded.device(),
        seconds,
        tensors: tensors.iter().map(summarise).collect(),
    };
    if args.json {
        super::print_json(&summary)
    } else {
        print(&summary, args.output.as_ref())
    }
}

fn compile(
    args: &RunArgs,
    file: &source::Source,
    map: &NameMap,
    weights: Option<&Arrays>,
    inputs: Option<&Arrays>,
) -> Result<Cell, Failure> {
    let checked = driver::check(&file.bytes, &source::choice(&args.cell)).map_err(|d| file.fail(&d))?;
    let graph = &checked.graph;
    let names = |ids: &[rnnc::ir::NodeId]| ids.iter().map(|id| graph.label(*id)).collect::<Vec<_>>();
    let (params, given) = (names(&graph.params), names(&graph.inputs));
    if let Some(name) = map.unknown(&params).next() {
        return Err(Failure::Usage(format!(
            "--map: the cell has no parameter {name}; it has {}",
            params.join(", ")
        )));
    }
    let mut shapes = BTreeMap::new();
    let mut collect = |arrays: Option<&Arrays>, names: &[String], prefix: &str, map: &NameMap| -> Outcome {
        let Some(arrays) = arrays else { return Ok(()) };
        for name in names {
            let array = map
                .find(arrays, prefix, name)?
                .ok_or_else(|| missing(arrays, prefix, name))?;
            shapes.insert(format!("{prefix}{name}"), array.shape);
        }
        Ok(())
    };
    collect(weights, &params, "p.", map)?;
    collect(inputs, &given, "x.", &NameMap::default())?;
    let given = args.cell.given_dims().into_iter();
    let mut dims: BTreeMap<Name, i64> = given.map(|(k, v)| (k.as_str().into(), v)).collect();
    if weights.is_none() && inputs.is_none() {
        default_dims(graph, &mut dims);
    }
    let dims = solve::solve_rest(graph, &dims, &shapes).map_err(|e| Failure::Input(e.to_string()))?;
    let mut options = Options {
        file: file.name.clone(),
        cell: args.cell.cell.clone(),
        ..Options::default()
    };
    options.elem = args.dtype.into();
    options.dims = dims.into_iter().map(|(k, v)| (k.to_string(), v)).collect();
    rnnc::compile(&file.text(), &options).map_err(|e| Failure::Input(e.to_string()))
}

/// With nothing that tells them, dimensions are what `compile` takes.
fn default_dims(graph: &Graph, dims: &mut BTreeMap<Name, i64>) {
    let open: Vec<Name> = graph.dims.iter().filter(|d| !dims.contains_key(*d)).cloned().collect();
    if !open.is_empty() {
        eprintln!(
            "note: {} not given, taken as {DEFAULT_DIM} (set with --dims)",
            open.join(", ")
        );
    }
    dims.extend(open.into_iter().map(|name| (name, DEFAULT_DIM)));
}

fn bind(
    cell: &Cell,
    prefix: &str,
    wanted: impl Fn(&Role) -> bool,
    arrays: Option<&Arrays>,
    map: &NameMap,
    random: &mut Random,
) -> Result<Tensors, Failure> {
    let mut bound = Tensors::new();
    for buffer in cell.plan().buffers.iter().filter(|b| wanted(&b.role)) {
        let tensor = match arrays {
            None => random.tensor(cell, buffer),
            Some(arrays) => {
                let found = map.find(arrays, prefix, &buffer.name)?;
                found
                    .ok_or_else(|| missing(arrays, prefix, &buffer.name))?
                    .to_tensor(buffer.elem)
            }
        };
        bound.insert(buffer.name.clone(), tensor);
    }
    Ok(bound)
}

fn missing(arrays: &Arrays, prefix: &str, name: &str) -> Failure {
    let known = arrays.keys().cloned().collect::<Vec<_>>().join(", ");
    Failure::Input(format!(
        "the file has no tensor {name} or {prefix}{name}; it has {known} (see --map)"
    ))
}

fn initial(cell: &Cell, arrays: Option<&Arrays>) -> Tensors {
    let states = cell
        .plan()
        .buffers
        .iter()
        .filter(|b| matches!(b.role, Role::Initial(_)));
    let find = |b: &Buffer| {
        arrays
            .and_then(|a| a.get(&format!("s0.{}", b.name)))
            .map(|a: &Array| a.to_tensor(b.elem))
    };
    states.filter_map(|b| Some((b.name.clone(), find(b)?))).collect()
}

fn named(run: Run) -> Tensors {
    let outputs = run.outputs.into_iter().map(|(k, v)| (format!("y.{k}"), v));
    outputs
        .chain(run.states.into_iter().map(|(k, v)| (format!("sT.{k}"), v)))
        .collect()
}

fn summarise((name, tensor): (&String, &Tensor)) -> TensorSummary {
    let values = tensor.values();
    let squares: f64 = values.iter().map(|x| f64::from(*x).powi(2)).sum();
    let rms = (squares / values.len().max(1) as f64).sqrt();
    TensorSummary {
        name: name.clone(),
        shape: tensor.shape.clone(),
        rms,
    }
}

fn print(summary: &Summary, output: Option<&PathBuf>) -> Outcome {
    super::print(&format!(
        "{} on {}: {:.3} ms",
        summary.cell,
        summary.device,
        summary.seconds * 1e3
    ))?;
    for t in &summary.tensors {
        super::print(&format!("{:<16} {:?}  rms {:.6}", t.name, t.shape, t.rms))?;
    }
    output.map_or(Ok(()), |path| super::print(&format!("wrote {}", path.display())))
}

/// Random tensors from a seed: inputs of variance 1, parameters as PyTorch's layers start (uniform within
/// 1 / sqrt of the last axis).
pub struct Random {
    rng: rand_chacha::ChaCha8Rng,
    frames: usize,
    batch: usize,
}

impl Random {
    fn new(args: &RunArgs) -> Random {
        Random::seeded(args.seed, args.frames, args.batch)
    }

    /// From a seed, for inputs of so many frames and sequences.
    pub fn seeded(seed: u64, frames: usize, batch: usize) -> Random {
        Random {
            rng: rand_chacha::ChaCha8Rng::seed_from_u64(seed),
            frames: frames.max(1),
            batch: batch.max(1),
        }
    }

    /// A tensor for a buffer.
    pub fn tensor(&mut self, cell: &Cell, buffer: &Buffer) -> Tensor {
        let lead = match buffer.scope {
            Scope::Frame => vec![self.frames, self.batch],
            Scope::Batch => vec![self.batch],
            Scope::Const | Scope::Window(_) => vec![],
        };
        let shape: Vec<usize> = lead.into_iter().chain(buffer.shape.iter().copied()).collect();
        let n = shape.iter().product();
        if buffer.elem == Elem::I32 {
            let rows = index_range(cell, &buffer.name);
            return Tensor::indices(
                &shape,
                (0..n).map(|_| self.rng.random_range(0..rows.max(1)) as i32).collect(),
            );
        }
        let limit = match buffer.role {
            Role::Param => 1.0 / (buffer.shape.last().copied().unwrap_or(1) as f32).sqrt(),
            _ => 3f32.sqrt(),
        };
        Tensor::new(&shape, (0..n).map(|_| uniform(&mut self.rng) * limit).collect())
    }
}

/// Uniform in -1..1.
fn uniform(rng: &mut impl Rng) -> f32 {
    rng.random::<f32>() * 2.0 - 1.0
}

/// Below what an index input stays.
fn index_range(cell: &Cell, name: &str) -> i64 {
    let graph = cell.graph();
    let dims = cell.plan().dims.iter().map(|(k, v)| (k.as_str().into(), *v)).collect();
    let input = graph.inputs.iter().find(|id| graph.label(**id) == name);
    match input.map(|id| &graph.node(*id).ty.scalar) {
        Some(rnnc::ir::Scalar::Index(size)) => size.eval(&dims).unwrap_or(1),
        _ => 1,
    }
}
