//! Decides which nodes a kernel computes together and which values go through memory.
//!
//! Nodes are visited operands first. A node's value is *live* in the groups that could hand it on without memory (a
//! recurrence, a row reduction); everything else that it needs has been stored by a group of a lower level. A value that
//! must be stored (an output, the operand of a product, a state of the past) is a *root*: it joins the group in which it
//! is live if that group can compute it without crossing channels, else what is live is stored (*spilled*) and the root
//! becomes pointwise work of a later level. Launches run by level.

use super::classes::classes;
use super::matching::{self, Matches, ProductMatch, is_cheap};
use super::shapes::Shapes;
use super::stage::{self, Stage};
use super::total::Sums;
use crate::analysis::Facts;
use crate::ir::{Graph, NodeId, Op, Read};
use rnnc_runtime::plan::Lanes;
use std::collections::{BTreeMap, BTreeSet};

/// A group's place in [`Fusion::groups`].
pub type GroupId = usize;

/// The most pointwise operations that are computed again where they are read, before the value is stored once.
const MAX_CONE: u32 = 512;
/// The most registers that a lane of a scan may spend on what it carries ([`rnnc_runtime::plan::Channel::fits`] allows
/// more; the rest is for its work).
const MAX_CARRIED: usize = 64;

/// Nodes that one kernel computes.
#[derive(Debug)]
pub struct Group {
    /// When, and how often, it runs.
    pub stage: Stage,
    /// After all groups of lower levels (of the same stage).
    pub level: usize,
    /// What sort of kernel it becomes.
    pub form: Form,
    /// Nodes that it stores.
    pub roots: BTreeSet<NodeId>,
    /// Nodes whose values live in it (for scans, rows and loops).
    pub live: BTreeSet<NodeId>,
    /// The recurrences in it.
    pub recurrences: Vec<usize>,
}

/// The sorts of groups.
#[derive(Debug)]
pub enum Form {
    /// Elementwise work on one shape.
    Pointwise(Vec<usize>),
    /// Reductions, and what their results are used for.
    Rows,
    /// Recurrences whose channels are independent.
    Scan,
    /// A recurrence whose units exchange values.
    Loop,
    /// Products with common operands.
    Products(Vec<ProductMatch>),
    /// Products summed over frames or sequences.
    Total(Vec<NodeId>),
}

/// What products must have in common to share a launch: stage, level, and their vectors (negated or not).
type Vectors = (Stage, usize, Vec<(Read, bool)>);

/// All groups and what goes through memory.
pub struct Fusion<'a> {
    /// The graph.
    pub graph: &'a Graph,
    /// Its recurrences.
    pub facts: &'a Facts,
    /// Its extents.
    pub shapes: &'a Shapes,
    /// The groups, in order of making.
    pub groups: Vec<Group>,
    /// The group that stores a node.
    pub stored_by: BTreeMap<NodeId, GroupId>,
    /// Outputs of a lower kind, which a group repeats over frames and batch.
    pub repeated: BTreeMap<NodeId, GroupId>,
    /// The products.
    pub matches: Matches,
    stages: Vec<Stage>,
    needs: Vec<Need>,
    /// By node: whether it is computed where it is read, from what its operands need.
    inline: Vec<bool>,
    by_shape: BTreeMap<(Stage, usize, Vec<usize>), GroupId>,
    by_operand: BTreeMap<(Stage, usize, NodeId), GroupId>,
    by_vectors: BTreeMap<Vectors, GroupId>,
    by_sums: BTreeMap<(Stage, usize, Sums), GroupId>,
}

/// What a node's value needs.
#[derive(Clone, Debug, Default, PartialEq)]
struct Need {
    /// Groups in which it, or something it is computed from, lives.
    live: BTreeSet<GroupId>,
    /// The least level of a group that may read the rest.
    level: usize,
    /// Pointwise operations to compute it from what is stored (an upper bound).
    size: u32,
}

impl Need {
    fn stored(level: usize) -> Need {
        Need {
            live: BTreeSet::new(),
            level,
            size: 0,
        }
    }

    fn join(&mut self, other: &Need) {
        self.live.extend(&other.live);
        self.level = self.level.max(other.level);
        self.size = self.size.saturating_add(other.size);
    }
}

