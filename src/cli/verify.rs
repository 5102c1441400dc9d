//! `rnnc verify`: a cell against recorded vectors.

use super::device::{DeviceArgs, failure};
use super::tensors::{self, Array, Arrays};
use super::{CellArgs, Failure, Outcome, source};
use rnnc::driver;
use rnnc::ir::solve;
use rnnc::{Cell, Loaded, Tensors, Trainable};
use rnnc_runtime::plan::{Buffer, Elem, Role};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Arguments of `rnnc verify`.
#[derive(clap::Args)]
pub struct VerifyArgs {
    #[command(flatten)]
    cell: CellArgs,
    /// Recorded vectors (.safetensors or .npz): x.NAME inputs, p.NAME parameters, s0.NAME initial states (default where
    /// missing), y.NAME outputs, sT.NAME final states; with --grad, cotangents dy.NAME and dsT.NAME (zero where missing) and
    /// gradients dx.NAME, dp.NAME, ds0.NAME
    #[arg(long, value_name = "FILE")]
    data: PathBuf,
    #[command(flatten)]
    device: DeviceArgs,
    /// Seed of the order of events on a simulated device
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Largest relative error of the norm
    #[arg(long, default_value_t = 1e-5)]
    tol: f64,
    /// Compare gradients too
    #[arg(long)]
    grad: bool,
    /// Largest relative error of a gradient's norm
    #[arg(long, default_value_t = 1e-4, requires = "grad")]
    grad_tol: f64,
    /// Keep states every so many frames only, and run the rest again for the gradients
    #[arg(long, value_name = "FRAMES", requires = "grad")]
    checkpoint: Option<usize>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// One compared tensor.
#[derive(Serialize)]
struct Compared {
    name: String,
    error: f64,
    absolute: bool,
    ok: bool,
}

#[derive(Serialize)]
struct Report {
    cell: String,
    device: String,
    tolerance: f64,
    compared: Vec<Compared>,
    /// Gradients that the file lacks.
    lacking: Vec<String>,
    ok: bool,
}

/// Runs the cell and compares.
pub fn run(args: &VerifyArgs) -> Outcome {
    let arrays = tensors::read(&args.data)?;
    let file = source::read(&args.cell.file)?;
    let checked = driver::check(&file.bytes, &source::choice(&args.cell)).map_err(|d| file.fail(&d))?;
    let shapes: BTreeMap<String, Vec<usize>> = arrays.iter().map(|(k, a)| (k.clone(), a.shape.clone())).collect();
    let given = args
        .cell
        .given_dims()
        .into_iter()
        .map(|(k, v)| (k.as_str().into(), v))
        .collect();
    let dims = solve::solve_rest(&checked.graph, &given, &shapes).map_err(|e| Failure::Input(e.to_string()))?;
    let mut options = rnnc::Options {
        file: file.name.clone(),
        cell: args.cell.cell.clone(),
        ..Default::default()
    };
    options.dims = dims.into_iter().map(|(k, v)| (k.to_string(), v)).collect();
    let cell = rnnc::compile(&file.text(), &options).map_err(|e| Failure::Input(e.to_string()))?;
    refuse_unknown(&cell, &arrays)?;
    let mut loaded = cell.load(&args.device.device(args.seed)?).map_err(|e| failure(&e))?;
    let results = execute(&cell, &mut loaded, &arrays)?;
    let mut report = compare(&cell, loaded.device(), &results, &arrays, args.tol)?;
    if args.grad {
        let trainable = rnnc::compile_gradient(&file.text(), &options).map_err(|e| Failure::Input(e.to_string()))?;
        let found = gradients(&cell, &trainable, args, &arrays)?;
        compare_gradients(&found, &arrays, args.grad_tol, &mut report)?;
    }
    let ok = report.ok;
    if args.json {
        super::print_json(&report)?
    } else {
        print(&report)?
    }
    if ok { Ok(()) } else { Err(Failure::Reported) }
}

/// Runs the cell forward and backward; the gradients under their keys.
fn gradients(cell: &Cell, trainable: &Trainable, args: &VerifyArgs, arrays: &Arrays) -> Result<Tensors, Failure> {
    let mut training = trainable
        .load(&args.device.device(args.seed)?)
        .map_err(|e| failure(&e))?;
    training
        .set_params(&select(cell, arrays, |r| *r == Role::Param))
        .map_err(|e| failure(&e))?;
    let inputs = select(cell, arrays, |r| *r == Role::Input);
    let states = select(cell, arrays, |r| matches!(r, Role::Initial(_)));
    let ran = match args.checkpoint {
        Some(every) => training.forward_checkpointed(&inputs, &states, every),
        None => training.forward(&inputs, &states),
    };
    let (_, tape) = ran.map_err(|e| failure(&e))?;
    let cotangents = |prefix: &str| -> Tensors {
        let named = arrays.iter().filter_map(|(k, a)| Some((k.strip_prefix(prefix)?, a)));
        named.map(|(k, a)| (k.to_owned(), a.to_tensor(Elem::F32))).collect()
    };
    let found = training.backward(&tape, &cotangents("dy."), &cotangents("dsT."));
    let found = found.map_err(|e| failure(&e))?;
    let keyed =
        |prefix: &'static str, tensors: Tensors| tensors.into_iter().map(move |(k, v)| (format!("{prefix}{k}"), v));
    let inputs = keyed("dx.", found.inputs);
    Ok(inputs
        .chain(keyed("dp.", found.params))
        .chain(keyed("ds0.", found.states))
        .collect())
}

/// Compares every gradient that the file has; one that the cell does not have is a mistake.
fn compare_gradients(found: &Tensors, arrays: &Arrays, tol: f64, report: &mut Report) -> Outcome {
    let is_gradient = |key: &String| ["dx.", "dp.", "ds0."].iter().any(|p| key.starts_with(p));
    if let Some(name) = arrays.keys().find(|key| is_gradient(key) && !found.contains_key(*key)) {
        return Err(Failure::Input(format!("the cell has no gradient {name}")));
    }
    for (name, got) in found {
        let Some(expected) = arrays.get(name) else {
            report.lacking.push(name.clone());
            continue;
        };
        report.compared.push(compared(name.clone(), got, expected, tol)?);
    }
    report.ok = report.compared.iter().all(|c| c.ok);
    Ok(())
}

/// Names that the cell does not have are mistakes.
fn refuse_unknown(cell: &Cell, arrays: &Arrays) -> Outcome {
    let known: Vec<String> = cell.plan().buffers.iter().map(rnnc_runtime::given::key).collect();
    let ignored = ["dy.", "dsT.", "dx.", "dp.", "ds0."];
    let unknown = arrays
        .keys()
        .find(|name| !known.contains(name) && !ignored.iter().any(|p| name.starts_with(p)));
    match unknown {
        None => Ok(()),
        Some(name) => {
            let visible = known
                .into_iter()
                .filter(|k| k.contains('.'))
                .collect::<Vec<_>>()
                .join(", ");
            Err(Failure::Input(format!(
                "the cell has nothing called {name}; it has {visible}"
            )))
        }
    }
}

/// The tensors of a role, under their plain names.
fn select(cell: &Cell, arrays: &Arrays, wanted: impl Fn(&Role) -> bool) -> Tensors {
    let buffers = cell.plan().buffers.iter().filter(|b| wanted(&b.role));
    let found = buffers.filter_map(|b| {
        Some((
            b.name.clone(),
            arrays.get(&rnnc_runtime::given::key(b))?.to_tensor(b.elem),
        ))
    });
    found.collect()
}

fn execute(cell: &Cell, loaded: &mut Loaded, arrays: &Arrays) -> Result<Tensors, Failure> {
    loaded
        .set_params(&select(cell, arrays, |r| *r == Role::Param))
        .map_err(|e| failure(&e))?;
    let inputs = select(cell, arrays, |r| *r == Role::Input);
    let states = select(cell, arrays, |r| matches!(r, Role::Initial(_)));
    let run = loaded.forward(&inputs, &states).map_err(|e| failure(&e))?;
    let outputs = run.outputs.into_iter().map(|(k, v)| (format!("y.{k}"), v));
    Ok(outputs
        .chain(run.states.into_iter().map(|(k, v)| (format!("sT.{k}"), v)))
        .collect())
}

fn compare(cell: &Cell, device: String, results: &Tensors, arrays: &Arrays, tol: f64) -> Result<Report, Failure> {
    let mut compared = Vec::new();
    let is_result = |b: &&Buffer| matches!(b.role, Role::Output | Role::Final);
    for buffer in cell.plan().buffers.iter().filter(is_result) {
        let name = rnnc_runtime::given::key(buffer);
        let Some(expected) = arrays.get(&name) else {
            if buffer.role == Role::Final {
                continue; // a file may leave final states out
            }
            return Err(Failure::Input(format!("the file lacks {name}, an output of the cell")));
        };
        let got = &results[&name];
        compared.push(self::compared(name, got, expected, tol)?);
    }
    let ok = compared.iter().all(|c| c.ok);
    Ok(Report {
        cell: cell.plan().cell.clone(),
        device,
        tolerance: tol,
        compared,
        lacking: Vec::new(),
        ok,
    })
}

fn compared(name: String, got: &rnnc::Tensor, expected: &Array, tol: f64) -> Result<Compared, Failure> {
    if got.shape != expected.shape {
        return Err(Failure::Input(format!(
            "{name} has shape {:?} in the file, {:?} here",
            expected.shape, got.shape
        )));
    }
    let got: Vec<f64> = match &got.data {
        rnnc_runtime::engine::Data::F32(values) => values.iter().map(|x| f64::from(*x)).collect(),
        rnnc_runtime::engine::Data::I32(values) => values.iter().map(|x| f64::from(*x)).collect(),
    };
    let (error, absolute) = error_of(&got, expected);
    Ok(Compared {
        name,
        error,
        absolute,
        ok: error <= tol,
    })
}

/// The relative error of the norm; absolute where the reference is zero. What is not finite must be equal.
fn error_of(got: &[f64], expected: &Array) -> (f64, bool) {
    let (mut difference, mut norm) = (0.0, 0.0);
    for (a, b) in got.iter().zip(&expected.data) {
        if !b.is_finite() || !a.is_finite() {
            if a == b || (a.is_nan() && b.is_nan()) {
                continue;
            }
            return (f64::INFINITY, false);
        }
        difference += (a - b) * (a - b);
        norm += b * b;
    }
    if norm == 0.0 {
        (difference.sqrt(), true)
    } else {
        ((difference / norm).sqrt(), false)
    }
}

fn print(report: &Report) -> Outcome {
    for c in &report.compared {
        let kind = if c.absolute { "absolute" } else { "relative" };
        let verdict = if c.ok { "ok" } else { "MISMATCH" };
        super::print(&format!("{:<16} {:.2e} {kind}  {verdict}", c.name, c.error))?;
    }
    if !report.lacking.is_empty() {
        super::print(&format!("not in the file: {}", report.lacking.join(", ")))?;
    }
    let verdict = if report.ok { "ok" } else { "MISMATCH" };
    super::print(&format!(
        "{} on {}: {verdict} (tolerance {:.0e})",
        report.cell, report.device, report.tolerance
    ))
}
