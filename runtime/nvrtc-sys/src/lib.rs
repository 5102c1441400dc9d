//! NVRTC by path: the file of an NVRTC goes in, its functions come out, as return codes and owned bytes.
//!
//! Nothing here searches, logs or panics. Every [`Nvrtc`] is a library of its own, so that two versions work side by side in
//! one process. The `unsafe` is all in this file and `raw.rs`: above them NVRTC is ordinary safe code.

mod raw;

use raw::{Functions, Handle};
use std::ffi::{CStr, CString, c_char, c_int};
use std::fmt;
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::Arc;

/// What NVRTC returned instead of success: its `nvrtcResult`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Code(pub i32);

impl Code {
    /// `NVRTC_ERROR_COMPILATION`: the text does not compile; the log says why.
    pub const COMPILATION: Code = Code(6);
    /// `NVRTC_ERROR_INVALID_OPTION`: an option is not known to this version.
    pub const INVALID_OPTION: Code = Code(5);
    /// `NVRTC_ERROR_BUILTIN_OPERATION_FAILURE`: most often the builtins library is not beside NVRTC.
    pub const BUILTINS: Code = Code(7);
    /// `NVRTC_ERROR_INVALID_INPUT`, also given where a text or an option holds a NUL byte.
    pub const INVALID_INPUT: Code = Code(3);
}

/// Why a file could not be opened as an NVRTC.
#[derive(Debug)]
pub enum OpenError {
    /// The loader refused it.
    Load(libloading::Error),
    /// It is a library, but lacks a function that every NVRTC since 11.1 has.
    Symbol(&'static str),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::Load(error) => write!(f, "{error}"),
            OpenError::Symbol(name) => write!(f, "it has no function {name}"),
        }
    }
}

impl std::error::Error for OpenError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            OpenError::Load(error) => Some(error),
            OpenError::Symbol(_) => None,
        }
    }
}

/// One NVRTC, loaded.
#[derive(Clone)]
pub struct Nvrtc {
    shared: Arc<Shared>,
}

struct Shared {
    functions: Functions,
    path: PathBuf,
    /// Keeps `functions` valid. Never unloaded: NVRTC's compiler keeps threads and exit handlers whose code would be gone.
    _library: ManuallyDrop<libloading::Library>,
}

impl fmt::Debug for Nvrtc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Nvrtc").field(&self.shared.path).finish()
    }
}

impl Nvrtc {
    /// Loads the NVRTC at `path`; a bare file name is looked for by the system's loader.
    ///
    /// # Errors
    /// The loader refuses the file, or it is another library.
    pub fn open(path: &Path) -> Result<Nvrtc, OpenError> {
        // SAFETY: loading runs the file's initialisers. NVRTC's own are made to be loaded so; a file that only bears the
        // name is the user's choice, as with any library on the loader's path.
        let library = unsafe { libloading::Library::new(path) }.map_err(OpenError::Load)?;
        let functions = Functions::load(&library)?;
        let shared = Shared {
            functions,
            path: path.to_owned(),
            _library: ManuallyDrop::new(library),
        };
        Ok(Nvrtc {
            shared: Arc::new(shared),
        })
    }

    /// Where it was loaded from, as given to [`Nvrtc::open`].
    pub fn path(&self) -> &Path {
        &self.shared.path
    }

    /// Major and minor version.
    ///
    /// # Errors
    /// NVRTC's code.
    pub fn version(&self) -> Result<(i32, i32), Code> {
        let (mut major, mut minor) = (0, 0);
        // SAFETY: both pointers are to live integers.
        check(unsafe { (self.shared.functions.version)(&raw mut major, &raw mut minor) })?;
        Ok((major, minor))
    }

    /// The architectures that it compiles for, as numbers: 75 for `sm_75`.
    ///
    /// # Errors
    /// NVRTC's code.
    pub fn supported_archs(&self) -> Result<Vec<i32>, Code> {
        let functions = &self.shared.functions;
        let mut count = 0;
        // SAFETY: the pointer is to a live integer.
        check(unsafe { (functions.num_supported_archs)(&raw mut count) })?;
        let mut archs: Vec<c_int> = vec![0; usize::try_from(count).unwrap_or(0)];
        // SAFETY: the array has as many integers as NVRTC said that it writes.
        check(unsafe { (functions.supported_archs)(archs.as_mut_ptr()) })?;
        Ok(archs)
    }

