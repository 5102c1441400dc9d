//! The error function in f64, to a few units in the last place.
//!
//! Two textbook expansions (Abramowitz and Stegun 7.1.6 and 7.1.14), each where its terms are all positive or converge
//! fast, so that no table of coefficients is needed. Speed does not matter here.

use std::f64::consts::PI;

/// Below this the series of erf is used, above it the continued fraction of erfc.
const CROSSING: f64 = 2.0;

/// `2/sqrt(pi)` times the integral of `exp(-u^2)` from 0 to `x`.
pub(super) fn erf(x: f64) -> f64 {
    if x.abs() < CROSSING {
        series(x)
    } else {
        (1.0 - fraction(x.abs())).copysign(x)
    }
}

/// `1 - erf(x)`, accurate where that difference is not.
pub(super) fn erfc(x: f64) -> f64 {
    if x < 1.0 {
        1.0 - erf(x)
    } else if x.is_nan() {
        x
    } else {
        fraction(x)
    }
}

/// `erf(x) = 2/sqrt(pi) exp(-x^2) sum over n of 2^n x^(2n+1) / (1 3 5 ... (2n+1))`.
fn series(x: f64) -> f64 {
    let mut term = x;
    let mut sum = x;
    let mut odd = 1.0;
    while term.abs() > 1e-18 * sum.abs() {
        odd += 2.0;
        term *= 2.0 * x * x / odd;
        sum += term;
    }
    2.0 / PI.sqrt() * gauss(x) * sum
}

/// `erfc(x) = exp(-x^2)/sqrt(pi) / (x + (1/2)/(x + (2/2)/(x + (3/2)/(x + ...))))` for `x > 0`, from the far end inwards.
fn fraction(x: f64) -> f64 {
    // So many levels leave less than 1e-20 for every x from 1 on.
    let levels = if x < CROSSING { 300 } else { 100 };
    let tail = (1..=levels).rev().fold(x, |tail, k| x + 0.5 * f64::from(k) / tail);
    gauss(x) / PI.sqrt() / tail
}

/// `exp(-x^2)`; the part of the square that rounding loses is put back, or the result would be off by up to x^2 units.
fn gauss(x: f64) -> f64 {
    let square = x * x;
    if !square.is_finite() {
        return if x.is_nan() { x } else { 0.0 };
    }
    let lost = x.mul_add(x, -square);
    (-square).exp() * (1.0 - lost)
}

#[cfg(test)]
mod tests {
    use super::{erf, erfc};

    /// Values to 17 digits from 50-digit arithmetic.
    #[test]
    fn known_values() {
        for (x, want) in [
            (0.0, 0.0),
            (1e-10, 1.128_379_167_095_512_6e-10),
            (0.1, 0.112_462_916_018_284_89),
            (0.5, 0.520_499_877_813_046_5),
            (1.0, 0.842_700_792_949_714_9),
            (1.999, 0.995_301_556_651_370_5),
            (2.0, 0.995_322_265_018_952_7),
            (3.5, 0.999_999_256_901_627_7),
            (6.0, 1.0),
            (f64::INFINITY, 1.0),
        ] {
            let got = erf(x);
            assert!(
                (got - want).abs() <= 5e-16 * want,
                "erf({x}) = {got:e}, should be {want:e}"
            );
            assert_eq!(erf(-x), -got);
        }
        assert!(erf(f64::NAN).is_nan() && erfc(f64::NAN).is_nan());
    }

    #[test]
    fn the_complement_keeps_its_digits() {
        for (x, want) in [
            (-1.0, 1.842_700_792_949_715),
            (0.5, 0.479_500_122_186_953_5),
            (1.0, 0.157_299_207_050_285_13),
            (2.0, 4.677_734_981_047_266e-3),
            (5.0, 1.537_459_794_428_035e-12),
            (20.0, 5.395_865_611_607_901e-176),
            (f64::INFINITY, 0.0),
        ] {
            let got = erfc(x);
            assert!(
                (got - want).abs() <= 2e-15 * want,
                "erfc({x}) = {got:e}, should be {want:e}"
            );
        }
    }

    /// Where one expansion gives way to the other, no step.
    #[test]
    fn no_step_at_the_crossings() {
        for x in [1.0, 2.0] {
            let (below, above) = (f64::from_bits(f64::to_bits(x) - 1), x);
            assert!((erf(below) - erf(above)).abs() < 1e-15);
            assert!((erfc(below) / erfc(above) - 1.0).abs() < 3e-15);
        }
    }
}
