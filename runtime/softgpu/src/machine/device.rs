//! What a device holds: the limits that decide which launches are refused and which blocks are resident.

use serde::{Deserialize, Serialize};

/// The limits of a device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Device {
    /// Its name.
    pub name: String,
    /// Its compute capability, times ten: 90.
    pub capability: u32,
    /// Multiprocessors.
    pub processors: u32,
    /// Threads of a multiprocessor.
    pub threads: u32,
    /// Blocks of a multiprocessor.
    pub blocks: u32,
    /// Registers of a multiprocessor.
    pub registers: u32,
    /// Shared memory of a multiprocessor, in bytes.
    pub shared: u32,
    /// Most shared memory of a block, in bytes; the rest of the multiprocessor's is reserved.
    pub block_shared: u32,
    /// Multiprocessors of each cluster of the hardware (a GPC) that can hold clusters of blocks; empty without clusters.
    pub gpcs: Vec<u32>,
}

/// Bytes of shared memory that the driver keeps of each block (compute capability 8 and later).
const RESERVED: u32 = 1024;

impl Device {
    /// A device by its short name: `h100`, `h200`, `a100`, `l4`, `rtx4090`. Sources: the CUDA programming guide's table of
    /// compute capabilities, and the architecture papers for multiprocessors.
    pub fn named(name: &str) -> Option<Device> {
        let hopper: &[u32] = &[16, 16, 16, 16, 18, 16, 18, 16];
        let (capability, processors, threads, blocks, shared, gpcs) = match name {
            "h100" | "h200" => (90, 132, 2048, 32, 228, hopper),
            "a100" => (80, 108, 2048, 32, 164, &[][..]),
            "l4" => (89, 58, 1536, 24, 100, &[][..]),
            "rtx4090" => (89, 128, 1536, 24, 100, &[][..]),
            _ => return None,
        };
        Some(Device {
            name: name.to_owned(),
            capability,
            processors,
            threads,
            blocks,
            registers: 65536,
            shared: shared * 1024,
            block_shared: shared * 1024 - RESERVED,
            gpcs: gpcs.to_vec(),
        })
    }

    /// Whether it runs code for a target such as `sm_80`: one of its own capability or an older one; `sm_90a` only of its own.
    pub fn runs(&self, target: &str) -> bool {
        let number = target.trim_start_matches("sm_");
        match number.strip_suffix(['a', 'f']) {
            Some(exact) => exact.parse() == Ok(self.capability),
            None => number.parse().is_ok_and(|oldest: u32| oldest <= self.capability),
        }
    }

    /// Blocks of so many threads, bytes of shared memory and registers a thread that one multiprocessor holds.
    pub fn blocks_a_processor(&self, threads: u32, shared: u32, registers: u32) -> u32 {
        let warps = threads.div_ceil(32).max(1);
        let by_threads = self.threads / (32 * warps);
        let by_shared = self.shared / (shared + RESERVED).next_multiple_of(128);
        // Registers are given out to warps in pieces of 256.
        let by_registers = self.registers / ((32 * registers.max(1)).next_multiple_of(256) * warps);
        by_threads.min(by_shared).min(by_registers).min(self.blocks)
    }

    /// Clusters of so many blocks that are resident at once, where a multiprocessor holds `each` blocks.
    pub fn clusters(&self, size: u32, each: u32) -> u32 {
        self.gpcs.iter().map(|processors| processors * each / size.max(1)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn occupancy_by_each_limit() {
        let device = Device::named("h100").unwrap();
        assert_eq!(device.blocks_a_processor(128, 0, 32), 16);
        assert_eq!(device.blocks_a_processor(32, 0, 32), 32);
        assert_eq!(device.blocks_a_processor(256, 227 * 1024, 32), 1);
        assert_eq!(device.blocks_a_processor(256, 0, 255), 1);
        assert_eq!(device.blocks_a_processor(2048 + 32, 0, 32), 0);
        let runs = ["sm_75", "sm_90", "sm_90a", "sm_100", "sm_80a", "x"].map(|target| device.runs(target));
        assert_eq!(runs, [true, true, true, false, false, false]);
        // 16 blocks a cluster, one a multiprocessor: one for each GPC.
        assert_eq!(device.clusters(16, 1), 8);
    }
}
