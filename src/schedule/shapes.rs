//! Sizes get values: every axis of every node as a number, checked against the limits of a program.

use crate::diagnostics::{Code, Diagnostic, Diagnostics};
use crate::ir::{Graph, Name, NodeId, Op, Scalar, Size};
use std::collections::BTreeMap;

/// The most elements an axis may have.
const MAX_AXIS: i64 = 1 << 31;
/// The most elements a tensor may have: its bytes are counted in 63 bits.
const MAX_ELEMENTS: i64 = 1 << 60;
/// The longest delay: kernels hold a line for each frame that they keep.
const MAX_WINDOW: u32 = 4096;
/// The largest range of an index: indices travel as f32, which holds whole numbers exactly up to here.
const MAX_INDEX: i64 = 1 << 24;

/// The extents of every node at given values of the dimensions.
pub struct Shapes {
    dims: BTreeMap<Name, i64>,
    extents: Vec<Vec<usize>>,
}

impl Shapes {
    /// Evaluates every axis.
    ///
    /// # Errors
    /// A dimension has no value, or a size is not positive or too large.
    pub fn new(graph: &Graph, dims: &BTreeMap<Name, i64>) -> Result<Shapes, Diagnostics> {
        let mut shapes = Shapes {
            dims: dims.clone(),
            extents: vec![Vec::new(); graph.bound()],
        };
        let mut errors = Diagnostics::default();
        for id in graph.ids() {
            match shapes.extents_of(graph, id) {
                Ok(extents) => shapes.extents[id.index()] = extents,
                Err(error) if !errors.0.contains(&error) => errors.push(*error),
                Err(_) => {}
            }
        }
        if errors.has_errors() {
            errors.sort();
            errors.0.dedup_by(|a, b| a.message == b.message);
            return Err(errors);
        }
        Ok(shapes)
    }

    fn extents_of(&self, graph: &Graph, id: NodeId) -> Result<Vec<usize>, Box<Diagnostic>> {
        let node = graph.node(id);
        let mut extents = Vec::with_capacity(node.ty.axes.len());
        let mut elements: i64 = 1;
        for axis in &node.ty.axes {
            let n = self.positive(axis, node.span, MAX_AXIS)?;
            elements = elements
                .checked_mul(n)
                .filter(|all| *all <= MAX_ELEMENTS)
                .ok_or_else(|| overflow(&node.ty.to_string(), node.span, "2^60 elements"))?;
            extents.push(n as usize);
        }
        if let Scalar::Index(rows) = &node.ty.scalar {
            self.positive(rows, node.span, MAX_INDEX)?;
        }
        if let Op::State { window } = node.op
            && window > MAX_WINDOW
        {
            let name = graph.label(id);
            let message = format!("{name} is read with a delay of {window} frames; at most {MAX_WINDOW} can be kept");
            return Err(Box::new(Diagnostic::new(Code::TooLarge, message, node.span)));
        }
        if let Op::SizeValue(size) = &node.op {
            size.eval(&self.dims)
                .ok_or_else(|| overflow(&size.to_string(), node.span, "2^63"))?;
        }
        Ok(extents)
    }

    fn positive(&self, size: &Size, span: crate::diagnostics::Span, limit: i64) -> Result<i64, Box<Diagnostic>> {
        if let Some(name) = size.dims().into_iter().find(|name| !self.dims.contains_key(name)) {
            let message = format!("the dimension {name} has no value");
            let hint = format!("give it one: --dims {name}=256");
            return Err(Box::new(Diagnostic::new(Code::MissingDim, message, span).hint(hint)));
        }
        match size.eval(&self.dims) {
            Some(n) if n <= 0 => {
                let message = format!("the size {size} is {n} at these dimensions; it must be at least 1");
                Err(Box::new(Diagnostic::new(Code::SizeNotPositive, message, span)))
            }
            Some(n) if n <= limit => Ok(n),
            _ => Err(overflow(&size.to_string(), span, &limit.to_string())),
        }
    }

    /// The extents of a node's axes.
    pub fn of(&self, id: NodeId) -> &[usize] {
        &self.extents[id.index()]
    }

    /// The number of elements of a node.
    pub fn elements(&self, id: NodeId) -> usize {
        self.of(id).iter().product()
    }

    /// The value of a size, known to exist since construction checked it.
    pub fn value(&self, size: &Size) -> i64 {
        size.eval(&self.dims).unwrap_or(0)
    }
}

fn overflow(what: &str, span: crate::diagnostics::Span, limit: &str) -> Box<Diagnostic> {
    let message = format!("the size {what} is too large at these dimensions (at most {limit})");
    Box::new(Diagnostic::new(Code::SizeOverflow, message, span))
}

/// Row-major strides of a shape.
pub fn strides(shape: &[usize]) -> Vec<i64> {
    let mut strides = vec![1i64; shape.len()];
    for i in (1..shape.len()).rev() {
        strides[i - 1] = strides[i] * shape[i] as i64;
    }
    strides
}
