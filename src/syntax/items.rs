//! Everything above expressions: the file, cells, functions, declarations, equations.
//!
//! An item that does not parse is reported and skipped (see `recover`); the rest of the file is parsed all the same.

use super::ast::{
    CellDef, Equation, ExprId, FnDef, FnParam, Group, Ident, InputType, Item, Shape, Size, Top, Typed, Use,
};
use super::parser::Parser;
use super::token::{Fault, Parsed, expected, is_keyword, word};
use super::{recover, traps};
use crate::diagnostics::{Code, Diagnostic, Span};
use nom::Parser as _;
use nom::combinator::{cut, opt};
use nom::sequence::preceded;

impl<'a> Parser<'a> {
    /// The whole file; what does not parse is reported.
    pub(super) fn file(&self) -> Vec<Top> {
        let mut items = Vec::new();
        let start = self.source.strip_prefix('\u{feff}').unwrap_or(self.source);
        let mut i = self.space(start);
        while !i.is_empty() && !self.is_hopeless() {
            match self.top(i) {
                Ok((rest, top)) => {
                    items.extend(top);
                    i = rest;
                }
                Err(error) => {
                    let place = self.report_fault(error);
                    i = recover::to_top(self, i, place);
                }
            }
        }
        items
    }

    /// One top-level item; none if its head was faulty and its body was parsed for its own errors.
    fn top(&self, i: &'a str) -> Parsed<'a, Option<Top>> {
        match word(i) {
            "use" => self.use_item(i).map(|(i, u)| (i, Some(Top::Use(u)))),
            "fn" => self.fn_def(i).map(|(i, f)| (i, Some(Top::Fn(f)))),
            "cell" => self.cell(i).map(|(i, c)| (i, c.map(Top::Cell))),
            _ => {
                traps::foreign_statement(self, i)?;
                expected(i, "`cell`, `fn` or `use`")
            }
        }
    }

    fn use_item(&self, i: &'a str) -> Parsed<'a, Use> {
        let (i, keyword) = self.keyword("use")(i)?;
        if i.starts_with('"') {
            let (i, target) = self.string(i)?;
            let span = keyword.to(target.span);
            return Ok((
                i,
                Use {
                    target,
                    is_file: true,
                    span,
                },
            ));
        }
        let (i, first) = self
            .ident(i)
            .or_else(|_| expected(i, "a file name in quotes or a path"))?;
        let (i, (segments, path)) = self.segments(i, first)?;
        let text: Vec<&str> = segments.iter().map(|s| &*s.name).collect();
        let target = Ident {
            name: self.intern(&text.join(".")),
            span: path,
        };
        Ok((
            i,
            Use {
                target,
                is_file: false,
                span: keyword.to(path),
            },
        ))
    }

    fn fn_def(&self, i: &'a str) -> Parsed<'a, FnDef> {
        let (i, keyword) = self.keyword("fn")(i)?;
        let (i, name) = self.ident(i)?;
        let (i, open) = self.symbol("(")(i)?;
        let (i, params) = self.enclosed(i, ')', |i| self.fn_param(i))?;
        let (i, _) = self.close(i, ")", open)?;
        if i.starts_with('{') {
            return self.fn_block(i, keyword, name, params);
        }
        let (i, _) = self.assign(i).or_else(|_| expected(i, "`=` or `{`"))?;
        let (i, value) = self.expr(i)?;
        let span = keyword.to(self.span_of(value));
        let (equations, returns) = (Vec::new(), vec![value]);
        Ok((
            i,
            FnDef {
                name,
                params,
                equations,
                returns,
                block: false,
                span,
            },
        ))
    }

    fn fn_param(&self, i: &'a str) -> Parsed<'a, FnParam> {
        let (i, name) = self.ident(i)?;
        let (i, shape) = self.annotation(i)?;
        Ok((i, FnParam { name, shape }))
    }

    /// `{ equations return a, b }`.
    fn fn_block(&self, i: &'a str, keyword: Span, name: Ident, params: Vec<FnParam>) -> Parsed<'a, FnDef> {
        let (mut i, open) = self.symbol("{")(i)?;
        let (mut equations, mut returns) = (Vec::new(), None);
        let close = loop {
            if let Ok((rest, close)) = self.symbol("}")(i) {
                i = rest;
                break close;
            }
            self.expect_open(i, open)?;
            let line = match (&returns, word(i)) {
                (None, "return") => self.return_line(i).map(|(i, values)| (i, returns = Some(values))),
                (None, word) if is_keyword(word) => {
                    let (rest, _) = self.token(i, word.len());
                    traps::keyword_as_target(self, i, rest).and_then(|()| expected(i, "an equation or `return`"))
                }
                (None, _) => self.equation(i).map(|(i, equation)| (i, equations.push(equation))),
                (Some(_), _) => expected(i, "}"),
            };
            i = self.item_or_skip(i, line);
        };
        let Some(returns) = returns else {
            let missing = Diagnostic::new(Code::UnexpectedToken, "this function has no `return`", close)
                .label("expected `return` before this")
                .also(name.span, "in this function");
            return Err(nom::Err::Failure(Fault::Told(Box::new(missing))));
        };
        Ok((
            i,
            FnDef {
                name,
                params,
                equations,
                returns,
                block: true,
                span: keyword.to(close),
            },
        ))
    }

    fn return_line(&self, i: &'a str) -> Parsed<'a, Vec<ExprId>> {
        let (i, _) = self.keyword("return")(i)?;
        self.list(i, |i| self.expr(i))
    }

    fn cell(&self, i: &'a str) -> Parsed<'a, Option<CellDef>> {
        let keyword = self.span(i, "cell".len());
        let (i, head) = match self.cell_head(i) {
            Ok((i, head)) => (i, Some(head)),
            Err(error) => {
                let place = self.report_fault(error);
                match recover::to_body(self, i, place) {
                    Some(body) => (body, None),
                    None => return Ok((recover::to_top(self, i, place), None)),
                }
            }
        };
        let (i, open) = self.symbol("{")(i)?;
        let (i, (items, close)) = self.items(i, open)?;
        let span = keyword.to(close);
        Ok((
            i,
            head.map(|(name, dims)| CellDef {
                name,
                dims,
                items,
                span,
            }),
        ))
    }

    /// `cell name(dims)`, up to the brace.
    fn cell_head(&self, i: &'a str) -> Parsed<'a, (Ident, Vec<Ident>)> {
        let (i, _) = self.keyword("cell")(i)?;
        let (i, name) = self.ident(i)?;
        let (i, open) = self.symbol("(")(i)?;
        let (i, dims) = self.enclosed(i, ')', |i| self.ident(i))?;
        let (i, _) = self.close(i, ")", open)?;
        if !i.starts_with('{') {
            return expected(i, "{");
        }
        Ok((i, (name, dims)))
    }

    /// The items of a cell and its closing brace.
    fn items(&self, mut i: &'a str, open: Span) -> Parsed<'a, (Vec<Item>, Span)> {
        let mut items = Vec::new();
        loop {
            if let Ok((rest, close)) = self.symbol("}")(i) {
                return Ok((rest, (items, close)));
            }
            self.expect_open(i, open)?;
            let item = self.item(i).map(|(i, item)| (i, items.push(item)));
            i = self.item_or_skip(i, item);
        }
    }

    /// Fails where a block cannot go on: at the end of the file, at the next top-level item, after too many errors.
    fn expect_open(&self, i: &'a str, open: Span) -> Result<(), nom::Err<Fault<'a>>> {
        if !i.is_empty() && !matches!(word(i), "cell" | "fn" | "use") && !self.is_hopeless() {
            return Ok(());
        }
        let unclosed = traps::unexpected(self, i, "}").also(open, "opened here");
        Err(nom::Err::Failure(Fault::Told(Box::new(unclosed))))
    }

    /// Where to go on after an item: behind it, or after a failure at the next one.
    fn item_or_skip(&self, i: &'a str, item: Parsed<'a, ()>) -> &'a str {
        match item {
            Ok((rest, ())) => traps::after_item(self, rest),
            Err(error) => {
                let place = self.report_fault(error);
                recover::to_item(self, i, place)
            }
        }
    }

    fn item(&self, i: &'a str) -> Parsed<'a, Item> {
        let keyword = word(i);
        if !is_keyword(keyword) {
            return self.equation(i).map(|(i, equation)| (i, Item::Equation(equation)));
        }
        let (rest, start) = self.token(i, keyword.len());
        traps::keyword_as_target(self, i, rest)?;
        match keyword {
            "dim" => self.line(rest, start, |i| self.dim(i), Item::Dim),
            "input" => self.line(rest, start, |i| self.typed(i), Item::Input),
            "static" => {
                let (rest, _) = self.keyword("input")(rest).or_else(|_| expected(rest, "`input` after `static`"))?;
                self.line(rest, start, |i| self.typed(i), Item::StaticInput)
            }
            "param" => self.line(rest, start, |i| self.group(i, true), Item::Param),
            "state" => self.line(rest, start, |i| self.state(i), Item::State),
            "output" => self.line(rest, start, |i| self.group(i, false), Item::Output),
            _ => expected(i, "a declaration, an equation or `}`"),
        }
    }

    /// The groups of a declaration, after its keyword.
    fn line<T>(
        &self,
        i: &'a str,
        start: Span,
        group: impl Fn(&'a str) -> Parsed<'a, T>,
        item: fn(Vec<T>, Span) -> Item,
    ) -> Parsed<'a, Item> {
        let (rest, groups) = self.list(i, group)?;
        Ok((rest, item(groups, self.since(start))))
    }

    fn dim(&self, i: &'a str) -> Parsed<'a, (Ident, Size)> {
        (|i| self.ident(i), preceded(|i| self.assign(i), |i| self.size(i))).parse(i)
    }

    fn names(&self, i: &'a str) -> Parsed<'a, Vec<Ident>> {
        self.list(i, |i| self.ident(i))
    }

    fn typed(&self, i: &'a str) -> Parsed<'a, Typed> {
        let (i, names) = self.names(i)?;
        let (i, _) = self.symbol(":")(i)?;
        if word(i) != "index" {
            if !i.starts_with('[') {
                return expected(i, "a shape such as `[H]`, or `index(V)`");
            }
            let (i, shape) = self.shape(i)?;
            return Ok((
                i,
                Typed {
                    names,
                    ty: InputType::Real(shape),
                },
            ));
        }
        let (i, start) = self.keyword("index")(i)?;
        let (i, open) = self.symbol("(")(i)?;
        let (i, size) = self.size(i)?;
        let (i, close) = self.close(i, ")", open)?;
        Ok((
            i,
            Typed {
                names,
                ty: InputType::Index(size, start.to(close)),
            },
        ))
    }

    /// `a, b: [H]`; outputs may go without the shape.
    fn group(&self, i: &'a str, typed: bool) -> Parsed<'a, Group> {
        let (i, names) = self.names(i)?;
        let (i, shape) = self.annotation(i)?;
        if typed && shape.is_none() {
            return expected(i, ":");
        }
        Ok((
            i,
            Group {
                names,
                shape,
                init: None,
            },
        ))
    }

    /// `h, c: [H] = h0`.
    fn state(&self, i: &'a str) -> Parsed<'a, Group> {
        let (i, group) = self.group(i, true)?;
        let (i, init) = opt(preceded(|i| self.assign(i), cut(|i| self.expr(i)))).parse(i)?;
        Ok((i, Group { init, ..group }))
    }

    /// `: [H]`, or nothing.
    fn annotation(&self, i: &'a str) -> Parsed<'a, Option<Shape>> {
        if i.starts_with(":=") {
            return Ok((i, None));
        }
        opt(preceded(self.symbol(":"), cut(|i| self.shape(i)))).parse(i)
    }

    fn equation(&self, i: &'a str) -> Parsed<'a, Equation> {
        traps::foreign_statement(self, i)?;
        if word(i).is_empty() {
            return traps::no_item(self, i);
        }
        let (rest, names) = self.names(i)?;
        let rest = traps::after_target(self, rest);
        let (rest, shape) = self.annotation(rest)?;
        let (rest, _) = self.assign(rest).or_else(|_| traps::assignment(self, i, rest))?;
        let (i, value) = self.expr(rest)?;
        let span = names[0].span.to(self.span_of(value));
        Ok((
            i,
            Equation {
                names,
                shape,
                value,
                span,
            },
        ))
    }
}
