//! The type rule of every operation: what its node's type must be, given those of its operands.
//!
//! Adding an operation means adding a row to [`check`]; the number of operands was checked before.

use crate::ir::{Node, Op, Scalar, Size, Type};
use std::collections::BTreeMap;

/// Says what is wrong with the node's type, if anything.
pub(super) fn check(node: &Node, operands: &[&Type]) -> Result<(), String> {
    let real = !matches!(
        node.op,
        Op::Input | Op::Gather | Op::OneHot | Op::IndexToReal | Op::State { .. }
    );
    if real {
        for (port, ty) in operands.iter().enumerate() {
            ensure(ty.scalar == Scalar::Real, || {
                format!("operand {port} is {ty}, not real")
            })?;
        }
    }
    let may_be_index = matches!(node.op, Op::Input | Op::StaticInput | Op::State { .. });
    ensure(node.ty.scalar == Scalar::Real || may_be_index, || {
        format!("its result is {}, not real", node.ty)
    })?;
    match &node.op {
        Op::Input | Op::StaticInput | Op::Param => {
            ensure(node.ty.scalar == Scalar::Real || node.ty.axes.is_empty(), || {
                "an index with axes".to_owned()
            })
        }
        Op::Literal(_) | Op::SizeValue(_) => expect(&node.ty.axes, &[]),
        Op::Iota => ensure(node.ty.axes.len() == 1, || {
            format!("should have one axis, has {}", node.ty)
        }),
        Op::Unary(_) | Op::Binary(_) | Op::Where | Op::Clamp | Op::Shift { .. } | Op::State { .. } => {
            shift_axis(node)?;
            operands.iter().try_for_each(|ty| same(&node.ty, ty))
        }
        Op::Broadcast { map } => broadcast(&node.ty.axes, &operands[0].axes, map),
        Op::Slice { axis, lo, hi } => slice(&node.ty.axes, &operands[0].axes, *axis, lo, hi),
        Op::Reshape => reshape(&node.ty, operands[0]),
        Op::Concat { axis } => concat(&node.ty.axes, operands, *axis),
        Op::Contract { labels, out } | Op::Total { labels, out } => contract(&node.ty.axes, operands, labels, out),
        Op::Reduce { axes, .. } => reduce(&node.ty.axes, &operands[0].axes, axes),
        Op::Gather => gather(&node.ty.axes, operands),
        Op::OneHot => expect(&node.ty.axes, &[index_range(operands[0])?]),
        Op::IndexToReal => index_range(operands[0]).and_then(|_| expect(&node.ty.axes, &[])),
    }
}

fn ensure(holds: bool, what: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(what()) }
}

fn expect(got: &[Size], want: &[Size]) -> Result<(), String> {
    ensure(got == want, || {
        let (got, want) = (Type::real(got.to_vec()), Type::real(want.to_vec()));
        format!("its type is {got}, should be {want}")
    })
}

fn same(got: &Type, operand: &Type) -> Result<(), String> {
    ensure(got == operand, || {
        format!("its type is {got}, an operand's is {operand}")
    })
}

fn shift_axis(node: &Node) -> Result<(), String> {
    match node.op {
        Op::Shift { axis, .. } => in_range(axis, &node.ty.axes),
        _ => Ok(()),
    }
}

fn in_range(axis: usize, axes: &[Size]) -> Result<(), String> {
    ensure(axis < axes.len(), || format!("no axis {axis} among {}", axes.len()))
}

fn broadcast(got: &[Size], operand: &[Size], map: &[usize]) -> Result<(), String> {
    ensure(map.len() == operand.len(), || {
        format!("maps {} axes of {}", map.len(), operand.len())
    })?;
    let mut taken = vec![false; got.len()];
    for (axis, to) in operand.iter().zip(map) {
        in_range(*to, got)?;
        ensure(!taken[*to], || format!("maps two axes to {to}"))?;
        taken[*to] = true;
        ensure(got[*to] == *axis, || {
            format!("maps an axis {axis} to an axis {}", got[*to])
        })?;
    }
    Ok(())
}

fn slice(got: &[Size], operand: &[Size], axis: usize, lo: &Size, hi: &Size) -> Result<(), String> {
    in_range(axis, operand)?;
    let mut want = operand.to_vec();
    want[axis] = hi.sub(lo).ok_or("the size of the slice overflows")?;
    expect(got, &want)
}

fn reshape(got: &Type, operand: &Type) -> Result<(), String> {
    let (to, from) = (got.elements(), operand.elements());
    ensure(to.is_some() && to == from, || format!("reshapes {operand} to {got}"))
}

fn concat(got: &[Size], operands: &[&Type], axis: usize) -> Result<(), String> {
    let mut want = operands[0].axes.clone();
    in_range(axis, &want)?;
    let mut sum = Size::int(0);
    for ty in operands {
        ensure(ty.axes.len() == want.len(), || {
            format!("joins {} and {ty}", operands[0])
        })?;
        for (i, size) in ty.axes.iter().enumerate() {
            ensure(i == axis || *size == operands[0].axes[i], || {
                format!("joins {} and {ty}", operands[0])
            })?;
        }
        sum = sum.add(&ty.axes[axis]).ok_or("the size of the concat overflows")?;
    }
    want[axis] = sum;
    expect(got, &want)
}

fn contract(got: &[Size], operands: &[&Type], labels: &[Vec<u32>], out: &[u32]) -> Result<(), String> {
    ensure(labels.len() == operands.len(), || {
        format!("labels {} operands", labels.len())
    })?;
    let mut sizes: BTreeMap<u32, &Size> = BTreeMap::new();
    for (ty, labels) in operands.iter().zip(labels) {
        ensure(labels.len() == ty.axes.len(), || {
            format!("{} labels for {ty}", labels.len())
        })?;
        for (label, size) in labels.iter().zip(&ty.axes) {
            let first = *sizes.entry(*label).or_insert(size);
            ensure(first == size, || format!("label {label} is {first} and {size}"))?;
        }
    }
    let mut want = Vec::with_capacity(out.len());
    for (i, label) in out.iter().enumerate() {
        ensure(!out[..i].contains(label), || {
            format!("label {label} is twice in the result")
        })?;
        want.push(
            (*sizes
                .get(label)
                .ok_or_else(|| format!("label {label} of the result is in no operand"))?)
            .clone(),
        );
    }
    expect(got, &want)
}

fn reduce(got: &[Size], operand: &[Size], axes: &[usize]) -> Result<(), String> {
    ensure(axes.windows(2).all(|w| w[0] < w[1]), || {
        format!("axes {axes:?} do not ascend")
    })?;
    axes.iter().try_for_each(|a| in_range(*a, operand))?;
    let kept = (0..operand.len()).filter(|i| !axes.contains(i));
    expect(got, &kept.map(|i| operand[i].clone()).collect::<Vec<_>>())
}

fn gather(got: &[Size], operands: &[&Type]) -> Result<(), String> {
    ensure(operands[0].scalar == Scalar::Real, || {
        format!("the table is {}", operands[0])
    })?;
    let range = index_range(operands[1])?;
    let (rows, rest) = operands[0].axes.split_first().ok_or("the table has no axis")?;
    ensure(*rows == range, || format!("an index below {range} into {rows} rows"))?;
    expect(got, rest)
}

fn index_range(ty: &Type) -> Result<Size, String> {
    match &ty.scalar {
        Scalar::Index(n) => Ok(n.clone()),
        Scalar::Real => Err(format!("its operand is {ty}, not an index")),
    }
}
