//! Runs a graph: recurrence by recurrence in the order of dependence, each frame by frame.
//!
//! A value that changes with the frame is kept for all frames, because a later recurrence may read ahead of time. That of
//! a state has its window in front: frame t lies at k + t.

use super::bind::{Bound, Sizes, window_extents};
use super::{ReferenceError, Tensor, op};
use crate::ir::{Graph, Kind, NodeId, Op, Output, Read};
use std::collections::BTreeMap;

/// Every output and every final window.
pub(super) fn run(graph: &Graph, sizes: &Sizes, bound: &Bound<'_>) -> Result<BTreeMap<String, Tensor>, ReferenceError> {
    let mut run = Run {
        graph,
        sizes,
        bound,
        values: vec![Vec::new(); graph.bound()],
    };
    let mut place = vec![0; graph.bound()];
    for (i, id) in graph.topological().into_iter().enumerate() {
        place[id.index()] = i;
    }
    for mut members in graph.components(false) {
        run.refuse_reading_ahead(&members)?;
        members.sort_by_key(|id| place[id.index()]);
        run.component(&members);
    }
    let outputs = graph.outputs.iter().map(|o| run.output(o));
    let finals = graph.states().into_iter().filter_map(|id| run.last(id));
    Ok(outputs.chain(finals).collect())
}

struct Run<'a> {
    graph: &'a Graph,
    sizes: &'a Sizes,
    bound: &'a Bound<'a>,
    /// By [`NodeId::index`].
    values: Vec<Vec<f64>>,
}

