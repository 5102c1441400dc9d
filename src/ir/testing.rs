//! Builds small graphs by hand, for unit tests.

use super::op::{Binary, Reduce, Unary};
use super::{Graph, Kind, Name, Node, NodeId, Op, Output, Read, Scalar, Size, Type};
use crate::diagnostics::Span;

/// A graph under construction; methods add a node and give its id.
pub(crate) struct Build {
    pub(crate) graph: Graph,
}

impl Build {
    pub(crate) fn new(name: &str, dims: &[&str]) -> Build {
        let mut graph = Graph::new(name);
        graph.dims = dims.iter().map(|d| Name::from(*d)).collect();
        Build { graph }
    }

    /// Axes from text: dimensions, numbers, or a number times a dimension (`4*H`).
    pub(crate) fn axes(text: &[&str]) -> Vec<Size> {
        let factor = |f: &str| f.parse().map_or_else(|_| Size::dim(&Name::from(f)), Size::int);
        text.iter()
            .map(|axis| axis.split('*').fold(Size::int(1), |n, f| n.mul(&factor(f)).unwrap()))
            .collect()
    }

    /// A node whose kind is the greatest of its operands.
    pub(crate) fn add(&mut self, op: Op, ty: Type, operands: &[Read]) -> NodeId {
        let kind = operands.iter().map(|r| self.graph.node(r.node).kind).max();
        let kind = match op {
            Op::Input | Op::State { .. } => Kind::Frame,
            Op::StaticInput => Kind::Static,
            _ => kind.unwrap_or(Kind::Const),
        };
        let node = Node {
            op,
            ty,
            kind,
            span: Span::default(),
            name: None,
        };
        self.graph.add(node, operands)
    }

    pub(crate) fn name(&mut self, id: NodeId, name: &str) -> NodeId {
        self.graph.node_mut(id).name = Some(Name::from(name));
        id
    }

    pub(crate) fn input(&mut self, name: &str, axes: &[&str]) -> NodeId {
        let id = self.add(Op::Input, Type::real(Build::axes(axes)), &[]);
        self.graph.inputs.push(id);
        self.name(id, name)
    }

    pub(crate) fn index(&mut self, name: &str, range: &str) -> NodeId {
        let scalar = Scalar::Index(Build::axes(&[range]).remove(0));
        let id = self.add(Op::Input, Type { axes: vec![], scalar }, &[]);
        self.graph.inputs.push(id);
        self.name(id, name)
    }

    pub(crate) fn static_input(&mut self, name: &str, axes: &[&str]) -> NodeId {
        let id = self.add(Op::StaticInput, Type::real(Build::axes(axes)), &[]);
        self.graph.inputs.push(id);
        self.name(id, name)
    }

    pub(crate) fn param(&mut self, name: &str, axes: &[&str]) -> NodeId {
        let id = self.add(Op::Param, Type::real(Build::axes(axes)), &[]);
        self.graph.params.push(id);
        self.name(id, name)
    }

    pub(crate) fn literal(&mut self, value: f64) -> NodeId {
        self.add(Op::Literal(value), Type::scalar(), &[])
    }

    pub(crate) fn ty(&self, id: NodeId) -> Type {
        self.graph.node(id).ty.clone()
    }

    pub(crate) fn unary(&mut self, f: Unary, a: impl Into<Read>) -> NodeId {
        let a = a.into();
        self.add(Op::Unary(f), self.ty(a.node), &[a])
    }

    pub(crate) fn binary(&mut self, f: Binary, a: impl Into<Read>, b: impl Into<Read>) -> NodeId {
        let (a, b) = (a.into(), b.into());
        self.add(Op::Binary(f), self.ty(a.node), &[a, b])
    }

    /// A scalar repeated along axes.
    pub(crate) fn spread(&mut self, a: impl Into<Read>, axes: &[&str]) -> NodeId {
        self.add(
            Op::Broadcast { map: vec![] },
            Type::real(Build::axes(axes)),
            &[a.into()],
        )
    }

    pub(crate) fn broadcast(&mut self, a: impl Into<Read>, map: &[usize], axes: &[&str]) -> NodeId {
        let op = Op::Broadcast { map: map.to_vec() };
        self.add(op, Type::real(Build::axes(axes)), &[a.into()])
    }

    pub(crate) fn slice(&mut self, a: impl Into<Read>, axis: usize, lo: &str, hi: &str) -> NodeId {
        let (a, bounds) = (a.into(), Build::axes(&[lo, hi]));
        let mut ty = self.ty(a.node);
        ty.axes[axis] = bounds[1].sub(&bounds[0]).unwrap();
        let (lo, hi) = (bounds[0].clone(), bounds[1].clone());
        self.add(Op::Slice { axis, lo, hi }, ty, &[a])
    }

    pub(crate) fn reduce(&mut self, op: Reduce, a: impl Into<Read>, axes: &[usize]) -> NodeId {
        let a = a.into();
        let kept = self.ty(a.node).axes.into_iter().enumerate();
        let ty = Type::real(kept.filter(|(i, _)| !axes.contains(i)).map(|(_, s)| s).collect());
        let op = Op::Reduce {
            op,
            axes: axes.to_vec(),
        };
        self.add(op, ty, &[a])
    }

    /// A contraction written as einsum writes it: `"oi,i->o"`.
    pub(crate) fn contract(&mut self, spec: &str, operands: &[Read]) -> NodeId {
        let (left, right) = spec.split_once("->").unwrap();
        let number = |s: &str| s.chars().map(|c| c as u32 - 'a' as u32).collect::<Vec<u32>>();
        let labels: Vec<Vec<u32>> = left.split(',').map(number).collect();
        let out = number(right);
        let size = |l: &u32| {
            let found = labels.iter().zip(operands).find_map(|(ls, r)| {
                let i = ls.iter().position(|m| m == l)?;
                Some(self.ty(r.node).axes[i].clone())
            });
            found.unwrap()
        };
        let ty = Type::real(out.iter().map(size).collect());
        self.add(Op::Contract { labels, out }, ty, operands)
    }

    /// A state whose value is set later by [`Build::close`].
    pub(crate) fn state(&mut self, name: &str, window: u32, axes: &[&str]) -> NodeId {
        let id = self.add(Op::State { window }, Type::real(Build::axes(axes)), &[]);
        self.name(id, name)
    }

    pub(crate) fn close(&mut self, state: NodeId, value: impl Into<Read>) {
        self.graph.set_operand(state, 0, value.into());
    }

    pub(crate) fn output(&mut self, name: &str, node: NodeId) {
        self.graph.outputs.push(Output {
            name: Name::from(name),
            node,
            span: Span::default(),
        });
    }

    /// `h = tanh(W @ x + R @ h[t-1] + b)`.
    pub(crate) fn elman() -> Graph {
        let mut b = Build::new("elman", &["I", "H"]);
        let x = b.input("x", &["I"]);
        let (w, r) = (b.param("W", &["H", "I"]), b.param("R", &["H", "H"]));
        let bias = b.param("b", &["H"]);
        let h = b.state("h", 1, &["H"]);
        let wx = b.contract("oi,i->o", &[w.into(), x.into()]);
        let rh = b.contract("oi,i->o", &[r.into(), Read { node: h, delay: 1 }]);
        let sum = b.binary(Binary::Add, wx, rh);
        let sum = b.binary(Binary::Add, sum, bias);
        let value = b.unary(Unary::Tanh, sum);
        b.close(h, value);
        b.output("h", h);
        b.graph
    }
}

impl From<NodeId> for Read {
    fn from(id: NodeId) -> Read {
        Read::now(id)
    }
}
