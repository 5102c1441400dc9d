//! Asynchronous operations and mbarriers: operands are gathered, memory does the rest.

use super::Machine;
use super::slice::Flow;
use super::transfer::{access, fill};
use super::warp::{Group, Wait, Warp};
use crate::fault::Fault;
use crate::memory::access::Lanes;
use crate::memory::{AsyncOp, CopyAsync, Done, Mbarrier};
use crate::ops::File;
use crate::program::{Action, Address, AsyncStart, Inst, MbarrierOp, Target};

/// Where an instruction is executed: frame, place, lanes.
type Here = (usize, u32, u32);

impl Machine<'_> {
    /// An operation on an mbarrier.
    pub fn mbarrier(&mut self, warp: &mut Warp, at: usize, mask: u32, op: &MbarrierOp) -> Result<Flow, Box<Fault>> {
        let Group { pc, frame, .. } = warp.groups[at];
        let addresses = self.addresses(warp, frame, pc, mask, &op.at.address)?;
        let operand = match &op.operand {
            Some(operand) => self.operand(warp, frame, pc, mask, operand)?,
            None => [0; 32],
        };
        let request = access(warp, mask, &op.at, &addresses, pc);
        let mut out = [0; 32];
        let done = match op.of_copies {
            Some(no_increment) => self.memory.cp_async_arrive(&request, no_increment),
            None => self.memory.mbarrier(&request, op.op, &operand, &mut out),
        };
        done.map_err(|wrong| self.explain(wrong, warp, pc))?;
        let tests = matches!(
            op.op,
            Mbarrier::TestState { .. } | Mbarrier::TestParity { .. } | Mbarrier::PendingCount
        );
        if !tests {
            self.idle = 0;
        }
        if let Some(target) = &op.result {
            let regs = &mut warp.frames[frame].regs;
            match target.file {
                File::Predicate => {
                    let bits = (0..32).fold(0, |bits, lane| bits | ((out[lane] & 1) as u32) << lane);
                    regs.put_predicate(target.register, bits, mask, u32::MAX);
                }
                _ => fill(regs, &op.at, target, &out, u32::MAX, mask),
            }
        }
        // A test that says no is asked again: others go first.
        let no = tests && out[mask.trailing_zeros() as usize] == 0;
        Ok(if no { Flow::Yield } else { Flow::Next })
    }

    /// Starts an asynchronous operation.
    pub fn start_async(
        &mut self,
        warp: &mut Warp,
        at: usize,
        mask: u32,
        start: &AsyncStart,
    ) -> Result<Flow, Box<Fault>> {
        let Group { pc, frame, .. } = warp.groups[at];
        let here = (frame, pc, mask);
        match start {
            AsyncStart::Copy {
                to,
                from,
                bytes,
                read,
                ignore,
            } => {
                self.start_copy(warp, here, (to, from), (*bytes, read.as_ref(), *ignore))?;
            }
            AsyncStart::Bulk { .. } => self.start_bulk(warp, here, start)?,
            AsyncStart::Store { .. } => self.start_store(warp, here, start)?,
        }
        self.idle = 0;
        Ok(Flow::Next)
    }

    fn start_copy(
        &mut self,
        warp: &Warp,
        (frame, pc, mask): Here,
        (to, from): (&Address, &Address),
        (bytes, read, ignore): (u32, Option<&Target>, Option<u32>),
    ) -> Result<(), Box<Fault>> {
        let to = self.addresses(warp, frame, pc, mask, to)?;
        let from = self.addresses(warp, frame, pc, mask, from)?;
        let mut taken = match read {
            Some(read) => self.operand(warp, frame, pc, mask, read)?,
            None => [u64::from(bytes); 32],
        };
        if let Some(predicate) = ignore {
            let regs = &warp.frames[frame].regs;
            self.need_written(warp, pc, mask, regs.predicate_valid[predicate as usize], "a predicate")?;
            let bits = regs.predicates[predicate as usize];
            (0..32)
                .filter(|lane| bits >> lane & 1 != 0)
                .for_each(|lane| taken[lane] = 0);
        }
        let partial = (read.is_some() || ignore.is_some()).then_some(&taken);
        let op = AsyncOp::Copy {
            to: &to,
            from: &from,
            bytes,
            read: partial,
        };
        self.start(warp, pc, mask, op)
    }

    fn start_bulk(&mut self, warp: &Warp, (frame, pc, mask): Here, start: &AsyncStart) -> Result<(), Box<Fault>> {
        let AsyncStart::Bulk {
            to,
            from,
            bytes,
            mbarrier,
            multicast,
            reduce,
        } = start
        else {
            return Ok(());
        };
        let destination = self.addresses(warp, frame, pc, mask, &to.1)?;
        let source = self.addresses(warp, frame, pc, mask, &from.1)?;
        let bytes = self.operand(warp, frame, pc, mask, bytes)?;
        let barrier = self.maybe_address(warp, (frame, pc, mask), mbarrier.as_ref())?;
        let ranks = match multicast {
            Some(ranks) => Some(self.operand(warp, frame, pc, mask, ranks)?),
            None => None,
        };
        let op = AsyncOp::Bulk {
            to: (to.0, &destination),
            from: (from.0, &source),
            bytes: &bytes,
            done: barrier.as_ref().map_or(Done::Group, Done::Mbarrier),
            multicast: ranks.as_ref(),
            reduce: *reduce,
        };
        self.start(warp, pc, mask, op)
    }

    fn maybe_address(
        &self,
        warp: &Warp,
        (frame, pc, mask): Here,
        at: Option<&Address>,
    ) -> Result<Option<Lanes<u64>>, Box<Fault>> {
        at.map(|at| self.addresses(warp, frame, pc, mask, at)).transpose()
    }

    fn start_store(&mut self, warp: &Warp, (frame, pc, mask): Here, start: &AsyncStart) -> Result<(), Box<Fault>> {
        let AsyncStart::Store {
            to,
            values,
            bytes,
            mbarrier,
            reduce,
        } = start
        else {
            return Ok(());
        };
        let to = self.addresses(warp, frame, pc, mask, to)?;
        let mbarrier = self.addresses(warp, frame, pc, mask, mbarrier)?;
        let read = |value| self.operand(warp, frame, pc, mask, value);
        let rows: Vec<Lanes<u64>> = values.iter().map(read).collect::<Result<_, _>>()?;
        let op = match (reduce, rows.first()) {
            (Some(op), Some(value)) => AsyncOp::Reduce {
                to: &to,
                value,
                bytes: *bytes,
                op: *op,
                mbarrier: &mbarrier,
            },
            _ => AsyncOp::Store {
                to: &to,
                values: &rows,
                bytes: *bytes,
                mbarrier: &mbarrier,
            },
        };
        self.start(warp, pc, mask, op)
    }

    fn start(&mut self, warp: &Warp, pc: u32, mask: u32, op: AsyncOp<'_>) -> Result<(), Box<Fault>> {
        let request = CopyAsync {
            warp: warp.id,
            lanes: mask,
            at: pc,
            op,
        };
        let done = self.memory.copy_async(&request);
        done.map_err(|wrong| self.explain(wrong, warp, pc))
    }

    /// Ends a group of copies, or waits for groups.
    pub fn async_group(&mut self, warp: &mut Warp, inst: &Inst, mask: u32) -> Result<Flow, Box<Fault>> {
        let done = match inst.action {
            Action::Commit { bulk } => {
                match bulk {
                    true => self.memory.commit_bulk_group(warp.id, mask),
                    false => self.memory.commit_group(warp.id, mask),
                }
                true
            }
            Action::WaitGroup { most, bulk: true, read } => {
                self.memory.bulk_groups_done(warp.id, mask, most.unwrap_or(0), read)
            }
            Action::WaitGroup { most, .. } => self.memory.groups_done(warp.id, mask, most),
            _ => true,
        };
        Ok(if done { Flow::Next } else { Flow::Wait(Wait::Poll) })
    }
}