/// Runs the decisions.
pub fn fuse<'a>(graph: &'a Graph, facts: &'a Facts, shapes: &'a Shapes) -> Fusion<'a> {
    let mut fusion = Fusion {
        graph,
        facts,
        shapes,
        groups: Vec::new(),
        stored_by: BTreeMap::new(),
        repeated: BTreeMap::new(),
        matches: Matches::default(),
        stages: stage::stages(graph),
        needs: vec![Need::default(); graph.bound()],
        inline: vec![false; graph.bound()],
        by_shape: BTreeMap::new(),
        by_operand: BTreeMap::new(),
        by_vectors: BTreeMap::new(),
        by_sums: BTreeMap::new(),
    };
    fusion.run();
    fusion
}

impl Fusion<'_> {
    fn run(&mut self) {
        let crossing = crossing(self.graph, &self.stages);
        let stored = |id: NodeId| matches!(self.graph.node(id).op, Op::Param) || crossing.contains(&id);
        self.matches = matching::find(self.graph, self.facts, self.shapes, &stored);
        for component in self.graph.components(false) {
            match component.first().and_then(|id| self.facts.recurrence_of(*id)) {
                Some(recurrence) if self.graph.is_cycle(&component) => self.recurrence(recurrence),
                _ => component.iter().for_each(|id| self.node(*id, &crossing)),
            }
        }
        for output in &self.graph.outputs {
            let stage = self.stage_of_output(output.node);
            if stage == self.stage(output.node) && !self.is_leaf(output.node) {
                self.store(output.node);
            } else {
                let group = self.pointwise(stage, 0, self.shapes.of(output.node).to_vec());
                self.repeated.insert(output.node, group);
            }
        }
    }

    /// When an output is written: a gradient as often as it exists, after the frames if not with them; others each frame.
    fn stage_of_output(&self, id: NodeId) -> Stage {
        match self.stage(id) {
            _ if !self.graph.against_time => Stage::Frame,
            Stage::Static => Stage::LateStatic,
            Stage::Const => Stage::LateConst,
            own => own,
        }
    }

    /// When a node's value is there.
    pub fn stage(&self, id: NodeId) -> Stage {
        stage::stage(&self.stages, id)
    }

    /// Inputs, parameters, and states that are inputs of earlier frames.
    pub fn is_leaf(&self, id: NodeId) -> bool {
        matches!(self.graph.node(id).op, Op::Input | Op::StaticInput | Op::Param)
    }

    /// The input whose earlier frames a state is, if it is one's.
    pub fn input_of(&self, state: NodeId) -> Option<NodeId> {
        let operand = self.graph.operands(state).first()?.node;
        matches!(self.graph.node(operand).op, Op::Input).then_some(operand)
    }

    fn need_of_operands(&self, id: NodeId) -> Need {
        let mut need = Need::default();
        for read in self.value_operands(id) {
            need.join(&self.need(self.stage(id), read));
        }
        need
    }

    /// What a value needs that is computed where it is read.
    fn need_inline(&self, id: NodeId) -> Need {
        let mut need = self.need_of_operands(id);
        need.size = need.size.saturating_add(1);
        need
    }

    /// Has the values that were to be computed from a node know that it is in memory now, which is later.
    fn renew_readers(&mut self, id: NodeId) {
        let mut stack = vec![id];
        while let Some(at) = stack.pop() {
            for reader in self.graph.uses(at).into_iter().filter(|u| u.delay == 0) {
                let reader = reader.reader;
                let follows = self.inline[reader.index()] && self.live_group(reader).is_none();
                if !follows || self.stored_by.contains_key(&reader) {
                    continue;
                }
                let need = self.need_inline(reader);
                if need != self.needs[reader.index()] {
                    self.needs[reader.index()] = need;
                    stack.push(reader);
                }
            }
        }
    }

    /// The operands that a node's value is computed from (a state's initial value is another matter).
    fn value_operands(&self, id: NodeId) -> Vec<Read> {
        let mut operands = self.graph.operands(id);
        if matches!(self.graph.node(id).op, Op::State { .. }) {
            operands.truncate(1);
        }
        operands
    }

    fn need(&self, stage: Stage, read: Read) -> Need {
        let id = read.node;
        if self.stage(id) < stage || self.is_leaf(id) {
            return Need::default();
        }
        if read.delay == 0 {
            return self.needs[id.index()].clone();
        }
        if self.input_of(id).is_some() {
            return Need::default();
        }
        match (self.live_group(id).filter(|_| read.delay > 0), self.stored_by.get(&id)) {
            (Some(group), _) => Need {
                live: BTreeSet::from([group]),
                level: 0,
                size: 0,
            },
            (None, Some(group)) => Need::stored(self.groups[*group].level + 1),
            (None, None) => Need::default(),
        }
    }

    fn live_group(&self, id: NodeId) -> Option<GroupId> {
        let mut live = self.needs[id.index()].live.iter();
        live.next().copied().filter(|g| self.groups[*g].live.contains(&id))
    }

    fn node(&mut self, id: NodeId, crossing: &BTreeSet<NodeId>) {
        let op = &self.graph.node(id).op;
        if self.is_leaf(id) || self.matches.inside.contains(&id) {
            return;
        }
        if let Some(found) = self.matches.by_result.get(&id).cloned() {
            return self.product(found);
        }
        if matches!(op, Op::Total { .. }) {
            self.total(id);
        } else if op.folds() {
            self.fold(id);
        } else {
            self.needs[id.index()] = self.need_inline(id);
            self.inline[id.index()] = true;
        }
        let remembered = matches!(op, Op::State { .. }) && self.input_of(id).is_none();
        if remembered || crossing.contains(&id) {
            self.store(id);
        } else if self.needs[id.index()].size > MAX_CONE {
            let group = self.store(id);
            if self.live_group(id).is_none() {
                self.needs[id.index()] = Need::stored(self.groups[group].level + 1);
            }
        }
    }

    fn group(&mut self, stage: Stage, level: usize, form: Form) -> GroupId {
        let (roots, live) = (BTreeSet::new(), BTreeSet::new());
        self.groups.push(Group {
            stage,
            level,
            form,
            roots,
            live,
            recurrences: Vec::new(),
        });
        self.groups.len() - 1
    }

    fn pointwise(&mut self, stage: Stage, level: usize, shape: Vec<usize>) -> GroupId {
        let key = (stage, level, shape.clone());
        match self.by_shape.get(&key) {
            Some(group) => *group,
            None => {
                let group = self.group(stage, level, Form::Pointwise(shape));
                self.by_shape.insert(key, group);
                group
            }
        }
    }

    /// Has a node stored, by the group it lives in if that can be.
    fn store(&mut self, id: NodeId) -> GroupId {
        if let Some(group) = self.stored_by.get(&id) {
            return *group;
        }
        let need = self.needs[id.index()].clone();
        let joined = match need.live.first() {
            Some(group) if need.live.len() == 1 && need.level <= self.groups[*group].level => self.attach(*group, id),
            _ => None,
        };
        let group = match joined {
            Some(group) => group,
            None => {
                let level = self.spill(id);
                self.pointwise(self.stage(id), level, self.shapes.of(id).to_vec())
            }
        };
        self.groups[group].roots.insert(id);
        self.stored_by.insert(id, group);
        group
    }

    /// Lets a group compute `id` too, if it can.
    fn attach(&mut self, group: GroupId, id: NodeId) -> Option<GroupId> {
        if self.groups[group].live.contains(&id) {
            return Some(group);
        }
        let cone = self.cone(group, [id]);
        let fits = match self.groups[group].form {
            Form::Loop => self.fits_loop(group, id, &cone),
            Form::Rows | Form::Scan => self.fits_channels(group, &cone),
            Form::Pointwise(_) | Form::Products(_) | Form::Total(_) => false,
        };
        if !fits {
            return None;
        }
        for node in &cone {
            self.needs[node.index()].live = BTreeSet::from([group]);
        }
        self.groups[group].live.extend(cone);
        Some(group)
    }

    /// The nodes between a group's live values and `tips`, tips included.
    fn cone(&self, group: GroupId, tips: impl IntoIterator<Item = NodeId>) -> BTreeSet<NodeId> {
        let mut cone = BTreeSet::new();
        let mut stack: Vec<NodeId> = tips.into_iter().collect();
        while let Some(id) = stack.pop() {
            let inside = self.groups[group].live.contains(&id) || !self.needs[id.index()].live.contains(&group);
            if inside || !cone.insert(id) {
                continue;
            }
            stack.extend(self.value_operands(id).iter().filter(|r| r.delay == 0).map(|r| r.node));
        }
        cone
    }

    /// Elementwise work on the shape of what it reads costs a loop no exchange.
    fn fits_loop(&self, group: GroupId, id: NodeId, cone: &BTreeSet<NodeId>) -> bool {
        let elements = self.shapes.elements(id);
        cone.iter().all(|node| {
            let op = &self.graph.node(*node).op;
            let plain = op.is_elementwise() || matches!(op, Op::Reshape);
            let reads = self.value_operands(*node);
            let mut live = reads
                .iter()
                .filter(|r| cone.contains(&r.node) || self.groups[group].live.contains(&r.node));
            let alike = live.all(|r| self.shapes.elements(r.node) == elements);
            let kept = !matches!(op, Op::State { .. });
            plain && alike && kept
        })
    }

    fn fits_channels(&self, group: GroupId, cone: &BTreeSet<NodeId>) -> bool {
        let sequential = matches!(self.groups[group].form, Form::Scan);
        let nodes = self.groups[group].live.union(cone).copied().collect();
        let remembers = cone
            .iter()
            .any(|id| matches!(self.graph.node(*id).op, Op::State { .. }));
        (sequential || !remembers) && self.channels(&nodes, sequential).is_some()
    }

    /// The axes of a group that runs by channels, if it can.
    pub fn channels(&self, nodes: &BTreeSet<NodeId>, sequential: bool) -> Option<super::classes::Classes> {
        // Vectors from outside tie axes together that meet nowhere else, unless one is used along two axes.
        let found =
            classes(self.graph, self.shapes, nodes, true).or_else(|| classes(self.graph, self.shapes, nodes, false))?;
        if !sequential {
            return Some(found);
        }
        (self.carried_registers(nodes, &found) <= MAX_CARRIED).then_some(found)
    }

    /// Registers that a lane needs for what it carries from frame to frame.
    fn carried_registers(&self, nodes: &BTreeSet<NodeId>, classes: &super::classes::Classes) -> usize {
        let first_inner = classes.channels.len();
        let each = Lanes::of(classes.inner.iter().product()).each;
        let mut registers = 0;
        for id in nodes {
            let Op::State { window } = self.graph.node(*id).op else {
                continue;
            };
            let is_inner = |axis| classes.axis(*id, axis).is_some_and(|v| v as usize >= first_inner);
            let spread = (0..self.shapes.of(*id).len()).any(is_inner);
            registers += window as usize * if spread { each } else { 1 };
        }
        registers
    }

    /// Stores whatever is live below a node; the level at which everything it needs is in memory.
    fn spill(&mut self, id: NodeId) -> usize {
        let mut level = self.needs[id.index()].level;
        let mut seen = BTreeSet::from([id]);
        let mut stack = vec![id];
        while let Some(at) = stack.pop() {
            for read in self.value_operands(at) {
                let need = self.need(self.stage(id), read);
                if need.live.is_empty() {
                    level = level.max(need.level);
                } else if self.live_group(read.node).is_some() {
                    let group = self.store(read.node);
                    level = level.max(self.groups[group].level + 1);
                } else if seen.insert(read.node) {
                    stack.push(read.node);
                }
            }
        }
        self.needs[id.index()] = Need {
            live: BTreeSet::new(),
            level,
            size: self.needs[id.index()].size,
        };
        self.inline[id.index()] = false;
        self.renew_readers(id);
        level
    }

    /// A reduction, or a contraction that is no product of a constant matrix.
    fn fold(&mut self, id: NodeId) {
        let stage = self.stage(id);
        let need = self.need_of_operands(id);
        self.needs[id.index()] = need.clone();
        let single = need.live.first().copied().filter(|_| need.live.len() == 1);
        if single.is_some_and(|group| need.level <= self.groups[group].level && self.attach_fold(group, id)) {
            return;
        }
        let level = self.spill(id);
        let operand = self.graph.operands(id)[0].node;
        let key = (stage, level, operand);
        if let Some(group) = self.by_operand.get(&key).copied() {
            let nodes = self.groups[group].live.iter().copied().chain([id]).collect();
            if classes(self.graph, self.shapes, &nodes, true).is_some() {
                return self.settle(group, [id]);
            }
        }
        let group = self.group(stage, level, Form::Rows);
        self.by_operand.insert(key, group);
        self.settle(group, [id]);
    }

    /// Lets a scan or a row group fold its own values, as long as channels remain to run in parallel.
    fn attach_fold(&mut self, group: GroupId, id: NodeId) -> bool {
        let mut cone = self.cone(
            group,
            self.value_operands(id).iter().map(|r| r.node).collect::<Vec<_>>(),
        );
        cone.insert(id);
        let sequential = matches!(self.groups[group].form, Form::Scan);
        if !matches!(self.groups[group].form, Form::Scan | Form::Rows) || !self.fits_channels(group, &cone) {
            return false;
        }
        let nodes = self.groups[group].live.union(&cone).copied().collect();
        let channels = self.channels(&nodes, sequential).map_or(0, |c| c.channels.len());
        if sequential && channels == 0 {
            return false;
        }
        self.settle(group, cone);
        true
    }

    /// Makes nodes live in a group.
    fn settle(&mut self, group: GroupId, nodes: impl IntoIterator<Item = NodeId>) {
        for id in nodes {
            self.groups[group].live.insert(id);
            self.needs[id.index()] = Need {
                live: BTreeSet::from([group]),
                level: 0,
                size: 0,
            };
        }
    }

    fn recurrence(&mut self, recurrence: usize) {
        let members: BTreeSet<NodeId> = self.facts.recurrences[recurrence].members.iter().copied().collect();
        let outside: BTreeSet<Read> = members
            .iter()
            .flat_map(|id| self.value_operands(*id))
            .filter(|read| !members.contains(&read.node))
            .collect();
        let mut need = Need::default();
        for read in &outside {
            need.join(&self.need(Stage::Frame, *read));
        }
        let by_channels = self.channels(&members, true).is_some();
        let joined = need
            .live
            .first()
            .copied()
            .filter(|g| by_channels && need.live.len() == 1 && need.level <= self.groups[*g].level);
        if let Some(group) = joined.filter(|g| self.join_scan(*g, &members, &outside)) {
            self.groups[group].recurrences.push(recurrence);
            return self.store_for_look_ahead(&members);
        }
        let mut level = need.level;
        for read in outside {
            level = level.max(self.through_memory(Stage::Frame, read));
        }
        let group = self.group(Stage::Frame, level, if by_channels { Form::Scan } else { Form::Loop });
        self.groups[group].recurrences.push(recurrence);
        self.settle(group, members.iter().copied());
        self.store_for_look_ahead(&members);
    }

    /// Frames to come are read from memory.
    fn store_for_look_ahead(&mut self, members: &BTreeSet<NodeId>) {
        for id in members {
            if self.graph.uses(*id).iter().any(|u| u.delay < 0) {
                self.store(*id);
            }
        }
    }

    fn join_scan(&mut self, group: GroupId, members: &BTreeSet<NodeId>, outside: &BTreeSet<Read>) -> bool {
        if !matches!(self.groups[group].form, Form::Scan) {
            return false;
        }
        let mut nodes = self.cone(group, outside.iter().filter(|r| r.delay == 0).map(|r| r.node));
        nodes.extend(members);
        let fits = {
            let all = self.groups[group].live.union(&nodes).copied().collect();
            self.channels(&all, true).is_some()
        };
        if fits {
            self.settle(group, nodes);
        }
        fits
    }

    /// Has everything live below a read stored; the level from which the read can be computed.
    fn through_memory(&mut self, stage: Stage, read: Read) -> usize {
        let need = self.need(stage, read);
        if need.live.is_empty() {
            return need.level;
        }
        if self.live_group(read.node).is_some() {
            let group = self.store(read.node);
            return self.groups[group].level + 1;
        }
        self.spill(read.node)
    }

    fn product(&mut self, found: ProductMatch) {
        let stage = self.stage(found.result);
        let mut level = 0;
        for part in &found.parts {
            level = level.max(self.vector(stage, part.vector));
        }
        let vectors = found.parts.iter().map(|p| (p.vector, p.negated)).collect();
        let key = (stage, level, vectors);
        let group = match self.by_vectors.get(&key) {
            Some(group) => *group,
            None => {
                let group = self.group(stage, level, Form::Products(Vec::new()));
                self.by_vectors.insert(key, group);
                group
            }
        };
        self.needs[found.result.index()] = Need::stored(level + 1);
        self.stored_by.insert(found.result, group);
        self.groups[group].roots.insert(found.result);
        if let Form::Products(products) = &mut self.groups[group].form {
            products.push(found);
        }
    }

    /// A product summed over frames or sequences: a launch after those that store what it reads, together with others
    /// that are summed over the same.
    fn total(&mut self, id: NodeId) {
        let stage = self.stage(id);
        let mut level = 0;
        for read in self.value_operands(id) {
            let own = self.stage(read.node);
            let from = self.vector(own, read);
            if own == stage {
                level = level.max(from);
            }
        }
        let key = (stage, level, Sums::of(self.graph, self.shapes, id));
        let group = match self.by_sums.get(&key) {
            Some(group) => *group,
            None => {
                let group = self.group(stage, level, Form::Total(Vec::new()));
                self.by_sums.insert(key, group);
                group
            }
        };
        if let Form::Total(totals) = &mut self.groups[group].form {
            totals.push(id);
        }
        self.groups[group].roots.insert(id);
        self.stored_by.insert(id, group);
        self.needs[id.index()] = Need::stored(level + 1);
    }

    /// Prepares the vector of a product: computed where it is read if that is cheap, else stored.
    fn vector(&mut self, stage: Stage, read: Read) -> usize {
        let own = self.stage(read.node);
        if own < stage {
            // Kernels of its own stage, which come before, leave in memory what cannot be computed in place.
            self.vector(own, read);
            return 0;
        }
        let need = self.need(stage, read);
        if need.live.is_empty() && (read.delay != 0 || self.is_cheap(read.node)) {
            return need.level;
        }
        let single = need.live.first().copied().filter(|_| need.live.len() == 1);
        let attached = single
            .filter(|g| need.level <= self.groups[*g].level)
            .and_then(|g| self.attach(g, read.node));
        if attached.is_none() && self.is_cheap(read.node) {
            return self.through_memory(stage, read);
        }
        let group = self.store(read.node);
        self.groups[group].level + 1
    }

    /// Whether the work between a node and what is stored is a few plain instructions.
    fn is_cheap(&self, id: NodeId) -> bool {
        let mut stack = vec![id];
        let mut operations = 0;
        while let Some(id) = stack.pop() {
            let op = &self.graph.node(id).op;
            let there = self.stored_by.contains_key(&id) || self.is_leaf(id) || self.live_group(id).is_some();
            if there {
                continue;
            }
            operations += usize::from(!op.is_view() && !matches!(op, Op::State { .. } | Op::Literal(_)));
            if !is_cheap(op) || operations > 6 {
                return false;
            }
            stack.extend(self.value_operands(id).iter().filter(|r| r.delay == 0).map(|r| r.node));
        }
        true
    }
}

