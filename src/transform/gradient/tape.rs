//! What the backward run knows of the forward one: which values are kept, which are computed again.
//!
//! Inputs and states are kept, and so is what a product, a reduction or a table gives; what is elementwise or a view is
//! computed again where it is read, and what depends on parameters or static inputs alone from these.

use super::build::Build;
use super::{Gradient, Source, Taped, Window};
use crate::ir::{Graph, Kind, Name, NodeId, Op, Output, Read};
use std::collections::BTreeMap;

/// The forward values in the backward graph.
pub(super) struct Values {
    place: Vec<Option<NodeId>>,
}

impl Values {
    /// What was read, at the frame of the reader: earlier frames are ahead where time runs backward.
    pub(super) fn read(&self, read: Read) -> Read {
        Read {
            node: self.of(read.node),
            delay: -read.delay,
        }
    }

    /// A value of this frame.
    pub(super) fn of(&self, id: NodeId) -> NodeId {
        // Every forward node was given a place.
        self.place[id.index()].unwrap_or(id)
    }
}

/// Puts every forward value into the backward graph; what no gradient reads is pruned later.
pub(super) fn values(build: &mut Build<'_>) -> Values {
    let forward = build.forward;
    let mut values = Values {
        place: vec![None; forward.bound()],
    };
    for id in forward.states() {
        let of = delayed_input(forward, id).unwrap_or(id);
        // An input that is also read delayed is on the tape once.
        let known = values.place[of.index()];
        let input = known.unwrap_or_else(|| build.input(name(forward, of), &forward.node(of).ty));
        values.place[of.index()] = Some(input);
        values.place[id.index()] = Some(input);
    }
    for id in forward.topological() {
        if values.place[id.index()].is_none() {
            let made = value(build, &values, id);
            values.place[id.index()] = Some(made);
        }
    }
    values
}

/// The input that a state is the identity of, if it is of one.
fn delayed_input(forward: &Graph, state: NodeId) -> Option<NodeId> {
    let value = forward.operands(state).first().copied()?;
    (value.delay == 0 && forward.node(value.node).op == Op::Input).then_some(value.node)
}

fn value(build: &mut Build<'_>, values: &Values, id: NodeId) -> NodeId {
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
        _ if is_kept(forward, id) => build.input(name(forward, id), &node.ty),
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
pub(super) fn record(forward: &Graph, backward: Graph, windows: Vec<Window>) -> Gradient {
    // An input and the state of its earlier frames have one name; the state is what has a window.
    let states = forward.states();
    let all = forward.ids().chain(states);
    let by_name: BTreeMap<Name, NodeId> = all.map(|id| (name(forward, id), id)).collect();
    let mut forward = forward.clone();
    let mut tape = Vec::new();
    for input in &backward.inputs {
        let node = backward.node(*input);
        let known = node.name.as_ref().and_then(|n| by_name.get(n));
        let (Some(name), Some(id), Op::Input) = (&node.name, known, &node.op) else {
            continue;
        };
        let ahead = backward.uses(*input).iter().map(|u| -u.delay).max().unwrap_or(0);
        tape.push(Taped {
            name: name.clone(),
            source: source(&mut forward, *id),
            before: ahead.unsigned_abs(),
            default: default(&mut forward, *id),
        });
    }
    Gradient {
        forward,
        backward,
        tape,
        windows,
    }
}

fn source(forward: &mut Graph, id: NodeId) -> Source {
    match forward.node(id).op {
        Op::Input => Source::Input(name(forward, id)),
        Op::State { .. } if delayed_input(forward, id).is_some() => Source::Input(name(forward, id)),
        _ => Source::Output(output(forward, id)),
    }
}

/// The initial value of a state, where it has one.
fn default(forward: &mut Graph, id: NodeId) -> Option<Name> {
    match forward.node(id).op {
        Op::State { .. } => forward.operands(id).get(1).map(|read| output(forward, read.node)),
        _ => None,
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
