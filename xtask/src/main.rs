//! `cargo xtask setup | test | demo | mutants | gpu-check | ci`: from a fresh clone to a result with nothing but Rust and Python's pip.

mod gpu_check;
mod setup;
mod shell;
mod snapshots;

use shell::{Place, cargo};
use std::process::ExitCode;

const HELP: &str = "\
cargo xtask COMMAND

  setup   put NVRTC, the compiler of CUDA text, into target/nvrtc (once; needs Python's pip and a network)
  demo    set up, compile a real speaker encoder to CUDA, run it on real speech, compare with recorded outputs
  test    set up, then run every test, documentation included
  mutants put deliberate faults into emitted kernels, and see that the simulated GPU catches each
  gpu-check  pack a bundle that a machine with a GPU runs without Rust: all kernels, microbenchmarks, times
             (--dry-run: pack it, unpack it and run it here, on a simulated GPU)
  ci      what a change must pass: format, lints, documentation, tests, no snapshot without a test, a dry run of gpu-check
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let place = Place::here();
    let result = match words.as_slice() {
        ["setup"] => setup::run(&place),
        ["demo"] => demo(&place),
        ["test"] => test(&place),
        ["ci"] => ci(&place),
        ["mutants"] => mutants(&place),
        ["gpu-check"] => gpu_check::pack(&place),
        ["gpu-check", "--dry-run"] => gpu_check::dry_run(&place),
        [] | ["help" | "--help" | "-h", ..] => {
            print!("{HELP}");
            Ok(())
        }
        _ => {
            eprint!("unknown: {}\n\n{HELP}", words.join(" "));
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("xtask: {message}");
            ExitCode::FAILURE
        }
    }
}

/// The speaker encoder, compiled to CUDA and run on the best device. Another NVRTC than ours will do here, so a set-up that
/// fails (no network, say) is told but does not end it.
fn demo(place: &Place) -> Result<(), String> {
    if let Err(message) = setup::run(place) {
        eprintln!("xtask: {message}\nxtask: going on with what this machine has");
    }
    cargo(place, &["run", "--release", "--example", "speaker_encoder"])
}

/// Deliberate faults in emitted kernels; any that is neither caught nor explained is an error.
fn mutants(place: &Place) -> Result<(), String> {
    setup::run(place)?;
    cargo(place, &["run", "--release", "--example", "mutants"])
}

/// Every test.
fn test(place: &Place) -> Result<(), String> {
    setup::run(place)?;
    run_tests(place, &[])
}

/// The suite with whichever runner there is; cargo-nextest leaves documentation tests to cargo.
fn run_tests(place: &Place, environment: &[(&str, &str)]) -> Result<(), String> {
    let with = |arguments: &[&str]| shell::cargo_with(place, arguments, environment);
    if shell::succeeds("cargo", &["nextest", "--version"]) {
        with(&["nextest", "run", "--workspace", "--no-fail-fast"])?;
    } else {
        with(&["test", "--workspace", "--lib", "--bins", "--tests", "--examples"])?;
    }
    with(&["test", "--workspace", "--doc"])
}

/// What a change must pass.
fn ci(place: &Place) -> Result<(), String> {
    cargo(place, &["fmt", "--all", "--check"])?;
    cargo(
        place,
        &["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"],
    )?;
    let strict = [("RUSTDOCFLAGS", "-D warnings")];
    shell::cargo_with(place, &["doc", "--workspace", "--no-deps"], &strict)?;
    setup::run(place)?;
    let references = snapshots::fresh_list(place)?;
    let environment = [
        ("INSTA_UPDATE", "no"),
        ("INSTA_SNAPSHOT_REFERENCES_FILE", references.as_str()),
    ];
    run_tests(place, &environment)?;
    snapshots::check(place, &references)?;
    gpu_check::dry_run(place)
}
