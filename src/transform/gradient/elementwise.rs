//! The derivative of every function of numbers, one row each.
//!
//! Where a function has a corner the convention is PyTorch's: `relu` and `abs` have slope 0 at 0, `max` and `min` share
//! the gradient between equal operands, `clamp` passes it at its bounds.

use super::build::Build;
use crate::ir::Read;
use crate::ir::op::{Binary, Unary};
use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI, PI};

/// `g` times the derivative at `x`, where the function is `y`; none where it is 0 everywhere.
pub(super) fn unary(b: &mut Build<'_>, f: Unary, g: Read, x: Read, y: Read) -> Option<Read> {
    Some(match f {
        Unary::Sign | Unary::Floor | Unary::StopGradient => return None,
        Unary::Neg => b.unary(Unary::Neg, g),
        Unary::Exp => b.times(g, y),
        Unary::Log => b.over(g, x),
        Unary::Sqrt => {
            let twice = b.plus(y, y);
            b.over(g, twice)
        }
        Unary::Abs => {
            let slope = b.unary(Unary::Sign, x);
            b.times(g, slope)
        }
        Unary::Tanh => {
            let (one, square) = (b.number(1.0, y), b.times(y, y));
            let slope = b.minus(one, square);
            b.times(g, slope)
        }
        Unary::Sigmoid => logistic(b, g, y),
        Unary::Relu => {
            let zero = b.number(0.0, x);
            let inside = b.binary(Binary::Gt, x, zero);
            b.select(inside, g, zero)
        }
        Unary::Softplus => {
            let slope = b.unary(Unary::Sigmoid, x);
            b.times(g, slope)
        }
        Unary::LogSigmoid => {
            let away = b.unary(Unary::Neg, x);
            let slope = b.unary(Unary::Sigmoid, away);
            b.times(g, slope)
        }
        Unary::Gelu => {
            let slope = gelu(b, x);
            b.times(g, slope)
        }
        Unary::Silu => {
            let (one, s) = (b.number(1.0, x), b.unary(Unary::Sigmoid, x));
            let rest = b.minus(one, s);
            let rest = b.times(x, rest);
            let rest = b.plus(one, rest);
            let slope = b.times(s, rest);
            b.times(g, slope)
        }
        Unary::Sin => {
            let slope = b.unary(Unary::Cos, x);
            b.times(g, slope)
        }
        Unary::Cos => {
            let sine = b.unary(Unary::Sin, x);
            let slope = b.unary(Unary::Neg, sine);
            b.times(g, slope)
        }
        Unary::Erf => {
            let bell = bell(b, x, 1.0, FRAC_2_SQRT_PI);
            b.times(g, bell)
        }
        Unary::HardSigmoid => {
            let (zero, three, sixth) = (b.number(0.0, x), b.number(3.0, x), b.number(1.0 / 6.0, x));
            let size = b.unary(Unary::Abs, x);
            let inside = b.binary(Binary::Lt, size, three);
            let scaled = b.times(g, sixth);
            b.select(inside, scaled, zero)
        }
    })
}

/// `g y (1 - y)`.
fn logistic(b: &mut Build<'_>, g: Read, y: Read) -> Read {
    let one = b.number(1.0, y);
    let rest = b.minus(one, y);
    let slope = b.times(y, rest);
    b.times(g, slope)
}

/// `scale exp(-width x^2)`.
fn bell(b: &mut Build<'_>, x: Read, width: f64, scale: f64) -> Read {
    let (square, width, scale) = (b.times(x, x), b.number(-width, x), b.number(scale, x));
    let exponent = b.times(square, width);
    let bell = b.unary(Unary::Exp, exponent);
    b.times(bell, scale)
}

/// `Phi(x) + x phi(x)`.
fn gelu(b: &mut Build<'_>, x: Read) -> Read {
    let (half, shrink, one) = (b.number(0.5, x), b.number(FRAC_1_SQRT_2, x), b.number(1.0, x));
    let shrunk = b.times(x, shrink);
    let erf = b.unary(Unary::Erf, shrunk);
    let sum = b.plus(one, erf);
    let below = b.times(half, sum);
    let density = bell(b, x, 0.5, 1.0 / (2.0 * PI).sqrt());
    let slope = b.times(x, density);
    b.plus(below, slope)
}

/// `g` times the derivatives by the first and by the second operand, where the function is `y`.
pub(super) fn binary(b: &mut Build<'_>, f: Binary, g: Read, (x, z): (Read, Read), y: Read) -> [Option<Read>; 2] {
    match f {
        Binary::Eq | Binary::Ne | Binary::Lt | Binary::Le | Binary::Gt | Binary::Ge => [None, None],
        Binary::Add => [Some(g), Some(g)],
        Binary::Sub => [Some(g), Some(b.unary(Unary::Neg, g))],
        Binary::Mul => [Some(b.times(g, z)), Some(b.times(g, x))],
        Binary::Div => {
            let first = b.over(g, z);
            let by = b.times(first, y);
            [Some(first), Some(b.unary(Unary::Neg, by))]
        }
        Binary::Max => shared(b, g, x, z),
        Binary::Min => shared(b, g, z, x),
        Binary::Pow => power(b, g, (x, z), y),
        Binary::Mod => {
            let ratio = b.over(x, z);
            let whole = b.unary(Unary::Floor, ratio);
            let by = b.times(g, whole);
            [Some(g), Some(b.unary(Unary::Neg, by))]
        }
        Binary::LogAddExp => {
            let (first, second) = (share(b, x, z), share(b, z, x));
            [Some(b.times(g, first)), Some(b.times(g, second))]
        }
    }
}

/// `exp(x) / (exp(x) + exp(z))`; one half where both are the same, infinities included.
fn share(b: &mut Build<'_>, x: Read, z: Read) -> Read {
    let (half, same, difference) = (b.number(0.5, x), b.binary(Binary::Eq, x, z), b.minus(x, z));
    let share = b.unary(Unary::Sigmoid, difference);
    b.select(same, half, share)
}

/// What the larger and the smaller of two values get: all, nothing, or one half each.
fn shared(b: &mut Build<'_>, g: Read, x: Read, z: Read) -> [Option<Read>; 2] {
    let part = |b: &mut Build<'_>, x: Read, z: Read| {
        let (zero, half) = (b.number(0.0, x), b.number(0.5, x));
        let (above, same, halved) = (b.binary(Binary::Gt, x, z), b.binary(Binary::Eq, x, z), b.times(g, half));
        let otherwise = b.select(same, halved, zero);
        b.select(above, g, otherwise)
    };
    [Some(part(b, x, z)), Some(part(b, z, x))]
}

/// `z x^(z-1)`, which is 0 for z = 0, and `x^z log(x)`, which is 0 for x = 0 and z >= 0.
fn power(b: &mut Build<'_>, g: Read, (x, z): (Read, Read), y: Read) -> [Option<Read>; 2] {
    let (zero, one) = (b.number(0.0, x), b.number(1.0, x));
    let less = b.minus(z, one);
    let inner = b.binary(Binary::Pow, x, less);
    let slope = b.times(z, inner);
    let none = b.binary(Binary::Eq, z, zero);
    let slope = b.select(none, zero, slope);
    let (log, empty, positive) = (
        b.unary(Unary::Log, x),
        b.binary(Binary::Eq, x, zero),
        b.binary(Binary::Ge, z, zero),
    );
    let both = b.times(empty, positive);
    let by = b.times(y, log);
    let by = b.select(both, zero, by);
    [Some(b.times(g, slope)), Some(b.times(g, by))]
}
