//! Tokens: white space and comments, words, numbers, symbols.
//!
//! A parser is handed the text from the start of a token to the end of the file, and leaves it at the start of the next
//! token: white space and comments are eaten behind each token, never in front. Spans come from tokens, so the end of a
//! construct is the end of its last token.

use super::ast::{Ident, Name};
use super::parser::Parser;
use crate::diagnostics::{Diagnostic, Span};
use nom::bytes::complete::{tag, take_till, take_while};
use nom::character::complete::{char, digit1, one_of, satisfy};
use nom::combinator::{cut, opt, recognize};
use nom::error::{ErrorKind, ParseError};
use nom::multi::many0;
use nom::sequence::preceded;
use nom::{IResult, Parser as _};

/// What reserved words there are.
pub(super) const KEYWORDS: [&str; 12] = [
    "cell", "fn", "use", "dim", "static", "input", "param", "state", "output", "return", "backward", "stack",
];

/// Why a parser gave up.
#[derive(Debug)]
pub(super) enum Fault<'a> {
    /// The text at `at` does not start with `what`.
    Expected {
        /// The rest of the file.
        at: &'a str,
        /// A symbol, or a noun phrase such as "a name".
        what: &'static str,
    },
    /// The message is already made.
    Told(Box<Diagnostic>),
}

impl<'a> ParseError<&'a str> for Fault<'a> {
    fn from_error_kind(at: &'a str, _: ErrorKind) -> Self {
        Fault::Expected {
            at,
            what: "something else",
        }
    }
    fn append(_: &'a str, _: ErrorKind, other: Self) -> Self {
        other
    }
}

/// What every parser returns.
pub(super) type Parsed<'a, T> = IResult<&'a str, T, Fault<'a>>;

/// A recoverable failure: another alternative may be tried.
pub(super) fn expected<'a, T>(at: &'a str, what: &'static str) -> Parsed<'a, T> {
    Err(nom::Err::Error(Fault::Expected { at, what }))
}

/// Whether a name may start with it.
pub(super) fn starts_name(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_'
}

/// Whether a name may go on with it.
pub(super) fn continues_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Whether the text starts with a decimal digit.
pub(super) fn starts_digit(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit())
}

