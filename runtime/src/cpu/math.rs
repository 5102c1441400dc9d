//! Scalar functions as straight-line code without branches or calls, so that loops over them become vector code.
//!
//! Accurate to about two units in the last place of f32, exact at infinities, NaN in gives NaN out (except through
//! comparisons). The three that recurrent cells live on, exp, sigmoid and tanh, are computed in f32; the others in f64,
//! where textbook expansions are exact enough without care. `F` says whether `mul_add` is one instruction here: if not, it
//! would be a slow call.

use crate::scalar::Unary;
use std::f64::consts::{FRAC_PI_2, LN_2, LOG2_E, SQRT_2};

/// `a * b + c`.
#[inline(always)]
pub(super) fn fma<const F: bool>(a: f32, b: f32, c: f32) -> f32 {
    if F { a.mul_add(b, c) } else { a * b + c }
}

#[inline(always)]
fn fma64<const F: bool>(a: f64, b: f64, c: f64) -> f64 {
    if F { a.mul_add(b, c) } else { a * b + c }
}

/// Horner's rule, highest power first.
#[inline(always)]
fn poly<const F: bool, const N: usize>(x: f32, coefficients: [f32; N]) -> f32 {
    let mut sum = 0.0;
    for c in coefficients {
        sum = fma::<F>(sum, x, c);
    }
    sum
}

#[inline(always)]
fn poly64<const F: bool, const N: usize>(x: f64, coefficients: [f64; N]) -> f64 {
    let mut sum = 0.0;
    for c in coefficients {
        sum = fma64::<F>(sum, x, c);
    }
    sum
}

/// The larger; NaN if either is.
#[inline(always)]
pub(super) fn maximum(a: f32, b: f32) -> f32 {
    if a > b || a.is_nan() { a } else { b }
}

/// The smaller; NaN if either is.
#[inline(always)]
pub(super) fn minimum(a: f32, b: f32) -> f32 {
    if a < b || a.is_nan() { a } else { b }
}

#[inline(always)]
fn maximum64(a: f64, b: f64) -> f64 {
    if a > b || a.is_nan() { a } else { b }
}

#[inline(always)]
fn minimum64(a: f64, b: f64) -> f64 {
    if a < b || a.is_nan() { a } else { b }
}

/// Adding this to a small f32 leaves the nearest whole number in the low bits.
const ROUND: f32 = 12_582_912.0;
/// ln 2 in two parts; products of the first with whole numbers below 2^14 are exact.
const LN2_HIGH: f32 = 355.0 / 512.0;
const LN2_LOW: f32 = -2.121_944_4e-4;

/// `exp(x) = 2^n (1 + r + r^2 q(r))`: n and `r + r^2 q(r)`; q is a minimax fit on half a binade.
#[inline(always)]
fn exp_parts<const F: bool>(x: f32) -> (i32, f32) {
    let shifted = fma::<F>(x, std::f32::consts::LOG2_E, ROUND);
    let n = shifted - ROUND;
    let r = fma::<F>(n, -LN2_LOW, fma::<F>(n, -LN2_HIGH, x));
    let q = poly::<F, 5>(r, [1.392_617_8e-3, 8.363_174e-3, 4.166_655_5e-2, 1.666_657_7e-1, 0.5]);
    let whole = (shifted.to_bits() as i32).wrapping_sub(ROUND.to_bits() as i32);
    (whole, fma::<F>(q * r, r, r))
}

/// 2^n for -126 <= n <= 127.
#[inline(always)]
fn power_of_two(n: i32) -> f32 {
    f32::from_bits((n.wrapping_add(127) as u32) << 23)
}

/// `e^x`.
#[inline(always)]
pub(super) fn exp<const F: bool>(x: f32) -> f32 {
    // Beyond these the result is infinite or rounds to 0. NaN passes both comparisons.
    let x = if x > 89.0 { 89.0 } else { x };
    let x = if x < -104.0 { -104.0 } else { x };
    let (n, p) = exp_parts::<F>(x);
    // In two factors: 2^n alone may be too large, or too small, for a normal number.
    let half = n >> 1;
    (1.0 + p) * power_of_two(half) * power_of_two(n.wrapping_sub(half))
}

