//! A plan of products.

use super::{BodyMaker, NOW, PlanMaker, at, matrix, plain_operand, u};
use crate::plan::{
    BufferId, Channel, Frame, Kernel, Plan, Product, ProductOperand, Role, Scope, Segment, StoreFrame, Weight,
};
use crate::scalar::Unary;

/// Two operands, one of them a computed one, and three segments of unlike sizes, one from a slice of a weight that is
/// computed in the prologue; before it a product of the static input alone.
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
    plan.prologue("double", double(w, doubled, [3 * h, i]));
    let operand = plain_operand(b, Frame::Const, h);
    plan.prologue(
        "summarise",
        single(
            Scope::Const,
            operand,
            matrix(r, h),
            3 * h,
            (summary, StoreFrame::Const),
            None,
        ),
    );
    let operand = plain_operand(context, Frame::Batch, i);
    let out = (fixed, StoreFrame::Batch);
    plan.run(
        "fix",
        single(Scope::Batch, operand, matrix(doubled, i), 3 * h, out, Some(summary)),
    );
    let segment = |first: usize, rows: usize, out: BufferId| {
        let weights = [(doubled, i), (r, h)].map(|(buffer, k)| Weight {
            offset: (first * k) as i64,
            ..matrix(buffer, k)
        });
        let mut body = BodyMaker::new();
        let (sum, more) = (body.slot(0), body.load(fixed, Frame::Batch, u().plus(first as i64)));
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
            operands: vec![plain_operand(x, NOW, i), squashed_operand(z, h)],
            segments: vec![segment(0, h, y), segment(h, h + 1, q), segment(2 * h + 1, 1, last)],
        }),
    );
    plan.0
}

/// `out = from + from`.
fn double(from: BufferId, out: BufferId, [rows, columns]: [usize; 2]) -> Kernel {
    let cell = at(&[(0, columns as i64), (1, 1)]);
    let mut body = BodyMaker::new();
    let x = body.constant(from, cell.clone());
    let twice = body.add(x, x);
    body.store(out, StoreFrame::Const, cell, twice);
    Kernel::Channel(Channel {
        scope: Scope::Const,
        sequential: false,
        channels: vec![rows, columns],
        inner: vec![],
        carried: vec![],
        body: body.done(),
    })
}

/// The product with one operand and one segment, something constant added to it or not.
fn single(
    scope: Scope,
    operand: ProductOperand,
    weight: Weight,
    rows: usize,
    (out, frame): (BufferId, StoreFrame),
    added: Option<BufferId>,
) -> Kernel {
    let mut body = BodyMaker::new();
    let sum = body.slot(0);
    let total = added.map_or(sum, |added| {
        let more = body.constant(added, u());
        body.add(sum, more)
    });
    body.store(out, frame, u(), total);
    let segments = vec![Segment {
        rows,
        weights: vec![weight],
        body: body.done(),
    }];
    Kernel::Product(Product {
        scope,
        operands: vec![operand],
        segments,
    })
}

/// `tanh(z)`.
fn squashed_operand(z: BufferId, extent: usize) -> ProductOperand {
    let mut body = BodyMaker::new();
    let from = body.now(z, u());
    let result = body.unary(Unary::Tanh, from);
    ProductOperand {
        extent,
        body: body.done(),
        result,
    }
}
