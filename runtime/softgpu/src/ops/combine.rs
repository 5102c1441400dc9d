//! From a function of one lane to a function of a warp.
//!
//! `binary(|a: u32, b: u32| a & b)` is compiled as a loop over 32 lanes; a `hot_` form is compiled once more for AVX2 and FMA,
//! and the choice is made when a program is decoded, so running an instruction is one indirect call. Functions of one lane are
//! closures without captures or function items: they have no size, and are conjured up inside the loop.

use super::registers::{Regs, Scalar, Slot};
use std::marker::PhantomData;

/// The numbers of the registers of an instruction, and what else it needs to know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Args {
    /// The destination.
    pub d: u32,
    /// The second destination.
    pub e: u32,
    /// Sources.
    pub a: u32,
    /// Second source.
    pub b: u32,
    /// Third source.
    pub c: u32,
    /// Modifiers, as the family defines them.
    pub flags: u32,
}

/// Runs an instruction for the lanes of a mask.
///
/// # Safety
/// A version for AVX2 may only run where there is AVX2; [`pick`] sees to it.
pub type Run = unsafe fn(&mut Regs, &Args, u32);

/// How a pure instruction is done.
#[derive(Clone, Copy, Debug)]
pub struct Compute {
    /// The function.
    pub run: Run,
    /// The destination.
    pub dst: Slot,
    /// The sources.
    pub src: [Option<Slot>; 3],
    /// Goes into [`Args::flags`].
    pub flags: u32,
}

impl Compute {
    /// A function with its operands.
    pub fn new(run: Run, dst: Slot, src: [Option<Slot>; 3]) -> Compute {
        Compute {
            run,
            dst,
            src,
            flags: 0,
        }
    }

    /// The same with modifiers.
    pub fn with(self, flags: u32) -> Compute {
        Compute { flags, ..self }
    }
}

/// The body of a warp-wide function.
pub trait Body {
    /// Does it, for 32 lanes: a number that only the fast version knows when it is compiled, and unrolls.
    fn run(regs: &mut Regs, args: &Args, mask: u32, lanes: usize);
}

/// The baseline version of a body: compiling everything twice takes its time.
pub fn baseline<B: Body>() -> Run {
    plain::<B>
}

/// Chooses when this is compiled, so that only common bodies are compiled twice.
fn choose<B: Body, const HOT: bool>() -> Run {
    const fn constant<B: Body, const HOT: bool>() -> Option<Run> {
        if HOT { None } else { Some(plain::<B> as Run) }
    }
    match const { constant::<B, HOT>() } {
        Some(run) => run,
        None => pick::<B>(),
    }
}

/// The best version of a body for this machine.
pub fn pick<B: Body>() -> Run {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma") {
        return fast::<B>;
    }
    plain::<B>
}

