//! Small plans written by hand, for tests: every kernel family, step and scope occurs in one of them.

use super::*;
use crate::scalar::{Binary, Reduce, Unary};

/// Builds a body step by step.
#[derive(Default)]
pub(crate) struct BodyMaker(Body);

impl BodyMaker {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn step(&mut self, step: Step) -> Reg {
        self.0.steps.push(step);
        Reg(self.0.steps.len() as u32 - 1)
    }

    pub(crate) fn number(&mut self, x: f64) -> Reg {
        self.step(Step::Const(x))
    }

    pub(crate) fn load(&mut self, buffer: BufferId, frame: Frame, index: Index) -> Reg {
        self.step(Step::Load(Load {
            buffer,
            frame,
            index,
            guards: vec![],
        }))
    }

    /// Element `index` of this frame.
    pub(crate) fn now(&mut self, buffer: BufferId, index: Index) -> Reg {
        self.load(buffer, NOW, index)
    }

    pub(crate) fn constant(&mut self, buffer: BufferId, index: Index) -> Reg {
        self.load(buffer, Frame::Const, index)
    }

    pub(crate) fn carried(&mut self, state: usize, delay: usize) -> Reg {
        self.step(Step::Carried { state, delay })
    }

    pub(crate) fn value(&mut self, value: usize, delay: usize) -> Reg {
        self.step(Step::Value {
            value,
            delay,
            index: Index::var(0),
        })
    }

    pub(crate) fn slot(&mut self, slot: usize) -> Reg {
        self.step(Step::Slot(slot))
    }

    pub(crate) fn unary(&mut self, op: Unary, a: Reg) -> Reg {
        self.step(Step::Unary(op, a))
    }

    pub(crate) fn binary(&mut self, op: Binary, a: Reg, b: Reg) -> Reg {
        self.step(Step::Binary(op, a, b))
    }

    pub(crate) fn add(&mut self, a: Reg, b: Reg) -> Reg {
        self.binary(Binary::Add, a, b)
    }

    pub(crate) fn sub(&mut self, a: Reg, b: Reg) -> Reg {
        self.binary(Binary::Sub, a, b)
    }

    pub(crate) fn mul(&mut self, a: Reg, b: Reg) -> Reg {
        self.binary(Binary::Mul, a, b)
    }

    pub(crate) fn reduce(&mut self, op: Reduce, a: Reg) -> Reg {
        self.step(Step::Reduce(op, a))
    }

    pub(crate) fn store(&mut self, buffer: BufferId, frame: StoreFrame, index: Index, value: Reg) {
        self.0.stores.push(Store {
            buffer,
            frame,
            index,
            value,
        });
    }

    pub(crate) fn done(self) -> Body {
        self.0
    }
}

/// This frame.
pub(crate) const NOW: Frame = Frame::At { delay: 0, window: None };

/// `delay` frames back; the window holds what lies before the first.
pub(crate) fn back(delay: i32, window: BufferId) -> Frame {
    Frame::At {
        delay,
        window: Some(window),
    }
}

/// `Var(v) * stride` for each pair, added up.
pub(crate) fn at(terms: &[(u8, i64)]) -> Index {
    terms.iter().fold(Index::int(0), |sum, (v, stride)| {
        sum.add(&Index::var(*v).times(*stride))
    })
}

pub(crate) fn u() -> Index {
    Index::var(0)
}

/// Builds a plan buffer by buffer, launch by launch; each launch comes after all those before it.
pub(crate) struct PlanMaker(pub(crate) Plan);

impl PlanMaker {
    pub(crate) fn new(cell: &str) -> Self {
        PlanMaker(Plan {
            cell: cell.to_owned(),
            dims: vec![],
            buffers: vec![],
            prologue: vec![],
            initial: vec![],
            launches: vec![],
            finals: vec![],
        })
    }

    pub(crate) fn buffer(&mut self, name: &str, role: Role, scope: Scope, shape: &[usize]) -> BufferId {
        self.0.buffers.push(Buffer {
            name: name.to_owned(),
            role,
            scope,
            shape: shape.to_vec(),
            elem: Elem::F32,
        });
        BufferId(self.0.buffers.len() as u32 - 1)
    }

