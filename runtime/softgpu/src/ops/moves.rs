//! `mov` of one register, and the pieces that packing and unpacking are made of.

use super::combine::{Args, Body, Compute, baseline, binary, hot_binary, hot_unary, hot_unary_with, pick};
use super::opcode::Opcode;
use super::registers::{Carrier, Regs, Slot};
use crate::memory::access::{SHARED_BASE, SHARED_WINDOW};
use crate::ptx::ast::Type;
use std::marker::PhantomData;

/// `mov` between registers of one width.
pub fn select(op: &mut Opcode<'_>) -> Option<Compute> {
    if op.base() != "mov" {
        return None;
    }
    match op.ty()? {
        Type::Pred => Some(Compute::new(
            baseline::<MovePredicate>(),
            Slot::PREDICATE,
            [Some(Slot::PREDICATE), None, None],
        )),
        Type::B16 | Type::U16 | Type::S16 | Type::F16 | Type::BF16 => Some(hot_unary(|a: u16| a)),
        Type::B32 | Type::U32 | Type::S32 | Type::F16x2 | Type::BF16x2 => Some(copy::<u32>(false)),
        Type::F32 => Some(copy::<u32>(true)),
        Type::B64 | Type::U64 | Type::S64 => Some(copy::<u64>(false)),
        Type::F64 => Some(copy::<u64>(true)),
        _ => None,
    }
}

struct MovePredicate;

impl Body for MovePredicate {
    fn run(regs: &mut Regs, args: &Args, mask: u32, _: usize) {
        let (bits, valid) = (regs.predicates[args.a as usize], regs.predicate_valid[args.a as usize]);
        regs.put_predicate(args.d, bits, mask, valid);
    }
}

struct Copied<C>(PhantomData<C>);

impl<C: Carrier> Body for Copied<C> {
    #[inline(always)]
    fn run(regs: &mut Regs, args: &Args, mask: u32, _: usize) {
        let row = *regs.get::<C>(args.a);
        let valid = regs.valid::<C>(args.a);
        regs.put(args.d, &row, mask, valid);
    }
}

/// A register as it is.
pub fn copy<C: Carrier>(float: bool) -> Compute {
    let bits = (8 * std::mem::size_of::<C>()) as u8;
    let slot = Slot {
        file: C::FILE,
        bits,
        float,
    };
    Compute::new(pick::<Copied<C>>(), slot, [Some(slot), None, None])
}

/// A piece of `bits` at bit `at` of a 32-bit register.
pub fn piece_of_word(at: u32, bits: u32) -> Compute {
    hot_unary_with(|a: u32, flags| a >> (flags & 63) & low(flags >> 8)).with(at | bits << 8)
}

/// A piece of at most 32 bits of a 64-bit register.
pub fn piece_of_double(at: u32, bits: u32) -> Compute {
    hot_unary_with(|a: u64, flags| (a >> (flags & 63)) as u32 & low(flags >> 8)).with(at | bits << 8)
}

fn low(bits: u32) -> u32 {
    if bits >= 32 { u32::MAX } else { (1 << bits) - 1 }
}

/// Two 16-bit registers as one of 32, the first in the lower half.
pub fn join_halves() -> Compute {
    hot_binary(|a: u32, b: u32| (a & 0xFFFF) | b << 16)
}

/// Two bytes as one register of 16 bits.
pub fn join_bytes() -> Compute {
    binary(|a: u32, b: u32| (a & 0xFF) | (b & 0xFF) << 8)
}

/// Two 32-bit registers as one of 64, the first in the lower half.
pub fn join_words() -> Compute {
    hot_binary(|a: u32, b: u32| u64::from(a) | u64::from(b) << 32)
}

/// A shared address of 32 bits in the memory of the block of a rank.
pub fn map_word() -> Compute {
    binary(|a: u32, rank: u32| mapped(a.into(), rank) as u32)
}

/// The same of 64 bits.
pub fn map_double() -> Compute {
    binary(mapped)
}

/// The same of a generic address.
pub fn map_generic() -> Compute {
    binary(|a: u64, rank: u32| SHARED_BASE + mapped(a.wrapping_sub(SHARED_BASE), rank))
}

fn mapped(address: u64, rank: u32) -> u64 {
    address % SHARED_WINDOW + (u64::from(rank) + 1) * SHARED_WINDOW
}

/// The low `bits` of the first operand put into the second at bit `at`. What is there need not have been written yet.
pub fn piece_into_word(at: u32, bits: u32) -> Compute {
    let flags = at | bits << 8;
    let slot = copy::<u32>(false).dst;
    Compute::new(baseline::<Inserted>(), slot, [Some(slot), Some(slot), None]).with(flags)
}

struct Inserted;

impl Body for Inserted {
    fn run(regs: &mut Regs, args: &Args, mask: u32, _: usize) {
        let (at, low) = (args.flags & 63, low(args.flags >> 8));
        let (a, b) = (regs.get::<u32>(args.a), regs.get::<u32>(args.b));
        let out = std::array::from_fn(|lane| (b[lane] & !(low << at)) | (a[lane] & low) << at);
        let valid = regs.valid::<u32>(args.a);
        regs.put(args.d, &out, mask, valid);
    }
}
