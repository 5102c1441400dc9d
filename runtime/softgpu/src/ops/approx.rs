//! The approximate functions: `ex2 lg2 rcp rsqrt sqrt div sin cos tanh .approx`.
//!
//! They are computed more accurately than the PTX manual asks for (through f64). A launch may ask for them to be perturbed: then
//! each result is moved by a pseudo-random amount within the documented bound, which shows code that relies on more.

use super::combine::{Args, Body, Compute, binary_with, pick, unary};
use super::float::{canonical, flag, flush, flush_if};
use super::opcode::Opcode;
use super::registers::{Regs, Scalar};
use crate::ptx::ast::Type;
use std::marker::PhantomData;

/// The approximate functions of f32, and the two of f64.
pub fn select(op: &mut Opcode<'_>) -> Option<Compute> {
    if !matches!(
        op.base(),
        "ex2" | "lg2" | "rcp" | "rsqrt" | "sqrt" | "div" | "sin" | "cos" | "tanh"
    ) {
        return None;
    }
    let ty = op.ty()?;
    if op.base() == "div" {
        return division(op, ty);
    }
    op.flag("approx").then_some(())?;
    let ftz = if op.flag("ftz") { flag::FTZ } else { 0 };
    match (ty, op.base()) {
        // Upper halves only, as documented: the lower 32 bits are zero.
        (Type::F64, "rcp") => Some(unary(|a: f64| upper(1.0 / a))),
        (Type::F64, "rsqrt") => Some(unary(|a: f64| upper(1.0 / a.sqrt()))),
        (Type::F32, base) => Some(single(base)?.with(ftz)),
        _ => None,
    }
}

fn upper(x: f64) -> f64 {
    f64::from_bits(x.to_bits() & 0xFFFF_FFFF_0000_0000)
}

fn division(op: &mut Opcode<'_>, ty: Type) -> Option<Compute> {
    let approximate = op.flag("approx") || op.flag("full");
    if ty != Type::F32 || !approximate {
        return None;
    }
    let ftz = if op.flag("ftz") { flag::FTZ } else { 0 };
    let divide = |a: f32, b: f32, flags: u32| flush_if(canonical(flush_if(a, flags) / flush_if(b, flags)), flags);
    Some(binary_with(divide).with(ftz))
}

/// A function, and how far its result may be moved: by 2^-`BITS` of itself, or absolutely.
trait Function {
    const BITS: i32;
    const ABSOLUTE: bool = false;
    fn value(x: f32) -> f32;
}

struct Approximate<F>(PhantomData<F>);

impl<F: Function> Body for Approximate<F> {
    #[inline(always)]
    fn run(regs: &mut Regs, args: &Args, mask: u32, lanes: usize) {
        let mut out = [0f32; 32];
        for (out, a) in out.iter_mut().zip(regs.get::<u32>(args.a)).take(lanes) {
            *out = canonical(F::value(f32::from_bits(*a)));
        }
        if args.flags & flag::FTZ != 0 {
            for (out, a) in out.iter_mut().zip(regs.get::<u32>(args.a)).take(lanes) {
                *out = flush(canonical(F::value(flush(f32::from_bits(*a)))));
            }
        }
        if regs.perturb != 0 {
            perturb::<F>(&mut out, regs.get::<u32>(args.a), regs.perturb);
        }
        let valid = regs.valid::<u32>(args.a);
        regs.put(args.d, &out.map(f32::to_bits), mask, valid);
    }
}

/// Moves results by an amount that depends on the operand and the seed alone, so that equal operands give equal results.
fn perturb<F: Function>(out: &mut [f32; 32], operands: &[u32; 32], seed: u32) {
    for (out, operand) in out.iter_mut().zip(operands) {
        if !out.is_finite() || *out == 0.0 {
            continue;
        }
        let mixed = (operand ^ seed).wrapping_mul(0x9E37_79B1);
        let mixed = (mixed ^ mixed >> 15).wrapping_mul(0x85EB_CA77);
        let share = f64::from(mixed as i32) / f64::from(1u32 << 31) * 2f64.powi(-F::BITS);
        let moved = if F::ABSOLUTE {
            f64::from(*out) + share
        } else {
            f64::from(*out) * (1.0 + share)
        };
        *out = moved as f32;
    }
}

fn single(base: &str) -> Option<Compute> {
    let run = match base {
        "ex2" => pick::<Approximate<Exp2>>(),
        "lg2" => pick::<Approximate<Log2>>(),
        "rcp" => pick::<Approximate<Reciprocal>>(),
        "rsqrt" => pick::<Approximate<InverseRoot>>(),
        "sqrt" => pick::<Approximate<Root>>(),
        "sin" => pick::<Approximate<Sine>>(),
        "cos" => pick::<Approximate<Cosine>>(),
        "tanh" => pick::<Approximate<Tanh>>(),
        _ => return None,
    };
    Some(Compute::new(run, f32::SLOT, [Some(f32::SLOT), None, None]))
}

macro_rules! functions {
    ($($name:ident, $bits:expr, $absolute:expr, |$x:ident| $value:expr;)*) => {$(
        struct $name;
        impl Function for $name {
            const BITS: i32 = $bits;
            const ABSOLUTE: bool = $absolute;
            #[inline(always)]
            fn value($x: f32) -> f32 {
                $value
            }
        }
    )*};
}
// The bounds: a bit tighter than the PTX manual's, for the rounding of the exact value.
functions! {
    Exp2, 23, false, |x| exp2(x);
    Log2, 23, true, |x| log2(x);
    Reciprocal, 24, false, |x| 1.0 / x;
    InverseRoot, 24, false, |x| (1.0 / f64::from(x).sqrt()) as f32;
    Root, 24, false, |x| x.sqrt();
    Sine, 21, true, |x| f64::from(x).sin() as f32;
    Cosine, 21, true, |x| f64::from(x).cos() as f32;
    Tanh, 12, false, |x| tanh(x);
}

