//! Verdicts on graphs made by hand, and the messages on cycles. (Verdicts on cells from text are in `tests/it`.)

use super::*;
use crate::diagnostics::{Code, Span};
use crate::ir::op::{Binary, Unary};
use crate::ir::{Kind, Name, Node, Op, Read, Type};

/// Builds graphs in few words.
struct Builder {
    graph: Graph,
}

impl Builder {
    fn new() -> Builder {
        Builder {
            graph: Graph::new("test"),
        }
    }

    fn node(&mut self, op: Op, name: Option<&str>, axes: &[&str], operands: &[Read]) -> NodeId {
        let kinds = operands.iter().map(|r| self.graph.node(r.node).kind);
        let kind = match op {
            Op::Input | Op::State { .. } => Kind::Frame,
            _ => kinds.max().unwrap_or(Kind::Const),
        };
        let at = self.graph.len();
        let node = Node {
            op,
            ty: Type::real(axes.iter().map(|a| Size::dim(&Name::from(*a))).collect()),
            kind,
            span: Span::new(at + 1, at + 2),
            name: name.map(Name::from),
        };
        self.graph.add(node, operands)
    }

    fn input(&mut self, name: &str, axes: &[&str]) -> Read {
        Read::now(self.node(Op::Input, Some(name), axes, &[]))
    }

    fn param(&mut self, name: &str, axes: &[&str]) -> Read {
        Read::now(self.node(Op::Param, Some(name), axes, &[]))
    }

    /// A state whose value is set by [`Builder::define`].
    fn state(&mut self, name: &str, axes: &[&str]) -> Read {
        let id = self.node(Op::State { window: 1 }, Some(name), axes, &[]);
        Read { node: id, delay: 1 }
    }

    fn define(&mut self, state: Read, value: Read) {
        self.graph.set_operand(state.node, 0, value);
    }

    fn like(&mut self, op: Op, operands: &[Read]) -> Read {
        let axes: Vec<String> = self
            .graph
            .node(operands[0].node)
            .ty
            .axes
            .iter()
            .map(Size::to_string)
            .collect();
        let axes: Vec<&str> = axes.iter().map(String::as_str).collect();
        Read::now(self.node(op, None, &axes, operands))
    }

    fn binary(&mut self, f: Binary, a: Read, b: Read) -> Read {
        self.like(Op::Binary(f), &[a, b])
    }

    fn unary(&mut self, f: Unary, a: Read) -> Read {
        self.like(Op::Unary(f), &[a])
    }

    fn contract(&mut self, spec: [&[u32]; 3], axes: &[&str], a: Read, b: Read) -> Read {
        let op = Op::Contract {
            labels: vec![spec[0].to_vec(), spec[1].to_vec()],
            out: spec[2].to_vec(),
        };
        Read::now(self.node(op, None, axes, &[a, b]))
    }

    fn broadcast(&mut self, map: &[usize], axes: &[&str], a: Read) -> Read {
        Read::now(self.node(Op::Broadcast { map: map.to_vec() }, None, axes, &[a]))
    }

    fn only(&self) -> Recurrence {
        let facts = analyse(&self.graph).expect("no cycle");
        assert_eq!(facts.recurrences.len(), 1);
        facts.recurrences[0].clone()
    }
}

fn linear_of(recurrence: &Recurrence) -> &Linear {
    match &recurrence.verdict {
        Verdict::Linear(linear) => linear,
        Verdict::Nonlinear(_) => panic!("not linear: {}", recurrence.reason),
    }
}

