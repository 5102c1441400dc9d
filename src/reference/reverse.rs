//! Turns tensors round in time, for graphs that run against it.
//!
//! Frames come in and go out in the order of time; the graph is run as if its last frame were the first.

use super::Tensor;
use crate::ir::{Graph, Kind, NodeId, Op};
use std::collections::{BTreeMap, BTreeSet};

/// What is given, with the frames of inputs and windows in reverse.
pub(super) fn given(graph: &Graph, batch: usize, given: &BTreeMap<String, Tensor>) -> BTreeMap<String, Tensor> {
    let named = |id: &NodeId| format!("x.{}", graph.node(*id).name.as_deref().unwrap_or_default());
    let frames = graph.inputs.iter().filter(|id| graph.node(**id).op == Op::Input);
    let inputs: BTreeSet<String> = frames.map(named).collect();
    let turn = |(key, tensor): (&String, &Tensor)| {
        let turned = inputs.contains(key) || key.starts_with("s0.");
        (
            key.clone(),
            if turned {
                turn(tensor, batch, graph, key)
            } else {
                tensor.clone()
            },
        )
    };
    given.iter().map(turn).collect()
}

/// What came out, with the frames of outputs and windows in reverse.
pub(super) fn results(graph: &Graph, batch: usize, results: BTreeMap<String, Tensor>) -> BTreeMap<String, Tensor> {
    let frame = graph.outputs.iter().filter(|o| graph.node(o.node).kind == Kind::Frame);
    let outputs: BTreeSet<String> = frame.map(|o| format!("y.{}", o.name)).collect();
    let turned = |key: &str| outputs.contains(key) || key.starts_with("sT.");
    let results = results.into_iter();
    results
        .map(|(key, tensor)| match turned(&key) {
            true => (key.clone(), turn(&tensor, batch, graph, &key)),
            false => (key, tensor),
        })
        .collect()
}

/// The frames in reverse; a window of one frame has no axis for it, and stays.
fn turn(tensor: &Tensor, batch: usize, graph: &Graph, key: &str) -> Tensor {
    let rank = rank(graph, key);
    if tensor.shape.len() < rank + 2 {
        return tensor.clone();
    }
    let frame = batch * tensor.shape[tensor.shape.len() - rank..].iter().product::<usize>();
    let data = match frame {
        0 => Vec::new(),
        n => tensor.data.chunks(n).rev().flatten().copied().collect(),
    };
    Tensor {
        shape: tensor.shape.clone(),
        data,
    }
}

/// How many axes a tensor's node has in one frame.
fn rank(graph: &Graph, key: &str) -> usize {
    let name = key.split_once('.').map_or("", |(_, name)| name);
    let output = graph.outputs.iter().find(|o| key.starts_with("y.") && *o.name == *name);
    let named = |id: &NodeId| graph.node(*id).name.as_deref() == Some(name);
    let listed = graph.inputs.iter().copied().chain(graph.states());
    let node = output.map(|o| o.node).or_else(|| listed.into_iter().find(named));
    node.map_or(0, |id| graph.node(id).ty.axes.len())
}
