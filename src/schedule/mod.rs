//! Facts to plan: which kernels, on which buffers, in which order.
//!
//! `shapes` gives sizes their values; `matching` finds products; `fuse` decides which nodes a kernel computes together
//! (by the axis `classes` of a group) and what goes through memory; `buffers` lays that out; `product`, `total`, `channel` and
//! `dense` build kernels by evaluating nodes at a `point`; `assemble` orders the launches and adds what surrounds them.
//! What comes out satisfies `rnnc_runtime::plan`'s invariants.

mod assemble;
mod buffers;
mod channel;
mod classes;
mod dense;
mod describe;
mod fuse;
mod matching;
mod memory;
mod point;
mod product;
mod shapes;
mod stage;
mod store;
mod total;

use crate::analysis::Facts;
use crate::diagnostics::Diagnostics;
use crate::ir::{Graph, Name, NodeId};
use rnnc_runtime::plan::{Elem, Plan};
use std::collections::BTreeMap;

/// What a plan depends on besides the graph.
#[derive(Clone, Debug)]
pub struct Options<'a> {
    /// Values of the dimensions.
    pub dims: BTreeMap<Name, i64>,
    /// How inputs, parameters, outputs and what lies between kernels are stored: f32, f16 or bf16.
    pub elem: Elem,
    /// The cell's text, from which kernels quote the equations that they compute.
    pub source: &'a str,
}

/// A plan, and where it comes from.
pub struct Scheduled {
    /// The plan.
    pub plan: Plan,
    /// By a launch's name: the nodes that it computes.
    pub nodes: BTreeMap<String, Vec<NodeId>>,
}

/// Makes a plan of a graph that `transform::run` has been over.
///
/// # Errors
/// A dimension has no value, or a size is not positive or too large.
pub fn plan(graph: &Graph, facts: &Facts, options: &Options<'_>) -> Result<Scheduled, Diagnostics> {
    let shapes = shapes::Shapes::new(graph, &options.dims)?;
    let fusion = fuse::fuse(graph, facts, &shapes);
    let buffers = buffers::buffers(&fusion, options.elem);
    Ok(assemble::assemble(&fusion, buffers, options))
}
