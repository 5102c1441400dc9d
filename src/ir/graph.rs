//! The graph itself, over petgraph, which no signature outside this file shows.

use super::{Kind, Name, Op, Type};
use crate::diagnostics::Span;
use petgraph::Direction;
use petgraph::stable_graph::{EdgeIndex, NodeIndex, StableDiGraph};
use petgraph::visit::EdgeRef;
use serde::Serialize;

/// A node's identity; it survives the removal of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct NodeId(u32);

impl NodeId {
    fn new(index: NodeIndex<u32>) -> NodeId {
        NodeId(index.index() as u32)
    }

    fn raw(self) -> NodeIndex<u32> {
        NodeIndex::new(self.0 as usize)
    }

    /// As a number, for side tables of length [`Graph::bound`].
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl std::fmt::Display for NodeId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "%{}", self.0)
    }
}

/// An operation with its type, kind and origin.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// What it computes.
    pub op: Op,
    /// The shape and scalar type of its result, in one frame of one sequence.
    pub ty: Type,
    /// How often its result exists.
    pub kind: Kind,
    /// Where in the source it comes from.
    pub span: Span,
    /// The user's name for the result, if it has one.
    pub name: Option<Name>,
}

/// An operand: whose result, and from how many frames back (0: this frame; negative: frames ahead).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Read {
    /// The node that is read.
    pub node: NodeId,
    /// Frames back.
    pub delay: i32,
}

impl Read {
    /// This frame's value of `node`.
    pub fn now(node: NodeId) -> Read {
        Read { node, delay: 0 }
    }
}

/// A place where a node is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Use {
    /// The reader.
    pub reader: NodeId,
    /// Which of its operands.
    pub port: usize,
    /// With which delay.
    pub delay: i32,
}

#[derive(Clone, Copy, Debug)]
struct Edge {
    port: u32,
    delay: i32,
}

/// An output of the cell.
#[derive(Clone, Debug, PartialEq)]
pub struct Output {
    /// The user's name.
    pub name: Name,
    /// The node whose result it is.
    pub node: NodeId,
    /// Where it was declared.
    pub span: Span,
}

/// A cell as a graph of operations.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    /// The cell's name.
    pub name: String,
    /// Its dimensions, in declared order.
    pub dims: Vec<Name>,
    /// Its inputs (every frame and static), in declared order.
    pub inputs: Vec<NodeId>,
    /// Its parameters, in declared order.
    pub params: Vec<NodeId>,
    /// Its outputs, in declared order.
    pub outputs: Vec<Output>,
    /// Whether it runs from the last frame to the first. What it is given and what it gives stay in the order of time: its
    /// frame s is frame T - 1 - s of its inputs and outputs, a delayed read is of a later frame, an initial window holds the
    /// frames from T on, and a final window the first ones.
    pub against_time: bool,
    inner: StableDiGraph<Node, Edge, u32>,
}

impl Graph {
    /// An empty graph.
    pub fn new(name: &str) -> Graph {
        Graph {
            name: name.to_owned(),
            ..Graph::default()
        }
    }

    /// Adds a node that reads `operands` in order. Edges run from operand to reader.
    pub fn add(&mut self, node: Node, operands: &[Read]) -> NodeId {
        let id = self.inner.add_node(node);
        for (port, read) in operands.iter().enumerate() {
            self.inner.add_edge(
                read.node.raw(),
                id,
                Edge {
                    port: port as u32,
                    delay: read.delay,
                },
            );
        }
        NodeId::new(id)
    }

    /// Makes `read` the operand `port` of `reader`, in place of what was there.
    pub fn set_operand(&mut self, reader: NodeId, port: usize, read: Read) {
        if let Some(old) = self.edge(reader, port) {
            self.inner.remove_edge(old);
        }
        self.inner.add_edge(
            read.node.raw(),
            reader.raw(),
            Edge {
                port: port as u32,
                delay: read.delay,
            },
        );
    }

    fn edge(&self, reader: NodeId, port: usize) -> Option<EdgeIndex<u32>> {
        self.inner
            .edges_directed(reader.raw(), Direction::Incoming)
            .find(|e| e.weight().port as usize == port)
            .map(|e| e.id())
    }

    /// The operands of a node, by port.
    pub fn operands(&self, id: NodeId) -> Vec<Read> {
        let mut found: Vec<(u32, Read)> = self
            .inner
            .edges_directed(id.raw(), Direction::Incoming)
            .map(|e| {
                (
                    e.weight().port,
                    Read {
                        node: NodeId::new(e.source()),
                        delay: e.weight().delay,
                    },
                )
            })
            .collect();
        found.sort();
        found.into_iter().map(|(_, read)| read).collect()
    }

