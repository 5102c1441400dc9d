//! Rules on numbers: functions of literals, and functions that give an operand back.

use super::{Draft, Step, behind, number};
use crate::ir::op::{Binary, Unary};
use crate::ir::{Graph, Op, Read};

/// A function of literals is a literal, unless that would be NaN, which has no form in C.
pub(super) fn literals(graph: &Graph, draft: &Draft) -> Option<Step> {
    let literal = |read: &Read| match graph.node(read.node).op {
        Op::Literal(value) => Some(value),
        _ => None,
    };
    let values: Vec<f64> = draft.operands.iter().map(literal).collect::<Option<_>>()?;
    let value = match (&draft.op, values.as_slice()) {
        (Op::Unary(Unary::StopGradient), _) => return None,
        (Op::Unary(f), [a]) => f.eval(*a),
        (Op::Binary(f), [a, b]) => f.eval(*a, *b),
        (Op::Clamp, [x, lo, hi]) => rnnc_runtime::scalar::clamp(*x, *lo, *hi),
        _ => return None,
    };
    (!value.is_nan()).then(|| {
        Step::Becomes(Draft {
            op: Op::Literal(value),
            ty: draft.ty.clone(),
            operands: Vec::new(),
        })
    })
}

/// A function that gives one of its operands back, or a simpler function of it.
pub(super) fn identities(graph: &Graph, draft: &Draft) -> Option<Step> {
    let is = |port: usize, value: f64| {
        let found = draft.operands.get(port).and_then(|r| number(graph, *r));
        found.is_some_and(|n| n.to_bits() == value.to_bits())
    };
    let operand = |port: usize| Some(Step::Is(draft.operands[port]));
    match &draft.op {
        Op::Unary(Unary::Neg) => {
            let (inner, operands) = behind(graph, draft.operands[0]);
            (inner.op == Op::Unary(Unary::Neg)).then(|| Step::Is(operands[0]))
        }
        Op::Binary(Binary::Add) if is(1, -0.0) => operand(0),
        Op::Binary(Binary::Add) if is(0, -0.0) => operand(1),
        Op::Binary(Binary::Sub) if is(1, 0.0) => operand(0),
        Op::Binary(Binary::Sub) if is(0, -0.0) => negated(draft, 1),
        Op::Binary(Binary::Mul | Binary::Div | Binary::Pow) if is(1, 1.0) => operand(0),
        Op::Binary(Binary::Mul) if is(0, 1.0) => operand(1),
        Op::Binary(Binary::Mul | Binary::Div) if is(1, -1.0) => negated(draft, 0),
        Op::Binary(Binary::Mul) if is(0, -1.0) => negated(draft, 1),
        Op::Binary(Binary::Max | Binary::Min) if draft.operands[0] == draft.operands[1] => operand(0),
        Op::Where if draft.operands[1] == draft.operands[2] => operand(1),
        Op::Where => match number(graph, draft.operands[0])? {
            0.0 => operand(2),
            _ => operand(1),
        },
        _ => None,
    }
}

fn negated(draft: &Draft, port: usize) -> Option<Step> {
    Some(Step::Becomes(Draft {
        op: Op::Unary(Unary::Neg),
        ty: draft.ty.clone(),
        operands: vec![draft.operands[port]],
    }))
}
