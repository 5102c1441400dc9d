//! Fuzzes the parser: `cargo run --release -p softgpu --example fuzz_ptx -- [--inputs N] [--seed S] [--first N] [--show N]`.
//!
//! Prints how many texts were modules and the slowest; exits with 1 if one made the parser panic, hang, or name a line that is
//! not there. `--show N` prints text N of the seed.

#[path = "../tests/it/fuzz.rs"]
mod fuzz;

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |name: &str| {
        let at = arguments.iter().position(|a| a == name)?;
        arguments.get(at + 1)?.parse::<u64>().ok()
    };
    let seed = number("--seed").unwrap_or(1);
    if let Some(number) = number("--show") {
        print!("{}", fuzz::text(seed, number));
        return ExitCode::SUCCESS;
    }
    let inputs = number("--inputs").unwrap_or(1_000_000);
    let report = fuzz::run(seed, number("--first").unwrap_or(0), inputs);
    println!(
        "{inputs} texts of seed {seed}: {} parsed, {} refused, the slowest took {:.1?}",
        report.parsed, report.refused, report.slowest
    );
    if report.failures.is_empty() {
        return ExitCode::SUCCESS;
    }
    println!("FAILED: {:?}", report.failures);
    ExitCode::FAILURE
}
