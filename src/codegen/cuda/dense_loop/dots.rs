//! Groups the dot products of a part that multiply the same vector, and says how a warp computes such a group.
//!
//! A warp owns some units and computes all rows of these: the lanes of a *strip* walk k side by side, strips take
//! different units, and a *tile* of rows is summed over the strip's lanes at once. So no sum crosses a warp.

use super::places::{Shape, Slice};
use rnnc_runtime::plan::{Elem, Index, Loop, LoopPart, Plan, Slot};

/// Sums that a thread keeps at a time: a strip folds 32 of them with 31 shuffles.
const SUMS: usize = 32;

/// Where the rows of a group stay while frames go by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WeightPlace {
    /// Each thread has what it multiplies.
    Registers,
    /// Byte offset in the block's shared memory.
    Shared(usize),
    /// Read from the buffer in every frame.
    Global,
}

/// Dot slots of one part with the same vector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DotGroup {
    /// The slots.
    pub slots: Vec<usize>,
    /// Whose elements are multiplied.
    pub value: usize,
    /// Of how many frames ago.
    pub delay: usize,
    /// Which elements.
    pub value_index: Index,
    /// How many terms a sum has.
    pub extent: usize,
    /// How the weights are stored.
    pub elem: Elem,
    /// Where they stay.
    pub weights: WeightPlace,
    /// Whether term k is element k for all units, so that rows share what is loaded of the vector.
    pub dense: bool,
    /// How a warp works.
    pub tile: Tile,
}

/// How a warp computes the rows of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tile {
    /// Lanes that share a row: a power of two.
    pub lanes: usize,
    /// Neighbouring terms that a lane takes at once.
    pub vector: usize,
    /// Steps over k.
    pub chunks: usize,
    /// Units a strip computes at once.
    pub units: usize,
    /// So many times.
    pub count: usize,
}

impl Tile {
    /// Strips in a warp.
    pub fn strips(&self) -> usize {
        32 / self.lanes
    }

    /// Terms of a row, with padding.
    pub fn row(&self) -> usize {
        self.chunks * self.vector * self.lanes
    }

    /// Units of a warp, with padding.
    pub fn warp_units(&self) -> usize {
        self.units * self.count * self.strips()
    }

    /// The cheapest way for `per_warp` units with `rows` rows each. Lanes side by side read at least 128 bytes.
    fn choose(extent: usize, per_warp: usize, rows: usize, sequences: usize, dense: bool) -> Tile {
        let ways: &[(usize, usize)] = if dense {
            &[(32, 4), (16, 4), (8, 4), (32, 2), (16, 2), (32, 1)]
        } else {
            &[(32, 1), (16, 1), (8, 1)]
        };
        let tile = |(lanes, vector): (usize, usize)| Tile::of(lanes, vector, extent, per_warp, rows, sequences, dense);
        let work = |t: &Tile| t.units * t.count * t.chunks * t.vector;
        // Of equal ones the first stays: wide loads, long strips.
        ways.iter()
            .copied()
            .map(tile)
            .reduce(|a, b| if work(&b) < work(&a) { b } else { a })
            .unwrap_or_else(|| tile((32, 1)))
    }

    fn of(
        lanes: usize,
        vector: usize,
        extent: usize,
        per_warp: usize,
        rows: usize,
        sequences: usize,
        dense: bool,
    ) -> Tile {
        let strip_units = per_warp.div_ceil(32 / lanes).max(1);
        let most = if dense { (SUMS / (rows * sequences)).max(1) } else { 1 };
        let count = strip_units.div_ceil(most);
        Tile {
            lanes,
            vector,
            chunks: extent.div_ceil(lanes * vector),
            units: strip_units.div_ceil(count),
            count,
        }
    }
}

impl DotGroup {
    /// Rows a unit.
    pub fn rows(&self) -> usize {
        self.slots.len()
    }

    /// Sums that a thread keeps at a time.
    pub fn sums(&self, sequences: usize) -> usize {
        (self.tile.units * self.rows() * sequences).next_power_of_two()
    }

    /// Numbers a thread keeps if the weights stay in registers.
    pub fn register_weights(&self) -> usize {
        self.tile.count * self.tile.units * self.rows() * self.tile.chunks * self.tile.vector
    }

