//! The file's cells and functions: a file goes in, the table of what can be called comes out.
//!
//! After this, every callable has one meaning, recursive functions are marked, and each parameter of a `fn` is known to
//! be a value or a size.

use super::builtins::{self, ArgKind, Need, Param};
use super::fns;
use super::{arguments, sizes, suggest, walk};
use crate::diagnostics::{Code, Diagnostic, Diagnostics};
use crate::ir::Name;
use crate::syntax::ast::{ArgValue, CellDef, ExprId, ExprKind, File, FnDef, Ident, Top};
use std::collections::{BTreeMap, BTreeSet};

/// Everything in a file that has a name.
pub(super) struct Program<'a> {
    pub file: &'a File,
    pub cells: Vec<&'a CellDef>,
    pub fns: Vec<FnInfo<'a>>,
    names: BTreeMap<Name, Callable>,
}

/// What a name before `(` stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Callable {
    Builtin(&'static builtins::Builtin),
    /// An index into [`Program::fns`].
    Fn(usize),
    Cell,
}

/// A `fn` and what is known of it.
pub(super) struct FnInfo<'a> {
    pub def: &'a FnDef,
    pub params: Vec<Param<'a>>,
    /// The sizes its body may name: size parameters, and dims that the shapes of its parameters bind.
    pub sizes: BTreeSet<Name>,
    /// Its equations, each after those it reads.
    pub order: Vec<usize>,
    /// Whether it can be inlined: it is not recursive and its equations have an order.
    pub usable: bool,
}

