//! What is on this machine for running cells: the question goes in, data for programs and a page for people come out. Whatever
//! is missing comes with what to do about it.

use crate::cache::Cache;
use crate::cuda::{self, CudaError};
use crate::exec::Limits;
use crate::nvrtc::{self, Compiler, Found, NvrtcError, Version};
use serde::Serialize;
use std::fmt::{self, Write};
use std::path::PathBuf;

/// Everything that was found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// Our version.
    pub rnnc: String,
    /// Operating system and architecture, such as `linux x86_64`.
    pub system: String,
    /// The processor.
    pub cpu: Cpu,
    /// The CUDA version that NVIDIA's driver is for, if there is a driver.
    pub driver: Option<Version>,
    /// The GPUs that can be used, with the numbers of `--device cuda:N`.
    pub gpus: Vec<(usize, Limits)>,
    /// Every NVRTC, the one that is used first.
    pub nvrtc: Vec<Found>,
    /// Whether cuBLASLt is there.
    pub cublaslt: bool,
    /// Compiled modules on disk.
    pub cache: CacheState,
    /// What is missing.
    pub problems: Vec<Problem>,
}

/// The processor.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cpu {
    /// Its name, if the system tells.
    pub model: Option<String>,
    /// Threads that run at once.
    pub threads: usize,
    /// Those of its vector extensions that matter here.
    pub features: Vec<String>,
}

/// The cache's folder.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CacheState {
    /// Where; none if it is off.
    pub folder: Option<PathBuf>,
    /// Modules in it.
    pub modules: usize,
    /// Their bytes.
    pub bytes: u64,
}

/// Something missing.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Problem {
    /// What is not as it could be.
    pub what: String,
    /// What does not work because of it.
    pub effect: String,
    /// What to do.
    pub advice: String,
}

impl Problem {
    fn new(what: impl Into<String>, effect: &str, advice: &str) -> Problem {
        Problem {
            what: what.into(),
            effect: effect.to_owned(),
            advice: advice.to_owned(),
        }
    }
}

/// Looks.
pub fn examine() -> Report {
    let mut problems = Vec::new();
    let (driver, gpus) = gpus(&mut problems);
    let nvrtc = nvrtc::find();
    if nvrtc.is_empty() {
        problems.push(no_nvrtc(Compiler::open().err()));
    }
    judge_versions(&nvrtc, driver, &mut problems);
    let cublaslt = cuda::has_cublaslt();
    if !cublaslt && !gpus.is_empty() {
        problems.push(Problem::new(
            "cuBLASLt is not on the loader's path",
            "hoisted products use our own kernel",
            "add the folder of libcublasLt.so to LD_LIBRARY_PATH (a CUDA toolkit has it, and so has pip's nvidia-cublas)",
        ));
    }
    Report {
        rnnc: env!("CARGO_PKG_VERSION").to_owned(),
        system: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
        cpu: cpu(),
        driver,
        gpus,
        nvrtc,
        cublaslt,
        cache: cache(&mut problems),
        problems,
    }
}

fn gpus(problems: &mut Vec<Problem>) -> (Option<Version>, Vec<(usize, Limits)>) {
    const EFFECT: &str = "cells run on the CPU; CUDA text and cubins are made all the same";
    let probe = match cuda::probe() {
        Ok(probe) => probe,
        Err(CudaError::NoDriver) => {
            let advice = "with an NVIDIA GPU: install its driver, or start the container with access to the GPU";
            problems.push(Problem::new("there is no NVIDIA driver (libcuda.so.1)", EFFECT, advice));
            return (None, Vec::new());
        }
        Err(error) => {
            problems.push(Problem::new(
                error.to_string(),
                EFFECT,
                "run nvidia-smi, which tells more; update the driver",
            ));
            return (None, Vec::new());
        }
    };
    if probe.devices.is_empty() {
        let advice = "look whether CUDA_VISIBLE_DEVICES hides it, and what nvidia-smi says";
        problems.push(Problem::new("the NVIDIA driver sees no GPU", EFFECT, advice));
    }
    let mut gpus = Vec::new();
    for (ordinal, device) in probe.devices.into_iter().enumerate() {
        match device {
            Ok(limits) => gpus.push((ordinal, limits)),
            Err(error) => {
                let advice = "run nvidia-smi: another process may have the GPU to itself, or it has failed";
                problems.push(Problem::new(
                    format!("GPU {ordinal}: {error}"),
                    "cells do not run on it",
                    advice,
                ));
            }
        }
    }
    (Some(probe.driver), gpus)
}

