//! Finds the products: contractions of constant weights with a vector, what is added to them, and what follows.

use super::point::{summed_labels, through_views, unflatten};
use super::shapes::Shapes;
use crate::analysis::Facts;
use crate::ir::op::{Binary, Unary};
use crate::ir::{Graph, Kind, NodeId, Op, Read};
use rnnc_runtime::plan::Index;
use std::collections::{BTreeMap, BTreeSet};

/// A product with its epilogue: what one segment of a launch computes.
#[derive(Clone, Debug)]
pub struct ProductMatch {
    /// The contractions whose sum the product is.
    pub parts: Vec<Part>,
    /// The node that is stored: the last of the epilogue.
    pub result: NodeId,
}

/// One contraction of a product.
#[derive(Clone, Debug)]
pub struct Part {
    /// The contraction.
    pub contract: NodeId,
    /// Its constant operand.
    pub weight: Read,
    /// Its other operand.
    pub vector: Read,
    /// Whether it is subtracted from what comes before it.
    pub negated: bool,
}

/// A constant matrix, affine in row (variable 0) and column (variable 1).
#[derive(Clone, Debug)]
pub struct Matrix {
    /// The node whose buffer holds it.
    pub node: NodeId,
    /// Element index within that node.
    pub index: Index,
}

/// All products of a graph: by result, and the nodes inside them that exist nowhere else.
#[derive(Default)]
pub struct Matches {
    /// By the node that is stored.
    pub by_result: BTreeMap<NodeId, ProductMatch>,
    /// Contractions and epilogue nodes before the result.
    pub inside: BTreeSet<NodeId>,
}

/// Finds them. `stored` says which constant nodes have a buffer.
pub fn find(graph: &Graph, facts: &Facts, shapes: &Shapes, stored: &dyn Fn(NodeId) -> bool) -> Matches {
    let finder = Finder {
        graph,
        facts,
        shapes,
        stored,
        feeds: feeds_recurrence(graph, facts),
    };
    let mut matches = Matches::default();
    for id in graph.topological() {
        if matches.inside.contains(&id) || matches.by_result.contains_key(&id) {
            continue;
        }
        if let Some(part) = finder.part(id) {
            let (found, inside) = finder.grow(part);
            matches.inside.extend(inside);
            matches.by_result.insert(found.result, found);
        }
    }
    matches
}

struct Finder<'a> {
    graph: &'a Graph,
    facts: &'a Facts,
    shapes: &'a Shapes,
    stored: &'a dyn Fn(NodeId) -> bool,
    feeds: Vec<bool>,
}

impl Finder<'_> {
    /// A contraction outside all recurrences that is a matrix times a vector of a higher kind.
    fn part(&self, id: NodeId) -> Option<Part> {
        let Op::Contract { labels, out } = &self.graph.node(id).op else {
            return None;
        };
        if self.facts.recurrence_of(id).is_some() || labels.len() != 2 {
            return None;
        }
        let operands = self.graph.operands(id);
        let kind = |i: usize| self.graph.node(operands[i].node).kind;
        let (w, v) = match (kind(0), kind(1)) {
            (Kind::Const, k) if k > Kind::Const => (0, 1),
            (k, Kind::Const) if k > Kind::Const => (1, 0),
            _ => return None,
        };
        let distinct = |labels: &[u32]| labels.iter().collect::<BTreeSet<_>>().len() == labels.len();
        let fits = distinct(&labels[w])
            && distinct(&labels[v])
            && labels[v].iter().all(|l| !out.contains(l) && labels[w].contains(l))
            && labels[w].iter().all(|l| out.contains(l) || labels[v].contains(l))
            && !labels[v].is_empty();
        let part = Part {
            contract: id,
            weight: operands[w],
            vector: operands[v],
            negated: false,
        };
        (fits && matrix(self.graph, self.shapes, self.stored, &part).is_some_and(|m| m.is_affine())).then_some(part)
    }

    /// Extends a product over what is added to it and what follows, as long as nobody else needs the values between.
    fn grow(&self, first: Part) -> (ProductMatch, Vec<NodeId>) {
        let mut inside = Vec::new();
        let mut found = ProductMatch {
            result: first.contract,
            parts: vec![first],
        };
        let mut only_sums = true;
        while let Some((reader, port)) = self.only_reader(found.result) {
            let op = &self.graph.node(reader).op;
            if !self.may_follow(found.result, reader) {
                break;
            }
            let is_sum = match op {
                Op::Binary(Binary::Add) => true,
                Op::Binary(Binary::Sub) => port == 0,
                _ => false,
            };
            let subtracts = matches!(op, Op::Binary(Binary::Sub));
            let others: Vec<Read> = self.other_operands(reader, port);
            let added = if is_sum && only_sums {
                self.added_part(&others)
            } else {
                None
            };
            if added.is_none() && !others.iter().all(|r| self.is_simple(*r, found.result)) {
                break;
            }
            if let Some(part) = added {
                inside.push(part.contract);
                found.parts.push(Part {
                    negated: subtracts,
                    ..part
                });
            }
            only_sums &= is_sum;
            inside.push(found.result);
            found.result = reader;
        }
        (found, inside)
    }

    /// The node that alone reads `id`, in this frame and at one port.
    fn only_reader(&self, id: NodeId) -> Option<(NodeId, usize)> {
        if self.graph.outputs.iter().any(|o| o.node == id) {
            return None;
        }
        match self.graph.uses(id).as_slice() {
            [only] if only.delay == 0 => Some((only.reader, only.port)),
            _ => None,
        }
    }

    fn may_follow(&self, result: NodeId, reader: NodeId) -> bool {
        let op = &self.graph.node(reader).op;
        let pointwise = matches!(op, Op::Unary(_) | Op::Binary(_) | Op::Where | Op::Clamp);
        let same_kind = self.graph.node(reader).kind == self.graph.node(result).kind;
        // A scan has time to spare while it waits for memory: functions that feed one are computed there.
        let leave_to_recurrence = self.feeds[reader.index()] && !is_cheap(op);
        pointwise && same_kind && self.facts.recurrence_of(reader).is_none() && !leave_to_recurrence
    }

    fn other_operands(&self, reader: NodeId, port: usize) -> Vec<Read> {
        self.graph
            .operands(reader)
            .into_iter()
            .enumerate()
            .filter(|(i, _)| *i != port)
            .map(|(_, r)| r)
            .collect()
    }

    fn added_part(&self, others: &[Read]) -> Option<Part> {
        let [other] = others else { return None };
        self.only_reader(other.node)?;
        self.part(other.node)
    }

    /// Whether an epilogue may compute this operand: constants and sums of a few inputs, nothing that waits.
    fn is_simple(&self, read: Read, result: NodeId) -> bool {
        let mut stack = vec![read];
        let mut seen = 0;
        while let Some(read) = stack.pop() {
            seen += 1;
            let node = self.graph.node(read.node);
            if node.kind < self.graph.node(result).kind {
                continue;
            }
            let waits = read.delay != 0 || node.op.folds();
            if waits || seen > 16 || self.facts.recurrence_of(read.node).is_some() || read.node == result {
                return false;
            }
            stack.extend(self.graph.operands(read.node));
        }
        true
    }
}

