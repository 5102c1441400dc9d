//! A cell on a GPU, NVIDIA's or a simulated one: text, module (from the cache if it is there), engine.

use super::{Cell, Error};
use crate::codegen::{self, Target, Tuning};
use rnnc_runtime::cache::Cache;
use rnnc_runtime::cuda::Cuda;
use rnnc_runtime::engine::{Engine, RunError};
use rnnc_runtime::exec::{Gpu, GpuEngine};
use rnnc_runtime::nvrtc::{self, Job};
use rnnc_runtime::sim::{Model, Options, Sim};

impl Cell {
    /// Loads the cell on a GPU of this machine.
    pub(super) fn cuda(&self, ordinal: usize) -> Result<Box<dyn Engine>, Error> {
        let gpu = Cuda::open(ordinal).map_err(RunError::from)?;
        Ok(Box::new(self.on_gpu(gpu)?))
    }

    /// Loads the cell on a simulated GPU. With [`Cell::simulate`] the engine is at hand, and what ran on it can be asked.
    pub(super) fn sim(&self, model: Model, options: Options) -> Result<Box<dyn Engine>, Error> {
        let sms = Sim::new(model, options)?.limits().processors;
        let tuning = Tuning {
            sms: Some(sms as usize),
            ..Tuning::default()
        };
        Ok(Box::new(self.simulate(model, options, tuning)?))
    }

    /// The engine of the cell on a simulated GPU, its kernels fitted to `tuning`.
    ///
    /// # Errors
    /// There is no NVRTC; the device cannot hold the kernels.
    pub fn simulate(&self, model: Model, options: Options, tuning: Tuning) -> Result<GpuEngine<Sim>, Error> {
        self.simulate_altered(model, options, tuning, &str::to_owned)
    }

    /// As [`Cell::simulate`], with the CUDA text changed before it is compiled: deliberate faults show what checks catch.
    pub(super) fn simulate_altered(
        &self,
        model: Model,
        options: Options,
        tuning: Tuning,
        alter: &dyn Fn(&str) -> String,
    ) -> Result<GpuEngine<Sim>, Error> {
        self.on(Sim::new(model, options)?, tuning, alter)
    }

    /// The engine of the cell on a device that the caller has opened, its kernels fitted to it.
    ///
    /// # Errors
    /// There is no NVRTC; the device cannot hold the kernels.
    pub fn on_gpu<G: Gpu>(&self, gpu: G) -> Result<GpuEngine<G>, Error> {
        let tuning = Tuning {
            sms: Some(gpu.limits().processors as usize),
            ..Tuning::default()
        };
        self.on(gpu, tuning, &str::to_owned)
    }

    fn on<G: Gpu>(&self, gpu: G, tuning: Tuning, alter: &dyn Fn(&str) -> String) -> Result<GpuEngine<G>, Error> {
        let limits = gpu.limits().clone();
        let target = Target {
            arch: limits.arch.clone(),
            fast_math: self.fast_math,
            tuning,
        };
        let emitted = codegen::cuda::emit(self.plan(), &target);
        let name = format!("{}.cu", self.plan().cell);
        let options: &[&str] = if self.fast_math { &["--use_fast_math"] } else { &[] };
        let texts = emitted.split(nvrtc::side_by_side());
        let texts: Vec<String> = texts.iter().map(|text| alter(text)).collect();
        let job = |text| Job {
            text,
            name: &name,
            arch: &limits.arch,
            options,
            driver: limits.driver,
        };
        let jobs: Vec<Job> = texts.iter().map(|text| job(text)).collect();
        let built = nvrtc::build_all(&Cache::of_user(), &jobs).map_err(|e| RunError::Device(e.to_string()))?;
        let modules: Vec<&nvrtc::Compiled> = built.iter().map(|b| &b.compiled).collect();
        let plan = self.plan().clone();
        Ok(GpuEngine::with_modules(gpu, plan, emitted.manifest, &modules)?)
    }
}
