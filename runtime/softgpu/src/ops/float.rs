//! Arithmetic of f32 and f64: plain loops for the default rounding, and one exact path for every other mode.

use super::combine::{
    Compute, binary, binary_with, hot_binary, hot_ternary, hot_unary, ternary_with, unary, unary_with,
};
use super::opcode::Opcode;
use super::rounding::{Exact, Round};
use crate::ptx::ast::Type;

/// Modifier bits beside the rounding (bits 0 to 2).
pub mod flag {
    /// Subnormal operands and results become zero.
    pub const FTZ: u32 = 8;
    /// The result is clamped to 0 to 1, and NaN becomes 0.
    pub const SAT: u32 = 16;
    /// NaN operands give NaN.
    pub const NAN: u32 = 32;
    /// The sign is the product of the operands' signs, and magnitudes are compared.
    pub const XORSIGN: u32 = 64;
    /// The negative becomes zero.
    pub const RELU: u32 = 128;
    /// For double-width half-precision forms, and where a family needs one more.
    pub const EXTRA: u32 = 256;
}

/// PTX's NaN of single precision.
pub const NAN: f32 = f32::from_bits(0x7FFF_FFFF);

/// Replaces any NaN by the canonical one.
#[inline(always)]
pub fn canonical(x: f32) -> f32 {
    if x.is_nan() { NAN } else { x }
}

/// A subnormal becomes zero of its sign.
#[inline(always)]
pub fn flush(x: f32) -> f32 {
    if x.abs() < f32::MIN_POSITIVE {
        f32::from_bits(x.to_bits() & 0x8000_0000)
    } else {
        x
    }
}

/// Flushes where the modifiers say so.
#[inline(always)]
pub fn flush_if(x: f32, flags: u32) -> f32 {
    if flags & flag::FTZ != 0 { flush(x) } else { x }
}

/// Clamped to 0 to 1; NaN becomes 0.
#[inline(always)]
pub fn saturate(x: f32) -> f32 {
    if x > 0.0 { if x < 1.0 { x } else { 1.0 } } else { 0.0 }
}

/// What every f32 result goes through.
#[inline(always)]
fn finish(x: f32, flags: u32) -> f32 {
    let x = flush_if(canonical(x), flags);
    if flags & flag::SAT != 0 { saturate(x) } else { x }
}

/// Arithmetic of f32 and f64, and the sign operations.
pub fn select(op: &mut Opcode<'_>) -> Option<Compute> {
    let single = match op.ty()? {
        Type::F32 => true,
        Type::F64 => false,
        _ => return None,
    };
    match op.base() {
        "add" | "sub" | "mul" => arithmetic(op, single),
        "fma" | "mad" => fused(op, single),
        "div" | "rcp" | "sqrt" => quotient(op, single),
        "min" | "max" => extreme(op, single),
        "abs" | "neg" | "copysign" => sign(op, single),
        _ => None,
    }
}

fn modifiers(op: &mut Opcode<'_>) -> u32 {
    let round = op.one_of(&Round::WORDS).unwrap_or(Round::Nearest);
    let ftz = if op.flag("ftz") { flag::FTZ } else { 0 };
    let sat = if op.flag("sat") { flag::SAT } else { 0 };
    round.bits() | ftz | sat
}

fn arithmetic(op: &mut Opcode<'_>, single: bool) -> Option<Compute> {
    let flags = modifiers(op);
    if !single {
        return Some(arithmetic_f64(op.base(), flags));
    }
    Some(match (op.base(), flags) {
        ("add", 0) => hot_binary(|a: f32, b: f32| canonical(a + b)),
        ("sub", 0) => hot_binary(|a: f32, b: f32| canonical(a - b)),
        (_, 0) => hot_binary(|a: f32, b: f32| canonical(a * b)),
        ("add", flag::FTZ) => binary(|a: f32, b: f32| flush(canonical(flush(a) + flush(b)))),
        ("sub", flag::FTZ) => binary(|a: f32, b: f32| flush(canonical(flush(a) - flush(b)))),
        (_, flag::FTZ) => binary(|a: f32, b: f32| flush(canonical(flush(a) * flush(b)))),
        ("add", _) => binary_with(|a: f32, b: f32, flags| sum_f32(a, b, flags)).with(flags),
        ("sub", _) => binary_with(|a: f32, b: f32, flags| sum_f32(a, -b, flags)).with(flags),
        (_, _) => binary_with(|a: f32, b: f32, flags| product_f32(a, b, flags)).with(flags),
    })
}

