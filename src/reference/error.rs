//! Why a graph was not evaluated.

/// What is wrong with the dimensions or tensors given.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReferenceError {
    /// A tensor that the cell needs was not given.
    #[error("{name} is missing")]
    Missing {
        /// Its key, such as `x.token` or `p.W`.
        name: String,
    },
    /// A tensor was given that the cell has no use for.
    #[error("the cell has no {name}")]
    Unknown {
        /// Its key.
        name: String,
    },
    /// A tensor has another shape than the cell gives it.
    #[error("{name} has the shape {got:?}, expected {expected:?}")]
    Shape {
        /// Its key.
        name: String,
        /// What the cell has.
        expected: Vec<usize>,
        /// What was given.
        got: Vec<usize>,
    },
    /// A dimension of the cell has no value.
    #[error("the dimension {name} has no value")]
    MissingDim {
        /// Which.
        name: String,
    },
    /// A value was given for a dimension that the cell does not have.
    #[error("the cell has no dimension {name}")]
    UnknownDim {
        /// Which.
        name: String,
    },
    /// A size, the number of frames or that of sequences is not above 0, or a slice leaves its axis.
    #[error("{what} is {value}, out of range")]
    OutOfRange {
        /// The size as the user wrote it.
        what: String,
        /// Its value.
        value: i64,
    },
    /// An axis is above 2^31 or a tensor above 2^63 elements.
    #[error("{what} is too large")]
    Overflow {
        /// The size or type as the user wrote it.
        what: String,
    },
    /// An index is outside its range, or no whole number.
    #[error("{name} holds the index {value}, outside 0..{rows}")]
    Index {
        /// The key of the tensor.
        name: String,
        /// The index, as text.
        value: String,
        /// How many rows there are.
        rows: usize,
    },
    /// A recurrence reads its own later frames.
    #[error("{name} is read ahead of time within its own recurrence")]
    ReadsAhead {
        /// The state that is read.
        name: String,
    },
}
