//! Words that many memory instructions share: order, scope, space, cache hints.

use crate::memory::access::{Atomic, Order, Scope};
use crate::ops::Opcode;
use crate::ptx::ast::{Space, Type};

/// Takes the scope.
pub fn scope(op: &mut Opcode<'_>) -> Option<Scope> {
    op.one_of(&[
        ("cta", Scope::Block),
        ("cluster", Scope::Cluster),
        ("gpu", Scope::Gpu),
        ("sys", Scope::System),
    ])
}

/// Takes the order and the scope of a load or store. A volatile access is a relaxed one of the system.
pub fn order(op: &mut Opcode<'_>) -> (Order, Scope) {
    let named = op.one_of(&[
        ("relaxed", Order::Relaxed),
        ("acquire", Order::Acquire),
        ("release", Order::Release),
        ("acq_rel", Order::AcquireRelease),
    ]);
    if op.flag("volatile") || op.flag("mmio") {
        scope(op);
        return (Order::Relaxed, Scope::System);
    }
    op.flag("weak");
    let scope = scope(op).unwrap_or(Scope::Gpu);
    match named {
        Some(order) => (order, scope),
        None if op.flag("nc") => (Order::NonCoherent, scope),
        None => (Order::Weak, scope),
    }
}

/// Takes the space: and whether it is the block's own shared memory only.
pub fn space(op: &mut Opcode<'_>) -> (Space, bool) {
    let space = op.one_of(&[
        ("global", Space::Global),
        ("shared", Space::Shared),
        ("shared::cluster", Space::Shared),
        ("local", Space::Local),
        ("const", Space::Const),
        ("param", Space::Param),
        ("param::entry", Space::Param),
        ("param::func", Space::Param),
    ]);
    match space {
        Some(space) => (space, false),
        None if op.flag("shared::cta") => (Space::Shared, true),
        None => (Space::Generic, false),
    }
}

/// Takes what only speaks to caches, and says whether a cache policy is an operand.
pub fn caches(op: &mut Opcode<'_>) -> bool {
    for word in ["ca", "cg", "cs", "lu", "cv", "wb", "wt", "unified"] {
        op.flag(word);
    }
    let mut policy = false;
    while let Some(hint) = op.find(|word| word.starts_with("L1::").then_some(false).or_else(|| l2(word))) {
        policy |= hint;
    }
    policy
}

fn l2(word: &str) -> Option<bool> {
    word.starts_with("L2::").then_some(word == "L2::cache_hint")
}

/// Takes the number of elements.
pub fn vector(op: &mut Opcode<'_>) -> u32 {
    op.one_of(&[("v2", 2), ("v4", 4), ("v8", 8)]).unwrap_or(1)
}

/// Takes the operation of an atomic instruction, whose type is known.
pub fn atomic(op: &mut Opcode<'_>, ty: Type) -> Option<Atomic> {
    let signed = matches!(ty, Type::S32 | Type::S64);
    let word = op.find(|word| ATOMICS.contains(&word).then(|| word.to_owned()))?;
    Some(match (word.as_str(), ty) {
        ("exch", _) => Atomic::Exchange,
        ("cas", _) => Atomic::CompareAndSwap,
        ("add", Type::F32) => Atomic::AddF32,
        ("add", Type::F64) => Atomic::AddF64,
        ("add", Type::F16) => Atomic::AddF16,
        ("add", Type::F16x2) => Atomic::AddF16x2,
        ("add", Type::BF16) => Atomic::AddBF16,
        ("add", Type::BF16x2) => Atomic::AddBF16x2,
        ("add", _) => Atomic::Add,
        ("and", _) => Atomic::And,
        ("or", _) => Atomic::Or,
        ("xor", _) => Atomic::Xor,
        ("inc", Type::U32) => Atomic::Increment,
        ("dec", Type::U32) => Atomic::Decrement,
        ("min", _) if signed => Atomic::MinSigned,
        ("max", _) if signed => Atomic::MaxSigned,
        ("min", Type::U32 | Type::U64) => Atomic::MinUnsigned,
        ("max", Type::U32 | Type::U64) => Atomic::MaxUnsigned,
        _ => return None,
    })
}

const ATOMICS: [&str; 10] = ["exch", "cas", "add", "and", "or", "xor", "inc", "dec", "min", "max"];
