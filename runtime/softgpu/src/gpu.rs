//! The device as a host sees it: modules are loaded, memory is allocated and copied, kernels are launched.

use crate::cost::{Cost, Rates};
use crate::fault::Fault;
use crate::machine::{self, Device, Launch, Report, Text};
use crate::memory::{Memory, Wrong};
use crate::program::{self, Param, Program, ProgramError};
use crate::ptx::{self, ParseError};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Why a module cannot be loaded.
#[derive(Clone, Debug, thiserror::Error)]
pub enum LoadError {
    /// It is no PTX.
    #[error(transparent)]
    Parse(#[from] ParseError),
    /// It holds something that the machine does not know.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// It is for other devices.
    #[error("the module is for {target}, which a device of compute capability {capability} does not run")]
    Target {
        /// What it is for.
        target: String,
        /// Of the device, times ten.
        capability: u32,
    },
}

/// A device with memory.
#[derive(Debug)]
pub struct Gpu {
    memory: Memory,
    device: Device,
}

/// A loaded module.
#[derive(Debug)]
pub struct Module {
    text: Text,
    globals: program::Globals,
    kernels: BTreeMap<Arc<str>, Program>,
}

/// An argument of a kernel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arg<'a> {
    /// An address, or any 64-bit integer.
    U64(u64),
    /// A 32-bit integer.
    U32(u32),
    /// A 32-bit integer.
    I32(i32),
    /// A number.
    F32(f32),
    /// A number.
    F64(f64),
    /// A structure.
    Bytes(&'a [u8]),
}

impl Gpu {
    /// A device whose asynchronous operations are decided by the seed.
    pub fn new(device: Device, seed: u64) -> Gpu {
        Gpu {
            memory: Memory::new(seed),
            device,
        }
    }

    /// Its limits.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Its memory: allocate, free, write, read.
    pub fn memory(&mut self) -> &mut Memory {
        &mut self.memory
    }

    /// Loads a module: every kernel is decoded, so that whatever is not known shows now.
    ///
    /// # Errors
    /// With the line.
    pub fn load(&mut self, ptx: &str) -> Result<Module, LoadError> {
        let module = ptx::parse(ptx)?;
        if !self.device.runs(&module.target) {
            return Err(LoadError::Target {
                target: module.target,
                capability: self.device.capability,
            });
        }
        let globals = program::define_globals(&module, &mut self.memory)?;
        let mut kernels = BTreeMap::new();
        for function in module.functions.iter().filter(|f| f.entry && f.body.is_some()) {
            let program = program::decode(&module, &function.name, &globals)?;
            kernels.insert(Arc::clone(&function.name), program);
        }
        let text = Text {
            lines: ptx.lines().map(Arc::from).collect(),
            files: module.files.clone(),
        };
        Ok(Module { text, globals, kernels })
    }

    /// Allocates memory for values and copies them there.
    ///
    /// # Errors
    /// Never for memory that was just allocated.
    pub fn upload(&mut self, name: &str, bytes: &[u8]) -> Result<u64, Wrong> {
        let address = self.memory.allocate(bytes.len() as u64, name);
        self.memory.write(address, bytes)?;
        Ok(address)
    }

    /// Copies memory to the host.
    ///
    /// # Errors
    /// It is not allocated, or some of it was never written.
    pub fn download(&mut self, address: u64, bytes: usize) -> Result<Vec<u8>, Wrong> {
        let mut out = vec![0; bytes];
        self.memory.read(address, &mut out)?;
        Ok(out)
    }

    /// Runs a kernel to its end.
    ///
    /// # Errors
    /// The first fault.
    pub fn launch(
        &mut self,
        module: &Module,
        kernel: &str,
        launch: &Launch,
        arguments: &[Arg<'_>],
    ) -> Result<Report, Box<Fault>> {
        let (report, _) = self.run(module, kernel, launch, (arguments, None))?;
        Ok(report)
    }

    /// Runs a kernel to its end, warp after warp as a card of these rates might, and says what that would cost there. The seed
    /// decides less than in [`Gpu::launch`]: use that to check a kernel.
    ///
    /// # Errors
    /// The first fault.
    pub fn launch_modelled(
        &mut self,
        module: &Module,
        kernel: &str,
        launch: &Launch,
        arguments: &[Arg<'_>],
        rates: &[Rates; 2],
    ) -> Result<(Report, Cost), Box<Fault>> {
        let (report, cost) = self.run(module, kernel, launch, (arguments, Some(rates)))?;
        cost.map(|cost| (report, cost)).ok_or_else(|| no_kernel(kernel))
    }

    fn run(
        &mut self,
        module: &Module,
        kernel: &str,
        launch: &Launch,
        (arguments, rates): (&[Arg<'_>], Option<&[Rates; 2]>),
    ) -> Result<(Report, Option<Cost>), Box<Fault>> {
        let program = module.kernels.get(kernel).ok_or_else(|| no_kernel(kernel))?;
        let params = pack(program, arguments)
            .map_err(|message| module.text.refused(program, crate::fault::Kind::Launch, message))?;
        let text = (program, &module.text);
        machine::run(text, &mut self.memory, &self.device, launch, params, rates)
    }
}

impl Module {
    /// The kernels, by name.
    pub fn kernels(&self) -> impl Iterator<Item = &str> {
        self.kernels.keys().map(|name| &**name)
    }

    /// A kernel, decoded.
    pub fn kernel(&self, name: &str) -> Option<&Program> {
        self.kernels.get(name)
    }

    /// The address of a variable of the module.
    pub fn variable(&self, name: &str) -> Option<u64> {
        self.globals.get(name).copied()
    }

    /// Its text, for reports.
    pub fn text(&self) -> &Text {
        &self.text
    }
}

fn no_kernel(kernel: &str) -> Box<Fault> {
    Box::new(Fault {
        kind: crate::fault::Kind::Launch,
        kernel: kernel.to_owned(),
        message: "the module has no such kernel".to_owned(),
        place: None,
        thread: None,
        address: None,
        earlier: None,
        hint: None,
    })
}

/// The arguments as the kernel's parameters lie.
fn pack(program: &Program, arguments: &[Arg<'_>]) -> Result<Vec<u8>, String> {
    if arguments.len() != program.params.len() {
        return Err(format!(
            "{} arguments for {} parameters",
            arguments.len(),
            program.params.len()
        ));
    }
    let mut bytes = Vec::new();
    for (number, (argument, param)) in arguments.iter().zip(&program.params).enumerate() {
        let value = argument.bytes();
        let Param {
            offset, bytes: size, ..
        } = param;
        if value.len() != *size as usize {
            return Err(format!(
                "argument {number} has {} bytes, the parameter {size}",
                value.len()
            ));
        }
        bytes.resize(*offset as usize, 0);
        bytes.extend(value);
    }
    Ok(bytes)
}

impl Arg<'_> {
    fn bytes(&self) -> Vec<u8> {
        match self {
            Arg::U64(value) => value.to_le_bytes().to_vec(),
            Arg::U32(value) => value.to_le_bytes().to_vec(),
            Arg::I32(value) => value.to_le_bytes().to_vec(),
            Arg::F32(value) => value.to_le_bytes().to_vec(),
            Arg::F64(value) => value.to_le_bytes().to_vec(),
            Arg::Bytes(bytes) => bytes.to_vec(),
        }
    }
}
