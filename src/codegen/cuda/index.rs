//! Index expressions as C: 32-bit where no value can pass 2^31, else 64-bit.

use super::expr::{Expr, Prec, Type};
use rnnc_runtime::plan::{Atom, Guard, Index};

/// A variable of an iteration space: `Var(i)` is the i-th of a list of these. In C it is an `int` in `0..extent`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// Its C name; may be any expression that binds like a name.
    pub name: String,
    /// One past its greatest value.
    pub extent: usize,
}

impl Variable {
    /// A variable of this name and extent.
    pub fn new(name: impl Into<String>, extent: usize) -> Variable {
        Variable {
            name: name.into(),
            extent,
        }
    }
}

/// The extents of variables, as [`Index::range`] wants them.
pub fn extents(vars: &[Variable]) -> Vec<usize> {
    vars.iter().map(|v| v.extent).collect()
}

/// Whether some part of the sum can pass 2^31, so that it must be computed in 64 bits.
pub fn is_wide(index: &Index, vars: &[Variable]) -> bool {
    let extents = extents(vars);
    let reach = |i: &Index| i.range(&extents);
    let mut total = i128::from(index.base).abs();
    for term in &index.terms {
        let one = Index {
            base: 0,
            terms: vec![term.clone()],
        };
        let (lo, hi) = reach(&one);
        total += i128::from(lo).abs().max(i128::from(hi).abs());
    }
    total > i128::from(i32::MAX)
}

/// The index as an expression.
pub fn print(index: &Index, vars: &[Variable]) -> Expr {
    let wide = is_wide(index, vars);
    // What is added comes first, so that no sum opens with a minus unless all of it is negative.
    let terms = index.terms.iter().filter(|t| !is_always_zero(&t.atom, vars));
    let mut parts: Vec<(Expr, bool)> = terms
        .map(|t| {
            (
                scaled(&print_atom(&t.atom, vars, wide), t.stride.unsigned_abs()),
                t.stride < 0,
            )
        })
        .collect();
    if index.base != 0 {
        parts.push((constant_size(index.base.unsigned_abs()), index.base < 0));
    }
    parts.sort_by_key(|(_, negative)| *negative);
    let sum = parts
        .iter()
        .fold(None, |sum, (e, negative)| Some(append(sum, e, *negative)));
    sum.unwrap_or_else(|| Expr::int("0"))
}

/// `copy * elements + index`: the address of an element of a copy of a shape. `copy` is a 64-bit expression.
pub fn print_within(copy: &Expr, elements: usize, index: &Index, vars: &[Variable]) -> Expr {
    let start = scaled(copy, elements as u64);
    let inner = print(index, vars);
    if inner.text == "0" {
        return start;
    }
    if is_zero(&start) {
        return inner;
    }
    if inner.text.starts_with('-') {
        return append(Some(start), &inner, false);
    }
    // Spliced in flat: sums of whole numbers associate.
    Expr::new(
        format!("{} + {}", start.within(Prec::Sum), inner.within(Prec::Sum)),
        Prec::Sum,
        Type::Int,
    )
}

/// Where a guard holds, as a truth value; `None` where it holds always.
pub fn print_guard(guard: &Guard, vars: &[Variable]) -> Option<Expr> {
    let (lo, hi) = guard.index.range(&extents(vars));
    if guard.lo >= guard.hi || hi < guard.lo || lo >= guard.hi {
        return Some(Expr::new("false", Prec::Primary, Type::Bool));
    }
    let index = print(&guard.index, vars);
    let compare = |op: &str, n: i64| Expr::infix(&index, op, &constant(n), Prec::Relational, Type::Bool);
    let least = (lo < guard.lo).then(|| compare(">=", guard.lo));
    let most = (hi >= guard.hi).then(|| compare("<", guard.hi));
    both(least, most)
}

/// Where all guards hold; `None` where they hold always.
pub fn print_guards(guards: &[Guard], vars: &[Variable]) -> Option<Expr> {
    guards.iter().fold(None, |all, g| both(all, print_guard(g, vars)))
}

/// `a && b`, of conditions that may be absent.
pub fn both(a: Option<Expr>, b: Option<Expr>) -> Option<Expr> {
    match (a, b) {
        (Some(a), Some(b)) => Some(Expr::infix(&a, "&&", &b, Prec::And, Type::Bool)),
        (a, b) => a.or(b),
    }
}

