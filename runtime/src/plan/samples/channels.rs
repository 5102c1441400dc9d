//! Plans of channel kernels: pointwise work, scans, matrix states, gathers, reductions.

use super::{BodyMaker, NOW, PlanMaker, at, back, pointwise, u};
use crate::plan::{
    Carried, Channel, Elem, FinalCopy, Frame, Guard, Index, Initial, Kernel, Load, Plan, Role, Scope, Step, StoreFrame,
};
use crate::scalar::{Reduce, Unary};

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
    let mut body = BodyMaker::new();
    let raw = body.constant(raw, u());
    let exp = body.unary(Unary::Exp, raw);
    body.store(scale, StoreFrame::Const, u(), exp);
    plan.prologue("exp_scale", pointwise(Scope::Const, n, body.done()));
    let mut body = BodyMaker::new();
    let context_u = body.load(context, Frame::Batch, u());
    let half = body.number(0.5);
    let halved = body.mul(context_u, half);
    body.store(x0, StoreFrame::Window(0), u(), context_u);
    body.store(x0, StoreFrame::Window(1), u(), halved);
    plan.initial("window_of_x", pointwise(Scope::Batch, n, body.done()));
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
    plan.run("sum_taps", pointwise(Scope::Frame, n, body.done()));
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
    plan.run("embed", pointwise(Scope::Frame, width, body.done()));
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
