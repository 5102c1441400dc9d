//! `mma.sync`: products of small matrices whose elements are spread over the lanes of a warp.
//!
//! The layouts are those of the PTX manual, section "Matrix Fragments for mma.m16n8k*". With `group = lane / 4` and
//! `t = lane % 4`, and elements of `e` to a register (2 of 16 bits, 4 of 8 bits, 1 of 32):
//!
//! - A (16 rows of k): register `r` holds rows `group + 8 * (r % 2)` and columns `t * e + i + 4 * e * (r / 2)`.
//! - B (k rows of 8): register `r` holds rows `t * e + i + 4 * e * r` and column `group`.
//! - C and D (16 by 8): element `i` is row `group + 8 * (i / 2)`, column `t * 2 + i % 2`.
//!
//! Products are exact in f32 or nearly so and are added one by one in the order of `k` by fused operations; real tensor cores
//! add in an order and with a rounding that are not documented.

use super::half::{Binary16, Brain16, Half};
use super::registers::Regs;

/// The elements of a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of PTX")]
pub enum Element {
    F16,
    BF16,
    TF32,
    F32,
    S8,
    U8,
    S32,
}

impl Element {
    /// The element type of this name.
    pub fn named(word: &str) -> Option<Element> {
        Some(match word {
            "f16" => Element::F16,
            "bf16" => Element::BF16,
            "tf32" => Element::TF32,
            "f32" => Element::F32,
            "s8" => Element::S8,
            "u8" => Element::U8,
            "s32" => Element::S32,
            _ => return None,
        })
    }

    /// Elements of a register.
    fn packed(self) -> usize {
        match self {
            Element::S8 | Element::U8 => 4,
            Element::F16 | Element::BF16 => 2,
            Element::TF32 | Element::F32 | Element::S32 => 1,
        }
    }

    /// Element `i` of a register, as an f32 (8-bit integers and their sums here are below 2^24).
    fn unpack(self, word: u32, i: usize) -> f32 {
        match self {
            Element::F16 => Binary16::wide((word >> (16 * i)) as u16),
            Element::BF16 => Brain16::wide((word >> (16 * i)) as u16),
            // Tensor cores read the upper 19 bits.
            Element::TF32 => f32::from_bits(word & 0xFFFF_E000),
            Element::F32 => f32::from_bits(word),
            Element::S8 => f32::from((word >> (8 * i)) as i8),
            Element::U8 => f32::from((word >> (8 * i)) as u8),
            Element::S32 => 0.0,
        }
    }
}

/// A product `D = A B + C`, with A of 16 rows and `k` columns, and B of `k` rows and 8 columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mma {
    k: usize,
    d: Element,
    a: Element,
    b: Element,
}

/// Rows of A.
const M: usize = 16;
/// Columns of B.
const N: usize = 8;
/// The most columns of A.
const K: usize = 32;

impl Mma {
    /// The three sizes in a word such as `m16n8k16`.
    pub fn shape(word: &str) -> Option<(u32, u32, u32)> {
        let (m, rest) = word.strip_prefix('m')?.split_once('n')?;
        let (n, k) = rest.split_once('k')?;
        Some((m.parse().ok()?, n.parse().ok()?, k.parse().ok()?))
    }

    /// The product of a shape and of the types of D, A, B and C; none where it does not exist, or is not modelled.
    pub fn new((m, n, k): (u32, u32, u32), [d, a, b, c]: [Element; 4]) -> Option<Mma> {
        use Element::{BF16, F16, F32, S8, S32, TF32, U8};
        let shaped = match a {
            F16 | BF16 => matches!(k, 8 | 16),
            TF32 => matches!(k, 4 | 8),
            S8 | U8 => matches!(k, 16 | 32),
            F32 | S32 => false,
        };
        let whole = matches!(a, S8 | U8);
        let factors = a == b || (whole && matches!(b, S8 | U8));
        let sums = d == c && (d == F32 && !whole || d == F16 && a == F16 || d == S32 && whole);
        (m == 16 && n == 8 && shaped && factors && sums).then_some(Mma { k: k as usize, d, a, b })
    }

    /// Registers of D, A, B and C in each lane.
    pub fn registers(&self) -> [usize; 4] {
        let sums = if self.d == Element::F16 { 2 } else { 4 };
        let step = 4 * self.a.packed();
        [sums, 2 * self.k / step, self.k / step, sums]
    }

    /// Does the product for the whole warp; the lists are the registers of each fragment.
    pub fn run(&self, regs: &mut Regs, d: &[u32], [a, b, c]: [&[u32]; 3]) {
        let valid = self.validity(regs, a, b, c);
        if self.d == Element::S32 {
            let sums = self.whole(regs, a, b, c);
            return write(regs, d, valid, |lane, i| sums[row(lane, i)][column(lane, i)] as u32);
        }
        let sums = self.floats(regs, a, b, c);
        match self.d {
            Element::F16 => write(regs, d, valid, |lane, word| {
                let half = |i| u32::from(Binary16::round(sums[row(lane, i)][column(lane, i)].into()));
                half(2 * word) | half(2 * word + 1) << 16
            }),
            _ => write(regs, d, valid, |lane, i| {
                super::float::canonical(sums[row(lane, i)][column(lane, i)]).to_bits()
            }),
        }
    }

