//! What orders accesses: fences and barriers.

use super::Memory;
use super::access::{Order, Scope, Warp};

impl Memory {
    /// A fence; `membar` is one of [`Order::AcquireRelease`].
    pub fn fence(&mut self, _warp: Warp, _lanes: u32, _order: Order, _scope: Scope) {}

    /// `fence.proxy.async`: what the lanes wrote may be read by asynchronous copies.
    pub fn proxy_fence(&mut self, _warp: Warp, _lanes: u32) {}

    /// A barrier of a block is complete: (warp, lanes) of those that arrived and of those that wait (`bar.arrive` only arrives).
    pub fn barrier(&mut self, _block: u32, _arrived: &[(u32, u32)], _waiting: &[(u32, u32)]) {}

    /// `bar.warp.sync` of these lanes.
    pub fn warp_sync(&mut self, _warp: Warp, _lanes: u32) {}

    /// `barrier.cluster.arrive`.
    pub fn cluster_arrive(&mut self, _warp: Warp, _lanes: u32, _release: bool) {}

    /// All threads of a cluster have arrived.
    pub fn cluster_complete(&mut self, _cluster: u32) {}

    /// `barrier.cluster.wait` returns.
    pub fn cluster_wait(&mut self, _warp: Warp, _lanes: u32, _acquire: bool) {}
}
