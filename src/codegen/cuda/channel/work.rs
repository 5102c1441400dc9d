//! The statements of a channel kernel's body: stage after stage, each with a loop over the lane's inner elements where it
//! has several.

use super::facts::{Fact, Facts, Phase, fold_parts, is_trivial};
use super::space::Space;
use crate::codegen::cuda::expr::{Expr, Prec, Type};
use crate::codegen::cuda::names::Names;
use crate::codegen::cuda::place::Place;
use crate::codegen::cuda::statements::Statements;
use rnnc_runtime::plan::{Channel, Reg, Step, Store};
use rnnc_runtime::scalar::Reduce;
use std::collections::{BTreeMap, BTreeSet};

/// How a lane goes through its inner elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Walk {
    /// An unrolled loop; what other loops need is kept in registers.
    Unrolled,
    /// A loop too long for that; what other loops need is computed again.
    Strided,
}

/// Prints a body.
pub struct Work<'a> {
    /// The kernel, simplified.
    pub channel: &'a Channel,
    /// What is known of its steps.
    pub facts: &'a Facts,
    /// Its variables.
    pub space: &'a Space,
    /// How inner elements are walked.
    pub walk: Walk,
    /// The kernel's names.
    pub names: Names,
    /// The body's registers.
    pub statements: Statements<'a>,
    /// Reads that were issued in an earlier frame: where their value is.
    pub early: BTreeMap<Reg, String>,
    /// Stores that the kernel does elsewhere.
    pub skipped: BTreeSet<usize>,
}

impl<'a> Work<'a> {
    /// All of one phase.
    pub fn print(&mut self, phase: Phase, place: &Place) -> Vec<String> {
        let mut lines = Vec::new();
        self.trivial(place);
        for stage in 0..self.facts.stages(phase) {
            self.channel_steps(phase, stage, place, &mut lines);
            self.inner_steps(phase, stage, place, &mut lines);
            for store in self.stores(phase, stage, false) {
                let only_if = self.space.store_condition(store, false);
                self.statements.store(store, place, only_if, &mut lines);
            }
        }
        lines
    }

    fn steps(&self, keep: impl Fn(&Fact) -> bool) -> Vec<Reg> {
        let regs = (0..self.channel.body.steps.len()).map(|i| Reg(i as u32));
        regs.filter(|r| keep(&self.facts.get(*r)) && self.statements.is_used(*r) && !is_trivial(self.step(*r)))
            .collect()
    }

    fn step(&self, reg: Reg) -> &Step {
        &self.channel.body.steps[reg.0 as usize]
    }

    fn trivial(&mut self, place: &Place) {
        for i in 0..self.channel.body.steps.len() {
            let reg = Reg(i as u32);
            if is_trivial(self.step(reg)) {
                let e = self.statements.expr(reg, place);
                self.statements.set(reg, e);
            }
        }
    }

    fn channel_steps(&mut self, phase: Phase, stage: usize, place: &Place, lines: &mut Vec<String>) {
        for reg in self.steps(|f| f.phase == phase && f.stage == stage && !f.inner) {
            match *self.step(reg) {
                Step::Reduce(op, _) if self.facts.looped => self.join(reg, op, lines),
                Step::Reduce(op, operand) => {
                    // All lanes take part: the call may not move into a condition that some of them fail.
                    let e = self.fold_of_one(op, operand);
                    self.statements.assign(reg, &e, place, &mut self.names, lines);
                }
                _ => self.define(reg, place, lines),
            }
        }
    }

    /// Defines a step outside loops over inner elements.
    fn define(&mut self, reg: Reg, place: &Place, lines: &mut Vec<String>) {
        let e = match self.early.get(&reg) {
            Some(ring) => Expr::new(ring.clone(), Prec::Primary, self.statements.expr(reg, place).ty),
            None => self.statements.expr(reg, place),
        };
        if self.facts.get(reg).kept {
            self.statements.assign(reg, &e, place, &mut self.names, lines);
        } else {
            self.statements.settle(reg, e, place, &mut self.names, lines);
        }
    }

    /// A fold where each lane has one element.
    fn fold_of_one(&self, op: Reduce, operand: Reg) -> Expr {
        let (function, _, neutral) = fold_parts(op);
        let own = self.statements.get(operand).as_float();
        if self.space.lanes.lanes == 1 {
            return own;
        }
        let own = match &self.space.inside {
            Some(inside) => Expr::select(inside, &own, &Expr::number(neutral)),
            None => own,
        };
        Expr::float(format!("{function}<{}>({}, group)", self.space.lanes.lanes, own.text))
    }

    /// Ends a fold whose lanes have accumulated their elements.
    fn join(&mut self, reg: Reg, op: Reduce, lines: &mut Vec<String>) {
        let total = self.statements.get(reg).text;
        if self.space.lanes.lanes > 1 {
            let (function, ..) = fold_parts(op);
            lines.push(format!(
                "{total} = {function}<{}>({total}, group);",
                self.space.lanes.lanes
            ));
        }
    }

