//! Microbenchmarks: small kernels that each do one thing many times, and what has been published for them.
//!
//! The same texts run in softgpu, where the modelled time of a step must come out as published, and on a card, which calibrates
//! the rates. Compiling them is the caller's: this crate has no compiler.

use super::rates;
use crate::fault::Fault;
use crate::{Arg, Device, Gpu, Launch, LoadError};

/// The text for every card from `sm_80` on.
pub const ANY: &str = concat!(include_str!("grid.cu"), include_str!("any.cu"));
/// The text for cards with clusters.
pub const CLUSTER: &str = include_str!("cluster.cu");
/// Recurrent loops whose times are known.
pub const ANCHORS: &str = concat!(include_str!("grid.cu"), include_str!("anchors.cu"));

/// What a time is given in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Unit {
    /// Cycles of the card's clock, a step.
    Cycles,
    /// Nanoseconds a step.
    Nanoseconds,
    /// So many bytes a step on the whole card: gigabytes a second.
    Gigabytes(f64),
}

impl Unit {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Unit::Cycles => "cycles",
            Unit::Nanoseconds => "ns",
            Unit::Gigabytes(_) => "GB/s",
        }
    }
}

/// What memory holds at first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prepared {
    /// So many bytes of zeros.
    Zeros(usize),
    /// A ring of addresses: the distance of two in bytes, and how many.
    Ring {
        /// Bytes from one to the next.
        stride: usize,
        /// How many.
        count: usize,
    },
}

/// A microbenchmark.
#[derive(Clone, Copy, Debug)]
pub struct Microbench {
    /// Its name.
    pub name: &'static str,
    /// The kernel.
    pub kernel: &'static str,
    /// Blocks; none: one a multiprocessor.
    pub blocks: Option<u32>,
    /// Threads a block.
    pub threads: u32,
    /// Blocks of a cluster; 1 for kernels of [`ANY`].
    pub cluster: u32,
    /// Whether all blocks must be resident.
    pub cooperative: bool,
    /// Memory.
    pub memory: Prepared,
    /// The kernel's last argument.
    pub argument: i32,
    /// Two numbers of steps.
    pub steps: [i32; 2],
    /// What the time of a step is divided by.
    pub parts: f64,
    /// What comes out.
    pub unit: Unit,
}

/// One block of 32 threads, in cycles.
const fn one(name: &'static str, kernel: &'static str, argument: i32) -> Microbench {
    Microbench {
        name,
        kernel,
        blocks: Some(1),
        threads: 32,
        cluster: 1,
        cooperative: false,
        memory: Prepared::Zeros(1 << 16),
        argument,
        steps: [64, 128],
        parts: 1.0,
        unit: Unit::Cycles,
    }
}

/// A ring in device memory. One round is behind when counting begins, if it is to be cached.
const fn ring(name: &'static str, stride: usize, count: usize, steps: [i32; 2]) -> Microbench {
    Microbench {
        memory: Prepared::Ring { stride, count },
        threads: 1,
        steps,
        ..one(name, "chase_global", 0)
    }
}

const fn of_cluster(name: &'static str, kernel: &'static str, cluster: u32, threads: u32) -> Microbench {
    Microbench {
        cluster,
        blocks: Some(cluster),
        threads,
        steps: [16, 48],
        ..one(name, kernel, 0)
    }
}

/// Bytes of a step of `copy`: read and written by each of 128 blocks.
const COPIED: f64 = 128.0 * 2.0 * 1024.0;