    /// Bytes if the weights stay in shared memory.
    pub fn shared_bytes(&self, warps: usize) -> usize {
        warps * self.tile.warp_units() * self.rows() * self.tile.row() * self.elem.bytes()
    }

    /// The same rows, read from their buffer in every frame: lanes side by side then read neighbours.
    pub fn make_global(&mut self, slice: Slice, shape: Shape) {
        self.weights = WeightPlace::Global;
        let rows = self.rows();
        self.tile = Tile::of(32, 1, self.extent, slice.per_warp, rows, shape.sequences, self.dense);
    }
}

/// The groups of a part's dot products, leaving out those that have one value for all units. Weights are still
/// [`WeightPlace::Global`].
pub fn group(plan: &Plan, looped: &Loop, part: &LoopPart, slice: Slice, shape: Shape) -> Vec<DotGroup> {
    let mut groups: Vec<DotGroup> = Vec::new();
    let most = (SUMS / shape.sequences).max(1);
    for (number, slot) in part.slots.iter().enumerate() {
        let Some(alone) = single(plan, looped, number, slot) else {
            continue;
        };
        let same = |g: &&mut DotGroup| g.multiplies_with(&alone) && g.slots.len() < most;
        match groups.iter_mut().find(same) {
            Some(found) => found.slots.push(number),
            None => groups.push(alone),
        }
    }
    for g in &mut groups {
        g.tile = Tile::choose(g.extent, slice.per_warp, g.rows(), shape.sequences, g.dense);
    }
    groups
}

impl DotGroup {
    fn multiplies_with(&self, other: &DotGroup) -> bool {
        (self.value, self.delay, self.extent, self.elem) == (other.value, other.delay, other.extent, other.elem)
            && self.value_index == other.value_index
    }
}

/// A group of one, with a tile that does not fit yet; none for folds and for what does not depend on the unit.
fn single(plan: &Plan, looped: &Loop, number: usize, slot: &Slot) -> Option<DotGroup> {
    let Slot::Dot {
        extent,
        weight,
        value,
        delay,
        value_index,
        ..
    } = slot
    else {
        return None;
    };
    if super::slots::is_common(slot) {
        return None;
    }
    Some(DotGroup {
        slots: vec![number],
        value: *value,
        delay: *delay,
        value_index: value_index.clone(),
        extent: *extent,
        elem: plan.buffer(*weight).elem,
        weights: WeightPlace::Global,
        dense: *value_index == Index::var(1) && *extent == looped.values[*value].extent,
        tile: Tile::of(32, 1, *extent, 1, 1, 1, false),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tile(extent: usize, per_warp: usize, rows: usize, sequences: usize) -> (usize, usize, usize, usize, usize) {
        let t = Tile::choose(extent, per_warp, rows, sequences, true);
        (t.lanes, t.vector, t.chunks, t.units, t.count)
    }

    #[test]
    fn long_rows_take_the_whole_warp() {
        assert_eq!(tile(768, 1, 4, 8), (32, 4, 6, 1, 1));
        assert_eq!(tile(512, 8, 4, 1), (32, 4, 4, 8, 1));
        assert_eq!(tile(512, 8, 4, 4), (32, 4, 4, 2, 4));
    }

    #[test]
    fn short_rows_are_computed_side_by_side() {
        assert_eq!(tile(20, 8, 4, 1), (8, 4, 1, 2, 1));
        assert_eq!(tile(20, 1, 4, 1), (32, 1, 1, 1, 1));
    }

    #[test]
    fn a_tile_covers_all_units_and_terms() {
        for (extent, per_warp, rows, sequences) in [(1, 1, 1, 1), (33, 3, 3, 2), (130, 7, 5, 4), (257, 2, 4, 8)] {
            for dense in [false, true] {
                let t = Tile::choose(extent, per_warp, rows, sequences, dense);
                assert!(t.row() >= extent && t.warp_units() >= per_warp, "{t:?}");
                assert!(t.units * rows * sequences <= SUMS || t.units == 1, "{t:?}");
            }
        }
    }
}
