//! Syntax tree to typed graph: a file goes in, the graph of one of its cells and everything to be said about it come out.
//!
//! `program` collects what can be called, `declare` the names of a cell, `resolve` and `reads` what reads what and in
//! which order it can be built; `cell` then walks the equations, and `expr`, `chain`, `call` and the files of functions
//! make their nodes. Types (grammar/README.md, section 2) are checked while nodes are made; errors name every place
//! involved, and a name whose equation failed causes no further ones.

mod align;
mod arguments;
mod build;
mod builtins;
mod call;
mod cell;
mod chain;
mod declare;
mod einsum;
mod expr;
mod fns;
mod inline;
mod make;
mod order;
mod program;
mod reads;
mod reduce;
mod resolve;
mod shapes;
mod sizes;
mod suggest;
mod unused;
mod walk;

use crate::diagnostics::{Code, Diagnostic, Diagnostics, Span};
use crate::ir::Graph;
pub use crate::ir::solve::solve_dims;
use crate::syntax::ast::{CellDef, File};
use program::Program;
use std::collections::BTreeSet;

/// More messages about one file help nobody.
const MAX_MESSAGES: usize = 200;

/// Lowers one cell: the one named `cell`; else the one named as the file (`stem`); else the only one.
///
/// The graph is given only if there was no error. Functions are checked too, other cells are not.
pub fn lower(file: &File, cell: Option<&str>, stem: Option<&str>) -> (Option<Graph>, Diagnostics) {
    let mut out = Diagnostics::default();
    let program = Program::new(file, &mut out);
    let graph = match choose(&program, cell, stem) {
        Ok(cell) => {
            let (graph, more) = cell::lower(&program, cell);
            out.0.extend(more.0);
            Some(graph)
        }
        Err(d) => {
            out.push(*d);
            None
        }
    };
    let out = tidy(out);
    (graph.filter(|_| !out.has_errors()), out)
}

/// Checks every function and every cell.
pub fn check(file: &File) -> Diagnostics {
    let mut out = Diagnostics::default();
    let program = Program::new(file, &mut out);
    for cell in &program.cells {
        out.0.extend(cell::lower(&program, cell).1.0);
    }
    tidy(out)
}

fn choose<'a>(program: &Program<'a>, cell: Option<&str>, stem: Option<&str>) -> Result<&'a CellDef, Box<Diagnostic>> {
    let named = |name: &str| program.cells.iter().copied().find(|c| *c.name.name == *name);
    let found = match (cell, stem) {
        (Some(name), _) => named(name),
        (None, Some(stem)) if named(stem).is_some() => named(stem),
        _ if program.cells.len() == 1 => program.cells.first().copied(),
        _ => None,
    };
    found.ok_or_else(|| Box::new(no_such_cell(program, cell)))
}

fn no_such_cell(program: &Program, wanted: Option<&str>) -> Diagnostic {
    let names: Vec<&str> = program.cells.iter().map(|c| &*c.name.name).collect();
    let span = program.cells.first().map_or(Span::default(), |c| c.name.span);
    let list = names.iter().map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ");
    let message = match wanted {
        _ if names.is_empty() => "the file has no cell, only functions".to_owned(),
        Some(name) => format!("the file has no cell `{name}`; it has {list}"),
        None => format!("the file has several cells: {list}"),
    };
    let mut d = Diagnostic::new(Code::NoSuchCell, message, span);
    match wanted {
        Some(name) => d.hints.extend(suggest::hint(name, names)),
        None => d.hints.push("choose one with `--cell NAME`".to_owned()),
    }
    d
}

/// Each message once, in order of place. (A function that is called twice is checked twice.)
fn tidy(mut out: Diagnostics) -> Diagnostics {
    let mut seen = BTreeSet::new();
    out.0
        .retain(|d| seen.insert((d.labels.first().map(|l| l.span), d.code, d.message.clone())));
    out.sort();
    out.0.truncate(MAX_MESSAGES);
    out
}
