//! How a product is cut into tiles, and a tile into threads.

use rnnc_runtime::plan::{Product, Scope};

/// Elements of k in a slice: few, so that those on their way leave registers for further blocks on a multiprocessor.
pub const DEPTH: usize = 8;

/// Registers of a multiprocessor.
const REGISTERS: usize = 1 << 16;

/// Registers that a thread may have. The assembler, left to itself, stays below what the largest tile needs by spilling.
const REGISTERS_EACH: usize = 168;

/// A tile: so many copies (frames of sequences) by so many rows. Each thread sums a block of it, in quads of neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tile {
    /// Copies a tile.
    pub copies: usize,
    /// Rows a tile.
    pub rows: usize,
    /// Copies a thread.
    pub copies_each: usize,
    /// Rows a thread.
    pub rows_each: usize,
}

impl Tile {
    /// The tile for a product.
    pub fn choose(product: &Product) -> Tile {
        let rows = product.segments.iter().map(|s| s.rows).max().unwrap_or(0);
        match (product.scope, rows) {
            (Scope::Frame, 33..) => Tile::new(128, 64, 8, 8),
            (Scope::Frame, _) => Tile::new(128, 32, 8, 4),
            // Few copies: once, or once a sequence.
            _ => Tile::new(16, 64, 4, 4),
        }
    }

    fn new(copies: usize, rows: usize, copies_each: usize, rows_each: usize) -> Tile {
        Tile {
            copies,
            rows,
            copies_each,
            rows_each,
        }
    }

    /// Threads side by side along the rows.
    pub fn columns(self) -> usize {
        self.rows / self.rows_each
    }

    /// Threads a block.
    pub fn threads(self) -> usize {
        self.columns() * (self.copies / self.copies_each)
    }

    /// Blocks for which a multiprocessor shall have registers.
    pub fn resident(self) -> usize {
        REGISTERS / REGISTERS_EACH / self.threads()
    }

    /// Elements of the operand that a thread reads in a slice.
    pub fn operand_each(self) -> usize {
        self.copies * DEPTH / self.threads()
    }

    /// Elements of the weights that a thread reads in a slice.
    pub fn weight_each(self) -> usize {
        self.rows * DEPTH / self.threads()
    }

    /// Copies that the threads finish side by side, each its own row.
    pub fn copies_at_once(self) -> usize {
        self.threads() / self.rows
    }

    /// Tiles for a segment of so many rows.
    pub fn strips(self, rows: usize) -> usize {
        rows.div_ceil(self.rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_are_shared_out_evenly() {
        for tile in [
            Tile::new(128, 64, 8, 8),
            Tile::new(128, 32, 8, 4),
            Tile::new(16, 64, 4, 4),
        ] {
            assert_eq!(
                tile.threads() * tile.copies_each * tile.rows_each,
                tile.copies * tile.rows
            );
            assert_eq!(tile.operand_each() * tile.threads(), tile.copies * DEPTH);
            assert_eq!(tile.weight_each() * tile.threads(), tile.rows * DEPTH);
            assert_eq!(tile.copies_at_once() * tile.rows, tile.threads());
            assert_eq!(tile.threads() % 32, 0);
            assert_eq!((tile.copies_each % 4, tile.rows_each % 4), (0, 0));
        }
    }
}
