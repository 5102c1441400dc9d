//! Cuts a product with a concatenation into a sum of products with its pieces.
//!
//! `W @ concat(a, b)` becomes `W[:, :A] @ a + W[:, A:] @ b`: slices of a constant cost nothing, and the pieces need not be
//! brought together in memory first.

use crate::ir::op::Binary;
use crate::ir::{Graph, Kind, Node, NodeId, Op, Read, Size};

/// Runs the pass; how many products were cut.
pub fn run(graph: &mut Graph) -> usize {
    let mut work: Vec<NodeId> = graph.ids().collect();
    let mut cut = 0;
    while let Some(id) = work.pop() {
        if let Some(found) = find(graph, id) {
            work.extend(part(graph, id, &found));
            cut += 1;
        }
    }
    cut
}

/// A contraction of a constant with a concatenation, along the latter's axis.
struct Found {
    weight: usize,
    vector: usize,
    /// The axis of the weight that the concatenation's axis meets.
    axis: usize,
    /// The concatenation's axis.
    along: usize,
}

fn find(graph: &Graph, id: NodeId) -> Option<Found> {
    let Op::Contract { labels, out } = &graph.node(id).op else {
        return None;
    };
    let operands = graph.operands(id);
    for (weight, vector) in [(0, 1), (1, 0)] {
        let (Some(w), Some(v)) = (operands.get(weight), operands.get(vector)) else {
            continue;
        };
        let Op::Concat { axis: along } = graph.node(v.node).op else {
            continue;
        };
        let label = labels[vector][along];
        let once = |labels: &[u32]| labels.iter().filter(|l| **l == label).count() == 1;
        let plain = w.delay == 0 && v.delay == 0 && graph.node(w.node).kind == Kind::Const;
        if plain && !out.contains(&label) && once(&labels[weight]) && once(&labels[vector]) {
            let axis = labels[weight].iter().position(|l| *l == label)?;
            return Some(Found {
                weight,
                vector,
                axis,
                along,
            });
        }
    }
    None
}

/// Rewrites; the products that came of it.
fn part(graph: &mut Graph, id: NodeId, found: &Found) -> Vec<NodeId> {
    let old = graph.node(id).clone();
    let operands = graph.operands(id);
    let pieces = graph.operands(operands[found.vector].node);
    let mut lo = Size::int(0);
    let mut products = Vec::new();
    for piece in pieces {
        let length = graph.node(piece.node).ty.axes[found.along].clone();
        let Some(hi) = lo.add(&length) else { return Vec::new() };
        let weight = slice(graph, operands[found.weight], found.axis, (&lo, &hi, &length));
        let mut reads = operands.clone();
        reads[found.weight] = Read::now(weight);
        reads[found.vector] = piece;
        let kind = graph.node(piece.node).kind;
        products.push(graph.add(
            Node {
                kind,
                name: None,
                ..old.clone()
            },
            &reads,
        ));
        lo = hi;
    }
    let sum = add_up(graph, &old, &products);
    graph.node_mut(sum).name = old.name;
    graph.replace(id, sum);
    graph.remove(id);
    products
}

fn slice(graph: &mut Graph, read: Read, axis: usize, (lo, hi, length): (&Size, &Size, &Size)) -> NodeId {
    let mut node = graph.node(read.node).clone();
    node.ty.axes[axis] = length.clone();
    node.op = Op::Slice {
        axis,
        lo: lo.clone(),
        hi: hi.clone(),
    };
    node.name = None;
    graph.add(node, &[read])
}

/// The sum of nodes, as a balanced tree.
fn add_up(graph: &mut Graph, like: &Node, terms: &[NodeId]) -> NodeId {
    let mut level = terms.to_vec();
    while level.len() > 1 {
        let mut next = Vec::with_capacity(level.len().div_ceil(2));
        for pair in level.chunks(2) {
            next.push(match pair {
                [a, b] => {
                    let kind = graph.node(*a).kind.max(graph.node(*b).kind);
                    let node = Node {
                        op: Op::Binary(Binary::Add),
                        kind,
                        name: None,
                        ..like.clone()
                    };
                    graph.add(node, &[Read::now(*a), Read::now(*b)])
                }
                _ => pair[0],
            });
        }
        level = next;
    }
    level[0]
}
