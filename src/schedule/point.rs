//! Evaluation at a point: a node's value at symbolic indices, as steps of a body.
//!
//! Views become index arithmetic, elementwise operations become steps, and whatever the kernel does not compute itself is
//! read through [`Leaves`]. The same value at the same indices is computed once. Works with a stack of its own, so that
//! the depth of the graph does not matter.

use super::shapes::{Shapes, strides};
use crate::ir::{Graph, NodeId, Op, Read};
use rnnc_runtime::plan::{Body, BufferId, Guard, Index, Reg, Step};
use rnnc_runtime::scalar::{Binary, Reduce};
use std::collections::{BTreeSet, HashMap};

/// A value at a point.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Point {
    /// Whose, and of which frame.
    pub read: Read,
    /// One index an axis.
    pub index: Vec<Index>,
    /// Outside of these the value is not needed and must not be loaded.
    pub guards: Vec<Guard>,
}

impl Point {
    /// This frame's value of a node.
    pub fn now(node: NodeId, index: Vec<Index>) -> Point {
        Point {
            read: Read::now(node),
            index,
            guards: Vec::new(),
        }
    }
}

/// What a kernel reads instead of computing.
pub trait Leaves {
    /// The step that reads this value, or `None` where it is computed in place.
    fn leaf(&mut self, point: &Point) -> Option<Step>;

    /// For a contraction or reduction computed in place: the index of each contracted label (in order of the operands'
    /// labels) or reduced axis.
    fn folded(&self, node: NodeId) -> Vec<Index>;

    /// Where an element of a constant node lies, through views (for gathers).
    fn address(&self, node: NodeId, index: Vec<Index>, extents: &[usize]) -> Option<(BufferId, Index)>;
}

/// Builds one body.
pub struct Evaluator<'a, L> {
    graph: &'a Graph,
    shapes: &'a Shapes,
    /// The kernel's leaves.
    pub leaves: L,
    /// Extents of the variables.
    pub extents: Vec<usize>,
    /// Whether indices out of an operand's range are wrapped into it instead of guarded (for leaves without guards).
    pub wrap: bool,
    body: Body,
    memo: HashMap<Point, Reg>,
    constants: HashMap<u64, Reg>,
    computed: BTreeSet<NodeId>,
}

/// How operands become a value.
enum Combine {
    Same,
    Unary(crate::ir::op::Unary),
    Binary(Binary),
    Select,
    Clamp,
    Masked(Vec<Guard>),
    Concat(Vec<Guard>),
    Product(usize),
    Fold(Reduce),
    OneHot(Index),
    Gather {
        table: BufferId,
        rows: usize,
        stride: usize,
        index: Index,
    },
}

impl<'a, L: Leaves> Evaluator<'a, L> {
    /// An empty body over variables of these extents.
    pub fn new(graph: &'a Graph, shapes: &'a Shapes, leaves: L, extents: Vec<usize>) -> Self {
        Evaluator {
            graph,
            shapes,
            leaves,
            extents,
            wrap: false,
            body: Body::default(),
            memo: HashMap::new(),
            constants: HashMap::new(),
            computed: BTreeSet::new(),
        }
    }

    /// The body with everything evaluated so far, and the leaves.
    pub fn finish(self) -> (Body, L) {
        (self.body, self.leaves)
    }

    /// Every node that was computed here, as opposed to read.
    pub fn nodes(&self) -> BTreeSet<NodeId> {
        self.computed.clone()
    }

    /// The body so far, to add stores to.
    pub fn body_mut(&mut self) -> &mut Body {
        &mut self.body
    }

    /// Adds a step.
    pub fn push(&mut self, step: Step) -> Reg {
        if let Step::Const(x) = step {
            let next = Reg(self.body.steps.len() as u32);
            let reg = *self.constants.entry(x.to_bits()).or_insert(next);
            if reg != next {
                return reg;
            }
        }
        self.body.steps.push(step);
        Reg(self.body.steps.len() as u32 - 1)
    }

    /// Lets a point have a value that is already in a register.
    pub fn define(&mut self, point: Point, reg: Reg) {
        self.computed.insert(point.read.node);
        self.memo.insert(point, reg);
    }

