//! Runs a graph and then its derivative.
//!
//! What is given as for [`evaluate`], and cotangents under `dy.NAME` (of outputs, `[T, B, axes]`) and `dsT.NAME` (of final
//! windows); those that are not given are zero. Out come `dx.NAME`, `dp.NAME` and `ds0.NAME` for every real input,
//! parameter and window, each of the shape of what it is the gradient of.

use super::{ReferenceError, Tensor, evaluate};
use crate::ir::{Graph, Name, NodeId, Op, Scalar};
use crate::transform::gradient::{Before, Gradient, Source, Taped, Window, cotangent};
use std::collections::BTreeMap;

/// Tensors by key.
type Tensors = BTreeMap<String, Tensor>;

/// Every gradient.
///
/// # Errors
/// What [`evaluate`] reports of the tensors given, or of a cotangent.
pub fn gradients(
    gradient: &Gradient,
    dims: &BTreeMap<Name, i64>,
    (frames, batch): (usize, usize),
    given: &Tensors,
    cotangents: &Tensors,
) -> Result<Tensors, ReferenceError> {
    let taken = backward_arguments(gradient, dims, (frames, batch), given, cotangents)?;
    if let Some(name) = cotangents.keys().find(|key| !is_cotangent(gradient, key)) {
        return Err(ReferenceError::Unknown { name: name.clone() });
    }
    let right = evaluate(&gradient.backward, dims, frames, batch, &taken)?;
    let mut results = Tensors::new();
    for (key, tensor) in &right {
        if let Some(key) = key.strip_prefix("y.") {
            results.insert(key.to_owned(), tensor.clone());
        }
    }
    zeros(&gradient.forward, given, &mut results);
    let windows: Tensors = gradient
        .windows
        .iter()
        .filter_map(|w| window(w, batch, &right))
        .collect();
    if let Some(graph) = &gradient.defaults {
        defaults(graph, dims, batch, (given, &windows), &mut results)?;
    }
    results.extend(windows);
    Ok(results)
}

/// What the backward graph takes: the tape of a forward run, and cotangents (zero where they are not given).
///
/// # Errors
/// As [`gradients`].
pub fn backward_arguments(
    gradient: &Gradient,
    dims: &BTreeMap<Name, i64>,
    (frames, batch): (usize, usize),
    given: &Tensors,
    cotangents: &Tensors,
) -> Result<Tensors, ReferenceError> {
    let left = evaluate(&gradient.forward, dims, frames, batch, given)?;
    let mut taken = Tensors::new();
    for taped in &gradient.tape {
        tape(taped, batch, given, &left, &mut taken);
    }
    interface(gradient, given, &left, cotangents, &mut taken);
    windows(gradient, cotangents, &mut taken);
    Ok(taken)
}

/// Adds what reaches parameters and static inputs by the defaults of windows that were not given.
fn defaults(
    graph: &Graph,
    dims: &BTreeMap<Name, i64>,
    batch: usize,
    (given, windows): (&Tensors, &Tensors),
    results: &mut Tensors,
) -> Result<(), ReferenceError> {
    let mut taken = Tensors::new();
    for id in graph.inputs.iter().chain(&graph.params) {
        let name = graph.node(*id).name.as_deref().unwrap_or_default();
        let (key, tensor) = match windows.get(name) {
            Some(window) => (
                format!("x.{name}"),
                summed(window, graph.node(*id).ty.axes.len(), given.contains_key(&name[1..])),
            ),
            None => {
                let prefix = if graph.params.contains(id) { "p" } else { "x" };
                let key = format!("{prefix}.{name}");
                let Some(tensor) = given.get(&key) else { continue };
                (key, tensor.clone())
            }
        };
        taken.insert(key, tensor);
    }
    for (key, tensor) in evaluate(graph, dims, 1, batch, &taken)? {
        if let Some(sum) = key.strip_prefix("y.").and_then(|key| results.get_mut(key)) {
            sum.data.iter_mut().zip(&tensor.data).for_each(|(s, v)| *s += v);
        }
    }
    Ok(())
}

/// The sum over the frames of a window; 0 if the window was given, for then its default took no part.
fn summed(window: &Tensor, rank: usize, was_given: bool) -> Tensor {
    let shape = window.shape[window.shape.len() - rank - 1..].to_vec();
    let mut sum = Tensor::from_fn(&shape, |_| 0.0);
    if !was_given {
        let length = sum.data.len().max(1);
        for frame in window.data.chunks(length) {
            sum.data.iter_mut().zip(frame).for_each(|(s, v)| *s += v);
        }
    }
    sum
}

