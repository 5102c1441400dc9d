//! What lanes of a warp do together: shuffles, votes, matches, reductions. Each waits for the lanes in its mask.

use super::Machine;
use super::slice::Flow;
use super::warp::{Group, Wait, Warp};
use crate::fault::{Fault, Kind};
use crate::memory::access::Lanes;
use crate::memory::place::each;
use crate::memory::wide;
use crate::ops::{Args, Regs};
use crate::program::{Action, Inst, Reduce, Shuffle, Vote};

impl Machine<'_> {
    /// An instruction with a mask of lanes: done once all of them are here. Segments of a warp may name a mask each.
    pub fn lanes_together(&mut self, warp: &mut Warp, at: usize, inst: &Inst, mask: u32) -> Result<Flow, Box<Fault>> {
        let Group { pc, frame, .. } = warp.groups[at];
        let register = if matches!(inst.action, Action::Shuffle(_)) {
            inst.args.flags
        } else {
            inst.args.b
        };
        let regs = &warp.frames[frame].regs;
        self.need_written(warp, pc, mask, regs.valid::<u32>(register), "the mask of lanes")?;
        let masks = *regs.get::<u32>(register);
        let together = masks[mask.trailing_zeros() as usize];
        if wide::equal(&masks, together) & mask == mask {
            return self.segment(warp, at, inst, mask, together);
        }
        self.segments(warp, at, inst, mask, &masks)
    }

    /// Lanes that name different masks: the segments that are whole go on, the others wait.
    fn segments(
        &mut self,
        warp: &mut Warp,
        at: usize,
        inst: &Inst,
        mask: u32,
        masks: &Lanes<u32>,
    ) -> Result<Flow, Box<Fault>> {
        let (mut left, mut done, mut waits) = (mask, 0, Wait::No);
        while left != 0 {
            let together = masks[left.trailing_zeros() as usize];
            let segment = each(left)
                .filter(|lane| masks[*lane] == together)
                .fold(0, |lanes, lane| lanes | 1 << lane);
            left &= !segment;
            match self.segment(warp, at, inst, segment, together)? {
                Flow::Wait(wait) => waits = wait,
                _ => done |= segment,
            }
        }
        if done == mask {
            return Ok(Flow::Next);
        }
        if done == 0 {
            return Ok(Flow::Wait(waits));
        }
        let Group { lanes, pc, frame, .. } = warp.groups[at];
        let waiting = mask & !done;
        warp.groups[at] = Group {
            lanes: waiting,
            pc,
            frame,
            wait: waits,
        };
        warp.groups.push(Group {
            lanes: lanes & !waiting,
            pc: pc + 1,
            frame,
            wait: Wait::No,
        });
        Ok(Flow::Switch)
    }

    /// Lanes that name the same mask.
    fn segment(
        &mut self,
        warp: &mut Warp,
        at: usize,
        inst: &Inst,
        mask: u32,
        together: u32,
    ) -> Result<Flow, Box<Fault>> {
        let Group { pc, frame, .. } = warp.groups[at];
        self.need_named(warp, pc, mask, together)?;
        if matches!(inst.action, Action::WarpSync) {
            return Ok(self.warp_sync(warp, at, mask, together));
        }
        if together & warp.live() & !mask != 0 {
            return Ok(Flow::Wait(Wait::Lanes(together)));
        }
        let args = &inst.args;
        match &inst.action {
            Action::Shuffle(mode) => self.shuffle(warp, at, args, mask, *mode)?,
            Action::Vote(vote) => self.vote(warp, at, args, mask, *vote)?,
            Action::Match { wide, all } => self.matching(warp, at, args, mask, (*wide, *all))?,
            Action::Reduce(reduce) => self.reduce(warp, at, args, mask, *reduce)?,
            _ => {
                let regs = &mut warp.frames[frame].regs;
                let leader = mask.trailing_zeros();
                regs.put(args.d, &[leader; 32], mask, u32::MAX);
                regs.put_predicate(args.e, 1 << leader, mask, u32::MAX);
            }
        }
        Ok(Flow::Next)
    }

    /// Whoever names a mask must be in it.
    fn need_named(&self, warp: &Warp, pc: u32, mask: u32, together: u32) -> Result<(), Box<Fault>> {
        let outside = mask & !together;
        if outside == 0 {
            return Ok(());
        }
        let message =
            format!("lanes {outside:#010x} execute it with the mask {together:#010x}, which does not name them");
        Err(self.fault(Kind::WarpMask, message, warp, pc, outside.trailing_zeros()))
    }

    /// `bar.warp.sync`: the lanes may wait at different places.
    fn warp_sync(&mut self, warp: &mut Warp, at: usize, mask: u32, together: u32) -> Flow {
        let needed = together & warp.live();
        let waits = |group: &Group, program: &crate::program::Program| {
            group.wait == Wait::Lanes(together) && matches!(program.code[group.pc as usize].action, Action::WarpSync)
        };
        let program = self.program;
        let others = warp
            .groups
            .iter()
            .enumerate()
            .filter(|(other, group)| *other != at && waits(group, program));
        let arrived = others.fold(mask, |arrived, (_, group)| arrived | group.lanes);
        if needed & !arrived != 0 {
            return Flow::Wait(Wait::Lanes(together));
        }
        self.memory.warp_sync(warp.id, needed);
        if arrived == mask {
            return Flow::Next;
        }
        for (other, group) in warp.groups.iter_mut().enumerate() {
            if other != at && waits(group, program) {
                group.wait = Wait::No;
                group.pc += 1;
            }
        }
        Flow::Next
    }

    /// `shfl.sync`, as the PTX manual's pseudocode has it: `c` holds the clamp and the mask of segments.
    fn shuffle(&self, warp: &mut Warp, at: usize, args: &Args, mask: u32, mode: Shuffle) -> Result<(), Box<Fault>> {
        let Group { pc, frame, .. } = warp.groups[at];
        let regs = &warp.frames[frame].regs;
        let control = regs.valid::<u32>(args.b) & regs.valid::<u32>(args.c);
        self.need_written(warp, pc, mask, control, "the lane of a shuffle")?;
        let (values, by, segments) = (
            regs.get::<u32>(args.a),
            regs.get::<u32>(args.b),
            regs.get::<u32>(args.c),
        );
        let (from, inside) = source_lanes(by, segments, mode);
        let strangers = mask & !wide::bits_at(mask, &from);
        if strangers != 0 {
            let lane = strangers.trailing_zeros();
            return Err(self.outside(warp, pc, lane, from[lane as usize]));
        }
        let valid = match regs.valid::<u32>(args.a) {
            u32::MAX => u32::MAX,
            some => wide::bits_at(some, &from),
        };
        let mut out = [0; 32];
        for (out, from) in out.iter_mut().zip(&from) {
            *out = values[*from as usize & 31];
        }
        let regs = &mut warp.frames[frame].regs;
        regs.put(args.d, &out, mask, valid);
        regs.put_predicate(args.e, inside, mask, u32::MAX);
        Ok(())
    }

    #[cold]
    fn outside(&self, warp: &Warp, pc: u32, lane: u32, from: u32) -> Box<Fault> {
        let why = match () {
            () if warp.lanes >> from & 1 == 0 => "does not exist in this block",
            () if warp.exited >> from & 1 != 0 => "has exited",
            () => "does not take part",
        };
        let message = format!("lane {lane} reads from lane {from}, which {why}");
        self.fault(Kind::WarpMask, message, warp, pc, lane)
    }

    fn vote(&self, warp: &mut Warp, at: usize, args: &Args, mask: u32, vote: Vote) -> Result<(), Box<Fault>> {
        let Group { pc, frame, .. } = warp.groups[at];
        let regs = &mut warp.frames[frame].regs;
        let (bits, valid) = (
            regs.predicates[args.a as usize] & mask,
            regs.predicate_valid[args.a as usize],
        );
        let all = |yes: bool| if yes { u32::MAX } else { 0 };
        match vote {
            Vote::Ballot => regs.put(args.d, &[bits; 32], mask, u32::MAX),
            Vote::All => regs.put_predicate(args.d, all(bits == mask), mask, u32::MAX),
            Vote::Any => regs.put_predicate(args.d, all(bits != 0), mask, u32::MAX),
            Vote::Uniform => regs.put_predicate(args.d, all(bits == 0 || bits == mask), mask, u32::MAX),
        }
        self.need_written(warp, pc, mask, valid, "a vote")
    }

    fn matching(
        &self,
        warp: &mut Warp,
        at: usize,
        args: &Args,
        mask: u32,
        (wide, all): (bool, bool),
    ) -> Result<(), Box<Fault>> {
        let Group { pc, frame, .. } = warp.groups[at];
        let regs = &warp.frames[frame].regs;
        let (values, valid) = match wide {
            true => (*regs.get::<u64>(args.a), regs.valid::<u64>(args.a)),
            false => (regs.get::<u32>(args.a).map(u64::from), regs.valid::<u32>(args.a)),
        };
        self.need_written(warp, pc, mask, valid, "what is matched")?;
        let like = |lane: usize| {
            each(mask)
                .filter(|other| values[*other] == values[lane])
                .fold(0, |m, l| m | 1 << l)
        };
        let mut out: Lanes<u32> = [0; 32];
        each(mask).for_each(|lane| out[lane] = like(lane));
        let same = each(mask).all(|lane| out[lane] == mask);
        if all && !same {
            out = [0; 32];
        }
        let regs = &mut warp.frames[frame].regs;
        regs.put(args.d, &out, mask, u32::MAX);
        regs.put_predicate(args.e, if same { u32::MAX } else { 0 }, mask, u32::MAX);
        Ok(())
    }

    fn reduce(&self, warp: &mut Warp, at: usize, args: &Args, mask: u32, reduce: Reduce) -> Result<(), Box<Fault>> {
        let Group { pc, frame, .. } = warp.groups[at];
        let regs: &Regs = &warp.frames[frame].regs;
        self.need_written(warp, pc, mask, regs.valid::<u32>(args.a), "what is reduced")?;
        let values = regs.get::<u32>(args.a);
        let total = each(mask)
            .map(|lane| values[lane])
            .reduce(|a, b| reduced(reduce, a, b))
            .unwrap_or(0);
        warp.frames[frame].regs.put(args.d, &[total; 32], mask, u32::MAX);
        Ok(())
    }
}

