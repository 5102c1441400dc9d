//! The manifest: everything needed to run a cell's cubin, without its plan and without the compiler.
//!
//! A run with T frames and B sequences: buffers are allocated by [`BufferEntry::len`], workspaces by
//! [`Workspace::bytes`]. Initial windows that the caller does not give are filled, or computed by their launch of
//! [`Manifest::initial`]. The launches of [`Manifest::prologue`] have run since the parameters last changed. Then
//! [`Manifest::launches`] run in order, each once those in its `after` are done; then the copies in
//! [`Manifest::finals`] and [`Manifest::short`].

pub use crate::plan::Family;
use crate::plan::{BufferId, Elem, FinalCopy, Role, Scope};
use serde::{Deserialize, Serialize};

/// The version of this format; a reader refuses others.
pub const FORMAT: u32 = 1;

/// What a cubin needs to run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// [`FORMAT`].
    pub format: u32,
    /// The cell's name.
    pub cell: String,
    /// Dimensions and their values.
    pub dims: Vec<(String, i64)>,
    /// What the text was written for, such as `sm_90`.
    pub arch: String,
    /// Every buffer; a [`BufferId`] is a place in this list.
    pub buffers: Vec<BufferEntry>,
    /// Memory that launches use among themselves and keep between runs.
    pub workspaces: Vec<Workspace>,
    /// Once per change of parameters.
    pub prologue: Vec<KernelLaunch>,
    /// Computes initial windows, each only if it is not given.
    pub initial: Vec<KernelLaunch>,
    /// The work of a run.
    pub launches: Vec<KernelLaunch>,
    /// Final windows that no kernel writes.
    pub finals: Vec<FinalCopy>,
    /// Final windows of several frames, for runs shorter than them.
    pub short: Vec<ShortRun>,
}

/// A buffer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BufferEntry {
    /// The user's name.
    pub name: String,
    /// The name in the CUDA text and in the header.
    pub pointer: String,
    /// What it is for.
    pub role: Role,
    /// How often its shape exists.
    pub scope: Scope,
    /// The axes of one frame of one sequence.
    pub shape: Vec<usize>,
    /// How an element is stored.
    pub elem: Elem,
    /// The whole layout for readers, such as `[T, B, 192]`.
    pub layout: String,
}

impl BufferEntry {
    /// All elements at `frames` frames and `batch` sequences.
    pub fn len(&self, frames: usize, batch: usize) -> usize {
        self.shape.iter().product::<usize>() * self.scope.copies(frames, batch)
    }

    /// Whether it holds nothing, at any number of frames and sequences.
    pub fn is_empty(&self) -> bool {
        self.shape.contains(&0)
    }
}

/// In a run of T frames, T below the k frames of the windows, frames `0..k - T` of `target` are frames `T..k` of
/// `initial`. The kernels write the other T.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShortRun {
    /// The final window.
    pub target: BufferId,
    /// The initial window of the same name.
    pub initial: BufferId,
    /// How many frames both hold.
    pub frames: usize,
}

/// Memory for exchanges between blocks: `bytes_per_group` for each group of blocks that is launched. It is zero when it
/// is allocated and never touched by the host, except that it is zeroed again, and its epoch with it, before a launch
/// whose epochs would pass 2^32.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Workspace {
    /// Its name in the CUDA text.
    pub name: String,
    /// Bytes for each group of the launch that uses it, a multiple of 256.
    pub bytes_per_group: u64,
    /// How often a group exchanges values in a frame. Each exchange is one epoch.
    pub exchanges: u64,
}

impl Workspace {
    /// Bytes for so many groups.
    pub fn bytes(&self, groups: u64) -> u64 {
        self.bytes_per_group * groups
    }

    /// Epochs that a launch uses, where the busiest group takes so many batch tiles ([`Grid::rounds`]).
    pub fn epochs(&self, frames: u64, rounds: u64) -> u64 {
        frames * self.exchanges * rounds
    }
}

/// One launch of a kernel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KernelLaunch {
    /// The kernel's entry in the module.
    pub kernel: String,
    /// Its family.
    pub family: Family,
    /// The equations that it computes.
    pub equations: Vec<String>,
    /// Launches of the same list that must be done before.
    pub after: Vec<usize>,
    /// Its parameters, in order.
    pub arguments: Vec<Argument>,
    /// Threads a block (blocks and grids use x only).
    pub block: u32,
    /// Dynamic shared memory a block, in bytes; above 48 KB the function's attribute must be raised first.
    pub shared: u32,
    /// Whether all blocks must be resident at once (a cooperative launch).
    pub cooperative: bool,
    /// How many blocks.
    pub grid: Grid,
}

