//! Passes that rewrite a graph, each a file named by a verb with one `run`.
//!
//! A sound graph comes in and a sound one goes out (`ir::verify`, after each pass in debug builds), with the same inputs,
//! parameters, outputs and windows, and the same values up to rounding. A pass is iterative and takes time about in
//! proportion to the graph; it knows nothing of kernels.

pub mod factor_scalars;
pub mod fold;
pub mod gradient;
pub mod hoist;
pub mod merge_products;
pub mod merge_totals;
pub mod part_products;
pub mod prune;
mod rebuild;
pub mod share;
pub mod split_products;

use crate::ir::Graph;

/// A pass that was run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Applied {
    /// Its name, that of its file.
    pub pass: &'static str,
    /// How often it changed something; what one change is, its `run` says.
    pub changes: usize,
}

/// A pass: its name and its function.
type Pass = (&'static str, fn(&mut Graph) -> usize);

/// Every pass in the order of [`run`].
pub const PASSES: &[Pass] = &[
    ("prune", prune::run),
    ("fold", fold::run),
    ("share", share::run),
    ("part_products", part_products::run),
    ("factor_scalars", factor_scalars::run),
    ("split_products", split_products::run),
    // After gates were told apart, for only then are the two sums that make up a gate one.
    ("hoist", hoist::run),
    ("merge_products", merge_products::run),
    ("merge_totals", merge_totals::run),
    // What the passes before laid bare.
    ("fold", fold::run),
    ("share", share::run),
    ("prune", prune::run),
];

/// Runs every pass.
pub fn run(graph: &mut Graph) -> Vec<Applied> {
    let apply = |(pass, run): &Pass| {
        let changes = run(graph);
        debug_assert_eq!(crate::ir::verify::verify(graph), Ok(()), "after {pass}");
        Applied { pass, changes }
    };
    PASSES.iter().map(apply).collect()
}

#[cfg(test)]
mod tests;
