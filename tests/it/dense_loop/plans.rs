//! Loops written by hand: one for each way in which units can depend on each other.

use rnnc_runtime::engine::Data;
use rnnc_runtime::plan::{
    Body, Buffer, BufferId, Elem, Family, Frame, Index, Initial, Kernel, Launch, Load, Loop, LoopPart, LoopValue,
    Phase, Plan, Reg, Role, Scope, Slot, Step, Store, StoreFrame,
};
use rnnc_runtime::scalar::{Binary, Reduce, Unary};
use std::collections::BTreeMap;

/// A plan, and how exact it can be.
pub struct Made {
    pub plan: Plan,
    pub tolerance: f64,
}

/// Random contents of everything that a run is given.
pub fn given(plan: &Plan, frames: usize, batch: usize, seed: u64) -> BTreeMap<BufferId, Data> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / (1u64 << 24) as f32 * 2.0 - 1.0
    };
    let is_given = |b: &Buffer| matches!(b.role, Role::Input | Role::Param | Role::Initial(_));
    let mut all = BTreeMap::new();
    for (id, buffer) in plan.ids().filter(|(_, b)| is_given(b)) {
        let n = buffer.len(frames, batch);
        // Products of long rows stay of the size of one.
        let size = if buffer.role == Role::Param {
            1.5 / (buffer.shape.last().map_or(1.0, |n| *n as f32)).sqrt()
        } else {
            1.0
        };
        all.insert(
            id,
            match buffer.elem {
                Elem::I32 => Data::I32((0..n).map(|_| ((next() + 1.0) * 2.0) as i32).collect()),
                Elem::F32 => Data::F32((0..n).map(|_| next() * size).collect()),
                // Exact in 16 bits, so that storage alone makes no difference.
                Elem::F16 | Elem::Bf16 => Data::F32((0..n).map(|_| (next() * size * 64.0).round() / 64.0).collect()),
            },
        );
    }
    all
}

struct Maker {
    plan: Plan,
}

#[derive(Default)]
struct Work {
    body: Body,
}

impl Maker {
    fn new(cell: &str) -> Maker {
        Maker {
            plan: Plan {
                cell: cell.to_string(),
                dims: vec![],
                buffers: vec![],
                prologue: vec![],
                initial: vec![],
                launches: vec![],
                finals: vec![],
                against_time: false,
            },
        }
    }

    fn buffer(&mut self, name: &str, role: Role, scope: Scope, shape: &[usize]) -> BufferId {
        self.plan.buffers.push(Buffer {
            name: name.to_string(),
            role,
            scope,
            shape: shape.to_vec(),
            elem: Elem::F32,
        });
        BufferId(self.plan.buffers.len() as u32 - 1)
    }

    fn param(&mut self, name: &str, shape: &[usize]) -> BufferId {
        self.buffer(name, Role::Param, Scope::Const, shape)
    }

    fn hoisted(&mut self, name: &str, shape: &[usize]) -> BufferId {
        self.buffer(name, Role::Input, Scope::Frame, shape)
    }

    fn output(&mut self, name: &str, shape: &[usize]) -> BufferId {
        self.buffer(name, Role::Output, Scope::Frame, shape)
    }

    fn initial(&mut self, name: &str, k: usize, extent: usize) -> BufferId {
        self.buffer(name, Role::Initial(Initial::Fill(0.0)), Scope::Window(k), &[extent])
    }

    fn last(&mut self, name: &str, k: usize, extent: usize) -> BufferId {
        self.buffer(name, Role::Final, Scope::Window(k), &[extent])
    }

    fn done(mut self, equations: &[&str], values: Vec<LoopValue>, phases: Vec<Vec<LoopPart>>, tolerance: f64) -> Made {
        self.plan.launches.push(Launch {
            name: format!("{}_loop", self.plan.cell),
            equations: equations.iter().map(ToString::to_string).collect(),
            after: vec![],
            family: Family::Loop,
            kernel: Kernel::Loop(Loop {
                values,
                phases: phases.into_iter().map(|parts| Phase { parts }).collect(),
            }),
        });
        rnnc_runtime::plan::check(&self.plan).unwrap();
        Made {
            plan: self.plan,
            tolerance,
        }
    }
}

impl Work {
    fn step(&mut self, step: Step) -> Reg {
        self.body.steps.push(step);
        Reg(self.body.steps.len() as u32 - 1)
    }

    fn number(&mut self, x: f64) -> Reg {
        self.step(Step::Const(x))
    }

