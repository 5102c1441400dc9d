//! Short text for values of a graph, in the user's names, for reasons and drawings.

use crate::ir::op::{Binary, Unary};
use crate::ir::{Graph, NodeId, Op, Read};

/// Deeper operands are left out.
const MAX_DEPTH: u32 = 4;

/// A read as the user would write it: `h[t-1]`, `R @ h[t-1]`, `sigmoid(f)`.
pub(crate) fn read(graph: &Graph, read: Read) -> String {
    within(graph, read, MAX_DEPTH, Strength::Loosest)
}

/// What a node computes, even if it has a name.
pub(crate) fn definition(graph: &Graph, id: NodeId) -> String {
    operation(graph, id, MAX_DEPTH, Strength::Loosest)
}

/// How tightly the place of a text binds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Strength {
    Loosest,
    Sum,
    Product,
    Matmul,
    Atom,
}

/// The value that a read shows without a name of its own: views are not written out.
fn behind_views(graph: &Graph, mut read: Read) -> Read {
    loop {
        let node = graph.node(read.node);
        let view = matches!(
            node.op,
            Op::Broadcast { .. } | Op::Reshape | Op::Slice { .. } | Op::State { .. }
        );
        match graph.operands(read.node).first() {
            Some(operand) if view && read.delay == 0 && node.name.is_none() => read = *operand,
            _ => return read,
        }
    }
}

fn within(graph: &Graph, read: Read, depth: u32, place: Strength) -> String {
    let read = behind_views(graph, read);
    let node = graph.node(read.node);
    let delayed = |text: String| match read.delay {
        0 => text,
        d if d > 0 => format!("{text}[t-{d}]"),
        d => format!("{text}[t+{}]", -d),
    };
    match (&node.name, &node.op) {
        (Some(name), _) => delayed(name.to_string()),
        (None, Op::Literal(x)) => x.to_string(),
        (None, Op::SizeValue(size)) => size.to_string(),
        _ if depth == 0 => "...".to_owned(),
        _ => operation(graph, read.node, depth, place),
    }
}

fn operation(graph: &Graph, id: NodeId, depth: u32, place: Strength) -> String {
    let operands = graph.operands(id);
    let part = |port: usize, place: Strength| match operands.get(port) {
        Some(read) => within(graph, *read, depth.saturating_sub(1), place),
        None => String::new(),
    };
    let (text, strength) = match &graph.node(id).op {
        Op::State { .. } | Op::Broadcast { .. } | Op::Reshape | Op::Slice { .. } => return part(0, place),
        Op::Unary(Unary::Neg) => (format!("-{}", part(0, Strength::Matmul)), Strength::Product),
        Op::Binary(f) => match infix(*f) {
            Some((sign, strength)) => {
                let right = match f {
                    Binary::Sub | Binary::Div => tighter(strength),
                    _ => strength,
                };
                (format!("{} {sign} {}", part(0, strength), part(1, right)), strength)
            }
            None => (call(f.name(), &operands, &part), Strength::Atom),
        },
        Op::Contract { labels, out } if is_matmul(labels, out) => (
            format!("{} @ {}", part(0, Strength::Matmul), part(1, Strength::Atom)),
            Strength::Matmul,
        ),
        Op::Contract { labels, .. } if labels.len() == 1 => (call("sum", &operands, &part), Strength::Atom),
        Op::Contract { .. } => (call("einsum", &operands, &part), Strength::Atom),
        op => (call(op.name(), &operands, &part), Strength::Atom),
    };
    match strength < place {
        true => format!("({text})"),
        false => text,
    }
}

fn tighter(strength: Strength) -> Strength {
    match strength {
        Strength::Loosest => Strength::Sum,
        Strength::Sum => Strength::Product,
        Strength::Product => Strength::Matmul,
        Strength::Matmul | Strength::Atom => Strength::Atom,
    }
}

fn infix(f: Binary) -> Option<(&'static str, Strength)> {
    Some(match f {
        Binary::Add => ("+", Strength::Sum),
        Binary::Sub => ("-", Strength::Sum),
        Binary::Mul => ("*", Strength::Product),
        Binary::Div => ("/", Strength::Product),
        Binary::Eq => ("==", Strength::Loosest),
        Binary::Ne => ("!=", Strength::Loosest),
        Binary::Lt => ("<", Strength::Loosest),
        Binary::Le => ("<=", Strength::Loosest),
        Binary::Gt => (">", Strength::Loosest),
        Binary::Ge => (">=", Strength::Loosest),
        Binary::Max | Binary::Min | Binary::Pow | Binary::Mod | Binary::LogAddExp => return None,
    })
}

fn call(name: &str, operands: &[Read], part: &dyn Fn(usize, Strength) -> String) -> String {
    let shown = (0..operands.len().min(4)).map(|port| part(port, Strength::Loosest));
    let list: Vec<String> = shown.collect();
    let more = if operands.len() > 4 { ", ..." } else { "" };
    format!("{name}({}{more})", list.join(", "))
}

/// Whether labels say `A @ B`: the last axis of the left with the first of the right, the others in order.
fn is_matmul(labels: &[Vec<u32>], out: &[u32]) -> bool {
    let [left, right] = labels else { return false };
    let (Some((inner, rows)), Some((first, columns))) = (left.split_last(), right.split_first()) else {
        return false;
    };
    let rest: Vec<u32> = rows.iter().chain(columns).copied().collect();
    inner == first && rest == out && !out.contains(inner)
}
