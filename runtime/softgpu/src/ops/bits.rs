//! Logic, shifts and bit fields.

use super::combine::{Args, Body, Compute, baseline, binary, hot_binary, ternary, ternary_with, unary, unary_with};
use super::int::{by_sign, by_width};
use super::opcode::Opcode;
use super::registers::{Regs, Slot};
use crate::ptx::ast::Type;
use std::marker::PhantomData;

/// Logic of registers and predicates, shifts with PTX's clamping, and bit fields.
pub fn select(op: &mut Opcode<'_>) -> Option<Compute> {
    match op.base() {
        "and" | "or" | "xor" | "not" | "cnot" => logic(op),
        "shl" | "shr" => shift(op),
        "shf" => funnel(op),
        "lop3" => lookup(op),
        "prmt" => permute(op),
        "popc" | "clz" | "brev" => count(op),
        "bfind" => find(op),
        "bfe" => extract(op),
        "bfi" => insert(op),
        "szext" => extend(op),
        "bmsk" => mask(op),
        "fns" => Some(ternary(nth_set)).filter(|_| op.ty().is_some()),
        _ => None,
    }
}

fn logic(op: &mut Opcode<'_>) -> Option<Compute> {
    let ty = op.ty()?;
    if ty == Type::Pred {
        return predicate_logic(op.base());
    }
    match op.base() {
        "and" => by_width!(ty, T => hot_binary(|a: T, b: T| a & b)),
        "or" => by_width!(ty, T => hot_binary(|a: T, b: T| a | b)),
        "xor" => by_width!(ty, T => hot_binary(|a: T, b: T| a ^ b)),
        "not" => by_width!(ty, T => unary(|a: T| !a)),
        _ => by_width!(ty, T => unary(|a: T| T::from(a == 0))),
    }
}

/// A function of whole predicates: bits and validity of both go in and come out.
struct Predicates<F>(PhantomData<F>);

/// How predicates combine.
trait Combination {
    fn combine(a: (u32, u32), b: (u32, u32)) -> (u32, u32);
}

impl<F: Combination> Body for Predicates<F> {
    #[inline(always)]
    fn run(regs: &mut Regs, args: &Args, mask: u32, _: usize) {
        let read = |at: u32| (regs.predicates[at as usize], regs.predicate_valid[at as usize]);
        let (bits, valid) = F::combine(read(args.a), read(args.b));
        regs.put_predicate(args.d, bits, mask, valid);
    }
}

macro_rules! combinations {
    ($($name:ident, |$a:ident, $av:ident, $b:ident, $bv:ident| $bits:expr, $valid:expr;)*) => {$(
        struct $name;
        impl Combination for $name {
            #[inline(always)]
            fn combine(($a, $av): (u32, u32), ($b, $bv): (u32, u32)) -> (u32, u32) {
                ($bits, $valid)
            }
        }
    )*};
}
// A false operand decides an `and` whatever the other one is, and a true one an `or`: compilers speculate on it.
combinations! {
    And, |a, av, b, bv| a & b, (av & bv) | (av & !a) | (bv & !b);
    Or, |a, av, b, bv| a | b, (av & bv) | (av & a) | (bv & b);
    Xor, |a, av, b, bv| a ^ b, av & bv;
    Not, |a, av, _b, _bv| !a, av;
}

fn predicate_logic(base: &str) -> Option<Compute> {
    let two = [Some(Slot::PREDICATE), Some(Slot::PREDICATE), None];
    let (run, src) = match base {
        "and" => (baseline::<Predicates<And>>(), two),
        "or" => (baseline::<Predicates<Or>>(), two),
        "xor" => (baseline::<Predicates<Xor>>(), two),
        "not" => (baseline::<Predicates<Not>>(), [Some(Slot::PREDICATE), None, None]),
        _ => return None,
    };
    Some(Compute::new(run, Slot::PREDICATE, src))
}

/// Shifts by more than the width give zero, or the sign.
fn shift(op: &mut Opcode<'_>) -> Option<Compute> {
    let ty = op.ty()?;
    if op.base() == "shl" {
        by_width!(ty, T => hot_binary(|a: T, b: u32| if b < T::BITS { a << b } else { 0 }))
    } else if matches!(ty, Type::S16 | Type::S32 | Type::S64) {
        by_sign!(ty, T => hot_binary(|a: T, b: u32| a >> b.min(T::BITS - 1)))
    } else {
        by_width!(ty, T => hot_binary(|a: T, b: u32| if b < T::BITS { a >> b } else { 0 }))
    }
}

