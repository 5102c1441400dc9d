//! A plan's loop, evaluated in f64 as its documentation says: slow and obvious.

use rnnc_runtime::engine::Data;
use rnnc_runtime::plan::{Body, BufferId, Frame, Guard, Kernel, Loop, Plan, Reg, Role, Scope, Slot, Step, StoreFrame};
use rnnc_runtime::scalar::clamp;
use std::collections::BTreeMap;

/// All buffers after a run of the plan's only launch.
pub fn evaluate(
    plan: &Plan,
    frames: usize,
    batch: usize,
    given: &BTreeMap<BufferId, Data>,
) -> BTreeMap<BufferId, Vec<f64>> {
    let Kernel::Loop(looped) = &plan.launches[0].kernel else {
        panic!("not a loop")
    };
    let mut buffers: BTreeMap<BufferId, Vec<f64>> = plan
        .ids()
        .map(|(id, b)| (id, vec![0.0; b.len(frames, batch)]))
        .collect();
    for (id, data) in given {
        buffers.insert(
            *id,
            crate::cuda_shim::numbers(data).iter().map(|x| f64::from(*x)).collect(),
        );
    }
    let mut machine = Machine {
        plan,
        looped,
        frames,
        batch,
        buffers,
        // Of sequence b: frame t + window of the value.
        history: vec![],
    };
    for b in 0..batch {
        machine.run(b);
    }
    machine.short_windows();
    machine.buffers
}

struct Machine<'a> {
    plan: &'a Plan,
    looped: &'a Loop,
    frames: usize,
    batch: usize,
    buffers: BTreeMap<BufferId, Vec<f64>>,
    history: Vec<Vec<Vec<f64>>>,
}

/// Where a body is evaluated.
#[derive(Clone, Copy)]
struct At<'a> {
    t: usize,
    b: usize,
    vars: &'a [i64],
    slots: &'a [f64],
}

