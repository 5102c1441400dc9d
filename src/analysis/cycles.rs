//! Cycles of a graph: those without delay are errors, the others are recurrences.
//!
//! Comes in: any graph. Goes out: the recurrences (strongly connected components over all edges) in an order in which
//! each comes after those that it reads, or every error found. Now holds: this frame's values can be computed in
//! dependence order, and within a recurrence all delays run forward.

use crate::diagnostics::{Code, Diagnostic, Diagnostics, Span};
use crate::ir::{Graph, NodeId};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The recurrences of a graph, each with its members ascending.
///
/// # Errors
/// E0301 for each cycle without delay, with its path; E0304 for each look ahead within a recurrence.
pub(super) fn recurrences(graph: &Graph) -> Result<Vec<Vec<NodeId>>, Diagnostics> {
    let mut found = Diagnostics::default();
    for component in graph.components(true).iter().filter(|c| is_instant_cycle(graph, c)) {
        found.push(instant_cycle(graph, component));
    }
    let cycles: Vec<Vec<NodeId>> = graph
        .components(false)
        .into_iter()
        .filter(|c| graph.is_cycle(c))
        .collect();
    for component in &cycles {
        look_ahead(graph, component, &mut found);
    }
    if found.has_errors() {
        found.sort();
        return Err(found);
    }
    Ok(cycles)
}

/// Whether a component over edges without delay is a cycle of them: several nodes, or one that reads itself now.
fn is_instant_cycle(graph: &Graph, component: &[NodeId]) -> bool {
    match component {
        [one] => graph.operands(*one).iter().any(|r| r.node == *one && r.delay == 0),
        _ => component.len() > 1,
    }
}

/// The message on one component of instantaneous edges: its shortest cycle through its first named member.
fn instant_cycle(graph: &Graph, component: &[NodeId]) -> Diagnostic {
    let start = component
        .iter()
        .copied()
        .find(|id| graph.node(*id).name.is_some())
        .unwrap_or(component[0]);
    let path = shortest_cycle(graph, component, start);
    let named: Vec<NodeId> = distinct_names(graph, &path);
    let start_name = graph.label(start);
    let mut message = format!("`{start_name}` depends on itself within one frame");
    if named.len() > 1 {
        let ring = named.iter().zip(named.iter().cycle().skip(1));
        let steps = ring.map(|(a, b)| format!("`{}` needs `{}`", graph.label(*a), graph.label(*b)));
        message = format!("{message}: {}", steps.collect::<Vec<_>>().join(", "));
    }
    let mut diagnostic = Diagnostic::new(Code::InstantCycle, message, graph.node(start).span)
        .label(format!("this frame's `{start_name}` is needed for itself"));
    for pair in named.windows(2) {
        let (reader, read) = (graph.label(pair[0]), graph.label(pair[1]));
        diagnostic = diagnostic.also(
            graph.node(pair[1]).span,
            format!("`{reader}` needs this frame's `{read}`"),
        );
    }
    let delayed = named.last().filter(|_| named.len() > 1).copied().unwrap_or(start);
    let hint = match delayed == start {
        true => format!("did you mean `{start_name}[t-1]`, the value of the frame before?"),
        false => format!(
            "did you mean `{start_name}[t-1]` in the equation of `{}`, or another delay on this path?",
            graph.label(delayed)
        ),
    };
    diagnostic.hint(hint)
}

/// The named nodes of a path, one a name, in order.
fn distinct_names(graph: &Graph, path: &[NodeId]) -> Vec<NodeId> {
    let mut seen = BTreeSet::new();
    let named = |id: &&NodeId| graph.node(**id).name.clone().is_some_and(|name| seen.insert(name));
    path.iter().filter(named).copied().collect()
}

/// A shortest cycle of edges without delay through `start`, as a list of nodes from `start`, each reading the next.
fn shortest_cycle(graph: &Graph, component: &[NodeId], start: NodeId) -> Vec<NodeId> {
    let inside: BTreeSet<NodeId> = component.iter().copied().collect();
    let mut reader_of: BTreeMap<NodeId, NodeId> = BTreeMap::new();
    let mut queue = VecDeque::from([start]);
    while let Some(reader) = queue.pop_front() {
        for read in graph.operands(reader).into_iter().filter(|r| r.delay == 0) {
            if read.node == start {
                return path_from(start, reader, &reader_of);
            }
            if inside.contains(&read.node) && !reader_of.contains_key(&read.node) {
                reader_of.insert(read.node, reader);
                queue.push_back(read.node);
            }
        }
    }
    vec![start]
}

fn path_from(start: NodeId, last: NodeId, reader_of: &BTreeMap<NodeId, NodeId>) -> Vec<NodeId> {
    let mut path = vec![last];
    while let Some(reader) = path.last().filter(|id| **id != start).and_then(|id| reader_of.get(id)) {
        path.push(*reader);
    }
    path.reverse();
    path
}

/// Reports every read of a later frame between two members.
fn look_ahead(graph: &Graph, component: &[NodeId], found: &mut Diagnostics) {
    let inside: BTreeSet<NodeId> = component.iter().copied().collect();
    for reader in component {
        for read in graph.operands(*reader) {
            if read.delay < 0 && inside.contains(&read.node) {
                found.push(ahead_of_time(graph, *reader, read.node, -read.delay));
            }
        }
    }
}

fn ahead_of_time(graph: &Graph, reader: NodeId, read: NodeId, by: i32) -> Diagnostic {
    let name = graph.label(read);
    let span: Span = graph.node(reader).span;
    Diagnostic::new(
        Code::LookaheadInLoop,
        format!("`{name}[t+{by}]` looks ahead into the recurrence that it is part of"),
        span,
    )
    .label("this value is needed to compute the frame that it reads")
    .also(graph.node(read).span, format!("`{name}` depends on it here"))
    .hint(format!(
        "within a recurrence only earlier frames can be read: `{name}[t-{by}]`"
    ))
}