    fn load(&mut self, buffer: BufferId, frame: Frame, index: Index) -> Reg {
        self.step(Step::Load(Load {
            buffer,
            frame,
            index,
            guards: vec![],
        }))
    }

    fn now(&mut self, buffer: BufferId, index: Index) -> Reg {
        self.load(buffer, NOW, index)
    }

    fn constant(&mut self, buffer: BufferId, index: Index) -> Reg {
        self.load(buffer, Frame::Const, index)
    }

    fn value(&mut self, value: usize, delay: usize, index: Index) -> Reg {
        self.step(Step::Value { value, delay, index })
    }

    fn own(&mut self, value: usize, delay: usize) -> Reg {
        self.value(value, delay, unit())
    }

    fn slot(&mut self, slot: usize) -> Reg {
        self.step(Step::Slot(slot))
    }

    fn unary(&mut self, op: Unary, a: Reg) -> Reg {
        self.step(Step::Unary(op, a))
    }

    fn binary(&mut self, op: Binary, a: Reg, b: Reg) -> Reg {
        self.step(Step::Binary(op, a, b))
    }

    fn add(&mut self, a: Reg, b: Reg) -> Reg {
        self.binary(Binary::Add, a, b)
    }

    fn sub(&mut self, a: Reg, b: Reg) -> Reg {
        self.binary(Binary::Sub, a, b)
    }

    fn mul(&mut self, a: Reg, b: Reg) -> Reg {
        self.binary(Binary::Mul, a, b)
    }

    fn named(&mut self, name: &str, reg: Reg) -> Reg {
        self.body.names.push((reg, name.to_string()));
        reg
    }

    fn store(&mut self, buffer: BufferId, frame: StoreFrame, value: Reg) {
        self.body.stores.push(Store {
            buffer,
            frame,
            index: unit(),
            value,
        });
    }
}

const NOW: Frame = Frame::At { delay: 0, window: None };

fn unit() -> Index {
    Index::var(0)
}

fn k() -> Index {
    Index::var(1)
}

fn value(name: &str, extent: usize, window: usize, shared: bool, initial: Option<BufferId>) -> LoopValue {
    LoopValue {
        name: name.to_string(),
        extent,
        window,
        shared,
        initial,
    }
}

/// Row `unit + offset` of a matrix with `extent` columns, times a whole value.
fn row(weight: BufferId, offset: usize, extent: usize, value: usize, delay: usize) -> Slot {
    Slot::Dot {
        extent,
        weight,
        weight_index: unit().plus(offset as i64).times(extent as i64).add(&k()),
        value,
        delay,
        value_index: k(),
    }
}

/// LSTM: one phase, four gates, one value of the own unit only.
pub fn lstm(h: usize) -> Made {
    let mut m = Maker::new("lstm");
    let r = m.param("R", &[4 * h, h]);
    let gates = m.hoisted("gates", &[4 * h]);
    let (h0, c0) = (m.initial("h", 1, h), m.initial("c", 1, h));
    let (h_last, c_last) = (m.last("h", 1, h), m.last("c", 1, h));
    let y = m.output("h", &[h]);
    let mut w = Work::default();
    let gate = |w: &mut Work, name: &str, g: usize, op| {
        let x = w.now(gates, unit().plus((g * h) as i64));
        let dot = w.slot(g);
        let sum = w.add(x, dot);
        let sum = w.named(name, sum);
        w.unary(op, sum)
    };
    let i = gate(&mut w, "i", 0, Unary::Sigmoid);
    let f = gate(&mut w, "f", 1, Unary::Sigmoid);
    let g = gate(&mut w, "g", 2, Unary::Tanh);
    let o = gate(&mut w, "o", 3, Unary::Sigmoid);
    let before = w.own(1, 1);
    let (kept, added) = (w.mul(f, before), w.mul(i, g));
    let c = w.add(kept, added);
    let c = w.named("c", c);
    let t = w.unary(Unary::Tanh, c);
    let hn = w.mul(o, t);
    let hn = w.named("h", hn);
    w.store(y, StoreFrame::Now, hn);
    w.store(h_last, StoreFrame::Final, hn);
    w.store(c_last, StoreFrame::Final, c);
    let part = LoopPart {
        units: h,
        slots: (0..4).map(|g| row(r, g * h, h, 0, 1)).collect(),
        body: w.body,
        sets: vec![(0, hn), (1, c)],
    };
    m.done(
        &[
            "i, f, g, o = split(W @ x + R @ h[t-1] + b, 4)",
            "c = sigmoid(f) * c[t-1] + sigmoid(i) * tanh(g)",
            "h = sigmoid(o) * tanh(c)",
        ],
        vec![value("h", h, 1, true, Some(h0)), value("c", h, 1, false, Some(c0))],
        vec![vec![part]],
        1e-5,
    )
}

