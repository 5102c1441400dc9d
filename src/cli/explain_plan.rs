//! `rnnc explain-plan`.

use super::compile;
use super::{CellArgs, Dtype, Outcome, source};
use rnnc::analysis::report::{self, Report};
use rnnc::driver::Planned;
use rnnc_runtime::plan::{Kernel, Launch, Plan, cost};
use serde::Serialize;

/// Arguments of `rnnc explain-plan`.
#[derive(clap::Args)]
pub struct ExplainPlanArgs {
    #[command(flatten)]
    cell: CellArgs,
    /// How reals are stored
    #[arg(long, value_enum, default_value_t)]
    dtype: Dtype,
    /// Frames, for the counts of bytes and operations
    #[arg(short = 'T', long, default_value_t = 128)]
    frames: usize,
    /// Sequences, for the counts of bytes and operations
    #[arg(short = 'B', long, default_value_t = 16)]
    batch: usize,
    /// For training: explain the cell with its tape, then what computes the gradients
    #[arg(long)]
    grad: bool,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Explained {
    cell: String,
    dims: Vec<(String, i64)>,
    frames: usize,
    batch: usize,
    recurrences: Report,
    prologue: Vec<Row>,
    initial: Vec<Row>,
    launches: Vec<Row>,
    transforms: Vec<(String, usize)>,
}

/// A launch in the user's terms.
#[derive(Serialize)]
struct Row {
    name: String,
    family: &'static str,
    equations: Vec<String>,
    bytes: u64,
    operations: u64,
    synchronisations_per_frame: u64,
    after: Vec<usize>,
}

/// Explains the plan.
pub fn run(args: &ExplainPlanArgs) -> Outcome {
    let file = source::read(&args.cell.file)?;
    let (plans, defaulted) = compile::plans(&file, &args.cell, args.dtype, args.grad)?;
    let explained: Vec<Explained> = plans.iter().map(|planned| explain(planned, args)).collect();
    if args.json {
        return match explained.as_slice() {
            [one] => super::print_json(one),
            several => super::print_json(&several),
        };
    }
    if !defaulted.is_empty() {
        eprintln!(
            "note: {} not given, taken as 256 (set with --dims)",
            defaulted.join(", ")
        );
    }
    explained.iter().try_for_each(print)
}

fn explain(planned: &Planned, args: &ExplainPlanArgs) -> Explained {
    let analysed = &planned.analysed;
    let rows = |launches: &[Launch]| launches.iter().map(|l| row(&planned.plan, l, args)).collect();
    let applied = analysed.applied.iter().filter(|a| a.changes > 0);
    Explained {
        cell: planned.plan.cell.clone(),
        dims: planned.plan.dims.clone(),
        frames: args.frames,
        batch: args.batch,
        recurrences: report::report(&analysed.graph, &analysed.facts),
        prologue: rows(&planned.plan.prologue),
        initial: rows(&planned.plan.initial),
        launches: rows(&planned.plan.launches),
        transforms: applied.map(|a| (a.pass.to_owned(), a.changes)).collect(),
    }
}

fn row(plan: &Plan, launch: &Launch, args: &ExplainPlanArgs) -> Row {
    let cost = cost(plan, launch, args.frames, args.batch);
    let synchronisations = match &launch.kernel {
        Kernel::Loop(looped) => looped.phases.len() as u64,
        Kernel::Product(_) | Kernel::Total(_) | Kernel::Channel(_) => 0,
    };
    Row {
        name: launch.name.clone(),
        family: launch.family.name(),
        equations: launch.equations.clone(),
        bytes: cost.bytes(),
        operations: cost.operations,
        synchronisations_per_frame: synchronisations,
        after: launch.after.clone(),
    }
}

fn print(explained: &Explained) -> Outcome {
    let dims: Vec<String> = explained.dims.iter().map(|(k, v)| format!("{k} = {v}")).collect();
    let at = format!("T = {}, B = {}", explained.frames, explained.batch);
    super::print(&format!("{} at {}, {at}\n", explained.cell, dims.join(", ")))?;
    super::print(&explained.recurrences.to_string())?;
    for (title, rows) in [
        ("once per parameter change", &explained.prologue),
        ("once a run, for initial states that are not given", &explained.initial),
        ("every run", &explained.launches),
    ] {
        if !rows.is_empty() {
            super::print(&format!("{title}:"))?;
            rows.iter().enumerate().try_for_each(|(i, row)| print_row(i, row))?;
        }
    }
    Ok(())
}

fn print_row(i: usize, row: &Row) -> Outcome {
    let synchronisations = match row.synchronisations_per_frame {
        0 => String::new(),
        n => format!(", {n} exchange{} a frame", if n == 1 { "" } else { "s" }),
    };
    let (bytes, operations) = (scaled(row.bytes, "B"), scaled(row.operations, "op"));
    super::print(&format!(
        "  {}. {} ({}): {bytes}, {operations}{synchronisations}",
        i + 1,
        row.name,
        row.family
    ))?;
    row.equations
        .iter()
        .try_for_each(|equation| super::print(&format!("       {equation}")))
}

/// 1234567 as `1.23 M`.
fn scaled(n: u64, unit: &str) -> String {
    let x = n as f64;
    match x {
        x if x >= 1e9 => format!("{:.2} G{unit}", x / 1e9),
        x if x >= 1e6 => format!("{:.2} M{unit}", x / 1e6),
        x if x >= 1e3 => format!("{:.2} k{unit}", x / 1e3),
        _ => format!("{n} {unit}"),
    }
}
