//! Builds channel kernels: pointwise work, row reductions, scans, channel loops and matrix states.

use super::classes::Classes;
use super::fuse::{Form, Group};
use super::memory::Memory;
use super::point::{Evaluator, Leaves, Point, flatten, summed_labels};
use super::store::{Stores, scope};
use crate::ir::{NodeId, Op};
use rnnc_runtime::plan::{BufferId, Carried, Channel, Index, Kernel, Reg, Step};
use std::collections::BTreeSet;

/// Leaves of a group by channels: what lives in it is computed or carried, the rest is in memory.
struct InChannel<'a> {
    memory: Memory<'a>,
    live: &'a BTreeSet<NodeId>,
    classes: &'a Classes,
    /// States carried in registers, in order.
    carried: Vec<NodeId>,
}

impl InChannel<'_> {
    /// Whether a point of something live is that of the channel itself.
    fn is_own(&self, point: &Point) -> bool {
        let node = point.read.node;
        let shape = self.memory.fusion.shapes.of(node);
        let own = |axis: usize| self.classes.axis(node, axis).map(Index::var);
        let mut axes = point.index.iter().enumerate();
        axes.all(|(axis, index)| shape[axis] == 1 || own(axis).as_ref() == Some(index))
    }
}

impl Leaves for InChannel<'_> {
    fn leaf(&mut self, point: &Point) -> Option<Step> {
        if !self.live.contains(&point.read.node) {
            return self.memory.load(point);
        }
        let delay = usize::try_from(point.read.delay).ok().filter(|d| *d > 0)?;
        let state = self.carried.iter().position(|s| *s == point.read.node)?;
        debug_assert!(self.is_own(point), "{point:?} is carried by another channel");
        Some(Step::Carried { state, delay })
    }

    fn folded(&self, node: NodeId) -> Vec<Index> {
        let graph = self.memory.fusion.graph;
        let labels: Vec<usize> = match &graph.node(node).op {
            Op::Contract { labels, out } => summed_labels(labels, out).into_iter().map(|l| l as usize).collect(),
            Op::Reduce { axes, .. } => axes.clone(),
            _ => Vec::new(),
        };
        labels
            .into_iter()
            .map(|l| Index::var(self.classes.folded(node, l).unwrap_or(0)))
            .collect()
    }

    fn address(&self, node: NodeId, index: Vec<Index>, extents: &[usize]) -> Option<(BufferId, Index)> {
        self.memory.address(node, index, extents)
    }
}

/// One launch for a group of rows or scans; `None` if it turned out to write nothing.
pub fn channels(memory: Memory<'_>, stores: &Stores<'_>, group: &Group) -> Option<(Kernel, BTreeSet<NodeId>)> {
    let sequential = matches!(group.form, Form::Scan);
    let fusion = memory.fusion;
    let classes = fusion.channels(&group.live, sequential)?;
    let carried = carried_states(memory, group);
    let leaves = InChannel {
        memory,
        live: &group.live,
        classes: &classes,
        carried: carried.clone(),
    };
    let mut evaluator = Evaluator::new(fusion.graph, fusion.shapes, leaves, classes.extents());
    let own = |id: NodeId| -> Vec<Index> {
        (0..fusion.shapes.of(id).len())
            .map(|axis| Index::var(classes.axis(id, axis).unwrap_or(0)))
            .collect()
    };
    let states = group
        .live
        .iter()
        .filter(|id| matches!(fusion.graph.node(**id).op, Op::State { .. }));
    let written: BTreeSet<NodeId> = states.chain(&group.roots).copied().collect();
    for id in &written {
        let index = own(*id);
        let value = evaluator.eval(&Point::now(*id, index.clone()));
        let at = flatten(&index, fusion.shapes.of(*id));
        stores.value(evaluator.body_mut(), *id, &at, value);
    }
    let carried = carried
        .into_iter()
        .map(|id| {
            let index = own(id);
            let value = evaluator.eval(&Point::now(id, index.clone()));
            carry(memory, id, &flatten(&index, fusion.shapes.of(id)), value)
        })
        .collect();
    let nodes = evaluator.nodes();
    let body = evaluator.finish().0;
    let writes = !body.stores.is_empty();
    let Classes { channels, inner, .. } = classes;
    let kernel = Channel {
        scope: scope(memory.stage.kind()),
        sequential,
        channels,
        inner,
        carried,
        body,
    };
    writes.then_some((Kernel::Channel(kernel), nodes))
}

/// The states of a scan whose earlier frames it reads.
fn carried_states(memory: Memory<'_>, group: &Group) -> Vec<NodeId> {
    let graph = memory.fusion.graph;
    let is_state = |id: &&NodeId| matches!(graph.node(**id).op, Op::State { .. });
    let is_read = |id: &&NodeId| {
        graph
            .uses(**id)
            .iter()
            .any(|u| u.delay > 0 && group.live.contains(&u.reader))
    };
    group.live.iter().filter(is_state).filter(is_read).copied().collect()
}

fn carry(memory: Memory<'_>, id: NodeId, index: &Index, value: Reg) -> Carried {
    let window = match memory.fusion.graph.node(id).op {
        Op::State { window } => window as usize,
        _ => 0,
    };
    Carried {
        name: memory.fusion.graph.label(id),
        window,
        initial: memory.buffers.initial.get(&id).copied().unwrap_or(BufferId(0)),
        index: index.clone(),
        value,
    }
}

/// One launch for elementwise work on one shape.
pub fn pointwise(
    memory: Memory<'_>,
    stores: &Stores<'_>,
    group: &Group,
    repeated: &[NodeId],
) -> Option<(Kernel, BTreeSet<NodeId>)> {
    let Form::Pointwise(shape) = &group.form else {
        return None;
    };
    let fusion = memory.fusion;
    let leaves = super::product::InMemory(memory);
    let mut evaluator = Evaluator::new(fusion.graph, fusion.shapes, leaves, shape.clone());
    let index: Vec<Index> = (0..shape.len()).map(|axis| Index::var(axis as u8)).collect();
    let at = flatten(&index, shape);
    for id in &group.roots {
        let value = evaluator.eval(&Point::now(*id, index.clone()));
        stores.value(evaluator.body_mut(), *id, &at, value);
    }
    for id in repeated {
        let value = evaluator.eval(&Point::now(*id, index.clone()));
        stores.copies(evaluator.body_mut(), *id, &at, value);
    }
    let nodes = evaluator.nodes();
    let body = evaluator.finish().0;
    let writes = !body.stores.is_empty();
    let kernel = Channel {
        scope: scope(memory.stage.kind()),
        sequential: false,
        channels: shape.clone(),
        inner: Vec::new(),
        carried: Vec::new(),
        body,
    };
    writes.then_some((Kernel::Channel(kernel), nodes))
}