/// A variable of one value is 0.
fn is_always_zero(atom: &Atom, vars: &[Variable]) -> bool {
    matches!(atom, Atom::Var(v) if vars.get(*v as usize).is_none_or(|v| v.extent <= 1))
}

fn print_atom(atom: &Atom, vars: &[Variable], wide: bool) -> Expr {
    match atom {
        Atom::Var(v) => {
            let name = vars.get(*v as usize).map_or("0", |v| v.name.as_str());
            if wide {
                Expr::new(format!("(long long){name}"), Prec::Prefix, Type::Int)
            } else {
                Expr::int(name)
            }
        }
        Atom::DivMod { of, div, modulo } => {
            let of = print(of, vars);
            let quotient = match div {
                1 => of,
                _ => Expr::infix(&of, "/", &constant(*div), Prec::Product, Type::Int),
            };
            let value = match modulo {
                None => quotient,
                Some(m) => Expr::infix(&quotient, "%", &constant(*m), Prec::Product, Type::Int),
            };
            if wide {
                Expr::new(
                    format!("(long long){}", value.within(Prec::Primary)),
                    Prec::Prefix,
                    Type::Int,
                )
            } else {
                // Written out, so that a factor behind it cannot be read into the division.
                Expr::new(format!("({})", value.text), Prec::Primary, Type::Int)
            }
        }
    }
}

fn scaled(e: &Expr, by: u64) -> Expr {
    match by {
        1 => e.clone(),
        _ => Expr::infix(e, "*", &constant_size(by), Prec::Product, Type::Int),
    }
}

fn append(sum: Option<Expr>, term: &Expr, negative: bool) -> Expr {
    match sum {
        None if negative => Expr::new(format!("-{}", term.within(Prec::Prefix)), Prec::Prefix, Type::Int),
        None => term.clone(),
        Some(sum) => Expr::infix(&sum, if negative { "-" } else { "+" }, term, Prec::Sum, Type::Int),
    }
}

/// A whole number as C.
pub fn constant(n: i64) -> Expr {
    let size = constant_size(n.unsigned_abs());
    if n < 0 {
        Expr::new(format!("-{}", size.text), Prec::Prefix, Type::Int)
    } else {
        size
    }
}

fn constant_size(n: u64) -> Expr {
    let suffix = if n > i32::MAX as u64 { "LL" } else { "" };
    Expr::int(format!("{n}{suffix}"))
}

fn is_zero(e: &Expr) -> bool {
    e.text == "0" || e.text.starts_with("0 *")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vars() -> Vec<Variable> {
        vec![Variable::new("u", 6), Variable::new("n", 5)]
    }

    #[test]
    fn sums_of_strides() {
        let i = Index::var(0).times(5).add(&Index::var(1)).plus(3);
        assert_eq!(print(&i, &vars()).text, "u * 5 + n + 3");
        assert_eq!(print(&Index::var(1).times(-2).plus(8), &vars()).text, "8 - n * 2");
        assert_eq!(print(&Index::int(7), &vars()).text, "7");
        assert_eq!(
            print_within(&Expr::int("at"), 30, &i, &vars()).text,
            "at * 30 + u * 5 + n + 3"
        );
        assert_eq!(print_within(&Expr::int("at"), 1, &Index::int(0), &vars()).text, "at");
    }

    #[test]
    fn large_products_are_64_bit() {
        let i = Index::var(0).times(1 << 30).add(&Index::var(1));
        assert_eq!(print(&i, &vars()).text, "(long long)u * 1073741824 + (long long)n");
        assert_eq!(print(&Index::int(1 << 40), &vars()).text, "1099511627776LL");
    }

    #[test]
    fn divisions_are_bracketed() {
        let flat = Index::var(0).times(5).add(&Index::var(1)).div_mod(4, Some(3), &[6, 5]);
        assert_eq!(print(&flat.times(2), &vars()).text, "((u * 5 + n) / 4 % 3) * 2");
    }

    #[test]
    fn guards_say_only_what_can_fail() {
        let guard = |index: Index, lo, hi| print_guard(&Guard { index, lo, hi }, &vars()).map(|e| e.text);
        assert_eq!(guard(Index::var(0), 0, 6), None);
        assert_eq!(guard(Index::var(0), 2, 6).as_deref(), Some("u >= 2"));
        assert_eq!(
            guard(Index::var(0).plus(-1), 0, 4).as_deref(),
            Some("u - 1 >= 0 && u - 1 < 4")
        );
        assert_eq!(guard(Index::var(0), 6, 9).as_deref(), Some("false"));
    }
}
