//! Expressions to values.

use super::align::Operand;
use super::build::Builder;
use super::chain::Term;
use super::resolve;
use super::sizes::Sizes;
use super::walk;
use crate::diagnostics::{Code, Diagnostic, Span};
use crate::ir::op::{Binary, Unary};
use crate::ir::{Name, NodeId, Op, Read, Size, Type};
use crate::syntax::ast::{CompareOp, Equation, Expr, ExprId, ExprKind, Ident};
use std::collections::HashMap;

/// What names stand for.
#[derive(Clone, Debug, Default)]
pub(super) struct Scope {
    /// Values; `None` for those whose error has been reported.
    pub values: HashMap<Name, Option<Read>>,
    /// The nodes that are read with a delay.
    pub states: HashMap<Name, NodeId>,
    pub sizes: Sizes,
}

impl Builder<'_, '_> {
    /// The value of an expression. What is below it is evaluated first, on a stack of its own: in the program's, an
    /// expression nested 200 deep would take a frame for each operator on the way.
    pub(super) fn eval(&mut self, scope: &Scope, root: ExprId) -> Option<Read> {
        if let Some(value) = self.done.last().and_then(|done| done.get(&root)) {
            return *value;
        }
        self.done.push(HashMap::new());
        let mut todo = vec![(root, false)];
        while let Some((id, below_done)) = todo.pop() {
            let expr = &self.program.file[id];
            if !below_done {
                todo.push((id, true));
                let first = todo.len();
                self.operands(expr, &mut todo);
                todo[first..].reverse();
                continue;
            }
            let value = if self.charge(1, expr.span) {
                self.eval_kind(scope, expr)
            } else {
                None
            };
            if let Some(done) = self.done.last_mut() {
                done.insert(id, value);
            }
        }
        self.done.pop().and_then(|done| done.get(&root).copied().flatten())
    }

    /// Pushes the expressions whose values an expression takes.
    fn operands(&self, expr: &Expr, todo: &mut Vec<(ExprId, bool)>) {
        let mut found = Vec::new();
        match &expr.kind {
            ExprKind::Call { .. } => self.value_arguments(expr, &mut found),
            other => walk::children(other, &mut found),
        }
        todo.extend(found.into_iter().map(|id| (id, false)));
    }

    /// The value of an expression below which all is done.
    fn eval_kind(&mut self, scope: &Scope, expr: &Expr) -> Option<Read> {
        let span = expr.span;
        match &expr.kind {
            ExprKind::Number(value) => self.literal(*value, span),
            ExprKind::Paren(inner) => self.eval(scope, *inner),
            ExprKind::Neg(count, inner) => self.negate(scope, *count, *inner, span),
            ExprKind::Sum(list) => {
                let terms = self.terms(scope, list)?;
                self.sum(&terms, span)
            }
            ExprKind::Product(list) => {
                let terms = self.terms(scope, list)?;
                self.product(&terms, span)
            }
            ExprKind::MatMul(list) => self.matmul(scope, list),
            ExprKind::Power(base, exponent) => {
                let (base, exponent) = (self.real(scope, *base), self.real(scope, *exponent));
                self.power(base?, exponent?, span)
            }
            ExprKind::Compare(op, a, b) => self.compare(scope, *op, *a, *b, span),
            ExprKind::Path { segments, delay } => self.path(scope, segments.first()?, *delay, span),
            ExprKind::Call { callee, .. } => {
                let values = self.eval_call(scope, expr)?;
                self.only(&values, callee)
            }
            ExprKind::Error => None,
        }
    }

    /// The value of an expression, which must be real.
    pub(super) fn real(&mut self, scope: &Scope, id: ExprId) -> Option<Operand> {
        let read = self.eval(scope, id)?;
        let span = self.program.file[id].span;
        if self.index_of(read).is_some() {
            let message = format!("a number is expected here, not an {}", self.show_read(read));
            let d = Diagnostic::new(Code::IndexMisuse, message, span).label("an index");
            self.report(d.hint("an index is taken by `embed`, `one_hot`, `cross_entropy` and `==`"));
            return None;
        }
        Some(Operand { read, span })
    }

