//! Expressions: from the comparison down to the operand. Chains of one operator become one flat node.
//!
//! Every choice is made by looking at the next token or two, never by trying an alternative to its end, so parsing takes
//! time linear in the text whatever the nesting.

use super::ast::{Arg, ArgValue, CompareOp, ExprId, ExprKind, Ident, Prefix};
use super::parser::Parser;
use super::token::{Fault, Parsed, continues_name, expected, number_text, starts_digit, starts_name, word};
use super::traps;
use crate::diagnostics::{Code, Diagnostic, Span};
use nom::Parser as _;
use nom::branch::alt;
use nom::combinator::{cut, opt};
use nom::multi::many0;
use nom::sequence::preceded;

/// How many segments a path may have.
const MAX_PATH: usize = 16;

/// A term or factor of a chain, and whether it is subtracted or divided by.
type Link = (bool, ExprId);

impl<'a> Parser<'a> {
    /// An expression.
    pub(super) fn expr(&self, i: &'a str) -> Parsed<'a, ExprId> {
        let (i, left) = self.sum(i)?;
        let (i, op) = opt(|i| self.compare_op(i)).parse(i)?;
        let Some(op) = op else { return Ok((i, left)) };
        let (i, right) = self.operand_of_comparison(i)?;
        let span = self.span_of(left).to(self.span_of(right));
        let compare = self.alloc(ExprKind::Compare(op, left, right), span);
        Ok((traps::chained_comparison(self, i)?, compare))
    }

    /// What stands on one side of a comparison.
    pub(super) fn operand_of_comparison(&self, i: &'a str) -> Parsed<'a, ExprId> {
        cut(|i| self.sum(i)).parse(i)
    }

    /// A comparison sign. A lone `=` here can only be meant as `==`.
    pub(super) fn compare_op(&self, i: &'a str) -> Parsed<'a, CompareOp> {
        let signs = [
            ("==", CompareOp::Eq),
            ("!=", CompareOp::Ne),
            ("<=", CompareOp::Le),
            (">=", CompareOp::Ge),
            ("<", CompareOp::Lt),
            (">", CompareOp::Gt),
        ];
        let found = signs.into_iter().find(|(sign, _)| i.starts_with(sign));
        match found {
            _ if i.starts_with("<-") => expected(i, "an operator"),
            Some((sign, op)) => Ok((self.token(i, sign.len()).0, op)),
            None if i.starts_with('=') => traps::assign_for_equal(self, i),
            None => expected(i, "an operator"),
        }
    }

    /// `a + b - c`.
    fn sum(&self, i: &'a str) -> Parsed<'a, ExprId> {
        let (i, first) = self.product(i)?;
        let plus = self.symbol("+").map(|_| false);
        let minus = self.symbol("-").map(|_| true);
        let (i, rest) = many0((alt((plus, minus)), cut(|i| self.product(i)))).parse(i)?;
        Ok((i, self.chain(first, rest, ExprKind::Sum)))
    }

    /// `a * b / c`.
    fn product(&self, i: &'a str) -> Parsed<'a, ExprId> {
        let (i, first) = self.unary(i)?;
        let times = self.symbol("*").map(|_| false);
        let over = self.symbol("/").map(|_| true);
        let foreign = |i| traps::foreign_operator(self, i);
        let (i, rest) = many0((alt((times, over, foreign)), cut(|i| self.unary(i)))).parse(i)?;
        Ok((i, self.chain(first, rest, ExprKind::Product)))
    }

    /// A flat node of all links, or the first alone.
    fn chain(&self, first: ExprId, rest: Vec<Link>, kind: fn(Vec<Link>) -> ExprKind) -> ExprId {
        let Some(&(_, last)) = rest.last() else { return first };
        let span = self.span_of(first).to(self.span_of(last));
        let mut links = vec![(false, first)];
        links.extend(rest);
        self.alloc(kind(links), span)
    }

    /// `--x`: the signs are counted, not nested.
    fn unary(&self, i: &'a str) -> Parsed<'a, ExprId> {
        let (i, count, first) = self.minuses(i);
        let (i, operand) = self.matmul(i)?;
        Ok((i, self.negate(operand, count, first)))
    }

    fn negate(&self, operand: ExprId, count: u32, first: Option<Span>) -> ExprId {
        match first {
            Some(first) => self.alloc(ExprKind::Neg(count, operand), first.to(self.span_of(operand))),
            None => operand,
        }
    }

    /// `A @ B @ -c`.
    fn matmul(&self, i: &'a str) -> Parsed<'a, ExprId> {
        let (i, first) = self.power(i)?;
        let (i, rest) = many0((self.symbol("@"), cut(|i| self.signed_power(i))).map(|(_, e)| e)).parse(i)?;
        let Some(&last) = rest.last() else {
            return Ok((i, first));
        };
        let span = self.span_of(first).to(self.span_of(last));
        let mut factors = vec![first];
        factors.extend(rest);
        Ok((i, self.alloc(ExprKind::MatMul(factors), span)))
    }

    /// A power, or the negation of one.
    fn signed_power(&self, i: &'a str) -> Parsed<'a, ExprId> {
        let (i, minus) = opt(self.symbol("-")).parse(i)?;
        let (i, operand) = self.power(i)?;
        Ok((i, self.negate(operand, 1, minus)))
    }

    /// `a ^ b ^ c`, right to left.
    fn power(&self, i: &'a str) -> Parsed<'a, ExprId> {
        let (i, base) = self.postfix(i)?;
        let sign = alt((self.symbol("^").map(|_| ()), |i| traps::double_star(self, i)));
        let (i, sign) = opt(sign).parse(i)?;
        if sign.is_none() {
            return Ok((i, base));
        }
        let (i, exponent) = self.nested(i, |i| cut(|i| self.signed_power(i)).parse(i))?;
        let span = self.span_of(base).to(self.span_of(exponent));
        Ok((i, self.alloc(ExprKind::Power(base, exponent), span)))
    }

    /// An operand, and whatever foreign syntax hangs on it.
    fn postfix(&self, i: &'a str) -> Parsed<'a, ExprId> {
        let (rest, operand) = self.operand(i)?;
        Ok((traps::after_operand(self, rest, operand)?, operand))
    }

    fn operand(&self, i: &'a str) -> Parsed<'a, ExprId> {
        match i.chars().next() {
            Some(c) if c.is_ascii_digit() => Ok(self.number(i)),
            Some('.') if starts_digit(&i[1..]) => Ok(self.number(i)),
            Some('(') => self.paren(i),
            Some(c) if starts_name(c) => self.named(i),
            _ => expected(i, "an expression"),
        }
    }

    /// A number; the source's own digits stay in its span.
    fn number(&self, i: &'a str) -> (&'a str, ExprId) {
        let text = number_text(i).unwrap_or_default();
        let after = &i[text.len()..];
        let malformed = after.starts_with(|c: char| continues_name(c) || c == '.');
        let value = text.parse().unwrap_or(f64::INFINITY);
        if malformed || f64::is_infinite(value) {
            return traps::malformed_number(self, i, text);
        }
        let (rest, span) = self.token(i, text.len());
        (rest, self.alloc(ExprKind::Number(value), span))
    }

    fn paren(&self, i: &'a str) -> Parsed<'a, ExprId> {
        let (i, open) = self.symbol("(")(i)?;
        let (i, inner) = self.nested(i, |i| cut(|i| self.expr(i)).parse(i))?;
        let (i, close) = self.close(i, ")", open)?;
        Ok((i, self.alloc(ExprKind::Paren(inner), open.to(close))))
    }

    /// The closing bracket; its absence points at the opening one too.
    pub(super) fn close(&self, i: &'a str, bracket: &'static str, open: Span) -> Parsed<'a, Span> {
        self.symbol(bracket)(i).map_err(|_: nom::Err<_>| {
            let mut told = traps::unexpected(self, i, bracket);
            if told.code == Code::UnexpectedToken {
                told = told.also(open, "opened here");
            }
            nom::Err::Failure(Fault::Told(Box::new(told)))
        })
    }

    /// What starts with a word: a call, a use of a cell, a path, a delayed read.
    fn named(&self, i: &'a str) -> Parsed<'a, ExprId> {
        if matches!(word(i), "backward" | "stack") {
            return self.cell_use(i);
        }
        let Ok((after, name)) = self.ident(i) else {
            return expected(i, "an expression");
        };
        if after.starts_with('(') {
            self.call(after, Vec::new(), name.span, name)
        } else {
            self.path(after, name)
        }
    }

    /// `backward stack 3 lstm(...)`.
    fn cell_use(&self, i: &'a str) -> Parsed<'a, ExprId> {
        let start = self.span(i, 0);
        let backward = self.keyword("backward").map(|_| Prefix::Backward);
        let stack = (self.keyword("stack"), cut(|i| self.count(i))).map(|(_, n)| Prefix::Stack(n));
        let (i, prefixes) = many0(alt((backward, stack))).parse(i)?;
        let (i, callee) = cut(|i| self.ident(i)).parse(i)?;
        self.call(i, prefixes, start, callee)
    }

    fn count(&self, i: &'a str) -> Parsed<'a, u32> {
        let (rest, digits) = self.digits(i).or_else(|_| expected(i, "a number of layers"))?;
        match digits.name.parse() {
            Ok(count) => Ok((rest, count)),
            Err(_) => expected(i, "a number of layers"),
        }
    }

    /// The arguments of a call; `start` is where the whole expression begins.
    fn call(&self, i: &'a str, prefixes: Vec<Prefix>, start: Span, callee: Ident) -> Parsed<'a, ExprId> {
        let (i, open) = cut(self.symbol("(")).parse(i)?;
        let (i, args) = self.nested(i, |i| cut(|i| self.enclosed(i, ')', |i| self.arg(i))).parse(i))?;
        let (i, close) = self.close(i, ")", open)?;
        Ok((
            i,
            self.alloc(ExprKind::Call { prefixes, callee, args }, start.to(close)),
        ))
    }

    /// An argument. Any word may stand before its `=`: a keyword names no argument of anything, which is better said by
    /// those who know the arguments (`sum(x, dim=N)`).
    fn arg(&self, i: &'a str) -> Parsed<'a, Arg> {
        let (rest, name) = opt((|i| self.any_word(i), |i| self.assign(i))).parse(i)?;
        let name = name.map(|(name, _)| name);
        let (rest, value) = match &name {
            Some(_) => cut(|i| self.arg_value(i)).parse(rest)?,
            None => self.arg_value(rest)?,
        };
        let last = match &value {
            ArgValue::Expr(e) => self.span_of(*e),
            ArgValue::Shape(shape) => shape.span,
            ArgValue::Str(text) => text.span,
        };
        let span = name.as_ref().map_or(last, |n| n.span.to(last));
        Ok((rest, Arg { name, value, span }))
    }

    fn arg_value(&self, i: &'a str) -> Parsed<'a, ArgValue> {
        match i.chars().next() {
            Some('[') => self.shape(i).map(|(i, shape)| (i, ArgValue::Shape(shape))),
            Some('"') => self.string(i).map(|(i, text)| (i, ArgValue::Str(text))),
            _ => self.expr(i).map(|(i, e)| (i, ArgValue::Expr(e))),
        }
    }

    /// `low.h[t-1]`, after its first segment.
    fn path(&self, i: &'a str, first: Ident) -> Parsed<'a, ExprId> {
        let (i, (segments, mut span)) = self.segments(i, first)?;
        let (i, delay) = if i.starts_with('[') {
            let (i, delay, bracket) = self.delay(i)?;
            span = span.to(bracket);
            (i, delay)
        } else {
            (i, 0)
        };
        Ok((i, self.alloc(ExprKind::Path { segments, delay }, span)))
    }

    /// The dot of a path, not the one of `x .* y`.
    fn dot(&self, i: &'a str) -> Parsed<'a, Span> {
        if i.starts_with(".") && !i[1..].starts_with(traps::DOTTED) {
            return Ok(self.token(i, 1));
        }
        expected(i, ".")
    }

    /// The segments of a path, after its first.
    pub(super) fn segments(&self, i: &'a str, first: Ident) -> Parsed<'a, (Vec<Ident>, Span)> {
        let name = alt((|i| self.digits(i), |i| self.ident(i)));
        let (i, more) = many0(preceded(|i| self.dot(i), cut(name))).parse(i)?;
        let span = more.last().map_or(first.span, |last| first.span.to(last.span));
        let mut segments = vec![first];
        segments.extend(more);
        if segments.len() > MAX_PATH {
            let message = format!("a path has at most {MAX_PATH} parts, this one has {}", segments.len());
            self.report(Diagnostic::new(Code::FileTooLarge, message, span));
        }
        Ok((i, (segments, span)))
    }

    /// `[t-3]`: the frames back, negative for frames ahead; anything else in brackets is reported and skipped.
    fn delay(&self, i: &'a str) -> Result<(&'a str, i32, Span), nom::Err<Fault<'a>>> {
        match self.written_delay(i) {
            Ok((rest, (delay, span))) => Ok((rest, delay, span)),
            Err(_) => traps::subscript(self, i),
        }
    }

    fn written_delay(&self, i: &'a str) -> Parsed<'a, (i32, Span)> {
        let back = self.symbol("-").map(|_| 1);
        let ahead = self.symbol("+").map(|_| -1);
        let parts = (
            self.symbol("["),
            self.keyword("t"),
            alt((back, ahead)),
            |i| self.digits(i),
            self.symbol("]"),
        );
        let (rest, (open, _, sign, digits, close)) = { parts }.parse(i)?;
        match digits.name.parse::<i32>() {
            Ok(frames) if frames > 0 => Ok((rest, (sign * frames, open.to(close)))),
            _ => expected(i, "a delay"),
        }
    }
}