    /// NVRTC's own words for a code.
    pub fn describe(&self, code: Code) -> String {
        // SAFETY: any integer may be passed; what comes back is null or a static string of the library, which stays loaded.
        let text = unsafe { (self.shared.functions.error_string)(code.0) };
        if text.is_null() {
            return format!("NVRTC error {}", code.0);
        }
        // SAFETY: not null, so NUL-terminated and static.
        unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
    }

    /// A program from its text; `name` stands for the file name in messages.
    ///
    /// # Errors
    /// NVRTC's code; [`Code::INVALID_INPUT`] where a NUL byte is inside.
    pub fn program(&self, text: &str, name: &str) -> Result<Program, Code> {
        let text = CString::new(text).map_err(|_| Code::INVALID_INPUT)?;
        let name = CString::new(name).map_err(|_| Code::INVALID_INPUT)?;
        let mut handle = ptr::null_mut();
        let create = self.shared.functions.create_program;
        // SAFETY: the strings are NUL-terminated and live through the call (NVRTC copies them); no headers are passed, so
        // both of their arrays may be null.
        check(unsafe {
            create(
                &raw mut handle,
                text.as_ptr(),
                name.as_ptr(),
                0,
                ptr::null(),
                ptr::null(),
            )
        })?;
        Ok(Program {
            shared: Arc::clone(&self.shared),
            handle,
        })
    }
}

/// A text that is, or will be, compiled.
pub struct Program {
    shared: Arc<Shared>,
    handle: Handle,
}

// SAFETY: a program is NVRTC's own heap object with no tie to the thread that made it, and every use of the handle that
// changes it takes `&mut self`.
unsafe impl Send for Program {}

impl Program {
    /// Compiles with these options, each of which is one argument (`--gpu-architecture=sm_90`).
    ///
    /// # Errors
    /// NVRTC's code; after [`Code::COMPILATION`] and [`Code::INVALID_OPTION`] the log holds the messages.
    pub fn compile<S: AsRef<str>>(&mut self, options: &[S]) -> Result<(), Code> {
        let options: Result<Vec<CString>, _> = options.iter().map(|o| CString::new(o.as_ref())).collect();
        let options = options.map_err(|_| Code::INVALID_INPUT)?;
        let pointers: Vec<*const c_char> = options.iter().map(|o| o.as_ptr()).collect();
        let count = c_int::try_from(pointers.len()).map_err(|_| Code::INVALID_INPUT)?;
        // SAFETY: the handle is live until drop; `count` NUL-terminated strings live through the call.
        check(unsafe { (self.shared.functions.compile_program)(self.handle, count, pointers.as_ptr()) })
    }

    /// The messages of the last compilation, warnings included.
    ///
    /// # Errors
    /// NVRTC's code.
    pub fn log(&self) -> Result<String, Code> {
        let functions = &self.shared.functions;
        self.fetch(functions.log_size, functions.log).map(text)
    }

    /// The PTX.
    ///
    /// # Errors
    /// NVRTC's code, such as that nothing was compiled.
    pub fn ptx(&self) -> Result<String, Code> {
        let functions = &self.shared.functions;
        self.fetch(functions.ptx_size, functions.ptx).map(text)
    }

    /// The cubin; empty where the architecture was a virtual one (`compute_90`).
    ///
    /// # Errors
    /// NVRTC's code, such as that nothing was compiled.
    pub fn cubin(&self) -> Result<Vec<u8>, Code> {
        let functions = &self.shared.functions;
        self.fetch(functions.cubin_size, functions.cubin)
    }

    fn fetch(&self, size: raw::GetSize, get: raw::GetBytes) -> Result<Vec<u8>, Code> {
        let mut bytes = 0;
        // SAFETY: the handle is live until drop; the pointer is to a live integer.
        check(unsafe { size(self.handle, &raw mut bytes) })?;
        let mut out = vec![0u8; bytes];
        if bytes > 0 {
            // SAFETY: the buffer has exactly the number of bytes that NVRTC said that it writes.
            check(unsafe { get(self.handle, out.as_mut_ptr().cast::<c_char>()) })?;
        }
        Ok(out)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // SAFETY: the handle was made by this library, is destroyed once, and is not used afterwards. Nobody can act on a
        // failure here, so the code is not looked at.
        unsafe { (self.shared.functions.destroy_program)(&raw mut self.handle) };
    }
}

fn check(code: c_int) -> Result<(), Code> {
    if code == 0 { Ok(()) } else { Err(Code(code)) }
}

/// NVRTC's strings count their NUL.
fn text(mut bytes: Vec<u8>) -> String {
    while bytes.last() == Some(&0) {
        bytes.pop();
    }
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}
