//! Runs a graph and then its derivative.
//!
//! What is given as for [`evaluate`], and cotangents under `dy.NAME` (of outputs, `[T, B, axes]`) and `dsT.NAME` (of final
//! windows); those that are not given are zero. Out come `dx.NAME`, `dp.NAME` and `ds0.NAME` for every real input,
//! parameter and window, each of the shape of what it is the gradient of.

use super::{ReferenceError, Tensor, evaluate};
use crate::ir::{Graph, Name, NodeId, Op, Scalar};
use crate::transform::gradient::{Forward, Gradient, Source, Window, cotangent, over_frames};
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
    let windows: Tensors = gradient.windows.iter().filter_map(|w| window(w, &right)).collect();
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
    let run = Ran { given, results: &left };
    for taped in &gradient.tape {
        let like = match &taped.source {
            Source::Input(name) => given.get(&format!("x.{name}")),
            Source::Output(name) => left.get(&format!("y.{name}")),
        };
        if let (Some(data), Some(like)) = (taped.values(&run, frames), like) {
            let shape = like.shape.clone();
            taken.insert(format!("x.{}", taped.name), Tensor { shape, data });
        }
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
    let frame = shape.iter().product();
    let data = match was_given {
        true => vec![0.0; frame],
        false => over_frames(&window.data, frame),
    };
    Tensor { shape, data }
}

/// A forward run: what it was given and what came out.
struct Ran<'a> {
    given: &'a Tensors,
    results: &'a Tensors,
}

impl Forward<f64> for Ran<'_> {
    fn input(&self, name: &str) -> Option<&[f64]> {
        self.given.get(&format!("x.{name}")).map(|t| &*t.data)
    }

    fn output(&self, name: &str) -> Option<&[f64]> {
        self.results.get(&format!("y.{name}")).map(|t| &*t.data)
    }

    fn window(&self, name: &str) -> Option<&[f64]> {
        self.given.get(&format!("s0.{name}")).map(|t| &*t.data)
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

/// The gradient of an initial window, of the shape that its first part has.
fn window(window: &Window, right: &Tensors) -> Option<(String, Tensor)> {
    let last = |state: &str| right.get(&format!("sT.{state}"));
    let data = window.gradient(|state| last(state).map(|t| &*t.data))?;
    let shape = last(&window.parts.first()?.0)?.shape.clone();
    Some((format!("ds0.{}", window.name), Tensor { shape, data }))
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
