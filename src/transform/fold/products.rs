//! Rules on contractions: views of their operands become other labels, and what sums nothing is no product.

use super::{Draft, Step, behind};
use crate::ir::op::Binary;
use crate::ir::{Graph, Op, Read};

/// A contraction of a permuted or spread operand labels the operand itself; one of a single operand that sums nothing
/// is a view.
pub(super) fn view(graph: &Graph, draft: &Draft) -> Option<Step> {
    let Op::Contract { labels, out } = &draft.op else {
        return None;
    };
    let absorbed = (0..labels.len()).find_map(|port| absorb(graph, draft, labels, out, port));
    absorbed.or_else(|| permutation(draft, labels, out)).map(Step::Becomes)
}

/// New axes of a spread operand go if something else has their label; if it has none, the sum runs over copies.
fn absorb(graph: &Graph, draft: &Draft, labels: &[Vec<u32>], out: &[u32], port: usize) -> Option<Draft> {
    let (inner, operands) = behind(graph, draft.operands[port]);
    let Op::Broadcast { map } = &inner.op else {
        return None;
    };
    let kept: Vec<u32> = map.iter().map(|axis| labels[port][*axis]).collect();
    let others = || {
        labels
            .iter()
            .enumerate()
            .filter(|(i, _)| *i != port)
            .flat_map(|(_, l)| l)
    };
    let gone = labels[port].iter().filter(|l| !kept.contains(l));
    if gone.into_iter().any(|l| !others().any(|o| o == l)) {
        return None;
    }
    let mut labels = labels.to_vec();
    labels[port] = kept;
    let mut next = draft.clone();
    next.op = Op::Contract {
        labels,
        out: out.to_vec(),
    };
    next.operands[port] = operands[0];
    Some(next)
}

fn permutation(draft: &Draft, labels: &[Vec<u32>], out: &[u32]) -> Option<Draft> {
    let [only] = labels else { return None };
    let map: Vec<usize> = only
        .iter()
        .map(|l| out.iter().position(|o| o == l))
        .collect::<Option<_>>()?;
    (map.len() == out.len()).then(|| Draft {
        op: Op::Broadcast { map },
        ty: draft.ty.clone(),
        operands: draft.operands.clone(),
    })
}

/// A contraction of two operands that sums nothing is their product, element by element.
pub(super) fn outer(_: &Graph, draft: &Draft) -> Option<Step> {
    let Op::Contract { labels, out } = &draft.op else {
        return None;
    };
    if labels.len() != 2 {
        return None;
    }
    let spread = |(labels, read): (&Vec<u32>, &Read)| {
        let map: Vec<usize> = labels
            .iter()
            .map(|l| out.iter().position(|o| o == l))
            .collect::<Option<_>>()?;
        let twice = (1..map.len()).any(|i| map[..i].contains(&map[i])); // a diagonal
        (!twice).then(|| Draft {
            op: Op::Broadcast { map },
            ty: draft.ty.clone(),
            operands: vec![*read],
        })
    };
    let operands = labels.iter().zip(&draft.operands).map(spread).collect::<Option<_>>()?;
    let product = Draft {
        op: Op::Binary(Binary::Mul),
        ty: draft.ty.clone(),
        operands: Vec::new(),
    };
    Some(Step::After(operands, product))
}
