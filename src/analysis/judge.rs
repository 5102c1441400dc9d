//! The verdict on one recurrence.
//!
//! Comes in: its members. Goes out: linear over the first semiring that fits, with the parts of that verdict, or nonlinear
//! with what its units need of each other; and why.

use super::algebra::Algebra;
use super::classify::Normal;
use super::interpret::{Break, Interpreter, Subject};
use super::term::Term;
use super::{
    Form, InputTerm, Linear, Nonlinear, Recurrence, Semiring, Transition, Verdict, chunk, phases, reason, surrogate,
};
use crate::ir::{NodeId, Op, Size};
use std::collections::BTreeSet;

/// Judges a recurrence.
pub(super) fn judge(subject: &Subject, members: Vec<NodeId>) -> Recurrence {
    let graph = subject.graph;
    let is_state = |id: &&NodeId| matches!(graph.node(**id).op, Op::State { .. });
    let states: Vec<NodeId> = members.iter().filter(is_state).copied().collect();
    match linearity(subject) {
        Ok((interpreter, semiring)) => linear(&interpreter, semiring, members, states),
        Err(found) => nonlinear(subject, members, states, &found),
    }
}

/// The interpretation over the first semiring that fits.
///
/// # Errors
/// Where linearity over (+,x) ends, if none fits.
pub(super) fn linearity<'a>(subject: &'a Subject<'a>) -> Result<(Interpreter<'a>, Semiring), Break> {
    let interpret = |semiring| {
        let mut interpreter = Interpreter::new(subject, Algebra::Linear(semiring));
        interpreter.run().map(|()| (interpreter, semiring))
    };
    let [first, rest @ ..] = Semiring::ALL;
    interpret(first).or_else(|found| rest.into_iter().find_map(|s| interpret(s).ok()).ok_or(found))
}

fn linear(interpreter: &Interpreter, semiring: Semiring, members: Vec<NodeId>, states: Vec<NodeId>) -> Recurrence {
    let subject = interpreter.subject;
    let normal = normal_form(interpreter);
    let mut verdict = Linear {
        semiring,
        transition: normal.transition(),
        coefficient_axes: normal.coefficient_axes(),
        time_invariant: normal.time_invariant(),
        input: normal.input(),
        phases: phases::phases(subject),
        state_axes: normal.state_axes(),
        read_contracted: false,
    };
    if verdict.is_matrix_of_vectors() {
        verdict.read_contracted = chunk::read_contracted(subject, &states);
    }
    let blocks = match verdict.transition {
        Transition::Dense => normal.blocks(),
        _ => None,
    };
    let (reason, spans) = reason::linear(subject, &normal, &verdict);
    Recurrence {
        members,
        states,
        verdict: Verdict::Linear(verdict),
        reason,
        spans,
        blocks,
        surrogate: None,
    }
}

fn nonlinear(subject: &Subject, members: Vec<NodeId>, states: Vec<NodeId>, found: &Break) -> Recurrence {
    let (form, blocks) = form(subject);
    let phases = match form {
        Form::Elementwise => 0,
        _ => phases::phases(subject).max(1),
    };
    let (reason, spans) = reason::nonlinear(subject, found);
    Recurrence {
        members,
        states,
        verdict: Verdict::Nonlinear(Nonlinear { form, phases }),
        reason,
        spans,
        blocks,
        surrogate: surrogate::suggest(subject),
    }
}

/// What units need of each other, and how many blocks of them need nothing of the others.
fn form(subject: &Subject) -> (Form, Option<Size>) {
    let mut interpreter = Interpreter::new(subject, Algebra::Dependence);
    let through = interpreter.run().is_ok();
    let normal = normal_form(&interpreter);
    if through && phases::phases(subject) == 0 && normal.alignments().is_some() {
        return (Form::Elementwise, None);
    }
    match phases::contracts_itself(subject) {
        true => (Form::MatrixState, normal.blocks()),
        false => (Form::Dense, normal.blocks()),
    }
}

/// The states that are read with a delay within the recurrence, with their terms.
fn normal_form<'a>(interpreter: &'a Interpreter) -> Normal<'a> {
    let subject = interpreter.subject;
    let of_state = |state: NodeId| -> Vec<Term> { interpreter.value(state).to_vec() };
    let read: BTreeSet<NodeId> = subject.reads.iter().map(|edge| edge.source.state).collect();
    Normal {
        graph: subject.graph,
        labels: &interpreter.labels,
        states: read.into_iter().map(|state| (state, of_state(state))).collect(),
    }
}

impl Linear {
    /// Whether it is a matrix state that can run in chunks of frames as products: its coefficient is constant along an
    /// axis (so that the chain along the others is one small matrix), its input is an outer product, and all that is read
    /// of it outside are contractions.
    pub fn chunkable(&self) -> bool {
        self.is_matrix_of_vectors() && self.read_contracted
    }

    /// What chunks need of the recurrence itself.
    fn is_matrix_of_vectors(&self) -> bool {
        matches!(self.transition, Transition::Elementwise | Transition::LowRank(_))
            && self.semiring == Semiring::SumProduct
            && self.coefficient_axes.len() < self.state_axes.len()
            && self.input == InputTerm::Rank1
    }
}
