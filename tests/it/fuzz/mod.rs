//! Fuzzing of the whole compiler: texts made from the corpora go through every stage up to CUDA text.
//!
//! Nothing may panic, take long or need much memory; what a stage lets through must be what the next one was promised.
//! Input `n` of a seed is always the same text. `examples/fuzz.rs` runs a million, the test here a few thousand.

mod corpus;
mod mutate;

use mutate::Mutator;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rnnc::codegen::{self, Target};
use rnnc::diagnostics::render;
use rnnc::driver::{self, Choice};
use rnnc::ir::{Name, verify::verify};
use rnnc::{lower, syntax};
use rnnc_runtime::plan::Elem;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How far an input came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// It is not well-formed text.
    Faulty,
    /// It parses.
    Parsed,
    /// One of its cells has a graph.
    Lowered,
    /// The graph has no instantaneous cycle.
    Analysed,
    /// It has a plan at the drawn dimensions.
    Planned,
    /// It became CUDA text.
    Emitted,
}

/// Every stage with how the report names it.
const STAGES: [(Stage, &str); 6] = [
    (Stage::Faulty, "read"),
    (Stage::Parsed, "parsed"),
    (Stage::Lowered, "lowered"),
    (Stage::Analysed, "analysed"),
    (Stage::Planned, "planned"),
    (Stage::Emitted, "emitted"),
];

/// What to run.
pub struct Options {
    /// How many inputs.
    pub inputs: u64,
    /// The first one.
    pub first: u64,
    /// Which sequence of inputs.
    pub seed: u64,
    /// On how many threads.
    pub threads: usize,
    /// The most time one input may take.
    pub limit: Duration,
    /// Whether to say how far it is.
    pub progress: bool,
}

/// What came of a run.
#[derive(Default)]
pub struct Report {
    /// How many inputs ended at each stage.
    pub reached: BTreeMap<Stage, u64>,
    /// What went wrong: how often, and the first input with which it did.
    pub failures: BTreeMap<String, (u64, u64)>,
    /// The longest time of one input, and which.
    pub slowest: (Duration, u64),
}

impl Report {
    /// How many inputs came to a stage or beyond.
    pub fn at_least(&self, stage: Stage) -> u64 {
        self.reached.range(stage..).map(|(_, count)| count).sum()
    }

    fn add(&mut self, number: u64, stage: Stage, took: Duration) {
        *self.reached.entry(stage).or_default() += 1;
        self.slowest = self.slowest.max((took, number));
    }

    fn fail(&mut self, number: u64, what: String) {
        let known = self.failures.entry(what).or_insert((0, number));
        *known = (known.0 + 1, known.1.min(number));
    }

    fn merge(&mut self, other: Report) {
        for (stage, count) in other.reached {
            *self.reached.entry(stage).or_default() += count;
        }
        for (what, (count, first)) in other.failures {
            let known = self.failures.entry(what).or_insert((0, first));
            *known = (known.0 + count, known.1.min(first));
        }
        self.slowest = self.slowest.max(other.slowest);
    }
}

impl std::fmt::Display for Report {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let all = self.at_least(Stage::Faulty);
        for (stage, name) in STAGES {
            let count = self.at_least(stage);
            writeln!(
                f,
                "{name:>9} {count:>9} {:>5.1} %",
                100.0 * count as f64 / all.max(1) as f64
            )?;
        }
        writeln!(f, "  slowest {:?}, input {}", self.slowest.0, self.slowest.1)?;
        for (what, (count, first)) in &self.failures {
            writeln!(f, "FAILED {count} times, first with input {first}: {what}")?;
        }
        Ok(())
    }
}

/// An input: a text, and the dimensions and storage at which it is compiled.
struct Input {
    text: Vec<u8>,
    dims: Vec<i64>,
    elem: Elem,
}

