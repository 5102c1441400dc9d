//! The order of accesses, after the memory model of PTX: what happens before what, and which accesses race.
//!
//! Each warp has a [`clock::Clock`]: what its threads know of others. Barriers, releases and acquires join them. Each cell of
//! memory has its last accesses in a [`shadow::Shadow`]; an access that finds one there which its thread does not know, and
//! with which it is not morally strong, is in a race.

pub(crate) mod clock;
pub(crate) mod message;
mod page;
mod readers;
pub(crate) mod shadow;
pub(crate) mod site;
pub(crate) mod track;
pub(crate) mod view;

use std::collections::HashMap;
use std::sync::Arc;

use super::access::{Order, Scope, Warp};
use super::hash::QuickMap;
use super::launch::Shape;
use super::place::each;
use clock::Clock;
use message::Message;
use site::Sites;
use view::{Numbering, View};

/// Whether a thread of block `b` is in `scope` of one of block `a`.
pub(crate) fn within(scope: Scope, a: u32, b: u32, ids: Numbering) -> bool {
    match scope {
        Scope::Block => a == b,
        Scope::Cluster => ids.cluster_of(a) == ids.cluster_of(b),
        Scope::Gpu | Scope::System => true,
    }
}

/// What a cluster has told at its barrier.
#[derive(Debug, Default)]
struct Meeting {
    /// In the phase that fills.
    arriving: View,
    /// In the last phase that is full.
    full: Arc<View>,
}

/// What happened before what, in a launch.
#[derive(Debug, Default)]
pub(crate) struct Causality {
    /// Time.
    pub tick: u32,
    /// Numbers of threads.
    pub ids: Numbering,
    /// Instructions.
    pub sites: Sites,
    threads: u32,
    clocks: Vec<Vec<Clock>>,
    /// When each block last met as a whole: its threads know of each other what was before.
    met: Vec<u32>,
    messages: QuickMap<(u32, u32), Message>,
    meetings: HashMap<u32, Meeting>,
}

impl Causality {
    /// A launch begins; all before it is known to everybody.
    pub fn begin(&mut self, shape: &Shape) {
        let ids = Numbering {
            warps: shape.threads.div_ceil(32).max(1),
            cluster: shape.cluster.max(1),
            blocks: shape.blocks,
        };
        *self = Self {
            tick: 1,
            ids,
            threads: shape.threads,
            clocks: vec![Vec::new(); shape.blocks as usize],
            met: vec![0; shape.blocks as usize],
            ..Self::default()
        };
    }

    /// A block begins; it knows what was before the launch.
    pub fn start_block(&mut self, block: u32) {
        let clock = |warp: u32| {
            let here = (self.threads - warp * 32).min(32);
            let lanes = if here == 32 { u32::MAX } else { (1 << here) - 1 };
            Clock::new(block, warp, lanes, self.ids)
        };
        self.clocks[block as usize] = (0..self.ids.warps).map(clock).collect();
    }

    /// A block has ended.
    pub fn end_block(&mut self, block: u32) {
        self.clocks[block as usize] = Vec::new();
    }

    /// The clock of a warp that runs.
    pub fn clock(&self, warp: Warp) -> &Clock {
        &self.clocks[warp.block as usize][warp.warp as usize]
    }

    /// The same, to change.
    pub fn clock_mut(&mut self, warp: Warp) -> &mut Clock {
        &mut self.clocks[warp.block as usize][warp.warp as usize]
    }

    /// What a block knows where it ends.
    pub fn of_block(&self, block: u32) -> View {
        let mut all = View::default();
        for clock in &self.clocks[block as usize] {
            all.join(&clock.tell_all(clock.lanes, self.tick, self.ids), self.ids);
        }
        all
    }

    /// Up to where all threads of a block know each other.
    pub fn met(&self, block: u32) -> u32 {
        self.met[block as usize]
    }

    /// Time goes on; what was stamped so far is below the tick returned.
    pub fn advance(&mut self) -> u32 {
        self.tick += 1;
        self.tick
    }

    /// A fence of some lanes.
    pub fn fence(&mut self, warp: Warp, lanes: u32, order: Order, scope: Scope) {
        if order != Order::Release {
            self.acquire_pending(warp, lanes, scope);
        }
        if order != Order::Acquire {
            let tick = self.advance();
            self.clock_mut(warp).fence(lanes, scope, tick);
        }
    }