/// The prefix of the text that a parser accepts.
fn prefix<'a, P: nom::Parser<&'a str, Error = ()>>(text: &'a str, parser: P) -> Option<&'a str> {
    recognize(parser).parse(text).ok().map(|(_, accepted)| accepted)
}

/// The word at the start of the text, keyword or not; empty if there is none.
pub(super) fn word(text: &str) -> &str {
    prefix(text, (satisfy(starts_name), take_while(continues_name))).unwrap_or("")
}

/// Whether the word is reserved.
pub(super) fn is_keyword(word: &str) -> bool {
    KEYWORDS.contains(&word)
}

/// The digits of a number at the start of the text: `12`, `1.5`, `2e-3`. What follows is the caller's concern.
pub(super) fn number_text(text: &str) -> Option<&str> {
    let exponent = (one_of("eE"), opt(one_of("+-")), digit1);
    prefix(text, (digit1, opt((char('.'), digit1)), opt(exponent)))
}

/// The comment at the start of the text.
fn comment(text: &str) -> Option<&str> {
    prefix(text, (char('#'), take_till(|c| c == '\n')))
}

fn trim(text: &str) -> &str {
    text.trim_start_matches(|c: char| c.is_ascii_whitespace())
}

impl<'a> Parser<'a> {
    /// The place of the rest of the file.
    pub(super) fn position(&self, rest: &str) -> usize {
        self.source.len() - rest.len()
    }

    /// The span of a prefix of `rest` of `length` bytes.
    pub(super) fn span(&self, rest: &str, length: usize) -> Span {
        let start = self.position(rest);
        Span::new(start, start + length)
    }

    /// Eats white space and comments, and keeps the comments.
    pub(super) fn space(&self, rest: &'a str) -> &'a str {
        let mut rest = trim(rest);
        while let Some(text) = comment(rest) {
            self.keep_comment(self.span(rest, text.trim_end().len()));
            rest = trim(&rest[text.len()..]);
        }
        rest
    }

    /// The token of `length` bytes at the start of the text.
    pub(super) fn token(&self, rest: &'a str, length: usize) -> (&'a str, Span) {
        let span = self.span(rest, length);
        self.last_token.set(span);
        (self.space(&rest[length..]), span)
    }

    /// From `start` to the end of the last token.
    pub(super) fn since(&self, start: Span) -> Span {
        start.to(self.last_token.get())
    }

    /// A symbol.
    pub(super) fn symbol(&self, symbol: &'static str) -> impl Fn(&'a str) -> Parsed<'a, Span> + use<'a, '_> {
        move |i| match tag::<_, _, ()>(symbol).parse(i) {
            Ok((_, text)) => Ok(self.token(i, text.len())),
            Err(_) => expected(i, symbol),
        }
    }

    /// A comma.
    pub(super) fn comma(&self, i: &'a str) -> Parsed<'a, Span> {
        self.symbol(",")(i)
    }

    /// One or more of something, with commas between; after a comma there must be another.
    pub(super) fn list<T>(&self, i: &'a str, parse: impl Fn(&'a str) -> Parsed<'a, T>) -> Parsed<'a, Vec<T>> {
        let (i, first) = parse(i)?;
        let (i, rest) = many0(preceded(|i| self.comma(i), cut(&parse))).parse(i)?;
        let mut all = vec![first];
        all.extend(rest);
        Ok((i, all))
    }

    /// What stands between brackets: a list, or nothing before the closing bracket `close`, which is left.
    pub(super) fn enclosed<T>(
        &self,
        i: &'a str,
        close: char,
        parse: impl Fn(&'a str) -> Parsed<'a, T>,
    ) -> Parsed<'a, Vec<T>> {
        if i.starts_with(close) {
            Ok((i, Vec::new()))
        } else {
            self.list(i, parse)
        }
    }

    /// `=`, but not the start of `==`.
    pub(super) fn assign(&self, i: &'a str) -> Parsed<'a, Span> {
        match i.strip_prefix('=') {
            Some(after) if !after.starts_with('=') => Ok(self.token(i, 1)),
            _ => expected(i, "="),
        }
    }

    /// The given keyword (or other whole word).
    pub(super) fn keyword(&self, keyword: &'static str) -> impl Fn(&'a str) -> Parsed<'a, Span> + use<'a, '_> {
        move |i| {
            if word(i) == keyword {
                Ok(self.token(i, keyword.len()))
            } else {
                expected(i, "a keyword")
            }
        }
    }

    /// A name that is not a keyword.
    pub(super) fn ident(&self, i: &'a str) -> Parsed<'a, Ident> {
        if is_keyword(word(i)) {
            expected(i, "a name")
        } else {
            self.any_word(i)
        }
    }

    /// A name or a keyword.
    pub(super) fn any_word(&self, i: &'a str) -> Parsed<'a, Ident> {
        let text = word(i);
        if text.is_empty() {
            return expected(i, "a name");
        }
        let (rest, span) = self.token(i, text.len());
        Ok((
            rest,
            Ident {
                name: self.intern(text),
                span,
            },
        ))
    }

    /// Decimal digits as a name, as they stand in a path: `l.0.W`.
    pub(super) fn digits(&self, i: &'a str) -> Parsed<'a, Ident> {
        match digit1::<_, ()>(i) {
            Ok((_, text)) => {
                let (rest, span) = self.token(i, text.len());
                Ok((
                    rest,
                    Ident {
                        name: self.intern(text),
                        span,
                    },
                ))
            }
            Err(_) => expected(i, "digits"),
        }
    }

    /// A string; its span has the quotes, its name has not.
    pub(super) fn string(&self, i: &'a str) -> Parsed<'a, Ident> {
        let body = take_while(|c| c != '"' && c != '\n');
        match (char::<_, ()>('"'), body, char('"')).parse(i) {
            Ok((_, (_, text, _))) => {
                let (rest, span) = self.token(i, text.len() + 2);
                Ok((
                    rest,
                    Ident {
                        name: Name::from(text),
                        span,
                    },
                ))
            }
            Err(_) => expected(i, "a string"),
        }
    }

    /// Some `-` in a row: how many, and where the first stands.
    pub(super) fn minuses(&self, mut i: &'a str) -> (&'a str, u32, Option<Span>) {
        let (mut count, mut first) = (0, None);
        while i.starts_with('-') {
            let (rest, span) = self.token(i, 1);
            first = first.or(Some(span));
            count += 1;
            i = rest;
        }
        (i, count, first)
    }
}

/// Marks of two characters that a message names as one.
const LONG_MARKS: [&str; 15] = [
    "**", "==", "!=", "<=", ">=", "->", "<-", ":=", "+=", "-=", "*=", "/=", "&&", "||", "//",
];

/// How a message names what stands at the start of the text.
pub(super) fn describe(text: &str) -> String {
    let Some(first) = text.chars().next() else {
        return "the end of the file".to_string();
    };
    match word(text) {
        "" if first == '"' => "a string".to_string(),
        "" if first.is_ascii_digit() => format!("`{}`", number_text(text).unwrap_or_default()),
        "" => match LONG_MARKS.into_iter().find(|mark| text.starts_with(mark)) {
            Some(mark) => format!("`{mark}`"),
            None => format!("`{}`", first.escape_debug()),
        },
        word if is_keyword(word) => format!("the keyword `{word}`"),
        word => format!("`{word}`"),
    }
}

/// How many bytes of it a message points at; 0 at the end of the file.
pub(super) fn extent(text: &str) -> usize {
    let word = text.find(|c| !continues_name(c)).unwrap_or(text.len());
    word.max(text.chars().next().map_or(0, char::len_utf8))
}
