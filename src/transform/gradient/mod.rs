//! Reverse mode through time: a graph becomes a second one, which runs against time and computes every gradient.
//!
//! Comes in: a sound graph, as `transform::run` left it. Goes out ([`Gradient`]): the same graph with outputs for what the
//! backward run reads of it (the tape), and the backward graph, an ordinary one but for its direction: its inputs are the
//! tape and the cotangents `dy.NAME` of the outputs, its outputs the gradients `dx.NAME` and `dp.NAME`.
//!
//! Delays change sign (Hwang & Sung 2015, arXiv 1503.02852): for each name and each delay d with which it is read, the
//! adjoints of those reads add up to one state `d.NAME.d` of the backward graph, which the name's own adjoint reads d
//! frames later in the backward run, earlier in time; a name that is read ahead has a state that its adjoint reads ahead. The ends: the cotangent `dsT` of a final window of k frames is the
//! initial window of `d.NAME.k`; the gradient `ds0` of the initial window is the sum of the final windows of all of them,
//! aligned at their last frames. A parameter's gradient is one product over all frames ([`Op::Total`]), never a
//! sum that a recurrence carries.

mod adjoint;
mod build;
mod elementwise;
mod frames;
mod operations;
mod tape;

use super::prune;
use crate::ir::{Graph, Name, Node, NodeId, Op, Output, Read, Scalar};
use adjoint::Adjoints;
use build::Build;
pub use frames::{Forward, over_frames};
use tape::Values;

/// A graph and its derivative.
#[derive(Clone, Debug)]
pub struct Gradient {
    /// The graph, with outputs for what the backward run needs.
    pub forward: Graph,
    /// What computes the gradients; it runs against time.
    pub backward: Graph,
    /// Where the inputs of the backward graph come from, cotangents apart.
    pub tape: Vec<Taped>,
    /// Where the gradients of initial windows come from.
    pub windows: Vec<Window>,
    /// What the gradients of initial windows that the caller left to their defaults come to, if a default is computed from
    /// parameters or static inputs: a graph of its own, whose inputs `ds0.NAME` (`[B, axes]`, the sum over the window's
    /// frames) are static and whose outputs add to those of `backward`.
    pub defaults: Option<Graph>,
}

/// An input of the backward graph that the forward run leaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taped {
    /// The name of the backward graph's input.
    pub name: Name,
    /// Whose frames it holds.
    pub source: Source,
    /// How many frames late: frame t of the input is frame t - delay of the source. Negative: early, and zero where the
    /// source has no such frame.
    pub delay: i32,
    /// For the frames before the first, where there is a delay.
    pub window: Option<Before>,
}

/// Frames before the first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Before {
    /// The last ones of `s0.NAME`, if the caller gives it.
    pub name: Name,
    /// Else each is the first frame of the output of this name; else 0.
    pub default: Option<Name>,
}

/// What of the forward run is on the tape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// The input of this name.
    Input(Name),
    /// The output of this name.
    Output(Name),
}

/// The gradient of an initial window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// The name that is read delayed: this is `ds0.NAME`.
    pub name: Name,
    /// Its largest delay, in frames.
    pub frames: u32,
    /// States of the backward graph with the frames of their windows: the final window of each is added to the last
    /// frames of the gradient. The first has all frames; its initial window is the cotangent `dsT.NAME`.
    pub parts: Vec<(Name, u32)>,
}

/// The name of the backward graph's input that holds the cotangent of an output.
pub fn cotangent(output: &str) -> Name {
    format!("dy.{output}").into()
}

/// Derives a graph.
pub fn run(forward: &Graph) -> Gradient {
    let mut build = Build::new(forward);
    let values = tape::values(&mut build);
    let mut adjoints = Adjoints::new(&mut build);
    for output in &forward.outputs {
        let node = forward.node(output.node);
        if node.ty.scalar == Scalar::Real {
            let given = build.input(cotangent(&output.name), &node.ty);
            adjoints.whole(output.node, Read::now(given));
        }
    }
    let windows = adjoints.windows(forward);
    propagate(&mut build, &values, &mut adjoints);
    adjoints.close(&mut build);
    let backward = finished(build);
    let mut found = tape::record(forward, backward, &values, windows);
    found.defaults = defaults(forward);
    found
}

/// From every result to what it was computed from.
fn propagate(build: &mut Build<'_>, values: &Values, adjoints: &mut Adjoints) {
    for id in build.forward.topological().into_iter().rev() {
        if let Some(adjoint) = adjoints.finish(build, id) {
            operations::propagate(build, values, adjoints, id, adjoint);
            output(build, id, adjoint);
        }
    }
}

fn finished(build: Build<'_>) -> Graph {
    let mut graph = build.graph;
    prune::run(&mut graph);
    drop_unread(&mut graph);
    graph
}

/// The name of the input of [`Gradient::defaults`] that holds the gradient of an initial window.
pub fn of_window(state: &str) -> Name {
    format!("ds0.{state}").into()
}

/// The derivative of the default values of initial windows.
fn defaults(forward: &Graph) -> Option<Graph> {
    let mut build = Build::new(forward);
    build.graph.name = format!("{}_defaults", forward.name);
    let values = tape::values(&mut build);
    let mut adjoints = Adjoints::within_frame(forward);
    for id in forward.states() {
        if let Some(initial) = forward.operands(id).get(1) {
            let given = build.leaf(Op::StaticInput, &forward.node(id).ty, of_window(&forward.label(id)));
            build.graph.inputs.push(given);
            let given = build.lowered(Read::now(given), forward.node(initial.node).kind);
            adjoints.add(*initial, given);
        }
    }
    propagate(&mut build, &values, &mut adjoints);
    let graph = finished(build);
    (!graph.outputs.is_empty()).then_some(graph)
}

/// Gradients of what the caller gave are outputs.
fn output(build: &mut Build<'_>, id: NodeId, adjoint: Read) {
    let Node { op, name, span, .. } = build.forward.node(id);
    let prefix = match op {
        Op::Input | Op::StaticInput => "dx",
        Op::Param => "dp",
        _ => return,
    };
    let node = build.settled(adjoint);
    build.graph.outputs.push(Output {
        name: format!("{prefix}.{}", name.as_deref().unwrap_or_default()).into(),
        node,
        span: *span,
    });
}

/// Inputs and parameters that no gradient needs.
fn drop_unread(graph: &mut Graph) {
    let listed: Vec<NodeId> = graph.inputs.iter().chain(&graph.params).copied().collect();
    let is_output = |graph: &Graph, id: NodeId| graph.outputs.iter().any(|o| o.node == id);
    for id in listed {
        if graph.uses(id).is_empty() && !is_output(graph, id) {
            graph.inputs.retain(|i| *i != id);
            graph.params.retain(|i| *i != id);
            graph.remove(id);
        }
    }
}
