//! What the machine tells a [`Recorder`], where a launch is modelled: each instruction with its addresses, and which warp is
//! behind. Without a recorder nothing here is called.

use super::Machine;
use super::slice::Flow;
use super::warp::Warp;
use crate::cost::{Key, Recorder, Request, Shape, Signal, Who, place};
use crate::memory::access::{Atomic, Lanes, Order, Scope};
use crate::memory::place::each;
use crate::memory::{Mbarrier, Memory};
use crate::ops::{File, Regs};
use crate::program::{Action, Address, AsyncStart, AtomicTransfer, MbarrierOp, Transfer};
use crate::ptx::ast::Space;

impl Machine<'_> {
    /// The place among those that can run of the warp that is behind all others.
    pub fn behind(&self, recorder: &Recorder) -> usize {
        let clock = |(slot, warp): &(usize, u32)| {
            let block = self.blocks[*slot].as_ref().map_or(0, |block| block.index);
            recorder.clock(block, *warp)
        };
        let all = self.ready.iter().enumerate();
        all.min_by(|a, b| clock(a.1).total_cmp(&clock(b.1)))
            .map_or(0, |(at, _)| at)
    }

    /// What a recorder must know of the launch.
    pub fn cost_shape(&self) -> Shape {
        let plan = &self.plan;
        let each = self
            .device
            .blocks_a_processor(plan.threads, plan.shared, self.launch.registers);
        Shape {
            blocks: plan.blocks,
            warps: plan.warps,
            cluster: plan.cluster_blocks,
            blocks_a_processor: each,
            processors: self.device.processors,
            shared: plan.shared,
        }
    }

    /// An instruction is about to be executed by some lanes. What may have to wait first is recorded once it is done.
    pub fn record(&mut self, warp: &Warp, frame: usize, at: u32, mask: u32) {
        let Some(mut recorder) = self.cost.take() else { return };
        let who = who(warp, frame, at);
        let (inst, facts) = (&self.program.code[at as usize], &self.program.facts[at as usize]);
        let regs = &warp.frames[frame].regs;
        match &inst.action {
            Action::Load(t) => recorder.load(who, facts, &request(t, &addresses(regs, &t.address), mask)),
            Action::Store(t) => recorder.store(who, facts, &request(t, &addresses(regs, &t.address), mask)),
            Action::Matrix(m) if mask == u32::MAX => {
                let rows = Request {
                    space: m.space,
                    addresses: &addresses(regs, &m.address),
                    lanes: u32::MAX >> (32 - 8 * m.registers.len() as u32),
                    bytes: 16,
                    elements: 1,
                    order: Order::Weak,
                };
                match m.store {
                    true => recorder.store(who, facts, &rows),
                    false => recorder.load(who, facts, &rows),
                }
            }
            Action::Mbarrier(op) if !tests(op) => {
                let to = signals(
                    self.memory,
                    who,
                    &addresses(regs, &op.at.address),
                    mask,
                    self.plan.cluster_blocks,
                );
                recorder.signal(who, facts, &to);
            }
            Action::Async(start) => self.record_async(&mut recorder, who, regs, (start, mask)),
            Action::Fence(_, scope) => recorder.fence(who, *scope >= Scope::Gpu),
            Action::Commit { .. } => recorder.commit(who),
            action if waits_first(action) => {}
            Action::Atomic(_) | Action::Nothing => {}
            _ => recorder.issue(who, facts),
        }
        self.cost = Some(recorder);
    }

    /// Such an instruction is done, unless it waits.
    pub fn record_done(&mut self, warp: &Warp, at: (usize, u32), mask: u32, flow: Flow) {
        let (frame, pc) = at;
        let waits = matches!(flow, Flow::Wait(_));
        let Some(mut recorder) = self.cost.take_if(|_| !waits) else {
            return;
        };
        let who = who(warp, frame, pc);
        let facts = &self.program.facts[pc as usize];
        match &self.program.code[pc as usize].action {
            Action::Mbarrier(op) if tests(op) => {
                let regs = &warp.frames[frame].regs;
                let all = signals(
                    self.memory,
                    who,
                    &addresses(regs, &op.at.address),
                    mask,
                    self.plan.cluster_blocks,
                );
                all.first()
                    .iter()
                    .for_each(|signal| recorder.test(who, facts, **signal, flow == Flow::Next));
            }
            Action::ClusterWait { .. } => recorder.cluster_wait(who.block, who.warp),
            Action::WaitGroup { most, bulk: false, .. } => recorder.wait_group(who, *most),
            Action::Matrix(_) => {}
            action if waits_first(action) => recorder.issue(who, facts),
            _ => {}
        }
        self.cost = Some(recorder);
    }

    /// An atomic operation of a warp, and whether it changed memory.
    pub fn record_atomic(&mut self, warp: &Warp, at: usize, atomic: &AtomicTransfer, all: (&Lanes<u64>, u32, bool)) {
        let Some(mut recorder) = self.cost.take() else { return };
        let (addresses, mask, changed) = all;
        let group = &warp.groups[at];
        let who = who(warp, group.frame, group.pc);
        let compares = matches!(atomic.op, Atomic::CompareAndSwap | Atomic::Exchange);
        let facts = &self.program.facts[group.pc as usize];
        recorder.atomic(who, facts, &request(&atomic.at, addresses, mask), (compares, changed));
        self.cost = Some(recorder);
    }

    fn record_async(&self, recorder: &mut Recorder, who: Who, regs: &Regs, (start, mask): (&AsyncStart, u32)) {
        let facts = &self.program.facts[who.at as usize];
        let cluster = self.plan.cluster_blocks;
        let on = |at: &Address| signals(self.memory, who, &addresses(regs, at), mask, cluster);
        match start {
            AsyncStart::Copy { from, bytes, .. } => recorder.copy(who, facts, &addresses(regs, from), mask, *bytes),
            AsyncStart::Store {
                values,
                bytes,
                mbarrier,
                ..
            } => {
                let sent = u64::from(mask.count_ones() * bytes) * values.len() as u64;
                recorder.send(who, facts, sent, &on(mbarrier), &[]);
            }
            AsyncStart::Bulk {
                from, bytes, mbarrier, ..
            } => {
                let mut lengths = [0; 32];
                super::transfer::read(regs, bytes, &mut lengths);
                let sources = addresses(regs, &from.1);
                let spans: Vec<(u64, u64)> = each(mask).map(|lane| (sources[lane], lengths[lane])).collect();
                let memory = if from.0 == Space::Global { spans.as_slice() } else { &[] };
                let to = mbarrier.as_ref().map(on).unwrap_or_default();
                recorder.send(who, facts, each(mask).map(|lane| lengths[lane]).sum(), &to, memory);
            }
        }
    }
}

