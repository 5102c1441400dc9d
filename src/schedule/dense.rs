//! Builds loop kernels: recurrences whose units need each other's values within a frame.
//!
//! Values are given to *phases*. A product or a reduction of this frame's values waits until they were exchanged, which is
//! one phase later; anything else is computed as soon as what it reads is there. Views cost nothing: a unit computes what
//! it needs at whatever index, except that another unit's value of this frame has to be exchanged first.

use super::buffers::derived_name;
use super::fuse::Group;
use super::memory::Memory;
use super::point::{Evaluator, Leaves, Point, flatten, summed_labels, through_views, unflatten};
use super::store::Stores;
use crate::ir::{NodeId, Op, Read};
use rnnc_runtime::plan::{BufferId, Index, Kernel, Loop, LoopPart, LoopValue, Phase, Slot, Step};
use rnnc_runtime::scalar::Reduce;
use std::collections::{BTreeMap, BTreeSet};

/// One launch for a recurrence, and the nodes it computes.
pub fn dense(memory: Memory<'_>, stores: &Stores<'_>, group: &Group) -> (Kernel, BTreeSet<NodeId>) {
    let mut build = Build::new(memory, *stores, group);
    build.choose_values();
    build.ready();
    // What is kept may be read elsewhere at another index, which then waits for its exchange.
    while build.keep_across_phases() {
        build.ready();
    }
    build.number_values();
    let phases = build.phases();
    (
        Kernel::Loop(Loop {
            values: build.values,
            phases,
        }),
        build.computed,
    )
}

struct Build<'a> {
    memory: Memory<'a>,
    stores: Stores<'a>,
    group: &'a Group,
    /// Live nodes, operands first.
    order: Vec<NodeId>,
    /// Nodes that are values of the loop.
    kept: BTreeSet<NodeId>,
    /// By live node: the phase in which it can be computed, and what computing it involves.
    ready: BTreeMap<NodeId, Ready>,
    values: Vec<LoopValue>,
    number: BTreeMap<NodeId, usize>,
    computed: BTreeSet<NodeId>,
}

#[derive(Clone, Copy, Default)]
struct Ready {
    phase: usize,
    /// Computing it reads a value of this frame.
    touches: bool,
    /// Computing it takes a product or a reduction.
    folds: bool,
}

impl<'a> Build<'a> {
    fn new(memory: Memory<'a>, stores: Stores<'a>, group: &'a Group) -> Build<'a> {
        let order = memory
            .fusion
            .graph
            .topological()
            .into_iter()
            .filter(|id| group.live.contains(id))
            .collect();
        Build {
            memory,
            stores,
            group,
            order,
            kept: BTreeSet::new(),
            ready: BTreeMap::new(),
            values: Vec::new(),
            number: BTreeMap::new(),
            computed: BTreeSet::new(),
        }
    }

    fn op(&self, id: NodeId) -> &'a Op {
        &self.memory.fusion.graph.node(id).op
    }

    fn operands(&self, id: NodeId) -> Vec<Read> {
        let mut operands = self.memory.fusion.graph.operands(id);
        if matches!(self.op(id), Op::State { .. }) {
            operands.truncate(1);
        }
        operands
    }

    fn is_fold(&self, id: NodeId) -> bool {
        matches!(self.op(id), Op::Contract { .. } | Op::Reduce { .. })
    }

    /// Values of the loop: its states, and whatever a product or a reduction of this frame reads.
    fn choose_values(&mut self) {
        for id in self.order.clone() {
            if matches!(self.op(id), Op::State { .. }) {
                self.kept.insert(id);
            }
            if !self.is_fold(id) {
                continue;
            }
            for read in self.operands(id) {
                let core = self.below_views(read);
                if core.delay == 0 && self.group.live.contains(&core.node) {
                    self.kept.insert(core.node);
                }
            }
        }
    }

    fn below_views(&self, read: Read) -> Read {
        let (graph, shapes) = (self.memory.fusion.graph, self.memory.fusion.shapes);
        let index = vec![Index::int(0); shapes.of(read.node).len()];
        through_views(graph, shapes, &[], &|_| false, read, index).0
    }

