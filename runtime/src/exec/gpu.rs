//! What a GPU does for the engine: the few operations that every device behind it has to have.

use crate::engine::RunError;
use crate::nvrtc::{Compiled, Version};
use serde::{Deserialize, Serialize};

/// What a device is and can hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// The product's name, such as `NVIDIA H200`.
    pub product: String,
    /// What modules are compiled for: `sm_90`.
    pub arch: String,
    /// Multiprocessors.
    pub processors: u32,
    /// Most shared memory of a block, in bytes, static and dynamic together.
    pub shared: u32,
    /// Device memory, in bytes.
    pub memory: u64,
    /// The CUDA version that the driver is for; none where cubins of any NVRTC load.
    pub driver: Option<Version>,
}

/// How a kernel is launched; blocks and grids are one-dimensional.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaunchShape {
    /// Blocks.
    pub grid: u32,
    /// Threads a block.
    pub block: u32,
    /// Dynamic shared memory a block, in bytes.
    pub shared: u32,
    /// Whether blocks wait for each other, so that all of them must be resident at once.
    pub cooperative: bool,
}

/// An argument of a kernel.
#[derive(Debug)]
pub enum Arg<'a, M> {
    /// The address of memory.
    Memory(&'a M),
    /// An `int`.
    Int(i32),
    /// An `unsigned`.
    Unsigned(u32),
}

/// Part of a row-major matrix of f32, or a vector.
#[derive(Clone, Copy, Debug)]
pub struct Rows<'a, M> {
    /// Where it lies.
    pub memory: &'a M,
    /// Elements before its first.
    pub offset: usize,
    /// Elements from row to row.
    pub stride: usize,
}

/// A product in f32: `out[i, r] = sum over k of x[i, k] * weight[r, k] + bias[r]`.
#[derive(Debug)]
pub struct Gemm<'a, M> {
    /// `count` rows of `inner`.
    pub x: Rows<'a, M>,
    /// `rows` rows of `inner`.
    pub weight: Rows<'a, M>,
    /// `rows` elements, if there is one.
    pub bias: Option<Rows<'a, M>>,
    /// `count` rows of `rows`; written.
    pub out: Rows<'a, M>,
    /// Frames times sequences.
    pub count: usize,
    /// Outputs of each.
    pub rows: usize,
    /// Terms of each sum.
    pub inner: usize,
}

/// A pattern that memory is filled with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// Two bytes.
    Bits16(u16),
    /// Four bytes.
    Bits32(u32),
}

impl Word {
    /// Bytes of one.
    pub fn bytes(self) -> usize {
        match self {
            Word::Bits16(_) => 2,
            Word::Bits32(_) => 4,
        }
    }
}

/// A device. Operations take effect in the order of the calls; only [`Gpu::download`] and [`Gpu::synchronize`] wait.
/// Offsets and sizes are in bytes; the engine keeps them within the memory, and a device that can check them reports a
/// breach as an error.
pub trait Gpu: Send {
    /// A region of device memory; dropping it frees it.
    type Memory: Send;
    /// A loaded module.
    type Module: Send;
    /// A kernel of a module.
    type Function: Send;

    /// How callers name the device: `cuda:0`.
    fn name(&self) -> String;

    /// What it is.
    fn limits(&self) -> &Limits;

    /// New memory of `bytes` > 0 bytes, aligned to 256, with anything in it; `name` says what it is for, in messages.
    ///
    /// # Errors
    /// [`RunError::Unsupported`] if there is not so much; the device fails.
    fn alloc(&mut self, bytes: usize, name: &str) -> Result<Self::Memory, RunError>;

    /// Host to device, to the start of `to`.
    ///
    /// # Errors
    /// The device fails.
    fn upload(&mut self, to: &mut Self::Memory, bytes: &[u8]) -> Result<(), RunError>;

    /// Device to host, from the start of `from`, once all earlier work is done.
    ///
    /// # Errors
    /// The device fails, or earlier work failed.
    fn download(&mut self, from: &Self::Memory, bytes: &mut [u8]) -> Result<(), RunError>;

    /// Device to device, between different regions, each with the offset to start at.
    ///
    /// # Errors
    /// The device fails.
    fn copy(
        &mut self,
        from: (&Self::Memory, usize),
        to: (&mut Self::Memory, usize),
        bytes: usize,
    ) -> Result<(), RunError>;

    /// The first `count` words of `to` become `word`.
    ///
    /// # Errors
    /// The device fails.
    fn fill(&mut self, to: &mut Self::Memory, word: Word, count: usize) -> Result<(), RunError>;

    /// Loads a module: from the cubin or the PTX, as the device likes.
    ///
    /// # Errors
    /// The module is for another device, or damaged.
    fn load(&mut self, module: &Compiled) -> Result<Self::Module, RunError>;

    /// A kernel, ready to be launched with so much dynamic shared memory.
    ///
    /// # Errors
    /// The module has no such kernel; the device has less shared memory.
    fn function(&mut self, module: &Self::Module, name: &str, shared: u32) -> Result<Self::Function, RunError>;

    /// How many blocks of a kernel the device holds at once.
    ///
    /// # Errors
    /// The device fails.
    fn resident(&mut self, function: &Self::Function, block: u32, shared: u32) -> Result<u64, RunError>;

    /// Launches a kernel. The arguments must be those of the kernel's signature.
    ///
    /// # Errors
    /// The launch is refused. What goes wrong while it runs is reported by a later call.
    fn launch(
        &mut self,
        function: &Self::Function,
        shape: LaunchShape,
        arguments: &[Arg<'_, Self::Memory>],
    ) -> Result<(), RunError>;

    /// Does a product with a library, to the accuracy of f32 arithmetic. False, with nothing done that matters, where there
    /// is no library or it declines: the plan's own kernel runs then.
    ///
    /// # Errors
    /// The device fails.
    fn gemm(&mut self, gemm: &Gemm<'_, Self::Memory>) -> Result<bool, RunError> {
        let _ = gemm;
        Ok(false)
    }

    /// Waits for everything.
    ///
    /// # Errors
    /// Earlier work failed.
    fn synchronize(&mut self) -> Result<(), RunError>;
}
