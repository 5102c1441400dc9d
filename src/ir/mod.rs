//! The graph: operations on per-frame tensors, joined by edges that carry delays. Knows no syntax.
//!
//! What holds of every [`Graph`] (checked by `verify`): operands are numbered 0.. without gaps; elementwise operations have
//! operands of exactly their own axes (views are explicit: [`Op::Broadcast`] and its kin); only [`Op::State`] nodes are
//! read with a delay; every cycle passes a delayed edge; a node's [`Kind`] is at least that of its operands
//! (a total's is below it).

mod graph;
pub mod op;
pub mod print;
pub mod size;
pub mod solve;
#[cfg(test)]
pub(crate) mod testing;
pub mod ty;
pub mod values;
pub mod verify;

pub use graph::{Graph, Node, NodeId, Output, Read, Use};
pub use op::Op;
pub use size::Size;
pub use ty::{Kind, Scalar, Type};

/// A name of the user's.
pub type Name = std::sync::Arc<str>;