#[inline(never)]
fn sum_f32(a: f32, b: f32, flags: u32) -> f32 {
    let (a, b) = (flush_if(a, flags), flush_if(b, flags));
    finish(Exact::sum(a.into(), b.into()).f32(Round::from_bits(flags)), flags)
}

#[inline(never)]
fn product_f32(a: f32, b: f32, flags: u32) -> f32 {
    let (a, b) = (flush_if(a, flags), flush_if(b, flags));
    let exact = Exact::of(f64::from(a) * f64::from(b));
    finish(exact.f32(Round::from_bits(flags)), flags)
}

fn arithmetic_f64(base: &str, flags: u32) -> Compute {
    match (base, flags) {
        ("add", 0) => hot_binary(|a: f64, b: f64| a + b),
        ("sub", 0) => hot_binary(|a: f64, b: f64| a - b),
        (_, 0) => hot_binary(|a: f64, b: f64| a * b),
        ("add", _) => binary_with(|a: f64, b: f64, flags| Exact::sum(a, b).f64(Round::from_bits(flags))).with(flags),
        ("sub", _) => binary_with(|a: f64, b: f64, flags| Exact::sum(a, -b).f64(Round::from_bits(flags))).with(flags),
        (_, _) => binary_with(|a: f64, b: f64, flags| Exact::product(a, b).f64(Round::from_bits(flags))).with(flags),
    }
}

fn fused(op: &mut Opcode<'_>, single: bool) -> Option<Compute> {
    let flags = modifiers(op);
    Some(match (single, flags) {
        (true, 0) => hot_ternary(|a: f32, b: f32, c: f32| canonical(a.mul_add(b, c))),
        (true, flag::FTZ) => {
            hot_ternary(|a: f32, b: f32, c: f32| flush(canonical(flush(a).mul_add(flush(b), flush(c)))))
        }
        (true, _) => ternary_with(fused_f32).with(flags),
        (false, 0) => hot_ternary(|a: f64, b: f64, c: f64| a.mul_add(b, c)),
        (false, _) => {
            ternary_with(|a: f64, b: f64, c: f64, flags| Exact::fused(a, b, c).f64(Round::from_bits(flags))).with(flags)
        }
    })
}

#[inline(never)]
fn fused_f32(a: f32, b: f32, c: f32, flags: u32) -> f32 {
    let (a, b, c) = (flush_if(a, flags), flush_if(b, flags), flush_if(c, flags));
    // The product of two f32 is exact in f64.
    let exact = Exact::sum(f64::from(a) * f64::from(b), c.into());
    finish(exact.f32(Round::from_bits(flags)), flags)
}

fn quotient(op: &mut Opcode<'_>, single: bool) -> Option<Compute> {
    if op.flag("approx") || op.flag("full") {
        return None;
    }
    let flags = modifiers(op);
    if !single {
        return quotient_f64(op.base(), flags);
    }
    Some(match (op.base(), flags) {
        ("div", 0) => hot_binary(|a: f32, b: f32| canonical(a / b)),
        ("rcp", 0) => hot_unary(|a: f32| canonical(1.0 / a)),
        ("sqrt", 0) => unary(|a: f32| canonical(a.sqrt())),
        ("div", _) => binary_with(|a: f32, b: f32, flags| quotient_f32(a, b, flags)).with(flags),
        ("rcp", _) => unary_with(|a: f32, flags| quotient_f32(1.0, a, flags)).with(flags),
        (_, _) => unary_with(|a: f32, flags| {
            let exact = Exact::root(flush_if(a, flags).into());
            finish(exact.f32(Round::from_bits(flags)), flags)
        })
        .with(flags),
    })
}

