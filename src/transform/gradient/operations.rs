//! The derivative rule of every operation: its adjoint comes in, what reaches its operands goes out.

use super::adjoint::Adjoints;
use super::build::Build;
use super::elementwise;
use super::tape::Values;
use crate::ir::op::{Binary, Reduce, Unary};
use crate::ir::{Kind, NodeId, Op, Read, Scalar, Size, Type};

/// Adds to the adjoints of the operands of `id`, whose own is `g`.
pub(super) fn propagate(b: &mut Build<'_>, values: &Values, adjoints: &mut Adjoints, id: NodeId, g: Read) {
    let forward = b.forward;
    let operands = forward.operands(id);
    let node = forward.node(id);
    if node.ty.scalar != Scalar::Real {
        return;
    }
    let value = |port: usize| values.read(operands[port]);
    let own = Read::now(values.of(id));
    match &node.op {
        Op::Input | Op::StaticInput | Op::Param | Op::Literal(_) | Op::SizeValue(_) | Op::Iota => {}
        Op::OneHot | Op::IndexToReal => {}
        Op::State { .. } => adjoints.add(operands[0], g),
        Op::Unary(f) => {
            if let Some(g) = elementwise::unary(b, *f, g, value(0), own) {
                adjoints.add(operands[0], g);
            }
        }
        Op::Binary(f) => {
            let both = elementwise::binary(b, *f, g, (value(0), value(1)), own);
            for (read, g) in operands.iter().zip(both) {
                g.into_iter().for_each(|g| adjoints.add(*read, g));
            }
        }
        Op::Where => {
            let zero = b.number(0.0, g);
            let (yes, no) = (b.select(value(0), g, zero), b.select(value(0), zero, g));
            adjoints.add(operands[1], yes);
            adjoints.add(operands[2], no);
        }
        Op::Clamp => {
            for (read, g) in operands.iter().zip(clamp(b, g, [value(0), value(1), value(2)])) {
                adjoints.add(*read, g);
            }
        }
        Op::Broadcast { map } => {
            let labels: Vec<u32> = (0..node.ty.axes.len() as u32).collect();
            let out: Vec<u32> = map.iter().map(|axis| *axis as u32).collect();
            let kind = kind(b, operands[0]);
            let sum = b.contract(kind, &[(g, labels)], &out);
            adjoints.add(operands[0], sum);
        }
        Op::Slice { axis, lo, hi } => adjoints.add_part(operands[0], *axis, (lo, hi), g),
        Op::Reshape => {
            let ty = forward.node(operands[0].node).ty.clone();
            let back = b.add(Op::Reshape, ty, &[g]);
            adjoints.add(operands[0], back);
        }
        Op::Shift { axis, by } => {
            let op = Op::Shift { axis: *axis, by: -by };
            let back = b.add(op, node.ty.clone(), &[g]);
            adjoints.add(operands[0], back);
        }
        Op::Concat { axis } => concat(b, adjoints, &operands, *axis, g),
        Op::Contract { labels, out } | Op::Total { labels, out } => {
            for (port, read) in operands.iter().enumerate() {
                let other = (port == 0 && operands.len() == 2)
                    .then_some(1)
                    .or((port == 1).then_some(0));
                let other = other.map(|o| (value(o), labels[o].clone()));
                let kind = kind(b, *read);
                let axes = forward.node(read.node).ty.axes.clone();
                let part = factor(b, kind, (g, out), other, (&labels[port], &axes));
                adjoints.add(*read, part);
            }
        }
        Op::Reduce { op, axes } => {
            let part = reduce(b, *op, axes, g, value(0), own);
            adjoints.add(operands[0], part);
        }
        Op::Gather => gather(b, adjoints, &operands, value(1), g),
    }
}

/// How often the value that was read exists.
fn kind(b: &Build<'_>, read: Read) -> Kind {
    match read.delay {
        0 => b.forward.node(read.node).kind,
        _ => Kind::Frame,
    }
}

/// By the value, the lower and the upper bound: the gradient goes where the result comes from.
fn clamp(b: &mut Build<'_>, g: Read, [x, lo, hi]: [Read; 3]) -> [Read; 3] {
    let zero = b.number(0.0, g);
    let (above, below) = (b.binary(Binary::Ge, x, lo), b.binary(Binary::Le, x, hi));
    let inside = b.times(above, below);
    let (under, apart) = (b.binary(Binary::Lt, x, lo), b.binary(Binary::Lt, lo, hi));
    let low = b.times(under, apart);
    let (over, crossed) = (b.binary(Binary::Gt, x, hi), b.binary(Binary::Lt, hi, lo));
    let high = b.binary(Binary::Max, over, crossed);
    [inside, low, high].map(|where_to| b.select(where_to, g, zero))
}

fn concat(b: &mut Build<'_>, adjoints: &mut Adjoints, operands: &[Read], axis: usize, g: Read) {
    let mut at = Size::int(0);
    for read in operands {
        let size = b.forward.node(read.node).ty.axes[axis].clone();
        // The sum of all sizes is an axis of the graph, so it does not overflow.
        let end = at.add(&size).unwrap_or(size);
        let part = b.slice(g, axis, at, end.clone());
        adjoints.add(*read, part);
        at = end;
    }
}

