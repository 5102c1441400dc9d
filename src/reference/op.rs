//! The value of every operation, in one frame of one sequence.

use super::bind::Sizes;
use crate::ir::Op;
use crate::ir::op::Reduce;
use rnnc_runtime::scalar;
use std::borrow::Cow;

/// An operand's value.
pub(super) struct Operand<'v> {
    /// The extents of its axes.
    pub(super) shape: &'v [usize],
    /// Its elements, row-major.
    pub(super) data: Cow<'v, [f64]>,
}

/// The elements of an operation's result, whose extents are `shape`. Inputs, parameters and states are the caller's.
pub(super) fn apply(op: &Op, sizes: &Sizes, shape: &[usize], operands: &[Operand<'_>]) -> Vec<f64> {
    let n: usize = shape.iter().product();
    let at = |operand: usize, i: usize| operands[operand].data[i];
    match op {
        Op::Input | Op::StaticInput | Op::Param => Vec::new(),
        Op::State { .. } | Op::Reshape | Op::IndexToReal => operands[0].data.to_vec(),
        Op::Literal(value) => vec![*value],
        Op::SizeValue(size) => vec![sizes.value(size) as f64],
        Op::Iota => (0..n).map(|i| i as f64).collect(),
        Op::Unary(f) => (0..n).map(|i| f.eval(at(0, i))).collect(),
        Op::Binary(f) => (0..n).map(|i| f.eval(at(0, i), at(1, i))).collect(),
        Op::Where => (0..n)
            .map(|i| if at(0, i) != 0.0 { at(1, i) } else { at(2, i) })
            .collect(),
        Op::Clamp => (0..n).map(|i| scalar::clamp(at(0, i), at(1, i), at(2, i))).collect(),
        Op::Broadcast { map } => broadcast(shape, &operands[0], map),
        Op::Slice { axis, lo, .. } => slice(shape, &operands[0], *axis, sizes.value(lo) as usize),
        Op::Shift { axis, by } => shift(shape, &operands[0], *axis, *by),
        Op::Concat { axis } => concat(shape, operands, *axis),
        Op::Contract { labels, out } | Op::Total { labels, out } => contract(operands, labels, out),
        Op::Reduce { op, axes } => reduce(&operands[0], *op, axes),
        Op::Gather => {
            let row = at(1, 0) as usize;
            operands[0].data[row * n..][..n].to_vec()
        }
        Op::OneHot => (0..n).map(|i| if i as f64 == at(0, 0) { 1.0 } else { 0.0 }).collect(),
    }
}

/// The distance between neighbours along each axis.
fn strides(shape: &[usize]) -> Vec<usize> {
    (0..shape.len()).map(|i| shape[i + 1..].iter().product()).collect()
}

/// For each position of a row-major walk over `extents`, the sum of its coordinates times `strides`.
fn offsets(extents: &[usize], strides: &[usize]) -> Vec<usize> {
    extents.iter().zip(strides).fold(vec![0], |outer, (n, stride)| {
        outer
            .iter()
            .flat_map(|o| (0..*n).map(move |i| o + i * stride))
            .collect()
    })
}

fn broadcast(shape: &[usize], operand: &Operand<'_>, map: &[usize]) -> Vec<f64> {
    let mut along = vec![0; shape.len()];
    for (to, stride) in map.iter().zip(strides(operand.shape)) {
        along[*to] = stride;
    }
    offsets(shape, &along).into_iter().map(|o| operand.data[o]).collect()
}

fn slice(shape: &[usize], operand: &Operand<'_>, axis: usize, lo: usize) -> Vec<f64> {
    let along = strides(operand.shape);
    offsets(shape, &along)
        .into_iter()
        .map(|o| operand.data[o + lo * along[axis]])
        .collect()
}

fn shift(shape: &[usize], operand: &Operand<'_>, axis: usize, by: i64) -> Vec<f64> {
    let stride = strides(shape)[axis];
    let position = |i: usize| {
        let from = (i / stride % shape[axis]) as i64 - by;
        (0..shape[axis] as i64)
            .contains(&from)
            .then(|| (i as i64 - by * stride as i64) as usize)
    };
    (0..operand.data.len())
        .map(|i| position(i).map_or(0.0, |from| operand.data[from]))
        .collect()
}

fn concat(shape: &[usize], operands: &[Operand<'_>], axis: usize) -> Vec<f64> {
    let outer: usize = shape[..axis].iter().product();
    let mut result = Vec::new();
    for o in 0..outer {
        for operand in operands {
            let n = operand.data.len() / outer;
            result.extend(&operand.data[o * n..(o + 1) * n]);
        }
    }
    result
}

fn contract(operands: &[Operand<'_>], labels: &[Vec<u32>], out: &[u32]) -> Vec<f64> {
    let all = || labels.iter().zip(operands).flat_map(|(l, o)| l.iter().zip(o.shape));
    let extent = |label: &u32| all().find(|(l, _)| *l == label).map_or(1, |(_, n)| *n);
    let mut summed: Vec<u32> = all().map(|(l, _)| *l).filter(|l| !out.contains(l)).collect();
    summed.sort_unstable();
    summed.dedup();
    // Where a walk over some labels leads within each operand; a label that an operand has twice moves along its diagonal.
    let walk = |over: &[u32]| -> Vec<Vec<usize>> {
        let extents: Vec<usize> = over.iter().map(extent).collect();
        let along = |(labels, operand): (&Vec<u32>, &Operand<'_>)| {
            let own = strides(operand.shape);
            let of = |l: &u32| labels.iter().zip(&own).filter(|(m, _)| *m == l).map(|(_, s)| *s).sum();
            offsets(&extents, &over.iter().map(of).collect::<Vec<usize>>())
        };
        labels.iter().zip(operands).map(along).collect()
    };
    let (kept, gone) = (walk(out), walk(&summed));
    let term = |i: usize, k: usize| -> f64 {
        operands
            .iter()
            .enumerate()
            .map(|(o, operand)| operand.data[kept[o][i] + gone[o][k]])
            .product()
    };
    (0..kept[0].len())
        .map(|i| (0..gone[0].len()).map(|k| term(i, k)).sum())
        .collect()
}

fn reduce(operand: &Operand<'_>, op: Reduce, axes: &[usize]) -> Vec<f64> {
    let along = strides(operand.shape);
    let walk = |gone: bool| {
        let chosen = (0..operand.shape.len()).filter(|i| axes.contains(i) == gone);
        let (extents, strides): (Vec<usize>, Vec<usize>) = chosen.map(|i| (operand.shape[i], along[i])).unzip();
        offsets(&extents, &strides)
    };
    let terms = walk(true);
    let fold = |base: usize| op.eval(&terms.iter().map(|o| operand.data[base + o]).collect::<Vec<f64>>());
    walk(false).into_iter().map(fold).collect()
}