fn input(mutator: &Mutator, seed: u64, number: u64) -> Input {
    let mut random = ChaCha8Rng::seed_from_u64(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(number));
    let text = mutator.text(&mut random);
    let extreme = random.random_bool(0.05);
    let mut dim = || match random.random_range(0..4) {
        0 if extreme => 0,
        1 if extreme => 1 << 31,
        2 if extreme => i64::MAX,
        _ => random.random_range(1..80),
    };
    let dims = (0..8).map(|_| dim()).collect();
    let elem = [Elem::F32, Elem::F32, Elem::F16, Elem::Bf16][random.random_range(0..4)];
    Input { text, dims, elem }
}

/// The text of input `number` of a seed.
#[cfg_attr(test, expect(dead_code, reason = "only the example shows inputs"))]
pub fn text(seed: u64, number: u64) -> Vec<u8> {
    input(&Mutator::new(corpus::texts()), seed, number).text
}

/// Runs all inputs; whatever goes wrong is in the report.
pub fn run(options: &Options) -> Report {
    let mutator = Mutator::new(corpus::texts());
    let next = AtomicU64::new(options.first);
    let end = options.first + options.inputs;
    let total = Mutex::new(Report::default());
    let quiet = Quiet::new();
    let current: Vec<Current> = (0..options.threads.max(1)).map(|_| Current::default()).collect();
    std::thread::scope(|scope| {
        for current in &current {
            // A new thread has the small stack that any caller of the library may have.
            scope.spawn(|| {
                let report = worker(&mutator, options, &next, end, current);
                lock(&total).merge(report);
                *lock(current) = Some((u64::MAX, Instant::now()));
            });
        }
        watch(&current, options.limit * 300);
    });
    drop(quiet);
    total.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// What a thread works on and since when; the number `u64::MAX` once it has ended.
type Current = Mutex<Option<(u64, Instant)>>;

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Waits until all threads have ended. One that does not come back ends the process, which nothing milder can do.
fn watch(threads: &[Current], limit: Duration) {
    loop {
        let current: Vec<_> = threads.iter().filter_map(|thread| *lock(thread)).collect();
        if current.len() == threads.len() && current.iter().all(|(number, _)| *number == u64::MAX) {
            return;
        }
        for (number, since) in current {
            if number != u64::MAX && since.elapsed() > limit {
                eprintln!("input {number} does not come back");
                std::process::exit(1);
            }
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn worker(mutator: &Mutator, options: &Options, next: &AtomicU64, end: u64, current: &Current) -> Report {
    let mut report = Report::default();
    LAST_PANIC.set(Some(String::new()));
    loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        if number >= end {
            return report;
        }
        if options.progress && number.is_multiple_of(10_000) && number > options.first {
            eprintln!("{number} inputs");
        }
        let input = input(mutator, options.seed, number);
        let (start, before) = (Instant::now(), ran().unwrap_or_default());
        *lock(current) = Some((number, start));
        match catch_unwind(AssertUnwindSafe(|| compile(&input))) {
            Ok(stage) => report.add(number, stage, start.elapsed()),
            Err(panic) => report.fail(number, panic_text(&*panic)),
        }
        // Other work on the machine may hold this thread up: then only the time that it ran counts, where the system tells.
        if start.elapsed() > options.limit && ran().is_none_or(|now| now - before > options.limit) {
            report.fail(number, "took too long".to_string());
        }
    }
}

/// How long this thread has run on a processor.
fn ran() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    Some(Duration::from_nanos(text.split_whitespace().next()?.parse().ok()?))
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let place = LAST_PANIC.with_borrow(|place| place.clone().unwrap_or_default());
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("a panic");
    format!("{text} ({place})")
}

thread_local! {
    /// Where this thread panicked last; nothing on threads that do not fuzz.
    static LAST_PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// While it lives, panics of fuzzing threads are not printed but noted.
struct Quiet;

impl Quiet {
    fn new() -> Quiet {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let place = info.location().map(ToString::to_string);
            let noted =
                LAST_PANIC.with_borrow_mut(|last| last.as_mut().map(|l| *l = place.unwrap_or_default()).is_some());
            if !noted {
                before(info);
            }
        }));
        Quiet
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        drop(std::panic::take_hook());
    }
}

