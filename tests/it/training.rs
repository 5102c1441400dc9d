//! Gradients through the Rust API, on the CPU engine: against recorded numbers, with checkpoints, of names read ahead.

use crate::golden::{self, Case, cases};
use crate::support::{Tensors, farthest};
use rnnc::ir::{Graph, Op};
use rnnc::reference::{self, Tensor};
use rnnc::transform::gradient;
use rnnc::{Device, Error, Gradients, Options, Training};
use std::collections::BTreeMap;

/// What the design allows gradients in f32.
const TOLERANCE: f64 = 1e-4;

/// The tensors with this prefix, in f32, under plain names.
fn pick(tensors: &Tensors, prefix: &str) -> rnnc::Tensors {
    let named = tensors.iter().filter_map(|(k, t)| Some((k.strip_prefix(prefix)?, t)));
    let single = |t: &Tensor| rnnc::Tensor::new(&t.shape, t.data.iter().map(|v| *v as f32).collect());
    named.map(|(k, t)| (k.to_owned(), single(t))).collect()
}

fn keyed(found: Gradients) -> Tensors {
    let mut got = Tensors::new();
    for (prefix, tensors) in [("dx.", found.inputs), ("dp.", found.params), ("ds0.", found.states)] {
        for (name, tensor) in tensors {
            let data = tensor.values().iter().map(|v| f64::from(*v)).collect();
            let shape = tensor.shape;
            got.insert(format!("{prefix}{name}"), Tensor { shape, data });
        }
    }
    got
}

fn load(text: &str, options: &Options) -> Training {
    let trainable = rnnc::compile_gradient(text, options).unwrap_or_else(|e| panic!("{e}"));
    trainable.load(&Device::Cpu { threads: 2 }).unwrap()
}

fn options(case: &Case) -> Options {
    let mut options = Options {
        file: format!("{}.rnn", case.name),
        ..Default::default()
    };
    options.dims = case.dims.iter().map(|(k, v)| (k.to_string(), *v)).collect();
    options
}

/// Every gradient of a golden cell, with checkpoints or without.
fn derived(case: &Case, every: Option<usize>) -> Tensors {
    let mut training = load(&case.text, &options(case));
    training.set_params(&pick(&case.given, "p.")).unwrap();
    let (inputs, states) = (pick(&case.given, "x."), pick(&case.given, "s0."));
    let (run, tape) = match every {
        None => training.forward(&inputs, &states).unwrap(),
        Some(every) => training.forward_checkpointed(&inputs, &states, every).unwrap(),
    };
    assert!(run.outputs.values().all(|t| t.shape[0] == case.frames));
    let found = training.backward(&tape, &pick(&case.cotangents, "dy."), &pick(&case.cotangents, "dsT."));
    keyed(found.unwrap_or_else(|e| panic!("{}: {e}", case.name)))
}

#[test]
fn gradients_reproduce_pytorch() {
    for case in cases() {
        let mut got = derived(&case, None);
        got.retain(|key, _| case.gradients.contains_key(key));
        let (key, error) = farthest(&got, &case.gradients);
        assert!(error <= TOLERANCE, "{} {key}: {error:e}", case.name);
    }
}

/// Whether every window is of one frame. Longer ones add up in another order where a stretch begins.
fn has_short_windows(case: &Case) -> bool {
    let states = case.graph.states().into_iter();
    let mut ops = states.map(|id| case.graph.node(id).op.clone());
    ops.all(|op| matches!(op, Op::State { window: 0 | 1 }))
}

/// Stretches that divide T, that do not, and one longer than T. What no sum over frames is in is the same to the bit.
#[test]
fn checkpoints_change_no_bit_of_what_is_not_summed_over_frames() {
    for case in cases() {
        let whole = derived(&case, None);
        let exact = has_short_windows(&case);
        for every in [1, 2, 3, case.frames, case.frames + 1] {
            let got = derived(&case, Some(every));
            let framed = |key: &String| !key.starts_with("dp.") && whole[key].shape.first() == Some(&case.frames);
            let comparable = |key: &String| exact && (key.starts_with("ds0.") || framed(key));
            for (key, tensor) in got.iter().filter(|(key, _)| comparable(key)) {
                let same = tensor.data == whole[key].data;
                assert!(same, "{} {key} with a checkpoint every {every} frames", case.name);
            }
            let (key, error) = farthest(&got, &whole);
            assert!(error <= 1e-5, "{} {key} every {every}: {error:e}", case.name);
        }
    }
}

const AHEAD: &str = "cell ahead(A, B) {
  input x: [A]
  param W: [B, A], R, Q: [B, B]
  state h: [B]
  output y, h
  h = tanh(W @ x[t+1] + R @ h[t-1])
  y = Q @ h[t+2] * h[t-1]
}";

fn ahead(frames: usize) -> (Graph, BTreeMap<rnnc::ir::Name, i64>, Tensors) {
    let graph = golden::lower("ahead", AHEAD);
    let dims = BTreeMap::from([("A".into(), 3), ("B".into(), 5)]);
    let wanted = reference::arguments(&graph, &dims, frames, 2).unwrap();
    let given = reference::sample(&wanted, 3);
    (graph, dims, given)
}

/// More frames than are read ahead, as many, and fewer.
#[test]
fn names_read_ahead_have_gradients_on_the_cpu_engine() {
    let mut training = load(AHEAD, &Options::default().dim("A", 3).dim("B", 5));
    for frames in [7, 2, 1] {
        let (graph, dims, given) = ahead(frames);
        let ones = Tensor::from_fn(&[frames, 2, 5], |i| 1.0 + i as f64 / 8.0);
        let cotangents = Tensors::from([("dy.y".to_owned(), ones.clone()), ("dy.h".to_owned(), ones)]);
        let derivative = gradient::run(&graph);
        let expected = reference::gradients(&derivative, &dims, (frames, 2), &given, &cotangents).unwrap();
        training.set_params(&pick(&given, "p.")).unwrap();
        let (_, tape) = training.forward(&pick(&given, "x."), &pick(&given, "s0.")).unwrap();
        let found = training.backward(&tape, &pick(&cotangents, "dy."), &rnnc::Tensors::new());
        let (key, error) = farthest(&keyed(found.unwrap()), &expected);
        assert!(error <= 1e-5, "{frames} frames, {key}: {error:e}");
    }
}

#[test]
fn no_checkpoints_where_they_cannot_be() {
    let mut training = load(AHEAD, &Options::default().dim("A", 3).dim("B", 5));
    let (_, _, given) = ahead(4);
    training.set_params(&pick(&given, "p.")).unwrap();
    let mut fail = |every| {
        let run = training.forward_checkpointed(&pick(&given, "x."), &rnnc::Tensors::new(), every);
        match run {
            Err(e @ Error::Checkpoints { .. }) => e.to_string(),
            other => panic!("{:?}", other.map(|_| ())),
        }
    };
    assert!(fail(0).contains("at least one frame"));
    assert!(fail(2).contains("is read ahead of time"));
}