    fn acquire_pending(&mut self, warp: Warp, lanes: u32, scope: Scope) {
        let ids = self.ids;
        let clock = self.clock_mut(warp);
        if clock.pending.is_empty() {
            return;
        }
        let taken = |&(lane, blocks, _): &(u32, (u32, u32), Arc<View>)| {
            lanes & 1 << lane != 0
                && within(scope, blocks.0, warp.block, ids)
                && within(scope, blocks.1, warp.block, ids)
        };
        let (now, later) = std::mem::take(&mut clock.pending).into_iter().partition(taken);
        clock.pending = later;
        let now: Vec<(u32, (u32, u32), Arc<View>)> = now;
        now.iter().for_each(|(lane, _, view)| clock.learn(1 << lane, view, ids));
    }

    /// A lane has read what a strong write (or a phase of an mbarrier) carries.
    pub fn receive(&mut self, warp: Warp, lanes: u32, message: &Message, order: Order, scope: Scope) {
        let ids = self.ids;
        let clock = self.clock_mut(warp);
        for (view, blocks) in message.for_reader(scope, warp.block, ids) {
            if matches!(order, Order::Acquire | Order::AcquireRelease) {
                clock.learn(lanes, view, ids);
            } else {
                each(lanes).for_each(|lane| keep_pending(clock, lane as u32, blocks, view, ids));
            }
        }
    }

    /// A lane reads a location strongly.
    pub fn strong_read(&mut self, warp: Warp, lane: u32, place: (u32, u32), order: Order, scope: Scope) {
        if let Some(message) = self.messages.remove(&place) {
            self.receive(warp, 1 << lane, &message, order, scope);
            self.messages.insert(place, message);
        }
    }

    /// A lane writes a location strongly; `passes_on` where it is an atomic operation that has just read it.
    pub fn strong_write(
        &mut self,
        warp: Warp,
        lane: u32,
        place: (u32, u32),
        (order, scope): (Order, Scope),
        passes_on: bool,
    ) {
        let ids = self.ids;
        let me = self.clock(warp).first + lane;
        let told = self.told(warp, lane, order, scope);
        if told.is_empty() && !passes_on && self.messages.get(&place).is_none_or(|message| message.by != me) {
            self.messages.remove(&place);
            return;
        }
        let message = self.messages.entry(place).or_default();
        if !passes_on && message.by != me {
            *message = Message::default();
        }
        message.by = me;
        told.into_iter()
            .for_each(|(scope, view)| message.add(view, scope, warp.block, ids));
        if message.is_empty() {
            self.messages.remove(&place);
        }
    }

    /// Whether any location carries a release.
    pub fn carries_anything(&self) -> bool {
        !self.messages.is_empty()
    }

    /// Whether a location carries a release.
    pub fn carries(&self, place: (u32, u32)) -> bool {
        self.messages.contains_key(&place)
    }

    /// What a write of a lane releases, and to whom.
    pub fn told(&mut self, warp: Warp, lane: u32, order: Order, scope: Scope) -> Vec<(Scope, View)> {
        if matches!(order, Order::Release | Order::AcquireRelease) {
            let tick = self.advance();
            return vec![(scope, self.clock(warp).tell(lane, tick, self.ids))];
        }
        let fences = self.clock(warp).told(lane, self.ids);
        fences
            .into_iter()
            .map(|(fence, view)| (fence.min(scope), view))
            .collect()
    }

    /// `fence.proxy.async`: what the lanes wrote so far may be read by the asynchronous proxy.
    pub fn proxy_fence(&mut self, warp: Warp, lanes: u32) {
        let tick = self.advance();
        let clock = self.clock_mut(warp);
        each(lanes).for_each(|lane| clock.proxy_fences[lane] = tick);
    }

    /// When a thread executed its last proxy fence; far in the future for one that is gone.
    pub fn proxy_fence_of(&self, who: u32) -> u32 {
        let warp = who / 32;
        let clock = self.clocks[(warp / self.ids.warps) as usize].get((warp % self.ids.warps) as usize);
        clock.map_or(u32::MAX, |clock| clock.proxy_fences[(who % 32) as usize])
    }