    pub(crate) fn input(&mut self, name: &str, shape: &[usize]) -> BufferId {
        self.buffer(name, Role::Input, Scope::Frame, shape)
    }

    pub(crate) fn param(&mut self, name: &str, shape: &[usize]) -> BufferId {
        self.buffer(name, Role::Param, Scope::Const, shape)
    }

    pub(crate) fn output(&mut self, name: &str, shape: &[usize]) -> BufferId {
        self.buffer(name, Role::Output, Scope::Frame, shape)
    }

    pub(crate) fn temp(&mut self, name: &str, scope: Scope, shape: &[usize]) -> BufferId {
        self.buffer(name, Role::Temp, scope, shape)
    }

    /// The windows before and after.
    pub(crate) fn windows(&mut self, name: &str, k: usize, shape: &[usize], fill: Initial) -> (BufferId, BufferId) {
        let first = self.buffer(name, Role::Initial(fill), Scope::Window(k), shape);
        (first, self.buffer(name, Role::Final, Scope::Window(k), shape))
    }

    fn launch(list: &mut Vec<Launch>, name: &str, kernel: Kernel) {
        let family = match &kernel {
            Kernel::Product(_) => Family::Product,
            Kernel::Channel(channel) if channel.sequential => Family::Scan,
            Kernel::Channel(_) => Family::Pointwise,
            Kernel::Loop(_) => Family::Loop,
        };
        list.push(Launch {
            family,
            name: name.to_owned(),
            equations: vec![],
            after: (0..list.len()).collect(),
            kernel,
        });
    }

    pub(crate) fn run(&mut self, name: &str, kernel: Kernel) {
        Self::launch(&mut self.0.launches, name, kernel);
    }

    pub(crate) fn prologue(&mut self, name: &str, kernel: Kernel) {
        Self::launch(&mut self.0.prologue, name, kernel);
    }

    pub(crate) fn initial(&mut self, name: &str, kernel: Kernel) {
        Self::launch(&mut self.0.initial, name, kernel);
    }
}

/// A row-major matrix with `k` columns.
pub(crate) fn matrix(buffer: BufferId, k: usize) -> Weight {
    Weight {
        buffer,
        offset: 0,
        row_stride: k as i64,
        k_stride: 1,
    }
}

/// `out = W @ x` for one operand that is a buffer of this frame.
pub(crate) fn plain_operand(buffer: BufferId, frame: Frame, extent: usize) -> ProductOperand {
    let mut body = BodyMaker::new();
    let result = body.load(buffer, frame, u());
    ProductOperand {
        extent,
        body: body.done(),
        result,
    }
}

/// The epilogue that adds a bias and stores.
pub(crate) fn biased(bias: BufferId, out: BufferId) -> Body {
    let mut body = BodyMaker::new();
    let sum = body.slot(0);
    let b = body.constant(bias, u());
    let y = body.add(sum, b);
    body.store(out, StoreFrame::Now, u(), y);
    body.done()
}

