//! Every example cell, forward and gradients: against recorded vectors, and at odd shapes against the reference in f64.

use crate::{Job, Outcome};
use rnnc::ir::{Graph, Name};
use rnnc::reference::{self, Tensor, farthest};
use rnnc::transform::gradient;
use rnnc::{Cell, Device, Options, Tensors, compile, compile_gradient, driver};
use rnnc_runtime::engine::Data;
use rnnc_runtime::given::key;
use rnnc_runtime::plan::{Elem, Role};
use safetensors::SafeTensors;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;

/// One comparison.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The cell.
    pub cell: String,
    /// Against what, and at which sizes.
    pub what: String,
    /// The tensor that is farthest away.
    pub tensor: String,
    /// How far: the norm of the difference over that of the reference.
    pub error: Option<f64>,
    /// Why it did not run.
    pub message: Option<String>,
    /// Whether it is near enough.
    pub ok: bool,
}

/// What results and gradients may be off by, in f32; and results in 16 bits.
const RESULTS: f64 = 1e-5;
const GRADIENTS: f64 = 1e-4;
const NARROW: f64 = 1e-2;

/// Frames and sequences beside the recorded ones.
const SIZES: [(usize, usize); 4] = [(1, 1), (2, 8), (7, 3), (33, 3)];

/// Cells of every family, of which a simulated device runs odd shapes.
const SOME: [&str; 3] = ["gru", "mingru", "deltanet"];

type Named = BTreeMap<String, Tensor>;

/// Runs the suite, cells side by side.
pub fn run(job: &Job) -> Outcome<Vec<Row>> {
    let cells = texts(&job.data.join("cells"))?;
    let workers = std::thread::available_parallelism().map_or(1, usize::from).min(8);
    let share = |first: usize| -> Outcome<Vec<Row>> {
        let mine = cells.iter().skip(first).step_by(workers);
        let rows: Vec<Vec<Row>> = mine.map(|(name, text)| cell(job, name, text)).collect::<Outcome<_>>()?;
        Ok(rows.concat())
    };
    let done: Vec<Outcome<Vec<Row>>> = std::thread::scope(|scope| {
        let all: Vec<_> = (0..workers).map(|first| scope.spawn(move || share(first))).collect();
        all.into_iter()
            .map(|worker| worker.join().unwrap_or_else(|_| Err("a check panicked".into())))
            .collect()
    });
    let mut rows = done.into_iter().collect::<Outcome<Vec<_>>>()?.concat();
    rows.sort_by(|a, b| (&a.cell, &a.what).cmp(&(&b.cell, &b.what)));
    Ok(rows)
}

/// The texts of a folder, by name.
pub fn texts(folder: &Path) -> Outcome<BTreeMap<String, String>> {
    let failed = |e: std::io::Error| format!("{}: {e}", folder.display());
    let mut texts = BTreeMap::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if let Some(stem) = path.file_stem() {
            let name = stem.to_string_lossy().into_owned();
            texts.insert(name, std::fs::read_to_string(&path).map_err(failed)?);
        }
    }
    Ok(texts)
}

fn cell(job: &Job, name: &str, text: &str) -> Outcome<Vec<Row>> {
    let mut rows = Vec::new();
    let golden = job.data.join("golden");
    if golden.join(format!("{name}.json")).is_file() {
        rows.push(row(
            name,
            "recorded vectors".to_owned(),
            (RESULTS, GRADIENTS),
            recorded(job, name, text, &golden),
        ));
    }
    if job.simulated() && !SOME.contains(&name) {
        return Ok(rows);
    }
    let sizes = if job.simulated() { &SIZES[2..3] } else { &SIZES[..] };
    for first in if job.simulated() { vec![9] } else { vec![33, 64] } {
        for elem in [Elem::F32, Elem::Bf16] {
            if elem == Elem::Bf16 && job.simulated() {
                continue;
            }
            for run in sizes {
                let what = format!("{elem:?}, dims from {first}, T={}, B={}", run.0, run.1);
                let allowed = if elem == Elem::F32 {
                    (RESULTS, GRADIENTS)
                } else {
                    (NARROW, NARROW)
                };
                rows.push(row(
                    name,
                    what,
                    allowed,
                    at_odd_sizes(&job.device, name, text, (first, elem, *run)),
                ));
            }
        }
    }
    Ok(rows)
}

