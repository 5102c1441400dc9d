//! The CPU engine: executes the same plan that `codegen` prints, in f32 on a few threads, with nothing installed.
//!
//! In: a plan that passes [`plan::check`](crate::plan::check), then parameters, then runs. Out: outputs and final windows.
//! Each launch is compiled once when the engine is made: bodies into programs over runs of points ([`compile`],
//! [`vector`]), products and the sums of loops into panels of weights ([`tile`]), packed when parameters change. Results
//! do not depend on the number of threads.

mod access;
mod channel;
mod compile;
mod fold;
mod isa;
mod math;
mod memory;
mod pool;
mod product;
mod program;
mod recurrence;
#[cfg(test)]
mod tests;
mod tile;
mod total;
mod vector;

use crate::engine::{Data, Engine, RunError};
use crate::given::{check_params, check_run};
use crate::plan::{self, BufferId, FinalCopy, Initial, Kernel, Launch, Plan, Role, Scope};
use channel::ChannelKernel;
use isa::Isa;
use memory::{Memory, View};
use pool::{Pool, Scratch};
use product::ProductKernel;
use recurrence::LoopKernel;
use std::collections::BTreeMap;
use total::TotalKernel;
use vector::{Env, Time};

/// Less work than this, in elementary steps, is done on the calling thread: waking others takes as long.
const WORTH_WAKING: usize = 1 << 16;

/// A plan on this machine's processor.
pub struct CpuEngine {
    plan: Plan,
    isa: Isa,
    pool: Pool,
    memory: Memory,
    view: View,
    prologue: Vec<Compiled>,
    initial: Vec<Compiled>,
    launches: Vec<Compiled>,
    /// Whether parameters are set and the prologue has run.
    ready: bool,
}

/// A launch made ready to run.
struct Compiled {
    kernel: CompiledKernel,
    /// Whether its weights are computed within a run, so that they must be packed anew each time.
    repack: bool,
}

enum CompiledKernel {
    Product(ProductKernel),
    Total(Vec<TotalKernel>),
    Channel(ChannelKernel),
    Loop(LoopKernel),
}

impl CpuEngine {
    /// Compiles the plan for `threads` threads, at least one.
    ///
    /// # Errors
    /// The plan breaks a rule of the plan's documentation.
    pub fn new(plan: Plan, threads: usize) -> Result<CpuEngine, RunError> {
        CpuEngine::with_isa(plan, threads, Isa::detect())
    }

    fn with_isa(plan: Plan, threads: usize, isa: Isa) -> Result<CpuEngine, RunError> {
        plan::check(&plan)
            .map_err(|errors| RunError::Device(format!("the plan is not sound: {}", errors.join("; "))))?;
        let compile = |launches: &[Launch]| launches.iter().map(|launch| Compiled::new(&plan, launch)).collect();
        let mut memory = Memory::default();
        Ok(CpuEngine {
            isa,
            pool: Pool::new(threads.max(1)),
            view: memory.view(),
            memory,
            prologue: compile(&plan.prologue),
            initial: compile(&plan.initial),
            launches: compile(&plan.launches),
            ready: false,
            plan,
        })
    }

    /// How many threads it runs on.
    pub fn threads(&self) -> usize {
        self.pool.threads()
    }

    /// Runs the launches of a list but those to be skipped.
    fn run_list(&mut self, list: List, frames: usize, batch: usize, skip: &[usize]) {
        self.memory.renew(&mut self.view);
        let CpuEngine {
            isa,
            pool,
            memory,
            view,
            ..
        } = self;
        let launches = match list {
            List::Prologue => &mut self.prologue,
            List::Initial => &mut self.initial,
            List::Run => &mut self.launches,
        };
        let launching = Launching {
            isa: *isa,
            pool,
            view,
            frames,
            batch,
        };
        for (_, launch) in launches.iter_mut().enumerate().filter(|(i, _)| !skip.contains(i)) {
            if launch.repack || list == List::Prologue {
                launch.pack(memory);
            }
            launch.run(&launching);
        }
    }

    /// What is there before the frames: initial windows, filled or computed where the caller did not give them, and more. A
    /// launch may compute several windows, so those given are set after all launches.
    fn defaults(&mut self, frames: usize, batch: usize, given: &BTreeMap<BufferId, Data>) {
        let needed = self.plan.needed_initial(|id| given.contains_key(&id));
        let skip: Vec<usize> = (0..self.plan.initial.len()).filter(|at| !needed.contains(at)).collect();
        self.run_list(List::Initial, frames, batch, &skip);
        for (id, buffer) in self.plan.ids() {
            match (&buffer.role, given.get(&id)) {
                (Role::Initial(_), Some(data)) => self.memory.set(buffer, id, data),
                (Role::Initial(Initial::Fill(value)), None) => self.memory.fill(buffer, id, *value),
                _ => {}
            }
        }
    }

    /// Frames of final windows that lie before the first frame of the run come from the initial windows.
    fn early_finals(&mut self, frames: usize, batch: usize) {
        for (target, buffer) in self.plan.ids().filter(|(_, b)| b.role == Role::Final) {
            let Scope::Window(k) = buffer.scope else { continue };
            let same = self
                .plan
                .ids()
                .find(|(_, b)| matches!(b.role, Role::Initial(_)) && b.name == buffer.name);
            if let Some((initial, _)) = same.filter(|_| frames < k) {
                let kept = (k - frames) * batch * buffer.elements();
                self.memory
                    .copy(initial, frames * batch * buffer.elements(), target, 0, kept);
            }
        }
    }

