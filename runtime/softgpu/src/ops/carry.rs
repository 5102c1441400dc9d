//! Extended-precision integers: `add.cc`, `addc`, `sub.cc`, `subc`, `mad.cc`, `madc`.
//!
//! The carry is a predicate of its own, which the decoder binds as second destination and as third (fourth) operand.

use super::combine::{Args, Body, Compute, baseline};
use super::opcode::Opcode;
use super::registers::{Carrier, Regs, Scalar};
use std::marker::PhantomData;

/// Modifier bits of [`Args::flags`].
mod flag {
    pub const CARRY_IN: u32 = 1;
    pub const CARRY_OUT: u32 = 2;
    pub const SUBTRACT: u32 = 4;
    pub const HIGH: u32 = 8;
}

/// Additions, subtractions and sums of products with a carry. The carry register is [`Args::e`].
pub fn select(op: &mut Opcode<'_>) -> Option<Compute> {
    let (carry_in, flags, product) = match op.base() {
        "add" => (0, 0, false),
        "addc" => (flag::CARRY_IN, 0, false),
        "sub" => (0, flag::SUBTRACT, false),
        "subc" => (flag::CARRY_IN, flag::SUBTRACT, false),
        "mad" => (0, 0, true),
        "madc" => (flag::CARRY_IN, 0, true),
        _ => return None,
    };
    let carry_out = if op.flag("cc") { flag::CARRY_OUT } else { 0 };
    if carry_in | carry_out == 0 {
        return None;
    }
    let high = match product {
        true => op.one_of(&[("lo", 0), ("hi", flag::HIGH)])?,
        false => 0,
    };
    let flags = flags | carry_in | carry_out | high;
    let bits = super::opcode::bits_of(op.ty()?);
    Some(
        match (bits, product) {
            (32, false) => of::<u32, Sum<u32>>(2),
            (64, false) => of::<u64, Sum<u64>>(2),
            (32, true) => of::<u32, Product<u32>>(3),
            (64, true) => of::<u64, Product<u64>>(3),
            _ => return None,
        }
        .with(flags),
    )
}

fn of<T: Scalar, B: Body>(operands: usize) -> Compute {
    let src = [Some(T::SLOT), Some(T::SLOT), Some(T::SLOT).filter(|_| operands == 3)];
    Compute::new(baseline::<B>(), T::SLOT, src)
}

/// Whether an opcode reads or writes the carry, so that [`Args::e`] must be its register.
pub fn uses_carry(op: &Opcode<'_>) -> bool {
    matches!(op.base(), "addc" | "subc" | "madc") || op.text().split('.').any(|word| word == "cc")
}

struct Sum<T>(PhantomData<T>);
struct Product<T>(PhantomData<T>);

/// Words with a carry.
trait Word: Scalar<Carrier = Self> + Carrier {
    fn wide(self) -> u128;
    fn narrow(wide: u128) -> Self;
    const BITS: u32;
    /// Half of the product, in the type's sign (unsigned: PTX's signed forms differ in `hi` only, and NVRTC writes `.u`).
    fn product(self, other: Self, high: bool) -> Self {
        let whole = self.wide() * other.wide();
        Self::narrow(if high { whole >> Self::BITS } else { whole })
    }
}

impl Word for u32 {
    const BITS: u32 = 32;
    fn wide(self) -> u128 {
        self.into()
    }
    fn narrow(wide: u128) -> u32 {
        wide as u32
    }
}

impl Word for u64 {
    const BITS: u32 = 64;
    fn wide(self) -> u128 {
        self.into()
    }
    fn narrow(wide: u128) -> u64 {
        wide as u64
    }
}

impl<T: Word> Body for Sum<T> {
    fn run(regs: &mut Regs, args: &Args, mask: u32, _: usize) {
        let valid = regs.valid::<T>(args.a) & regs.valid::<T>(args.b);
        let (a, b) = (*regs.get::<T>(args.a), *regs.get::<T>(args.b));
        add::<T>(regs, args, mask, (&a, &b, valid));
    }
}

impl<T: Word> Body for Product<T> {
    fn run(regs: &mut Regs, args: &Args, mask: u32, _: usize) {
        let valid = regs.valid::<T>(args.a) & regs.valid::<T>(args.b) & regs.valid::<T>(args.c);
        let (a, b) = (regs.get::<T>(args.a), regs.get::<T>(args.b));
        let high = args.flags & flag::HIGH != 0;
        let products = std::array::from_fn(|lane| a[lane].product(b[lane], high));
        let c = *regs.get::<T>(args.c);
        add::<T>(regs, args, mask, (&products, &c, valid));
    }
}

/// `a + b + carry`, or `a - b - borrow`, with the carry written where it is asked for.
fn add<T: Word>(regs: &mut Regs, args: &Args, mask: u32, (a, b, valid): (&[T; 32], &[T; 32], u32)) {
    let carry_in = args.flags & flag::CARRY_IN != 0;
    let carry = args.e as usize;
    let carries = if carry_in { regs.predicates[carry] } else { 0 };
    let valid = if carry_in {
        valid & regs.predicate_valid[carry]
    } else {
        valid
    };
    let mut out = [T::default(); 32];
    let mut over = 0;
    for lane in 0..32 {
        let carry = u128::from(carries >> lane & 1);
        let sum = match args.flags & flag::SUBTRACT != 0 {
            false => a[lane].wide() + b[lane].wide() + carry,
            true => a[lane].wide().wrapping_sub(b[lane].wide()).wrapping_sub(carry),
        };
        out[lane] = T::narrow(sum);
        over |= u32::from(sum >> T::BITS & 1 != 0) << lane;
    }
    regs.put(args.d, &out, mask, valid);
    if args.flags & flag::CARRY_OUT != 0 {
        regs.put_predicate(args.e, over, mask, valid);
    }
}
