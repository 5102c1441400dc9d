//! Functions that cut, join, view and move axes (rules 14 and 15).

use super::align::{Operand, repeated};
use super::build::Builder;
use super::call::Call;
use super::sizes;
use crate::diagnostics::{Code, Diagnostic, Span};
use crate::ir::{Op, Read, Size, Type};
use crate::syntax::ast::ArgValue;

/// More parts are not cut at once.
const MAX_PARTS: i64 = 4096;

impl Builder<'_, '_> {
    /// `split(x, n)` and `split(x, [s1, s2, ...])`.
    pub(super) fn split(&mut self, call: &Call) -> Option<Vec<Option<Read>>> {
        let x = self.value(call, 0)?;
        let axis = self.axis(call, 2, x, 0)?;
        let whole = self.axes(x.read)[axis].clone();
        let parts = match &call.arg(1)?.value {
            ArgValue::Shape(_) => self.listed_parts(call, &whole, x)?,
            _ => self.equal_parts(call, &whole, x)?,
        };
        let mut lo = Size::int(0);
        let mut values = Vec::with_capacity(parts.len());
        for part in parts {
            let hi = lo.add(&part);
            let hi = self.ok(hi.ok_or_else(|| sizes::overflow(call.span)))?;
            values.push(self.slice_at(x.read, axis, lo, hi.clone(), call.span));
            lo = hi;
        }
        Some(values)
    }

    fn equal_parts(&mut self, call: &Call, whole: &Size, x: Operand) -> Option<Vec<Size>> {
        let n = self.whole(call, 1)?;
        if !(1..=MAX_PARTS).contains(&n) {
            let message = format!("an axis is cut into 1 to {MAX_PARTS} parts, not into {n}");
            self.report(Diagnostic::new(Code::BadArgument, message, call.span_of(1)));
            return None;
        }
        let Some(part) = whole.div_exact(n) else {
            let axis = self.show_size(whole);
            let message = format!("the axis {axis} cannot be cut into {n} equal parts");
            let d = Diagnostic::new(Code::NotDivisible, message, call.span_of(1)).label(format!("{n} parts"));
            let d = d.also(x.span, self.show(self.axes(x.read)));
            self.report(
                d.hint("every coefficient of the size must be divisible; `split(e, [s1, s2])` cuts into given sizes"),
            );
            return None;
        };
        Some(vec![part; n as usize])
    }

    fn listed_parts(&mut self, call: &Call, whole: &Size, x: Operand) -> Option<Vec<Size>> {
        let found = sizes::of_list(self.program.file, &call.arg(1)?.value, &call.scope.sizes);
        let parts = self.ok(found)?;
        if let Some(n) = parts.iter().filter_map(Size::as_int).find(|n| *n <= 0) {
            let message = format!("a part cannot have size {n}");
            self.report(Diagnostic::new(Code::SizeNotPositive, message, call.span_of(1)));
            return None;
        }
        let total = parts.iter().try_fold(Size::int(0), |sum, part| sum.add(part));
        let total = self.ok(total.ok_or_else(|| sizes::overflow(call.span_of(1))))?;
        if total != *whole {
            let (sum, axis) = (self.show_size(&total), self.show_size(whole));
            let message = format!("the parts add up to {sum}, but the axis is {axis}");
            let d = Diagnostic::new(Code::NotDivisible, message, call.span_of(1)).label(sum);
            self.report(d.also(x.span, self.show(self.axes(x.read))));
            return None;
        }
        Some(parts)
    }

    fn slice_at(&mut self, x: Read, axis: usize, lo: Size, hi: Size, span: Span) -> Option<Read> {
        let length = self.ok(hi.sub(&lo).ok_or_else(|| sizes::overflow(span)))?;
        let mut axes = self.axes(x).to_vec();
        axes[axis] = length;
        self.node(Op::Slice { axis, lo, hi }, Type::real(axes), &[x], span)
    }

    /// `slice(x, axis, lo, hi)`.
    pub(super) fn slice(&mut self, call: &Call) -> Option<Read> {
        let x = self.value(call, 0)?;
        let axis = self.axis(call, 1, x, 0)?;
        let (lo, hi) = (self.size(call, 2)?, self.size(call, 3)?);
        let whole = self.axes(x.read)[axis].clone();
        let negative = |a: &Size, b: &Size| a.sub(b).and_then(|d| d.as_int()).is_some_and(|d| d < 0);
        let d = if negative(&lo, &Size::int(0)) || negative(&whole, &hi) {
            let message = format!(
                "{} to {} is not inside the axis {}",
                self.show_size(&lo),
                self.show_size(&hi),
                self.show_size(&whole)
            );
            Some(Diagnostic::new(
                Code::BadArgument,
                message,
                call.span_of(2).to(call.span_of(3)),
            ))
        } else if negative(&hi, &lo.add(&Size::int(1))?) {
            let message = format!(
                "nothing lies between {} and {}",
                self.show_size(&lo),
                self.show_size(&hi)
            );
            Some(Diagnostic::new(
                Code::SizeNotPositive,
                message,
                call.span_of(2).to(call.span_of(3)),
            ))
        } else {
            None
        };
        match d {
            Some(d) => {
                let d = d.also(x.span, self.show(self.axes(x.read)));
                self.report(d.hint("positions count from 0; the first is included, the last is not"));
                None
            }
            None => self.slice_at(x.read, axis, lo, hi, call.span),
        }
    }

