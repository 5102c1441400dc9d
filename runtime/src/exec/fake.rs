//! A GPU in the test's own memory: kernels are Rust functions, every call is recorded, fresh memory is poisoned.

use super::{Arg, Gemm, Gpu, LaunchShape, Limits, Word};
use crate::engine::RunError;
use crate::nvrtc::Compiled;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

/// What fresh memory holds: a quiet NaN of an unlikely payload, an unlikely index.
const POISON: u8 = 0xcd;

/// Device memory; clones share it, as kernels and the engine do.
#[derive(Clone, Debug)]
pub(super) struct Memory(Arc<Mutex<Vec<u8>>>);

impl Memory {
    fn bytes(&self) -> MutexGuard<'_, Vec<u8>> {
        self.0.lock().unwrap()
    }

    /// The first so many bytes.
    pub(super) fn read(&self, count: usize) -> Vec<u8> {
        self.bytes()[..count].to_vec()
    }

    /// From the start on.
    pub(super) fn write(&self, bytes: &[u8]) {
        self.bytes()[..bytes.len()].copy_from_slice(bytes);
    }

    pub(super) fn get(&self, at: usize) -> f32 {
        f32::from_bits(self.word(at))
    }

    pub(super) fn set(&self, at: usize, value: f32) {
        self.set_word(at, value.to_bits());
    }

    pub(super) fn word(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.bytes()[at * 4..at * 4 + 4].try_into().unwrap())
    }

    pub(super) fn set_word(&self, at: usize, value: u32) {
        self.bytes()[at * 4..at * 4 + 4].copy_from_slice(&value.to_le_bytes());
    }
}

/// A kernel: what all its blocks do together.
pub(super) type Kernel = fn(&Call<'_>);

/// A kernel that remembers things.
pub(super) type Closure = Box<dyn Fn(&Call<'_>) + Send>;

/// A launch as a kernel sees it.
pub(super) struct Call<'a> {
    pub(super) shape: LaunchShape,
    arguments: &'a [Arg<'a, Memory>],
}

impl Call<'_> {
    pub(super) fn memory(&self, at: usize) -> &Memory {
        match &self.arguments[at] {
            Arg::Memory(memory) => memory,
            other => panic!("argument {at} is {other:?}"),
        }
    }

    pub(super) fn int(&self, at: usize) -> usize {
        match &self.arguments[at] {
            Arg::Int(value) => *value as usize,
            other => panic!("argument {at} is {other:?}"),
        }
    }

    pub(super) fn unsigned(&self, at: usize) -> u32 {
        match &self.arguments[at] {
            Arg::Unsigned(value) => *value,
            other => panic!("argument {at} is {other:?}"),
        }
    }
}

/// What happened, in order; shared with the test.
pub(super) type Log = Arc<Mutex<Vec<String>>>;

/// The device.
pub(super) struct Fake {
    kernels: BTreeMap<String, Closure>,
    limits: Limits,
    /// Blocks that fit at once.
    resident: u64,
    /// Whether there is a library for products.
    pub(super) has_library: bool,
    log: Log,
}

impl Fake {
    pub(super) fn new(resident: u64, kernels: &[(&str, Kernel)]) -> (Fake, Log) {
        let boxed = |(name, kernel): &(&str, Kernel)| ((*name).to_owned(), Box::new(*kernel) as Closure);
        Fake::with(resident, kernels.iter().map(boxed).collect())
    }

    pub(super) fn with(resident: u64, kernels: BTreeMap<String, Closure>) -> (Fake, Log) {
        let log = Log::default();
        let fake = Fake {
            kernels,
            limits: Limits {
                product: "fake".to_owned(),
                arch: "sm_90".to_owned(),
                processors: 1,
                shared: 1 << 16,
                memory: 1 << 20,
                driver: None,
            },
            resident,
            has_library: false,
            log: Arc::clone(&log),
        };
        (fake, log)
    }

    fn note(&self, what: String) {
        self.log.lock().unwrap().push(what);
    }
}

impl Gpu for Fake {
    type Memory = Memory;
    /// The kernels that its report names.
    type Module = Vec<String>;
    type Function = String;

