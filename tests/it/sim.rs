//! Emitted kernels on simulated GPUs: the recorded numbers of every golden cell, and other sizes against the reference, with
//! every access checked. `RNNC_SWEEP=1` runs all sizes, models and seeds (hours); the suite every cell, at some of them.

use crate::cpu::{TOLERANCE, error, plan, run_on};
use crate::golden::{self, Case, cases};
use rnnc::Options;
use rnnc::check::{Checked, Sweep, check_kernels};
use rnnc::codegen::Tuning;
use rnnc::codegen::cuda::dense_loop::places::Shape;
use rnnc_runtime::nvrtc;
use rnnc_runtime::plan::Elem;
use rnnc_runtime::sim::{self, Model};

/// Whether there is an NVRTC; says so where there is none.
fn available() -> bool {
    let found = !nvrtc::find().is_empty();
    if !found {
        eprintln!("SKIPPED: no NVRTC; run `cargo xtask setup`");
    }
    found
}

fn model(name: &str) -> Model {
    Model::named(name).unwrap()
}

/// The options of a cell at these dimensions.
fn options<'a>(name: &str, dims: impl Iterator<Item = (&'a str, i64)>, elem: Elem) -> Options {
    let options = Options {
        file: format!("{name}.rnn"),
        elem,
        ..Options::default()
    };
    dims.fold(options, |options, (dim, value)| options.dim(dim, value))
}

/// What is wrong with a golden cell, its loops split over small blocks so that they exchange values.
fn golden_fault(case: &Case, gpu: &str, seed: u64) -> Option<String> {
    let dims = case.dims.iter().map(|(k, v)| (&**k, *v));
    let cell = rnnc::compile(&case.text, &options(&case.name, dims, Elem::F32)).unwrap();
    let tuning = Tuning {
        loop_shape: Some(Shape::SPLIT),
        ..Tuning::default()
    };
    let how = sim::Options {
        seed,
        ..sim::Options::default()
    };
    let mut engine = cell.simulate(model(gpu), how, tuning).unwrap();
    match run_on(&mut engine, &plan(case), case) {
        Ok(results) => {
            let (key, error) = error(&results, case);
            (error > TOLERANCE).then(|| format!("{}: {key} is off by {error:.2e}", case.name))
        }
        Err(e) => Some(format!("{}: {e}", case.name)),
    }
}

/// Does the work of two halves side by side; what they found.
fn side_by_side<T: Sync>(all: &[T], work: impl Fn(&T) -> Vec<String> + Sync) -> Vec<String> {
    let some = |first: usize| -> Vec<String> { all.iter().skip(first).step_by(2).flat_map(&work).collect() };
    std::thread::scope(|scope| {
        let even = scope.spawn(|| some(0));
        let mut found = some(1);
        found.extend(even.join().unwrap());
        found
    })
}

#[test]
fn golden_cells_run_on_a_simulated_gpu() {
    if !available() {
        return;
    }
    let wrong = side_by_side(&cases(), |case| golden_fault(case, "h100", 1).into_iter().collect());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Runs a sweep of a cell at dimensions 33, 35, 37...: none a multiple of a warp, no two equal.
fn swept(name: &str, text: &str, elem: Elem, sweep: &Sweep) -> Vec<String> {
    let graph = golden::lower(name, text);
    let dims = graph.dims.iter().map(|d| &**d).zip((33..).step_by(2));
    let mut wrong = Vec::new();
    let mut each = |run: Checked| {
        if !run.ok {
            wrong.push(format!("{name} {elem:?}: {run:?}"));
        }
    };
    if let Err(e) = check_kernels(text, &options(name, dims, elem), sweep, &mut each) {
        wrong.push(format!("{name} {elem:?}: {e}"));
    }
    wrong
}

fn sweep(gpus: &[&str], frames: &[usize], batch: &[usize], seeds: u64, elem: Elem) -> Sweep {
    Sweep {
        models: gpus.iter().map(|gpu| model(gpu)).collect(),
        frames: frames.to_vec(),
        batch: batch.to_vec(),
        seeds: (0..seeds).collect(),
        split: true,
        tolerance: if elem == Elem::F32 { 1e-5 } else { 1e-2 },
    }
}

/// Cells of every family of kernels, which run for more lengths than the others.
const SOME: &[&str] = &["elman", "gilr", "gru", "indrnn", "lru", "mlstm"];

#[test]
fn kernels_are_clean_at_odd_sizes() {
    if !available() {
        return;
    }
    let all = std::env::var_os("RNNC_SWEEP").is_some();
    let cells: Vec<(String, String)> = golden::cells().into_iter().collect();
    let wrong = side_by_side(&cells, |(name, text)| {
        let frames: &[usize] = if SOME.contains(&&**name) { &[1, 2, 7] } else { &[2] };
        let sweeps = match all {
            true => [Elem::F32, Elem::Bf16].map(|elem| {
                let sweep = sweep(&["h100", "a100"], &[1, 2, 7, 33], &[1, 3, 8], 3, elem);
                (elem, sweep)
            }),
            false => [
                (Elem::F32, sweep(&["h100"], frames, &[3], 1, Elem::F32)),
                (Elem::Bf16, sweep(&["a100"], &[2], &[1], 1, Elem::Bf16)),
            ],
        };
        sweeps
            .iter()
            .flat_map(|(elem, sweep)| swept(name, text, *elem, sweep))
            .collect()
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