    /// `concat(a, b, ..., axis=)`: along the first axis, or the one that the first value has by this name.
    pub(super) fn concat(&mut self, call: &Call) -> Option<Read> {
        let values = self.many(call, 0)?;
        let first = *values.first()?;
        let axis = self.axis(call, 1, first, 0)?;
        let mut axes = self.axes(first.read).to_vec();
        for value in &values[1..] {
            let own = self.axes(value.read);
            let others = |list: &[Size]| {
                list.iter()
                    .enumerate()
                    .filter(|(i, _)| *i != axis)
                    .map(|(_, s)| s.clone())
                    .collect()
            };
            let (a, b): (Vec<Size>, Vec<Size>) = (others(&axes), others(own));
            if own.len() != axes.len() || a != b {
                let d = self.concat_mismatch(first, *value, axis);
                self.report(d);
                return None;
            }
            let sum = axes[axis].add(&own[axis]);
            axes[axis] = self.ok(sum.ok_or_else(|| sizes::overflow(call.span)))?;
        }
        let reads: Vec<Read> = values.iter().map(|v| v.read).collect();
        self.node(Op::Concat { axis }, Type::real(axes), &reads, call.span)
    }

    fn concat_mismatch(&self, a: Operand, b: Operand, axis: usize) -> Diagnostic {
        let (left, right) = (self.show(self.axes(a.read)), self.show(self.axes(b.read)));
        let message = format!("{left} and {right} cannot be joined: all axes but the joined one must be the same");
        let d = Diagnostic::new(Code::AxisMismatch, message, b.span)
            .label(right)
            .also(a.span, left);
        match (axis, self.axes(b.read).is_empty()) {
            (_, true) => d.hint("a number becomes a vector of one by `expand(a, [1])`"),
            (0, _) => d.hint("`concat` joins the first axis; `axis=` names another"),
            _ => d,
        }
    }

    /// `reshape(x, [N, E])`: row-major.
    pub(super) fn reshape(&mut self, call: &Call) -> Option<Read> {
        let (x, axes) = (self.value(call, 0), self.shape(call, 1));
        let (x, axes) = (x?, axes?);
        if self.axes(x.read) == axes {
            return Some(x.read);
        }
        let ty = Type::real(axes);
        let from = self.ok(self
            .graph
            .node(x.read.node)
            .ty
            .elements()
            .ok_or_else(|| sizes::overflow(x.span)))?;
        let to = self.ok(ty.elements().ok_or_else(|| sizes::overflow(call.span_of(1))))?;
        if from != to {
            let (own, wanted) = (self.show(self.axes(x.read)), self.show(&ty.axes));
            let (from, to) = (self.show_size(&from), self.show_size(&to));
            let message = format!("{own} has {from} elements, {wanted} has {to}");
            let d = Diagnostic::new(Code::ReshapeMismatch, message, call.span_of(1)).label(wanted);
            self.report(d.also(x.span, own));
            return None;
        }
        self.node(Op::Reshape, ty, &[x.read], call.span)
    }

    /// `expand(x, [K, V])`: repeats x along the axes that it lacks.
    pub(super) fn expand(&mut self, call: &Call) -> Option<Read> {
        let (x, axes) = (self.value(call, 0), self.shape(call, 1));
        let (x, axes) = (x?, axes?);
        let own = self.axes(x.read);
        let distinct = repeated(own).is_none() && repeated(&axes).is_none();
        let inside = own.iter().all(|a| axes.contains(a));
        if own.is_empty() || own == axes || (distinct && inside) {
            return self.view(x.read, &axes, call.span);
        }
        let (code, hint) = match inside {
            true => (
                Code::RepeatedAxis,
                "an axis that occurs twice cannot be found by name; `einsum` with a vector of ones can",
            ),
            false => (Code::AxisMismatch, "the shape must have all axes of the value"),
        };
        let (own, wanted) = (self.show(own), self.show(&axes));
        let d = Diagnostic::new(code, format!("{own} cannot be expanded to {wanted}"), x.span).label(own);
        self.report(d.also(call.span_of(1), wanted).hint(hint));
        None
    }

    /// `shift(x, axis, k)`: element l is x's l - k, zero outside.
    pub(super) fn shift(&mut self, call: &Call) -> Option<Read> {
        let x = self.value(call, 0)?;
        let axis = self.axis(call, 1, x, 0)?;
        let by = self.whole(call, 2)?;
        let ty = Type::real(self.axes(x.read).to_vec());
        self.node(Op::Shift { axis, by }, ty, &[x.read], call.span)
    }

    /// `transpose(M)`: reverses the axes.
    pub(super) fn transpose(&mut self, call: &Call) -> Option<Read> {
        let x = self.value(call, 0)?;
        let mut axes = self.axes(x.read).to_vec();
        if axes.len() < 2 {
            return Some(x.read);
        }
        axes.reverse();
        let map = (0..axes.len()).rev().collect();
        self.broadcast(x.read, map, &axes, call.span)
    }
}
