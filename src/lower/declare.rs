//! The declarations of a cell: its items go in, tables of dimensions, values, states and outputs come out.
//!
//! After this, every name of the cell is defined once and every declared shape is in normal form.

use super::program::redefined;
use super::resolve::Names;
use super::sizes::{self, Sizes};
use super::{order, suggest};
use crate::diagnostics::{Code, Diagnostic, Diagnostics, Span};
use crate::ir::{Name, Size, Type, ty::Scalar};
use crate::syntax::ast::{self, CellDef, Equation, ExprId, Group, Ident, InputType, Item, Typed};
use std::collections::BTreeMap;

/// A cell's tables.
pub(super) struct Decls<'a> {
    /// Declared dimensions, in order.
    pub dims: Vec<&'a Ident>,
    /// What each name of a dimension stands for; aliases are substituted.
    pub sizes: Sizes,
    /// The aliases alone, in order of their line.
    pub aliases: Vec<(&'a Ident, &'a ast::Size)>,
    /// Inputs, parameters and the names of equations.
    pub values: Vec<Value<'a>>,
    /// By name, the index in `values`.
    pub index: BTreeMap<Name, usize>,
    pub equations: Vec<&'a Equation>,
    pub states: Vec<State<'a>>,
    pub outputs: Vec<&'a Ident>,
    /// Where each state and each output was declared.
    seen: [BTreeMap<Name, &'a Ident>; 2],
    /// By index in `values`: the declared axes and where they stand.
    pub declared: BTreeMap<usize, Declared>,
    /// Every shape in the cell, for telling which dimensions are used.
    pub shapes: Vec<&'a ast::Shape>,
    /// Sizes of index inputs, for the same.
    pub index_sizes: Vec<&'a ast::Size>,
}

/// Something that has a value.
pub(super) struct Value<'a> {
    pub name: &'a Ident,
    pub what: What,
}

/// What a value is.
pub(super) enum What {
    /// An input; no type if it could not be made out.
    Input { ty: Option<Type>, is_static: bool },
    /// A parameter.
    Param { ty: Option<Type> },
    /// A name on the left of `equations[equation]`.
    Equation { equation: usize },
}

/// A name on a `state` line.
pub(super) struct State<'a> {
    pub name: &'a Ident,
    pub init: Option<ExprId>,
}

/// Axes that a name is declared to have.
#[derive(Clone)]
pub(super) struct Declared {
    /// None if they could not be made out.
    pub axes: Option<Vec<Size>>,
    pub span: Span,
}

