//! Judges a cell: what its text means to the reference, it must mean after every pass, as a plan, and to the CPU engine.

use super::cell::Cell;
use super::coverage::Coverage;
use crate::cuda_shim::{Run, Shim};
use crate::runs::{self, Sizes, nudged};
use crate::support::{Tensors, farthest};
use rnnc::codegen::{Target, cuda};
use rnnc::diagnostics::Diagnostics;
use rnnc::diagnostics::render::render;
use rnnc::driver::{self, Choice, Planned};
use rnnc::ir::{Graph, verify::verify};
use rnnc::transform;
use rnnc_runtime::engine::{Engine, RunError};
use rnnc_runtime::plan::{self, Elem, Plan};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What the design allows f32, and what f64 is held to where operations come in another order.
const TOLERANCES: (f64, f64) = (1e-5, 1e-12);

/// Some cells amplify rounding: where the reference moves by so much when its arguments are rounded otherwise, an engine
/// that rounds every value on the way may be off by several times that.
const STEPS: f64 = 8.0;

/// Beyond this f32 is not judged: an error of 0.1 % would no longer tell a wrong plan from an unlucky one.
const LIMIT: f64 = 1e-3;

/// Rounding of f64 in units of that of f32.
const FINER: f64 = 1.0 / (1u64 << 29) as f64;

/// A cell with all that decides what it computes.
pub struct Subject {
    /// Its file.
    pub text: String,
    /// Which cell of the file.
    pub choice: Choice,
    /// What it is run with.
    pub sizes: Sizes,
    /// Decides its numbers, whether windows are given, and the threads.
    pub seed: u64,
}

impl From<&Cell> for Subject {
    fn from(cell: &Cell) -> Subject {
        Subject {
            text: cell.to_string(),
            choice: Choice::default(),
            sizes: cell.sizes(),
            seed: cell.seed,
        }
    }
}

impl Subject {
    pub(super) fn rendered(&self, found: &Diagnostics) -> String {
        render(found, "cell.rnn", &self.text, false)
    }

    /// The graph of the text as it is written.
    ///
    /// # Errors
    /// What is wrong with the text.
    pub fn lowered(&self) -> Result<Graph, String> {
        let checked = driver::check(self.text.as_bytes(), &self.choice);
        let checked = checked.map_err(|d| format!("it is not well typed:\n{}", self.rendered(&d)))?;
        verify(&checked.graph).map_err(|faults| format!("its graph is not sound: {faults:?}"))?;
        Ok(checked.graph)
    }

    fn planned(&self) -> Result<Planned, String> {
        let planned = driver::plan(self.text.as_bytes(), &self.choice, &self.sizes.dims, Elem::F32);
        let planned = planned.map_err(|d| format!("it is not planned:\n{}", self.rendered(&d)))?;
        plan::check(&planned.plan).map_err(|e| format!("its plan is not sound: {e:?}"))?;
        Ok(planned)
    }

    /// What is wrong with the cell, a panic included. Counts what it consists of.
    ///
    /// # Errors
    /// Where it first means something else, and how far off that is.
    pub fn judge(&self, seen: &mut Coverage) -> Result<(), String> {
        without_panic(|| {
            let graph = self.lowered()?;
            seen.count_graph(&graph);
            let case = Case::new(self, &graph)?;
            case.judge_passes(&graph)?;
            let planned = self.planned()?;
            seen.count_facts(&planned.analysed.facts);
            seen.count_plan(&planned.plan);
            case.judge_plan(&planned.plan)?;
            if case.is_beyond_f32() {
                seen.count_unjudged();
                return Ok(());
            }
            case.judge_cpu(&planned.plan, 1 + self.seed as usize % 2)
        })
    }

    /// What is wrong with the cell's CUDA text, run on the CPU.
    ///
    /// # Errors
    /// How far off it is.
    pub fn judge_text(&self) -> Result<(), String> {
        without_panic(|| {
            let case = Case::new(self, &self.lowered()?)?;
            let plan = self.planned()?.plan;
            let emitted = cuda::emit(&plan, &Target::default());
            let shim = Shim::compile(&emitted.text, &emitted.manifest);
            let run = Run::new(self.sizes.frames, self.sizes.batch, self.seed);
            let got = runs::on_shim(&shim, &plan, run, &case.given);
            if case.is_beyond_f32() {
                return Ok(());
            }
            case.judge_single(&got).map_err(|e| format!("its CUDA text: {e}"))
        })
    }
}

pub(super) fn without_panic(judge: impl FnOnce() -> Result<(), String>) -> Result<(), String> {
    let judged = catch_unwind(AssertUnwindSafe(judge));
    judged.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or(panic.downcast_ref::<&str>().copied());
        Err(format!("it panics: {}", text.unwrap_or_default()))
    })
}

