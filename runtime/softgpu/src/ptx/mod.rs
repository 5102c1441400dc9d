//! The text of a module and its syntax tree: names are still names, opcodes still words.
//!
//! [`parse`] takes what NVRTC 12.3 and later emit, and the PTX of inline assembly within it. Whatever the bytes, it returns a
//! tree or a [`ParseError`] with the line; it never panics, and takes time in proportion to the text.

pub mod ast;
mod lex;
mod literal;
mod parse;

#[cfg(test)]
mod tests;

pub use parse::parse;

/// Why a text is no module.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {message}")]
pub struct ParseError {
    /// The line, from 1.
    pub line: u32,
    /// What is wrong there.
    pub message: String,
}
