//! Random well-typed cells, not only the known ones: what the text means to the reference, it means after every pass and on
//! every engine.
//!
//! `RNNC_RANDOM_CELLS=20000` judges so many cells, `RNNC_RANDOM_CELLS=500..600` the cells of these seeds;
//! `RNNC_RANDOM_GRADIENTS` says the same for the cells whose gradients are judged, `RNNC_RANDOM_TEXTS` for those whose CUDA
//! text is run, `RNNC_RANDOM_SIMULATED` for those whose kernels run on a simulated GPU.

mod cell;
mod coverage;
mod derive;
mod forms;
mod grow;
mod judge;
mod known;
mod shrink;
mod simulate;

use crate::cuda_shim;
use cell::Cell;
use coverage::Coverage;
use judge::Subject;
use rnnc_runtime::nvrtc;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Cells in the suite.
const CELLS: u64 = 1000;

/// Cells in the suite whose gradients are judged.
const DERIVED: u64 = 500;

/// Cells in the suite whose kernels run on a simulated GPU, forward and backward.
const SIMULATED: u64 = 40;

/// Cells in the suite whose CUDA text is run.
const TEXTS: u64 = 8;

/// The seeds that were asked for by a variable of the environment.
fn seeds(variable: &str, count: u64) -> Range<u64> {
    let Ok(text) = std::env::var(variable) else {
        return 0..count;
    };
    let (first, last) = text.split_once("..").unwrap_or(("0", &text));
    first.parse().unwrap()..last.parse().unwrap()
}

/// Says what is wrong with a cell, and counts what it consists of.
type Judge = fn(&Cell, &mut Coverage) -> Result<(), String>;

/// Judges the cells of all seeds on two threads and fails if any is wrong. Returns what was seen.
fn judge_all(seeds: Range<u64>, judge: Judge) -> Coverage {
    let next = AtomicU64::new(seeds.start);
    let found = Mutex::new((BTreeMap::new(), Coverage::new()));
    let work = || {
        let mut seen = Coverage::new();
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds.end {
                break;
            }
            if let Err(fault) = judge(&grow::grow(seed), &mut seen) {
                eprintln!("{seed}: {fault}");
                found.lock().unwrap().0.insert(seed, fault);
            }
        }
        found.lock().unwrap().1.add(seen);
    };
    std::thread::scope(|scope| {
        scope.spawn(work);
        work();
    });
    let (faults, seen) = found.into_inner().unwrap();
    assert!(faults.is_empty(), "{}", said(&faults, judge));
    seen
}

/// All faults, and the first cell, as it was and made smaller.
fn said(faults: &BTreeMap<u64, String>, judge: Judge) -> String {
    let all: Vec<String> = faults.iter().map(|(seed, fault)| format!("{seed}: {fault}")).collect();
    let cell = grow::grow(*faults.first_key_value().unwrap().0);
    let is_well_typed = |c: &Cell| Subject::from(c).lowered().is_ok();
    let fails = |c: &Cell| is_well_typed(c) && judge(c, &mut Coverage::new()).is_err();
    let small = shrink::shrink(cell.clone(), &fails);
    let fault = judge(&small, &mut Coverage::new()).unwrap_err();
    let (count, all) = (faults.len(), all.join("\n"));
    format!("{count} cells fail:\n{all}\nthe first:\n{cell}\nmade smaller: {fault}\n{small}")
}

#[test]
fn random_cells_mean_the_same_everywhere() {
    let seeds = seeds("RNNC_RANDOM_CELLS", CELLS);
    let count = seeds.end - seeds.start;
    let seen = judge_all(seeds, |cell, seen| Subject::from(cell).judge(seen));
    println!("{seen}");
    assert!(
        count < CELLS || seen.missing().is_empty(),
        "never occurred: {:?}\n{seen}",
        seen.missing()
    );
    let unjudged = seen.unjudged() as u64;
    assert!(unjudged * 50 <= count, "{unjudged} cells are not held to f32");
}

#[test]
fn random_cells_have_their_gradients() {
    let seeds = seeds("RNNC_RANDOM_GRADIENTS", DERIVED);
    let count = seeds.end - seeds.start;
    let seen = judge_all(seeds, |cell, seen| {
        let subject = Subject::from(cell);
        subject.judge_slopes()?;
        subject.judge_gradients(seen)
    });
    println!("{seen}");
    let unjudged = seen.unjudged() as u64;
    assert!(unjudged * 20 <= count, "{unjudged} cells are not held to f32");
}

#[test]
fn random_cells_run_from_their_cuda_text() {
    if cuda_shim::available() {
        let seeds = seeds("RNNC_RANDOM_TEXTS", TEXTS);
        judge_all(seeds, |cell, _| Subject::from(cell).judge_text());
    }
}

#[test]
fn random_cells_run_on_a_simulated_gpu() {
    if nvrtc::find().is_empty() {
        eprintln!("SKIPPED: no NVRTC; run `cargo xtask setup`");
        return;
    }
    let seeds = seeds("RNNC_RANDOM_SIMULATED", SIMULATED);
    judge_all(seeds, |cell, _| Subject::from(cell).judge_simulated());
}
