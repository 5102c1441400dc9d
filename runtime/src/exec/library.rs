//! Products that a library can do as well: a plan's launch goes in; if it is nothing but a matrix product of plain f32
//! buffers, perhaps with a bias, its operands come out as a library wants them.

use super::buffers::Buffers;
use super::{Gemm, Gpu, Rows};
use crate::engine::RunError;
use crate::plan::{
    Body, BufferId, Elem, Frame, Index, Kernel, Launch, Plan, Product, ProductOperand, Reg, Scope, Segment, Step,
    Store, StoreFrame, Weight,
};
use crate::scalar::Binary;

/// One operand, the same for all segments, each of which is a product.
#[derive(Debug, PartialEq)]
pub(super) struct PlainProduct {
    /// Frames of `inner` elements.
    x: BufferId,
    inner: usize,
    segments: Vec<PlainSegment>,
}

/// `out[.., offset..offset + rows] = x weight^T + bias`
#[derive(Debug, PartialEq)]
struct PlainSegment {
    rows: usize,
    weight: Weight,
    bias: Option<(BufferId, usize)>,
    out: (BufferId, usize),
    out_stride: usize,
}

/// The launch as a plain product, if it is one.
pub(super) fn plain(plan: &Plan, launch: &Launch) -> Option<PlainProduct> {
    let Kernel::Product(product) = &launch.kernel else {
        return None;
    };
    let Product {
        scope: Scope::Frame,
        operands,
        segments,
    } = product
    else {
        return None;
    };
    let [operand] = operands.as_slice() else {
        return None;
    };
    let x = plain_operand(plan, operand)?;
    let segments: Option<Vec<_>> = segments
        .iter()
        .map(|s| plain_segment(plan, s, operand.extent))
        .collect();
    Some(PlainProduct {
        x,
        inner: operand.extent,
        segments: segments?,
    })
}

/// `x[k]` of this frame, where k runs over the whole shape.
fn plain_operand(plan: &Plan, operand: &ProductOperand) -> Option<BufferId> {
    let [Step::Load(load)] = operand.body.steps.as_slice() else {
        return None;
    };
    let now = matches!(load.frame, Frame::At { delay: 0, .. });
    let buffer = plan.buffer(load.buffer);
    let whole = load.index == Index::var(0) && buffer.elements() == operand.extent;
    let plain = now && whole && load.guards.is_empty() && operand.result == Reg(0);
    (plain && buffer.elem == Elem::F32 && buffer.scope == Scope::Frame).then_some(load.buffer)
}

fn plain_segment(plan: &Plan, segment: &Segment, inner: usize) -> Option<PlainSegment> {
    let [weight] = segment.weights.as_slice() else {
        return None;
    };
    let (bias, value) = plain_sum(plan, &segment.body)?;
    let [
        Store {
            buffer,
            frame: StoreFrame::Now,
            index,
            value: stored,
        },
    ] = segment.body.stores.as_slice()
    else {
        return None;
    };
    let out = (*buffer, row_offset(index)?);
    let rows_in_order = weight.k_stride == 1 && weight.offset >= 0 && weight.row_stride >= inner as i64;
    let f32s = [weight.buffer, *buffer]
        .iter()
        .all(|id| plan.buffer(*id).elem == Elem::F32);
    (*stored == value && rows_in_order && f32s).then(|| PlainSegment {
        rows: segment.rows,
        weight: *weight,
        bias,
        out,
        out_stride: plan.buffer(*buffer).elements(),
    })
}

/// A buffer, and the element that its first row is at.
type Place = (BufferId, usize);

/// The sum alone, or with a bias: where that is, and the register of the result.
fn plain_sum(plan: &Plan, body: &Body) -> Option<(Option<Place>, Reg)> {
    match body.steps.as_slice() {
        [Step::Slot(0)] => Some((None, Reg(0))),
        [first, second, Step::Binary(Binary::Add, a, b)] if (a.0, b.0) == (0, 1) || (a.0, b.0) == (1, 0) => {
            let load = match (first, second) {
                (Step::Slot(0), Step::Load(load)) | (Step::Load(load), Step::Slot(0)) => load,
                _ => return None,
            };
            let plain =
                load.frame == Frame::Const && load.guards.is_empty() && plan.buffer(load.buffer).elem == Elem::F32;
            let place = (load.buffer, row_offset(&load.index)?);
            plain.then_some((Some(place), Reg(2)))
        }
        _ => None,
    }
}