/// The lanes that the lanes of a shuffle read from, and which of these are inside their segments; outside, a lane reads from
/// itself.
fn source_lanes(by: &Lanes<u32>, control: &Lanes<u32>, mode: Shuffle) -> (Lanes<u32>, u32) {
    // A loop each, so that what the mode decides is decided before it.
    match mode {
        Shuffle::Up => each_source(by, control, |lane, by, highest, _| {
            (lane.wrapping_sub(by), lane as i32 - by as i32 >= highest as i32)
        }),
        Shuffle::Down => each_source(by, control, |lane, by, highest, _| (lane + by, lane + by <= highest)),
        Shuffle::Butterfly => each_source(by, control, |lane, by, highest, _| (lane ^ by, (lane ^ by) <= highest)),
        Shuffle::Index => each_source(by, control, |lane, by, highest, segments| {
            let from = (lane & segments) | (by & !segments);
            (from, from <= highest)
        }),
    }
}

/// From `source`, which says of a lane, its operand, the end of its segment and the mask of segments where it reads from.
#[inline(always)]
fn each_source(
    by: &Lanes<u32>,
    control: &Lanes<u32>,
    source: impl Fn(u32, u32, u32, u32) -> (u32, bool),
) -> (Lanes<u32>, u32) {
    let (mut from, mut inside) = ([0; 32], 0);
    for lane in 0..32 {
        let (by, clamp, segments) = (by[lane] & 31, control[lane] & 31, control[lane] >> 8 & 31);
        let highest = (lane as u32 & segments) | (clamp & !segments);
        let (there, good) = source(lane as u32, by, highest, segments);
        from[lane] = if good { there & 31 } else { lane as u32 };
        inside |= u32::from(good) << lane;
    }
    (from, inside)
}

fn reduced(reduce: Reduce, a: u32, b: u32) -> u32 {
    match reduce {
        Reduce::Add => a.wrapping_add(b),
        Reduce::And => a & b,
        Reduce::Or => a | b,
        Reduce::Xor => a ^ b,
        Reduce::MinUnsigned => a.min(b),
        Reduce::MaxUnsigned => a.max(b),
        Reduce::MinSigned => (a as i32).min(b as i32) as u32,
        Reduce::MaxSigned => (a as i32).max(b as i32) as u32,
        Reduce::MinFloat => crate::ops::float::extreme_f32(f32::from_bits(a), f32::from_bits(b), 0, true).to_bits(),
        Reduce::MaxFloat => crate::ops::float::extreme_f32(f32::from_bits(a), f32::from_bits(b), 0, false).to_bits(),
    }
}