/// Nodes outside the frames whose value a later stage reads, below views: what is computed once and kept. Views of inputs and
/// parameters, and what is made of literals alone, are read in place.
fn crossing(graph: &Graph, stages: &[Stage]) -> BTreeSet<NodeId> {
    let order = graph.topological();
    let mut plain = vec![false; graph.bound()]; // made of literals alone, element by element
    for id in &order {
        let op = &graph.node(*id).op;
        let source = matches!(op, Op::Literal(_) | Op::SizeValue(_) | Op::Iota);
        let computed = matches!(op, Op::Unary(_) | Op::Binary(_) | Op::Where | Op::Clamp) || op.is_view();
        plain[id.index()] = source || computed && graph.operands(*id).iter().all(|r| plain[r.node.index()]);
    }
    let mut wanted = vec![false; graph.bound()]; // read by a higher kind, perhaps through views
    let mut found = BTreeSet::new();
    for id in order.into_iter().rev() {
        let node = graph.node(id);
        let read_above = |u: &crate::ir::Use| {
            let reader = graph.node(u.reader);
            stages[u.reader.index()] > stages[id.index()] || (reader.op.is_view() && wanted[u.reader.index()])
        };
        wanted[id.index()] = stages[id.index()] != Stage::Frame
            && (graph.uses(id).iter().any(read_above) || graph.outputs.iter().any(|o| o.node == id));
        let leaf = matches!(node.op, Op::StaticInput | Op::Param);
        let is_table = |u: &crate::ir::Use| u.port == 0 && matches!(graph.node(u.reader).op, Op::Gather);
        if stages[id.index()] == Stage::Const && !leaf && graph.uses(id).iter().any(is_table) {
            found.insert(id);
        }
        if wanted[id.index()] && !leaf && !node.op.is_view() && !plain[id.index()] {
            found.insert(id);
        }
    }
    found
}
