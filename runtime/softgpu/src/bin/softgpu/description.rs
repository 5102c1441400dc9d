//! The description of a launch: a JSON file goes in, its text and values come out.

use super::nvrtc;
use serde::Deserialize;
use std::path::Path;

/// A launch.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Description {
    /// The text, `.cu` or `.ptx`, beside the description.
    pub source: String,
    /// What CUDA text is compiled for (default: what the device is).
    pub arch: Option<String>,
    /// The GPU: h100, h200, a100, l4, rtx4090.
    #[serde(default = "h100")]
    pub device: String,
    /// Options of NVRTC.
    #[serde(default)]
    pub options: Vec<String>,
    /// The kernel (default: the only one). Names of C++ kernels are mangled; `extern "C"` keeps them.
    pub kernel: Option<String>,
    /// Blocks along up to three axes.
    pub grid: Vec<u32>,
    /// Threads along up to three axes.
    pub block: Vec<u32>,
    /// Blocks of a cluster.
    pub cluster: Option<Vec<u32>>,
    /// Dynamic shared memory in bytes.
    #[serde(default)]
    pub shared: u32,
    /// Whether all blocks must be resident at once.
    #[serde(default)]
    pub cooperative: bool,
    /// Registers of a thread, as ptxas reports them: with shared memory they decide how many blocks are resident.
    #[serde(default = "registers")]
    pub registers: u32,
    /// How many seeds to run.
    #[serde(default = "seeds")]
    pub seeds: u64,
    /// Most instructions of threads.
    #[serde(default = "budget")]
    pub budget: u64,
    /// The arguments, in order.
    #[serde(default)]
    pub arguments: Vec<Argument>,
}

fn h100() -> String {
    "h100".to_owned()
}

fn registers() -> u32 {
    32
}

fn seeds() -> u64 {
    3
}

fn budget() -> u64 {
    1 << 36
}

/// An argument: `{"i32": 5}` or `{"buffer": {...}}`.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Argument {
    /// A number.
    I32(i32),
    /// A number.
    U32(u32),
    /// A number.
    I64(i64),
    /// A number.
    U64(u64),
    /// A number.
    F32(f32),
    /// A number.
    F64(f64),
    /// The address of device memory.
    Buffer(Buffer),
}

/// Device memory.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Buffer {
    /// Its name, for reports.
    pub name: String,
    /// What it holds.
    #[serde(rename = "type")]
    pub element: Element,
    /// Elements.
    pub len: usize,
    /// What is in it at first.
    #[serde(default)]
    pub init: Init,
    /// How many elements to print afterwards.
    #[serde(default)]
    pub show: usize,
}

/// The elements of a buffer.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Element {
    U8,
    I32,
    U32,
    I64,
    U64,
    F16,
    Bf16,
    F32,
    F64,
}

/// The first contents of a buffer.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Init {
    /// Nothing: reading it is a fault.
    #[default]
    None,
    /// Zeros.
    Zero,
    /// 0, 1, 2, ...
    Index,
    /// Numbers between -1 and 1 (whole ones of 0 to 99), the same for every seed.
    Random,
    /// One number everywhere.
    Value(f64),
    /// These numbers, over and over.
    Values(Vec<f64>),
}

/// A description with the PTX it is of.
pub struct Found {
    pub launch: Description,
    pub ptx: String,
}

/// Reads a description and its text.
pub fn read(file: &Path) -> Result<Found, String> {
    let text = std::fs::read_to_string(file).map_err(|e| format!("{}: {e}", file.display()))?;
    let launch: Description = serde_json::from_str(&text).map_err(|e| format!("{}: {e}", file.display()))?;
    let source = file.with_file_name(&launch.source);
    let text = std::fs::read_to_string(&source).map_err(|e| format!("{}: {e}", source.display()))?;
    let ptx = match source.extension().and_then(|e| e.to_str()) {
        Some("ptx") => text,
        _ => nvrtc::compile(&text, &source, &arch(&launch)?, &launch.options)?,
    };
    Ok(Found { launch, ptx })
}

fn arch(launch: &Description) -> Result<String, String> {
    let device = softgpu::Device::named(&launch.device);
    let device = device.ok_or_else(|| format!("`{}` is no device that is known", launch.device))?;
    let own = || format!("sm_{}", device.capability);
    Ok(launch.arch.clone().unwrap_or_else(own))
}
