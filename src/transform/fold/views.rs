//! Rules on views: those that change nothing, two that are one, and functions of spread values.

use super::{Draft, Step, behind};
use crate::ir::op::Reduce;
use crate::ir::{Graph, Op, Read, Size};

/// A view that gives its operand as it is.
pub(super) fn nothing(graph: &Graph, draft: &Draft) -> Option<Step> {
    let same = |read: &Read| graph.node(read.node).ty == draft.ty;
    let identity = match &draft.op {
        Op::Broadcast { map } => map.len() == draft.ty.axes.len() && map.iter().copied().eq(0..map.len()),
        Op::Slice { lo, .. } => *lo == Size::int(0) && same(&draft.operands[0]),
        Op::Reshape => same(&draft.operands[0]),
        Op::Shift { by, .. } => *by == 0,
        Op::Concat { .. } => draft.operands.len() == 1,
        Op::Reduce { op, axes } => axes.is_empty() && *op != Reduce::Var,
        _ => false,
    };
    identity.then(|| Step::Is(draft.operands[0]))
}

/// A view of a view that one view does.
pub(super) fn twice(graph: &Graph, draft: &Draft) -> Option<Step> {
    let first = *draft.operands.first()?;
    let (inner, operands) = behind(graph, first);
    let op = match (&draft.op, &inner.op) {
        (Op::Broadcast { map }, Op::Broadcast { map: within }) => Op::Broadcast {
            map: within.iter().map(|axis| map[*axis]).collect(),
        },
        (Op::Reshape, Op::Reshape) => Op::Reshape,
        (Op::Slice { axis, lo, hi }, Op::Slice { axis: a, lo: start, .. }) if axis == a => Op::Slice {
            axis: *axis,
            lo: lo.add(start)?,
            hi: hi.add(start)?,
        },
        (Op::Slice { axis, lo, hi }, Op::Concat { axis: a }) if axis == a => {
            return part(graph, &operands, *axis, lo, hi);
        }
        _ => return None,
    };
    Some(Step::Becomes(Draft {
        op,
        ty: draft.ty.clone(),
        operands: vec![operands[0]],
    }))
}

/// A slice that is exactly one of the values that were joined.
fn part(graph: &Graph, operands: &[Read], axis: usize, lo: &Size, hi: &Size) -> Option<Step> {
    let mut start = Size::int(0);
    for read in operands {
        let end = start.add(&graph.node(read.node).ty.axes[axis])?;
        if start == *lo {
            return (end == *hi).then_some(Step::Is(*read));
        }
        start = end;
    }
    None
}

/// A function of values that are all spread in one way over axes that they lack: it is computed before they are spread.
pub(super) fn spread(graph: &Graph, draft: &Draft) -> Option<Step> {
    if !draft.op.is_elementwise() {
        return None;
    }
    let mut operands = Vec::with_capacity(draft.operands.len());
    let (first, within) = behind(graph, draft.operands[0]);
    let Op::Broadcast { map } = &first.op else { return None };
    let ty = &graph.node(within[0].node).ty;
    for read in &draft.operands {
        let (node, within) = behind(graph, *read);
        if node.op != first.op || graph.node(within[0].node).ty != *ty {
            return None;
        }
        operands.push(within[0]);
    }
    let inner = Draft {
        op: draft.op.clone(),
        ty: ty.clone(),
        operands,
    };
    let outer = Draft {
        op: first.op.clone(),
        ty: draft.ty.clone(),
        operands: Vec::new(),
    };
    (map.len() < draft.ty.axes.len()).then(|| Step::After(vec![inner], outer))
}
