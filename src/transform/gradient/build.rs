//! Adds nodes to the backward graph. Operands have the axes of the result, as everywhere in a graph.

use crate::diagnostics::Span;
use crate::ir::op::{Binary, Reduce, Unary};
use crate::ir::{Graph, Kind, Name, Node, NodeId, Op, Read, Size, Type};

/// The backward graph in the making.
pub(super) struct Build<'f> {
    pub(super) forward: &'f Graph,
    pub(super) graph: Graph,
    /// The place in the source of the operation that is derived.
    pub(super) span: Span,
}

impl<'f> Build<'f> {
    pub(super) fn new(forward: &'f Graph) -> Build<'f> {
        let mut graph = Graph::new(&format!("{}_backward", forward.name));
        graph.dims.clone_from(&forward.dims);
        graph.against_time = true;
        let span = Span::default();
        Build { forward, graph, span }
    }

    /// A node of the greatest kind of its operands.
    pub(super) fn add(&mut self, op: Op, ty: Type, operands: &[Read]) -> Read {
        let kind = operands.iter().map(|r| self.kind(*r)).max().unwrap_or(Kind::Const);
        self.add_of(op, ty, kind, operands)
    }

    fn add_of(&mut self, op: Op, ty: Type, kind: Kind, operands: &[Read]) -> Read {
        let (name, span) = (None, self.span);
        let node = Node {
            op,
            ty,
            kind,
            span,
            name,
        };
        Read::now(self.graph.add(node, operands))
    }

    /// A named leaf: its kind is that of what it is.
    pub(super) fn leaf(&mut self, op: Op, ty: &Type, name: Name) -> NodeId {
        let kind = match op {
            Op::Input | Op::State { .. } => Kind::Frame,
            Op::StaticInput => Kind::Static,
            _ => Kind::Const,
        };
        let id = self.add_of(op, ty.clone(), kind, &[]).node;
        self.graph.node_mut(id).name = Some(name);
        id
    }

    /// An input of every frame.
    pub(super) fn input(&mut self, name: Name, ty: &Type) -> NodeId {
        let id = self.leaf(Op::Input, ty, name);
        self.graph.inputs.push(id);
        id
    }

    pub(super) fn kind(&self, read: Read) -> Kind {
        self.graph.node(read.node).kind
    }

    pub(super) fn axes(&self, read: Read) -> Vec<Size> {
        self.graph.node(read.node).ty.axes.clone()
    }

    fn ty(&self, read: Read) -> Type {
        self.graph.node(read.node).ty.clone()
    }

    /// A node that is this value, for an output: what is read with a delay gets a node of its own.
    pub(super) fn settled(&mut self, read: Read) -> NodeId {
        if read.delay == 0 {
            return read.node;
        }
        let ty = self.ty(read);
        let map = (0..ty.axes.len()).collect();
        self.add(Op::Broadcast { map }, ty, &[read]).node
    }

    pub(super) fn unary(&mut self, f: Unary, a: Read) -> Read {
        self.add(Op::Unary(f), self.ty(a), &[a])
    }

    pub(super) fn binary(&mut self, f: Binary, a: Read, b: Read) -> Read {
        self.add(Op::Binary(f), self.ty(a), &[a, b])
    }

    pub(super) fn plus(&mut self, a: Read, b: Read) -> Read {
        self.binary(Binary::Add, a, b)
    }

    pub(super) fn minus(&mut self, a: Read, b: Read) -> Read {
        self.binary(Binary::Sub, a, b)
    }

    pub(super) fn times(&mut self, a: Read, b: Read) -> Read {
        self.binary(Binary::Mul, a, b)
    }

    pub(super) fn over(&mut self, a: Read, b: Read) -> Read {
        self.binary(Binary::Div, a, b)
    }

    /// Where `c` is not 0 the value `a`, else `b`.
    pub(super) fn select(&mut self, c: Read, a: Read, b: Read) -> Read {
        self.add(Op::Where, self.ty(a), &[c, a, b])
    }

    /// A number everywhere, of the axes of `like`.
    pub(super) fn number(&mut self, value: f64, like: Read) -> Read {
        let axes = self.axes(like);
        self.literal(value, &axes)
    }

    /// A number everywhere.
    pub(super) fn literal(&mut self, value: f64, axes: &[Size]) -> Read {
        let literal = self.add(Op::Literal(value), Type::scalar(), &[]);
        self.spread(literal, &[], axes)
    }

    /// A size as a number everywhere.
    pub(super) fn size(&mut self, size: &Size, axes: &[Size]) -> Read {
        let value = self.add(Op::SizeValue(size.clone()), Type::scalar(), &[]);
        self.spread(value, &[], axes)
    }

    /// Axis i of the value becomes axis `map[i]` of `axes`; it repeats along the others.
    pub(super) fn spread(&mut self, a: Read, map: &[usize], axes: &[Size]) -> Read {
        if map.len() == axes.len() && map.iter().copied().eq(0..axes.len()) {
            return a;
        }
        let op = Op::Broadcast { map: map.to_vec() };
        self.add(op, Type::real(axes.to_vec()), &[a])
    }

    /// Positions `lo..hi` of an axis.
    pub(super) fn slice(&mut self, a: Read, axis: usize, lo: Size, hi: Size) -> Read {
        let mut axes = self.axes(a);
        // Both bounds are those of an operand that was joined: their difference is its size.
        axes[axis] = hi.sub(&lo).unwrap_or(hi.clone());
        self.add(Op::Slice { axis, lo, hi }, Type::real(axes), &[a])
    }

    pub(super) fn reduce(&mut self, op: Reduce, a: Read, gone: &[usize]) -> Read {
        let kept = self.axes(a).into_iter().enumerate();
        let axes = kept.filter(|(i, _)| !gone.contains(i)).map(|(_, n)| n).collect();
        let axes_gone = gone.to_vec();
        self.add(Op::Reduce { op, axes: axes_gone }, Type::real(axes), &[a])
    }

    /// The general product, for a result of kind `kind`: summed over frames and sequences where that lacks them.
    pub(super) fn contract(&mut self, kind: Kind, operands: &[(Read, Vec<u32>)], out: &[u32]) -> Read {
        let size = |label: &u32| {
            let of = |(read, labels): &(Read, Vec<u32>)| {
                let axis = labels.iter().position(|l| l == label)?;
                self.graph.node(read.node).ty.axes.get(axis).cloned()
            };
            operands.iter().find_map(of)
        };
        let ty = Type::real(out.iter().filter_map(size).collect());
        let reads: Vec<Read> = operands.iter().map(|(r, _)| *r).collect();
        let most = reads.iter().map(|r| self.kind(*r)).max().unwrap_or(Kind::Const);
        let labels = operands.iter().map(|(_, l)| l.clone()).collect();
        let out = out.to_vec();
        match kind < most {
            true => self.add_of(Op::Total { labels, out }, ty, kind, &reads),
            false => self.add_of(Op::Contract { labels, out }, ty, most, &reads),
        }
    }

    /// The value, summed over what a value of `kind` lacks.
    pub(super) fn lowered(&mut self, a: Read, kind: Kind) -> Read {
        if self.kind(a) <= kind {
            return a;
        }
        let labels: Vec<u32> = (0..self.axes(a).len() as u32).collect();
        self.contract(kind, &[(a, labels.clone())], &labels)
    }

    /// The matrix that is 1 where the row is the column plus `from`, else 0.
    pub(super) fn selection(&mut self, rows: &Size, columns: &Size, from: &Size) -> Read {
        let axes = [rows.clone(), columns.clone()];
        let iota = |build: &mut Build<'_>, n: &Size, at: usize| {
            let iota = build.add(Op::Iota, Type::real(vec![n.clone()]), &[]);
            build.spread(iota, &[at], &axes)
        };
        let (row, column) = (iota(self, rows, 0), iota(self, columns, 1));
        let from = self.size(from, &axes);
        let column = self.plus(column, from);
        self.binary(Binary::Eq, row, column)
    }
}
