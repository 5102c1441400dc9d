//! The engine of every GPU: what the plan's documentation calls a run, step by step.

use super::Gpu;
use super::buffers::Buffers;
use super::launch::{self, Exchange, Modules, Ready};
use super::library::{self, PlainProduct};
use super::signature;
use crate::engine::{Data, Engine, RunError};
use crate::given;
use crate::manifest::Manifest;
use crate::nvrtc::Compiled;
use crate::plan::{Buffer, BufferId, FinalCopy, Initial, Plan, Role, Scope};
use std::collections::BTreeMap;

/// A plan, loaded on a GPU.
pub struct GpuEngine<G: Gpu> {
    // Order matters: memory, functions and the module must be gone before the device is.
    buffers: Buffers<G>,
    exchanges: Vec<Exchange<G>>,
    prologue: Vec<Ready<G>>,
    initial: Vec<Ready<G>>,
    launches: Vec<Ready<G>>,
    /// For each launch: what a library may do instead.
    products: Vec<Option<PlainProduct>>,
    _modules: Vec<G::Module>,
    plan: Plan,
    manifest: Manifest,
    has_params: bool,
    gpu: G,
}

impl<G: Gpu> GpuEngine<G> {
    /// Loads a module on a device. The manifest and the module are of this plan.
    ///
    /// # Errors
    /// The manifest is of another plan or another module; the module does not load; the device cannot hold the blocks that must run at once.
    pub fn new(gpu: G, plan: Plan, manifest: Manifest, module: &Compiled) -> Result<GpuEngine<G>, RunError> {
        GpuEngine::with_modules(gpu, plan, manifest, &[module])
    }

    /// Loads several modules on a device, which have the plan's kernels between them.
    ///
    /// # Errors
    /// Those of [`GpuEngine::new`].
    pub fn with_modules(
        mut gpu: G,
        plan: Plan,
        manifest: Manifest,
        modules: &[&Compiled],
    ) -> Result<GpuEngine<G>, RunError> {
        check(&plan, &manifest)?;
        check_signatures(&plan, &manifest, modules)?;
        let loaded = Modules::load(&mut gpu, modules)?;
        let prologue = launch::prepare(&mut gpu, &loaded, &manifest.prologue)?;
        let initial = launch::prepare(&mut gpu, &loaded, &manifest.initial)?;
        let launches = launch::prepare(&mut gpu, &loaded, &manifest.launches)?;
        let products = manifest
            .launches
            .iter()
            .map(|m| plan.launches.iter().find(|l| l.name == m.kernel));
        let products = products.map(|l| library::plain(&plan, l?)).collect();
        Ok(GpuEngine {
            buffers: Buffers::new(&plan),
            exchanges: Exchange::all(&manifest),
            prologue,
            initial,
            launches,
            products,
            _modules: loaded.into_modules(),
            plan,
            manifest,
            has_params: false,
            gpu,
        })
    }

    /// The device.
    pub fn gpu(&self) -> &G {
        &self.gpu
    }

    /// Lets the epochs of every exchange go on from `epoch`, as if so many had been used: shows that counting past 2^32
    /// works without running so many frames.
    pub fn set_epoch(&mut self, epoch: u32) {
        for exchange in &mut self.exchanges {
            exchange.epoch = u64::from(epoch);
        }
    }

    /// Initial windows, filled or computed where the caller gives none, and what else is there before the frames. A launch
    /// may compute several windows, so those given are uploaded after all launches.
    fn windows(&mut self, run: (usize, usize), given: &BTreeMap<BufferId, Data>) -> Result<(), RunError> {
        for (id, buffer) in self.plan.ids() {
            match &buffer.role {
                Role::Initial(Initial::Fill(value)) if !given.contains_key(&id) => {
                    self.buffers.fill(&mut self.gpu, &self.plan, id, *value, run.1)?;
                }
                _ => {}
            }
        }
        for at in self.plan.needed_initial(|id| given.contains_key(&id)) {
            launch::run(
                &mut self.gpu,
                &self.initial[at],
                &self.buffers,
                &mut self.exchanges,
                run,
            )?;
        }
        self.upload(given, |role| matches!(role, Role::Initial(_)))
    }

    fn upload(&mut self, given: &BTreeMap<BufferId, Data>, wanted: impl Fn(&Role) -> bool) -> Result<(), RunError> {
        for (id, data) in given {
            if wanted(&self.plan.buffer(*id).role) {
                self.buffers.upload(&mut self.gpu, &self.plan, *id, data)?;
            }
        }
        Ok(())
    }

    /// Final windows, or parts of them, that no kernel writes.
    fn finals(&mut self, (frames, batch): (usize, usize)) -> Result<(), RunError> {
        for FinalCopy {
            target,
            source,
            initial,
        } in &self.manifest.finals
        {
            let frame = frame_bytes(self.plan.buffer(*target), batch);
            let window = window_of(self.plan.buffer(*target));
            // Frames T - k .. T of the initial window followed by the source.
            let (old, new) = (window.saturating_sub(frames), window.min(frames));
            let (buffers, gpu) = (&mut self.buffers, &mut self.gpu);
            buffers.copy_frames(gpu, (*initial, frames.min(window)), (*target, 0), old, frame)?;
            buffers.copy_frames(gpu, (*source, frames - new), (*target, old), new, frame)?;
        }
        for short in &self.manifest.short {
            let frame = frame_bytes(self.plan.buffer(short.target), batch);
            let old = short.frames.saturating_sub(frames);
            let from = (short.initial, short.frames - old);
            self.buffers
                .copy_frames(&mut self.gpu, from, (short.target, 0), old, frame)?;
        }
        Ok(())
    }

