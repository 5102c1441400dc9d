//! The values of the scalar operations in f64: what every engine is measured against.
//!
//! Each is accurate over the whole range of f64, infinities included, and NaN goes in and comes out except where a
//! comparison says otherwise.

use super::erf::{erf, erfc};
use super::{Binary, Reduce, Unary};
use std::f64::consts::{LN_2, SQRT_2};

impl Unary {
    /// Its value at `x`.
    pub fn eval(self, x: f64) -> f64 {
        match self {
            Unary::Neg => -x,
            Unary::Exp => x.exp(),
            Unary::Log => x.ln(),
            Unary::Sqrt => x.sqrt(),
            Unary::Abs => x.abs(),
            Unary::Tanh => x.tanh(),
            Unary::Sigmoid => sigmoid(x),
            Unary::Relu => maximum(x, 0.0),
            Unary::Softplus => softplus(x),
            Unary::LogSigmoid => -softplus(-x),
            // By erfc, because 1 + erf loses every digit far to the left; there x * 0 would be NaN at -inf.
            Unary::Gelu if x == f64::NEG_INFINITY => 0.0,
            Unary::Gelu => 0.5 * x * erfc(-x / SQRT_2),
            Unary::Silu if x == f64::NEG_INFINITY => 0.0,
            Unary::Silu => x * sigmoid(x),
            Unary::Sin => x.sin(),
            Unary::Cos => x.cos(),
            Unary::Sign if x > 0.0 => 1.0,
            Unary::Sign if x < 0.0 => -1.0,
            Unary::Sign => 0.0,
            Unary::Floor => x.floor(),
            Unary::Erf => erf(x),
            Unary::HardSigmoid => clamp(x / 6.0 + 0.5, 0.0, 1.0),
            Unary::StopGradient => x,
        }
    }
}

impl Binary {
    /// Its value at `a` and `b`.
    pub fn eval(self, a: f64, b: f64) -> f64 {
        match self {
            Binary::Add => a + b,
            Binary::Sub => a - b,
            Binary::Mul => a * b,
            Binary::Div => a / b,
            Binary::Max => maximum(a, b),
            Binary::Min => minimum(a, b),
            Binary::Pow => a.powf(b),
            Binary::Mod => modulo(a, b),
            Binary::LogAddExp => log_add_exp(a, b),
            Binary::Eq => truth(a == b),
            Binary::Ne => truth(a != b),
            Binary::Lt => truth(a < b),
            Binary::Le => truth(a <= b),
            Binary::Gt => truth(a > b),
            Binary::Ge => truth(a >= b),
        }
    }
}

impl Reduce {
    /// Its value over `values`, of which there is at least one.
    pub fn eval(self, values: &[f64]) -> f64 {
        let n = values.len() as f64;
        match self {
            Reduce::Sum => values.iter().sum(),
            Reduce::Mean => values.iter().sum::<f64>() / n,
            Reduce::Var => {
                let mean = values.iter().sum::<f64>() / n;
                values.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / n
            }
            Reduce::Max => values.iter().copied().fold(f64::NEG_INFINITY, maximum),
            Reduce::Min => values.iter().copied().fold(f64::INFINITY, minimum),
            Reduce::LogSumExp => log_sum_exp(values),
        }
    }
}

/// `x`, made at least `lo`, then at most `hi`; NaN if any is.
pub fn clamp(x: f64, lo: f64, hi: f64) -> f64 {
    minimum(maximum(x, lo), hi)
}

fn truth(holds: bool) -> f64 {
    f64::from(u8::from(holds))
}

fn maximum(a: f64, b: f64) -> f64 {
    if a > b || a.is_nan() { a } else { b }
}