    fn ready(&mut self) {
        for id in self.order.clone() {
            let mut ready = Ready {
                folds: self.is_fold(id),
                ..Ready::default()
            };
            for read in self.operands(id) {
                if read.delay != 0 || !self.group.live.contains(&read.node) {
                    continue;
                }
                let operand = self.ready[&read.node];
                let value = self.kept.contains(&read.node);
                let exchanged = if self.is_fold(id) {
                    true
                } else {
                    self.moves_elements(id) && (value || operand.touches)
                };
                ready.phase = ready.phase.max(operand.phase + usize::from(exchanged));
                ready.touches |= value || operand.touches;
                ready.folds |= operand.folds && !value;
            }
            ready.touches &= !self.is_fold(id);
            self.ready.insert(id, ready);
        }
    }

    /// Whether element u of the result is not element u of the operand.
    fn moves_elements(&self, id: NodeId) -> bool {
        match self.op(id) {
            Op::Broadcast { map } => {
                map.iter().enumerate().any(|(i, axis)| i != *axis)
                    || map.len() != self.memory.fusion.shapes.of(id).len()
            }
            Op::Reshape => false,
            op => op.is_view(),
        }
    }

    /// A product that a later phase reads at its own unit is computed once, as early as can be, and kept.
    /// Whether anything more is kept.
    fn keep_across_phases(&mut self) -> bool {
        let before = self.kept.len();
        let tips: Vec<NodeId> = self.kept.iter().chain(&self.group.roots).copied().collect();
        for tip in tips {
            let phase = self.ready[&tip].phase;
            let mut stack = vec![tip];
            let mut seen = BTreeSet::new();
            while let Some(id) = stack.pop() {
                if self.is_fold(id) || self.moves_elements(id) || !seen.insert(id) {
                    continue;
                }
                for read in self.operands(id) {
                    if read.delay != 0 || !self.group.live.contains(&read.node) || self.kept.contains(&read.node) {
                        continue;
                    }
                    let ready = self.ready[&read.node];
                    if ready.folds && ready.phase < phase {
                        self.kept.insert(read.node);
                    } else {
                        stack.push(read.node);
                    }
                }
            }
        }
        self.kept.len() > before
    }

    fn number_values(&mut self) {
        let mut names = BTreeSet::new();
        for id in self.order.clone() {
            if !self.kept.contains(&id) {
                continue;
            }
            let window = match self.op(id) {
                Op::State { window } if self.is_read_delayed(id) => *window as usize,
                _ => 0,
            };
            let stem = derived_name(self.memory.fusion.graph, id);
            let mut name = stem.clone();
            let mut n = 2;
            while !names.insert(name.clone()) {
                name = format!("{stem}_{n}");
                n += 1;
            }
            self.number.insert(id, self.values.len());
            self.values.push(LoopValue {
                name,
                extent: self.memory.fusion.shapes.elements(id),
                window,
                shared: false,
                initial: if window > 0 {
                    self.memory.buffers.initial.get(&id).copied()
                } else {
                    None
                },
            });
        }
    }

    fn is_read_delayed(&self, id: NodeId) -> bool {
        let uses = self.memory.fusion.graph.uses(id);
        uses.iter().any(|u| u.delay > 0 && self.group.live.contains(&u.reader))
    }

    fn phases(&mut self) -> Vec<Phase> {
        let mut work: BTreeMap<(usize, usize), Vec<NodeId>> = BTreeMap::new();
        for id in self.order.clone() {
            if self.kept.contains(&id) || self.group.roots.contains(&id) {
                let units = self.memory.fusion.shapes.elements(id);
                work.entry((self.ready[&id].phase, units)).or_default().push(id);
            }
        }
        let mut phases: Vec<Phase> = Vec::new();
        let mut last = None;
        for ((phase, units), nodes) in work {
            let part = self.part(units, &nodes);
            if last != Some(phase) {
                phases.push(Phase { parts: Vec::new() });
                last = Some(phase);
            }
            if let Some(phase) = phases.last_mut() {
                phase.parts.push(part);
            }
        }
        phases
    }