    /// The register that holds a value.
    pub fn eval(&mut self, point: &Point) -> Reg {
        let mut stack = vec![point.clone()];
        while let Some(top) = stack.last().cloned() {
            if self.memo.contains_key(&top) {
                stack.pop();
                continue;
            }
            if let Some(step) = self.leaves.leaf(&top) {
                let reg = self.push(step);
                self.settle(&top, reg);
                stack.pop();
                continue;
            }
            let (needs, combine) = self.expand(&top);
            let missing: Vec<Point> = needs.iter().filter(|p| !self.memo.contains_key(p)).cloned().collect();
            if missing.is_empty() {
                let regs: Vec<Reg> = needs.iter().map(|p| self.memo[p]).collect();
                let reg = self.combine(&combine, &regs);
                self.computed.insert(top.read.node);
                self.settle(&top, reg);
                stack.pop();
            } else {
                stack.extend(missing.into_iter().rev());
            }
        }
        self.memo[point]
    }

    fn settle(&mut self, point: &Point, reg: Reg) {
        self.memo.insert(point.clone(), reg);
        let Some(name) = &self.graph.node(point.read.node).name else {
            return;
        };
        if self.body.names.iter().any(|(r, _)| *r == reg) {
            return;
        }
        let name = match point.read.delay {
            0 => name.to_string(),
            1 => format!("{name}_prev"),
            d if d > 1 => format!("{name}_prev{d}"),
            d => format!("{name}_next{}", -d),
        };
        self.body.names.push((reg, name));
    }

    /// What a value needs, where it is computed in place.
    fn expand(&self, point: &Point) -> (Vec<Point>, Combine) {
        let id = point.read.node;
        let operands = self.graph.operands(id);
        let same = |i: usize| Point {
            read: operands[i],
            ..point.clone()
        };
        let moved = |index: Vec<Index>| Point {
            read: operands[0],
            index,
            guards: point.guards.clone(),
        };
        match &self.graph.node(id).op {
            Op::Unary(f) => (vec![same(0)], Combine::Unary(*f)),
            Op::Binary(f) => (vec![same(0), same(1)], Combine::Binary(*f)),
            Op::Where => (vec![same(0), same(1), same(2)], Combine::Select),
            Op::Clamp => (vec![same(0), same(1), same(2)], Combine::Clamp),
            Op::State { .. } | Op::IndexToReal => (vec![same(0)], Combine::Same),
            Op::Broadcast { map } => (
                vec![moved(map.iter().map(|axis| point.index[*axis].clone()).collect())],
                Combine::Same,
            ),
            Op::Slice { axis, lo, .. } => {
                let mut index = point.index.clone();
                index[*axis] = index[*axis].plus(self.shapes.value(lo));
                (vec![moved(index)], Combine::Same)
            }
            Op::Reshape => (vec![moved(self.reshaped(point, operands[0].node))], Combine::Same),
            Op::Shift { axis, by } => self.shifted(point, operands[0], *axis, *by),
            Op::Concat { axis } => self.concatenated(point, &operands, *axis),
            Op::Contract { labels, out } | Op::Total { labels, out } => self.contracted(point, &operands, labels, out),
            Op::Reduce { op, axes } => {
                let mut index = point.index.clone();
                for (axis, folded) in axes.iter().zip(self.leaves.folded(id)) {
                    index.insert(*axis, folded);
                }
                (vec![moved(index)], Combine::Fold(*op))
            }
            Op::OneHot => (vec![moved(Vec::new())], Combine::OneHot(point.index[0].clone())),
            Op::Gather => self.gathered(point, &operands),
            // Leaves of the graph and numbers are leaves of every kernel.
            Op::Input | Op::StaticInput | Op::Param | Op::Literal(_) | Op::SizeValue(_) | Op::Iota => {
                (Vec::new(), Combine::Same)
            }
        }
    }

