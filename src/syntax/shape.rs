//! Shapes and sizes: `[4*H, I]`, `N*(E+1)`.

use super::ast::{Shape, Size, SizeKind};
use super::parser::Parser;
use super::token::{Parsed, continues_name, expected, starts_digit, word};
use super::traps;
use crate::diagnostics::{Code, Diagnostic};
use nom::Parser as _;
use nom::branch::alt;
use nom::combinator::cut;
use nom::multi::many0;

impl<'a> Parser<'a> {
    /// `[a, b]`; `[]` is a scalar.
    pub(super) fn shape(&self, i: &'a str) -> Parsed<'a, Shape> {
        let (i, open) = self.symbol("[")(i).or_else(|_| expected(i, "a shape such as `[H]`"))?;
        let (i, axes) = cut(|i| self.enclosed(i, ']', |i| self.size(i))).parse(i)?;
        let (i, close) = self.close(i, "]", open)?;
        Ok((
            i,
            Shape {
                axes,
                span: open.to(close),
            },
        ))
    }

    /// `H + 2*N - 1`.
    pub(super) fn size(&self, i: &'a str) -> Parsed<'a, Size> {
        let (i, first) = self.size_product(i)?;
        let plus = self.symbol("+").map(|_| false);
        let minus = self.symbol("-").map(|_| true);
        let (i, rest) = many0((alt((plus, minus)), cut(|i| self.size_product(i)))).parse(i)?;
        let Some((_, last)) = rest.last() else {
            return Ok((i, first));
        };
        let span = first.span.to(last.span);
        let mut terms = vec![(false, first)];
        terms.extend(rest);
        Ok((
            i,
            Size {
                kind: SizeKind::Sum(terms),
                span,
            },
        ))
    }

    fn size_product(&self, i: &'a str) -> Parsed<'a, Size> {
        let (i, first) = self.size_factor(i)?;
        let (i, rest) = many0((self.symbol("*"), cut(|i| self.size_factor(i))).map(|(_, f)| f)).parse(i)?;
        let Some(last) = rest.last() else { return Ok((i, first)) };
        let span = first.span.to(last.span);
        let mut factors = vec![first];
        factors.extend(rest);
        Ok((
            i,
            Size {
                kind: SizeKind::Product(factors),
                span,
            },
        ))
    }

    fn size_factor(&self, i: &'a str) -> Parsed<'a, Size> {
        if starts_digit(i) {
            return self.whole_number(i);
        }
        if i.starts_with('(') {
            let (i, open) = self.symbol("(")(i)?;
            let (i, inner) = self.nested(i, |i| cut(|i| self.size(i)).parse(i))?;
            let (i, close) = self.close(i, ")", open)?;
            return Ok((
                i,
                Size {
                    span: open.to(close),
                    ..inner
                },
            ));
        }
        match self.ident(i) {
            Ok((i, name)) => Ok((
                i,
                Size {
                    kind: SizeKind::Dim(name.name),
                    span: name.span,
                },
            )),
            Err(_) if word(i).is_empty() => expected(i, "a size"),
            Err(_) => expected(i, "a name"),
        }
    }

    /// A literal size.
    fn whole_number(&self, i: &'a str) -> Parsed<'a, Size> {
        let (rest, digits) = self.digits(i)?;
        let after = &i[digits.name.len()..];
        if after.starts_with(|c: char| continues_name(c) || c == '.') {
            let (rest, span) = traps::malformed_size(self, i);
            return Ok((
                rest,
                Size {
                    kind: SizeKind::Int(1),
                    span,
                },
            ));
        }
        let value = digits.name.parse().unwrap_or_else(|_| {
            self.report(Diagnostic::new(
                Code::SizeOverflow,
                "this number does not fit in 64 bits",
                digits.span,
            ));
            1
        });
        Ok((
            rest,
            Size {
                kind: SizeKind::Int(value),
                span: digits.span,
            },
        ))
    }
}
