//! The barrier of a cluster: `barrier.cluster.arrive` and `.wait`.

use super::Machine;
use super::slice::Flow;
use super::warp::{Wait, Warp};
use crate::fault::{Fault, Kind};
use crate::memory::place::each;
use crate::program::{Action, Inst};

/// A cluster's barrier.
#[derive(Clone, Debug, Default)]
pub struct Cluster {
    /// Blocks that run.
    pub running: u32,
    /// Threads that arrived in this phase.
    arrived: u32,
    /// Threads that exited, and need not arrive.
    exited: u32,
    /// Of those that arrived in this phase, the ones that exited since.
    gone: u32,
    /// Phases that are complete.
    phase: u64,
}

impl Machine<'_> {
    /// Lanes arrive at, or wait for, the barrier of their cluster.
    pub fn cluster_barrier(&mut self, warp: &mut Warp, at: usize, inst: &Inst, mask: u32) -> Result<Flow, Box<Fault>> {
        let pc = warp.groups[at].pc;
        let aligned = matches!(
            inst.action,
            Action::ClusterArrive { aligned: true, .. } | Action::ClusterWait { aligned: true, .. }
        );
        if aligned && mask != warp.live() {
            return Ok(Flow::Wait(Wait::Lanes(warp.live())));
        }
        match inst.action {
            Action::ClusterArrive { release, .. } => self.cluster_arrive(warp, pc, mask, release),
            Action::ClusterWait { acquire, .. } => self.cluster_wait(warp, pc, mask, acquire),
            _ => Ok(Flow::Next),
        }
    }

    fn cluster_arrive(&mut self, warp: &mut Warp, pc: u32, mask: u32, release: bool) -> Result<Flow, Box<Fault>> {
        let twice = warp.cluster_arrived & mask;
        if twice != 0 {
            let message = "a second arrival at the barrier of the cluster without a wait in between".to_owned();
            return Err(self.fault(Kind::Cluster, message, warp, pc, twice.trailing_zeros()));
        }
        let cluster = self.cluster_of(warp);
        self.memory.cluster_arrive(warp.id, mask, release);
        if let Some(cost) = &mut self.cost {
            cost.cluster_arrive(warp.id.block, warp.id.warp, release);
        }
        warp.cluster_arrived |= mask;
        let phase = self.clusters[cluster as usize].phase;
        each(mask).for_each(|lane| warp.cluster_phase[lane] = phase);
        self.clusters[cluster as usize].arrived += mask.count_ones();
        self.complete_cluster(warp, cluster);
        Ok(Flow::Next)
    }

    fn cluster_wait(&mut self, warp: &mut Warp, pc: u32, mask: u32, acquire: bool) -> Result<Flow, Box<Fault>> {
        let never = mask & !warp.cluster_arrived;
        if never != 0 {
            let message = "a wait for the barrier of the cluster without an arrival".to_owned();
            return Err(self.fault(Kind::Cluster, message, warp, pc, never.trailing_zeros()));
        }
        let phase = self.clusters[self.cluster_of(warp) as usize].phase;
        if each(mask).any(|lane| warp.cluster_phase[lane] >= phase) {
            return Ok(Flow::Wait(Wait::Cluster));
        }
        warp.cluster_arrived &= !mask;
        self.memory.cluster_wait(warp.id, mask, acquire);
        Ok(Flow::Next)
    }

    fn cluster_of(&self, warp: &Warp) -> u32 {
        self.blocks[warp.slot].as_ref().map_or(0, |block| block.cluster)
    }

    /// Threads that exit need not arrive any more.
    pub fn cluster_exit(&mut self, warp: &mut Warp, mask: u32) {
        if !self.program.cluster {
            return;
        }
        let number = self.cluster_of(warp);
        let cluster = &mut self.clusters[number as usize];
        let counted = each(mask & warp.cluster_arrived).filter(|lane| warp.cluster_phase[*lane] == cluster.phase);
        let counted = counted.count() as u32;
        cluster.gone += counted;
        cluster.exited += mask.count_ones() - counted;
        self.complete_cluster(warp, number);
    }

    /// Begins the next phase where all threads have arrived.
    fn complete_cluster(&mut self, current: &mut Warp, number: u32) {
        let all = self.plan.threads * self.plan.cluster_blocks;
        let cluster = &mut self.clusters[number as usize];
        if cluster.arrived == 0 || cluster.arrived + cluster.exited < all {
            return;
        }
        cluster.phase += 1;
        cluster.arrived = 0;
        cluster.exited += std::mem::take(&mut cluster.gone);
        self.idle = 0;
        self.memory.cluster_complete(number);
        if let Some(cost) = &mut self.cost {
            cost.cluster_complete(current.id.block);
        }
        wake(current);
        for (slot, block) in self.blocks.iter_mut().enumerate() {
            let Some(block) = block.as_mut().filter(|block| block.cluster == number) else {
                continue;
            };
            for (index, warp) in block.warps.iter_mut().enumerate() {
                let Some(warp) = warp else { continue };
                if wake(warp) && !warp.ready {
                    warp.ready = true;
                    self.ready.push((slot, index as u32));
                }
            }
        }
    }

    /// A block of a cluster has exited.
    pub fn block_left_cluster(&mut self, cluster: u32, block: u32) -> Result<(), Box<Fault>> {
        self.clusters[cluster as usize].running -= 1;
        let ended = self.memory.end_block(block);
        ended.map_err(|wrong| self.explain_end(wrong))
    }
}

/// Lets groups go that wait for the cluster; whether there are any.
fn wake(warp: &mut Warp) -> bool {
    let mut any = false;
    for group in warp.groups.iter_mut().filter(|group| group.wait == Wait::Cluster) {
        group.wait = Wait::No;
        any = true;
    }
    any
}