/// Results and gradients as they are, and as they should be.
type Pairs = [(Named, Named); 2];

fn row(cell: &str, what: String, allowed: (f64, f64), found: Outcome<Pairs>) -> Row {
    let mut row = Row {
        cell: cell.to_owned(),
        what,
        tensor: String::new(),
        error: None,
        message: None,
        ok: false,
    };
    match found {
        Err(message) => row.message = Some(message),
        Ok([results, gradients]) if results.0.len() < results.1.len() || gradients.0.len() < gradients.1.len() => {
            row.message = Some("a result or gradient is missing".to_owned());
        }
        Ok([results, gradients]) => {
            let (result, first) = farthest(&results.0, &results.1);
            let (gradient, second) = farthest(&gradients.0, &gradients.1);
            row.ok = first <= allowed.0 && second <= allowed.1;
            let worse = first / allowed.0 >= second / allowed.1;
            (row.tensor, row.error) = if worse {
                (result, Some(first))
            } else {
                (gradient, Some(second))
            };
        }
    }
    row
}

fn options(name: &str, dims: &BTreeMap<Name, i64>, elem: Elem) -> Options {
    let options = Options {
        file: format!("{name}.rnn"),
        elem,
        ..Options::default()
    };
    dims.iter()
        .fold(options, |options, (dim, value)| options.dim(dim, *value))
}

/// The graph of a cell.
pub fn graph(name: &str, text: &str) -> Outcome<Graph> {
    let choice = driver::Choice {
        cell: None,
        stem: Some(name.to_owned()),
    };
    driver::check(text.as_bytes(), &choice)
        .map(|checked| checked.graph)
        .map_err(|d| format!("{name}: {d:?}"))
}

/// Against the vectors that PyTorch gave in f64.
fn recorded(job: &Job, name: &str, text: &str, golden: &Path) -> Outcome<Pairs> {
    let about = std::fs::read_to_string(golden.join(format!("{name}.json"))).map_err(|e| e.to_string())?;
    let about: serde_json::Value = serde_json::from_str(&about).map_err(|e| e.to_string())?;
    let dims = about["dims"].as_object().ok_or("no dims")?.iter();
    let dims: BTreeMap<Name, i64> = dims
        .filter_map(|(k, v)| Some((k.as_str().into(), v.as_i64()?)))
        .collect();
    let bytes = std::fs::read(golden.join(format!("{name}.safetensors"))).map_err(|e| e.to_string())?;
    let all = vectors(&bytes)?;
    let pick = |prefixes: &[&str]| -> Named {
        let wanted = |key: &String| prefixes.iter().any(|p| key.starts_with(p));
        all.iter()
            .filter(|(k, _)| wanted(k))
            .map(|(k, v)| (k.clone(), v.clone()))
            .collect()
    };
    let found = on_device(
        &job.device,
        text,
        &options(name, &dims, Elem::F32),
        (&pick(&["x.", "p.", "s0."]), &pick(&["dy.", "dsT."])),
    )?;
    let [results, mut gradients] = found;
    let expected = pick(&["dx.", "dp.", "ds0."]);
    // Nobody recorded the gradients of masks and clocks.
    gradients.retain(|key, _| expected.contains_key(key));
    Ok([(results, pick(&["y.", "sT."])), (gradients, expected)])
}

fn vectors(bytes: &[u8]) -> Outcome<Named> {
    let file = SafeTensors::deserialize(bytes).map_err(|e| e.to_string())?;
    let tensor = |(key, view): (String, safetensors::tensor::TensorView<'_>)| {
        let eight = view.data().as_chunks::<8>().0.iter();
        let data: Vec<f64> = match view.dtype() {
            safetensors::Dtype::F64 => eight.map(|b| f64::from_le_bytes(*b)).collect(),
            safetensors::Dtype::I64 => eight.map(|b| i64::from_le_bytes(*b) as f64).collect(),
            other => return Err(format!("{key} is {other:?}")),
        };
        let shape = view.shape().to_vec();
        Ok((key, Tensor { shape, data }))
    };
    file.tensors().into_iter().map(tensor).collect()
}

