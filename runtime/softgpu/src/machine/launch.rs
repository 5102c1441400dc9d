//! What a launch asks for, and whether the device can do it.

use super::device::Device;
use crate::fault::Kind;
use crate::program::Program;

/// A launch.
#[derive(Clone, Debug)]
pub struct Launch {
    /// Blocks along each axis.
    pub grid: [u32; 3],
    /// Threads of a block along each axis.
    pub block: [u32; 3],
    /// Blocks of a cluster along each axis; none: what the kernel's head says, or no clusters.
    pub cluster: Option<[u32; 3]>,
    /// Dynamic shared memory in bytes.
    pub shared: u32,
    /// Whether all blocks must be resident at once.
    pub cooperative: bool,
    /// Whether clusters of more than 8 blocks are asked for (`cudaFuncAttributeNonPortableClusterSizeAllowed`).
    pub large_clusters: bool,
    /// Registers of a thread, as ptxas reports them.
    pub registers: u32,
    /// Decides everything that is open: the order of warps, blocks and lanes.
    pub seed: u64,
    /// Most instructions of threads.
    pub budget: u64,
    /// Whether approximate functions are perturbed inside their documented bounds.
    pub perturb: bool,
}

impl Default for Launch {
    fn default() -> Launch {
        Launch {
            grid: [1; 3],
            block: [1; 3],
            cluster: None,
            shared: 0,
            cooperative: false,
            large_clusters: false,
            registers: 32,
            seed: 0,
            budget: 1 << 40,
            perturb: false,
        }
    }
}

/// A launch with its sizes worked out.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// Blocks.
    pub blocks: u32,
    /// Threads a block.
    pub threads: u32,
    /// Warps a block.
    pub warps: u32,
    /// Blocks a cluster along each axis.
    pub cluster: [u32; 3],
    /// Blocks a cluster; 1 without clusters.
    pub cluster_blocks: u32,
    /// Whether the launch has clusters.
    pub clustered: bool,
    /// Bytes of shared memory a block.
    pub shared: u32,
    /// Blocks that are resident at once.
    pub resident: u32,
}

/// Why a launch is refused: the kind and the sentence.
pub type Refusal = (Kind, String);

impl Plan {
    /// Checks a launch against the kernel and the device.
    ///
    /// # Errors
    /// What the driver would refuse.
    pub fn new(launch: &Launch, program: &Program, device: &Device) -> Result<Plan, Refusal> {
        let blocks = count(launch.grid, "the grid has no blocks, or more than 2^31 - 1")?;
        let threads = count(launch.block, "the block has no threads")?;
        let (cluster, clustered) = cluster_of(launch, program);
        let plan = Plan {
            blocks,
            threads,
            warps: threads.div_ceil(32),
            cluster,
            cluster_blocks: count(cluster, "the cluster has no blocks")?,
            clustered,
            shared: program.shared.next_multiple_of(16) + launch.shared,
            resident: 0,
        };
        plan.check_threads(launch, program)?;
        plan.check_cluster(launch, device)?;
        plan.check_shared(device)?;
        plan.with_residents(launch, device)
    }

    fn check_threads(&self, launch: &Launch, program: &Program) -> Result<(), Refusal> {
        if self.threads > 1024 || launch.block[2] > 64 {
            return refuse(format!(
                "{} threads a block; a block has at most 1024, and 64 along z",
                self.threads
            ));
        }
        let of = |name: &str| {
            program
                .directives
                .iter()
                .find(|(d, _)| d == name)
                .map(|(_, n)| n.as_slice())
        };
        let product = |sizes: &[u32]| sizes.iter().product::<u32>();
        if let Some(most) = of("maxntid").map(product).filter(|most| self.threads > *most) {
            return refuse(format!(
                "{} threads a block; the kernel is compiled for at most {most}",
                self.threads
            ));
        }
        let required = of("reqntid").filter(|sizes| launch.block.iter().zip(*sizes).any(|(a, b)| a != b));
        if let Some(sizes) = required {
            return refuse(format!(
                "blocks of {:?} threads; the kernel requires {sizes:?}",
                launch.block
            ));
        }
        Ok(())
    }

