//! What atomic operations compute, after the PTX manual's chapter on `atom`.

use super::access::Atomic;
use crate::ops::half::{Binary16, Brain16, Half};

/// The new value of a location that holds `old`, in `bytes` bytes.
pub(crate) fn apply(op: Atomic, bytes: u32, old: u64, b: u64, c: u64) -> u64 {
    let mask = if bytes >= 8 { u64::MAX } else { (1 << (8 * bytes)) - 1 };
    let (old, b, c) = (old & mask, b & mask, c & mask);
    integer(op, bytes, old, b, c).unwrap_or_else(|| floating(op, old, b)) & mask
}

fn integer(op: Atomic, bytes: u32, old: u64, b: u64, c: u64) -> Option<u64> {
    let signed = |x: u64| ((x << (64 - 8 * bytes)) as i64) >> (64 - 8 * bytes);
    Some(match op {
        Atomic::Exchange => b,
        Atomic::CompareAndSwap => {
            if old == b {
                c
            } else {
                old
            }
        }
        Atomic::Add => old.wrapping_add(b),
        Atomic::And => old & b,
        Atomic::Or => old | b,
        Atomic::Xor => old ^ b,
        Atomic::MinSigned => signed(old).min(signed(b)) as u64,
        Atomic::MaxSigned => signed(old).max(signed(b)) as u64,
        Atomic::MinUnsigned => old.min(b),
        Atomic::MaxUnsigned => old.max(b),
        Atomic::Increment => {
            if old >= b {
                0
            } else {
                old + 1
            }
        }
        Atomic::Decrement => {
            if old == 0 || old > b {
                b
            } else {
                old - 1
            }
        }
        _ => return None,
    })
}

fn floating(op: Atomic, old: u64, b: u64) -> u64 {
    let pair = |f: fn(u16, u16) -> u16| {
        let low = f(old as u16, b as u16);
        let high = f((old >> 16) as u16, (b >> 16) as u16);
        u64::from(low) | u64::from(high) << 16
    };
    match op {
        Atomic::AddF64 => (f64::from_bits(old) + f64::from_bits(b)).to_bits(),
        Atomic::AddF16 => u64::from(add_f16(old as u16, b as u16)),
        Atomic::AddBF16 => u64::from(add_bf16(old as u16, b as u16)),
        Atomic::AddF16x2 => pair(add_f16),
        Atomic::AddBF16x2 => pair(add_bf16),
        _ => u64::from((f32::from_bits(old as u32) + f32::from_bits(b as u32)).to_bits()),
    }
}

/// The sum of two f16 is exact in f64.
fn add_f16(a: u16, b: u16) -> u16 {
    Binary16::round(f64::from(Binary16::wide(a)) + f64::from(Binary16::wide(b)))
}

/// The sum of two bf16 is exact in f64, but for terms so unequal that the smaller is of no consequence.
fn add_bf16(a: u16, b: u16) -> u16 {
    Brain16::round(f64::from(Brain16::wide(a)) + f64::from(Brain16::wide(b)))
}
