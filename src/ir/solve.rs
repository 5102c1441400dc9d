//! Dimensions from shapes of given tensors: a graph and shapes go in, the values of its dimensions come out.
//!
//! Shapes are keyed as in files of test vectors: `x.NAME` is `[T, B, axes]` (`[B, axes]` if static), `p.NAME` is `[axes]`,
//! `s0.NAME` is `[B, axes]` or, for a window k above 1, `[k, B, axes]`. Axes that are a bare dimension are solved first,
//! then those that are linear in one dimension still open.

use super::{Graph, Name, NodeId, Op, Size};
use std::collections::BTreeMap;

/// Why dimensions do not follow from shapes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SolveError {
    /// A tensor has the wrong number of axes.
    #[error("the tensor `{key}` has the shape {got:?}, but {name} is {layout}")]
    Rank {
        /// The tensor.
        key: String,
        /// The name in the cell.
        name: Name,
        /// The layout that it must have.
        layout: String,
        /// Its shape.
        got: Vec<usize>,
    },
    /// An axis does not have the size that the other tensors, or the given dimensions, ask for.
    #[error("an axis of the tensor `{key}` has {got} elements, but its size {size} is {expected} ({because})")]
    Contradiction {
        /// The tensor.
        key: String,
        /// The size of the axis in the cell's dimensions.
        size: Size,
        /// What it is with the dimensions found so far.
        expected: i64,
        /// The tensor's own.
        got: usize,
        /// Where the dimensions in it come from.
        because: String,
    },
    /// An axis determines no whole, positive value of its dimension.
    #[error("an axis of the tensor `{key}` has {got} elements, which no value of `{dim}` makes equal to {size}")]
    NoSolution {
        /// The tensor.
        key: String,
        /// The size of the axis.
        size: Size,
        /// The dimension to solve for.
        dim: Name,
        /// The tensor's own.
        got: usize,
    },
    /// Some dimensions follow from no tensor.
    #[error("no tensor tells the value of {}; give it by `--dims`", list(.0))]
    Open(Vec<Name>),
}

fn list(names: &[Name]) -> String {
    let quoted: Vec<String> = names.iter().map(|n| format!("`{n}`")).collect();
    quoted.join(", ")
}

/// The values of all dimensions, from shapes alone.
///
/// # Errors
/// See [`SolveError`].
pub fn solve_dims(graph: &Graph, shapes: &BTreeMap<String, Vec<usize>>) -> Result<BTreeMap<Name, i64>, SolveError> {
    solve_rest(graph, &BTreeMap::new(), shapes)
}

/// The values of all dimensions, some of which are known.
///
/// # Errors
/// See [`SolveError`].
pub fn solve_rest(
    graph: &Graph,
    known: &BTreeMap<Name, i64>,
    shapes: &BTreeMap<String, Vec<usize>>,
) -> Result<BTreeMap<Name, i64>, SolveError> {
    let mut solver = Solver {
        axes: known_axes(graph, shapes)?,
        values: known.clone(),
        origin: known.keys().map(|n| (n.clone(), "given".to_owned())).collect(),
    };
    solver.run()?;
    solver.check()?;
    let open: Vec<Name> = graph
        .dims
        .iter()
        .filter(|d| !solver.values.contains_key(*d))
        .cloned()
        .collect();
    if open.is_empty() {
        Ok(solver.values)
    } else {
        Err(SolveError::Open(open))
    }
}

/// An axis of a tensor.
struct Axis {
    key: String,
    size: Size,
    got: usize,
}

struct Solver {
    axes: Vec<Axis>,
    values: BTreeMap<Name, i64>,
    /// By dimension: the tensor that told it.
    origin: BTreeMap<Name, String>,
}

impl Solver {
    fn run(&mut self) -> Result<(), SolveError> {
        for axis in &self.axes {
            if let Some(dim) = axis.size.as_dim() {
                let first = !self.values.contains_key(dim);
                if first {
                    self.values.insert(dim.clone(), axis.got as i64);
                    self.origin.insert(dim.clone(), axis.key.clone());
                }
            }
        }
        while self.round()? {}
        Ok(())
    }