/// All of them.
pub const ALL: &[Microbench] = &[
    one("shared memory, chain", "chase_shared", 1),
    one("shared memory, 2 ways", "chase_shared", 2),
    one("shared memory, 4 ways", "chase_shared", 4),
    one("shared memory, 8 ways", "chase_shared", 8),
    ring("first-level cache, chain", 128, 64, [128, 256]),
    ring("second-level cache, chain", 128, 1 << 13, [1 << 13, 3 << 12]),
    ring("device memory, chain", 4096, 1 << 10, [256, 512]),
    one("mma m16n8k16, chain", "mma_chain", 0),
    Microbench {
        threads: 128,
        parts: 8.0,
        ..one("mma m16n8k16, rate", "mma_rate", 0)
    },
    Microbench {
        threads: 256,
        ..one("16-byte loads beside mma", "load_and_mma", 0)
    },
    one("shuffle, chain", "shuffle", 0),
    Microbench {
        threads: 256,
        ..one("barrier, 8 warps", "barrier", 0)
    },
    Microbench {
        threads: 1024,
        ..one("barrier, 32 warps", "barrier", 0)
    },
    Microbench {
        threads: 1,
        ..one("store and fence", "fence", 0)
    },
    Microbench {
        blocks: Some(2),
        threads: 1,
        cooperative: true,
        parts: 2.0,
        unit: Unit::Nanoseconds,
        ..one("hand-over by words", "ping_pong", 0)
    },
    Microbench {
        blocks: None,
        threads: 256,
        cooperative: true,
        memory: Prepared::Zeros(1 << 18),
        steps: [4, 8],
        unit: Unit::Nanoseconds,
        ..one("grid barrier", "grid_sync", 0)
    },
    Microbench {
        blocks: Some(128),
        threads: 512,
        memory: Prepared::Zeros(1 << 24),
        steps: [32, 64],
        unit: Unit::Gigabytes(COPIED),
        ..one("copy", "copy", 0)
    },
    of_cluster("shared memory of a peer, chain", "chase_peer", 2, 1),
    of_cluster("cluster barrier, 2 blocks", "cluster_barrier", 2, 32),
    of_cluster("cluster barrier, 4 blocks", "cluster_barrier", 4, 32),
    of_cluster("mbarrier, own block", "mbarrier", 1, 1),
    of_cluster("hand-over by st.async, cluster of 2", "hand_over", 2, 1),
    of_cluster("hand-over by st.async, cluster of 8", "hand_over", 8, 1),
];

/// What sources say, from the smallest to the largest figure, in the unit of the microbenchmark; the sources are those of
/// [`rates`]. Figures of other cards are left out.
pub fn published(name: &str, card: &str) -> Option<[f64; 2]> {
    let hopper = matches!(card, "h100" | "h200");
    let figures = match (name, card) {
        ("shared memory, chain", "a100") => [23.0, 29.0],
        ("shared memory, 2 ways", "a100") => [25.0, 25.0],
        ("shared memory, 4 ways", "a100") => [29.0, 29.0],
        ("shared memory, 8 ways", "a100") => [37.0, 37.0],
        ("shared memory, chain", "rtx4090") => [30.1, 30.1],
        ("shared memory, chain", _) if hopper => [28.6, 29.0],
        ("first-level cache, chain", "a100") => [33.0, 38.0],
        ("first-level cache, chain", "rtx4090") => [43.4, 43.4],
        ("first-level cache, chain", _) if hopper => [40.2, 40.7],
        ("second-level cache, chain", "a100") => [208.0, 357.0],
        ("second-level cache, chain", "rtx4090") => [273.0, 273.0],
        ("second-level cache, chain", _) if hopper => [258.0, 470.0],
        ("device memory, chain", "a100") => [466.0, 466.0],
        ("device memory, chain", "rtx4090") => [542.0, 542.0],
        ("device memory, chain", _) if hopper => [479.0, 570.0],
        ("mma m16n8k16, chain", "a100") => [24.6, 24.6],
        ("mma m16n8k16, chain", _) if hopper => [24.1, 24.1],
        ("mma m16n8k16, rate", "a100") => [8.0, 8.0],
        ("mma m16n8k16, rate", "rtx4090") => [32.0, 32.0],
        ("mma m16n8k16, rate", "l4") => [16.0, 16.0],
        ("mma m16n8k16, rate", _) if hopper => [6.6, 6.6],
        ("shuffle, chain", "a100") => [25.0, 25.0],
        ("barrier, 8 warps", "a100") => [37.0, 37.0],
        ("barrier, 32 warps", "a100") => [85.0, 85.0],
        ("store and fence", "a100") => [764.0, 764.0],
        ("hand-over by words", "a100") => [165.6, 165.6],
        ("hand-over by words", _) if hopper => [161.0, 545.0],
        ("grid barrier", "a100") => [1120.0, 1200.0],
        ("copy", "a100") => [1407.0, 1407.0],
        ("copy", "rtx4090") => [930.0, 930.0],
        ("copy", "h100") => [2900.0, 3000.0],
        ("shared memory of a peer, chain", _) if hopper => [181.0, 213.0],
        ("cluster barrier, 2 blocks", _) if hopper => [851.0, 851.0],
        _ => return None,
    };
    Some(figures)
}

