//! `rnnc check-kernels`: the emitted kernels of a cell on simulated GPUs, over odd shapes and many orders of events.

use super::device::{failure, named};
use super::{CellArgs, Dtype, Failure, Outcome, source};
use rnnc::check::{Checked, Sweep, check_kernels};
use rnnc::{Options, driver};
use rnnc_runtime::sim::Model;
use std::collections::BTreeMap;
use std::time::Instant;

/// Where dimensions that are not given begin: more than a warp, and no two of them equal.
const FIRST_DIM: i64 = 33;

/// Arguments of `rnnc check-kernels`.
#[derive(clap::Args)]
pub struct CheckKernelsArgs {
    #[command(flatten)]
    cell: CellArgs,
    /// How reals are stored
    #[arg(long, value_enum, default_value_t)]
    dtype: Dtype,
    /// Simulated GPUs: h100, h200, a100, l4, rtx4090
    #[arg(long, value_name = "GPU,...", value_delimiter = ',', default_values_t = ["h100".to_owned(), "a100".to_owned()])]
    gpu: Vec<String>,
    /// Frames
    #[arg(short = 'T', long, value_name = "T,...", value_delimiter = ',', default_values_t = [1, 2, 7, 33])]
    frames: Vec<usize>,
    /// Sequences
    #[arg(short = 'B', long, value_name = "B,...", value_delimiter = ',', default_values_t = [1, 3, 8])]
    batch: Vec<usize>,
    /// How many seeds, of numbers and of the order of events
    #[arg(long, default_value_t = 3)]
    seeds: u64,
    /// The first seed
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Largest relative error of the norm (default: 1e-5, and 1e-2 in 16 bits)
    #[arg(long)]
    tol: Option<f64>,
    /// Print every run as JSON
    #[arg(long)]
    json: bool,
}

/// Checks.
pub fn run(args: &CheckKernelsArgs) -> Outcome {
    let file = source::read(&args.cell.file)?;
    let mut options = Options {
        file: file.name.clone(),
        cell: args.cell.cell.clone(),
        elem: args.dtype.into(),
        ..Options::default()
    };
    options.dims = dims(args, &file)?;
    let sweep = sweep(args)?;
    let start = Instant::now();
    let mut runs = Vec::new();
    let mut each = |checked: Checked| {
        if !args.json {
            // A reader that went away stops nothing: the verdict is in the exit code too.
            let _ = super::print(&line(&checked));
        }
        runs.push(checked);
    };
    check_kernels(&file.text(), &options, &sweep, &mut each).map_err(|e| failure(&e))?;
    let wrong = runs.iter().filter(|run| !run.ok).count();
    if args.json {
        super::print_json(&runs)?;
    } else {
        super::print(&kernels(&runs))?;
        let verdict = if wrong == 0 { "ok" } else { "FAULTY" };
        let seconds = start.elapsed().as_secs_f64();
        super::print(&format!(
            "{verdict}: {} runs, {wrong} faulty, {seconds:.1} s",
            runs.len()
        ))?;
    }
    if wrong == 0 { Ok(()) } else { Err(Failure::Reported) }
}

fn sweep(args: &CheckKernelsArgs) -> Result<Sweep, Failure> {
    if args.frames.contains(&0) || args.batch.contains(&0) {
        return Err(Failure::Usage("T and B are at least 1".to_owned()));
    }
    let narrow = args.dtype != Dtype::F32;
    Ok(Sweep {
        models: args.gpu.iter().map(|g| named(g)).collect::<Result<Vec<Model>, _>>()?,
        frames: args.frames.clone(),
        batch: args.batch.clone(),
        seeds: (args.seed..args.seed.saturating_add(args.seeds)).collect(),
        split: true,
        tolerance: args.tol.unwrap_or(if narrow { 1e-2 } else { 1e-5 }),
    })
}

/// The dimensions given; odd, unequal ones for the others.
fn dims(args: &CheckKernelsArgs, file: &source::Source) -> Result<BTreeMap<String, i64>, Failure> {
    let checked = driver::check(&file.bytes, &source::choice(&args.cell)).map_err(|d| file.fail(&d))?;
    let mut dims = args.cell.given_dims();
    let open: Vec<String> = checked.graph.dims.iter().map(ToString::to_string).collect();
    let mut next = (FIRST_DIM..).step_by(2);
    let mut taken = Vec::new();
    for name in open.iter().filter(|name| !dims.contains_key(*name)) {
        taken.push((name.clone(), next.next().unwrap_or(FIRST_DIM)));
    }
    if !taken.is_empty() && !args.json {
        let list: Vec<String> = taken.iter().map(|(name, value)| format!("{name}={value}")).collect();
        eprintln!("note: taken {} (set with --dims)", list.join(","));
    }
    dims.extend(taken);
    Ok(dims)
}

/// A run in a line; more for one that failed.
fn line(run: &Checked) -> String {
    let split = if run.split { " split" } else { "" };
    let what = format!(
        "{:<8} T={:<3} B={:<2} seed {}{split:<6}",
        run.gpu, run.frames, run.batch, run.seed
    );
    match (&run.message, run.error) {
        (Some(message), _) => format!("{what} FAULT\n{message}"),
        (None, Some(error)) => {
            let verdict = if run.ok { "ok" } else { "MISMATCH" };
            format!("{what} {verdict}  {error:.1e} at {}", run.tensor)
        }
        (None, None) => what,
    }
}

/// What ran, a kernel a line.
fn kernels(runs: &[Checked]) -> String {
    let mut totals: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for (name, counts) in runs.iter().flat_map(|run| &run.kernels) {
        let total = totals.entry(name).or_default();
        total.0 += counts.launches;
        total.1 += counts.thread_instructions;
    }
    let line = |(name, (launches, instructions)): (&&str, &(u64, u64))| {
        format!("{name:<32} {launches:>6} launches  {instructions:>14} instructions of threads\n")
    };
    totals.iter().map(line).collect::<String>().trim_end().to_owned()
}
