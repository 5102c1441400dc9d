//! Products by cuBLASLt, where it is on the machine: in f32 arithmetic, never TF32.
//!
//! So far this ran only against the stand-in of the tests, which computes what cuBLASLt's documentation says, and on no
//! GPU. Whenever cuBLASLt declines, or RNNC_CUBLASLT is `off`, the plan's own kernel runs.

use crate::exec::{Gemm, Rows};
use cudarc::cublaslt::result::{self, CublasError};
use cudarc::cublaslt::sys::{
    self, cublasComputeType_t as Compute, cublasLtEpilogue_t as Epilogue, cublasLtMatmulDescAttributes_t as Attribute,
    cublasLtMatmulPreferenceAttributes_t as Preference, cudaDataType_t as Type,
};
use cudarc::driver::{CudaSlice, CudaStream, DevicePtr};
use std::ffi::c_void;
use std::sync::Arc;

/// Bytes of an f32.
const ELEMENT: usize = size_of::<f32>();

/// The library, opened for one stream.
#[derive(Debug)]
pub(super) struct CublasLt {
    handle: sys::cublasLtHandle_t,
    stream: Arc<CudaStream>,
    /// What its algorithms may use for themselves; NVIDIA's advice on how much.
    workspace: CudaSlice<u8>,
}

// SAFETY: a handle may be used from any thread, by one at a time unless its documentation allows more, and it is reached
// only through the device that owns it.
unsafe impl Send for CublasLt {}

impl CublasLt {
    /// None where there is no cuBLASLt, it does not start, or it is not wanted.
    pub(super) fn open(stream: &Arc<CudaStream>, arch: &str) -> Option<CublasLt> {
        let wanted = std::env::var_os("RNNC_CUBLASLT").is_none_or(|v| v != "off");
        if !wanted || !super::has_cublaslt() {
            return None;
        }
        stream.context().bind_to_thread().ok()?;
        let bytes = if arch.starts_with("sm_7") || arch.starts_with("sm_8") {
            4 << 20
        } else {
            32 << 20
        };
        // SAFETY: the memory is scratch of the library, which reads nothing that it has not written.
        let workspace = unsafe { stream.alloc::<u8>(bytes) }.ok()?;
        Some(CublasLt {
            handle: result::create_handle().ok()?,
            stream: Arc::clone(stream),
            workspace,
        })
    }

    /// The product; an error means that nothing was started.
    ///
    /// Row-major `out = x weight^T` is, column by column, `out' = weight'^T x'`: the weight is A, transposed; x is B.
    pub(super) fn gemm(&self, gemm: &Gemm<'_, CudaSlice<u8>>) -> Result<(), CublasError> {
        let [a, b, d] = [&gemm.weight, &gemm.x, &gemm.out].map(|rows| self.address(rows));
        let bias = gemm.bias.as_ref().map(|rows| self.address(rows));
        let description = description(bias)?;
        let (m, n, k) = (gemm.rows as u64, gemm.count as u64, gemm.inner as u64);
        let a_layout = layout(k, m, gemm.weight.stride)?;
        let b_layout = layout(k, n, gemm.x.stride)?;
        let d_layout = layout(m, n, gemm.out.stride)?;
        let preference = preference(self.workspace.len(), [a, b, d])?;
        let (one, zero) = (1.0f32, 0.0f32);
        // SAFETY: every description was made above and lives through the calls; the context of the stream is current (the
        // caller bound it). The addresses are of memory that has all rows of the layouts, which lives until the stream has
        // passed the product, as its launches' memory does; C is D, which beta = 0 leaves unread.
        unsafe {
            let found = result::get_matmul_algo_heuristic(
                self.handle,
                description.0,
                a_layout.0,
                b_layout.0,
                d_layout.0,
                d_layout.0,
                preference.0,
            )?;
            let (scratch, _uses) = self.workspace.device_ptr(&self.stream);
            result::matmul(
                self.handle,
                description.0,
                (&raw const one).cast(),
                (&raw const zero).cast(),
                a as *const c_void,
                a_layout.0,
                b as *const c_void,
                b_layout.0,
                d as *const c_void,
                d_layout.0,
                d as *mut c_void,
                d_layout.0,
                &raw const found.algo,
                scratch as *mut c_void,
                self.workspace.len(),
                self.stream.cu_stream().cast(),
            )
        }
    }

