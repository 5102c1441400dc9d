//! Visits every expression below one, without recursion.

use crate::syntax::ast::{ArgValue, Expr, ExprId, ExprKind, File};

/// Calls `visit` on `root` and on every expression below it, parents first.
pub(super) fn each<'a>(file: &'a File, root: ExprId, visit: &mut dyn FnMut(&'a Expr)) {
    let mut todo = vec![root];
    while let Some(id) = todo.pop() {
        let expr = &file[id];
        visit(expr);
        children(&expr.kind, &mut todo);
    }
}

/// Pushes the expressions directly below.
pub(super) fn children(kind: &ExprKind, out: &mut Vec<ExprId>) {
    match kind {
        ExprKind::Number(_) | ExprKind::Path { .. } | ExprKind::Error => {}
        ExprKind::Sum(list) | ExprKind::Product(list) => out.extend(list.iter().map(|(_, e)| *e)),
        ExprKind::MatMul(list) => out.extend(list),
        ExprKind::Neg(_, e) | ExprKind::Paren(e) => out.push(*e),
        ExprKind::Power(a, b) | ExprKind::Compare(_, a, b) => out.extend([*a, *b]),
        ExprKind::Call { args, .. } => out.extend(args.iter().filter_map(|arg| match arg.value {
            ArgValue::Expr(e) => Some(e),
            ArgValue::Shape(_) | ArgValue::Str(_) => None,
        })),
    }
}
