//! A text and an architecture go in; PTX, a cubin and the assembler's report come out.

use super::find::{Candidate, Surroundings, candidates};
use super::{NvrtcError, Origin, Usage, Version, usage};
use nvrtc_sys::{Code, Nvrtc, Program};
use std::path::Path;

/// Our text uses 16-byte relaxed loads and stores, which came in with CUDA 12.3's PTX 8.3.
const OLDEST: Version = Version { major: 12, minor: 3 };

/// One NVRTC, ready to compile; may be used from many threads.
#[derive(Clone, Debug)]
pub struct Compiler {
    nvrtc: Nvrtc,
    version: Version,
    origin: Option<Origin>,
    archs: Vec<i32>,
}

/// What became of a text.
#[derive(Clone, Debug, PartialEq)]
pub struct Compiled {
    /// The portable assembly.
    pub ptx: String,
    /// The machine code of the one architecture.
    pub cubin: Vec<u8>,
    /// What NVRTC and its assembler said.
    pub log: String,
    /// Of the log, what is not the report on resources: warnings. Empty for a clean text.
    pub messages: String,
    /// What each function uses.
    pub functions: Vec<Usage>,
}

impl Compiled {
    /// From what NVRTC gave; the log is read for the rest, and loses how long things took, so that equal texts give equal
    /// results.
    pub fn new(ptx: String, cubin: Vec<u8>, log: &str) -> Compiled {
        let lines = log
            .split_inclusive('\n')
            .filter(|line| !line.contains("Compile time ="));
        let log: String = lines.collect();
        let (functions, messages) = usage::parse(&log);
        Compiled {
            ptx,
            cubin,
            log,
            messages,
            functions,
        }
    }

    /// What each kernel uses.
    pub fn kernels(&self) -> impl Iterator<Item = &Usage> {
        self.functions.iter().filter(|f| f.kernel)
    }

    /// What the kernel of this name uses.
    pub fn kernel(&self, name: &str) -> Option<&Usage> {
        self.kernels().find(|f| f.name == name)
    }
}

impl Compiler {
    /// The best NVRTC of this machine: the first of [`super::find`] that is not too old for our text.
    ///
    /// # Errors
    /// There is none, or RNNC_NVRTC names something else.
    pub fn open() -> Result<Compiler, NvrtcError> {
        first(|candidate| {
            let compiler = Compiler::from_path(&candidate.path, Some(candidate.origin))?;
            compiler.check_age()?;
            Ok(compiler)
        })
    }

    /// The best NVRTC that compiles for `arch` and whose cubins a driver for CUDA `driver`, if any is meant, can load: none
    /// of a newer major version.
    ///
    /// # Errors
    /// There is none.
    pub fn open_for(arch: &str, driver: Option<Version>) -> Result<Compiler, NvrtcError> {
        first(|candidate| Compiler::open_candidate(candidate, arch, driver))
    }

    /// The NVRTC in a file.
    ///
    /// # Errors
    /// It is not an NVRTC, or does not load.
    pub fn open_file(path: &Path) -> Result<Compiler, NvrtcError> {
        Compiler::from_path(path, None)
    }

    /// Opens a candidate, if it can do the work.
    pub(super) fn open_candidate(
        candidate: &Candidate,
        arch: &str,
        driver: Option<Version>,
    ) -> Result<Compiler, NvrtcError> {
        let compiler = Compiler::from_path(&candidate.path, Some(candidate.origin))?;
        compiler.check_age()?;
        compiler.check(arch, driver)?;
        Ok(compiler)
    }

    fn from_path(path: &Path, origin: Option<Origin>) -> Result<Compiler, NvrtcError> {
        let failed = |reason: String| NvrtcError::Open {
            path: path.to_owned(),
            reason,
        };
        let nvrtc = Nvrtc::open(path).map_err(|e| failed(e.to_string()))?;
        let (major, minor) = nvrtc.version().map_err(|c| failed(nvrtc.describe(c)))?;
        let archs = nvrtc.supported_archs().map_err(|c| failed(nvrtc.describe(c)))?;
        Ok(Compiler {
            nvrtc,
            version: Version { major, minor },
            origin,
            archs,
        })
    }

    /// Its version.
    pub fn version(&self) -> Version {
        self.version
    }

    /// The file.
    pub fn path(&self) -> &Path {
        self.nvrtc.path()
    }

