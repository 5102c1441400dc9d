//! How each scalar function is written in C: one row each.
//!
//! By default every function is accurate to a few units in the last place. With `fast_math` exponentials, logarithms and
//! tangents use the device's approximations.

use super::expr::{Expr, Prec, Type};
use rnnc_runtime::scalar::{Binary, Unary};

/// How a function of one number is written.
enum Form {
    /// `name(x)`
    Call(&'static str),
    /// `-x`
    Prefix(&'static str),
    /// `x`
    Same,
}

/// A function of one number.
pub fn unary(op: Unary, x: &Expr, fast: bool) -> Expr {
    let pick = |accurate, approximate| Form::Call(if fast { approximate } else { accurate });
    let form = match op {
        Unary::Neg => Form::Prefix("-"),
        Unary::Exp => pick("expf", "__expf"),
        Unary::Log => pick("logf", "__logf"),
        Unary::Sqrt => Form::Call("sqrtf"),
        Unary::Abs => Form::Call("fabsf"),
        Unary::Tanh => pick("tanhf", "tanh_fast"),
        Unary::Sigmoid => pick("sigmoid", "sigmoid_fast"),
        Unary::Relu => Form::Call("relu"),
        Unary::Softplus => Form::Call("softplus"),
        Unary::LogSigmoid => Form::Call("logsigmoid"),
        Unary::Gelu => Form::Call("gelu"),
        Unary::Silu => pick("silu", "silu_fast"),
        Unary::Sin => Form::Call("sinf"),
        Unary::Cos => Form::Call("cosf"),
        Unary::Sign => Form::Call("sign"),
        Unary::Floor => Form::Call("floorf"),
        Unary::Erf => Form::Call("erff"),
        Unary::HardSigmoid => Form::Call("hard_sigmoid"),
        Unary::StopGradient => Form::Same,
    };
    let x = x.as_float();
    match form {
        Form::Call(name) => Expr::call(name, &[x]),
        Form::Prefix(sign) => Expr::new(format!("{sign}{}", x.within(Prec::Primary)), Prec::Prefix, Type::Float),
        Form::Same => x,
    }
}

/// A function of two numbers. Comparisons are truth values.
pub fn binary(op: Binary, a: &Expr, b: &Expr) -> Expr {
    let infix = |op, prec, ty| {
        // Whole numbers compare as they are; arithmetic is in float.
        let exact = ty == Type::Bool && a.ty == Type::Int && b.ty == Type::Int;
        if exact {
            Expr::infix(a, op, b, prec, ty)
        } else {
            Expr::infix(&a.as_float(), op, &b.as_float(), prec, ty)
        }
    };
    let call = |name| Expr::call(name, &[a.as_float(), b.as_float()]);
    match op {
        Binary::Add => infix("+", Prec::Sum, Type::Float),
        Binary::Sub => infix("-", Prec::Sum, Type::Float),
        Binary::Mul => infix("*", Prec::Product, Type::Float),
        Binary::Div => infix("/", Prec::Product, Type::Float),
        Binary::Max => call("maximum"),
        Binary::Min => call("minimum"),
        Binary::Pow => power(a, b),
        Binary::Mod => call("modulo"),
        Binary::LogAddExp => call("logaddexp"),
        Binary::Eq => infix("==", Prec::Equality, Type::Bool),
        Binary::Ne => infix("!=", Prec::Equality, Type::Bool),
        Binary::Lt => infix("<", Prec::Relational, Type::Bool),
        Binary::Le => infix("<=", Prec::Relational, Type::Bool),
        Binary::Gt => infix(">", Prec::Relational, Type::Bool),
        Binary::Ge => infix(">=", Prec::Relational, Type::Bool),
    }
}

/// Powers that a person would not write as `powf`.
fn power(a: &Expr, b: &Expr) -> Expr {
    match b.text.as_str() {
        "1.0f" => a.as_float(),
        "2.0f" => Expr::call("square", &[a.as_float()]),
        "0.5f" => Expr::call("sqrtf", &[a.as_float()]),
        _ => Expr::call("powf", &[a.as_float(), b.as_float()]),
    }
}

/// `x` within `[lo, hi]`.
pub fn clamp(x: &Expr, lo: &Expr, hi: &Expr) -> Expr {
    Expr::call("clamp", &[x.as_float(), lo.as_float(), hi.as_float()])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A function that is neither C's nor the prelude's would only be found out by a compiler.
    #[test]
    fn every_function_exists() {
        let known: Vec<&str> = super::super::prelude::names().collect();
        let exists = |e: &Expr| {
            let Some((name, _)) = e.text.split_once('(') else {
                return true;
            };
            let c = [
                "expf", "logf", "sqrtf", "fabsf", "tanhf", "sinf", "cosf", "floorf", "erff", "powf", "__expf", "__logf",
            ];
            known.contains(&name) || c.contains(&name)
        };
        let (a, b) = (Expr::float("a"), Expr::float("b"));
        for fast in [false, true] {
            assert!(Unary::ALL.iter().all(|op| exists(&unary(*op, &a, fast))));
        }
        let calls = Binary::ALL
            .iter()
            .map(|op| binary(*op, &a, &b))
            .filter(|e| e.prec == Prec::Primary);
        assert!(calls.chain([clamp(&a, &b, &b)]).all(|e| exists(&e)));
    }

    #[test]
    fn whole_numbers_compare_exactly() {
        let (i, x) = (Expr::int("token"), Expr::float("x"));
        assert_eq!(binary(Binary::Eq, &i, &Expr::int("u")).text, "token == u");
        assert_eq!(binary(Binary::Eq, &i, &x).text, "(float)token == x");
        assert_eq!(unary(Unary::Neg, &binary(Binary::Add, &x, &x), false).text, "-(x + x)");
    }
}
