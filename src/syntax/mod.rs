//! Text to syntax tree and back: the parser, the tree, the canonical form. Knows nothing of the graph.

pub mod ast;
mod expr;
mod format;
mod items;
mod parser;
mod recover;
mod shape;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_faulty;
mod token;
mod traps;

use crate::diagnostics::{Code, Diagnostic, Diagnostics, Span};

/// How large a file may be, in bytes.
pub const MAX_FILE: usize = 1 << 20;

/// Parses a file, whatever its bytes. If there are errors the tree holds what could be understood, and must not be
/// compiled.
pub fn parse(bytes: &[u8]) -> (ast::File, Diagnostics) {
    let text = match text(bytes) {
        Ok(text) => text,
        Err(diagnostic) => return (ast::File::default(), Diagnostics(vec![diagnostic])),
    };
    let (file, mut diagnostics) = parser::Parser::new(text).run();
    if file.items.is_empty() && diagnostics.0.is_empty() {
        let empty = Diagnostic::new(
            Code::EmptyFile,
            "this file holds no cell and no function",
            Span::new(0, 0),
        )
        .hint("`rnnc new NAME --from lstm` writes a cell to start from");
        diagnostics.push(empty);
    }
    diagnostics.sort();
    (file, diagnostics)
}

/// The canonical form of a file that parses: fixed layout, every comment in its place. The messages otherwise.
pub fn format(bytes: &[u8]) -> Result<String, Diagnostics> {
    let (file, diagnostics) = parse(bytes);
    match text(bytes) {
        Ok(source) if !diagnostics.has_errors() => Ok(format::format(&file, source)),
        _ => Err(diagnostics),
    }
}

/// The file as text, if it is text and not too long.
fn text(bytes: &[u8]) -> Result<&str, Diagnostic> {
    if bytes.len() > MAX_FILE {
        let message = format!("the file has {} bytes; at most {MAX_FILE} are read", bytes.len());
        return Err(Diagnostic::new(Code::FileTooLarge, message, Span::new(0, 0)));
    }
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let at = error.valid_up_to();
        let message = format!("byte {at} is not UTF-8 text");
        Diagnostic::new(Code::NotText, message, Span::new(at, at)).hint("save the file in the encoding UTF-8")
    })?;
    match text.find('\0') {
        Some(at) => Err(Diagnostic::new(
            Code::NotText,
            "the file holds a NUL byte",
            Span::new(at, at + 1),
        )),
        None => Ok(text),
    }
}