    fn inner_steps(&mut self, phase: Phase, stage: usize, place: &Place, lines: &mut Vec<String>) {
        if !self.facts.looped {
            for reg in self.steps(|f| f.phase == phase && f.stage == stage && f.inner) {
                self.define(reg, place, lines);
            }
            for store in self.stores(phase, stage, true) {
                let only_if = self.space.store_condition(store, true);
                self.statements.store(store, place, only_if, lines);
            }
            return;
        }
        let mut inside = Vec::new();
        // Names given out in a loop that computes values again are free again behind it.
        let before = (self.walk == Walk::Strided).then(|| self.names.clone());
        for reg in self.loop_steps(phase, stage) {
            self.define_in_loop(reg, place, lines, &mut inside);
        }
        let accumulators = self.accumulate(phase, stage, place, lines, &mut inside);
        for store in self.stores(phase, stage, true) {
            let only_if = self.space.store_condition(store, true);
            self.statements.store(store, place, only_if, &mut inside);
        }
        if let Some(mut names) = before {
            names.reserve(accumulators.iter().map(String::as_str));
            self.names = names;
        }
        if !inside.is_empty() {
            lines.extend(self.space.inner_loop(self.walk, inside));
        }
    }

    /// The inner steps that the loop of a stage computes.
    fn loop_steps(&self, phase: Phase, stage: usize) -> Vec<Reg> {
        match self.walk {
            Walk::Unrolled => self.steps(|f| f.phase == phase && f.stage == stage && f.inner),
            Walk::Strided => {
                let folded = self.folds(phase, stage).into_iter().map(|(_, _, operand)| operand);
                let stored = self.stores(phase, stage, true).into_iter().map(|s| s.value);
                let needed = self.closure(folded.chain(stored).collect());
                let all = self.steps(|f| f.inner);
                all.into_iter().filter(|r| needed.contains(r)).collect()
            }
        }
    }

    /// The inner registers that these depend on, themselves included.
    fn closure(&self, mut open: Vec<Reg>) -> BTreeSet<Reg> {
        let mut needed = BTreeSet::new();
        while let Some(reg) = open.pop() {
            if self.facts.get(reg).inner && needed.insert(reg) {
                open.extend(self.step(reg).reads());
            }
        }
        needed
    }

    fn define_in_loop(&mut self, reg: Reg, place: &Place, outside: &mut Vec<String>, inside: &mut Vec<String>) {
        if let Some(ring) = self.early.get(&reg).cloned() {
            let ty = self.statements.expr(reg, place).ty;
            self.statements.set(reg, Expr::new(ring, Prec::Primary, ty));
        } else if self.facts.get(reg).kept && self.walk == Walk::Unrolled {
            let e = self.statements.expr(reg, place);
            let name = self.statements.fresh(reg, place, &mut self.names);
            outside.push(format!("{} {name}[{}];", e.ty.c(), self.space.lanes.each));
            inside.push(format!("{name}[round] = {};", e.text));
            self.statements
                .set(reg, Expr::new(format!("{name}[round]"), Prec::Primary, e.ty));
        } else {
            self.statements.define(reg, place, &mut self.names, inside);
        }
    }

    /// Folds whose operand is known in a stage: the result, the fold, the operand.
    fn folds(&self, phase: Phase, stage: usize) -> Vec<(Reg, Reduce, Reg)> {
        let all = self.channel.body.steps.iter().enumerate();
        all.filter_map(|(i, step)| match step {
            Step::Reduce(op, operand) => Some((Reg(i as u32), *op, *operand)),
            _ => None,
        })
        .filter(|(reg, ..)| {
            let fact = self.facts.get(*reg);
            fact.phase == phase && fact.stage == stage + 1 && self.statements.is_used(*reg)
        })
        .collect()
    }

    fn accumulate(
        &mut self,
        phase: Phase,
        stage: usize,
        place: &Place,
        outside: &mut Vec<String>,
        inside: &mut Vec<String>,
    ) -> Vec<String> {
        let mut totals = Vec::new();
        for (reg, op, operand) in self.folds(phase, stage) {
            let (_, combine, neutral) = fold_parts(op);
            let total = self.statements.fresh(reg, place, &mut self.names);
            outside.push(format!("float {total} = {};", Expr::number(neutral).text));
            let own = self.statements.get(operand).as_float();
            let own = match &self.space.inside {
                Some(test) if self.walk == Walk::Unrolled => Expr::select(test, &own, &Expr::number(neutral)),
                _ => own,
            };
            inside.push(match combine {
                Some(function) => format!("{total} = {function}({total}, {});", own.text),
                None => format!("{total} += {};", own.text),
            });
            self.statements
                .set(reg, Expr::new(total.clone(), Prec::Primary, Type::Float));
            totals.push(total);
        }
        totals
    }

    /// The stores of a stage: those for each inner element, or those for each channel.
    fn stores(&self, phase: Phase, stage: usize, inner: bool) -> Vec<&'a Store> {
        let all = self.channel.body.stores.iter().enumerate();
        all.filter(|(i, store)| {
            let value = self.facts.get(store.value);
            let ready = if value.phase == phase { value.stage } else { 0 };
            let each = value.inner || self.channel.varies_within(&store.index);
            phase == Phase::Frame && ready == stage && each == inner && !self.skipped.contains(i)
        })
        .map(|(_, store)| store)
        .collect()
    }
}
