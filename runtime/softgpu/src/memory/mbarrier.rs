//! mbarriers: objects in shared memory that count arrivals and bytes, phase by phase.

use std::collections::VecDeque;
use std::sync::Arc;

use super::Memory;
use super::access::{Access, Lanes, Scope, Warp, Wrong};
use super::area::Sort;
use super::order::message::Message;
use super::order::site::What;
use super::order::view::{AT_MBARRIER, View};
use super::place::{Group, each, wrong};
use crate::fault::Kind;

/// Counts of arrivals and of bytes stay below this (PTX manual, "mbarrier: contents").
const LIMIT: i64 = (1 << 20) - 1;

/// An operation on an mbarrier. The operand is what each says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mbarrier {
    /// Operand: the count of arrivals that a phase expects.
    Init,
    /// `mbarrier.inval`.
    Invalidate,
    /// `mbarrier.arrive` and its forms. Out: the state.
    Arrive {
        /// The operand is the count; otherwise it is 1.
        count_given: bool,
        /// `arrive_drop`: later phases expect so many fewer.
        drop: bool,
        /// `.expect_tx`: the operand is the bytes to expect first, and the count is 1.
        expect: bool,
        /// `.noComplete`: the phase must not become complete by this.
        no_complete: bool,
    },
    /// Operand: bytes.
    ExpectTx,
    /// Operand: bytes.
    CompleteTx,
    /// Operand: the state that an arrival gave. Out: 1 where that phase is complete.
    TestState {
        /// `try_wait`, which may say no for no reason.
        may_wait: bool,
    },
    /// Operand: the parity of a phase. Out: 1 where that phase is complete.
    TestParity {
        /// `try_wait`, which may say no for no reason.
        may_wait: bool,
    },
    /// Operand: a state. Out: how many arrivals were pending in it.
    PendingCount,
}

/// The phase that an mbarrier is in.
#[derive(Clone, Debug)]
pub(crate) struct Phase {
    /// Its number in the launch.
    pub number: u32,
    /// How many phases are complete.
    done: u64,
    /// Arrivals that a phase expects.
    expected: i64,
    /// Arrivals that this phase still expects.
    pending: i64,
    /// Bytes that are expected less bytes that came.
    bytes: i64,
    /// What those that arrived in this phase released.
    arriving: Message,
    /// The same of the last phase that is complete.
    complete: Message,
    /// When the last phases became complete.
    ends: VecDeque<u32>,
    /// Who initialised it, when, and whether `fence.mbarrier_init` came after.
    begun: (u32, u32, bool),
}

/// The shared object that an access names: the block and the offset there.
type Place = (u32, u32);

impl Phase {
    fn new(number: u32, count: i64, begun: (u32, u32)) -> Self {
        Self {
            number,
            done: 0,
            expected: count,
            pending: count,
            bytes: 0,
            arriving: Message::default(),
            complete: Message::default(),
            ends: VecDeque::new(),
            begun: (begun.0, begun.1, false),
        }
    }

    /// What views call its phases.
    fn phases(&self) -> u32 {
        (AT_MBARRIER | (self.number * 32)) + 1
    }

    /// The opaque state: the phase above, the pending arrivals in 20 bits below.
    fn state(&self) -> u64 {
        self.done << 20 | self.pending as u64
    }

    fn expect_bytes(&mut self, bytes: i64) -> Result<(), String> {
        self.bytes += bytes;
        if self.bytes.abs() > LIMIT {
            return Err(format!("the tx-count becomes {}, outside +-(2^20 - 1)", self.bytes));
        }
        Ok(())
    }

    /// Completes the phase at `tick` where nothing is pending; true if so.
    fn advance(&mut self, tick: u32) -> bool {
        let complete = self.pending == 0 && self.bytes == 0;
        if complete {
            self.done += 1;
            self.pending = self.expected;
            self.complete = std::mem::take(&mut self.arriving);
            self.ends.push_back(tick);
            if self.ends.len() > 8 {
                self.ends.pop_front();
            }
        }
        complete
    }

