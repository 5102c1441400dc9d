//! A text goes in; its module comes out, from the cache if it is there: then no NVRTC is even opened, which takes longer
//! than reading a module.

use super::compile::first;
use super::find::{Candidate, Version};
use super::{Compiled, Compiler, NvrtcError};
use crate::cache::{Cache, Key};
use std::path::{Path, PathBuf};

/// What shall be compiled.
#[derive(Clone, Copy, Debug)]
pub struct Job<'a> {
    /// The CUDA text.
    pub text: &'a str,
    /// Its name in messages: `lstm.cu`.
    pub name: &'a str,
    /// The architecture: `sm_90`.
    pub arch: &'a str,
    /// NVRTC's options besides the architecture, each one argument.
    pub options: &'a [&'a str],
    /// The CUDA version of the driver that will load the cubin, if one will.
    pub driver: Option<Version>,
}

/// A module and how it came about.
#[derive(Clone, Debug)]
pub struct Built {
    /// The module.
    pub compiled: Compiled,
    /// The NVRTC that it is of.
    pub nvrtc: PathBuf,
    /// Whether it was in the cache.
    pub cached: bool,
}

/// Compiles with the best NVRTC of this machine that can do it, or takes what that NVRTC made earlier.
///
/// # Errors
/// There is no NVRTC that knows the architecture and suits the driver; the text does not compile.
pub fn build(cache: &Cache, job: &Job<'_>) -> Result<Built, NvrtcError> {
    // A refusal of the text itself ends the search: the next NVRTC would only hide the message.
    let outcome = first(|candidate| match attempt(cache, job, candidate) {
        Err(error @ (NvrtcError::Compilation { .. } | NvrtcError::Failed { .. })) => Ok(Err(error)),
        other => other.map(Ok),
    });
    outcome?
}

/// How many texts this machine compiles at once without one slowing another.
pub fn side_by_side() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// [`build`] for several texts at once, a thread each.
///
/// # Errors
/// Those of [`build`], for the first of the texts that has one.
pub fn build_all(cache: &Cache, jobs: &[Job<'_>]) -> Result<Vec<Built>, NvrtcError> {
    let Some((last, others)) = jobs.split_last() else {
        return Ok(Vec::new());
    };
    std::thread::scope(|scope| {
        let others: Vec<_> = others.iter().map(|job| scope.spawn(|| build(cache, job))).collect();
        let last = build(cache, last);
        let mut built = Vec::new();
        for other in others {
            let outcome = other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            built.push(outcome?);
        }
        built.push(last?);
        Ok(built)
    })
}

fn attempt(cache: &Cache, job: &Job<'_>, candidate: &Candidate) -> Result<Built, NvrtcError> {
    let built = |compiled, cached| Built {
        compiled,
        nvrtc: candidate.path.clone(),
        cached,
    };
    let identity = identity(&candidate.path);
    if let Some(compiled) = identity.as_ref().and_then(|id| cache.get(&key(job, id))) {
        return Ok(built(compiled, true));
    }
    let compiler = Compiler::open_candidate(candidate, job.arch, job.driver)?;
    let compiled = compiler.compile(job.text, job.name, job.arch, job.options)?;
    if let Some(id) = &identity {
        // A cache that cannot be written only costs time.
        let _ = cache.put(&key(job, id), &compiled);
    }
    Ok(built(compiled, false))
}

fn key<'a>(job: &'a Job<'_>, nvrtc: &'a str) -> Key<'a> {
    Key {
        text: job.text,
        name: job.name,
        arch: job.arch,
        options: job.options,
        nvrtc,
    }
}

/// Tells one NVRTC from another without opening it: the version in the name of its builtins, which lie beside it, and the
/// sizes of both. None where there are no builtins: then nothing is cached.
fn identity(path: &Path) -> Option<String> {
    let path = path.canonicalize().ok()?;
    let folder = std::fs::read_dir(path.parent()?).ok()?;
    let builtins = folder.flatten().map(|e| e.path()).filter(|p| is_builtins(p));
    let mut parts: Vec<String> = builtins.chain([path]).filter_map(|p| named_size(&p)).collect();
    parts.sort();
    (parts.len() > 1).then(|| parts.join(" "))
}

