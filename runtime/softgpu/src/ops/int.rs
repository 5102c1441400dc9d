//! Integer arithmetic.

use super::combine::{Compute, binary, hot_binary, hot_ternary, ternary, unary};
use super::opcode::Opcode;
use crate::ptx::ast::Type;

/// Runs an expression with `$t` the Rust type of a signed or unsigned PTX type.
macro_rules! by_sign {
    ($ty:expr, $t:ident => $make:expr) => {
        match $ty {
            Type::U16 | Type::B16 => {
                type $t = u16;
                Some($make)
            }
            Type::S16 => {
                type $t = i16;
                Some($make)
            }
            Type::U32 | Type::B32 => {
                type $t = u32;
                Some($make)
            }
            Type::S32 => {
                type $t = i32;
                Some($make)
            }
            Type::U64 | Type::B64 => {
                type $t = u64;
                Some($make)
            }
            Type::S64 => {
                type $t = i64;
                Some($make)
            }
            _ => None,
        }
    };
}

/// The same where the sign makes no difference.
macro_rules! by_width {
    ($ty:expr, $t:ident => $make:expr) => {
        match $ty {
            Type::U16 | Type::S16 | Type::B16 => {
                type $t = u16;
                Some($make)
            }
            Type::U32 | Type::S32 | Type::B32 => {
                type $t = u32;
                Some($make)
            }
            Type::U64 | Type::S64 | Type::B64 => {
                type $t = u64;
                Some($make)
            }
            _ => None,
        }
    };
}
pub(super) use {by_sign, by_width};

/// Integer arithmetic: the sign of zero divisors and the width of products are those of the PTX manual.
pub fn select(op: &mut Opcode<'_>) -> Option<Compute> {
    match op.base() {
        "add" => sum(op, true),
        "sub" => sum(op, false),
        "mul" => product(op),
        "mad" => product_sum(op),
        "mul24" | "mad24" => product_24(op),
        "div" | "rem" => quotient(op),
        "min" | "max" => extreme(op),
        "abs" | "neg" => sign(op),
        "sad" => distance(op),
        _ => None,
    }
}

fn sum(op: &mut Opcode<'_>, add: bool) -> Option<Compute> {
    let ty = op.ty()?;
    if op.rest() == Some("cc") {
        return None;
    }
    if ty == Type::S32 && op.flag("sat") {
        return Some(if add {
            binary(i32::saturating_add)
        } else {
            binary(i32::saturating_sub)
        });
    }
    match add {
        true => by_width!(ty, T => hot_binary(T::wrapping_add)),
        false => by_width!(ty, T => hot_binary(T::wrapping_sub)),
    }
}

fn product(op: &mut Opcode<'_>) -> Option<Compute> {
    let ty = op.ty()?;
    match op.one_of(&[("lo", 0), ("hi", 1), ("wide", 2)])? {
        0 => by_width!(ty, T => hot_binary(T::wrapping_mul)),
        1 => high(ty),
        _ => wide(ty),
    }
}

fn high(ty: Type) -> Option<Compute> {
    Some(match ty {
        Type::U16 => binary(|a: u16, b: u16| high_u16(a, b)),
        Type::S16 => binary(|a: i16, b: i16| high_s16(a, b)),
        Type::U32 => binary(|a: u32, b: u32| high_u32(a, b)),
        Type::S32 => binary(|a: i32, b: i32| high_s32(a, b)),
        Type::U64 => binary(|a: u64, b: u64| high_u64(a, b)),
        Type::S64 => binary(|a: i64, b: i64| high_s64(a, b)),
        _ => return None,
    })
}

fn wide(ty: Type) -> Option<Compute> {
    Some(match ty {
        Type::U16 => binary(|a: u16, b: u16| u32::from(a) * u32::from(b)),
        Type::S16 => binary(|a: i16, b: i16| i32::from(a) * i32::from(b)),
        Type::U32 => hot_binary(|a: u32, b: u32| u64::from(a) * u64::from(b)),
        Type::S32 => hot_binary(|a: i32, b: i32| i64::from(a) * i64::from(b)),
        _ => return None,
    })
}

macro_rules! highs {
    ($($name:ident, $t:ty, $wide:ty, $bits:expr;)*) => {$(
        /// The upper half of the product.
        #[inline(always)]
        fn $name(a: $t, b: $t) -> $t {
            ((<$wide>::from(a) * <$wide>::from(b)) >> $bits) as $t
        }
    )*};
}
highs! {
    high_u16, u16, u32, 16;
    high_s16, i16, i32, 16;
    high_u32, u32, u64, 32;
    high_s32, i32, i64, 32;
    high_u64, u64, u128, 64;
    high_s64, i64, i128, 64;
}

fn product_sum(op: &mut Opcode<'_>) -> Option<Compute> {
    let ty = op.ty()?;
    match op.one_of(&[("lo", 0), ("hi", 1), ("wide", 2)])? {
        0 => by_width!(ty, T => hot_ternary(|a: T, b: T, c: T| a.wrapping_mul(b).wrapping_add(c))),
        1 if op.flag("sat") => saturating_high(ty),
        1 => high_sum(ty),
        _ => wide_sum(ty),
    }
    .filter(|_| op.rest() != Some("cc"))
}

