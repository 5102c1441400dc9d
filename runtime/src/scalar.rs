//! The scalar operations: one table for the graph, the plan, the engines and the reference.
//!
//! A row is a name and the value in f64; the C spelling is in `codegen`, the derivative (when there is one) beside the
//! graph's operations. Every `match` over these enums is exhaustive, so that a new row fails to compile where it is missing.

mod erf;
mod eval;

pub use eval::clamp;

use serde::{Deserialize, Serialize};

/// Functions of one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unary {
    /// `-x`
    Neg,
    /// `exp(x)`
    Exp,
    /// natural logarithm
    Log,
    /// square root
    Sqrt,
    /// `|x|`
    Abs,
    /// hyperbolic tangent
    Tanh,
    /// `1 / (1 + exp(-x))`
    Sigmoid,
    /// `max(x, 0)`
    Relu,
    /// `log(1 + exp(x))`
    Softplus,
    /// `-softplus(-x)`
    LogSigmoid,
    /// `x Phi(x)`, by erf
    Gelu,
    /// `x sigmoid(x)`
    Silu,
    /// sine
    Sin,
    /// cosine
    Cos,
    /// -1, 0 or 1
    Sign,
    /// largest whole number not above x
    Floor,
    /// the error function
    Erf,
    /// `clamp(x/6 + 1/2, 0, 1)`
    HardSigmoid,
    /// x, through which no gradient passes
    StopGradient,
}

/// Functions of two numbers; comparisons give 0 or 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Binary {
    /// `a + b`
    Add,
    /// `a - b`
    Sub,
    /// `a * b`
    Mul,
    /// `a / b`
    Div,
    /// the larger; NaN if either is
    Max,
    /// the smaller; NaN if either is
    Min,
    /// `a ^ b`
    Pow,
    /// remainder with the sign of the divisor
    Mod,
    /// `log(exp(a) + exp(b))`
    LogAddExp,
    /// `a == b`
    Eq,
    /// `a != b`
    Ne,
    /// `a < b`
    Lt,
    /// `a <= b`
    Le,
    /// `a > b`
    Gt,
    /// `a >= b`
    Ge,
}

/// Reductions over an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reduce {
    /// sum
    Sum,
    /// arithmetic mean
    Mean,
    /// biased variance, two passes or Welford
    Var,
    /// largest
    Max,
    /// smallest
    Min,
    /// `log(sum(exp))`, stable
    LogSumExp,
}

impl Unary {
    /// Every one, in order.
    pub const ALL: &'static [Unary] = &[
        Unary::Neg,
        Unary::Exp,
        Unary::Log,
        Unary::Sqrt,
        Unary::Abs,
        Unary::Tanh,
        Unary::Sigmoid,
        Unary::Relu,
        Unary::Softplus,
        Unary::LogSigmoid,
        Unary::Gelu,
        Unary::Silu,
        Unary::Sin,
        Unary::Cos,
        Unary::Sign,
        Unary::Floor,
        Unary::Erf,
        Unary::HardSigmoid,
        Unary::StopGradient,
    ];

    /// Its name in the language (`neg` has none there).
    pub fn name(self) -> &'static str {
        match self {
            Unary::Neg => "neg",
            Unary::Exp => "exp",
            Unary::Log => "log",
            Unary::Sqrt => "sqrt",
            Unary::Abs => "abs",
            Unary::Tanh => "tanh",
            Unary::Sigmoid => "sigmoid",
            Unary::Relu => "relu",
            Unary::Softplus => "softplus",
            Unary::LogSigmoid => "logsigmoid",
            Unary::Gelu => "gelu",
            Unary::Silu => "silu",
            Unary::Sin => "sin",
            Unary::Cos => "cos",
            Unary::Sign => "sign",
            Unary::Floor => "floor",
            Unary::Erf => "erf",
            Unary::HardSigmoid => "hard_sigmoid",
            Unary::StopGradient => "stop_gradient",
        }
    }
}

impl Binary {
    /// Every one, in order.
    pub const ALL: &'static [Binary] = &[
        Binary::Add,
        Binary::Sub,
        Binary::Mul,
        Binary::Div,
        Binary::Max,
        Binary::Min,
        Binary::Pow,
        Binary::Mod,
        Binary::LogAddExp,
        Binary::Eq,
        Binary::Ne,
        Binary::Lt,
        Binary::Le,
        Binary::Gt,
        Binary::Ge,
    ];

    /// Its name; for operators, the word used in printed graphs.
    pub fn name(self) -> &'static str {
        match self {
            Binary::Add => "add",
            Binary::Sub => "sub",
            Binary::Mul => "mul",
            Binary::Div => "div",
            Binary::Max => "max",
            Binary::Min => "min",
            Binary::Pow => "pow",
            Binary::Mod => "mod",
            Binary::LogAddExp => "logaddexp",
            Binary::Eq => "eq",
            Binary::Ne => "ne",
            Binary::Lt => "lt",
            Binary::Le => "le",
            Binary::Gt => "gt",
            Binary::Ge => "ge",
        }
    }
}

impl Reduce {
    /// Every one, in order.
    pub const ALL: &'static [Reduce] = &[
        Reduce::Sum,
        Reduce::Mean,
        Reduce::Var,
        Reduce::Max,
        Reduce::Min,
        Reduce::LogSumExp,
    ];

    /// Its name in printed graphs.
    pub fn name(self) -> &'static str {
        match self {
            Reduce::Sum => "sum",
            Reduce::Mean => "mean",
            Reduce::Var => "var",
            Reduce::Max => "amax",
            Reduce::Min => "amin",
            Reduce::LogSumExp => "logsumexp",
        }
    }
}
