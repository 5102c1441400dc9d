//! A graph as text, for snapshots and `--emit ir`.
//!
//! Nodes are numbered in an order in which operands come before readers, so the text does not change when a pass leaves
//! holes in the ids. A line is `%number name = operation(operands) attributes : type kind`; `[t-2]` after an operand is its
//! delay.

use super::{Graph, Kind, Node, NodeId, Op, Read};
use std::fmt::Write;

/// The whole graph.
pub fn print(graph: &Graph) -> String {
    let order = graph.topological();
    let mut numbers = vec![0; graph.bound()];
    for (number, id) in order.iter().enumerate() {
        numbers[id.index()] = number;
    }
    let names: Vec<String> = order.iter().map(|id| left(graph, *id, &numbers)).collect();
    let width = names.iter().map(|n| n.chars().count()).max().unwrap_or(0).min(24);
    let mut text = format!("cell {}({})\n", graph.name, graph.dims.join(", "));
    for (id, name) in order.iter().zip(&names) {
        let _ = writeln!(text, "  {name:<width$} = {}", right(graph, *id, &numbers));
    }
    for output in &graph.outputs {
        let _ = writeln!(text, "  output {} = %{}", output.name, numbers[output.node.index()]);
    }
    text
}

fn left(graph: &Graph, id: NodeId, numbers: &[usize]) -> String {
    let number = numbers[id.index()];
    match &graph.node(id).name {
        Some(name) => format!("%{number} {name}"),
        None => format!("%{number}"),
    }
}

fn right(graph: &Graph, id: NodeId, numbers: &[usize]) -> String {
    let node = graph.node(id);
    let operands: Vec<String> = graph.operands(id).iter().map(|r| operand(*r, numbers)).collect();
    let list = if operands.is_empty() {
        String::new()
    } else {
        format!("({})", operands.join(", "))
    };
    let kind = match node.kind {
        Kind::Const => "const",
        Kind::Static => "static",
        Kind::Frame => "frame",
    };
    format!("{}{list}{} : {} {kind}", node.op.name(), attributes(node), node.ty)
}

fn operand(read: Read, numbers: &[usize]) -> String {
    let number = numbers[read.node.index()];
    match read.delay {
        0 => format!("%{number}"),
        back if back > 0 => format!("%{number}[t-{back}]"),
        ahead => format!("%{number}[t+{}]", ahead.unsigned_abs()),
    }
}

fn attributes(node: &Node) -> String {
    match &node.op {
        Op::Literal(value) => format!(" {value:?}"),
        Op::SizeValue(size) => format!(" {size}"),
        Op::Broadcast { map } => format!(" {map:?}"),
        Op::Slice { axis, lo, hi } => format!(" axis {axis} {lo}..{hi}"),
        Op::Shift { axis, by } => format!(" axis {axis} by {by}"),
        Op::Concat { axis } => format!(" axis {axis}"),
        Op::Contract { labels, out } | Op::Total { labels, out } => {
            let operands: Vec<String> = labels.iter().map(|l| letters(l)).collect();
            format!(" {}->{}", operands.join(","), letters(out))
        }
        Op::Reduce { axes, .. } => format!(" axes {axes:?}"),
        Op::State { window } => format!(" window {window}"),
        Op::Input
        | Op::StaticInput
        | Op::Param
        | Op::Iota
        | Op::Unary(_)
        | Op::Binary(_)
        | Op::Where
        | Op::Clamp
        | Op::Reshape
        | Op::Gather
        | Op::OneHot
        | Op::IndexToReal => String::new(),
    }
}

/// Labels as einsum writes them; those beyond the alphabet by number.
fn letters(labels: &[u32]) -> String {
    labels
        .iter()
        .map(|l| match u8::try_from(*l) {
            Ok(l) if l < 26 => char::from(b'a' + l).to_string(),
            _ => format!("<{l}>"),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::print;
    use crate::ir::testing::Build;

    #[test]
    fn elman() {
        insta::assert_snapshot!(print(&Build::elman()));
    }

    /// Removing a node leaves a hole in the ids, none in the text.
    #[test]
    fn numbers_have_no_holes() {
        let mut graph = Build::elman();
        let before = print(&graph);
        let first = graph.inputs[0];
        let node = graph.node(first).clone();
        let copy = graph.add(node, &[]);
        graph.remove(copy);
        let extra = graph.node(first).clone();
        let last = graph.add(extra, &[]);
        graph.remove(last);
        assert_eq!(print(&graph), before);
    }
}
