//! How each operation takes a slice of its result: which slices of its operands give it.

use super::parts::{Parts, Range};
use crate::ir::{Graph, NodeId, Op, Size};

/// A first axis of so many positions or fewer is searched for the place at which a reshaped slice begins.
const LONGEST_SEARCH: i64 = 64;

/// The parts of each operand (`None`: all of it) that give the parts of a node, range by range. `None` where the node
/// cannot be taken apart along that axis.
pub(super) fn push(graph: &Graph, id: NodeId, parts: &Parts) -> Option<Vec<Option<Parts>>> {
    let along = |axis: usize| {
        Some(Parts {
            axis,
            ranges: parts.ranges.clone(),
        })
    };
    let operands = graph.operands(id);
    match &graph.node(id).op {
        Op::Unary(_) | Op::Binary(_) | Op::Where | Op::Clamp => Some(vec![along(parts.axis); operands.len()]),
        Op::Slice { axis, .. } | Op::Shift { axis, .. } | Op::Concat { axis } if *axis != parts.axis => {
            Some(vec![along(parts.axis); operands.len()])
        }
        // A slice of a new axis is a shorter new axis.
        Op::Broadcast { map } => Some(vec![map.iter().position(|to| *to == parts.axis).and_then(along)]),
        Op::Contract { labels, out } => {
            let label = out.get(parts.axis)?;
            let of = |labels: &Vec<u32>| {
                let mut places = (0..labels.len()).filter(|i| labels[*i] == *label);
                match (places.next(), places.next()) {
                    (None, _) => Some(None),
                    (Some(place), None) => Some(along(place)),
                    (Some(_), Some(_)) => None, // a diagonal
                }
            };
            labels.iter().map(of).collect()
        }
        Op::Reduce { axes, .. } => {
            let rank = graph.node(operands[0].node).ty.axes.len();
            Some(vec![
                (0..rank).filter(|i| !axes.contains(i)).nth(parts.axis).and_then(along),
            ])
        }
        Op::Gather => Some(vec![along(parts.axis + 1), None]),
        Op::Reshape => {
            let (to, from) = (&graph.node(id).ty.axes, &graph.node(operands[0].node).ty.axes);
            Some(vec![Some(reshape(to, from, parts)?)])
        }
        _ => None,
    }
}

/// A slice of a reshaped value is one of the value where both cut between the same outer axes and the bounds fall
/// between whole positions.
fn reshape(to: &[Size], from: &[Size], parts: &Parts) -> Option<Parts> {
    let product = |axes: &[Size]| axes.iter().try_fold(Size::int(1), |n, a| n.mul(a));
    let outer = product(&to[..parts.axis])?;
    let axis = (0..from.len()).find(|i| product(&from[..*i]).as_ref() == Some(&outer))?;
    let (block, inner) = (product(&to[parts.axis + 1..])?, product(&from[axis + 1..])?);
    let bound = |at: &Size| -> Option<Size> {
        let elements = at.mul(&block)?;
        let whole = |k: i64| Size::int(k).mul(&inner).as_ref() == Some(&elements);
        if inner == block {
            return Some(at.clone());
        } else if inner == Size::int(1) {
            return Some(elements);
        }
        let positions = from[axis].as_int().unwrap_or(0).min(LONGEST_SEARCH);
        (0..=positions).find(|k| whole(*k)).map(Size::int)
    };
    let range = |(lo, hi): &Range| Some((bound(lo)?, bound(hi)?));
    Some(Parts {
        axis,
        ranges: parts.ranges.iter().map(range).collect::<Option<_>>()?,
    })
}
