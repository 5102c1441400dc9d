//! `rnnc grad-check`: a cell's gradients against finite differences of the reference, in f64.

use super::{CellArgs, Failure, Outcome, input, source};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rnnc::driver;
use rnnc::ir::{Graph, Name};
use rnnc::reference::{self, Effort, Tensor, arguments, differences, draw};
use rnnc::transform::gradient;
use serde::Serialize;
use std::collections::BTreeMap;

/// The value of dimensions that are not given: the reference is slow, and odd sizes find more.
const DEFAULT_DIM: i64 = 5;

/// Arguments of `rnnc grad-check`.
#[derive(clap::Args)]
pub struct GradCheckArgs {
    #[command(flatten)]
    cell: CellArgs,
    /// Frames
    #[arg(short = 'T', long, default_value_t = 6)]
    frames: usize,
    /// Sequences
    #[arg(short = 'B', long, default_value_t = 2)]
    batch: usize,
    /// Seed of inputs, parameters, states and cotangents
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Largest relative error of a slope
    #[arg(long, default_value_t = 1e-6)]
    tol: f64,
    /// Print the table as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Row {
    name: String,
    shape: Vec<usize>,
    directions: usize,
    error: f64,
    ok: bool,
}

#[derive(Serialize)]
struct Report {
    cell: String,
    dims: Vec<(String, i64)>,
    tolerance: f64,
    compared: Vec<Row>,
    ok: bool,
}

/// Compares and prints a table.
pub fn run(args: &GradCheckArgs) -> Outcome {
    let file = source::read(&args.cell.file)?;
    let analysed = driver::analyse(&file.bytes, &source::choice(&args.cell)).map_err(|d| file.fail(&d))?;
    let graph = &analysed.graph;
    let dims = dims(graph, &args.cell)?;
    let rows = compare(graph, &dims, args).map_err(input("grad-check"))?;
    let report = Report {
        cell: graph.name.clone(),
        dims: dims.iter().map(|(k, v)| (k.to_string(), *v)).collect(),
        tolerance: args.tol,
        ok: rows.iter().all(|r| r.ok),
        compared: rows,
    };
    if args.json {
        super::print_json(&report)?;
    } else {
        print(&report)?;
    }
    if report.ok { Ok(()) } else { Err(Failure::Reported) }
}

fn dims(graph: &Graph, cell: &CellArgs) -> Result<BTreeMap<Name, i64>, Failure> {
    let given = cell.given_dims();
    if let Some(name) = given.keys().find(|n| !graph.dims.iter().any(|d| **d == ***n)) {
        let known = graph.dims.join(", ");
        return Err(Failure::Usage(format!(
            "--dims: the cell has no dimension {name}; its dimensions are {known}"
        )));
    }
    let value = |d: &Name| given.get(&**d).copied().unwrap_or(DEFAULT_DIM);
    Ok(graph.dims.iter().map(|d| (d.clone(), value(d))).collect())
}

fn compare(
    graph: &Graph,
    dims: &BTreeMap<Name, i64>,
    args: &GradCheckArgs,
) -> Result<Vec<Row>, reference::ReferenceError> {
    let mut random = ChaCha8Rng::seed_from_u64(args.seed);
    let size = (args.frames, args.batch);
    let mut given = BTreeMap::new();
    for argument in arguments(graph, dims, size.0, size.1)? {
        let tensor = match argument.range {
            Some(rows) => Tensor::from_fn(&argument.shape, |i| ((i * 7 + 3) % rows) as f64),
            None => draw(&mut random, &argument.shape),
        };
        given.insert(argument.key, tensor);
    }
    let derived = gradient::run(graph);
    let windows = |name: &str| derived.windows.iter().any(|w| *w.name == *name);
    let mut cotangents = BTreeMap::new();
    for (key, tensor) in reference::evaluate(graph, dims, size.0, size.1, &given)? {
        // The window of an index has no cotangent.
        if key.strip_prefix("sT.").is_none_or(windows) {
            cotangents.insert(format!("d{key}"), draw(&mut random, &tensor.shape));
        }
    }
    let found = differences(
        graph,
        &derived,
        dims,
        size,
        (&given, &cotangents),
        Effort::default(),
        &mut random,
    )?;
    let row = |d: reference::Difference| Row {
        ok: d.error <= args.tol,
        name: d.key,
        shape: d.shape,
        directions: d.directions,
        error: d.error,
    };
    Ok(found.into_iter().map(row).collect())
}

fn print(report: &Report) -> Outcome {
    super::print(&format!(
        "{:<16} {:<18} {:>10}  {:>8}",
        "gradient", "shape", "directions", "error"
    ))?;
    for row in &report.compared {
        let verdict = if row.ok { "ok" } else { "MISMATCH" };
        let shape = format!("{:?}", row.shape);
        super::print(&format!(
            "{:<16} {shape:<18} {:>10}  {:.2e}  {verdict}",
            row.name, row.directions, row.error
        ))?;
    }
    let dims: Vec<String> = report.dims.iter().map(|(k, v)| format!("{k}={v}")).collect();
    let verdict = if report.ok { "ok" } else { "MISMATCH" };
    super::print(&format!(
        "{} at {}: {verdict} (tolerance {:.0e})",
        report.cell,
        dims.join(","),
        report.tolerance
    ))
}
