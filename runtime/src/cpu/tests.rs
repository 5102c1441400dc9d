//! The engine against the plan's semantics written point by point, on every sample plan.

use super::*;
use crate::engine::Data;
use crate::plan::interpret::{Values, interpret};
use crate::plan::samples::{decay, embedding, lstm, matrix_state, norms, products, softmax, swap, taps, totals};
use crate::plan::{Elem, Step};

type Given = BTreeMap<BufferId, Data>;

/// Numbers of about one, different everywhere; indices within any table of the samples.
fn data(plan: &Plan, frames: usize, batch: usize, wanted: impl Fn(&Role) -> bool) -> Given {
    let mut state = 12345u64;
    let mut next = move || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1 << 23) as f32 - 1.0
    };
    let buffers = plan.ids().filter(|(_, b)| wanted(&b.role));
    buffers
        .map(|(id, b)| {
            let n = b.len(frames, batch);
            match b.elem {
                Elem::I32 => (id, Data::I32((0..n).map(|_| ((next() + 1.0) * 1.5) as i32).collect())),
                _ => (id, Data::F32((0..n).map(|_| next()).collect())),
            }
        })
        .collect()
}

fn wide(data: &Data) -> Vec<f64> {
    match data {
        Data::F32(v) => v.iter().map(|x| f64::from(*x)).collect(),
        Data::I32(v) => v.iter().map(|x| f64::from(*x)).collect(),
    }
}

fn engine(plan: &Plan, threads: usize, isa: Isa) -> CpuEngine {
    let mut engine = CpuEngine::with_isa(plan.clone(), threads, isa).unwrap();
    engine
        .set_params(&data(plan, 1, 1, |role| *role == Role::Param))
        .unwrap();
    engine
}

/// What the interpreter finds for the data that [`data`] makes.
fn wanted(plan: &Plan, frames: usize, batch: usize, given: &Given) -> Values {
    let params = data(plan, 1, 1, |role| *role == Role::Param);
    let all = params.iter().chain(given).map(|(id, data)| (*id, wide(data))).collect();
    interpret(plan, frames, batch, &all)
}

#[track_caller]
fn assert_close(plan: &Plan, got: &Given, want: &Values, tolerance: f64, what: &str) {
    assert_eq!(got.len(), want.len());
    for (id, want) in want {
        let got = wide(&got[id]);
        assert_eq!(got.len(), want.len());
        let norm = want.iter().map(|x| x * x).sum::<f64>().sqrt().max(1e-30);
        let apart = got.iter().zip(want).map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt();
        let key = crate::given::key(plan.buffer(*id));
        assert!(
            apart <= tolerance * norm,
            "{what}: {key} is off by {:e}: {got:?}, should be {want:?}",
            apart / norm
        );
    }
}

/// At several sizes, with and without given windows, on one thread and on three, and again on the same buffers.
fn agrees(plan: &Plan) {
    let small = plan.buffers.iter().all(|b| b.elements() < 100);
    let sizes = [(4, 3), (1, 1), (2, 9), (7, 1), (1, 5), (13, 2), (4, 3)];
    let mut engines: Vec<CpuEngine> = Isa::all()
        .iter()
        .flat_map(|isa| [1, 3].map(|threads| engine(plan, threads, *isa)))
        .collect();
    for (frames, batch) in &sizes[..if small { sizes.len() } else { 3 }] {
        for windows in [false, true] {
            let role = |role: &Role| *role == Role::Input || windows && matches!(role, Role::Initial(_));
            let given = data(plan, *frames, *batch, role);
            let want = wanted(plan, *frames, *batch, &given);
            let results: Vec<Given> = engines
                .iter_mut()
                .map(|e| e.run(*frames, *batch, &given).unwrap())
                .collect();
            for (result, engine) in results.iter().zip(&engines) {
                let what = format!("{} T={frames} B={batch} windows={windows} {:?}", plan.cell, engine.isa);
                assert_close(plan, result, &want, 1e-6, &what);
            }
            assert!(
                results.chunks(2).all(|r| r[0] == r[1]),
                "{}: threads change nothing",
                plan.cell
            );
        }
    }
}

