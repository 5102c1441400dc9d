//! Comparisons and selections: `setp set selp slct testp`.
//!
//! A `setp` writes two predicates, the comparison and its negation, each combined with a third predicate if one is given. The
//! decoder binds them: `d` and `e`, operands `a` and `b`, and the third in `c`.

use super::combine::{Args, Body, Compute, baseline, binary_with, pick, ternary};
use super::float::{flag as float_flag, flush_if};
use super::half::{Binary16, Brain16, Half};
use super::int::by_sign;
use super::opcode::Opcode;
use super::registers::{Carrier, Regs, Scalar, Slot};
use crate::ptx::ast::Type;
use std::marker::PhantomData;

/// Modifier bits of `setp` in [`Args::flags`]; the lowest four are the comparison of half precision.
pub mod flag {
    /// Combine with the third predicate: this and the next bit hold and, or, xor (1 to 3).
    pub const COMBINE: u32 = 1 << 8;
    /// The third predicate is negated.
    pub const NEGATED: u32 = 1 << 10;
    /// Flush subnormals.
    pub const FTZ: u32 = 1 << 11;
}

/// The fourteen comparisons. The unordered ones hold where an operand is NaN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Test {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    Equ,
    Neu,
    Ltu,
    Leu,
    Gtu,
    Geu,
    Num,
    Nan,
}

const TESTS: [(&str, Test); 18] = [
    ("eq", Test::Eq),
    ("ne", Test::Ne),
    ("lt", Test::Lt),
    ("le", Test::Le),
    ("gt", Test::Gt),
    ("ge", Test::Ge),
    ("lo", Test::Lt),
    ("ls", Test::Le),
    ("hi", Test::Gt),
    ("hs", Test::Ge),
    ("equ", Test::Equ),
    ("neu", Test::Neu),
    ("ltu", Test::Ltu),
    ("leu", Test::Leu),
    ("gtu", Test::Gtu),
    ("geu", Test::Geu),
    ("num", Test::Num),
    ("nan", Test::Nan),
];

/// Comparisons and selections.
pub fn select(op: &mut Opcode<'_>) -> Option<Compute> {
    match op.base() {
        "setp" => set_predicate(op),
        "set" => set(op),
        "selp" => choose(op),
        "slct" => by_sign_of(op),
        "testp" => classify(op),
        _ => None,
    }
}

/// A comparison of two numbers into a bit for each lane.
struct SetPredicate<T, F>(PhantomData<(T, F)>);

impl<T: Scalar, F: Relation<T>> Body for SetPredicate<T, F> {
    #[inline(always)]
    fn run(regs: &mut Regs, args: &Args, mask: u32, lanes: usize) {
        let (a, b) = (regs.get::<T::Carrier>(args.a), regs.get::<T::Carrier>(args.b));
        let mut bits = [0u32; 32];
        for lane in 0..lanes.min(32) {
            bits[lane] = u32::from(F::holds(T::get(a[lane]), T::get(b[lane]), args.flags)) << lane;
        }
        let bits = bits.iter().fold(0, |bits, lane| bits | lane);
        let valid = regs.valid::<T::Carrier>(args.a) & regs.valid::<T::Carrier>(args.b);
        finish(regs, args, mask, bits, valid);
    }
}

/// Combines with the third predicate and writes both destinations.
#[inline(always)]
fn finish(regs: &mut Regs, args: &Args, mask: u32, bits: u32, valid: u32) {
    let how = args.flags >> 8 & 3;
    let (mut yes, mut no, mut valid) = (bits, !bits, valid);
    if how != 0 {
        let third = regs.predicates[args.c as usize];
        let third = if args.flags & flag::NEGATED != 0 { !third } else { third };
        (yes, no) = match how {
            1 => (yes & third, no & third),
            2 => (yes | third, no | third),
            _ => (yes ^ third, no ^ third),
        };
        valid &= regs.predicate_valid[args.c as usize];
    }
    regs.put_predicate(args.e, no, mask, valid);
    regs.put_predicate(args.d, yes, mask, valid);
}

/// A comparison as a type.
trait Relation<T>: 'static {
    fn holds(a: T, b: T, flags: u32) -> bool;
}

