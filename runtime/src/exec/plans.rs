//! The engine on whole plans: the GPU's kernels are the plan's launches, interpreted point by point in f64, one by one.
//!
//! Against a run of the interpreter by itself this shows that whatever a plan asks for between its launches is done: order,
//! prologue, windows, final windows, memory from one launch to the next, at any T and B.

use super::fake::{Closure, Fake};
use super::samples::{entry, manifest};
use super::{GpuEngine, bytes};
use crate::engine::{Data, Engine};
use crate::manifest::{Argument, Grid, KernelLaunch, Manifest, ShortRun, Workspace};
use crate::nvrtc::Compiled;
use crate::plan::interpret::{Values, interpret, interpret_launch};
use crate::plan::samples::{decay, embedding, lstm, matrix_state, norms, products, softmax, swap, taps};
use crate::plan::{BufferId, Elem, Kernel, Launch, Plan, Role, Scope};
use std::collections::BTreeMap;

/// What a launch takes: every buffer that it touches.
fn arguments(launch: &Launch) -> Vec<Argument> {
    let written = launch.writes();
    let mut touched = launch.reads();
    touched.extend(launch.kernel.windows());
    touched.extend(&written);
    let buffers = touched.into_iter().map(|buffer| Argument::Buffer {
        buffer,
        written: written.contains(&buffer),
    });
    buffers.chain([Argument::Frames, Argument::Batch]).collect()
}

fn kernel_launch(launch: &Launch, workspaces: &mut Vec<Workspace>) -> KernelLaunch {
    let mut arguments = arguments(launch);
    if !matches!(launch.kernel, Kernel::Loop(_)) {
        let grid = Grid::Cover {
            scope: Scope::Frame,
            each: 1,
            per_block: 1,
            times: 1,
            limit: 7,
        };
        return entry(&launch.name, arguments, grid);
    }
    workspaces.push(Workspace {
        name: launch.name.clone(),
        bytes_per_group: 256,
        exchanges: 1,
    });
    let at = workspaces.len() - 1;
    arguments.extend([Argument::Workspace(at), Argument::Epoch(at)]);
    let grid = Grid::Groups {
        batch_tile: 2,
        blocks: 2,
    };
    entry(&launch.name, arguments, grid)
}

fn manifest_of(plan: &Plan) -> Manifest {
    let mut made = manifest(plan);
    let mut list = |launches: &[Launch]| {
        launches
            .iter()
            .map(|l| kernel_launch(l, &mut made.workspaces))
            .collect()
    };
    made.prologue = list(&plan.prologue);
    made.initial = list(&plan.initial);
    made.launches = list(&plan.launches);
    let copied = |id| plan.finals.iter().any(|f| f.target == id);
    for (target, last) in plan.ids().filter(|(id, b)| b.role == Role::Final && !copied(*id)) {
        let first = plan
            .ids()
            .find(|(_, b)| matches!(b.role, Role::Initial(_)) && b.name == last.name);
        if let (Some((initial, _)), Scope::Window(frames)) = (first, last.scope) {
            made.short.push(ShortRun {
                target,
                initial,
                frames,
            });
        }
    }
    made
}

/// The launch as a kernel: its arguments in, the interpreter over them, what it writes out.
fn kernel(plan: &Plan, launch: &Launch) -> Closure {
    let (plan, launch, arguments) = (plan.clone(), launch.clone(), arguments(launch));
    Box::new(move |call| {
        let (frames, batch) = (call.int(arguments.len() - 2), call.int(arguments.len() - 1));
        let mut memory: Vec<Vec<f64>> = plan.buffers.iter().map(|_| Vec::new()).collect();
        let buffers = arguments
            .iter()
            .enumerate()
            .filter_map(|(place, argument)| match argument {
                Argument::Buffer { buffer, written } => Some((place, *buffer, *written)),
                _ => None,
            });
        for (place, id, _) in buffers.clone() {
            let buffer = plan.buffer(id);
            let stored = call.memory(place).read(buffer.len(frames, batch) * buffer.elem.bytes());
            memory[id.0 as usize] = wide(&bytes::decode(&stored, buffer.elem));
        }
        interpret_launch(&plan, &launch, frames, batch, &mut memory);
        for (place, id, _) in buffers.filter(|(_, _, written)| *written) {
            let values = memory[id.0 as usize].iter();
            let data = match plan.buffer(id).elem {
                Elem::I32 => Data::I32(values.map(|v| *v as i32).collect()),
                _ => Data::F32(values.map(|v| *v as f32).collect()),
            };
            call.memory(place).write(&bytes::encode(&data, plan.buffer(id).elem));
        }
    })
}

