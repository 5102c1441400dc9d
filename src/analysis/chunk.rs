//! Whether all that is read of a recurrence from outside are contractions of its states, so that no frame's state need be
//! stored.

use super::interpret::Subject;
use crate::ir::op::{Binary, Reduce, Unary};
use crate::ir::{NodeId, Op, Use};
use std::collections::BTreeSet;

/// Where more nodes than this depend on a state, the question is left open: not contracted, for all that is known.
const MAX_DOWNSTREAM: usize = 20_000;

/// Whether every path from a state out of the recurrence passes a contraction over an axis of the state.
pub(super) fn read_contracted(subject: &Subject, states: &[NodeId]) -> bool {
    let mut found = false;
    let mut seen: BTreeSet<NodeId> = BTreeSet::new();
    // A value that still has all axes of the state, and which of its own axes those are.
    let mut next: Vec<(NodeId, Vec<usize>)> = Vec::new();
    for state in states {
        let rank = subject.graph.node(*state).ty.axes.len();
        next.push((*state, (0..rank).collect()));
    }
    let Some(downstream) = downstream(subject, states) else {
        return false;
    };
    while let Some((id, axes)) = next.pop() {
        if subject.graph.outputs.iter().any(|o| o.node == id) {
            return false;
        }
        for u in subject
            .graph
            .uses(id)
            .into_iter()
            .filter(|u| !subject.contains(u.reader))
        {
            match step(subject, u, &axes, &downstream) {
                Step::Contracted => found = true,
                Step::Carries(axes) if seen.insert(u.reader) => next.push((u.reader, axes)),
                Step::Carries(_) => {}
                Step::Stored => return false,
            }
        }
    }
    found
}

enum Step {
    /// An axis of the state is summed over.
    Contracted,
    /// The reader still has the state's axes, at these places.
    Carries(Vec<usize>),
    /// Anything else.
    Stored,
}

/// Every node outside that depends on a state, unless there are too many.
fn downstream(subject: &Subject, states: &[NodeId]) -> Option<BTreeSet<NodeId>> {
    let mut found = BTreeSet::new();
    let mut next = states.to_vec();
    while let Some(id) = next.pop() {
        let readers = subject.graph.uses(id).into_iter().map(|u| u.reader);
        next.extend(readers.filter(|reader| !subject.contains(*reader) && found.insert(*reader)));
        if found.len() > MAX_DOWNSTREAM {
            return None;
        }
    }
    Some(found)
}

fn step(subject: &Subject, u: Use, axes: &[usize], downstream: &BTreeSet<NodeId>) -> Step {
    let operands = subject.graph.operands(u.reader);
    let others = operands.iter().enumerate().filter(|(port, _)| *port != u.port);
    let depends = |id: NodeId| subject.contains(id) || downstream.contains(&id);
    if others.into_iter().any(|(_, read)| depends(read.node)) {
        return Step::Stored;
    }
    let mapped = |place: &dyn Fn(usize) -> Option<usize>| -> Step {
        let places: Option<Vec<usize>> = axes.iter().map(|at| place(*at)).collect();
        places.map_or(Step::Stored, Step::Carries)
    };
    match &subject.graph.node(u.reader).op {
        Op::Contract { labels, out } => {
            let of_state = |at: &&usize| !out.contains(&labels[u.port][**at]);
            match axes.iter().any(|at| of_state(&at)) {
                true => Step::Contracted,
                false => mapped(&|at| out.iter().position(|l| *l == labels[u.port][at])),
            }
        }
        Op::Reduce {
            op: Reduce::Sum | Reduce::Mean,
            axes: summed,
        } if axes.iter().any(|a| summed.contains(a)) => Step::Contracted,
        Op::Broadcast { map } => mapped(&|at| map.get(at).copied()),
        Op::Binary(Binary::Mul) | Op::Unary(Unary::Neg | Unary::StopGradient) => Step::Carries(axes.to_vec()),
        Op::State { .. } if u.port == 0 => Step::Carries(axes.to_vec()),
        Op::Binary(Binary::Div) if u.port == 0 => Step::Carries(axes.to_vec()),
        _ => Step::Stored,
    }
}