macro_rules! relations {
    ($($name:ident, |$a:ident, $b:ident| $holds:expr;)*) => {$(
        struct $name;
        #[expect(clippy::allow_attributes, reason = "only some of the comparisons are of these kinds")]
        #[allow(clippy::neg_cmp_op_on_partial_ord, clippy::double_comparisons, reason = "NaN makes the difference")]
        impl<T: PartialOrd + Copy> Relation<T> for $name {
            #[inline(always)]
            fn holds($a: T, $b: T, _: u32) -> bool {
                $holds
            }
        }
    )*};
}
relations! {
    Eq, |a, b| a == b;
    Ne, |a, b| a < b || a > b;
    Lt, |a, b| a < b;
    Le, |a, b| a <= b;
    Gt, |a, b| a > b;
    Ge, |a, b| a >= b;
    Equ, |a, b| !(a < b || a > b);
    Neu, |a, b| a != b;
    Ltu, |a, b| !(a >= b);
    Leu, |a, b| !(a > b);
    Gtu, |a, b| !(a <= b);
    Geu, |a, b| !(a < b);
}

/// Whether both are numbers, and its opposite.
struct Num;
struct Nan;
/// Any test on halves, or flushed: the comparison is in the flags.
struct Wide<W>(PhantomData<W>);

impl<T: Copy + PartialEq> Relation<T> for Num {
    #[inline(always)]
    #[expect(clippy::eq_op, reason = "NaN alone differs from itself")]
    fn holds(a: T, b: T, _: u32) -> bool {
        a == a && b == b
    }
}

impl<T: Copy + PartialEq> Relation<T> for Nan {
    #[inline(always)]
    fn holds(a: T, b: T, flags: u32) -> bool {
        !Num::holds(a, b, flags)
    }
}

/// How a lane of a [`Wide`] comparison becomes an f32.
trait Widen<T>: 'static {
    fn widen(x: T, flags: u32) -> f32;
}

struct Flushed;

impl Widen<f32> for Flushed {
    fn widen(x: f32, flags: u32) -> f32 {
        flush_if(x, if flags & flag::FTZ != 0 { float_flag::FTZ } else { 0 })
    }
}

impl<H: Half> Widen<u16> for H {
    fn widen(x: u16, flags: u32) -> f32 {
        let value = H::wide(x);
        let subnormal = H::FORMAT.digits == 11 && value.abs() < 6.103_515_6e-5;
        if flags & flag::FTZ != 0 && subnormal {
            0.0
        } else {
            value
        }
    }
}

impl<T: Copy, W: Widen<T>> Relation<T> for Wide<W> {
    fn holds(a: T, b: T, flags: u32) -> bool {
        tested(W::widen(a, flags), W::widen(b, flags), flags & 15)
    }
}

#[inline(never)]
fn tested(a: f32, b: f32, test: u32) -> bool {
    let unordered = a.is_nan() || b.is_nan();
    match TESTS.iter().map(|(_, test)| *test).find(|t| *t as u32 == test) {
        Some(Test::Eq) => a == b,
        Some(Test::Ne) => !unordered && a != b,
        Some(Test::Lt) => a < b,
        Some(Test::Le) => a <= b,
        Some(Test::Gt) => a > b,
        Some(Test::Ge) => a >= b,
        Some(Test::Equ) => unordered || a == b,
        Some(Test::Neu) => a != b,
        Some(Test::Ltu) => unordered || a < b,
        Some(Test::Leu) => unordered || a <= b,
        Some(Test::Gtu) => unordered || a > b,
        Some(Test::Geu) => unordered || a >= b,
        Some(Test::Num) => !unordered,
        Some(Test::Nan) | None => unordered,
    }
}

