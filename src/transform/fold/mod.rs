//! Computes what needs no run, and takes away what changes nothing.
//!
//! Every rule keeps each value to the last bit, NaN, infinities and the sign of zero included; `x + 0` therefore stays
//! (it makes 0 of -0), while `x * 1` goes.

mod arithmetic;
mod products;
mod views;

use super::rebuild::Rebuild;
use crate::diagnostics::Span;
use crate::ir::{Graph, Node, NodeId, Op, Read, Type};
use std::collections::BTreeSet;

/// An operation with its type and operands in the new graph, not yet part of it.
#[derive(Clone, Debug)]
struct Draft {
    op: Op,
    ty: Type,
    operands: Vec<Read>,
}

/// What becomes of a draft.
enum Step {
    /// It is this value.
    Is(Read),
    /// This draft does the same.
    Becomes(Draft),
    /// The second draft does the same to the results of the first ones.
    After(Vec<Draft>, Draft),
}

/// Returns how many rules were applied.
pub fn run(graph: &mut Graph) -> usize {
    let outputs: BTreeSet<NodeId> = graph.outputs.iter().map(|o| o.node).collect();
    let mut rebuild = Rebuild::new(graph, |_| true);
    let mut changes = 0;
    for id in graph.topological() {
        let node = graph.node(id);
        if matches!(node.op, Op::State { .. } | Op::Total { .. }) {
            rebuild.copy(id);
            continue;
        }
        let draft = Draft {
            op: node.op.clone(),
            ty: node.ty.clone(),
            operands: rebuild.operands(id),
        };
        let made = make(&mut rebuild, node.span, draft, &mut changes);
        if made.delay != 0 && outputs.contains(&id) {
            rebuild.copy(id); // an output must be a node of this frame
        } else {
            rebuild.put(id, made);
        }
    }
    if changes > 0 {
        *graph = rebuild.finish();
    }
    changes
}

/// Applies rules until none fits, and gives what the draft came to. (Drafts made first have no views within, so this
/// calls itself to a depth of two.)
fn make(rebuild: &mut Rebuild<'_>, span: Span, mut draft: Draft, changes: &mut usize) -> Read {
    while let Some(step) = step(rebuild.graph(), &draft) {
        *changes += 1;
        match step {
            Step::Is(read) => return read,
            Step::Becomes(next) => draft = next,
            Step::After(first, next) => {
                draft = next;
                draft.operands = first.into_iter().map(|d| make(rebuild, span, d, changes)).collect();
            }
        }
    }
    Read::now(rebuild.add(draft.op, draft.ty, span, &draft.operands))
}

fn step(graph: &Graph, draft: &Draft) -> Option<Step> {
    let rules = [
        arithmetic::literals,
        arithmetic::identities,
        views::nothing,
        views::twice,
        views::spread,
        products::view,
        products::outer,
    ];
    rules.iter().find_map(|rule| rule(graph, draft))
}

/// The node behind an operand of this frame, with its operands.
fn behind(graph: &Graph, read: Read) -> (&Node, Vec<Read>) {
    let node = graph.node(read.node);
    // A delayed read finds a state, through which no rule looks.
    (node, graph.operands(read.node))
}

/// The number that an operand is everywhere, if it is a literal or one spread over axes.
fn number(graph: &Graph, read: Read) -> Option<f64> {
    let (node, operands) = behind(graph, read);
    match &node.op {
        Op::Literal(value) => Some(*value),
        Op::Broadcast { map } if map.is_empty() => match graph.node(operands[0].node).op {
            Op::Literal(value) => Some(value),
            _ => None,
        },
        _ => None,
    }
}