fn funnel(op: &mut Opcode<'_>) -> Option<Compute> {
    op.ty().filter(|ty| *ty == Type::B32)?;
    let left = op.one_of(&[("l", true), ("r", false)])?;
    let wrap = op.one_of(&[("wrap", true), ("clamp", false)])?;
    Some(match (left, wrap) {
        (true, true) => ternary(|a: u32, b: u32, c: u32| funnel_left(a, b, c & 31)),
        (true, false) => ternary(|a: u32, b: u32, c: u32| funnel_left(a, b, c.min(32))),
        (false, true) => ternary(|a: u32, b: u32, c: u32| funnel_right(a, b, c & 31)),
        (false, false) => ternary(|a: u32, b: u32, c: u32| funnel_right(a, b, c.min(32))),
    })
}

#[inline(always)]
fn funnel_left(a: u32, b: u32, by: u32) -> u32 {
    (((u64::from(b) << 32 | u64::from(a)) << by) >> 32) as u32
}

#[inline(always)]
fn funnel_right(a: u32, b: u32, by: u32) -> u32 {
    ((u64::from(b) << 32 | u64::from(a)) >> by) as u32
}

/// The table, a byte, comes in the modifiers.
fn lookup(op: &mut Opcode<'_>) -> Option<Compute> {
    op.ty().filter(|ty| *ty == Type::B32)?;
    Some(ternary_with(|a: u32, b: u32, c: u32, table: u32| {
        let mut out = 0;
        for row in 0..8 {
            let pick = |bit: u32, value: u32| if row >> bit & 1 != 0 { value } else { !value };
            let here = (table >> row & 1).wrapping_neg();
            out |= here & pick(2, a) & pick(1, b) & pick(0, c);
        }
        out
    }))
}

fn permute(op: &mut Opcode<'_>) -> Option<Compute> {
    op.ty().filter(|ty| *ty == Type::B32)?;
    let modes = [("f4e", 1), ("b4e", 2), ("rc8", 3), ("ecl", 4), ("ecr", 5), ("rc16", 6)];
    let mode = op.one_of(&modes).unwrap_or(0);
    Some(ternary_with(permuted).with(mode))
}

/// Four bytes of eight. Without a mode each nibble of the selector names a byte, and its top bit asks for the sign.
#[inline(never)]
fn permuted(a: u32, b: u32, selector: u32, mode: u32) -> u32 {
    let bytes = u64::from(b) << 32 | u64::from(a);
    let s = selector & 3;
    let selector = match mode {
        0 => selector,
        1 => 0x3210 + 0x1111 * s,
        2 => [0x5670, 0x6701, 0x7012, 0x0123][s as usize],
        3 => 0x1111 * s,
        4 => [0x3210, 0x3211, 0x3222, 0x3333][s as usize],
        5 => [0x0000, 0x1110, 0x2210, 0x3210][s as usize],
        _ => [0x1010, 0x3232][(s & 1) as usize],
    };
    (0..4).fold(0, |out, place| {
        let nibble = selector >> (4 * place);
        let byte = (bytes >> (8 * (nibble & 7))) as u8;
        let byte = if nibble & 8 != 0 {
            ((byte as i8) >> 7) as u8
        } else {
            byte
        };
        out | u32::from(byte) << (8 * place)
    })
}

fn count(op: &mut Opcode<'_>) -> Option<Compute> {
    let wide = match op.ty()? {
        Type::B32 => false,
        Type::B64 => true,
        _ => return None,
    };
    Some(match (op.base(), wide) {
        ("popc", false) => unary(u32::count_ones),
        ("popc", true) => unary(u64::count_ones),
        ("clz", false) => unary(u32::leading_zeros),
        ("clz", true) => unary(u64::leading_zeros),
        (_, false) => unary(u32::reverse_bits),
        (_, true) => unary(u64::reverse_bits),
    })
}

/// The highest bit that differs from the sign; with `shiftamt`, how far to shift it to the top.
fn find(op: &mut Opcode<'_>) -> Option<Compute> {
    let ty = op.ty()?;
    let distance = u32::from(op.flag("shiftamt"));
    Some(
        match ty {
            Type::U32 => unary_with(|a: u32, shift| found(a.leading_zeros(), 32, shift)),
            Type::S32 => unary_with(|a: i32, shift| found((a ^ (a >> 31)).leading_zeros(), 32, shift)),
            Type::U64 => unary_with(|a: u64, shift| found(a.leading_zeros(), 64, shift)),
            Type::S64 => unary_with(|a: i64, shift| found((a ^ (a >> 63)).leading_zeros(), 64, shift)),
            _ => return None,
        }
        .with(distance),
    )
}

