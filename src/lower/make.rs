//! Functions that make values of sizes and of indices: `eye iota tril triu one_hot embed`.

use super::build::Builder;
use super::call::Call;
use crate::diagnostics::{Code, Diagnostic, Span};
use crate::ir::op::Binary;
use crate::ir::{Op, Read, Size, Type};

impl Builder<'_, '_> {
    /// The size given for the only parameter, which is to be an axis.
    fn length(&mut self, call: &Call) -> Option<Size> {
        let size = self.size(call, 0)?;
        match size.as_int() {
            Some(n) if n <= 0 => {
                let message = format!("an axis cannot have size {n}");
                self.report(Diagnostic::new(Code::SizeNotPositive, message, call.span_of(0)));
                None
            }
            _ => Some(size),
        }
    }

    /// `[0, 1, ..., n-1]`.
    pub(super) fn iota(&mut self, call: &Call) -> Option<Read> {
        let size = self.length(call)?;
        self.node(Op::Iota, Type::real(vec![size]), &[], call.span)
    }

    /// The identity matrix.
    pub(super) fn eye(&mut self, call: &Call) -> Option<Read> {
        let size = self.length(call)?;
        let axes = [size.clone(), size];
        self.positions(Binary::Eq, &axes, call.span)
    }

    /// A matrix of the comparison of each element's row with its column.
    fn positions(&mut self, f: Binary, axes: &[Size], span: Span) -> Option<Read> {
        let mut sides = Vec::new();
        for place in 0..2 {
            let line = self.node(Op::Iota, Type::real(vec![axes[place].clone()]), &[], span)?;
            sides.push(self.broadcast(line, vec![place], axes, span)?);
        }
        self.binary(f, sides[0], sides[1], span)
    }

    /// `tril(M)` keeps what is on and below the diagonal, `triu(M)` what is on and above.
    pub(super) fn triangle(&mut self, call: &Call, lower: bool) -> Option<Read> {
        let x = self.value(call, 0)?;
        let axes = self.axes(x.read).to_vec();
        if axes.len() != 2 {
            let message = format!("`{}` takes a matrix, not {}", call.callee.name, self.show(&axes));
            self.report(Diagnostic::new(Code::BadArgument, message, x.span).label(self.show(&axes)));
            return None;
        }
        let f = if lower { Binary::Ge } else { Binary::Le };
        let kept = self.positions(f, &axes, call.span)?;
        let zero = self.literal(0.0, call.span)?;
        let zeros = self.view(zero, &axes, call.span)?;
        self.elementwise(Op::Where, &axes, &[kept, x.read, zeros], call.span)
    }

    /// A vector that is 1 at the index and 0 elsewhere.
    pub(super) fn one_hot(&mut self, call: &Call) -> Option<Read> {
        let (index, size) = self.index(call, 0)?;
        self.node(Op::OneHot, Type::real(vec![size]), &[index.read], call.span)
    }

    /// `embed(table, index)`: the row of the table at the index.
    pub(super) fn embed(&mut self, call: &Call) -> Option<Read> {
        let (table, index) = (self.value(call, 0), self.index(call, 1));
        let (table, (index, size)) = (table?, index?);
        let axes = self.axes(table.read).to_vec();
        if axes.first() != Some(&size) {
            let (own, rows) = (self.show(&axes), self.show_size(&size));
            let message = format!("the first axis of the table must be {rows}, as many rows as the index has values");
            let d = Diagnostic::new(Code::AxisMismatch, message, table.span).label(own);
            self.report(d.also(index.span, format!("index({rows})")));
            return None;
        }
        self.node(
            Op::Gather,
            Type::real(axes[1..].to_vec()),
            &[table.read, index.read],
            call.span,
        )
    }
}
