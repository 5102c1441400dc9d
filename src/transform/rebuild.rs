//! Makes a graph anew, node by node, which is how every pass rewrites: nothing is ever taken out of a graph, so a
//! pass takes time in proportion to nodes and operands however often a node is read.
//!
//! States stand from the start, without operands, so that reads of earlier frames find them; the rest comes in
//! topological order, so the operands of a node are in the new graph before it. Kinds are worked out again.

use crate::diagnostics::Span;
use crate::ir::{Graph, Kind, Node, NodeId, Op, Read, Type};

/// A new graph in the making, beside the old one.
pub(super) struct Rebuild<'g> {
    old: &'g Graph,
    new: Graph,
    /// By index in the old graph: what stands for the node in the new one. A delayed read where the node turned out
    /// to be nothing else.
    place: Vec<Option<Read>>,
}

impl<'g> Rebuild<'g> {
    /// Begins with the states that `keep` holds for.
    pub(super) fn new(old: &'g Graph, keep: impl Fn(NodeId) -> bool) -> Rebuild<'g> {
        let mut new = Graph::new(&old.name);
        new.dims.clone_from(&old.dims);
        new.against_time = old.against_time;
        let mut place = vec![None; old.bound()];
        for id in old.states().into_iter().filter(|id| keep(*id)) {
            place[id.index()] = Some(Read::now(new.add(old.node(id).clone(), &[])));
        }
        Rebuild { old, new, place }
    }

    /// The graph so far.
    pub(super) fn graph(&self) -> &Graph {
        &self.new
    }

    /// What an operand in the old graph is in the new one. Only states are read with a delay, and they stand for
    /// themselves, so one of the two delays is 0.
    pub(super) fn read(&self, read: Read) -> Read {
        let place = self.place[read.node.index()];
        debug_assert!(place.is_some(), "an operand comes before its readers");
        let place = place.unwrap_or(read);
        debug_assert!(read.delay == 0 || place.delay == 0, "only states are read with a delay");
        Read {
            node: place.node,
            delay: place.delay + read.delay,
        }
    }

    /// The operands of an old node in the new graph.
    pub(super) fn operands(&self, id: NodeId) -> Vec<Read> {
        self.old.operands(id).into_iter().map(|r| self.read(r)).collect()
    }

    /// Adds a node to the new graph; its kind follows from its operands.
    pub(super) fn add(&mut self, op: Op, ty: Type, span: Span, operands: &[Read]) -> NodeId {
        let most = operands.iter().map(|r| self.new.node(r.node).kind).max();
        let kind = match op {
            Op::Input => Kind::Frame,
            Op::StaticInput => Kind::Static,
            _ => most.unwrap_or(Kind::Const),
        };
        self.add_of_kind(op, ty, kind, span, operands)
    }

    /// Adds a node whose kind does not follow from its operands: a total.
    pub(super) fn add_of_kind(&mut self, op: Op, ty: Type, kind: Kind, span: Span, operands: &[Read]) -> NodeId {
        let node = Node {
            op,
            ty,
            kind,
            span,
            name: None,
        };
        self.new.add(node, operands)
    }

    /// Takes an old node over as it is.
    pub(super) fn copy(&mut self, id: NodeId) {
        if self.place[id.index()].is_none() {
            let node = self.old.node(id);
            let new = self.add(node.op.clone(), node.ty.clone(), node.span, &self.operands(id));
            if matches!(node.op, Op::Total { .. }) {
                self.new.node_mut(new).kind = node.kind; // that of a total is not its operands'
            }
            self.put(id, Read::now(new));
        }
    }

    /// Lets `new` stand for an old node, whose name it takes if it has none.
    pub(super) fn put(&mut self, old: NodeId, new: Read) {
        self.place[old.index()] = Some(new);
        let name = &self.old.node(old).name;
        if new.delay == 0 && name.is_some() && !matches!(self.new.node(new.node).op, Op::Literal(_)) {
            self.new
                .node_mut(new.node)
                .name
                .get_or_insert_with(|| name.clone().unwrap_or_default());
        }
    }

    /// Closes the states and takes the lists over.
    pub(super) fn finish(mut self) -> Graph {
        for id in self.old.states() {
            let Some(state) = self.place[id.index()] else { continue };
            for (port, read) in self.old.operands(id).into_iter().enumerate() {
                let read = self.read(read);
                self.new.set_operand(state.node, port, read);
            }
        }
        let find = |id: &NodeId| self.read(Read::now(*id)).node;
        let inputs = self.old.inputs.iter().map(find).collect();
        let params = self.old.params.iter().map(find).collect();
        let mut outputs = self.old.outputs.clone();
        outputs.iter_mut().for_each(|o| o.node = find(&o.node));
        self.new.inputs = inputs;
        self.new.params = params;
        self.new.outputs = outputs;
        self.new
    }
}