#[test]
fn tanh_of_a_matrix_times_the_state_is_dense() {
    let mut b = Builder::new();
    let (x, r, h) = (b.input("x", &["H"]), b.param("R", &["H", "H"]), b.state("h", &["H"]));
    let rh = b.contract([&[0, 1], &[1], &[0]], &["H"], r, h);
    let sum = b.binary(Binary::Add, rh, x);
    let value = b.unary(Unary::Tanh, sum);
    b.define(h, value);
    let found = b.only();
    let expected = Nonlinear {
        form: Form::Dense,
        phases: 1,
    };
    assert_eq!(found.verdict, Verdict::Nonlinear(expected));
    assert_eq!(found.reason, "`h[t-1]` passes through tanh via `R @ h[t-1]`, in `h`");
    assert!(!found.spans.is_empty());
    let hint = found.surrogate.expect("a hint");
    assert!(hint.contains("`h[t-1]` in `R @ h[t-1]`"), "{hint}");
}

#[test]
fn a_gated_state_is_elementwise() {
    let mut b = Builder::new();
    let (x, h) = (b.input("x", &["H"]), b.state("h", &["H"]));
    let gate = b.unary(Unary::Sigmoid, x);
    let kept = b.binary(Binary::Mul, gate, h);
    let value = b.binary(Binary::Add, kept, x);
    b.define(h, value);
    let found = b.only();
    let linear = linear_of(&found);
    assert_eq!(linear.semiring, Semiring::SumProduct);
    assert_eq!(linear.transition, Transition::Elementwise);
    assert_eq!(linear.coefficient_axes, vec![Size::dim(&Name::from("H"))]);
    assert!(!linear.time_invariant);
    assert_eq!(linear.input, InputTerm::General);
}

#[test]
fn the_delta_rule_is_of_rank_one_and_chunkable() {
    let mut b = Builder::new();
    let (k, v, q) = (b.input("k", &["K"]), b.input("v", &["V"]), b.input("q", &["K"]));
    let s = b.state("S", &["K", "V"]);
    let old = b.contract([&[0], &[0, 1], &[1]], &["V"], k, s);
    let new = b.binary(Binary::Sub, v, old);
    let (rows, columns) = (b.broadcast(&[0], &["K", "V"], k), b.broadcast(&[1], &["K", "V"], new));
    let step = b.binary(Binary::Mul, rows, columns);
    let value = b.binary(Binary::Add, s, step);
    b.define(s, value);
    let y = b.contract([&[0], &[0, 1], &[1]], &["V"], q, Read::now(s.node));
    b.graph.outputs.push(crate::ir::Output {
        name: Name::from("y"),
        node: y.node,
        span: Span::default(),
    });
    let found = b.only();
    let linear = linear_of(&found);
    assert_eq!(linear.transition, Transition::LowRank(1));
    assert_eq!(linear.coefficient_axes, vec![Size::dim(&Name::from("K"))]);
    assert_eq!(linear.input, InputTerm::Rank1);
    assert_eq!(linear.phases, 1);
    assert!(linear.chunkable(), "{found:?}");
}

#[test]
fn an_instant_cycle_names_its_path() {
    let mut b = Builder::new();
    let (x, h) = (b.input("x", &["H"]), b.state("h", &["H"]));
    let c = b.binary(Binary::Add, Read::now(h.node), x);
    b.graph.node_mut(c.node).name = Some(Name::from("c"));
    let value = b.unary(Unary::Tanh, c);
    b.define(h, value);
    let found = analyse(&b.graph).expect_err("a cycle");
    assert_eq!(found.0.len(), 1);
    assert_eq!(found.0[0].code, Code::InstantCycle);
    assert_eq!(
        found.0[0].message,
        "`h` depends on itself within one frame: `h` needs `c`, `c` needs `h`"
    );
    assert_eq!(
        found.0[0].hints,
        ["did you mean `h[t-1]` in the equation of `c`, or another delay on this path?"]
    );
}

#[test]
fn a_look_ahead_into_its_own_recurrence_is_refused() {
    let mut b = Builder::new();
    let h = b.state("h", &["H"]);
    let ahead = Read { delay: -1, ..h };
    let value = b.binary(Binary::Add, h, ahead);
    b.define(h, value);
    let found = analyse(&b.graph).expect_err("a look ahead");
    assert_eq!(found.0[0].code, Code::LookaheadInLoop);
}
