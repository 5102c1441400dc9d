//! Names in expressions: each expression goes in, what it reads comes out, and what cannot be resolved is reported.
//!
//! Three name spaces are told apart by place: sizes, callables, values. Types play no part yet.

use super::builtins::{ArgKind, Rule};
use super::program::{Callable, Program, not_built};
use super::sizes::{self, Sizes};
use super::{arguments, suggest, walk};
use crate::diagnostics::{Code, Diagnostic, Diagnostics, Span};
use crate::ir::Name;
use crate::syntax::ast::{Arg, ArgValue, Expr, ExprId, ExprKind, Ident, Prefix, Shape};
use std::collections::{BTreeMap, BTreeSet};

/// A read of a value.
#[derive(Clone, Debug)]
pub(super) struct NameRead {
    /// Which value, by its index in [`Names::values`].
    pub value: usize,
    /// Frames back; negative: ahead.
    pub delay: i32,
    pub span: Span,
}

/// The names in scope.
pub(super) struct Names<'s> {
    pub sizes: &'s Sizes,
    /// Index of each value.
    pub values: &'s BTreeMap<Name, usize>,
    /// The `fn` whose body this is.
    pub in_fn: Option<&'s str>,
}

/// What expressions use.
#[derive(Clone, Debug, Default)]
pub(super) struct Uses {
    pub reads: Vec<NameRead>,
    pub sizes: BTreeSet<Name>,
}

/// Constants of the language, which any value or dimension may shadow.
pub(super) fn constant(name: &str) -> Option<f64> {
    match name {
        "inf" => Some(f64::INFINITY),
        "pi" => Some(std::f64::consts::PI),
        _ => None,
    }
}

/// Resolves all names below `root`.
pub(super) fn expr(program: &Program, names: &Names, root: ExprId, uses: &mut Uses, out: &mut Diagnostics) {
    let mut resolver = Resolver {
        program,
        names,
        uses,
        out,
    };
    let mut todo = vec![root];
    while let Some(id) = todo.pop() {
        let expr = &program.file[id];
        match &expr.kind {
            ExprKind::Path { segments, delay } => resolver.path(expr, segments, *delay),
            ExprKind::Call { prefixes, callee, args } => resolver.call(prefixes, callee, args, &mut todo),
            other => walk::children(other, &mut todo),
        }
    }
}

/// Resolves the names in a shape.
pub(super) fn shape(names: &Names, shape: &Shape, uses: &mut Uses, out: &mut Diagnostics) {
    uses.sizes.extend(sizes::names_in_shape(shape));
    if let Err(d) = sizes::of_shape(shape, names.sizes) {
        out.push(names.explain(*d));
    }
}

struct Resolver<'r, 'a> {
    program: &'r Program<'a>,
    names: &'r Names<'r>,
    uses: &'r mut Uses,
    out: &'r mut Diagnostics,
}

impl Resolver<'_, '_> {
    fn path(&mut self, expr: &Expr, segments: &[Ident], delay: i32) {
        let [name] = segments else {
            self.out.push(not_built("reading inside a cell by a path", expr.span));
            return;
        };
        let value = self.names.values.get(&name.name).copied();
        if delay != 0
            && let Some(function) = self.names.in_fn
        {
            let message = format!("the function `{function}` reads an earlier frame");
            let d = Diagnostic::new(Code::DelayInFn, message, expr.span).label("a delayed read");
            self.out
                .push(d.hint(format!("give it as an argument: `{function}(..., {}[t-1])`", name.name)));
        }
        match value {
            Some(value) => self.uses.reads.push(NameRead {
                value,
                delay,
                span: expr.span,
            }),
            None => self.not_a_value(expr, name, delay),
        }
    }

    /// A name that is no value may be a dimension as a number, or a constant.
    fn not_a_value(&mut self, expr: &Expr, name: &Ident, delay: i32) {
        if self.names.sizes.contains_key(&name.name) {
            self.uses.sizes.insert(name.name.clone());
        } else if constant(&name.name).is_none() {
            let d = self.unknown(name);
            self.out.push(d);
            return;
        }
        if delay != 0 {
            let message = format!("`{}` is the same in every frame", name.name);
            let d = Diagnostic::new(Code::DelayedConstant, message, expr.span).label("read with a delay");
            self.out.push(d.hint(format!("write `{}`", name.name)));
        }
    }

