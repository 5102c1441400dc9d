//! Calls of `fn`s: the body is expanded where it is called, in a scope of its own.

use super::align::Operand;
use super::build::Builder;
use super::builtins::ArgKind;
use super::call::Call;
use super::expr::Scope;
use super::program::FnInfo;
use super::sizes::{self, Result, Sizes};
use crate::diagnostics::{Code, Diagnostic, Span};
use crate::ir::{Name, Read, Size};
use crate::syntax::ast::{ArgValue, FnParam, Shape};

/// Calls within the functions that they call: more could exhaust the stack.
const MAX_CALLS: usize = 64;

/// Marks dimensions that are still to be solved for; no dimension of the user's has this in its name.
const UNKNOWN: &str = "?";

impl<'p, 'a> Builder<'p, 'a> {
    /// Expands a call of `program.fns[index]`.
    pub(super) fn inline(&mut self, call: &Call, index: usize) -> Option<Vec<Option<Read>>> {
        let program = self.program;
        let info = &program.fns[index];
        if !info.usable {
            return None;
        }
        if self.calls.len() >= MAX_CALLS {
            let message = format!("functions call each other more than {MAX_CALLS} deep");
            self.report(Diagnostic::new(Code::TooLarge, message, call.span));
            return None;
        }
        let mut scope = self.arguments(call, info)?;
        self.calls.push((info.def.name.name.clone(), call.span));
        // Every parameter takes work, even where the body makes no node.
        self.charge(4 + info.params.len(), call.span);
        let bound = self.bind_shapes(call, info, &mut scope);
        let values = bound.and_then(|()| self.body(info, &mut scope));
        self.calls.pop();
        values
    }

    /// The scope of the body: its parameters.
    fn arguments(&mut self, call: &Call, info: &FnInfo) -> Option<Scope> {
        let mut scope = Scope::default();
        let mut failed = false;
        for (place, param) in info.params.iter().enumerate() {
            let name = info.def.params[place].name.name.clone();
            if param.kind == ArgKind::Value {
                let ArgValue::Expr(id) = call.arg(place)?.value else {
                    return None;
                };
                let value = self.eval(call.scope, id);
                failed |= value.is_none();
                scope.values.insert(name, value);
            } else {
                let size = self.size(call, place);
                failed |= size.is_none();
                scope.sizes.extend(size.map(|s| (name, s)));
            }
        }
        (!failed).then_some(scope)
    }

    fn body(&mut self, info: &FnInfo, scope: &mut Scope) -> Option<Vec<Option<Read>>> {
        for index in &info.order {
            let equation = &info.def.equations[*index];
            let declared = match &equation.shape {
                Some(shape) => Some((self.ok_shape(shape, &scope.sizes)?, shape.span)),
                None => None,
            };
            let span = self.program.file[equation.value].span;
            let values = self.equation(scope, equation);
            for (name, value) in equation.names.iter().zip(values) {
                let value = match (&declared, value) {
                    (Some((axes, at)), Some(read)) => self.conform(Operand { read, span }, axes, &name.name, *at),
                    _ => value,
                };
                scope.values.insert(name.name.clone(), value);
            }
        }
        match info.def.returns.as_slice() {
            [one] => self.eval_all(scope, *one),
            several => Some(several.iter().map(|id| self.eval(scope, *id)).collect()),
        }
    }

    fn ok_shape(&mut self, shape: &Shape, sizes: &Sizes) -> Option<Vec<Size>> {
        let found = sizes::of_shape(shape, sizes);
        self.ok(found)
    }

    /// Solves the dims in the shapes of parameters from the axes of the arguments; all axes must then agree.
    fn bind_shapes(&mut self, call: &Call, info: &FnInfo, scope: &mut Scope) -> Option<()> {
        let mut pairs = Vec::new();
        for (place, param) in info.def.params.iter().enumerate() {
            let Some(shape) = &param.shape else { continue };
            let read = scope.values.get(&param.name.name).copied().flatten()?;
            let span = call.span_of(place);
            let found = self.same_rank(param, shape, Operand { read, span });
            self.ok(found)?;
            pairs.push((param, shape, Operand { read, span }));
        }
        let unknown: Vec<Name> = info
            .sizes
            .iter()
            .filter(|n| !scope.sizes.contains_key(*n))
            .cloned()
            .collect();
        for name in &unknown {
            scope.sizes.insert(name.clone(), Size::dim(&marked(name)));
        }
        for linear in [false, true] {
            for (_, shape, value) in &pairs {
                self.solve(shape, value.read, linear, scope)?;
            }
        }
        for (param, shape, value) in &pairs {
            let found = self.agree(param, shape, *value, &scope.sizes);
            self.ok(found)?;
        }
        Some(())
    }