    fn check_cluster(&self, launch: &Launch, device: &Device) -> Result<(), Refusal> {
        if !self.clustered {
            return Ok(());
        }
        if device.gpcs.is_empty() {
            return refuse(format!("{} has no clusters", device.name));
        }
        let most = if launch.large_clusters { 16 } else { 8 };
        if self.cluster_blocks > most {
            let text = format!("clusters of {} blocks; {most} is the most", self.cluster_blocks);
            let hint = if launch.large_clusters {
                ""
            } else {
                " without the attribute for more"
            };
            return refuse(text + hint);
        }
        let uneven = launch
            .grid
            .iter()
            .zip(self.cluster)
            .any(|(grid, cluster)| !grid.is_multiple_of(cluster));
        if uneven {
            return refuse(format!(
                "a grid of {:?} blocks in clusters of {:?}",
                launch.grid, self.cluster
            ));
        }
        Ok(())
    }

    fn check_shared(&self, device: &Device) -> Result<(), Refusal> {
        if self.shared > device.block_shared {
            let most = device.block_shared;
            return refuse(format!(
                "{} bytes of shared memory a block; {} has {most}",
                self.shared, device.name
            ));
        }
        Ok(())
    }

    fn with_residents(self, launch: &Launch, device: &Device) -> Result<Plan, Refusal> {
        let each = device.blocks_a_processor(self.threads, self.shared, launch.registers);
        let resident = match self.clustered {
            true => device.clusters(self.cluster_blocks, each) * self.cluster_blocks,
            false => device.processors * each,
        };
        if resident == 0 {
            let text = format!(
                "not even one block fits: {} threads with {} registers each, {} bytes of shared memory",
                self.threads, launch.registers, self.shared
            );
            return refuse(text);
        }
        if launch.cooperative && self.blocks > resident {
            let text = format!(
                "a cooperative grid of {} blocks; {} holds {resident} at once ({} threads with {} registers, {} bytes of \
                 shared memory)",
                self.blocks, device.name, self.threads, launch.registers, self.shared
            );
            return Err((Kind::CoResidency, text));
        }
        Ok(Plan { resident, ..self })
    }

    /// The block's place in the grid.
    pub fn block_at(&self, launch: &Launch, block: u32) -> [u32; 3] {
        place(block, launch.grid)
    }

    /// The block of a rank of a cluster, counted x fastest in the grid.
    pub fn block_of(&self, launch: &Launch, cluster: u32, rank: u32) -> u32 {
        if !self.clustered {
            return cluster;
        }
        let counts = [0, 1, 2].map(|axis| launch.grid[axis] / self.cluster[axis]);
        let (outer, inner) = (place(cluster, counts), place(rank, self.cluster));
        let at = [0, 1, 2].map(|axis| outer[axis] * self.cluster[axis] + inner[axis]);
        at[0] + launch.grid[0] * (at[1] + launch.grid[1] * at[2])
    }
}

fn refuse<T>(message: String) -> Result<T, Refusal> {
    Err((Kind::Launch, message))
}

fn count(sizes: [u32; 3], message: &str) -> Result<u32, Refusal> {
    let count = sizes.iter().try_fold(1u32, |product, size| product.checked_mul(*size));
    count
        .filter(|count| *count != 0 && *count < 1 << 31)
        .ok_or((Kind::Launch, message.to_owned()))
}

fn cluster_of(launch: &Launch, program: &Program) -> ([u32; 3], bool) {
    let required = program
        .directives
        .iter()
        .find(|(name, _)| name == "reqnctapercluster")
        .map(|(_, sizes)| {
            let mut cluster = [1; 3];
            cluster.iter_mut().zip(sizes).for_each(|(out, size)| *out = *size);
            cluster
        });
    match launch.cluster.or(required) {
        Some(cluster) => (cluster, true),
        None => ([1; 3], false),
    }
}

/// Number `at`, counted x fastest, along three axes.
pub fn place(at: u32, sizes: [u32; 3]) -> [u32; 3] {
    let [x, y, _] = sizes.map(|size| size.max(1));
    [at % x, at / x % y, at / x / y]
}
