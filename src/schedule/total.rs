//! Builds kernels of products that are summed over frames or sequences.
//!
//! The axes of the result fall into three classes, by which factor has them: both (groups), the left one (rows), the right
//! one (columns). Axes of both factors that the result lacks are summed over within each frame. Totals of one left factor are
//! parts of one kernel.

use super::memory::Memory;
use super::point::{Evaluator, Point, flatten, unflatten};
use super::product::InMemory;
use super::shapes::Shapes;
use super::store::{Stores, scope};
use crate::ir::{Graph, Kind, NodeId, Op, Read};
use rnnc_runtime::plan::{Body, Index, Kernel, ProductOperand, Step, Total, TotalPart};
use std::collections::{BTreeMap, BTreeSet};

/// What totals must have in common to share a launch.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Sums {
    over: Kind,
    of: Kind,
    groups: usize,
    inner: usize,
}

impl Sums {
    /// Those of a total.
    pub fn of(graph: &Graph, shapes: &Shapes, id: NodeId) -> Sums {
        let form = Form::of(graph, shapes, id);
        Sums {
            over: over(graph, id),
            of: graph.node(id).kind,
            groups: form.extent(&form.groups),
            inner: form.extent(&form.inner),
        }
    }
}

/// What totals of a launch must have in common to be parts of one with one left factor.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Left {
    read: Option<Read>,
    /// The class of each axis of the left factor, with its place within the class.
    axes: Vec<(Class, usize)>,
    /// What is summed over within a frame; the left factor may repeat along some of it.
    inner: Vec<usize>,
}

/// What becomes of an axis of the left factor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    Group,
    Row,
    Inner,
}

impl Left {
    fn of(graph: &Graph, shapes: &Shapes, id: NodeId) -> Left {
        let form = Form::of(graph, shapes, id);
        let classes = [
            (Class::Group, &form.groups),
            (Class::Row, &form.own[0]),
            (Class::Inner, &form.inner),
        ];
        let class = |label: &u32| {
            let place = |(class, labels): &(Class, &Vec<u32>)| Some((*class, labels.iter().position(|l| l == label)?));
            classes.iter().find_map(place)
        };
        let axes = form.labels.first().into_iter().flatten().filter_map(class).collect();
        Left {
            read: graph.operands(id).first().copied(),
            axes,
            inner: form.shape(&form.inner),
        }
    }
}

/// How often what is summed exists.
fn over(graph: &Graph, id: NodeId) -> Kind {
    let of = |read: &Read| match read.delay {
        0 => graph.node(read.node).kind,
        _ => Kind::Frame,
    };
    graph.operands(id).iter().map(of).max().unwrap_or(Kind::Const)
}

/// One launch for totals that are summed over the same.
pub fn totals(memory: Memory<'_>, stores: &Stores<'_>, ids: &[NodeId]) -> (Kernel, BTreeSet<NodeId>) {
    let (graph, shapes) = (memory.fusion.graph, memory.fusion.shapes);
    let mut lefts: Vec<(Left, Vec<NodeId>)> = Vec::new();
    for id in ids {
        let left = Left::of(graph, shapes, *id);
        match lefts.iter_mut().find(|(known, _)| *known == left) {
            Some((_, ids)) => ids.push(*id),
            None => lefts.push((left, vec![*id])),
        }
    }
    let mut nodes: BTreeSet<NodeId> = ids.iter().copied().collect();
    let kernel = lefts
        .iter()
        .map(|(_, ids)| total(memory, stores, ids, &mut nodes))
        .collect();
    (Kernel::Total(kernel), nodes)
}

/// Totals of one left factor.
fn total(memory: Memory<'_>, stores: &Stores<'_>, ids: &[NodeId], nodes: &mut BTreeSet<NodeId>) -> Total {
    let (graph, shapes) = (memory.fusion.graph, memory.fusion.shapes);
    let id = ids[0]; // there is one, of which the left factor is
    let form = Form::of(graph, shapes, id);
    let left = factor(memory, &form, graph.operands(id).first(), 0, nodes);
    let mut part = |id: &NodeId| {
        let form = Form::of(graph, shapes, *id);
        TotalPart {
            columns: form.extent(&form.own[1]),
            right: factor(memory, &form, graph.operands(*id).get(1), 1, nodes),
            body: epilogue(memory, stores, &form, *id),
        }
    };
    Total {
        parts: ids.iter().map(&mut part).collect(),
        over: scope(over(graph, id)),
        scope: scope(graph.node(id).kind),
        groups: form.extent(&form.groups),
        rows: form.extent(&form.own[0]),
        inner: form.extent(&form.inner),
        left,
    }
}