    fn part(&mut self, units: usize, nodes: &[NodeId]) -> LoopPart {
        let (graph, shapes) = (self.memory.fusion.graph, self.memory.fusion.shapes);
        let (group, number, memory, stores) = (self.group, self.number.clone(), self.memory, self.stores);
        let leaves = InLoop {
            memory,
            group,
            number: &number,
            values: &mut self.values,
            units,
            slots: Vec::new(),
            computed: BTreeSet::new(),
            defining: None,
        };
        let mut evaluator = Evaluator::new(graph, shapes, leaves, vec![units]);
        evaluator.wrap = true;
        let mut sets = Vec::new();
        for id in nodes {
            let own = unflatten(&Index::var(0), shapes.of(*id), &[units]);
            evaluator.leaves.defining = Some(*id);
            let value = evaluator.eval(&Point::now(*id, own));
            evaluator.leaves.defining = None;
            stores.value(evaluator.body_mut(), *id, &Index::var(0), value);
            if let Some(n) = number.get(id) {
                sets.push((*n, value));
            }
        }
        let mut computed = evaluator.nodes();
        let (body, leaves) = evaluator.finish();
        computed.extend(leaves.computed);
        let slots = leaves.slots.into_iter().map(|(_, slot)| slot).collect();
        self.computed.extend(computed);
        LoopPart {
            units,
            slots,
            body,
            sets,
        }
    }
}

/// Leaves of one part of a loop.
struct InLoop<'a, 'v> {
    memory: Memory<'a>,
    group: &'a Group,
    number: &'v BTreeMap<NodeId, usize>,
    values: &'v mut Vec<LoopValue>,
    units: usize,
    slots: Vec<(Point, Slot)>,
    computed: BTreeSet<NodeId>,
    /// The value that is being computed, which therefore is not read.
    defining: Option<NodeId>,
}

impl Leaves for InLoop<'_, '_> {
    fn leaf(&mut self, point: &Point) -> Option<Step> {
        let id = point.read.node;
        if !self.group.live.contains(&id) {
            return self.memory.load(point);
        }
        let is_own = self.defining == Some(id) && point.read.delay == 0 && self.flat(point) == Index::var(0);
        if let Some(value) = self.number.get(&id).filter(|_| !is_own) {
            return Some(self.read(*value, point));
        }
        match self.memory.fusion.graph.node(id).op {
            Op::Contract { .. } | Op::Reduce { .. } => Some(self.slot(point)),
            _ => None,
        }
    }

    fn folded(&self, _: NodeId) -> Vec<Index> {
        Vec::new() // folds are slots
    }

    fn address(&self, node: NodeId, index: Vec<Index>, extents: &[usize]) -> Option<(BufferId, Index)> {
        self.memory.address(node, index, extents)
    }
}

impl InLoop<'_, '_> {
    /// The element that a point is of; a lone unit's own is `Var(0)` even where there is no axis to say so.
    fn flat(&self, point: &Point) -> Index {
        let shapes = self.memory.fusion.shapes;
        if self.units == 1 && shapes.elements(point.read.node) == 1 {
            return Index::var(0);
        }
        flatten(&point.index, shapes.of(point.read.node))
    }

    fn read(&mut self, value: usize, point: &Point) -> Step {
        let index = self.flat(point);
        let own = index == Index::var(0) && self.values[value].extent == self.units;
        self.values[value].shared |= !own;
        Step::Value {
            value,
            delay: usize::try_from(point.read.delay).unwrap_or(0),
            index,
        }
    }

    fn slot(&mut self, point: &Point) -> Step {
        if let Some(i) = self.slots.iter().position(|(p, _)| p == point) {
            return Step::Slot(i);
        }
        self.computed.insert(point.read.node);
        let slot = self.dot(point).unwrap_or_else(|| self.fold(point));
        self.slots.push((point.clone(), slot));
        Step::Slot(self.slots.len() - 1)
    }

    /// A contraction of a constant in memory with a value of the loop.
    fn dot(&mut self, point: &Point) -> Option<Slot> {
        let graph = self.memory.fusion.graph;
        let Op::Contract { labels, .. } = &graph.node(point.read.node).op else {
            return None;
        };
        let operands = graph.operands(point.read.node);
        let (extents, index) = self.folded_index(point);
        let extent = extents.iter().product();
        let all = [self.units, extent];
        for (w, v) in [(0, 1), (1, 0)] {
            let (Some(weight), Some(vector)) = (operands.get(w), operands.get(v)) else {
                continue;
            };
            let at = |i: usize| labels[i].iter().map(&index).collect::<Vec<_>>();
            let constant = (weight.delay == 0)
                .then(|| self.memory.address(weight.node, at(w), &all))
                .flatten();
            let Some((buffer, weight_index)) = constant else {
                continue;
            };
            let stop = |id: NodeId| self.number.contains_key(&id);
            let (read, at) = through_views(graph, self.memory.fusion.shapes, &all, &stop, *vector, at(v));
            let Some(value) = self.number.get(&read.node).copied() else {
                continue;
            };
            self.values[value].shared = true;
            let value_index = flatten(&at, self.memory.fusion.shapes.of(read.node));
            let delay = usize::try_from(read.delay).unwrap_or(0);
            return Some(Slot::Dot {
                extent,
                weight: buffer,
                weight_index,
                value,
                delay,
                value_index,
            });
        }
        None
    }

