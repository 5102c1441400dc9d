//! Computes equal expressions once.
//!
//! Two nodes are equal if they do the same to the same operands with the same delays. States are never merged, nor
//! inputs and parameters: each delayed name is a variable with a window of its own (language rule 20).

use super::rebuild::Rebuild;
use crate::ir::op::Binary;
use crate::ir::{Graph, Op, Read, Type};
use std::collections::HashMap;

/// Returns how many nodes were found to be others.
pub fn run(graph: &mut Graph) -> usize {
    let mut seen: HashMap<(String, Type, Vec<Read>), Read> = HashMap::new();
    let mut rebuild = Rebuild::new(graph, |_| true);
    let mut found = 0;
    for id in graph.topological() {
        let node = graph.node(id);
        let mut operands = rebuild.operands(id);
        if matches!(node.op, Op::State { .. } | Op::Input | Op::StaticInput | Op::Param) {
            rebuild.copy(id);
            continue;
        }
        if commutes(&node.op) {
            operands.sort();
        }
        // The text tells apart what == does not: 0 and -0.
        let key = (format!("{:?} {:?}", node.op, node.kind), node.ty.clone(), operands);
        if let Some(same) = seen.get(&key) {
            rebuild.put(id, *same);
            found += 1;
        } else {
            rebuild.copy(id);
            seen.insert(key, rebuild.read(Read::now(id)));
        }
    }
    if found > 0 {
        *graph = rebuild.finish();
    }
    found
}

/// Whether the order of the operands does not matter, to the last bit.
fn commutes(op: &Op) -> bool {
    match op {
        Op::Binary(f) => match f {
            Binary::Add | Binary::Mul | Binary::Max | Binary::Min | Binary::LogAddExp | Binary::Eq | Binary::Ne => true,
            Binary::Sub
            | Binary::Div
            | Binary::Pow
            | Binary::Mod
            | Binary::Lt
            | Binary::Le
            | Binary::Gt
            | Binary::Ge => false,
        },
        _ => false,
    }
}