fn saturating_high(ty: Type) -> Option<Compute> {
    (ty == Type::S32).then(|| ternary(|a: i32, b: i32, c: i32| high_s32(a, b).saturating_add(c)))
}

fn high_sum(ty: Type) -> Option<Compute> {
    Some(match ty {
        Type::U16 => ternary(|a: u16, b: u16, c: u16| high_u16(a, b).wrapping_add(c)),
        Type::S16 => ternary(|a: i16, b: i16, c: i16| high_s16(a, b).wrapping_add(c)),
        Type::U32 => ternary(|a: u32, b: u32, c: u32| high_u32(a, b).wrapping_add(c)),
        Type::S32 => ternary(|a: i32, b: i32, c: i32| high_s32(a, b).wrapping_add(c)),
        Type::U64 => ternary(|a: u64, b: u64, c: u64| high_u64(a, b).wrapping_add(c)),
        Type::S64 => ternary(|a: i64, b: i64, c: i64| high_s64(a, b).wrapping_add(c)),
        _ => return None,
    })
}

fn wide_sum(ty: Type) -> Option<Compute> {
    Some(match ty {
        Type::U16 => ternary(|a: u16, b: u16, c: u32| (u32::from(a) * u32::from(b)).wrapping_add(c)),
        Type::S16 => ternary(|a: i16, b: i16, c: i32| (i32::from(a) * i32::from(b)).wrapping_add(c)),
        Type::U32 => ternary(|a: u32, b: u32, c: u64| (u64::from(a) * u64::from(b)).wrapping_add(c)),
        Type::S32 => ternary(|a: i32, b: i32, c: i64| (i64::from(a) * i64::from(b)).wrapping_add(c)),
        _ => return None,
    })
}

/// The 48-bit product of the lower 24 bits: its lower 32 bits, or its upper ones.
fn product_24(op: &mut Opcode<'_>) -> Option<Compute> {
    let signed = match op.ty()? {
        Type::U32 => false,
        Type::S32 => true,
        _ => return None,
    };
    let sum = op.base() == "mad24";
    Some(match (op.one_of(&[("lo", 0), ("hi", 16)])?, signed, sum) {
        (0, true, false) => binary(|a: i32, b: i32| (signed_24(a) * signed_24(b)) as i32),
        (0, false, false) => binary(|a: u32, b: u32| (low_24(a) * low_24(b)) as u32),
        (0, true, true) => ternary(|a: i32, b: i32, c: i32| ((signed_24(a) * signed_24(b)) as i32).wrapping_add(c)),
        (0, false, true) => ternary(|a: u32, b: u32, c: u32| ((low_24(a) * low_24(b)) as u32).wrapping_add(c)),
        (_, true, false) => binary(|a: i32, b: i32| ((signed_24(a) * signed_24(b)) >> 16) as i32),
        (_, false, false) => binary(|a: u32, b: u32| ((low_24(a) * low_24(b)) >> 16) as u32),
        (_, true, true) => {
            ternary(|a: i32, b: i32, c: i32| (((signed_24(a) * signed_24(b)) >> 16) as i32).wrapping_add(c))
        }
        (_, false, true) => ternary(|a: u32, b: u32, c: u32| (((low_24(a) * low_24(b)) >> 16) as u32).wrapping_add(c)),
    })
}

#[inline(always)]
fn signed_24(a: i32) -> i64 {
    i64::from(a << 8 >> 8)
}

#[inline(always)]
fn low_24(a: u32) -> u64 {
    u64::from(a & 0xFF_FFFF)
}

/// Division by zero yields an unspecified value on the machine, and no trap; NVIDIA's hardware sequence gives all ones, and
/// the dividend as the remainder.
fn quotient(op: &mut Opcode<'_>) -> Option<Compute> {
    let ty = op.ty()?;
    if op.base() == "div" {
        by_sign!(ty, T => binary(|a: T, b: T| if b == 0 { !0 } else { a.wrapping_div(b) }))
    } else {
        by_sign!(ty, T => binary(|a: T, b: T| if b == 0 { a } else { a.wrapping_rem(b) }))
    }
}

fn extreme(op: &mut Opcode<'_>) -> Option<Compute> {
    let ty = op.ty()?;
    if op.base() == "min" {
        by_sign!(ty, T => binary(|a: T, b: T| if a < b { a } else { b }))
    } else {
        by_sign!(ty, T => binary(|a: T, b: T| if a > b { a } else { b }))
    }
}

fn sign(op: &mut Opcode<'_>) -> Option<Compute> {
    let ty = op.ty()?;
    if op.base() == "neg" {
        return by_width!(ty, T => unary(T::wrapping_neg));
    }
    Some(match ty {
        Type::S16 => unary(i16::wrapping_abs),
        Type::S32 => unary(i32::wrapping_abs),
        Type::S64 => unary(i64::wrapping_abs),
        _ => return None,
    })
}

fn distance(op: &mut Opcode<'_>) -> Option<Compute> {
    let ty = op.ty()?;
    by_sign!(ty, T => ternary(|a: T, b: T, c: T| c.wrapping_add(if a < b { b.wrapping_sub(a) } else { a.wrapping_sub(b) })))
}
