//! What the threads of a warp know. Mostly they know the same: then it is kept once, and what is known of their own warp and
//! block are two numbers.

use std::sync::Arc;

use super::super::place::each;
use super::view::{AGENT, Numbering, View};

/// A fence that strong writes after it release.
#[derive(Clone, Debug)]
pub(crate) struct Fenced {
    /// The lanes that have executed it.
    pub lanes: u32,
    /// Its scope.
    pub scope: super::super::access::Scope,
    /// The clock as it was, with the tick up to which the lanes' own accesses came before it.
    snapshot: Views,
    ticks: (u32, u32, u32),
}

/// What each lane knows of others.
#[derive(Clone, Debug)]
enum Views {
    Same(Arc<View>),
    Each(Box<[Arc<View>; 32]>),
}

impl Views {
    fn of(&self, lane: u32) -> &Arc<View> {
        match self {
            Self::Same(view) => view,
            Self::Each(views) => &views[lane as usize],
        }
    }
}

/// What the lanes of a warp know.
#[derive(Clone, Debug)]
pub(crate) struct Clock {
    /// The number of lane 0.
    pub first: u32,
    /// The lanes that exist.
    pub lanes: u32,
    /// The number of the first thread of the block, and how many numbers the block has.
    pub block: (u32, u32),
    /// Accesses of the grid, the block and the warp that all lanes know.
    pub known: (u32, u32, u32),
    views: Views,
    /// Fences before, the latest of each scope and lane.
    pub fences: Vec<Fenced>,
    /// What relaxed reads have seen, which a later fence acquires: the lane, the blocks that released it, the view.
    pub pending: Vec<(u32, (u32, u32), Arc<View>)>,
    /// When each lane executed its last `fence.proxy.async`.
    pub proxy_fences: [u32; 32],
    /// Whether it has waited for a barrier of the cluster.
    pub met_cluster: bool,
}

impl Clock {
    /// The clock of a warp that has just begun.
    pub fn new(block: u32, warp: u32, lanes: u32, ids: Numbering) -> Self {
        Self {
            first: (block * ids.warps + warp) * 32,
            lanes,
            block: (block * ids.warps * 32, ids.warps * 32),
            known: (1, 1, 1),
            views: Views::Same(Arc::new(View::of_everything_before(1))),
            fences: Vec::new(),
            pending: Vec::new(),
            proxy_fences: [0; 32],
            met_cluster: false,
        }
    }

    /// The clock of an asynchronous operation that knows what `view` does: all lanes are the one that started it.
    pub fn agent(view: Arc<View>) -> Self {
        Self {
            first: AGENT - 32,
            lanes: u32::MAX,
            block: (u32::MAX, 0),
            known: (view.floor, 0, 0),
            views: Views::Same(view),
            fences: Vec::new(),
            pending: Vec::new(),
            proxy_fences: [0; 32],
            met_cluster: true,
        }
    }

    /// Whether a lane knows an access.
    pub fn knows(&self, lane: u32, who: u32, stamp: u32, ids: Numbering) -> bool {
        self.knows_quickly(who, stamp) || who == self.first + lane || self.views.of(lane).knows(who, stamp, ids)
    }

    /// Whether all lanes know an access by the numbers alone.
    #[inline]
    pub fn knows_quickly(&self, who: u32, stamp: u32) -> bool {
        let (grid, block, warp) = self.known;
        who < AGENT
            && (stamp < grid
                || (who.wrapping_sub(self.block.0) < self.block.1 && stamp < block)
                || (who.wrapping_sub(self.first) < 32 && stamp < warp))
    }

    /// The view of a lane, without what the numbers say.
    pub fn view(&self, lane: u32) -> &Arc<View> {
        self.views.of(lane)
    }

    /// What a lane knows and did before `tick`: what it can tell others.
    pub fn tell(&self, lane: u32, tick: u32, ids: Numbering) -> View {
        tell(
            self.first,
            self.views.of(lane),
            (self.known.1, self.known.2),
            1 << lane,
            tick,
            self.lanes,
            ids,
        )
    }

    /// The same of several lanes together.
    pub fn tell_all(&self, lanes: u32, tick: u32, ids: Numbering) -> View {
        let joined = self.joined(lanes, ids);
        tell(
            self.first,
            &joined,
            (self.known.1, self.known.2),
            lanes,
            tick,
            self.lanes,
            ids,
        )
    }

    /// What a lane told by its fences before, each with its scope.
    pub fn told(&self, lane: u32, ids: Numbering) -> Vec<(super::super::access::Scope, View)> {
        let mine = self.fences.iter().filter(|fence| fence.lanes & 1 << lane != 0);
        mine.map(|fence| {
            let (block, warp, tick) = fence.ticks;
            let view = fence.snapshot.of(lane);
            (
                fence.scope,
                tell(self.first, view, (block, warp), 1 << lane, tick, self.lanes, ids),
            )
        })
        .collect()
    }

