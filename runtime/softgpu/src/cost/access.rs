//! What a request of a warp takes of memory: sectors of device memory, passes over the banks of shared memory.

use crate::memory::Lanes;
use crate::memory::place::each;

/// Bytes of a sector.
pub const SECTOR: u64 = 32;

/// The sectors that lanes touch, each once, in order, and how many would do for their distinct bytes.
pub fn sectors(addresses: &Lanes<u64>, lanes: u32, span: u32) -> (Vec<u64>, u64) {
    let mut touched = Vec::with_capacity(8);
    let mut starts: Vec<u64> = each(lanes).map(|lane| addresses[lane]).collect();
    starts.sort_unstable();
    starts.dedup();
    for start in &starts {
        let last = (start + u64::from(span.max(1)) - 1) / SECTOR;
        (start / SECTOR..=last).for_each(|sector| touched.push(sector));
    }
    touched.sort_unstable();
    touched.dedup();
    let least = (starts.len() as u64 * u64::from(span)).div_ceil(SECTOR);
    let least = least.clamp(1, touched.len().max(1) as u64);
    (touched, least)
}

/// Passes over the 32 banks of 4 bytes that a request takes, and how many it would take without conflicts. Accesses of 8 and
/// 16 bytes are done for half and for a quarter of a warp at a time.
pub fn passes(addresses: &Lanes<u64>, lanes: u32, span: u32) -> (u64, u64) {
    let together = match span {
        0..=4 => 32,
        5..=8 => 16,
        _ => 8,
    };
    let (mut taken, mut least) = (0, 0);
    for first in (0..32).step_by(together) {
        let part = lanes & ((u32::MAX >> (32 - together)) << first);
        if part != 0 {
            taken += ways(addresses, part, span);
            least += 1;
        }
    }
    (taken, least)
}

/// The most distinct words that fall on one bank.
fn ways(addresses: &Lanes<u64>, lanes: u32, span: u32) -> u64 {
    let mut words: Vec<u64> = each(lanes)
        .flat_map(|lane| {
            let last = (addresses[lane] + u64::from(span.max(1)) - 1) / 4;
            addresses[lane] / 4..=last
        })
        .collect();
    words.sort_unstable();
    words.dedup();
    let mut banks = [0u64; 32];
    words.iter().for_each(|word| banks[(word % 32) as usize] += 1);
    banks.into_iter().max().unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strided(step: u64) -> Lanes<u64> {
        std::array::from_fn(|lane| lane as u64 * step)
    }

    #[test]
    fn sectors_of_strides() {
        let count = |step, span| {
            let (touched, least) = sectors(&strided(step), u32::MAX, span);
            (touched.len() as u64, least)
        };
        assert_eq!(count(4, 4), (4, 4));
        assert_eq!(count(16, 16), (16, 16));
        assert_eq!(count(8, 4), (8, 4));
        assert_eq!(count(32, 4), (32, 4));
        assert_eq!(count(0, 4), (1, 1));
        // Off by one element: one sector more than needed.
        let shifted = strided(4).map(|address| address + 4);
        assert_eq!(sectors(&shifted, u32::MAX, 4).0.len(), 5);
    }

    #[test]
    fn passes_of_strides() {
        let of = |step, span| passes(&strided(step), u32::MAX, span);
        assert_eq!(of(4, 4), (1, 1));
        assert_eq!(of(0, 4), (1, 1));
        assert_eq!([8, 16, 32, 128].map(|step| of(step, 4).0), [2, 4, 8, 32]);
        assert_eq!(of(132, 4), (1, 1));
        assert_eq!(of(8, 8), (2, 2));
        assert_eq!(of(16, 16), (4, 4));
        // Rows of 128 bytes: every lane of a quarter on the same four banks.
        assert_eq!(of(128, 16), (32, 4));
        assert_eq!(passes(&strided(16), 0xff, 16), (1, 1));
    }
}