    fn gathered(&self, point: &Point, operands: &[Read]) -> (Vec<Point>, Combine) {
        let table = self.shapes.of(operands[0].node);
        let row = |r: i64| -> Vec<Index> {
            let within = point
                .index
                .iter()
                .zip(&table[1..])
                .map(|(i, n)| wrapped(i, *n as i64, &self.extents));
            std::iter::once(Index::int(r)).chain(within).collect()
        };
        let at = |r: i64| self.leaves.address(operands[0].node, row(r), &self.extents);
        let needs = vec![Point {
            read: operands[1],
            index: Vec::new(),
            guards: point.guards.clone(),
        }];
        let combine = match (at(0), at(1)) {
            (Some((table_buffer, first)), Some((_, second))) => Combine::Gather {
                table: table_buffer,
                rows: table[0],
                stride: (second.base - first.base).unsigned_abs() as usize,
                index: first,
            },
            _ => Combine::Same, // `fuse` stores every table of a gather, so there is always an address
        };
        (needs, combine)
    }

    fn reshaped(&self, point: &Point, operand: NodeId) -> Vec<Index> {
        let flat = flatten(&point.index, self.shapes.of(point.read.node));
        unflatten(&flat, self.shapes.of(operand), &self.extents)
    }

    fn shifted(&self, point: &Point, operand: Read, axis: usize, by: i64) -> (Vec<Point>, Combine) {
        let n = self.shapes.of(operand.node)[axis] as i64;
        let guard = Guard {
            index: point.index[axis].plus(-by),
            lo: 0,
            hi: n,
        };
        let inner = self.guarded(point, operand, axis, &guard);
        (vec![inner], Combine::Masked(vec![guard]))
    }

    fn concatenated(&self, point: &Point, operands: &[Read], axis: usize) -> (Vec<Point>, Combine) {
        let mut at = 0;
        let mut needs = Vec::new();
        let mut guards = Vec::new();
        for operand in operands {
            let n = self.shapes.of(operand.node)[axis] as i64;
            let guard = Guard {
                index: point.index[axis].plus(-at),
                lo: 0,
                hi: n,
            };
            needs.push(self.guarded(point, *operand, axis, &guard));
            guards.push(guard);
            at += n;
        }
        (needs, Combine::Concat(guards))
    }

    /// The operand at the guarded index, which may lie outside its axis.
    fn guarded(&self, point: &Point, operand: Read, axis: usize, guard: &Guard) -> Point {
        let mut index = point.index.clone();
        let mut guards = point.guards.clone();
        if self.wrap {
            index[axis] = wrapped(&guard.index, guard.hi, &self.extents);
        } else {
            index[axis] = guard.index.clone();
            guards.push(guard.clone());
        }
        Point {
            read: operand,
            index,
            guards,
        }
    }

    fn contracted(&self, point: &Point, operands: &[Read], labels: &[Vec<u32>], out: &[u32]) -> (Vec<Point>, Combine) {
        let folded = summed_labels(labels, out);
        let at = self.leaves.folded(point.read.node);
        let index_of = |label: &u32| match out.iter().position(|l| l == label) {
            Some(axis) => point.index[axis].clone(),
            None => folded
                .iter()
                .position(|l| l == label)
                .map_or_else(Index::default, |i| at[i].clone()),
        };
        let needs = operands
            .iter()
            .zip(labels)
            .map(|(read, labels)| Point {
                read: *read,
                index: labels.iter().map(index_of).collect(),
                guards: point.guards.clone(),
            })
            .collect();
        (needs, Combine::Product(folded.len()))
    }

