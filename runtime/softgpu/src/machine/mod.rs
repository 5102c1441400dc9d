//! Runs a launch: blocks are admitted, their warps are run in slices in a seeded random order, until all have exited or one
//! does something wrong.
//!
//! What comes in is a decoded program, memory, and a launch; what goes out is what the kernel did to memory and a [`Report`],
//! or the first [`Fault`]. Nothing depends on time, addresses of the host, or hashing: the same seed gives the same run.

mod admit;
mod asynchronous;
mod barrier;
mod cluster;
mod control;
mod cost;
mod device;
mod explain;
mod lanes;
mod launch;
mod matrix;
mod slice;
mod special;
mod transfer;
mod warp;

pub use device::Device;
pub use explain::Text;
pub use launch::Launch;

use crate::cost::{Cost, Modelled, Rates, Recorder};
use crate::fault::{Fault, Kind};
use crate::memory::random::Random;
use crate::memory::{Memory, Shape};
use crate::program::Program;
use barrier::BlockBarrier;
use cluster::Cluster;
use launch::Plan;
use serde::Serialize;
use warp::Warp;

/// What a launch did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The kernel.
    pub kernel: String,
    /// Instructions of warps.
    pub warp_instructions: u64,
    /// Instructions of threads.
    pub thread_instructions: u64,
    /// How often each instruction of the program was executed by a warp.
    pub hits: Vec<u64>,
}

/// A block that runs.
#[derive(Debug)]
pub(crate) struct Block {
    /// Its number.
    pub index: u32,
    /// Its cluster among those that run.
    pub cluster: u32,
    /// Its rank there.
    pub rank: u32,
    /// Its warps; none while one runs.
    pub warps: Vec<Option<Box<Warp>>>,
    /// Warps that have not exited.
    pub running: u32,
    /// Threads that have exited.
    pub exited: u32,
    /// Its barriers.
    pub barriers: [BlockBarrier; 16],
}

/// A launch that runs.
pub(crate) struct Machine<'a> {
    pub program: &'a Program,
    pub text: &'a Text,
    pub memory: &'a mut Memory,
    pub launch: &'a Launch,
    pub device: &'a Device,
    pub plan: Plan,
    pub params: Vec<u8>,
    pub random: Random,
    /// Blocks that run; the places of ended ones are used again.
    pub blocks: Vec<Option<Block>>,
    /// Clusters, by their number in the grid.
    pub clusters: Vec<Cluster>,
    /// Warps that can run.
    pub ready: Vec<(usize, u32)>,
    /// Clusters (or blocks) that are not admitted yet, the next one last.
    pub queue: Vec<u32>,
    /// Blocks that run.
    pub resident: u32,
    pub report: Report,
    /// Instructions of warps since something changed that others can see.
    pub idle: u64,
    /// Strong loads and atomic operations of this slice: who looks again and again waits for others.
    pub looks: u32,
    /// Writes down what the launch costs, if that is asked for.
    pub cost: Option<Box<Recorder>>,
}

/// Runs a kernel.
///
/// With `rates`, it also says what the launch would cost on a card of these rates.
///
/// # Errors
/// The launch is refused, or the kernel does something wrong.
pub fn run(
    (program, text): (&Program, &Text),
    memory: &mut Memory,
    device: &Device,
    launch: &Launch,
    params: Vec<u8>,
    rates: Option<&[Rates; 2]>,
) -> Result<(Report, Option<Cost>), Box<Fault>> {
    let plan = Plan::new(launch, program, device).map_err(|(kind, message)| text.refused(program, kind, message))?;
    memory.begin(&Shape {
        blocks: plan.blocks,
        threads: plan.threads,
        cluster: plan.cluster_blocks,
        shared: plan.shared,
        local: program.local,
        params: params.clone(),
    });
    let mut machine = Machine::new((program, text), memory, device, launch, plan, params);
    machine.cost = rates.map(|rates| Box::new(Recorder::new(machine.cost_shape(), *rates)));
    machine.admit();
    machine.schedule()?;
    let end = machine.memory.end();
    end.map_err(|wrong| machine.explain_end(wrong))?;
    let cost = machine.cost.take().zip(rates).map(|(recorder, rates)| {
        let (trace, counts) = recorder.finish();
        let modelled = Modelled::of(&trace, rates);
        Cost { counts, modelled }
    });
    Ok((machine.report, cost))
}

/// Most instructions of a slice.
const SLICE: u32 = 2000;
/// The same where the launch is modelled: nobody runs far ahead of the others.
const SHORT: u32 = 64;
/// Warps spin where each has run so many instructions and nothing has changed.
const SPIN: u64 = 1 << 20;
/// Of so many warps at most: a grid that spins shows it together.
const SPINNING: u64 = 16;