    /// Solves every axis that is linear in one open dimension; whether there was one.
    fn round(&mut self) -> Result<bool, SolveError> {
        let mut progress = false;
        for axis in &self.axes {
            let value = |name: &Name| self.values.get(name).map(|v| Size::int(*v));
            let Some(size) = axis.size.substitute(&value) else {
                continue;
            };
            let open = size.dims();
            let [dim] = open.as_slice() else { continue };
            let Some((slope, rest)) = size.linear_in(dim) else {
                continue;
            };
            let difference = Size::int(axis.got as i64).sub(&rest);
            let solution = difference.and_then(|d| d.div_exact(slope)).and_then(|d| d.as_int());
            let Some(solution) = solution.filter(|n| *n > 0) else {
                return Err(axis.no_solution(dim));
            };
            self.values.insert(dim.clone(), solution);
            self.origin.insert(dim.clone(), axis.key.clone());
            progress = true;
        }
        Ok(progress)
    }

    /// Every axis must have the size that its dimensions now have.
    fn check(&self) -> Result<(), SolveError> {
        for axis in &self.axes {
            let Some(expected) = axis.size.eval(&self.values) else {
                continue;
            };
            if expected != axis.got as i64 {
                let told = |dim: &Name| {
                    let from = self.origin.get(dim).map_or("", String::as_str);
                    format!("{dim} = {} from `{from}`", self.values.get(dim).copied().unwrap_or(0))
                };
                let because: Vec<String> = axis.size.dims().iter().map(told).collect();
                return Err(SolveError::Contradiction {
                    key: axis.key.clone(),
                    size: axis.size.clone(),
                    expected,
                    got: axis.got,
                    because: because.join(", "),
                });
            }
        }
        Ok(())
    }
}

impl Axis {
    fn no_solution(&self, dim: &Name) -> SolveError {
        SolveError::NoSolution {
            key: self.key.clone(),
            size: self.size.clone(),
            dim: dim.clone(),
            got: self.got,
        }
    }
}

/// The axes of every tensor that the cell knows; names that it does not know are somebody else's concern.
fn known_axes(graph: &Graph, shapes: &BTreeMap<String, Vec<usize>>) -> Result<Vec<Axis>, SolveError> {
    let mut found = Vec::new();
    for id in graph.inputs.iter().chain(&graph.params).copied().chain(graph.states()) {
        let Some((prefix, leading)) = layout(graph, id) else {
            continue;
        };
        let node = graph.node(id);
        let Some(name) = &node.name else { continue };
        let key = format!("{prefix}.{name}");
        let Some(shape) = shapes.get(&key) else { continue };
        if shape.len() != leading.len() + node.ty.axes.len() {
            let axes = leading
                .iter()
                .map(|l| (*l).to_owned())
                .chain(node.ty.axes.iter().map(Size::to_string));
            let layout = format!("[{}]", axes.collect::<Vec<_>>().join(", "));
            let (name, got) = (name.clone(), shape.clone());
            return Err(SolveError::Rank { key, name, layout, got });
        }
        for (size, got) in node.ty.axes.iter().zip(&shape[leading.len()..]) {
            let (key, size, got) = (key.clone(), size.clone(), *got);
            found.push(Axis { key, size, got });
        }
    }
    Ok(found)
}

/// The prefix of a node's key and the axes before its own.
fn layout(graph: &Graph, id: NodeId) -> Option<(&'static str, &'static [&'static str])> {
    match graph.node(id).op {
        Op::Input => Some(("x", &["T", "B"])),
        Op::StaticInput => Some(("x", &["B"])),
        Op::Param => Some(("p", &[])),
        Op::State { window: 0 } => None,
        Op::State { window: 1 } => Some(("s0", &["B"])),
        Op::State { .. } => Some(("s0", &["k", "B"])),
        _ => None,
    }
}