/// None opens; the compiler's own error tells more where RNNC_NVRTC is wrong, or a file is damaged.
fn no_nvrtc(error: Option<NvrtcError>) -> Problem {
    Problem::new(
        error.map_or_else(|| "there is no NVRTC".to_owned(), |e| e.to_string()),
        "CUDA text is made, but no PTX and no cubin, and nothing runs on a GPU",
        "run `cargo xtask setup`, or `pip install nvidia-cuda-nvrtc`, or set RNNC_NVRTC to a libnvrtc.so",
    )
}

fn judge_versions(found: &[Found], driver: Option<Version>, problems: &mut Vec<Problem>) {
    let usable = |driver: Version| found.is_empty() || found.iter().any(|f| f.version.major <= driver.major);
    if let Some(driver) = driver.filter(|d| !usable(*d)) {
        problems.push(Problem::new(
            format!("every NVRTC is newer than the driver, which is for CUDA {driver}"),
            "nothing runs on a GPU",
            "update the driver, or run `cargo xtask setup`, which brings NVRTC 12.9 too",
        ));
    }
}

fn cache(problems: &mut Vec<Problem>) -> CacheState {
    let cache = Cache::of_user();
    if let Err(error) = cache.check_writable() {
        let folder = cache.folder().map(|f| f.display().to_string()).unwrap_or_default();
        problems.push(Problem::new(
            format!("the cache {folder} cannot be written: {error}"),
            "cells are compiled again each time",
            "set RNNC_CACHE to a folder that can be written",
        ));
    }
    let (modules, bytes) = cache.size();
    CacheState {
        folder: cache.folder().map(PathBuf::from),
        modules,
        bytes,
    }
}

fn cpu() -> Cpu {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = text
        .lines()
        .find(|l| l.starts_with("model name"))
        .and_then(|l| Some(l.split_once(':')?.1.trim().to_owned()));
    Cpu {
        model,
        threads: std::thread::available_parallelism().map_or(1, usize::from),
        features: features(),
    }
}

#[cfg(target_arch = "x86_64")]
fn features() -> Vec<String> {
    let found = [
        ("avx", std::is_x86_feature_detected!("avx")),
        ("avx2", std::is_x86_feature_detected!("avx2")),
        ("fma", std::is_x86_feature_detected!("fma")),
        ("f16c", std::is_x86_feature_detected!("f16c")),
        ("avx512f", std::is_x86_feature_detected!("avx512f")),
        ("avx512bf16", std::is_x86_feature_detected!("avx512bf16")),
    ];
    found
        .iter()
        .filter(|(_, has)| *has)
        .map(|(name, _)| (*name).to_owned())
        .collect()
}

#[cfg(not(target_arch = "x86_64"))]
fn features() -> Vec<String> {
    Vec::new()
}

impl Report {
    /// The device that runs a cell if none is named: the first GPU that can be used with an NVRTC, else the CPU.
    pub fn default_device(&self) -> String {
        match self.gpus.first() {
            Some((ordinal, _)) if !self.nvrtc.is_empty() => format!("cuda:{ordinal}"),
            _ => "cpu".to_owned(),
        }
    }

    fn rows(&self) -> Vec<(&'static str, String)> {
        let mut rows = vec![("system", self.system.clone()), ("cpu", self.cpu.to_string())];
        rows.push((
            "driver",
            self.driver
                .map_or_else(|| "none".to_owned(), |v| format!("for CUDA {v}")),
        ));
        rows.extend(self.gpus.iter().map(|(ordinal, limits)| ("gpu", gpu(*ordinal, limits))));
        let nvrtc = |f: &Found| ("nvrtc", format!("{}  {} ({})", f.version, f.path.display(), f.origin));
        rows.extend(self.nvrtc.iter().map(nvrtc));
        if self.nvrtc.is_empty() {
            rows.push(("nvrtc", "none".to_owned()));
        }
        rows.push(("cublaslt", if self.cublaslt { "found" } else { "none" }.to_owned()));
        rows.push(("cache", self.cache.to_string()));
        rows.push((
            "device",
            format!("{} unless `--device` says otherwise", self.default_device()),
        ));
        rows
    }
}

fn gpu(ordinal: usize, limits: &Limits) -> String {
    format!(
        "cuda:{ordinal}  {}, {}, {} multiprocessors, {:.0} GiB",
        limits.product,
        limits.arch,
        limits.processors,
        limits.memory as f64 / f64::from(1 << 30)
    )
}

