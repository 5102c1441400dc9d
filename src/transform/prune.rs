//! Removes what nothing needs.
//!
//! Needed are outputs, final windows, and what they are made of. Every state with a window has a final window, whoever
//! reads it: language rule 18 counts the delayed reads that the user wrote. Inputs and parameters stay, for they are
//! the cell's interface.

use super::rebuild::Rebuild;
use crate::ir::{Graph, NodeId, Op};

/// Returns how many nodes went.
pub fn run(graph: &mut Graph) -> usize {
    let needed = needed(graph);
    let before = graph.len();
    if needed.iter().filter(|n| **n).count() == before {
        return 0;
    }
    let mut rebuild = Rebuild::new(graph, |id| needed[id.index()]);
    for id in graph.topological().into_iter().filter(|id| needed[id.index()]) {
        rebuild.copy(id);
    }
    *graph = rebuild.finish();
    before - graph.len()
}

fn needed(graph: &Graph) -> Vec<bool> {
    let windows = graph
        .states()
        .into_iter()
        .filter(|id| !matches!(graph.node(*id).op, Op::State { window: 0 }));
    let outputs = graph.outputs.iter().map(|o| o.node);
    let interface = graph.inputs.iter().chain(&graph.params).copied();
    let mut reached: Vec<NodeId> = outputs.chain(windows).chain(interface).collect();
    let mut needed = vec![false; graph.bound()];
    while let Some(id) = reached.pop() {
        if !std::mem::replace(&mut needed[id.index()], true) {
            reached.extend(graph.operands(id).iter().map(|r| r.node));
        }
    }
    needed
}
