//! What orders accesses, as the machine sees it: fences and barriers.

use super::Memory;
use super::access::{Order, Scope, Warp};

impl Memory {
    /// A fence; `membar` is one of [`Order::AcquireRelease`].
    pub fn fence(&mut self, warp: Warp, lanes: u32, order: Order, scope: Scope) {
        self.order.fence(warp, lanes, order, scope);
    }

    /// `fence.proxy.async`: what the lanes wrote may be read by asynchronous copies.
    pub fn proxy_fence(&mut self, warp: Warp, lanes: u32) {
        self.order.proxy_fence(warp, lanes);
    }

    /// A barrier of a block is complete: (warp, lanes) of those that arrived and of those that wait (`bar.arrive` only arrives).
    pub fn barrier(&mut self, block: u32, arrived: &[(u32, u32)], waiting: &[(u32, u32)]) {
        let alive = self.blocks[block as usize]
            .as_ref()
            .map_or(0, |resident| resident.alive);
        self.order.barrier(block, arrived, waiting, alive);
    }

    /// `bar.warp.sync` of these lanes.
    pub fn warp_sync(&mut self, warp: Warp, lanes: u32) {
        self.order.warp_sync(warp, lanes);
    }

    /// `barrier.cluster.arrive`.
    pub fn cluster_arrive(&mut self, warp: Warp, lanes: u32, release: bool) {
        self.order.cluster_arrive(warp, lanes, release);
    }

    /// All threads of a cluster have arrived.
    pub fn cluster_complete(&mut self, cluster: u32) {
        self.order.cluster_complete(cluster);
    }

    /// `barrier.cluster.wait` returns.
    pub fn cluster_wait(&mut self, warp: Warp, lanes: u32, acquire: bool) {
        self.order.cluster_wait(warp, lanes, acquire);
    }
}
