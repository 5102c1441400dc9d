//! Rates and latencies of cards, as published, in cycles of the card's clock unless they say otherwise.
//!
//! Each card has two tables: the fast end and the slow end of what sources say. Where a source gives one figure, the ends are
//! equal; where nobody has published one for a card, it is another card's, and the comment says so. Sources:
//!
//! - \[S1\] Luo et al., arXiv 2402.13499. \[S2\] arXiv 2501.12084. \[S3\] Sun et al., arXiv 2206.02874; Abdelkhalik, 2208.11174.
//! - \[S4\] Chips and Cheese, "Nvidia's H100: Funny L2". \[S5\] Fusco et al., arXiv 2408.11556. \[S6\] Burtchell and Burtscher,
//!   IISWC 2024, and notes on grid barriers. \[S7\] CREDIT, arXiv 2609.01864. \[S8\] a table of microbenchmarks of B300.
//! - \[S9\] ClusterFusion, arXiv 2508.18850. \[S10\] a study of H100 SXM. \[spec\] the vendor's data sheet. \[C\] computed.

use super::kind::Tensor;
use serde::Serialize;

/// One end of the rates of a card.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Rates {
    /// Cycles a nanosecond.
    pub clock: f64,
    /// From an arithmetic instruction to one that needs its result.
    pub arithmetic: f64,
    /// Cycles between instructions on the pipe for reals of a quarter of a multiprocessor.
    pub reals: f64,
    /// Latency of a special function.
    pub special: f64,
    /// Cycles between special functions of warps, of a quarter.
    pub special_each: f64,
    /// Latency of a load from shared memory without conflicts.
    pub shared: f64,
    /// More for each further way of a bank conflict.
    pub way: f64,
    /// Latency of a load that hits the first-level cache.
    pub l1: f64,
    /// Latency of a load that hits the second-level cache.
    pub l2: f64,
    /// Latency of a load from device memory.
    pub dram: f64,
    /// Latency of a shuffle.
    pub shuffle: f64,
    /// From a matrix product to one that adds to its result.
    pub mma: f64,
    /// Cycles of a quarter for 1024 multiply-adds: 16-bit factors; with 16-bit sums; TF32; bytes.
    pub tensor: [f64; 4],
    /// A barrier of a block, and more for each of its warps.
    pub barrier: (f64, f64),
    /// From an arrival at an mbarrier of the own block to the end of a wait that it ends.
    pub mbarrier: f64,
    /// A device-wide fence with nothing outstanding, and after stores.
    pub fence: (f64, f64),
    /// What releases before a barrier of a cluster.
    pub cluster_release: f64,
    /// A load from, or a signal to, the shared memory of another block of the cluster.
    pub peer: f64,
    /// From a strong store or atomic operation in device memory to its value in a register of a block that polls.
    pub hand_over: f64,
    /// Bytes a cycle of the second-level cache, of a multiprocessor's port to it, of device memory.
    pub bytes: [f64; 3],
    /// Bytes a cycle from a multiprocessor to the shared memory of others.
    pub peer_bytes: f64,
    /// Bytes that the caches hold: the first level with shared memory; the second level.
    pub caches: (u64, u64),
    /// Microseconds that a launch costs beside what runs.
    pub launch: f64,
}

impl Rates {
    /// Cycles of a quarter for so many times 1024 multiply-adds.
    pub fn product(&self, tensor: Tensor, thousands: f64) -> f64 {
        let at = match tensor {
            Tensor::Half => 0,
            Tensor::HalfSum => 1,
            Tensor::Tf32 => 2,
            Tensor::Byte => 3,
        };
        self.tensor[at] * thousands
    }
}

/// The fast and the slow end of a card's rates, by its short name.
pub fn card(name: &str) -> Option<[Rates; 2]> {
    match name {
        "a100" => Some(a100()),
        "h100" => Some(hopper([2950.0, 2900.0])), // copy, SXM: 2.9 to 3.0 TB/s
        "h200" => Some(hopper([4300.0, 4150.0])), // 4.8 TB/s [spec] in the proportion of H100's copy [C]
        "rtx4090" => Some(ada(2.52, [32.0, 16.0, 32.0, 16.0], [1708.0, 930.0])),
        // The same multiprocessor; bytes of the cache by their number [C], of memory 92 % of 300 GB/s [spec, C].
        "l4" => Some(ada(2.04, [16.0, 16.0, 16.0, 16.0], [774.0, 277.0])),
        _ => None,
    }
}

/// What the cards share, or what was published for one alone.
fn common(clock: f64) -> Rates {
    Rates {
        clock,
        arithmetic: 4.0, // [S3]
        reals: 1.0,
        special: 14.0,     // ex2 [S8]
        special_each: 8.0, // 16 lanes a cycle of a multiprocessor [spec]
        shared: 29.0,
        way: 2.0, // 25, 29, 37 cycles for 2, 4, 8 ways on A100 [S3]
        l1: 40.2,
        l2: 258.0,
        dram: 479.0,
        shuffle: 25.0, // A100 [S6]
        mma: 24.6,
        tensor: [4.0, 4.0, 8.0, 2.0],
        // 37 cycles of 8 warps, 85 of 32, on A100 [S6]; the slots of their own instructions come on top.
        barrier: (21.0, 1.5),
        mbarrier: 54.0,         // B300 [S8]
        fence: (281.0, 764.0),  // idle: B300 [S8]; after stores: A100 [S6]
        cluster_release: 661.0, // 851 cycles of barrier.cluster [S7] less 190 of the way
        peer: 190.0,
        hand_over: 850.0,
        bytes: [2008.0, 64.0, 1000.0],
        peer_bytes: 16.4,
        caches: (192 << 10, 40 << 20),
        launch: 1.5,
    }
}

