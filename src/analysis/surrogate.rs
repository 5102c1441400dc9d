//! Which linear surrogate would free a nonlinear recurrence (Martin & Cundy 2018, arXiv 1709.04057: GILR).
//!
//! Comes in: a nonlinear recurrence. Goes out: a hint that names the delayed reads which, replaced by a linear recurrence
//! of the input, would leave only linear ones. Found by taking the reads at fault for values from outside, one fault
//! after another, until what still depends on itself is linear.

use super::express;
use super::interpret::{Edge, Subject};
use super::judge;
use super::reason::{listed, source_text};
use crate::ir::NodeId;
use petgraph::graph::{DiGraph, NodeIndex};
use std::collections::{BTreeMap, BTreeSet};

/// Rounds after which a hint is not worth the search.
const MAX_ROUNDS: usize = 32;
/// Larger recurrences get no hint.
const MAX_MEMBERS: usize = 5000;

/// The hint, if the reads at fault can be told.
pub(super) fn suggest(subject: &Subject) -> Option<String> {
    if subject.order.len() > MAX_MEMBERS {
        return None;
    }
    let (kept, remaining) = faults(subject)?;
    let cut = subject.reads.iter().filter(|edge| !kept.contains(edge));
    let places = distinct(cut.map(|edge| place_text(subject, edge)));
    let rest = distinct(remaining.iter().map(|edge| source_text(subject, edge)));
    let then = match rest.is_empty() {
        true => "all frames run in parallel".to_owned(),
        false => format!("what remains is linear in {} and runs as a scan", listed(&rest)),
    };
    Some(format!(
        "read a linear recurrence of the input in place of {} (GILR: `s = g * s[t-1] + (1 - g) * j`, g and j from the \
         input); then {then}",
        listed(&places)
    ))
}

fn distinct(texts: impl Iterator<Item = String>) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for text in texts {
        if !found.contains(&text) {
            found.push(text);
        }
    }
    found
}

/// The reads that need no replacing, and those of them that still lie on a cycle.
fn faults(subject: &Subject) -> Option<(BTreeSet<Edge>, BTreeSet<Edge>)> {
    let mut kept: BTreeSet<Edge> = subject.reads.iter().copied().collect();
    for _ in 0..MAX_ROUNDS {
        let before = kept.len();
        let mut remaining = BTreeSet::new();
        for (number, members) in cycles(subject, &kept).into_iter().enumerate() {
            let part = part(subject, number, &members, &kept);
            match judge::linearity(&part.subject(subject)) {
                Ok(_) => remaining.extend(part.reads),
                Err(found) => {
                    for edge in found.reads.iter().filter_map(|number| part.reads.get(*number as usize)) {
                        kept.remove(edge);
                    }
                }
            }
        }
        match kept.len() {
            all if all == subject.reads.len() => return None,
            same if same == before => return Some((kept, remaining)),
            _ => {}
        }
    }
    None
}

/// A part of the recurrence that is a cycle by itself once some reads are taken for values from outside.
struct Part {
    number: usize,
    order: Vec<NodeId>,
    inside: Vec<Option<usize>>,
    reads: Vec<Edge>,
}

impl Part {
    fn subject<'a>(&'a self, whole: &Subject<'a>) -> Subject<'a> {
        Subject {
            graph: whole.graph,
            order: self.order.clone(),
            inside: &self.inside,
            number: self.number,
            position: whole.position,
            varies: whole.varies,
            reads: self.reads.clone(),
        }
    }
}

fn part(subject: &Subject, number: usize, members: &BTreeSet<NodeId>, kept: &BTreeSet<Edge>) -> Part {
    let mut inside = vec![None; subject.inside.len()];
    for id in members {
        inside[id.index()] = Some(number);
    }
    let own = |edge: &&Edge| members.contains(&edge.reader) && members.contains(&edge.source.state);
    Part {
        number,
        order: subject
            .order
            .iter()
            .copied()
            .filter(|id| members.contains(id))
            .collect(),
        inside,
        reads: kept.iter().filter(own).copied().collect(),
    }
}

/// The cycles among the members by this frame's reads and the delayed ones that are kept.
fn cycles(subject: &Subject, kept: &BTreeSet<Edge>) -> Vec<BTreeSet<NodeId>> {
    let mut graph: DiGraph<NodeId, ()> = DiGraph::new();
    let nodes: BTreeMap<NodeId, NodeIndex> = subject.order.iter().map(|id| (*id, graph.add_node(*id))).collect();
    for reader in &subject.order {
        for read in subject
            .graph
            .operands(*reader)
            .into_iter()
            .filter(|read| read.delay == 0)
        {
            if let Some(source) = nodes.get(&read.node) {
                graph.update_edge(*source, nodes[reader], ());
            }
        }
    }
    for edge in kept {
        graph.update_edge(nodes[&edge.source.state], nodes[&edge.reader], ());
    }
    let components = petgraph::algo::kosaraju_scc(&graph).into_iter();
    let on_cycle = |c: &Vec<NodeIndex>| c.len() > 1 || graph.contains_edge(c[0], c[0]);
    let cycles = components.filter(on_cycle);
    cycles
        .map(|c| c.into_iter().map(|index| graph[index]).collect())
        .collect()
}

/// A read with the expression that it stands in: "`h[t-1]` in `R @ h[t-1]`".
fn place_text(subject: &Subject, edge: &Edge) -> String {
    let source = source_text(subject, edge);
    let place = express::definition(subject.graph, edge.reader);
    match format!("`{place}`") == source {
        true => source,
        false => format!("{source} in `{place}`"),
    }
}
