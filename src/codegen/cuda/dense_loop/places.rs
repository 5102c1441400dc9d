//! The shape of a loop's blocks, and how units are divided over them.

use serde::{Deserialize, Serialize};

/// How many blocks hold one copy of the weights, how many warps a block has, how many sequences are computed at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shape {
    /// Blocks of a group.
    pub blocks: usize,
    /// Warps of a block.
    pub warps: usize,
    /// Sequences of a tile: 1, 2, 4 or 8.
    pub sequences: usize,
}

impl Shape {
    /// Small blocks, several of them even for a small cell: for checks, so that blocks exchange values.
    pub const SPLIT: Shape = Shape {
        blocks: 3,
        warps: 2,
        sequences: 2,
    };

    /// Threads of a block.
    pub fn threads(&self) -> usize {
        self.warps * 32
    }
}

/// How the units of a part are divided: block r owns `per_block` units from `r * per_block` on, warp w of it `per_warp`
/// of these from `w * per_warp` on, and lane l of the warp computes items l, l + 32, ...: item i is unit `i % per_warp` of
/// sequence `i / per_warp`. Parts with the same number of units give the same unit to the same thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    /// All units.
    pub units: usize,
    /// Of one block; the last may own fewer, or none.
    pub per_block: usize,
    /// Of one warp; the last may own fewer, or none.
    pub per_warp: usize,
    /// Pairs of a unit and a sequence in a warp.
    pub items: usize,
    /// How many of them a thread computes.
    pub rounds: usize,
}

impl Slice {
    /// Divides as evenly as possible.
    pub fn new(units: usize, shape: Shape) -> Slice {
        let per_block = units.div_ceil(shape.blocks);
        let per_warp = per_block.div_ceil(shape.warps).max(1);
        let items = per_warp * shape.sequences;
        Slice {
            units,
            per_block,
            per_warp,
            items,
            rounds: items.div_ceil(32),
        }
    }
}

/// Hands out memory from the bottom up, 16 bytes aligned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bump {
    used: usize,
}

impl Bump {
    /// The offset of so many bytes more.
    pub fn take(&mut self, bytes: usize) -> usize {
        let at = self.used;
        self.used = (at + bytes).next_multiple_of(16);
        at
    }

    /// Bytes handed out.
    pub fn used(&self) -> usize {
        self.used
    }
}

/// Where something is: a byte offset, a multiple of 16.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// In the block's shared memory.
    Shared(usize),
    /// In the block's part of global memory.
    Scratch(usize),
}

/// Hands out memory of a block: shared as long as there is some.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Places {
    /// Shared memory.
    pub shared: Bump,
    /// Global memory.
    pub scratch: Bump,
    /// Bytes of shared memory that there are.
    limit: usize,
}

impl Places {
    /// Nothing is taken yet.
    pub fn new(limit: usize) -> Places {
        Places {
            shared: Bump::default(),
            scratch: Bump::default(),
            limit,
        }
    }

    /// So many bytes of shared memory, if there are.
    pub fn take_shared(&mut self, bytes: usize) -> Option<usize> {
        let mut trial = self.shared;
        let at = trial.take(bytes);
        let fits = trial.used() <= self.limit;
        if fits {
            self.shared = trial;
        }
        fits.then_some(at)
    }

    /// So many bytes, of shared memory if possible.
    pub fn take(&mut self, bytes: usize) -> Memory {
        match self.take_shared(bytes) {
            Some(at) => Memory::Shared(at),
            None => Memory::Scratch(self.scratch.take(bytes)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_has_one_owner() {
        for (units, blocks, warps) in [(1, 4, 2), (7, 3, 2), (100, 8, 4), (256, 16, 8), (33, 33, 4)] {
            let shape = Shape {
                blocks,
                warps,
                sequences: 2,
            };
            let s = Slice::new(units, shape);
            let mut owners = vec![0; units];
            for block in 0..blocks {
                for warp in 0..warps {
                    for j in 0..s.per_warp {
                        let local = warp * s.per_warp + j;
                        let unit = block * s.per_block + local;
                        if local < s.per_block && unit < units {
                            owners[unit] += 1;
                        }
                    }
                }
            }
            assert!(owners.iter().all(|n| *n == 1), "{units} over {blocks} x {warps}");
        }
    }

    #[test]
    fn memory_is_aligned() {
        let mut bump = Bump::default();
        assert_eq!([bump.take(4), bump.take(17), bump.take(0)], [0, 16, 48]);
        assert_eq!(bump.used(), 48);
    }

    #[test]
    fn what_does_not_fit_goes_to_scratch() {
        let mut places = Places::new(64);
        let got = [48, 32, 16, 1].map(|bytes| places.take(bytes));
        let expected = [
            Memory::Shared(0),
            Memory::Scratch(0),
            Memory::Shared(48),
            Memory::Scratch(32),
        ];
        assert_eq!(got, expected);
    }
}