/// A cell's arguments and what the reference makes of them.
pub(super) struct Case {
    sizes: Sizes,
    given: Tensors,
    expected: Tensors,
    /// How far the reference moves when its arguments are rounded otherwise.
    moves: f64,
    /// What is allowed in f32, where the reference does not move more.
    tolerance: f64,
}

/// Results beyond this are of cells that amplify: what cancels in them keeps the rounding of the largest.
const STEEP: f64 = 1e3;

impl Case {
    pub(super) fn new(subject: &Subject, graph: &Graph) -> Result<Case, String> {
        // No window, every other one, or all are given.
        let mut given = subject.sizes.arguments(graph, subject.seed, true);
        let mut number = 0;
        given.retain(|key, _| {
            number += u64::from(key.starts_with("s0."));
            !key.starts_with("s0.")
                || match subject.seed % 3 {
                    0 => false,
                    1 => number.is_multiple_of(2),
                    _ => true,
                }
        });
        Case::of(&subject.sizes, graph, given)
    }

    /// What the reference makes of these arguments of a graph.
    pub(super) fn of(sizes: &Sizes, graph: &Graph, given: Tensors) -> Result<Case, String> {
        let sizes = sizes.clone();
        let evaluate = |given: &Tensors| sizes.reference(graph, given).map_err(|e| e.to_string());
        let expected = evaluate(&given)?;
        let mut moves = 0.0f64;
        for seed in [1, 2] {
            let moved = evaluate(&nudged(graph, &sizes, &given, seed))?;
            moves = moves.max(farthest(&moved, &expected).1);
        }
        Ok(Case {
            sizes,
            given,
            expected,
            moves,
            tolerance: TOLERANCES.0,
        })
    }

    /// Whether it amplifies rounding so much that f32 cannot be held to anything.
    pub(super) fn is_beyond_f32(&self) -> bool {
        STEPS * self.moves > LIMIT
    }

    /// With another tolerance for f32.
    pub(super) fn within(self, tolerance: f64) -> Case {
        Case { tolerance, ..self }
    }

    /// Whether results are so large that what cancels cannot be judged in f32.
    pub(super) fn is_steep(&self) -> bool {
        let mut all = self.expected.values().flat_map(|t| &t.data);
        all.any(|x| x.abs() > STEEP)
    }

    /// Whether a result in f64 is what it should be.
    fn same(&self, got: &Tensors) -> Result<(), String> {
        let tolerance = (STEPS * self.moves * FINER).clamp(TOLERANCES.1, LIMIT * FINER * 1e3);
        compare(got, &self.expected, tolerance)
    }

    fn judge_passes(&self, graph: &Graph) -> Result<(), String> {
        let mut all = graph.clone();
        transform::run(&mut all);
        let same = |graph: &Graph| {
            verify(graph).map_err(|e| format!("{e:?}"))?;
            let got = self.sizes.reference(graph, &self.given).map_err(|e| e.to_string())?;
            self.same(&got)
        };
        let Err(after_all) = same(&all) else { return Ok(()) };
        let mut graph = graph.clone();
        for (pass, run) in transform::PASSES {
            run(&mut graph);
            same(&graph).map_err(|e| format!("after {pass}: {e}"))?;
        }
        Err(format!("after all passes: {after_all}"))
    }

    pub(super) fn judge_plan(&self, plan: &Plan) -> Result<(), String> {
        let got = runs::interpreted(plan, self.sizes.frames, self.sizes.batch, &self.given);
        self.same(&got).map_err(|e| format!("in its plan: {e}"))
    }

    pub(super) fn judge_cpu(&self, plan: &Plan, threads: usize) -> Result<(), String> {
        let got = runs::on_threads(threads, plan, self.sizes.frames, self.sizes.batch, &self.given);
        let got = got.map_err(|e| format!("on the CPU: {e}"))?;
        self.judge_single(&got).map_err(|e| format!("on the CPU: {e}"))
    }

    /// Runs its plan on the engine that was made for it.
    pub(super) fn run_on(&self, engine: &mut dyn Engine, plan: &Plan) -> Result<Tensors, RunError> {
        runs::on_engine(engine, plan, (self.sizes.frames, self.sizes.batch), &self.given)
    }

    /// Whether a result in f32 is what it should be.
    pub(super) fn judge_single(&self, got: &Tensors) -> Result<(), String> {
        compare(got, &self.expected, (STEPS * self.moves).max(self.tolerance))
    }
}

pub(super) fn compare(got: &Tensors, expected: &Tensors, tolerance: f64) -> Result<(), String> {
    match farthest(got, expected) {
        (key, off) if off > tolerance => Err(format!("{key} is off by {off:.1e}, more than {tolerance:.1e}")),
        _ => Ok(()),
    }
}
