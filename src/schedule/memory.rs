//! How kernels read what is in memory.

use super::buffers::Buffers;
use super::fuse::Fusion;
use super::point::{Point, flatten, through_views};
use super::stage::Stage;
use crate::ir::{Kind, NodeId, Op, Read};
use rnnc_runtime::plan::{BufferId, Frame, Index, Load, Step};

/// Memory as a kernel of some stage and level sees it.
#[derive(Clone, Copy)]
pub struct Memory<'a> {
    /// What was decided.
    pub fusion: &'a Fusion<'a>,
    /// What exists.
    pub buffers: &'a Buffers,
    /// How often the kernel runs.
    pub stage: Stage,
    /// Values of its stage are there if a lower level stores them.
    pub level: usize,
}

impl Memory<'_> {
    /// The step that reads a number or a value in memory; `None` where it has to be computed.
    pub fn load(&self, point: &Point) -> Option<Step> {
        let node = self.fusion.graph.node(point.read.node);
        match &node.op {
            Op::Literal(x) => return Some(Step::Const(*x)),
            Op::SizeValue(size) => return Some(Step::Const(self.fusion.shapes.value(size) as f64)),
            Op::Iota => return Some(Step::Number(point.index[0].clone())),
            _ => {}
        }
        let buffer = if point.read.delay == 0 {
            self.now(point.read.node)?
        } else {
            self.past(point.read.node)?
        };
        let window = (point.read.delay > 0)
            .then(|| self.buffers.initial.get(&point.read.node).copied())
            .flatten();
        let frame = match node.kind {
            Kind::Const => Frame::Const,
            Kind::Static => Frame::Batch,
            Kind::Frame => Frame::At {
                delay: point.read.delay,
                window,
            },
        };
        let index = flatten(&point.index, self.fusion.shapes.of(point.read.node));
        Some(Step::Load(Load {
            buffer,
            frame,
            index,
            guards: point.guards.clone(),
        }))
    }

    /// The buffer that holds this frame's value of a node, if it is there when the kernel runs.
    fn now(&self, id: NodeId) -> Option<BufferId> {
        let there = self.fusion.is_leaf(id) || self.fusion.stage(id) < self.stage || {
            let group = self.fusion.stored_by.get(&id)?;
            self.fusion.groups[*group].level < self.level
        };
        if there {
            self.buffers.value.get(&id).copied()
        } else {
            None
        }
    }

    /// The buffer that holds other frames of a state.
    fn past(&self, state: NodeId) -> Option<BufferId> {
        let holder = self.fusion.input_of(state).unwrap_or(state);
        self.buffers.value.get(&holder).copied()
    }

    /// Where an element of a constant node lies, through views.
    pub fn address(&self, node: NodeId, index: Vec<Index>, extents: &[usize]) -> Option<(BufferId, Index)> {
        let graph = self.fusion.graph;
        let stored = |id: NodeId| self.buffers.value.contains_key(&id);
        let (read, index) = through_views(graph, self.fusion.shapes, extents, &stored, Read::now(node), index);
        let buffer = self.buffers.value.get(&read.node).copied()?;
        let is_const = graph.node(read.node).kind == Kind::Const;
        is_const.then(|| (buffer, flatten(&index, self.fusion.shapes.of(read.node))))
    }
}
