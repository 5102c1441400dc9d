//! A body as C statements: named values become variables, what is used once becomes part of what uses it.

use super::expr::{Expr, Prec};
use super::names::{Names, identifier};
use super::place::Place;
use rnnc_runtime::plan::{Body, Reg, Role, Step, Store};

/// An expression longer than this gets a variable, so that lines stay readable.
const LONG: usize = 76;

/// Prints the steps of one body, in an order that the kernel chooses.
pub struct Statements<'a> {
    body: &'a Body,
    uses: Vec<u32>,
    named: Vec<Option<&'a str>>,
    exprs: Vec<Option<Expr>>,
}

impl<'a> Statements<'a> {
    /// Ready to print a body of which, beside its stores, `roots` are wanted.
    pub fn new(body: &'a Body, roots: &[Reg]) -> Statements<'a> {
        let mut named = vec![None; body.steps.len()];
        for (reg, name) in &body.names {
            if let Some(slot) = named.get_mut(reg.0 as usize) {
                slot.get_or_insert(name.as_str());
            }
        }
        Statements {
            body,
            uses: count_uses(body, roots),
            named,
            exprs: vec![None; body.steps.len()],
        }
    }

    /// Whether anything wants the register.
    pub fn is_used(&self, reg: Reg) -> bool {
        self.uses[reg.0 as usize] > 0
    }

    /// The expression of a register that was defined or set.
    pub fn get(&self, reg: Reg) -> Expr {
        self.exprs[reg.0 as usize]
            .clone()
            .unwrap_or_else(|| Expr::float("undefined"))
    }

    /// What a register is called if the user has no name for it.
    pub fn suggest(&mut self, reg: Reg, name: &'a str) {
        self.named[reg.0 as usize].get_or_insert(name);
    }

    /// Says from outside what a register is called.
    pub fn set(&mut self, reg: Reg, e: Expr) {
        self.exprs[reg.0 as usize] = Some(e);
    }

    /// The name that the register's variable should have.
    pub fn wanted_name(&self, reg: Reg, place: &Place) -> Option<String> {
        let i = reg.0 as usize;
        if let Some(name) = self.named[i] {
            return Some(identifier(name));
        }
        match &self.body.steps[i] {
            Step::Load(load) => Some(identifier(&place.plan.buffer(load.buffer).name)),
            _ => None,
        }
    }

    /// A fresh variable for the register.
    pub fn fresh(&self, reg: Reg, place: &Place, names: &mut Names) -> String {
        match self.wanted_name(reg, place) {
            Some(name) => names.unique(&name),
            None => names.numbered("v"),
        }
    }

    /// The step's expression, without giving it a variable.
    pub fn expr(&self, reg: Reg, place: &Place) -> Expr {
        place.step(&self.body.steps[reg.0 as usize], &|r| self.get(r))
    }

    /// Defines a register: as part of what uses it, or by a statement appended to `lines`.
    pub fn define(&mut self, reg: Reg, place: &Place, names: &mut Names, lines: &mut Vec<String>) {
        if !self.is_used(reg) {
            return;
        }
        let e = self.expr(reg, place);
        self.settle(reg, e, place, names, lines);
    }

    /// Gives a register this expression: as part of what uses it, or by a statement appended to `lines`.
    pub fn settle(&mut self, reg: Reg, e: Expr, place: &Place, names: &mut Names, lines: &mut Vec<String>) {
        if self.stays_inline(reg, &e, place) {
            self.set(reg, e);
        } else {
            self.assign(reg, &e, place, names, lines);
        }
    }

    /// Gives a register a variable, whatever its use.
    pub fn assign(&mut self, reg: Reg, e: &Expr, place: &Place, names: &mut Names, lines: &mut Vec<String>) {
        let name = self.fresh(reg, place, names);
        lines.push(format!("const {} {name} = {};", e.ty.c(), e.text));
        self.set(reg, Expr::new(name, Prec::Primary, e.ty));
    }

    fn stays_inline(&self, reg: Reg, e: &Expr, place: &Place) -> bool {
        let i = reg.0 as usize;
        let step = &self.body.steps[i];
        if matches!(step, Step::Const(_) | Step::Number(_) | Step::Carried { .. }) || identifier(&e.text) == e.text {
            return true;
        }
        // An element of a buffer needs no second name.
        let own_name = self.named[i].is_some_and(|name| !is_element_of(step, name, place));
        self.uses[i] == 1 && !own_name && e.text.len() <= LONG
    }

    /// Defines every register in order.
    pub fn define_all(&mut self, place: &Place, names: &mut Names, lines: &mut Vec<String>) {
        for i in 0..self.body.steps.len() {
            self.define(Reg(i as u32), place, names, lines);
        }
    }

    /// The statement of a store, under its condition and the kernel's own.
    pub fn store(&self, store: &Store, place: &Place, only_if: Option<Expr>, lines: &mut Vec<String>) {
        let (frame, target) = place.target(store);
        let value = self.get(store.value).as_float();
        let statement = format!("{} = {};", target.text, value.text);
        match super::index::both(only_if, frame) {
            None => lines.push(statement),
            Some(condition) => {
                lines.push(format!("if ({}) {{", condition.text));
                lines.push(statement);
                lines.push("}".to_string());
            }
        }
    }
}

/// Whether a step reads a parameter, or the buffer of that name.
fn is_element_of(step: &Step, name: &str, place: &Place) -> bool {
    let buffer = match step {
        Step::Load(load) => place.plan.buffer(load.buffer),
        Step::Gather { table, .. } => place.plan.buffer(*table),
        _ => return false,
    };
    buffer.name == name || matches!(buffer.role, Role::Param | Role::Prologue)
}

/// How often each register is read by what is wanted itself.
fn count_uses(body: &Body, roots: &[Reg]) -> Vec<u32> {
    let mut uses = vec![0u32; body.steps.len()];
    for reg in roots.iter().copied().chain(body.stores.iter().map(|s| s.value)) {
        uses[reg.0 as usize] += 1;
    }
    for i in (0..body.steps.len()).rev() {
        if uses[i] > 0 {
            for reg in body.steps[i].reads() {
                uses[reg.0 as usize] += 1;
            }
        }
    }
    uses
}
