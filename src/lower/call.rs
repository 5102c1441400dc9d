//! Calls: the function's row and its arguments go in, its values come out. Rules of more than a line are in the files
//! named after what they do (`reduce`, `shapes`, `make`, `einsum`, `inline`).

use super::align::Operand;
use super::arguments::{self, Bound};
use super::build::Builder;
use super::builtins::{ArgKind, Rule};
use super::expr::Scope;
use super::program::Callable;
use super::sizes;
use crate::diagnostics::{Code, Diagnostic, Span};
use crate::ir::op::{Binary, Reduce};
use crate::ir::{Op, Read, Size};
use crate::syntax::ast::{Arg, ArgValue, Expr, ExprId, ExprKind, Ident};

/// A call whose arguments have found their parameters.
pub(super) struct Call<'c> {
    pub scope: &'c Scope,
    pub callee: &'c Ident,
    pub bound: Bound<'c>,
    pub span: Span,
}

impl<'c> Call<'c> {
    /// The argument of a parameter that is given at most once.
    pub(super) fn arg(&self, param: usize) -> Option<&'c Arg> {
        self.bound.get(param)?.first().copied()
    }

    /// Where the argument of a parameter stands; the whole call if it is not given.
    pub(super) fn span_of(&self, param: usize) -> Span {
        self.arg(param).map_or(self.span, |arg| arg.span)
    }
}

impl Builder<'_, '_> {
    /// The values of a call; `None` if even their number is unknown.
    pub(super) fn eval_call(&mut self, scope: &Scope, expr: &Expr) -> Option<Vec<Option<Read>>> {
        let ExprKind::Call { callee, args, prefixes } = &expr.kind else {
            return None;
        };
        let program = self.program;
        let callable = program.callable(&callee.name)?;
        let params = program.params(callable)?;
        // What does not fit has been reported when names were resolved.
        let bound = arguments::bind(callee, params, args).ok()?;
        let span = expr.span;
        let call = Call {
            scope,
            callee,
            bound,
            span,
        };
        match callable {
            _ if !prefixes.is_empty() => None,
            Callable::Builtin(b) if b.rule == Rule::Split => self.split(&call),
            Callable::Builtin(b) => Some(vec![self.builtin(&call, b.rule)]),
            Callable::Fn(index) => self.inline(&call, index),
            Callable::Cell => None,
        }
    }

    /// Pushes the arguments of a call that are values; of a sum of a product, its factors.
    pub(super) fn value_arguments(&self, expr: &Expr, out: &mut Vec<ExprId>) {
        let ExprKind::Call { callee, args, .. } = &expr.kind else {
            return;
        };
        let Some(callable) = self.program.callable(&callee.name) else {
            return;
        };
        let params = self.program.params(callable).unwrap_or(&[]);
        let Ok(bound) = arguments::bind(callee, params, args) else {
            return;
        };
        let is_sum = matches!(callable, Callable::Builtin(b) if b.rule == Rule::Reduce(Reduce::Sum));
        for (param, args) in params.iter().zip(bound) {
            for arg in args.iter().filter(|_| param.kind == ArgKind::Value) {
                match (&arg.value, self.factors(arg)) {
                    (_, Some(factors)) if is_sum => out.extend(factors.iter().map(|(_, id)| *id)),
                    (ArgValue::Expr(id), _) => out.push(*id),
                    (ArgValue::Shape(_) | ArgValue::Str(_), _) => {}
                }
            }
        }
    }

    fn builtin(&mut self, call: &Call, rule: Rule) -> Option<Read> {
        match rule {
            Rule::Unary(f) => {
                let x = self.value(call, 0)?;
                self.unary(f, x.read, call.span)
            }
            Rule::Binary(Binary::Pow) => {
                let operands = self.values(call)?;
                self.power(operands[0], operands[1], call.span)
            }
            Rule::Binary(f) => self.elementwise_call(call, Op::Binary(f)),
            Rule::Clamp => self.elementwise_call(call, Op::Clamp),
            Rule::Where => self.elementwise_call(call, Op::Where),
            Rule::Reduce(Reduce::Sum) => self.sum_call(call),
            Rule::Reduce(op) => self.reduce_call(call, op),
            Rule::Norm => self.norm(call),
            Rule::Softmax => self.softmax(call),
            Rule::LayerNorm => self.layer_norm(call),
            Rule::RmsNorm => self.rms_norm(call),
            Rule::Concat => self.concat(call),
            Rule::Slice => self.slice(call),
            Rule::Reshape => self.reshape(call),
            Rule::Expand => self.expand(call),
            Rule::Shift => self.shift(call),
            Rule::Transpose => self.transpose(call),
            Rule::Eye => self.eye(call),
            Rule::Iota => self.iota(call),
            Rule::Tril => self.triangle(call, true),
            Rule::Triu => self.triangle(call, false),
            Rule::OneHot => self.one_hot(call),
            Rule::Embed => self.embed(call),
            Rule::CrossEntropy => self.cross_entropy(call),
            Rule::Einsum => self.einsum(call),
            Rule::Split | Rule::Unbuilt => None,
        }
    }

    fn elementwise_call(&mut self, call: &Call, op: Op) -> Option<Read> {
        let operands = self.values(call)?;
        self.aligned(op, &operands, call.span)
    }

    /// The real value given for a parameter.
    pub(super) fn value(&mut self, call: &Call, param: usize) -> Option<Operand> {
        self.value_of(call, call.arg(param)?)
    }

