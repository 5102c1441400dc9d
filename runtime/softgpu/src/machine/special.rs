//! Values that registers hold before the first instruction: constants, special registers, parameters of the kernel.

use super::launch::place;
use super::{Block, Machine};
use crate::memory::access::Lanes;
use crate::ops::{File, Regs};
use crate::program::Special;

impl Machine<'_> {
    /// The registers of a function's frame for a warp of a block.
    pub fn new_registers(&self, function: u32, block: &Block, warp: u32, local: u64) -> Regs {
        let is_kernel = function == 0;
        let function = &self.program.functions[function as usize];
        let [predicates, words, doubles] = function.registers;
        let mut regs = Regs::new(predicates, words, doubles);
        if self.launch.perturb {
            regs.perturb = self.launch.seed as u32 | 1;
        }
        for (word, register) in function.params.iter().enumerate().filter(|_| is_kernel) {
            regs.fill(*register, word_at(&self.params, word));
        }
        self.fill(&mut regs, function, (block.index, block.rank), warp, local);
        regs
    }

    /// Fills what the text cannot write.
    pub fn fill(
        &self,
        regs: &mut Regs,
        function: &crate::program::Function,
        (block, rank): (u32, u32),
        warp: u32,
        local: u64,
    ) {
        for (file, register, value) in &function.constants {
            fill(regs, *file, *register, *value);
        }
        for (file, register, offset) in &function.locals {
            fill(regs, *file, *register, local + offset);
        }
        for (special, file, register) in &function.specials {
            match file {
                File::Double => fill(regs, File::Double, *register, 1),
                File::Predicate => {
                    let bits = if self.plan.clustered { u32::MAX } else { 0 };
                    regs.put_predicate(*register, bits, u32::MAX, u32::MAX);
                }
                File::Word => {
                    let values = self.special(*special, (block, rank), warp);
                    regs.put(*register, &values, u32::MAX, u32::MAX);
                }
            }
        }
    }

    fn special(&self, special: Special, (block, rank): (u32, u32), warp: u32) -> Lanes<u32> {
        let same = |value: u32| [value; 32];
        let lanes = |f: fn(u32) -> u32| std::array::from_fn(|lane| f(lane as u32));
        let at = self.plan.block_at(self.launch, block);
        let cluster = self.plan.cluster;
        let axis = |values: [u32; 3], axis: u8| same(values[usize::from(axis)]);
        match special {
            Special::Tid(axis) => std::array::from_fn(|lane| self.thread(warp, lane as u32)[usize::from(axis)]),
            Special::Ntid(a) => axis(self.launch.block, a),
            Special::Ctaid(a) => axis(at, a),
            Special::Nctaid(a) => axis(self.launch.grid, a),
            Special::ClusterId(a) => axis([0, 1, 2].map(|i| at[i] / cluster[i]), a),
            Special::NclusterId(a) => axis([0, 1, 2].map(|i| self.launch.grid[i] / cluster[i]), a),
            Special::ClusterCtaid(a) => axis([0, 1, 2].map(|i| at[i] % cluster[i]), a),
            Special::ClusterNctaid(a) => axis(cluster, a),
            Special::ClusterCtarank => same(rank),
            Special::ClusterNctarank => same(self.plan.cluster_blocks),
            Special::Laneid => lanes(|lane| lane),
            Special::Warpid => same(warp),
            Special::Nwarpid => same(self.plan.warps),
            Special::Smid => same(block % self.device.processors),
            Special::Nsmid => same(self.device.processors),
            Special::LanemaskEq => lanes(|lane| 1 << lane),
            Special::LanemaskLt => lanes(|lane| (1 << lane) - 1),
            Special::LanemaskLe => lanes(|lane| u32::MAX >> (31 - lane)),
            Special::LanemaskGt => lanes(|lane| !(u32::MAX >> (31 - lane))),
            Special::LanemaskGe => lanes(|lane| u32::MAX << lane),
            Special::DynamicSharedBytes => same(self.launch.shared),
            Special::TotalSharedBytes => same(self.plan.shared),
            Special::Gridid | Special::IsExplicitCluster => same(1),
        }
    }

    /// A thread's place in its block.
    pub fn thread(&self, warp: u32, lane: u32) -> [u32; 3] {
        place(32 * warp + lane, self.launch.block)
    }
}

fn fill(regs: &mut Regs, file: File, register: u32, value: u64) {
    match file {
        File::Predicate => {
            let bits = if value & 1 != 0 { u32::MAX } else { 0 };
            regs.put_predicate(register, bits, u32::MAX, u32::MAX);
        }
        File::Word => regs.fill(register, value as u32),
        File::Double => regs.fill(register, value),
    }
}

/// A word of the parameters; beyond their end zero.
fn word_at(params: &[u8], word: usize) -> u32 {
    let mut bytes = [0; 4];
    let start = (4 * word).min(params.len());
    let end = (4 * word + 4).min(params.len());
    bytes[..end - start].copy_from_slice(&params[start..end]);
    u32::from_le_bytes(bytes)
}
