//! The inner loop: a group of lanes runs until it meets others, waits, ends, or its slice is over.

use super::Machine;
use super::transfer::Here;
use super::warp::{Group, Wait, Warp};
use crate::fault::{Fault, Kind};
use crate::ops::Regs;
use crate::program::{Action, Inst};

/// What happens after an instruction that is not pure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// The lanes go on behind it.
    Next,
    /// The lanes that execute it wait before it.
    Wait(Wait),
    /// The lanes that execute it have been counted and wait; released, they go on behind it.
    Join(Wait),
    /// The groups have been changed: look again.
    Switch,
    /// The lanes go on behind it, but others run first.
    Yield,
}

/// One time in so many, a warp with several groups runs another than the lowest: a lane may spin on one.
const ROTATE: u32 = 8;

/// After so many strong loads a warp lets others go first: it polls, and what it waits for is theirs to do.
pub const LOOKS: u32 = 2;

impl Machine<'_> {
    /// Runs a warp for at most so many instructions.
    pub fn run_warp(&mut self, warp: &mut Warp, quota: u32) -> Result<(), Box<Fault>> {
        let mut left = quota;
        let mut rotate = warp.groups.len() > 1 && self.random.one_in(ROTATE);
        while left > 0 {
            if warp.groups.len() > 1 {
                warp.merge();
            }
            let Some(at) = self.choose(warp, std::mem::take(&mut rotate)) else {
                return Ok(());
            };
            let limit = if warp.groups.len() == 1 {
                u32::MAX
            } else {
                warp.next_meeting(at)
            };
            warp.groups[at].wait = Wait::No;
            if self.run_group(warp, at, limit, &mut left)? {
                return Ok(());
            }
        }
        Ok(())
    }

    fn choose(&mut self, warp: &Warp, rotate: bool) -> Option<usize> {
        let runnable = warp.runnable();
        if rotate && runnable > 1 {
            let nth = self.random.below(runnable as u32) as usize;
            let runs = |at: &usize| matches!(warp.groups[*at].wait, Wait::No | Wait::Poll);
            return (0..warp.groups.len()).filter(runs).nth(nth);
        }
        warp.lowest()
    }

    /// Runs a group; true where the slice is over before its quota.
    fn run_group(&mut self, warp: &mut Warp, at: usize, limit: u32, left: &mut u32) -> Result<bool, Box<Fault>> {
        let before = *left;
        let lanes = warp.groups[at].lanes;
        let result = match self.cost {
            None => self.run_lanes::<false>(warp, at, limit, left),
            Some(_) => self.run_lanes::<true>(warp, at, limit, left),
        };
        let executed = u64::from(before - *left);
        self.idle += executed;
        self.report.warp_instructions += executed;
        self.report.thread_instructions += executed * u64::from(lanes.count_ones());
        result
    }

    /// `COST`: whether a recorder is told of each instruction.
    fn run_lanes<const COST: bool>(
        &mut self,
        warp: &mut Warp,
        at: usize,
        limit: u32,
        left: &mut u32,
    ) -> Result<bool, Box<Fault>> {
        let program = self.program;
        let Group {
            lanes, mut pc, frame, ..
        } = warp.groups[at];
        let alone = warp.groups.len() == 1;
        while *left > 0 && pc != limit {
            let ahead = program.straight[pc as usize].min(*left).min(limit.wrapping_sub(pc));
            if !COST && ahead > 0 {
                self.compute(&mut warp.frames[frame].regs, lanes, pc, ahead);
                pc += ahead;
                *left -= ahead;
                continue;
            }
            let inst = &program.code[pc as usize];
            *left -= 1;
            self.report.hits[pc as usize] += 1;
            let mask = match inst.guard.get() {
                None => lanes,
                Some((register, negated)) => {
                    let regs = &warp.frames[frame].regs;
                    if regs.predicate_valid[register] & lanes != lanes {
                        return Err(self.unwritten_guard(warp, pc, lanes & !regs.predicate_valid[register]));
                    }
                    let bits = regs.predicates[register];
                    lanes & if negated { !bits } else { bits }
                }
            };
            if COST && mask != 0 {
                self.record(warp, frame, pc, mask);
            }
            match &inst.action {
                _ if mask == 0 => pc += 1,
                Action::Compute(run) => {
                    // SAFETY: `pick` chose a version that this machine can run.
                    unsafe { run(&mut warp.frames[frame].regs, &inst.args, mask) };
                    pc += 1;
                }
                Action::Load(transfer) => {
                    self.load(warp, Here { frame, pc, mask }, transfer)?;
                    pc += 1;
                    if self.looks > LOOKS {
                        warp.groups[at].pc = pc;
                        return Ok(true);
                    }
                }
                Action::Store(transfer) => {
                    self.store(warp, Here { frame, pc, mask }, transfer)?;
                    pc += 1;
                }
                Action::Jump(target) if mask == lanes => {
                    pc = *target;
                    if !alone {
                        break;
                    }
                }
                _ => {
                    warp.groups[at].pc = pc;
                    let flow = self.act(warp, at, inst, mask)?;
                    if COST {
                        self.record_done(warp, (frame, pc), mask, flow);
                    }
                    match flow {
                        Flow::Next => pc += 1,
                        flow => return Ok(leave(warp, at, mask, flow)),
                    }
                }
            }
        }
        warp.groups[at].pc = pc;
        Ok(false)
    }

    /// Instructions, one after another, that only compute.
    fn compute(&mut self, regs: &mut Regs, lanes: u32, pc: u32, count: u32) {
        let range = pc as usize..(pc + count) as usize;
        let hits = self.report.hits[range.clone()].iter_mut();
        for (inst, hits) in self.program.code[range].iter().zip(hits) {
            *hits += 1;
            if let Action::Compute(run) = inst.action {
                // SAFETY: `pick` chose a version that this machine can run.
                unsafe { run(regs, &inst.args, lanes) };
            }
        }
    }

    /// An instruction that is neither pure nor a plain access, for some lanes.
    fn act(&mut self, warp: &mut Warp, at: usize, inst: &Inst, mask: u32) -> Result<Flow, Box<Fault>> {
        let pc = warp.groups[at].pc;
        match &inst.action {
            Action::Jump(target) => Ok(split(warp, at, mask, *target)),
            Action::JumpTable(table) => self.jump_table(warp, at, inst, mask, table),
            Action::Call(site) => self.enter(warp, at, mask, site),
            Action::Return => Ok(self.leave_function(warp, at, mask)),
            Action::Exit => Ok(self.exit(warp, at, mask)),
            Action::Trap(message) => {
                Err(self.fault(Kind::Trap, (*message).to_owned(), warp, pc, mask.trailing_zeros()))
            }
            Action::Sleep => Ok(Flow::Yield),
            Action::Nothing | Action::Compute(_) | Action::Load(_) | Action::Store(_) => Ok(Flow::Next),
            Action::Clock { .. } | Action::ActiveMask => Ok(self.observe(warp, at, inst, mask)),
            Action::Atomic(atomic) => self.atomic(warp, at, mask, atomic),
            Action::WarpSync | Action::Shuffle(_) | Action::Vote(_) => self.lanes_together(warp, at, inst, mask),
            Action::Match { .. } | Action::Reduce(_) | Action::Elect => self.lanes_together(warp, at, inst, mask),
            Action::Barrier(barrier) => self.barrier(warp, at, inst, mask, barrier),
            Action::ClusterArrive { .. } | Action::ClusterWait { .. } => self.cluster_barrier(warp, at, inst, mask),
            Action::Fence(order, scope) => {
                self.memory.fence(warp.id, mask, *order, *scope);
                Ok(Flow::Next)
            }
            Action::MbarrierInitFence => {
                self.memory.fence_mbarrier_init(warp.id, mask);
                Ok(Flow::Next)
            }
            Action::ProxyFence => {
                self.memory.proxy_fence(warp.id, mask);
                Ok(Flow::Next)
            }
            Action::Mma(_) | Action::Matrix(_) | Action::Transpose => self.matrix(warp, at, inst, mask),
            Action::Mbarrier(op) => self.mbarrier(warp, at, mask, op),
            Action::Async(start) => self.start_async(warp, at, mask, start),
            Action::Commit { .. } | Action::WaitGroup { .. } => self.async_group(warp, inst, mask),
        }
    }
}

