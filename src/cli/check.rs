//! `rnnc check`.

use super::{Failure, Outcome, source};
use rnnc::diagnostics::{Diagnostics, render};
use rnnc::{lower, syntax};
use std::path::PathBuf;

/// Arguments of `rnnc check`.
#[derive(clap::Args)]
pub struct CheckArgs {
    /// The files (`-` is standard input)
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Print the messages as JSON on standard output
    #[arg(long)]
    json: bool,
}

/// Checks every cell of every file; warnings alone are no failure.
pub fn run(args: &CheckArgs) -> Outcome {
    let mut failed = false;
    let mut reports = Vec::new();
    for path in &args.files {
        let file = source::read(path)?;
        let found = check(&file.bytes);
        failed |= found.has_errors();
        if args.json {
            reports.push(render::to_json(&found, &file.name, &file.text()));
        } else {
            file.report(&found);
            if !found.has_errors() {
                super::print(&format!("{}: ok", file.name))?;
            }
        }
    }
    if args.json {
        super::print_json(&reports)?;
    }
    if failed { Err(Failure::Reported) } else { Ok(()) }
}

fn check(bytes: &[u8]) -> Diagnostics {
    let (file, mut found) = syntax::parse(bytes);
    if !found.has_errors() {
        found.0.extend(lower::check(&file).0);
    }
    found
}
