//! The training examples, a few steps of each, as a user runs them: they end well, say what they promise, draw their curves,
//! and a run that was interrupted goes on to the same bits.

use std::path::Path;
use std::process::Command;

/// Runs an example from the root; what it printed.
fn example(name: &str, arguments: &[&str]) -> String {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["run", "--quiet", "--example", name, "--"]).args(arguments);
    let output = cargo.current_dir(env!("CARGO_MANIFEST_DIR")).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name} {arguments:?} failed: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

/// A number that stands before these words.
fn number_before(text: &str, words: &str) -> f64 {
    let before = text.split(words).next().unwrap();
    before.split_whitespace().last().unwrap().parse().unwrap()
}

fn is_drawn(path: &Path) {
    let svg = std::fs::read_to_string(path).unwrap();
    assert!(svg.contains("<polyline"), "a line is drawn in {}", path.display());
}

/// Few steps of a small model on the first pages.
fn small(text: &Path) -> Vec<String> {
    let words = "--hidden 24 --embedding 8 --batch 4 --frames 20 --every 3 --sample 12 --threads 2";
    let text = text.to_str().unwrap().to_owned();
    std::iter::once(text)
        .chain(words.split(' ').map(str::to_owned))
        .collect()
}

fn pages(folder: &Path) -> std::path::PathBuf {
    let book = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/data/emma.txt");
    let text: String = std::fs::read_to_string(book).unwrap().chars().take(6000).collect();
    let path = folder.join("pages.txt");
    std::fs::write(&path, text).unwrap();
    path
}

#[test]
fn every_language_model_learns_something_in_a_few_steps() {
    let folder = tempfile::tempdir().unwrap();
    let pages = small(&pages(folder.path()));
    for model in ["lstm", "gru", "mingru", "mamba"] {
        let curve = folder.path().join(format!("{model}.svg"));
        let mut arguments: Vec<&str> = pages.iter().map(String::as_str).collect();
        arguments.extend(["--model", model, "--steps", "96", "--curve", curve.to_str().unwrap()]);
        let said = example("char_lm", &arguments);
        let bits = number_before(&said, " bits a character");
        // As many characters as the pages have, equally likely, would take 5.7 bits.
        assert!(bits < 5.2, "{model}: {bits} bits a character\n{said}");
        is_drawn(&curve);
    }
}

#[test]
fn an_interrupted_run_goes_on_to_the_same_bits() {
    let folder = tempfile::tempdir().unwrap();
    let pages = small(&pages(folder.path()));
    let run = |checkpoint: &Path, more: &[&str]| {
        let mut arguments: Vec<&str> = pages.iter().map(String::as_str).collect();
        arguments.extend(["--steps", "7", "--checkpoint", checkpoint.to_str().unwrap()]);
        arguments.extend(more);
        example("char_lm", &arguments);
        std::fs::read(checkpoint).unwrap()
    };
    let (whole, parts) = (folder.path().join("whole"), folder.path().join("parts"));
    let straight = run(&whole, &[]);
    let stopped = run(&parts, &["--stop", "4"]);
    assert_ne!(stopped, straight);
    assert!(run(&parts, &["--resume"]) == straight, "the checkpoints differ");
}

#[test]
fn the_long_memory_task_is_solved_over_few_frames() {
    let folder = tempfile::tempdir().unwrap();
    let curve = folder.path().join("memory.svg");
    let words = "--frames 9 --hidden 16 --rate 0.02 --patience 0.1 --threads 2 --curve";
    let arguments: Vec<&str> = words.split(' ').chain([curve.to_str().unwrap()]).collect();
    let said = example("long_memory", &arguments);
    assert!(said.contains("gilr_lstm  five perfect minibatches"), "{said}");
    assert!(said.contains("\nlstm "), "{said}");
    is_drawn(&curve);
}

#[test]
fn the_forecast_is_better_than_the_seasonal_naive_one() {
    let folder = tempfile::tempdir().unwrap();
    let curve = folder.path().join("forecast.svg");
    let said = example(
        "forecast",
        &["--steps", "60", "--threads", "2", "--curve", curve.to_str().unwrap()],
    );
    let mine = number_before(&said, " ppm; seasonal");
    let naive = number_before(said.split("naive ").last().unwrap(), " ppm\n");
    assert!(mine < naive, "{said}");
    is_drawn(&curve);
}
