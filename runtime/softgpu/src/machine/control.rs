//! Calls, returns, exits and branches by a table.

use super::Machine;
use super::slice::Flow;
use super::warp::{Frame, Group, Wait, Warp};
use crate::fault::{Fault, Kind};
use crate::memory::place::each;
use crate::program::{Action, CallSite, Inst};

/// The deepest nesting of calls.
const DEPTH: u32 = 64;

impl Machine<'_> {
    /// Each lane goes where its index says; an index beyond the table is undefined behaviour.
    pub fn jump_table(
        &mut self,
        warp: &mut Warp,
        at: usize,
        inst: &Inst,
        mask: u32,
        table: &[u32],
    ) -> Result<Flow, Box<Fault>> {
        let Group { lanes, pc, frame, .. } = warp.groups[at];
        let regs = &warp.frames[frame].regs;
        self.need_written(warp, pc, mask, regs.valid::<u32>(inst.args.a), "the index of a branch")?;
        let index = *regs.get::<u32>(inst.args.a);
        let beyond = each(mask).find(|lane| index[*lane] as usize >= table.len());
        if let Some(lane) = beyond {
            let message = format!("the index of a branch is {}, of {} targets", index[lane], table.len());
            return Err(self.fault(Kind::Trap, message, warp, pc, lane as u32));
        }
        warp.groups[at].lanes = lanes & !mask;
        warp.groups[at].pc = pc + 1;
        for (number, target) in table.iter().enumerate() {
            let lanes = each(mask)
                .filter(|lane| index[*lane] as usize == number)
                .fold(0, |lanes, lane| lanes | 1 << lane);
            warp.groups.push(Group {
                lanes,
                pc: *target,
                frame,
                wait: Wait::No,
            });
        }
        warp.groups.retain(|group| group.lanes != 0);
        Ok(Flow::Switch)
    }

    /// Enters a function. Lanes that are in the same call already share its frame.
    pub fn enter(&mut self, warp: &mut Warp, at: usize, mask: u32, site: &CallSite) -> Result<Flow, Box<Fault>> {
        let Group { lanes, pc, frame, .. } = warp.groups[at];
        let Some(function) = site.function else {
            return Ok(Flow::Next);
        };
        let callee = self.frame_of_call(warp, frame, pc, function)?;
        self.prepare(warp, callee, mask);
        copy_words(
            warp,
            (frame, &site.arguments),
            (callee, &self.program.functions[function as usize].params),
            mask,
        );
        warp.groups[at].lanes = lanes & !mask;
        warp.groups[at].pc = pc + 1;
        let start = self.program.functions[function as usize].start;
        warp.groups.push(Group {
            lanes: mask,
            pc: start,
            frame: callee,
            wait: Wait::No,
        });
        warp.groups.retain(|group| group.lanes != 0);
        Ok(Flow::Switch)
    }

    /// The frame of a call from here: one that is there, or a new one.
    fn frame_of_call(&mut self, warp: &mut Warp, caller: usize, pc: u32, function: u32) -> Result<usize, Box<Fault>> {
        let same = |frame: &Frame| frame.parent == Some(caller) && frame.return_to == pc + 1;
        if let Some(known) = warp.frames.iter().position(same) {
            return Ok(known);
        }
        let (depth, local) = {
            let from = &warp.frames[caller];
            let bytes = self.program.functions[from.function as usize]
                .local
                .next_multiple_of(16);
            (from.depth + 1, from.local + u64::from(bytes))
        };
        if depth > DEPTH {
            let message = format!("calls are nested more than {DEPTH} deep");
            return Err(self.fault(Kind::Trap, message, warp, pc, 0));
        }
        let [predicates, words, doubles] = self.program.functions[function as usize].registers;
        let mut regs = crate::ops::Regs::new(predicates, words, doubles);
        regs.perturb = warp.frames[caller].regs.perturb;
        warp.frames.push(Frame {
            regs,
            function,
            parent: Some(caller),
            return_to: pc + 1,
            depth,
            local,
        });
        Ok(warp.frames.len() - 1)
    }

    /// The lanes begin with nothing written but constants.
    fn prepare(&self, warp: &mut Warp, callee: usize, mask: u32) {
        let rank = warp.id.block % self.plan.cluster_blocks;
        let (block, index) = (warp.id.block, warp.id.warp);
        let rank = self.blocks[warp.slot].as_ref().map_or(rank, |block| block.rank);
        let frame = &mut warp.frames[callee];
        frame.regs.forget(mask);
        let function = &self.program.functions[frame.function as usize];
        self.fill(&mut frame.regs, function, (block, rank), index, frame.local);
    }

    /// Back to the caller, with the results.
    pub fn leave_function(&mut self, warp: &mut Warp, at: usize, mask: u32) -> Flow {
        let Group { lanes, pc, frame, .. } = warp.groups[at];
        let Frame {
            parent,
            return_to,
            function,
            ..
        } = warp.frames[frame];
        let Some(caller) = parent else {
            return self.exit(warp, at, mask);
        };
        let program = self.program;
        if let Action::Call(site) = &program.code[return_to as usize - 1].action {
            copy_words(
                warp,
                (frame, &program.functions[function as usize].results),
                (caller, &site.results),
                mask,
            );
        }
        warp.groups[at].lanes = lanes & !mask;
        warp.groups[at].pc = pc + 1;
        warp.groups.push(Group {
            lanes: mask,
            pc: return_to,
            frame: caller,
            wait: Wait::No,
        });
        warp.groups.retain(|group| group.lanes != 0);
        Flow::Switch
    }

    /// Lanes are done.
    pub fn exit(&mut self, warp: &mut Warp, at: usize, mask: u32) -> Flow {
        warp.exited |= mask;
        warp.groups[at].lanes &= !mask;
        warp.groups[at].pc += 1;
        warp.groups.retain(|group| group.lanes != 0);
        warp.retry();
        self.memory.exit(warp.id, mask);
        if let Some(block) = &mut self.blocks[warp.slot] {
            block.exited += mask.count_ones();
        }
        self.cluster_exit(warp, mask);
        Flow::Switch
    }

    /// What only looks: clocks and the mask of active lanes.
    pub fn observe(&mut self, warp: &mut Warp, at: usize, inst: &Inst, mask: u32) -> Flow {
        let regs = &mut warp.frames[warp.groups[at].frame].regs;
        let time = self.report.warp_instructions;
        match inst.action {
            Action::Clock { wide: true } => regs.put(inst.args.d, &[time; 32], mask, u32::MAX),
            Action::Clock { wide: false } => regs.put(inst.args.d, &[time as u32; 32], mask, u32::MAX),
            _ => regs.put(inst.args.d, &[mask; 32], mask, u32::MAX),
        }
        Flow::Next
    }
}

/// Copies words from one frame to another.
fn copy_words(warp: &mut Warp, (from, words): (usize, &[u32]), (to, into): (usize, &[u32]), mask: u32) {
    for (word, into) in words.iter().zip(into) {
        let regs = &warp.frames[from].regs;
        let (values, valid) = (*regs.get::<u32>(*word), regs.valid::<u32>(*word));
        warp.frames[to].regs.put(*into, &values, mask, valid);
    }
}