    /// Where it was found; none if it was opened by its path.
    pub fn origin(&self) -> Option<Origin> {
        self.origin
    }

    /// The architectures that it compiles for: 90 for `sm_90`.
    pub fn archs(&self) -> &[i32] {
        &self.archs
    }

    /// Compiles a text, called `name` in messages (`lstm.cu`), for `arch` (`sm_90`, `sm_90a`). Each option is one argument
    /// of NVRTC; the architecture and the assembler's report are added.
    ///
    /// # Errors
    /// The architecture is not known; the text does not compile (with the log); NVRTC fails.
    pub fn compile(&self, text: &str, name: &str, arch: &str, options: &[&str]) -> Result<Compiled, NvrtcError> {
        self.check_arch(arch)?;
        let mut program = self.nvrtc.program(text, name).map_err(|c| self.failed(c, ""))?;
        let mut all = vec![format!("--gpu-architecture={arch}"), "--ptxas-options=-v".to_owned()];
        all.extend(options.iter().map(|o| (*o).to_owned()));
        let result = program.compile(&all);
        let log = program.log().unwrap_or_default();
        match result {
            Ok(()) => self.collect(&program, &log),
            Err(Code::COMPILATION) => Err(NvrtcError::Compilation {
                version: self.version,
                log,
            }),
            Err(code) => Err(self.failed(code, &log)),
        }
    }

    fn collect(&self, program: &Program, log: &str) -> Result<Compiled, NvrtcError> {
        let ptx = program.ptx().map_err(|c| self.failed(c, log))?;
        let cubin = program.cubin().map_err(|c| self.failed(c, log))?;
        Ok(Compiled::new(ptx, cubin, log))
    }

    fn check_age(&self) -> Result<(), NvrtcError> {
        if self.version >= OLDEST {
            return Ok(());
        }
        Err(NvrtcError::TooOld {
            path: self.path().to_owned(),
            version: self.version,
        })
    }

    fn check(&self, arch: &str, driver: Option<Version>) -> Result<(), NvrtcError> {
        self.check_arch(arch)?;
        match driver {
            Some(driver) if self.version.major > driver.major => Err(NvrtcError::Driver {
                version: self.version,
                driver,
            }),
            _ => Ok(()),
        }
    }

    fn check_arch(&self, arch: &str) -> Result<(), NvrtcError> {
        let digits = arch.strip_prefix("sm_").map(|rest| rest.trim_end_matches(['a', 'f']));
        match digits.and_then(|d| d.parse().ok()) {
            Some(number) if self.archs.contains(&number) => Ok(()),
            _ => Err(NvrtcError::Arch {
                arch: arch.to_owned(),
                version: self.version,
                known: self.archs.clone(),
            }),
        }
    }

    fn failed(&self, code: Code, log: &str) -> NvrtcError {
        let mut reason = self.nvrtc.describe(code);
        if code == Code::BUILTINS {
            reason += ": is its libnvrtc-builtins beside it?";
        }
        if !log.trim().is_empty() {
            reason = format!("{reason}\n{}", log.trim());
        }
        NvrtcError::Failed {
            version: self.version,
            reason,
        }
    }
}

