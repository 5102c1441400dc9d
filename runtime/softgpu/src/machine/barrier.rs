//! Barriers of a block: `bar.sync`, `bar.arrive`, `bar.red`.

use super::Machine;
use super::slice::Flow;
use super::warp::{Group, Wait, Warp};
use crate::fault::{Fault, Kind};
use crate::memory::place::each;
use crate::program::{Barrier, BarrierKind, Inst};

/// A barrier that some have reached.
#[derive(Clone, Debug, Default)]
pub struct BlockBarrier {
    /// (warp, lanes) of those that arrived.
    pub arrived: Vec<(u32, u32)>,
    /// (warp, lanes) of those that wait.
    pub waiting: Vec<(u32, u32)>,
    /// Threads that arrived; a whole warp counts as 32.
    pub count: u32,
    /// Threads that are expected.
    pub expected: u32,
    /// Where the first one is, for barriers of the whole block that all must reach at one place.
    place: Option<u32>,
    /// Predicates so far: how many are true, and of how many.
    votes: (u32, u32),
    /// Where results go.
    results: Vec<Pending>,
}

/// A result that is known when the barrier is complete.
#[derive(Clone, Copy, Debug)]
struct Pending {
    warp: u32,
    frame: usize,
    lanes: u32,
    register: u32,
    kind: BarrierKind,
}