/// `1 / (1 + e^-x)`, from `e^-|x|`, which cannot overflow.
#[inline(always)]
pub(super) fn sigmoid<const F: bool>(x: f32) -> f32 {
    let e = exp::<F>(-x.abs());
    let above = if x < 0.0 { e } else { 1.0 };
    above / (1.0 + e)
}

/// `tanh |x| = -m / (m + 2)` with `m = e^(-2|x|) - 1`.
#[inline(always)]
pub(super) fn tanh<const F: bool>(x: f32) -> f32 {
    let y = -2.0 * x.abs();
    let y = if y < -20.0 { -20.0 } else { y };
    let (n, p) = exp_parts::<F>(y);
    let scale = power_of_two(n);
    let m = fma::<F>(scale, p, scale - 1.0);
    (-m / (m + 2.0)).copysign(x)
}

#[inline(always)]
fn silu<const F: bool>(x: f32) -> f32 {
    // At -130 the result is 0 as it should be at minus infinity, where infinity * 0 would be NaN.
    let y = if x < -130.0 { -130.0 } else { x };
    let (n, p) = exp_parts::<F>(if y > 0.0 { -minimum(y, 130.0) } else { y });
    let half = n >> 1;
    let (first, second) = (power_of_two(half), power_of_two(n.wrapping_sub(half)));
    let e = (1.0 + p) * first * second;
    // For negative x the product goes before the second scaling: e may be too small for a normal number, x e not.
    let above = if y < 0.0 { y * (1.0 + p) * first * second } else { x };
    above / (1.0 + e)
}

/// Adding this to a small f64 leaves the nearest whole number in the low bits.
const ROUND64: f64 = 6_755_399_441_055_744.0;

/// `e^x` within -200..200, to 1e-12; what lies beyond is infinite or 0 in f32.
#[inline(always)]
fn exp64<const F: bool>(x: f64) -> f64 {
    let x = if x > 200.0 { 200.0 } else { x };
    let x = if x < -200.0 { -200.0 } else { x };
    let shifted = fma64::<F>(x, LOG2_E, ROUND64);
    let r = fma64::<F>(shifted - ROUND64, -LN_2, x);
    const TAYLOR: [f64; 11] = [
        1.0 / 3_628_800.0,
        1.0 / 362_880.0,
        1.0 / 40_320.0,
        1.0 / 5_040.0,
        1.0 / 720.0,
        1.0 / 120.0,
        1.0 / 24.0,
        1.0 / 6.0,
        0.5,
        1.0,
        1.0,
    ];
    let scale = f64::from_bits(shifted.to_bits().wrapping_add(1023) << 52);
    poly64::<F, 11>(r, TAYLOR) * scale
}

/// `2 atanh(s)`, the logarithm of `(1 + s) / (1 - s)`, for `|s| <= 1/3`, to 1e-11.
#[inline(always)]
fn twice_atanh<const F: bool>(s: f64) -> f64 {
    const ODD: [f64; 11] = [
        2.0 / 21.0,
        2.0 / 19.0,
        2.0 / 17.0,
        2.0 / 15.0,
        2.0 / 13.0,
        2.0 / 11.0,
        2.0 / 9.0,
        2.0 / 7.0,
        2.0 / 5.0,
        2.0 / 3.0,
        2.0,
    ];
    s * poly64::<F, 11>(s * s, ODD)
}

/// `log(1 + y)` for `0 <= y <= 1`.
#[inline(always)]
fn log_1p<const F: bool>(y: f64) -> f64 {
    twice_atanh::<F>(y / (2.0 + y))
}

