//! Reductions, norms, softmax and cross entropy, in terms of `contract`, `reduce` and elementwise operations.

use super::align::Operand;
use super::build::{Builder, kept};
use super::call::Call;
use super::chain::Term;
use crate::diagnostics::{Code, Diagnostic, Span};
use crate::ir::op::{Binary, Reduce, Unary};
use crate::ir::{Op, Read, Size};
use crate::syntax::ast::{Arg, ArgValue, ExprId, ExprKind};

/// The sum of a longer product is computed from the product.
const MOST_FACTORS: usize = 64;

impl<'p> Builder<'p, '_> {
    /// `mean(x, axes)` and its kin.
    pub(super) fn reduce_call(&mut self, call: &Call, op: Reduce) -> Option<Read> {
        let (x, places) = self.reduced(call)?;
        self.reduce(op, x.read, &places, call.span)
    }

    /// The operand of a reduction and the places of its axes.
    fn reduced(&mut self, call: &Call) -> Option<(Operand, Vec<usize>)> {
        let x = self.value(call, 0)?;
        let axes = self.axes(x.read).to_vec();
        let places = self.axis_list(call, 1, &axes, x.span)?;
        Some((x, places))
    }

    /// `sum(x, axes)`. The sum of a product is a contraction (rule 12): the product is never computed.
    pub(super) fn sum_call(&mut self, call: &Call) -> Option<Read> {
        match call.arg(0).and_then(|arg| self.factors(arg)) {
            Some(factors) => self.sum_of_product(call, factors),
            None => self.reduce_call(call, Reduce::Sum),
        }
    }

    /// The factors of a summed expression, if it is a product without divisions.
    pub(super) fn factors(&self, arg: &Arg) -> Option<&'p [(bool, ExprId)]> {
        let ArgValue::Expr(mut id) = arg.value else {
            return None;
        };
        let file = self.program.file;
        while let ExprKind::Paren(inner) = &file[id].kind {
            id = *inner;
        }
        match &file[id].kind {
            ExprKind::Product(list) if list.len() <= MOST_FACTORS && list.iter().all(|(divided, _)| !divided) => {
                Some(list)
            }
            _ => None,
        }
    }

    fn sum_of_product(&mut self, call: &Call, factors: &[(bool, ExprId)]) -> Option<Read> {
        let terms = self.terms(call.scope, factors)?;
        let span = call.span_of(0);
        let axes = self.product_axes(&terms, span)?;
        let places = self.axis_list(call, 1, &axes, span)?;
        let (inner, outer): (Vec<Term>, Vec<Term>) = terms.iter().partition(|t| {
            let own = self.labels(t.value.read, &axes);
            own.iter().any(|l| places.contains(&(*l as usize)))
        });
        if inner.is_empty() {
            return self.product(&terms, span);
        }
        let result: Vec<Size> = kept(axes.len(), &places).iter().map(|i| axes[*i].clone()).collect();
        let summed = self.sum_inner(&inner, &axes, &places, call.span)?;
        let mut all = vec![Term {
            inverted: false,
            value: Operand { read: summed, span },
        }];
        all.extend(outer);
        let product = self.product(&all, call.span)?;
        self.view(product, &result, call.span)
    }

    /// The sum over `places` of the product of factors each of which has one of these axes.
    fn sum_inner(&mut self, inner: &[Term], axes: &[Size], places: &[usize], span: Span) -> Option<Read> {
        let mut groups: Vec<(Vec<u32>, Vec<Term>)> = Vec::new();
        for term in inner {
            let labels = self.labels(term.value.read, axes);
            match groups.iter_mut().find(|(l, _)| *l == labels) {
                Some((_, group)) => group.push(*term),
                None => groups.push((labels, vec![*term])),
            }
        }
        if let [(labels, group)] = groups.as_mut_slice()
            && group.len() > 1
        {
            // All factors have the same axes: two operands are made, so that the last product is part of the contraction.
            let last = group.split_off(group.len() - 1);
            let labels = labels.clone();
            groups.push((labels, last));
        }
        groups.sort_by_key(|(labels, _)| std::cmp::Reverse(labels.len()));
        let mut operands = Vec::new();
        for (labels, group) in groups {
            operands.push((self.product(&group, span)?, labels));
        }
        if let [(read, labels)] = operands.as_slice() {
            let own: Vec<usize> = (0..labels.len())
                .filter(|i| places.contains(&(labels[*i] as usize)))
                .collect();
            return self.reduce(Reduce::Sum, *read, &own, span);
        }
        let stays = |l: &u32| !places.contains(&(*l as usize)) && operands.iter().any(|(_, own)| own.contains(l));
        let out = (0..axes.len() as u32).filter(stays).collect();
        self.contract_all(operands, out, span)
    }

    /// The axes of a value as labels: their places in `axes`.
    fn labels(&self, read: Read, axes: &[Size]) -> Vec<u32> {
        let own = self.axes(read);
        if own == axes {
            return (0..axes.len() as u32).collect();
        }
        own.iter()
            .filter_map(|a| axes.iter().position(|b| a == b))
            .map(|p| p as u32)
            .collect()
    }

    /// A product of any number of values, two at a time; what no later operand and no output needs is summed at once.
    pub(super) fn contract_all(&mut self, operands: Vec<(Read, Vec<u32>)>, out: Vec<u32>, span: Span) -> Option<Read> {
        let mut rest = operands.into_iter();
        let mut left = rest.next()?;
        let mut rest: std::collections::VecDeque<_> = rest.collect();
        while let Some(right) = rest.pop_front() {
            if rest.is_empty() {
                return self.contract(&[left, right], out, span);
            }
            let needed = |l: &u32| out.contains(l) || rest.iter().any(|(_, labels)| labels.contains(l));
            let mut between: Vec<u32> = Vec::new();
            for label in left.1.iter().chain(&right.1).filter(|l| needed(l)) {
                if !between.contains(label) {
                    between.push(*label);
                }
            }
            let read = self.contract(&[left, right], between.clone(), span)?;
            left = (read, between);
        }
        self.contract(&[left], out, span)
    }

    /// A reduced value repeated along the axes that were reduced away.
    fn spread(&mut self, read: Read, axes: &[Size], gone: &[usize], span: Span) -> Option<Read> {
        if gone.is_empty() {
            return Some(read);
        }
        self.broadcast(read, kept(axes.len(), gone), axes, span)
    }

    /// `sqrt(sum(x * x))`.
    pub(super) fn norm(&mut self, call: &Call) -> Option<Read> {
        let (x, places) = self.reduced(call)?;
        let labels: Vec<u32> = (0..self.axes(x.read).len() as u32).collect();
        let out = kept(labels.len(), &places).iter().map(|p| *p as u32).collect();
        let squares = self.contract(&[(x.read, labels.clone()), (x.read, labels)], out, call.span)?;
        self.unary(Unary::Sqrt, squares, call.span)
    }

    /// `exp(x - max) / sum(exp(x - max))`.
    pub(super) fn softmax(&mut self, call: &Call) -> Option<Read> {
        let (x, places) = self.reduced(call)?;
        let axes = self.axes(x.read).to_vec();
        let largest = self.reduce(Reduce::Max, x.read, &places, call.span)?;
        let largest = self.spread(largest, &axes, &places, call.span)?;
        let shifted = self.binary(Binary::Sub, x.read, largest, call.span)?;
        let scaled = self.unary(Unary::Exp, shifted, call.span)?;
        let total = self.reduce(Reduce::Sum, scaled, &places, call.span)?;
        let total = self.spread(total, &axes, &places, call.span)?;
        self.binary(Binary::Div, scaled, total, call.span)
    }

    /// `(x - mean) / sqrt(var + eps) * gain + bias` over the last axis, biased variance.
    pub(super) fn layer_norm(&mut self, call: &Call) -> Option<Read> {
        let (x, last) = self.normalised(call)?;
        let axes = self.axes(x.read).to_vec();
        let (gain, bias) = (self.along_last(call, 1, x), self.along_last(call, 2, x));
        let (gain, bias) = (gain?, bias?);
        let mean = self.reduce(Reduce::Mean, x.read, &[last], call.span)?;
        let variance = self.reduce(Reduce::Var, x.read, &[last], call.span)?;
        let scale = self.inverse_root(call, variance, 3)?;
        let mean = self.spread(mean, &axes, &[last], call.span)?;
        let centred = self.binary(Binary::Sub, x.read, mean, call.span)?;
        let scale = self.spread(scale, &axes, &[last], call.span)?;
        let scaled = self.binary(Binary::Mul, centred, scale, call.span)?;
        let scaled = self.binary(Binary::Mul, scaled, gain, call.span)?;
        self.binary(Binary::Add, scaled, bias, call.span)
    }

    /// `x / sqrt(mean(x * x) + eps) * gain` over the last axis.
    pub(super) fn rms_norm(&mut self, call: &Call) -> Option<Read> {
        let (x, last) = self.normalised(call)?;
        let axes = self.axes(x.read).to_vec();
        let gain = self.along_last(call, 1, x)?;
        let squares = self.binary(Binary::Mul, x.read, x.read, call.span)?;
        let mean = self.reduce(Reduce::Mean, squares, &[last], call.span)?;
        let scale = self.inverse_root(call, mean, 2)?;
        let scale = self.spread(scale, &axes, &[last], call.span)?;
        let scaled = self.binary(Binary::Mul, x.read, scale, call.span)?;
        self.binary(Binary::Mul, scaled, gain, call.span)
    }

    fn normalised(&mut self, call: &Call) -> Option<(Operand, usize)> {
        let x = self.value(call, 0)?;
        match self.axes(x.read).len() {
            0 => {
                let message = format!("`{}` needs a value with axes; this is a number", call.callee.name);
                self.report(Diagnostic::new(Code::NoSuchAxis, message, x.span).label("no axes"));
                None
            }
            rank => Some((x, rank - 1)),
        }
    }

    /// A gain or bias, which has the last axis of x, as a view of x's axes.
    fn along_last(&mut self, call: &Call, param: usize, x: Operand) -> Option<Read> {
        let given = self.value(call, param)?;
        let axes = self.axes(x.read).to_vec();
        let last = axes.len() - 1;
        if self.axes(given.read) == &axes[last..] {
            return if last == 0 {
                Some(given.read)
            } else {
                self.broadcast(given.read, vec![last], &axes, given.span)
            };
        }
        let (own, wanted) = (self.show(self.axes(given.read)), self.show(&axes[last..]));
        let what = if param == 1 { "gain" } else { "bias" };
        let message = format!(
            "the {what} of `{}` must be {wanted}, the last axis of the value, not {own}",
            call.callee.name
        );
        let d = Diagnostic::new(Code::AxisMismatch, message, given.span).label(own);
        let d = d.also(x.span, self.show(&axes));
        self.report(d);
        None
    }

    /// `1 / sqrt(x + eps)`; eps is a number, 1e-5 if not given.
    fn inverse_root(&mut self, call: &Call, x: Read, param: usize) -> Option<Read> {
        let eps = match call.arg(param) {
            Some(_) => self.value(call, param)?,
            None => Operand {
                read: self.literal(1e-5, call.span)?,
                span: call.span,
            },
        };
        if !self.axes(eps.read).is_empty() {
            let message = format!(
                "`eps` is a number, not a value of axes {}",
                self.show(self.axes(eps.read))
            );
            self.report(Diagnostic::new(Code::BadArgument, message, eps.span));
            return None;
        }
        let axes = self.axes(x).to_vec();
        let eps = self.view(eps.read, &axes, eps.span)?;
        let sum = self.binary(Binary::Add, x, eps, call.span)?;
        let root = self.unary(Unary::Sqrt, sum, call.span)?;
        self.reciprocal(Operand {
            read: root,
            span: call.span,
        })
    }

    /// `logsumexp(logits) - logits[index]`.
    pub(super) fn cross_entropy(&mut self, call: &Call) -> Option<Read> {
        let logits = self.value(call, 0);
        let index = self.index(call, 1);
        let (logits, (index, size)) = (logits?, index?);
        if self.axes(logits.read) != [size.clone()] {
            let (own, wanted) = (
                self.show(self.axes(logits.read)),
                self.show(std::slice::from_ref(&size)),
            );
            let message = format!("the logits must be {wanted}, one for each value of the index, not {own}");
            let d = Diagnostic::new(Code::AxisMismatch, message, logits.span).label(own);
            self.report(d.also(index.span, format!("index({})", self.show_size(&size))));
            return None;
        }
        let total = self.reduce(Reduce::LogSumExp, logits.read, &[0], call.span)?;
        let chosen = self.node(Op::OneHot, crate::ir::Type::real(vec![size]), &[index.read], call.span)?;
        let logit = self.contract(&[(logits.read, vec![0]), (chosen, vec![0])], Vec::new(), call.span)?;
        self.binary(Binary::Sub, total, logit, call.span)
    }
}
