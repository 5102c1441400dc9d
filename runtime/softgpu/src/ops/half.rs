//! Arithmetic of half precision, f16 and bf16, single and in pairs.
//!
//! Every operation is done in f64, where sums and products of two halves are exact, and rounded once.

use super::combine::{Compute, binary_with, ternary_with, unary_with};
use super::float::{extreme_f32, flag};
use super::opcode::Opcode;
use super::rounding::{BF16, Exact, F16, Format, Round};
use crate::ptx::ast::Type;

/// A format as a type, so that a function of it captures nothing.
pub trait Half: Copy + 'static {
    /// Its shape.
    const FORMAT: Format;
    /// Its value, exactly.
    fn wide(bits: u16) -> f32;

    /// The nearest, from an f64 that is exact or odd.
    #[inline(always)]
    fn round(value: f64) -> u16 {
        Self::FORMAT.round(value, Round::Nearest)
    }
}

/// IEEE binary16.
#[derive(Clone, Copy, Debug)]
pub struct Binary16;
/// bfloat16.
#[derive(Clone, Copy, Debug)]
pub struct Brain16;

impl Half for Binary16 {
    const FORMAT: Format = F16;
    /// Without branches: the exponent is moved in place, and subnormals are made normal by a subtraction.
    #[inline(always)]
    fn wide(bits: u16) -> f32 {
        let sign = u32::from(bits & 0x8000) << 16;
        let rest = u32::from(bits & 0x7FFF);
        let normal = (rest << 13) + 0x3800_0000;
        let special = (rest << 13) | 0x7F80_0000;
        let subnormal = (rest as f32 * f32::from_bits(0x3380_0000)).to_bits();
        let value = if rest >= 0x7C00 { special } else { normal };
        f32::from_bits(sign | if rest < 0x400 { subnormal } else { value })
    }
}

impl Half for Brain16 {
    const FORMAT: Format = BF16;
    #[inline(always)]
    fn wide(bits: u16) -> f32 {
        f32::from_bits(u32::from(bits) << 16)
    }
}

/// Half-precision forms of `add sub mul fma neg abs min max ex2 tanh`.
pub fn select(op: &mut Opcode<'_>) -> Option<Compute> {
    match op.ty()? {
        Type::F16 => one::<Binary16>(op),
        Type::BF16 => one::<Brain16>(op),
        Type::F16x2 => two::<Binary16>(op),
        Type::BF16x2 => two::<Brain16>(op),
        _ => None,
    }
}

fn modifiers(op: &mut Opcode<'_>) -> u32 {
    let words = [
        ("ftz", flag::FTZ),
        ("sat", flag::SAT),
        ("NaN", flag::NAN),
        ("relu", flag::RELU),
        ("xorsign", flag::XORSIGN),
    ];
    let flags = words
        .iter()
        .filter(|(word, _)| op.flag(word))
        .fold(0, |flags, (_, bit)| flags | bit);
    if flags & flag::XORSIGN != 0 {
        op.flag("abs");
    }
    op.flag("rn");
    op.flag("approx");
    flags
}

fn one<H: Half>(op: &mut Opcode<'_>) -> Option<Compute> {
    let flags = modifiers(op);
    Some(
        match op.base() {
            "add" => binary_with(sum::<H>),
            "sub" => binary_with(difference::<H>),
            "mul" => binary_with(product::<H>),
            "fma" => ternary_with(fused::<H>),
            "min" => binary_with(least::<H>),
            "max" => binary_with(greatest::<H>),
            "neg" => unary_with(negative::<H>),
            "abs" => unary_with(magnitude::<H>),
            "ex2" => unary_with(exp2::<H>),
            "tanh" => unary_with(tanh::<H>),
            _ => return None,
        }
        .with(flags),
    )
}

fn two<H: Half>(op: &mut Opcode<'_>) -> Option<Compute> {
    let flags = modifiers(op);
    Some(
        match op.base() {
            "add" => binary_with(pairs(sum::<H>)),
            "sub" => binary_with(pairs(difference::<H>)),
            "mul" => binary_with(pairs(product::<H>)),
            "fma" => ternary_with(triples(fused::<H>)),
            "min" => binary_with(pairs(least::<H>)),
            "max" => binary_with(pairs(greatest::<H>)),
            "neg" => unary_with(each(negative::<H>)),
            "abs" => unary_with(each(magnitude::<H>)),
            "ex2" => unary_with(each(exp2::<H>)),
            "tanh" => unary_with(each(tanh::<H>)),
            _ => return None,
        }
        .with(flags),
    )
}

#[inline(always)]
fn join(low: u16, high: u16) -> u32 {
    u32::from(low) | u32::from(high) << 16
}

