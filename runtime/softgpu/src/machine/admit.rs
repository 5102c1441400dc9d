//! Admission: which blocks run. Blocks come in a seeded arbitrary order, at most as many as the device holds; a block that
//! runs never gives up its place; clusters, and cooperative grids, come whole.

use super::barrier::BlockBarrier;
use super::warp::{Frame, Group, Wait, Warp};
use super::{Block, Machine};
use crate::memory::access::Warp as WarpId;

/// Warps that are started before more are needed: a block that is admitted and has not begun is as good as a slow one, and
/// registers of thousands of warps would take gigabytes.
const WARPS: u32 = 96;

impl Machine<'_> {
    /// Admits blocks while there is room and reason.
    pub fn admit(&mut self) {
        while self.wanted() && self.admit_one() {}
    }

    fn wanted(&self) -> bool {
        self.launch.cooperative || self.resident == 0 || self.resident * self.plan.warps < WARPS
    }

    /// Admits one more cluster although there are enough; false where there is none, or no room.
    pub fn admit_more(&mut self) -> bool {
        self.admit_one()
    }

    fn admit_one(&mut self) -> bool {
        if self.resident + self.plan.cluster_blocks > self.plan.resident {
            return false;
        }
        let Some(cluster) = self.queue.pop() else {
            return false;
        };
        for rank in 0..self.plan.cluster_blocks {
            let block = self.plan.block_of(self.launch, cluster, rank);
            self.start_block(block, cluster, rank);
        }
        self.clusters[cluster as usize].running = self.plan.cluster_blocks;
        true
    }

    fn start_block(&mut self, index: u32, cluster: u32, rank: u32) {
        self.memory.start_block(index);
        if let Some(cost) = &mut self.cost {
            cost.start_block(index);
        }
        self.resident += 1;
        let slot = self
            .blocks
            .iter()
            .position(Option::is_none)
            .unwrap_or(self.blocks.len());
        if slot == self.blocks.len() {
            self.blocks.push(None);
        }
        let block = Block {
            index,
            cluster,
            rank,
            warps: Vec::new(),
            running: self.plan.warps,
            exited: 0,
            barriers: std::array::from_fn(|_| BlockBarrier::default()),
        };
        let warps = (0..self.plan.warps)
            .map(|warp| Some(Box::new(self.new_warp(&block, slot, warp))))
            .collect();
        self.blocks[slot] = Some(Block { warps, ..block });
        self.ready.extend((0..self.plan.warps).map(|warp| (slot, warp)));
    }

    fn new_warp(&self, block: &Block, slot: usize, index: u32) -> Warp {
        let threads = (self.plan.threads - 32 * index).min(32);
        let lanes = u32::MAX >> (32 - threads);
        let regs = self.new_registers(0, block, index, 0);
        let frame = Frame {
            regs,
            function: 0,
            parent: None,
            return_to: 0,
            depth: 0,
            local: 0,
        };
        let group = Group {
            lanes,
            pc: self.program.functions[0].start,
            frame: 0,
            wait: Wait::No,
        };
        Warp {
            id: WarpId {
                block: block.index,
                warp: index,
            },
            slot,
            lanes,
            exited: 0,
            groups: vec![group],
            frames: vec![frame],
            cluster_arrived: 0,
            cluster_phase: [0; 32],
            ready: true,
        }
    }
}