/// The natural logarithm of an f32 (every one is a normal f64).
#[inline(always)]
fn log<const F: bool>(x: f32) -> f32 {
    let wide = f64::from(x);
    // The exponent such that the mantissa is within sqrt(1/2)..sqrt(2).
    let bits = wide.to_bits().wrapping_sub(SQRT_2.to_bits() & !(0xfff << 52)) as i64 >> 52;
    let exponent = f64::from_bits((bits as u64 & 0x7ff) | (0x433 << 52)) - 4_503_599_627_370_496.0 - 1022.0;
    let mantissa = f64::from_bits(wide.to_bits().wrapping_sub(((bits as u64).wrapping_sub(1022)) << 52));
    let value = fma64::<F>(exponent, LN_2, twice_atanh::<F>((mantissa - 1.0) / (mantissa + 1.0)));
    let value = if x == 0.0 { f64::NEG_INFINITY } else { value };
    let value = if x < f32::INFINITY { value } else { wide };
    (if x < 0.0 { f64::NAN } else { value }) as f32
}

#[inline(always)]
fn softplus64<const F: bool>(x: f64) -> f64 {
    maximum64(x, 0.0) + log_1p::<F>(exp64::<F>(-x.abs()))
}

/// `log(e^a + e^b)`.
#[inline(always)]
pub(super) fn log_add_exp<const F: bool>(a: f32, b: f32) -> f32 {
    // Where both are one infinity their difference is NaN.
    let apart = if a == b { 0.0 } else { f64::from(a) - f64::from(b) };
    (f64::from(maximum(a, b)) + log_1p::<F>(exp64::<F>(-apart.abs()))) as f32
}

/// `e^(z^2) erfc(z)` for `z >= 0` to 2e-10: `(1 + 2z)` times it is smooth in `(z - 3)/(z + 3)` (Shepherd and Laframboise
/// 1981); a minimax fit.
#[inline(always)]
fn scaled_erfc<const F: bool>(z: f64) -> f64 {
    const FIT: [f64; 14] = [
        -1.148_164_146_896_1e-5,
        3.858_826_870_501_334e-6,
        1.146_299_570_111_182e-4,
        -1.041_215_410_244_273e-4,
        -7.731_099_389_156_49e-4,
        1.888_102_395_793_52e-3,
        2.527_115_520_598_321e-3,
        -2.377_032_914_854_471e-2,
        6.830_839_969_281_5e-2,
        -1.192_736_746_926_824e-1,
        1.296_451_356_484_557e-1,
        -4.756_229_257_834_65e-2,
        -1.356_211_058_897_652_6e-1,
        1.253_008_058_251_717_9,
    ];
    poly64::<F, 14>((z - 3.0) / (z + 3.0), FIT) / (1.0 + 2.0 * z)
}

/// `1 - erf(z)` for `z >= 0`.
#[inline(always)]
fn erfc<const F: bool>(z: f64) -> f64 {
    exp64::<F>(-z * z) * scaled_erfc::<F>(z)
}

#[inline(always)]
fn erf<const F: bool>(x: f32) -> f32 {
    // Minimax fit of erf(sqrt(s))/sqrt(s) on 0..1, to 1e-12.
    const NEAR: [f64; 9] = [
        1.058_938_064_107_502e-6,
        -1.390_934_002_187_46e-5,
        1.195_656_256_820_733e-4,
        -8.542_637_997_087_23e-4,
        5.223_783_477_189_248e-3,
        -2.686_613_323_509_559_2e-2,
        1.128_379_130_860_458e-1,
        -3.761_263_888_963_531e-1,
        1.128_379_167_094_674_7,
    ];
    let wide = f64::from(x);
    let z = minimum64(wide.abs(), 30.0);
    let near = z * poly64::<F, 9>(z * z, NEAR);
    let value = if z < 1.0 { near } else { 1.0 - erfc::<F>(z) };
    value.copysign(wide) as f32
}

/// `x Phi(x)`, by erfc: `1 + erf` would lose every digit far to the left.
#[inline(always)]
fn gelu<const F: bool>(x: f32) -> f32 {
    // At -50 the result is 0 as at minus infinity, where infinity * 0 would be NaN.
    let x = maximum64(f64::from(x), -50.0);
    let tail = erfc::<F>(minimum64(x.abs(), 50.0) / SQRT_2);
    (0.5 * x * if x > 0.0 { 2.0 - tail } else { tail }) as f32
}