impl<'a> Decls<'a> {
    /// Reads all declarations of a cell.
    pub(super) fn new(cell: &'a CellDef, out: &mut Diagnostics) -> Decls<'a> {
        let mut decls = Decls {
            dims: Vec::new(),
            sizes: Sizes::new(),
            aliases: Vec::new(),
            values: Vec::new(),
            index: BTreeMap::new(),
            equations: Vec::new(),
            states: Vec::new(),
            outputs: Vec::new(),
            seen: [BTreeMap::new(), BTreeMap::new()],
            declared: BTreeMap::new(),
            shapes: Vec::new(),
            index_sizes: Vec::new(),
        };
        let before = out.0.len();
        decls.add_dims(cell, out);
        for item in &cell.items {
            decls.add_values(item, out);
        }
        for item in &cell.items {
            decls.add_types(item, out);
        }
        decls.explain(&mut out.0[before..]);
        if decls.outputs.is_empty() {
            let message = format!("the cell `{}` has no output", cell.name.name);
            let d = Diagnostic::new(Code::BadOutput, message, cell.name.span);
            out.push(d.hint("add a line such as `output h`"));
        }
        decls
    }

    /// Adds to unknown dimensions what else their names are, now that all names are known.
    fn explain(&self, found: &mut [Diagnostic]) {
        let names = Names {
            sizes: &self.sizes,
            values: &self.index,
            in_fn: None,
        };
        for d in found {
            *d = names.explain(d.clone());
        }
    }

    /// Dimensions and aliases; aliases may stand in any order.
    fn add_dims(&mut self, cell: &'a CellDef, out: &mut Diagnostics) {
        let mut seen: BTreeMap<Name, &'a Ident> = BTreeMap::new();
        let aliases = cell.items.iter().filter_map(|item| match item {
            Item::Dim(list, _) => Some(list),
            _ => None,
        });
        let aliases: Vec<(&'a Ident, &'a ast::Size)> = aliases.flatten().map(|(n, s)| (n, s)).collect();
        for name in cell.dims.iter().chain(aliases.iter().map(|(n, _)| *n)) {
            match seen.get(&name.name) {
                Some(first) => out.push(redefined(name, first)),
                None => drop(seen.insert(name.name.clone(), name)),
            }
        }
        for dim in &cell.dims {
            if self.sizes.insert(dim.name.clone(), Size::dim(&dim.name)).is_none() {
                self.dims.push(dim);
            }
        }
        self.aliases = aliases
            .into_iter()
            .filter(|(n, _)| std::ptr::eq(seen[&n.name], *n))
            .collect();
        self.resolve_aliases(out);
    }

    fn resolve_aliases(&mut self, out: &mut Diagnostics) {
        let number: BTreeMap<Name, usize> = self
            .aliases
            .iter()
            .enumerate()
            .map(|(i, (n, _))| (n.name.clone(), i))
            .collect();
        let reads = |size: &ast::Size| {
            sizes::names_in_size(size)
                .iter()
                .filter_map(|n| number.get(n).copied())
                .collect()
        };
        let edges: Vec<Vec<usize>> = self.aliases.iter().map(|(_, size)| reads(size)).collect();
        for group in order::groups(&edges) {
            let cyclic = order::is_cycle(&group, &edges);
            for (step, at) in group.iter().enumerate() {
                let (name, size) = self.aliases[*at];
                if cyclic && step == 0 {
                    let message = format!("the dimension `{}` is defined by itself", name.name);
                    out.push(
                        Diagnostic::new(Code::CannotInfer, message, name.span).also(size.span, "this leads back to it"),
                    );
                }
                let value = if cyclic {
                    Ok(Size::dim(&name.name))
                } else {
                    sizes::of_axis(size, &self.sizes)
                };
                let value = value.unwrap_or_else(|d| {
                    out.push(*d);
                    Size::dim(&name.name)
                });
                self.sizes.insert(name.name.clone(), value);
            }
        }
    }

    fn add_values(&mut self, item: &'a Item, out: &mut Diagnostics) {
        match item {
            Item::Input(list, _) => self.add_inputs(list, false, out),
            Item::StaticInput(list, _) => self.add_inputs(list, true, out),
            Item::Param(groups, _) => {
                for group in groups {
                    let ty = self.group_axes(group, out).map(Type::real);
                    for name in &group.names {
                        self.add_value(name, What::Param { ty: ty.clone() }, out);
                    }
                }
            }
            Item::Equation(equation) => {
                let number = self.equations.len();
                for name in &equation.names {
                    self.add_value(name, What::Equation { equation: number }, out);
                }
                self.equations.push(equation);
            }
            Item::Dim(..) | Item::State(..) | Item::Output(..) => {}
        }
    }

    fn add_inputs(&mut self, list: &'a [Typed], is_static: bool, out: &mut Diagnostics) {
        for typed in list {
            let ty = match &typed.ty {
                InputType::Real(shape) => self.shape(shape, out).map(Type::real),
                InputType::Index(size, _) => {
                    self.index_sizes.push(size);
                    let found = report(sizes::of_axis(size, &self.sizes), out);
                    found.map(|n| Type {
                        axes: Vec::new(),
                        scalar: Scalar::Index(n),
                    })
                }
            };
            for name in &typed.names {
                let ty = ty.clone();
                self.add_value(name, What::Input { ty, is_static }, out);
            }
        }
    }

    fn group_axes(&mut self, group: &'a Group, out: &mut Diagnostics) -> Option<Vec<Size>> {
        self.shape(group.shape.as_ref()?, out)
    }

    fn shape(&mut self, shape: &'a ast::Shape, out: &mut Diagnostics) -> Option<Vec<Size>> {
        self.shapes.push(shape);
        report(sizes::of_shape(shape, &self.sizes), out)
    }

    fn add_value(&mut self, name: &'a Ident, what: What, out: &mut Diagnostics) {
        match self.index.get(&name.name) {
            Some(first) => out.push(self.defined_twice(name, self.values[*first].name, &what)),
            None => {
                self.index.insert(name.name.clone(), self.values.len());
                self.values.push(Value { name, what });
            }
        }
    }

    fn defined_twice(&self, name: &Ident, first: &Ident, what: &What) -> Diagnostic {
        let d = redefined(name, first);
        match what {
            What::Equation { .. } => d.hint("each name has one value a frame; give the new value another name, or read the earlier frame's as `[t-1]`"),
            _ => d,
        }
    }

    fn add_types(&mut self, item: &'a Item, out: &mut Diagnostics) {
        match item {
            Item::State(groups, _) => groups.iter().for_each(|g| self.add_states(g, out)),
            Item::Output(groups, _) => groups.iter().for_each(|g| self.add_outputs(g, out)),
            Item::Equation(Equation {
                names,
                shape: Some(shape),
                ..
            }) => {
                let axes = self.shape(shape, out);
                for name in names {
                    self.declare(name, axes.clone(), shape.span, out);
                }
            }
            _ => {}
        }
    }

    fn add_states(&mut self, group: &'a Group, out: &mut Diagnostics) {
        let axes = self.group_axes(group, out);
        for name in &group.names {
            if let Some(first) = self.seen[0].insert(name.name.clone(), name) {
                out.push(redefined(name, first));
                continue;
            }
            match self.index.get(&name.name).map(|i| &self.values[*i]) {
                Some(Value {
                    what: What::Equation { .. },
                    ..
                }) => {}
                Some(value) => out.push(redefined(name, value.name).hint("a state is defined by an equation")),
                None => out.push(self.missing(name, "state")),
            }
            let span = group.shape.as_ref().map_or(name.span, |s| s.span);
            self.declare(name, axes.clone(), span, out);
            self.states.push(State { name, init: group.init });
        }
    }

    fn add_outputs(&mut self, group: &'a Group, out: &mut Diagnostics) {
        let axes = self.group_axes(group, out);
        for name in &group.names {
            if let Some(first) = self.seen[1].insert(name.name.clone(), name) {
                out.push(redefined(name, first));
                continue;
            }
            self.outputs.push(name);
            match self.index.get(&name.name).map(|i| &self.values[*i]) {
                Some(Value {
                    what: What::Param { .. },
                    name: first,
                }) => {
                    let message = format!("`{}` is a parameter; a parameter cannot be an output", name.name);
                    let d = Diagnostic::new(Code::BadOutput, message, name.span).also(first.span, "declared here");
                    out.push(d.hint("give an equation the value you want and output that"));
                }
                Some(_) => {}
                None => out.push(self.missing(name, "output")),
            }
            if let Some(shape) = &group.shape {
                self.declare(name, axes.clone(), shape.span, out);
            }
        }
    }

    fn missing(&self, name: &Ident, what: &str) -> Diagnostic {
        let message = format!("the {what} `{}` has no equation", name.name);
        let mut d = Diagnostic::new(Code::MissingEquation, message, name.span).label("declared here");
        let named = self.values.iter().filter(|v| !matches!(v.what, What::Param { .. }));
        d.hints.extend(suggest::hint(&name.name, named.map(|v| &*v.name.name)));
        if d.hints.is_empty() {
            d.hints.push(format!("add a line `{} = ...`", name.name));
        }
        d
    }

    /// Whether a name is on a `state` line.
    pub(super) fn is_state(&self, name: &Name) -> bool {
        self.seen[0].contains_key(name)
    }

    /// Notes declared axes of a name; two declarations must say the same.
    fn declare(&mut self, name: &Ident, axes: Option<Vec<Size>>, span: Span, out: &mut Diagnostics) {
        let Some(value) = self.index.get(&name.name).copied() else {
            return;
        };
        let Some(first) = self.declared.get(&value) else {
            self.declared.insert(value, Declared { axes, span });
            return;
        };
        if let (Some(a), Some(b)) = (&first.axes, &axes)
            && a != b
        {
            let message = format!("`{}` is declared with two different shapes", name.name);
            let d = Diagnostic::new(Code::DeclaredMismatch, message, span).label("here it is another");
            out.push(d.also(first.span, "first declared here"));
        }
    }
}

fn report<T>(found: sizes::Result<T>, out: &mut Diagnostics) -> Option<T> {
    match found {
        Ok(value) => Some(value),
        Err(d) => {
            out.push(*d);
            None
        }
    }
}
