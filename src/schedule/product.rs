//! Builds product kernels.

use super::buffers::Buffers;
use super::fuse::Fusion;
use super::matching::{Part, ProductMatch, matrix};
use super::memory::Memory;
use super::point::{Evaluator, Leaves, Point, unflatten};
use super::store::{Stores, scope};
use crate::ir::{Kind, NodeId};
use rnnc_runtime::plan::{Body, BufferId, Index, Kernel, Product, ProductOperand, Reg, Segment, Step, Weight};
use rnnc_runtime::scalar::Unary;
use std::collections::BTreeSet;

/// Leaves of a kernel that computes everything that is not in memory.
pub struct InMemory<'a>(pub Memory<'a>);

impl Leaves for InMemory<'_> {
    fn leaf(&mut self, point: &Point) -> Option<Step> {
        self.0.load(point)
    }

    fn folded(&self, _: NodeId) -> Vec<Index> {
        Vec::new() // folds are never computed in place here
    }

    fn address(&self, node: NodeId, index: Vec<Index>, extents: &[usize]) -> Option<(BufferId, Index)> {
        self.0.address(node, index, extents)
    }
}

/// One launch for products that share their vectors.
pub fn product(memory: Memory<'_>, stores: &Stores<'_>, products: &[ProductMatch]) -> (Kernel, BTreeSet<NodeId>) {
    let mut nodes = BTreeSet::new();
    let mut products = products.to_vec();
    products.sort_by_key(|p| p.result); // as the text has them
    let parts = products.first().map_or(&[][..], |p| &p.parts[..]);
    let kernel = Kernel::Product(Product {
        scope: scope(memory.stage.kind()),
        operands: parts.iter().map(|part| operand(memory, part, &mut nodes)).collect(),
        segments: products
            .iter()
            .map(|found| segment(memory, stores, found, &mut nodes))
            .collect(),
    });
    (kernel, nodes)
}

fn operand(memory: Memory<'_>, part: &Part, nodes: &mut BTreeSet<NodeId>) -> ProductOperand {
    let (graph, shapes) = (memory.fusion.graph, memory.fusion.shapes);
    let extent = shapes.elements(part.vector.node);
    let mut evaluator = Evaluator::new(graph, shapes, InMemory(memory), vec![extent]);
    let index = unflatten(&Index::var(0), shapes.of(part.vector.node), &[extent]);
    let mut result = evaluator.eval(&Point {
        read: part.vector,
        index,
        guards: Vec::new(),
    });
    if part.negated {
        result = evaluator.push(Step::Unary(Unary::Neg, result));
    }
    nodes.extend(evaluator.nodes());
    ProductOperand {
        extent,
        body: evaluator.finish().0,
        result,
    }
}

fn segment(memory: Memory<'_>, stores: &Stores<'_>, found: &ProductMatch, nodes: &mut BTreeSet<NodeId>) -> Segment {
    let rows = memory.fusion.shapes.elements(found.result);
    let weights = found
        .parts
        .iter()
        .filter_map(|part| weight(memory.fusion, memory.buffers, part))
        .collect();
    Segment {
        rows,
        weights,
        body: epilogue(memory, stores, found, nodes),
    }
}

fn epilogue(memory: Memory<'_>, stores: &Stores<'_>, found: &ProductMatch, nodes: &mut BTreeSet<NodeId>) -> Body {
    let rows = memory.fusion.shapes.elements(found.result);
    let (graph, shapes) = (memory.fusion.graph, memory.fusion.shapes);
    let mut evaluator = Evaluator::new(graph, shapes, InMemory(memory), vec![rows]);
    let index = unflatten(&Index::var(0), shapes.of(found.result), &[rows]);
    let mut sum: Option<Reg> = None;
    for part in &found.parts {
        // The slot is the sum of all parts: the first stands for it, the others add nothing more.
        let reg = match sum {
            None => evaluator.push(Step::Slot(0)),
            Some(_) => evaluator.push(Step::Const(0.0)),
        };
        sum = sum.or(Some(reg));
        evaluator.define(Point::now(part.contract, index.clone()), reg);
    }
    let value = evaluator.eval(&Point::now(found.result, index));
    let at = Index::var(0);
    stores.value(evaluator.body_mut(), found.result, &at, value);
    nodes.extend(evaluator.nodes());
    evaluator.finish().0
}

fn weight(fusion: &Fusion<'_>, buffers: &Buffers, part: &Part) -> Option<Weight> {
    let stored = |id: NodeId| buffers.value.contains_key(&id) && fusion.graph.node(id).kind == Kind::Const;
    let found = matrix(fusion.graph, fusion.shapes, &stored, part)?;
    Some(Weight {
        buffer: *buffers.value.get(&found.node)?,
        offset: found.index.base,
        row_stride: found.index.stride_of(0)?,
        k_stride: found.index.stride_of(1)?,
    })
}
