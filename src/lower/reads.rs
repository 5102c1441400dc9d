//! Who reads whom in a cell, and when: the declarations go in, reads, windows and the order of construction come out.
//!
//! *Units* are what is computed: the equations, then the initial values of states. After this, no value depends on itself
//! within one frame, and every unit comes after those whose nodes or types it needs.

use super::declare::{Decls, What};
use super::order;
use super::program::Program;
use super::resolve::{self, NameRead, Names, Uses};
use crate::diagnostics::{Code, Diagnostic, Diagnostics, Span};
use std::collections::BTreeSet;

/// What the units of a cell read.
pub(super) struct Reads {
    /// By unit.
    pub uses: Vec<Uses>,
    /// By value.
    pub windows: Vec<Window>,
    /// Equations that cannot be computed; this has been reported.
    pub failed: BTreeSet<usize>,
    /// Values that stand for themselves before they are computed, because their declared types are needed earlier.
    pub early: BTreeSet<usize>,
    /// Units in order of construction.
    pub order: Vec<usize>,
}

/// How a value is read from other frames.
#[derive(Clone, Debug, Default)]
pub(super) struct Window {
    /// The largest delay.
    pub back: u32,
    /// The places of reads with a delay, ahead or back.
    pub spans: Vec<Span>,
}

impl Reads {
    /// Resolves all names of a cell and orders its units.
    pub(super) fn new(program: &Program, decls: &Decls, out: &mut Diagnostics) -> Reads {
        let uses = resolve_units(program, decls, out);
        let mut reads = Reads {
            windows: windows(decls, &uses),
            uses,
            failed: BTreeSet::new(),
            early: BTreeSet::new(),
            order: Vec::new(),
        };
        reads.instant_cycles(decls, out);
        reads.lookahead(decls, out);
        reads.arrange(decls, out);
        reads
    }

    /// Whether a value is read from another frame.
    pub(super) fn is_delayed(&self, value: usize) -> bool {
        !self.windows[value].spans.is_empty()
    }

    /// By unit: the equations that it reads through the reads chosen.
    fn edges(&self, decls: &Decls, chosen: impl Fn(&NameRead) -> bool) -> Vec<Vec<usize>> {
        let owner = |r: &NameRead| match decls.values[r.value].what {
            What::Equation { equation } => Some(equation),
            What::Input { .. } | What::Param { .. } => None,
        };
        let of = |u: &Uses| u.reads.iter().filter(|r| chosen(r)).filter_map(owner).collect();
        self.uses.iter().map(of).collect()
    }

    /// Rule 4: refuses cycles without delay.
    fn instant_cycles(&mut self, decls: &Decls, out: &mut Diagnostics) {
        let edges = self.edges(decls, |r| r.delay == 0);
        for group in order::groups(&edges) {
            if order::is_cycle(&group, &edges) {
                let steps = self.steps(decls, &order::cycle(&group, &edges), |r| r.delay == 0);
                out.push(instant(decls, &steps));
                self.failed.extend(group);
            }
        }
    }

    /// The reads along a cycle of units: of each unit, the read of the next.
    fn steps(&self, decls: &Decls, path: &[usize], chosen: impl Fn(&NameRead) -> bool) -> Vec<&NameRead> {
        let next = |i: usize| path[(i + 1) % path.len()];
        let reads_next = |(i, unit): (usize, &usize)| {
            let mut reads = self.uses[*unit].reads.iter().filter(|r| chosen(r));
            reads.find(|r| matches!(decls.values[r.value].what, What::Equation { equation } if equation == next(i)))
        };
        path.iter().enumerate().filter_map(reads_next).collect()
    }

    /// Rule 22: no look ahead into the reader's own recurrence.
    fn lookahead(&self, decls: &Decls, out: &mut Diagnostics) {
        let ahead = |r: &NameRead| r.delay < 0;
        if !self.uses.iter().any(|u| u.reads.iter().any(ahead)) {
            return;
        }
        let edges = self.edges(decls, |_| true);
        for group in order::groups(&edges).iter().filter(|g| order::is_cycle(g, &edges)) {
            let members: BTreeSet<usize> = group.iter().copied().collect();
            for read in group
                .iter()
                .flat_map(|unit| &self.uses[*unit].reads)
                .filter(|r| ahead(r))
            {
                if let What::Equation { equation } = decls.values[read.value].what
                    && members.contains(&equation)
                {
                    let name = &decls.values[read.value].name;
                    let message = format!("`{0}` looks ahead to `{0}`, which depends on it", name.name);
                    let d = Diagnostic::new(Code::LookaheadInLoop, message, read.span).label("a frame still to come");
                    let d = d.also(name.span, "computed from earlier frames here");
                    out.push(d.hint("only inputs, and equations that do not lead back here, can be read ahead"));
                }
            }
        }
    }

