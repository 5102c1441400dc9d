//! What the parsers share: the source, the tree as it grows, the messages, the depth of nesting.

use super::ast::{Expr, ExprId, ExprKind, File, Name, Top};
use super::token::{Fault, Parsed, extent};
use super::traps;
use crate::diagnostics::{Code, Diagnostic, Diagnostics, Span};
use std::cell::{Cell, RefCell};
use std::collections::HashSet;

/// How deeply expressions and sizes may be nested.
pub(super) const MAX_NESTING: u32 = 200;

/// How many messages are kept; more would tell a reader nothing.
const MAX_MESSAGES: usize = 200;

/// The state of one parse. Parsers are methods on `&self`, so that nom can combine them; what changes is in cells.
pub(super) struct Parser<'a> {
    /// The whole text.
    pub source: &'a str,
    exprs: RefCell<Vec<Expr>>,
    comments: RefCell<Vec<Span>>,
    diagnostics: RefCell<Diagnostics>,
    names: RefCell<HashSet<Name>>,
    depth: Cell<u32>,
    /// The token eaten last.
    pub last_token: Cell<Span>,
}

impl<'a> Parser<'a> {
    /// A parser of `source`.
    pub fn new(source: &'a str) -> Parser<'a> {
        Parser {
            source,
            exprs: RefCell::default(),
            comments: RefCell::default(),
            diagnostics: RefCell::default(),
            names: RefCell::default(),
            depth: Cell::new(0),
            last_token: Cell::default(),
        }
    }

    /// Parses the whole text.
    pub fn run(self) -> (File, Diagnostics) {
        let items: Vec<Top> = self.file();
        let file = File {
            items,
            exprs: self.exprs.into_inner(),
            comments: self.comments.into_inner(),
        };
        (file, self.diagnostics.into_inner())
    }

    /// The shared name with this text.
    pub fn intern(&self, text: &str) -> Name {
        let mut names = self.names.borrow_mut();
        if let Some(name) = names.get(text) {
            return name.clone();
        }
        let name = Name::from(text);
        names.insert(name.clone());
        name
    }

    /// Puts an expression into the arena.
    pub fn alloc(&self, kind: ExprKind, span: Span) -> ExprId {
        let mut exprs = self.exprs.borrow_mut();
        exprs.push(Expr { kind, span });
        ExprId(exprs.len() as u32 - 1)
    }

    /// Where an expression stands.
    pub fn span_of(&self, id: ExprId) -> Span {
        self.exprs.borrow()[id.0 as usize].span
    }

    /// Whether an expression is a name with a delay.
    pub fn is_delayed(&self, id: ExprId) -> bool {
        matches!(self.exprs.borrow()[id.0 as usize].kind, ExprKind::Path { delay, .. } if delay != 0)
    }

    /// Keeps a comment once, however often the text around it is looked at.
    pub fn keep_comment(&self, span: Span) {
        let mut comments = self.comments.borrow_mut();
        if comments.last().is_none_or(|last| last.start < span.start) {
            comments.push(span);
        }
    }

    /// Adds a message and lets the parser go on.
    pub fn report(&self, diagnostic: Diagnostic) {
        let mut all = self.diagnostics.borrow_mut();
        if all.0.len() < MAX_MESSAGES {
            all.push(diagnostic);
        }
    }

    /// Whether so many messages were given that going on is pointless.
    pub fn is_hopeless(&self) -> bool {
        self.diagnostics.borrow().0.len() >= MAX_MESSAGES
    }

    /// Adds the message of a failure, and returns the place where it happened.
    pub fn report_fault(&self, error: nom::Err<Fault<'a>>) -> usize {
        let diagnostic = match error {
            nom::Err::Incomplete(_) => return self.source.len(),
            nom::Err::Error(Fault::Told(told)) | nom::Err::Failure(Fault::Told(told)) => *told,
            nom::Err::Error(Fault::Expected { at, what }) | nom::Err::Failure(Fault::Expected { at, what }) => {
                traps::unexpected(self, at, what)
            }
        };
        let place = diagnostic
            .labels
            .first()
            .map_or(self.source.len(), |l| l.span.start as usize);
        self.report(diagnostic);
        place
    }

    /// Runs a parser one level deeper; too deep is a failure.
    pub fn nested<T>(&self, i: &'a str, parse: impl FnOnce(&'a str) -> Parsed<'a, T>) -> Parsed<'a, T> {
        let depth = self.depth.get();
        if depth >= MAX_NESTING {
            let message = format!("this is nested more than {MAX_NESTING} levels deep");
            let told = Diagnostic::new(Code::TooDeep, message, self.span(i, extent(i)))
                .hint("give a part of it a name, in an equation of its own");
            return Err(nom::Err::Failure(Fault::Told(Box::new(told))));
        }
        self.depth.set(depth + 1);
        let result = parse(i);
        self.depth.set(depth);
        result
    }
}
