//! A launch: its shape, and the blocks that run.

use std::collections::BTreeMap;

use super::Memory;
use super::access::{Warp, Wrong};
use super::agent::Agents;
use super::area::{Area, Sort};
use super::clash;
use super::mbarrier::Phase;
use super::order::shadow::{Clash, Shadow};
use super::order::site::What;
use super::order::track::Entry;
use super::order::view::{AGENT, AT_MBARRIER, BULK_READ};
use super::stale::Older;
use crate::fault::Kind;

/// The shape of a launch.
#[derive(Clone, Debug, Default)]
pub struct Shape {
    /// Blocks, counted x fastest.
    pub blocks: u32,
    /// Threads a block.
    pub threads: u32,
    /// Blocks a cluster; 1 without clusters.
    pub cluster: u32,
    /// Bytes of shared memory a block, static and dynamic.
    pub shared: u32,
    /// Bytes of local memory a thread.
    pub local: u32,
    /// The parameters.
    pub params: Vec<u8>,
}

/// A block that runs.
#[derive(Debug)]
pub(crate) struct Block {
    /// Threads that have not exited.
    pub alive: u32,
    /// Its shared memory.
    pub shared: usize,
    /// The local memory of its threads.
    pub local: usize,
    /// Its mbarriers, by their offset in shared memory.
    pub mbarriers: BTreeMap<u32, Phase>,
}

impl Memory {
    /// Begins a launch.
    pub fn begin(&mut self, launch: &Shape) {
        self.shape = launch.clone();
        self.order.begin(launch);
        self.agents = Agents::default();
        self.older = Older::default();
        self.areas.iter_mut().for_each(|area| area.shadow = Shadow::default());
        self.blocks = std::iter::repeat_with(|| None).take(launch.blocks as usize).collect();
        let params = Area::holding("parameters".into(), Sort::Param, 0, launch.params.clone(), true);
        self.areas[self.params] = params;
    }

    /// Starts a block: its shared and local memory hold nothing that anybody wrote.
    pub fn start_block(&mut self, block: u32) {
        let local_bytes = self.local_stride() as usize * (self.shape.threads.next_multiple_of(32)) as usize;
        let bytes = self.shape.shared as usize;
        let name = format!("shared memory of block {block}");
        let shared = self.add_area(Area::poisoned(name, Sort::Shared { block }, 0, bytes, Self::poison()));
        let name = format!("local memory of block {block}");
        let local = self.add_area(Area::poisoned(name, Sort::Local, 0, local_bytes, Self::poison()));
        self.blocks[block as usize] = Some(Block {
            alive: self.shape.threads,
            shared,
            local,
            mbarriers: BTreeMap::new(),
        });
        self.order.start_block(block);
    }

    /// Lanes of a warp are done.
    pub fn exit(&mut self, warp: Warp, lanes: u32) {
        if let Some(block) = &mut self.blocks[warp.block as usize] {
            block.alive -= lanes.count_ones();
        }
    }

    /// Ends a block: its shared memory is gone.
    ///
    /// # Errors
    /// Where somebody may still need it: an asynchronous operation, or a thread of a peer whose access nothing orders before.
    pub fn end_block(&mut self, block: u32) -> Result<(), Wrong> {
        let Some(Block { shared, local, .. }) = self.blocks[block as usize].take() else {
            return Ok(());
        };
        self.end_agents(block, shared);
        let result = self.still_needed(block, shared);
        self.order.forget(shared as u32);
        self.older.forget(shared as u32);
        self.order.end_block(block);
        self.areas[shared].shadow = Shadow::default();
        self.spare.extend([shared, local]);
        result
    }

    fn still_needed(&self, block: u32, shared: usize) -> Result<(), Wrong> {
        if !self.areas[shared].shadow.agents {
            return Ok(());
        }
        let (ids, known) = (self.order.ids, self.order.of_block(block));
        let other = |entry: &Entry| {
            let who = entry.first + entry.lanes.trailing_zeros();
            let own = who < AGENT && ids.block_of(who) == block;
            let own_copy = who & AT_MBARRIER == AGENT && who & BULK_READ != BULK_READ && ids.block_of(who) == block;
            let mbarrier = self.order.sites.get(entry.site).what == What::Mbarrier;
            !own && !own_copy && !mbarrier && !known.knows(who, entry.stamp, ids)
        };
        let Some((entry, offset)) = self.areas[shared].shadow.find(other) else {
            return Ok(());
        };
        let who = entry.first + entry.lanes.trailing_zeros();
        let clash = Clash {
            lane: 0,
            who,
            site: entry.site,
            offset,
            non_coherent: false,
        };
        let mut w = clash::describe(self, Kind::Cluster, shared, (entry.site, clash));
        let what = self.order.sites.get(entry.site).describe();
        w.message = format!("block {block} exits, and nothing orders that after a {what} of its shared memory");
        w.hint = Some("wait for the copy, or let the blocks of the cluster meet before they exit".into());
        Err(w)
    }

    /// Ends the launch; what comes after sees all that it did.
    ///
    /// # Errors
    /// Where an asynchronous operation is not complete.
    pub fn end(&mut self) -> Result<(), Wrong> {
        for block in 0..self.blocks.len() {
            self.end_block(block as u32)?;
        }
        Ok(())
    }
}