    /// A with k first, so that the inner loop runs over columns of B.
    #[inline(always)]
    fn factors(&self, regs: &Regs, a: &[u32], b: &[u32]) -> ([[f32; K]; M], [[f32; N]; K]) {
        let (mut left, mut right) = ([[0.0; K]; M], [[0.0; N]; K]);
        let packed = self.a.packed();
        for (r, register) in a.iter().enumerate() {
            for (lane, word) in regs.get::<u32>(*register).iter().enumerate() {
                for i in 0..packed {
                    let column = lane % 4 * packed + i + 4 * packed * (r / 2);
                    left[lane / 4 + 8 * (r % 2)][column] = self.a.unpack(*word, i);
                }
            }
        }
        for (r, register) in b.iter().enumerate() {
            for (lane, word) in regs.get::<u32>(*register).iter().enumerate() {
                for i in 0..packed {
                    right[lane % 4 * packed + i + 4 * packed * r][lane / 4] = self.b.unpack(*word, i);
                }
            }
        }
        (left, right)
    }

    fn floats(&self, regs: &Regs, a: &[u32], b: &[u32], c: &[u32]) -> [[f32; N]; M] {
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma") {
            // SAFETY: this machine has AVX2 and FMA.
            return unsafe { self.fast_floats(regs, a, b, c) };
        }
        self.multiplied(regs, a, b, c)
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma")]
    fn fast_floats(&self, regs: &Regs, a: &[u32], b: &[u32], c: &[u32]) -> [[f32; N]; M] {
        self.multiplied(regs, a, b, c)
    }

    #[inline(always)]
    fn multiplied(&self, regs: &Regs, a: &[u32], b: &[u32], c: &[u32]) -> [[f32; N]; M] {
        let (left, right) = self.factors(regs, a, b);
        let mut sums = [[0f32; N]; M];
        let packed = self.d.packed();
        for (word, register) in c.iter().enumerate() {
            for (lane, bits) in regs.get::<u32>(*register).iter().enumerate() {
                for half in 0..packed {
                    let i = word * packed + half;
                    sums[row(lane, i)][column(lane, i)] = self.d.unpack(*bits, half);
                }
            }
        }
        for (sum, left) in sums.iter_mut().zip(&left) {
            for (x, right) in left[..self.k].iter().zip(&right) {
                for (sum, y) in sum.iter_mut().zip(right) {
                    *sum = x.mul_add(*y, *sum);
                }
            }
        }
        sums
    }

    /// 8-bit integers: sums wrap.
    fn whole(&self, regs: &Regs, a: &[u32], b: &[u32], c: &[u32]) -> [[i32; N]; M] {
        let (left, right) = self.factors(regs, a, b);
        let mut sums = [[0i32; N]; M];
        for (i, register) in c.iter().enumerate() {
            for (lane, bits) in regs.get::<u32>(*register).iter().enumerate() {
                sums[row(lane, i)][column(lane, i)] = *bits as i32;
            }
        }
        for (sum, left) in sums.iter_mut().zip(&left) {
            for (x, right) in left[..self.k].iter().zip(&right) {
                for (sum, y) in sum.iter_mut().zip(right) {
                    *sum = sum.wrapping_add(*x as i32 * *y as i32);
                }
            }
        }
        sums
    }

    /// Lanes of each register of D that depend on nothing unwritten: an element needs its row of A, its column of B and its C.
    fn validity(&self, regs: &Regs, a: &[u32], b: &[u32], c: &[u32]) -> Vec<u32> {
        let all = |list: &[u32]| list.iter().fold(u32::MAX, |valid, r| valid & regs.valid::<u32>(*r));
        if all(a) & all(b) & all(c) == u32::MAX {
            return vec![u32::MAX; c.len()];
        }
        let odd = |list: &[u32], from: usize| list.iter().skip(from).step_by(2).copied().collect::<Vec<_>>();
        // Four lanes hold a row of A: in even registers the upper ones, in odd registers the lower ones.
        let rows = [odd(a, 0), odd(a, 1)].map(|list| by_group(all(&list)));
        let columns = by_group(all(b));
        let words_a_row = if self.d == Element::F16 { 1 } else { 2 };
        let valid = |(word, register): (usize, &u32)| {
            let rows = rows[word / words_a_row];
            let mine = (0..32).fold(0, |mask, lane| {
                let (i, group) = (word * self.d.packed(), lane / 4);
                let columns_valid = (0..self.d.packed().max(1)).all(|half| columns >> column(lane, i + half) & 1 != 0);
                mask | u32::from(rows >> group & 1 != 0 && columns_valid) << lane
            });
            mine & regs.valid::<u32>(*register)
        };
        c.iter().enumerate().map(valid).collect()
    }
}

/// A bit for each group of four lanes that are all set.
fn by_group(lanes: u32) -> u32 {
    (0..8).fold(0, |groups, group| {
        groups | u32::from(lanes >> (4 * group) & 15 == 15) << group
    })
}

/// The row of element `i` of C and D.
fn row(lane: usize, i: usize) -> usize {
    lane / 4 + 8 * (i / 2)
}

/// Its column.
fn column(lane: usize, i: usize) -> usize {
    lane % 4 * 2 + i % 2
}

fn write(regs: &mut Regs, d: &[u32], valid: Vec<u32>, value: impl Fn(usize, usize) -> u32) {
    for ((word, register), valid) in d.iter().enumerate().zip(valid) {
        let values = std::array::from_fn(|lane| value(lane, word));
        regs.put(*register, &values, u32::MAX, valid);
    }
}