impl Machine<'_> {
    fn run(&mut self, b: usize) {
        self.history = self
            .looped
            .values
            .iter()
            .map(|v| {
                let mut frames = vec![];
                if v.window > 0 {
                    let initial = v.initial.unwrap();
                    let k = self.window(initial);
                    for j in k - v.window..k {
                        let start = (j * self.batch + b) * v.extent;
                        frames.push(self.buffers[&initial][start..start + v.extent].to_vec());
                    }
                }
                frames
            })
            .collect();
        for t in 0..self.frames {
            self.frame(t, b);
        }
    }

    fn window(&self, id: BufferId) -> usize {
        match self.plan.buffer(id).scope {
            Scope::Window(k) => k,
            _ => 1,
        }
    }

    fn frame(&mut self, t: usize, b: usize) {
        for (value, history) in self.looped.values.iter().zip(&mut self.history) {
            history.push(vec![f64::NAN; value.extent]);
        }
        for phase in &self.looped.phases {
            for part in &phase.parts {
                for unit in 0..part.units {
                    let slots: Vec<f64> = part.slots.iter().map(|s| self.slot(s, t, b, unit)).collect();
                    let vars = [unit as i64];
                    let at = At {
                        t,
                        b,
                        vars: &vars,
                        slots: &slots,
                    };
                    let regs = self.body(&part.body, at);
                    for (value, reg) in &part.sets {
                        *self.history[*value].last_mut().unwrap().get_mut(unit).unwrap() = regs[reg.0 as usize];
                    }
                    for store in &part.body.stores {
                        let frame = match store.frame {
                            StoreFrame::Now => Some(t * self.batch + b),
                            StoreFrame::Final => {
                                let k = self.window(store.buffer);
                                (t + k >= self.frames).then(|| (t + k - self.frames) * self.batch + b)
                            }
                            other => panic!("{other:?} in a loop"),
                        };
                        if let Some(frame) = frame {
                            let elements = self.plan.buffer(store.buffer).elements();
                            let at = frame * elements + store.index.eval(&vars) as usize;
                            self.buffers.get_mut(&store.buffer).unwrap()[at] = regs[store.value.0 as usize];
                        }
                    }
                }
            }
        }
    }

    /// Final windows that begin before the first frame begin with initial frames.
    fn short_windows(&mut self) {
        for (id, last) in self.plan.ids().filter(|(_, b)| b.role == Role::Final) {
            let k = self.window(id);
            let first = self
                .plan
                .ids()
                .find(|(_, b)| b.name == last.name && matches!(b.role, Role::Initial(_)));
            let before = self.buffers[&first.unwrap().0].clone();
            let frame = self.batch * last.elements();
            for j in 0..k.saturating_sub(self.frames) {
                let from = (j + self.frames) * frame;
                self.buffers.get_mut(&id).unwrap()[j * frame..(j + 1) * frame]
                    .copy_from_slice(&before[from..from + frame]);
            }
        }
    }

    fn value(&self, value: usize, delay: usize, index: i64) -> f64 {
        let history = &self.history[value];
        history[history.len() - 1 - delay][index as usize]
    }

    fn slot(&self, slot: &Slot, t: usize, b: usize, unit: usize) -> f64 {
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
                    let vars = [unit as i64, k as i64];
                    let w = self.buffers[weight][weight_index.eval(&vars) as usize];
                    w * self.value(*value, *delay, value_index.eval(&vars))
                })
                .sum(),
            Slot::Fold {
                op,
                extent,
                body,
                result,
            } => {
                let terms: Vec<f64> = (0..*extent)
                    .map(|k| {
                        let vars = [unit as i64, k as i64];
                        let at = At {
                            t,
                            b,
                            vars: &vars,
                            slots: &[],
                        };
                        self.body(body, at)[result.0 as usize]
                    })
                    .collect();
                op.eval(&terms)
            }
        }
    }

    fn body(&self, body: &Body, at: At) -> Vec<f64> {
        let mut regs: Vec<f64> = Vec::with_capacity(body.steps.len());
        for step in &body.steps {
            let x = self.step(step, at, &regs);
            regs.push(x);
        }
        regs
    }

    fn step(&self, step: &Step, at: At, regs: &[f64]) -> f64 {
        let r = |reg: &Reg| regs[reg.0 as usize];
        match step {
            Step::Const(x) => *x,
            Step::Load(load) => {
                if !inside(&load.guards, at.vars) {
                    return 0.0;
                }
                self.load(load.buffer, load.frame, load.index.eval(at.vars), at)
            }
            Step::Number(index) => index.eval(at.vars) as f64,
            Step::Inside(guards) => f64::from(u8::from(inside(guards, at.vars))),
            Step::Gather {
                table,
                row,
                rows,
                stride,
                index,
            } => {
                let row = (r(row).max(0.0) as usize).min(rows - 1);
                self.buffers[table][row * stride + index.eval(at.vars) as usize]
            }
            Step::Unary(op, a) => op.eval(r(a)),
            Step::Binary(op, a, b) => op.eval(r(a), r(b)),
            Step::Select(c, a, b) => {
                if r(c) != 0.0 {
                    r(a)
                } else {
                    r(b)
                }
            }
            Step::Clamp(x, lo, hi) => clamp(r(x), r(lo), r(hi)),
            Step::Value { value, delay, index } => self.value(*value, *delay, index.eval(at.vars)),
            Step::Slot(slot) => at.slots[*slot],
            Step::Reduce(..) | Step::Carried { .. } => panic!("{step:?} in a loop"),
        }
    }

    fn load(&self, id: BufferId, frame: Frame, index: i64, at: At) -> f64 {
        let element = |id: BufferId, copy: usize| {
            let elements = self.plan.buffer(id).elements();
            self.buffers[&id][copy * elements + index as usize]
        };
        match frame {
            Frame::Const => element(id, 0),
            Frame::Batch => element(id, at.b),
            Frame::At { delay, window } => {
                let t = at.t as i64 - i64::from(delay);
                if t >= self.frames as i64 {
                    0.0
                } else if t >= 0 {
                    element(id, t as usize * self.batch + at.b)
                } else if let Some(w) = window {
                    element(w, (self.window(w) as i64 + t) as usize * self.batch + at.b)
                } else {
                    0.0
                }
            }
        }
    }
}

fn inside(guards: &[Guard], vars: &[i64]) -> bool {
    guards.iter().all(|g| (g.lo..g.hi).contains(&g.index.eval(vars)))
}