impl fmt::Display for Cpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let model = self.model.as_deref().unwrap_or("unknown");
        let plural = if self.threads == 1 { "" } else { "s" };
        write!(f, "{model}, {} thread{plural}", self.threads)?;
        if !self.features.is_empty() {
            write!(f, ", {}", self.features.join(" "))?;
        }
        Ok(())
    }
}

impl fmt::Display for CacheState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(folder) = &self.folder else {
            return f.write_str("off");
        };
        let megabytes = self.bytes as f64 / 1e6;
        write!(f, "{} ({} modules, {megabytes:.1} MB)", folder.display(), self.modules)
    }
}

/// A page for people; repeated names of rows are left out.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "rnnc {}\n", self.rnnc)?;
        let mut last = "";
        for (name, value) in self.rows() {
            writeln!(f, "{:<10}{value}", if name == last { "" } else { name })?;
            last = name;
        }
        for problem in &self.problems {
            f.write_char('\n')?;
            writeln!(
                f,
                "{}\n  so:  {}\n  fix: {}",
                problem.what, problem.effect, problem.advice
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nvrtc::Origin;

    fn report() -> Report {
        let found = |major, minor, path: &str, origin| Found {
            path: PathBuf::from(path),
            version: Version { major, minor },
            origin,
        };
        let limits = Limits {
            product: "NVIDIA H200".to_owned(),
            arch: "sm_90".to_owned(),
            processors: 132,
            shared: 232_448,
            memory: 139 << 30,
            driver: Some(Version { major: 12, minor: 9 }),
        };
        Report {
            rnnc: "0.1.0".to_owned(),
            system: "linux x86_64".to_owned(),
            cpu: Cpu {
                model: Some("A Processor".to_owned()),
                threads: 2,
                features: vec!["avx2".to_owned(), "fma".to_owned()],
            },
            driver: limits.driver,
            gpus: vec![(0, limits)],
            nvrtc: vec![
                found(13, 0, "/opt/cuda/lib64/libnvrtc.so.13", Origin::Toolkit),
                found(12, 9, "/p/target/nvrtc/12.9/libnvrtc.so.12", Origin::Setup),
            ],
            cublaslt: false,
            cache: CacheState {
                folder: Some(PathBuf::from("/home/u/.cache/rnnc")),
                modules: 12,
                bytes: 1_240_000,
            },
            problems: vec![Problem::new(
                "a thing is missing",
                "a deed cannot be done",
                "get the thing",
            )],
        }
    }

    #[test]
    fn the_page_names_everything_once() {
        let page = "\
rnnc 0.1.0

system    linux x86_64
cpu       A Processor, 2 threads, avx2 fma
driver    for CUDA 12.9
gpu       cuda:0  NVIDIA H200, sm_90, 132 multiprocessors, 139 GiB
nvrtc     13.0  /opt/cuda/lib64/libnvrtc.so.13 (a CUDA toolkit)
          12.9  /p/target/nvrtc/12.9/libnvrtc.so.12 (cargo xtask setup)
cublaslt  none
cache     /home/u/.cache/rnnc (12 modules, 1.2 MB)
device    cuda:0 unless `--device` says otherwise

a thing is missing
  so:  a deed cannot be done
  fix: get the thing
";
        assert_eq!(report().to_string(), page);
    }

    #[test]
    fn what_is_missing_is_a_problem_with_advice() {
        let mut problems = Vec::new();
        problems.push(no_nvrtc(Some(NvrtcError::NotFound)));
        assert!(problems[0].advice.contains("cargo xtask setup") && problems[0].what.contains("no NVRTC"));
        let report = report();
        let old = Version { major: 11, minor: 8 };
        judge_versions(&report.nvrtc, Some(old), &mut problems);
        assert!(problems[1].what.contains("CUDA 11.8"), "{problems:?}");
        judge_versions(&report.nvrtc, report.driver, &mut problems);
        assert_eq!(problems.len(), 2, "12.9 suits a driver for 12.9");
        let bare = Report {
            nvrtc: vec![],
            ..report
        };
        assert_eq!(bare.default_device(), "cpu");
    }

    #[test]
    fn this_machine_can_be_examined() {
        let report = examine();
        assert!(report.cpu.threads >= 1);
        if report.driver.is_none() {
            assert!(report.problems.iter().any(|p| p.what.contains("driver")));
        }
        assert!(
            report
                .problems
                .iter()
                .all(|p| !p.advice.is_empty() && !p.effect.is_empty())
        );
        let json = serde_json::to_value(&report).unwrap();
        assert!(json["cpu"]["threads"].is_u64() && json["problems"].is_array());
    }
}