    /// The end of an input as its final window.
    fn final_copies(&mut self, frames: usize, batch: usize) {
        for FinalCopy { target, source, .. } in &self.plan.finals {
            let buffer = self.plan.buffer(*target);
            let Scope::Window(k) = buffer.scope else { continue };
            let (row, kept) = (batch * buffer.elements(), k.min(frames));
            self.memory
                .copy(*source, (frames - kept) * row, *target, (k - kept) * row, kept * row);
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum List {
    Prologue,
    Initial,
    Run,
}

impl Engine for CpuEngine {
    fn name(&self) -> String {
        "cpu".to_owned()
    }

    fn set_params(&mut self, params: &BTreeMap<BufferId, Data>) -> Result<(), RunError> {
        check_params(&self.plan, params)?;
        self.memory.resize(&self.plan, 1, 1);
        for (id, data) in params {
            self.memory.set(self.plan.buffer(*id), *id, data);
        }
        self.run_list(List::Prologue, 1, 1, &[]);
        for launch in self
            .initial
            .iter_mut()
            .chain(&mut self.launches)
            .filter(|launch| !launch.repack)
        {
            launch.pack(&self.memory);
        }
        self.ready = true;
        Ok(())
    }

    fn run(
        &mut self,
        frames: usize,
        batch: usize,
        given: &BTreeMap<BufferId, Data>,
    ) -> Result<BTreeMap<BufferId, Data>, RunError> {
        check_run(&self.plan, frames, batch, given)?;
        if !self.ready {
            // A cell without parameters needs none to be set.
            self.set_params(&BTreeMap::new())?;
        }
        self.memory.resize(&self.plan, frames, batch);
        for (id, data) in given {
            if self.plan.buffer(*id).role == Role::Input {
                self.memory.set(self.plan.buffer(*id), *id, data);
            }
        }
        self.defaults(frames, batch, given);
        self.early_finals(frames, batch);
        self.run_list(List::Run, frames, batch, &[]);
        self.final_copies(frames, batch);
        let wanted = self
            .plan
            .ids()
            .filter(|(_, b)| matches!(b.role, Role::Output | Role::Final));
        Ok(wanted.map(|(id, buffer)| (id, self.memory.data(buffer, id))).collect())
    }
}

impl Compiled {
    fn new(plan: &Plan, launch: &Launch) -> Compiled {
        let kernel = match &launch.kernel {
            Kernel::Product(product) => CompiledKernel::Product(ProductKernel::new(plan, product)),
            Kernel::Total(totals) => {
                CompiledKernel::Total(totals.iter().map(|total| TotalKernel::new(plan, total)).collect())
            }
            Kernel::Channel(channel) => CompiledKernel::Channel(ChannelKernel::new(plan, channel)),
            Kernel::Loop(kernel) => CompiledKernel::Loop(LoopKernel::new(plan, kernel)),
        };
        let stays = |id: BufferId| matches!(plan.buffer(id).role, Role::Param | Role::Prologue);
        let repack = !launch.kernel.matrices().iter().all(|matrix| stays(matrix.buffer));
        Compiled { kernel, repack }
    }

    fn pack(&mut self, memory: &Memory) {
        match &mut self.kernel {
            CompiledKernel::Product(product) => product.pack(memory),
            CompiledKernel::Channel(_) | CompiledKernel::Total(_) => {}
            CompiledKernel::Loop(kernel) => kernel.pack(memory),
        }
    }

    fn run(&mut self, launching: &Launching<'_>) {
        match &mut self.kernel {
            CompiledKernel::Product(product) => product.run(launching),
            CompiledKernel::Total(totals) => totals.iter().for_each(|total| total.run(launching)),
            CompiledKernel::Channel(channel) => channel.run(launching),
            CompiledKernel::Loop(kernel) => kernel.run(launching),
        }
    }
}

/// What a launch runs with.
struct Launching<'a> {
    isa: Isa,
    pool: &'a Pool,
    view: &'a View,
    frames: usize,
    batch: usize,
}

impl Launching<'_> {
    fn env(&self, time: Time) -> Env<'_> {
        Env {
            isa: self.isa,
            view: self.view,
            frames: self.frames,
            batch: self.batch,
            time,
            values: &[],
            slots: &[],
        }
    }

    /// What the copies of a scope are, and how many.
    fn copies(&self, scope: Scope) -> (Time, usize) {
        let time = match scope {
            Scope::Const => Time::Const,
            Scope::Batch => Time::Batch,
            Scope::Frame | Scope::Window(_) => Time::Frames,
        };
        (time, scope.copies(self.frames, self.batch))
    }

    /// Runs tasks that amount to about `work` elementary steps.
    fn tasks(&self, tasks: usize, work: usize, f: impl Fn(usize, &mut Scratch) + Sync) {
        if work < WORTH_WAKING {
            self.pool.alone(tasks, f);
        } else {
            self.pool.tasks(tasks, f);
        }
    }
}
