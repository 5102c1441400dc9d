//! One simulated GPU. Every call takes effect at once; a fault of a kernel is the error of its launch.

use super::Model;
use crate::engine::RunError;
use crate::exec::{Arg, Gpu, LaunchShape, Limits, Word};
use crate::nvrtc::Compiled;
use serde::Serialize;
use softgpu::cost::{Cost, rates};
use softgpu::fault::Fault;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// How a GPU is simulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Decides every order that the hardware leaves open. The same seed gives the same run.
    pub seed: u64,
    /// Whether approximate functions are perturbed within their documented bounds.
    pub perturb: bool,
    /// Most instructions of threads that one launch may execute.
    pub budget: u64,
    /// Whether launches are counted and their time is modelled ([`Sim::costs`]).
    pub modelled: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            seed: 0,
            perturb: false,
            budget: 1 << 42,
            modelled: false,
        }
    }
}

/// What the launches of a kernel came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Launches.
    pub launches: u64,
    /// Instructions of warps.
    pub warp_instructions: u64,
    /// Instructions of threads.
    pub thread_instructions: u64,
}

impl Counts {
    /// What was counted since `then`.
    #[must_use]
    pub fn minus(self, then: Counts) -> Counts {
        Counts {
            launches: self.launches - then.launches,
            warp_instructions: self.warp_instructions - then.warp_instructions,
            thread_instructions: self.thread_instructions - then.thread_instructions,
        }
    }
}

/// A simulated GPU.
#[derive(Debug)]
pub struct Sim {
    gpu: softgpu::Gpu,
    model: Model,
    limits: Limits,
    options: Options,
    launches: u64,
    used: u64,
    freed: Arc<Mutex<Vec<Region>>>,
    counts: BTreeMap<String, Counts>,
    costs: Vec<(String, Cost)>,
    fault: Option<Fault>,
}

/// Where memory lies.
#[derive(Clone, Copy, Debug)]
struct Region {
    address: u64,
    bytes: u64,
}

/// A region of device memory. Dropping it frees it: a kernel that still uses it is at fault.
#[derive(Debug)]
pub struct Memory {
    region: Region,
    freed: Arc<Mutex<Vec<Region>>>,
}

impl Drop for Memory {
    fn drop(&mut self) {
        let mut freed = self.freed.lock().unwrap_or_else(PoisonError::into_inner);
        freed.push(self.region);
    }
}

/// A module, decoded.
#[derive(Debug)]
pub struct Module {
    module: Arc<softgpu::Module>,
    /// Registers of a thread, by kernel, as the assembler reported them.
    registers: BTreeMap<String, u32>,
}

/// A kernel of a module.
#[derive(Debug)]
pub struct Function {
    module: Arc<softgpu::Module>,
    name: String,
    registers: u32,
    /// Static shared memory in bytes.
    shared: u32,
}

impl Sim {
    /// A GPU of this model.
    ///
    /// # Errors
    /// softgpu lacks the model.
    pub fn new(model: Model, options: Options) -> Result<Sim, RunError> {
        let device = softgpu::Device::named(model.name).ok_or_else(|| RunError::Unsupported {
            device: format!("sim:{}", model.name),
            reason: "there is no such model".to_owned(),
        })?;
        let limits = Limits {
            product: format!("{} (simulated)", model.product),
            arch: format!("sm_{}", device.capability),
            processors: device.processors,
            shared: device.block_shared,
            memory: model.memory,
            driver: None,
        };
        Ok(Sim {
            gpu: softgpu::Gpu::new(device, options.seed),
            model,
            limits,
            options,
            launches: 0,
            used: 0,
            freed: Arc::default(),
            counts: BTreeMap::new(),
            costs: Vec::new(),
            fault: None,
        })
    }

    /// What has run, by kernel.
    pub fn counts(&self) -> &BTreeMap<String, Counts> {
        &self.counts
    }

    /// What each launch came to, in order, by kernel; none unless launches are modelled.
    pub fn costs(&self) -> &[(String, Cost)] {
        &self.costs
    }

    /// Runs a kernel, and notes what it costs if that is asked for.
    fn run(
        &mut self,
        function: &Function,
        launch: &softgpu::Launch,
        arguments: &[softgpu::Arg<'_>],
    ) -> Result<softgpu::Report, Box<Fault>> {
        let rates = rates::card(self.model.name).filter(|_| self.options.modelled);
        let Some(rates) = rates else {
            return self.gpu.launch(&function.module, &function.name, launch, arguments);
        };
        let (module, name) = (&function.module, &function.name);
        let (report, cost) = self.gpu.launch_modelled(module, name, launch, arguments, &rates)?;
        self.costs.push((name.clone(), cost));
        Ok(report)
    }

    /// The fault of the launch that failed, if one did.
    pub fn fault(&self) -> Option<&Fault> {
        self.fault.as_ref()
    }

    fn error(&self, what: &str, why: impl std::fmt::Display) -> RunError {
        RunError::Device(format!("{}: {what}: {why}", self.name()))
    }

    fn unsupported(&self, reason: String) -> RunError {
        RunError::Unsupported {
            device: self.name(),
            reason,
        }
    }

    /// Frees what was dropped since the last call.
    fn collect(&mut self) -> Result<(), RunError> {
        let freed = std::mem::take(&mut *self.freed.lock().unwrap_or_else(PoisonError::into_inner));
        for region in freed {
            self.used -= region.bytes;
            let done = self.gpu.memory().free(region.address);
            done.map_err(|wrong| self.error("cannot free memory", wrong.message))?;
        }
        Ok(())
    }

    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), RunError> {
        let done = self.gpu.memory().write(address, bytes);
        done.map_err(|wrong| self.error("cannot copy to the device", wrong.message))
    }

