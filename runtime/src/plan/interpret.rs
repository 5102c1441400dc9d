//! Runs a plan point by point in f64: the plan's semantics written as directly as can be. Tests hold
//! the scheduler and every engine to it; it is always compiled, so that building tests does not build everything anew.
//!
//! In: a plan and data. Out: outputs and final windows. Nothing is fast, parallel or reused here, storage is never rounded,
//! and nothing is shared with the engines beyond the plan's types: where an engine differs, one of the two is wrong.

use super::{
    Body, BufferId, Channel, Frame, Guard, Index, Initial, Kernel, Launch, Load, Loop, Plan, Product, Reg, Role, Scope,
    Slot, Step, Store, StoreFrame,
};
use crate::scalar::Binary;
use std::collections::BTreeMap;

/// Contents of buffers.
pub type Values = BTreeMap<BufferId, Vec<f64>>;

/// Outputs and final windows of a run from `given`: parameters, inputs, and any initial windows. The plan must be sound.
pub fn interpret(plan: &Plan, frames: usize, batch: usize, given: &Values) -> Values {
    let mut run = Run {
        plan,
        frames,
        batch,
        memory: plan.buffers.iter().map(|b| vec![0.0; b.len(frames, batch)]).collect(),
    };
    for (id, values) in given {
        run.memory[id.0 as usize].clone_from(values);
    }
    plan.prologue.iter().for_each(|launch| run.launch(launch));
    run.windows(given);
    plan.launches.iter().for_each(|launch| run.launch(launch));
    for copy in &plan.finals {
        run.final_from_initial(copy.target, copy.initial, Some(copy.source));
    }
    let wanted = plan.ids().filter(|(_, b)| matches!(b.role, Role::Output | Role::Final));
    wanted.map(|(id, _)| (id, run.memory[id.0 as usize].clone())).collect()
}

/// Runs one launch of the plan on the contents of all its buffers.
pub fn interpret_launch(plan: &Plan, launch: &Launch, frames: usize, batch: usize, memory: &mut Vec<Vec<f64>>) {
    let mut run = Run {
        plan,
        frames,
        batch,
        memory: std::mem::take(memory),
    };
    run.launch(launch);
    *memory = run.memory;
}

struct Run<'a> {
    plan: &'a Plan,
    frames: usize,
    batch: usize,
    memory: Vec<Vec<f64>>,
}

/// Where a body is evaluated.
struct At<'a> {
    t: usize,
    b: usize,
    vars: &'a [i64],
    slots: &'a [f64],
    /// `(state, delay)` of a channel kernel, or `(value, delay, element)` of a loop.
    state: &'a dyn Fn(usize, usize, usize) -> f64,
}

fn nothing(_: usize, _: usize, _: usize) -> f64 {
    f64::NAN
}