    fn name(&self) -> String {
        "fake:0".to_owned()
    }

    fn limits(&self) -> &Limits {
        &self.limits
    }

    fn alloc(&mut self, bytes: usize, _name: &str) -> Result<Memory, RunError> {
        assert!(bytes > 0);
        if bytes as u64 > self.limits.memory {
            return Err(RunError::Unsupported {
                device: self.name(),
                reason: format!("no room for {bytes} bytes"),
            });
        }
        self.note(format!("alloc {bytes}"));
        Ok(Memory(Arc::new(Mutex::new(vec![POISON; bytes]))))
    }

    fn upload(&mut self, to: &mut Memory, bytes: &[u8]) -> Result<(), RunError> {
        to.bytes()[..bytes.len()].copy_from_slice(bytes);
        self.note(format!("upload {}", bytes.len()));
        Ok(())
    }

    fn download(&mut self, from: &Memory, bytes: &mut [u8]) -> Result<(), RunError> {
        bytes.copy_from_slice(&from.bytes()[..bytes.len()]);
        self.note(format!("download {}", bytes.len()));
        Ok(())
    }

    fn copy(&mut self, from: (&Memory, usize), to: (&mut Memory, usize), bytes: usize) -> Result<(), RunError> {
        let source = from.0.bytes()[from.1..from.1 + bytes].to_vec();
        to.0.bytes()[to.1..to.1 + bytes].copy_from_slice(&source);
        self.note(format!("copy {bytes}"));
        Ok(())
    }

    fn fill(&mut self, to: &mut Memory, word: Word, count: usize) -> Result<(), RunError> {
        let pattern = match word {
            Word::Bits16(bits) => bits.to_le_bytes().to_vec(),
            Word::Bits32(bits) => bits.to_le_bytes().to_vec(),
        };
        to.bytes()[..count * word.bytes()].copy_from_slice(&pattern.repeat(count));
        self.note(format!("fill {count}"));
        Ok(())
    }

    fn load(&mut self, module: &Compiled) -> Result<Vec<String>, RunError> {
        self.note(format!("load {}", module.ptx));
        Ok(module.kernels().map(|k| k.name.clone()).collect())
    }

    fn function(&mut self, module: &Vec<String>, name: &str, _shared: u32) -> Result<String, RunError> {
        let here = module.is_empty() || module.iter().any(|k| k == name);
        let known = self.kernels.keys().find(|k| **k == name && here);
        known
            .cloned()
            .ok_or_else(|| RunError::Device(format!("no kernel {name}")))
    }

    fn resident(&mut self, _function: &String, _block: u32, _shared: u32) -> Result<u64, RunError> {
        Ok(self.resident)
    }

    fn launch(&mut self, function: &String, shape: LaunchShape, arguments: &[Arg<'_, Memory>]) -> Result<(), RunError> {
        self.note(format!("launch {function} {}x{}", shape.grid, shape.block));
        if shape.cooperative {
            assert!(u64::from(shape.grid) <= self.resident);
        }
        self.kernels[function](&Call { shape, arguments });
        Ok(())
    }

    fn gemm(&mut self, gemm: &Gemm<'_, Memory>) -> Result<bool, RunError> {
        if !self.has_library {
            return Ok(false);
        }
        self.note(format!("gemm {} x {} x {}", gemm.count, gemm.rows, gemm.inner));
        for i in 0..gemm.count {
            for r in 0..gemm.rows {
                let term = |k: usize| {
                    let weight = gemm.weight.memory.get(gemm.weight.offset + r * gemm.weight.stride + k);
                    weight * gemm.x.memory.get(gemm.x.offset + i * gemm.x.stride + k)
                };
                let bias = gemm.bias.as_ref().map_or(0.0, |b| b.memory.get(b.offset + r));
                let sum: f32 = (0..gemm.inner).map(term).sum();
                gemm.out
                    .memory
                    .set(gemm.out.offset + i * gemm.out.stride + r, sum + bias);
            }
        }
        Ok(true)
    }

    fn synchronize(&mut self) -> Result<(), RunError> {
        Ok(())
    }
}