#[inline(never)]
fn quotient_f32(a: f32, b: f32, flags: u32) -> f32 {
    let exact = Exact::quotient(flush_if(a, flags).into(), flush_if(b, flags).into());
    finish(exact.f32(Round::from_bits(flags)), flags)
}

fn quotient_f64(base: &str, flags: u32) -> Option<Compute> {
    Some(match (base, flags) {
        ("div", 0) => binary(|a: f64, b: f64| a / b),
        ("rcp", 0) => unary(|a: f64| 1.0 / a),
        ("sqrt", 0) => unary(f64::sqrt),
        ("div", _) => {
            binary_with(|a: f64, b: f64, flags| Exact::quotient(a, b).f64(Round::from_bits(flags))).with(flags)
        }
        ("rcp", _) => unary_with(|a: f64, flags| Exact::quotient(1.0, a).f64(Round::from_bits(flags))).with(flags),
        ("sqrt", _) => unary_with(|a: f64, flags| Exact::root(a).f64(Round::from_bits(flags))).with(flags),
        _ => return None,
    })
}

fn extreme(op: &mut Opcode<'_>, single: bool) -> Option<Compute> {
    let ftz = if op.flag("ftz") { flag::FTZ } else { 0 };
    let nan = if op.flag("NaN") { flag::NAN } else { 0 };
    let sign = if op.flag("xorsign") && op.flag("abs") {
        flag::XORSIGN
    } else {
        0
    };
    let flags = ftz | nan | sign;
    let least = op.base() == "min";
    Some(match (single, least, flags) {
        (true, true, 0) => hot_binary(|a: f32, b: f32| canonical(least_f32(a, b))),
        (true, false, 0) => hot_binary(|a: f32, b: f32| canonical(-least_f32(-a, -b))),
        (true, true, _) => binary_with(|a: f32, b: f32, flags| extreme_f32(a, b, flags, true)).with(flags),
        (true, false, _) => binary_with(|a: f32, b: f32, flags| extreme_f32(a, b, flags, false)).with(flags),
        (false, true, _) => binary(least_f64),
        (false, false, _) => binary(|a: f64, b: f64| -least_f64(-a, -b)),
    })
}

/// The smaller one; the other one where one is NaN; minus zero is below zero.
#[inline(always)]
pub fn least_f32(a: f32, b: f32) -> f32 {
    let less = a < b || (a == b && a.is_sign_negative()) || b.is_nan();
    if less { a } else { b }
}

#[inline(always)]
fn least_f64(a: f64, b: f64) -> f64 {
    let less = a < b || (a == b && a.is_sign_negative()) || b.is_nan();
    if less { a } else { b }
}

/// The smaller or larger one with all modifiers.
#[inline(never)]
pub fn extreme_f32(a: f32, b: f32, flags: u32, least: bool) -> f32 {
    let (a, b) = (flush_if(a, flags), flush_if(b, flags));
    if flags & flag::NAN != 0 && (a.is_nan() || b.is_nan()) {
        return NAN;
    }
    let negative = a.is_sign_negative() != b.is_sign_negative();
    let by_size = flags & flag::XORSIGN != 0;
    let (a, b) = if by_size { (a.abs(), b.abs()) } else { (a, b) };
    let value = canonical(if least { least_f32(a, b) } else { -least_f32(-a, -b) });
    if by_size && negative && !value.is_nan() {
        -value
    } else {
        value
    }
}

fn sign(op: &mut Opcode<'_>, single: bool) -> Option<Compute> {
    let ftz = op.flag("ftz");
    Some(match (op.base(), single, ftz) {
        ("abs", true, false) => hot_unary(|a: f32| a.abs()),
        ("abs", true, true) => unary(|a: f32| flush(a).abs()),
        ("neg", true, false) => hot_unary(|a: f32| -a),
        ("neg", true, true) => unary(|a: f32| -flush(a)),
        ("abs", false, _) => unary(f64::abs),
        ("neg", false, _) => unary(|a: f64| -a),
        // The sign of the first goes to the second.
        (_, true, _) => binary(|a: f32, b: f32| b.copysign(a)),
        (_, false, _) => binary(|a: f64, b: f64| b.copysign(a)),
    })
}