/// c of `row + c`.
fn row_offset(index: &Index) -> Option<usize> {
    let offset = usize::try_from(index.base).ok()?;
    let row = Index {
        base: 0,
        ..index.clone()
    };
    (row == Index::var(0)).then_some(offset)
}

/// Lets the device's library do the product; false if it does not, and the kernel has to.
pub(super) fn run<G: Gpu>(
    gpu: &mut G,
    product: &PlainProduct,
    buffers: &Buffers<G>,
    (frames, batch): (usize, usize),
) -> Result<bool, RunError> {
    for segment in &product.segments {
        let weight = &segment.weight;
        let bias = match segment.bias {
            Some((id, offset)) => Some(Rows {
                memory: buffers.memory(id)?,
                offset,
                stride: 0,
            }),
            None => None,
        };
        let gemm = Gemm {
            x: Rows {
                memory: buffers.memory(product.x)?,
                offset: 0,
                stride: product.inner,
            },
            weight: Rows {
                memory: buffers.memory(weight.buffer)?,
                offset: weight.offset as usize,
                stride: weight.row_stride as usize,
            },
            bias,
            out: Rows {
                memory: buffers.memory(segment.out.0)?,
                offset: segment.out.1,
                stride: segment.out_stride,
            },
            count: frames * batch,
            rows: segment.rows,
            inner: product.inner,
        };
        if !gpu.gemm(&gemm)? {
            return Ok(false);
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::samples::{lstm, taps};

    fn product(plan: &mut Plan) -> &mut Product {
        match &mut plan.launches[0].kernel {
            Kernel::Product(product) => product,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_product_with_a_bias_is_plain() {
        let mut plan = lstm(3, 5);
        let found = plain(&plan, &plan.launches[0]).unwrap();
        assert_eq!((found.x, found.inner, found.segments.len()), (BufferId(0), 3, 1));
        let segment = &found.segments[0];
        assert_eq!((segment.rows, segment.out_stride, segment.out.1), (20, 20, 0));
        assert!(segment.bias.is_some());
        // Without the bias, and into the middle of a wider buffer.
        let steps = vec![Step::Slot(0)];
        let segment = &mut product(&mut plan).segments[0];
        segment.rows = 5;
        segment.body.steps = steps;
        segment.body.stores[0].value = Reg(0);
        segment.body.stores[0].index = Index::var(0).plus(10);
        segment.weight_mut().offset = 30;
        let found = plain(&plan, &plan.launches[0]).unwrap();
        let segment = &found.segments[0];
        assert_eq!((segment.bias, segment.out.1, segment.weight.offset), (None, 10, 30));
    }

    impl Segment {
        fn weight_mut(&mut self) -> &mut Weight {
            &mut self.weights[0]
        }
    }

    #[test]
    fn everything_else_is_left_to_the_kernel() {
        let refused = |change: &dyn Fn(&mut Plan)| {
            let mut plan = lstm(3, 5);
            change(&mut plan);
            assert_eq!(plain(&plan, &plan.launches[0]), None);
        };
        refused(&|plan| plan.buffers[0].elem = Elem::Bf16);
        refused(&|plan| product(plan).scope = Scope::Batch);
        refused(&|plan| product(plan).segments[0].weight_mut().k_stride = 2);
        refused(&|plan| product(plan).segments[0].body.stores[0].index = Index::var(0).times(2));
        refused(&|plan| product(plan).segments[0].body.stores[0].value = Reg(0));
        refused(&|plan| {
            let operand = &mut product(plan).operands[0];
            let Step::Load(load) = &mut operand.body.steps[0] else {
                panic!()
            };
            load.frame = Frame::At { delay: 1, window: None };
        });
        let taps = taps(3);
        assert_eq!(plain(&taps, &taps.launches[0]), None);
    }
}