fn set_predicate(op: &mut Opcode<'_>) -> Option<Compute> {
    let ty = op.ty()?;
    let test = op.one_of(&TESTS)?;
    let combine = op.one_of(&[("and", 1), ("or", 2), ("xor", 3)]).unwrap_or(0);
    let ftz = op.flag("ftz");
    let run = match ty {
        Type::F16 => baseline::<SetPredicate<u16, Wide<Binary16>>>(),
        Type::BF16 => baseline::<SetPredicate<u16, Wide<Brain16>>>(),
        Type::F16x2 => baseline::<SetPair<Binary16>>(),
        Type::BF16x2 => baseline::<SetPair<Brain16>>(),
        Type::F32 if ftz => baseline::<SetPredicate<f32, Wide<Flushed>>>(),
        Type::F32 => float_relation::<f32>(test),
        Type::F64 => float_relation::<f64>(test),
        _ => by_sign!(ty, T => relation::<T>(test)?)?,
    };
    let slot = operand(ty);
    let flags = test as u32 | (flag::COMBINE * combine) | if ftz { flag::FTZ } else { 0 };
    Some(Compute::new(run, Slot::PREDICATE, [Some(slot), Some(slot), None]).with(flags))
}

fn operand(ty: Type) -> Slot {
    let bits = super::opcode::bits_of(ty);
    match (ty, bits) {
        (Type::F32, _) => f32::SLOT,
        (Type::F64, _) => f64::SLOT,
        (_, 64) => u64::SLOT,
        (_, 16) => u16::SLOT,
        _ => u32::SLOT,
    }
}

fn relation<T: Scalar + PartialOrd>(test: Test) -> Option<super::Run> {
    Some(match test {
        Test::Eq => pick::<SetPredicate<T, Eq>>(),
        Test::Ne => pick::<SetPredicate<T, Ne>>(),
        Test::Lt => pick::<SetPredicate<T, Lt>>(),
        Test::Le => pick::<SetPredicate<T, Le>>(),
        Test::Gt => pick::<SetPredicate<T, Gt>>(),
        Test::Ge => pick::<SetPredicate<T, Ge>>(),
        _ => return None,
    })
}

fn float_relation<T: Scalar + PartialOrd>(test: Test) -> super::Run {
    match test {
        Test::Equ => baseline::<SetPredicate<T, Equ>>(),
        Test::Neu => baseline::<SetPredicate<T, Neu>>(),
        Test::Ltu => baseline::<SetPredicate<T, Ltu>>(),
        Test::Leu => baseline::<SetPredicate<T, Leu>>(),
        Test::Gtu => baseline::<SetPredicate<T, Gtu>>(),
        Test::Geu => baseline::<SetPredicate<T, Geu>>(),
        Test::Num => baseline::<SetPredicate<T, Num>>(),
        Test::Eq => pick::<SetPredicate<T, Eq>>(),
        Test::Ne => pick::<SetPredicate<T, Ne>>(),
        Test::Lt => pick::<SetPredicate<T, Lt>>(),
        Test::Le => pick::<SetPredicate<T, Le>>(),
        Test::Gt => pick::<SetPredicate<T, Gt>>(),
        Test::Ge => pick::<SetPredicate<T, Ge>>(),
        Test::Nan => baseline::<SetPredicate<T, Nan>>(),
    }
}

/// `setp.f16x2 p|q`: the first destination is of the lower halves, the second of the upper ones.
struct SetPair<H>(PhantomData<H>);

impl<H: Half> Body for SetPair<H> {
    fn run(regs: &mut Regs, args: &Args, mask: u32, _: usize) {
        let (a, b) = (regs.get::<u32>(args.a), regs.get::<u32>(args.b));
        let test = |lane: usize, shift: u32| {
            let (a, b) = ((a[lane] >> shift) as u16, (b[lane] >> shift) as u16);
            u32::from(Wide::<H>::holds(a, b, args.flags)) << lane
        };
        let low = (0..32).fold(0, |bits, lane| bits | test(lane, 0));
        let high = (0..32).fold(0, |bits, lane| bits | test(lane, 16));
        let valid = regs.valid::<u32>(args.a) & regs.valid::<u32>(args.b);
        regs.put_predicate(args.e, high, mask, valid);
        regs.put_predicate(args.d, low, mask, valid);
    }
}