    /// All terms, so that errors of several are reported.
    pub(super) fn terms(&mut self, scope: &Scope, list: &[(bool, ExprId)]) -> Option<Vec<Term>> {
        let mut terms = Vec::with_capacity(list.len());
        for (inverted, id) in list {
            let inverted = *inverted;
            terms.push(self.real(scope, *id).map(|value| Term { inverted, value }));
        }
        terms.into_iter().collect()
    }

    fn negate(&mut self, scope: &Scope, count: u32, inner: ExprId, span: Span) -> Option<Read> {
        let x = self.real(scope, inner)?;
        if count.is_multiple_of(2) {
            return Some(x.read);
        }
        match self.as_literal(x.read) {
            Some(value) => self.literal(-value, span),
            None => self.unary(Unary::Neg, x.read, span),
        }
    }

    fn compare(&mut self, scope: &Scope, op: CompareOp, a: ExprId, b: ExprId, span: Span) -> Option<Read> {
        let f = match op {
            CompareOp::Eq => Binary::Eq,
            CompareOp::Ne => Binary::Ne,
            CompareOp::Lt => Binary::Lt,
            CompareOp::Le => Binary::Le,
            CompareOp::Gt => Binary::Gt,
            CompareOp::Ge => Binary::Ge,
        };
        let sides = match f {
            Binary::Eq | Binary::Ne => [self.number(scope, a), self.number(scope, b)],
            _ => [self.real(scope, a), self.real(scope, b)],
        };
        let [a, b] = sides;
        self.aligned(Op::Binary(f), &[a?, b?], span)
    }

    /// A real value, or an index as one.
    fn number(&mut self, scope: &Scope, id: ExprId) -> Option<Operand> {
        let mut read = self.eval(scope, id)?;
        let span = self.program.file[id].span;
        if self.index_of(read).is_some() {
            read = self.node(Op::IndexToReal, Type::scalar(), &[read], span)?;
        }
        Some(Operand { read, span })
    }

    /// A name: a value, a dimension as a number, or a constant, in this order.
    fn path(&mut self, scope: &Scope, name: &Ident, delay: i32, span: Span) -> Option<Read> {
        if let Some(value) = scope.values.get(&name.name) {
            return match delay {
                0 => *value,
                _ => scope.states.get(&name.name).map(|node| Read { node: *node, delay }),
            };
        }
        if let Some(size) = scope.sizes.get(&name.name) {
            return match size.as_int() {
                Some(n) => self.literal(n as f64, span),
                None => self.node(Op::SizeValue(size.clone()), Type::scalar(), &[], span),
            };
        }
        self.literal(resolve::constant(&name.name)?, span)
    }

    fn matmul(&mut self, scope: &Scope, list: &[ExprId]) -> Option<Read> {
        let operands: Vec<Option<Operand>> = list.iter().map(|id| self.real(scope, *id)).collect();
        let operands: Option<Vec<Operand>> = operands.into_iter().collect();
        let operands = operands?;
        let (first, rest) = operands.split_first()?;
        let mut left = *first;
        for right in rest {
            let span = left.span.to(right.span);
            let read = self.matmul_pair(left, *right, span)?;
            left = Operand { read, span };
        }
        Some(left.read)
    }

    /// Rule 10: the last axis of the left with the first of the right, and nothing else.
    fn matmul_pair(&mut self, a: Operand, b: Operand, span: Span) -> Option<Read> {
        let (left, right) = (self.axes(a.read), self.axes(b.read));
        if left.is_empty() || right.is_empty() || left.last() != right.first() {
            let d = self.contract_mismatch(a, b);
            self.report(d);
            return None;
        }
        let (m, n) = (left.len() as u32, right.len() as u32);
        let left_labels: Vec<u32> = (0..m).collect();
        let right_labels: Vec<u32> = (m - 1..m - 1 + n).collect();
        let out = left_labels
            .iter()
            .chain(&right_labels)
            .copied()
            .filter(|l| *l != m - 1)
            .collect();
        self.contract(&[(a.read, left_labels), (b.read, right_labels)], out, span)
    }