/// GRU with the reset before the product: two phases, and a gate of the first that the second still needs.
pub fn gru_reset_before(h: usize) -> Made {
    let mut m = Maker::new("gru");
    let (r, rn) = (m.param("R", &[2 * h, h]), m.param("Rn", &[h, h]));
    let bias = m.param("bias", &[h]);
    let gates = m.hoisted("gates", &[3 * h]);
    let h0 = m.initial("h", 1, h);
    let h_last = m.last("h", 1, h);
    let y = m.output("h", &[h]);
    let mut w = Work::default();
    let gate = |w: &mut Work, g: usize| {
        let x = w.now(gates, unit().plus((g * h) as i64));
        let dot = w.slot(g);
        let sum = w.add(x, dot);
        w.unary(Unary::Sigmoid, sum)
    };
    let reset = gate(&mut w, 0);
    let z = gate(&mut w, 1);
    let before = w.own(0, 1);
    let rh = w.mul(reset, before);
    let first = LoopPart {
        units: h,
        slots: (0..2).map(|g| row(r, g * h, h, 0, 1)).collect(),
        body: w.body,
        sets: vec![(1, rh), (2, z)],
    };
    let mut w = Work::default();
    let x = w.now(gates, unit().plus(2 * h as i64));
    let (dot, b) = (w.slot(0), w.constant(bias, unit()));
    let sum = w.add(x, dot);
    let sum = w.add(sum, b);
    let n = w.unary(Unary::Tanh, sum);
    let n = w.named("n", n);
    let (z, before) = (w.own(2, 0), w.own(0, 1));
    let off = w.sub(before, n);
    let kept = w.mul(z, off);
    let hn = w.add(n, kept);
    w.store(y, StoreFrame::Now, hn);
    w.store(h_last, StoreFrame::Final, hn);
    let second = LoopPart {
        units: h,
        slots: vec![row(rn, 0, h, 1, 0)],
        body: w.body,
        sets: vec![(0, hn)],
    };
    m.done(
        &["rh = sigmoid(..) * h[t-1]", "h = n + z * (h[t-1] - n)"],
        vec![
            value("h", h, 1, true, Some(h0)),
            value("rh", h, 0, true, None),
            value("z", h, 0, false, None),
        ],
        vec![vec![first], vec![second]],
        1e-5,
    )
}

/// Two layers of different sizes with feedback over one, two and three frames, and a value of the own unit of two
/// frames ago.
pub fn delays(ha: usize, hb: usize) -> Made {
    let mut m = Maker::new("delays");
    let ra = m.param("Ra", &[ha, ha]);
    let f = m.param("F", &[ha, hb]);
    let (wb, rb) = (m.param("Wb", &[hb, ha]), m.param("Rb", &[hb, hb]));
    let xa = m.hoisted("xa", &[ha]);
    // The windows of a have one frame more than the loop reads: another launch does.
    let (a0, b0) = (m.initial("a", 4, ha), m.initial("b", 2, hb));
    let (a_last, b_last) = (m.last("a", 4, ha), m.last("b", 2, hb));
    let (s0, s_last) = (m.initial("s", 2, hb), m.last("s", 2, hb));
    let y = m.output("y", &[hb]);
    let mut w = Work::default();
    let x = w.now(xa, unit());
    let (p, q) = (w.slot(0), w.slot(1));
    let sum = w.add(p, q);
    let sum = w.add(x, sum);
    let a = w.unary(Unary::Tanh, sum);
    w.store(a_last, StoreFrame::Final, a);
    let first = LoopPart {
        units: ha,
        slots: vec![row(ra, 0, ha, 0, 3), row(f, 0, hb, 1, 1)],
        body: w.body,
        sets: vec![(0, a)],
    };
    let mut w = Work::default();
    let (p, q, old) = (w.slot(0), w.slot(1), w.own(2, 2));
    let half = w.number(0.5);
    let sum = w.add(p, q);
    let s = w.mul(old, half);
    let s = w.add(s, sum);
    let b = w.unary(Unary::Tanh, s);
    w.store(y, StoreFrame::Now, b);
    w.store(b_last, StoreFrame::Final, b);
    w.store(s_last, StoreFrame::Final, s);
    let second = LoopPart {
        units: hb,
        slots: vec![row(wb, 0, ha, 0, 0), row(rb, 0, hb, 1, 2)],
        body: w.body,
        sets: vec![(1, b), (2, s)],
    };
    m.done(
        &["a = tanh(xa + Ra @ a[t-3] + F @ b[t-1])", "b = tanh(s)"],
        vec![
            value("a", ha, 3, true, Some(a0)),
            value("b", hb, 2, true, Some(b0)),
            value("s", hb, 2, false, Some(s0)),
        ],
        vec![vec![first], vec![second]],
        1e-5,
    )
}