fn each(f: impl Fn(u16, u32) -> u16 + Copy) -> impl Fn(u32, u32) -> u32 + Copy {
    move |a, flags| join(f(a as u16, flags), f((a >> 16) as u16, flags))
}

fn pairs(f: impl Fn(u16, u16, u32) -> u16 + Copy) -> impl Fn(u32, u32, u32) -> u32 + Copy {
    move |a, b, flags| {
        join(
            f(a as u16, b as u16, flags),
            f((a >> 16) as u16, (b >> 16) as u16, flags),
        )
    }
}

fn triples(f: impl Fn(u16, u16, u16, u32) -> u16 + Copy) -> impl Fn(u32, u32, u32, u32) -> u32 + Copy {
    move |a, b, c, flags| {
        let low = f(a as u16, b as u16, c as u16, flags);
        join(low, f((a >> 16) as u16, (b >> 16) as u16, (c >> 16) as u16, flags))
    }
}

/// An operand: subnormals are zero under `.ftz`.
#[inline(always)]
fn operand<H: Half>(bits: u16, flags: u32) -> f64 {
    H::wide(flushed::<H>(bits, flags)).into()
}

#[inline(always)]
fn flushed<H: Half>(bits: u16, flags: u32) -> u16 {
    let subnormal = (bits & 0x7FFF) >> (H::FORMAT.digits - 1) == 0;
    if flags & flag::FTZ != 0 && subnormal {
        bits & 0x8000
    } else {
        bits
    }
}

/// Rounds, flushes, saturates, rectifies.
#[inline(never)]
fn finish<H: Half>(exact: Exact, flags: u32) -> u16 {
    let bits = flushed::<H>(H::round(exact.odd()), flags);
    if flags & (flag::SAT | flag::RELU) == 0 {
        return bits;
    }
    let value = H::wide(bits);
    if flags & flag::SAT != 0 {
        return H::round(if value > 0.0 { f64::from(value).min(1.0) } else { 0.0 });
    }
    // NaN stays NaN under `.relu`.
    if value < 0.0 || bits == 0x8000 { 0 } else { bits }
}

#[inline(never)]
fn sum<H: Half>(a: u16, b: u16, flags: u32) -> u16 {
    finish::<H>(Exact::sum(operand::<H>(a, flags), operand::<H>(b, flags)), flags)
}

#[inline(never)]
fn difference<H: Half>(a: u16, b: u16, flags: u32) -> u16 {
    finish::<H>(Exact::sum(operand::<H>(a, flags), -operand::<H>(b, flags)), flags)
}

#[inline(never)]
fn product<H: Half>(a: u16, b: u16, flags: u32) -> u16 {
    finish::<H>(Exact::of(operand::<H>(a, flags) * operand::<H>(b, flags)), flags)
}

#[inline(never)]
fn fused<H: Half>(a: u16, b: u16, c: u16, flags: u32) -> u16 {
    let product = operand::<H>(a, flags) * operand::<H>(b, flags);
    finish::<H>(Exact::sum(product, operand::<H>(c, flags)), flags)
}

fn least<H: Half>(a: u16, b: u16, flags: u32) -> u16 {
    extreme::<H>(a, b, flags, true)
}

fn greatest<H: Half>(a: u16, b: u16, flags: u32) -> u16 {
    extreme::<H>(a, b, flags, false)
}

#[inline(never)]
fn extreme<H: Half>(a: u16, b: u16, flags: u32, least: bool) -> u16 {
    let (a, b) = (H::wide(flushed::<H>(a, flags)), H::wide(flushed::<H>(b, flags)));
    H::round(extreme_f32(a, b, flags & !flag::FTZ, least).into())
}

fn negative<H: Half>(a: u16, flags: u32) -> u16 {
    flushed::<H>(a, flags) ^ 0x8000
}

fn magnitude<H: Half>(a: u16, flags: u32) -> u16 {
    flushed::<H>(a, flags) & 0x7FFF
}

#[inline(never)]
fn exp2<H: Half>(a: u16, flags: u32) -> u16 {
    finish::<H>(Exact::of(operand::<H>(a, flags).exp2()), flags)
}

