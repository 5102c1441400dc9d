//! What each operation means under a sum and a product: the one table behind every linear verdict.
//!
//! Comes in: an operation and an [`Algebra`]. Goes out: its role, e.g. that `max` is the sum of (max,+), that `+` is its
//! product, and that `tanh` is neither.

use super::Semiring;
use crate::ir::op::{Binary, Reduce, Unary};

/// Under which rules values are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Algebra {
    /// Values are affine in delayed reads, over this sum and product.
    Linear(Semiring),
    /// Only which element depends on which is of interest: every operation is a sum.
    Dependence,
}

/// What a function of one operand is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UnaryRole {
    /// Its operand.
    Identity,
    /// Its operand times a number.
    Scale,
    /// Its operand plus (in the algebra's sense) something constant.
    AddConstant,
    /// Not linear.
    Nonlinear,
}

/// What a function of two operands is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BinaryRole {
    /// The sum.
    Plus,
    /// The sum with the second operand scaled by a number.
    Minus,
    /// The product.
    Times,
    /// The product of the first operand with an inverse of the second.
    Over,
    /// Not linear.
    Nonlinear,
}

impl Algebra {
    /// Whether it is ordinary arithmetic.
    pub(super) fn is_arithmetic(self) -> bool {
        self == Algebra::Linear(Semiring::SumProduct)
    }

    /// The role of a function of one operand.
    pub(super) fn unary(self, f: Unary) -> UnaryRole {
        use Semiring::{LogSumExp, MaxMin, MaxPlus};
        match (self, f) {
            (Algebra::Dependence, _) | (_, Unary::StopGradient) => UnaryRole::Identity,
            (Algebra::Linear(Semiring::SumProduct), Unary::Neg) => UnaryRole::Scale,
            (Algebra::Linear(MaxPlus | MaxMin), Unary::Relu) => UnaryRole::AddConstant,
            (Algebra::Linear(LogSumExp), Unary::Softplus) => UnaryRole::AddConstant,
            _ => UnaryRole::Nonlinear,
        }
    }

    /// The role of a function of two operands.
    pub(super) fn binary(self, f: Binary) -> BinaryRole {
        use Semiring::{LogSumExp, MaxMin, MaxPlus, MinPlus, SumProduct};
        let Algebra::Linear(semiring) = self else {
            return BinaryRole::Plus;
        };
        match (semiring, f) {
            (SumProduct, Binary::Add)
            | (MaxPlus | MaxMin, Binary::Max)
            | (MinPlus, Binary::Min)
            | (LogSumExp, Binary::LogAddExp) => BinaryRole::Plus,
            (SumProduct, Binary::Sub) => BinaryRole::Minus,
            (SumProduct, Binary::Mul) | (MaxPlus | MinPlus | LogSumExp, Binary::Add) | (MaxMin, Binary::Min) => {
                BinaryRole::Times
            }
            (SumProduct, Binary::Div) | (MaxPlus | MinPlus | LogSumExp, Binary::Sub) => BinaryRole::Over,
            _ => BinaryRole::Nonlinear,
        }
    }

    /// Whether a reduction is a sum, perhaps scaled.
    pub(super) fn sums(self, reduce: Reduce) -> bool {
        use Semiring::{LogSumExp, MaxMin, MaxPlus, MinPlus, SumProduct};
        match self {
            Algebra::Dependence => true,
            Algebra::Linear(semiring) => matches!(
                (semiring, reduce),
                (SumProduct, Reduce::Sum | Reduce::Mean)
                    | (MaxPlus | MaxMin, Reduce::Max)
                    | (MinPlus, Reduce::Min)
                    | (LogSumExp, Reduce::LogSumExp)
            ),
        }
    }

    /// The number that adds nothing.
    pub(super) fn zero(self) -> Option<f64> {
        match self {
            Algebra::Linear(Semiring::SumProduct) => Some(0.0),
            Algebra::Linear(Semiring::MaxPlus | Semiring::LogSumExp | Semiring::MaxMin) => Some(f64::NEG_INFINITY),
            Algebra::Linear(Semiring::MinPlus) => Some(f64::INFINITY),
            Algebra::Dependence => None,
        }
    }

    /// The number that scales nothing.
    pub(super) fn one(self) -> Option<f64> {
        match self {
            Algebra::Linear(Semiring::SumProduct) => Some(1.0),
            Algebra::Linear(Semiring::MaxPlus | Semiring::MinPlus | Semiring::LogSumExp) => Some(0.0),
            Algebra::Linear(Semiring::MaxMin) => Some(f64::INFINITY),
            Algebra::Dependence => None,
        }
    }
}

impl Semiring {
    /// Every one, in the order in which they are tried: the first under which a recurrence is linear is its verdict's.
    pub const ALL: [Semiring; 5] = [
        Semiring::SumProduct,
        Semiring::MaxPlus,
        Semiring::MinPlus,
        Semiring::LogSumExp,
        Semiring::MaxMin,
    ];

    /// As it is written: `(max,+)`.
    pub fn symbol(self) -> &'static str {
        match self {
            Semiring::SumProduct => "(+,x)",
            Semiring::MaxPlus => "(max,+)",
            Semiring::MinPlus => "(min,+)",
            Semiring::LogSumExp => "(logaddexp,+)",
            Semiring::MaxMin => "(max,min)",
        }
    }
}
