//! Warnings: what is declared or computed and never used.

use super::declare::{Decls, What};
use super::reads::Reads;
use super::sizes;
use crate::diagnostics::{Code, Diagnostic, Diagnostics};
use crate::ir::Name;
use std::collections::BTreeSet;

/// Warns of unused names; those that start with `_` are meant to be unused.
pub(super) fn warn(decls: &Decls, reads: &Reads, out: &mut Diagnostics) {
    values(decls, reads, out);
    states(decls, reads, out);
    dims(decls, reads, out);
}

fn values(decls: &Decls, reads: &Reads, out: &mut Diagnostics) {
    let read: BTreeSet<usize> = reads.uses.iter().flat_map(|u| &u.reads).map(|r| r.value).collect();
    let outputs: BTreeSet<&Name> = decls.outputs.iter().map(|o| &o.name).collect();
    for (index, value) in decls.values.iter().enumerate() {
        let name = &value.name.name;
        if read.contains(&index) || outputs.contains(name) || name.starts_with('_') {
            continue;
        }
        let (code, message) = match value.what {
            What::Input { .. } => (Code::UnusedDeclaration, format!("the input `{name}` is never used")),
            What::Param { .. } => (Code::UnusedDeclaration, format!("the parameter `{name}` is never used")),
            What::Equation { .. } => (Code::UnusedEquation, format!("the value `{name}` is never used")),
        };
        let d = Diagnostic::new(code, message, value.name.span);
        out.push(match value.what {
            What::Equation { .. } => d.hint(format!("use it, declare `output {name}`, or call it `_{name}`")),
            _ => d,
        });
    }
}

fn states(decls: &Decls, reads: &Reads, out: &mut Diagnostics) {
    for state in &decls.states {
        let name = &state.name.name;
        if decls.index.get(name).is_some_and(|v| !reads.is_delayed(*v)) {
            let message = format!("the state `{name}` is never read with a delay");
            let d = Diagnostic::new(Code::StateNotDelayed, message, state.name.span);
            out.push(d.hint(format!(
                "it has no initial and no final value; read `{name}[t-1]`, or drop the declaration"
            )));
        }
    }
}

fn dims(decls: &Decls, reads: &Reads, out: &mut Diagnostics) {
    let mut used: BTreeSet<Name> = reads.uses.iter().flat_map(|u| u.sizes.iter().cloned()).collect();
    used.extend(decls.shapes.iter().flat_map(|s| sizes::names_in_shape(s)));
    used.extend(decls.index_sizes.iter().flat_map(|s| sizes::names_in_size(s)));
    used.extend(decls.aliases.iter().flat_map(|(_, size)| sizes::names_in_size(size)));
    let names = decls
        .aliases
        .iter()
        .map(|(name, _)| *name)
        .chain(decls.dims.iter().copied());
    for name in names {
        if !used.contains(&name.name) && !name.name.starts_with('_') {
            let message = format!("the dimension `{}` is never used", name.name);
            out.push(Diagnostic::new(Code::UnusedDeclaration, message, name.span));
        }
    }
}
