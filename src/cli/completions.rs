//! `rnnc completions`.

use super::Outcome;
use clap::CommandFactory;

/// Arguments of `rnnc completions`.
#[derive(clap::Args)]
pub struct CompletionsArgs {
    /// The shell
    shell: clap_complete::Shell,
}

/// Prints a completion script.
pub fn run(args: &CompletionsArgs) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut super::Cli::command(), "rnnc", &mut script);
    super::print(String::from_utf8_lossy(&script).trim_end())
}
