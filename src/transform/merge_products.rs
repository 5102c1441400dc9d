//! Makes one product of several where that leaves less to do.
//!
//! Products of adjacent slices of one weight with the same operand, whose results are joined in order, are one product
//! with the longer slice. The sum of two products of constant weights with the same operand is the product of the summed
//! weights, which are summed once per parameter change. Both read the same operand of the same frame, so nothing moves into
//! a recurrence or out of one. (Products that only share an operand stay apart here: a kernel may hold several.)

use super::rebuild::Rebuild;
use crate::diagnostics::Span;
use crate::ir::op::Binary;
use crate::ir::{Graph, Kind, NodeId, Op, Read, Size, Type};
use std::collections::BTreeSet;

/// Returns how many products went.
pub fn run(graph: &mut Graph) -> usize {
    let mut merge = Merge {
        graph,
        outputs: graph.outputs.iter().map(|o| o.node).collect(),
        rebuild: Rebuild::new(graph, |_| true),
    };
    let mut merged = 0;
    for id in graph.topological() {
        let changes = match graph.node(id).op {
            Op::Concat { axis } => merge.join(id, axis),
            Op::Binary(Binary::Add | Binary::Sub) => merge.add(id),
            _ => 0,
        };
        if changes == 0 {
            merge.rebuild.copy(id);
        }
        merged += changes;
    }
    if merged > 0 {
        *graph = merge.rebuild.finish();
    }
    merged
}

/// A product with only one reader, seen from one of its operands.
struct Factor<'g> {
    op: &'g Op,
    /// Which operand.
    port: usize,
    /// That operand.
    own: Read,
    /// The other one.
    common: Read,
}

/// A stretch of joined products of adjacent slices.
struct Stretch<'g> {
    factor: Factor<'g>,
    /// What is sliced, along which axis, from where to where.
    base: Read,
    axis: usize,
    lo: Size,
    hi: Size,
}

impl Stretch<'_> {
    fn is_followed_by(&self, next: &Stretch<'_>) -> bool {
        let (a, b) = (&self.factor, &next.factor);
        a.op == b.op
            && (a.port, a.common) == (b.port, b.common)
            && (self.base, self.axis, &self.hi) == (next.base, next.axis, &next.lo)
    }
}

/// The old graph and the new one in the making.
struct Merge<'g> {
    graph: &'g Graph,
    outputs: BTreeSet<NodeId>,
    rebuild: Rebuild<'g>,
}

impl<'g> Merge<'g> {
    /// The product under `read`, from the operand `port`.
    fn factor(&self, read: Read, port: usize) -> Option<Factor<'g>> {
        let op = &self.graph.node(read.node).op;
        let used_once = || !self.outputs.contains(&read.node) && self.graph.uses(read.node).len() == 1;
        if read.delay != 0 || !matches!(op, Op::Contract { .. }) || !used_once() {
            return None;
        }
        match (port, self.graph.operands(read.node).as_slice()) {
            (0, [own, common]) | (1, [common, own]) => Some(Factor {
                op,
                port,
                own: *own,
                common: *common,
            }),
            _ => None,
        }
    }

    /// `A @ x + B @ x` is `(A + B) @ x`.
    fn add(&mut self, id: NodeId) -> usize {
        let (node, operands) = (self.graph.node(id), self.graph.operands(id));
        let own = |f: &Factor<'g>| self.graph.node(f.own.node);
        let pair = (0..2).find_map(|port| {
            let (a, b) = (self.factor(operands[0], port)?, self.factor(operands[1], port)?);
            let constant = own(&a).kind == Kind::Const && own(&b).kind == Kind::Const;
            let alike = a.op == b.op && a.common == b.common && own(&a).ty == own(&b).ty;
            (constant && alike).then_some((a, b))
        });
        let Some((a, b)) = pair else { return 0 };
        let ty = own(&a).ty.clone();
        let weights = [self.rebuild.read(a.own), self.rebuild.read(b.own)];
        let weight = self.rebuild.add(node.op.clone(), ty, node.span, &weights);
        let product = self.product(&a, node.ty.clone(), node.span, weight);
        self.rebuild.put(id, product);
        1
    }

    /// The product of a new weight with the operand of an old one.
    fn product(&mut self, factor: &Factor<'g>, ty: Type, span: Span, weight: NodeId) -> Read {
        let mut operands = [Read::now(weight), self.rebuild.read(factor.common)];
        if factor.port == 1 {
            operands.reverse();
        }
        Read::now(self.rebuild.add(factor.op.clone(), ty, span, &operands))
    }

    /// `concat(slice(W) @ x, slice(W) @ x)` is `slice(W) @ x`.
    fn join(&mut self, id: NodeId, axis: usize) -> usize {
        let node = self.graph.node(id);
        let mut joined: Vec<(Read, Option<Stretch<'g>>)> = Vec::new();
        let mut merged = 0;
        for read in self.graph.operands(id) {
            let next = self.stretch(read, axis);
            match (joined.last_mut(), &next) {
                (Some((_, Some(last))), Some(next)) if last.is_followed_by(next) => {
                    last.hi = next.hi.clone();
                    merged += 1;
                }
                _ => joined.push((read, next)),
            }
        }
        if merged > 0 {
            let operands: Vec<Read> = joined
                .iter()
                .map(|(read, s)| self.lengthen(*read, s.as_ref(), axis))
                .collect();
            let whole = match operands.as_slice() {
                [one] => *one,
                _ => Read::now(self.rebuild.add(node.op.clone(), node.ty.clone(), node.span, &operands)),
            };
            self.rebuild.put(id, whole);
        }
        merged
    }

    /// The product under an operand of a concat, if the joined axis is that of a slice, and of nothing else in it.
    fn stretch(&self, read: Read, axis: usize) -> Option<Stretch<'g>> {
        (0..2).find_map(|port| {
            let factor = self.factor(read, port)?;
            let slice = factor.own.node;
            let (Op::Contract { labels, out }, Op::Slice { axis: sliced, lo, hi }) =
                (factor.op, &self.graph.node(slice).op)
            else {
                return None;
            };
            let places = labels.iter().flatten().filter(|l| **l == out[axis]).count();
            (places == 1 && labels[port][*sliced] == out[axis]).then(|| Stretch {
                factor,
                base: self.graph.operands(slice)[0],
                axis: *sliced,
                lo: lo.clone(),
                hi: hi.clone(),
            })
        })
    }

    /// The product of a whole stretch; what was joined, where that is all there is to it.
    fn lengthen(&mut self, read: Read, stretch: Option<&Stretch<'g>>, axis: usize) -> Read {
        let longer = stretch.and_then(|s| {
            let slice = self.graph.node(s.factor.own.node);
            let extent = s.hi.sub(&s.lo).filter(|extent| slice.ty.axes[s.axis] != *extent)?;
            Some((s, slice, extent))
        });
        let Some((stretch, slice, extent)) = longer else {
            return self.rebuild.read(read);
        };
        let product = self.graph.node(read.node);
        let (mut weight, mut result) = (slice.ty.clone(), product.ty.clone());
        weight.axes[stretch.axis] = extent.clone();
        result.axes[axis] = extent;
        let op = Op::Slice {
            axis: stretch.axis,
            lo: stretch.lo.clone(),
            hi: stretch.hi.clone(),
        };
        let base = self.rebuild.read(stretch.base);
        let weight = self.rebuild.add(op, weight, slice.span, &[base]);
        self.product(&stretch.factor, result, product.span, weight)
    }
}