impl<'a> Machine<'a> {
    fn new(
        (program, text): (&'a Program, &'a Text),
        memory: &'a mut Memory,
        device: &'a Device,
        launch: &'a Launch,
        plan: Plan,
        params: Vec<u8>,
    ) -> Machine<'a> {
        let clusters = plan.blocks / plan.cluster_blocks;
        let mut random = Random::new(launch.seed);
        let mut queue: Vec<u32> = (0..clusters).collect();
        for at in (1..queue.len()).rev() {
            queue.swap(at, random.below(at as u32 + 1) as usize);
        }
        Machine {
            program,
            text,
            memory,
            launch,
            device,
            params,
            random,
            blocks: Vec::new(),
            clusters: vec![Cluster::default(); clusters as usize],
            ready: Vec::new(),
            queue,
            resident: 0,
            looks: 0,
            cost: None,
            report: Report {
                kernel: program.kernel.to_string(),
                hits: vec![0; program.code.len()],
                ..Report::default()
            },
            idle: 0,
            plan,
        }
    }

    /// Picks warps until none is left.
    fn schedule(&mut self) -> Result<(), Box<Fault>> {
        loop {
            if self.program.asynchronous && self.step()? {
                self.idle = 0;
            }
            if self.ready.is_empty() {
                if self.admit_more() {
                    continue;
                }
                return if self.resident == 0 {
                    Ok(())
                } else {
                    Err(self.deadlock())
                };
            }
            let at = match &self.cost {
                None => self.random.below(self.ready.len() as u32) as usize,
                Some(recorder) => self.behind(recorder),
            };
            let (slot, warp) = self.ready[at];
            self.slice(at, slot, warp)?;
            self.check_spin()?;
        }
    }

    /// Asynchronous operations go on.
    fn step(&mut self) -> Result<bool, Box<Fault>> {
        self.memory.step().map_err(|wrong| self.explain_end(wrong))
    }

    /// Where everybody spins and nothing changes, blocks that wait for admission are the last hope.
    fn check_spin(&mut self) -> Result<(), Box<Fault>> {
        let ready = self.ready.len() as u64;
        if self.idle > 20_000 * ready.max(1) && self.admit_more() {
            self.idle = 0;
        }
        if self.idle > SPIN * ready.clamp(1, SPINNING) {
            return Err(self.deadlock());
        }
        if self.report.thread_instructions > self.launch.budget {
            return Err(self.over_budget());
        }
        Ok(())
    }

    /// Runs a warp for a while.
    fn slice(&mut self, at: usize, slot: usize, index: u32) -> Result<(), Box<Fault>> {
        let Some(mut warp) = self.take(slot, index) else {
            self.ready.swap_remove(at);
            return Ok(());
        };
        let mut quota = 1 + self.random.below(SLICE);
        if let Some(recorder) = &mut self.cost {
            recorder.picked(warp.id.block, warp.id.warp);
            quota = quota.min(SHORT);
        }
        self.looks = 0;
        let result = self.run_warp(&mut warp, quota);
        let runs = warp.runnable() > 0;
        let done = warp.groups.is_empty();
        if !runs {
            warp.ready = false;
            // Releases push only; the place is still this warp's.
            self.ready.swap_remove(at);
        }
        let stuck = warp.stuck();
        self.put(slot, index, warp);
        result?;
        if stuck {
            return Err(self.stuck_warp(slot, index));
        }
        if done {
            self.warp_done(slot)?;
        }
        Ok(())
    }

    fn take(&mut self, slot: usize, index: u32) -> Option<Box<Warp>> {
        self.blocks[slot].as_mut()?.warps[index as usize].take()
    }

    fn put(&mut self, slot: usize, index: u32, warp: Box<Warp>) {
        if let Some(block) = &mut self.blocks[slot] {
            block.warps[index as usize] = Some(warp);
        }
    }

    /// A warp has exited: perhaps its block has.
    fn warp_done(&mut self, slot: usize) -> Result<(), Box<Fault>> {
        self.idle = 0;
        let Some(block) = &mut self.blocks[slot] else {
            return Ok(());
        };
        block.running -= 1;
        if block.running > 0 {
            return Ok(());
        }
        let (index, cluster) = (block.index, block.cluster);
        self.blocks[slot] = None;
        self.resident -= 1;
        if let Some(cost) = &mut self.cost {
            cost.end_block(index);
        }
        self.block_left_cluster(cluster, index)?;
        self.admit();
        Ok(())
    }

    fn deadlock(&self) -> Box<Fault> {
        let waits = self.describe_waits();
        let spins = if self.ready.is_empty() {
            "waits"
        } else {
            "waits or spins, and nothing changes"
        };
        let message = format!("every thread {spins}: {waits}");
        let kind = if self.exited_before_barrier() {
            Kind::BarrierDivergence
        } else {
            Kind::Deadlock
        };
        self.fault_somewhere(kind, message)
    }

    fn over_budget(&self) -> Box<Fault> {
        let message = format!(
            "more than {} instructions of threads; {}",
            self.launch.budget,
            self.describe_waits()
        );
        self.fault_somewhere(Kind::Budget, message)
    }
}
