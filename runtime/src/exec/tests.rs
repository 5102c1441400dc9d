//! The engine against a GPU whose kernels are Rust functions: order, arguments, windows, epochs, reuse, refusals.

use super::fake::{Call, Fake, Kernel, Log};
use super::samples::{cover, data, entry, looped, manifest, one_product, reads, reals, taps_manifest, writes};
use super::*;
use crate::engine::{Data, Engine, RunError};
use crate::manifest::{Argument, Manifest};
use crate::nvrtc::Compiled;
use crate::plan::samples::{PlanMaker, embedding, taps};
use crate::plan::{BufferId, Elem, Plan, Scope};
use std::collections::BTreeMap;

fn module() -> Compiled {
    Compiled::new(String::new(), vec![], "")
}

fn engine(
    plan: &Plan,
    manifest: &Manifest,
    resident: u64,
    kernels: &[(&'static str, Kernel)],
) -> (GpuEngine<Fake>, Log) {
    let (gpu, log) = Fake::new(resident, kernels);
    (
        GpuEngine::new(gpu, plan.clone(), manifest.clone(), &module()).unwrap(),
        log,
    )
}

/// What happened since the last look.
fn drain(log: &Log) -> Vec<String> {
    log.lock().unwrap().drain(..).collect()
}

fn launched(log: &Log) -> Vec<String> {
    drain(log)
        .into_iter()
        .filter(|line| line.starts_with("launch"))
        .collect()
}

const TAPS: [(&str, Kernel); 3] = [
    ("exp_scale", |call| call.memory(1).set(0, call.memory(0).get(0).exp())),
    ("window_of_x", |call| {
        let batch = call.int(2);
        for b in 0..batch {
            let context = call.memory(0).get(b);
            call.memory(1).set(b, context);
            call.memory(1).set(batch + b, context * 0.5);
        }
    }),
    ("sum_taps", |call| {
        let (frames, batch) = (call.int(4), call.int(5));
        for t in 0..frames {
            for b in 0..batch {
                let old = if t < 2 {
                    call.memory(1).get(t * batch + b)
                } else {
                    call.memory(0).get((t - 2) * batch + b)
                };
                call.memory(3).set(t * batch + b, call.memory(2).get(0) * old);
            }
        }
    }),
];

#[test]
fn prologue_windows_launches_and_final_copies_run_in_order() {
    let plan = taps(1);
    let (mut engine, log) = engine(&plan, &taps_manifest(&plan), 0, &TAPS);
    engine.set_params(&data(&[(2, &[0.0])])).unwrap();
    assert_eq!(launched(&log), ["launch exp_scale 1x64"]);
    let x = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
    let out = engine.run(3, 2, &data(&[(0, &x), (1, &[10.0, 20.0])])).unwrap();
    assert_eq!(launched(&log), ["launch window_of_x 1x64", "launch sum_taps 1x64"]);
    assert_eq!(reals(&out, 6), [10.0, 20.0, 5.0, 10.0, 1.0, 2.0]);
    assert_eq!(reals(&out, 5), [3.0, 4.0, 5.0, 6.0]);
    // Given: the launch that computes the window is left out, and so is the prologue, whose result stays.
    let out = engine
        .run(3, 2, &data(&[(0, &x), (1, &[10.0, 20.0]), (4, &[7.0, 8.0, 9.0, 11.0])]))
        .unwrap();
    assert_eq!(launched(&log), ["launch sum_taps 1x64"]);
    assert_eq!(reals(&out, 6), [7.0, 8.0, 9.0, 11.0, 1.0, 2.0]);
    assert_eq!(out.keys().map(|id| id.0).collect::<Vec<_>>(), [5, 6]);
}

#[test]
fn a_run_shorter_than_a_window_keeps_the_end_of_the_initial_one() {
    let plan = taps(1);
    let (mut engine, _) = engine(&plan, &taps_manifest(&plan), 0, &TAPS);
    engine.set_params(&data(&[(2, &[0.0])])).unwrap();
    let out = engine
        .run(1, 2, &data(&[(0, &[1.0, 2.0]), (1, &[10.0, 20.0])]))
        .unwrap();
    assert_eq!(reals(&out, 5), [5.0, 10.0, 1.0, 2.0]);
    assert_eq!(reals(&out, 6), [10.0, 20.0]);
}

#[test]
fn parameters_may_change_between_runs() {
    let plan = taps(1);
    let (mut engine, log) = engine(&plan, &taps_manifest(&plan), 0, &TAPS);
    let given = data(&[(0, &[1.0]), (1, &[10.0])]);
    let missing = engine.run(1, 1, &given).unwrap_err().to_string();
    assert_eq!(missing, "p.raw is missing");
    for (raw, scale) in [(0.0f32, 1.0f32), (2.0f32.ln(), 2.0)] {
        engine.set_params(&data(&[(2, &[raw])])).unwrap();
        assert_eq!(launched(&log), ["launch exp_scale 1x64"]);
        let out = engine.run(1, 1, &given).unwrap();
        assert!((reals(&out, 6)[0] - 10.0 * scale).abs() < 1e-5);
        drain(&log);
    }
}

#[test]
fn memory_grows_and_is_used_again() {
    let plan = taps(1);
    let (mut engine, log) = engine(&plan, &taps_manifest(&plan), 0, &TAPS);
    engine.set_params(&data(&[(2, &[0.0])])).unwrap();
    let allocations = |log: &Log| drain(log).iter().filter(|l| l.starts_with("alloc")).count();
    assert_eq!(allocations(&log), 2, "raw and scale");
    let mut run = |frames: usize, batch: usize| {
        let (x, context) = (vec![1.0; frames * batch], vec![1.0; batch]);
        engine.run(frames, batch, &data(&[(0, &x), (1, &context)])).unwrap()
    };
    run(4, 3);
    assert_eq!(allocations(&log), 5, "x, context, both windows, y");
    run(4, 3);
    run(2, 1);
    assert_eq!(allocations(&log), 0);
    let out = run(5, 3);
    assert_eq!(allocations(&log), 2, "x and y");
    assert_eq!(reals(&out, 6).len(), 15);
    assert!(reals(&out, 6).iter().all(|v| *v == 1.0 || *v == 0.5));
}

#[test]
fn wrong_data_is_refused_before_anything_runs() {
    let plan = taps(1);
    let (mut engine, log) = engine(&plan, &taps_manifest(&plan), 0, &TAPS);
    engine.set_params(&data(&[(2, &[0.0])])).unwrap();
    drain(&log);
    let refused = |result: Result<BTreeMap<BufferId, Data>, RunError>| result.unwrap_err().to_string();
    assert_eq!(refused(engine.run(1, 1, &data(&[(0, &[1.0])]))), "x.context is missing");
    let long = data(&[(0, &[1.0; 3]), (1, &[1.0])]);
    assert_eq!(refused(engine.run(1, 1, &long)), "x.x holds 3 reals, expected 1 reals");
    assert!(drain(&log).is_empty());
    let large = vec![0.0; 1 << 19];
    let error = refused(engine.run(1 << 19, 1, &data(&[(0, &large), (1, &[1.0])])));
    assert_eq!(error, "fake:0 cannot run this cell: no room for 2097152 bytes");
}

#[test]
fn another_plans_manifest_and_an_absent_kernel_are_errors() {
    let plan = taps(1);
    let good = taps_manifest(&plan);
    let refused = |plan: &Plan, manifest: &Manifest| {
        let (gpu, _) = Fake::new(0, &TAPS);
        let result = GpuEngine::new(gpu, plan.clone(), manifest.clone(), &module());
        result.err().map(|e| e.to_string())
    };
    assert_eq!(
        refused(&taps(2), &good).unwrap(),
        "the manifest of taps is not of this plan"
    );
    let mut headless = good.clone();
    headless.initial.clear();
    assert_eq!(
        refused(&plan, &headless).unwrap(),
        "the manifest of taps is not of this plan"
    );
    let mut unknown = good.clone();
    unknown.launches[0].kernel = "gone".to_owned();
    assert_eq!(refused(&plan, &unknown).unwrap(), "no kernel gone");
    assert_eq!(refused(&plan, &good), None);
    let other = Compiled::new(".visible .entry other()\n{\n}".to_owned(), vec![], "");
    let mixed = GpuEngine::new(Fake::new(0, &TAPS).0, plan.clone(), good, &other).err();
    assert_eq!(mixed.unwrap().to_string(), "taps: the module has no kernel exp_scale");
}

/// Each kernel is taken from the module whose report names it, and checked against the PTX of that one.
#[test]
fn kernels_may_be_in_several_modules() {
    let plan = taps(3);
    let module = |ptx: &str, kernels: &[&str]| {
        let line = |k: &&str| {
            format!("ptxas info    : Compiling entry function '{k}' for 'sm_90'\nptxas info    : Used 8 registers\n")
        };
        Compiled::new(ptx.to_owned(), vec![], &kernels.iter().map(line).collect::<String>())
    };
    let refused = |modules: &[&Compiled]| {
        let gpu = Fake::new(0, &TAPS).0;
        let engine = GpuEngine::with_modules(gpu, plan.clone(), taps_manifest(&plan), modules);
        engine.err().map(|e| e.to_string())
    };
    let two = module("", &["sum_taps", "exp_scale"]);
    let last = module("", &["window_of_x"]);
    assert_eq!(refused(&[&two, &last]), None);
    assert_eq!(refused(&[&last, &two]), None);
    assert_eq!(refused(&[&two]).unwrap(), "no kernel window_of_x");
    assert_eq!(refused(&[]).unwrap(), "no module has the kernel exp_scale");
    let empty = module(".visible .entry other()\n{\n}", &["window_of_x"]);
    let error = refused(&[&two, &empty]).unwrap();
    assert_eq!(error, "taps: the module has no kernel window_of_x");
}

/// Tokens are integers on the device, in the windows too.
#[test]
fn indices_are_integers_everywhere() {
    let plan = embedding(7, 1);
    let mut manifest = manifest(&plan);
    let arguments = vec![reads(0), reads(1), reads(2), writes(4), Argument::Frames];
    manifest.launches = vec![entry("embed", arguments, cover(Scope::Frame, 1))];
    let kernel: Kernel = |call| {
        for t in 0..call.int(4) {
            let now = call.memory(0).word(t) as usize;
            let before = if t == 0 {
                call.memory(2).word(0)
            } else {
                call.memory(0).word(t - 1)
            };
            call.memory(3)
                .set(t, call.memory(1).get(now) + call.memory(1).get(before as usize));
        }
    };
    let (mut engine, _) = engine(&plan, &manifest, 0, &[("embed", kernel)]);
    let table: Vec<f32> = (0..7).map(|i| i as f32 * 10.0).collect();
    engine.set_params(&data(&[(1, &table)])).unwrap();
    let given = BTreeMap::from([(BufferId(0), Data::I32(vec![3, 6]))]);
    let out = engine.run(2, 1, &given).unwrap();
    assert_eq!(reals(&out, 4), [40.0, 90.0], "the window is filled with the index 1");
    assert_eq!(out[&BufferId(3)], Data::I32(vec![6]));
}

/// A cell with 16-bit storage: y = x, in halves.
#[test]
fn sixteen_bit_storage_is_converted_at_the_border() {
    let mut maker = PlanMaker::new("halves");
    let (x, y) = (maker.input("x", &[1]), maker.output("y", &[1]));
    let mut plan = maker.0;
    for id in [x, y] {
        plan.buffers[id.0 as usize].elem = Elem::F16;
    }
    let mut manifest = manifest(&plan);
    manifest.launches = vec![entry("copy", vec![reads(0), writes(1)], cover(Scope::Frame, 1))];
    let kernel: Kernel = |call| call.memory(1).set_word(0, call.memory(0).word(0));
    let (mut engine, log) = engine(&plan, &manifest, 0, &[("copy", kernel)]);
    let out = engine.run(2, 1, &data(&[(0, &[0.1, -3.0])])).unwrap();
    assert_eq!(reals(&out, 1), [0.099_975_586, -3.0]);
    assert!(drain(&log).contains(&"upload 4".to_owned()));
}

/// h = h[t-2] / 2 + x. Each group tags a word of its own with every epoch that it uses, and trusts no word whose tag is
/// not older: what the real exchange relies on.
fn loop_kernel(call: &Call<'_>) {
    let (frames, batch) = (call.int(4), call.int(5));
    let (words, start) = (call.memory(6), call.unsigned(7));
    let groups = call.shape.grid as usize / 3;
    let rounds = batch.div_ceil(2).div_ceil(groups);
    for group in 0..groups {
        for step in 1..=frames * 2 * rounds {
            let epoch = start.wrapping_add(step as u32);
            assert!(
                words.word(group * 64) < epoch || epoch == 0,
                "the epoch {epoch} was seen before"
            );
            words.set_word(group * 64, epoch);
        }
    }
    let state = |t: usize, b: usize| {
        if t < 2 {
            call.memory(1).get(t * batch + b)
        } else {
            call.memory(3).get((t - 2) * batch + b)
        }
    };
    for t in 0..frames {
        for b in 0..batch {
            let h = state(t, b) / 2.0 + call.memory(0).get(t * batch + b);
            call.memory(3).set(t * batch + b, h);
            if t + 2 >= frames {
                call.memory(2).set((t + 2 - frames) * batch + b, h);
            }
        }
    }
}

#[test]
fn loops_get_resident_blocks_and_their_windows() {
    let (plan, manifest) = looped();
    let (mut engine, log) = engine(&plan, &manifest, 7, &[("loop", loop_kernel)]);
    let out = engine.run(3, 1, &data(&[(0, &[1.0, 2.0, 3.0])])).unwrap();
    assert_eq!(reals(&out, 3), [1.125, 2.125, 3.5625]);
    assert_eq!(reals(&out, 2), [2.125, 3.5625]);
    assert_eq!(launched(&log), ["launch loop 3x64"]);
    let x = [1.0; 10];
    engine.run(2, 5, &data(&[(0, &x)])).unwrap();
    assert_eq!(
        launched(&log),
        ["launch loop 6x64"],
        "three tiles, but only two groups of three blocks fit"
    );
    let out = engine.run(1, 1, &data(&[(0, &[1.0]), (1, &[4.0, 8.0])])).unwrap();
    assert_eq!(
        reals(&out, 2),
        [8.0, 3.0],
        "frame 1 of the window before, then the only frame"
    );
}

#[test]
fn epochs_go_on_from_run_to_run_and_start_anew_before_they_wrap() {
    let (plan, manifest) = looped();
    let (mut engine, log) = engine(&plan, &manifest, 7, &[("loop", loop_kernel)]);
    let run = |engine: &mut GpuEngine<Fake>, frames: usize, batch: usize| {
        let out = engine
            .run(frames, batch, &data(&[(0, &vec![1.0; frames * batch])]))
            .unwrap();
        assert_eq!(reals(&out, 3)[0], 1.125);
        drain(&log)
            .iter()
            .filter(|l| *l == "fill 64" || *l == "fill 128")
            .count()
    };
    assert_eq!(run(&mut engine, 5, 1), 1, "zeroed when it is allocated");
    assert_eq!(run(&mut engine, 5, 2), 0);
    assert_eq!(run(&mut engine, 3, 4), 1, "another group, another allocation");
    assert_eq!(run(&mut engine, 3, 1), 0);
    engine.set_epoch(u32::MAX - 6);
    assert_eq!(run(&mut engine, 3, 1), 0, "the last six epochs below 2^32");
    assert_eq!(run(&mut engine, 3, 1), 1, "zeroed before the wrap");
    assert_eq!(run(&mut engine, 3, 1), 0);
    engine.set_epoch(u32::MAX - 5);
    assert_eq!(
        run(&mut engine, 3, 1),
        1,
        "the epoch 0 is never used: it is what zeroed memory holds"
    );
}

#[test]
fn a_device_that_cannot_hold_the_blocks_is_refused() {
    let (plan, manifest) = looped();
    let (gpu, _) = Fake::new(2, &[("loop", loop_kernel)]);
    let error = GpuEngine::new(gpu, plan, manifest, &module())
        .err()
        .unwrap()
        .to_string();
    assert!(error.starts_with("fake:0 cannot run this cell: the 3 blocks of loop must run at once, and it holds 2"));
}

#[test]
fn a_library_does_plain_products_and_the_kernel_the_rest() {
    let (plan, manifest) = one_product();
    let kernel: Kernel = |call| {
        for t in 0..call.int(4) {
            for r in 0..2 {
                let term = |k: usize| call.memory(1).get(1 + r * 4 + k) * call.memory(0).get(t * 3 + k);
                let sum: f32 = (0..3).map(term).sum();
                call.memory(3).set(t * 3 + 1 + r, sum + call.memory(2).get(r));
            }
        }
    };
    let mut results = Vec::new();
    for (has_library, expected) in [(false, "launch product 1x64"), (true, "gemm 2 x 2 x 3")] {
        let (mut gpu, log) = Fake::new(0, &[("product", kernel)]);
        gpu.has_library = has_library;
        let mut engine = GpuEngine::new(gpu, plan.clone(), manifest.clone(), &module()).unwrap();
        let weight: Vec<f32> = (0..8).map(|i| i as f32).collect();
        engine.set_params(&data(&[(1, &weight), (2, &[0.5, -0.5])])).unwrap();
        let out = engine
            .run(2, 1, &data(&[(0, &[1.0, 10.0, 100.0, 2.0, 20.0, 200.0])]))
            .unwrap();
        let work = drain(&log)
            .into_iter()
            .filter(|l| l.starts_with("launch") || l.starts_with("gemm"));
        assert_eq!(work.collect::<Vec<_>>(), [expected]);
        let y = reals(&out, 3);
        results.push([y[1], y[2], y[4], y[5]]);
    }
    assert_eq!(results, [[321.5, 764.5, 642.5, 1529.5]; 2]);
}
