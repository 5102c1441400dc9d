//! Quotes the user's equations for the kernels that compute them.

use crate::diagnostics::Span;
use crate::ir::{Graph, NodeId, Op};
use std::collections::{BTreeMap, BTreeSet};

/// The equations that define the named nodes among `nodes`, in the order of the text. Where none has a name, the equations
/// that the nodes are parts of.
pub fn equations(graph: &Graph, source: &str, nodes: &BTreeSet<NodeId>) -> Vec<String> {
    let own = lines(graph, source, nodes);
    if !own.is_empty() {
        return own;
    }
    let wholes: BTreeSet<NodeId> = nodes.iter().filter_map(|id| whole(graph, *id)).collect();
    lines(graph, source, &wholes)
        .into_iter()
        .map(|line| format!("part of {line}"))
        .collect()
}

/// The first named node that a node's value goes into.
fn whole(graph: &Graph, id: NodeId) -> Option<NodeId> {
    let mut at = id;
    for _ in 0..64 {
        at = graph.uses(at).first()?.reader;
        if graph.node(at).name.is_some() {
            return Some(at);
        }
    }
    None
}

fn lines(graph: &Graph, source: &str, nodes: &BTreeSet<NodeId>) -> Vec<String> {
    let mut by_span: BTreeMap<Span, Vec<String>> = BTreeMap::new();
    for id in nodes {
        let node = graph.node(*id);
        let Some(name) = node.name.as_ref().filter(|_| is_defined_by_equation(graph, *id)) else {
            continue;
        };
        let names = by_span.entry(node.span).or_default();
        if !names.contains(&name.to_string()) {
            names.push(name.to_string());
        }
    }
    let mut seen = BTreeSet::new();
    let lines = by_span.into_iter().map(|(span, names)| line(source, span, &names));
    lines.filter(|line| seen.insert(line.clone())).collect()
}

/// What the caller gives has no equation, and a state repeats that of its value.
fn is_defined_by_equation(graph: &Graph, id: NodeId) -> bool {
    let node = graph.node(id);
    match node.op {
        Op::Input | Op::StaticInput | Op::Param => false,
        Op::State { .. } => graph
            .operands(id)
            .first()
            .is_some_and(|r| graph.node(r.node).name.is_none()),
        _ => true,
    }
}

fn line(source: &str, span: Span, names: &[String]) -> String {
    let text = source.get(span.range()).unwrap_or("");
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let defines = text
        .split('=')
        .next()
        .is_some_and(|left| names.iter().all(|n| left.contains(n.as_str())));
    if text.is_empty() {
        names.join(", ")
    } else if defines && text.contains('=') {
        text
    } else {
        format!("{} = {text}", names.join(", "))
    }
}
