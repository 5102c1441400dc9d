//! Along which of its axes the value of each node varies: a value repeated by a broadcast does not vary along the new axes.
//!
//! Comes in: a graph without instantaneous cycles. Goes out: one list of flags a node, where `false` is certain.

use crate::ir::{Graph, NodeId, Op, Read};

/// For each node (by [`NodeId::index`]) and axis, whether the value may vary along it.
pub(super) fn varies(graph: &Graph, order: &[NodeId]) -> Vec<Vec<bool>> {
    let mut table: Vec<Vec<bool>> = vec![Vec::new(); graph.bound()];
    for id in order {
        table[id.index()] = of_node(graph, *id, &table);
    }
    table
}

fn of_node(graph: &Graph, id: NodeId, table: &[Vec<bool>]) -> Vec<bool> {
    let node = graph.node(id);
    let rank = node.ty.axes.len();
    let operands = graph.operands(id);
    let operand = |port: usize| -> Vec<bool> {
        let read: Option<&Read> = operands.get(port);
        match read {
            Some(read) if read.delay == 0 => table[read.node.index()].clone(),
            Some(read) => vec![true; graph.node(read.node).ty.axes.len()],
            None => Vec::new(),
        }
    };
    match &node.op {
        Op::Unary(_) | Op::Binary(_) | Op::Where | Op::Clamp => either(rank, (0..operands.len()).map(operand)),
        Op::Broadcast { map } => {
            let source = operand(0);
            (0..rank)
                .map(|at| position(map, at).is_some_and(|i| source[i]))
                .collect()
        }
        Op::Slice { .. } | Op::State { .. } => operand(0),
        Op::Shift { axis, .. } => with(operand(0), *axis),
        Op::Concat { axis } => with(either(rank, (0..operands.len()).map(operand)), *axis),
        Op::Reduce { axes, .. } => {
            let source = operand(0).into_iter().enumerate();
            source.filter(|(at, _)| !axes.contains(at)).map(|(_, v)| v).collect()
        }
        Op::Contract { labels, out } | Op::Total { labels, out } => out
            .iter()
            .map(|label| (0..labels.len()).any(|port| varies_along(&labels[port], &operand(port), *label)))
            .collect(),
        Op::Literal(_) | Op::SizeValue(_) => vec![false; rank],
        Op::Reshape => vec![operand(0).contains(&true); rank],
        Op::Input | Op::StaticInput | Op::Param | Op::Iota | Op::Gather | Op::OneHot | Op::IndexToReal => {
            vec![true; rank]
        }
    }
}

fn position(map: &[usize], at: usize) -> Option<usize> {
    map.iter().position(|m| *m == at)
}

fn varies_along(labels: &[u32], flags: &[bool], label: u32) -> bool {
    labels.iter().zip(flags).any(|(l, varies)| *l == label && *varies)
}

fn either(rank: usize, lists: impl Iterator<Item = Vec<bool>>) -> Vec<bool> {
    let mut sum = vec![false; rank];
    for list in lists {
        sum.iter_mut().zip(list).for_each(|(a, b)| *a |= b);
    }
    sum
}

fn with(mut flags: Vec<bool>, axis: usize) -> Vec<bool> {
    if let Some(flag) = flags.get_mut(axis) {
        *flag = true;
    }
    flags
}