    fn contract_mismatch(&self, a: Operand, b: Operand) -> Diagnostic {
        let (left, right) = (self.axes(a.read), self.axes(b.read));
        let shown = |o: Operand| self.show(self.axes(o.read));
        let message = match (left.last(), right.first()) {
            (Some(x), Some(y)) => {
                format!(
                    "`@` cannot contract the last axis {} with the first axis {}",
                    self.show_size(x),
                    self.show_size(y)
                )
            }
            _ => "`@` needs an axis on both sides".to_owned(),
        };
        let d = Diagnostic::new(Code::ContractMismatch, message, a.span)
            .label(shown(a))
            .also(b.span, shown(b));
        d.hint(contract_hint(left, right))
    }

    /// The only value of a call.
    fn only(&mut self, values: &[Option<Read>], callee: &Ident) -> Option<Read> {
        if let [value] = values {
            return *value;
        }
        let message = format!(
            "`{}` gives {} values here, where one is expected",
            callee.name,
            values.len()
        );
        let d = Diagnostic::new(Code::WrongPattern, message, callee.span);
        self.report(d.hint(format!(
            "name them in an equation of their own: `a, b = {}(...)`",
            callee.name
        )));
        None
    }

    /// The values of an expression that may be several: those of a call, or one.
    pub(super) fn eval_all(&mut self, scope: &Scope, id: ExprId) -> Option<Vec<Option<Read>>> {
        let mut at = id;
        while let ExprKind::Paren(inner) = &self.program.file[at].kind {
            at = *inner;
        }
        let expr = &self.program.file[at];
        match &expr.kind {
            ExprKind::Call { .. } => self.eval_call(scope, expr),
            _ => Some(vec![self.eval(scope, id)]),
        }
    }

    /// The values of an equation, one a name on its left.
    pub(super) fn equation(&mut self, scope: &Scope, equation: &Equation) -> Vec<Option<Read>> {
        let failed = vec![None; equation.names.len()];
        let Some(values) = self.eval_all(scope, equation.value) else {
            return failed;
        };
        if values.len() != equation.names.len() {
            let d = self.wrong_pattern(equation, values.len());
            self.report(d);
            return failed;
        }
        values
    }

    fn wrong_pattern(&self, equation: &Equation, got: usize) -> Diagnostic {
        let left = equation
            .names
            .iter()
            .map(|n| n.span)
            .reduce(Span::to)
            .unwrap_or(equation.span);
        let plural = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
        let (names, values) = (plural(equation.names.len(), "name"), plural(got, "value"));
        let d = Diagnostic::new(
            Code::WrongPattern,
            format!("{names} on the left, {values} on the right"),
            left,
        );
        let d = d.label(names).also(self.program.file[equation.value].span, values);
        match got {
            1 => d.hint("only `split` and functions that return several values give more than one"),
            _ => d.hint("give every value a name; a name that starts with `_` may stay unused"),
        }
    }
}

/// What to write when `@` does not fit.
fn contract_hint(left: &[Size], right: &[Size]) -> String {
    let (first, last) = (left.first(), right.last());
    if left.is_empty() || right.is_empty() {
        return "to scale by a number, write `*`".to_owned();
    }
    if left.len() > 2 || right.len() > 2 {
        return "`@` never works by batches or heads; write an `einsum`, such as `einsum(\"n o i, n i -> n o\", R, h)`"
            .to_owned();
    }
    if right.len() == 2 && left.last() == last {
        return "the right side fits if it is transposed: `A @ transpose(B)`".to_owned();
    }
    if left.len() == 2 && first == right.first() {
        return "the left side fits if it is transposed: `transpose(A) @ B`, or `B @ A` for a vector B".to_owned();
    }
    "`A @ B` sums over the last axis of A and the first of B, which must be the same size".to_owned()
}