/// The lanes of `mask` go to `target`, the others on.
fn split(warp: &mut Warp, at: usize, mask: u32, target: u32) -> Flow {
    let Group { lanes, pc, frame, .. } = warp.groups[at];
    warp.groups[at].lanes = lanes & !mask;
    warp.groups[at].pc = pc + 1;
    warp.groups.push(Group {
        lanes: mask,
        pc: target,
        frame,
        wait: Wait::No,
    });
    Flow::Switch
}

/// Leaves the loop after an instruction; true where the slice is over.
fn leave(warp: &mut Warp, at: usize, mask: u32, flow: Flow) -> bool {
    let (wait, step) = match flow {
        Flow::Switch => return false,
        Flow::Next | Flow::Yield => {
            warp.groups[at].pc += 1;
            return flow == Flow::Yield;
        }
        Flow::Wait(wait) => (wait, 0),
        Flow::Join(wait) => (wait, 1),
    };
    let Group { lanes, pc, frame, .. } = warp.groups[at];
    let waits = Group {
        lanes: mask,
        pc: pc + step,
        frame,
        wait,
    };
    if mask == lanes {
        warp.groups[at] = waits;
    } else {
        warp.groups[at].lanes = lanes & !mask;
        warp.groups[at].pc = pc + 1;
        warp.groups.push(waits);
    }
    wait == Wait::Poll
}
