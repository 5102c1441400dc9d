//! One GPU of the machine, through the driver: one stream, on which everything happens in order.

use super::CudaError;
use super::blaslt::CublasLt;
use super::probe::{failed, start, words};
use crate::engine::RunError;
use crate::exec::{Arg, Gemm, Gpu, LaunchShape, Limits, Word};
use crate::nvrtc::{Compiled, Version};
use cudarc::driver::sys::{self, CUdevice_attribute as Attribute, CUfunction_attribute_enum as FunctionAttribute};
use cudarc::driver::{
    CudaContext, CudaFunction, CudaModule, CudaSlice, CudaStream, DevicePtrMut, DriverError, LaunchConfig,
    PushKernelArg,
};
use cudarc::nvrtc::Ptx;
use std::sync::Arc;

/// Shared memory that a block may have without asking for it.
const DEFAULT_SHARED: u32 = 48 << 10;

/// A GPU.
#[derive(Debug)]
pub struct Cuda {
    ordinal: usize,
    limits: Limits,
    /// None before the first product; then whether there is a library.
    library: Option<Option<CublasLt>>,
    context: Arc<CudaContext>,
    stream: Arc<CudaStream>,
}

impl Cuda {
    /// The GPU of this number.
    ///
    /// # Errors
    /// There is no driver, no such GPU, or it cannot be used (another process has it to itself, say).
    pub fn open(ordinal: usize) -> Result<Cuda, CudaError> {
        let (driver, count) = start()?;
        if ordinal >= count {
            return Err(CudaError::NoDevice { ordinal, count });
        }
        let context = CudaContext::new(ordinal).map_err(|e| failed("open the GPU", e))?;
        // SAFETY: events guard memory that several streams use; here there is one, on which all memory is allocated, used
        // and freed, so that its order is guard enough.
        unsafe { context.disable_event_tracking() };
        let limits = limits(&context, driver).map_err(|e| failed("describe the GPU", e))?;
        let stream = context.new_stream().map_err(|e| failed("make a stream", e))?;
        Ok(Cuda {
            ordinal,
            limits,
            library: None,
            context,
            stream,
        })
    }

    /// The driver's error, in the words of a run.
    fn error(&self, what: &str, error: DriverError) -> RunError {
        RunError::Device(format!("{}: cannot {what}: {}", self.name(), words(error)))
    }

    fn unsupported(&self, reason: String) -> RunError {
        RunError::Unsupported {
            device: self.name(),
            reason,
        }
    }

    /// The engine stays within its memory; were it wrong, this is better than what the bindings would do.
    fn outside(&self) -> RunError {
        RunError::Device(format!("{}: a copy reaches past its memory", self.name()))
    }
}

