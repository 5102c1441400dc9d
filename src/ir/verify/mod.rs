//! Checks a graph: everything that `ir`'s header promises of one, and a type rule for every operation.
//!
//! Any graph comes in, whoever built it; out comes every breach in words. What now holds: passes and engines may lean on
//! the promises without looking. A breach is a defect of the compiler, never of the user's file.

mod types;

use super::{Graph, Kind, NodeId, Op, Read, Scalar, Type};
use std::collections::{BTreeMap, BTreeSet};

/// Checks every promise of `ir`'s header and the type of every node.
///
/// # Errors
/// Each breach as a sentence that names the node.
pub fn verify(graph: &Graph) -> Result<(), Vec<String>> {
    let mut check = Check {
        graph,
        dims: graph.dims.iter().cloned().collect(),
        found: Vec::new(),
    };
    check.lists();
    let ports = check.ports();
    for id in graph.ids() {
        check.node(id, ports.get(&id).map_or(&[][..], Vec::as_slice));
    }
    check.cycles();
    if check.found.is_empty() {
        Ok(())
    } else {
        Err(check.found)
    }
}

struct Check<'g> {
    graph: &'g Graph,
    dims: BTreeSet<super::Name>,
    found: Vec<String>,
}

impl Check<'_> {
    fn say(&mut self, id: NodeId, what: impl std::fmt::Display) {
        let node = self.graph.node(id);
        let name = node.name.as_ref().map(|n| format!(" \"{n}\"")).unwrap_or_default();
        self.found.push(format!("{id}{name} ({}): {what}", node.op.name()));
    }

    /// Inputs, parameters and outputs are listed once each, with names of their own.
    fn lists(&mut self) {
        let graph = self.graph;
        self.interface("input", &graph.inputs, |op| matches!(op, Op::Input | Op::StaticInput));
        self.interface("parameter", &graph.params, |op| matches!(op, Op::Param));
        self.interface("state", &graph.states(), |op| matches!(op, Op::State { .. }));
        let mut names = BTreeSet::new();
        for output in &graph.outputs {
            if !names.insert(&output.name) {
                self.found.push(format!("two outputs are named \"{}\"", output.name));
            }
            if !graph.contains(output.node) {
                self.found.push(format!(
                    "output \"{}\" is {}, which does not exist",
                    output.name, output.node
                ));
            }
        }
    }

    fn interface(&mut self, what: &str, list: &[NodeId], is_one: fn(&Op) -> bool) {
        let graph = self.graph;
        let mut names = BTreeSet::new();
        for id in list {
            if !graph.contains(*id) || !is_one(&graph.node(*id).op) {
                self.found.push(format!("{id} is listed as {what} and is none"));
                continue;
            }
            match &graph.node(*id).name {
                None => self.say(*id, format_args!("a {what} without a name")),
                Some(name) if !names.insert(name) => self.say(*id, format_args!("a second {what} of this name")),
                Some(_) => {}
            }
        }
        let listed: BTreeSet<&NodeId> = list.iter().collect();
        for id in graph.ids().filter(|id| is_one(&graph.node(*id).op)) {
            if !listed.contains(&id) {
                self.say(id, format_args!("is missing in the list of each {what}"));
            }
        }
    }

    /// The operand numbers of every node, ascending.
    fn ports(&self) -> BTreeMap<NodeId, Vec<usize>> {
        let mut ports: BTreeMap<NodeId, Vec<usize>> = BTreeMap::new();
        for id in self.graph.ids() {
            for u in self.graph.uses(id) {
                ports.entry(u.reader).or_default().push(u.port);
            }
        }
        ports.values_mut().for_each(|p| p.sort_unstable());
        ports
    }

    fn node(&mut self, id: NodeId, ports: &[usize]) {
        let graph = self.graph;
        let (least, most) = graph.node(id).op.arity();
        if !ports.iter().copied().eq(0..ports.len()) {
            self.say(id, format_args!("operands are numbered {ports:?}"));
        } else if ports.len() < least || ports.len() > most {
            self.say(id, format_args!("has {} operands", ports.len()));
        } else {
            let operands = graph.operands(id);
            self.reads(id, &operands);
            self.kind(id, &operands);
            self.sizes(id);
            let types: Vec<&Type> = operands.iter().map(|r| &graph.node(r.node).ty).collect();
            if let Err(what) = types::check(graph.node(id), &types) {
                self.say(id, what);
            }
        }
    }

    /// Only states are read with a delay, and with none above their window.
    fn reads(&mut self, id: NodeId, operands: &[Read]) {
        for read in operands.iter().filter(|r| r.delay != 0) {
            match self.graph.node(read.node).op {
                Op::State { window } if i64::from(read.delay) <= i64::from(window) => {}
                Op::State { window } => self.say(
                    id,
                    format_args!(
                        "reads {} of {} frames back, its window is {window}",
                        read.node, read.delay
                    ),
                ),
                _ => self.say(id, format_args!("reads {}, no state, with a delay", read.node)),
            }
        }
        if matches!(self.graph.node(id).op, Op::State { .. }) && operands.get(1).is_some_and(|r| r.delay != 0) {
            self.say(id, "its initial value is read with a delay");
        }
    }

    fn kind(&mut self, id: NodeId, operands: &[Read]) {
        let node = self.graph.node(id);
        let of = |r: &Read| self.graph.node(r.node).kind;
        let (least, most) = match &node.op {
            Op::Input | Op::State { .. } => (Kind::Frame, Kind::Frame),
            Op::StaticInput => (Kind::Static, Kind::Static),
            Op::Param => (Kind::Const, Kind::Const),
            Op::Total { .. } => (Kind::Const, total(operands.iter().map(of).max())),
            _ => (operands.iter().map(of).max().unwrap_or(Kind::Const), Kind::Frame),
        };
        let initial = operands.get(1).map(of);
        if node.kind < least || node.kind > most {
            self.say(id, format_args!("is {:?}, should be {least:?}", node.kind));
        }
        if matches!(node.op, Op::State { .. }) && initial == Some(Kind::Frame) {
            self.say(id, "its initial value changes with the frame");
        }
    }

    /// Sizes speak of the cell's dimensions only.
    fn sizes(&mut self, id: NodeId) {
        let node = self.graph.node(id);
        let own = match &node.op {
            Op::SizeValue(size) => vec![size],
            Op::Slice { lo, hi, .. } => vec![lo, hi],
            _ => vec![],
        };
        let range = match &node.ty.scalar {
            Scalar::Index(n) => Some(n),
            Scalar::Real => None,
        };
        let sizes = node.ty.axes.iter().chain(own).chain(range);
        let unknown = sizes.flat_map(super::Size::dims).find(|d| !self.dims.contains(d));
        if let Some(dim) = unknown {
            self.say(id, format_args!("a size speaks of \"{dim}\", no dimension of the cell"));
        }
    }

    /// Every cycle passes a delayed edge: taking away, again and again, nodes whose operands of this frame are gone
    /// takes away everything.
    fn cycles(&mut self) {
        let graph = self.graph;
        let mut done = vec![false; graph.bound()];
        for id in graph.topological() {
            let waits = graph.operands(id).iter().any(|r| r.delay == 0 && !done[r.node.index()]);
            if waits {
                self.say(id, "is on a cycle without delay, or behind one");
            }
            done[id.index()] = !waits;
        }
    }
}

/// The greatest kind of a total of values of a kind: it lacks what it sums over.
fn total(of: Option<Kind>) -> Kind {
    match of {
        Some(Kind::Frame) => Kind::Static,
        _ => Kind::Const,
    }
}

#[cfg(test)]
mod tests;