/// Heads with weights of their own, as sLSTM has: which elements a unit multiplies depends on the unit.
pub fn heads(heads: usize, size: usize) -> Made {
    let h = heads * size;
    let mut m = Maker::new("heads");
    let r = m.param("R", &[2, heads, size, size]);
    let x = m.hoisted("x", &[h]);
    let h0 = m.initial("h", 1, h);
    let y = m.output("h", &[h]);
    let dot = |gate: usize| Slot::Dot {
        extent: size,
        weight: r,
        weight_index: unit().times(size as i64).add(&k()).plus((gate * h * size) as i64),
        value: 0,
        delay: 1,
        value_index: unit()
            .div_mod(size as i64, None, &[h, size])
            .times(size as i64)
            .add(&k()),
    };
    let mut w = Work::default();
    let (now, p, q) = (w.now(x, unit()), w.slot(0), w.slot(1));
    let gate = w.unary(Unary::Sigmoid, q);
    let sum = w.add(now, p);
    let sum = w.unary(Unary::Tanh, sum);
    let hn = w.mul(gate, sum);
    w.store(y, StoreFrame::Now, hn);
    let part = LoopPart {
        units: h,
        slots: vec![dot(0), dot(1)],
        body: w.body,
        sets: vec![(0, hn)],
    };
    m.done(
        &["h = sigmoid(R1 h) tanh(x + R0 h)"],
        vec![value("h", h, 1, true, Some(h0))],
        vec![vec![part]],
        1e-5,
    )
}

fn fold(op: Reduce, extent: usize, build: impl FnOnce(&mut Work) -> Reg) -> Slot {
    let mut w = Work::default();
    let result = build(&mut w);
    Slot::Fold {
        op,
        extent,
        body: w.body,
        result,
    }
}

/// A layer norm inside the loop: products of 2h units, their moments (the same for all units), then h units that read
/// elements other than their own; and a dot product that is the same for all units.
pub fn layer_norm(h: usize) -> Made {
    let mut m = Maker::new("layer_norm");
    let (r, v) = (m.param("R", &[2 * h, h]), m.param("v", &[h]));
    let x = m.hoisted("x", &[2 * h]);
    let h0 = m.initial("h", 1, h);
    let (y, h_last) = (m.output("h", &[h]), m.last("h", 1, h));
    let mut w = Work::default();
    let (now, dot) = (w.now(x, unit()), w.slot(0));
    let sum = w.add(now, dot);
    let first = LoopPart {
        units: 2 * h,
        slots: vec![row(r, 0, h, 0, 1)],
        body: w.body,
        sets: vec![(1, sum)],
    };
    let moment = |op| fold(op, 2 * h, |w| w.value(1, 0, k()));
    let alike = Slot::Dot {
        extent: h,
        weight: v,
        weight_index: k(),
        value: 0,
        delay: 1,
        value_index: k(),
    };
    let mut w = Work::default();
    let (mean, var, same) = (w.slot(0), w.slot(1), w.slot(2));
    let small = w.number(1e-5);
    let var = w.add(var, small);
    let deviation = w.unary(Unary::Sqrt, var);
    let normal = |w: &mut Work, offset: usize| {
        let raw = w.value(1, 0, unit().plus(offset as i64));
        let off = w.sub(raw, mean);
        w.binary(Binary::Div, off, deviation)
    };
    let (a, b) = (normal(&mut w, 0), normal(&mut w, h));
    let gate = w.unary(Unary::Sigmoid, a);
    let b = w.add(b, same);
    let new = w.unary(Unary::Tanh, b);
    let hn = w.mul(gate, new);
    w.store(y, StoreFrame::Now, hn);
    w.store(h_last, StoreFrame::Final, hn);
    let second = LoopPart {
        units: h,
        slots: vec![moment(Reduce::Mean), moment(Reduce::Var), alike],
        body: w.body,
        sets: vec![(0, hn)],
    };
    m.done(
        &["s = x + R @ h[t-1]", "h = gated(layer_norm(s))"],
        vec![value("h", h, 1, true, Some(h0)), value("s", 2 * h, 0, true, None)],
        vec![vec![first], vec![second]],
        1e-5,
    )
}

