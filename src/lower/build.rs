//! Makes nodes: operations and operands go in, nodes with type and kind come out. Also keeps the budget.
//!
//! A value under construction is a [`Read`]: a node and the delay with which it is read. `None` stands for a value whose
//! error has been reported; nothing more is said about what is made of it.

use super::program::Program;
use super::sizes::MAX_AXES;
use crate::diagnostics::{Code, Diagnostic, Diagnostics, Span};
use crate::ir::op::{Binary, Reduce, Unary};
use crate::ir::{Graph, Kind, Name, Node, NodeId, Op, Read, Size, Type, ty::Scalar};
use crate::syntax::ast::ExprId;
use std::collections::HashMap;

/// A graph that may get more nodes than this is refused.
const MAX_NODES: usize = 250_000;
/// Expressions evaluated (functions count once a call) and, in units of [`Size::weight`], axes made.
const MAX_WORK: usize = 5_000_000;
/// How many times work within functions counts: what a user writes out is bounded by the file, but twelve lines of functions
/// expand to millions of operations. What is left is about 30,000 operations.
const EXPANDED: usize = 32;

/// A cell's graph while it grows.
pub(super) struct Builder<'p, 'a> {
    pub program: &'p Program<'a>,
    pub graph: Graph,
    pub out: Diagnostics,
    /// Aliases of dimensions, for showing axes as the user wrote them.
    pub aliases: Vec<(Name, Size)>,
    /// The calls of `fn`s that are being expanded, outermost first.
    pub calls: Vec<(Name, Span)>,
    /// Values of the expressions below those being evaluated, a table for each that waits for another.
    pub done: Vec<HashMap<ExprId, Option<Read>>>,
    work: usize,
    full: bool,
    /// Literals and literals along axes, so that `x + 1 + 1 + ...` holds one of each.
    literals: HashMap<u64, NodeId>,
    filled: HashMap<(NodeId, Vec<Size>), NodeId>,
}

impl<'p, 'a> Builder<'p, 'a> {
    pub(super) fn new(program: &'p Program<'a>, name: &str) -> Builder<'p, 'a> {
        Builder {
            program,
            graph: Graph::new(name),
            out: Diagnostics::default(),
            aliases: Vec::new(),
            calls: Vec::new(),
            done: Vec::new(),
            work: 0,
            full: false,
            literals: HashMap::new(),
            filled: HashMap::new(),
        }
    }

    /// Reports, with the calls that led here.
    pub(super) fn report(&mut self, mut d: Diagnostic) {
        for (name, span) in self.calls.iter().rev().take(3) {
            d = d.also(*span, format!("in this call of `{name}`"));
        }
        self.out.push(d);
    }

    /// Reports a failure and gives the value on success.
    pub(super) fn ok<T>(&mut self, found: Result<T, Box<Diagnostic>>) -> Option<T> {
        match found {
            Ok(value) => Some(value),
            Err(d) => {
                self.report(*d);
                None
            }
        }
    }

    /// Counts work; false (and one report) when the program is too large.
    pub(super) fn charge(&mut self, work: usize, span: Span) -> bool {
        self.work += work * if self.calls.is_empty() { 1 } else { EXPANDED };
        if self.full || (self.work <= MAX_WORK && self.graph.len() < MAX_NODES) {
            return !self.full;
        }
        self.full = true;
        let message = "the cell becomes too large when its functions are expanded";
        let d = Diagnostic::new(Code::TooLarge, message, span).label("the limit was reached here");
        self.report(d.hint(format!(
            "a cell may have {MAX_NODES} operations, of which functions make about 30000 at most"
        )));
        false
    }

    /// Adds a node whose kind is the greatest of its operands' kinds.
    pub(super) fn node(&mut self, op: Op, ty: Type, operands: &[Read], span: Span) -> Option<Read> {
        let kind = operands.iter().map(|r| self.kind(*r)).max().unwrap_or(Kind::Const);
        self.node_of_kind(op, ty, kind, operands, span)
    }

    fn node_of_kind(&mut self, op: Op, ty: Type, kind: Kind, operands: &[Read], span: Span) -> Option<Read> {
        if ty.axes.len() > MAX_AXES {
            let message = format!(
                "this value would have {} axes; a value has at most {MAX_AXES}",
                ty.axes.len()
            );
            self.report(Diagnostic::new(Code::TooLarge, message, span));
            return None;
        }
        let weight: usize = ty.axes.iter().map(Size::weight).sum();
        if !self.charge(1 + weight, span) {
            return None;
        }
        let (name, span) = (None, span);
        let node = Node {
            op,
            ty,
            kind,
            span,
            name,
        };
        Some(Read::now(self.graph.add(node, operands)))
    }

    /// How often a value exists; what is read with a delay exists in every frame.
    pub(super) fn kind(&self, read: Read) -> Kind {
        if read.delay != 0 {
            return Kind::Frame;
        }
        self.graph.node(read.node).kind
    }

    /// The axes of a value.
    pub(super) fn axes(&self, read: Read) -> &[Size] {
        &self.graph.node(read.node).ty.axes
    }