    fn read(&mut self, address: u64, bytes: &mut [u8]) -> Result<(), RunError> {
        let done = self.gpu.memory().read(address, bytes);
        done.map_err(|wrong| self.error("cannot copy from the device", wrong.message))
    }

    fn shape(&mut self, function: &Function, shape: LaunchShape) -> softgpu::Launch {
        self.launches += 1;
        softgpu::Launch {
            grid: [shape.grid, 1, 1],
            block: [shape.block, 1, 1],
            shared: shape.shared,
            cooperative: shape.cooperative,
            registers: function.registers,
            // Every launch has an order of its own, and any seed gives other orders than its neighbours.
            seed: self.options.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ self.launches,
            budget: self.options.budget,
            perturb: self.options.perturb,
            ..softgpu::Launch::default()
        }
    }
}

fn argument<'a>(argument: &Arg<'_, Memory>) -> softgpu::Arg<'a> {
    match argument {
        Arg::Memory(memory) => softgpu::Arg::U64(memory.region.address),
        Arg::Int(value) => softgpu::Arg::I32(*value),
        Arg::Unsigned(value) => softgpu::Arg::U32(*value),
    }
}

impl Gpu for Sim {
    type Memory = Memory;
    type Module = Module;
    type Function = Function;

    fn name(&self) -> String {
        format!("sim:{}", self.model.name)
    }

    fn limits(&self) -> &Limits {
        &self.limits
    }

    fn alloc(&mut self, bytes: usize, name: &str) -> Result<Memory, RunError> {
        self.collect()?;
        let bytes = bytes as u64;
        if bytes > self.limits.memory - self.used {
            return Err(self.unsupported(format!(
                "its memory has no room for {bytes} bytes more: run fewer frames or sequences"
            )));
        }
        self.used += bytes;
        let address = self.gpu.memory().allocate(bytes, name);
        Ok(Memory {
            region: Region { address, bytes },
            freed: Arc::clone(&self.freed),
        })
    }

    fn upload(&mut self, to: &mut Memory, bytes: &[u8]) -> Result<(), RunError> {
        self.write(to.region.address, bytes)
    }

    fn download(&mut self, from: &Memory, bytes: &mut [u8]) -> Result<(), RunError> {
        self.read(from.region.address, bytes)
    }

    fn copy(&mut self, from: (&Memory, usize), to: (&mut Memory, usize), bytes: usize) -> Result<(), RunError> {
        let mut copied = vec![0; bytes];
        self.read(from.0.region.address + from.1 as u64, &mut copied)?;
        self.write(to.0.region.address + to.1 as u64, &copied)
    }

    fn fill(&mut self, to: &mut Memory, word: Word, count: usize) -> Result<(), RunError> {
        let bytes = match word {
            Word::Bits16(bits) => bits.to_le_bytes().repeat(count),
            Word::Bits32(bits) => bits.to_le_bytes().repeat(count),
        };
        self.write(to.region.address, &bytes)
    }

    fn load(&mut self, module: &Compiled) -> Result<Module, RunError> {
        let loaded = self.gpu.load(&module.ptx);
        let loaded = loaded.map_err(|e| self.error("cannot load the module's PTX", e))?;
        let registers = module.kernels().map(|usage| (usage.name.clone(), usage.registers));
        Ok(Module {
            module: Arc::new(loaded),
            registers: registers.collect(),
        })
    }

    fn function(&mut self, module: &Module, name: &str, shared: u32) -> Result<Function, RunError> {
        let Some(kernel) = module.module.kernel(name) else {
            return Err(self.error("cannot find a kernel of the module", name));
        };
        let total = u64::from(kernel.shared) + u64::from(shared);
        if total > u64::from(self.limits.shared) {
            return Err(self.unsupported(format!(
                "{name} needs {total} bytes of shared memory a block, and there are {}: compile the cell for {}",
                self.limits.shared, self.limits.arch
            )));
        }
        // Text that was never assembled has no count; ptxas seldom gives a kernel fewer.
        let registers = module.registers.get(name).copied().unwrap_or(32);
        Ok(Function {
            module: Arc::clone(&module.module),
            name: name.to_owned(),
            registers,
            shared: kernel.shared,
        })
    }

    fn resident(&mut self, function: &Function, block: u32, shared: u32) -> Result<u64, RunError> {
        let device = self.gpu.device();
        let each = device.blocks_a_processor(block, function.shared + shared, function.registers);
        Ok(u64::from(each) * u64::from(device.processors))
    }

    fn launch(
        &mut self,
        function: &Function,
        shape: LaunchShape,
        arguments: &[Arg<'_, Memory>],
    ) -> Result<(), RunError> {
        self.collect()?;
        let launch = self.shape(function, shape);
        let arguments: Vec<softgpu::Arg<'_>> = arguments.iter().map(argument).collect();
        match self.run(function, &launch, &arguments) {
            Ok(report) => {
                let counts = self.counts.entry(function.name.clone()).or_default();
                counts.launches += 1;
                counts.warp_instructions += report.warp_instructions;
                counts.thread_instructions += report.thread_instructions;
                Ok(())
            }
            Err(fault) => {
                let error = self.error("a kernel is at fault", &fault);
                self.fault = Some(*fault);
                Err(error)
            }
        }
    }

    fn synchronize(&mut self) -> Result<(), RunError> {
        self.collect()
    }
}
