//! Groups: what a thread commits together, and waits for.

use std::sync::Arc;

use super::super::Memory;
use super::super::access::{Access, Warp, Wrong};
use super::super::area::Sort;
use super::super::order::site::What;
use super::super::order::view::{AGENT, BULK_READ, BULK_WRITE, View};
use super::super::place::{each, wrong};
use super::{Operation, site};
use crate::fault::Kind;

/// Operations of some lanes, with the tick before which they were started.
#[derive(Clone, Debug)]
struct Group {
    lanes: u32,
    tick: u32,
    operations: Vec<u64>,
}

/// What a warp has started and not waited for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Queue {
    open: Vec<(u64, u32)>,
    groups: Vec<Group>,
    bulk_open: Vec<(u64, u32)>,
    bulk_groups: Vec<Group>,
}

impl Queue {
    /// Adds an operation of some lanes, to be committed.
    pub fn push(&mut self, id: u64, lanes: u32, bulk: bool) {
        let open = if bulk { &mut self.bulk_open } else { &mut self.open };
        open.push((id, lanes));
    }

    fn commit(&mut self, lanes: u32, tick: u32, bulk: bool) {
        let (open, groups) = if bulk {
            (&mut self.bulk_open, &mut self.bulk_groups)
        } else {
            (&mut self.open, &mut self.groups)
        };
        let operations = open
            .iter()
            .filter(|entry| entry.1 & lanes != 0)
            .map(|entry| entry.0)
            .collect();
        open.iter_mut().for_each(|entry| entry.1 &= !lanes);
        open.retain(|entry| entry.1 != 0);
        groups.push(Group {
            lanes,
            tick,
            operations,
        });
    }

    /// The groups that a lane must see complete so that at most `pending` are not.
    fn due(groups: &[Group], lane: u32, pending: u32) -> Vec<usize> {
        let mine: Vec<usize> = (0..groups.len())
            .filter(|&i| groups[i].lanes & 1 << lane != 0)
            .collect();
        mine[..mine.len().saturating_sub(pending as usize)].to_vec()
    }
}

impl Memory {
    /// `cp.async.commit_group`.
    pub fn commit_group(&mut self, warp: Warp, lanes: u32) {
        let tick = self.order.advance();
        self.agents.queues.entry(warp).or_default().commit(lanes, tick, false);
    }

    /// `cp.async.bulk.commit_group`.
    pub fn commit_bulk_group(&mut self, warp: Warp, lanes: u32) {
        let tick = self.order.advance();
        self.agents.queues.entry(warp).or_default().commit(lanes, tick, true);
    }

    /// `cp.async.wait_group N`, or `wait_all` for none: whether the lanes can go on.
    pub fn groups_done(&mut self, warp: Warp, lanes: u32, most_pending: Option<u32>) -> bool {
        if most_pending.is_none() {
            self.commit_group(warp, lanes);
        }
        let Some(queue) = self.agents.queues.get(&warp) else {
            return true;
        };
        let due: Vec<(u32, Vec<usize>)> = each(lanes)
            .map(|lane| {
                (
                    lane as u32,
                    Queue::due(&queue.groups, lane as u32, most_pending.unwrap_or(0)),
                )
            })
            .collect();
        let waiting = due
            .iter()
            .flat_map(|(_, groups)| groups)
            .flat_map(|&group| &queue.groups[group].operations);
        let waiting: Vec<u64> = waiting.copied().filter(|&id| !self.agents.is_done(id)).collect();
        if !self.hurry(&waiting) {
            return false;
        }
        self.know_groups(warp, lanes, &due);
        true
    }

    /// Whether these operations are done; the seed may hurry them.
    fn hurry(&mut self, waiting: &[u64]) -> bool {
        if !waiting.is_empty() && self.random.one_in(2) {
            return false;
        }
        waiting.iter().all(|&id| self.perform_whole(id).is_ok())
    }

    /// Lanes know the copies of groups that are complete.
    fn know_groups(&mut self, warp: Warp, lanes: u32, due: &[(u32, Vec<usize>)]) {
        let ids = self.order.ids;
        let Some(queue) = self.agents.queues.get_mut(&warp) else {
            return;
        };
        let tick = |groups: &Vec<usize>| groups.last().map_or(0, |&last| queue.groups[last].tick);
        let ticks: Vec<(u32, u32)> = due.iter().map(|(lane, groups)| (*lane, tick(groups))).collect();
        for (lane, groups) in due {
            groups
                .iter()
                .for_each(|&group| queue.groups[group].lanes &= !(1 << lane));
        }
        queue.groups.retain(|group| group.lanes != 0);
        let clock = self.order.clock_mut(warp);
        let same = ticks.iter().all(|entry| entry.1 == ticks[0].1);
        if same && lanes & clock.lanes == clock.lanes {
            let mut view = View::default();
            view.raise_warp(AGENT | (clock.first / 32), ticks[0].1);
            clock.learn(lanes, &Arc::new(view), ids);
            return;
        }
        for (lane, tick) in ticks {
            let mut view = View::default();
            view.raise_thread(AGENT | (clock.first + lane), tick);
            clock.learn(1 << lane, &Arc::new(view), ids);
        }
    }

