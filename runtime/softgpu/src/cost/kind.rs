//! What an instruction is for the model of cost: its class, what it takes of a multiprocessor, and the registers through
//! which it depends on others. Known once a program, from the words of its opcode.
//!
//! PTX is not what runs: ptxas folds moves and address arithmetic away and spells division out. The numbers of slots follow
//! what NVIDIA's assembler makes of each form; they are counts of instructions, good to one or two.

use crate::ops::mma::Mma;
use serde::Serialize;
use std::sync::Arc;

/// The classes that are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// Fused multiply-adds of reals.
    Fma,
    /// Other arithmetic, comparisons, conversions.
    Arithmetic,
    /// Products of matrices.
    Mma,
    /// Special functions: `ex2`, `rcp`, `tanh` and their kin.
    Special,
    /// Loads from device memory.
    LoadGlobal,
    /// Stores to device memory.
    StoreGlobal,
    /// Loads from shared memory, `ldmatrix` too.
    LoadShared,
    /// Stores to shared memory.
    StoreShared,
    /// Loads and stores of thread-local memory: spilled registers.
    Local,
    /// Atomic operations and reductions.
    Atomic,
    /// Starts of asynchronous copies.
    Async,
    /// Shuffles, votes and the like.
    Shuffle,
    /// Barriers, fences, waits.
    Sync,
    /// Branches, calls, exits.
    Control,
    /// What the assembler folds away: moves, conversions of addresses.
    Free,
}

/// The type of a matrix product, as far as its speed depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tensor {
    /// 16-bit factors, 32-bit sums.
    Half,
    /// 16-bit factors and sums.
    HalfSum,
    /// TF32 factors.
    Tf32,
    /// 8-bit factors.
    Byte,
}

/// What an instruction takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Kind {
    /// Its class.
    pub class: Class,
    /// Issue slots.
    pub slots: u8,
    /// Of these, on the pipe for reals.
    pub reals: u8,
    /// Special functions.
    pub special: u8,
    /// A matrix product: its type, and multiply-adds in units of 1024.
    pub tensor: Option<(Tensor, u8)>,
}

/// An instruction with the registers that it reads and writes.
#[derive(Clone, Debug)]
pub struct Facts {
    /// What it takes.
    pub kind: Kind,
    /// Registers that it reads.
    pub reads: Box<[Register]>,
    /// Registers that it writes.
    pub writes: Box<[Register]>,
}

/// A register of a frame: in the double file or in the word file, and its number there.
pub type Register = (bool, u32);

impl Kind {
    /// An instruction that takes nothing.
    pub const FREE: Kind = Kind::new(Class::Free, 0);

    /// One of so many slots.
    pub const fn new(class: Class, slots: u8) -> Kind {
        Kind {
            class,
            slots,
            reals: 0,
            special: 0,
            tensor: None,
        }
    }

    const fn reals(slots: u8) -> Kind {
        Kind {
            reals: slots,
            ..Kind::new(Class::Arithmetic, slots)
        }
    }

    const fn special(slots: u8, special: u8) -> Kind {
        Kind {
            special,
            ..Kind::new(Class::Special, slots)
        }
    }
}

/// The kind of an opcode, word by word. What the machine itself does (memory, lanes, barriers) has its class from there.
pub fn classify(words: &[Arc<str>]) -> Kind {
    let has = |word: &str| words.iter().any(|w| &**w == word);
    let base = words.first().map_or("", |word| &**word);
    let wide = ["b64", "u64", "s64", "f64"].iter().any(|ty| has(ty));
    let real = ["f32", "f16", "f16x2", "bf16", "bf16x2"].iter().any(|ty| has(ty));
    match base {
        "mov" | "cvta" | "mapa" => Kind::FREE,
        "fma" => Kind {
            class: Class::Fma,
            ..Kind::reals(if wide { 2 } else { 1 })
        },
        "div" | "rem" => division(wide, real, has("rn")),
        "rcp" | "sqrt" | "rsqrt" | "ex2" | "lg2" | "sin" | "cos" | "tanh" => special(has("rn"), has("ftz"), base),
        "add" | "sub" | "mul" | "min" | "max" | "neg" | "abs" if real => Kind::reals(1),
        "mul" | "mad" if wide && !has("wide") && !has("f64") => Kind::new(Class::Arithmetic, 4),
        "mma" => product(words),
        _ if wide && base != "cvt" => Kind::new(Class::Arithmetic, 2),
        _ => Kind::new(Class::Arithmetic, 1),
    }
}

fn division(wide: bool, real: bool, exact: bool) -> Kind {
    match (wide, real, exact) {
        (true, _, _) => Kind::special(40, 2),
        (_, true, true) => Kind::special(9, 1),
        (_, true, false) => Kind::special(3, 1),
        _ => Kind::special(16, 1),
    }
}

/// `.rn` is a series after an approximation; without `.ftz` the argument is scaled out of the denormal range and back.
fn special(exact: bool, flushed: bool, base: &str) -> Kind {
    match (exact, flushed) {
        (true, _) => Kind::special(8, 1),
        _ if flushed || base == "tanh" => Kind::special(1, 1),
        _ => Kind::special(3, 1),
    }
}

fn product(words: &[Arc<str>]) -> Kind {
    let (m, n, k) = words.iter().find_map(|word| Mma::shape(word)).unwrap_or((16, 8, 16));
    let types: Vec<&str> = words
        .iter()
        .map(|w| &**w)
        .filter(|w| crate::ops::mma::Element::named(w).is_some())
        .collect();
    let tensor = match types.as_slice() {
        [_, "tf32", ..] => Tensor::Tf32,
        [_, "s8" | "u8", ..] => Tensor::Byte,
        ["f16", ..] => Tensor::HalfSum,
        _ => Tensor::Half,
    };
    Kind {
        tensor: Some((tensor, (m * n * k).div_ceil(1024) as u8)),
        ..Kind::new(Class::Mma, 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(opcode: &str) -> Kind {
        let words: Vec<Arc<str>> = opcode.split('.').map(Arc::from).collect();
        classify(&words)
    }

    #[test]
    fn opcodes_have_their_classes() {
        assert_eq!(of("fma.rn.f32").class, Class::Fma);
        assert_eq!(of("mov.b64").class, Class::Free);
        assert_eq!((of("add.f32").reals, of("add.s32").reals), (1, 0));
        assert_eq!(
            (of("add.s64").slots, of("mul.lo.s64").slots, of("mul.wide.s32").slots),
            (2, 4, 1)
        );
        assert_eq!((of("ex2.approx.ftz.f32").slots, of("ex2.approx.f32").slots), (1, 3));
        assert_eq!((of("div.rn.f32").special, of("div.rn.f32").class), (1, Class::Special));
    }

    #[test]
    fn products_by_shape_and_type() {
        let half = of("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32");
        assert_eq!((half.class, half.tensor), (Class::Mma, Some((Tensor::Half, 2))));
        let sums = of("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16");
        assert_eq!(sums.tensor, Some((Tensor::HalfSum, 2)));
        let tf32 = of("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32");
        assert_eq!(tf32.tensor, Some((Tensor::Tf32, 1)));
    }
}