/// 2^x through f64, without branches: the whole part by a shift of the exponent, the rest by its Taylor series, whose first
/// term left out is 7e-12. The CPU engine has a series like it, which it is tested against by way of this crate: they share
/// nothing, so that a mistake in one shows.
#[inline(always)]
pub fn exp2(x: f32) -> f32 {
    exp2_wide(f64::from(x)) as f32
}

#[inline(always)]
fn exp2_wide(x: f64) -> f64 {
    // Adding 1.5 * 2^52 rounds to a whole number and leaves it in the low bits.
    const MAGIC: f64 = 6_755_399_441_055_744.0;
    let clamped = x.clamp(-1000.0, 1000.0);
    let shifted = clamped + MAGIC;
    let rest = (clamped - (shifted - MAGIC)) * std::f64::consts::LN_2;
    let scale = f64::from_bits(shifted.to_bits().wrapping_add(1023) << 52);
    const TERMS: [f64; 10] = [
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
    let mut sum = 0.0;
    for term in TERMS {
        sum = f64::mul_add(sum, rest, term);
    }
    sum * scale
}

/// The binary logarithm through f64: exponent, and the area-tangent series of the significand.
#[inline(always)]
fn log2(x: f32) -> f32 {
    let wide = f64::from(x);
    // Bits of 1/sqrt(2): subtracting them splits off an exponent that leaves 0.707 to 1.414.
    const BASE: i64 = 0x3FE6_A09E_667F_3BCD;
    let bits = wide.to_bits() as i64;
    let exponent = (bits - BASE) >> 52;
    let part = f64::from_bits((bits - (exponent << 52)) as u64);
    let s = (part - 1.0) / (part + 1.0);
    let square = s * s;
    let mut sum = 0.0;
    for k in (0..9).rev() {
        sum = f64::mul_add(sum, square, 1.0 / f64::from(2 * k + 1));
    }
    let value = exponent as f64 + sum * s * 2.0 * std::f64::consts::LOG2_E;
    match () {
        () if x == 0.0 => f32::NEG_INFINITY,
        () if x < 0.0 || x.is_nan() => f32::NAN,
        () if x.is_infinite() => f32::INFINITY,
        () => value as f32,
    }
}

/// Through 2^x; close to zero its series, because the quotient cancels there.
#[inline(always)]
fn tanh(x: f32) -> f32 {
    let wide = f64::from(x);
    let power = exp2_wide(wide * 2.0 * std::f64::consts::LOG2_E);
    let value = 1.0 - 2.0 / (power + 1.0);
    let small = wide - wide * wide * wide / 3.0;
    (if wide.abs() < 1e-3 { small } else { value }) as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Relative error against f64, over all binades.
    fn worst(f: impl Fn(f32) -> f32, truth: impl Fn(f64) -> f64, from: f32, to: f32) -> f64 {
        let count = 200_000;
        let step = (to.to_bits() - from.to_bits()) / count;
        (0..count)
            .map(|i| f32::from_bits(from.to_bits() + i * step))
            .flat_map(|x| [x, -x])
            .map(|x| (x, truth(f64::from(x))))
            .filter(|(_, y)| y.is_finite() && y.abs() > 1e-37 && y.abs() < 3e38)
            .map(|(x, y)| ((f64::from(f(x)) - y) / y).abs())
            .fold(0.0, f64::max)
    }

    #[test]
    fn functions_are_within_their_documented_error() {
        let ulp = 2f64.powi(-23);
        assert!(worst(exp2, f64::exp2, 1e-20, 127.0) <= ulp / 2.0 * 1.0001);
        assert!(worst(tanh, f64::tanh, 1e-20, 30.0) <= ulp);
        assert!(worst(log2, f64::log2, 1e-30, 0.99) <= ulp);
        assert!(worst(log2, f64::log2, 1.01, 1e30) <= ulp);
        assert!(worst(InverseRoot::value, |x| 1.0 / x.sqrt(), 1e-30, 1e30) <= ulp / 2.0 * 1.0001);
    }

    #[test]
    fn special_values() {
        assert_eq!(exp2(f32::NEG_INFINITY), 0.0);
        assert_eq!(exp2(f32::INFINITY), f32::INFINITY);
        assert!(exp2(f32::NAN).is_nan());
        assert_eq!(log2(0.0), f32::NEG_INFINITY);
        assert_eq!(log2(1.0), 0.0);
        assert_eq!(log2(f32::from_bits(1)), -149.0);
        assert_eq!(tanh(f32::INFINITY), 1.0);
        assert_eq!(tanh(f32::NEG_INFINITY), -1.0);
    }

    #[test]
    fn perturbation_moves_results_and_stays_within_the_bound() {
        let operands: [u32; 32] = std::array::from_fn(|i| (0.1 + i as f32).to_bits());
        let exact = operands.map(|bits| exp2(f32::from_bits(bits)));
        let mut moved = exact;
        perturb::<Exp2>(&mut moved, &operands, 7);
        assert_ne!(exact, moved);
        for (a, b) in exact.iter().zip(&moved) {
            assert!(((a - b) / a).abs() <= 2f32.powi(-22));
        }
    }
}
