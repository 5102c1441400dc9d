//! The launches of a plan, resolved against modules, and the workspaces through which their blocks talk.

use super::buffers::Buffers;
use super::{Arg, Gpu, LaunchShape, Word};
use crate::engine::RunError;
use crate::manifest::{Argument, Grid, KernelLaunch, Manifest, Workspace};
use crate::nvrtc::Compiled;

/// A launch with its kernel.
pub(super) struct Ready<G: Gpu> {
    launch: KernelLaunch,
    function: G::Function,
    /// Blocks that the device holds at once; asked only for launches that depend on it.
    resident: u64,
}

/// Loaded modules, and which of them has which kernel.
pub(super) struct Modules<'a, G: Gpu> {
    compiled: &'a [&'a Compiled],
    loaded: Vec<G::Module>,
}

impl<'a, G: Gpu> Modules<'a, G> {
    /// Loads them.
    pub(super) fn load(gpu: &mut G, compiled: &'a [&'a Compiled]) -> Result<Modules<'a, G>, RunError> {
        let loaded: Result<_, _> = compiled.iter().map(|module| gpu.load(module)).collect();
        Ok(Modules {
            compiled,
            loaded: loaded?,
        })
    }

    /// Only the modules themselves.
    pub(super) fn into_modules(self) -> Vec<G::Module> {
        self.loaded
    }

    fn of(&self, kernel: &str) -> Option<&G::Module> {
        self.loaded.get(home(self.compiled, kernel))
    }
}

/// The number of the module that has a kernel; the first where none says so, as a module without a report does not.
pub(super) fn home(modules: &[&Compiled], kernel: &str) -> usize {
    modules.iter().position(|m| m.kernel(kernel).is_some()).unwrap_or(0)
}

/// Every launch of a list, ready.
pub(super) fn prepare<G: Gpu>(
    gpu: &mut G,
    modules: &Modules<'_, G>,
    launches: &[KernelLaunch],
) -> Result<Vec<Ready<G>>, RunError> {
    let one = |launch: &KernelLaunch| {
        let module = modules.of(&launch.kernel);
        let module = module.ok_or_else(|| RunError::Device(format!("no module has the kernel {}", launch.kernel)))?;
        ready(gpu, module, launch)
    };
    launches.iter().map(one).collect()
}

fn ready<G: Gpu>(gpu: &mut G, module: &G::Module, launch: &KernelLaunch) -> Result<Ready<G>, RunError> {
    let function = gpu.function(module, &launch.kernel, launch.shared)?;
    let resident = match launch.grid {
        Grid::Cover { .. } => 0,
        Grid::Groups { blocks, .. } => {
            let resident = gpu.resident(&function, launch.block, launch.shared)?;
            if resident < blocks {
                return Err(unsupported(
                    gpu,
                    format!(
                        "the {blocks} blocks of {} must run at once, and it holds {resident}: compile the cell for this \
                         device, or take a smaller one",
                        launch.kernel
                    ),
                ));
            }
            resident
        }
    };
    Ok(Ready {
        launch: launch.clone(),
        function,
        resident,
    })
}

/// The memory of a workspace, and how far its epochs have counted.
pub(super) struct Exchange<G: Gpu> {
    what: Workspace,
    memory: Option<G::Memory>,
    groups: u64,
    /// Epochs used since the memory was zeroed.
    pub(super) epoch: u64,
}

impl<G: Gpu> Exchange<G> {
    pub(super) fn all(manifest: &Manifest) -> Vec<Exchange<G>> {
        let new = |what: &Workspace| Exchange {
            what: what.clone(),
            memory: None,
            groups: 0,
            epoch: 0,
        };
        manifest.workspaces.iter().map(new).collect()
    }

    /// Zeroed memory for so many groups.
    fn reserve(&mut self, gpu: &mut G, groups: u64) -> Result<(), RunError> {
        if self.memory.is_some() && self.groups >= groups {
            return Ok(());
        }
        self.memory = None;
        let bytes = usize::try_from(self.what.bytes(groups)).unwrap_or(usize::MAX);
        self.memory = Some(gpu.alloc(bytes, "workspace")?);
        self.groups = groups;
        self.clear(gpu)
    }