/// Folds that depend on the unit, of every kind; loads of static inputs, of frames before and ahead, of table rows.
pub fn folds(h: usize) -> Made {
    let mut m = Maker::new("folds");
    let weights = m.param("W", &[h, h]);
    let table = m.param("table", &[5, h]);
    let x = m.hoisted("x", &[h]);
    let x0 = m.initial("x", 2, h);
    let token = m.buffer("token", Role::Input, Scope::Frame, &[]);
    m.plan.buffers[token.0 as usize].elem = Elem::I32;
    let context = m.buffer("context", Role::Input, Scope::Batch, &[h]);
    let h0 = m.initial("h", 1, h);
    let y = m.output("h", &[h]);
    let term = |op| {
        fold(op, h, |w| {
            let weight = w.constant(weights, unit().times(h as i64).add(&k()));
            let other = w.value(0, 1, k());
            let now = w.now(x, k());
            let sum = w.add(weight, other);
            w.mul(sum, now)
        })
    };
    let mut w = Work::default();
    let slots: Vec<Reg> = (0..6).map(|s| w.slot(s)).collect();
    let row = w.now(token, Index::int(0));
    let embedded = w.step(Step::Gather {
        table,
        row,
        rows: 5,
        stride: h,
        index: unit(),
    });
    let back = Frame::At {
        delay: 2,
        window: Some(x0),
    };
    let ahead = Frame::At {
        delay: -1,
        window: None,
    };
    let (old, coming) = (w.load(x, back, unit()), w.load(x, ahead, unit()));
    let still = w.load(context, Frame::Batch, unit());
    let mut sum = embedded;
    for more in slots.into_iter().chain([old, coming, still]) {
        sum = w.add(sum, more);
    }
    let hn = w.unary(Unary::Tanh, sum);
    w.store(y, StoreFrame::Now, hn);
    let part = LoopPart {
        units: h,
        slots: Reduce::ALL.iter().map(|op| term(*op)).collect(),
        body: w.body,
        sets: vec![(0, hn)],
    };
    m.done(
        &["h = tanh(folds)"],
        vec![value("h", h, 1, true, Some(h0))],
        vec![vec![part]],
        1e-5,
    )
}

/// Two parts in one phase, of different sizes; a value of one is read by the other's units at their own number.
pub fn two_parts(ha: usize, hb: usize) -> Made {
    let mut m = Maker::new("two_parts");
    let (ra, rb) = (m.param("Ra", &[ha, hb]), m.param("Rb", &[hb, ha]));
    let (xa, xb) = (m.hoisted("xa", &[ha]), m.hoisted("xb", &[hb]));
    let (a0, b0) = (m.initial("a", 1, ha), m.initial("b", 1, hb));
    let (ya, yb) = (m.output("a", &[ha]), m.output("b", &[hb]));
    let mut w = Work::default();
    let (x, dot) = (w.now(xa, unit()), w.slot(0));
    let sum = w.add(x, dot);
    let a = w.unary(Unary::Tanh, sum);
    w.store(ya, StoreFrame::Now, a);
    let first = LoopPart {
        units: ha,
        slots: vec![row(ra, 0, hb, 1, 1)],
        body: w.body,
        sets: vec![(0, a)],
    };
    let mut w = Work::default();
    let (x, dot, other) = (w.now(xb, unit()), w.slot(0), w.own(0, 1));
    let sum = w.add(x, dot);
    let sum = w.add(sum, other);
    let b = w.unary(Unary::Tanh, sum);
    w.store(yb, StoreFrame::Now, b);
    let second = LoopPart {
        units: hb,
        slots: vec![row(rb, 0, ha, 0, 1)],
        body: w.body,
        sets: vec![(1, b)],
    };
    assert!(hb <= ha);
    m.done(
        &["a = tanh(xa + Ra @ b[t-1])", "b = tanh(xb + Rb @ a[t-1] + a[t-1])"],
        vec![value("a", ha, 1, true, Some(a0)), value("b", hb, 1, true, Some(b0))],
        vec![vec![first, second]],
        1e-5,
    )
}

/// The same plan with parameters, inputs and outputs stored in 16 bits.
pub fn stored(made: Made, elem: Elem) -> Made {
    let mut plan = made.plan;
    for buffer in &mut plan.buffers {
        if buffer.elem == Elem::F32 && !matches!(buffer.role, Role::Initial(_) | Role::Final) {
            buffer.elem = elem;
        }
    }
    Made {
        plan,
        tolerance: made.tolerance,
    }
}