/// The slow end of what is common.
fn slower(fast: Rates) -> Rates {
    Rates {
        special: 42.0,         // rcp [S8]
        mbarrier: 123.0,       // B300 [S8]
        fence: (281.0, 783.0), // B300, busy [S8]
        launch: 2.3,
        ..fast
    }
}

fn a100() -> [Rates; 2] {
    let clock = 1.41;
    let fast = Rates {
        reals: 2.0,   // 64 lanes [spec]
        shared: 23.0, // [S3]
        l1: 33.0,
        l2: 208.0,                             // near [S2]
        dram: 466.0,                           // [S1]
        hand_over: 165.6 * clock,              // one way of a ping-pong [S4]
        bytes: [2008.0, 64.0, 1407.0 / clock], // [S1]
        launch: 1.5,
        ..common(clock)
    };
    let slow = Rates {
        shared: 29.0, // [S6]
        l1: 38.0,
        l2: 357.0,        // far [S2]
        hand_over: 850.0, // nobody has published more than the ping-pong: the design's estimate
        fence: (281.0, 764.0),
        ..slower(fast)
    };
    [fast, slow]
}

/// H100 and H200, which differ in device memory: its gigabytes a second at both ends.
fn hopper(memory: [f64; 2]) -> [Rates; 2] {
    let clock = 1.98; // observed, SXM [S10]
    let fast = Rates {
        shared: 28.6,                             // [S10]
        l1: 40.2,                                 // [S10]
        l2: 258.0,                                // near [S2]
        dram: 479.0,                              // [S1]
        mma: 24.1,                                // [S1]
        tensor: [3.3, 3.3, 6.5, 1.65],            // 494.4 TFLOP/s on H800 PCIe [S1, C]
        fence: (281.0, 600.0),                    // the design's estimate: not published
        peer: 181.0,                              // [S2]
        hand_over: 161.0 * clock,                 // one way of a ping-pong, PCIe [S4]; GH200 158 ns [S5]
        bytes: [3942.0, 64.0, memory[0] / clock], // [S1]
        caches: (256 << 10, 50 << 20),
        launch: 1.3, // in a graph [S6]
        ..common(clock)
    };
    let slow = Rates {
        shared: 29.0,             // [S1]
        l1: 40.7,                 // [S1]
        l2: 470.0,                // far, SXM [S6]
        dram: 570.0,              // [S10]
        peer: 213.0,              // [S2]
        peer_bytes: 13.0,         // clusters of 16 [S9]
        hand_over: 545.0 * clock, // store and load, H800 [S2]
        bytes: [3942.0, 64.0, memory[1] / clock],
        launch: 2.1, // [S6]
        ..slower(fast)
    };
    [fast, slow]
}

/// RTX 4090 and L4: cycles of products, bytes a cycle of the cache, gigabytes a second of memory.
fn ada(clock: f64, products: [f64; 4], [cache, memory]: [f64; 2]) -> [Rates; 2] {
    let fast = Rates {
        shared: 30.1,                                // [S1]
        l1: 43.4,                                    // [S1]
        l2: if clock > 2.1 { 273.0 } else { 222.0 }, // [S1]; L40 222 to 339 by multiprocessor
        dram: 542.0,                                 // [S1]
        // m16n8k16 with sums of 32 and 16 bits; m16n8k8 of TF32; m16n8k32 of bytes [S1, spec, C].
        tensor: [products[0] / 2.0, products[1] / 2.0, products[2], products[3] / 4.0],
        hand_over: 296.0, // not published: the ping-pong of H100 in proportion to the cache's latency
        bytes: [cache, 64.0, memory / clock],
        caches: (128 << 10, if clock > 2.1 { 72 << 20 } else { 48 << 20 }),
        ..common(clock)
    };
    let slow = Rates {
        l2: if clock > 2.1 { 273.0 } else { 339.0 },
        hand_over: 850.0,
        ..slower(fast)
    };
    [fast, slow]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_device_has_rates_and_the_slow_end_is_not_faster() {
        for name in ["a100", "h100", "h200", "l4", "rtx4090"] {
            let [fast, slow] = card(name).unwrap();
            assert!(crate::Device::named(name).is_some(), "{name}");
            let latencies = |r: &Rates| {
                [
                    r.shared,
                    r.l1,
                    r.l2,
                    r.dram,
                    r.fence.1,
                    r.peer,
                    r.hand_over,
                    r.launch,
                    r.special,
                ]
            };
            let ordered = latencies(&fast).into_iter().zip(latencies(&slow)).all(|(a, b)| a <= b);
            assert!(ordered && fast.bytes[2] >= slow.bytes[2], "{name}");
        }
        assert!(card("k80").is_none());
    }

    #[test]
    fn products_take_what_the_peak_rate_says() {
        // 2 x 16 x 8 x 16 operations each, on 4 quarters of all multiprocessors.
        let peak = |name: &str, processors: f64| {
            let [fast, _] = card(name).unwrap();
            4096.0 * 4.0 * processors * fast.clock / fast.product(Tensor::Half, 2.0) / 1e3
        };
        assert!((peak("a100", 108.0) - 310.6).abs() < 5.0);
        assert!((peak("rtx4090", 128.0) - 165.0).abs() < 3.0);
        assert!((peak("l4", 58.0) - 121.0).abs() < 2.0);
    }
}