    /// Rule 21: orders the units so that nodes and types are known before they are needed. A declared state stands for
    /// itself; other declared names do so only where the order would not exist without.
    fn arrange(&mut self, decls: &Decls, out: &mut Diagnostics) {
        loop {
            let edges = self.edges(decls, |r| self.waits(decls, r));
            if let Some(order) = order::ascending(&edges) {
                self.order = order;
                return;
            }
            let mut groups = order::groups(&edges);
            groups.retain(|g| order::is_cycle(g, &edges));
            for group in &groups {
                let declared = declared_in(decls, group, &self.early);
                if declared.is_empty() {
                    let steps = self.steps(decls, &order::cycle(group, &edges), |r| self.waits(decls, r));
                    out.push(untyped(decls, &steps));
                    self.failed.extend(group);
                } else {
                    self.early.extend(declared);
                }
            }
        }
    }

    /// Whether a read can be built only after what it reads.
    fn waits(&self, decls: &Decls, read: &NameRead) -> bool {
        let declared = decls.declared.contains_key(&read.value);
        let failed =
            matches!(decls.values[read.value].what, What::Equation { equation } if self.failed.contains(&equation));
        let stands = self.early.contains(&read.value) || (declared && (read.delay != 0 || self.is_delayed(read.value)));
        !failed && !stands
    }
}

/// The declared values that the equations of a group define and that do not yet stand for themselves.
fn declared_in(decls: &Decls, group: &[usize], early: &BTreeSet<usize>) -> Vec<usize> {
    let names = group
        .iter()
        .filter_map(|e| decls.equations.get(*e))
        .flat_map(|e| &e.names);
    names
        .filter_map(|name| decls.index.get(&name.name).copied())
        .filter(|value| decls.declared.contains_key(value) && !early.contains(value))
        .collect()
}

fn resolve_units(program: &Program, decls: &Decls, out: &mut Diagnostics) -> Vec<Uses> {
    let names = Names {
        sizes: &decls.sizes,
        values: &decls.index,
        in_fn: None,
    };
    let inits = decls.states.iter().map(|s| s.init);
    let roots = decls.equations.iter().map(|e| Some(e.value)).chain(inits);
    let resolve = |root: Option<crate::syntax::ast::ExprId>| {
        let mut uses = Uses::default();
        if let Some(root) = root {
            resolve::expr(program, &names, root, &mut uses, out);
        }
        uses
    };
    roots.map(resolve).collect()
}

fn windows(decls: &Decls, uses: &[Uses]) -> Vec<Window> {
    let mut windows = vec![Window::default(); decls.values.len()];
    for read in uses.iter().flat_map(|u| &u.reads).filter(|r| r.delay != 0) {
        let window = &mut windows[read.value];
        window.back = window.back.max(read.delay.max(0) as u32);
        window.spans.push(read.span);
    }
    windows
}

/// A path of more names is shown without its middle.
const LONGEST_PATH: usize = 60;

/// The error for a cycle without delay: the whole path, and the read that is most likely meant to be delayed.
fn instant(decls: &Decls, steps: &[&NameRead]) -> Diagnostic {
    let name = |r: &NameRead| decls.values[r.value].name.name.clone();
    let Some(last) = steps.last() else {
        return Diagnostic::new(
            Code::InstantCycle,
            "a value depends on itself within one frame",
            Span::default(),
        );
    };
    let meant = steps.iter().find(|r| decls.is_state(&name(r))).unwrap_or(last);
    let mut path: Vec<String> = std::iter::once(last)
        .chain(steps)
        .map(|r| format!("`{}`", name(r)))
        .collect();
    if path.len() > LONGEST_PATH {
        path.splice(LONGEST_PATH / 2..path.len() - LONGEST_PATH / 2, ["...".to_owned()]);
    }
    let message = format!(
        "`{}` depends on itself within one frame: {}",
        name(last),
        path.join(" reads ")
    );
    let mut d = Diagnostic::new(Code::InstantCycle, message, meant.span).label("read without a delay");
    for read in steps.iter().filter(|r| r.span != meant.span).take(20) {
        d = d.also(read.span, format!("`{}` is read here", name(read)));
    }
    d.hint(format!("did you mean `{}[t-1]`?", name(meant)))
}

/// The error for a cycle in which no name has a declared type.
fn untyped(decls: &Decls, steps: &[&NameRead]) -> Diagnostic {
    let name = |r: &NameRead| decls.values[r.value].name.name.clone();
    let Some(delayed) = steps.iter().find(|r| r.delay != 0).or(steps.last()) else {
        return Diagnostic::new(Code::CannotInfer, "axes cannot be inferred", Span::default());
    };
    let message = format!(
        "the axes of `{}` cannot be inferred: they depend on themselves",
        name(delayed)
    );
    let mut d = Diagnostic::new(Code::CannotInfer, message, delayed.span).label("read before its axes are known");
    for read in steps.iter().filter(|r| r.span != delayed.span).take(20) {
        d = d.also(read.span, format!("`{}` is read here", name(read)));
    }
    d.hint(format!("declare them: `state {}: [...]`", name(delayed)))
}
