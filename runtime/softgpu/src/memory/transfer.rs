//! Loads, stores and atomic operations of a warp.

use super::Memory;
use super::access::{Access, Atomic, Lanes, Wrong};
use super::atomic;
use super::place::{Group, Pattern, each};

/// Bytes of a row: an element of 16 bytes takes two rows.
fn rows(a: &Access) -> (u32, u32) {
    if a.bytes == 16 {
        (8, a.elements * 2)
    } else {
        (a.bytes, a.elements)
    }
}

impl Memory {
    /// Loads; `out` has a row an element (two for `.b128`), `valid` the lanes of each row whose bytes were all written.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn load(&mut self, a: &Access, out: &mut [Lanes<u64>], valid: &mut [u32]) -> Result<(), Wrong> {
        let mut left = a.lanes;
        valid.fill(0);
        while left != 0 {
            let group = self.group(a, &mut left)?;
            self.load_group(a, &group, out, valid);
        }
        Ok(())
    }

    fn load_group(&self, a: &Access, group: &Group, out: &mut [Lanes<u64>], valid: &mut [u32]) {
        let (bytes, rows) = rows(a);
        let area = &self.areas[group.area];
        let pattern = group.pattern(bytes * rows);
        for row in 0..rows as usize {
            let step = row as u32 * bytes;
            match pattern {
                Pattern::Consecutive if bytes == 4 => {
                    let stride = (bytes * rows) as usize;
                    valid[row] |= area.words((group.offsets[0] + step) as usize, stride, &mut out[row]);
                }
                Pattern::Broadcast => {
                    let lane = group.lanes.trailing_zeros() as usize;
                    let (value, good) = area.get((group.offsets[lane] + step) as usize, bytes);
                    each(group.lanes).for_each(|lane| out[row][lane] = value);
                    valid[row] |= if good { group.lanes } else { 0 };
                }
                _ => each(group.lanes).for_each(|lane| {
                    let (value, good) = area.get((group.offsets[lane] + step) as usize, bytes);
                    out[row][lane] = value;
                    valid[row] |= u32::from(good) << lane;
                }),
            }
        }
    }

    /// Stores; rows as in [`Memory::load`]. Where lanes meet, one of them wins.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn store(&mut self, a: &Access, values: &[Lanes<u64>], valid: &[u32]) -> Result<(), Wrong> {
        let mut left = a.lanes;
        let (bytes, rows) = rows(a);
        while left != 0 {
            let group = self.group(a, &mut left)?;
            let area = &mut self.areas[group.area];
            for row in 0..rows as usize {
                for lane in each(group.lanes) {
                    let at = group.offsets[lane] + row as u32 * bytes;
                    area.put(at as usize, bytes, values[row][lane], valid[row] & 1 << lane != 0);
                }
            }
        }
        Ok(())
    }

    /// An atomic operation: `out` is the old value. The lanes take their turns in an order that the seed decides.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn atomic(
        &mut self,
        a: &Access,
        op: Atomic,
        b: &Lanes<u64>,
        c: &Lanes<u64>,
        out: &mut Lanes<u64>,
    ) -> Result<(), Wrong> {
        let mut left = a.lanes;
        while left != 0 {
            let group = self.group(a, &mut left)?;
            let turn = self.random.below(32);
            let area = &mut self.areas[group.area];
            for lane in each(group.lanes.rotate_right(turn)).map(|lane| (lane + turn as usize) % 32) {
                let at = group.offsets[lane] as usize;
                let (old, valid) = area.get(at, a.bytes);
                area.put(at, a.bytes, atomic::apply(op, a.bytes, old, b[lane], c[lane]), valid);
                out[lane] = old;
            }
        }
        Ok(())
    }
}