#[inline(never)]
fn tanh<H: Half>(a: u16, flags: u32) -> u16 {
    finish::<H>(Exact::of(operand::<H>(a, flags).tanh()), flags)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::half::{bf16, f16};

    #[test]
    fn every_half_widens_as_the_half_crate_says() {
        for bits in 0..=u16::MAX {
            let (ours, theirs) = (Binary16::wide(bits), f16::from_bits(bits).to_f32());
            assert!(
                ours == theirs && ours.is_sign_negative() == theirs.is_sign_negative()
                    || ours.is_nan() && theirs.is_nan()
            );
            let (ours, theirs) = (Brain16::wide(bits), bf16::from_bits(bits).to_f32());
            assert!(ours == theirs || ours.is_nan() && theirs.is_nan());
        }
    }

    /// Values between neighbours, on ties and beside them. They are values of f32: from f64 the half crate goes through f32,
    /// or drops bits, and so errs on what lies beside a tie by less.
    fn around(low: f32, high: f32) -> Vec<f64> {
        let middle = f32::midpoint(low, high);
        let values = [
            low,
            middle,
            middle.next_up(),
            middle.next_down(),
            low.next_up(),
            high.next_down(),
        ];
        values.into_iter().map(f64::from).collect()
    }

    #[test]
    fn a_tie_is_left_by_the_last_bit_of_f64() {
        let tie = 2f64.powi(-25);
        assert_eq!((Binary16::round(tie), Binary16::round(tie.next_up())), (0, 1));
        let tie = 1.0 + 2f64.powi(-8);
        assert_eq!((Brain16::round(tie), Brain16::round(tie.next_up())), (0x3F80, 0x3F81));
    }

    #[test]
    fn every_half_is_rounded_to_as_the_half_crate_rounds() {
        for bits in 0..0x7C00u16 {
            let next = f16::from_bits(bits + 1).to_f32();
            let high = if next.is_infinite() { 65536.0 } else { next };
            for value in around(f16::from_bits(bits).to_f32(), high) {
                for value in [value, -value] {
                    assert_eq!(
                        Binary16::round(value),
                        f16::from_f32(value as f32).to_bits(),
                        "{value:e}"
                    );
                }
            }
        }
        for bits in 0..0x7F7Fu16 {
            for value in around(bf16::from_bits(bits).to_f32(), bf16::from_bits(bits + 1).to_f32()) {
                assert_eq!(
                    Brain16::round(value),
                    bf16::from_f32(value as f32).to_bits(),
                    "{value:e}"
                );
            }
        }
    }

    #[test]
    fn directed_rounding_brackets_the_value() {
        for bits in (0..0x7BFFu16).step_by(7) {
            let (low, high) = (Binary16::wide(bits), Binary16::wide(bits + 1));
            let value = (f64::from(low) + f64::from(high)) / 2.0;
            assert_eq!(F16.round(value, Round::Down), bits);
            assert_eq!(F16.round(value, Round::Zero), bits);
            assert_eq!(F16.round(value, Round::Up), bits + 1);
            assert_eq!(F16.round(-value, Round::Up), bits | 0x8000);
            assert_eq!(F16.round(-value, Round::Down), (bits + 1) | 0x8000);
        }
        assert_eq!(F16.round(1e9, Round::Zero), 0x7BFF);
        assert_eq!(F16.round(1e9, Round::Up), 0x7C00);
        assert_eq!(F16.round(-1e9, Round::Up), 0xFBFF);
    }

    #[test]
    fn fused_operations_round_once() {
        // 2^-14 * 2^-10 is far below half a unit of 1: rounding the product first would not see it on a tie.
        let one_and_half = 0x3C00 + 1;
        let tie = f16::from_f32(2f32.powi(-11)).to_bits();
        let tiny = f16::from_f32(2f32.powi(-14)).to_bits();
        assert_eq!(sum::<Binary16>(0x3C00, tie, 0), 0x3C00);
        // 1 * (1 + 2^-10) + 2^-11 (1 + ...) rounds up only if the tail is seen.
        let tail = fused::<Binary16>(tie + 1, 0x3C00, 0x3C00, 0);
        assert_eq!(tail, one_and_half);
        assert_eq!(fused::<Binary16>(tiny, tiny, 0x3C00, 0), 0x3C00);
    }

    #[test]
    fn saturation_relu_and_nan() {
        let nan = 0x7E00;
        assert_eq!(sum::<Binary16>(nan, 0, 0), 0x7FFF);
        assert_eq!(sum::<Binary16>(nan, 0, flag::SAT), 0);
        assert_eq!(sum::<Binary16>(0x4000, 0x4000, flag::SAT), 0x3C00);
        assert_eq!(fused::<Binary16>(0xBC00, 0x3C00, 0, flag::RELU), 0);
        assert_eq!(fused::<Binary16>(nan, 0x3C00, 0, flag::RELU), 0x7FFF);
        assert_eq!(least::<Binary16>(nan, 0x3C00, 0), 0x3C00);
        assert_eq!(least::<Binary16>(nan, 0x3C00, flag::NAN), 0x7FFF);
        assert_eq!(sum::<Binary16>(0x0001, 0x8000, flag::FTZ), 0);
    }
}