/// The frames of a value, late by its delay.
fn tape(taped: &Taped, batch: usize, given: &Tensors, left: &Tensors, taken: &mut Tensors) {
    let frames = match &taped.source {
        Source::Input(name) => given.get(&format!("x.{name}")),
        Source::Output(name) => left.get(&format!("y.{name}")),
    };
    let Some(frames) = frames else { return };
    let frame = batch * frames.shape[2..].iter().product::<usize>();
    let late = taped.delay as usize * frame;
    let mut data = match &taped.window {
        Some(window) => before(window, late, frame, given, left),
        None => Vec::new(),
    };
    data.extend(&frames.data);
    data.truncate(frames.data.len());
    let shape = frames.shape.clone();
    taken.insert(format!("x.{}", taped.name), Tensor { shape, data });
}

/// The last `length` elements before the first frame.
fn before(window: &Before, length: usize, frame: usize, given: &Tensors, left: &Tensors) -> Vec<f64> {
    let default = window.default.as_ref().and_then(|name| left.get(&format!("y.{name}")));
    match (given.get(&format!("s0.{}", window.name)), default) {
        (Some(window), _) => window.data[window.data.len() - length..].to_vec(),
        (None, Some(every)) => every.data[..frame].repeat(length / frame.max(1)),
        (None, None) => vec![0.0; length],
    }
}

/// Cotangents of outputs, static inputs and parameters: what the backward graph takes besides the tape.
fn interface(gradient: &Gradient, given: &Tensors, left: &Tensors, cotangents: &Tensors, taken: &mut Tensors) {
    let backward = &gradient.backward;
    for id in backward.inputs.iter().chain(&backward.params) {
        let prefix = if backward.params.contains(id) { "p" } else { "x" };
        let key = format!("{prefix}.{}", backward.node(*id).name.as_deref().unwrap_or_default());
        if let Some(tensor) = given.get(&key) {
            taken.entry(key).or_insert_with(|| tensor.clone());
        }
    }
    for output in &gradient.forward.outputs {
        let name = cotangent(&output.name);
        let is_input = |id: &NodeId| backward.node(*id).name.as_ref() == Some(&name);
        let Some(like) = left.get(&format!("y.{}", output.name)) else {
            continue;
        };
        if backward.inputs.iter().any(is_input) {
            let zero = || Tensor::from_fn(&like.shape, |_| 0.0);
            let tensor = cotangents.get(&*name).cloned().unwrap_or_else(zero);
            taken.insert(format!("x.{name}"), tensor);
        }
    }
}

/// Cotangents of final windows.
fn windows(gradient: &Gradient, cotangents: &Tensors, taken: &mut Tensors) {
    for window in &gradient.windows {
        let given = cotangents.get(&format!("dsT.{}", window.name));
        if let (Some(tensor), Some((state, _))) = (given, window.parts.first()) {
            taken.insert(format!("s0.{state}"), tensor.clone());
        }
    }
}

fn is_cotangent(gradient: &Gradient, key: &str) -> bool {
    let output = |name: &str| gradient.forward.outputs.iter().any(|o| *o.name == *name);
    let window = |name: &str| gradient.windows.iter().any(|w| *w.name == *name);
    match key.split_once('.') {
        Some(("dy", name)) => output(name),
        Some(("dsT", name)) => window(name),
        _ => false,
    }
}

/// The gradient of an initial window: the final windows of the delayed adjoints, aligned at their last frames.
fn window(window: &Window, batch: usize, right: &Tensors) -> Option<(String, Tensor)> {
    let (first, _) = window.parts.first()?;
    let mut sum = right.get(&format!("sT.{first}"))?.clone();
    for (name, _) in &window.parts[1..] {
        let part = right.get(&format!("sT.{name}"))?;
        let from = sum.data.len() - part.data.len();
        sum.data[from..].iter_mut().zip(&part.data).for_each(|(s, p)| *s += p);
    }
    debug_assert!(sum.data.len().is_multiple_of(batch));
    Some((format!("ds0.{}", window.name), sum))
}

/// Gradients that are zero whatever the numbers.
fn zeros(forward: &Graph, given: &Tensors, results: &mut Tensors) {
    for id in forward.inputs.iter().chain(&forward.params) {
        let node = forward.node(*id);
        let prefix = if node.op == Op::Param { "p" } else { "x" };
        let name = node.name.as_deref().unwrap_or_default();
        if let (Scalar::Real, Some(like)) = (&node.ty.scalar, given.get(&format!("{prefix}.{name}"))) {
            let zero = || Tensor::from_fn(&like.shape, |_| 0.0);
            results.entry(format!("d{prefix}.{name}")).or_insert_with(zero);
        }
    }
}
