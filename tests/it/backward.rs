//! The backward plans of published cells: the launches that they should have, soundness at any sizes, text that NVRTC
//! compiles without a warning, and numbers that the reference confirms.

use crate::cuda_shim::{self, Run, Shim};
use crate::golden;
use crate::runs::{self, Sizes};
use crate::support::{Tensors, farthest};
use rnnc::codegen::{Target, cuda};
use rnnc::driver::{self, Choice, Differentiated};
use rnnc::ir::Graph;
use rnnc::reference;
use rnnc::transform;
use rnnc_runtime::nvrtc::{self, Compiler};
use rnnc_runtime::plan::{Elem, Plan};
use std::collections::BTreeMap;

/// What the design allows gradients in f32.
const TOLERANCE: f64 = 1e-4;

/// The cells whose text is compiled and run: every family, and what is peculiar to some.
const CELLS: &[&str] = &[
    "delay_graph",
    "deltanet",
    "gru",
    "indrnn",
    "lstm",
    "lstm_layer_norm",
    "mamba_s6",
    "qrnn2",
    "slstm",
    "sru",
];

fn derive(name: &str, text: &str, first: i64, elem: Elem) -> (Differentiated, Sizes) {
    let choice = Choice {
        cell: None,
        stem: Some(name.to_owned()),
    };
    let graph = golden::lower(name, text);
    let dims: BTreeMap<_, i64> = graph.dims.iter().cloned().zip((first..).step_by(2)).collect();
    let found = driver::gradient(text.as_bytes(), &choice, &dims, elem);
    let sizes = Sizes {
        dims,
        frames: 3,
        batch: 2,
    };
    (found.unwrap_or_else(|d| panic!("{name}: {d:?}")), sizes)
}

fn families(plan: &Plan) -> Vec<&'static str> {
    plan.launches.iter().map(|l| l.family.name()).collect()
}

#[test]
fn backward_plans_are_sound() {
    for (name, text) in golden::cells() {
        for (first, elem) in [(1, Elem::F32), (5, Elem::F32), (34, Elem::Bf16)] {
            let (found, _) = derive(&name, &text, first, elem);
            for plan in [&found.forward.plan, &found.backward.plan] {
                assert_eq!(rnnc_runtime::plan::check(plan), Ok(()), "{}", plan.cell);
            }
        }
    }
}

/// The adjoint of a scan is a scan, that of a dense loop a loop; the gradients of weights are totals outside of both.
#[test]
fn backward_plans_keep_the_families() {
    let families_of = |name: &str| families(&derive(name, &golden::cells()[name], 5, Elem::F32).0.backward.plan);
    for (name, wanted, not) in [
        ("sru", "scan", "loop"),
        ("mingru", "scan", "loop"),
        ("gilr", "scan", "loop"),
        ("indrnn", "scan", "loop"),
        ("mamba_s6", "matrix_state", "loop"),
        ("lstm", "loop", "scan"),
        ("gru", "loop", "scan"),
    ] {
        let found = families_of(name);
        assert!(found.contains(&wanted) && !found.contains(&not), "{name}: {found:?}");
        assert!(found.contains(&"total"), "{name}: {found:?}");
    }
    // All weights and biases get their gradients in one launch, x in another.
    assert_eq!(families_of("lstm"), ["loop", "product", "total"]);
    for name in ["mingru", "gilr"] {
        assert_eq!(families_of(name), ["scan", "product", "total"], "{name}");
    }
}

/// The tape of a forward run on numbers made up, and cotangents made up.
fn arguments(name: &str, text: &str, backward: &Graph, sizes: &Sizes) -> Tensors {
    let mut graph = golden::lower(name, text);
    transform::run(&mut graph);
    let gradient = transform::gradient::run(&graph);
    let (size, given) = ((sizes.frames, sizes.batch), sizes.arguments(&graph, 1, true));
    let mut all = reference::backward_arguments(&gradient, &sizes.dims, size, &given, &Tensors::new()).unwrap();
    let made_up = sizes.arguments(backward, 2, true);
    let is_cotangent = |key: &String| key.starts_with("x.dy.") || key.starts_with("s0.d.");
    all.extend(made_up.into_iter().filter(|(key, _)| is_cotangent(key)));
    for tensor in all.values_mut() {
        tensor.data.iter_mut().for_each(|x| *x = f64::from(*x as f32));
    }
    all
}

/// What is wrong with a cell's backward text, and with the CPU engine's run of the same plan.
fn fault(name: &str, text: &str) -> Option<String> {
    let (found, sizes) = derive(name, text, 35, Elem::F32);
    let (graph, plan) = (&found.backward.analysed.graph, &found.backward.plan);
    let given = arguments(name, text, graph, &sizes);
    let expected = reference::evaluate(graph, &sizes.dims, sizes.frames, sizes.batch, &given).unwrap();
    let emitted = cuda::emit(plan, &Target::default());
    let shim = Shim::compile(&emitted.text, &emitted.manifest);
    let run = Run::new(sizes.frames, sizes.batch, 7);
    let text = runs::on_shim(&shim, plan, run, &given);
    let cpu = runs::on_cpu(plan, sizes.frames, sizes.batch, &given).unwrap();
    let faults = [("text", text), ("cpu", cpu)].map(|(what, got)| {
        let (key, off) = farthest(&got, &expected);
        (off > TOLERANCE).then(|| format!("{name} {what}: {key} is off by {off:.2e}"))
    });
    faults.into_iter().flatten().reduce(|a, b| format!("{a}\n{b}"))
}

#[test]
fn backward_text_computes_what_the_reference_does() {
    if !cuda_shim::available() {
        return;
    }
    let texts = golden::cells();
    let some = |first: usize| -> Vec<String> {
        let own = CELLS.iter().skip(first).step_by(2);
        own.filter_map(|name| fault(name, &texts[*name])).collect()
    };
    let wrong: Vec<String> = std::thread::scope(|scope| {
        let even = scope.spawn(|| some(0));
        let mut wrong = some(1);
        wrong.extend(even.join().unwrap());
        wrong
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn nvrtc_compiles_backward_text_without_warnings_or_spills() {
    if nvrtc::find().is_empty() {
        eprintln!("SKIPPED: no NVRTC; run `cargo xtask setup`");
        return;
    }
    let compiler = Compiler::open().unwrap();
    let texts = golden::cells();
    let mut faults = Vec::new();
    for (i, name) in CELLS.iter().enumerate() {
        let (arch, elem) = [("sm_80", Elem::F32), ("sm_90", Elem::Bf16)][i % 2];
        let (found, _) = derive(name, &texts[*name], 34, elem);
        let target = Target {
            arch: arch.to_owned(),
            ..Target::default()
        };
        let emitted = cuda::emit(&found.backward.plan, &target);
        let compiled = compiler.compile(&emitted.text, &format!("{name}.cu"), arch, &[]);
        let compiled = compiled.unwrap_or_else(|e| panic!("{name} for {arch}: {e}"));
        if !compiled.messages.is_empty() {
            faults.push(format!("{name} for {arch}: {}", compiled.messages));
        }
        let spilling = compiled.kernels().filter(|k| k.spills());
        faults.extend(spilling.map(|k| format!("{} for {arch} spills", k.name)));
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