fn wide(data: &Data) -> Vec<f64> {
    match data {
        Data::F32(v) => v.iter().map(|x| f64::from(*x)).collect(),
        Data::I32(v) => v.iter().map(|x| f64::from(*x)).collect(),
    }
}

/// Numbers between -1 and 1, different everywhere; indices 0, 1 and 2, which every table of the samples has.
fn data(plan: &Plan, (frames, batch): (usize, usize), wanted: impl Fn(&Role) -> bool) -> BTreeMap<BufferId, Data> {
    let mut made = BTreeMap::new();
    for (id, buffer) in plan.ids().filter(|(_, b)| wanted(&b.role)) {
        let n = buffer.len(frames, batch);
        let number = |i: usize| (i * 7 + id.0 as usize * 13) % 31;
        let data = match buffer.elem {
            Elem::I32 => Data::I32((0..n).map(|i| (number(i) % 3) as i32).collect()),
            _ => Data::F32((0..n).map(|i| number(i) as f32 / 16.0 - 0.9).collect()),
        };
        made.insert(id, data);
    }
    made
}

#[track_caller]
fn agrees(plan: &Plan) {
    let all = plan.prologue.iter().chain(&plan.initial).chain(&plan.launches);
    let kernels = all.map(|launch| (launch.name.clone(), kernel(plan, launch))).collect();
    let module = Compiled::new(String::new(), vec![], "");
    let mut engine = GpuEngine::new(Fake::with(5, kernels).0, plan.clone(), manifest_of(plan), &module).unwrap();
    let params = data(plan, (1, 1), |role| *role == Role::Param);
    engine.set_params(&params).unwrap();
    for run in [(4, 3), (1, 1), (2, 9), (7, 1), (1, 5), (4, 3)] {
        for with_windows in [false, true] {
            let wanted = |role: &Role| *role == Role::Input || (with_windows && matches!(role, Role::Initial(_)));
            let given = data(plan, run, wanted);
            let got = engine.run(run.0, run.1, &given).unwrap();
            let both: Values = params
                .iter()
                .chain(&given)
                .map(|(id, data)| (*id, wide(data)))
                .collect();
            let want = interpret(plan, run.0, run.1, &both);
            assert!(got.keys().eq(want.keys()));
            for (id, want) in want {
                let apart = wide(&got[&id])
                    .iter()
                    .zip(&want)
                    .map(|(a, b)| (a - b).abs())
                    .fold(0.0, f64::max);
                let name = &plan.buffer(id).name;
                assert!(
                    apart < 1e-5,
                    "{} at {run:?}: {name} of {id:?} is off by {apart:e}",
                    plan.cell
                );
            }
        }
    }
}

#[test]
fn whole_plans_give_what_the_interpreter_gives() {
    for plan in [lstm(3, 5), decay(4), taps(3), matrix_state(3, 4), embedding(7, 3)] {
        agrees(&plan);
    }
    for plan in [products(3, 5), norms(2, 3, 4), swap(3, 4), softmax(2, 3, 4)] {
        agrees(&plan);
    }
}

#[test]
fn dropping_or_exchanging_launches_is_seen() {
    let plan = products(3, 5);
    let seen = |change: &dyn Fn(&mut Manifest)| {
        let all = plan.prologue.iter().chain(&plan.initial).chain(&plan.launches);
        let kernels = all.map(|launch| (launch.name.clone(), kernel(&plan, launch))).collect();
        let mut manifest = manifest_of(&plan);
        change(&mut manifest);
        let module = Compiled::new(String::new(), vec![], "");
        let mut engine = GpuEngine::new(Fake::with(5, kernels).0, plan.clone(), manifest, &module).unwrap();
        let params = data(&plan, (1, 1), |role| *role == Role::Param);
        engine.set_params(&params).unwrap();
        let given = data(&plan, (4, 3), |role| *role == Role::Input);
        engine.run(4, 3, &given).unwrap()
    };
    let right = seen(&|_| {});
    for at in 0..plan.launches.len() {
        let wrong = seen(&|manifest| drop(manifest.launches.remove(at)));
        assert_ne!(format!("{right:?}"), format!("{wrong:?}"), "launch {at}");
    }
}