/// The gates' hoisted product, then the loop: `examples/cells/lstm.rnn` as the scheduler plans it.
pub(crate) fn lstm(i: usize, h: usize) -> Plan {
    let mut plan = PlanMaker::new("lstm");
    let x = plan.input("x", &[i]);
    let (w, r, b) = (
        plan.param("W", &[4 * h, i]),
        plan.param("R", &[4 * h, h]),
        plan.param("b", &[4 * h]),
    );
    let (h0, h_last) = plan.windows("h", 1, &[h], Initial::Fill(0.0));
    let (c0, c_last) = plan.windows("c", 1, &[h], Initial::Fill(0.0));
    let y = plan.output("h", &[h]);
    let gates = plan.temp("gates", Scope::Frame, &[4 * h]);
    plan.run(
        "project",
        Kernel::Product(Product {
            scope: Scope::Frame,
            operands: vec![plain_operand(x, NOW, i)],
            segments: vec![Segment {
                rows: 4 * h,
                weights: vec![matrix(w, i)],
                body: biased(b, gates),
            }],
        }),
    );
    let slots = (0..4).map(|gate| Slot::Dot {
        extent: h,
        weight: r,
        weight_index: at(&[(0, h as i64), (1, 1)]).plus((gate * h * h) as i64),
        value: 0,
        delay: 1,
        value_index: Index::var(1),
    });
    let mut body = BodyMaker::new();
    let gate = |body: &mut BodyMaker, g: usize, op| {
        let hoisted = body.now(gates, u().plus((g * h) as i64));
        let dot = body.slot(g);
        let sum = body.add(hoisted, dot);
        body.unary(op, sum)
    };
    let input = gate(&mut body, 0, Unary::Sigmoid);
    let forget = gate(&mut body, 1, Unary::Sigmoid);
    let new = gate(&mut body, 2, Unary::Tanh);
    let out = gate(&mut body, 3, Unary::Sigmoid);
    let before = body.value(1, 1);
    let kept = body.mul(forget, before);
    let added = body.mul(input, new);
    let c = body.add(kept, added);
    let squashed = body.unary(Unary::Tanh, c);
    let next = body.mul(out, squashed);
    body.store(y, StoreFrame::Now, u(), next);
    body.store(h_last, StoreFrame::Final, u(), next);
    body.store(c_last, StoreFrame::Final, u(), c);
    let value = |name: &str, shared, initial| LoopValue {
        name: name.to_owned(),
        extent: h,
        window: 1,
        shared,
        initial: Some(initial),
    };
    plan.run(
        "recur",
        Kernel::Loop(Loop {
            values: vec![value("h", true, h0), value("c", false, c0)],
            phases: vec![Phase {
                parts: vec![LoopPart {
                    units: h,
                    slots: slots.collect(),
                    body: body.done(),
                    sets: vec![(0, next), (1, c)],
                }],
            }],
        }),
    );
    plan.0
}

/// `h = x + f (h[t-1] - x)`: one sequential channel kernel.
pub(crate) fn decay(n: usize) -> Plan {
    let mut plan = PlanMaker::new("decay");
    let x = plan.input("x", &[n]);
    let f = plan.param("f", &[n]);
    let (h0, h_last) = plan.windows("h", 1, &[n], Initial::Fill(0.5));
    let y = plan.output("h", &[n]);
    let mut body = BodyMaker::new();
    let (now, rate, before) = (body.now(x, u()), body.constant(f, u()), body.carried(0, 1));
    let apart = body.sub(before, now);
    let faded = body.mul(rate, apart);
    let h = body.add(now, faded);
    body.store(y, StoreFrame::Now, u(), h);
    body.store(h_last, StoreFrame::Final, u(), h);
    plan.run(
        "decay",
        Kernel::Channel(Channel {
            scope: Scope::Frame,
            sequential: true,
            channels: vec![n],
            inner: vec![],
            carried: vec![Carried {
                name: "h".to_owned(),
                window: 1,
                initial: h0,
                index: u(),
                value: h,
            }],
            body: body.done(),
        }),
    );
    plan.0
}

