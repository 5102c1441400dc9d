//! The canonical form of a file. In comes the tree with its source, out comes text that parses to the same tree.
//!
//! Two blanks of indentation, one item a line, declarations in columns, at most one empty line between items; every
//! comment stays between the tokens where it stood, and stays on the line of what it follows. The form depends only on
//! the tokens, the comments and the empty lines, so printing it again changes nothing.

mod expr;
mod line;
#[cfg(test)]
mod tests;

use super::ast::{CellDef, Equation, File, FnDef, Group, Ident, InputType, Item, Shape, Top, Typed};
use crate::diagnostics::Span;
use expr::{comma, expr, shape, size};
use line::{Comments, LAST_RESORT, Line};

/// The indentation of items.
const INDENT: usize = 2;

/// The width of a declaration's keyword with the blank behind it.
const KEYWORD: usize = 7;

/// Prints a file that parsed without errors.
pub(super) fn format(file: &File, source: &str) -> String {
    let mut printer = Printer {
        file,
        comments: Comments::new(source, file.comments.clone()),
        out: String::new(),
        fresh: true,
        wants_gap: false,
    };
    for top in &file.items {
        printer.top(top);
    }
    printer.comments_before(source.len() + 1, 0);
    printer.out
}

/// The text as it grows.
struct Printer<'f, 's> {
    file: &'f File,
    comments: Comments<'s>,
    out: String,
    /// Whether a block or the file has just begun.
    fresh: bool,
    /// Whether an empty line must follow, whatever the source has.
    wants_gap: bool,
}