    fn address(&self, rows: &Rows<'_, CudaSlice<u8>>) -> u64 {
        let (start, _uses) = rows.memory.device_ptr(&self.stream);
        start + (rows.offset * ELEMENT) as u64
    }
}

impl Drop for CublasLt {
    fn drop(&mut self) {
        // SAFETY: the handle was made by `open` and is not used afterwards. Nobody can act on a failure here.
        let _ = unsafe { result::destroy_handle(self.handle) };
    }
}

/// A description that is destroyed with its owner.
struct Owned<H: Copy>(H, unsafe fn(H) -> Result<(), CublasError>);

impl<H: Copy> Drop for Owned<H> {
    fn drop(&mut self) {
        // SAFETY: the function is the one that belongs to the handle, which nobody else owns.
        let _ = unsafe { (self.1)(self.0) };
    }
}

/// f32 throughout, A transposed, the bias (one number a row of the column-major result) added at the end.
fn description(bias: Option<u64>) -> Result<Owned<sys::cublasLtMatmulDesc_t>, CublasError> {
    let made = result::create_matmul_desc(Compute::CUBLAS_COMPUTE_32F, Type::CUDA_R_32F)?;
    let owned = Owned(made, result::destroy_matmul_desc);
    let set = |attribute, value: *const c_void, bytes| {
        // SAFETY: the description is live, and the value has as many bytes as the attribute's type.
        unsafe { result::set_matmul_desc_attribute(made, attribute, value, bytes) }
    };
    let transposed = 1i32;
    set(
        Attribute::CUBLASLT_MATMUL_DESC_TRANSA,
        (&raw const transposed).cast(),
        size_of::<i32>(),
    )?;
    if let Some(address) = bias {
        let epilogue = Epilogue::CUBLASLT_EPILOGUE_BIAS as u32;
        set(
            Attribute::CUBLASLT_MATMUL_DESC_EPILOGUE,
            (&raw const epilogue).cast(),
            size_of::<u32>(),
        )?;
        set(
            Attribute::CUBLASLT_MATMUL_DESC_BIAS_POINTER,
            (&raw const address).cast(),
            size_of::<u64>(),
        )?;
    }
    Ok(owned)
}

/// A column-major matrix of f32.
fn layout(rows: u64, columns: u64, stride: usize) -> Result<Owned<sys::cublasLtMatrixLayout_t>, CublasError> {
    let made = result::create_matrix_layout(Type::CUDA_R_32F, rows, columns, stride as i64)?;
    Ok(Owned(made, result::destroy_matrix_layout))
}

/// How much scratch there is, and how the operands are aligned: an offset can leave them at 4 bytes, and the library
/// takes 256 for granted.
fn preference(scratch: usize, [a, b, d]: [u64; 3]) -> Result<Owned<sys::cublasLtMatmulPreference_t>, CublasError> {
    let made = result::create_matmul_pref()?;
    let owned = Owned(made, result::destroy_matmul_pref);
    let set = |attribute, value: *const c_void, bytes| {
        // SAFETY: the preference is live, and the value has as many bytes as the attribute's type.
        unsafe { result::set_matmul_pref_attribute(made, attribute, value, bytes) }
    };
    let limit = scratch as u64;
    set(
        Preference::CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
        (&raw const limit).cast(),
        size_of::<u64>(),
    )?;
    let alignments = [
        (Preference::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, a),
        (Preference::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, b),
        (Preference::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, d),
        (Preference::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, d),
    ];
    for (attribute, address) in alignments {
        let bytes = 1u32 << address.trailing_zeros().min(8);
        set(attribute, (&raw const bytes).cast(), size_of::<u32>())?;
    }
    Ok(owned)
}
