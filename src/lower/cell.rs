//! A cell to its graph: declarations, reads and order go in, nodes come out.

use super::align::Operand;
use super::build::Builder;
use super::declare::{Declared, Decls, State, What};
use super::expr::Scope;
use super::program::Program;
use super::reads::Reads;
use super::unused;
use crate::diagnostics::{Code, Diagnostic, Diagnostics, Span};
use crate::ir::{Graph, Kind, Name, Node, NodeId, Op, Output, Read, Size, Type};
use crate::syntax::ast::{CellDef, Ident};

/// The graph of a cell (meaningful only if no error was found) and all that is to be said about it.
pub(super) fn lower(program: &Program, cell: &CellDef) -> (Graph, Diagnostics) {
    let mut out = Diagnostics::default();
    let decls = Decls::new(cell, &mut out);
    let reads = Reads::new(program, &decls, &mut out);
    let mut builder = Builder::new(program, &cell.name.name);
    builder.out = out;
    builder.aliases = decls
        .aliases
        .iter()
        .map(|(n, _)| (n.name.clone(), decls.sizes[&n.name].clone()))
        .collect();
    builder.graph.dims = decls.dims.iter().map(|d| d.name.clone()).collect();
    let scope = Scope {
        sizes: decls.sizes.clone(),
        ..Scope::default()
    };
    let mut lowering = Lowering {
        builder,
        decls: &decls,
        reads: &reads,
        scope,
    };
    lowering.run();
    let mut builder = lowering.builder;
    if !builder.out.has_errors() {
        unused::warn(&decls, &reads, &mut builder.out);
    }
    (builder.graph, builder.out)
}

struct Lowering<'l, 'p, 'a> {
    builder: Builder<'p, 'a>,
    decls: &'l Decls<'a>,
    reads: &'l Reads,
    scope: Scope,
}