fn who(warp: &Warp, frame: usize, at: u32) -> Who {
    Who {
        block: warp.id.block,
        warp: warp.id.warp,
        frame,
        at,
    }
}

/// Whether an instruction may have to wait for lanes, warps or copies before it is done.
fn waits_first(action: &Action) -> bool {
    matches!(
        action,
        Action::WarpSync
            | Action::Shuffle(_)
            | Action::Vote(_)
            | Action::Match { .. }
            | Action::Reduce(_)
            | Action::Elect
            | Action::Barrier(_)
            | Action::ClusterArrive { .. }
            | Action::ClusterWait { .. }
            | Action::WaitGroup { .. }
            | Action::Mma(_)
            | Action::Matrix(_)
            | Action::Transpose
            | Action::Mbarrier(_)
    )
}

fn tests(op: &MbarrierOp) -> bool {
    matches!(
        op.op,
        Mbarrier::TestState { .. } | Mbarrier::TestParity { .. } | Mbarrier::PendingCount
    )
}

fn request<'t>(transfer: &Transfer, addresses: &'t Lanes<u64>, lanes: u32) -> Request<'t> {
    Request {
        space: transfer.space,
        addresses,
        lanes,
        bytes: transfer.bytes,
        elements: transfer.elements,
        order: transfer.order,
    }
}

/// The addresses, whatever was not written among them: an error comes from the access itself.
fn addresses(regs: &Regs, at: &Address) -> Lanes<u64> {
    match at.base {
        None => [at.offset as u64; 32],
        Some((File::Double, register)) => regs
            .get::<u64>(register)
            .map(|base| base.wrapping_add(at.offset as u64)),
        Some((_, register)) => regs
            .get::<u32>(register)
            .map(|base| u64::from(base.wrapping_add(at.offset as u32))),
    }
}

/// The mbarriers at these addresses, each once, with the phase that each is in.
fn signals(memory: &Memory, who: Who, addresses: &Lanes<u64>, mask: u32, cluster: u32) -> Vec<Signal> {
    // The text may name the space or leave it out; addresses of the two do not overlap.
    let mut keys: Vec<Key> = each(mask)
        .filter_map(|lane| {
            let space = if addresses[lane] < crate::memory::access::SHARED_BASE {
                Space::Shared
            } else {
                Space::Generic
            };
            place(space, addresses[lane], who.block, cluster)
        })
        .collect();
    keys.sort_unstable();
    keys.dedup();
    let phase = |key: &Key| match key {
        Key::Shared { block, offset } => memory.phases_done(*block, *offset).unwrap_or(0),
        Key::Global(_) => 0,
    };
    keys.iter().map(|key| (*key, phase(key))).collect()
}