/// Takes one input through all stages, and checks what each promises.
///
/// # Panics
/// If a stage panics or breaks its promise.
fn compile(input: &Input) -> Stage {
    let source = &input.text;
    let lossy = String::from_utf8_lossy(source);
    let (file, found) = syntax::parse(source);
    if found.has_errors() {
        shown(&found, &lossy);
        return Stage::Faulty;
    }
    let formatted = syntax::format(source).expect("what parses is formatted");
    assert_eq!(
        syntax::format(formatted.as_bytes()).as_ref(),
        Ok(&formatted),
        "formatting again changes the text"
    );
    shown(&lower::check(&file), &lossy);
    let Some(choice) = first_good_cell(&file) else {
        return Stage::Parsed;
    };
    let checked = driver::check(source, &choice).expect("the cell was lowered before");
    assert_eq!(verify(&checked.graph), Ok(()), "the graph as written");
    let analysed = match driver::analyse(source, &choice) {
        Ok(analysed) => analysed,
        Err(found) => {
            shown(&found, &lossy);
            return Stage::Lowered;
        }
    };
    assert_eq!(verify(&analysed.graph), Ok(()), "the graph after its transforms");
    let names = analysed.graph.dims.iter().cloned();
    let dims: BTreeMap<Name, i64> = names.zip(input.dims.iter().copied().cycle()).collect();
    let planned = match driver::plan(source, &choice, &dims, input.elem) {
        Ok(planned) => planned,
        Err(found) => {
            shown(&found, &lossy);
            return Stage::Analysed;
        }
    };
    assert_eq!(rnnc_runtime::plan::check(&planned.plan), Ok(()), "the plan");
    let emitted = codegen::cuda::emit(&planned.plan, &Target::default());
    assert!(!emitted.text.is_empty() && !emitted.header.is_empty());
    let found = driver::gradient(source, &choice, &dims, input.elem);
    differentiated(&found.expect("what can be planned can be derived"));
    Stage::Emitted
}

/// Both plans of a derivative are sound, and become text.
fn differentiated(found: &driver::Differentiated) {
    for planned in [&found.forward, &found.backward] {
        assert_eq!(verify(&planned.analysed.graph), Ok(()), "the graph for training");
        assert_eq!(
            rnnc_runtime::plan::check(&planned.plan),
            Ok(()),
            "the plan for training"
        );
        assert!(!codegen::cuda::emit(&planned.plan, &Target::default()).text.is_empty());
    }
}

/// The first cell of a file that has a graph.
fn first_good_cell(file: &syntax::ast::File) -> Option<Choice> {
    let cells = file.items.iter().filter_map(|top| match top {
        syntax::ast::Top::Cell(cell) => Some(cell.name.name.to_string()),
        _ => None,
    });
    let mut good = cells.filter(|name| lower::lower(file, Some(name), None).0.is_some());
    good.next().map(|name| Choice {
        cell: Some(name),
        stem: None,
    })
}

/// Messages of any kind can be shown to people and to tools.
fn shown(found: &rnnc::diagnostics::Diagnostics, source: &str) {
    let text = render::render(found, "fuzz.rnn", source, false);
    assert_eq!(text.is_empty(), found.0.is_empty());
    render::to_json(found, "fuzz.rnn", source);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_thousand_inputs_do_no_harm() {
        let options = Options {
            inputs: 2000,
            first: 0,
            seed: 1,
            threads: 2,
            limit: Duration::from_secs(60), // little optimised, beside other tests; the example allows one second
            progress: false,
        };
        let report = run(&options);
        println!("{report}");
        assert!(report.failures.is_empty(), "{report}");
        assert!(
            report.at_least(Stage::Emitted) * 10 >= options.inputs,
            "too few reach codegen: {report}"
        );
        assert!(
            report.at_least(Stage::Parsed) < options.inputs / 10 * 8,
            "too few are faulty: {report}"
        );
    }

    #[test]
    fn an_input_is_always_the_same() {
        let mutator = Mutator::new(corpus::texts());
        for number in 0..50 {
            assert_eq!(input(&mutator, 7, number).text, input(&mutator, 7, number).text);
        }
        assert_ne!(input(&mutator, 7, 0).text, input(&mutator, 8, 0).text);
    }
}