/// The first candidate of this machine with which something succeeds; else why it did not with the first of them.
pub(super) fn first<T>(mut attempt: impl FnMut(&Candidate) -> Result<T, NvrtcError>) -> Result<T, NvrtcError> {
    let around = Surroundings::here();
    around.check_variable()?;
    let mut first_error = None;
    for candidate in candidates(&around) {
        match attempt(&candidate) {
            Ok(done) => return Ok(done),
            Err(error) => first_error = first_error.or(Some(error)),
        }
    }
    Err(first_error.unwrap_or(NvrtcError::NotFound))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nvrtc::{Found, find};

    const TEXT: &str = r#"
extern "C" __global__ void scale(float* y, const float* x, float a, long long n) {
  __shared__ float tile[64];
  long long i = blockIdx.x * 64ll + threadIdx.x;
  tile[threadIdx.x] = i < n ? x[i] : 0.0f;
  __syncthreads();
  if (i < n) y[i] = a * tile[63 - threadIdx.x];
}
"#;

    /// Every NVRTC here; tests that need one say aloud that they ran on none.
    fn found(test: &str) -> Vec<Found> {
        let found = find();
        if found.is_empty() {
            eprintln!("SKIPPED {test}: no NVRTC; run `cargo xtask setup`");
        }
        found
    }

    #[test]
    fn compiles_with_every_nvrtc_side_by_side() {
        let found = found("compiles_with_every_nvrtc_side_by_side");
        let open = |f: &Found| Compiler::open_file(&f.path).unwrap();
        let compilers: Vec<Compiler> = found.iter().map(open).collect();
        // Twice over, so that each version compiles after the others were loaded and used.
        for (compiler, found) in compilers.iter().zip(&found).chain(compilers.iter().zip(&found)) {
            assert_eq!(compiler.version(), found.version);
            let out = compiler.compile(TEXT, "scale.cu", "sm_90", &[]).unwrap();
            assert!(out.ptx.contains(".entry scale("), "{}", out.ptx);
            let header = format!("cuda_{}.{}", found.version.major, found.version.minor);
            let release = format!("release {}", found.version);
            assert!(
                out.ptx.contains(&release) || out.ptx.contains(&header),
                "{}",
                &out.ptx[..400]
            );
            assert_eq!(&out.cubin[..4], b"\x7fELF");
            assert_eq!(out.messages, "");
            let usage = out.kernel("scale").unwrap();
            assert!(
                usage.registers > 0 && usage.shared == 256 && !usage.spills(),
                "{usage:?}"
            );
        }
    }

    #[test]
    fn compiles_from_many_threads() {
        let Some(found) = found("compiles_from_many_threads").first().cloned() else {
            return;
        };
        let compiler = Compiler::open_file(&found.path).unwrap();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let compiler = &compiler;
                scope.spawn(move || {
                    let text = TEXT.replace("scale", &format!("scale{thread}"));
                    let out = compiler.compile(&text, "scale.cu", "sm_80", &[]).unwrap();
                    assert!(out.kernel(&format!("scale{thread}")).is_some());
                });
            }
        });
    }

    #[test]
    fn errors_carry_the_log_and_say_what_is_known() {
        let Some(found) = found("errors_carry_the_log_and_say_what_is_known").first().cloned() else {
            return;
        };
        let compiler = Compiler::open_file(&found.path).unwrap();
        let broken = compiler.compile("__global__ void f() { y = 1; }", "f.cu", "sm_90", &[]);
        let message = broken.unwrap_err().to_string();
        assert!(
            message.contains("f.cu(1): error") && message.contains("\"y\" is undefined"),
            "{message}"
        );
        let arch = compiler.compile(TEXT, "f.cu", "sm_12", &[]).unwrap_err();
        assert!(
            matches!(&arch, NvrtcError::Arch { .. }) && arch.to_string().contains("sm_90"),
            "{arch}"
        );
        let option = compiler
            .compile(TEXT, "f.cu", "sm_90", &["--no-such-option"])
            .unwrap_err();
        assert!(option.to_string().contains("no-such-option"), "{option}");
        let nul = compiler.compile("a\0b", "f.cu", "sm_90", &[]).unwrap_err();
        assert!(matches!(nul, NvrtcError::Failed { .. }));
        let spill = "extern \"C\" __global__ void __launch_bounds__(64) s(float* y) { y[0] = 1; int unused; }";
        let warned = compiler.compile(spill, "s.cu", "sm_90", &[]).unwrap();
        assert!(warned.messages.contains("unused"), "{}", warned.messages);
    }

    #[test]
    fn the_newest_usable_one_is_opened_for_a_driver() {
        let found = found("the_newest_usable_one_is_opened_for_a_driver");
        for driver in found.iter().map(|f| f.version) {
            let compiler = Compiler::open_for("sm_90", Some(driver)).unwrap();
            assert!(compiler.version().major <= driver.major);
        }
        let ancient = Version { major: 10, minor: 0 };
        if !found.is_empty() {
            let error = Compiler::open_for("sm_90", Some(ancient)).unwrap_err();
            assert!(matches!(error, NvrtcError::Driver { .. }), "{error}");
        }
    }

    #[test]
    fn a_file_that_is_no_nvrtc_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("libnvrtc.so.13");
        assert!(matches!(Compiler::open_file(&file), Err(NvrtcError::Open { .. })));
        std::fs::write(&file, "not a library").unwrap();
        assert!(matches!(Compiler::open_file(&file), Err(NvrtcError::Open { .. })));
    }
}