    fn results(&mut self, run: (usize, usize)) -> Result<BTreeMap<BufferId, Data>, RunError> {
        let wanted = self
            .plan
            .ids()
            .filter(|(_, b)| matches!(b.role, Role::Output | Role::Final));
        let (buffers, gpu) = (&self.buffers, &mut self.gpu);
        wanted
            .map(|(id, buffer)| Ok((id, buffers.download(gpu, buffer, id, run)?)))
            .collect()
    }
}

impl<G: Gpu> Engine for GpuEngine<G> {
    fn name(&self) -> String {
        self.gpu.name()
    }

    fn set_params(&mut self, params: &BTreeMap<BufferId, Data>) -> Result<(), RunError> {
        given::check_params(&self.plan, params)?;
        self.has_params = false;
        self.buffers.reserve_constants(&mut self.gpu, &self.plan)?;
        self.upload(params, |role| *role == Role::Param)?;
        for ready in &self.prologue {
            launch::run(&mut self.gpu, ready, &self.buffers, &mut self.exchanges, (1, 1))?;
        }
        self.gpu.synchronize()?;
        self.has_params = true;
        Ok(())
    }

    fn run(
        &mut self,
        frames: usize,
        batch: usize,
        given: &BTreeMap<BufferId, Data>,
    ) -> Result<BTreeMap<BufferId, Data>, RunError> {
        given::check_run(&self.plan, frames, batch, given)?;
        if !self.has_params {
            let first = self.plan.buffers.iter().find(|b| b.role == Role::Param);
            if let Some(buffer) = first {
                return Err(RunError::Missing {
                    name: given::key(buffer),
                });
            }
            self.set_params(&BTreeMap::new())?;
        }
        let run = (frames, batch);
        self.buffers.reserve_all(&mut self.gpu, &self.plan, run)?;
        self.upload(given, |role| *role == Role::Input)?;
        self.windows(run, given)?;
        for (ready, product) in self.launches.iter().zip(&self.products) {
            let done = match product {
                Some(product) => library::run(&mut self.gpu, product, &self.buffers, run)?,
                None => false,
            };
            if !done {
                launch::run(&mut self.gpu, ready, &self.buffers, &mut self.exchanges, run)?;
            }
        }
        self.finals(run)?;
        self.results(run)
    }
}

/// Every kernel of the manifest takes what its module's PTX says; modules without PTX are trusted.
fn check_signatures(plan: &Plan, manifest: &Manifest, modules: &[&Compiled]) -> Result<(), RunError> {
    for (at, module) in modules.iter().enumerate().filter(|(_, m)| !m.ptx.is_empty()) {
        let launches = manifest
            .prologue
            .iter()
            .chain(&manifest.initial)
            .chain(&manifest.launches);
        let own = launches.filter(|l| launch::home(modules, &l.kernel) == at);
        signature::check(&module.ptx, own).map_err(|what| RunError::Device(format!("{}: {what}", plan.cell)))?;
    }
    Ok(())
}

/// The parts of plan and manifest that the engine relies on agree.
fn check(plan: &Plan, manifest: &Manifest) -> Result<(), RunError> {
    let alike = |(b, e): (&Buffer, &crate::manifest::BufferEntry)| {
        (&b.name, &b.role, b.scope, &b.shape, b.elem) == (&e.name, &e.role, e.scope, &e.shape, e.elem)
    };
    let same_buffers =
        plan.buffers.len() == manifest.buffers.len() && plan.buffers.iter().zip(&manifest.buffers).all(alike);
    let computed = plan.buffers.iter().all(|b| match b.role {
        Role::Initial(Initial::Launch(at)) => at < manifest.initial.len(),
        _ => true,
    });
    let copies = manifest.finals.iter().flat_map(|f| [f.target, f.source, f.initial]);
    let copies = copies.chain(manifest.short.iter().flat_map(|s| [s.target, s.initial]));
    if same_buffers && computed && copies.into_iter().all(|id| (id.0 as usize) < plan.buffers.len()) {
        return Ok(());
    }
    Err(RunError::Device(format!(
        "the manifest of {} is not of this plan",
        manifest.cell
    )))
}

/// Bytes of one frame of all sequences.
fn frame_bytes(buffer: &Buffer, batch: usize) -> usize {
    buffer.elements() * batch * buffer.elem.bytes()
}

/// Frames of a window.
fn window_of(buffer: &Buffer) -> usize {
    match buffer.scope {
        Scope::Window(k) => k,
        Scope::Const | Scope::Batch | Scope::Frame => 0,
    }
}
