//! A stretch of memory that is addressed together: an allocation, the shared memory of a block, the local memory of a block,
//! the parameters. It knows its bytes and which of them somebody wrote.

use super::order::shadow::Shadow;
use super::place::each;
use super::wide;

/// Which bytes were written: a bit a byte.
#[derive(Clone, Debug, Default)]
pub(crate) struct Valid {
    bits: Vec<u64>,
}

impl Valid {
    fn new(bytes: usize, valid: bool) -> Self {
        Self {
            bits: vec![if valid { u64::MAX } else { 0 }; bytes.div_ceil(64)],
        }
    }

    /// Whether all of `bytes` (a power of two up to 16) from the aligned `at` were written.
    #[inline]
    fn aligned(&self, at: usize, bytes: u32) -> bool {
        let mask = (1u64 << bytes) - 1;
        (self.bits[at / 64] >> (at % 64)) & mask == mask
    }

    #[inline]
    fn set_aligned(&mut self, at: usize, bytes: u32, valid: bool) {
        let mask = ((1u64 << bytes) - 1) << (at % 64);
        if valid {
            self.bits[at / 64] |= mask;
        } else {
            self.bits[at / 64] &= !mask;
        }
    }

    /// The bits of the bytes `at .. at + 64` that are in word `at / 64`, and how many of `bytes` they are.
    fn piece(at: usize, bytes: usize) -> (u64, usize) {
        let count = bytes.min(64 - at % 64);
        let ones = if count == 64 { u64::MAX } else { (1 << count) - 1 };
        (ones << (at % 64), count)
    }

    /// Whether all of `bytes` from `at` were written.
    #[inline]
    fn all(&self, at: usize, bytes: usize) -> bool {
        if bytes == 0 {
            return true;
        }
        let (first, last) = (at / 64, (at + bytes - 1) / 64);
        let head = u64::MAX << (at % 64);
        let tail = u64::MAX >> (63 - (at + bytes - 1) % 64);
        if first == last {
            return self.bits[first] & head & tail == head & tail;
        }
        let middle = &self.bits[first + 1..last];
        self.bits[first] & head == head && self.bits[last] & tail == tail && middle.iter().all(|&bits| bits == u64::MAX)
    }

    fn set(&mut self, mut at: usize, mut bytes: usize, valid: bool) {
        while bytes > 0 {
            let (mask, count) = Self::piece(at, bytes);
            let word = &mut self.bits[at / 64];
            *word = if valid { *word | mask } else { *word & !mask };
            at += count;
            bytes -= count;
        }
    }
}

/// What an area is, which decides how its accesses are checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sort {
    /// Device memory, `.global` variables.
    Global,
    /// `.const` variables.
    Const,
    /// The shared memory of a block.
    Shared {
        /// The block.
        block: u32,
    },
    /// The local memory of the threads of a block, one after another.
    Local,
    /// The parameters of the launch.
    Param,
}

/// A stretch of memory.
#[derive(Clone, Debug)]
pub(crate) struct Area {
    /// What reports call it.
    pub name: String,
    /// What it is.
    pub sort: Sort,
    /// The address of its first byte in its space.
    pub base: u64,
    /// Whether it was freed.
    pub freed: bool,
    /// Who used it last, where.
    pub shadow: Shadow,
    data: Vec<u8>,
    valid: Valid,
}

impl Area {
    /// An area of `bytes` that nobody wrote, full of a byte that is noticed.
    pub fn poisoned(name: String, sort: Sort, base: u64, bytes: usize, poison: u8) -> Self {
        Self {
            name,
            sort,
            base,
            freed: false,
            shadow: Shadow::default(),
            data: vec![poison; bytes],
            valid: Valid::new(bytes, false),
        }
    }

    /// An area with a value.
    pub fn holding(name: String, sort: Sort, base: u64, data: Vec<u8>, valid: bool) -> Self {
        let valid = Valid::new(data.len(), valid);
        Self {
            name,
            sort,
            base,
            freed: false,
            shadow: Shadow::default(),
            data,
            valid,
        }
    }