/// Up to here whole multiples of pi/2 are taken away exactly enough.
pub(super) const SINE_LIMIT: f32 = 65_536.0;

/// `sin(x + quarter pi/2)` for `|x| <= SINE_LIMIT`.
#[inline(always)]
fn sine<const F: bool>(x: f32, quarter: u64) -> f32 {
    // pi/2 to 33 bits, so that products with whole numbers below 2^20 are exact, and the rest.
    const HIGH: f64 = 1.570_796_326_734_125_6;
    const LOW: f64 = 6.077_100_506_506_192e-11;
    let x = f64::from(x);
    let shifted = fma64::<F>(x, 1.0 / FRAC_PI_2, ROUND64);
    let n = shifted - ROUND64;
    let r = fma64::<F>(n, -LOW, fma64::<F>(n, -HIGH, x));
    let s = r * r;
    const SIN: [f64; 6] = [
        -1.0 / 39_916_800.0,
        1.0 / 362_880.0,
        -1.0 / 5_040.0,
        1.0 / 120.0,
        -1.0 / 6.0,
        1.0,
    ];
    const COS: [f64; 7] = [
        1.0 / 479_001_600.0,
        -1.0 / 3_628_800.0,
        1.0 / 40_320.0,
        -1.0 / 720.0,
        1.0 / 24.0,
        -0.5,
        1.0,
    ];
    let (sin, cos) = (r * poly64::<F, 6>(s, SIN), poly64::<F, 7>(s, COS));
    let turn = shifted.to_bits().wrapping_add(quarter);
    let value = if turn & 1 == 0 { sin } else { cos };
    f64::from_bits(value.to_bits() ^ (turn & 2) << 62) as f32
}

/// The function as a loop over elements; one arm an operation, so that each becomes a loop of its own.
#[inline(always)]
pub(super) fn unary<const F: bool>(op: Unary, out: &mut [f32], x: &[f32]) {
    match op {
        Unary::Neg => map(out, x, |x| -x),
        Unary::Exp => map(out, x, exp::<F>),
        Unary::Log => map(out, x, log::<F>),
        Unary::Sqrt => map(out, x, f32::sqrt),
        Unary::Abs => map(out, x, f32::abs),
        Unary::Tanh => map(out, x, tanh::<F>),
        Unary::Sigmoid => map(out, x, sigmoid::<F>),
        Unary::Relu => map(out, x, |x| maximum(x, 0.0)),
        Unary::Softplus => map(out, x, |x| softplus64::<F>(f64::from(x)) as f32),
        Unary::LogSigmoid => map(out, x, |x| -softplus64::<F>(-f64::from(x)) as f32),
        Unary::Gelu => map(out, x, gelu::<F>),
        Unary::Silu => map(out, x, silu::<F>),
        Unary::Sin => circular(out, x, |x| sine::<F>(x, 0), f64::sin),
        Unary::Cos => circular(out, x, |x| sine::<F>(x, 1), f64::cos),
        Unary::Sign => map(out, x, |x| f32::from(u8::from(x > 0.0)) - f32::from(u8::from(x < 0.0))),
        Unary::Floor => map(out, x, f32::floor),
        Unary::Erf => map(out, x, erf::<F>),
        Unary::HardSigmoid => map(out, x, |x| minimum(maximum((x + 3.0) / 6.0, 0.0), 1.0)),
        Unary::StopGradient => map(out, x, |x| x),
    }
}

#[inline(always)]
fn map(out: &mut [f32], x: &[f32], f: impl Fn(f32) -> f32) {
    for (out, x) in out.iter_mut().zip(x) {
        *out = f(*x);
    }
}

