//! Where to go on after something did not parse: the next item, the body of a cell, the next cell.
//!
//! A new item is known by the start of a line: a keyword, or names followed by `=` or `:`. Inside an open bracket the
//! latter may be an argument, so it must also be indented no more than the item that failed.

use super::parser::Parser;
use super::token::{continues_name, starts_name, word};

/// The start of a line in the text that is skipped, or a brace.
enum Stop<'s> {
    /// The first token of a line, its column, and how many round or square brackets are open there.
    Line { text: &'s str, column: usize, open: i32 },
    /// `{`.
    Open(&'s str),
    /// `}`.
    Close(&'s str),
}

/// The next item of a block, its closing brace, or the next top-level item. `failed` is the item at fault, `place` is
/// where it could not be read on.
pub(super) fn to_item<'a>(p: &Parser<'a>, failed: &'a str, place: usize) -> &'a str {
    let start = p.position(failed);
    let place = place.max(start);
    let indent = column(p.source, start);
    let mut braces = 0;
    for stop in stops(p.source, start) {
        match stop {
            Stop::Line { text, column, open } if p.position(text) >= place && p.position(text) > start => {
                let outside = open <= 0 || column <= indent;
                if is_declaration(text) || is_top(text) || (outside && is_equation(text)) {
                    return text;
                }
            }
            Stop::Open(text) if p.position(text) >= place => braces += 1,
            Stop::Close(text) if p.position(text) >= place => {
                if braces == 0 {
                    return text;
                }
                braces -= 1;
            }
            _ => {}
        }
    }
    ""
}

/// The opening brace of a block whose head is at fault.
pub(super) fn to_body<'a>(p: &Parser<'a>, failed: &'a str, place: usize) -> Option<&'a str> {
    let start = p.position(failed);
    for stop in stops(p.source, start) {
        match stop {
            Stop::Line { text, .. } if p.position(text) > start && is_top(text) => return None,
            Stop::Open(text) if p.position(text) >= place => return Some(text),
            _ => {}
        }
    }
    None
}

/// The next top-level item, which starts a line.
pub(super) fn to_top<'a>(p: &Parser<'a>, failed: &'a str, place: usize) -> &'a str {
    let start = p.position(failed);
    let mut lines = stops(p.source, start).filter_map(|stop| match stop {
        Stop::Line { text, .. } => Some(text),
        _ => None,
    });
    lines
        .find(|text| p.position(text) >= place && p.position(text) > start && is_top(text))
        .unwrap_or("")
}

/// Whether a place is the first of its line but for blanks.
pub(super) fn starts_line(source: &str, place: usize) -> bool {
    let before = source[..place].trim_end_matches([' ', '\t']);
    before.is_empty() || before.ends_with('\n')
}

fn column(source: &str, place: usize) -> usize {
    place - source[..place].rfind('\n').map_or(0, |n| n + 1)
}

fn is_declaration(text: &str) -> bool {
    matches!(
        word(text),
        "dim" | "static" | "input" | "param" | "state" | "output" | "return"
    )
}

fn is_top(text: &str) -> bool {
    matches!(word(text), "cell" | "fn" | "use")
}

/// Names with commas between, then `=` or `:`, all on one line.
fn is_equation(text: &str) -> bool {
    let mut rest = text;
    loop {
        if !rest.starts_with(starts_name) {
            return false;
        }
        rest = rest.trim_start_matches(continues_name).trim_start_matches([' ', '\t']);
        match rest.strip_prefix(',') {
            Some(after) => rest = after.trim_start_matches([' ', '\t']),
            None => break,
        }
    }
    rest.starts_with(':') || (rest.starts_with('=') && !rest.starts_with("=="))
}

/// Every line start and brace from `start` on, comments and strings left out.
fn stops(source: &str, start: usize) -> impl Iterator<Item = Stop<'_>> {
    let mut chars = source[start..].char_indices().peekable();
    let (mut fresh, mut open, mut line) = (starts_line(source, start), 0, start - column(source, start));
    std::iter::from_fn(move || {
        while let Some(&(offset, c)) = chars.peek() {
            let here = start + offset;
            if fresh && !c.is_ascii_whitespace() && c != '#' && c != '{' && c != '}' {
                fresh = false;
                return Some(Stop::Line {
                    text: &source[here..],
                    column: here - line,
                    open,
                });
            }
            chars.next();
            match c {
                '\n' => (fresh, line) = (true, here + 1),
                '#' => while chars.next_if(|&(_, c)| c != '\n').is_some() {},
                '"' => {
                    while chars.next_if(|&(_, c)| c != '"' && c != '\n').is_some() {}
                    chars.next_if(|&(_, c)| c == '"');
                }
                '(' | '[' => open += 1,
                ')' | ']' => open -= 1,
                '{' => return Some(Stop::Open(&source[here..])),
                '}' => return Some(Stop::Close(&source[here..])),
                _ => {}
            }
        }
        None
    })
}
