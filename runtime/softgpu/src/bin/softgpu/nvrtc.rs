//! CUDA text goes in, PTX comes out, by whichever NVRTC there is.

use nvrtc_sys::Nvrtc;
use std::path::{Path, PathBuf};

/// The names of NVRTC, newest first.
const NAMES: [&str; 3] = ["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"];

/// Compiles, with places of the text kept for reports.
pub fn compile(text: &str, file: &Path, arch: &str, options: &[String]) -> Result<String, String> {
    let nvrtc = open()?;
    let fail = |code| format!("NVRTC: {}", nvrtc.describe(code));
    let name = file
        .file_name()
        .map_or_else(String::new, |n| n.to_string_lossy().into_owned());
    let mut program = nvrtc.program(text, &name).map_err(fail)?;
    let mut all = vec![format!("--gpu-architecture={arch}"), "-lineinfo".to_owned()];
    all.extend_from_slice(options);
    if let Err(code) = program.compile(&all) {
        let log = program.log().unwrap_or_default();
        return Err(format!("{}\n{log}", nvrtc.describe(code)));
    }
    program.ptx().map_err(fail)
}

fn open() -> Result<Nvrtc, String> {
    let given = std::env::var_os("SOFTGPU_NVRTC").map(PathBuf::from);
    let paths: Vec<PathBuf> = match &given {
        Some(path) if path.is_dir() => NAMES.iter().map(|name| path.join(name)).collect(),
        Some(path) => vec![path.clone()],
        None => NAMES.iter().map(PathBuf::from).collect(),
    };
    let found = paths.iter().find_map(|path| Nvrtc::open(path).ok());
    found.ok_or_else(|| {
        "there is no NVRTC: set SOFTGPU_NVRTC to libnvrtc.so or its folder (pip's nvidia-cuda-nvrtc has one), or give PTX"
            .to_owned()
    })
}