fn minimum(a: f64, b: f64) -> f64 {
    if a < b || a.is_nan() { a } else { b }
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

fn softplus(x: f64) -> f64 {
    maximum(x, 0.0) + (-x.abs()).exp().ln_1p()
}

fn modulo(a: f64, b: f64) -> f64 {
    let r = a % b;
    if r == 0.0 {
        0f64.copysign(b)
    } else if (r < 0.0) != (b < 0.0) {
        r + b
    } else {
        r
    }
}

fn log_add_exp(a: f64, b: f64) -> f64 {
    if a == b {
        return a + LN_2; // also where both are the same infinity, whose difference is NaN
    }
    maximum(a, b) + (-(a - b).abs()).exp().ln_1p()
}

fn log_sum_exp(values: &[f64]) -> f64 {
    let most = Reduce::Max.eval(values);
    if most.is_infinite() {
        return most;
    }
    most + values.iter().map(|x| (x - most).exp()).sum::<f64>().ln()
}

#[cfg(test)]
mod tests {
    use super::*;
    use Unary::{Gelu, HardSigmoid, LogSigmoid, Relu, Sigmoid, Sign, Silu, Softplus, Tanh};

    const INF: f64 = f64::INFINITY;

    #[track_caller]
    fn close(got: f64, want: f64) {
        assert!((got - want).abs() <= 4e-16 * want.abs(), "{got:e}, should be {want:e}");
    }

    /// Values to 17 digits from 50-digit arithmetic.
    #[test]
    fn values_of_one_number() {
        close(Softplus.eval(1.0), 1.313_261_687_518_222_8);
        close(Softplus.eval(-40.0), 4.248_354_255_291_589e-18);
        close(LogSigmoid.eval(-0.5), -0.974_076_984_180_106_7);
        close(LogSigmoid.eval(40.0), -4.248_354_255_291_589e-18);
        close(Gelu.eval(1.0), 0.841_344_746_068_542_9);
        close(Sigmoid.eval(-2.0), 0.119_202_922_022_117_56);
        close(HardSigmoid.eval(1.5), 0.75);
        // Rounding x/sqrt(2) alone costs up to x^2 units in the last place.
        assert!((Gelu.eval(-10.0) / -7.619_853_024_160_526e-23 - 1.0).abs() < 1e-14);
    }

    #[test]
    fn far_out_nothing_overflows() {
        for (f, x, want) in [
            (Softplus, 1000.0, 1000.0),
            (Softplus, -1000.0, 0.0),
            (Softplus, INF, INF),
            (Softplus, -INF, 0.0),
            (LogSigmoid, 1000.0, 0.0),
            (LogSigmoid, -1000.0, -1000.0),
            (LogSigmoid, -INF, -INF),
            (Sigmoid, -1000.0, 0.0),
            (Tanh, 1000.0, 1.0),
            (Silu, -INF, 0.0),
            (Gelu, -INF, 0.0),
            (Gelu, INF, INF),
            (Sign, -0.0, 0.0),
            (Sign, -INF, -1.0),
            (HardSigmoid, -INF, 0.0),
        ] {
            assert_eq!(f.eval(x), want, "{}({x})", f.name());
        }
    }

    #[test]
    fn logaddexp_at_the_ends() {
        let f = |a, b| Binary::LogAddExp.eval(a, b);
        assert_eq!(f(-INF, -INF), -INF);
        assert_eq!(f(INF, INF), INF);
        assert_eq!(f(-INF, 3.0), 3.0);
        assert_eq!(f(INF, -INF), INF);
        close(f(1000.0, 1000.0), 1000.0 + LN_2);
        close(f(-1000.0, -1001.0), -999.686_738_312_481_8);
        assert!(f(f64::NAN, 0.0).is_nan() && f(0.0, f64::NAN).is_nan());
    }

    #[test]
    fn the_remainder_has_the_sign_of_the_divisor() {
        let rows = [
            (5.0, 3.0, 2.0),
            (-5.0, 3.0, 1.0),
            (5.0, -3.0, -1.0),
            (-5.0, -3.0, -2.0),
            (-6.0, 3.0, 0.0),
        ];
        for (a, b, want) in rows {
            assert_eq!(Binary::Mod.eval(a, b), want, "{a} mod {b}");
        }
        assert!(Binary::Mod.eval(6.0, -3.0).is_sign_negative());
        assert!(Binary::Mod.eval(1.0, 0.0).is_nan());
    }

    #[test]
    fn nan_propagates_through_max_and_min() {
        let nan = f64::NAN;
        for f in [Binary::Max, Binary::Min] {
            assert!(f.eval(nan, 1.0).is_nan() && f.eval(1.0, nan).is_nan(), "{}", f.name());
        }
        for f in [Reduce::Max, Reduce::Min, Reduce::LogSumExp] {
            assert!(f.eval(&[1.0, nan, 2.0]).is_nan(), "{}", f.name());
        }
        assert!(Relu.eval(nan).is_nan() && clamp(nan, 0.0, 1.0).is_nan() && Softplus.eval(nan).is_nan());
        assert_eq!(Binary::Eq.eval(nan, nan), 0.0);
    }

    #[test]
    fn reductions() {
        let x = [1.0, 2.0, 4.0];
        let values: Vec<f64> = Reduce::ALL.iter().map(|f| f.eval(&x)).collect();
        let (mean, var) = (7.0 / 3.0, 14.0 / 9.0);
        for (got, want) in values
            .into_iter()
            .zip([7.0, mean, var, 4.0, 1.0, 4.169_846_019_556_286])
        {
            close(got, want);
        }
        assert_eq!(Reduce::LogSumExp.eval(&[-INF, -INF]), -INF);
        close(Reduce::LogSumExp.eval(&[1000.0, 1000.0]), 1000.0 + LN_2);
    }
}
