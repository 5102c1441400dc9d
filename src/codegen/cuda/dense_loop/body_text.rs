//! The text of the units' own work: the loads made ahead of time, the body, what it sets and what it stores.

use super::layout::ValuePlace;
use super::printer::{Item, PartAt, Printer, mentions};
use crate::codegen::cuda::expr::{Expr, Prec, Type};
use crate::codegen::cuda::index::{self, Variable};
use crate::codegen::cuda::place::Place;
use crate::codegen::cuda::statements::Statements;
use rnnc_runtime::plan::{Frame, Reg, Step};
use std::collections::BTreeMap;

/// The work of a part, in the order in which it is done.
pub struct Work {
    /// Variables that must be there before.
    pub before: Vec<String>,
    /// Computes, and sets values.
    pub compute: Vec<String>,
    /// Stores what may wait until others have been served.
    pub stores: Vec<String>,
}

impl Printer<'_> {
    /// Variables of kept loads, and the function that fills those which change from frame to frame.
    pub fn declare_loads(&self, at: &PartAt) -> Vec<String> {
        let slice = at.layout.slice;
        self.kept(at)
            .iter()
            .map(|(_, kept)| self.declare(kept.ty, &kept.name, slice))
            .collect()
    }

    /// Fills the kept loads that are the same in all frames of a tile.
    pub fn load_still(&self, at: &PartAt) -> Vec<String> {
        self.load_kept(at, "0", |frame| !matches!(frame, Frame::At { .. }))
    }

    /// Fills the kept loads of frame `next`, if there are any.
    pub fn load_next(&self, at: &PartAt) -> Vec<String> {
        self.load_kept(at, "next", |frame| matches!(frame, Frame::At { .. }))
    }

    fn load_kept(&self, at: &PartAt, t: &str, wanted: impl Fn(Frame) -> bool) -> Vec<String> {
        let (slice, item) = (at.layout.slice, self.item(at.layout.slice));
        let statements = Statements::new(&at.part.body, &[]);
        let lines: Vec<String> = self
            .kept(at)
            .into_iter()
            .filter(|(step, _)| match &at.part.body.steps[*step] {
                Step::Load(load) => wanted(load.frame),
                _ => false,
            })
            .map(|(step, kept)| {
                let e = self.with_place(at, &item, t, |place| statements.expr(Reg(step as u32), place));
                format!("{} = {};", self.of_round(&kept.name, slice), e.text)
            })
            .collect();
        if lines.is_empty() {
            return lines;
        }
        self.for_items(slice, true, self.if_live(&item, t, lines))
    }

    /// Lines under the condition that the item exists, with `at` where they mention it.
    fn if_live(&self, item: &Item, t: &str, lines: Vec<String>) -> Vec<String> {
        let mut all = vec![format!("if ({}) {{", item.live)];
        if lines.iter().any(|line| mentions(line, "at")) {
            all.push(format!("const long long at = (long long){t} * B + {};", item.seq));
        }
        all.extend(lines);
        all.push("}".to_string());
        all
    }

    /// The work of a part in one frame.
    pub fn work(&self, at: &PartAt) -> Work {
        let item = self.item(at.layout.slice);
        self.with_place(at, &item, "t", |place| self.work_at(at, &item, place))
    }

    fn work_at(&self, at: &PartAt, item: &Item, place: &Place) -> Work {
        let slice = at.layout.slice;
        let body = &at.part.body;
        let roots: Vec<Reg> = at.part.sets.iter().map(|(_, reg)| *reg).collect();
        let mut statements = Statements::new(body, &roots);
        let mut names = self.names.clone();
        let kept: BTreeMap<usize, _> = self.kept(at).into_iter().collect();
        let mut lines = Vec::new();
        for step in 0..body.steps.len() {
            let reg = Reg(step as u32);
            match kept.get(&step) {
                Some(kept) => statements.set(reg, Expr::new(self.of_round(&kept.name, slice), Prec::Primary, kept.ty)),
                None => statements.define(reg, place, &mut names, &mut lines),
            }
        }
        for (value, reg) in &at.part.sets {
            lines.extend(self.set(*value, &statements.get(*reg).as_float(), item, at));
        }
        let (mut before, mut stores) = (Vec::new(), Vec::new());
        if slice.rounds == 1 {
            // What is stored outlives the body, so that the stores can come after the exchange has begun.
            self.outlive(at, &mut statements, &mut names, &mut before, &mut lines);
            for store in &body.stores {
                statements.store(store, place, None, &mut stores);
            }
            if !stores.is_empty() {
                stores = self.if_live(item, "t", stores);
            }
        } else {
            for store in &body.stores {
                statements.store(store, place, None, &mut lines);
            }
        }
        let unrolled = self.unrolls(at);
        Work {
            before,
            compute: self.for_items(slice, unrolled, self.if_live(item, "t", lines)),
            stores,
        }
    }

    fn outlive(
        &self,
        at: &PartAt,
        statements: &mut Statements,
        names: &mut crate::codegen::cuda::names::Names,
        before: &mut Vec<String>,
        lines: &mut Vec<String>,
    ) {
        let mut moved: BTreeMap<Reg, String> = BTreeMap::new();
        for store in &at.part.body.stores {
            if moved.contains_key(&store.value) {
                continue;
            }
            let name = names.unique(&format!("{}_out", self.cx.plan.buffer(store.buffer).name));
            before.push(format!("float {name} = 0.0f;"));
            lines.push(format!("{name} = {};", statements.get(store.value).as_float().text));
            moved.insert(store.value, name);
        }
        for (reg, name) in moved {
            statements.set(reg, Expr::float(name));
        }
    }

    /// Whether rounds are unrolled: something of them is in registers.
    fn unrolls(&self, at: &PartAt) -> bool {
        at.layout.slice.rounds <= super::layout::UNROLLED
    }

    /// Sets a value of this frame.
    fn set(&self, value: usize, e: &Expr, item: &Item, at: &PartAt) -> Option<String> {
        let to = match self.layout.values[value] {
            ValuePlace::Gathered { row, .. } => {
                let vars = [Variable::new(item.unit.clone(), at.part.units)];
                let column = if self.shape().sequences == 1 { "0" } else { &item.column };
                let unit = rnnc_runtime::plan::Index::var(0);
                let offset = index::print_within(&Expr::int(column), row, &unit, &vars);
                format!("{}[{}]", self.frame_of(value, 0), offset.text)
            }
            _ if !self.is_kept_value(value) => return None,
            _ => self.own_value(value, 0, at.layout.slice).text,
        };
        Some(format!("{to} = {};", e.text))
    }

    /// Whether a value that is not gathered is read at all.
    pub fn is_kept_value(&self, value: usize) -> bool {
        let read = |delay: Option<usize>| {
            self.parts().iter().any(|at| {
                super::slots::body_reads(&at.part.body).any(|r| r.value == value && delay.is_none_or(|d| r.delay == d))
            })
        };
        self.looped.values[value].window > 0 || read(None)
    }

    /// The variables of values that are in registers.
    pub fn declare_values(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for at in self.parts() {
            for (value, _) in &at.part.sets {
                if self.layout.values[*value] != ValuePlace::Registers || !self.is_kept_value(*value) {
                    continue;
                }
                for delay in 0..=self.looped.values[*value].window {
                    lines.push(self.declare(Type::Float, &self.own_name(*value, delay), at.layout.slice));
                }
            }
        }
        lines
    }

    /// Takes the windows before the first frame: of the values that are not gathered.
    pub fn start_own(&self, at: &PartAt) -> Vec<String> {
        let item = self.item(at.layout.slice);
        let slice = at.layout.slice;
        let mut lines = Vec::new();
        for (value, _) in &at.part.sets {
            let (info, place) = (&self.looped.values[*value], self.layout.values[*value]);
            let (Some(initial), false) = (info.initial, matches!(place, ValuePlace::Gathered { .. })) else {
                continue;
            };
            for delay in 1..=info.window {
                let e = self.initial(initial, delay, &item.unit, &item.seq, info.extent);
                lines.push(match place {
                    ValuePlace::Block(_) => {
                        let slot = info.window + 1 - delay;
                        let index = format!(
                            "({} * {}{}) * {} + threadIdx.x",
                            slot,
                            slice.rounds,
                            round_term(slice.rounds),
                            self.shape().threads()
                        );
                        format!("{}[{index}] = {e};", self.block_name(*value))
                    }
                    _ => format!("{} = {e};", self.own_value(*value, delay, slice).text),
                });
            }
        }
        if lines.is_empty() {
            return lines;
        }
        self.for_items(slice, self.unrolls(at), self.if_live(&item, "0", lines))
    }

    /// Element `unit` of the initial window, `delay` frames before the first.
    pub fn initial(
        &self,
        initial: rnnc_runtime::plan::BufferId,
        delay: usize,
        unit: &str,
        seq: &str,
        extent: usize,
    ) -> String {
        let frames = crate::codegen::cuda::place::window_frames(self.cx.plan.buffer(initial));
        let vars = [Variable::new(unit, extent)];
        let copy = match frames - delay as i64 {
            0 => Expr::int(seq),
            1 => Expr::new(format!("B + {seq}"), Prec::Sum, Type::Int),
            n => Expr::new(format!("{n}LL * B + {seq}"), Prec::Sum, Type::Int),
        };
        let unit = rnnc_runtime::plan::Index::var(0);
        let offset = index::print_within(&copy, extent, &unit, &vars);
        format!("{}[{}]", self.cx.pointers.get(initial), offset.text)
    }

    /// At the end of a frame: values in registers grow older.
    pub fn age(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for at in self.parts() {
            let slice = at.layout.slice;
            let mut moves = Vec::new();
            for (value, _) in &at.part.sets {
                if self.layout.values[*value] != ValuePlace::Registers {
                    continue;
                }
                for delay in (1..=self.looped.values[*value].window).rev() {
                    let (to, from) = (
                        self.own_value(*value, delay, slice),
                        self.own_value(*value, delay - 1, slice),
                    );
                    moves.push(format!("{} = {};", to.text, from.text));
                }
            }
            if slice.rounds > 1 && !moves.is_empty() {
                lines.push("#pragma unroll".to_string());
                lines.push(format!("for (int round = 0; round < {}; ++round) {{", slice.rounds));
                moves.push("}".to_string());
            }
            lines.extend(moves);
        }
        lines
    }
}

fn round_term(rounds: usize) -> &'static str {
    if rounds == 1 { "" } else { " + round" }
}