    fn combine(&mut self, combine: &Combine, regs: &[Reg]) -> Reg {
        match combine {
            Combine::Same => regs.first().copied().unwrap_or(Reg(0)),
            Combine::Unary(f) => self.push(Step::Unary(*f, regs[0])),
            Combine::Binary(Binary::Add) if self.is_zero(regs[1]) => regs[0],
            Combine::Binary(Binary::Add) if self.is_zero(regs[0]) => regs[1],
            Combine::Binary(Binary::Sub) if self.is_zero(regs[1]) => regs[0],
            Combine::Binary(f) => self.push(Step::Binary(*f, regs[0], regs[1])),
            Combine::Select => self.push(Step::Select(regs[0], regs[1], regs[2])),
            Combine::Clamp => self.push(Step::Clamp(regs[0], regs[1], regs[2])),
            Combine::Gather {
                table,
                rows,
                stride,
                index,
            } => self.push(Step::Gather {
                table: *table,
                row: regs[0],
                rows: *rows,
                stride: *stride,
                index: index.clone(),
            }),
            Combine::Fold(op) => self.push(Step::Reduce(*op, regs[0])),
            Combine::Masked(guards) => {
                let inside = self.push(Step::Inside(guards.clone()));
                let zero = self.push(Step::Const(0.0));
                self.push(Step::Select(inside, regs[0], zero))
            }
            Combine::Concat(guards) => self.choose(guards, regs),
            Combine::Product(folded) => {
                let product = match regs {
                    [a, b] => self.push(Step::Binary(Binary::Mul, *a, *b)),
                    _ => regs[0],
                };
                if *folded == 0 {
                    product
                } else {
                    self.push(Step::Reduce(Reduce::Sum, product))
                }
            }
            Combine::OneHot(index) => {
                let position = self.push(Step::Number(index.clone()));
                self.push(Step::Binary(Binary::Eq, position, regs[0]))
            }
        }
    }

    fn is_zero(&self, reg: Reg) -> bool {
        matches!(self.body.steps.get(reg.0 as usize), Some(Step::Const(x)) if *x == 0.0)
    }

    /// The piece whose guard holds; the last needs no test.
    fn choose(&mut self, guards: &[Guard], regs: &[Reg]) -> Reg {
        let mut value = regs[regs.len() - 1];
        for (guard, reg) in guards.iter().zip(regs).rev().skip(1) {
            let inside = self.push(Step::Inside(vec![guard.clone()]));
            value = self.push(Step::Select(inside, *reg, value));
        }
        value
    }
}

/// The labels that a contraction sums over, in order of first appearance.
pub fn summed_labels(labels: &[Vec<u32>], out: &[u32]) -> Vec<u32> {
    let mut summed: Vec<u32> = Vec::new();
    for label in labels.iter().flatten() {
        if !out.contains(label) && !summed.contains(label) {
            summed.push(*label);
        }
    }
    summed
}

/// The row-major position of an index in a shape.
pub fn flatten(index: &[Index], shape: &[usize]) -> Index {
    index
        .iter()
        .zip(strides(shape))
        .fold(Index::int(0), |sum, (i, stride)| sum.add(&i.times(stride)))
}

/// The index in a shape of a row-major position.
pub fn unflatten(flat: &Index, shape: &[usize], extents: &[usize]) -> Vec<Index> {
    strides(shape)
        .into_iter()
        .zip(shape)
        .enumerate()
        .map(|(axis, (stride, n))| flat.div_mod(stride, (axis > 0).then_some(*n as i64), extents))
        .collect()
}

/// An index moved into `0..n` by whole multiples of n.
pub fn wrapped(index: &Index, n: i64, extents: &[usize]) -> Index {
    let (lo, hi) = index.range(extents);
    if lo >= 0 && hi < n {
        return index.clone();
    }
    let lift = if lo < 0 { (-lo + n - 1) / n * n } else { 0 };
    index.plus(lift).div_mod(1, Some(n), extents)
}

/// Follows views (those that need no guard) from a node at an index down to what they show.
pub fn through_views(
    graph: &Graph,
    shapes: &Shapes,
    extents: &[usize],
    stop: &dyn Fn(NodeId) -> bool,
    mut read: Read,
    mut index: Vec<Index>,
) -> (Read, Vec<Index>) {
    while read.delay == 0 && !stop(read.node) {
        let node = graph.node(read.node);
        index = match &node.op {
            Op::Broadcast { map } => map.iter().map(|axis| index[*axis].clone()).collect(),
            Op::Slice { axis, lo, .. } => {
                index[*axis] = index[*axis].plus(shapes.value(lo));
                index
            }
            Op::Reshape => {
                let flat = flatten(&index, shapes.of(read.node));
                let operand = graph.operands(read.node)[0].node;
                unflatten(&flat, shapes.of(operand), extents)
            }
            _ => return (read, index),
        };
        read = graph.operands(read.node)[0];
    }
    (read, index)
}
