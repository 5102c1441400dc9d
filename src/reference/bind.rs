//! Gives sizes their values and tensors their nodes; everything that can be wrong with a call is found here.

use super::{Argument, ReferenceError, Tensor};
use crate::ir::{Graph, Name, NodeId, Op, Scalar, Size};
use std::collections::{BTreeMap, BTreeSet};

/// The sizes of one evaluation.
pub(super) struct Sizes {
    dims: BTreeMap<Name, i64>,
    /// T.
    pub(super) frames: usize,
    /// B.
    pub(super) batch: usize,
    /// By [`NodeId::index`]: the extents of a node's axes.
    shapes: Vec<Vec<usize>>,
}

impl Sizes {
    /// The extents of a node's axes.
    pub(super) fn shape(&self, id: NodeId) -> &[usize] {
        &self.shapes[id.index()]
    }

    /// How many elements a node has in one frame of one sequence.
    pub(super) fn elements(&self, id: NodeId) -> usize {
        self.shape(id).iter().product()
    }

    /// The value of a size; every size of the graph was found to have one.
    pub(super) fn value(&self, size: &Size) -> i64 {
        size.eval(&self.dims).unwrap_or_default()
    }
}

/// Evaluates every size of the graph.
pub(super) fn sizes(
    graph: &Graph,
    dims: &BTreeMap<Name, i64>,
    frames: usize,
    batch: usize,
) -> Result<Sizes, ReferenceError> {
    for name in &graph.dims {
        let value = *dims
            .get(name)
            .ok_or_else(|| ReferenceError::MissingDim { name: name.to_string() })?;
        positive(name, value)?;
    }
    if let Some(name) = dims.keys().find(|name| !graph.dims.contains(name)) {
        return Err(ReferenceError::UnknownDim { name: name.to_string() });
    }
    positive("the number of frames", frames as i64)?;
    positive("the number of sequences", batch as i64)?;
    let mut shapes = vec![Vec::new(); graph.bound()];
    for id in graph.ids() {
        shapes[id.index()] = shape(graph, id, dims)?;
        let all = shapes[id.index()].iter().try_fold(frames, |n, k| n.checked_mul(*k));
        let ty = &graph.node(id).ty;
        all.and_then(|n| n.checked_mul(batch))
            .filter(|n| i64::try_from(*n).is_ok())
            .ok_or_else(|| ReferenceError::Overflow { what: ty.to_string() })?;
    }
    Ok(Sizes {
        dims: dims.clone(),
        frames,
        batch,
        shapes,
    })
}

fn positive(what: &str, value: i64) -> Result<(), ReferenceError> {
    if value <= 0 {
        return Err(ReferenceError::OutOfRange {
            what: what.to_owned(),
            value,
        });
    }
    Ok(())
}

fn shape(graph: &Graph, id: NodeId, dims: &BTreeMap<Name, i64>) -> Result<Vec<usize>, ReferenceError> {
    let node = graph.node(id);
    if let Op::Slice { axis, lo, hi } = &node.op {
        let of = graph.operands(id)[0].node;
        let extent = value(&graph.node(of).ty.axes[*axis], dims)?;
        for bound in [lo, hi] {
            let at = value(bound, dims)?;
            if at < 0 || at > extent {
                return Err(ReferenceError::OutOfRange {
                    what: bound.to_string(),
                    value: at,
                });
            }
        }
    }
    if let Op::SizeValue(size) = &node.op {
        value(size, dims)?;
    }
    if let Scalar::Index(range) = &node.ty.scalar {
        extent(range, dims)?;
    }
    node.ty.axes.iter().map(|axis| extent(axis, dims)).collect()
}

fn value(size: &Size, dims: &BTreeMap<Name, i64>) -> Result<i64, ReferenceError> {
    size.eval(dims)
        .ok_or_else(|| ReferenceError::Overflow { what: size.to_string() })
}

fn extent(size: &Size, dims: &BTreeMap<Name, i64>) -> Result<usize, ReferenceError> {
    let n = value(size, dims)?;
    positive(&size.to_string(), n)?;
    if n > 1 << 31 {
        return Err(ReferenceError::Overflow { what: size.to_string() });
    }
    Ok(n as usize)
}

/// What the caller gave, by node.
#[derive(Default)]
pub(super) struct Bound<'t> {
    /// Inputs and parameters.
    pub(super) values: BTreeMap<NodeId, &'t Tensor>,
    /// Initial windows of states.
    pub(super) windows: BTreeMap<NodeId, &'t Tensor>,
}

/// Finds the node of every tensor, and a tensor for every node that needs one.
pub(super) fn bind<'t>(
    graph: &Graph,
    sizes: &Sizes,
    given: &'t BTreeMap<String, Tensor>,
) -> Result<Bound<'t>, ReferenceError> {
    let mut bound = Bound::default();
    let arguments = arguments(graph, sizes);
    for (id, argument) in &arguments {
        match given.get(&argument.key) {
            None if argument.is_window => {}
            None => {
                return Err(ReferenceError::Missing {
                    name: argument.key.clone(),
                });
            }
            Some(tensor) => {
                check(argument, tensor)?;
                let list = if argument.is_window {
                    &mut bound.windows
                } else {
                    &mut bound.values
                };
                list.insert(*id, tensor);
            }
        }
    }
    let known: BTreeSet<&String> = arguments.iter().map(|(_, a)| &a.key).collect();
    match given.keys().find(|key| !known.contains(key)) {
        Some(name) => Err(ReferenceError::Unknown { name: name.clone() }),
        None => Ok(bound),
    }
}

/// Every node that takes a tensor, and which.
pub(super) fn arguments(graph: &Graph, sizes: &Sizes) -> Vec<(NodeId, Argument)> {
    let listed = graph.inputs.iter().chain(&graph.params).copied();
    let mut arguments = Vec::new();
    for id in listed.chain(graph.states()) {
        let node = graph.node(id);
        let (prefix, mut shape) = match node.op {
            Op::Input => ("x", vec![sizes.frames, sizes.batch]),
            Op::StaticInput => ("x", vec![sizes.batch]),
            Op::State { window: 0 } => continue,
            Op::State { window } => ("s0", window_extents(window, sizes.batch)),
            _ => ("p", vec![]),
        };
        shape.extend(sizes.shape(id));
        let argument = Argument {
            key: format!("{prefix}.{}", node.name.as_deref().unwrap_or_default()),
            shape,
            range: match &node.ty.scalar {
                Scalar::Index(n) => Some(sizes.value(n) as usize),
                Scalar::Real => None,
            },
            is_window: prefix == "s0",
        };
        arguments.push((id, argument));
    }
    arguments
}

/// The extents in front of a frame's own in a window of k frames.
pub(super) fn window_extents(window: u32, batch: usize) -> Vec<usize> {
    match window {
        1 => vec![batch],
        k => vec![k as usize, batch],
    }
}

fn check(argument: &Argument, tensor: &Tensor) -> Result<(), ReferenceError> {
    let (name, expected) = (argument.key.clone(), argument.shape.clone());
    if tensor.shape != expected || tensor.data.len() != expected.iter().product::<usize>() {
        let got = tensor.shape.clone();
        return Err(ReferenceError::Shape { name, expected, got });
    }
    let Some(rows) = argument.range else {
        return Ok(());
    };
    let inside = |v: f64| v >= 0.0 && v < rows as f64 && v.fract() == 0.0;
    match tensor.data.iter().find(|v| !inside(**v)) {
        Some(value) => Err(ReferenceError::Index {
            name,
            value: value.to_string(),
            rows,
        }),
        None => Ok(()),
    }
}
