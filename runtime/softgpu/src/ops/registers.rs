//! The registers of a warp in one frame: three files, each register a row of 32 lanes with a mask of the lanes that were
//! written.
//!
//! Values of 8 and 16 bits live in the 32-bit file, zero-extended; a `.b128` register is two neighbours of the 64-bit file.

use crate::memory::access::Lanes;
use crate::memory::wide;

/// A register: a value for each lane, aligned for vector loads.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub struct Row<T>(pub Lanes<T>);

/// A file of registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum File {
    /// Predicates, a bit a lane.
    Predicate,
    /// Up to 32 bits.
    Word,
    /// 64 bits.
    Double,
}

/// What an operand must be: the file and how many bits of it count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// The file.
    pub file: File,
    /// Bits of the value.
    pub bits: u8,
    /// Whether it is a floating-point number, so that a decimal literal is rounded to it.
    pub float: bool,
}

impl Slot {
    /// A predicate.
    pub const PREDICATE: Slot = Slot {
        file: File::Predicate,
        bits: 1,
        float: false,
    };
}

/// The registers of a frame.
#[derive(Clone, Debug, Default)]
pub struct Regs {
    /// Predicates, a bit a lane.
    pub predicates: Vec<u32>,
    /// Lanes of each predicate that were written.
    pub predicate_valid: Vec<u32>,
    words: Vec<Row<u32>>,
    word_valid: Vec<u32>,
    doubles: Vec<Row<u64>>,
    double_valid: Vec<u32>,
    /// Non-zero: the results of approximate functions are moved inside their documented bounds, by this seed.
    pub perturb: u32,
}

impl Regs {
    /// So many registers of each file, nothing written.
    pub fn new(predicates: usize, words: usize, doubles: usize) -> Regs {
        Regs {
            predicates: vec![0; predicates],
            predicate_valid: vec![0; predicates],
            words: vec![Row([0xA5A5_A5A5; 32]); words],
            word_valid: vec![0; words],
            doubles: vec![Row([0xA5A5_A5A5_A5A5_A5A5; 32]); doubles],
            double_valid: vec![0; doubles],
            perturb: 0,
        }
    }

    /// A register's lanes.
    #[inline(always)]
    pub fn get<C: Carrier>(&self, register: u32) -> &Lanes<C> {
        &C::rows(self)[register as usize].0
    }

    /// The lanes of a register that were written.
    #[inline(always)]
    pub fn valid<C: Carrier>(&self, register: u32) -> u32 {
        C::masks(self)[register as usize]
    }

    /// Writes the lanes of `mask`; those of `valid` count as written.
    #[inline(always)]
    pub fn put<C: Carrier>(&mut self, register: u32, values: &Lanes<C>, mask: u32, valid: u32) {
        let row = &mut C::rows_mut(self)[register as usize].0;
        if mask == u32::MAX {
            *row = *values;
        } else {
            for lane in 0..32 {
                row[lane] = C::either(row[lane], values[lane], mask >> lane);
            }
        }
        let written = &mut C::masks_mut(self)[register as usize];
        *written = (*written & !mask) | (valid & mask);
    }

    /// The same of the lower halves of longer values, into the 32-bit file.
    pub fn put_low_words(&mut self, register: u32, values: &Lanes<u64>, mask: u32, valid: u32) {
        wide::put_low_words(&mut self.words[register as usize].0, values, mask);
        let written = &mut self.word_valid[register as usize];
        *written = (*written & !mask) | (valid & mask);
    }

    /// Writes the lanes of `mask` of a predicate.
    #[inline(always)]
    pub fn put_predicate(&mut self, register: u32, bits: u32, mask: u32, valid: u32) {
        let register = register as usize;
        self.predicates[register] = (self.predicates[register] & !mask) | (bits & mask);
        self.predicate_valid[register] = (self.predicate_valid[register] & !mask) | (valid & mask);
    }

