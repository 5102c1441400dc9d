//! Types and kinds of nodes.

use super::Size;
use serde::Serialize;
use std::fmt;

/// What one element is.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub enum Scalar {
    /// A real number.
    Real,
    /// A whole number from 0 up to, not including, the size.
    Index(Size),
}

/// An ordered list of axes of one scalar type: the shape of a value in one frame, of one sequence of the batch.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Type {
    /// The axes; none for a scalar.
    pub axes: Vec<Size>,
    /// The elements.
    pub scalar: Scalar,
}

impl Type {
    /// Reals with these axes.
    pub fn real(axes: Vec<Size>) -> Type {
        Type {
            axes,
            scalar: Scalar::Real,
        }
    }

    /// A real number.
    pub fn scalar() -> Type {
        Type::real(Vec::new())
    }

    /// How many elements, as a size.
    pub fn elements(&self) -> Option<Size> {
        self.axes.iter().try_fold(Size::int(1), |n, axis| n.mul(axis))
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Scalar::Index(n) = &self.scalar {
            return write!(f, "index({n})");
        }
        write!(f, "[")?;
        for (i, axis) in self.axes.iter().enumerate() {
            if i > 0 {
                write!(f, ", ")?;
            }
            write!(f, "{axis}")?;
        }
        write!(f, "]")
    }
}

/// How often a value exists. An operation has the greatest kind of its operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Once: parameters, literals and what is made of them.
    Const,
    /// Once a sequence: `[B, axes]`.
    Static,
    /// Once a frame: `[T, B, axes]`.
    Frame,
}