/// A parameter of a kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Argument {
    /// The address of a buffer.
    Buffer {
        /// Which.
        buffer: BufferId,
        /// Whether the kernel writes it.
        written: bool,
    },
    /// T, an `int`.
    Frames,
    /// B, an `int`.
    Batch,
    /// The address of a workspace.
    Workspace(usize),
    /// An `unsigned`: how many epochs earlier launches have used on this workspace, since it was last zeroed
    /// ([`Workspace::epochs`] each). A launch that alone uses more than 2^32 is right if it starts at 0.
    Epoch(usize),
}

/// How many blocks a launch has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Grid {
    /// `min(ceil(copies * each / per_block) * times, limit)`, where copies is 1, B or T * B by `scope`. Kernels stride
    /// over their work, so that fewer blocks are right too.
    Cover {
        /// What copies is.
        scope: Scope,
        /// Items a copy.
        each: u64,
        /// Items a block.
        per_block: u64,
        /// Blocks for the same items.
        times: u64,
        /// Most blocks.
        limit: u64,
    },
    /// `blocks * groups`, where groups is the smaller of `ceil(B / batch_tile)` and what can be resident. A group takes
    /// its batch tiles one after another.
    Groups {
        /// Sequences that a group handles at once.
        batch_tile: u64,
        /// Blocks a group.
        blocks: u64,
    },
}

impl Grid {
    /// Groups of a launch where `resident` blocks can be on the device at once; 0 if not even one group can be.
    pub fn groups(&self, batch: u64, resident: u64) -> u64 {
        match self {
            Grid::Cover { .. } => 1,
            Grid::Groups { batch_tile, blocks } => batch.div_ceil(*batch_tile).min(resident / blocks),
        }
    }

    /// How many batch tiles the busiest group takes.
    pub fn rounds(&self, batch: u64, resident: u64) -> u64 {
        match self {
            Grid::Cover { .. } => 1,
            Grid::Groups { batch_tile, .. } => batch
                .div_ceil(*batch_tile)
                .div_ceil(self.groups(batch, resident).max(1)),
        }
    }

    /// Blocks of a launch.
    pub fn blocks(&self, frames: u64, batch: u64, resident: u64) -> u64 {
        match self {
            Grid::Cover {
                scope,
                each,
                per_block,
                times,
                limit,
            } => {
                let copies = scope.copies(frames as usize, batch as usize) as u64;
                ((copies * each).div_ceil(*per_block) * times).min(*limit)
            }
            Grid::Groups { blocks, .. } => blocks * self.groups(batch, resident),
        }
    }
}

impl Manifest {
    /// A buffer.
    pub fn buffer(&self, id: BufferId) -> &BufferEntry {
        &self.buffers[id.0 as usize]
    }

    /// As indented JSON, ending in a newline.
    ///
    /// # Errors
    /// Never for a manifest that was emitted; the type is serde_json's.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }

    /// Reads JSON.
    ///
    /// # Errors
    /// The text is no manifest of this format.
    pub fn from_json(text: &str) -> Result<Manifest, serde_json::Error> {
        let manifest: Manifest = serde_json::from_str(text)?;
        if manifest.format == FORMAT {
            return Ok(manifest);
        }
        let message = format!("manifest format {}, this version reads {FORMAT}", manifest.format);
        Err(serde::de::Error::custom(message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cover_rounds_up_and_stays_under_its_limit() {
        let grid = Grid::Cover {
            scope: Scope::Frame,
            each: 5,
            per_block: 256,
            times: 3,
            limit: 1 << 20,
        };
        assert_eq!(grid.blocks(7, 3, 0), 3);
        assert_eq!(grid.blocks(100, 8, 0), 16 * 3);
        assert_eq!(grid.blocks(1 << 24, 64, 0), 1 << 20);
    }

    #[test]
    fn groups_share_what_is_resident() {
        let grid = Grid::Groups {
            batch_tile: 8,
            blocks: 48,
        };
        assert_eq!(
            (grid.groups(16, 132), grid.rounds(16, 132), grid.blocks(9, 16, 132)),
            (2, 1, 96)
        );
        assert_eq!((grid.groups(65, 132), grid.rounds(65, 132)), (2, 5));
        assert_eq!(grid.groups(1, 40), 0);
    }
}