    /// How many phases have become complete that somebody who knows those before `tick` does not know of.
    fn unknown(&self, tick: u32) -> usize {
        self.ends.iter().filter(|&&end| end >= tick).count()
    }

    fn arrive(&mut self, count: i64, drop: bool) -> Result<(), String> {
        if count < 1 || count > self.pending {
            return Err(format!(
                "{count} arrivals where {} of {} are pending",
                self.pending, self.expected
            ));
        }
        self.pending -= count;
        self.expected -= if drop { count } else { 0 };
        Ok(())
    }
}

impl Memory {
    /// An operation on mbarriers.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn mbarrier(
        &mut self,
        a: &Access,
        op: Mbarrier,
        operand: &Lanes<u64>,
        out: &mut Lanes<u64>,
    ) -> Result<(), Wrong> {
        if op == Mbarrier::PendingCount {
            each(a.lanes).for_each(|lane| out[lane] = operand[lane] & LIMIT as u64);
            return Ok(());
        }
        let mut left = a.lanes;
        while left != 0 {
            let group = self.group(a, &mut left)?;
            let Sort::Shared { block } = self.areas[group.area].sort else {
                let text = "an mbarrier outside shared memory".to_string();
                return Err(wrong(Kind::Mbarrier, text).by(a, group.lanes.trailing_zeros()));
            };
            for lane in each(group.lanes) {
                let place = (block, group.offsets[lane]);
                let here = Group {
                    lanes: 1 << lane,
                    ..group.clone()
                };
                out[lane] = match op {
                    Mbarrier::Init => self.initialise(a, &here, place, operand[lane]),
                    Mbarrier::Invalidate => self.invalidate(a, &here, place),
                    Mbarrier::TestState { .. } | Mbarrier::TestParity { .. } => {
                        self.test(a, lane as u32, place, op, operand[lane])
                    }
                    _ => self.count(a, lane as u32, place, op, operand[lane]),
                }?;
            }
            self.learn_phases(a, &group, block, op, out);
        }
        Ok(())
    }

    /// How many phases of an mbarrier are complete; none where there is no mbarrier.
    pub(crate) fn phases_done(&self, block: u32, offset: u32) -> Option<u64> {
        let resident = self.blocks.get(block as usize)?.as_ref()?;
        Some(resident.mbarriers.get(&offset)?.done)
    }

    fn phase(&mut self, place: Place) -> Option<&mut Phase> {
        self.blocks[place.0 as usize].as_mut()?.mbarriers.get_mut(&place.1)
    }

    /// A fault of an mbarrier.
    fn misused(&self, a: &Access, lane: u32, place: Place, text: String) -> Wrong {
        let mut w = wrong(Kind::Mbarrier, text);
        w.address = Some(format!("shared memory of block {} + {}", place.0, place.1));
        w.by(a, lane)
    }

    fn initialise(&mut self, a: &Access, here: &Group, place: Place, count: u64) -> Result<u64, Wrong> {
        let (lane, count) = (here.lanes.trailing_zeros(), count as i64);
        if !(1..=LIMIT).contains(&count) {
            let text = format!("the mbarrier is initialised with a count of {count}, outside 1 .. 2^20 - 1");
            return Err(self.misused(a, lane, place, text));
        }
        if self.phase(place).is_some() {
            let text = "the place is initialised while it holds an mbarrier (mbarrier.inval comes first)".to_string();
            return Err(self.misused(a, lane, place, text));
        }
        self.order_write_as(a, here, What::Mbarrier)?;
        self.areas[here.area].shadow.pend(place.1, 8, true);
        let number = self.agents.number_mbarrier();
        let begun = (self.order.clock(a.warp).first + lane, self.order.tick);
        if let Some(resident) = self.blocks[place.0 as usize].as_mut() {
            resident.mbarriers.insert(place.1, Phase::new(number, count, begun));
        }
        Ok(0)
    }

    fn invalidate(&mut self, a: &Access, here: &Group, place: Place) -> Result<u64, Wrong> {
        self.usable_mbarrier(a, here.lanes.trailing_zeros(), place)?;
        if let Some(resident) = self.blocks[place.0 as usize].as_mut() {
            resident.mbarriers.remove(&place.1);
        }
        self.areas[here.area].shadow.pend(place.1, 8, false);
        Ok(0)
    }

    /// The number of an mbarrier that this lane may use: it was initialised, and the lane knows.
    pub(crate) fn usable_mbarrier(&mut self, a: &Access, lane: u32, place: Place) -> Result<u32, Wrong> {
        let Some(phase) = self.phase(place) else {
            return Err(self.misused(a, lane, place, "there is no mbarrier: it was never initialised".into()));
        };
        let (number, (who, stamp, fenced)) = (phase.number, phase.begun);
        let clock = self.order.clock(a.warp);
        let told = fenced && clock.met_cluster;
        if told || clock.knows(lane, who, stamp, self.order.ids) {
            return Ok(number);
        }
        let text = "the mbarrier is used by a thread that does not know of its initialisation".to_string();
        let mut w = self.misused(a, lane, place, text);
        let a_block = self.order.ids.warps * 32;
        w.earlier = Some((who / a_block, who % a_block, a.at, "mbarrier.init".into()));
        w.hint = Some(
            "put __syncthreads() after the initialisation; for other blocks of the cluster fence.mbarrier_init and a barrier \
             of the cluster"
                .into(),
        );
        Err(w)
    }

    /// `fence.mbarrier_init`: what these lanes initialised may be used by the cluster after its next barrier.
    pub fn fence_mbarrier_init(&mut self, warp: Warp, lanes: u32) {
        let first = self.order.clock(warp).first;
        if let Some(resident) = self.blocks[warp.block as usize].as_mut() {
            for phase in resident.mbarriers.values_mut() {
                let lane = phase.begun.0.wrapping_sub(first);
                phase.begun.2 |= lane < 32 && lanes & 1 << lane != 0;
            }
        }
    }

    /// Arrivals and bytes.
    fn count(&mut self, a: &Access, lane: u32, place: Place, op: Mbarrier, operand: u64) -> Result<u64, Wrong> {
        self.usable_mbarrier(a, lane, place)?;
        let arrives = matches!(op, Mbarrier::Arrive { .. });
        let told = if arrives {
            self.order.told(a.warp, lane, a.order, a.scope)
        } else {
            Vec::new()
        };
        let (tick, ids) = (self.order.advance(), self.order.ids);
        let Some(phase) = self.phase(place) else { return Ok(0) };
        told.into_iter()
            .for_each(|(scope, view)| phase.arriving.add(view, scope, a.warp.block, ids));
        let state = operate(phase, op, operand, tick);
        state.map_err(|text| self.misused(a, lane, place, text))
    }

    /// Bytes came, or copies of a thread are complete.
    pub(crate) fn told_by_agent(
        &mut self,
        place: Place,
        bytes: u32,
        arrival: bool,
        (block, scope, view): (u32, Scope, View),
    ) -> Result<(), String> {
        let (tick, ids) = (self.order.advance(), self.order.ids);
        let phase = self.phase(place).ok_or("bytes come for an mbarrier that is gone")?;
        phase.arriving.add(view, scope, block, ids);
        let one = Mbarrier::Arrive {
            count_given: false,
            drop: false,
            expect: false,
            no_complete: false,
        };
        operate(
            phase,
            if arrival { one } else { Mbarrier::CompleteTx },
            u64::from(bytes),
            tick,
        )
        .map(|_| ())
    }

    /// `cp.async.mbarrier.arrive` without `.noinc` adds the arrival that it will make.
    pub(crate) fn expect_one_more(&mut self, place: Place) -> Result<(), String> {
        let phase = self.phase(place).ok_or("there is no mbarrier")?;
        phase.pending += 1;
        if phase.pending > LIMIT {
            Err("more than 2^20 - 1 arrivals are pending".into())
        } else {
            Ok(())
        }
    }

    /// Whether a phase is complete.
    fn test(&mut self, a: &Access, lane: u32, place: Place, op: Mbarrier, operand: u64) -> Result<u64, Wrong> {
        self.usable_mbarrier(a, lane, place)?;
        let hesitate = self.random.one_in(4);
        let (clock, tick) = (self.order.clock(a.warp), self.order.tick);
        let knows = |name: u32| clock.view(lane).up_to(name);
        let number = self.blocks[place.0 as usize]
            .as_ref()
            .and_then(|b| b.mbarriers.get(&place.1))
            .map(Phase::phases);
        let known = number.map_or(tick, knows);
        let Some(phase) = self.phase(place) else { return Ok(0) };
        let (done, of, unknown) = (phase.done, operand >> 20, phase.unknown(known));
        match op {
            Mbarrier::TestState { may_wait } => {
                if of != done && of + 1 != done {
                    let text = format!("the state of phase {of} is tested in phase {done}");
                    return Err(self.misused(a, lane, place, text));
                }
                Ok(u64::from(of != done && !(may_wait && hesitate)))
            }
            Mbarrier::TestParity { may_wait } => {
                if unknown >= 2 {
                    let text = format!(
                        "the parity of a phase is tested by a thread that has missed {unknown} phases (complete: {done}): \
                         the parity cannot tell them apart"
                    );
                    return Err(self.misused(a, lane, place, text));
                }
                Ok(u64::from(done & 1 != operand & 1 && !(may_wait && hesitate)))
            }
            _ => Ok(0),
        }
    }

    /// Lanes that saw a phase complete know what was released in it.
    fn learn_phases(&mut self, a: &Access, group: &Group, block: u32, op: Mbarrier, out: &Lanes<u64>) {
        if !matches!(op, Mbarrier::TestState { .. } | Mbarrier::TestParity { .. }) {
            return;
        }
        let ids = self.order.ids;
        let mut left: u32 = each(group.lanes)
            .filter(|&lane| out[lane] == 1)
            .fold(0, |lanes, lane| lanes | 1 << lane);
        while left != 0 {
            let offset = group.offsets[left.trailing_zeros() as usize];
            let lanes = each(left)
                .filter(|&lane| group.offsets[lane] == offset)
                .fold(0, |lanes, lane| lanes | 1 << lane);
            left &= !lanes;
            let Some(phase) = self.phase((block, offset)) else {
                continue;
            };
            let (message, mut seen) = (phase.complete.clone(), View::default());
            seen.raise_thread(phase.phases(), phase.ends.back().map_or(0, |end| end + 1));
            self.order.receive(a.warp, lanes, &message, a.order, a.scope);
            self.order.clock_mut(a.warp).learn(lanes, &Arc::new(seen), ids);
        }
    }
}

fn operate(phase: &mut Phase, op: Mbarrier, operand: u64, tick: u32) -> Result<u64, String> {
    let bytes = i64::from(operand as u32);
    match op {
        Mbarrier::Arrive {
            count_given,
            drop,
            expect,
            no_complete,
        } => {
            let state = phase.state();
            if expect {
                phase.expect_bytes(bytes)?;
            }
            phase.arrive(if count_given && !expect { bytes } else { 1 }, drop)?;
            if phase.advance(tick) && no_complete {
                return Err("an arrival with .noComplete completes the phase".into());
            }
            Ok(state)
        }
        Mbarrier::ExpectTx => phase.expect_bytes(bytes).map(|()| 0),
        Mbarrier::CompleteTx => {
            phase.expect_bytes(-bytes)?;
            phase.advance(tick);
            Ok(0)
        }
        _ => Ok(0),
    }
}