    /// Extents of what a fold runs over, and the index of each of its labels (or axes), with variable 1 running.
    fn folded_index(&self, point: &Point) -> (Vec<usize>, impl Fn(&u32) -> Index + use<>) {
        let (graph, shapes) = (self.memory.fusion.graph, self.memory.fusion.shapes);
        let operands = graph.operands(point.read.node);
        let (labels, out): (Vec<Vec<u32>>, Vec<u32>) = match &graph.node(point.read.node).op {
            Op::Contract { labels, out } => (labels.clone(), out.clone()),
            Op::Reduce { axes, .. } => {
                let all: Vec<u32> = (0..shapes.of(operands[0].node).len() as u32).collect();
                let out = all.iter().copied().filter(|a| !axes.contains(&(*a as usize))).collect();
                (vec![all], out)
            }
            _ => (Vec::new(), Vec::new()),
        };
        let summed = summed_labels(&labels, &out);
        let extent_of = |label: &u32| {
            labels.iter().zip(&operands).find_map(|(own, read)| {
                own.iter()
                    .position(|l| l == label)
                    .map(|axis| shapes.of(read.node)[axis])
            })
        };
        let extents: Vec<usize> = summed.iter().filter_map(extent_of).collect();
        let running = unflatten(&Index::var(1), &extents, &[self.units, extents.iter().product()]);
        let own = point.index.clone();
        let index = move |label: &u32| match out.iter().position(|l| l == label) {
            Some(axis) => own[axis].clone(),
            None => summed
                .iter()
                .position(|l| l == label)
                .map_or_else(Index::default, |i| running[i].clone()),
        };
        (extents, index)
    }

    fn fold(&mut self, point: &Point) -> Slot {
        let graph = self.memory.fusion.graph;
        let (extents, index) = self.folded_index(point);
        let extent = extents.iter().product();
        let operands = graph.operands(point.read.node);
        let (op, labels): (Reduce, Vec<Vec<u32>>) = match &graph.node(point.read.node).op {
            Op::Contract { labels, .. } => (Reduce::Sum, labels.clone()),
            Op::Reduce { op, .. } => (
                *op,
                vec![(0..self.memory.fusion.shapes.of(operands[0].node).len() as u32).collect()],
            ),
            _ => (Reduce::Sum, Vec::new()),
        };
        let leaves = InFold {
            memory: self.memory,
            number: self.number,
            values: &mut *self.values,
        };
        let mut evaluator = Evaluator::new(graph, self.memory.fusion.shapes, leaves, vec![self.units, extent]);
        evaluator.wrap = true;
        let mut result = None;
        for (read, labels) in operands.iter().zip(&labels) {
            let at = labels.iter().map(&index).collect();
            let value = evaluator.eval(&Point {
                read: *read,
                index: at,
                guards: Vec::new(),
            });
            result = Some(match result {
                None => value,
                Some(other) => evaluator.push(Step::Binary(rnnc_runtime::scalar::Binary::Mul, other, value)),
            });
        }
        let result = result.unwrap_or_else(|| evaluator.push(Step::Const(0.0)));
        Slot::Fold {
            op,
            extent,
            body: evaluator.finish().0,
            result,
        }
    }
}

/// Leaves of the term of a fold: values of the loop are read from all units.
struct InFold<'a, 'v> {
    memory: Memory<'a>,
    number: &'v BTreeMap<NodeId, usize>,
    values: &'v mut Vec<LoopValue>,
}

impl Leaves for InFold<'_, '_> {
    fn leaf(&mut self, point: &Point) -> Option<Step> {
        let Some(value) = self.number.get(&point.read.node).copied() else {
            return self.memory.load(point);
        };
        self.values[value].shared = true;
        let index = flatten(&point.index, self.memory.fusion.shapes.of(point.read.node));
        Some(Step::Value {
            value,
            delay: usize::try_from(point.read.delay).unwrap_or(0),
            index,
        })
    }

    fn folded(&self, _: NodeId) -> Vec<Index> {
        Vec::new()
    }

    fn address(&self, node: NodeId, index: Vec<Index>, extents: &[usize]) -> Option<(BufferId, Index)> {
        self.memory.address(node, index, extents)
    }
}