    /// Forgets what locations of an area carry.
    pub fn forget(&mut self, area: u32) {
        self.messages.retain(|place, _| place.0 != area);
    }

    /// A barrier of a block is complete.
    pub fn barrier(&mut self, block: u32, arrived: &[(u32, u32)], waiting: &[(u32, u32)], alive: u32) {
        let tick = self.advance();
        let count = |list: &[(u32, u32)]| list.iter().map(|entry| entry.1.count_ones()).sum::<u32>();
        let everybody = count(arrived) >= alive;
        let mut joined = self.told_together(block, arrived, tick, everybody);
        if everybody {
            Arc::make_mut(&mut joined).raise_block(block, tick, self.ids);
        }
        let ids = self.ids;
        let whole = everybody && count(waiting) >= alive;
        if whole {
            self.met[block as usize] = tick;
            let quiet = joined;
            self.clocks[block as usize]
                .iter_mut()
                .for_each(|clock| clock.meet_block(&quiet, tick, ids));
            return;
        }
        for &(warp, lanes) in waiting {
            self.clocks[block as usize][warp as usize].learn(lanes, &joined, ids);
        }
    }

    fn told_together(&self, block: u32, arrived: &[(u32, u32)], tick: u32, everybody: bool) -> Arc<View> {
        let mut joined: Option<Arc<View>> = None;
        for &(warp, lanes) in arrived {
            let clock = &self.clocks[block as usize][warp as usize];
            let view = if everybody {
                clock.everything(self.ids)
            } else {
                Arc::new(clock.tell_all(lanes, tick, self.ids))
            };
            match &mut joined {
                None => joined = Some(view),
                Some(all) => clock::join(all, &view, self.ids),
            }
        }
        joined.unwrap_or_default()
    }

    /// Lanes of a warp meet.
    pub fn warp_sync(&mut self, warp: Warp, lanes: u32) {
        let tick = self.advance();
        let ids = self.ids;
        self.clock_mut(warp).meet(lanes, tick, ids);
    }

    /// Lanes arrive at the barrier of their cluster.
    pub fn cluster_arrive(&mut self, warp: Warp, lanes: u32, release: bool) {
        let (tick, ids) = (self.advance(), self.ids);
        let clock = self.clock(warp);
        let mut told = Vec::new();
        if release {
            told.push(clock.tell_all(lanes, tick, ids));
        } else {
            let fenced = each(lanes).flat_map(|lane| clock.told(lane as u32, ids));
            told.extend(
                fenced
                    .filter(|(scope, _)| *scope >= Scope::Cluster)
                    .map(|(_, view)| view),
            );
        }
        let meeting = self.meetings.entry(ids.cluster_of(warp.block)).or_default();
        told.iter().for_each(|view| meeting.arriving.join(view, ids));
    }

    /// A phase of the barrier of a cluster is full.
    pub fn cluster_complete(&mut self, cluster: u32) {
        let meeting = self.meetings.entry(cluster).or_default();
        meeting.full = Arc::new(std::mem::take(&mut meeting.arriving));
    }

    /// Lanes have waited for the barrier of their cluster.
    pub fn cluster_wait(&mut self, warp: Warp, lanes: u32, acquire: bool) {
        let ids = self.ids;
        let full = self
            .meetings
            .entry(ids.cluster_of(warp.block))
            .or_default()
            .full
            .clone();
        let clock = self.clock_mut(warp);
        clock.met_cluster = true;
        if acquire {
            clock.learn(lanes, &full, ids);
        } else {
            let cluster = ids.cluster_of(warp.block) * ids.cluster;
            let blocks = (cluster, cluster + ids.cluster - 1);
            each(lanes).for_each(|lane| keep_pending(clock, lane as u32, blocks, &full, ids));
        }
    }
}

/// What a relaxed read has seen waits for a fence.
fn keep_pending(clock: &mut Clock, lane: u32, blocks: (u32, u32), view: &Arc<View>, ids: Numbering) {
    match clock
        .pending
        .iter_mut()
        .find(|entry| entry.0 == lane && entry.1 == blocks)
    {
        Some(entry) => clock::join(&mut entry.2, view, ids),
        None => clock.pending.push((lane, blocks, view.clone())),
    }
}