unsafe fn plain<B: Body>(regs: &mut Regs, args: &Args, mask: u32) {
    B::run(regs, args, mask, std::hint::black_box(32));
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn fast<B: Body>(regs: &mut Regs, args: &Args, mask: u32) {
    B::run(regs, args, mask, 32);
}

/// The one value of a type without size, such as a function item.
#[inline(always)]
fn conjure<F: Copy>() -> F {
    const { assert!(std::mem::size_of::<F>() == 0, "functions of a lane capture nothing") };
    // SAFETY: the type has no size, so there are no bytes to read and every value of it is the same; one was passed to the
    // function that chose this body, so the type is inhabited.
    unsafe { std::ptr::NonNull::<F>::dangling().read() }
}

struct Unary<A, D, F>(PhantomData<(A, D, F)>);

impl<A: Scalar, D: Scalar, F: Fn(A, u32) -> D + Copy> Body for Unary<A, D, F> {
    #[inline(always)]
    fn run(regs: &mut Regs, args: &Args, mask: u32, lanes: usize) {
        let f = conjure::<F>();
        let a = regs.get::<A::Carrier>(args.a);
        let mut out = [D::Carrier::default(); 32];
        for lane in 0..lanes.min(32) {
            out[lane] = f(A::get(a[lane]), args.flags).put();
        }
        let valid = regs.valid::<A::Carrier>(args.a);
        regs.put(args.d, &out, mask, valid);
    }
}

struct Binary<A, B, D, F>(PhantomData<(A, B, D, F)>);

impl<A: Scalar, B: Scalar, D: Scalar, F: Fn(A, B, u32) -> D + Copy> Body for Binary<A, B, D, F> {
    #[inline(always)]
    fn run(regs: &mut Regs, args: &Args, mask: u32, lanes: usize) {
        let f = conjure::<F>();
        let (a, b) = (regs.get::<A::Carrier>(args.a), regs.get::<B::Carrier>(args.b));
        let mut out = [D::Carrier::default(); 32];
        for lane in 0..lanes.min(32) {
            out[lane] = f(A::get(a[lane]), B::get(b[lane]), args.flags).put();
        }
        let valid = regs.valid::<A::Carrier>(args.a) & regs.valid::<B::Carrier>(args.b);
        regs.put(args.d, &out, mask, valid);
    }
}

struct Ternary<A, B, C, D, F>(PhantomData<(A, B, C, D, F)>);

impl<A: Scalar, B: Scalar, C: Scalar, D: Scalar, F: Fn(A, B, C, u32) -> D + Copy> Body for Ternary<A, B, C, D, F> {
    #[inline(always)]
    fn run(regs: &mut Regs, args: &Args, mask: u32, lanes: usize) {
        let f = conjure::<F>();
        let (a, b) = (regs.get::<A::Carrier>(args.a), regs.get::<B::Carrier>(args.b));
        let c = regs.get::<C::Carrier>(args.c);
        let mut out = [D::Carrier::default(); 32];
        for lane in 0..lanes.min(32) {
            out[lane] = f(A::get(a[lane]), B::get(b[lane]), C::get(c[lane]), args.flags).put();
        }
        let valid = regs.valid::<A::Carrier>(args.a) & regs.valid::<B::Carrier>(args.b);
        let valid = valid & regs.valid::<C::Carrier>(args.c);
        regs.put(args.d, &out, mask, valid);
    }
}

/// An instruction of one operand.
pub fn unary<A: Scalar, D: Scalar>(f: impl Fn(A) -> D + Copy + 'static) -> Compute {
    one::<A, D, _, false>(move |a, _| f(a))
}

/// A common instruction of one operand.
pub fn hot_unary<A: Scalar, D: Scalar>(f: impl Fn(A) -> D + Copy + 'static) -> Compute {
    one::<A, D, _, true>(move |a, _| f(a))
}

/// An instruction of one operand and modifiers.
pub fn unary_with<A: Scalar, D: Scalar>(f: impl Fn(A, u32) -> D + Copy + 'static) -> Compute {
    one::<A, D, _, false>(f)
}

/// A common instruction of one operand and modifiers.
pub fn hot_unary_with<A: Scalar, D: Scalar>(f: impl Fn(A, u32) -> D + Copy + 'static) -> Compute {
    one::<A, D, _, true>(f)
}

fn one<A: Scalar, D: Scalar, F: Fn(A, u32) -> D + Copy + 'static, const HOT: bool>(_: F) -> Compute {
    let run = choose::<Unary<A, D, F>, HOT>();
    Compute::new(run, D::SLOT, [Some(A::SLOT), None, None])
}

/// An instruction of two operands.
pub fn binary<A: Scalar, B: Scalar, D: Scalar>(f: impl Fn(A, B) -> D + Copy + 'static) -> Compute {
    two::<A, B, D, _, false>(move |a, b, _| f(a, b))
}

/// A common instruction of two operands.
pub fn hot_binary<A: Scalar, B: Scalar, D: Scalar>(f: impl Fn(A, B) -> D + Copy + 'static) -> Compute {
    two::<A, B, D, _, true>(move |a, b, _| f(a, b))
}

/// An instruction of two operands and modifiers.
pub fn binary_with<A: Scalar, B: Scalar, D: Scalar>(f: impl Fn(A, B, u32) -> D + Copy + 'static) -> Compute {
    two::<A, B, D, _, false>(f)
}

fn two<A, B, D, F, const HOT: bool>(_: F) -> Compute
where
    A: Scalar,
    B: Scalar,
    D: Scalar,
    F: Fn(A, B, u32) -> D + Copy + 'static,
{
    let run = choose::<Binary<A, B, D, F>, HOT>();
    Compute::new(run, D::SLOT, [Some(A::SLOT), Some(B::SLOT), None])
}

/// An instruction of three operands.
pub fn ternary<A: Scalar, B: Scalar, C: Scalar, D: Scalar>(f: impl Fn(A, B, C) -> D + Copy + 'static) -> Compute {
    three::<A, B, C, D, _, false>(move |a, b, c, _| f(a, b, c))
}

/// A common instruction of three operands.
pub fn hot_ternary<A: Scalar, B: Scalar, C: Scalar, D: Scalar>(f: impl Fn(A, B, C) -> D + Copy + 'static) -> Compute {
    three::<A, B, C, D, _, true>(move |a, b, c, _| f(a, b, c))
}

/// An instruction of three operands and modifiers.
pub fn ternary_with<A: Scalar, B: Scalar, C: Scalar, D: Scalar>(
    f: impl Fn(A, B, C, u32) -> D + Copy + 'static,
) -> Compute {
    three::<A, B, C, D, _, false>(f)
}

fn three<A, B, C, D, F, const HOT: bool>(_: F) -> Compute
where
    A: Scalar,
    B: Scalar,
    C: Scalar,
    D: Scalar,
    F: Fn(A, B, C, u32) -> D + Copy + 'static,
{
    let run = choose::<Ternary<A, B, C, D, F>, HOT>();
    Compute::new(run, D::SLOT, [Some(A::SLOT), Some(B::SLOT), Some(C::SLOT)])
}