/// The labels of a total by class.
struct Form {
    labels: Vec<Vec<u32>>,
    out: Vec<u32>,
    extents: BTreeMap<u32, usize>,
    groups: Vec<u32>,
    /// Of the left and of the right factor alone.
    own: [Vec<u32>; 2],
    inner: Vec<u32>,
}

impl Form {
    fn of(graph: &Graph, shapes: &Shapes, id: NodeId) -> Form {
        let (labels, out) = match &graph.node(id).op {
            Op::Total { labels, out } => (labels.clone(), out.clone()),
            _ => (Vec::new(), Vec::new()),
        };
        let mut extents = BTreeMap::new();
        for (read, labels) in graph.operands(id).iter().zip(&labels) {
            extents.extend(labels.iter().copied().zip(shapes.of(read.node).iter().copied()));
        }
        let has = |operand: usize, label: &u32| labels.get(operand).is_some_and(|l| l.contains(label));
        let pick = |wanted: &dyn Fn(&u32) -> bool| out.iter().copied().filter(|l| wanted(l)).collect::<Vec<u32>>();
        let groups = pick(&|l| has(0, l) && has(1, l));
        let own = [pick(&|l| has(0, l) && !has(1, l)), pick(&|l| has(1, l) && !has(0, l))];
        let inner = extents.keys().copied().filter(|l| !out.contains(l)).collect();
        Form {
            labels,
            out,
            extents,
            groups,
            own,
            inner,
        }
    }

    fn extent(&self, labels: &[u32]) -> usize {
        self.shape(labels).iter().product()
    }

    fn shape(&self, labels: &[u32]) -> Vec<usize> {
        labels.iter().map(|l| self.extents[l]).collect()
    }

    /// For each of `labels`, its index where `Var(0)` runs over all of them, the last one fastest.
    fn indices(&self, labels: &[u32]) -> BTreeMap<u32, Index> {
        let shape = self.shape(labels);
        let index = unflatten(&Index::var(0), &shape, &[shape.iter().product()]);
        labels.iter().copied().zip(index).collect()
    }
}

/// A factor of every frame: its groups, then its rows or columns, then what is summed over.
fn factor(
    memory: Memory<'_>,
    form: &Form,
    read: Option<&Read>,
    which: usize,
    nodes: &mut BTreeSet<NodeId>,
) -> ProductOperand {
    let (graph, shapes) = (memory.fusion.graph, memory.fusion.shapes);
    let all = [&form.groups[..], &form.own[which], &form.inner].concat();
    let extent = form.extent(&all);
    let mut evaluator = Evaluator::new(graph, shapes, InMemory(memory), vec![extent]);
    let result = match read {
        Some(read) => {
            let indices = form.indices(&all);
            let index = form.labels[which].iter().map(|l| indices[l].clone()).collect();
            let point = Point {
                read: *read,
                index,
                guards: Vec::new(),
            };
            evaluator.eval(&point)
        }
        None => evaluator.push(Step::Const(1.0)),
    };
    nodes.extend(evaluator.nodes());
    ProductOperand {
        extent,
        body: evaluator.finish().0,
        result,
    }
}

/// Stores the sum.
fn epilogue(memory: Memory<'_>, stores: &Stores<'_>, form: &Form, id: NodeId) -> Body {
    let shapes = memory.fusion.shapes;
    let all = [&form.groups[..], &form.own[0], &form.own[1]].concat();
    let mut evaluator = Evaluator::new(memory.fusion.graph, shapes, InMemory(memory), vec![form.extent(&all)]);
    let sum = evaluator.push(Step::Slot(0));
    let indices = form.indices(&all);
    let index: Vec<Index> = form.out.iter().map(|l| indices[l].clone()).collect();
    let at = flatten(&index, shapes.of(id));
    stores.value(evaluator.body_mut(), id, &at, sum);
    evaluator.finish().0
}
