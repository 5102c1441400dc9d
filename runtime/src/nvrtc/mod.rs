//! CUDA text goes in; PTX, a cubin, messages and what each kernel uses come out. Which NVRTC does it is found here too.
//!
//! [`build`] is all that most need: it takes a module from the cache, or compiles it with the best NVRTC that can. [`find`]
//! lists every NVRTC on the machine, best first; a [`Compiler`] is one of them, opened. Nothing here needs a GPU or a driver.

mod build;
mod compile;
mod find;
mod usage;

pub use build::{Built, Job, build, build_all, side_by_side};
pub use compile::{Compiled, Compiler};
pub use find::{Found, Origin, Version, find};
pub use usage::Usage;

use std::path::PathBuf;

/// Why there is no compiler, or no code.
#[derive(Debug, thiserror::Error)]
pub enum NvrtcError {
    /// There is none on this machine.
    #[error(
        "no NVRTC was found: run `cargo xtask setup`, or set RNNC_NVRTC to a libnvrtc.so or the folder that holds it"
    )]
    NotFound,
    /// A file that should be one cannot be opened.
    #[error("cannot open NVRTC {}: {reason}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// The loader's words.
        reason: String,
    },
    /// RNNC_NVRTC names nothing that is an NVRTC.
    #[error("RNNC_NVRTC is {}, but there is no libnvrtc.so: name the file, or the folder that holds it, or unset it", path.display())]
    Variable {
        /// Its value.
        path: PathBuf,
    },
    /// It cannot compile what we write.
    #[error("NVRTC {version} at {} is too old: 12.3 or newer is needed; run `cargo xtask setup`, or set RNNC_NVRTC", path.display())]
    TooOld {
        /// The file.
        path: PathBuf,
        /// Of the NVRTC.
        version: Version,
    },
    /// Its cubins would not load.
    #[error("NVRTC {version} is newer than the driver, which is for CUDA {driver}: update the driver, or set RNNC_NVRTC to an NVRTC {}", driver.major)]
    Driver {
        /// Of the NVRTC.
        version: Version,
        /// What the driver can load.
        driver: Version,
    },
    /// This version does not know the architecture.
    #[error("NVRTC {version} does not compile for {arch}, only for {}", list(known))]
    Arch {
        /// What was asked for, such as `sm_90`.
        arch: String,
        /// Of the NVRTC.
        version: Version,
        /// What it has.
        known: Vec<i32>,
    },
    /// The text does not compile.
    #[error("NVRTC {version} refused the text:\n{log}")]
    Compilation {
        /// Of the NVRTC.
        version: Version,
        /// Its messages.
        log: String,
    },
    /// NVRTC failed in another way.
    #[error("NVRTC {version} failed: {reason}")]
    Failed {
        /// Of the NVRTC.
        version: Version,
        /// Its words, and its log.
        reason: String,
    },
}

fn list(archs: &[i32]) -> String {
    let names: Vec<String> = archs.iter().map(|a| format!("sm_{a}")).collect();
    names.join(", ")
}
