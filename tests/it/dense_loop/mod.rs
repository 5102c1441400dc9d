//! Dense loops: their emitted text is run on the CPU and compared with a plain evaluation of the plan.

mod evaluate;
mod plans;

use crate::cuda_shim::{self, Run, Shim, numbers};
use plans::Made;
use rnnc::codegen::cuda::dense_loop::places::Shape;
use rnnc::codegen::{Target, Tuning, cuda};
use rnnc_runtime::plan::{Elem, Role};

fn shaped(blocks: usize, warps: usize, sequences: usize) -> Target {
    Target {
        tuning: Tuning {
            loop_shape: Some(Shape {
                blocks,
                warps,
                sequences,
            }),
            ..Tuning::default()
        },
        ..Target::default()
    }
}

/// Runs a plan's text in each of these ways and compares every output and final window.
fn assert_runs_right(made: &Made, target: &Target, runs: &[Run]) {
    if !cuda_shim::available() {
        return;
    }
    let emitted = cuda::emit(&made.plan, target);
    if let Ok(path) = std::env::var("RNNC_KEEP_TEXT") {
        std::fs::write(
            format!(
                "{path}/{}{}.cu",
                made.plan.cell,
                target
                    .tuning
                    .loop_shape
                    .map_or(0, |s| s.blocks * 100 + s.warps * 10 + s.sequences)
            ),
            &emitted.text,
        )
        .unwrap();
    }
    let shim = Shim::compile(&emitted.text, &emitted.manifest);
    for run in runs {
        let given = plans::given(&made.plan, run.frames, run.batch, run.seed);
        let got = shim.run(*run, &given);
        let expected = evaluate::evaluate(&made.plan, run.frames, run.batch, &given);
        for (id, buffer) in made
            .plan
            .ids()
            .filter(|(_, b)| matches!(b.role, Role::Output | Role::Final))
        {
            let error = distance(&numbers(&got[&id]), &expected[&id]);
            let tolerance = if buffer.elem == Elem::F32 { made.tolerance } else { 1e-2 };
            assert!(
                error <= tolerance,
                "{} {}: {error:e} at {run:?}",
                made.plan.cell,
                buffer.name
            );
        }
    }
}

/// The norm of the difference by the norm of what is right.
fn distance(got: &[f32], expected: &[f64]) -> f64 {
    assert_eq!(got.len(), expected.len());
    let square = |x: f64| x * x;
    let off: f64 = got.iter().zip(expected).map(|(g, e)| square(f64::from(*g) - e)).sum();
    let size: f64 = expected.iter().copied().map(square).sum();
    if off.is_nan() {
        f64::INFINITY
    } else {
        (off / size.max(1e-30)).sqrt()
    }
}

/// Odd sizes, one frame, one sequence, more tiles than groups.
fn usual_runs() -> Vec<Run> {
    let few = Run {
        resident: 4,
        ..Run::new(5, 7, 11)
    };
    vec![few, Run::new(6, 3, 1), Run::new(1, 1, 2), Run::new(9, 5, 3)]
}

#[test]
fn an_lstm_runs_right() {
    assert_runs_right(&plans::lstm(13), &shaped(3, 2, 2), &usual_runs());
}

#[test]
fn one_block_runs_right() {
    assert_runs_right(&plans::lstm(37), &shaped(1, 2, 4), &usual_runs());
}

#[test]
fn two_phases_run_right() {
    assert_runs_right(&plans::gru_reset_before(21), &shaped(4, 2, 2), &usual_runs());
}

#[test]
fn windows_run_right() {
    assert_runs_right(&plans::delays(11, 6), &shaped(2, 2, 2), &usual_runs());
}

#[test]
fn heads_run_right() {
    assert_runs_right(&plans::heads(3, 5), &shaped(2, 2, 4), &usual_runs());
}

#[test]
fn norms_run_right() {
    assert_runs_right(&plans::layer_norm(9), &shaped(3, 1, 2), &usual_runs());
}

#[test]
fn folds_run_right() {
    assert_runs_right(&plans::folds(7), &shaped(2, 2, 1), &usual_runs());
}

#[test]
fn parts_of_different_sizes_run_right() {
    assert_runs_right(&plans::two_parts(40, 3), &shaped(4, 2, 1), &usual_runs());
}

#[test]
fn sixteen_bit_storage_runs_right() {
    assert_runs_right(
        &plans::stored(plans::lstm(36), Elem::F16),
        &shaped(2, 2, 2),
        &usual_runs(),
    );
    assert_runs_right(
        &plans::stored(plans::heads(2, 9), Elem::Bf16),
        &shaped(2, 2, 2),
        &usual_runs(),
    );
}

/// Few threads for many units: a thread has several, and some values live in memory.
#[test]
fn many_units_a_thread_run_right() {
    assert_runs_right(&plans::delays(30, 61), &shaped(1, 1, 8), &usual_runs());
    assert_runs_right(&plans::gru_reset_before(50), &shaped(2, 1, 4), &usual_runs());
}

/// Epochs wrap while a launch runs, and workspaces are used again.
#[test]
fn epochs_wrap() {
    let run = Run {
        epoch: u32::MAX - 3,
        repeats: 3,
        resident: 6,
        ..Run::new(5, 5, 17)
    };
    assert_runs_right(&plans::gru_reset_before(8), &shaped(3, 1, 1), &[run]);
}
