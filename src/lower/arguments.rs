//! Arguments to parameters: which argument of a call goes where, for built-in functions and `fn`s alike.

use super::builtins::{Need, Param};
use super::suggest;
use crate::diagnostics::{Code, Diagnostic};
use crate::syntax::ast::{Arg, Ident};

/// By parameter: the arguments it got (none or one; several for the last positional one of a variadic function).
pub(super) type Bound<'a> = Vec<Vec<&'a Arg>>;

/// Gives every argument to its parameter: positional ones in order, named ones by name.
///
/// # Errors
/// Too many, too few, an unknown name, or a parameter given twice.
pub(super) fn bind<'a>(callee: &Ident, params: &[Param], args: &'a [Arg]) -> Result<Bound<'a>, Box<Diagnostic>> {
    let mut bound: Bound<'a> = vec![Vec::new(); params.len()];
    let mut next = 0;
    for arg in args {
        let slot = match &arg.name {
            Some(name) => named(callee, params, name)?,
            None => {
                while next < params.len() && params[next].need != Need::Many && !bound[next].is_empty() {
                    next += 1;
                }
                next
            }
        };
        if slot >= params.len() {
            return Err(arity(callee, params, args.len()));
        }
        if params[slot].need != Need::Many && !bound[slot].is_empty() {
            return Err(twice(callee, &params[slot], bound[slot][0], arg));
        }
        bound[slot].push(arg);
    }
    let missing = |(p, b): (&Param, &Vec<&Arg>)| p.need != Need::Optional && b.is_empty();
    if params.iter().zip(&bound).any(missing) {
        return Err(arity(callee, params, args.len()));
    }
    Ok(bound)
}

fn named(callee: &Ident, params: &[Param], name: &Ident) -> Result<usize, Box<Diagnostic>> {
    if let Some(place) = params.iter().position(|p| *p.name == *name.name) {
        return Ok(place);
    }
    let message = format!("`{}` has no argument `{}`", callee.name, name.name);
    let d = Diagnostic::new(Code::UnknownArgument, message, name.span).label("not an argument of this function");
    let d = match suggest::hint(&name.name, params.iter().map(|p| p.name)) {
        Some(hint) => d.hint(hint),
        None => d.hint(format!("to compare, write `{} == ...`", name.name)),
    };
    Err(Box::new(d.hint(format!("it is {}", signature(callee, params)))))
}

fn twice(callee: &Ident, param: &Param, first: &Arg, second: &Arg) -> Box<Diagnostic> {
    let message = format!("the argument `{}` of `{}` is given twice", param.name, callee.name);
    let d = Diagnostic::new(Code::UnknownArgument, message, second.span).label("given again here");
    Box::new(d.also(first.span, "first given here"))
}

fn arity(callee: &Ident, params: &[Param], got: usize) -> Box<Diagnostic> {
    let least = params.iter().filter(|p| p.need != Need::Optional).count();
    let expected = if params.iter().any(|p| p.need == Need::Many) {
        format!("at least {}", count(least))
    } else if least == params.len() {
        count(least)
    } else {
        format!("{least} to {}", count(params.len()))
    };
    let message = format!("`{}` takes {expected}, not {got}", callee.name);
    let d = Diagnostic::new(Code::WrongArity, message, callee.span).label("called here");
    Box::new(d.hint(format!("it is {}", signature(callee, params))))
}

fn count(n: usize) -> String {
    format!("{n} argument{}", if n == 1 { "" } else { "s" })
}

/// `` `clamp(x, lo, hi)` ``, optional arguments by name.
fn signature(callee: &Ident, params: &[Param]) -> String {
    let one = |p: &Param| match p.need {
        Need::One => p.name.to_owned(),
        Need::Optional => format!("{}=", p.name),
        Need::Many => format!("{}...", p.name),
    };
    let list: Vec<String> = params.iter().map(one).collect();
    format!("`{}({})`", callee.name, list.join(", "))
}
