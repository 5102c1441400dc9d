//! What the compiler tells its user: one type, built by every stage, rendered elsewhere.
//!
//! A [`Diagnostic`] has a stable [`Code`], a message in the user's terms, every span involved, and hints where there
//! are any. Stages push into a [`Diagnostics`] and go on, so that one run reports many errors.

mod codes;
pub mod render;

pub use codes::Code;

use serde::Serialize;

/// A range of bytes in the source text, end exclusive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Span {
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// The span from `start` to `end`.
    pub fn new(start: usize, end: usize) -> Span {
        Span {
            start: start as u32,
            end: end as u32,
        }
    }

    /// The smallest span that holds both.
    pub fn to(self, other: Span) -> Span {
        Span {
            start: self.start.min(other.start),
            end: self.end.max(other.end),
        }
    }

    /// As a range of bytes, for slicing the source.
    pub fn range(self) -> std::ops::Range<usize> {
        self.start as usize..self.end as usize
    }
}

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The cell cannot be compiled.
    Error,
    /// The cell compiles; something in it is probably not meant.
    Warning,
}

/// A place in the source and what it has to do with the message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Label {
    /// Where.
    pub span: Span,
    /// What is there; may be empty.
    pub text: String,
    /// The place at fault, as opposed to one that explains it.
    pub primary: bool,
}

/// One message to the user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Diagnostic {
    /// Stable identity; `rnnc explain` prints a page on it.
    pub code: Code,
    /// Error or warning.
    pub severity: Severity,
    /// One sentence, without a full stop, in the terms of the language.
    pub message: String,
    /// Every span involved, the primary one first.
    pub labels: Vec<Label>,
    /// What to do about it.
    pub hints: Vec<String>,
}

impl Diagnostic {
    /// An error or warning (the code says which) at `span`.
    pub fn new(code: Code, message: impl Into<String>, span: Span) -> Diagnostic {
        Diagnostic {
            code,
            severity: code.severity(),
            message: message.into(),
            labels: vec![Label {
                span,
                text: String::new(),
                primary: true,
            }],
            hints: Vec::new(),
        }
    }

    /// Sets the text under the primary span.
    #[must_use]
    pub fn label(mut self, text: impl Into<String>) -> Diagnostic {
        if let Some(first) = self.labels.first_mut() {
            first.text = text.into();
        }
        self
    }

    /// Adds a place that explains the message.
    #[must_use]
    pub fn also(mut self, span: Span, text: impl Into<String>) -> Diagnostic {
        self.labels.push(Label {
            span,
            text: text.into(),
            primary: false,
        });
        self
    }

    /// Adds a hint: what the user may do.
    #[must_use]
    pub fn hint(mut self, text: impl Into<String>) -> Diagnostic {
        self.hints.push(text.into());
        self
    }
}

/// What `rnnc explain` prints on a code, in Markdown.
pub fn page(code: Code) -> &'static str {
    code.page()
}

/// A list of messages in the order in which they were found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Diagnostics(pub Vec<Diagnostic>);

impl Diagnostics {
    /// Adds one.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        self.0.push(diagnostic);
    }

    /// Whether any of them is an error.
    pub fn has_errors(&self) -> bool {
        self.0.iter().any(|d| d.severity == Severity::Error)
    }

    /// Orders by place, then by code, so that the same file always prints the same.
    pub fn sort(&mut self) {
        self.0.sort_by_key(|d| (d.labels.first().map(|l| l.span), d.code));
    }
}