/// Taps of the input two and one frames back, now and ahead, a static input's window from an initial launch, a reversal
/// along the axis, a row that a guard cuts off: pointwise work with every kind of read.
pub(crate) fn taps(n: usize) -> Plan {
    let mut plan = PlanMaker::new("taps");
    let x = plan.input("x", &[n]);
    let context = plan.buffer("context", Role::Input, Scope::Batch, &[n]);
    let raw = plan.param("raw", &[n]);
    let scale = plan.buffer("scale", Role::Prologue, Scope::Const, &[n]);
    let (x0, x_last) = plan.windows("x", 2, &[n], Initial::Launch(0));
    let y = plan.output("y", &[n]);
    plan.0.finals.push(FinalCopy {
        target: x_last,
        source: x,
        initial: x0,
    });
    let pointwise = |scope, body| {
        Kernel::Channel(Channel {
            scope,
            sequential: false,
            channels: vec![n],
            inner: vec![],
            carried: vec![],
            body,
        })
    };
    let mut body = BodyMaker::new();
    let raw = body.constant(raw, u());
    let exp = body.unary(Unary::Exp, raw);
    body.store(scale, StoreFrame::Const, u(), exp);
    plan.prologue("exp_scale", pointwise(Scope::Const, body.done()));
    let mut body = BodyMaker::new();
    let context_u = body.load(context, Frame::Batch, u());
    let half = body.number(0.5);
    let halved = body.mul(context_u, half);
    body.store(x0, StoreFrame::Window(0), u(), context_u);
    body.store(x0, StoreFrame::Window(1), u(), halved);
    plan.initial("window_of_x", pointwise(Scope::Batch, body.done()));
    let mut body = BodyMaker::new();
    let old = body.load(x, back(2, x0), u());
    let before = body.load(x, back(1, x0), at(&[(0, -1)]).plus(n as i64 - 1));
    let ahead = Frame::At {
        delay: -1,
        window: None,
    };
    let ahead = body.load(x, ahead, u());
    let shifted = body.step(Step::Load(Load {
        buffer: x,
        frame: NOW,
        index: u().plus(-1),
        guards: vec![Guard {
            index: u(),
            lo: 1,
            hi: n as i64,
        }],
    }));
    let rate = body.constant(scale, u());
    let context_u = body.load(context, Frame::Batch, u());
    let mut sum = body.mul(rate, old);
    for more in [before, ahead, shifted, context_u] {
        let doubled = body.add(sum, sum);
        sum = body.add(doubled, more);
    }
    body.store(y, StoreFrame::Now, u(), sum);
    plan.run("sum_taps", pointwise(Scope::Frame, body.done()));
    plan.0
}

/// A matrix state `S = a S[t-1] + k v` read by `y = sum(S * k, K)`, normalised over its rows: channels V, inner K.
pub(crate) fn matrix_state(rows: usize, columns: usize) -> Plan {
    let mut plan = PlanMaker::new("matrix_state");
    let (k, v) = (plan.input("k", &[columns]), plan.input("v", &[rows]));
    let a = plan.input("a", &[]);
    let (s0, s_last) = plan.windows("S", 1, &[rows, columns], Initial::Fill(0.0));
    let y = plan.output("y", &[rows]);
    let cell = at(&[(0, columns as i64), (1, 1)]);
    let mut body = BodyMaker::new();
    let (old, a, key) = (
        body.carried(0, 1),
        body.now(a, Index::int(0)),
        body.now(k, Index::var(1)),
    );
    let (value, gate) = (body.now(v, u()), body.unary(Unary::Sigmoid, a));
    let (kept, added) = (body.mul(gate, old), body.mul(value, key));
    let state = body.add(kept, added);
    let seen = body.mul(state, key);
    let read = body.reduce(Reduce::Sum, seen);
    let top = body.reduce(Reduce::Max, state);
    let out = body.add(read, top);
    body.store(y, StoreFrame::Now, u(), out);
    body.store(s_last, StoreFrame::Final, cell.clone(), state);
    plan.run(
        "remember",
        Kernel::Channel(Channel {
            scope: Scope::Frame,
            sequential: true,
            channels: vec![rows],
            inner: vec![columns],
            carried: vec![Carried {
                name: "S".to_owned(),
                window: 1,
                initial: s0,
                index: cell,
                value: state,
            }],
            body: body.done(),
        }),
    );
    plan.0
}

/// The row of a table that each frame's token names, plus the one of the frame before.
pub(crate) fn embedding(rows: usize, width: usize) -> Plan {
    let mut plan = PlanMaker::new("embedding");
    let token = plan.input("token", &[]);
    let table = plan.param("E", &[rows, width]);
    let (first, last) = plan.windows("token", 1, &[], Initial::Fill(1.0));
    for id in [token, first, last] {
        plan.0.buffers[id.0 as usize].elem = Elem::I32;
    }
    plan.0.finals.push(FinalCopy {
        target: last,
        source: token,
        initial: first,
    });
    let y = plan.output("y", &[width]);
    let mut body = BodyMaker::new();
    let tokens = [NOW, back(1, first)].map(|frame| body.load(token, frame, Index::int(0)));
    let [now, before] = tokens.map(|row| {
        body.step(Step::Gather {
            table,
            row,
            rows,
            stride: width,
            index: u(),
        })
    });
    let sum = body.add(now, before);
    body.store(y, StoreFrame::Now, u(), sum);
    plan.run(
        "embed",
        Kernel::Channel(Channel {
            scope: Scope::Frame,
            sequential: false,
            channels: vec![width],
            inner: vec![],
            carried: vec![],
            body: body.done(),
        }),
    );
    plan.0
}