    /// Keeps a fence.
    pub fn fence(&mut self, lanes: u32, scope: super::super::access::Scope, tick: u32) {
        self.fences
            .iter_mut()
            .filter(|old| old.scope <= scope)
            .for_each(|old| old.lanes &= !lanes);
        self.fences.retain(|old| old.lanes != 0);
        let ticks = (self.known.1, self.known.2, tick);
        self.fences.push(Fenced {
            lanes,
            scope,
            snapshot: self.views.clone(),
            ticks,
        });
    }

    /// The views of some lanes, joined.
    fn joined(&self, lanes: u32, ids: Numbering) -> Arc<View> {
        match &self.views {
            Views::Same(view) => view.clone(),
            Views::Each(views) => {
                let mut all = each(lanes).map(|lane| &views[lane]);
                let Some(first) = all.next() else { return Arc::default() };
                let mut joined = first.clone();
                for view in all {
                    join(&mut joined, view, ids);
                }
                joined
            }
        }
    }

    /// Some lanes learn what a view knows.
    pub fn learn(&mut self, lanes: u32, view: &Arc<View>, ids: Numbering) {
        if lanes & self.lanes == self.lanes {
            match &mut self.views {
                Views::Same(mine) => join(mine, view, ids),
                Views::Each(views) => views.iter_mut().for_each(|mine| join(mine, view, ids)),
            }
        } else {
            let mut views = self.spread();
            each(lanes).for_each(|lane| join(&mut views[lane], view, ids));
            self.views = Views::Each(views);
        }
        self.refresh(ids);
    }

    /// Lanes of the warp have met: they know of each other what came before `tick`, and what any of them knew.
    pub fn meet(&mut self, lanes: u32, tick: u32, ids: Numbering) {
        if lanes & self.lanes == self.lanes {
            self.known.2 = tick;
            if let Views::Each(_) = self.views {
                self.views = Views::Same(self.joined(self.lanes, ids));
                self.refresh(ids);
            }
            return;
        }
        let all = Arc::new(self.tell_all(lanes, tick, ids));
        self.learn(lanes, &all, ids);
    }

    /// The whole block has met at `tick`, and all its threads know `view`.
    pub fn meet_block(&mut self, view: &Arc<View>, tick: u32, ids: Numbering) {
        self.views = Views::Same(view.clone());
        self.known = (view.floor, tick, tick);
        debug_assert!(
            view.block(self.first / 32 / ids.warps) <= tick,
            "the future is not known"
        );
    }

    /// The joined views of all lanes, where they are the same for the whole block mostly.
    pub fn everything(&self, ids: Numbering) -> Arc<View> {
        self.joined(self.lanes, ids)
    }

    fn spread(&self) -> Box<[Arc<View>; 32]> {
        match &self.views {
            Views::Same(view) => Box::new(std::array::from_fn(|_| view.clone())),
            Views::Each(views) => views.clone(),
        }
    }

    /// Brings the numbers up to what the views of all lanes say.
    fn refresh(&mut self, ids: Numbering) {
        let block = self.block.0 / 32 / ids.warps;
        let least = |of: &dyn Fn(&View) -> u32| match &self.views {
            Views::Same(view) => of(view),
            Views::Each(views) => each(self.lanes).map(|lane| of(&views[lane])).min().unwrap_or(0),
        };
        let grid = least(&|view| view.floor);
        let own = least(&|view| view.block(block));
        self.known = (self.known.0.max(grid), self.known.1.max(own), self.known.2.max(own));
    }
}

/// A view with what the numbers of a warp say, and with what the lanes did before `tick`.
fn tell(first: u32, view: &View, (block, warp): (u32, u32), lanes: u32, tick: u32, all: u32, ids: Numbering) -> View {
    let mut told = view.clone();
    if block > 1 {
        told.raise_block(first / 32 / ids.warps, block, ids);
    }
    if lanes & all == all {
        told.raise_warp(first / 32, tick);
    } else {
        if warp > block {
            told.raise_warp(first / 32, warp);
        }
        each(lanes).for_each(|lane| told.raise_thread(first + lane as u32, tick));
    }
    told
}

/// Joins a view into one that others may hold.
pub(crate) fn join(mine: &mut Arc<View>, other: &Arc<View>, ids: Numbering) {
    if Arc::ptr_eq(mine, other) || mine.covers(other) {
        return;
    }
    if other.covers(mine) {
        *mine = other.clone();
    } else {
        Arc::make_mut(mine).join(other, ids);
    }
}
