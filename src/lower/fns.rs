//! Checks the body of a `fn` without knowing its arguments: names, order of its equations, what is never used.

use super::builtins::ArgKind;
use super::order;
use super::program::{FnInfo, Program, redefined};
use super::resolve::{self, Names, Uses};
use super::sizes::Sizes;
use crate::diagnostics::{Code, Diagnostic, Diagnostics, Span};
use crate::ir::{Name, Size};
use crate::syntax::ast::{FnDef, Ident};
use std::collections::{BTreeMap, BTreeSet};

/// Resolves the body of `program.fns[index]` and orders its equations.
pub(super) fn check(program: &mut Program, index: usize, out: &mut Diagnostics) {
    let before = out.0.len();
    let info = &program.fns[index];
    let values = values(info, out);
    let sizes: Sizes = info.sizes.iter().map(|n| (n.clone(), Size::dim(n))).collect();
    let names = Names {
        sizes: &sizes,
        values: &values,
        in_fn: Some(&info.def.name.name),
    };
    let uses = resolve_body(program, info.def, &names, out);
    let order = equation_order(info.def, &values, &uses, out);
    let failed = out.0.len() > before;
    if !failed {
        warn_unused(info, &values, &uses, out);
    }
    let info = &mut program.fns[index];
    info.usable &= order.is_some();
    info.order = order.unwrap_or_default();
}

/// Parameters that are values, then the names of equations, each with a number.
fn values(info: &FnInfo, out: &mut Diagnostics) -> BTreeMap<Name, usize> {
    let mut seen: BTreeMap<Name, &Ident> = BTreeMap::new();
    let mut values = BTreeMap::new();
    let params = info.def.params.iter().zip(&info.params);
    let params = params.map(|(p, q)| (&p.name, q.kind == ArgKind::Value));
    let locals = info.def.equations.iter().flat_map(|e| &e.names).map(|n| (n, true));
    for (name, is_value) in params.chain(locals) {
        match seen.get(&name.name) {
            Some(first) => out.push(redefined(name, first)),
            None => {
                seen.insert(name.name.clone(), name);
                if is_value {
                    values.insert(name.name.clone(), values.len());
                }
            }
        }
    }
    values
}

/// What each equation uses, then what the returned expressions use together with the shapes of parameters.
fn resolve_body(program: &Program, def: &FnDef, names: &Names, out: &mut Diagnostics) -> Vec<Uses> {
    let mut all = Vec::new();
    for equation in &def.equations {
        let mut uses = Uses::default();
        resolve::expr(program, names, equation.value, &mut uses, out);
        if let Some(shape) = &equation.shape {
            resolve::shape(names, shape, &mut uses, out);
        }
        all.push(uses);
    }
    let mut last = Uses::default();
    for root in &def.returns {
        resolve::expr(program, names, *root, &mut last, out);
    }
    for shape in def.params.iter().filter_map(|p| p.shape.as_ref()) {
        resolve::shape(names, shape, &mut last, out);
    }
    all.push(last);
    all
}

/// Each equation after those it reads; none (and a report) if there is no such order.
fn equation_order(
    def: &FnDef,
    values: &BTreeMap<Name, usize>,
    uses: &[Uses],
    out: &mut Diagnostics,
) -> Option<Vec<usize>> {
    let mut owner = BTreeMap::new();
    for (index, equation) in def.equations.iter().enumerate() {
        for name in &equation.names {
            owner.insert(values.get(&name.name).copied(), index);
        }
    }
    let read = |u: &Uses| {
        u.reads
            .iter()
            .filter_map(|r| owner.get(&Some(r.value)).copied())
            .collect()
    };
    let edges: Vec<Vec<usize>> = uses[..def.equations.len()].iter().map(read).collect();
    let order = order::ascending(&edges);
    if order.is_none() {
        let groups = order::groups(&edges);
        for group in groups.iter().filter(|g| order::is_cycle(g, &edges)) {
            out.push(cyclic(def, &order::cycle(group, &edges), uses, &owner));
        }
    }
    order
}

fn cyclic(def: &FnDef, path: &[usize], uses: &[Uses], owner: &BTreeMap<Option<usize>, usize>) -> Diagnostic {
    let first = &def.equations[path[0]];
    let name = |i: usize| def.equations[i].names.first().map_or("", |n| &*n.name);
    let message = format!("`{}` depends on itself", name(path[0]));
    let mut d = Diagnostic::new(Code::InstantCycle, message, first.span);
    for (step, at) in path.iter().enumerate() {
        let to = path[(step + 1) % path.len()];
        let read = uses[*at].reads.iter().find(|r| owner.get(&Some(r.value)) == Some(&to));
        if let Some(read) = read {
            d = d.also(read.span, format!("`{}` reads `{}`", name(*at), name(to)));
        }
    }
    d.hint("a function holds no state; give what the frame before left as an argument")
}

fn warn_unused(info: &FnInfo, values: &BTreeMap<Name, usize>, uses: &[Uses], out: &mut Diagnostics) {
    let read: BTreeSet<usize> = uses.iter().flat_map(|u| &u.reads).map(|r| r.value).collect();
    let sized: BTreeSet<&Name> = uses.iter().flat_map(|u| &u.sizes).collect();
    let used = |name: &Name| sized.contains(name) || values.get(name).is_some_and(|v| read.contains(v));
    let mut warn = |code: Code, name: &Ident, what: &str, span: Span| {
        if !name.name.starts_with('_') && !used(&name.name) {
            let message = format!(
                "{what} `{}` of the function `{}` is never used",
                name.name, info.def.name.name
            );
            out.push(Diagnostic::new(code, message, span));
        }
    };
    for param in &info.def.params {
        warn(Code::UnusedDeclaration, &param.name, "the parameter", param.name.span);
    }
    for name in info.def.equations.iter().flat_map(|e| &e.names) {
        warn(Code::UnusedEquation, name, "the equation", name.span);
    }
}