/// `near` where it holds; the few huge arguments one by one.
#[inline(always)]
fn circular(out: &mut [f32], x: &[f32], near: impl Fn(f32) -> f32, far: fn(f64) -> f64) {
    map(out, x, near);
    if x.iter().any(|x| x.abs() > SINE_LIMIT) {
        for (out, x) in out.iter_mut().zip(x).filter(|(_, x)| x.abs() > SINE_LIMIT) {
            *out = far(f64::from(*x)) as f32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Distance in units in the last place of the wanted value (of the smallest normal number below that).
    fn ulps(got: f32, want: f64) -> f64 {
        let rounded = want as f32;
        if got == rounded || got.is_nan() && want.is_nan() {
            return 0.0;
        }
        let size = (rounded.abs().max(f32::MIN_POSITIVE).to_bits() & 0x7f80_0000) as f32;
        let exponent = f64::from(size as u32 >> 23) - 127.0 - 23.0;
        (f64::from(got) - want).abs() / exponent.exp2()
    }

    fn worst<const F: bool>(op: Unary, xs: &[f32]) -> (f64, f32) {
        let mut out = vec![0.0; xs.len()];
        unary::<F>(op, &mut out, xs);
        let apart = xs.iter().zip(&out).map(|(x, y)| (ulps(*y, op.eval(f64::from(*x))), *x));
        apart.fold(
            (0.0, 0.0),
            |worst, at| if at.0 > worst.0 || at.0.is_nan() { at } else { worst },
        )
    }

    /// Every so many floats, of both signs, ends included.
    fn sample(stride: usize) -> Vec<f32> {
        let ends = [
            0.0,
            -0.0,
            f32::INFINITY,
            f32::NEG_INFINITY,
            f32::NAN,
            f32::MAX,
            f32::MIN,
        ];
        let more = [
            89.0, -89.0, 88.72, -103.97, -104.0, 1e-45, -1e-45, 1.0, -1.0, SINE_LIMIT,
        ];
        let all = (0..=u32::MAX)
            .step_by(stride)
            .map(f32::from_bits)
            .filter(|x| x.is_finite());
        all.chain(ends).chain(more).collect()
    }

    #[test]
    fn functions_are_accurate_to_a_few_units_in_the_last_place() {
        let xs = sample(100_003);
        for op in Unary::ALL {
            let limit = match op {
                Unary::Exp => 1.5,
                Unary::Sigmoid | Unary::Silu | Unary::Tanh => 3.0,
                Unary::HardSigmoid => 1.5,
                _ => 1.0,
            };
            for (worst, fused) in [(worst::<false>(*op, &xs), false), (worst::<true>(*op, &xs), true)] {
                assert!(
                    worst.0 <= limit,
                    "{op:?} is {} units off at {:e} (fused: {fused})",
                    worst.0,
                    worst.1
                );
            }
        }
    }

    #[test]
    fn infinities_and_nan_come_out_as_they_should() {
        let xs = [f32::INFINITY, f32::NEG_INFINITY, f32::NAN, 0.0];
        for op in Unary::ALL {
            let mut out = [0.0; 4];
            unary::<false>(*op, &mut out, &xs);
            for (x, y) in xs.iter().zip(out) {
                let want = op.eval(f64::from(*x)) as f32;
                assert!(
                    y == want || y.is_nan() && want.is_nan(),
                    "{op:?}({x}) = {y}, should be {want}"
                );
            }
        }
    }

    #[test]
    fn logaddexp_agrees_with_f64() {
        let values = [
            f32::NEG_INFINITY,
            f32::INFINITY,
            f32::NAN,
            -1000.0,
            -3.0,
            0.0,
            1e-8,
            2.5,
            1000.0,
            1000.5,
        ];
        for (a, b) in values.iter().flat_map(|a| values.iter().map(move |b| (*a, *b))) {
            let want = crate::scalar::Binary::LogAddExp.eval(f64::from(a), f64::from(b));
            assert!(
                ulps(log_add_exp::<false>(a, b), want) <= 1.0,
                "logaddexp({a}, {b}) should be {want}"
            );
        }
    }
}