impl Machine<'_> {
    /// Lanes reach a barrier.
    pub fn barrier(
        &mut self,
        warp: &mut Warp,
        at: usize,
        inst: &Inst,
        mask: u32,
        barrier: &Barrier,
    ) -> Result<Flow, Box<Fault>> {
        let pc = warp.groups[at].pc;
        if barrier.aligned && mask != warp.lanes {
            if warp.exited != 0 {
                return Err(self.exited_at_barrier(warp, pc, mask, warp.exited.count_ones()));
            }
            return Ok(Flow::Wait(Wait::Lanes(warp.lanes)));
        }
        let (number, expected) = self.barrier_operands(warp, at, inst, mask, barrier)?;
        let exited = self.blocks[warp.slot].as_ref().map_or(0, |block| block.exited);
        if exited > 0 && !barrier.counted {
            return Err(self.exited_at_barrier(warp, pc, mask, exited));
        }
        self.arrive(warp, at, inst, mask, (barrier, number, expected))?;
        let Some(block) = &mut self.blocks[warp.slot] else {
            return Ok(Flow::Next);
        };
        if block.barriers[number as usize].count == expected {
            self.complete(warp, number);
            return Ok(Flow::Next);
        }
        if barrier.kind == BarrierKind::Arrive {
            return Ok(Flow::Next);
        }
        Ok(Flow::Join(Wait::Barrier(number)))
    }

    /// The barrier's number and the threads that it expects.
    fn barrier_operands(
        &self,
        warp: &Warp,
        at: usize,
        inst: &Inst,
        mask: u32,
        barrier: &Barrier,
    ) -> Result<(u32, u32), Box<Fault>> {
        let Group { pc, frame, .. } = warp.groups[at];
        let number = self.uniform(warp, frame, pc, mask, inst.args.a)?;
        if number > 15 {
            let message = format!("barrier {number}; there are 16");
            return Err(self.fault(Kind::BarrierDivergence, message, warp, pc, mask.trailing_zeros()));
        }
        if !barrier.counted {
            return Ok((number, 32 * self.plan.warps));
        }
        let count = self.uniform(warp, frame, pc, mask, inst.args.b)?;
        if count == 0 || !count.is_multiple_of(32) || count > 32 * self.plan.warps {
            let message = format!(
                "barrier {number} of {count} threads, in a block of {}",
                self.plan.threads
            );
            return Err(self.fault(Kind::BarrierDivergence, message, warp, pc, mask.trailing_zeros()));
        }
        Ok((number, count))
    }

    /// A value that must be the same in all lanes.
    fn uniform(&self, warp: &Warp, frame: usize, pc: u32, mask: u32, register: u32) -> Result<u32, Box<Fault>> {
        let regs = &warp.frames[frame].regs;
        self.need_written(warp, pc, mask, regs.valid::<u32>(register), "the number of a barrier")?;
        let values = regs.get::<u32>(register);
        let first = values[mask.trailing_zeros() as usize];
        match each(mask).find(|lane| values[*lane] != first) {
            None => Ok(first),
            Some(lane) => {
                let message = format!("lanes name different barriers: {first} and {}", values[lane]);
                Err(self.fault(Kind::BarrierDivergence, message, warp, pc, lane as u32))
            }
        }
    }

    fn arrive(
        &mut self,
        warp: &Warp,
        at: usize,
        inst: &Inst,
        mask: u32,
        (barrier, number, expected): (&Barrier, u32, u32),
    ) -> Result<(), Box<Fault>> {
        let Group { pc, frame, .. } = warp.groups[at];
        let regs = &warp.frames[frame].regs;
        let reduces = matches!(barrier.kind, BarrierKind::Count | BarrierKind::And | BarrierKind::Or);
        if reduces {
            let valid = regs.predicate_valid[inst.args.c as usize];
            self.need_written(warp, pc, mask, valid, "the predicate of a barrier")?;
        }
        let Some(block) = &mut self.blocks[warp.slot] else {
            return Ok(());
        };
        let state = &mut block.barriers[number as usize];
        let whole_block = !barrier.counted && barrier.aligned;
        if let Some(message) = state.disagreement(number, expected, pc, whole_block) {
            let other = state.place.map(|other| self.place_text(other)).unwrap_or_default();
            return Err(self.fault(
                Kind::BarrierDivergence,
                message + &other,
                warp,
                pc,
                mask.trailing_zeros(),
            ));
        }
        let threads = if mask == warp.lanes { 32 } else { mask.count_ones() };
        if state.count + threads > expected {
            let message = format!(
                "{} threads reach barrier {number}, which expects {expected}",
                state.count + threads
            );
            return Err(self.fault(Kind::BarrierDivergence, message, warp, pc, mask.trailing_zeros()));
        }
        if let Some(cost) = &mut self.cost {
            cost.arrive(warp.id.block, warp.id.warp, number);
        }
        state.count += threads;
        state.arrived.push((warp.id.warp, mask));
        if barrier.kind != BarrierKind::Arrive {
            state.waiting.push((warp.id.warp, mask));
        }
        if reduces {
            let yes = (regs.predicates[inst.args.c as usize] & mask).count_ones();
            state.votes = (state.votes.0 + yes, state.votes.1 + mask.count_ones());
            state.results.push(Pending {
                warp: warp.id.warp,
                frame,
                lanes: mask,
                register: inst.args.d,
                kind: barrier.kind,
            });
        }
        Ok(())
    }

    /// Lets everybody go who waits at a barrier.
    fn complete(&mut self, current: &mut Warp, number: u32) {
        self.idle = 0;
        let slot = current.slot;
        let Some(block) = &mut self.blocks[slot] else {
            return;
        };
        let state = std::mem::take(&mut block.barriers[number as usize]);
        self.memory.barrier(block.index, &state.arrived, &state.waiting);
        if let Some(cost) = &mut self.cost {
            cost.barrier(block.index, number, &state.waiting);
        }
        for (index, _) in &state.waiting {
            let warp = match block.warps[*index as usize].as_deref_mut() {
                Some(warp) => warp,
                None => &mut *current,
            };
            for pending in state.results.iter().filter(|pending| pending.warp == *index) {
                state.answer(warp, pending);
            }
            let waiting = warp
                .groups
                .iter_mut()
                .filter(|group| group.wait == Wait::Barrier(number));
            waiting.for_each(|group| group.wait = Wait::No);
            if !warp.ready {
                warp.ready = true;
                self.ready.push((slot, *index));
            }
        }
    }

    #[cold]
    fn exited_at_barrier(&self, warp: &Warp, pc: u32, mask: u32, exited: u32) -> Box<Fault> {
        let message = format!("a barrier of the whole block, {exited} of whose threads have exited");
        self.fault(Kind::BarrierDivergence, message, warp, pc, mask.trailing_zeros())
    }
}

impl BlockBarrier {
    /// Notes the first arrival, or says how a later one disagrees with it.
    fn disagreement(&mut self, number: u32, expected: u32, pc: u32, whole_block: bool) -> Option<String> {
        if self.count == 0 {
            self.expected = expected;
            self.place = whole_block.then_some(pc);
            return None;
        }
        if self.expected != expected {
            let first = self.expected;
            return Some(format!(
                "barrier {number} of {expected} threads here, of {first} for those that came first"
            ));
        }
        let elsewhere = whole_block && self.place.is_some_and(|place| place != pc);
        elsewhere.then(|| "threads of the block are at different barriers: others wait at ".to_owned())
    }

    /// Writes the result of a reduction.
    fn answer(&self, warp: &mut Warp, pending: &Pending) {
        let (yes, all) = self.votes;
        let regs = &mut warp.frames[pending.frame].regs;
        let holds = match pending.kind {
            BarrierKind::And => yes == all,
            _ => yes > 0,
        };
        match pending.kind {
            BarrierKind::Count => regs.put(pending.register, &[yes; 32], pending.lanes, u32::MAX),
            _ => {
                let bits = if holds { u32::MAX } else { 0 };
                regs.put_predicate(pending.register, bits, pending.lanes, u32::MAX);
            }
        }
    }
}