    /// `cp.async.bulk.wait_group{.read} N`: whether the lanes can go on.
    pub fn bulk_groups_done(&mut self, warp: Warp, lanes: u32, most_pending: u32, only_read: bool) -> bool {
        let Some(queue) = self.agents.queues.get(&warp) else {
            return true;
        };
        let due: Vec<(u32, Vec<usize>)> = each(lanes)
            .map(|lane| (lane as u32, Queue::due(&queue.bulk_groups, lane as u32, most_pending)))
            .collect();
        let waiting = due
            .iter()
            .flat_map(|(_, groups)| groups)
            .flat_map(|&group| &queue.bulk_groups[group].operations);
        let waiting: Vec<u64> = waiting.copied().filter(|&id| !self.bulk_done(id, only_read)).collect();
        if !waiting.is_empty() && self.random.one_in(2) {
            return false;
        }
        for &id in &waiting {
            let done = if only_read {
                self.perform_read(id)
            } else {
                self.perform_whole(id)
            };
            if done.is_err() {
                return false;
            }
        }
        self.know_bulk(warp, &due, only_read);
        true
    }

    fn bulk_done(&self, id: u64, only_read: bool) -> bool {
        self.agents
            .running
            .get(&id)
            .is_none_or(|operation| only_read && operation.sources.is_empty())
    }

    fn know_bulk(&mut self, warp: Warp, due: &[(u32, Vec<usize>)], only_read: bool) {
        let (ids, tick) = (self.order.ids, self.order.advance());
        let clock = self.order.clock_mut(warp);
        for &(lane, _) in due {
            let thread = clock.first + lane;
            let mut view = View::default();
            view.raise_thread(BULK_READ | thread, tick);
            if !only_read {
                view.raise_thread(BULK_WRITE | thread, tick);
            }
            clock.learn(1 << lane, &Arc::new(view), ids);
        }
        let Some(queue) = self.agents.queues.get_mut(&warp) else {
            return;
        };
        if !only_read {
            for (lane, groups) in due {
                groups
                    .iter()
                    .for_each(|&group| queue.bulk_groups[group].lanes &= !(1 << lane));
            }
            queue.bulk_groups.retain(|group| group.lanes != 0);
        }
    }

    /// `cp.async.mbarrier.arrive{.noinc}`: an arrival once the copies of each lane so far are done.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn cp_async_arrive(&mut self, a: &Access, no_increment: bool) -> Result<(), Wrong> {
        let mut left = a.lanes;
        while left != 0 {
            let group = self.group(a, &mut left)?;
            let Sort::Shared { block } = self.areas[group.area].sort else {
                let text = "an mbarrier outside shared memory".to_string();
                return Err(wrong(Kind::Mbarrier, text).by(a, group.lanes.trailing_zeros()));
            };
            for lane in each(group.lanes) {
                let place = (block, group.offsets[lane]);
                self.usable_mbarrier(a, lane as u32, place)?;
                if !no_increment {
                    self.expect_one_more(place)
                        .map_err(|text| wrong(Kind::Mbarrier, text).by(a, lane as u32))?;
                }
                self.arrive_later(a, lane as u32, place);
            }
        }
        Ok(())
    }

    fn arrive_later(&mut self, a: &Access, lane: u32, place: (u32, u32)) {
        let tick = self.order.advance();
        let mut view = View::default();
        view.raise_thread(AGENT | (self.order.clock(a.warp).first + lane), tick);
        let queue = self.agents.queues.entry(a.warp).or_default();
        let committed = queue.groups.iter().filter(|group| group.lanes & 1 << lane != 0);
        let open = queue
            .open
            .iter()
            .filter(|entry| entry.1 & 1 << lane != 0)
            .map(|entry| entry.0);
        let after = committed
            .flat_map(|group| group.operations.clone())
            .chain(open)
            .collect();
        let how = site(a.at, What::CopyWrite, 0, a.order);
        let counted = vec![(place.0, place.1, 0)];
        let arrival = Operation {
            view,
            counted,
            arrival: Some(after),
            ..Operation::of(a.warp, lane, (0, 0), how)
        };
        self.agents.start(arrival);
    }
}