    /// One value for every lane.
    pub fn fill<C: Carrier>(&mut self, register: u32, value: C) {
        self.put(register, &[value; 32], u32::MAX, u32::MAX);
    }

    /// Forgets the lanes of `mask` in every register, as a call does before it enters.
    pub fn forget(&mut self, mask: u32) {
        let forget = |masks: &mut [u32]| masks.iter_mut().for_each(|valid| *valid &= !mask);
        forget(&mut self.predicate_valid);
        forget(&mut self.word_valid);
        forget(&mut self.double_valid);
    }
}

/// What a lane of a file holds.
pub trait Carrier: Copy + Default + 'static {
    /// The file.
    const FILE: File;
    /// Its rows.
    fn rows(regs: &Regs) -> &[Row<Self>];
    /// Its rows, to write.
    fn rows_mut(regs: &mut Regs) -> &mut [Row<Self>];
    /// Its masks.
    fn masks(regs: &Regs) -> &[u32];
    /// Its masks, to write.
    fn masks_mut(regs: &mut Regs) -> &mut [u32];
    /// The new value where the lowest bit is set, else the old one. Without branches: it is a step of a loop over lanes.
    fn either(old: Self, new: Self, bit: u32) -> Self;
}

macro_rules! carrier {
    ($type:ty, $file:ident, $rows:ident, $masks:ident) => {
        impl Carrier for $type {
            const FILE: File = File::$file;
            #[inline(always)]
            fn rows(regs: &Regs) -> &[Row<Self>] {
                &regs.$rows
            }
            #[inline(always)]
            fn rows_mut(regs: &mut Regs) -> &mut [Row<Self>] {
                &mut regs.$rows
            }
            #[inline(always)]
            fn masks(regs: &Regs) -> &[u32] {
                &regs.$masks
            }
            #[inline(always)]
            fn masks_mut(regs: &mut Regs) -> &mut [u32] {
                &mut regs.$masks
            }
            #[inline(always)]
            fn either(old: Self, new: Self, bit: u32) -> Self {
                let taken: $type = (<$type>::from(bit & 1)).wrapping_neg();
                (new & taken) | (old & !taken)
            }
        }
    };
}
carrier!(u32, Word, words, word_valid);
carrier!(u64, Double, doubles, double_valid);

/// A number as instructions see it, and how a lane carries it.
pub trait Scalar: Copy + 'static {
    /// What carries it.
    type Carrier: Carrier;
    /// The operand that it needs.
    const SLOT: Slot;
    /// Reads it.
    fn get(carrier: Self::Carrier) -> Self;
    /// Writes it.
    fn put(self) -> Self::Carrier;
}

macro_rules! scalar {
    ($($type:ty, $carrier:ty, $float:expr, |$c:ident| $get:expr, |$v:ident| $put:expr;)*) => {$(
        impl Scalar for $type {
            type Carrier = $carrier;
            const SLOT: Slot = Slot {
                file: <$carrier as Carrier>::FILE,
                bits: (8 * std::mem::size_of::<$type>()) as u8,
                float: $float,
            };
            #[inline(always)]
            fn get($c: $carrier) -> $type {
                $get
            }
            #[inline(always)]
            fn put(self) -> $carrier {
                let $v = self;
                $put
            }
        }
    )*};
}
scalar! {
    u8, u32, false, |c| c as u8, |v| v.into();
    i8, u32, false, |c| c as i8, |v| v as u8 as u32;
    u16, u32, false, |c| c as u16, |v| v.into();
    i16, u32, false, |c| c as i16, |v| v as u16 as u32;
    u32, u32, false, |c| c, |v| v;
    i32, u32, false, |c| c as i32, |v| v as u32;
    u64, u64, false, |c| c, |v| v;
    i64, u64, false, |c| c as i64, |v| v as u64;
    f32, u32, true, |c| f32::from_bits(c), |v| v.to_bits();
    f64, u64, true, |c| f64::from_bits(c), |v| v.to_bits();
}