    /// Every place where a node is read, in order of reader and port.
    pub fn uses(&self, id: NodeId) -> Vec<Use> {
        let mut found: Vec<Use> = self
            .inner
            .edges_directed(id.raw(), Direction::Outgoing)
            .map(|e| Use {
                reader: NodeId::new(e.target()),
                port: e.weight().port as usize,
                delay: e.weight().delay,
            })
            .collect();
        found.sort();
        found
    }

    /// Lets every reader of `old` (this frame's value; delayed reads stay) read `new`, outputs included.
    pub fn replace(&mut self, old: NodeId, new: NodeId) {
        for u in self.uses(old) {
            if u.delay == 0 && u.reader != new {
                self.set_operand(u.reader, u.port, Read::now(new));
            }
        }
        for output in &mut self.outputs {
            if output.node == old {
                output.node = new;
            }
        }
    }

    /// Removes a node that nobody reads.
    pub fn remove(&mut self, id: NodeId) {
        self.inner.remove_node(id.raw());
    }

    /// A node.
    pub fn node(&self, id: NodeId) -> &Node {
        &self.inner[id.raw()]
    }

    /// A node, to change.
    pub fn node_mut(&mut self, id: NodeId) -> &mut Node {
        &mut self.inner[id.raw()]
    }

    /// Whether the node still exists.
    pub fn contains(&self, id: NodeId) -> bool {
        self.inner.contains_node(id.raw())
    }

    /// Every node, ascending.
    pub fn ids(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.inner.node_indices().map(NodeId::new)
    }

    /// How many nodes there are.
    pub fn len(&self) -> usize {
        self.inner.node_count()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// One past the largest [`NodeId::index`].
    pub fn bound(&self) -> usize {
        self.inner.node_indices().map(|i| i.index() + 1).max().unwrap_or(0)
    }

    /// Every state, ascending.
    pub fn states(&self) -> Vec<NodeId> {
        self.ids()
            .filter(|id| matches!(self.node(*id).op, Op::State { .. }))
            .collect()
    }

    /// The name by which messages call a node: its own, or that of what it computes.
    pub fn label(&self, id: NodeId) -> String {
        match &self.node(id).name {
            Some(name) => name.to_string(),
            None => format!("{}{id}", self.node(id).op.name()),
        }
    }

    /// All nodes in an order in which this frame's operands come before their readers (ties by id). A node on a cycle
    /// without delay comes last.
    pub fn topological(&self) -> Vec<NodeId> {
        let mut missing = vec![0u32; self.bound()];
        for id in self.ids() {
            missing[id.index()] = self.operands(id).iter().filter(|r| r.delay == 0).count() as u32;
        }
        let mut ready: std::collections::BTreeSet<NodeId> = self.ids().filter(|id| missing[id.index()] == 0).collect();
        let mut order = Vec::with_capacity(self.len());
        let mut done = vec![false; self.bound()];
        while let Some(id) = ready.pop_first() {
            done[id.index()] = true;
            order.push(id);
            for u in self.uses(id).into_iter().filter(|u| u.delay == 0) {
                missing[u.reader.index()] -= 1;
                if missing[u.reader.index()] == 0 {
                    ready.insert(u.reader);
                }
            }
        }
        order.extend(self.ids().filter(|id| !done[id.index()]));
        order
    }

    /// Strongly connected components over all edges, or over those without delay: members ascending, components so
    /// that a component comes after those it reads. (petgraph's Tarjan recurses once a node and would overflow the stack on
    /// a file of a megabyte; its Kosaraju does not.)
    pub fn components(&self, only_instant: bool) -> Vec<Vec<NodeId>> {
        let filtered;
        let components = if only_instant {
            filtered = self
                .inner
                .filter_map(|_, _| Some(()), |_, e| (e.delay == 0).then_some(()));
            petgraph::algo::kosaraju_scc(&filtered)
        } else {
            petgraph::algo::kosaraju_scc(&self.inner)
        };
        let mut components: Vec<Vec<NodeId>> = components
            .into_iter()
            .map(|members| {
                let mut members: Vec<NodeId> = members.into_iter().map(NodeId::new).collect();
                members.sort();
                members
            })
            .collect();
        components.reverse(); // kosaraju_scc gives readers first
        components
    }

    /// Whether a component found by [`Graph::components`] is a cycle: several nodes, or one that reads itself.
    pub fn is_cycle(&self, component: &[NodeId]) -> bool {
        match component {
            [one] => self.operands(*one).iter().any(|r| r.node == *one),
            _ => component.len() > 1,
        }
    }
}