/// Against the reference, at sizes that nobody recorded.
fn at_odd_sizes(
    device: &Device,
    name: &str,
    text: &str,
    (first, elem, run): (i64, Elem, (usize, usize)),
) -> Outcome<Pairs> {
    let words = |e: reference::ReferenceError| e.to_string();
    let graph = graph(name, text)?;
    let dims: BTreeMap<Name, i64> = graph.dims.iter().cloned().zip((first..).step_by(2)).collect();
    let arguments = reference::arguments(&graph, &dims, run.0, run.1).map_err(words)?;
    let options = options(name, &dims, elem);
    let mut given = reference::sample(&arguments, 1);
    round(&compile(text, &options).map_err(|e| e.to_string())?, &mut given);
    let results = reference::evaluate(&graph, &dims, run.0, run.1, &given).map_err(words)?;
    let derived = gradient::run(&graph);
    let differentiable = |key: &String| {
        key.strip_prefix("sT.")
            .is_none_or(|state| derived.windows.iter().any(|w| *w.name == *state))
    };
    let mut cotangents = Named::new();
    for (at, (key, like)) in results.iter().enumerate().filter(|(_, (key, _))| differentiable(key)) {
        let number = |i: usize| f64::from(half::bf16::from_f64(((i * 37 + at * 11) % 101) as f64 / 50.0 - 1.0));
        cotangents.insert(format!("d{key}"), Tensor::from_fn(&like.shape, number));
    }
    let gradients = reference::gradients(&derived, &dims, run, &given, &cotangents).map_err(words)?;
    let [found, slopes] = on_device(device, text, &options, (&given, &cotangents))?;
    Ok([(found, results), (slopes, gradients)])
}

/// Numbers as the device holds them, so that the reference starts from the same.
fn round(cell: &Cell, given: &mut Named) {
    for buffer in cell.plan().buffers.iter().filter(|b| b.elem == Elem::Bf16) {
        if let Some(tensor) = given.get_mut(&key(buffer)) {
            tensor
                .data
                .iter_mut()
                .for_each(|x| *x = half::bf16::from_f64(*x).to_f64());
        }
    }
}

/// Runs a cell forward and backward: results under `y. sT.`, gradients under `dx. dp. ds0.`.
fn on_device(
    device: &Device,
    text: &str,
    options: &Options,
    (given, cotangents): (&Named, &Named),
) -> Outcome<[Named; 2]> {
    let words = |e: rnnc::Error| e.to_string();
    let trainable = compile_gradient(text, options).map_err(words)?;
    let plan = trainable.forward().plan();
    let select = |wanted: fn(&Role) -> bool| -> Tensors {
        let buffers = plan.buffers.iter().filter(|b| wanted(&b.role));
        buffers
            .filter_map(|b| Some((b.name.clone(), taken(given.get(&key(b))?, b.elem))))
            .collect()
    };
    let mut training = trainable.load(device).map_err(words)?;
    training
        .set_params(&select(|role| *role == Role::Param))
        .map_err(words)?;
    let states = select(|role| matches!(role, Role::Initial(_)));
    let (run, tape) = training
        .forward(&select(|role| *role == Role::Input), &states)
        .map_err(words)?;
    let of = |prefix: &str| -> Tensors {
        let named = cotangents
            .iter()
            .filter_map(|(k, t)| Some((k.strip_prefix(prefix)?.to_owned(), taken(t, Elem::F32))));
        named.collect()
    };
    let found = training.backward(&tape, &of("dy."), &of("dsT.")).map_err(words)?;
    let keyed = |prefix: &'static str, tensors: Tensors| {
        tensors
            .into_iter()
            .map(move |(k, t)| (format!("{prefix}{k}"), given_back(t)))
    };
    let results = keyed("y.", run.outputs).chain(keyed("sT.", run.states)).collect();
    let gradients = keyed("dx.", found.inputs)
        .chain(keyed("dp.", found.params))
        .chain(keyed("ds0.", found.states));
    Ok([results, gradients.collect()])
}

fn taken(tensor: &Tensor, elem: Elem) -> rnnc::Tensor {
    match elem {
        Elem::I32 => rnnc::Tensor::indices(&tensor.shape, tensor.data.iter().map(|x| *x as i32).collect()),
        _ => rnnc::Tensor::new(&tensor.shape, tensor.data.iter().map(|x| *x as f32).collect()),
    }
}

fn given_back(tensor: rnnc::Tensor) -> Tensor {
    let data = match tensor.data {
        Data::F32(values) => values.into_iter().map(f64::from).collect(),
        Data::I32(values) => values.into_iter().map(f64::from).collect(),
    };
    Tensor {
        shape: tensor.shape,
        data,
    }
}
