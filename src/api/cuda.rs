//! A cell on an NVIDIA GPU: text, module (from the cache if it is there), engine.

use super::{Cell, Error};
use crate::codegen::{self, Target, Tuning};
use rnnc_runtime::cache::Cache;
use rnnc_runtime::cuda::Cuda;
use rnnc_runtime::engine::{Engine, RunError};
use rnnc_runtime::exec::{Gpu, GpuEngine};
use rnnc_runtime::nvrtc::{self, Job};

impl Cell {
    /// Loads the cell on a GPU.
    pub(super) fn cuda(&self, ordinal: usize) -> Result<Box<dyn Engine>, Error> {
        let gpu = Cuda::open(ordinal).map_err(RunError::from)?;
        let limits = gpu.limits().clone();
        let target = Target {
            arch: limits.arch.clone(),
            fast_math: self.fast_math,
            tuning: Tuning {
                sms: Some(limits.processors as usize),
                ..Tuning::default()
            },
        };
        let emitted = codegen::cuda::emit(self.plan(), &target);
        let name = format!("{}.cu", self.plan().cell);
        let options: &[&str] = if self.fast_math { &["--use_fast_math"] } else { &[] };
        let texts = emitted.split(nvrtc::side_by_side());
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
        let engine = GpuEngine::with_modules(gpu, self.plan().clone(), emitted.manifest, &modules)?;
        Ok(Box::new(engine))
    }
}