impl Run<'_> {
    fn refuse_reading_ahead(&self, members: &[NodeId]) -> Result<(), ReferenceError> {
        let reads = members.iter().flat_map(|id| self.graph.operands(*id));
        match reads
            .into_iter()
            .find(|r| r.delay < 0 && members.binary_search(&r.node).is_ok())
        {
            Some(read) => Err(ReferenceError::ReadsAhead {
                name: self.graph.label(read.node),
            }),
            None => Ok(()),
        }
    }

    fn component(&mut self, members: &[NodeId]) {
        for id in members {
            let window = self.window(*id);
            let copies = match self.graph.node(*id).kind {
                Kind::Const => 1,
                Kind::Static => self.sizes.batch,
                Kind::Frame => self.sizes.frames * self.sizes.batch,
            };
            let mut values = self.initial(*id);
            values.resize(window * self.sizes.batch * self.sizes.elements(*id), 0.0);
            values.reserve(copies * self.sizes.elements(*id));
            self.values[id.index()] = values;
        }
        for t in 0..self.sizes.frames {
            for id in members {
                self.frame(*id, t);
            }
        }
    }

    /// How many frames lie in front of frame 0.
    fn window(&self, id: NodeId) -> usize {
        match self.graph.node(id).op {
            Op::State { window } => window as usize,
            _ => 0,
        }
    }

    /// The window of a state: what was given, else its default, the same in each frame; empty if it is 0.
    fn initial(&self, id: NodeId) -> Vec<f64> {
        if let Some(given) = self.bound.windows.get(&id) {
            return given.data.clone();
        }
        let (Op::State { window }, Some(read)) = (&self.graph.node(id).op, self.graph.operands(id).get(1).copied())
        else {
            return Vec::new();
        };
        let frame: Vec<f64> = (0..self.sizes.batch)
            .flat_map(|b| self.read(read, 0, b).into_owned())
            .collect();
        frame.repeat(*window as usize)
    }

    /// Appends the value of frame t, for each sequence; what exists once is appended at frame 0.
    fn frame(&mut self, id: NodeId, t: usize) {
        let node = self.graph.node(id);
        let sequences = match node.kind {
            Kind::Const if t == 0 => 1,
            Kind::Static if t == 0 => self.sizes.batch,
            Kind::Const | Kind::Static => 0,
            Kind::Frame => self.sizes.batch,
        };
        let operands = self.graph.operands(id);
        for b in 0..sequences {
            let value = match (&node.op, self.bound.values.get(&id)) {
                (Op::Total { .. }, _) => self.total(id, b),
                (_, Some(tensor)) => {
                    let n = self.sizes.elements(id);
                    tensor.data[(t * self.sizes.batch + b) * n..][..n].to_vec()
                }
                (Op::State { .. }, None) => self.read(operands[0], t, b).to_vec(),
                _ => self.apply(id, t, b),
            };
            self.values[id.index()].extend(value);
        }
    }

    fn apply(&self, id: NodeId, t: usize, b: usize) -> Vec<f64> {
        let operands = self.graph.operands(id);
        let read = |r: &Read| op::Operand {
            shape: self.sizes.shape(r.node),
            data: self.read(*r, t, b),
        };
        let operands: Vec<_> = operands.iter().map(read).collect();
        op::apply(&self.graph.node(id).op, self.sizes, self.sizes.shape(id), &operands)
    }

    /// The sum over frames, and over sequences where the result exists once, of what the operands come to.
    fn total(&self, id: NodeId, b: usize) -> Vec<f64> {
        let of = self
            .graph
            .operands(id)
            .iter()
            .map(|r| self.graph.node(r.node).kind)
            .max();
        let frames = if of == Some(Kind::Frame) { self.sizes.frames } else { 1 };
        let sequences = match self.graph.node(id).kind {
            Kind::Const => 0..self.sizes.batch,
            _ => b..b + 1,
        };
        let mut sum = vec![0.0; self.sizes.elements(id)];
        for (t, b) in (0..frames).flat_map(|t| sequences.clone().map(move |b| (t, b))) {
            sum.iter_mut().zip(self.apply(id, t, b)).for_each(|(s, v)| *s += v);
        }
        sum
    }

    /// What a reader at frame t of sequence b finds: zero past the last frame.
    fn read(&self, read: Read, t: usize, b: usize) -> std::borrow::Cow<'_, [f64]> {
        let n = self.sizes.elements(read.node);
        let place = match self.graph.node(read.node).kind {
            Kind::Const => 0,
            Kind::Static => b,
            Kind::Frame => {
                let frame = (self.window(read.node) + t) as i64 - i64::from(read.delay);
                frame as usize * self.sizes.batch + b
            }
        };
        match self.values[read.node.index()].get(place * n..(place + 1) * n) {
            Some(found) => found.into(),
            None => vec![0.0; n].into(),
        }
    }

    /// `y.NAME`; what exists once is repeated, except against time.
    fn output(&self, output: &Output) -> (String, Tensor) {
        let (mut frames, mut batch) = (self.sizes.frames, self.sizes.batch);
        let kind = match self.graph.against_time {
            true => self.graph.node(output.node).kind,
            false => Kind::Frame,
        };
        let mut shape = match kind {
            Kind::Const => vec![],
            Kind::Static => vec![batch],
            Kind::Frame => vec![frames, batch],
        };
        if kind < Kind::Frame {
            frames = 1;
        }
        if kind < Kind::Static {
            batch = 1;
        }
        shape.extend(self.sizes.shape(output.node));
        let read = Read::now(output.node);
        let places = (0..frames).flat_map(|t| (0..batch).map(move |b| (t, b)));
        let data = places.flat_map(|(t, b)| self.read(read, t, b).into_owned()).collect();
        (format!("y.{}", output.name), Tensor { shape, data })
    }

    /// `sT.NAME`: the last k frames of window and frames together.
    fn last(&self, id: NodeId) -> Option<(String, Tensor)> {
        let Op::State { window: window @ 1.. } = self.graph.node(id).op else {
            return None;
        };
        let mut shape = window_extents(window, self.sizes.batch);
        shape.extend(self.sizes.shape(id));
        let all = &self.values[id.index()];
        let data = all[all.len() - shape.iter().product::<usize>()..].to_vec();
        Some((format!("sT.{}", self.graph.label(id)), Tensor { shape, data }))
    }
}
