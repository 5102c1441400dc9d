//! Plans of dense loops.

use super::{BodyMaker, NOW, PlanMaker, at, biased, matrix, plain_operand, u};
use crate::plan::{
    BufferId, Index, Initial, Kernel, Loop, LoopPart, LoopValue, Phase, Plan, Product, Scope, Segment, Slot, Step,
    StoreFrame,
};
use crate::scalar::{Binary, Reduce, Unary};

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
                parts: vec![lstm_part(gates, r, [y, h_last, c_last], h)],
            }],
        }),
    );
    plan.0
}

fn lstm_part(gates: BufferId, r: BufferId, [y, h_last, c_last]: [BufferId; 3], h: usize) -> LoopPart {
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
    LoopPart {
        units: h,
        slots: slots.collect(),
        body: body.done(),
        sets: vec![(0, next), (1, c)],
    }
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
    let parts = [
        mixing(x, block_diagonal(r, heads, size), reversed(back_weight, other), h),
        normalising(gain, [(y, StoreFrame::Now), (a_last, StoreFrame::Final)], h),
        watching(v, g_last, h, other),
    ];
    let value = |name: &str, extent, window, initial| LoopValue {
        name: name.to_owned(),
        extent,
        window,
        shared: true,
        initial,
    };
    plan.run(
        "recur",
        Kernel::Loop(Loop {
            values: vec![
                value("a", h, 2, Some(a0)),
                value("g", other, 1, Some(g0)),
                value("raw", h, 0, None),
            ],
            phases: parts.map(|part| Phase { parts: vec![part] }).to_vec(),
        }),
    );
    plan.0
}

/// `R[head, unit in head, k] a[t-2][head, k]`.
fn block_diagonal(weight: BufferId, heads: usize, size: usize) -> Slot {
    let n = size as i64;
    let head = Index::var(0).div_mod(n, None, &[heads * size, size]);
    Slot::Dot {
        extent: size,
        weight,
        weight_index: at(&[(0, n), (1, 1)]),
        value: 0,
        delay: 2,
        value_index: head.times(n).add(&Index::var(1)),
    }
}

/// `U[unit, k] g[t-1][other - 1 - k]`.
fn reversed(weight: BufferId, other: usize) -> Slot {
    Slot::Dot {
        extent: other,
        weight,
        weight_index: at(&[(0, other as i64), (1, 1)]),
        value: 1,
        delay: 1,
        value_index: at(&[(1, -1)]).plus(other as i64 - 1),
    }
}

/// Sets `raw`: two sums, the input and half of a frame before.
fn mixing(x: BufferId, first: Slot, second: Slot, h: usize) -> LoopPart {
    let mut body = BodyMaker::new();
    let (a, b, now, before) = (body.slot(0), body.slot(1), body.now(x, u()), body.value(0, 1));
    let half = body.number(0.5);
    let kept = body.mul(half, before);
    let sum = body.add(a, b);
    let more = body.add(now, kept);
    let raw = body.add(sum, more);
    LoopPart {
        units: h,
        slots: vec![first, second],
        body: body.done(),
        sets: vec![(2, raw)],
    }
}

/// Element `Var(1)` of a value of this frame.
fn element(body: &mut BodyMaker, value: usize) -> crate::plan::Reg {
    body.step(Step::Value {
        value,
        delay: 0,
        index: Index::var(1),
    })
}

/// Sets `a`: `raw` normalised.
fn normalising(gain: BufferId, stores: [(BufferId, StoreFrame); 2], h: usize) -> LoopPart {
    let moment = |op| {
        let mut body = BodyMaker::new();
        let result = element(&mut body, 2);
        Slot::Fold {
            op,
            extent: h,
            body: body.done(),
            result,
        }
    };
    let mut body = BodyMaker::new();
    let (raw, mean, variance) = (body.value(2, 0), body.slot(0), body.slot(1));
    let eps = body.number(1e-5);
    let (apart, wide) = (body.sub(raw, mean), body.add(variance, eps));
    let root = body.unary(Unary::Sqrt, wide);
    let scaled = body.binary(Binary::Div, apart, root);
    let g = body.constant(gain, u());
    let normed = body.mul(scaled, g);
    let a = body.unary(Unary::Tanh, normed);
    for (buffer, frame) in stores {
        body.store(buffer, frame, u(), a);
    }
    LoopPart {
        units: h,
        slots: vec![moment(Reduce::Mean), moment(Reduce::Var)],
        body: body.done(),
        sets: vec![(0, a)],
    }
}

/// Sets `g` by the greatest of the weighted elements of `a`.
fn watching(v: BufferId, last: BufferId, h: usize, other: usize) -> LoopPart {
    let mut body = BodyMaker::new();
    let a = element(&mut body, 0);
    let weight = body.constant(v, at(&[(0, h as i64), (1, 1)]));
    let term = body.mul(a, weight);
    let most = Slot::Fold {
        op: Reduce::Max,
        extent: h,
        body: body.done(),
        result: term,
    };
    let mut body = BodyMaker::new();
    let (top, before) = (body.slot(0), body.value(1, 1));
    let sum = body.add(top, before);
    let squashed = body.unary(Unary::Sigmoid, sum);
    body.store(last, StoreFrame::Final, u(), squashed);
    LoopPart {
        units: other,
        slots: vec![most],
        body: body.done(),
        sets: vec![(1, squashed)],
    }
}
