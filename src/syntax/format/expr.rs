//! Expressions, shapes and sizes in canonical spacing. The user's parentheses stay.

use super::line::Line;
use crate::diagnostics::Span;
use crate::syntax::ast::{Arg, ArgValue, CompareOp, ExprId, ExprKind, File, Ident, Prefix, Shape, Size, SizeKind};

/// An expression.
pub(super) fn expr(file: &File, line: &mut Line<'_, '_>, id: ExprId) {
    let expr = &file[id];
    match &expr.kind {
        ExprKind::Number(_) => line.token(&line.source()[expr.span.range()], expr.span),
        ExprKind::Sum(terms) => chain(file, line, terms, ["+", "-"], 1),
        ExprKind::Product(factors) => chain(file, line, factors, ["*", "/"], 2),
        ExprKind::Neg(count, operand) => {
            line.token(
                &"-".repeat(*count as usize),
                Span {
                    end: expr.span.start + 1,
                    ..expr.span
                },
            );
            self::expr(file, line, *operand);
        }
        ExprKind::MatMul(factors) => {
            let links: Vec<(bool, ExprId)> = factors.iter().map(|f| (false, *f)).collect();
            chain(file, line, &links, ["@", "@"], 3);
        }
        ExprKind::Power(base, exponent) => {
            self::expr(file, line, *base);
            line.text("^");
            self::expr(file, line, *exponent);
        }
        ExprKind::Compare(op, left, right) => {
            self::expr(file, line, *left);
            line.text(&format!(" {}", sign(*op)));
            line.blank(0);
            self::expr(file, line, *right);
        }
        ExprKind::Paren(inner) => {
            line.token(
                "",
                Span {
                    end: expr.span.start,
                    ..expr.span
                },
            );
            line.opening("(");
            self::expr(file, line, *inner);
            line.closing(")", expr.span);
        }
        ExprKind::Path { segments, delay } => path(line, segments, *delay, expr.span),
        ExprKind::Call { prefixes, callee, args } => call(file, line, (prefixes, callee, args), expr.span),
        // Only text without errors is printed.
        ExprKind::Error => line.token(&line.source()[expr.span.range()], expr.span),
    }
}

fn chain(file: &File, line: &mut Line<'_, '_>, links: &[(bool, ExprId)], marks: [&str; 2], cost: u32) {
    for (n, (second, operand)) in links.iter().enumerate() {
        if n > 0 {
            line.text(&format!(" {}", marks[usize::from(*second)]));
            line.blank(cost);
        }
        expr(file, line, *operand);
    }
}

fn sign(op: CompareOp) -> &'static str {
    match op {
        CompareOp::Eq => "==",
        CompareOp::Ne => "!=",
        CompareOp::Lt => "<",
        CompareOp::Le => "<=",
        CompareOp::Gt => ">",
        CompareOp::Ge => ">=",
    }
}

fn path(line: &mut Line<'_, '_>, segments: &[Ident], delay: i32, span: Span) {
    for (n, segment) in segments.iter().enumerate() {
        line.text(if n > 0 { "." } else { "" });
        line.token(&segment.name, segment.span);
    }
    if delay != 0 {
        line.opening(&format!(
            "[t{}{}",
            if delay > 0 { '-' } else { '+' },
            delay.unsigned_abs()
        ));
        line.closing("]", span);
    }
}

fn call(file: &File, line: &mut Line<'_, '_>, parts: (&[Prefix], &Ident, &[Arg]), span: Span) {
    let (prefixes, callee, args) = parts;
    for prefix in prefixes {
        line.token(
            "",
            Span {
                end: span.start,
                ..span
            },
        );
        match prefix {
            Prefix::Backward => line.text("backward "),
            Prefix::Stack(layers) => line.text(&format!("stack {layers} ")),
        }
    }
    line.token(&callee.name, callee.span);
    line.opening("(");
    for (n, arg) in args.iter().enumerate() {
        comma(line, n, 0);
        if let Some(name) = &arg.name {
            line.token(&name.name, name.span);
            line.text("=");
        }
        match &arg.value {
            ArgValue::Expr(value) => expr(file, line, *value),
            ArgValue::Shape(value) => shape(line, value),
            ArgValue::Str(value) => line.token(&format!("\"{}\"", value.name), value.span),
        }
    }
    line.closing(")", span);
}

/// A comma before all but the first of a list.
pub(super) fn comma(line: &mut Line<'_, '_>, n: usize, cost: u32) {
    if n > 0 {
        line.text(",");
        line.blank(cost);
    }
}

/// `[4*H, I]`.
pub(super) fn shape(line: &mut Line<'_, '_>, shape: &Shape) {
    line.token(
        "",
        Span {
            end: shape.span.start,
            ..shape.span
        },
    );
    line.opening("[");
    for (n, axis) in shape.axes.iter().enumerate() {
        comma(line, n, 0);
        size(line, axis);
    }
    line.closing("]", shape.span);
}

/// A size, without blanks.
pub(super) fn size(line: &mut Line<'_, '_>, size: &Size) {
    match &size.kind {
        SizeKind::Int(value) => line.token(&value.to_string(), size.span),
        SizeKind::Dim(name) => line.token(name, size.span),
        SizeKind::Sum(terms) => {
            for (n, (subtracted, term)) in terms.iter().enumerate() {
                line.text(if n == 0 {
                    ""
                } else if *subtracted {
                    "-"
                } else {
                    "+"
                });
                size_within(line, term, matches!(term.kind, SizeKind::Sum(_)));
            }
        }
        SizeKind::Product(factors) => {
            for (n, factor) in factors.iter().enumerate() {
                line.text(if n == 0 { "" } else { "*" });
                size_within(
                    line,
                    factor,
                    matches!(factor.kind, SizeKind::Sum(_) | SizeKind::Product(_)),
                );
            }
        }
    }
}

fn size_within(line: &mut Line<'_, '_>, inner: &Size, brackets: bool) {
    if !brackets {
        return size(line, inner);
    }
    line.token(
        "",
        Span {
            end: inner.span.start,
            ..inner.span
        },
    );
    line.opening("(");
    size(line, inner);
    line.closing(")", inner.span);
}