impl Run<'_> {
    /// Windows that the caller did not give, then the final windows of runs that are shorter than they.
    fn windows(&mut self, given: &Values) {
        let plan = self.plan;
        for at in plan.needed_initial(|id| given.contains_key(&id)) {
            self.launch(&plan.initial[at]);
        }
        for (id, buffer) in plan.ids() {
            match (buffer.role.clone(), given.get(&id)) {
                (Role::Initial(_), Some(values)) => self.memory[id.0 as usize].clone_from(values),
                (Role::Initial(Initial::Fill(x)), None) => self.memory[id.0 as usize].fill(x),
                _ => {}
            }
        }
        for (id, buffer) in plan.ids().filter(|(_, b)| b.role == Role::Final) {
            let same = plan
                .ids()
                .find(|(_, b)| matches!(b.role, Role::Initial(_)) && b.name == buffer.name);
            if let Some((initial, _)) = same {
                self.final_from_initial(id, initial, None);
            }
        }
    }

    /// Frames `T-k..T` of `initial ++ source`; without a source only those before the first frame.
    fn final_from_initial(&mut self, target: BufferId, initial: BufferId, source: Option<BufferId>) {
        let buffer = self.plan.buffer(target);
        let Scope::Window(k) = buffer.scope else { return };
        let row = self.batch * buffer.elements();
        for j in 0..k {
            // Frame j of the window is frame t of the run.
            let t = self.frames as i64 - k as i64 + j as i64;
            let (from, place) = match source {
                _ if t < 0 => (initial, (k as i64 + t) as usize),
                Some(source) => (source, t as usize),
                None => continue,
            };
            let values = self.memory[from.0 as usize][place * row..(place + 1) * row].to_vec();
            self.memory[target.0 as usize][j * row..(j + 1) * row].copy_from_slice(&values);
        }
    }

    fn launch(&mut self, launch: &Launch) {
        match &launch.kernel {
            Kernel::Product(product) => self.product(product),
            Kernel::Total(totals) => totals.iter().for_each(|total| self.total(total)),
            Kernel::Channel(channel) => self.channel(channel),
            Kernel::Loop(kernel) => self.recur(kernel),
        }
    }

    /// Every frame and sequence of a scope.
    fn copies(&self, scope: Scope) -> Vec<(usize, usize)> {
        let (frames, batch) = match scope {
            Scope::Const => (1, 1),
            Scope::Batch => (1, self.batch),
            _ => (self.frames, self.batch),
        };
        (0..frames).flat_map(|t| (0..batch).map(move |b| (t, b))).collect()
    }

    fn product(&mut self, product: &Product) {
        for (t, b) in self.copies(product.scope) {
            let state = &nothing;
            let operand = |operand: &super::ProductOperand, k: usize| {
                let vars = &[k as i64];
                self.body(
                    &operand.body,
                    &At {
                        t,
                        b,
                        vars,
                        slots: &[],
                        state,
                    },
                )[operand.result.0 as usize]
            };
            let vectors: Vec<Vec<f64>> = product
                .operands
                .iter()
                .map(|o| (0..o.extent).map(|k| operand(o, k)).collect())
                .collect();
            for segment in &product.segments {
                for row in 0..segment.rows {
                    let mut sum = 0.0;
                    for (weight, vector) in segment.weights.iter().zip(&vectors) {
                        for (k, x) in vector.iter().enumerate() {
                            sum += self.memory[weight.buffer.0 as usize]
                                [weight.index().eval(&[row as i64, k as i64]) as usize]
                                * x;
                        }
                    }
                    let (vars, slots) = (&[row as i64], &[sum]);
                    let registers = self.body(
                        &segment.body,
                        &At {
                            t,
                            b,
                            vars,
                            slots,
                            state,
                        },
                    );
                    self.stores(&segment.body, &registers, t, b, vars);
                }
            }
        }
    }

    fn total(&mut self, total: &super::Total) {
        for part in &total.parts {
            self.total_part(total, part);
        }
    }

    fn total_part(&mut self, total: &super::Total, part: &super::TotalPart) {
        let mut sums: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
        let results = total.groups * total.rows * part.columns;
        for (t, b) in self.copies(total.over) {
            let [left, right] = [&total.left, &part.right].map(|operand| {
                let element = |k: usize| {
                    let (vars, slots, state) = (&[k as i64], &[][..], &nothing);
                    let at = At {
                        t,
                        b,
                        vars,
                        slots,
                        state,
                    };
                    self.body(&operand.body, &at)[operand.result.0 as usize]
                };
                (0..operand.extent).map(element).collect::<Vec<f64>>()
            });
            let sequence = if total.scope == Scope::Const { 0 } else { b };
            let sum = sums.entry(sequence).or_insert_with(|| vec![0.0; results]);
            for (at, sum) in sum.iter_mut().enumerate() {
                let (column, row) = (at % part.columns, at / part.columns % total.rows);
                let group = at / part.columns / total.rows;
                for j in 0..total.inner {
                    let (l, r) = (group * total.rows + row, group * part.columns + column);
                    *sum += left[l * total.inner + j] * right[r * total.inner + j];
                }
            }
        }
        for (b, sum) in sums {
            for (at, sum) in sum.into_iter().enumerate() {
                let (vars, slots, state) = (&[at as i64], &[sum], &nothing);
                let at = At {
                    t: 0,
                    b,
                    vars,
                    slots,
                    state,
                };
                let registers = self.body(&part.body, &at);
                self.stores(&part.body, &registers, 0, b, vars);
            }
        }
    }

    fn channel(&mut self, channel: &Channel) {
        let extents: Vec<usize> = channel.channels.iter().chain(&channel.inner).copied().collect();
        let inner: usize = channel.inner.iter().product();
        let all = points(&extents);
        // [state][sequence][frame, the initial window first][point]
        let mut past: Vec<Vec<Vec<Vec<f64>>>> = channel.carried.iter().map(|c| self.before(c, &all)).collect();
        for (t, b) in self.copies(channel.scope) {
            let mut now = Vec::new();
            for (n, group) in all.chunks(inner).enumerate() {
                now.extend(self.group(channel, (t, b), group, &|state, delay, element| {
                    let frames = &past[state][b];
                    frames[frames.len() - delay][n * inner + element]
                }));
            }
            for (vars, registers) in all.iter().zip(&now) {
                self.stores(&channel.body, registers, t, b, vars);
            }
            for (carried, past) in channel.carried.iter().zip(&mut past) {
                past[b].push(
                    now.iter()
                        .map(|registers| registers[carried.value.0 as usize])
                        .collect(),
                );
            }
        }
    }

    /// The initial window of a carried state at every point, for every sequence.
    fn before(&self, carried: &super::Carried, all: &[Vec<i64>]) -> Vec<Vec<Vec<f64>>> {
        let frame = |b: usize, j: usize| {
            let element = |vars: &Vec<i64>| self.window(carried.initial, carried.window, j, b, &carried.index, vars);
            all.iter().map(element).collect()
        };
        (0..self.batch)
            .map(|b| (0..carried.window).map(|j| frame(b, j)).collect())
            .collect()
    }

    /// Element `index` of frame `j` of the last `of` frames of an initial window.
    fn window(&self, id: BufferId, of: usize, j: usize, b: usize, index: &Index, vars: &[i64]) -> f64 {
        let buffer = self.plan.buffer(id);
        let k = buffer.scope.copies(1, 1);
        self.memory[id.0 as usize][((k - of + j) * self.batch + b) * buffer.elements() + index.eval(vars) as usize]
    }

    /// The registers of the points of one channel.
    fn group(
        &self,
        channel: &Channel,
        (t, b): (usize, usize),
        group: &[Vec<i64>],
        carried: &dyn Fn(usize, usize, usize) -> f64,
    ) -> Vec<Vec<f64>> {
        let mut registers: Vec<Vec<f64>> = vec![Vec::new(); group.len()];
        for step in &channel.body.steps {
            if let Step::Reduce(op, of) = step {
                let terms: Vec<f64> = registers.iter().map(|r| r[of.0 as usize]).collect();
                registers.iter_mut().for_each(|r| r.push(op.eval(&terms)));
                continue;
            }
            for (n, vars) in group.iter().enumerate() {
                let state = &|state, delay, _| carried(state, delay, n);
                let value = self.step(
                    step,
                    &registers[n],
                    &At {
                        t,
                        b,
                        vars,
                        slots: &[],
                        state,
                    },
                );
                registers[n].push(value);
            }
        }
        registers
    }

    fn recur(&mut self, kernel: &Loop) {
        // [value][sequence][frame, the initial window first][element]; the last frame is the one at work.
        let mut past: Vec<Vec<Vec<Vec<f64>>>> = kernel.values.iter().map(|v| self.before_value(v)).collect();
        for t in 0..self.frames {
            for b in 0..self.batch {
                for (value, past) in kernel.values.iter().zip(&mut past) {
                    past[b].push(vec![f64::NAN; value.extent]);
                }
                for phase in &kernel.phases {
                    let set: Vec<_> = phase
                        .parts
                        .iter()
                        .flat_map(|part| self.part(part, t, b, &past))
                        .collect();
                    for (value, element, x) in set {
                        if let Some(now) = past[value][b].last_mut() {
                            now[element] = x;
                        }
                    }
                }
            }
        }
    }

    fn before_value(&self, value: &super::LoopValue) -> Vec<Vec<Vec<f64>>> {
        let frame = |b: usize, j: usize, id: BufferId| {
            let element = |u: usize| self.window(id, value.window, j, b, &Index::var(0), &[u as i64]);
            (0..value.extent).map(element).collect()
        };
        let frames = |b: usize| {
            value
                .initial
                .map_or(vec![], |id| (0..value.window).map(|j| frame(b, j, id)).collect())
        };
        (0..self.batch).map(frames).collect()
    }

    /// Runs the units of a part; what they set becomes visible after the phase.
    fn part(
        &mut self,
        part: &super::LoopPart,
        t: usize,
        b: usize,
        past: &[Vec<Vec<Vec<f64>>>],
    ) -> Vec<(usize, usize, f64)> {
        let state = &|value: usize, delay: usize, element: usize| {
            let frames: &Vec<Vec<f64>> = &past[value][b];
            frames[frames.len() - 1 - delay][element]
        };
        let mut set = Vec::new();
        for u in 0..part.units {
            let mut slots = Vec::new();
            for slot in &part.slots {
                let value = self.slot(
                    slot,
                    u,
                    &At {
                        t,
                        b,
                        vars: &[],
                        slots: &slots,
                        state,
                    },
                );
                slots.push(value);
            }
            let vars = &[u as i64];
            let registers = self.body(
                &part.body,
                &At {
                    t,
                    b,
                    vars,
                    slots: &slots,
                    state,
                },
            );
            self.stores(&part.body, &registers, t, b, vars);
            set.extend(
                part.sets
                    .iter()
                    .map(|(value, reg)| (*value, u, registers[reg.0 as usize])),
            );
        }
        set
    }

    fn slot(&self, slot: &Slot, u: usize, at: &At<'_>) -> f64 {
        let vars = |k: usize| [u as i64, k as i64];
        match slot {
            Slot::Dot {
                extent,
                weight,
                weight_index,
                value,
                delay,
                value_index,
            } => (0..*extent)
                .map(|k| {
                    let w = self.memory[weight.0 as usize][weight_index.eval(&vars(k)) as usize];
                    w * (at.state)(*value, *delay, value_index.eval(&vars(k)) as usize)
                })
                .sum(),
            Slot::Fold {
                op,
                extent,
                body,
                result,
            } => {
                let term = |k: usize| self.body(body, &At { vars: &vars(k), ..*at })[result.0 as usize];
                op.eval(&(0..*extent).map(term).collect::<Vec<f64>>())
            }
        }
    }

    fn body(&self, body: &Body, at: &At<'_>) -> Vec<f64> {
        let mut registers = Vec::with_capacity(body.steps.len());
        for step in &body.steps {
            registers.push(self.step(step, &registers, at));
        }
        registers
    }

    fn step(&self, step: &Step, registers: &[f64], at: &At<'_>) -> f64 {
        let r = |reg: &Reg| registers[reg.0 as usize];
        match step {
            Step::Const(x) => *x,
            Step::Load(load) => self.load(load, at),
            Step::Number(index) => index.eval(at.vars) as f64,
            Step::Inside(guards) => f64::from(u8::from(hold(guards, at.vars))),
            Step::Gather {
                table,
                row,
                rows,
                stride,
                index,
            } => {
                let row = r(row).clamp(0.0, *rows as f64 - 1.0) as usize;
                self.memory[table.0 as usize][row * stride + index.eval(at.vars) as usize]
            }
            Step::Unary(op, a) => op.eval(r(a)),
            Step::Binary(op, a, b) => op.eval(r(a), r(b)),
            Step::Select(a, b, c) => {
                if r(a) != 0.0 {
                    r(b)
                } else {
                    r(c)
                }
            }
            Step::Clamp(x, lo, hi) => Binary::Min.eval(Binary::Max.eval(r(x), r(lo)), r(hi)),
            Step::Reduce(op, a) => op.eval(&[r(a)]),
            Step::Carried { state, delay } => (at.state)(*state, *delay, 0),
            Step::Value { value, delay, index } => (at.state)(*value, *delay, index.eval(at.vars) as usize),
            Step::Slot(slot) => at.slots[*slot],
        }
    }

    fn load(&self, load: &Load, at: &At<'_>) -> f64 {
        if !hold(&load.guards, at.vars) {
            return 0.0;
        }
        let (buffer, copy) = match load.frame {
            Frame::Const => (load.buffer, 0),
            Frame::Batch => (load.buffer, at.b),
            Frame::At { delay, window } => {
                let t = at.t as i64 - i64::from(delay);
                match window {
                    _ if t >= self.frames as i64 => return 0.0,
                    _ if t >= 0 => (load.buffer, t as usize * self.batch + at.b),
                    Some(id) => {
                        let k = self.plan.buffer(id).scope.copies(1, 1) as i64;
                        (id, (k + t) as usize * self.batch + at.b)
                    }
                    None => return f64::NAN,
                }
            }
        };
        let elements = self.plan.buffer(buffer).elements();
        self.memory[buffer.0 as usize][copy * elements + load.index.eval(at.vars) as usize]
    }

    fn stores(&mut self, body: &Body, registers: &[f64], t: usize, b: usize, vars: &[i64]) {
        for store in &body.stores {
            // Where the index lacks a variable, only the points where it is 0 store.
            let stores = vars
                .iter()
                .enumerate()
                .all(|(v, x)| *x == 0 || store.index.uses(v as u8));
            if let Some(copy) = self.store_copy(store, t, b).filter(|_| stores) {
                let elements = self.plan.buffer(store.buffer).elements();
                let element = copy * elements + store.index.eval(vars) as usize;
                self.memory[store.buffer.0 as usize][element] = registers[store.value.0 as usize];
            }
        }
    }

    fn store_copy(&self, store: &Store, t: usize, b: usize) -> Option<usize> {
        match store.frame {
            StoreFrame::Const => Some(0),
            StoreFrame::Batch => Some(b),
            StoreFrame::Now => Some(t * self.batch + b),
            StoreFrame::Window(j) => Some(j * self.batch + b),
            StoreFrame::Final => {
                let k = self.plan.buffer(store.buffer).scope.copies(1, 1);
                (t + k).checked_sub(self.frames).map(|j| j * self.batch + b)
            }
        }
    }
}

