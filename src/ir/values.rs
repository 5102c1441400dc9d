//! Checks the values of dimensions: a graph and values go in, every size that cannot be computed with is reported.
//!
//! Typing never depends on values, so this is where they are looked at: each axis must be from 1 to 2^31 - 1, each tensor
//! below 2^63 elements (of one frame of one sequence), each slice inside its axis.

use super::{Graph, Name, NodeId, Op, Size};
use crate::diagnostics::{Code, Diagnostic, Diagnostics, Span};
use std::collections::{BTreeMap, BTreeSet};

/// The largest axis.
pub const MAX_AXIS: i64 = i32::MAX as i64;

/// Reports missing and unknown dimensions and every size out of range, each once.
pub fn check(graph: &Graph, dims: &BTreeMap<Name, i64>) -> Diagnostics {
    let mut out = Diagnostics::default();
    check_names(graph, dims, &mut out);
    if out.has_errors() {
        return out;
    }
    let mut seen = BTreeSet::new();
    for id in graph.ids() {
        for axis in &graph.node(id).ty.axes {
            if seen.insert(axis.clone()) {
                out.0.extend(check_axis(axis, dims, graph.node(id).span));
            }
        }
    }
    if !out.has_errors() {
        for id in graph.ids() {
            out.0
                .extend(check_elements(graph, id, dims).or_else(|| check_slice(graph, id, dims)));
        }
    }
    out
}

fn check_names(graph: &Graph, dims: &BTreeMap<Name, i64>, out: &mut Diagnostics) {
    for name in &graph.dims {
        match dims.get(name) {
            None => {
                let message = format!("the dimension `{name}` has no value");
                let d = Diagnostic::new(Code::MissingDim, message, Span::default());
                out.push(d.hint(format!("give it one: `--dims {name}=256`")));
            }
            Some(n) if *n <= 0 => {
                let message = format!("the dimension `{name}` is {n}; it must be positive");
                out.push(Diagnostic::new(Code::SizeNotPositive, message, Span::default()));
            }
            Some(_) => {}
        }
    }
    for name in dims.keys().filter(|n| !graph.dims.contains(n)) {
        let known: Vec<String> = graph.dims.iter().map(|d| format!("`{d}`")).collect();
        let message = format!("the cell `{}` has no dimension `{name}`", graph.name);
        let d = Diagnostic::new(Code::MissingDim, message, Span::default());
        out.push(d.hint(format!("it has {}", known.join(", "))));
    }
}

fn check_axis(axis: &Size, dims: &BTreeMap<Name, i64>, span: Span) -> Option<Diagnostic> {
    let Some(n) = axis.eval(dims) else {
        let message = format!("the size {axis} is beyond all bounds with these dimensions");
        return Some(Diagnostic::new(Code::SizeOverflow, message, span));
    };
    if n > MAX_AXIS {
        let message = format!("the axis {axis} has {n} elements; an axis has at most {MAX_AXIS}");
        return Some(Diagnostic::new(Code::SizeOverflow, message, span));
    }
    if n <= 0 {
        let message = format!("the axis {axis} has size {n} with these dimensions");
        return Some(Diagnostic::new(Code::SizeNotPositive, message, span));
    }
    None
}

fn check_elements(graph: &Graph, id: NodeId, dims: &BTreeMap<Name, i64>) -> Option<Diagnostic> {
    let node = graph.node(id);
    if let Op::SizeValue(size) = &node.op
        && size.eval(dims).is_none()
    {
        let message = format!("the size {size} is beyond all bounds with these dimensions");
        return Some(Diagnostic::new(Code::SizeOverflow, message, node.span));
    }
    let mut total: i64 = 1;
    for axis in &node.ty.axes {
        match total.checked_mul(axis.eval(dims)?) {
            Some(product) => total = product,
            None => {
                let message = format!("a value of axes {} has more than 2^63 elements", node.ty);
                return Some(Diagnostic::new(Code::SizeOverflow, message, node.span));
            }
        }
    }
    None
}

fn check_slice(graph: &Graph, id: NodeId, dims: &BTreeMap<Name, i64>) -> Option<Diagnostic> {
    let node = graph.node(id);
    let Op::Slice { axis, lo, hi } = &node.op else {
        return None;
    };
    let whole = graph.node(graph.operands(id).first()?.node).ty.axes.get(*axis)?;
    let (from, to, end) = (lo.eval(dims)?, hi.eval(dims)?, whole.eval(dims)?);
    if 0 <= from && to <= end {
        return None;
    }
    let message = format!(
        "the slice {lo} to {hi} is {from} to {to} with these dimensions, but the axis {whole} has {end} elements"
    );
    Some(Diagnostic::new(Code::BadArgument, message, node.span))
}