/// Two operands, one of them a computed one, and three segments of unlike sizes, one from a slice of a weight that is
/// computed in the prologue; then a product of the static input alone.
pub(crate) fn products(i: usize, h: usize) -> Plan {
    let mut plan = PlanMaker::new("products");
    let (x, z) = (plan.input("x", &[i]), plan.input("z", &[h]));
    let context = plan.buffer("context", Role::Input, Scope::Batch, &[i]);
    let (w, r, b) = (
        plan.param("W", &[3 * h, i]),
        plan.param("R", &[3 * h, h]),
        plan.param("b", &[3 * h]),
    );
    let doubled = plan.buffer("doubled", Role::Prologue, Scope::Const, &[3 * h, i]);
    let summary = plan.buffer("summary", Role::Prologue, Scope::Const, &[3 * h]);
    let fixed = plan.temp("fixed", Scope::Batch, &[3 * h]);
    let (y, q, last) = (
        plan.output("y", &[h]),
        plan.output("q", &[h + 1]),
        plan.output("last", &[]),
    );
    let mut body = BodyMaker::new();
    let from = body.constant(w, at(&[(0, i as i64), (1, 1)]));
    let twice = body.add(from, from);
    body.store(doubled, StoreFrame::Const, at(&[(0, i as i64), (1, 1)]), twice);
    plan.prologue(
        "double",
        Kernel::Channel(Channel {
            scope: Scope::Const,
            sequential: false,
            channels: vec![3 * h, i],
            inner: vec![],
            carried: vec![],
            body: body.done(),
        }),
    );
    let mut body = BodyMaker::new();
    let sum = body.slot(0);
    body.store(summary, StoreFrame::Const, u(), sum);
    plan.prologue(
        "summarise",
        Kernel::Product(Product {
            scope: Scope::Const,
            operands: vec![plain_operand(b, Frame::Const, h)],
            segments: vec![Segment {
                rows: 3 * h,
                weights: vec![matrix(r, h)],
                body: body.done(),
            }],
        }),
    );
    let mut body = BodyMaker::new();
    let (sum, more) = (body.slot(0), body.constant(summary, u()));
    let total = body.add(sum, more);
    body.store(fixed, StoreFrame::Batch, u(), total);
    plan.run(
        "fix",
        Kernel::Product(Product {
            scope: Scope::Batch,
            operands: vec![plain_operand(context, Frame::Batch, i)],
            segments: vec![Segment {
                rows: 3 * h,
                weights: vec![matrix(doubled, i)],
                body: body.done(),
            }],
        }),
    );
    let mut squashed = BodyMaker::new();
    let from = squashed.now(z, u());
    let result = squashed.unary(Unary::Tanh, from);
    let second = ProductOperand {
        extent: h,
        body: squashed.done(),
        result,
    };
    let segment = |first: usize, rows: usize, out: BufferId| {
        let weights = [(doubled, i), (r, h)].map(|(buffer, k)| Weight {
            offset: (first * k) as i64,
            ..matrix(buffer, k)
        });
        let mut body = BodyMaker::new();
        let sum = body.slot(0);
        let more = body.load(fixed, Frame::Batch, u().plus(first as i64));
        let total = body.add(sum, more);
        body.store(out, StoreFrame::Now, u(), total);
        Segment {
            rows,
            weights: weights.to_vec(),
            body: body.done(),
        }
    };
    plan.run(
        "project",
        Kernel::Product(Product {
            scope: Scope::Frame,
            operands: vec![plain_operand(x, NOW, i), second],
            segments: vec![segment(0, h, y), segment(h, h + 1, q), segment(2 * h + 1, 1, last)],
        }),
    );
    plan.0
}

