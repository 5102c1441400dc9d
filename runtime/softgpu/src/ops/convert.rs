//! `cvt`: between every two types, with rounding, saturation and flushing.

use super::combine::{Compute, binary_with, hot_unary, unary, unary_with};
use super::float::{NAN, canonical, flag, flush_if, saturate};
use super::half::{Binary16, Brain16, Half};
use super::narrow;
use super::opcode::{Opcode, bits_of, is_signed};
use super::registers::Scalar;
use super::rounding::{Exact, Round, significand, to_f32};
use crate::ptx::ast::Type;

/// Conversions. `cvt.pack` and the conversions that take random bits are not known.
pub fn select(op: &mut Opcode<'_>) -> Option<Compute> {
    if op.base() != "cvt" {
        return None;
    }
    let from = op.ty()?;
    let to = op.ty()?;
    match (is_float(to), is_float(from)) {
        (false, false) => whole(op, to, from),
        (false, true) => to_whole(op, to, from),
        (true, false) => from_whole(op, to, from),
        (true, true) => float(op, to, from),
    }
}

fn is_float(ty: Type) -> bool {
    !matches!(
        ty,
        Type::U8 | Type::U16 | Type::U32 | Type::U64 | Type::S8 | Type::S16 | Type::S32 | Type::S64
    )
}

/// Between integers: truncated to the type, or saturated to it, then extended to the register. Both kinds, and whether the
/// register has 16 bits, are in the flags.
fn whole(op: &mut Opcode<'_>, to: Type, from: Type) -> Option<Compute> {
    let register = op.destination_bits.max(bits_of(to));
    let half = if register == 16 { 1 << 16 } else { 0 };
    let kinds = kind_of(from) | kind_of(to) << 8 | half;
    let (wide_from, wide_to) = (bits_of(from) == 64, register == 64);
    let saturate = op.flag("sat");
    let compute = match (wide_from, wide_to) {
        (false, false) if saturate => unary_with(|a: u32, kinds| saturated(a.into(), kinds) as u32),
        (false, true) if saturate => unary_with(|a: u32, kinds| saturated(a.into(), kinds)),
        (true, false) if saturate => unary_with(|a: u64, kinds| saturated(a, kinds) as u32),
        (true, true) if saturate => unary_with(saturated),
        (false, true) if from == Type::S32 && bits_of(to) == 64 => hot_unary(|a: i32| i64::from(a)),
        (false, true) if from == Type::U32 && bits_of(to) == 64 => hot_unary(|a: u32| u64::from(a)),
        (true, false) if bits_of(to) == 32 => hot_unary(|a: u64| a as u32),
        (false, false) => unary_with(|a: u32, kinds| converted(a.into(), kinds) as u32),
        (false, true) => unary_with(|a: u32, kinds| converted(a.into(), kinds)),
        (true, false) => unary_with(|a: u64, kinds| converted(a, kinds) as u32),
        (true, true) => unary_with(converted),
    };
    Some(compute.with(kinds))
}

/// A type as modifier bits: width, and 1 for a sign.
fn kind_of(ty: Type) -> u32 {
    bits_of(ty) | u32::from(is_signed(ty))
}

/// The low bits of a value, extended to 64 with their sign if they have one.
#[inline(always)]
fn extended(value: u64, kind: u32) -> u64 {
    let shift = 64 - (kind & 0x7E);
    if kind & 1 != 0 {
        ((value << shift) as i64 >> shift) as u64
    } else {
        value << shift >> shift
    }
}

#[inline(always)]
fn converted(value: u64, kinds: u32) -> u64 {
    fitted(extended(extended(value, kinds & 255), kinds >> 8 & 255), kinds)
}

