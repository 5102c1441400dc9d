//! The functions of NVRTC's C interface that are used, looked up by name in a loaded library.

use crate::OpenError;
use std::ffi::{c_char, c_int, c_void};

/// `nvrtcProgram`.
pub(crate) type Handle = *mut c_void;

/// The size of something that a program holds, in bytes.
pub(crate) type GetSize = unsafe extern "C" fn(Handle, *mut usize) -> c_int;

/// Copies something that a program holds.
pub(crate) type GetBytes = unsafe extern "C" fn(Handle, *mut c_char) -> c_int;

macro_rules! functions {
    ($($field:ident = $symbol:literal: $kind:ty),* $(,)?) => {
        /// Pointers into one loaded library.
        pub(crate) struct Functions {
            $(pub(crate) $field: $kind,)*
        }

        impl Functions {
            /// Looks every function up.
            pub(crate) fn load(library: &libloading::Library) -> Result<Functions, OpenError> {
                Ok(Functions {
                    // SAFETY: these are the signatures of nvrtc.h, unchanged since the function came in (at the latest
                    // 11.1 for the cubin, 11.2 for the architectures). The pointer is used only while the library stays loaded.
                    $($field: *unsafe { library.get::<$kind>(concat!($symbol, "\0").as_bytes()) }
                        .map_err(|_| OpenError::Symbol($symbol))?,)*
                })
            }
        }
    };
}

functions! {
    version = "nvrtcVersion": unsafe extern "C" fn(*mut c_int, *mut c_int) -> c_int,
    error_string = "nvrtcGetErrorString": unsafe extern "C" fn(c_int) -> *const c_char,
    num_supported_archs = "nvrtcGetNumSupportedArchs": unsafe extern "C" fn(*mut c_int) -> c_int,
    supported_archs = "nvrtcGetSupportedArchs": unsafe extern "C" fn(*mut c_int) -> c_int,
    create_program = "nvrtcCreateProgram": unsafe extern "C" fn(
        *mut Handle,
        *const c_char,
        *const c_char,
        c_int,
        *const *const c_char,
        *const *const c_char,
    ) -> c_int,
    destroy_program = "nvrtcDestroyProgram": unsafe extern "C" fn(*mut Handle) -> c_int,
    compile_program = "nvrtcCompileProgram": unsafe extern "C" fn(Handle, c_int, *const *const c_char) -> c_int,
    log_size = "nvrtcGetProgramLogSize": GetSize,
    log = "nvrtcGetProgramLog": GetBytes,
    ptx_size = "nvrtcGetPTXSize": GetSize,
    ptx = "nvrtcGetPTX": GetBytes,
    cubin_size = "nvrtcGetCUBINSize": GetSize,
    cubin = "nvrtcGetCUBIN": GetBytes,
}
