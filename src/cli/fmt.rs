//! `rnnc fmt`.

use super::{Failure, Outcome, source};
use rnnc::syntax;
use std::path::PathBuf;

/// Arguments of `rnnc fmt`.
#[derive(clap::Args)]
pub struct FmtArgs {
    /// The files, rewritten in place (`-` reads standard input and prints)
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Change nothing; list the files that are not in canonical form and exit with 1 if there are any
    #[arg(long)]
    check: bool,
}

/// Formats the files.
pub fn run(args: &FmtArgs) -> Outcome {
    let mut failed = false;
    for path in &args.files {
        let file = source::read(path)?;
        let text = match syntax::format(&file.bytes) {
            Ok(text) => text,
            Err(diagnostics) => {
                file.report(&diagnostics);
                failed = true;
                continue;
            }
        };
        let same = text.as_bytes() == file.bytes;
        if args.check {
            if !same {
                super::print(&format!("{} is not formatted", file.name))?;
                failed = true;
            }
        } else if file.name == "-" {
            super::print(text.trim_end_matches('\n'))?;
        } else if !same {
            std::fs::write(path, text).map_err(super::input(&file.name))?;
        }
    }
    if failed { Err(Failure::Reported) } else { Ok(()) }
}
