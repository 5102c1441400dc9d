//! CUDA text to PTX with every NVRTC that `cargo xtask setup` has put into `target/nvrtc`, or the one of RNNC_NVRTC.

use nvrtc_sys::Nvrtc;
use std::path::{Path, PathBuf};

/// PTX and the version of the NVRTC that it is of, such as `13.5`.
pub struct Ptx {
    pub version: String,
    pub text: String,
}

/// The PTX of every NVRTC; empty, with a word on the terminal, where there is none.
///
/// # Panics
/// NVRTC refuses the text.
pub fn compile(text: &str, arch: &str, options: &[&str]) -> Vec<Ptx> {
    let found = all();
    if found.is_empty() {
        eprintln!("SKIPPED: no NVRTC; run `cargo xtask setup`");
    }
    found.iter().map(|nvrtc| with(nvrtc, text, arch, options)).collect()
}

fn with(nvrtc: &Nvrtc, text: &str, arch: &str, options: &[&str]) -> Ptx {
    let mut all = vec![
        format!("--gpu-architecture={arch}"),
        "--device-as-default-execution-space".to_owned(),
    ];
    all.extend(options.iter().map(|o| (*o).to_owned()));
    let mut program = nvrtc.program(text, "test.cu").unwrap();
    let result = program.compile(&all);
    assert!(result.is_ok(), "{}", program.log().unwrap());
    let (major, minor) = nvrtc.version().unwrap();
    Ptx {
        version: format!("{major}.{minor}"),
        text: program.ptx().unwrap(),
    }
}

fn all() -> Vec<Nvrtc> {
    paths().iter().filter_map(|file| Nvrtc::open(file).ok()).collect()
}

/// Every NVRTC.
pub fn paths() -> Vec<PathBuf> {
    let mut files = Vec::new();
    match std::env::var_os("RNNC_NVRTC") {
        Some(path) => collect(Path::new(&path), &mut files),
        None => collect(
            &Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/nvrtc"),
            &mut files,
        ),
    }
    files.sort();
    files
}

/// Every `libnvrtc.so.N` below a folder, or the file itself.
fn collect(path: &Path, files: &mut Vec<PathBuf>) {
    let name = path.file_name().map(|n| n.to_string_lossy().into_owned());
    let is_nvrtc = name.is_some_and(|n| {
        n.strip_prefix("libnvrtc.so.")
            .is_some_and(|version| version.bytes().all(|b| b.is_ascii_digit()))
    });
    if path.is_file() && is_nvrtc {
        files.push(path.to_owned());
    }
    for entry in std::fs::read_dir(path).into_iter().flatten().flatten() {
        collect(&entry.path(), files);
    }
}
