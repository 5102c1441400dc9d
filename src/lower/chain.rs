//! Chains `a + b - c` and `a * b / c`: terms go in, one value comes out.
//!
//! Short chains are computed from left to right, as written. Long ones become balanced trees, so that a sum of 100,000
//! terms is 17 operations deep: nothing later walks a path that long, and rounding errors stay small.

use super::align::{Operand, Outer, Shaped, union};
use super::build::Builder;
use crate::diagnostics::Span;
use crate::ir::op::{Binary, Unary};
use crate::ir::{Op, Read, Size};

/// The longest chain that is computed from left to right.
const LEFT_TO_RIGHT: usize = 16;

/// A term and whether it is inverted (subtracted, or divided by).
#[derive(Clone, Copy, Debug)]
pub(super) struct Term {
    pub inverted: bool,
    pub value: Operand,
}

/// An operation, the one by its inverse, and the inverse itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Law {
    Sum,
    Product,
}

impl Builder<'_, '_> {
    /// `a + b - c`.
    pub(super) fn sum(&mut self, terms: &[Term], span: Span) -> Option<Read> {
        let shaped: Vec<Shaped> = terms.iter().map(|t| self.shaped(t.value)).collect();
        let found = self.common_axes(&shaped, Outer::Refused, span);
        self.ok(found)?;
        self.chain(terms, Law::Sum)
    }

    /// `a * b / c`.
    pub(super) fn product(&mut self, terms: &[Term], span: Span) -> Option<Read> {
        self.product_axes(terms, span)?;
        self.chain(terms, Law::Product)
    }

    /// The axes of a product, checked factor by factor: only `*` may combine axes.
    pub(super) fn product_axes(&mut self, terms: &[Term], span: Span) -> Option<Vec<Size>> {
        let mut axes: Vec<Size> = Vec::new();
        let mut so_far = terms.first().map_or(span, |t| t.value.span);
        for term in terms {
            let outer = if term.inverted { Outer::Refused } else { Outer::Allowed };
            let left = Shaped {
                axes: &axes,
                span: so_far,
            };
            let found = self.common_axes(&[left, self.shaped(term.value)], outer, span);
            axes = self.ok(found)?;
            so_far = so_far.to(term.value.span);
        }
        Some(axes)
    }

    fn chain(&mut self, terms: &[Term], law: Law) -> Option<Read> {
        let mut level = terms.to_vec();
        while level.len() > LEFT_TO_RIGHT {
            let pairs = level.chunks(2);
            let next: Option<Vec<Term>> = pairs
                .map(|pair| match pair {
                    [a, b] => self.join(*a, *b, law),
                    _ => Some(pair[0]),
                })
                .collect();
            level = next?;
        }
        let (first, rest) = level.split_first()?;
        let mut total = *first;
        for term in rest {
            total = self.join(total, *term, law)?;
        }
        match (total.inverted, law) {
            (false, _) => Some(total.value.read),
            (true, Law::Sum) => self.unary(Unary::Neg, total.value.read, total.value.span),
            (true, Law::Product) => self.reciprocal(total.value),
        }
    }

    /// Two terms to one.
    fn join(&mut self, a: Term, b: Term, law: Law) -> Option<Term> {
        let span = a.value.span.to(b.value.span);
        let (plus, minus) = match law {
            Law::Sum => (Binary::Add, Binary::Sub),
            Law::Product => (Binary::Mul, Binary::Div),
        };
        let (f, left, right) = match (a.inverted, b.inverted) {
            (false, true) => (minus, a.value, b.value),
            (true, false) => (minus, b.value, a.value),
            _ => (plus, a.value, b.value),
        };
        let axes = self.joint_axes(a.value, b.value, span)?;
        let left = self.view(left.read, &axes, left.span)?;
        let right = self.view(right.read, &axes, right.span)?;
        let read = self.elementwise(Op::Binary(f), &axes, &[left, right], span)?;
        Some(Term {
            inverted: a.inverted && b.inverted,
            value: Operand { read, span },
        })
    }

    /// The axes of two values together; that they combine has been checked.
    fn joint_axes(&mut self, a: Operand, b: Operand, span: Span) -> Option<Vec<Size>> {
        let (left, right) = (self.shaped(a), self.shaped(b));
        if right.axes.is_empty() || left.axes == right.axes {
            return Some(left.axes.to_vec());
        }
        if left.axes.is_empty() {
            return Some(right.axes.to_vec());
        }
        let found = union(&[left, right], span);
        self.ok(found)
    }

    /// `1 / x`.
    pub(super) fn reciprocal(&mut self, x: Operand) -> Option<Read> {
        let one = self.literal(1.0, x.span)?;
        let axes = self.axes(x.read).to_vec();
        let ones = self.view(one, &axes, x.span)?;
        self.elementwise(Op::Binary(Binary::Div), &axes, &[ones, x.read], x.span)
    }

    /// `base ^ exponent`; small whole exponents become multiplications.
    pub(super) fn power(&mut self, base: Operand, exponent: Operand, span: Span) -> Option<Read> {
        let square = |b: &mut Self, x: Read| b.binary(Binary::Mul, x, x, span);
        match self.as_literal(exponent.read) {
            Some(1.0) => Some(base.read),
            Some(2.0) => square(self, base.read),
            Some(3.0) => {
                let squared = square(self, base.read)?;
                self.binary(Binary::Mul, squared, base.read, span)
            }
            Some(4.0) => {
                let squared = square(self, base.read)?;
                square(self, squared)
            }
            Some(-1.0) => self.reciprocal(base),
            _ => self.aligned(Op::Binary(Binary::Pow), &[base, exponent], span),
        }
    }
}