    /// The size below which an index stays; none for reals.
    pub(super) fn index_of(&self, read: Read) -> Option<&Size> {
        match &self.graph.node(read.node).ty.scalar {
            Scalar::Index(n) => Some(n),
            Scalar::Real => None,
        }
    }

    /// A number.
    pub(super) fn literal(&mut self, value: f64, span: Span) -> Option<Read> {
        if let Some(node) = self.literals.get(&value.to_bits()) {
            return Some(Read::now(*node));
        }
        let read = self.node(Op::Literal(value), Type::scalar(), &[], span)?;
        self.literals.insert(value.to_bits(), read.node);
        Some(read)
    }

    /// The number that a value is, if it is written as one.
    pub(super) fn as_literal(&self, read: Read) -> Option<f64> {
        match self.graph.node(read.node).op {
            Op::Literal(value) => Some(value),
            _ => None,
        }
    }

    /// A view under which axis i of the value is axis `map[i]` of `axes`.
    pub(super) fn broadcast(&mut self, read: Read, map: Vec<usize>, axes: &[Size], span: Span) -> Option<Read> {
        let is_literal = self.as_literal(read).is_some();
        let key = (read.node, axes.to_vec());
        if is_literal && let Some(node) = self.filled.get(&key) {
            return Some(Read::now(*node));
        }
        let made = self.node(Op::Broadcast { map }, Type::real(axes.to_vec()), &[read], span)?;
        if is_literal {
            self.filled.insert(key, made.node);
        }
        Some(made)
    }

    /// A node with the operand's type under its own name: what an equation is that only renames a delayed read.
    pub(super) fn identity(&mut self, read: Read, span: Span) -> Option<Read> {
        let ty = self.graph.node(read.node).ty.clone();
        let map = (0..ty.axes.len()).collect();
        self.node(Op::Broadcast { map }, ty, &[read], span)
    }

    /// An elementwise operation on values that already have `axes`.
    pub(super) fn elementwise(&mut self, op: Op, axes: &[Size], operands: &[Read], span: Span) -> Option<Read> {
        self.node(op, Type::real(axes.to_vec()), operands, span)
    }

    /// A function of one value.
    pub(super) fn unary(&mut self, f: Unary, x: Read, span: Span) -> Option<Read> {
        let axes = self.axes(x).to_vec();
        self.elementwise(Op::Unary(f), &axes, &[x], span)
    }

    /// A function of two values of equal axes.
    pub(super) fn binary(&mut self, f: Binary, a: Read, b: Read, span: Span) -> Option<Read> {
        let axes = self.axes(a).to_vec();
        self.elementwise(Op::Binary(f), &axes, &[a, b], span)
    }

    /// A reduction over the axes at these places; over none it is the value itself.
    pub(super) fn reduce(&mut self, op: Reduce, x: Read, places: &[usize], span: Span) -> Option<Read> {
        if places.is_empty() {
            return Some(x);
        }
        let mut axes = places.to_vec();
        axes.sort_unstable();
        let kept = kept(self.axes(x).len(), &axes);
        let ty = Type::real(kept.iter().map(|i| self.axes(x)[*i].clone()).collect());
        self.node(Op::Reduce { op, axes }, ty, &[x], span)
    }

    /// A product of one or two values; `out` lists the labels of the result and, with them, its axes.
    pub(super) fn contract(&mut self, operands: &[(Read, Vec<u32>)], out: Vec<u32>, span: Span) -> Option<Read> {
        let size_of = |label: &u32| {
            operands.iter().find_map(|(read, labels)| {
                let place = labels.iter().position(|l| l == label)?;
                self.axes(*read).get(place).cloned()
            })
        };
        let ty = Type::real(out.iter().filter_map(size_of).collect());
        let labels = operands.iter().map(|(_, labels)| labels.clone()).collect();
        let reads: Vec<Read> = operands.iter().map(|(read, _)| *read).collect();
        self.node(Op::Contract { labels, out }, ty, &reads, span)
    }

    /// Axes in the user's terms: `[4*H, I]`.
    pub(super) fn show(&self, axes: &[Size]) -> String {
        let list: Vec<String> = axes.iter().map(|s| self.show_size(s)).collect();
        format!("[{}]", list.join(", "))
    }

    /// A size in the user's terms: as a multiple of an alias, where it is one.
    pub(super) fn show_size(&self, size: &Size) -> String {
        for (name, alias) in self.aliases.iter().take(64) {
            let multiple = (1..=16).find(|k| alias.mul(&Size::int(*k)).as_ref() == Some(size));
            match multiple {
                Some(1) => return name.to_string(),
                Some(k) => return format!("{k}*{name}"),
                None => {}
            }
        }
        size.to_string()
    }

    /// The axes of a value in the user's terms.
    pub(super) fn show_read(&self, read: Read) -> String {
        match self.index_of(read) {
            Some(n) => format!("index({})", self.show_size(n)),
            None => self.show(self.axes(read)),
        }
    }
}

/// The places of `rank` axes that are not in `gone`.
pub(super) fn kept(rank: usize, gone: &[usize]) -> Vec<usize> {
    (0..rank).filter(|i| !gone.contains(i)).collect()
}
