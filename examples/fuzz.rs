//! Fuzzes the compiler: `cargo run --release --example fuzz -- --inputs 1000000 [--seed S] [--first N] [--threads N]`.
//!
//! Prints how many inputs came to which stage, the slowest input and the most memory used; exits with 1 if an input made
//! the compiler panic, took more than a second, or if memory passed 1 GB. `--show N` prints input N of the seed.

#[path = "../tests/it/fuzz/mod.rs"]
#[expect(clippy::expect_used, reason = "a panic is what the fuzzer looks for")]
mod fuzz;

use fuzz::{Options, Stage};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// The most memory the whole run may need, in kilobytes.
const MOST_MEMORY: u64 = 1_000_000;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |name: &str, default: u64| {
        let at = arguments.iter().position(|a| a == name);
        at.and_then(|n| arguments.get(n + 1)?.parse().ok()).unwrap_or(default)
    };
    let seed = number("--seed", 1);
    if arguments.iter().any(|a| a == "--show") {
        let text = fuzz::text(seed, number("--show", 0));
        println!("{}", String::from_utf8_lossy(&text));
        return ExitCode::SUCCESS;
    }
    let options = Options {
        inputs: number("--inputs", 1_000_000),
        first: number("--first", 0),
        seed,
        threads: number("--threads", 1) as usize,
        limit: Duration::from_secs(1),
        progress: true,
    };
    let start = Instant::now();
    let report = fuzz::run(&options);
    print!("{report}");
    println!("  seed {seed}, {:.0?} on {} threads", start.elapsed(), options.threads);
    let memory = peak_memory();
    if let Some(kilobytes) = memory {
        println!("  most memory {} MB", kilobytes / 1000);
    }
    let few = report.at_least(Stage::Emitted) * 10 < options.inputs;
    let failed = few || !report.failures.is_empty() || memory.is_some_and(|kilobytes| kilobytes > MOST_MEMORY);
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// The most memory that this process has held, in kilobytes, where the system tells.
fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}