impl PartialEq for builtins::Builtin {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for builtins::Builtin {}

impl<'a> Program<'a> {
    /// Collects and checks all but the bodies of cells.
    pub(super) fn new(file: &'a File, out: &mut Diagnostics) -> Program<'a> {
        let mut program = Program {
            file,
            cells: Vec::new(),
            fns: Vec::new(),
            names: BTreeMap::new(),
        };
        let mut seen: BTreeMap<Name, &'a Ident> = BTreeMap::new();
        for item in &file.items {
            program.item(item, &mut seen, out);
        }
        for index in program.mark_recursive(out) {
            program.find_sizes(index);
        }
        for index in 0..program.fns.len() {
            fns::check(&mut program, index, out);
        }
        program
    }

    fn item(&mut self, item: &'a Top, seen: &mut BTreeMap<Name, &'a Ident>, out: &mut Diagnostics) {
        let (name, callable) = match item {
            Top::Use(u) => {
                out.push(not_built("`use`", u.span).hint("for now, put the cells and functions into one file"));
                return;
            }
            Top::Fn(def) => (&def.name, Callable::Fn(self.fns.len())),
            Top::Cell(def) => (&def.name, Callable::Cell),
        };
        match item {
            Top::Fn(def) => self.fns.push(FnInfo::new(def)),
            Top::Cell(def) => self.cells.push(def),
            Top::Use(_) => {}
        }
        if builtins::find(&name.name).is_some() {
            let message = format!("`{}` is a built-in function", name.name);
            out.push(Diagnostic::new(Code::BuiltinName, message, name.span).label("choose another name"));
        } else if let Some(first) = seen.insert(name.name.clone(), name) {
            out.push(redefined(name, first));
            seen.insert(name.name.clone(), first);
        } else {
            self.names.insert(name.name.clone(), callable);
        }
    }

    /// What `name(` calls.
    pub(super) fn callable(&self, name: &Name) -> Option<Callable> {
        match builtins::find(name) {
            Some(b) => Some(Callable::Builtin(b)),
            None => self.names.get(name).copied(),
        }
    }

    /// The parameters of a built-in function or `fn`.
    pub(super) fn params(&self, callable: Callable) -> Option<&[Param<'a>]> {
        match callable {
            Callable::Builtin(b) => Some(b.params),
            Callable::Fn(index) => Some(&self.fns[index].params),
            Callable::Cell => None,
        }
    }

    /// The error for a call of nothing.
    pub(super) fn unknown_function(&self, callee: &Ident) -> Diagnostic {
        let message = format!("there is no function or cell `{}`", callee.name);
        let mut d = Diagnostic::new(Code::UnknownFunction, message, callee.span).label("unknown function");
        let known = builtins::TABLE
            .iter()
            .map(|b| b.name)
            .chain(self.names.keys().map(|n| &**n));
        match suggest::foreign(&callee.name) {
            Some(hint) => d.hints.push(hint.to_owned()),
            None => d.hints.extend(suggest::hint(&callee.name, known)),
        }
        d
    }

    /// Reports every cycle of calls; gives the functions that are on none, callees first.
    fn mark_recursive(&mut self, out: &mut Diagnostics) -> Vec<usize> {
        let calls: Vec<Vec<(usize, &'a Ident)>> = self.fns.iter().map(|f| self.calls(f.def)).collect();
        let edges: Vec<Vec<usize>> = calls.iter().map(|c| c.iter().map(|(to, _)| *to).collect()).collect();
        let mut order = Vec::new();
        for group in super::order::groups(&edges) {
            if !super::order::is_cycle(&group, &edges) {
                order.extend(group);
                continue;
            }
            let path = super::order::cycle(&group, &edges);
            out.push(self.recursion(&path, &calls));
            group.iter().for_each(|index| self.fns[*index].usable = false);
        }
        order
    }

    fn recursion(&self, path: &[usize], calls: &[Vec<(usize, &'a Ident)>]) -> Diagnostic {
        let name = |i: usize| &self.fns[i].def.name;
        let first = name(path[0]);
        let message = format!("the function `{}` calls itself", first.name);
        let mut d = Diagnostic::new(Code::RecursiveFn, message, first.span);
        for (step, from) in path.iter().enumerate() {
            let to = path[(step + 1) % path.len()];
            if let Some((_, call)) = calls[*from].iter().find(|(callee, _)| *callee == to) {
                d = d.also(call.span, format!("`{}` calls `{}` here", name(*from).name, call.name));
            }
        }
        d.hint("functions are expanded where they are called, so they cannot recur; what goes on from frame to frame is a state: `h[t-1]`")
    }

    /// The `fn`s that a `fn` calls, each call once.
    fn calls(&self, def: &'a FnDef) -> Vec<(usize, &'a Ident)> {
        let mut found = Vec::new();
        for root in FnInfo::roots(def) {
            walk::each(self.file, root, &mut |expr| {
                if let ExprKind::Call { callee, .. } = &expr.kind
                    && let Some(Callable::Fn(index)) = self.callable(&callee.name)
                {
                    found.push((index, callee));
                }
            });
        }
        found
    }

    /// Tells size parameters from values: a parameter that stands where a size is wanted is one. Callees are done before.
    fn find_sizes(&mut self, index: usize) {
        let def = self.fns[index].def;
        let mut used = BTreeSet::new();
        let mut bound = BTreeSet::new();
        for shape in def.params.iter().filter_map(|p| p.shape.as_ref()) {
            bound.extend(sizes::names_in_shape(shape));
        }
        for shape in def.equations.iter().filter_map(|e| e.shape.as_ref()) {
            used.extend(sizes::names_in_shape(shape));
        }
        for root in FnInfo::roots(def) {
            walk::each(self.file, root, &mut |expr| self.size_places(&expr.kind, &mut used));
        }
        let info = &mut self.fns[index];
        for (param, declared) in info.params.iter_mut().zip(&def.params) {
            let name = &declared.name.name;
            if declared.shape.is_none() && (used.contains(name) || bound.contains(name)) {
                param.kind = ArgKind::Size;
                bound.insert(name.clone());
            }
        }
        info.sizes = bound;
    }

    /// The names in those arguments of a call that are sizes.
    fn size_places(&self, kind: &ExprKind, used: &mut BTreeSet<Name>) {
        let ExprKind::Call { callee, args, .. } = kind else {
            return;
        };
        for arg in args {
            if matches!(arg.value, ArgValue::Shape(_)) {
                used.extend(sizes::names_in_arg(self.file, &arg.value));
            }
        }
        let Some(params) = self.callable(&callee.name).and_then(|c| self.params(c)) else {
            return;
        };
        let Ok(bound) = arguments::bind(callee, params, args) else {
            return;
        };
        for (param, args) in params.iter().zip(bound) {
            if param.kind.is_size() {
                used.extend(args.iter().flat_map(|arg| sizes::names_in_arg(self.file, &arg.value)));
            }
        }
    }
}

impl<'a> FnInfo<'a> {
    fn new(def: &'a FnDef) -> FnInfo<'a> {
        let param = |p: &'a crate::syntax::ast::FnParam| Param {
            name: &p.name.name,
            kind: ArgKind::Value,
            need: Need::One,
        };
        FnInfo {
            def,
            params: def.params.iter().map(param).collect(),
            sizes: BTreeSet::new(),
            order: Vec::new(),
            usable: true,
        }
    }

    /// Every expression of a `fn`'s body.
    pub(super) fn roots(def: &FnDef) -> impl Iterator<Item = ExprId> + '_ {
        def.equations.iter().map(|e| e.value).chain(def.returns.iter().copied())
    }
}

/// The error for a name that is taken.
pub(super) fn redefined(name: &Ident, first: &Ident) -> Diagnostic {
    let message = format!("`{}` is defined twice", name.name);
    let d = Diagnostic::new(Code::Redefined, message, name.span).label("defined again here");
    d.also(first.span, "first defined here")
}

/// The error for a part of the language that is to come.
pub(super) fn not_built(what: &str, span: crate::diagnostics::Span) -> Diagnostic {
    Diagnostic::new(Code::NotSupported, format!("{what} is not built yet"), span)
}
