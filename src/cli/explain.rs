//! `rnnc explain`.

use super::{Failure, Outcome};
use rnnc::diagnostics::{self, Code};

/// Arguments of `rnnc explain`.
#[derive(clap::Args)]
pub struct ExplainArgs {
    /// The code of a message, such as E0202; without one, all codes are listed
    code: Option<String>,
}

/// Prints the page on a code.
pub fn run(args: &ExplainArgs) -> Outcome {
    let Some(text) = &args.code else {
        let lines: Vec<String> = Code::ALL
            .iter()
            .map(|c| format!("{}  {}", c.as_str(), c.title()))
            .collect();
        return super::print(&lines.join("\n"));
    };
    let unknown = || Failure::Usage(format!("there is no code {text}; `rnnc explain` lists all codes"));
    let code = Code::parse(text).ok_or_else(unknown)?;
    super::print(diagnostics::page(code).trim_end())
}
