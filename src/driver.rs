//! The pipeline as a list of stages: text in, everything that is known and planned about one cell out.

use crate::analysis::{self, Facts};
use crate::diagnostics::Diagnostics;
use crate::ir::{Graph, Name, NodeId, values};
use crate::schedule::Scheduled;
use crate::transform::gradient::{self, Taped, Window};
use crate::transform::{self, Applied};
use crate::{lower, schedule, syntax};
use rnnc_runtime::plan::{Elem, Plan};
use std::collections::BTreeMap;

/// Which cell of a file is meant: the one of this name, else the one named as the file, else the only one.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    /// The name that the user gave.
    pub cell: Option<String>,
    /// The file's name without folder and extension.
    pub stem: Option<String>,
}

/// A cell that is well formed: its graph as written.
pub struct Checked {
    /// The graph.
    pub graph: Graph,
    /// Warnings.
    pub warnings: Diagnostics,
}

/// A cell that was analysed: its graph after all transforms, and the facts about it.
pub struct Analysed {
    /// The graph.
    pub graph: Graph,
    /// Its recurrences.
    pub facts: Facts,
    /// The transforms that ran.
    pub applied: Vec<Applied>,
    /// Warnings.
    pub warnings: Diagnostics,
}

/// A cell that was planned for given dimensions.
pub struct Planned {
    /// What was analysed.
    pub analysed: Analysed,
    /// The plan.
    pub plan: Plan,
    /// By a launch's name: the nodes that it computes.
    pub nodes: BTreeMap<String, Vec<NodeId>>,
}

/// Text to graph.
///
/// # Errors
/// Everything that is wrong with the text or the chosen cell.
pub fn check(source: &[u8], choice: &Choice) -> Result<Checked, Diagnostics> {
    let (file, mut diagnostics) = syntax::parse(source);
    if diagnostics.has_errors() {
        return Err(diagnostics);
    }
    let (graph, more) = lower::lower(&file, choice.cell.as_deref(), choice.stem.as_deref());
    diagnostics.0.extend(more.0);
    match graph {
        Some(graph) if !diagnostics.has_errors() => Ok(Checked {
            graph,
            warnings: diagnostics,
        }),
        _ => Err(diagnostics),
    }
}

/// Text to facts.
///
/// # Errors
/// Everything that is wrong with the text or the chosen cell.
pub fn analyse(source: &[u8], choice: &Choice) -> Result<Analysed, Diagnostics> {
    let Checked { mut graph, warnings } = check(source, choice)?;
    analysis::analyse(&graph)?; // cycles are reported on the graph as written
    let applied = transform::run(&mut graph);
    let facts = analysis::analyse(&graph)?;
    Ok(Analysed {
        graph,
        facts,
        applied,
        warnings,
    })
}

/// Text to plan, at these values of the dimensions.
///
/// # Errors
/// Everything that is wrong with the text or the chosen cell; a dimension without a value; a size that is not positive or
/// too large.
pub fn plan(source: &[u8], choice: &Choice, dims: &BTreeMap<Name, i64>, elem: Elem) -> Result<Planned, Diagnostics> {
    let analysed = analyse(source, choice)?;
    let found = values::check(&analysed.graph, dims);
    if found.has_errors() {
        return Err(found);
    }
    schedule(analysed, source, dims, elem)
}

/// A cell and its derivative.
pub struct Differentiated {
    /// The cell, with what the backward run reads of it among its outputs.
    pub forward: Planned,
    /// What computes the gradients.
    pub backward: Planned,
    /// The inputs of the backward plan that the forward run leaves.
    pub tape: Vec<Taped>,
    /// How the gradients of initial windows come about.
    pub windows: Vec<Window>,
    /// The derivative of the defaults of initial windows, if any is computed.
    pub defaults: Option<Planned>,
}

/// Text to the plans of a cell and of its gradients.
///
/// # Errors
/// As [`plan`].
pub fn gradient(
    source: &[u8],
    choice: &Choice,
    dims: &BTreeMap<Name, i64>,
    elem: Elem,
) -> Result<Differentiated, Diagnostics> {
    let analysed = analyse(source, choice)?;
    let found = values::check(&analysed.graph, dims);
    if found.has_errors() {
        return Err(found);
    }
    let gradient::Gradient {
        forward,
        backward,
        tape,
        windows,
        defaults,
    } = gradient::run(&analysed.graph);
    let forward = Analysed {
        facts: analysis::analyse(&forward)?,
        graph: forward,
        ..analysed
    };
    let against_time = |mut graph: Graph| {
        let applied = transform::run(&mut graph);
        let analysed = Analysed {
            facts: analysis::analyse(&graph)?,
            graph,
            applied,
            warnings: Diagnostics::default(),
        };
        schedule(analysed, source, dims, elem)
    };
    Ok(Differentiated {
        forward: schedule(forward, source, dims, elem)?,
        backward: against_time(backward)?,
        defaults: defaults.map(against_time).transpose()?,
        tape,
        windows,
    })
}

fn schedule(analysed: Analysed, source: &[u8], dims: &BTreeMap<Name, i64>, elem: Elem) -> Result<Planned, Diagnostics> {
    let text = String::from_utf8_lossy(source);
    let options = schedule::Options {
        dims: dims.clone(),
        elem,
        source: &text,
    };
    let Scheduled { plan, nodes } = schedule::plan(&analysed.graph, &analysed.facts, &options)?;
    debug_assert_eq!(
        rnnc_runtime::plan::check(&plan),
        Ok(()),
        "the plan of {}",
        analysed.graph.name
    );
    Ok(Planned { analysed, plan, nodes })
}