#[test]
fn pointwise_work_agrees() {
    agrees(&taps(3));
    agrees(&taps(600));
    agrees(&embedding(3, 5));
    agrees(&embedding(3, 40));
}

#[test]
fn inner_axes_agree() {
    agrees(&softmax(3, 2, 5));
    agrees(&softmax(1, 1, 700));
    agrees(&softmax(40, 30, 1));
}

#[test]
fn channel_loops_agree() {
    agrees(&decay(1));
    agrees(&decay(7));
    agrees(&decay(1111));
    agrees(&swap(3, 5));
    agrees(&swap(1, 1));
    agrees(&matrix_state(3, 4));
    agrees(&matrix_state(40, 33));
}

#[test]
fn products_agree() {
    agrees(&products(3, 5));
    agrees(&products(1, 2));
    agrees(&totals(3, 5));
    agrees(&totals(1, 1));
    agrees(&totals(50, 19));
    agrees(&products(37, 70));
}

#[test]
fn dense_loops_agree() {
    agrees(&lstm(3, 5));
    agrees(&lstm(5, 70));
    agrees(&norms(2, 3, 4));
    agrees(&norms(3, 20, 17));
    agrees(&norms(1, 1, 1));
}

/// Large enough for every way of sharing the work: sequences, units, both.
#[test]
fn many_sequences_and_units_agree_between_threads() {
    let plan = lstm(9, 130);
    let mut engines = [1, 2, 4].map(|threads| engine(&plan, threads, Isa::detect()));
    for (frames, batch) in [(3, 1), (3, 6), (2, 40)] {
        let given = data(&plan, frames, batch, |role| *role == Role::Input);
        let results = engines
            .each_mut()
            .map(|engine| engine.run(frames, batch, &given).unwrap());
        assert_close(&plan, &results[0], &wanted(&plan, frames, batch, &given), 1e-6, "lstm");
        assert!(results.iter().all(|r| *r == results[0]));
    }
}

/// What one sequence holds never shows in another.
#[test]
fn nan_stays_in_its_sequence() {
    for plan in [
        lstm(3, 5),
        norms(2, 3, 4),
        decay(3),
        matrix_state(3, 4),
        products(3, 5),
        taps(3),
        softmax(3, 2, 5),
    ] {
        let (frames, batch) = (3, 5);
        let mut given = data(&plan, frames, batch, |role| *role == Role::Input);
        let clean = engine(&plan, 2, Isa::detect()).run(frames, batch, &given).unwrap();
        for (id, data) in &mut given {
            let buffer = plan.buffer(*id);
            if let Data::F32(values) = data {
                let row = values.len() / buffer.elements();
                let bad = (0..row).filter(|copy| copy % batch == 2);
                bad.for_each(|copy| values[copy * buffer.elements()] = f32::NAN);
            }
        }
        let found = engine(&plan, 2, Isa::detect()).run(frames, batch, &given).unwrap();
        let mut bad = 0;
        for (id, data) in &found {
            let elements = plan.buffer(*id).elements();
            for (i, (x, clean)) in wide(data).iter().zip(wide(&clean[id])).enumerate() {
                let other = i / elements % batch != 2;
                assert!(!other || *x == clean, "{}: {x} in another sequence", plan.cell);
                bad += usize::from(x.is_nan());
            }
        }
        assert!(bad > 0, "{}: NaN shows in its own sequence", plan.cell);
    }
}

