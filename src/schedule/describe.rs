//! Quotes the user's equations for the kernels that compute them.

use crate::diagnostics::Span;
use crate::ir::{Graph, NodeId, Op};
use std::collections::{BTreeMap, BTreeSet};

/// The equations that define the named nodes among `nodes`, in the order of the text.
pub fn equations(graph: &Graph, source: &str, nodes: &BTreeSet<NodeId>) -> Vec<String> {
    let mut by_span: BTreeMap<Span, Vec<String>> = BTreeMap::new();
    for id in nodes {
        let node = graph.node(*id);
        let given = matches!(node.op, Op::Input | Op::StaticInput | Op::Param);
        let Some(name) = node.name.as_ref().filter(|_| !given) else {
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
