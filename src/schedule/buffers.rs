//! Makes the plan's buffers: what the caller gives and gets, the windows of delayed names, and what kernels hand on.

use super::fuse::Fusion;
use super::shapes::Shapes;
use super::stage::Stage;
use crate::ir::{Graph, Kind, NodeId, Op, Scalar};
use rnnc_runtime::plan::{Buffer, BufferId, Elem, Initial, Role, Scope};
use std::collections::{BTreeMap, BTreeSet};

/// The buffers and what they hold.
pub struct Buffers {
    /// In order of id.
    pub list: Vec<Buffer>,
    /// Where a node's value lies.
    pub value: BTreeMap<NodeId, BufferId>,
    /// Further outputs that hold the same node's value.
    pub copies: BTreeMap<NodeId, Vec<BufferId>>,
    /// The window before the first frame, of each state that is read with a delay.
    pub initial: BTreeMap<NodeId, BufferId>,
    /// The window after the last frame, of those too.
    pub last: BTreeMap<NodeId, BufferId>,
    names: BTreeSet<(u8, String)>,
}

/// Makes them. `elem` is how reals are stored; windows of what is computed, and what the
/// prologue makes, stay in f32.
pub fn buffers(fusion: &Fusion<'_>, elem: Elem) -> Buffers {
    let (graph, shapes) = (fusion.graph, fusion.shapes);
    let mut made = Buffers {
        list: Vec::new(),
        value: BTreeMap::new(),
        copies: BTreeMap::new(),
        initial: BTreeMap::new(),
        last: BTreeMap::new(),
        names: BTreeSet::new(),
    };
    for id in graph.inputs.iter().chain(&graph.params) {
        made.given(graph, shapes, *id, elem);
    }
    for id in graph.states() {
        // What is read of an input before its first frame is stored like the input, whose end becomes the next window.
        let elem = if fusion.input_of(id).is_some() { elem } else { Elem::F32 };
        made.windows(graph, shapes, id, elem);
    }
    for output in &graph.outputs {
        let scope = match (graph.against_time, graph.node(output.node).kind) {
            (true, Kind::Const) => Scope::Const,
            (true, Kind::Static) => Scope::Batch,
            (true, Kind::Frame) | (false, _) => Scope::Frame,
        };
        let buffer = made.add(&output.name, Role::Output, scope, shapes.of(output.node), elem);
        if fusion.stored_by.contains_key(&output.node)
            && !fusion.repeated.contains_key(&output.node)
            && !made.value.contains_key(&output.node)
        {
            made.value.insert(output.node, buffer);
        } else {
            made.copies.entry(output.node).or_default().push(buffer);
        }
    }
    for id in fusion.stored_by.keys() {
        if !made.value.contains_key(id) {
            made.temporary(fusion, *id, elem);
        }
    }
    made
}

impl Buffers {
    fn add(&mut self, name: &str, role: Role, scope: Scope, shape: &[usize], elem: Elem) -> BufferId {
        let name = self.unique(&role, name);
        self.list.push(Buffer {
            name,
            role,
            scope,
            shape: shape.to_vec(),
            elem,
        });
        BufferId(self.list.len() as u32 - 1)
    }

    /// Names are unique among buffers of a role.
    fn unique(&mut self, role: &Role, name: &str) -> String {
        let role = match role {
            Role::Input => 0,
            Role::Param => 1,
            Role::Initial(_) => 2,
            Role::Output => 3,
            Role::Final => 4,
            Role::Prologue => 5,
            Role::Temp => 6,
        };
        let mut candidate = name.to_owned();
        let mut n = 2;
        while !self.names.insert((role, candidate.clone())) {
            candidate = format!("{name}_{n}");
            n += 1;
        }
        candidate
    }

    fn given(&mut self, graph: &Graph, shapes: &Shapes, id: NodeId, elem: Elem) {
        let node = graph.node(id);
        let (role, scope) = match node.op {
            Op::Param => (Role::Param, Scope::Const),
            Op::StaticInput => (Role::Input, Scope::Batch),
            _ => (Role::Input, Scope::Frame),
        };
        let elem = if matches!(node.ty.scalar, Scalar::Index(_)) {
            Elem::I32
        } else {
            elem
        };
        let buffer = self.add(&graph.label(id), role, scope, shapes.of(id), elem);
        self.value.insert(id, buffer);
    }

    fn windows(&mut self, graph: &Graph, shapes: &Shapes, id: NodeId, elem: Elem) {
        let node = graph.node(id);
        // A name that is only read ahead is a state without a window.
        let Op::State { window: window @ 1.. } = node.op else {
            return;
        };
        let elem = if matches!(node.ty.scalar, Scalar::Index(_)) {
            Elem::I32
        } else {
            elem
        };
        let scope = Scope::Window(window as usize);
        let fill = Role::Initial(Initial::Fill(0.0)); // a default of its own is set where it is made
        let initial = self.add(&graph.label(id), fill, scope, shapes.of(id), elem);
        let last = self.add(&graph.label(id), Role::Final, scope, shapes.of(id), elem);
        self.initial.insert(id, initial);
        self.last.insert(id, last);
    }

    fn temporary(&mut self, fusion: &Fusion<'_>, id: NodeId, elem: Elem) {
        let (graph, shapes) = (fusion.graph, fusion.shapes);
        let (role, scope, elem) = match fusion.stage(id) {
            Stage::Const => (Role::Prologue, Scope::Const, Elem::F32),
            Stage::LateConst => (Role::Temp, Scope::Const, Elem::F32),
            Stage::Static | Stage::LateStatic => (Role::Temp, Scope::Batch, Elem::F32),
            Stage::Frame => (Role::Temp, Scope::Frame, elem),
        };
        let buffer = self.add(&derived_name(graph, id), role, scope, shapes.of(id), elem);
        self.value.insert(id, buffer);
    }
}

/// A readable name for a value without one: after the equation that it goes into.
pub fn derived_name(graph: &Graph, id: NodeId) -> String {
    if let Some(name) = &graph.node(id).name {
        return name.to_string();
    }
    let mut at = id;
    for _ in 0..64 {
        let Some(first) = graph.uses(at).first().copied() else {
            break;
        };
        at = first.reader;
        if let Some(name) = &graph.node(at).name {
            return format!("{name}_in");
        }
    }
    let output = graph.outputs.iter().find(|o| o.node == at);
    output.map_or_else(|| "value".to_owned(), |o| format!("{}_in", o.name))
}
