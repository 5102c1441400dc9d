//! `rnnc graph`.

use super::compile;
use super::{CellArgs, Dtype, Failure, Outcome, input, source};
use rnnc::draw::{Format, Kernel, draw};
use std::path::PathBuf;

/// Arguments of `rnnc graph`.
#[derive(clap::Args)]
pub struct GraphArgs {
    #[command(flatten)]
    cell: CellArgs,
    /// The drawing: .svg, .html or .dot (default: DOT on standard output)
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Draws the cell.
pub fn run(args: &GraphArgs) -> Outcome {
    let format = format(args)?;
    let file = source::read(&args.cell.file)?;
    let (planned, _) = compile::plan(&file, &args.cell, Dtype::F32)?;
    let lists = [&planned.plan.prologue, &planned.plan.initial, &planned.plan.launches];
    let kernels: Vec<Kernel> = lists
        .into_iter()
        .flatten()
        .map(|launch| Kernel {
            name: launch.name.clone(),
            what: launch.family.name().to_owned(),
            nodes: planned.nodes.get(&launch.name).cloned().unwrap_or_default(),
        })
        .collect();
    let drawing = draw(&planned.analysed.graph, &planned.analysed.facts, &kernels, format);
    match &args.output {
        None => super::print(drawing.trim_end()),
        Some(path) => {
            std::fs::write(path, drawing).map_err(input(path.display()))?;
            super::print(&format!("wrote {}", path.display()))
        }
    }
}

fn format(args: &GraphArgs) -> Result<Format, Failure> {
    let Some(path) = &args.output else {
        return Ok(Format::Dot);
    };
    let extension = path.extension().and_then(|e| e.to_str()).unwrap_or("");
    Format::of_extension(extension)
        .ok_or_else(|| Failure::Usage(format!("{}: expected .svg, .html or .dot", path.display())))
}
