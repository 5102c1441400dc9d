//! How often the units of a recurrence must exchange values within a frame.
//!
//! Comes in: a recurrence. Goes out: the largest number of exchanges on a path of this frame's values. An exchange is an
//! operand of a contraction over an axis, a reduction over one, or a shift along one: an element of the result needs
//! elements of other units. Mean and variance of one operand lie side by side, so a norm counts once.

use super::interpret::Subject;
use crate::ir::{NodeId, Op, Read};
use std::collections::BTreeMap;

/// Exchanges on the longest path within a frame.
pub(super) fn phases(subject: &Subject) -> u32 {
    let mut known: BTreeMap<NodeId, u32> = BTreeMap::new();
    for id in &subject.order {
        let operands = subject.graph.operands(*id);
        let depth = |(port, read): (usize, &Read)| {
            let before = match read.delay {
                0 => known.get(&read.node).copied().unwrap_or(0),
                _ => 0,
            };
            before + u32::from(exchanges(subject, *id, port, *read))
        };
        let members = operands
            .iter()
            .enumerate()
            .filter(|(_, read)| subject.contains(read.node));
        let deepest = members.map(depth).max().unwrap_or(0);
        known.insert(*id, deepest);
    }
    known.values().copied().max().unwrap_or(0)
}

/// Whether an operation needs elements of this operand that belong to other units.
fn exchanges(subject: &Subject, id: NodeId, port: usize, read: Read) -> bool {
    let axes = &subject.graph.node(read.node).ty.axes;
    let long = |at: usize| axes.get(at).is_some_and(|size| size.as_int() != Some(1));
    match &subject.graph.node(id).op {
        Op::Contract { labels, out } => {
            let summed = labels[port]
                .iter()
                .enumerate()
                .filter(|(_, label)| !out.contains(label));
            summed.into_iter().any(|(at, _)| long(at))
        }
        Op::Reduce { axes: reduced, .. } => reduced.iter().any(|at| long(*at)),
        Op::Shift { axis, .. } => long(*axis),
        Op::Gather => port == 0 && long(0),
        _ => false,
    }
}

/// Whether the recurrence contracts two values of its own of which one has the axes of a matrix.
pub(super) fn contracts_itself(subject: &Subject) -> bool {
    let graph = subject.graph;
    subject.order.iter().any(|id| {
        let Op::Contract { labels, out } = &graph.node(*id).op else {
            return false;
        };
        let operands = graph.operands(*id);
        let own = operands.len() == 2 && operands.iter().all(|read| subject.contains(read.node));
        let matrix = operands.iter().any(|read| graph.node(read.node).ty.axes.len() >= 2);
        own && matrix && labels.iter().flatten().any(|l| !out.contains(l))
    })
}