impl<'s> Printer<'_, 's> {
    fn top(&mut self, top: &Top) {
        let (span, block) = match top {
            Top::Use(item) => (item.span, false),
            Top::Fn(item) => (item.span, item.block),
            Top::Cell(item) => (item.span, true),
        };
        self.wants_gap |= block;
        self.start(span, 0);
        match top {
            Top::Use(item) => self.line((0, 2 * INDENT), |_, line| {
                line.text("use ");
                let quote = if item.is_file { "\"" } else { "" };
                line.token(&format!("{quote}{}{quote}", item.target.name), item.target.span);
            }),
            Top::Fn(item) => self.fn_def(item),
            Top::Cell(item) => self.cell(item),
        }
        self.wants_gap = block;
    }

    /// Prints the comments before an item, each on its own line, and the empty line before it if there is one.
    fn start(&mut self, span: Span, indent: usize) {
        self.comments_before(span.start as usize, indent);
        self.gap(self.comments.newlines(span.start as usize));
        self.comments.printed = span.start as usize;
    }

    fn comments_before(&mut self, place: usize, indent: usize) {
        while let Some((text, newlines)) = self.comments.next(place) {
            self.gap(newlines);
            self.out += &format!("{:indent$}{text}\n", "");
        }
    }

    /// An empty line where the source has one or more, but never at the start of a block or of the file.
    fn gap(&mut self, newlines: usize) {
        if !self.fresh && (newlines > 1 || self.wants_gap) {
            self.out.push('\n');
        }
        (self.fresh, self.wants_gap) = (false, false);
    }

    /// Prints one line (or several, if it is too long or holds comments) with its indentations.
    fn line(&mut self, (first, rest): (usize, usize), print: impl FnOnce(&File, &mut Line<'_, 's>)) {
        let mut line = Line::new(&mut self.comments);
        print(self.file, &mut line);
        self.out += &line.finish(first, rest);
        self.out.push('\n');
    }

    fn cell(&mut self, cell: &CellDef) {
        self.line((0, 2 * INDENT), |_, line| {
            line.text("cell ");
            line.token(&cell.name.name, cell.name.span);
            line.opening("(");
            names(line, &cell.dims, 0);
            line.text(") {");
        });
        self.fresh = true;
        for item in &cell.items {
            self.item(item);
        }
        self.close(cell.span);
    }

    /// The closing brace of a block, which ends at the end of `span`.
    fn close(&mut self, span: Span) {
        self.comments_before(span.end as usize - 1, INDENT);
        self.comments.printed = span.end as usize - 1;
        self.line((0, 0), |_, line| {
            line.token(
                "}",
                Span {
                    start: span.end - 1,
                    end: span.end,
                },
            )
        });
    }

    fn fn_def(&mut self, def: &FnDef) {
        let head = |file: &File, line: &mut Line<'_, 's>| {
            line.text("fn ");
            line.token(&def.name.name, def.name.span);
            line.opening("(");
            for (n, param) in def.params.iter().enumerate() {
                comma(line, n, 0);
                line.token(&param.name.name, param.name.span);
                annotation(line, param.shape.as_ref());
            }
            line.text(if def.block { ") {" } else { ") = " });
            if !def.block {
                expr(file, line, def.returns[0]);
            }
        };
        self.line((0, 2 * INDENT), head);
        if !def.block {
            return;
        }
        self.fresh = true;
        for equation in &def.equations {
            self.equation(equation);
        }
        self.returns(def);
        self.close(def.span);
    }

    fn returns(&mut self, def: &FnDef) {
        let first = self.file[def.returns[0]].span;
        self.start(
            Span {
                end: first.start,
                ..first
            },
            INDENT,
        );
        self.line((INDENT, INDENT + KEYWORD), |file, line| {
            line.text("return ");
            for (n, value) in def.returns.iter().enumerate() {
                comma(line, n, 0);
                expr(file, line, *value);
            }
        });
    }

    fn item(&mut self, item: &Item) {
        match item {
            Item::Dim(dims, span) => self.declaration("dim", *span, dims, |_, line, (name, value)| {
                line.token(&name.name, name.span);
                line.text(" = ");
                size(line, value);
            }),
            Item::Input(groups, span) => self.declaration("input", *span, groups, typed),
            Item::StaticInput(groups, span) => self.declaration("static input", *span, groups, typed),
            Item::Param(groups, span) => self.declaration("param", *span, groups, group),
            Item::State(groups, span) => self.declaration("state", *span, groups, group),
            Item::Output(groups, span) => self.declaration("output", *span, groups, group),
            Item::Equation(equation) => self.equation(equation),
        }
    }

    fn declaration<T>(
        &mut self,
        keyword: &str,
        span: Span,
        groups: &[T],
        print: impl Fn(&File, &mut Line<'_, 's>, &T),
    ) {
        self.start(span, INDENT);
        let head = format!("{keyword:width$} ", width = KEYWORD - 1);
        self.line((INDENT, INDENT + head.len()), |file, line| {
            line.text(&head);
            for (n, group) in groups.iter().enumerate() {
                comma(line, n, 0);
                print(file, line, group);
            }
        });
    }

    fn equation(&mut self, equation: &Equation) {
        self.start(equation.span, INDENT);
        self.line((INDENT, 3 * INDENT), |file, line| {
            names(line, &equation.names, LAST_RESORT);
            annotation(line, equation.shape.as_ref());
            line.text(" = ");
            expr(file, line, equation.value);
        });
    }
}

fn names(line: &mut Line<'_, '_>, names: &[Ident], cost: u32) {
    for (n, name) in names.iter().enumerate() {
        comma(line, n, cost);
        line.token(&name.name, name.span);
    }
}

fn annotation(line: &mut Line<'_, '_>, written: Option<&Shape>) {
    if let Some(written) = written {
        line.text(": ");
        shape(line, written);
    }
}

fn typed(_: &File, line: &mut Line<'_, '_>, typed: &Typed) {
    names(line, &typed.names, 1);
    match &typed.ty {
        InputType::Real(written) => annotation(line, Some(written)),
        InputType::Index(bound, span) => {
            line.text(": ");
            line.token(
                "",
                Span {
                    end: span.start,
                    ..*span
                },
            );
            line.opening("index(");
            size(line, bound);
            line.closing(")", *span);
        }
    }
}

fn group(file: &File, line: &mut Line<'_, '_>, group: &Group) {
    names(line, &group.names, 1);
    annotation(line, group.shape.as_ref());
    if let Some(init) = group.init {
        line.text(" = ");
        expr(file, line, init);
    }
}
