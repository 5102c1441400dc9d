//! Deliberate faults in emitted kernels, each of which the simulated GPU must catch: `cargo xtask mutants`.
//!
//! A mutant is a cell and a change of its CUDA text. It is killed if softgpu reports a fault or the results are off in any of
//! the runs that `check-kernels` makes of it (loops also split over small blocks, several seeds). Survivors are printed, and
//! those that nobody explained end the run with 1. `--only NAME` runs one.

use rnnc::Options;
use rnnc::check::{Checked, Sweep, check_altered};
use rnnc_runtime::sim::Model;
use std::cell::Cell;
use std::path::Path;
use std::process::ExitCode;

/// A change: where (`""`: in every kernel), the text there, which of its places (0: all), what stands there instead.
#[derive(Clone, Copy)]
struct Mutant {
    name: &'static str,
    cell: &'static str,
    kernel: &'static str,
    find: &'static str,
    nth: usize,
    replace: &'static str,
    /// Why nothing can catch it, if nothing can.
    harmless: Option<&'static str>,
}

const fn mutant(
    name: &'static str,
    (cell, kernel): (&'static str, &'static str),
    (find, nth): (&'static str, usize),
    replace: &'static str,
) -> Mutant {
    Mutant {
        name,
        cell,
        kernel,
        find,
        nth,
        replace,
        harmless: None,
    }
}

const LOOP: (&str, &str) = ("lstm", "lstm_loop");
const PRODUCT: (&str, &str) = ("elman", "elman_product");
const SCAN: (&str, &str) = ("gilr", "gilr_scan");
const STATE: (&str, &str) = ("mlstm", "");
const BARRIER: &str = "__syncthreads();";

/// A fault that nothing can catch, and why.
const fn harmless(fault: Mutant, why: &'static str) -> Mutant {
    Mutant {
        harmless: Some(why),
        ..fault
    }
}

/// The faults.
const MUTANTS: &[Mutant] = &[
    mutant("loop: no barrier after the weights", LOOP, (BARRIER, 1), ""),
    mutant("loop: no barrier after the initial frames", LOOP, (BARRIER, 2), ""),
    mutant("loop: no barrier after receiving", LOOP, (BARRIER, 3), ""),
    mutant(
        "loop: no warp barrier before the sums are read",
        LOOP,
        ("__syncwarp();", 1),
        "",
    ),
    mutant(
        "loop: no warp barrier before publishing",
        LOOP,
        ("__syncwarp();", 2),
        "",
    ),
    mutant(
        "loop: words are accepted without waiting",
        LOOP,
        ("got[i].epoch != epoch", 1),
        "got[i].epoch == ~epoch",
    ),
    mutant(
        "loop: words of the frame before are accepted",
        LOOP,
        ("receive(got, from, ", 1),
        "receive(got, from + 0 * (int)--epoch, ",
    ),
    mutant("loop: the epoch stands still", LOOP, ("++epoch;", 1), ""),
    mutant(
        "loop: words are published for the block alone",
        LOOP,
        ("st.relaxed.gpu", 1),
        "st.relaxed.cta",
    ),
    mutant(
        "loop: words are read for the block alone",
        LOOP,
        ("ld.relaxed.gpu", 1),
        "ld.relaxed.cta",
    ),
    mutant(
        "loop: one buffer of words instead of two",
        LOOP,
        ("epoch % 2 * ", 0),
        "0 * ",
    ),
    mutant(
        "loop: a block listens to the wrong neighbour",
        LOOP,
        ("(rank + 1 + start)", 1),
        "(rank + 2 + start)",
    ),
    mutant(
        "loop: a number of each word is lost",
        LOOP,
        ("from < 0 ? 0.0f", 1),
        "from < 1 ? 0.0f",
    ),
    mutant(
        "loop: units past the last are live",
        LOOP,
        ("&& unit < ", 1),
        "&& unit - 1 < ",
    ),
    mutant(
        "loop: sequences past the last are live",
        LOOP,
        ("&& seq < B", 1),
        "&& seq <= B",
    ),
    mutant(
        "loop: weights of units past the last",
        LOOP,
        ("const int unit = min(rank * ", 1),
        "const int unit = max(rank * ",
    ),
    mutant("loop: the state is not carried", LOOP, ("c_t1 = c_now;", 1), ""),
    mutant(
        "loop: the initial state is not read",
        LOOP,
        ("c_t1 = c_s0[", 1),
        "c_t1 = 0 * c_s0[",
    ),
    mutant("loop: the ring does not turn", LOOP, ("(t + 1) % 2", 1), "t % 2"),
    mutant(
        "loop: inputs of the frame before",
        LOOP,
        ("load_ahead0(t + 1);", 1),
        "load_ahead0(t);",
    ),
    harmless(
        mutant(
            "loop: the last frame is stored too early",
            LOOP,
            ("t >= T - 1", 0),
            "t >= T - 2",
        ),
        "the same thread stores again, a frame later",
    ),
    mutant(
        "loop: gates swapped",
        LOOP,
        ("sigmoid(f) * c_t1", 1),
        "sigmoid(i) * c_t1",
    ),
    mutant(
        "loop: a shuffle reaches half as far",
        LOOP,
        ("sent, L / 2)", 1),
        "sent, L / 4 + 1)",
    ),
    mutant(
        "product: no barrier before the slice is read",
        PRODUCT,
        (BARRIER, 1),
        "",
    ),
    mutant("product: no barrier before the sums", PRODUCT, (BARRIER, 2), ""),
    harmless(
        mutant("product: no barrier after the sums", PRODUCT, (BARRIER, 3), ""),
        "the grid covers all tiles: no block takes a second one",
    ),
    mutant(
        "product: slices are not doubled",
        PRODUCT,
        ("const int half = slice % 2;", 1),
        "const int half = 0;",
    ),
    mutant(
        "product: a frame more than there is is read",
        PRODUCT,
        ("min(copies - 1 - first_copy", 1),
        "min(copies - first_copy",
    ),
    mutant(
        "product: the last frame is not stored",
        PRODUCT,
        ("copy <= last_copy", 1),
        "copy < last_copy",
    ),
    mutant(
        "product: a row more is stored",
        ("mlstm", "mlstm_product"),
        ("row < rows", 1),
        "row <= rows",
    ),
    mutant(
        "product: the last slice is left out",
        PRODUCT,
        ("float total[8][8] = {};", 1),
        "float total[8][8] = {1.0f};",
    ),
    mutant(
        "scan: the initial state is not read",
        SCAN,
        ("h_prev = h_s0[", 1),
        "h_prev = 0 * h_s0[",
    ),
    mutant("scan: the state is not carried", SCAN, ("h_prev = h;", 1), ""),
    mutant(
        "scan: a frame past the last is read",
        SCAN,
        ("min(slot, T - 1)", 1),
        "min(slot, T)",
    ),
    mutant(
        "scan: the last frame is computed twice",
        SCAN,
        ("t == T", 1),
        "t == T + 1",
    ),
    mutant("scan: channels past the last", SCAN, ("if (item >= ", 1), "if (item > "),
    mutant(
        "matrix state: sums over the wrong lanes",
        STATE,
        ("& ~(N - 1))", 1),
        "& ~(N / 2 - 1))",
    ),
    mutant(
        "matrix state: half of the lanes are summed",
        STATE,
        ("int distance = N / 2", 1),
        "int distance = N / 4",
    ),
];

/// The text with the change, and whether there was a place for it.
fn changed(mutant: &Mutant, text: &str) -> Option<String> {
    // Functions that kernels call stand before all of them and belong to each.
    let (first, last) = kernel_range(mutant.kernel, text)?;
    let inside = |at: usize| (first..last).contains(&at) || !text[..at].contains("__global__");
    let places = text
        .match_indices(mutant.find)
        .map(|(at, _)| at)
        .filter(|at| inside(*at));
    let places: Vec<usize> = match mutant.nth {
        0 => places.collect(),
        nth => places.skip(nth - 1).take(1).collect(),
    };
    let mut out = text.to_owned();
    for at in places.iter().rev() {
        out.replace_range(*at..at + mutant.find.len(), mutant.replace);
    }
    (!places.is_empty()).then_some(out)
}

/// From a kernel's name to the next kernel; the whole text for no name.
fn kernel_range(kernel: &str, text: &str) -> Option<(usize, usize)> {
    if kernel.is_empty() {
        return Some((0, text.len()));
    }
    let first = text.find(&format!(" {kernel}(\n"))?;
    let next = text[first..].find("__global__").map_or(text.len(), |at| first + at);
    Some((first, next))
}

/// What became of a mutant: how it was killed, that it survived, or that it cannot be made.
fn fate(mutant: &Mutant) -> Result<Option<String>, String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("examples/cells/{}.rnn", mutant.cell));
    let source = std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    let dims = match mutant.cell {
        "elman" | "lstm" => [("I", 33), ("H", 35)].as_slice(),
        "gilr" => &[("I", 33), ("H", 35)],
        _ => &[("I", 33), ("K", 35), ("V", 37)],
    };
    let mut options = Options {
        file: format!("{}.rnn", mutant.cell),
        ..Options::default()
    };
    let known = |dim: &str| {
        source
            .lines()
            .find(|l| l.starts_with("cell "))
            .is_some_and(|l| l.contains(dim))
    };
    for (dim, value) in dims.iter().filter(|(dim, _)| known(dim)) {
        options = options.dim(dim, *value);
    }
    let model = Model::named("h100").ok_or("no model h100")?;
    let mut sweep = Sweep {
        models: vec![model],
        frames: vec![5, 1],
        batch: vec![3],
        seeds: vec![0],
        split: true,
        tolerance: 1e-5,
    };
    let applied = Cell::new(false);
    let alter = |text: &str| match changed(mutant, text) {
        Some(text) => {
            applied.set(true);
            text
        }
        None => text.to_owned(),
    };
    let mut killed = None;
    for seed in 0..3 {
        sweep.seeds = vec![seed];
        let mut each = |run: Checked| {
            if !run.ok && killed.is_none() {
                let by = run
                    .fault
                    .map_or_else(|| "wrong results".to_owned(), |f| f.kind.name().to_owned());
                killed = Some(by);
            }
        };
        check_altered(&source, &options, &sweep, &alter, &mut each).map_err(|e| e.to_string())?;
        if killed.is_some() {
            break;
        }
    }
    if applied.get() {
        Ok(killed)
    } else {
        Err("its text was not found".to_owned())
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let only = arguments
        .iter()
        .position(|a| a == "--only")
        .and_then(|at| arguments.get(at + 1));
    let mut left = Vec::new();
    let mut count = 0;
    for mutant in MUTANTS
        .iter()
        .filter(|m| only.is_none_or(|name| m.name.contains(name.as_str())))
    {
        count += 1;
        match (fate(mutant), mutant.harmless) {
            (Ok(Some(by)), _) => println!("killed    {:<50} {by}", mutant.name),
            (Ok(None), Some(why)) => println!("harmless  {:<50} {why}", mutant.name),
            (Ok(None), None) => {
                println!("SURVIVED  {}", mutant.name);
                left.push(mutant.name);
            }
            (Err(why), _) => {
                println!("BROKEN    {:<50} {why}", mutant.name);
                left.push(mutant.name);
            }
        }
    }
    println!("{count} mutants, {} not killed and not explained", left.len());
    if left.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