/// Clamped to the range of the destination.
#[inline(never)]
fn saturated(value: u64, kinds: u32) -> u64 {
    let value = extended(value, kinds & 255);
    let value = if kinds & 1 != 0 {
        i128::from(value as i64)
    } else {
        i128::from(value)
    };
    let (bits, signed) = (kinds >> 8 & 0x7E, kinds >> 8 & 1 != 0);
    let (low, high) = if signed {
        (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
    } else {
        (0, (1 << bits) - 1)
    };
    fitted(value.clamp(low, high) as u64, kinds)
}

/// A register of 16 bits keeps no more.
#[inline(always)]
fn fitted(value: u64, kinds: u32) -> u64 {
    if kinds >> 16 != 0 { value & 0xFFFF } else { value }
}

const INTEGER_ROUNDING: [(&str, Round); 4] = [
    ("rni", Round::Nearest),
    ("rzi", Round::Zero),
    ("rmi", Round::Down),
    ("rpi", Round::Up),
];

/// A whole number in the given direction.
#[inline(always)]
fn rounded(value: f64, flags: u32) -> f64 {
    match Round::from_bits(flags) {
        Round::Nearest => value.round_ties_even(),
        Round::Zero => value.trunc(),
        Round::Down => value.floor(),
        Round::Up => value.ceil(),
        Round::Away => value.round(),
    }
}

/// A floating-point source as an f64, which holds all of them.
trait Source: Scalar {
    fn wide(self, flags: u32) -> f64;
}

impl Source for f32 {
    #[inline(always)]
    fn wide(self, flags: u32) -> f64 {
        flush_if(self, flags).into()
    }
}

impl Source for f64 {
    #[inline(always)]
    fn wide(self, _: u32) -> f64 {
        self
    }
}

/// The halves carry their format in the flags, because both are 16 bits.
impl Source for u16 {
    #[inline(always)]
    fn wide(self, flags: u32) -> f64 {
        let brain = flags & flag::EXTRA != 0;
        f64::from(if brain {
            Brain16::wide(self)
        } else {
            Binary16::wide(self)
        })
    }
}

/// Runs an expression with `$t` the Rust type of a floating-point source.
macro_rules! source {
    ($ty:expr, $t:ident => $make:expr) => {
        match $ty {
            Type::F16 | Type::BF16 => {
                type $t = u16;
                Some($make)
            }
            Type::F32 => {
                type $t = f32;
                Some($make)
            }
            Type::F64 => {
                type $t = f64;
                Some($make)
            }
            _ => None,
        }
    };
}

/// Where the kind of an integer stands in the flags, beside the modifiers of floating point.
const KIND: u32 = 16;
/// The register has 16 bits.
const HALF: u32 = 1 << 24;
/// The source is an f64.
const DOUBLE: u32 = 1 << 25;

/// To an integer: rounded, clamped to its range. NaN becomes 0, or the sign bit alone where 64 bits are involved.
fn to_whole(op: &mut Opcode<'_>, to: Type, from: Type) -> Option<Compute> {
    let round = op.one_of(&INTEGER_ROUNDING)?;
    let ftz = if op.flag("ftz") { flag::FTZ } else { 0 };
    op.flag("sat");
    match (to, from) {
        (Type::S32, Type::F32) if round == Round::Zero && ftz == 0 => return Some(hot_unary(|a: f32| a as i32)),
        (Type::U32, Type::F32) if round == Round::Zero && ftz == 0 => return Some(hot_unary(|a: f32| a as u32)),
        _ => {}
    }
    let extra = if from == Type::BF16 { flag::EXTRA } else { 0 };
    let half = if op.destination_bits == 16 { HALF } else { 0 };
    let double = if from == Type::F64 { DOUBLE } else { 0 };
    let flags = round.bits() | ftz | extra | half | double | kind_of(to) << KIND;
    let compute = match op.destination_bits.max(bits_of(to)) {
        64 => source!(from, S => unary_with(|a: S, f| clamped(a.wide(f), f))),
        _ => source!(from, S => unary_with(|a: S, f| clamped(a.wide(f), f) as u32)),
    };
    Some(compute?.with(flags))
}

#[inline(never)]
fn clamped(value: f64, flags: u32) -> u64 {
    let (bits, signed) = (flags >> KIND & 0x7E, flags >> KIND & 1 != 0);
    if value.is_nan() {
        let wide = bits == 64 || flags & DOUBLE != 0;
        return if wide { 1 << (bits - 1) } else { 0 };
    }
    let value = rounded(value, flags);
    let most = u64::MAX >> (64 - bits);
    let whole = match signed {
        true => (value as i64).clamp(-1 - (most >> 1) as i64, (most >> 1) as i64) as u64,
        false => (value as u64).min(most),
    };
    if flags & HALF != 0 { whole & 0xFFFF } else { whole }
}

/// From an integer, rounded once.
fn from_whole(op: &mut Opcode<'_>, to: Type, from: Type) -> Option<Compute> {
    let round = op.one_of(&Round::WORDS).unwrap_or(Round::Nearest);
    let sat = if op.flag("sat") { flag::SAT } else { 0 };
    let flags = round.bits() | sat;
    match (to, from, flags) {
        (Type::F32, Type::S32, 0) => return Some(hot_unary(|a: i32| a as f32)),
        (Type::F32, Type::U32, 0) => return Some(hot_unary(|a: u32| a as f32)),
        _ => {}
    }
    let compute = match (to, bits_of(from)) {
        (Type::F32, 64) => unary_with(|a: u64, f| to_single(exactly(a, f), f)),
        (Type::F32, _) => unary_with(|a: u32, f| to_single(exactly(a.into(), f), f)),
        (Type::F64, 64) => unary_with(|a: u64, f| exactly(a, f).f64(Round::from_bits(f))),
        (Type::F64, _) => unary_with(|a: u32, f| exactly(a.into(), f).f64(Round::from_bits(f))),
        (Type::F16, 64) => unary_with(|a: u64, f| to_half::<Binary16>(exactly(a, f).odd(), f)),
        (Type::F16, _) => unary_with(|a: u32, f| to_half::<Binary16>(exactly(a.into(), f).odd(), f)),
        (Type::BF16, 64) => unary_with(|a: u64, f| to_half::<Brain16>(exactly(a, f).odd(), f)),
        (Type::BF16, _) => unary_with(|a: u32, f| to_half::<Brain16>(exactly(a.into(), f).odd(), f)),
        _ => return None,
    };
    Some(compute.with(flags | kind_of(from) << KIND))
}

/// An integer as the nearest f64 and the rest.
#[inline(never)]
fn exactly(bits: u64, flags: u32) -> Exact {
    let kind = flags >> KIND & 255;
    let wide = extended(bits, kind);
    let value = if kind & 1 != 0 {
        i128::from(wide as i64)
    } else {
        i128::from(wide)
    };
    let near = value as f64;
    Exact {
        near,
        rest: (value - near as i128) as f64,
        cancelled: false,
    }
}

#[inline(never)]
fn to_single(exact: Exact, flags: u32) -> f32 {
    let value = flush_if(canonical(exact.f32(Round::from_bits(flags))), flags);
    if flags & flag::SAT != 0 {
        saturate(value)
    } else {
        rectified(value, flags)
    }
}

#[inline(always)]
fn rectified(value: f32, flags: u32) -> f32 {
    if flags & flag::RELU != 0 && value <= 0.0 {
        0.0
    } else {
        value
    }
}

#[inline(never)]
fn to_half<H: Half>(value: f64, flags: u32) -> u16 {
    let value = match () {
        () if flags & flag::SAT != 0 => {
            if value > 0.0 {
                value.min(1.0)
            } else {
                0.0
            }
        }
        () if flags & flag::RELU != 0 && value <= 0.0 => 0.0,
        () => value,
    };
    H::FORMAT.round(value, Round::from_bits(flags))
}

fn float(op: &mut Opcode<'_>, to: Type, from: Type) -> Option<Compute> {
    let whole = op.one_of(&INTEGER_ROUNDING);
    let round = whole.or_else(|| op.one_of(&Round::WORDS)).unwrap_or(Round::Nearest);
    let words = [
        ("ftz", flag::FTZ),
        ("sat", flag::SAT),
        ("relu", flag::RELU),
        ("satfinite", flag::NAN),
    ];
    let flags = words
        .iter()
        .filter(|(word, _)| op.flag(word))
        .fold(round.bits(), |flags, (_, bit)| flags | bit);
    match (to, from) {
        (Type::F16x2, Type::F32) => Some(binary_with(pair::<Binary16>).with(flags)),
        (Type::BF16x2, Type::F32) => Some(binary_with(pair::<Brain16>).with(flags)),
        (Type::TF32, Type::F32) => Some(unary_with(tf32).with(flags)),
        (Type::E4M3x2 | Type::E5M2x2, _) | (_, Type::E4M3x2 | Type::E5M2x2) => eighths(to, from, flags),
        _ if flags == 0 && whole.is_none() => plain(to, from).or_else(|| general(to, from, 0)),
        (Type::F32, Type::F32) if flags == flag::SAT && whole.is_none() => Some(hot_unary(saturate)),
        _ if whole.is_some() => integral(to, from, flags),
        _ => general(to, from, flags),
    }
}

/// The common ones, which vectorise.
fn plain(to: Type, from: Type) -> Option<Compute> {
    Some(match (to, from) {
        (Type::F32, Type::F32) => unary(canonical),
        (Type::F64, Type::F64) => unary(|a: f64| a),
        (Type::F64, Type::F32) => unary(|a: f32| f64::from(a)),
        (Type::F32, Type::F64) => unary(|a: f64| canonical(a as f32)),
        (Type::F32, Type::F16) => hot_unary(|a: u16| canonical(Binary16::wide(a))),
        (Type::F32, Type::BF16) => hot_unary(|a: u16| canonical(Brain16::wide(a))),
        (Type::BF16, Type::F32) => hot_unary(nearest_brain),
        _ => return None,
    })
}

/// To the nearest bf16 by an addition to the bits.
#[inline(always)]
pub fn nearest_brain(a: f32) -> u16 {
    let bits = a.to_bits();
    let up = bits.wrapping_add(0x7FFF + (bits >> 16 & 1)) >> 16;
    if a.is_nan() { 0x7FFF } else { up as u16 }
}

fn general(to: Type, from: Type, flags: u32) -> Option<Compute> {
    let flags = flags | if from == Type::BF16 { flag::EXTRA } else { 0 };
    Some(
        match to {
            Type::F32 => source!(from, S => unary_with(|a: S, f| to_single(Exact::of(a.wide(f)), f)))?,
            Type::F16 => source!(from, S => unary_with(|a: S, f| to_half::<Binary16>(a.wide(f), f)))?,
            Type::BF16 => source!(from, S => unary_with(|a: S, f| to_half::<Brain16>(a.wide(f), f)))?,
            Type::F64 => source!(from, S => unary_with(|a: S, f| a.wide(f)))?,
            _ => return None,
        }
        .with(flags),
    )
}

/// To a whole number in the same or another floating-point type.
fn integral(to: Type, from: Type, flags: u32) -> Option<Compute> {
    let flags = flags | if from == Type::BF16 { flag::EXTRA } else { 0 };
    Some(
        match to {
            Type::F32 => source!(from, S => unary_with(|a: S, f| to_single(Exact::of(rounded(a.wide(f), f)), f)))?,
            Type::F16 => source!(from, S => unary_with(|a: S, f| to_half::<Binary16>(rounded(a.wide(f), f), f)))?,
            Type::BF16 => source!(from, S => unary_with(|a: S, f| to_half::<Brain16>(rounded(a.wide(f), f), f)))?,
            Type::F64 => source!(from, S => unary_with(|a: S, f| rounded(a.wide(f), f)))?,
            _ => return None,
        }
        .with(flags),
    )
}

/// The first operand goes to the upper half.
fn pair<H: Half>(high: f32, low: f32, flags: u32) -> u32 {
    let half = |x: f32| u32::from(to_half::<H>(f64::from(x), flags));
    half(high) << 16 | half(low)
}

/// 11 bits of significand in an f32.
#[inline(never)]
fn tf32(a: f32, flags: u32) -> u32 {
    if a.is_nan() || a.is_infinite() || a == 0.0 {
        return if a.is_nan() { NAN.to_bits() } else { a.to_bits() };
    }
    let a = rectified(a, flags);
    let (whole, unit) = significand(a.into(), 11, -136, Round::from_bits(flags));
    let value = to_f32(whole as f64 * 2f64.powi(unit), Round::Nearest);
    let value = if flags & flag::NAN != 0 {
        value.min(f32::from_bits(0x7F7F_E000))
    } else {
        value
    };
    value.copysign(a).to_bits()
}

/// Pairs of 8-bit numbers.
fn eighths(to: Type, from: Type, flags: u32) -> Option<Compute> {
    Some(
        match (to, from) {
            (Type::E4M3x2, Type::F32) => binary_with(|a: f32, b: f32, f| eighth_pair(narrow::to_e4m3, a, b, f)),
            (Type::E5M2x2, Type::F32) => binary_with(|a: f32, b: f32, f| eighth_pair(narrow::to_e5m2, a, b, f)),
            (Type::E4M3x2, Type::F16x2) => unary_with(|a: u32, f| halves(narrow::to_e4m3, a, f)),
            (Type::E5M2x2, Type::F16x2) => unary_with(|a: u32, f| halves(narrow::to_e5m2, a, f)),
            (Type::F16x2, Type::E4M3x2) => unary_with(|a: u16, f| widened(narrow::from_e4m3, a, f)),
            (Type::F16x2, Type::E5M2x2) => unary_with(|a: u16, f| widened(narrow::from_e5m2, a, f)),
            _ => return None,
        }
        .with(flags),
    )
}

fn eighth_pair(to: fn(f64) -> u8, high: f32, low: f32, flags: u32) -> u16 {
    let one = |x: f32| u16::from(to(rectified(x, flags).into()));
    one(high) << 8 | one(low)
}

fn halves(to: fn(f64) -> u8, a: u32, flags: u32) -> u16 {
    eighth_pair(to, Binary16::wide((a >> 16) as u16), Binary16::wide(a as u16), flags)
}

fn widened(from: fn(u8) -> f32, a: u16, flags: u32) -> u32 {
    pair::<Binary16>(from((a >> 8) as u8), from(a as u8), flags & flag::RELU)
}
