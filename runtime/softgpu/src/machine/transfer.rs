//! Loads, stores and atomic operations: from registers to requests of memory and back.

use super::Machine;
use super::slice::{Flow, LOOKS};
use super::warp::Warp;
use crate::fault::{Fault, Kind};
use crate::memory::access::{Access, Atomic, Lanes, Order};
use crate::ops::{File, Regs};
use crate::program::{Address, AtomicTransfer, Target, Transfer};
use crate::ptx::ast::Space;

/// Most rows of a request.
const ROWS: usize = 16;

/// What executes: a frame's instruction, for some lanes.
#[derive(Clone, Copy, Debug)]
pub struct Here {
    /// The frame.
    pub frame: usize,
    /// The instruction.
    pub pc: u32,
    /// The lanes, at least one.
    pub mask: u32,
}

impl Machine<'_> {
    /// The address of each lane. All that are used must have been written.
    pub fn addresses(
        &self,
        warp: &Warp,
        frame: usize,
        pc: u32,
        mask: u32,
        at: &Address,
    ) -> Result<Lanes<u64>, Box<Fault>> {
        let regs = &warp.frames[frame].regs;
        let (addresses, valid) = match at.base {
            None => ([at.offset as u64; 32], u32::MAX),
            Some((File::Double, register)) => {
                let base = regs.get::<u64>(register);
                let addresses = std::array::from_fn(|lane| base[lane].wrapping_add(at.offset as u64));
                (addresses, regs.valid::<u64>(register))
            }
            Some((_, register)) => {
                let base = regs.get::<u32>(register);
                let addresses = std::array::from_fn(|lane| u64::from(base[lane].wrapping_add(at.offset as u32)));
                (addresses, regs.valid::<u32>(register))
            }
        };
        if valid & mask != mask {
            return Err(self.unwritten(warp, pc, mask & !valid, "an address"));
        }
        Ok(addresses)
    }

    /// A load.
    pub fn load(&mut self, warp: &mut Warp, here: Here, transfer: &Transfer) -> Result<(), Box<Fault>> {
        let Here { frame, pc, mask } = here;
        let addresses = self.addresses(warp, frame, pc, mask, &transfer.address)?;
        let access = access(warp, mask, transfer, &addresses, pc);
        self.looks += u32::from(!matches!(transfer.order, Order::Weak | Order::NonCoherent));
        // Room for all that can be loaded would take longer to clear than most loads do.
        match transfer.targets.len() {
            1 => self.load_rows::<1>(warp, here, transfer, &access),
            2..=4 => self.load_rows::<4>(warp, here, transfer, &access),
            _ => self.load_rows::<ROWS>(warp, here, transfer, &access),
        }
    }

    fn load_rows<const MOST: usize>(
        &mut self,
        warp: &mut Warp,
        here: Here,
        transfer: &Transfer,
        access: &Access<'_>,
    ) -> Result<(), Box<Fault>> {
        let (mut rows, mut valid) = ([[0u64; 32]; MOST], [0; MOST]);
        let count = transfer.targets.len();
        let done = self.memory.load(access, &mut rows[..count], &mut valid[..count]);
        done.map_err(|wrong| self.explain(wrong, warp, here.pc))?;
        let regs = &mut warp.frames[here.frame].regs;
        for ((target, row), valid) in transfer.targets.iter().zip(&rows).zip(valid) {
            fill(regs, transfer, target, row, valid, here.mask);
        }
        Ok(())
    }

    /// A store. What nobody wrote may be copied, as the padding of a structure is; but not alone, to device memory.
    pub fn store(&mut self, warp: &mut Warp, here: Here, transfer: &Transfer) -> Result<(), Box<Fault>> {
        let Here { frame, pc, mask } = here;
        let addresses = self.addresses(warp, frame, pc, mask, &transfer.address)?;
        let access = access(warp, mask, transfer, &addresses, pc);
        let (mut rows, mut valid) = ([[0u64; 32]; 4], [0; 4]);
        let regs = &warp.frames[frame].regs;
        let count = transfer.targets.len();
        if count > 4 {
            return self.store_many(warp, frame, pc, &access, transfer);
        }
        for ((target, row), valid) in transfer.targets.iter().zip(&mut rows).zip(&mut valid) {
            *valid = read(regs, target, row);
        }
        let device = matches!(transfer.space, Space::Global | Space::Generic);
        if device && count == 1 && valid[0] & mask != mask {
            return Err(self.unwritten(warp, pc, mask & !valid[0], "the value that is stored"));
        }
        let done = self.memory.store(&access, &rows[..count], &valid[..count]);
        done.map_err(|wrong| self.explain(wrong, warp, pc))?;
        self.idle = 0;
        Ok(())
    }

    /// A store of more than four rows.
    fn store_many(
        &mut self,
        warp: &Warp,
        frame: usize,
        pc: u32,
        access: &Access<'_>,
        transfer: &Transfer,
    ) -> Result<(), Box<Fault>> {
        let (mut rows, mut valid) = ([[0u64; 32]; ROWS], [0; ROWS]);
        let count = transfer.targets.len();
        for ((target, row), valid) in transfer.targets.iter().zip(&mut rows).zip(&mut valid) {
            *valid = read(&warp.frames[frame].regs, target, row);
        }
        let done = self.memory.store(access, &rows[..count], &valid[..count]);
        done.map_err(|wrong| self.explain(wrong, warp, pc))?;
        self.idle = 0;
        Ok(())
    }

    /// An atomic operation; the elements of a vector one after another.
    pub fn atomic(
        &mut self,
        warp: &mut Warp,
        at: usize,
        mask: u32,
        atomic: &AtomicTransfer,
    ) -> Result<Flow, Box<Fault>> {
        let (frame, pc) = (warp.groups[at].frame, warp.groups[at].pc);
        let first = self.addresses(warp, frame, pc, mask, &atomic.at.address)?;
        let mut changed = false;
        for (element, operand) in atomic.operands.iter().enumerate() {
            let step = u64::from(atomic.at.bytes) * element as u64;
            let addresses = first.map(|address| address.wrapping_add(step));
            let access = Access {
                elements: 1,
                ..access(warp, mask, &atomic.at, &addresses, pc)
            };
            let (b, c) = self.operands(warp, frame, pc, mask, (operand, atomic.second.as_ref()))?;
            let mut out = [0u64; 32];
            let done = self.memory.atomic(&access, atomic.op, &b, &c, &mut out);
            done.map_err(|wrong| self.explain(wrong, warp, pc))?;
            if changes(atomic.op, mask, &out, &b, &c) {
                self.idle = 0;
                changed = true;
            }
            if let Some(target) = atomic.at.targets.get(element) {
                fill(&mut warp.frames[frame].regs, &atomic.at, target, &out, u32::MAX, mask);
            }
        }
        self.record_atomic(warp, at, atomic, (&first, mask, changed));
        self.looks += 1;
        Ok(if self.looks > LOOKS { Flow::Yield } else { Flow::Next })
    }

    fn operands(
        &self,
        warp: &Warp,
        frame: usize,
        pc: u32,
        mask: u32,
        (first, second): (&Target, Option<&Target>),
    ) -> Result<(Lanes<u64>, Lanes<u64>), Box<Fault>> {
        let b = self.operand(warp, frame, pc, mask, first)?;
        let c = second.map_or(Ok([0; 32]), |second| self.operand(warp, frame, pc, mask, second))?;
        Ok((b, c))
    }

    /// The lanes of a register that must have been written.
    pub fn operand(
        &self,
        warp: &Warp,
        frame: usize,
        pc: u32,
        mask: u32,
        target: &Target,
    ) -> Result<Lanes<u64>, Box<Fault>> {
        let mut row = [0; 32];
        let valid = read(&warp.frames[frame].regs, target, &mut row);
        self.need_written(warp, pc, mask, valid, "an operand")?;
        Ok(row)
    }

    /// Fails where lanes use what nobody wrote.
    pub fn need_written(&self, warp: &Warp, pc: u32, mask: u32, valid: u32, what: &str) -> Result<(), Box<Fault>> {
        if mask & !valid == 0 {
            Ok(())
        } else {
            Err(self.unwritten(warp, pc, mask & !valid, what))
        }
    }

    /// The fault of such lanes.
    pub fn unwritten(&self, warp: &Warp, pc: u32, lanes: u32, what: &str) -> Box<Fault> {
        let message = format!("{what} depends on a register or memory that nobody wrote");
        self.fault(Kind::Uninitialised, message, warp, pc, lanes.trailing_zeros())
    }

    /// The same of a predicate that guards an instruction.
    #[cold]
    pub fn unwritten_guard(&self, warp: &Warp, pc: u32, lanes: u32) -> Box<Fault> {
        self.unwritten(warp, pc, lanes, "whether the instruction is executed")
    }
}

