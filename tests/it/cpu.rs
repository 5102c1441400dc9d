//! Plans run by the CPU engine: against PyTorch's recorded numbers, and against themselves with a launch missing.

use crate::golden::{Case, cases};
use crate::runs;
use crate::support::{self, distance};
use rnnc::driver::{self, Choice};
use rnnc::ir::Name;
use rnnc_runtime::cpu::CpuEngine;
use rnnc_runtime::engine::{Data, Engine, RunError};
use rnnc_runtime::plan::{BufferId, Elem, Kernel, Plan, Reg, Role, Step};
use rnnc_runtime::scalar::Unary;
use std::collections::BTreeMap;

/// What the design allows f32 against f64.
pub const TOLERANCE: f64 = 1e-5;

/// The plan of a golden cell at its dimensions.
pub fn plan(case: &Case) -> Plan {
    let choice = Choice {
        cell: None,
        stem: Some(case.name.clone()),
    };
    let dims: BTreeMap<Name, i64> = case.dims.clone();
    let planned = driver::plan(case.text.as_bytes(), &choice, &dims, Elem::F32);
    planned.unwrap_or_else(|d| panic!("{}: {d:?}", case.name)).plan
}

/// Data for the buffers of some roles, out of golden tensors.
pub fn bind(plan: &Plan, tensors: &support::Tensors, wanted: impl Fn(&Role) -> bool) -> BTreeMap<BufferId, Data> {
    let mut bound = runs::data(plan, tensors);
    bound.retain(|id, _| wanted(&plan.buffer(*id).role));
    bound
}

/// Runs a plan on golden inputs; the results under their golden keys.
pub fn run(plan: &Plan, case: &Case) -> Result<support::Tensors, RunError> {
    let mut engine = CpuEngine::new(plan.clone(), 2)?;
    run_on(&mut engine, plan, case)
}

/// Runs a plan on golden inputs on any engine.
pub fn run_on(engine: &mut dyn Engine, plan: &Plan, case: &Case) -> Result<support::Tensors, RunError> {
    engine.set_params(&bind(plan, &case.given, |r| *r == Role::Param))?;
    let given = bind(plan, &case.given, |r| matches!(r, Role::Input | Role::Initial(_)));
    let results = engine.run(case.frames, case.batch, &given)?;
    Ok(named(plan, case, results))
}

/// Results of a run under their golden keys.
pub fn named(plan: &Plan, case: &Case, results: BTreeMap<BufferId, Data>) -> support::Tensors {
    runs::named(plan, case.frames, case.batch, results)
}

/// The largest distance to the recorded outputs and final states.
pub fn error(results: &support::Tensors, case: &Case) -> (String, f64) {
    let far = case.expected.iter().map(|(k, want)| {
        (
            k.clone(),
            results.get(k).map_or(f64::INFINITY, |got| distance(got, want)),
        )
    });
    far.max_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or_default()
}

#[test]
fn golden_cells_run_on_the_cpu() {
    let mut wrong = Vec::new();
    for case in cases() {
        match run(&plan(&case), &case) {
            Ok(results) => {
                let (key, error) = error(&results, &case);
                if error > TOLERANCE {
                    wrong.push(format!("{}: {key} is off by {error:.2e}", case.name));
                }
            }
            Err(e) => wrong.push(format!("{}: {e}", case.name)),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The engine runs the plan and nothing else: without any one of its launches the numbers are wrong.
#[test]
fn no_launch_can_be_left_out() {
    let mut unnoticed = Vec::new();
    for case in cases() {
        let whole = plan(&case);
        for (list, count) in [("prologue", whole.prologue.len()), ("launches", whole.launches.len())] {
            for i in 0..count {
                let mut cut = whole.clone();
                let launches = if list == "prologue" {
                    &mut cut.prologue
                } else {
                    &mut cut.launches
                };
                launches.remove(i);
                for launch in launches.iter_mut() {
                    launch.after.retain(|j| *j != i);
                    launch.after.iter_mut().filter(|j| **j > i).for_each(|j| *j -= 1);
                }
                let noticed = run(&cut, &case).map_or(true, |results| error(&results, &case).1 > 1e-2);
                if !noticed {
                    unnoticed.push(format!("{}: {list} {i}", case.name));
                }
            }
        }
    }
    assert!(unnoticed.is_empty(), "{}", unnoticed.join("\n"));
}

/// Nor does it look at anything but the plan: with one store of a launch negated the numbers are wrong.
#[test]
fn no_launch_can_be_altered() {
    let mut unnoticed = Vec::new();
    for case in cases() {
        let whole = plan(&case);
        for i in 0..whole.launches.len() {
            let mut altered = whole.clone();
            negate_first_store(&mut altered.launches[i].kernel);
            if run(&altered, &case).is_ok_and(|results| error(&results, &case).1 < 1e-2) {
                unnoticed.push(format!("{}: launch {i}", case.name));
            }
        }
    }
    assert!(unnoticed.is_empty(), "{}", unnoticed.join("\n"));
}

fn negate_first_store(kernel: &mut Kernel) {
    let body = match kernel {
        Kernel::Product(product) => &mut product.segments[0].body,
        Kernel::Total(totals) => &mut totals[0].parts[0].body,
        Kernel::Channel(channel) => &mut channel.body,
        Kernel::Loop(looped) => {
            let mut parts = looped.phases.iter_mut().flat_map(|phase| &mut phase.parts);
            &mut parts.rfind(|p| !p.body.stores.is_empty()).unwrap().body
        }
    };
    let value = body.stores[0].value;
    body.steps.push(Step::Unary(Unary::Neg, value));
    body.stores[0].value = Reg(body.steps.len() as u32 - 1);
}