impl Lowering<'_, '_, '_> {
    fn run(&mut self) {
        for value in 0..self.decls.values.len() {
            self.declare(value);
        }
        for unit in &self.reads.order {
            match unit.checked_sub(self.decls.equations.len()) {
                None => self.equation(*unit),
                Some(state) => self.initial(&self.decls.states[state]),
            }
        }
        for name in &self.decls.outputs {
            self.output(name);
        }
    }

    /// Inputs and parameters; for equations, what stands for them before they are computed.
    fn declare(&mut self, value: usize) {
        let name = self.decls.values[value].name;
        let read = match &self.decls.values[value].what {
            What::Input {
                ty: Some(ty),
                is_static,
            } => self.input(value, ty.clone(), *is_static),
            What::Param { ty: Some(ty) } => self.param(value, ty.clone()),
            What::Equation { .. } => self.stand_in(value),
            What::Input { ty: None, .. } | What::Param { ty: None } => None,
        };
        self.scope.values.insert(name.name.clone(), read);
    }

    fn input(&mut self, value: usize, ty: Type, is_static: bool) -> Option<Read> {
        let name = self.decls.values[value].name;
        let (op, kind) = if is_static {
            (Op::StaticInput, Kind::Static)
        } else {
            (Op::Input, Kind::Frame)
        };
        let node = self.named(op, ty.clone(), kind, name, &[]);
        self.builder.graph.inputs.push(node);
        if !self.reads.is_delayed(value) {
            return Some(Read::now(node));
        }
        if is_static {
            self.delayed_constant(value, "a static input, given once a sequence");
            return Some(Read::now(node));
        }
        Some(Read::now(self.state(value, ty, Some(Read::now(node)))))
    }

    fn param(&mut self, value: usize, ty: Type) -> Option<Read> {
        let node = self.named(Op::Param, ty, Kind::Const, self.decls.values[value].name, &[]);
        self.builder.graph.params.push(node);
        if self.reads.is_delayed(value) {
            self.delayed_constant(value, "a parameter");
        }
        Some(Read::now(node))
    }

    /// A delayed name of declared axes has its state at once; another may need a view of what is still to come.
    fn stand_in(&mut self, value: usize) -> Option<Read> {
        let axes = self.axes(value)?;
        if self.reads.is_delayed(value) {
            return Some(Read::now(self.state(value, Type::real(axes), None)));
        }
        let failed = matches!(self.decls.values[value].what, What::Equation { equation } if self.reads.failed.contains(&equation));
        if !failed && !self.reads.early.contains(&value) {
            return None;
        }
        let map = (0..axes.len()).collect();
        let name = self.decls.values[value].name;
        Some(Read::now(self.named(
            Op::Broadcast { map },
            Type::real(axes),
            Kind::Frame,
            name,
            &[],
        )))
    }

    /// Declared axes that could be made out.
    fn axes(&self, value: usize) -> Option<Vec<Size>> {
        self.decls.declared.get(&value)?.axes.clone()
    }

    fn named(&mut self, op: Op, ty: Type, kind: Kind, name: &Ident, operands: &[Read]) -> NodeId {
        let (span, name) = (name.span, Some(name.name.clone()));
        self.builder.graph.add(
            Node {
                op,
                ty,
                kind,
                span,
                name,
            },
            operands,
        )
    }

    /// The node through which other frames read a value.
    fn state(&mut self, value: usize, ty: Type, operand: Option<Read>) -> NodeId {
        let name = self.decls.values[value].name;
        let window = self.reads.windows[value].back;
        let operands: Vec<Read> = operand.into_iter().collect();
        let node = self.named(Op::State { window }, ty, Kind::Frame, name, &operands);
        self.scope.states.insert(name.name.clone(), node);
        node
    }

    fn delayed_constant(&mut self, value: usize, what: &str) {
        let name = self.decls.values[value].name;
        for span in &self.reads.windows[value].spans {
            let message = format!("`{}` is the same in every frame: it is {what}", name.name);
            let d = Diagnostic::new(Code::DelayedConstant, message, *span).label("read from another frame");
            self.builder
                .report(d.also(name.span, "defined here").hint(format!("write `{}`", name.name)));
        }
    }

    fn equation(&mut self, unit: usize) {
        if self.reads.failed.contains(&unit) {
            return;
        }
        let equation = self.decls.equations[unit];
        let span = self.builder.program.file[equation.value].span;
        let values = self.builder.equation(&self.scope, equation);
        for (name, read) in equation.names.iter().zip(values) {
            let Some(value) = self.decls.index.get(&name.name).copied() else {
                continue;
            };
            // A name that is defined twice keeps its first equation.
            if std::ptr::eq(self.decls.values[value].name, name) {
                let read = read.and_then(|read| self.finished(value, Operand { read, span }));
                self.define(value, read);
            }
        }
    }

    /// The value of an equation: real, of declared axes, a node that bears its name.
    fn finished(&mut self, value: usize, found: Operand) -> Option<Read> {
        let name = self.decls.values[value].name;
        if self.builder.index_of(found.read).is_some() {
            let message = format!("`{}` would be an index; equations have real values", name.name);
            let d = Diagnostic::new(Code::IndexMisuse, message, found.span).label("an index");
            self.builder
                .report(d.hint("read the input where it is needed, or make a vector of it by `one_hot`"));
            return None;
        }
        let mut read = found.read;
        if let Some(Declared { axes: Some(axes), span }) = self.decls.declared.get(&value) {
            read = self.builder.conform(found, axes, &name.name, *span)?;
        }
        if read.delay != 0 {
            read = self.builder.identity(read, found.span)?;
        }
        self.give_name(read.node, &name.name);
        Some(read)
    }

    /// Names a node, unless it has a name or is a number that others share.
    fn give_name(&mut self, node: NodeId, name: &Name) {
        let graph = &mut self.builder.graph;
        let is_number = |id: NodeId| matches!(graph.node(id).op, Op::Literal(_));
        let shared = is_number(node)
            || graph
                .operands(node)
                .iter()
                .any(|r| is_number(r.node) && graph.operands(node).len() == 1);
        if !shared && graph.node(node).name.is_none() {
            graph.node_mut(node).name = Some(name.clone());
        }
    }

    /// Puts a value where its readers look for it.
    fn define(&mut self, value: usize, read: Option<Read>) {
        let name = self.decls.values[value].name.name.clone();
        let stand_in = self.scope.values.get(&name).copied().flatten();
        match (stand_in, read) {
            (Some(node), Some(read)) => {
                self.builder.graph.set_operand(node.node, 0, read);
                self.check_varies(value, read);
            }
            (None, Some(read)) if self.reads.is_delayed(value) => {
                let ty = self.builder.graph.node(read.node).ty.clone();
                let state = self.state(value, ty, Some(read));
                self.scope.values.insert(name, Some(Read::now(state)));
                self.check_varies(value, read);
            }
            (None, read) => {
                let read = read.or_else(|| self.known_type(value));
                self.scope.values.insert(name, read);
            }
            (Some(_), None) => {}
        }
    }

    /// After an error, a node of the declared type, so that readers are still checked.
    fn known_type(&mut self, value: usize) -> Option<Read> {
        let axes = self.axes(value)?;
        let name = self.decls.values[value].name;
        Some(Read::now(self.named(
            Op::Input,
            Type::real(axes),
            Kind::Frame,
            name,
            &[],
        )))
    }

    /// Rule 3: what is the same in every frame is not read with a delay.
    fn check_varies(&mut self, value: usize, read: Read) {
        if self.builder.kind(read) < Kind::Frame && self.reads.is_delayed(value) {
            self.delayed_constant(value, "computed from what does not vary");
        }
    }

    /// Rule 19: the initial value of a state.
    fn initial(&mut self, state: &State) {
        let Some(init) = state.init else { return };
        let Some(value) = self.builder.real(&self.scope, init) else {
            return;
        };
        let Some(index) = self.decls.index.get(&state.name.name) else {
            return;
        };
        let Some(Declared { axes: Some(axes), span }) = self.decls.declared.get(index) else {
            return;
        };
        if self.builder.kind(value.read) == Kind::Frame {
            let message = format!("the initial value of `{}` varies from frame to frame", state.name.name);
            let d = Diagnostic::new(Code::BadInitial, message, value.span).label("made of values of this frame");
            self.builder
                .report(d.hint("it may be made of numbers, parameters and static inputs"));
            return;
        }
        let is_number = self.builder.axes(value.read).is_empty();
        let fitted = match is_number {
            true => self.builder.view(value.read, axes, value.span),
            false => self.builder.conform(value, axes, &state.name.name, *span),
        };
        if let (Some(read), Some(node)) = (fitted, self.scope.states.get(&state.name.name)) {
            self.builder.graph.set_operand(*node, 1, read);
        }
    }

    fn output(&mut self, name: &Ident) {
        let Some(index) = self.decls.index.get(&name.name).copied() else {
            return;
        };
        let Some(mut read) = self.scope.values.get(&name.name).copied().flatten() else {
            return;
        };
        if self.builder.index_of(read).is_some() {
            let message = format!("`{}` is an index; outputs are real", name.name);
            let d = Diagnostic::new(Code::BadOutput, message, name.span).label("an index");
            self.builder
                .report(d.hint("the caller has the index already; `one_hot` makes a vector of it"));
            return;
        }
        if let (What::Input { .. }, Some(Declared { axes: Some(axes), span })) =
            (&self.decls.values[index].what, self.decls.declared.get(&index))
        {
            let span_of = self.decls.values[index].name.span;
            let Some(found) = self
                .builder
                .conform(Operand { read, span: span_of }, axes, &name.name, *span)
            else {
                return;
            };
            read = found;
        }
        self.push_output(name, read, name.span);
    }

    fn push_output(&mut self, name: &Ident, read: Read, span: Span) {
        let (name, node) = (name.name.clone(), read.node);
        self.builder.graph.outputs.push(Output { name, node, span });
    }
}
