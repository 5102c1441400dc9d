//! The operations of the graph: name, arity, and what each means.
//!
//! To add one: a variant here, a row in each exhaustive `match` (the compiler names them), a type rule in `ir::verify`,
//! an evaluation in `reference`, and, where it is not a view, a step in `schedule`.

use super::Size;
pub use rnnc_runtime::scalar::{Binary, Reduce, Unary};
use serde::Serialize;

/// What a node computes from its operands.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Op {
    /// An input of every frame; the node's name is the input's.
    Input,
    /// An input given once a sequence.
    StaticInput,
    /// A parameter.
    Param,
    /// A number.
    Literal(f64),
    /// The value of a size, as a number.
    SizeValue(Size),
    /// `[0, 1, ..., n-1]` along the node's only axis.
    Iota,
    /// A function of one operand, element by element.
    Unary(Unary),
    /// A function of two operands of equal axes, element by element.
    Binary(Binary),
    /// `where(c, a, b)`: a where c is not 0, else b.
    Where,
    /// `clamp(x, lo, hi)`.
    Clamp,
    /// A view: axis i of the operand becomes axis `map[i]` of the result; the others are new (the value repeats along
    /// them). A permutation of the axes is the case without new ones.
    Broadcast {
        /// One entry an operand axis; no repeats.
        map: Vec<usize>,
    },
    /// A view: positions `lo..hi` of an axis.
    Slice {
        /// Which axis.
        axis: usize,
        /// First position.
        lo: Size,
        /// One past the last.
        hi: Size,
    },
    /// A view: the same elements in row-major order under the node's axes.
    Reshape,
    /// Position l holds the operand's l - by, and 0 where there is none.
    Shift {
        /// Which axis.
        axis: usize,
        /// How far; may be negative.
        by: i64,
    },
    /// The operands one after another along an axis.
    Concat {
        /// Which axis.
        axis: usize,
    },
    /// The general product of one or two operands: labels name axes, those missing from `out` are summed over; a label
    /// twice in one operand takes its diagonal. `@`, `einsum` and `sum(a * b, K)` all come here.
    Contract {
        /// Labels of each operand's axes.
        labels: Vec<Vec<u32>>,
        /// Labels of the result's axes, each of them in some operand.
        out: Vec<u32>,
    },
    /// The general product of one or two operands as in [`Op::Contract`], summed over all frames as well, and over the
    /// sequences too where the result exists once. What weight gradients are made of.
    Total {
        /// Labels of each operand's axes.
        labels: Vec<Vec<u32>>,
        /// Labels of the result's axes, each of them in some operand.
        out: Vec<u32>,
    },
    /// A reduction over some axes, which the result lacks.
    Reduce {
        /// Which reduction.
        op: Reduce,
        /// The axes, ascending.
        axes: Vec<usize>,
    },
    /// `embed(table, index)`: row `index` of the first axis of operand 0; operand 1 is an index.
    Gather,
    /// An index as a vector that is 1 at its position and 0 elsewhere.
    OneHot,
    /// An index as a number.
    IndexToReal,
    /// A value that is read with a delay: the identity of operand 0, whose earlier frames are kept. Operand 1, if there
    /// is one, is the initial value (no frame kind); else it is 0. The node's name is the user's, `s0.<name>` its window.
    State {
        /// The largest delay with which it is read, in frames.
        window: u32,
    },
}

impl Op {
    /// The name in printed graphs.
    pub fn name(&self) -> &'static str {
        match self {
            Op::Input => "input",
            Op::StaticInput => "static_input",
            Op::Param => "param",
            Op::Literal(_) => "literal",
            Op::SizeValue(_) => "size",
            Op::Iota => "iota",
            Op::Unary(f) => f.name(),
            Op::Binary(f) => f.name(),
            Op::Where => "where",
            Op::Clamp => "clamp",
            Op::Broadcast { .. } => "broadcast",
            Op::Slice { .. } => "slice",
            Op::Reshape => "reshape",
            Op::Shift { .. } => "shift",
            Op::Concat { .. } => "concat",
            Op::Contract { .. } => "contract",
            Op::Total { .. } => "total",
            Op::Reduce { op, .. } => op.name(),
            Op::Gather => "gather",
            Op::OneHot => "one_hot",
            Op::IndexToReal => "index_to_real",
            Op::State { .. } => "state",
        }
    }

    /// How many operands it takes: least and most.
    pub fn arity(&self) -> (usize, usize) {
        match self {
            Op::Input | Op::StaticInput | Op::Param | Op::Literal(_) | Op::SizeValue(_) | Op::Iota => (0, 0),
            Op::Unary(_)
            | Op::Broadcast { .. }
            | Op::Slice { .. }
            | Op::Reshape
            | Op::Shift { .. }
            | Op::Reduce { .. }
            | Op::OneHot
            | Op::IndexToReal => (1, 1),
            Op::Binary(_) | Op::Gather => (2, 2),
            Op::Where | Op::Clamp => (3, 3),
            Op::Concat { .. } => (1, usize::MAX),
            Op::Contract { .. } | Op::Total { .. } => (1, 2),
            Op::State { .. } => (1, 2),
        }
    }

    /// Whether each element of the result depends on the same element of each operand and on nothing else.
    pub fn is_elementwise(&self) -> bool {
        matches!(
            self,
            Op::Unary(_) | Op::Binary(_) | Op::Where | Op::Clamp | Op::State { .. }
        )
    }

    /// Whether an element of the result sums up, or chooses among, many elements of the operands.
    pub fn folds(&self) -> bool {
        matches!(self, Op::Contract { .. } | Op::Total { .. } | Op::Reduce { .. })
    }

    /// Whether the result only renames the operand's elements (a shift and a concat choose among them).
    pub fn is_view(&self) -> bool {
        matches!(
            self,
            Op::Broadcast { .. } | Op::Slice { .. } | Op::Reshape | Op::Shift { .. } | Op::Concat { .. }
        )
    }
}