/// A loop of three phases with all kinds of slots: a block-diagonal product, the moments of a norm, a fold over another
/// unit's values, windows of two frames, a phase of other units, values of this frame.
pub(crate) fn norms(heads: usize, size: usize, other: usize) -> Plan {
    let h = heads * size;
    let mut plan = PlanMaker::new("norms");
    let x = plan.input("x", &[h]);
    let (r, v) = (plan.param("R", &[heads, size, size]), plan.param("V", &[other, h]));
    let (gain, back_weight) = (plan.param("gain", &[h]), plan.param("U", &[h, other]));
    let (a0, a_last) = plan.windows("a", 2, &[h], Initial::Fill(0.25));
    let (g0, g_last) = plan.windows("g", 1, &[other], Initial::Fill(-0.5));
    let y = plan.output("y", &[h]);
    let (mean, variance) = (0, 1);
    let (size_i, h_i, other_i) = (size as i64, h as i64, other as i64);
    let head = Index::var(0).div_mod(size_i, None, &[h, size]);
    let blocks = Slot::Dot {
        extent: size,
        weight: r,
        // R[head, unit in head, k] and a[head * size + k]
        weight_index: at(&[(0, size_i), (1, 1)]),
        value: 0,
        delay: 2,
        value_index: head.times(size_i).add(&Index::var(1)),
    };
    let reversed = Slot::Dot {
        extent: other,
        weight: back_weight,
        weight_index: at(&[(0, other_i), (1, 1)]),
        value: 1,
        delay: 1,
        value_index: at(&[(1, -1)]).plus(other_i - 1),
    };
    let mut body = BodyMaker::new();
    let parts = [body.slot(0), body.slot(1), body.now(x, u()), body.value(0, 1)];
    let sum = body.add(parts[0], parts[1]);
    let sum = body.add(sum, parts[2]);
    let half = body.number(0.5);
    let kept = body.mul(half, parts[3]);
    let raw = body.add(sum, kept);
    let first = LoopPart {
        units: h,
        slots: vec![blocks, reversed],
        body: body.done(),
        sets: vec![(2, raw)],
    };
    let moment = |op| {
        let mut body = BodyMaker::new();
        let result = body.step(Step::Value {
            value: 2,
            delay: 0,
            index: Index::var(1),
        });
        Slot::Fold {
            op,
            extent: h,
            body: body.done(),
            result,
        }
    };
    let mut body = BodyMaker::new();
    let (raw, m, var) = (body.value(2, 0), body.slot(mean), body.slot(variance));
    let eps = body.number(1e-5);
    let (apart, wide) = (body.sub(raw, m), body.add(var, eps));
    let root = body.unary(Unary::Sqrt, wide);
    let scaled = body.binary(Binary::Div, apart, root);
    let g = body.constant(gain, u());
    let normed = body.mul(scaled, g);
    let a = body.unary(Unary::Tanh, normed);
    body.store(y, StoreFrame::Now, u(), a);
    body.store(a_last, StoreFrame::Final, u(), a);
    let second = LoopPart {
        units: h,
        slots: vec![moment(Reduce::Mean), moment(Reduce::Var)],
        body: body.done(),
        sets: vec![(0, a)],
    };
    let mut body = BodyMaker::new();
    let a_k = body.step(Step::Value {
        value: 0,
        delay: 0,
        index: Index::var(1),
    });
    let weight = body.constant(v, at(&[(0, h_i), (1, 1)]));
    let term = body.mul(a_k, weight);
    let most = Slot::Fold {
        op: Reduce::Max,
        extent: h,
        body: body.done(),
        result: term,
    };
    let mut body = BodyMaker::new();
    let top = body.slot(0);
    let before = body.value(1, 1);
    let sum = body.add(top, before);
    let squashed = body.unary(Unary::Sigmoid, sum);
    body.store(g_last, StoreFrame::Final, u(), squashed);
    let third = LoopPart {
        units: other,
        slots: vec![most],
        body: body.done(),
        sets: vec![(1, squashed)],
    };
    let value = |name: &str, extent, window, shared, initial| LoopValue {
        name: name.to_owned(),
        extent,
        window,
        shared,
        initial,
    };
    plan.run(
        "recur",
        Kernel::Loop(Loop {
            values: vec![
                value("a", h, 2, true, Some(a0)),
                value("g", other, 1, true, Some(g0)),
                value("raw", h, 0, true, None),
            ],
            phases: [first, second, third].map(|part| Phase { parts: vec![part] }).to_vec(),
        }),
    );
    plan.0
}