/// The adjoint of one factor of a product: the product of the result's adjoint with the other factor. Axes of the factor
/// that are summed over and in no other operand repeat it; a label that it has twice means its diagonal.
fn factor(
    b: &mut Build<'_>,
    kind: Kind,
    (g, out): (Read, &[u32]),
    other: Option<(Read, Vec<u32>)>,
    (labels, axes): (&[u32], &[Size]),
) -> Read {
    let mut operands = vec![(g, out.to_vec())];
    operands.extend(other);
    let known = |label: &u32| operands.iter().any(|(_, own)| own.contains(label));
    let mut distinct: Vec<u32> = labels.to_vec();
    distinct.sort_unstable();
    distinct.dedup();
    let found: Vec<u32> = distinct.iter().copied().filter(|l| known(l)).collect();
    let product = b.contract(kind, &operands, &found);
    let size = |label: &u32| labels.iter().position(|l| l == label).map(|i| axes[i].clone());
    let all: Vec<Size> = distinct.iter().filter_map(size).collect();
    let place = |label: &u32| distinct.iter().position(|l| l == label);
    let map: Vec<usize> = found.iter().filter_map(place).collect();
    let whole = b.spread(product, &map, &all);
    on_diagonal(b, whole, &distinct, labels)
}

/// Orders the axes as `labels` has them; where a label comes again, the value lies on the diagonal.
fn on_diagonal(b: &mut Build<'_>, value: Read, distinct: &[u32], labels: &[u32]) -> Read {
    let mut fresh = labels.iter().max().map_or(0, |l| l + 1);
    let (mut value, mut own) = (value, distinct.to_vec());
    let mut wanted: Vec<u32> = Vec::new();
    for label in labels {
        if !wanted.contains(label) {
            wanted.push(*label);
            continue;
        }
        let axis = own.iter().position(|l| l == label).unwrap_or(0);
        let size = b.axes(value)[axis].clone();
        let eye = b.selection(&size, &size, &Size::int(0));
        let mut out = own.clone();
        out.push(fresh);
        value = b.contract(Kind::Frame, &[(value, own), (eye, vec![*label, fresh])], &out);
        own = out;
        wanted.push(fresh);
        fresh += 1;
    }
    if own == wanted {
        return value;
    }
    b.contract(Kind::Frame, &[(value, own)], &wanted)
}

/// The adjoint of what is reduced, from that of the result.
fn reduce(b: &mut Build<'_>, op: Reduce, gone: &[usize], g: Read, x: Read, y: Read) -> Read {
    let axes = b.axes(x);
    let kept: Vec<usize> = (0..axes.len()).filter(|i| !gone.contains(i)).collect();
    let spread = |b: &mut Build<'_>, value: Read| b.spread(value, &kept, &axes);
    let g = spread(b, g);
    match op {
        Reduce::Sum => g,
        Reduce::Mean => divided(b, g, gone),
        Reduce::Var => {
            let mean = b.reduce(Reduce::Mean, x, gone);
            let mean = spread(b, mean);
            let (apart, two) = (b.minus(x, mean), b.number(2.0, x));
            let slope = b.times(apart, two);
            let scaled = b.times(g, slope);
            divided(b, scaled, gone)
        }
        Reduce::Max | Reduce::Min => {
            // Not the result on the tape: the largest of these very numbers, so that one of them equals it however they
            // were rounded on the way.
            let y = b.reduce(op, x, gone);
            let y = spread(b, y);
            let reached = b.binary(Binary::Eq, x, y);
            let count = b.reduce(Reduce::Sum, reached, gone);
            let count = spread(b, count);
            let share = b.over(reached, count);
            b.times(g, share)
        }
        Reduce::LogSumExp => {
            let y = spread(b, y);
            let apart = b.minus(x, y);
            let share = b.unary(Unary::Exp, apart);
            b.times(g, share)
        }
    }
}

/// The value over the number of elements along some axes.
fn divided(b: &mut Build<'_>, value: Read, along: &[usize]) -> Read {
    let axes = b.axes(value);
    along.iter().fold(value, |value, axis| {
        let size = b.size(&axes[*axis], &axes);
        b.over(value, size)
    })
}

/// Row by row, the adjoints of the frames that read it.
fn gather(b: &mut Build<'_>, adjoints: &mut Adjoints, operands: &[Read], index: Read, g: Read) {
    let rows = b.forward.node(operands[0].node).ty.axes[0].clone();
    let hot = b.add(Op::OneHot, Type::real(vec![rows]), &[index]);
    let within: Vec<u32> = (1..=b.axes(g).len() as u32).collect();
    let out: Vec<u32> = std::iter::once(0).chain(within.iter().copied()).collect();
    let table = b.contract(kind(b, operands[0]), &[(hot, vec![0]), (g, within)], &out);
    adjoints.add(operands[0], table);
}