/// `set`: all ones or 1.0 where the comparison holds. It is rare: one slow path serves all types.
fn set(op: &mut Opcode<'_>) -> Option<Compute> {
    let from = op.ty()?;
    let to = op.ty()?;
    let test = op.one_of(&TESTS)?;
    let ftz = if op.flag("ftz") { flag::FTZ } else { 0 };
    let one = match to {
        Type::F32 => 1 << 16,
        Type::U32 | Type::S32 => 2 << 16,
        Type::F16 => 3 << 16,
        Type::BF16 => 4 << 16,
        Type::F16x2 => 5 << 16,
        Type::BF16x2 => 6 << 16,
        _ => return None,
    };
    Some(
        match from {
            Type::F32 => binary_with(|a: f32, b: f32, f| chosen(Wide::<Flushed>::holds(a, b, f), f)),
            Type::F64 => binary_with(|a: f64, b: f64, f| chosen(ordered(a, b, f), f)),
            Type::F16 => binary_with(|a: u16, b: u16, f| chosen(Wide::<Binary16>::holds(a, b, f), f)),
            Type::BF16 => binary_with(|a: u16, b: u16, f| chosen(Wide::<Brain16>::holds(a, b, f), f)),
            Type::F16x2 => binary_with(chosen_pair::<Binary16>),
            Type::BF16x2 => binary_with(chosen_pair::<Brain16>),
            _ => by_sign!(from, T => binary_with(|a: T, b: T, f| chosen(ordered(a, b, f), f)))?,
        }
        .with(test as u32 | ftz | one),
    )
}

/// Compares anything ordered by the sign of its difference.
fn ordered<T: PartialOrd + Copy>(a: T, b: T, flags: u32) -> bool {
    let sign = match a.partial_cmp(&b) {
        Some(order) => f32::from(order as i8),
        None => f32::NAN,
    };
    tested(sign, 0.0, flags & 15)
}

fn chosen(holds: bool, flags: u32) -> u32 {
    match (holds, flags >> 16) {
        (false, _) => 0,
        (true, 1) => 1f32.to_bits(),
        (true, 3) => 0x3C00,
        (true, 4) => 0x3F80,
        (true, _) => u32::MAX,
    }
}

fn chosen_pair<H: Half>(a: u32, b: u32, flags: u32) -> u32 {
    let one = match flags >> 16 {
        5 => 0x3C00,
        6 => 0x3F80,
        _ => 0xFFFF,
    };
    let half = |shift: u32| {
        let holds = Wide::<H>::holds((a >> shift) as u16, (b >> shift) as u16, flags);
        if holds { one } else { 0 }
    };
    half(0) | half(16) << 16
}

/// A choice by a predicate. Only the chosen operand need have been written.
struct Choose<C>(PhantomData<C>);

impl<C: Carrier> Body for Choose<C> {
    #[inline(always)]
    fn run(regs: &mut Regs, args: &Args, mask: u32, lanes: usize) {
        let bits = regs.predicates[args.c as usize];
        let (a, b) = (regs.get::<C>(args.a), regs.get::<C>(args.b));
        let mut out = [C::default(); 32];
        for lane in 0..lanes.min(32) {
            out[lane] = C::either(b[lane], a[lane], bits >> lane);
        }
        let valid = (regs.valid::<C>(args.a) & bits) | (regs.valid::<C>(args.b) & !bits);
        let valid = valid & regs.predicate_valid[args.c as usize];
        regs.put(args.d, &out, mask, valid);
    }
}

fn choose(op: &mut Opcode<'_>) -> Option<Compute> {
    let slot = operand(op.ty()?);
    let run = match slot.bits {
        64 => pick::<Choose<u64>>(),
        _ => pick::<Choose<u32>>(),
    };
    Some(Compute::new(run, slot, [Some(slot), Some(slot), Some(Slot::PREDICATE)]))
}

/// `slct`: the first where the third is not negative.
fn by_sign_of(op: &mut Opcode<'_>) -> Option<Compute> {
    let by = op.ty()?;
    let slot = operand(op.ty()?);
    op.flag("ftz");
    Some(match (slot.bits, by) {
        (64, Type::S32) => ternary(|a: u64, b: u64, c: i32| if c >= 0 { a } else { b }),
        (64, Type::F32) => ternary(|a: u64, b: u64, c: f32| if c >= 0.0 { a } else { b }),
        (16, Type::S32) => ternary(|a: u16, b: u16, c: i32| if c >= 0 { a } else { b }),
        (32, Type::S32) => ternary(|a: u32, b: u32, c: i32| if c >= 0 { a } else { b }),
        (32, Type::F32) => ternary(|a: u32, b: u32, c: f32| if c >= 0.0 { a } else { b }),
        _ => return None,
    })
}

