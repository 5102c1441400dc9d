//! Matrix instructions: all 32 lanes do them together.

use super::Machine;
use super::slice::Flow;
use super::warp::{Group, Wait, Warp};
use crate::fault::{Fault, Kind};
use crate::memory::access::{Access, Lanes, Order, Scope};
use crate::program::{Action, Inst, MatrixTransfer};

impl Machine<'_> {
    /// A matrix instruction, once all lanes are here.
    pub fn matrix(&mut self, warp: &mut Warp, at: usize, inst: &Inst, mask: u32) -> Result<Flow, Box<Fault>> {
        let Group { pc, frame, .. } = warp.groups[at];
        if mask != u32::MAX {
            if warp.live() != u32::MAX {
                let message = format!("a matrix instruction in a warp of {} lanes", warp.live().count_ones());
                return Err(self.fault(Kind::Unaligned, message, warp, pc, mask.trailing_zeros()));
            }
            return Ok(Flow::Wait(Wait::Lanes(u32::MAX)));
        }
        match &inst.action {
            Action::Mma(m) => m.mma.run(&mut warp.frames[frame].regs, &m.d, [&m.a, &m.b, &m.c]),
            Action::Matrix(transfer) if transfer.store => self.store_matrices(warp, frame, pc, transfer)?,
            Action::Matrix(transfer) => self.load_matrices(warp, frame, pc, transfer)?,
            _ => {
                let regs = &mut warp.frames[frame].regs;
                let (from, written) = (*regs.get::<u32>(inst.args.a), regs.valid::<u32>(inst.args.a));
                let half = |lane: usize, j: usize| {
                    let (row, column) = transposed(lane, j);
                    (
                        from[4 * row + column / 2] >> (16 * (column % 2)) & 0xFFFF,
                        written >> (4 * row + column / 2) & 1,
                    )
                };
                let (out, valid) = joined(half);
                regs.put(inst.args.d, &out, u32::MAX, valid);
            }
        }
        Ok(Flow::Next)
    }

    /// The request for the rows: 16 bytes each, at the addresses of the first eight lanes for each matrix.
    fn rows<'t>(&self, warp: &Warp, pc: u32, transfer: &MatrixTransfer, addresses: &'t Lanes<u64>) -> Access<'t> {
        let lanes = 8 * transfer.registers.len() as u32;
        Access {
            warp: warp.id,
            lanes: u32::MAX >> (32 - lanes),
            space: transfer.space,
            own_block: false,
            addresses,
            bytes: 4,
            elements: 4,
            order: Order::Weak,
            scope: Scope::Block,
            at: pc,
        }
    }

    fn row_addresses(
        &self,
        warp: &Warp,
        frame: usize,
        pc: u32,
        transfer: &MatrixTransfer,
    ) -> Result<Lanes<u64>, Box<Fault>> {
        let lanes = u32::MAX >> (32 - 8 * transfer.registers.len() as u32);
        self.addresses(warp, frame, pc, lanes, &transfer.address)
    }

    fn load_matrices(
        &mut self,
        warp: &mut Warp,
        frame: usize,
        pc: u32,
        transfer: &MatrixTransfer,
    ) -> Result<(), Box<Fault>> {
        let addresses = self.row_addresses(warp, frame, pc, transfer)?;
        let (mut words, mut valid) = ([[0; 32]; 4], [0; 4]);
        let access = self.rows(warp, pc, transfer, &addresses);
        let done = self.memory.load(&access, &mut words, &mut valid);
        done.map_err(|wrong| self.explain(wrong, warp, pc))?;
        for (matrix, register) in transfer.registers.iter().enumerate() {
            let half = |lane: usize, j: usize| {
                let (row, column) = if transfer.transpose {
                    transposed(lane, j)
                } else {
                    (lane / 4, lane % 4 * 2 + j)
                };
                let from = 8 * matrix + row;
                let word = words[column / 2][from] as u32;
                (word >> (16 * (column % 2)) & 0xFFFF, valid[column / 2] >> from & 1)
            };
            let (out, written) = joined(half);
            warp.frames[frame].regs.put(*register, &out, u32::MAX, written);
        }
        Ok(())
    }

    fn store_matrices(
        &mut self,
        warp: &mut Warp,
        frame: usize,
        pc: u32,
        transfer: &MatrixTransfer,
    ) -> Result<(), Box<Fault>> {
        let addresses = self.row_addresses(warp, frame, pc, transfer)?;
        let (mut words, mut valid) = ([[0u64; 32]; 4], [u32::MAX; 4]);
        let regs = &warp.frames[frame].regs;
        for (matrix, register) in transfer.registers.iter().enumerate() {
            let (from, written) = (regs.get::<u32>(*register), regs.valid::<u32>(*register));
            for (lane, from) in from.iter().enumerate() {
                for j in 0..2 {
                    let straight = (lane / 4, lane % 4 * 2 + j);
                    let (row, column) = if transfer.transpose {
                        transposed(lane, j)
                    } else {
                        straight
                    };
                    let half = u64::from(from >> (16 * j) & 0xFFFF);
                    words[column / 2][8 * matrix + row] |= half << (16 * (column % 2));
                    valid[column / 2] &= !(u32::from(written >> lane & 1 == 0) << (8 * matrix + row));
                }
            }
        }
        let access = self.rows(warp, pc, transfer, &addresses);
        let done = self.memory.store(&access, &words, &valid);
        done.map_err(|wrong| self.explain(wrong, warp, pc))?;
        self.idle = 0;
        Ok(())
    }
}

/// Row and column of half `j` of a lane in a matrix that is transposed on the way.
fn transposed(lane: usize, j: usize) -> (usize, usize) {
    (lane % 4 * 2 + j, lane / 4)
}

/// A word for each lane from its two halves, and the lanes whose halves were both written.
fn joined(half: impl Fn(usize, usize) -> (u32, u32)) -> (Lanes<u32>, u32) {
    let mut written = 0;
    let words = std::array::from_fn(|lane| {
        let ((low, a), (high, b)) = (half(lane, 0), half(lane, 1));
        written |= (a & b) << lane;
        low | high << 16
    });
    (words, written)
}
