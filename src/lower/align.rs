//! Alignment (rules 7 to 9): operands of an elementwise operation go in, their common axes and views on them come out.

use super::build::Builder;
use super::sizes::{MAX_AXES, Result};
use crate::diagnostics::{Code, Diagnostic, Label, Span};
use crate::ir::{Read, Size};

/// A value and where it is written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Operand {
    pub read: Read,
    pub span: Span,
}

/// Axes and where the value that has them is written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shaped<'s> {
    pub axes: &'s [Size],
    pub span: Span,
}

/// Whether an operation may combine axes that no operand has together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outer {
    /// `*`.
    Allowed,
    /// Everything else.
    Refused,
}

impl Builder<'_, '_> {
    /// The axes of an operand and its place.
    pub(super) fn shaped(&self, operand: Operand) -> Shaped<'_> {
        Shaped {
            axes: self.axes(operand.read),
            span: operand.span,
        }
    }

    /// The axes of an elementwise result: those of the operands, in order of first appearance.
    pub(super) fn common_axes(&self, operands: &[Shaped], outer: Outer, span: Span) -> Result<Vec<Size>> {
        let mut with_axes = operands.iter().filter(|o| !o.axes.is_empty());
        let Some(first) = with_axes.next() else {
            return Ok(Vec::new());
        };
        if with_axes.all(|o| o.axes == first.axes) {
            return Ok(first.axes.to_vec());
        }
        if let Some(operand) = operands.iter().find(|o| repeated(o.axes).is_some()) {
            return Err(self.repeated_axis(operand, operands));
        }
        let union = union(operands, span)?;
        if outer == Outer::Allowed || operands.iter().any(|o| o.axes.len() == union.len()) {
            return Ok(union);
        }
        Err(self.silent_outer(operands, &union))
    }

    fn repeated_axis(&self, operand: &Shaped, all: &[Shaped]) -> Box<Diagnostic> {
        let axis = repeated(operand.axes).map_or_else(String::new, |axis| self.show_size(axis));
        let message = format!(
            "{} has the axis {axis} twice and does not align with other axes",
            self.show(operand.axes)
        );
        let mut d = Diagnostic::new(Code::RepeatedAxis, message, operand.span).label(self.show(operand.axes));
        if let Some(other) = all.iter().find(|o| !o.axes.is_empty() && o.axes != operand.axes) {
            d = d.also(other.span, self.show(other.axes));
        }
        Box::new(d.hint(
            "axes align by name, so each may occur once; `einsum` tells equal axes apart by place: \
             `einsum(\"i, j -> i j\", k, k)` is the outer product of k with itself",
        ))
    }

    /// The error of rule 8, at the first two operands whose axes do not fit into each other.
    fn silent_outer(&self, operands: &[Shaped], union: &[Size]) -> Box<Diagnostic> {
        let (a, b) = apart(operands);
        let message = format!("{} and {} do not combine", self.show(a.axes), self.show(b.axes));
        let mut d = Diagnostic::new(Code::SilentOuter, message, a.span).label(self.show(a.axes));
        d.labels.push(Label {
            span: b.span,
            text: self.show(b.axes),
            primary: true,
        });
        Box::new(d.hint(format!(
            "together they would give {}, which neither has: use one dimension for both, or `expand` one of them",
            self.show(union)
        )))
    }

    /// A view of a value with exactly `axes`, which has all of the value's.
    pub(super) fn view(&mut self, read: Read, axes: &[Size], span: Span) -> Option<Read> {
        if self.axes(read) == axes {
            return Some(read);
        }
        let place = |axis: &Size| axes.iter().position(|a| a == axis);
        let map = self.axes(read).iter().filter_map(place).collect();
        self.broadcast(read, map, axes, span)
    }

    /// An elementwise operation on operands that are aligned first.
    pub(super) fn aligned(&mut self, op: crate::ir::Op, operands: &[Operand], span: Span) -> Option<Read> {
        let shaped: Vec<Shaped> = operands.iter().map(|o| self.shaped(*o)).collect();
        let found = self.common_axes(&shaped, Outer::Refused, span);
        let axes = self.ok(found)?;
        let views: Option<Vec<Read>> = operands.iter().map(|o| self.view(o.read, &axes, o.span)).collect();
        self.elementwise(op, &axes, &views?, span)
    }

    /// Rule 9: the value with its axes in the declared order.
    pub(super) fn conform(&mut self, value: Operand, axes: &[Size], name: &str, declared: Span) -> Option<Read> {
        let own = self.axes(value.read);
        if own == axes {
            return Some(value.read);
        }
        let distinct = repeated(own).is_none() && repeated(axes).is_none();
        let inside = own.iter().all(|a| axes.contains(a));
        if distinct && inside && own.len() == axes.len() {
            return self.view(value.read, axes, value.span);
        }
        let (own, wanted) = (self.show(own), self.show(axes));
        let message = format!("`{name}` is declared {wanted}, but its value is {own}");
        let d = Diagnostic::new(Code::DeclaredMismatch, message, value.span).label(own);
        let d = d.also(declared, format!("declared {wanted} here"));
        self.report(match (distinct && inside, inside) {
            (true, _) => d.hint(format!(
                "write `expand(..., {wanted})` to repeat the value along the missing axes"
            )),
            (_, true) => {
                d.hint("an axis that occurs twice must stand in the declared order; `einsum` permutes by place")
            }
            _ => d.hint("change the declaration or the equation"),
        });
        None
    }
}

/// All axes of the operands, in order of first appearance.
pub(super) fn union(operands: &[Shaped], span: Span) -> Result<Vec<Size>> {
    let mut union: Vec<Size> = Vec::new();
    for operand in operands {
        for axis in operand.axes {
            if !union.contains(axis) {
                union.push(axis.clone());
            }
        }
        if union.len() > MAX_AXES {
            let message = format!("this value would have more than {MAX_AXES} axes");
            return Err(Box::new(Diagnostic::new(Code::TooLarge, message, span)));
        }
    }
    Ok(union)
}

/// The first two operands of which neither has all axes of the other.
fn apart<'o, 's>(operands: &'o [Shaped<'s>]) -> (&'o Shaped<'s>, &'o Shaped<'s>) {
    let inside = |a: &Shaped, b: &Shaped| a.axes.iter().all(|axis| b.axes.contains(axis));
    let mut largest = &operands[0];
    for operand in &operands[1..] {
        match (inside(operand, largest), inside(largest, operand)) {
            (true, _) => {}
            (_, true) => largest = operand,
            _ => return (largest, operand),
        }
    }
    (&operands[0], largest)
}

/// The first axis that occurs twice.
pub(super) fn repeated(axes: &[Size]) -> Option<&Size> {
    let before = |i: usize| &axes[..i];
    axes.iter()
        .enumerate()
        .find(|(i, axis)| before(*i).contains(axis))
        .map(|(_, axis)| axis)
}
