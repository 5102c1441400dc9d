//! The facts in the user's terms: one serialisable row a recurrence, and the same as text.
//!
//! Comes in: a graph and its facts. Goes out: what `rnnc explain-plan` prints about recurrences, as JSON or as lines.

use super::{Facts, Form, InputTerm, Linear, Recurrence, Semiring, Transition, Verdict};
use crate::diagnostics::Span;
use crate::ir::{Graph, NodeId, Size};
use serde::Serialize;
use std::fmt;

/// Everything that is said of a cell's recurrences, each after those that it reads.
#[derive(Clone, Debug, Serialize)]
#[serde(transparent)]
pub struct Report(pub Vec<Row>);

/// One recurrence.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The names of its states: what is read with a delay.
    pub members: Vec<String>,
    /// Every name that is computed within it.
    pub equations: Vec<String>,
    /// Whether frames can run in parallel by a scan.
    pub class: Class,
    /// The sum and product over which it is linear.
    pub semiring: Option<Semiring>,
    /// The form of the map from state to state: `elementwise`, `block(k)`, `low_rank(r)`, `dense`, `matrix_state`.
    pub transition: String,
    /// The state's axes along which its coefficient varies; absent where it is not linear.
    pub coefficient_axes: Option<Vec<Size>>,
    /// Whether the coefficient is the same in every frame.
    pub time_invariant: Option<bool>,
    /// 1 where what is added is an outer product, else `general`.
    pub input_rank: Option<InputRank>,
    /// Exchanges between units within a frame, if it runs frame by frame.
    pub phases: u32,
    /// Whether it is a matrix state that can run in chunks of frames.
    pub chunkable: bool,
    /// How many blocks of units (heads, say) never meet, if it is dense within blocks.
    pub blocks: Option<Size>,
    /// Why, in a sentence.
    pub reason: String,
    /// The linear surrogate that would free it.
    pub surrogate: Option<String>,
    /// The places that the reason speaks of, as bytes of the source.
    pub spans: Vec<Span>,
}

/// Whether a recurrence is linear.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// Over some semiring.
    Linear,
    /// Over none that is known.
    Nonlinear,
}

/// The rank of what a linear recurrence adds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputRank {
    /// An outer product.
    One,
    /// Anything.
    General,
}

impl Serialize for InputRank {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            InputRank::One => serializer.serialize_u32(1),
            InputRank::General => serializer.serialize_str("general"),
        }
    }
}

/// States the facts in the user's terms.
pub fn report(graph: &Graph, facts: &Facts) -> Report {
    Report(facts.recurrences.iter().map(|r| row(graph, r)).collect())
}

fn row(graph: &Graph, recurrence: &Recurrence) -> Row {
    let blank = Row {
        members: names(graph, &recurrence.states),
        equations: names(graph, &recurrence.members),
        class: Class::Nonlinear,
        semiring: None,
        transition: String::new(),
        coefficient_axes: None,
        time_invariant: None,
        input_rank: None,
        phases: recurrence.verdict.phases(),
        chunkable: false,
        blocks: recurrence.blocks.clone(),
        reason: recurrence.reason.clone(),
        surrogate: recurrence.surrogate.clone(),
        spans: recurrence.spans.clone(),
    };
    match &recurrence.verdict {
        Verdict::Linear(linear) => Row {
            class: Class::Linear,
            semiring: Some(linear.semiring),
            transition: transition(linear),
            coefficient_axes: Some(linear.coefficient_axes.clone()),
            time_invariant: Some(linear.time_invariant),
            input_rank: Some(match linear.input {
                InputTerm::Rank1 => InputRank::One,
                InputTerm::General => InputRank::General,
            }),
            chunkable: linear.chunkable(),
            ..blank
        },
        Verdict::Nonlinear(nonlinear) => Row {
            transition: match nonlinear.form {
                Form::Elementwise => "elementwise".to_owned(),
                Form::Dense => "dense".to_owned(),
                Form::MatrixState => "matrix_state".to_owned(),
            },
            ..blank
        },
    }
}

/// The distinct names among nodes, in order.
fn names(graph: &Graph, ids: &[NodeId]) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut seen = std::collections::BTreeSet::new();
    for name in ids.iter().filter_map(|id| graph.node(*id).name.clone()) {
        if seen.insert(name.clone()) {
            found.push(name.to_string());
        }
    }
    found
}

fn transition(linear: &Linear) -> String {
    match linear.transition {
        Transition::Elementwise => "elementwise".to_owned(),
        Transition::Block(k) => format!("block({k})"),
        Transition::LowRank(rank) => format!("low_rank({rank})"),
        Transition::Dense => "dense".to_owned(),
    }
}

impl Verdict {
    /// Exchanges between units within a frame, if it runs frame by frame.
    pub fn phases(&self) -> u32 {
        match self {
            Verdict::Linear(linear) => linear.phases,
            Verdict::Nonlinear(nonlinear) => nonlinear.phases,
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return writeln!(f, "no recurrence: every frame by itself, all in parallel");
        }
        self.0.iter().try_for_each(|row| write!(f, "{row}"))
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "recurrence {{{}}}: {}", self.members.join(", "), self.headline())?;
        writeln!(f, "  because {}", self.reason)?;
        if let Some(hint) = &self.surrogate {
            writeln!(f, "  to free it: {hint}")?;
        }
        Ok(())
    }
}

impl Row {
    /// The parts of the verdict in one line.
    pub fn headline(&self) -> String {
        let mut parts: Vec<String> = Vec::new();
        match self.semiring {
            Some(semiring) => parts.push(format!("linear over {}", semiring.symbol())),
            None => parts.push("nonlinear".to_owned()),
        }
        parts.push(self.transition.replace('_', " "));
        match self.coefficient_axes.as_deref() {
            None => {}
            Some([]) => parts.push("one coefficient".to_owned()),
            Some(axes) => parts.push(format!("coefficient along {}", super::reason::axes_text(axes))),
        }
        if self.time_invariant == Some(true) {
            parts.push("time-invariant".to_owned());
        }
        if self.input_rank == Some(InputRank::One) {
            parts.push("input of rank 1".to_owned());
        }
        if let Some(blocks) = &self.blocks {
            parts.push(format!("{blocks} independent blocks"));
        }
        if self.phases > 0 || self.class == Class::Nonlinear {
            let s = if self.phases == 1 { "" } else { "s" };
            parts.push(format!("{} phase{s} a frame", self.phases));
        }
        if self.chunkable {
            parts.push("chunkable".to_owned());
        }
        parts.join(", ")
    }
}