fn is_builtins(path: &Path) -> bool {
    path.file_name()
        .is_some_and(|n| n.to_string_lossy().starts_with("libnvrtc-builtins.so."))
}

fn named_size(path: &Path) -> Option<String> {
    let bytes = path.metadata().ok()?.len();
    Some(format!("{}:{bytes}", path.file_name()?.to_string_lossy()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nvrtc::find;

    const TEXT: &str = "extern \"C\" __global__ void twice(float* y) { y[threadIdx.x] *= 2.0f; }";

    fn job(text: &str) -> Job<'_> {
        Job {
            text,
            name: "twice.cu",
            arch: "sm_90",
            options: &["--fmad=false"],
            driver: None,
        }
    }

    #[test]
    fn the_second_time_comes_from_the_cache() {
        if find().is_empty() {
            eprintln!("SKIPPED the_second_time_comes_from_the_cache: no NVRTC; run `cargo xtask setup`");
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::in_folder(folder.path(), 1 << 20);
        let first = build(&cache, &job(TEXT)).unwrap();
        let second = build(&cache, &job(TEXT)).unwrap();
        assert_eq!((first.cached, second.cached), (false, true));
        assert_eq!(first.compiled, second.compiled);
        assert_eq!(first.nvrtc, second.nvrtc);
        let entry = std::fs::read_dir(folder.path())
            .unwrap()
            .next()
            .unwrap()
            .unwrap()
            .path();
        std::fs::write(&entry, "garbage").unwrap();
        let third = build(&cache, &job(TEXT)).unwrap();
        assert_eq!((third.cached, third.compiled == first.compiled), (false, true));
        assert!(build(&cache, &job(TEXT)).unwrap().cached, "mended");
        assert!(!build(&Cache::off(), &job(TEXT)).unwrap().cached);
        let broken = build(&cache, &job("broken")).unwrap_err();
        assert!(matches!(broken, NvrtcError::Compilation { .. }), "{broken}");
    }

    #[test]
    fn several_texts_are_built_side_by_side() {
        if find().is_empty() {
            eprintln!("SKIPPED several_texts_are_built_side_by_side: no NVRTC; run `cargo xtask setup`");
            return;
        }
        let texts: Vec<String> = (0..3).map(|i| TEXT.replace("twice", &format!("twice{i}"))).collect();
        let jobs: Vec<Job> = texts.iter().map(|t| job(t)).collect();
        let built = build_all(&Cache::off(), &jobs).unwrap();
        for (i, built) in built.iter().enumerate() {
            assert!(built.compiled.kernel(&format!("twice{i}")).is_some(), "{i}");
        }
        assert!(build_all(&Cache::off(), &[]).unwrap().is_empty());
        let broken = build_all(&Cache::off(), &[job(TEXT), job("broken"), job(TEXT)]);
        assert!(matches!(broken, Err(NvrtcError::Compilation { .. })));
    }

    #[test]
    fn identities_tell_versions_apart() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            std::fs::write(folder.path().join(name), text).unwrap();
            folder.path().join(name)
        };
        let nvrtc = file("libnvrtc.so.13", "library");
        assert_eq!(identity(&nvrtc), None);
        file("libnvrtc-builtins.so.13.5", "builtins");
        assert_eq!(
            identity(&nvrtc).unwrap(),
            "libnvrtc-builtins.so.13.5:8 libnvrtc.so.13:7"
        );
        file("libnvrtc.so.13", "patched library");
        assert_eq!(
            identity(&nvrtc).unwrap(),
            "libnvrtc-builtins.so.13.5:8 libnvrtc.so.13:15"
        );
        assert_eq!(identity(&folder.path().join("absent")), None);
    }
}