/// `testp`: finite, infinite, number, NaN, normal, subnormal.
struct Classify<T>(PhantomData<T>);

trait Number: Scalar {
    fn class(self) -> std::num::FpCategory;
}

impl Number for f32 {
    fn class(self) -> std::num::FpCategory {
        self.classify()
    }
}

impl Number for f64 {
    fn class(self) -> std::num::FpCategory {
        self.classify()
    }
}

impl<T: Number> Body for Classify<T> {
    fn run(regs: &mut Regs, args: &Args, mask: u32, _: usize) {
        let lanes = regs.get::<T::Carrier>(args.a);
        let bits = (0..32).fold(0, |bits, lane| {
            let class = T::get(lanes[lane]).class() as u32;
            bits | (args.flags >> class & 1) << lane
        });
        let valid = regs.valid::<T::Carrier>(args.a);
        regs.put_predicate(args.d, bits, mask, valid);
    }
}

fn classify(op: &mut Opcode<'_>) -> Option<Compute> {
    use std::num::FpCategory::{Infinite, Nan, Normal, Subnormal, Zero};
    let single = match op.ty()? {
        Type::F32 => true,
        Type::F64 => false,
        _ => return None,
    };
    let set = |classes: &[std::num::FpCategory]| classes.iter().fold(0, |set, class| set | 1u32 << *class as u32);
    let classes = op.one_of(&[
        ("finite", set(&[Zero, Subnormal, Normal])),
        ("infinite", set(&[Infinite])),
        ("number", set(&[Zero, Subnormal, Normal, Infinite])),
        ("notanumber", set(&[Nan])),
        ("normal", set(&[Normal])),
        ("subnormal", set(&[Subnormal])),
    ])?;
    let (run, slot) = match single {
        true => (baseline::<Classify<f32>>(), f32::SLOT),
        false => (baseline::<Classify<f64>>(), f64::SLOT),
    };
    Some(Compute::new(run, Slot::PREDICATE, [Some(slot), None, None]).with(classes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fourteen_tests_on_numbers_and_nan() {
        let expected = [
            ("eq", [false, true, false, false]),
            ("ne", [true, false, true, false]),
            ("lt", [true, false, false, false]),
            ("le", [true, true, false, false]),
            ("gt", [false, false, true, false]),
            ("ge", [false, true, true, false]),
            ("equ", [false, true, false, true]),
            ("neu", [true, false, true, true]),
            ("ltu", [true, false, false, true]),
            ("leu", [true, true, false, true]),
            ("gtu", [false, false, true, true]),
            ("geu", [false, true, true, true]),
            ("num", [true, true, true, false]),
            ("nan", [false, false, false, true]),
        ];
        for (name, results) in expected {
            let test = TESTS.iter().find(|(n, _)| *n == name).map(|(_, t)| *t).unwrap();
            for (right, result) in [2.0, 1.0, 0.0, f32::NAN].into_iter().zip(results) {
                assert_eq!(tested(1.0, right, test as u32), result, "{name} 1 {right}");
                assert_eq!(vector(test, 1.0, right), result, "{name} 1 {right}");
            }
        }
    }

    fn vector(test: Test, a: f32, b: f32) -> bool {
        let mut regs = Regs::new(2, 2, 0);
        regs.fill(0, a.to_bits());
        regs.fill(1, b.to_bits());
        let args = Args {
            d: 0,
            e: 1,
            a: 0,
            b: 1,
            c: 0,
            flags: test as u32,
        };
        // SAFETY: `pick` chose what this machine can run.
        unsafe { float_relation::<f32>(test)(&mut regs, &args, u32::MAX) };
        assert_eq!(regs.predicates[0], !regs.predicates[1]);
        regs.predicates[0] == u32::MAX
    }
}