    fn unknown(&self, name: &Ident) -> Diagnostic {
        let mut d = Diagnostic::new(
            Code::UnknownName,
            format!("there is no value `{}`", name.name),
            name.span,
        )
        .label("unknown name");
        if self.program.callable(&name.name).is_some() {
            d.hints.push(format!("`{0}` is a function: `{0}(...)`", name.name));
            return d;
        }
        let known = self.names.values.keys().chain(self.names.sizes.keys()).map(|n| &**n);
        d.hints.extend(suggest::hint(&name.name, known));
        if let (Some(function), true) = (self.names.in_fn, d.hints.is_empty()) {
            d.hints.push(format!(
                "a function sees only its parameters: add `{}` to those of `{function}`",
                name.name
            ));
        } else if d.hints.is_empty() {
            d.hints.push(format!(
                "declare it: `input {0}: [...]` or `param {0}: [...]`, or give it an equation",
                name.name
            ));
        }
        d
    }

    fn call(&mut self, prefixes: &[Prefix], callee: &Ident, args: &[Arg], todo: &mut Vec<ExprId>) {
        let Some(callable) = self.program.callable(&callee.name) else {
            self.out.push(self.program.unknown_function(callee));
            return self.loose(args, todo);
        };
        if let Some(d) = refused(prefixes, callable, callee) {
            self.out.push(d);
            return;
        }
        let params = self.program.params(callable).unwrap_or(&[]);
        match arguments::bind(callee, params, args) {
            Ok(bound) => {
                for (param, args) in params.iter().zip(bound) {
                    args.iter().for_each(|arg| self.arg(param.kind, arg, todo));
                }
            }
            Err(d) => {
                self.out.push(*d);
                self.loose(args, todo);
            }
        }
    }

    /// An argument in its parameter's name space.
    fn arg(&mut self, kind: ArgKind, arg: &Arg, todo: &mut Vec<ExprId>) {
        match (kind, &arg.value) {
            (ArgKind::Text, ArgValue::Str(_)) => {}
            (ArgKind::Text, _) => {
                let d = Diagnostic::new(Code::BadArgument, "a string of labels is expected here", arg.span);
                self.out.push(d.hint("such as `einsum(\"n o i, n i -> n o\", R, h)`"));
            }
            (ArgKind::Value, ArgValue::Expr(e)) => todo.push(*e),
            (ArgKind::Value, _) => {
                let d = Diagnostic::new(Code::ExpectedValue, "a value is expected here", arg.span);
                self.out.push(d.label("not a value"));
            }
            (_, value) => self.size(value),
        }
    }

    fn size(&mut self, value: &ArgValue) {
        match sizes::of_list(self.program.file, value, self.names.sizes) {
            Ok(_) => self.uses.sizes.extend(sizes::names_in_arg(self.program.file, value)),
            Err(d) => self.out.push(self.names.explain(*d)),
        }
    }

    /// Arguments of a call that makes no sense: names that may be either are not complained about, but count as used.
    fn loose(&mut self, args: &[Arg], todo: &mut Vec<ExprId>) {
        for arg in args {
            match &arg.value {
                ArgValue::Expr(e) if !self.is_dim(*e) => todo.push(*e),
                value => self.uses.sizes.extend(sizes::names_in_arg(self.program.file, value)),
            }
        }
    }

    fn is_dim(&self, id: ExprId) -> bool {
        matches!(&self.program.file[id].kind, ExprKind::Path { segments, delay: 0 }
            if segments.len() == 1 && self.names.sizes.contains_key(&segments[0].name))
    }
}

impl Names<'_> {
    /// Adds to an unknown dimension that there is a value of that name.
    pub(super) fn explain(&self, d: Diagnostic) -> Diagnostic {
        let quoted = d.message.split('`').nth(1).map(str::to_owned);
        match quoted {
            Some(name) if d.code == Code::UnknownDim && self.values.contains_key(&*name) => d.hint(format!(
                "`{name}` is a value; sizes are made of dimensions: `cell c({name}, ...)`"
            )),
            Some(name) if d.code == Code::UnknownDim && d.hints.is_empty() => match self.in_fn {
                Some(function) => d.hint(format!(
                    "make it a parameter of `{function}`, or name it in the shape of one"
                )),
                None => d.hint(format!("add it to the cell's dimensions: `cell c({name}, ...)`")),
            },
            _ => d,
        }
    }
}

/// The error for calls that are not built yet.
fn refused(prefixes: &[Prefix], callable: Callable, callee: &Ident) -> Option<Diagnostic> {
    let reserved = matches!(callable, Callable::Builtin(b) if b.rule == Rule::Unbuilt);
    let hint = "for now, write its equations out in one cell";
    match callable {
        Callable::Cell => Some(not_built("the use of a cell in another", callee.span).hint(hint)),
        _ if !prefixes.is_empty() => {
            let message = format!(
                "`{}` is a function; only uses of cells run backward or in stacks",
                callee.name
            );
            Some(Diagnostic::new(Code::NotSupported, message, callee.span))
        }
        _ if reserved => {
            Some(not_built(&format!("`{}`", callee.name), callee.span).hint("for now, give the mask as an input"))
        }
        _ => None,
    }
}
