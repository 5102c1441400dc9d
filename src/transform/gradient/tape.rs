//! What the backward run knows of the forward one: which values are kept, which are computed again.
//!
//! Inputs and states are kept, and so is what a product, a reduction or a table gives; what is elementwise or a view is
//! computed again where it is read, and what depends on parameters or static inputs alone from these. A value of an
//! earlier or later frame is an input of its own, which holds the same frames late or early.

use super::build::Build;
use super::{Before, Gradient, Source, Taped, Window, adjoint};
use crate::ir::{Graph, Kind, Name, NodeId, Op, Output, Read};
use std::collections::BTreeMap;

/// The forward values in the backward graph.
#[derive(Default)]
pub(super) struct Values {
    place: BTreeMap<(NodeId, i32), NodeId>,
    taped: Vec<(Name, NodeId, i32)>,
}

impl Values {
    /// What was read, at the frame of the reader.
    pub(super) fn read(&self, read: Read) -> Read {
        // Every forward value was given a place, for every delay with which it is read.
        Read::now(self.place.get(&(read.node, read.delay)).copied().unwrap_or(read.node))
    }

    /// A value of this frame.
    pub(super) fn of(&self, id: NodeId) -> NodeId {
        self.read(Read::now(id)).node
    }

    /// An input that holds a forward value of `delay` frames ago; of frames to come, if that is negative.
    fn keep(&mut self, build: &mut Build<'_>, id: NodeId, delay: i32) -> NodeId {
        let own = name(build.forward, id);
        let name = match delay {
            0 => own,
            _ => adjoint::delayed(&own, delay),
        };
        let input = build.input(name.clone(), &build.forward.node(id).ty);
        self.taped.push((name, id, delay));
        input
    }
}

/// Puts every forward value into the backward graph; what no gradient reads is pruned later.
pub(super) fn values(build: &mut Build<'_>) -> Values {
    let forward = build.forward;
    let mut values = Values::default();
    for state in forward.states() {
        let of = delayed_input(forward, state).unwrap_or(state);
        let known = values.place.get(&(of, 0)).copied();
        let now = known.unwrap_or_else(|| values.keep(build, of, 0));
        values.place.insert((of, 0), now);
        values.place.insert((state, 0), now);
        for delay in adjoint::delays(forward, state) {
            let moved = values.keep(build, state, delay);
            values.place.insert((state, delay), moved);
        }
    }
    for id in forward.topological() {
        if !values.place.contains_key(&(id, 0)) {
            let made = value(build, &mut values, id);
            values.place.insert((id, 0), made);
        }
    }
    values
}

/// The input that a state is the identity of, if it is of one.
fn delayed_input(forward: &Graph, state: NodeId) -> Option<NodeId> {
    let value = forward.operands(state).first().copied()?;
    (value.delay == 0 && forward.node(value.node).op == Op::Input).then_some(value.node)
}

fn value(build: &mut Build<'_>, values: &mut Values, id: NodeId) -> NodeId {
    let forward = build.forward;
    let node = forward.node(id);
    build.span = node.span;
    match node.op {
        Op::Param => {
            let made = build.leaf(Op::Param, &node.ty, name(forward, id));
            build.graph.params.push(made);
            made
        }
        Op::StaticInput => {
            let made = build.leaf(Op::StaticInput, &node.ty, name(forward, id));
            build.graph.inputs.push(made);
            made
        }
        _ if is_kept(forward, id) => values.keep(build, id, 0),
        _ => {
            let operands: Vec<Read> = forward.operands(id).into_iter().map(|r| values.read(r)).collect();
            build.add(node.op.clone(), node.ty.clone(), &operands).node
        }
    }
}

/// Whether a value is on the tape. An index cannot be an output, so what is made of one is computed again.
fn is_kept(forward: &Graph, id: NodeId) -> bool {
    let node = forward.node(id);
    let made = matches!(node.op, Op::Contract { .. } | Op::Reduce { .. } | Op::Gather);
    node.op == Op::Input || (made && node.kind == Kind::Frame)
}

/// The name of a value on the tape: the user's, else one that no user can write.
fn name(forward: &Graph, id: NodeId) -> Name {
    let node = forward.node(id);
    let listed = matches!(node.op, Op::Input | Op::StaticInput | Op::Param | Op::State { .. });
    match &node.name {
        Some(name) if listed => name.clone(),
        _ => format!("tape.{}", id.index()).into(),
    }
}

/// Gives the forward graph outputs for what the backward graph reads of it.
pub(super) fn record(forward: &Graph, backward: Graph, values: &Values, windows: Vec<Window>) -> Gradient {
    let mut forward = forward.clone();
    let mut tape = Vec::new();
    for (name, id, delay) in &values.taped {
        let read = |input: &NodeId| backward.node(*input).name.as_ref() == Some(name);
        if backward.inputs.iter().any(read) {
            tape.push(Taped {
                name: name.clone(),
                source: source(&mut forward, *id),
                delay: *delay,
                window: (*delay > 0).then(|| before(&mut forward, *id)),
            });
        }
    }
    Gradient {
        forward,
        backward,
        tape,
        windows,
        defaults: None,
    }
}

fn source(forward: &mut Graph, id: NodeId) -> Source {
    match forward.node(id).op {
        Op::Input => Source::Input(name(forward, id)),
        Op::State { .. } => match delayed_input(forward, id) {
            Some(input) => Source::Input(name(forward, input)),
            None => Source::Output(output(forward, id)),
        },
        _ => Source::Output(output(forward, id)),
    }
}

fn before(forward: &mut Graph, state: NodeId) -> Before {
    let initial = forward.operands(state).get(1).map(|read| read.node);
    Before {
        name: name(forward, state),
        default: initial.map(|node| output(forward, node)),
    }
}

/// The output that a value is, or becomes.
fn output(forward: &mut Graph, node: NodeId) -> Name {
    if let Some(output) = forward.outputs.iter().find(|o| o.node == node) {
        return output.name.clone();
    }
    let name: Name = format!("tape.{}", node.index()).into();
    let span = forward.node(node).span;
    forward.outputs.push(Output {
        name: name.clone(),
        node,
        span,
    });
    name
}
