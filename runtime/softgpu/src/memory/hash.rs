//! A hash for small keys of our own making: a multiplication a number, where the standard library's guards against keys that
//! somebody chose to collide.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Mixes numbers by multiplication (after Fibonacci hashing; Knuth, The Art of Computer Programming 3, 6.4).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Quick(u64);

/// A map with small keys.
pub(crate) type QuickMap<K, V> = HashMap<K, V, BuildHasherDefault<Quick>>;

impl Hasher for Quick {
    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 32
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(u64::from(byte)));
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(u64::from(number));
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0.rotate_left(23) ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}
