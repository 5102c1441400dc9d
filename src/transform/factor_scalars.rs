//! Takes factors that do not vary along what is summed out of contractions inside recurrences.
//!
//! `R @ (h[t-1] * k)` with a scalar `k` becomes `(R @ h[t-1]) * k`: the product then waits for nothing but the state, and
//! needs no exchange of its own.

use crate::ir::op::Binary;
use crate::ir::{Graph, Node, NodeId, Op, Read};
use std::collections::BTreeSet;

/// Runs the pass; how many factors were moved.
pub fn run(graph: &mut Graph) -> usize {
    let inside = members(graph);
    let mut work: Vec<NodeId> = graph.ids().filter(|id| inside.contains(id)).collect();
    let mut moved = 0;
    while let Some(id) = work.pop() {
        if let Some(found) = find(graph, id) {
            work.push(pull(graph, id, &found));
            moved += 1;
        }
    }
    moved
}

/// The nodes of all recurrences.
fn members(graph: &Graph) -> BTreeSet<NodeId> {
    let cycles = graph.components(false).into_iter().filter(|c| graph.is_cycle(c));
    cycles.flatten().collect()
}

/// A factor of a contraction's operand.
struct Factor {
    /// Which operand.
    port: usize,
    /// What is left of it.
    rest: Read,
    /// The multiplication or division.
    op: Binary,
    /// The factor, before it was broadcast.
    factor: Read,
    /// Where its axes lie in the contraction's result.
    map: Vec<usize>,
}

fn find(graph: &Graph, id: NodeId) -> Option<Factor> {
    let Op::Contract { labels, out } = &graph.node(id).op else {
        return None;
    };
    for (port, read) in graph.operands(id).into_iter().enumerate() {
        let Op::Binary(op @ (Binary::Mul | Binary::Div)) = graph.node(read.node).op else {
            continue;
        };
        if read.delay != 0 {
            continue;
        }
        let sides = graph.operands(read.node);
        let orders: &[(usize, usize)] = if op == Binary::Mul {
            &[(0, 1), (1, 0)]
        } else {
            &[(0, 1)]
        };
        for (keep, take) in orders {
            if let Some(map) = map_of(graph, sides[*take], &labels[port], out) {
                let factor = graph.operands(sides[*take].node)[0];
                return Some(Factor {
                    port,
                    rest: sides[*keep],
                    op,
                    factor,
                    map,
                });
            }
        }
    }
    None
}

/// Where a broadcast factor's axes go in the result, if it has none of those that are summed.
fn map_of(graph: &Graph, read: Read, labels: &[u32], out: &[u32]) -> Option<Vec<usize>> {
    let Op::Broadcast { map } = &graph.node(read.node).op else {
        return None;
    };
    map.iter()
        .map(|axis| out.iter().position(|l| *l == labels[*axis]))
        .collect()
}

/// Rewrites; the contraction that is left, which may have further factors.
fn pull(graph: &mut Graph, id: NodeId, found: &Factor) -> NodeId {
    let mut operands = graph.operands(id);
    operands[found.port] = found.rest;
    let old = graph.node(id).clone();
    let kind = |graph: &Graph, reads: &[Read]| reads.iter().map(|r| graph.node(r.node).kind).max().unwrap_or(old.kind);
    let contract = Node {
        kind: kind(graph, &operands),
        name: None,
        ..old.clone()
    };
    let contract = graph.add(contract, &operands);
    let op = Op::Broadcast { map: found.map.clone() };
    let spread = Node {
        op,
        kind: graph.node(found.factor.node).kind,
        name: None,
        ..old.clone()
    };
    let spread = graph.add(spread, &[found.factor]);
    let scaled = graph.add(
        Node {
            op: Op::Binary(found.op),
            ..old
        },
        &[Read::now(contract), Read::now(spread)],
    );
    graph.replace(id, scaled);
    graph.remove(id);
    contract
}