    /// Its bytes.
    pub fn len(&self) -> usize {
        self.data.len()
    }

    /// Drops the bytes, keeps the name.
    pub fn free(&mut self) {
        self.freed = true;
    }

    /// Reads one element of 1, 2, 4 or 8 bytes, and whether all its bytes were written.
    #[inline]
    pub fn get(&self, at: usize, bytes: u32) -> (u64, bool) {
        let value = match bytes {
            1 => number::<1>(&self.data, at),
            2 => number::<2>(&self.data, at),
            4 => number::<4>(&self.data, at),
            _ => number::<8>(&self.data, at),
        };
        (value, self.valid.aligned(at, bytes))
    }

    /// Writes one element of 1, 2, 4 or 8 bytes.
    #[inline]
    pub fn put(&mut self, at: usize, bytes: u32, value: u64, valid: bool) {
        match bytes {
            1 => put_number::<1>(&mut self.data, at, value),
            2 => put_number::<2>(&mut self.data, at, value),
            4 => put_number::<4>(&mut self.data, at, value),
            _ => put_number::<8>(&mut self.data, at, value),
        }
        self.valid.set_aligned(at, bytes, valid);
    }

    /// Reads a row of elements of 1, 2, 4 or 8 bytes that lie `stride` bytes apart, a lane each.
    #[inline]
    pub fn row(&self, at: usize, stride: usize, bytes: u32, out: &mut [u64; 32]) {
        match bytes {
            4 if stride == 4 => wide::gather_words(&self.data[at..at + 128], out),
            1 => row_of::<1>(&self.data[at..], stride, out),
            2 => row_of::<2>(&self.data[at..], stride, out),
            4 => row_of::<4>(&self.data[at..], stride, out),
            _ => row_of::<8>(&self.data[at..], stride, out),
        }
    }

    /// Reads an element of 1, 2, 4 or 8 bytes for each lane of `lanes`, `step` bytes behind its offset.
    pub fn gather(&self, offsets: &[u32; 32], lanes: u32, step: u32, bytes: u32, out: &mut [u64; 32]) {
        match bytes {
            1 => gather_of::<1>(&self.data, offsets, lanes, step, out),
            2 => gather_of::<2>(&self.data, offsets, lanes, step, out),
            4 => gather_of::<4>(&self.data, offsets, lanes, step, out),
            _ => gather_of::<8>(&self.data, offsets, lanes, step, out),
        }
    }

    /// Writes an element of 1, 2, 4 or 8 bytes for each lane of `lanes`, `step` bytes behind its offset; validity is left to
    /// the caller.
    pub fn scatter(&mut self, offsets: &[u32; 32], lanes: u32, step: u32, bytes: u32, values: &[u64; 32]) {
        match bytes {
            1 => scatter_of::<1>(&mut self.data, offsets, lanes, step, values),
            2 => scatter_of::<2>(&mut self.data, offsets, lanes, step, values),
            4 => scatter_of::<4>(&mut self.data, offsets, lanes, step, values),
            _ => scatter_of::<8>(&mut self.data, offsets, lanes, step, values),
        }
    }

    /// Whether one aligned element was written.
    #[inline]
    pub fn is_valid_element(&self, at: usize, bytes: u32) -> bool {
        self.valid.aligned(at, bytes)
    }

    /// Writes a row of elements that lie `stride` bytes apart, a lane each; validity is left to the caller.
    #[inline]
    pub fn put_row(&mut self, at: usize, stride: usize, bytes: u32, values: &[u64; 32]) {
        match bytes {
            4 if stride == 4 => wide::scatter_words(&mut self.data[at..at + 128], values),
            1 => put_row_of::<1>(&mut self.data[at..], stride, values),
            2 => put_row_of::<2>(&mut self.data[at..], stride, values),
            4 => put_row_of::<4>(&mut self.data[at..], stride, values),
            _ => put_row_of::<8>(&mut self.data[at..], stride, values),
        }
    }