/// Why there is no figure.
#[derive(Debug, thiserror::Error)]
pub enum Failed {
    /// Such a card is not known.
    #[error("there is no card {0}")]
    Card(String),
    /// The module cannot be loaded.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// A kernel is at fault.
    #[error("{0}")]
    Fault(#[from] Box<Fault>),
    /// Memory cannot be prepared.
    #[error("{0}")]
    Memory(String),
}

impl Microbench {
    /// The modelled figure on a card, of the PTX of the text that the kernel is in: the smaller and the larger.
    ///
    /// # Errors
    /// The card is not known; a kernel is at fault.
    pub fn modelled(&self, ptx: &str, card: &str) -> Result<[f64; 2], Failed> {
        let unknown = || Failed::Card(card.to_owned());
        let device = Device::named(card).ok_or_else(unknown)?;
        let rates = rates::card(card).ok_or_else(unknown)?;
        let mut times = [[0.0; 2]; 2];
        for (steps, time) in self.steps.into_iter().zip(&mut times) {
            let mut gpu = Gpu::new(device.clone(), 0);
            let module = gpu.load(ptx)?;
            let memory = self.prepare(&mut gpu)?;
            let arguments = [Arg::U64(memory), Arg::I32(steps), Arg::I32(self.argument)];
            let (_, cost) = gpu.launch_modelled(&module, self.kernel, &self.launch(&device), &arguments, &rates)?;
            *time = cost.modelled.microseconds;
        }
        let count = f64::from(self.steps[1] - self.steps[0]) * self.parts;
        let mut figures = [0, 1].map(|end| {
            let ns = (times[1][end] - times[0][end]) * 1e3 / count;
            match self.unit {
                Unit::Cycles => ns * rates[end].clock,
                Unit::Nanoseconds => ns,
                Unit::Gigabytes(bytes) => bytes / ns,
            }
        });
        figures.sort_by(f64::total_cmp);
        Ok(figures)
    }

    /// Whether its kernel is in [`CLUSTER`], not in [`ANY`].
    pub fn of_cluster(&self) -> bool {
        matches!(
            self.kernel,
            "chase_peer" | "cluster_barrier" | "mbarrier" | "hand_over" | "push"
        )
    }

    fn launch(&self, device: &Device) -> Launch {
        Launch {
            grid: [self.blocks.unwrap_or(device.processors), 1, 1],
            block: [self.threads, 1, 1],
            cluster: (self.cluster > 1).then_some([self.cluster, 1, 1]),
            cooperative: self.cooperative,
            registers: 64,
            ..Launch::default()
        }
    }

    fn prepare(&self, gpu: &mut Gpu) -> Result<u64, Failed> {
        let wrong = |wrong: crate::memory::Wrong| Failed::Memory(wrong.message);
        match self.memory {
            Prepared::Zeros(bytes) => gpu.upload("memory", &vec![0; bytes]).map_err(wrong),
            Prepared::Ring { stride, count } => {
                let base = gpu.memory().allocate((stride * count) as u64, "ring");
                gpu.memory()
                    .write(base, &ring_bytes(base, stride, count))
                    .map_err(wrong)?;
                Ok(base)
            }
        }
    }
}

/// A ring of addresses that begins at `base`.
pub fn ring_bytes(base: u64, stride: usize, count: usize) -> Vec<u8> {
    let mut bytes = vec![0; stride * count];
    for at in 0..count {
        let next = base + ((at + 1) % count * stride) as u64;
        bytes[at * stride..at * stride + 8].copy_from_slice(&next.to_le_bytes());
    }
    bytes
}
