//! What a graph admits: its recurrences and how each may run. Takes a graph, changes nothing.
//!
//! Facts live beside the graph, in tables indexed by node.

mod algebra;
mod chunk;
mod classify;
mod constant;
mod contract;
mod cycles;
pub(crate) mod express;
mod interpret;
mod judge;
mod merge;
mod operations;
mod phases;
mod reason;
pub mod report;
mod surrogate;
mod term;
#[cfg(test)]
mod tests;
mod varies;

use crate::diagnostics::{Diagnostics, Span};
use crate::ir::{Graph, NodeId, Size};
use interpret::Subject;
use serde::Serialize;

/// Finds the recurrences of a graph and how each may run.
///
/// # Errors
/// Every cycle without delay (E0301) and every look ahead within a recurrence (E0304).
pub fn analyse(graph: &Graph) -> Result<Facts, Diagnostics> {
    let components = cycles::recurrences(graph)?;
    let mut inside = vec![None; graph.bound()];
    for (number, members) in components.iter().enumerate() {
        for id in members {
            inside[id.index()] = Some(number);
        }
    }
    let order = graph.topological();
    let mut position = vec![0; graph.bound()];
    for (at, id) in order.iter().enumerate() {
        position[id.index()] = at;
    }
    let varies = varies::varies(graph, &order);
    let mut recurrences = Vec::with_capacity(components.len());
    for (number, members) in components.into_iter().enumerate() {
        let mut order = members.clone();
        order.sort_by_key(|id| position[id.index()]);
        let subject = Subject {
            graph,
            order,
            inside: &inside,
            number,
            position: &position,
            varies: &varies,
            reads: interpret::edges(graph, &members, &|id| inside[id.index()] == Some(number)),
        };
        recurrences.push(judge::judge(&subject, members));
    }
    Ok(Facts {
        recurrences,
        recurrence_of: inside,
    })
}

/// What is known of a graph.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// The recurrences, in an order in which each comes after those that it reads.
    pub recurrences: Vec<Recurrence>,
    /// By [`NodeId::index`]: the recurrence that the node is a member of.
    pub recurrence_of: Vec<Option<usize>>,
}

impl Facts {
    /// The recurrence that a node is a member of.
    pub fn recurrence_of(&self, id: NodeId) -> Option<usize> {
        self.recurrence_of.get(id.index()).copied().flatten()
    }
}

/// A strongly connected component over all edges: what must go frame by frame unless it is linear.
#[derive(Clone, Debug)]
pub struct Recurrence {
    /// Its nodes, ascending.
    pub members: Vec<NodeId>,
    /// Those of them that are states.
    pub states: Vec<NodeId>,
    /// How it may run.
    pub verdict: Verdict,
    /// Why, in a sentence in the user's names.
    pub reason: String,
    /// The places that the reason speaks of.
    pub spans: Vec<Span>,
    /// If its units fall into blocks that never meet (heads, say): how many. Said of dense ones only.
    pub blocks: Option<Size>,
    /// For a nonlinear one: which linear surrogate would free it.
    pub surrogate: Option<String>,
}

/// How a recurrence may run.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// The state of a frame is linear in that of earlier ones: frames can run in parallel by a scan.
    Linear(Linear),
    /// It is not: frames run one after another.
    Nonlinear(Nonlinear),
}

/// The five parts of a linear verdict.
#[derive(Clone, Debug, PartialEq)]
pub struct Linear {
    /// Over which sum and product.
    pub semiring: Semiring,
    /// The form of the map from state to state.
    pub transition: Transition,
    /// The axes of the state along which its coefficient varies.
    pub coefficient_axes: Vec<Size>,
    /// Whether the coefficient is the same in every frame.
    pub time_invariant: bool,
    /// The form of what is added.
    pub input: InputTerm,
    /// Largest number of exchanges on a path within a frame, if it is run frame by frame.
    pub phases: u32,
    /// The axes of the state (of the first one, if several are coupled).
    pub state_axes: Vec<Size>,
    /// Whether all that is read of the state outside the recurrence are contractions over an axis of it.
    pub read_contracted: bool,
}

/// A nonlinear recurrence.
#[derive(Clone, Debug, PartialEq)]
pub struct Nonlinear {
    /// What its units need of each other.
    pub form: Form,
    /// Largest number of exchanges on a path within a frame.
    pub phases: u32,
}

/// A sum and a product under which a recurrence is linear.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Semiring {
    /// (+, x)
    #[serde(rename = "(+,x)")]
    SumProduct,
    /// (max, +)
    #[serde(rename = "(max,+)")]
    MaxPlus,
    /// (min, +)
    #[serde(rename = "(min,+)")]
    MinPlus,
    /// (logaddexp, +)
    #[serde(rename = "(logaddexp,+)")]
    LogSumExp,
    /// (max, min)
    #[serde(rename = "(max,min)")]
    MaxMin,
}

/// The form of a linear map from state to state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Transition {
    /// Each element by itself.
    Elementwise,
    /// k x k a channel: coupled states of equal axes, delays above 1 in companion form.
    Block(u32),
    /// The identity (or a diagonal) plus so many terms of rank 1.
    LowRank(u32),
    /// Anything else.
    Dense,
}

/// The form of what a linear recurrence adds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum InputTerm {
    /// An outer product of vectors.
    Rank1,
    /// Anything.
    General,
}

/// What the units of a nonlinear recurrence need of each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Form {
    /// Nothing: each channel runs by itself.
    Elementwise,
    /// Products or reductions over units.
    Dense,
    /// The state is contracted with itself.
    MatrixState,
}
