//! Verdicts on graphs made by hand, and the messages on cycles. (Verdicts on cells from text are in `tests/it`.)

use super::*;
use crate::diagnostics::Code;
use crate::ir::op::{Binary, Unary};
use crate::ir::testing::Build;
use crate::ir::{Op, Read};

fn before(state: NodeId) -> Read {
    Read { node: state, delay: 1 }
}

fn only(graph: &Graph) -> Recurrence {
    let mut facts = analyse(graph).expect("no cycle");
    assert_eq!(facts.recurrences.len(), 1);
    facts.recurrences.remove(0)
}

fn linear_of(recurrence: &Recurrence) -> &Linear {
    match &recurrence.verdict {
        Verdict::Linear(linear) => linear,
        Verdict::Nonlinear(_) => panic!("not linear: {}", recurrence.reason),
    }
}

#[test]
fn tanh_of_a_matrix_times_the_state_is_dense() {
    let found = only(&Build::elman());
    let expected = Nonlinear {
        form: Form::Dense,
        phases: 1,
    };
    assert_eq!(found.verdict, Verdict::Nonlinear(expected));
    assert_eq!(found.reason, "`h[t-1]` passes through tanh via `R @ h[t-1]`, in `h`");
    let hint = found.surrogate.expect("a hint");
    assert!(hint.contains("in place of `h[t-1]` in `R @ h[t-1]` (GILR"), "{hint}");
    assert!(hint.ends_with("all frames run in parallel"), "{hint}");
}

#[test]
fn a_gated_state_is_elementwise() {
    let mut b = Build::new("gated", &["H"]);
    let (x, h) = (b.input("x", &["H"]), b.state("h", 1, &["H"]));
    let gate = b.unary(Unary::Sigmoid, x);
    let kept = b.binary(Binary::Mul, gate, before(h));
    let value = b.binary(Binary::Add, kept, x);
    b.close(h, value);
    let found = only(&b.graph);
    let linear = linear_of(&found);
    assert_eq!(linear.semiring, Semiring::SumProduct);
    assert_eq!(linear.transition, Transition::Elementwise);
    assert_eq!(linear.coefficient_axes, Build::axes(&["H"]));
    assert!(!linear.time_invariant);
    assert_eq!(linear.input, InputTerm::General);
    assert!(!linear.chunkable());
}

/// `S = S[t-1] + k * (v - k @ S[t-1])`, `y = q @ S`; perhaps S itself is an output too.
fn delta_rule(state_is_output: bool) -> Recurrence {
    let mut b = Build::new("delta", &["K", "V"]);
    let (k, v, q) = (b.input("k", &["K"]), b.input("v", &["V"]), b.input("q", &["K"]));
    let s = b.state("S", 1, &["K", "V"]);
    let old = b.contract("k,kv->v", &[k.into(), before(s)]);
    let new = b.binary(Binary::Sub, v, old);
    let (rows, columns) = (b.broadcast(k, &[0], &["K", "V"]), b.broadcast(new, &[1], &["K", "V"]));
    let step = b.binary(Binary::Mul, rows, columns);
    let value = b.binary(Binary::Add, before(s), step);
    b.close(s, value);
    let y = b.contract("k,kv->v", &[q.into(), s.into()]);
    b.output("y", y);
    if state_is_output {
        b.output("S", s);
    }
    only(&b.graph)
}

#[test]
fn the_delta_rule_is_of_rank_one_and_chunkable() {
    let found = delta_rule(false);
    let linear = linear_of(&found);
    assert_eq!(linear.transition, Transition::LowRank(1));
    assert_eq!(linear.coefficient_axes, Build::axes(&["K"]));
    assert_eq!(linear.input, InputTerm::Rank1);
    assert_eq!(linear.phases, 1);
    assert!(linear.chunkable());
}

#[test]
fn a_matrix_state_that_is_stored_is_not_chunkable() {
    assert!(!linear_of(&delta_rule(true)).chunkable());
}

#[test]
fn an_instant_cycle_names_its_path() {
    let mut b = Build::new("cycle", &["H"]);
    let (x, h) = (b.input("x", &["H"]), b.state("h", 1, &["H"]));
    let c = b.binary(Binary::Add, h, x);
    b.name(c, "c");
    let value = b.unary(Unary::Tanh, c);
    b.close(h, value);
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
    let mut b = Build::new("ahead", &["H"]);
    let h = b.state("h", 1, &["H"]);
    let value = b.binary(Binary::Add, before(h), Read { node: h, delay: -1 });
    b.close(h, value);
    let found = analyse(&b.graph).expect_err("a look ahead");
    assert_eq!(found.0[0].code, Code::LookaheadInLoop);
    assert!(found.0[0].hints[0].contains("`h[t-1]`"));
}

#[test]
fn a_look_ahead_outside_is_no_concern() {
    let mut b = Build::new("outside", &["H"]);
    let x = b.input("x", &["H"]);
    let later = b.state("x", 1, &["H"]);
    b.close(later, x);
    let y = b.binary(Binary::Add, x, Read { node: later, delay: -1 });
    b.output("y", y);
    assert!(analyse(&b.graph).expect("no cycle").recurrences.is_empty());
}

#[test]
fn many_coupled_states_are_judged_in_good_time() {
    let mut b = Build::new("ring", &["H"]);
    let x = b.input("x", &["H"]);
    let states: Vec<NodeId> = (0..2000).map(|i| b.state(&format!("h{i}"), 1, &["H"])).collect();
    for (i, state) in states.iter().enumerate() {
        let from = states[(i + 1) % states.len()];
        let value = b.binary(Binary::Add, before(from), x);
        b.close(*state, value);
    }
    assert_eq!(linear_of(&only(&b.graph)).transition, Transition::Block(2000));
}

#[test]
fn long_chains_of_different_reads_are_dense() {
    let mut b = Build::new("taps", &["H"]);
    let h = b.state("h", 3000, &["H"]);
    let mut sum = b.binary(Binary::Add, before(h), before(h));
    for delay in 2..=3000 {
        sum = b.binary(Binary::Add, sum, Read { node: h, delay });
    }
    b.close(h, sum);
    let found = only(&b.graph);
    assert_eq!(linear_of(&found).transition, Transition::Dense);
    assert!(matches!(b.graph.node(found.states[0]).op, Op::State { .. }));
}
