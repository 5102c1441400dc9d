//! The command line: arguments in, text and files out. Exit codes: 0 ok, 1 the input is at fault, 2 usage, 3 the machine
//! lacks something.

mod bench;
mod check;
mod check_kernels;
mod compile;
mod completions;
mod cost;
mod device;
mod doctor;
mod explain;
mod explain_plan;
mod fmt;
mod grad_check;
mod graph;
mod new;
mod run;
mod source;
mod tensors;
mod verify;
mod weights;

use clap::{Args, Parser, Subcommand};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::PathBuf;
use std::process::ExitCode;

/// Compiles recurrent cells, written in a few lines, into fused CUDA kernels.
#[derive(Parser)]
#[command(name = "rnnc", version, about, max_term_width = 100, propagate_version = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Check files: syntax, names, axes, cycles
    Check(check::CheckArgs),
    /// Print files in canonical form
    Fmt(fmt::FmtArgs),
    /// Explain an error code, such as E0202
    Explain(explain::ExplainArgs),
    /// Say what is on this machine: driver, GPUs, NVRTC, and what to do about what is not
    Doctor(doctor::DoctorArgs),
    /// Compile a cell to CUDA text, PTX or a cubin
    Compile(compile::CompileArgs),
    /// Say how a cell runs and why: recurrences, kernels, bytes, synchronisations
    ExplainPlan(explain_plan::ExplainPlanArgs),
    /// Draw a cell's dataflow with its recurrences and kernels
    Graph(graph::GraphArgs),
    /// Run a cell on inputs and weights, or on random ones
    Run(run::RunArgs),
    /// Compare a cell's outputs with recorded ones
    Verify(verify::VerifyArgs),
    /// Compare a cell's gradients with finite differences
    GradCheck(grad_check::GradCheckArgs),
    /// Time the compiler or a cell
    Bench(bench::BenchArgs),
    /// Run a cell's kernels on simulated GPUs that check every access, over odd shapes and many orders of events
    CheckKernels(check_kernels::CheckKernelsArgs),
    /// Write a starting cell to change
    New(new::NewArgs),
    /// Print completions for a shell
    Completions(completions::CompletionsArgs),
}

/// Why a command ends.
pub enum Failure {
    /// The input is at fault (exit code 1); the message was printed.
    Reported,
    /// The input is at fault (exit code 1).
    Input(String),
    /// The command line is at fault (exit code 2).
    Usage(String),
    /// The machine lacks something (exit code 3).
    Machine(String),
}

/// What every command returns.
pub type Outcome = Result<(), Failure>;

/// Turns an error into an input failure with a prefix.
pub fn input<E: Display>(what: impl Display) -> impl FnOnce(E) -> Failure {
    move |error| Failure::Input(format!("{what}: {error}"))
}

/// Runs the command.
pub fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Check(args) => check::run(&args),
        Command::Fmt(args) => fmt::run(&args),
        Command::Explain(args) => explain::run(&args),
        Command::Doctor(args) => doctor::run(&args),
        Command::Compile(args) => compile::run(&args),
        Command::ExplainPlan(args) => explain_plan::run(&args),
        Command::Graph(args) => graph::run(&args),
        Command::Run(args) => run::run(&args),
        Command::Verify(args) => verify::run(&args),
        Command::GradCheck(args) => grad_check::run(&args),
        Command::Bench(args) => bench::run(&args),
        Command::CheckKernels(args) => check_kernels::run(&args),
        Command::New(args) => new::run(&args),
        Command::Completions(args) => completions::run(&args),
    };
    let (code, message) = match outcome {
        Ok(()) => return ExitCode::SUCCESS,
        Err(Failure::Reported) => return ExitCode::from(1),
        Err(Failure::Input(message)) => (1, message),
        Err(Failure::Usage(message)) => (2, message),
        Err(Failure::Machine(message)) => (3, message),
    };
    eprintln!("error: {message}");
    ExitCode::from(code)
}

/// A cell and the values of its dimensions.
#[derive(Args)]
pub struct CellArgs {
    /// The file that holds the cell
    pub file: PathBuf,
    /// The cell, if the file holds several (default: the one named as the file, else the only one)
    #[arg(long, value_name = "NAME")]
    pub cell: Option<String>,
    /// Values of dimensions, such as I=40,H=256
    #[arg(long, value_name = "NAME=N,...", value_parser = parse_dims)]
    pub dims: Option<Dims>,
}

/// Values of dimensions.
#[derive(Clone, Debug, Default)]
pub struct Dims(pub BTreeMap<String, i64>);

impl CellArgs {
    /// The dimensions given.
    pub fn given_dims(&self) -> BTreeMap<String, i64> {
        self.dims.clone().unwrap_or_default().0
    }
}

fn parse_dims(text: &str) -> Result<Dims, String> {
    let mut dims = BTreeMap::new();
    for part in text.split(',').map(str::trim).filter(|p| !p.is_empty()) {
        let (name, value) = part.split_once('=').ok_or_else(|| format!("`{part}` is not NAME=N"))?;
        let value: i64 = value
            .trim()
            .parse()
            .map_err(|_| format!("`{value}` is not a whole number"))?;
        if value < 1 {
            return Err(format!("{name} is {value}; a dimension is at least 1"));
        }
        if dims.insert(name.trim().to_owned(), value).is_some() {
            return Err(format!("{} is given twice", name.trim()));
        }
    }
    Ok(Dims(dims))
}

/// How reals are stored on a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Dtype {
    /// 32-bit
    #[default]
    F32,
    /// bfloat16, with f32 arithmetic
    Bf16,
    /// 16-bit IEEE, with f32 arithmetic
    F16,
}

impl From<Dtype> for rnnc_runtime::plan::Elem {
    fn from(dtype: Dtype) -> Self {
        match dtype {
            Dtype::F32 => rnnc_runtime::plan::Elem::F32,
            Dtype::Bf16 => rnnc_runtime::plan::Elem::Bf16,
            Dtype::F16 => rnnc_runtime::plan::Elem::F16,
        }
    }
}

/// Prints a value as JSON.
pub fn print_json(value: &impl serde::Serialize) -> Outcome {
    let text = serde_json::to_string_pretty(value).map_err(input("writing JSON"))?;
    print(&text)
}

/// Prints a line to standard output; a reader that went away is no error.
pub fn print(text: &str) -> Outcome {
    use std::io::Write;
    let mut out = std::io::stdout().lock();
    match writeln!(out, "{text}") {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(Failure::Machine(error.to_string())),
        _ => Ok(()),
    }
}