    fn value_of(&mut self, call: &Call, arg: &Arg) -> Option<Operand> {
        match arg.value {
            ArgValue::Expr(id) => self.real(call.scope, id),
            ArgValue::Shape(_) | ArgValue::Str(_) => None,
        }
    }

    /// The real values of all parameters that take one, in order.
    pub(super) fn values(&mut self, call: &Call) -> Option<Vec<Operand>> {
        let args = call.bound.iter().flatten();
        let values: Vec<Option<Operand>> = args.map(|arg| self.value_of(call, arg)).collect();
        values.into_iter().collect()
    }

    /// The real values given for a parameter that may be given many times.
    pub(super) fn many(&mut self, call: &Call, param: usize) -> Option<Vec<Operand>> {
        let values: Vec<Option<Operand>> = call.bound[param].iter().map(|arg| self.value_of(call, arg)).collect();
        values.into_iter().collect()
    }

    /// The index given for a parameter, with its size.
    pub(super) fn index(&mut self, call: &Call, param: usize) -> Option<(Operand, Size)> {
        let arg = call.arg(param)?;
        let ArgValue::Expr(id) = arg.value else { return None };
        let read = self.eval(call.scope, id)?;
        let Some(size) = self.index_of(read).cloned() else {
            let message = format!(
                "`{}` takes an index here, not numbers of axes {}",
                call.callee.name,
                self.show(self.axes(read))
            );
            let d = Diagnostic::new(Code::IndexMisuse, message, arg.span).label("not an index");
            self.report(d.hint("an index is an input: `input token: index(V)`"));
            return None;
        };
        Some((Operand { read, span: arg.span }, size))
    }

    /// The size given for a parameter.
    pub(super) fn size(&mut self, call: &Call, param: usize) -> Option<Size> {
        let found = sizes::of_arg(self.program.file, &call.arg(param)?.value, &call.scope.sizes);
        self.ok(found)
    }

    /// The whole number given for a parameter.
    pub(super) fn whole(&mut self, call: &Call, param: usize) -> Option<i64> {
        let size = self.size(call, param)?;
        if size.as_int().is_none() {
            let message = format!(
                "`{}` needs a whole number here, not a size that depends on dimensions",
                call.callee.name
            );
            self.report(Diagnostic::new(Code::BadArgument, message, call.span_of(param)));
        }
        size.as_int()
    }

    /// The shape given for a parameter.
    pub(super) fn shape(&mut self, call: &Call, param: usize) -> Option<Vec<Size>> {
        let arg = call.arg(param)?;
        let found = match &arg.value {
            ArgValue::Shape(shape) => sizes::of_shape(shape, &call.scope.sizes),
            _ => {
                let message = format!("`{}` needs a shape in brackets here", call.callee.name);
                let d = Diagnostic::new(Code::BadArgument, message, arg.span);
                Err(Box::new(d.hint("such as `[N, E]`; one axis is `[N]`")))
            }
        };
        self.ok(found)
    }

    /// The place of the axis given for a parameter; `default` if none is.
    pub(super) fn axis(&mut self, call: &Call, param: usize, of: Operand, default: usize) -> Option<usize> {
        match call.arg(param) {
            Some(arg) => {
                let size = self.size(call, param)?;
                let found = self.place(self.axes(of.read), &size, arg.span, of.span);
                self.ok(found)
            }
            None if self.axes(of.read).len() > default => Some(default),
            None => {
                let message = format!("`{}` needs a value with axes; this is a number", call.callee.name);
                self.report(Diagnostic::new(Code::NoSuchAxis, message, of.span).label("no axes"));
                None
            }
        }
    }

    /// The places of the axes given for a parameter, ascending; all places if none is given.
    pub(super) fn axis_list(&mut self, call: &Call, param: usize, of: &[Size], of_span: Span) -> Option<Vec<usize>> {
        let Some(arg) = call.arg(param) else {
            return Some((0..of.len()).collect());
        };
        let found = sizes::of_list(self.program.file, &arg.value, &call.scope.sizes);
        let list = self.ok(found)?;
        let mut places = Vec::new();
        for size in &list {
            let found = self.place(of, size, arg.span, of_span);
            places.push(self.ok(found)?);
        }
        places.sort_unstable();
        places.dedup();
        Some(places)
    }

    /// Where an axis of this size is; it must be there exactly once.
    pub(super) fn place(&self, of: &[Size], size: &Size, span: Span, of_span: Span) -> sizes::Result<usize> {
        let places: Vec<usize> = (0..of.len()).filter(|i| of[*i] == *size).collect();
        let shown = self.show(of);
        match places.as_slice() {
            [place] => Ok(*place),
            [] => {
                let message = format!("there is no axis {}; the axes are {shown}", self.show_size(size));
                let d = Diagnostic::new(Code::NoSuchAxis, message, span).label("no such axis");
                let d = d.also(of_span, shown);
                Err(Box::new(match size.as_int() {
                    Some(_) => d.hint("axes have names here, not numbers: `sum(x, N)`"),
                    None => d,
                }))
            }
            _ => {
                let message = format!(
                    "the axis {} occurs {} times in {shown}",
                    self.show_size(size),
                    places.len()
                );
                let d = Diagnostic::new(Code::NoSuchAxis, message, span).label("which of them is not clear");
                Err(Box::new(
                    d.also(of_span, shown).hint("`einsum` tells equal axes apart by place"),
                ))
            }
        }
    }
}
