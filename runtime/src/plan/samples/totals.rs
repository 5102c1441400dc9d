//! A plan of sums over frames and sequences.

use super::{BodyMaker, NOW, PlanMaker, back, plain_operand, u};
use crate::plan::{BufferId, Frame, Initial, Kernel, Plan, ProductOperand, Role, Scope, StoreFrame, Total, TotalPart};
use crate::scalar::Unary;

/// How many groups, and terms within each copy.
const GROUPS: usize = 2;
const INNER: usize = 3;

/// Sums of each kind: of all frames, with groups, terms within a frame and a factor of the frame before, beside one that
/// has the same left factor and other columns, and one of other rows; of the frames of each sequence; of all sequences, without a second factor. The last one is of the sums of the second.
pub(crate) fn totals(rows: usize, columns: usize) -> Plan {
    let mut plan = PlanMaker::new("totals");
    let (lefts, rights) = (GROUPS * rows * INNER, GROUPS * columns * INNER);
    let (x, z) = (plan.input("x", &[lefts]), plan.input("z", &[rights]));
    let (before, last) = plan.windows("z", 1, &[rights], Initial::Fill(0.5));
    plan.0.finals.push(crate::plan::FinalCopy {
        target: last,
        source: z,
        initial: before,
    });
    let all = plan.buffer("all", Role::Output, Scope::Const, &[GROUPS, rows, columns]);
    let beside = plan.buffer("beside", Role::Output, Scope::Const, &[GROUPS, rows]);
    let more = plan.buffer("more", Role::Output, Scope::Const, &[GROUPS, columns]);
    let each = plan.buffer("each", Role::Output, Scope::Batch, &[rows]);
    let sum = plan.buffer("sum", Role::Output, Scope::Const, &[rows]);
    let late = plain_operand(z, back(1, before), rights);
    let grouped = Total {
        over: Scope::Frame,
        scope: Scope::Const,
        groups: GROUPS,
        rows,
        inner: INNER,
        left: squashed(x, NOW, lefts),
        parts: vec![
            TotalPart {
                columns,
                right: late,
                body: stored(all, StoreFrame::Const),
            },
            TotalPart {
                columns: 1,
                right: squashed(z, NOW, GROUPS * INNER),
                body: stored(beside, StoreFrame::Const),
            },
        ],
    };
    let other = Total {
        rows: 1,
        left: squashed(x, NOW, GROUPS * INNER),
        parts: vec![TotalPart {
            columns,
            right: plain_operand(z, NOW, rights),
            body: stored(more, StoreFrame::Const),
        }],
        ..grouped.clone()
    };
    plan.run("all", Kernel::Total(vec![grouped, other]));
    let left = plain_operand(x, NOW, rows);
    plan.run(
        "each",
        plain(Scope::Frame, Scope::Batch, left, rows, (each, StoreFrame::Batch)),
    );
    let left = squashed(each, Frame::Batch, rows);
    plan.run(
        "sum",
        plain(Scope::Batch, Scope::Const, left, rows, (sum, StoreFrame::Const)),
    );
    plan.0
}

fn plain(over: Scope, scope: Scope, left: ProductOperand, rows: usize, (out, frame): (BufferId, StoreFrame)) -> Kernel {
    let mut one = BodyMaker::new();
    let result = one.number(1.0);
    Kernel::Total(vec![Total {
        over,
        scope,
        groups: 1,
        rows,
        inner: 1,
        left,
        parts: vec![TotalPart {
            columns: 1,
            right: ProductOperand {
                extent: 1,
                body: one.done(),
                result,
            },
            body: stored(out, frame),
        }],
    }])
}

/// `tanh` of a buffer.
fn squashed(buffer: BufferId, frame: Frame, extent: usize) -> ProductOperand {
    let mut body = BodyMaker::new();
    let from = body.load(buffer, frame, u());
    let result = body.unary(Unary::Tanh, from);
    ProductOperand {
        extent,
        body: body.done(),
        result,
    }
}

fn stored(out: BufferId, frame: StoreFrame) -> crate::plan::Body {
    let mut body = BodyMaker::new();
    let sum = body.slot(0);
    body.store(out, frame, u(), sum);
    body.done()
}