    /// Zeroes the memory; epochs count from 0 again.
    fn clear(&mut self, gpu: &mut G) -> Result<(), RunError> {
        self.epoch = 0;
        let words = self.what.bytes(self.groups) / 4;
        match &mut self.memory {
            Some(memory) => gpu.fill(memory, Word::Bits32(0), words as usize),
            None => Ok(()),
        }
    }

    /// The epoch that the next launch starts at. It is counted as used even if the launch fails: what a failed launch left
    /// behind is then in the past.
    fn advance(&mut self, gpu: &mut G, used: u64) -> Result<u32, RunError> {
        const WRAP: u64 = 1 << 32;
        // The last one of a launch is start + used, and 0 is what zeroed memory holds.
        if self.epoch + used >= WRAP {
            self.clear(gpu)?;
        }
        let start = self.epoch;
        self.epoch += used;
        // After the check it is below 2^32.
        Ok(u32::try_from(start).unwrap_or(0))
    }
}

/// Launches one, for T frames of B sequences.
pub(super) fn run<G: Gpu>(
    gpu: &mut G,
    ready: &Ready<G>,
    buffers: &Buffers<G>,
    exchanges: &mut [Exchange<G>],
    (frames, batch): (usize, usize),
) -> Result<(), RunError> {
    let launch = &ready.launch;
    let shape = shape(gpu, ready, frames, batch)?;
    let groups = launch.grid.groups(batch as u64, ready.resident);
    let rounds = launch.grid.rounds(batch as u64, ready.resident);
    let mut epochs = vec![0; exchanges.len()];
    for argument in &launch.arguments {
        match argument {
            Argument::Workspace(at) => exchange(exchanges, *at)?.reserve(gpu, groups)?,
            Argument::Epoch(at) => {
                let exchange = exchange(exchanges, *at)?;
                exchange.reserve(gpu, groups)?;
                epochs[*at] = exchange.advance(gpu, exchange.what.epochs(frames as u64, rounds))?;
            }
            Argument::Buffer { .. } | Argument::Frames | Argument::Batch => {}
        }
    }
    let mut arguments = Vec::with_capacity(launch.arguments.len());
    for argument in &launch.arguments {
        arguments.push(match argument {
            Argument::Buffer { buffer, .. } => Arg::Memory(buffers.memory(*buffer)?),
            Argument::Frames => Arg::Int(int(gpu, frames)?),
            Argument::Batch => Arg::Int(int(gpu, batch)?),
            Argument::Workspace(at) => match &exchanges[*at].memory {
                Some(memory) => Arg::Memory(memory),
                None => return Err(damaged("a workspace has no memory")),
            },
            Argument::Epoch(at) => Arg::Unsigned(epochs[*at]),
        });
    }
    gpu.launch(&ready.function, shape, &arguments)
}

fn shape<G: Gpu>(gpu: &G, ready: &Ready<G>, frames: usize, batch: usize) -> Result<LaunchShape, RunError> {
    let blocks = ready.launch.grid.blocks(frames as u64, batch as u64, ready.resident);
    let grid = u32::try_from(blocks).ok().filter(|g| *g <= i32::MAX as u32);
    Ok(LaunchShape {
        grid: grid.ok_or_else(|| unsupported(gpu, format!("{} would need {blocks} blocks", ready.launch.kernel)))?,
        block: ready.launch.block,
        shared: ready.launch.shared,
        cooperative: ready.launch.cooperative,
    })
}

fn exchange<G: Gpu>(exchanges: &mut [Exchange<G>], at: usize) -> Result<&mut Exchange<G>, RunError> {
    exchanges
        .get_mut(at)
        .ok_or_else(|| damaged("a launch names a workspace that is not there"))
}

fn int<G: Gpu>(gpu: &G, count: usize) -> Result<i32, RunError> {
    i32::try_from(count).map_err(|_| unsupported(gpu, format!("{count} frames or sequences are more than 2^31 - 1")))
}

fn damaged(what: &str) -> RunError {
    RunError::Device(format!("the manifest contradicts itself: {what}"))
}

pub(super) fn unsupported<G: Gpu>(gpu: &G, reason: String) -> RunError {
    RunError::Unsupported {
        device: gpu.name(),
        reason,
    }
}