fn limits(context: &CudaContext, driver: Version) -> Result<Limits, DriverError> {
    let (major, minor) = context.compute_capability()?;
    let number = |attribute| Ok(u32::try_from(context.attribute(attribute)?).unwrap_or(0));
    Ok(Limits {
        product: context.name()?,
        arch: format!("sm_{major}{minor}"),
        processors: number(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
        shared: number(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?,
        memory: context.total_mem()? as u64,
        driver: Some(driver),
    })
}

impl Gpu for Cuda {
    type Memory = CudaSlice<u8>;
    type Module = Arc<CudaModule>;
    type Function = CudaFunction;

    fn name(&self) -> String {
        format!("cuda:{}", self.ordinal)
    }

    fn limits(&self) -> &Limits {
        &self.limits
    }

    fn alloc(&mut self, bytes: usize, _name: &str) -> Result<CudaSlice<u8>, RunError> {
        // SAFETY: the memory is unset. What is read of it was written before, by an upload, a fill or a kernel: that is what
        // a plan's checker checks.
        let memory = unsafe { self.stream.alloc::<u8>(bytes) };
        memory.map_err(|error| match error.0 {
            sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY => self.unsupported(format!(
                "its memory has no room for {bytes} bytes more: run fewer frames or sequences"
            )),
            _ => self.error("allocate memory", error),
        })
    }

    fn upload(&mut self, to: &mut CudaSlice<u8>, bytes: &[u8]) -> Result<(), RunError> {
        let mut view = to.try_slice_mut(..bytes.len()).ok_or_else(|| self.outside())?;
        self.stream
            .memcpy_htod(bytes, &mut view)
            .map_err(|e| self.error("copy to the device", e))
    }

    fn download(&mut self, from: &CudaSlice<u8>, bytes: &mut [u8]) -> Result<(), RunError> {
        let view = from.try_slice(..bytes.len()).ok_or_else(|| self.outside())?;
        self.stream
            .memcpy_dtoh(&view, bytes)
            .map_err(|e| self.error("copy from the device", e))?;
        self.synchronize()
    }

    fn copy(
        &mut self,
        from: (&CudaSlice<u8>, usize),
        to: (&mut CudaSlice<u8>, usize),
        bytes: usize,
    ) -> Result<(), RunError> {
        let source = from.0.try_slice(from.1..from.1 + bytes).ok_or_else(|| self.outside())?;
        let mut target = to.0.try_slice_mut(to.1..to.1 + bytes).ok_or_else(|| self.outside())?;
        self.stream
            .memcpy_dtod(&source, &mut target)
            .map_err(|e| self.error("copy on the device", e))
    }

    fn fill(&mut self, to: &mut CudaSlice<u8>, word: Word, count: usize) -> Result<(), RunError> {
        let mut view = to.try_slice_mut(..count * word.bytes()).ok_or_else(|| self.outside())?;
        self.context
            .bind_to_thread()
            .map_err(|e| self.error("use the context", e))?;
        let (address, _uses) = view.device_ptr_mut(&self.stream);
        let stream = self.stream.cu_stream();
        // SAFETY: the view has `count` words; allocations are aligned to 256 bytes and the view starts at one; the context
        // is current, and the stream is of it.
        let code = unsafe {
            match word {
                Word::Bits16(bits) => sys::cuMemsetD16Async(address, bits, count, stream),
                Word::Bits32(bits) => sys::cuMemsetD32Async(address, bits, count, stream),
            }
        };
        code.result().map_err(|e| self.error("fill memory", e))
    }

    fn load(&mut self, module: &Compiled) -> Result<Arc<CudaModule>, RunError> {
        if module.cubin.is_empty() {
            return Err(RunError::Device(format!(
                "{}: the module has no cubin for {}",
                self.name(),
                self.limits.arch
            )));
        }
        let image = Ptx::from_binary(module.cubin.clone());
        self.context
            .load_module(image)
            .map_err(|e| self.error("load the module", e))
    }

    fn function(&mut self, module: &Arc<CudaModule>, name: &str, shared: u32) -> Result<CudaFunction, RunError> {
        self.context
            .bind_to_thread()
            .map_err(|e| self.error("use the context", e))?;
        if name.contains('\0') {
            return Err(RunError::Device("the name of a kernel holds a NUL byte".to_owned()));
        }
        let function = module
            .load_function(name)
            .map_err(|e| self.error("find a kernel of the module", e))?;
        let fixed = function
            .shared_size_bytes()
            .map_err(|e| self.error("describe a kernel", e))?;
        let total = u64::from(shared) + u64::try_from(fixed).unwrap_or(0);
        if total > u64::from(self.limits.shared) {
            return Err(self.unsupported(format!(
                "{name} needs {total} bytes of shared memory a block, and there are {}: compile the cell for {}",
                self.limits.shared, self.limits.arch
            )));
        }
        if shared > DEFAULT_SHARED {
            let attribute = FunctionAttribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
            let bytes = i32::try_from(shared).unwrap_or(i32::MAX);
            function
                .set_attribute(attribute, bytes)
                .map_err(|e| self.error("raise a kernel's shared memory", e))?;
        }
        Ok(function)
    }

    fn resident(&mut self, function: &CudaFunction, block: u32, shared: u32) -> Result<u64, RunError> {
        self.context
            .bind_to_thread()
            .map_err(|e| self.error("use the context", e))?;
        let a_processor = function.occupancy_max_active_blocks_per_multiprocessor(block, shared as usize, None);
        let a_processor = a_processor.map_err(|e| self.error("tell how many blocks are resident", e))?;
        Ok(u64::from(a_processor) * u64::from(self.limits.processors))
    }

    fn launch(
        &mut self,
        function: &CudaFunction,
        shape: LaunchShape,
        arguments: &[Arg<'_, CudaSlice<u8>>],
    ) -> Result<(), RunError> {
        let config = LaunchConfig {
            grid_dim: (shape.grid, 1, 1),
            block_dim: (shape.block, 1, 1),
            shared_mem_bytes: shape.shared,
        };
        let mut launch = self.stream.launch_builder(function);
        for argument in arguments {
            match argument {
                Arg::Memory(memory) => launch.arg(*memory),
                Arg::Int(value) => launch.arg(value),
                Arg::Unsigned(value) => launch.arg(value),
            };
        }
        // SAFETY: the arguments are those of the manifest that was emitted with the kernel, in its order and types; the
        // memory is as long as the plan says for this T and B, lives until the stream has passed the launch (it is freed on
        // the same stream), and is used by nothing else meanwhile.
        let launched = unsafe {
            match shape.cooperative {
                true => launch.launch_cooperative(config),
                false => launch.launch(config),
            }
        };
        launched.map(drop).map_err(|e| self.error("launch a kernel", e))
    }

    fn gemm(&mut self, gemm: &Gemm<'_, CudaSlice<u8>>) -> Result<bool, RunError> {
        self.context
            .bind_to_thread()
            .map_err(|e| self.error("use the context", e))?;
        let open = || CublasLt::open(&self.stream, &self.limits.arch);
        let library = self.library.get_or_insert_with(open);
        Ok(library.as_ref().is_some_and(|library| library.gemm(gemm).is_ok()))
    }

    fn synchronize(&mut self) -> Result<(), RunError> {
        self.stream
            .synchronize()
            .map_err(|e| self.error("finish the work", e))?;
        self.context.check_err().map_err(|e| self.error("free memory", e))
    }
}