/// Every step that a result can depend on is really run: any changed constant or function shows.
#[test]
fn altering_a_step_changes_the_result() {
    for plan in [
        lstm(3, 5),
        norms(2, 3, 4),
        decay(3),
        products(3, 5),
        softmax(3, 2, 5),
        totals(3, 5),
    ] {
        let given = data(&plan, 3, 2, |role| *role == Role::Input);
        let sound = engine(&plan, 1, Isa::detect()).run(3, 2, &given).unwrap();
        for launch in 0..plan.launches.len() {
            let mut changed = plan.clone();
            negate(&mut changed.launches[launch].kernel);
            let found = engine(&changed, 1, Isa::detect()).run(3, 2, &given).unwrap();
            assert_ne!(found, sound, "{}: launch {launch} is really run", plan.cell);
        }
    }
}

/// Turns the sign of everything that a kernel stores.
fn negate(kernel: &mut Kernel) {
    let bodies: Vec<&mut crate::plan::Body> = match kernel {
        Kernel::Product(product) => product.segments.iter_mut().map(|s| &mut s.body).collect(),
        Kernel::Total(totals) => totals
            .iter_mut()
            .flat_map(|total| &mut total.parts)
            .map(|part| &mut part.body)
            .collect(),
        Kernel::Channel(channel) => vec![&mut channel.body],
        Kernel::Loop(kernel) => kernel
            .phases
            .iter_mut()
            .flat_map(|p| &mut p.parts)
            .map(|p| &mut p.body)
            .collect(),
    };
    for body in bodies {
        for store in &mut body.stores {
            body.steps.push(Step::Unary(crate::scalar::Unary::Neg, store.value));
            store.value = crate::plan::Reg(body.steps.len() as u32 - 1);
        }
    }
}

/// Buffers of 16 bits hold what 16 bits can, and lose no more than that.
#[test]
fn sixteen_bit_storage_rounds_what_is_stored() {
    for (elem, tolerance) in [(Elem::Bf16, 1e-2), (Elem::F16, 1e-3)] {
        let mut plan = lstm(3, 5);
        plan.buffers.iter_mut().for_each(|b| b.elem = elem);
        let given = data(&plan, 4, 3, |role| *role == Role::Input);
        let found = engine(&plan, 2, Isa::detect()).run(4, 3, &given).unwrap();
        assert_close(&plan, &found, &wanted(&plan, 4, 3, &given), tolerance, "16 bits");
        for data in found.values() {
            let Data::F32(values) = data else { panic!("reals") };
            let mut rounded = values.clone();
            memory::round(elem, &mut rounded);
            assert_eq!(*values, rounded);
        }
    }
}

#[test]
fn runs_need_parameters_and_sound_plans() {
    let plan = lstm(3, 5);
    let mut engine = CpuEngine::new(plan.clone(), 2).unwrap();
    let given = data(&plan, 2, 1, |role| *role == Role::Input);
    assert_eq!(engine.run(2, 1, &given).unwrap_err().to_string(), "p.W is missing");
    assert_eq!(engine.threads(), 2);
    let mut unsound = plan;
    unsound.launches[1].after.clear();
    let error = CpuEngine::new(unsound, 1)
        .err()
        .map(|e| e.to_string())
        .unwrap_or_default();
    assert!(error.contains("the plan is not sound"), "{error}");
}

#[test]
fn changed_parameters_are_packed_anew() {
    let plan = lstm(3, 5);
    let given = data(&plan, 2, 1, |role| *role == Role::Input);
    let mut engine = engine(&plan, 1, Isa::detect());
    let before = engine.run(2, 1, &given).unwrap();
    let mut params = data(&plan, 1, 1, |role| *role == Role::Param);
    if let Some(Data::F32(values)) = params.values_mut().next() {
        values.iter_mut().for_each(|x| *x = -*x);
    }
    engine.set_params(&params).unwrap();
    assert_ne!(engine.run(2, 1, &given).unwrap(), before);
    engine
        .set_params(&data(&plan, 1, 1, |role| *role == Role::Param))
        .unwrap();
    assert_eq!(engine.run(2, 1, &given).unwrap(), before);
}