    /// Marks bytes as written, or not.
    pub fn set_valid(&mut self, at: usize, bytes: usize, valid: bool) {
        self.valid.set(at, bytes, valid);
    }

    /// Marks one aligned element as written, or not.
    pub fn set_valid_element(&mut self, at: usize, bytes: u32, valid: bool) {
        self.valid.set_aligned(at, bytes, valid);
    }

    /// Whether the bytes were all written.
    pub fn is_valid(&self, at: usize, bytes: usize) -> bool {
        self.valid.all(at, bytes)
    }

    /// The bytes.
    pub fn bytes(&self, at: usize, bytes: usize) -> &[u8] {
        &self.data[at..at + bytes]
    }

    /// Writes bytes.
    pub fn write(&mut self, at: usize, bytes: &[u8]) {
        self.data[at..at + bytes.len()].copy_from_slice(bytes);
        self.valid.set(at, bytes.len(), true);
    }

    /// Marks bytes as never written, and spoils them.
    pub fn spoil(&mut self, at: usize, bytes: usize, poison: u8) {
        self.data[at..at + bytes].fill(poison);
        self.valid.set(at, bytes, false);
    }

    /// Copies bytes with their validity to another area (or the same one: they must not overlap then).
    pub fn image(&self, at: usize, bytes: usize) -> Vec<(u8, bool)> {
        (at..at + bytes)
            .map(|i| (self.data[i], self.valid.aligned(i, 1)))
            .collect()
    }

    /// Writes what [`Area::image`] took.
    pub fn paint(&mut self, at: usize, image: &[(u8, bool)]) {
        for (i, (byte, valid)) in image.iter().enumerate() {
            self.put(at + i, 1, u64::from(*byte), *valid);
        }
    }
}

#[inline]
fn row_of<const BYTES: usize>(data: &[u8], stride: usize, out: &mut [u64; 32]) {
    let data = &data[..31 * stride + BYTES];
    for (lane, value) in out.iter_mut().enumerate() {
        let mut raw = [0; 8];
        raw[..BYTES].copy_from_slice(&data[lane * stride..lane * stride + BYTES]);
        *value = u64::from_le_bytes(raw);
    }
}

#[inline]
fn number<const BYTES: usize>(data: &[u8], at: usize) -> u64 {
    let mut raw = [0; 8];
    raw[..BYTES].copy_from_slice(&data[at..at + BYTES]);
    u64::from_le_bytes(raw)
}

#[inline]
fn put_number<const BYTES: usize>(data: &mut [u8], at: usize, value: u64) {
    data[at..at + BYTES].copy_from_slice(&value.to_le_bytes()[..BYTES]);
}

#[inline]
fn gather_of<const BYTES: usize>(data: &[u8], offsets: &[u32; 32], lanes: u32, step: u32, out: &mut [u64; 32]) {
    if lanes == u32::MAX {
        for (value, offset) in out.iter_mut().zip(offsets) {
            *value = number::<BYTES>(data, (offset + step) as usize);
        }
    } else {
        each(lanes).for_each(|lane| out[lane] = number::<BYTES>(data, (offsets[lane] + step) as usize));
    }
}

#[inline]
fn scatter_of<const BYTES: usize>(data: &mut [u8], offsets: &[u32; 32], lanes: u32, step: u32, values: &[u64; 32]) {
    each(lanes).for_each(|lane| put_number::<BYTES>(data, (offsets[lane] + step) as usize, values[lane]));
}

#[inline]
fn put_row_of<const BYTES: usize>(data: &mut [u8], stride: usize, values: &[u64; 32]) {
    let data = &mut data[..31 * stride + BYTES];
    for (lane, value) in values.iter().enumerate() {
        data[lane * stride..lane * stride + BYTES].copy_from_slice(&value.to_le_bytes()[..BYTES]);
    }
}