fn found(zeros: u32, bits: u32, distance: u32) -> u32 {
    match (zeros == bits, distance != 0) {
        (true, _) => u32::MAX,
        (false, true) => zeros,
        (false, false) => bits - 1 - zeros,
    }
}

fn extract(op: &mut Opcode<'_>) -> Option<Compute> {
    Some(match op.ty()? {
        Type::U32 => ternary(|a: u32, at: u32, len: u32| field(a.into(), at, len, 32, false) as u32),
        Type::S32 => ternary(|a: u32, at: u32, len: u32| field(a.into(), at, len, 32, true) as u32),
        Type::U64 => ternary(|a: u64, at: u32, len: u32| field(a, at, len, 64, false)),
        Type::S64 => ternary(|a: u64, at: u32, len: u32| field(a, at, len, 64, true)),
        _ => return None,
    })
}

/// `len` bits from bit `at`, both taken modulo 256. A signed field is extended with its top bit, or with the top bit of the
/// source where it reaches beyond that.
#[inline(never)]
fn field(a: u64, at: u32, len: u32, bits: u32, signed: bool) -> u64 {
    let (at, len) = (at & 255, len & 255);
    let bit = |i: u32| i < 64 && a >> i & 1 != 0;
    let sign = signed && len != 0 && bit((at + len - 1).min(bits - 1));
    let shifted = if at < bits { a >> at } else { 0 };
    let kept = len.min(bits.saturating_sub(at));
    let low = if kept >= 64 { u64::MAX } else { (1 << kept) - 1 };
    (shifted & low) | if sign { !low } else { 0 }
}

fn insert(op: &mut Opcode<'_>) -> Option<Compute> {
    let wide = match op.ty()? {
        Type::B32 => false,
        Type::B64 => true,
        _ => return None,
    };
    // The fourth operand, the length, reaches a lane with the third: the decoder packs both (see `program::pure`).
    Some(if wide {
        ternary(|a: u64, b: u64, place: u32| inserted(a, b, place, 64))
    } else {
        ternary(|a: u32, b: u32, place: u32| inserted(a.into(), b.into(), place, 32) as u32)
    })
}

/// `a`'s low bits put into `b`; `place` is the position plus 256 times the length.
#[inline(never)]
fn inserted(a: u64, b: u64, place: u32, bits: u32) -> u64 {
    let (at, len) = (place & 255, place >> 8 & 255);
    if at >= bits || len == 0 {
        return b;
    }
    let len = len.min(bits - at);
    let low = if len >= 64 { u64::MAX } else { (1 << len) - 1 };
    (b & !(low << at)) | (a & low) << at
}

fn extend(op: &mut Opcode<'_>) -> Option<Compute> {
    let ty = op.ty()?;
    let wrap = op.one_of(&[("wrap", true), ("clamp", false)])?;
    Some(match (ty, wrap) {
        (Type::S32, true) => binary(|a: u32, b: u32| field(a.into(), 0, b & 31, 32, true) as u32),
        (Type::S32, false) => binary(|a: u32, b: u32| field(a.into(), 0, b.min(32), 32, true) as u32),
        (Type::U32, true) => binary(|a: u32, b: u32| field(a.into(), 0, b & 31, 32, false) as u32),
        (Type::U32, false) => binary(|a: u32, b: u32| field(a.into(), 0, b.min(32), 32, false) as u32),
        _ => return None,
    })
}

fn mask(op: &mut Opcode<'_>) -> Option<Compute> {
    op.ty().filter(|ty| *ty == Type::B32)?;
    let wrap = op.one_of(&[("wrap", true), ("clamp", false)])?;
    Some(if wrap {
        binary(|a: u32, b: u32| inserted(u64::MAX, 0, (a & 31) | (b & 31) << 8, 32) as u32)
    } else {
        binary(|a: u32, b: u32| inserted(u64::MAX, 0, a.min(32) | b.min(32) << 8, 32) as u32)
    })
}

/// The position of the `offset`-th set bit from `base`, upwards where it is positive; all ones if there is none.
#[inline(never)]
fn nth_set(mask: u32, base: u32, offset: i32) -> u32 {
    if base > 31 {
        return u32::MAX;
    }
    let set = |at: &i64| (0..32).contains(at) && mask >> at & 1 != 0;
    let base = i64::from(base);
    let nth = offset.unsigned_abs().saturating_sub(1) as usize;
    let found = match offset {
        0 => Some(base).filter(set),
        1.. => (base..32).filter(set).nth(nth),
        _ => (0..=base).rev().filter(set).nth(nth),
    };
    found.map_or(u32::MAX, |at| at as u32)
}