impl Matrix {
    /// Whether it is a plain matrix in memory.
    pub fn is_affine(&self) -> bool {
        self.index.stride_of(0).is_some() && self.index.stride_of(1).is_some() && self.index.range(&[1, 1]).0 >= 0
    }
}

/// Where a part's weight lies, with variable 0 its row and 1 its column; `None` if no buffer holds it.
pub fn matrix(graph: &Graph, shapes: &Shapes, stored: &dyn Fn(NodeId) -> bool, part: &Part) -> Option<Matrix> {
    let (rows, columns) = extents(graph, shapes, part)?;
    let Op::Contract { labels, out } = &graph.node(part.contract).op else {
        return None;
    };
    let operands = graph.operands(part.contract);
    let w = operands.iter().position(|r| *r == part.weight)?;
    let summed = summed_labels(&[labels[1 - w].clone()], out);
    let extents = [rows.iter().product::<usize>(), columns.iter().product::<usize>()];
    let row = unflatten(&Index::var(0), &rows, &extents);
    let column = unflatten(&Index::var(1), &columns, &extents);
    let at = |label: &u32| match out.iter().position(|l| l == label) {
        Some(axis) => row[axis].clone(),
        None => summed
            .iter()
            .position(|l| l == label)
            .map_or_else(Index::default, |i| column[i].clone()),
    };
    let index = labels[w].iter().map(at).collect();
    let (read, index) = through_views(graph, shapes, &extents, stored, part.weight, index);
    stored(read.node).then(|| Matrix {
        node: read.node,
        index: super::point::flatten(&index, shapes.of(read.node)),
    })
}

/// The extents of a part's rows and columns.
pub fn extents(graph: &Graph, shapes: &Shapes, part: &Part) -> Option<(Vec<usize>, Vec<usize>)> {
    let Op::Contract { labels, out } = &graph.node(part.contract).op else {
        return None;
    };
    let v = graph.operands(part.contract).iter().rposition(|r| *r == part.vector)?;
    debug_assert!(labels[v].iter().all(|l| !out.contains(l)));
    Some((shapes.of(part.contract).to_vec(), shapes.of(part.vector.node).to_vec()))
}

/// Operations that cost an instruction or two.
pub fn is_cheap(op: &Op) -> bool {
    match op {
        Op::Unary(f) => matches!(
            f,
            Unary::Neg | Unary::Abs | Unary::Relu | Unary::Sign | Unary::StopGradient
        ),
        Op::Binary(f) => !matches!(f, Binary::Div | Binary::Pow | Binary::Mod | Binary::LogAddExp),
        _ => !op.folds(),
    }
}

/// By node: whether its value reaches a recurrence through pointwise operations and views alone.
fn feeds_recurrence(graph: &Graph, facts: &Facts) -> Vec<bool> {
    let mut feeds = vec![false; graph.bound()];
    for id in graph.topological().into_iter().rev() {
        feeds[id.index()] = graph.uses(id).iter().any(|u| {
            let op = &graph.node(u.reader).op;
            facts.recurrence_of(u.reader).is_some()
                || ((op.is_elementwise() || op.is_view()) && feeds[u.reader.index()])
        });
    }
    feeds
}
