//! Sizes as written to sizes in normal form, in shapes and in arguments that take a size.

use super::suggest;
use crate::diagnostics::{Code, Diagnostic, Span};
use crate::ir::{Name, Size};
use crate::syntax::ast::{self, ArgValue, ExprId, ExprKind, File, SizeKind};
use std::collections::BTreeMap;

/// What each name of a dimension stands for.
pub(super) type Sizes = BTreeMap<Name, Size>;

/// A size, or why there is none.
pub(super) type Result<T> = std::result::Result<T, Box<Diagnostic>>;

/// No value has more axes; a shape that has more is refused before anything grows with it.
pub(super) const MAX_AXES: usize = 16;

/// The axes of a shape.
pub(super) fn of_shape(shape: &ast::Shape, sizes: &Sizes) -> Result<Vec<Size>> {
    if shape.axes.len() > MAX_AXES {
        let message = format!("{} axes are too many; a value has at most {MAX_AXES}", shape.axes.len());
        return Err(Box::new(Diagnostic::new(Code::TooLarge, message, shape.span)));
    }
    shape.axes.iter().map(|axis| of_axis(axis, sizes)).collect()
}

/// A size that an axis is to have: one that is a whole number must be positive.
pub(super) fn of_axis(size: &ast::Size, sizes: &Sizes) -> Result<Size> {
    let found = of_size(size, sizes)?;
    match found.as_int() {
        Some(n) if n <= 0 => {
            let message = format!("an axis cannot have size {n}");
            Err(Box::new(Diagnostic::new(Code::SizeNotPositive, message, size.span)))
        }
        _ => Ok(found),
    }
}

/// A size in normal form.
pub(super) fn of_size(size: &ast::Size, sizes: &Sizes) -> Result<Size> {
    match &size.kind {
        SizeKind::Int(n) => Ok(Size::int(*n)),
        SizeKind::Dim(name) => dim(name, size.span, sizes),
        SizeKind::Sum(terms) => sum(terms.iter().map(|(minus, s)| (*minus, of_size(s, sizes))), size.span),
        SizeKind::Product(factors) => product(factors.iter().map(|s| of_size(s, sizes)), size.span),
    }
}

/// An expression that stands where a size is wanted: `N`, `4*H`, `-1`.
pub(super) fn of_expr(file: &File, id: ExprId, sizes: &Sizes) -> Result<Size> {
    let expr = &file[id];
    match &expr.kind {
        ExprKind::Number(n) => whole(*n, expr.span),
        ExprKind::Paren(inner) => of_expr(file, *inner, sizes),
        ExprKind::Neg(count, inner) => {
            let size = of_expr(file, *inner, sizes)?;
            let sign = Size::int(if count % 2 == 1 { -1 } else { 1 });
            size.mul(&sign).ok_or_else(|| overflow(expr.span))
        }
        ExprKind::Sum(terms) => {
            let terms = terms.iter().map(|(minus, e)| (*minus, of_expr(file, *e, sizes)));
            sum(terms, expr.span)
        }
        ExprKind::Product(factors) if factors.iter().all(|(divided, _)| !divided) => {
            product(factors.iter().map(|(_, e)| of_expr(file, *e, sizes)), expr.span)
        }
        ExprKind::Path { segments, delay: 0 } if segments.len() == 1 => dim(&segments[0].name, expr.span, sizes),
        ExprKind::Product(_) => Err(Box::new(not_a_size(expr.span).hint(
            "sizes are not divided: make the smaller one a dimension, and write the larger one as a multiple of it",
        ))),
        _ => Err(Box::new(not_a_size(expr.span))),
    }
}

/// An argument that is to be one size.
pub(super) fn of_arg(file: &File, value: &ArgValue, sizes: &Sizes) -> Result<Size> {
    match value {
        ArgValue::Expr(id) => of_expr(file, *id, sizes),
        ArgValue::Shape(shape) => Err(Box::new(not_a_size(shape.span))),
        ArgValue::Str(text) => Err(Box::new(not_a_size(text.span))),
    }
}

/// An argument that is to be one size or a list of them.
pub(super) fn of_list(file: &File, value: &ArgValue, sizes: &Sizes) -> Result<Vec<Size>> {
    match value {
        ArgValue::Shape(shape) => shape.axes.iter().map(|axis| of_size(axis, sizes)).collect(),
        _ => Ok(vec![of_arg(file, value, sizes)?]),
    }
}

/// The dimensions that an argument names, for telling what is used.
pub(super) fn names_in_arg(file: &File, value: &ArgValue) -> Vec<Name> {
    match value {
        ArgValue::Shape(shape) => names_in_shape(shape),
        ArgValue::Str(_) => Vec::new(),
        ArgValue::Expr(id) => {
            let mut names = Vec::new();
            super::walk::each(file, *id, &mut |expr| {
                if let ExprKind::Path { segments, .. } = &expr.kind {
                    names.extend(segments.first().map(|s| s.name.clone()));
                }
            });
            names
        }
    }
}

/// The dimensions that a shape names.
pub(super) fn names_in_shape(shape: &ast::Shape) -> Vec<Name> {
    shape.axes.iter().flat_map(names_in_size).collect()
}

/// The dimensions that a size names.
pub(super) fn names_in_size(size: &ast::Size) -> Vec<Name> {
    let mut names = Vec::new();
    let mut todo = vec![size];
    while let Some(size) = todo.pop() {
        match &size.kind {
            SizeKind::Int(_) => {}
            SizeKind::Dim(name) => names.push(name.clone()),
            SizeKind::Sum(terms) => todo.extend(terms.iter().map(|(_, s)| s)),
            SizeKind::Product(factors) => todo.extend(factors),
        }
    }
    names
}

fn dim(name: &Name, span: Span, sizes: &Sizes) -> Result<Size> {
    if let Some(size) = sizes.get(name) {
        return Ok(size.clone());
    }
    let mut d =
        Diagnostic::new(Code::UnknownDim, format!("there is no dimension `{name}`"), span).label("unknown dimension");
    d.hints.extend(suggest::hint(name, sizes.keys().map(|n| &**n)));
    Err(Box::new(d))
}

fn sum(terms: impl Iterator<Item = (bool, Result<Size>)>, span: Span) -> Result<Size> {
    let mut total = Size::int(0);
    for (minus, term) in terms {
        let term = term?;
        let next = if minus { total.sub(&term) } else { total.add(&term) };
        total = next.ok_or_else(|| overflow(span))?;
    }
    Ok(total)
}

fn product(mut factors: impl Iterator<Item = Result<Size>>, span: Span) -> Result<Size> {
    factors.try_fold(Size::int(1), |total, factor| {
        total.mul(&factor?).ok_or_else(|| overflow(span))
    })
}

fn whole(n: f64, span: Span) -> Result<Size> {
    if n.fract() != 0.0 {
        return Err(Box::new(not_a_size(span)));
    }
    // Above 2^53 a literal is no longer the number that was written.
    if n.abs() > 9_007_199_254_740_992.0 {
        return Err(overflow(span));
    }
    Ok(Size::int(n as i64))
}

/// A size that cannot be held.
pub(super) fn overflow(span: Span) -> Box<Diagnostic> {
    let d = Diagnostic::new(Code::SizeOverflow, "this size is too large to compute with", span);
    Box::new(d.hint("sizes are kept as polynomials with coefficients below 2^63 and at most 32 terms of degree 16"))
}

fn not_a_size(span: Span) -> Diagnostic {
    let message = "a size is expected here, such as `H` or `4*H`";
    Diagnostic::new(Code::ExpectedSize, message, span).label("not a size")
}
