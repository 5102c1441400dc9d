//! A host for tests: compiles CUDA text with every NVRTC, launches its kernel and brings buffers back.

use crate::nvrtc::compile;
use softgpu::fault::Fault;
use softgpu::{Arg, Device, Gpu, Launch, Module, Report};

/// A device with a loaded module.
pub struct Host {
    pub gpu: Gpu,
    pub module: Module,
    pub version: String,
}

/// The same text from every NVRTC; its kernels are named `extern "C"`.
pub fn hosts(text: &str, arch: &str) -> Vec<Host> {
    let ptxs = compile(text, arch, &["-lineinfo"]);
    ptxs.into_iter().map(|ptx| Host::new(&ptx.text, ptx.version)).collect()
}

impl Host {
    /// Loads PTX.
    pub fn new(ptx: &str, version: String) -> Host {
        let mut gpu = Gpu::new(Device::named("h100").unwrap(), 1);
        let module = gpu
            .load(ptx)
            .unwrap_or_else(|error| panic!("{version}: {error}\n{ptx}"));
        Host { gpu, module, version }
    }

    /// Memory with these words in it.
    pub fn words(&mut self, name: &str, words: &[u32]) -> u64 {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.gpu.upload(name, &bytes).unwrap()
    }

    /// Memory with these numbers in it.
    pub fn floats(&mut self, name: &str, numbers: &[f32]) -> u64 {
        let words: Vec<u32> = numbers.iter().map(|x| x.to_bits()).collect();
        self.words(name, &words)
    }

    /// The words of memory.
    pub fn read(&mut self, address: u64, count: usize) -> Vec<u32> {
        let bytes = self
            .gpu
            .download(address, 4 * count)
            .unwrap_or_else(|wrong| panic!("{wrong:?}"));
        bytes
            .chunks(4)
            .map(|word| u32::from_le_bytes(word.try_into().unwrap()))
            .collect()
    }

    /// The numbers of memory.
    pub fn read_floats(&mut self, address: u64, count: usize) -> Vec<f32> {
        self.read(address, count).into_iter().map(f32::from_bits).collect()
    }

    /// Launches the only kernel.
    pub fn run(&mut self, launch: &Launch, arguments: &[Arg<'_>]) -> Result<Report, Box<Fault>> {
        let kernel = self.module.kernels().next().unwrap().to_owned();
        self.gpu.launch(&self.module, &kernel, launch, arguments)
    }
}

/// A launch of so many blocks of so many threads.
pub fn line(blocks: u32, threads: u32) -> Launch {
    Launch {
        grid: [blocks, 1, 1],
        block: [threads, 1, 1],
        ..Launch::default()
    }
}
