//! mbarriers: objects in shared memory that count arrivals and bytes, phase by phase.

use super::Memory;
use super::access::{Access, Lanes, Wrong};
use super::area::Sort;
use super::place::{each, wrong};
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
    /// How many phases are complete.
    pub done: u64,
    /// Arrivals that a phase expects.
    expected: i64,
    /// Arrivals that this phase still expects.
    pending: i64,
    /// Bytes that are expected less bytes that came.
    bytes: i64,
}

impl Phase {
    fn new(count: i64) -> Self {
        Self {
            done: 0,
            expected: count,
            pending: count,
            bytes: 0,
        }
    }

    /// The opaque state: the phase above, the pending arrivals in 20 bits below.
    fn state(&self) -> u64 {
        self.done << 20 | self.pending as u64
    }

    fn expect(&mut self, bytes: i64) -> Result<(), String> {
        self.bytes += bytes;
        if self.bytes.abs() > LIMIT {
            return Err(format!("the tx-count becomes {}, outside +-(2^20 - 1)", self.bytes));
        }
        Ok(())
    }

    /// Completes the phase where nothing is pending; true if so.
    fn advance(&mut self) -> bool {
        let complete = self.pending == 0 && self.bytes == 0;
        if complete {
            self.done += 1;
            self.pending = self.expected;
        }
        complete
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
                let done = self.mbarrier_of_lane(block, group.offsets[lane], op, operand[lane]);
                out[lane] = done.map_err(|text| {
                    let mut w = wrong(Kind::Mbarrier, text);
                    w.address = Some(self.name(group.area, u64::from(group.offsets[lane])));
                    w.by(a, lane as u32)
                })?;
            }
        }
        Ok(())
    }

    fn mbarrier_of_lane(&mut self, block: u32, offset: u32, op: Mbarrier, operand: u64) -> Result<u64, String> {
        let hesitate = self.random.one_in(4);
        let Some(resident) = self.blocks[block as usize].as_mut() else {
            return Err("its block does not run".into());
        };
        if op == Mbarrier::Init {
            return initialise(resident, offset, operand);
        }
        if op == Mbarrier::Invalidate {
            let known = resident.mbarriers.remove(&offset);
            return known.map(|_| 0).ok_or_else(|| "it was never initialised".into());
        }
        let phase = resident
            .mbarriers
            .get_mut(&offset)
            .ok_or("the mbarrier was never initialised")?;
        operate(phase, op, operand, hesitate)
    }

    /// Bytes came for an mbarrier.
    pub(crate) fn complete_bytes(&mut self, block: u32, offset: u32, bytes: u32) -> Result<(), Wrong> {
        let done = self.mbarrier_of_lane(block, offset, Mbarrier::CompleteTx, u64::from(bytes));
        done.map(|_| ()).map_err(|text| wrong(Kind::Mbarrier, text))
    }
}

fn initialise(block: &mut super::launch::Block, offset: u32, count: u64) -> Result<u64, String> {
    let count = count as i64;
    if !(1..=LIMIT).contains(&count) {
        return Err(format!(
            "it is initialised with a count of {count}, outside 1 .. 2^20 - 1"
        ));
    }
    if block.mbarriers.insert(offset, Phase::new(count)).is_some() {
        return Err("it is initialised while it is one already".into());
    }
    Ok(0)
}

fn operate(phase: &mut Phase, op: Mbarrier, operand: u64, hesitate: bool) -> Result<u64, String> {
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
                phase.expect(bytes)?;
            }
            phase.arrive(if count_given && !expect { bytes } else { 1 }, drop)?;
            if phase.advance() && no_complete {
                return Err("an arrival with .noComplete completes the phase".into());
            }
            Ok(state)
        }
        Mbarrier::ExpectTx => phase.expect(bytes).map(|()| 0),
        Mbarrier::CompleteTx => {
            phase.expect(-bytes)?;
            phase.advance();
            Ok(0)
        }
        Mbarrier::TestState { may_wait } => {
            let of = operand >> 20;
            if of != phase.done && of + 1 != phase.done {
                return Err(format!("the state of phase {of} is tested in phase {}", phase.done));
            }
            Ok(u64::from(of != phase.done && !(may_wait && hesitate)))
        }
        Mbarrier::TestParity { may_wait } => {
            let complete = phase.done & 1 != operand & 1;
            Ok(u64::from(complete && !(may_wait && hesitate)))
        }
        Mbarrier::Init | Mbarrier::Invalidate | Mbarrier::PendingCount => Ok(0),
    }
}
