//! Dot products of packed bytes: `dp4a` and `dp2a`.

use super::combine::{Compute, ternary_with};
use super::opcode::Opcode;
use crate::ptx::ast::Type;

/// Modifier bits: signed operands, and which half of the second one `dp2a` takes.
mod flag {
    pub const SIGNED_A: u32 = 1;
    pub const SIGNED_B: u32 = 2;
    pub const HIGH: u32 = 4;
}

/// `dp4a` and `dp2a`: four or two products added to a 32-bit sum, modulo 2^32.
pub fn select(op: &mut Opcode<'_>) -> Option<Compute> {
    if !matches!(op.base(), "dp4a" | "dp2a") {
        return None;
    }
    let b = signed(op.ty()?)?;
    let a = signed(op.ty()?)?;
    let flags = if a { flag::SIGNED_A } else { 0 } | if b { flag::SIGNED_B } else { 0 };
    if op.base() == "dp4a" {
        return Some(ternary_with(four).with(flags));
    }
    let half = op.one_of(&[("lo", 0), ("hi", flag::HIGH)])?;
    Some(ternary_with(two).with(flags | half))
}

fn signed(ty: Type) -> Option<bool> {
    match ty {
        Type::S32 => Some(true),
        Type::U32 => Some(false),
        _ => None,
    }
}

fn byte(word: u32, at: u32, signed: bool) -> i32 {
    let byte = (word >> (8 * at)) as u8;
    if signed { i32::from(byte as i8) } else { i32::from(byte) }
}

fn half(word: u32, at: u32, signed: bool) -> i32 {
    let half = (word >> (16 * at)) as u16;
    if signed {
        i32::from(half as i16)
    } else {
        i32::from(half)
    }
}

fn four(a: u32, b: u32, c: u32, flags: u32) -> u32 {
    let (sa, sb) = (flags & flag::SIGNED_A != 0, flags & flag::SIGNED_B != 0);
    (0..4).fold(c, |sum, i| sum.wrapping_add((byte(a, i, sa) * byte(b, i, sb)) as u32))
}

fn two(a: u32, b: u32, c: u32, flags: u32) -> u32 {
    let (sa, sb) = (flags & flag::SIGNED_A != 0, flags & flag::SIGNED_B != 0);
    let from = if flags & flag::HIGH != 0 { 2 } else { 0 };
    (0..2).fold(c, |sum, i| {
        sum.wrapping_add(half(a, i, sa).wrapping_mul(byte(b, from + i, sb)) as u32)
    })
}
