//! The judgement of random cells, for the cells of the corpora. A random cell that once failed is among them, made smaller.

use super::coverage::Coverage;
use super::judge::Subject;
use crate::runs::Sizes;
use rnnc::diagnostics::Code;
use rnnc::driver::{self, Choice};
use rnnc::ir::Name;
use rnnc::syntax::{ast::Top, parse};
use rnnc_runtime::plan::Elem;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Sizes of runs: T and B.
const RUNS: [(usize, usize); 3] = [(1, 1), (5, 3), (2, 2)];

fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folders = ["examples/cells", "tests/cells/ok"].map(|f| folder.join(f));
    let entries = folders.iter().flat_map(|f| std::fs::read_dir(f).unwrap());
    let mut files: Vec<PathBuf> = entries.map(|e| e.unwrap().path()).collect();
    files.retain(|p| p.extension().is_some_and(|e| e == "rnn"));
    files.sort();
    files
}

/// Odd and unequal values for the dimensions: rising, or falling where the cell needs that (for a size such as `H - I`).
fn dims(text: &str, choice: &Choice) -> BTreeMap<Name, i64> {
    let names = driver::check(text.as_bytes(), choice).unwrap_or_else(|d| panic!("{choice:?}: {d:?}"));
    let names = names.graph.dims;
    let count = names.len() as i64;
    let with = |value: &dyn Fn(i64) -> i64| names.iter().cloned().zip((0..count).map(value)).collect();
    let rising = with(&|i| 3 + 2 * i);
    match driver::plan(text.as_bytes(), choice, &rising, Elem::F32) {
        Err(found) if found.0.iter().all(|d| d.code == Code::SizeNotPositive) => with(&|i| 3 + 2 * (count - i)),
        _ => rising,
    }
}

/// Every cell of a file, at every size.
fn subjects(path: &Path) -> Vec<Subject> {
    let text = std::fs::read_to_string(path).unwrap();
    let (file, _) = parse(text.as_bytes());
    let names = file.items.iter().filter_map(|item| match item {
        Top::Cell(cell) => Some(cell.name.name.to_string()),
        _ => None,
    });
    let subjects = names.flat_map(|name| {
        let choice = Choice {
            cell: Some(name),
            stem: None,
        };
        let dims = dims(&text, &choice);
        let subject = |(seed, (frames, batch)): (usize, (usize, usize))| Subject {
            text: text.clone(),
            choice: choice.clone(),
            sizes: Sizes {
                dims: dims.clone(),
                frames,
                batch,
            },
            seed: seed as u64,
        };
        RUNS.into_iter().enumerate().map(subject).collect::<Vec<_>>()
    });
    subjects.collect()
}

/// What is wrong with the cells of the corpora, a line each.
fn faults(judge: impl Fn(&Subject) -> Result<(), String>) -> String {
    let mut wrong = Vec::new();
    for path in files() {
        for subject in subjects(&path) {
            if let Err(fault) = judge(&subject) {
                let name = subject.choice.cell.unwrap_or_default();
                wrong.push(format!("{}: {name}: {fault}", path.display()));
            }
        }
    }
    wrong.join("\n")
}

#[test]
fn cells_of_the_corpora_mean_the_same_everywhere() {
    let seen = RefCell::new(Coverage::new());
    assert_eq!(faults(|subject| subject.judge(&mut seen.borrow_mut())), "");
    let unjudged = seen.borrow().unjudged();
    assert!(unjudged <= 3, "{unjudged} runs are not held to f32");
}

#[test]
fn cells_of_the_corpora_have_their_gradients() {
    assert_eq!(faults(|subject| subject.judge_gradients(&mut Coverage::new())), "");
}