/// Two states that swap places, one of them seen two frames late; and a count of all inner points where an index lacks a
/// channel variable.
pub(crate) fn swap(n: usize, m: usize) -> Plan {
    let mut plan = PlanMaker::new("swap");
    let x = plan.input("x", &[n, m]);
    let (a0, a_last) = plan.windows("a", 2, &[n, m], Initial::Fill(1.0));
    let (b0, b_last) = plan.windows("b", 1, &[m], Initial::Fill(2.0));
    let (y, first) = (plan.output("y", &[n, m]), plan.output("first", &[m]));
    let cell = at(&[(0, m as i64), (1, 1)]);
    let mut body = BodyMaker::new();
    let (old, other, now) = (body.carried(0, 2), body.carried(1, 1), body.now(x, cell.clone()));
    let sum = body.add(now, old);
    let next_a = body.unary(Unary::Tanh, other);
    let position = body.step(Step::Number(at(&[(0, 1), (1, 2)]).plus(-3)));
    let small = body.number(0.1);
    let factor = body.mul(position, small);
    let scaled = body.mul(sum, factor);
    let limit = body.number(1.0);
    let low = body.number(-1.0);
    let next_b = body.step(Step::Clamp(scaled, low, limit));
    body.store(y, StoreFrame::Now, cell.clone(), next_b);
    body.store(a_last, StoreFrame::Final, cell.clone(), next_a);
    body.store(first, StoreFrame::Now, Index::var(1), next_b);
    body.store(b_last, StoreFrame::Final, Index::var(1), next_b);
    let carried = |name: &str, window, initial, index, value| Carried {
        name: name.to_owned(),
        window,
        initial,
        index,
        value,
    };
    plan.run(
        "swap",
        Kernel::Channel(Channel {
            scope: Scope::Frame,
            sequential: true,
            channels: vec![n, m],
            inner: vec![],
            carried: vec![
                carried("a", 2, a0, cell, next_a),
                carried("b", 1, b0, Index::var(1), next_b),
            ],
            body: body.done(),
        }),
    );
    plan.0
}

/// Rows normalised by a softmax over the inner axis, concatenated from two inputs, selected by a mask.
pub(crate) fn softmax(rows: usize, left: usize, right: usize) -> Plan {
    let mut plan = PlanMaker::new("softmax");
    let n = left + right;
    let (a, b) = (plan.input("a", &[rows, left]), plan.input("b", &[rows, right]));
    let (y, most) = (plan.output("y", &[n, rows]), plan.output("most", &[rows]));
    let mut body = BodyMaker::new();
    let mut piece = |buffer, width: usize, first: usize| {
        let guards = vec![Guard {
            index: Index::var(1),
            lo: first as i64,
            hi: (first + width) as i64,
        }];
        let index = at(&[(0, width as i64), (1, 1)]).plus(-(first as i64));
        body.step(Step::Load(Load {
            buffer,
            frame: NOW,
            index,
            guards,
        }))
    };
    let (from_a, from_b) = (piece(a, left, 0), piece(b, right, left));
    let inside = body.step(Step::Inside(vec![Guard {
        index: Index::var(1),
        lo: 0,
        hi: left as i64,
    }]));
    let joined = body.step(Step::Select(inside, from_a, from_b));
    let (total, top) = (body.reduce(Reduce::LogSumExp, joined), body.reduce(Reduce::Max, joined));
    let apart = body.sub(joined, total);
    let share = body.unary(Unary::Exp, apart);
    body.store(y, StoreFrame::Now, at(&[(0, 1), (1, rows as i64)]), share);
    body.store(most, StoreFrame::Now, u(), top);
    plan.run(
        "normalise",
        Kernel::Channel(Channel {
            scope: Scope::Frame,
            sequential: false,
            channels: vec![rows],
            inner: vec![n],
            carried: vec![],
            body: body.done(),
        }),
    );
    plan.0
}