    fn same_rank(&self, param: &FnParam, shape: &Shape, value: Operand) -> Result<()> {
        let rank = self.axes(value.read).len();
        if rank == shape.axes.len() && self.index_of(value.read).is_none() {
            return Ok(());
        }
        let message = format!(
            "the parameter `{}` has {} axes, the argument {rank}",
            param.name.name,
            shape.axes.len()
        );
        let d = Diagnostic::new(Code::AxisMismatch, message, value.span).label(self.show_read(value.read));
        Err(Box::new(d.also(shape.span, "the parameter's shape")))
    }

    /// Binds dims that an axis of the shape determines: bare ones or, in the second round, linear ones.
    fn solve(&mut self, shape: &Shape, read: Read, linear: bool, scope: &mut Scope) -> Option<()> {
        for (axis, place) in shape.axes.iter().zip(0..) {
            let found = sizes::of_size(axis, &scope.sizes);
            let size = self.ok(found)?;
            let unknown: Vec<Name> = size.dims().into_iter().filter(|n| n.starts_with(UNKNOWN)).collect();
            let [name] = unknown.as_slice() else { continue };
            let Some((slope, rest)) = size.linear_in(name) else {
                continue;
            };
            if !linear && size.as_dim().is_none() {
                continue;
            }
            let value = self.axes(read)[place].sub(&rest).and_then(|d| d.div_exact(slope));
            if let Some(value) = value {
                scope.sizes.insert(name[UNKNOWN.len()..].into(), value);
            }
        }
        Some(())
    }

    fn agree(&self, param: &FnParam, shape: &Shape, value: Operand, sizes: &Sizes) -> Result<()> {
        let axes = self.axes(value.read);
        for (axis, own) in shape.axes.iter().zip(axes) {
            let wanted = sizes::of_size(axis, sizes)?;
            let open: Vec<Name> = wanted.dims().into_iter().filter(|n| n.starts_with(UNKNOWN)).collect();
            match open.as_slice() {
                [] => {}
                [name] if wanted.linear_in(name).is_some() => return Err(self.no_solution(axis.span, value, own, name)),
                _ => return Err(self.unsolved(axis.span, value, own)),
            }
            if wanted != *own {
                let (own, wanted) = (self.show_size(own), self.show_size(&wanted));
                let message = format!(
                    "an axis of `{}` must be {wanted} here, the argument has {own}",
                    param.name.name
                );
                let d = Diagnostic::new(Code::AxisMismatch, message, value.span).label(self.show(axes));
                return Err(Box::new(d.also(axis.span, format!("this is {wanted}"))));
            }
        }
        Ok(())
    }

    fn no_solution(&self, span: Span, value: Operand, own: &Size, name: &Name) -> Box<Diagnostic> {
        let (name, own) = (&name[UNKNOWN.len()..], self.show_size(own));
        let message = format!("no size `{name}` gives this parameter the argument's axis {own}");
        let d = Diagnostic::new(Code::AxisMismatch, message, value.span).label(self.show(self.axes(value.read)));
        Box::new(d.also(span, "the parameter's axis"))
    }

    fn unsolved(&self, span: Span, value: Operand, own: &Size) -> Box<Diagnostic> {
        let message = format!(
            "the size of this axis does not follow from the argument's {}",
            self.show_size(own)
        );
        let d = Diagnostic::new(Code::CannotInfer, message, span).also(value.span, self.show(self.axes(value.read)));
        Box::new(d.hint("make the dimension a parameter of the function and give it in the call"))
    }
}

fn marked(name: &Name) -> Name {
    format!("{UNKNOWN}{name}").into()
}