/// The request of a transfer.
pub fn access<'t>(warp: &Warp, mask: u32, transfer: &Transfer, addresses: &'t Lanes<u64>, pc: u32) -> Access<'t> {
    Access {
        warp: warp.id,
        lanes: mask,
        space: transfer.space,
        own_block: transfer.own_block,
        addresses,
        bytes: transfer.bytes,
        elements: transfer.elements,
        order: transfer.order,
        scope: transfer.scope,
        at: pc,
    }
}

/// Puts what was loaded into a register, extended to its width.
pub fn fill(regs: &mut Regs, transfer: &Transfer, target: &Target, row: &Lanes<u64>, valid: u32, mask: u32) {
    let sign = if transfer.signed {
        64 - 8 * transfer.bytes.min(8)
    } else {
        0
    };
    let extended = |value: u64| ((value << sign) as i64 >> sign) as u64;
    match target.file {
        File::Double if sign == 0 => regs.put(target.register, row, mask, valid),
        File::Double => regs.put(target.register, &row.map(extended), mask, valid),
        _ if sign <= 32 => regs.put_low_words(target.register, row, mask, valid),
        _ => {
            let keep = u32::MAX >> (32 - target.bits.clamp(1, 32));
            regs.put(
                target.register,
                &row.map(|value| extended(value) as u32 & keep),
                mask,
                valid,
            );
        }
    }
}

/// Reads a register as a row; the lanes that were written.
pub fn read(regs: &Regs, target: &Target, row: &mut Lanes<u64>) -> u32 {
    match target.file {
        File::Double => {
            *row = *regs.get::<u64>(target.register);
            regs.valid::<u64>(target.register)
        }
        _ => {
            let words = regs.get::<u32>(target.register);
            for (row, word) in row.iter_mut().zip(words) {
                *row = (*word).into();
            }
            regs.valid::<u32>(target.register)
        }
    }
}

/// Whether an atomic operation changed memory. Spinning on a lock that somebody holds changes nothing.
fn changes(op: Atomic, mask: u32, old: &Lanes<u64>, b: &Lanes<u64>, c: &Lanes<u64>) -> bool {
    crate::memory::place::each(mask).any(|lane| match op {
        Atomic::Exchange => old[lane] != b[lane],
        Atomic::CompareAndSwap => old[lane] == b[lane] && b[lane] != c[lane],
        Atomic::Add | Atomic::Or | Atomic::Xor => b[lane] != 0,
        Atomic::MaxUnsigned => b[lane] > old[lane],
        Atomic::MinUnsigned => b[lane] < old[lane],
        _ => true,
    })
}