fn hold(guards: &[Guard], vars: &[i64]) -> bool {
    guards.iter().all(|g| (g.lo..g.hi).contains(&g.index.eval(vars)))
}

/// Every point of a space, row-major.
fn points(extents: &[usize]) -> Vec<Vec<i64>> {
    extents.iter().fold(vec![vec![]], |all, n| {
        all.iter()
            .flat_map(|p| (0..*n as i64).map(move |x| [p.as_slice(), &[x]].concat()))
            .collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::samples::{decay, embedding, taps};

    /// The wanted result of one buffer.
    fn run(plan: &Plan, frames: usize, batch: usize, given: &[(&str, Vec<f64>)]) -> BTreeMap<String, Vec<f64>> {
        let key = |id: BufferId| crate::given::key(plan.buffer(id));
        let id = |name: &str| plan.ids().find(|(id, _)| key(*id) == name).unwrap().0;
        let given = given.iter().map(|(name, values)| (id(name), values.clone())).collect();
        let found = interpret(plan, frames, batch, &given);
        found.into_iter().map(|(id, values)| (key(id), values)).collect()
    }

    #[test]
    fn a_carried_state_starts_from_its_window() {
        let given = [("x.x", vec![2.0, 4.0]), ("p.f", vec![0.5])];
        let found = run(&decay(1), 2, 1, &given);
        assert_eq!(found["y.h"], [1.25, 2.625]);
        assert_eq!(found["sT.h"], [2.625]);
    }

    /// Every kind of read, worked out by hand: y = ((((e x[t-2]) 2 + x'[t-1]) 2 + x[t+1]) 2 + shifted) 2 + context.
    #[test]
    fn taps_read_windows_ahead_and_reversed() {
        let given = [
            ("x.x", vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
            ("x.context", vec![10.0, 20.0]),
            ("p.raw", vec![0.0, 0.0]),
        ];
        let found = run(&taps(2), 3, 1, &given);
        let by_hand = |old: f64, before: f64, ahead: f64, shifted: f64, context: f64| {
            (((old * 2.0 + before) * 2.0 + ahead) * 2.0 + shifted) * 2.0 + context
        };
        let want = [
            by_hand(10.0, 10.0, 3.0, 0.0, 10.0),
            by_hand(20.0, 5.0, 4.0, 1.0, 20.0),
            by_hand(5.0, 2.0, 5.0, 0.0, 10.0),
            by_hand(10.0, 1.0, 6.0, 3.0, 20.0),
            by_hand(1.0, 4.0, 0.0, 0.0, 10.0),
            by_hand(2.0, 3.0, 0.0, 5.0, 20.0),
        ];
        assert_eq!(found["y.y"], want);
        assert_eq!(found["sT.x"], [3.0, 4.0, 5.0, 6.0]);
        let short = run(
            &taps(2),
            1,
            1,
            &[("x.x", vec![1.0, 2.0]), given[1].clone(), given[2].clone()],
        );
        assert_eq!(short["sT.x"], [5.0, 10.0, 1.0, 2.0]);
    }

    #[test]
    fn gathers_clamp_their_row() {
        let table = ("p.E", vec![1.0, 2.0, 3.0]);
        let found = run(&embedding(3, 1), 3, 1, &[table, ("x.token", vec![0.0, 9.0, -1.0])]);
        assert_eq!(found["y.y"], [1.0 + 2.0, 3.0 + 1.0, 1.0 + 3.0]);
    }
}
