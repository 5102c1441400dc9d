//! Why a verdict is what it is, in the user's names, with the places in the source.

use super::classify::Normal;
use super::interpret::{Break, Edge, Subject};
use super::term::Factor;
use super::{InputTerm, Linear, Semiring, Transition, express};
use crate::diagnostics::Span;
use crate::ir::op::{Binary, Unary};
use crate::ir::{NodeId, Op, Read, Size};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Longer lists end with a count.
const MAX_LISTED: usize = 3;

/// A list in words, cut short.
pub(super) fn listed(items: &[String]) -> String {
    let shown = items.iter().take(MAX_LISTED).cloned().collect::<Vec<_>>();
    match items.len().saturating_sub(MAX_LISTED) {
        0 => match shown.split_last() {
            Some((last, [])) => last.clone(),
            Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
            None => String::new(),
        },
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// Axes as the user writes them.
pub(super) fn axes_text(axes: &[Size]) -> String {
    let names: Vec<String> = axes.iter().map(Size::to_string).collect();
    format!("[{}]", names.join(", "))
}

/// The delayed value that an edge reads.
pub(super) fn source_text(subject: &Subject, edge: &Edge) -> String {
    let read = Read {
        node: edge.source.state,
        delay: edge.source.delay,
    };
    format!("`{}`", express::read(subject.graph, read))
}

/// Why a recurrence is linear, and where.
pub(super) fn linear(subject: &Subject, normal: &Normal, verdict: &Linear) -> (String, Vec<Span>) {
    let graph = subject.graph;
    let states: Vec<String> = normal
        .states
        .iter()
        .map(|(s, _)| format!("`{}`", graph.label(*s)))
        .collect();
    let sources: BTreeSet<_> = subject
        .reads
        .iter()
        .map(|e| (e.source, source_text(subject, e)))
        .collect();
    let sources: Vec<String> = sources.into_iter().map(|(_, text)| text).collect();
    let is = if states.len() == 1 { "is" } else { "are" };
    let reason = format!(
        "{} {is} linear in {} over {}: {}; {}{}",
        listed(&states),
        listed(&sources),
        verdict.semiring.symbol(),
        transition_text(verdict),
        coefficient_text(subject, normal, verdict),
        match verdict.input {
            InputTerm::Rank1 => "; what is added is an outer product",
            InputTerm::General => "",
        }
    );
    (reason, spans(subject, normal.states.iter().map(|(state, _)| *state)))
}

fn transition_text(verdict: &Linear) -> String {
    match verdict.transition {
        Transition::Elementwise => "each element by itself".to_owned(),
        Transition::Block(k) => format!("{k} earlier values of each channel together, as a {k} x {k} matrix a channel"),
        Transition::LowRank(rank) => format!("a diagonal plus a matrix of rank {rank}"),
        Transition::Dense => {
            "every element depends on many (a dense matrix), so frames run one after another".to_owned()
        }
    }
}

/// Which values scale the state, along which axes, and whether they change from frame to frame.
fn coefficient_text(subject: &Subject, normal: &Normal, verdict: &Linear) -> String {
    let mut names: Vec<String> = Vec::new();
    let terms = normal
        .states
        .iter()
        .flat_map(|(_, terms)| terms)
        .filter(|t| t.source.is_some());
    for factor in terms.flat_map(|t| &t.factors) {
        let name = factor_text(subject, factor, verdict.semiring);
        if !names.contains(&name) && names.len() <= 2 * MAX_LISTED {
            names.push(name);
        }
    }
    let coefficient = match names.as_slice() {
        [] if verdict.coefficient_axes.is_empty() => return "no other value scales it".to_owned(),
        [] => "coefficient".to_owned(),
        [one] => format!("coefficient {one}"),
        many => format!("coefficients from {}", listed(many)),
    };
    let along = match verdict.coefficient_axes.as_slice() {
        [] => "one number".to_owned(),
        axes => format!("along {}", axes_text(axes)),
    };
    let in_time = match verdict.time_invariant {
        true => "the same in every frame",
        false => "new in every frame",
    };
    format!("{coefficient}, {along}, {in_time}")
}

fn factor_text(subject: &Subject, factor: &Factor, semiring: Semiring) -> String {
    let text = express::read(subject.graph, Read::now(factor.node));
    match (factor.inverse, semiring) {
        (false, _) => format!("`{text}`"),
        (true, Semiring::SumProduct) => format!("`1 / {text}`"),
        (true, _) => format!("`-{text}`"),
    }
}

/// Why a recurrence is not linear: where the first delayed read loses linearity, and by what.
pub(super) fn nonlinear(subject: &Subject, found: &Break) -> (String, Vec<Span>) {
    let edges: Vec<&Edge> = found
        .reads
        .iter()
        .filter_map(|r| subject.reads.get(*r as usize))
        .collect();
    let Some(edge) = edges.first() else {
        return ("frames run one after another".to_owned(), Vec::new());
    };
    let mut texts: Vec<String> = Vec::new();
    for edge in &edges {
        let text = source_text(subject, edge);
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    let path = path(subject, edge.reader, found.node);
    let via = via(subject, &path, found.node);
    let verbs = if texts.len() == 1 { Verb::One } else { Verb::Many };
    let reason = format!("{} {}{via}", listed(&texts), fate(subject, found, verbs));
    let reason = match named_above(subject, found.node) {
        Some(name) => format!("{reason}, in `{name}`"),
        None => reason,
    };
    let graph = subject.graph;
    let mut spans = vec![graph.node(found.node).span, graph.node(edge.reader).span];
    spans.extend(
        path.iter()
            .filter(|id| is_product(subject, **id))
            .map(|id| graph.node(*id).span),
    );
    (reason, distinct(spans))
}

#[derive(Clone, Copy)]
enum Verb {
    One,
    Many,
}

/// What becomes of the read at the operation that is not linear.
fn fate(subject: &Subject, found: &Break, verb: Verb) -> String {
    let graph = subject.graph;
    let operands = graph.operands(found.node);
    let s = |one: &str, many: &str| match verb {
        Verb::One => one.to_owned(),
        Verb::Many => many.to_owned(),
    };
    let other = found
        .other
        .and_then(|port| operands.get(port))
        .map(|r| express::read(graph, *r));
    match (&graph.node(found.node).op, other) {
        (Op::Binary(Binary::Div), Some(other)) => {
            format!(
                "{} `{other}`, which depends on the recurrence too",
                s("divides", "divide")
            )
        }
        (Op::Binary(Binary::Div), None) => s("is divided by", "are divided by"),
        (Op::Contract { .. }, Some(other)) => {
            format!(
                "{} contracted with `{other}`, which depends on the recurrence too",
                s("is", "are")
            )
        }
        (_, Some(other)) => format!(
            "{} multiplied by `{other}`, which depends on the recurrence too",
            s("is", "are")
        ),
        (Op::Where, None) => s("decides a `where`", "decide a `where`"),
        (Op::Binary(f), None) if is_comparison(*f) => s("is compared with something", "are compared with something"),
        (op, None) => format!("{} through {}", s("passes", "pass"), op_text(op)),
    }
}

fn is_comparison(f: Binary) -> bool {
    matches!(
        f,
        Binary::Eq | Binary::Ne | Binary::Lt | Binary::Le | Binary::Gt | Binary::Ge
    )
}

fn op_text(op: &Op) -> String {
    match op {
        Op::Unary(Unary::Neg) => "a sign change".to_owned(),
        Op::Reduce { op, .. } => format!("a reduction ({})", op.name()),
        Op::Contract { .. } => "a product".to_owned(),
        op => op.name().to_owned(),
    }
}

/// ` via R @ h[t-1]`: the first product on the way.
fn via(subject: &Subject, path: &[NodeId], end: NodeId) -> String {
    let product = path.iter().find(|id| **id != end && is_product(subject, **id));
    product.map_or(String::new(), |id| {
        format!(" via `{}`", express::definition(subject.graph, *id))
    })
}

fn is_product(subject: &Subject, id: NodeId) -> bool {
    matches!(subject.graph.node(id).op, Op::Contract { .. })
}

/// A shortest path within a frame from a reader to a node, both included.
fn path(subject: &Subject, start: NodeId, end: NodeId) -> Vec<NodeId> {
    let mut reader_of: BTreeMap<NodeId, NodeId> = BTreeMap::from([(end, end)]);
    let mut queue = VecDeque::from([end]);
    while let Some(id) = queue.pop_front().filter(|id| *id != start) {
        for read in subject.graph.operands(id) {
            if read.delay == 0 && subject.contains(read.node) && !reader_of.contains_key(&read.node) {
                reader_of.insert(read.node, id);
                queue.push_back(read.node);
            }
        }
    }
    let mut path = vec![start];
    while let Some(next) = path.last().filter(|id| **id != end).and_then(|id| reader_of.get(id)) {
        path.push(*next);
    }
    path
}

/// The name of the equation that a node belongs to: its own, or the next one among its readers.
fn named_above(subject: &Subject, id: NodeId) -> Option<String> {
    let mut seen = BTreeSet::from([id]);
    let mut queue = VecDeque::from([id]);
    while let Some(id) = queue.pop_front() {
        if let Some(name) = &subject.graph.node(id).name {
            return Some(name.to_string());
        }
        let readers = subject.graph.uses(id).into_iter().filter(|u| u.delay == 0);
        queue.extend(
            readers
                .map(|u| u.reader)
                .filter(|id| subject.contains(*id) && seen.insert(*id)),
        );
    }
    None
}

fn spans(subject: &Subject, states: impl Iterator<Item = NodeId>) -> Vec<Span> {
    let graph = subject.graph;
    let mut all: Vec<Span> = states.map(|id| graph.node(id).span).collect();
    all.extend(
        subject
            .reads
            .iter()
            .take(2 * MAX_LISTED)
            .map(|edge| graph.node(edge.reader).span),
    );
    distinct(all)
}

fn distinct(spans: Vec<Span>) -> Vec<Span> {
    let mut seen = BTreeSet::new();
    spans
        .into_iter()
        .filter(|span| *span != Span::default() && seen.insert(*span))
        .collect()
}
