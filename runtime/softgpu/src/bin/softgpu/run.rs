//! Runs a described launch once for each seed.

use super::description::{Argument, Buffer, Description, Element, Found, Init};
use half::{bf16, f16};
use serde::Serialize;
use softgpu::fault::Fault;
use softgpu::{Arg, Device, Gpu, Launch};
use std::fmt::{self, Display, Formatter};

/// What came of all seeds.
#[derive(Serialize)]
pub struct Report {
    kernel: String,
    device: String,
    runs: Vec<Run>,
    /// Buffers that hold other values for another seed.
    differ: Vec<String>,
}

/// What came of a seed.
#[derive(Serialize)]
struct Run {
    seed: u64,
    warp_instructions: u64,
    thread_instructions: u64,
    fault: Option<Box<Fault>>,
    shown: Vec<(String, Vec<f64>)>,
    #[serde(skip)]
    contents: Vec<(String, Option<Vec<u8>>)>,
}

impl Report {
    /// Whether nothing is wrong.
    pub fn ok(&self) -> bool {
        self.runs.iter().all(|run| run.fault.is_none())
    }
}

/// Runs.
pub fn run(found: &Found, first: u64, seeds: Option<u64>) -> Result<Report, String> {
    let seeds = seeds.unwrap_or(found.launch.seeds).max(1);
    let mut kernel = String::new();
    let mut runs = Vec::new();
    for seed in first..first.saturating_add(seeds) {
        runs.push(once(found, seed, &mut kernel)?);
    }
    let differ = differing(&runs);
    Ok(Report {
        kernel,
        device: found.launch.device.clone(),
        runs,
        differ,
    })
}

fn once(found: &Found, seed: u64, kernel: &mut String) -> Result<Run, String> {
    let launch = &found.launch;
    let device = Device::named(&launch.device).ok_or_else(|| format!("there is no device `{}`", launch.device))?;
    let mut gpu = Gpu::new(device, seed);
    let module = gpu.load(&found.ptx).map_err(|e| e.to_string())?;
    *kernel = chosen(launch, module.kernels())?;
    let (arguments, buffers) = arguments(&mut gpu, launch)?;
    let result = gpu.launch(&module, kernel, &shape(launch, seed)?, &arguments);
    let mut run = Run {
        seed,
        warp_instructions: 0,
        thread_instructions: 0,
        fault: None,
        shown: Vec::new(),
        contents: Vec::new(),
    };
    match result {
        Ok(report) => {
            run.warp_instructions = report.warp_instructions;
            run.thread_instructions = report.thread_instructions;
            for (buffer, address) in &buffers {
                let size = buffer.element.bytes();
                run.contents
                    .push((buffer.name.clone(), gpu.download(*address, buffer.len * size).ok()));
                let count = buffer.show.min(buffer.len);
                if count > 0 {
                    let bytes = gpu.download(*address, count * size).map_err(|wrong| wrong.message)?;
                    run.shown.push((
                        buffer.name.clone(),
                        bytes.chunks(size).map(|b| buffer.element.number(b)).collect(),
                    ));
                }
            }
        }
        Err(fault) => run.fault = Some(fault),
    }
    Ok(run)
}

fn chosen<'a>(launch: &Description, kernels: impl Iterator<Item = &'a str>) -> Result<String, String> {
    let names: Vec<&str> = kernels.collect();
    match (&launch.kernel, names.as_slice()) {
        (Some(name), _) if names.contains(&name.as_str()) => Ok(name.clone()),
        (Some(name), _) => Err(format!("there is no kernel {name}; there are {}", names.join(", "))),
        (None, [only]) => Ok((*only).to_owned()),
        (None, _) => Err(format!("`kernel` must say which: there are {}", names.join(", "))),
    }
}

fn shape(launch: &Description, seed: u64) -> Result<Launch, String> {
    Ok(Launch {
        grid: axes(&launch.grid)?,
        block: axes(&launch.block)?,
        cluster: launch.cluster.as_deref().map(axes).transpose()?,
        shared: launch.shared,
        cooperative: launch.cooperative,
        registers: launch.registers,
        seed,
        budget: launch.budget,
        ..Launch::default()
    })
}

fn axes(sizes: &[u32]) -> Result<[u32; 3], String> {
    match *sizes {
        [x] => Ok([x, 1, 1]),
        [x, y] => Ok([x, y, 1]),
        [x, y, z] => Ok([x, y, z]),
        _ => Err("grid, block and cluster have one to three sizes".to_owned()),
    }
}

type Buffers<'a> = Vec<(&'a Buffer, u64)>;

fn arguments<'a>(gpu: &mut Gpu, launch: &'a Description) -> Result<(Vec<Arg<'a>>, Buffers<'a>), String> {
    let (mut arguments, mut buffers) = (Vec::new(), Vec::new());
    for argument in &launch.arguments {
        arguments.push(match argument {
            Argument::I32(value) => Arg::I32(*value),
            Argument::U32(value) => Arg::U32(*value),
            Argument::I64(value) => Arg::U64(value.cast_unsigned()),
            Argument::U64(value) => Arg::U64(*value),
            Argument::F32(value) => Arg::F32(*value),
            Argument::F64(value) => Arg::F64(*value),
            Argument::Buffer(buffer) => {
                let address = upload(gpu, buffer)?;
                buffers.push((buffer, address));
                Arg::U64(address)
            }
        });
    }
    Ok((arguments, buffers))
}

fn upload(gpu: &mut Gpu, buffer: &Buffer) -> Result<u64, String> {
    let address = gpu
        .memory()
        .allocate((buffer.len * buffer.element.bytes()) as u64, &buffer.name);
    if let Some(bytes) = buffer.contents() {
        gpu.memory().write(address, &bytes).map_err(|wrong| wrong.message)?;
    }
    Ok(address)
}

impl Buffer {
    /// The bytes of its first contents, if it has any.
    fn contents(&self) -> Option<Vec<u8>> {
        let value = |at: usize| match &self.init {
            Init::None | Init::Zero => 0.0,
            Init::Index => at as f64,
            Init::Random => self.element.random(at as u64),
            Init::Value(value) => *value,
            Init::Values(values) => values.get(at % values.len().max(1)).copied().unwrap_or(0.0),
        };
        let bytes = || (0..self.len).flat_map(|at| self.element.encode(value(at))).collect();
        (!matches!(self.init, Init::None)).then(bytes)
    }
}

impl Element {
    fn bytes(self) -> usize {
        match self {
            Element::U8 => 1,
            Element::F16 | Element::Bf16 => 2,
            Element::I32 | Element::U32 | Element::F32 => 4,
            Element::I64 | Element::U64 | Element::F64 => 8,
        }
    }

    fn encode(self, x: f64) -> Vec<u8> {
        match self {
            Element::U8 => vec![x as u8],
            Element::I32 => (x as i32).to_le_bytes().to_vec(),
            Element::U32 => (x as u32).to_le_bytes().to_vec(),
            Element::I64 => (x as i64).to_le_bytes().to_vec(),
            Element::U64 => (x as u64).to_le_bytes().to_vec(),
            Element::F16 => f16::from_f64(x).to_le_bytes().to_vec(),
            Element::Bf16 => bf16::from_f64(x).to_le_bytes().to_vec(),
            Element::F32 => (x as f32).to_le_bytes().to_vec(),
            Element::F64 => x.to_le_bytes().to_vec(),
        }
    }

    /// The number in so many bytes.
    fn number(self, bytes: &[u8]) -> f64 {
        let word = bytes
            .iter()
            .rev()
            .fold(0_u64, |word, byte| word << 8 | u64::from(*byte));
        match self {
            Element::U8 | Element::U32 | Element::U64 => word as f64,
            Element::I32 => f64::from((word as u32).cast_signed()),
            Element::I64 => word.cast_signed() as f64,
            Element::F16 => f16::from_bits(word as u16).to_f64(),
            Element::Bf16 => bf16::from_bits(word as u16).to_f64(),
            Element::F32 => f64::from(f32::from_bits(word as u32)),
            Element::F64 => f64::from_bits(word),
        }
    }

    fn is_float(self) -> bool {
        matches!(self, Element::F16 | Element::Bf16 | Element::F32 | Element::F64)
    }

    /// A number from its place alone (the finaliser of splitmix64).
    fn random(self, at: u64) -> f64 {
        let mut z = (at + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb) >> 40;
        match self.is_float() {
            true => z as f64 / f64::from(1 << 23) - 1.0,
            false => (z % 100) as f64,
        }
    }
}

/// The buffers whose bytes are not the same in all runs that ended.
fn differing(runs: &[Run]) -> Vec<String> {
    let mut ended = runs.iter().filter(|run| run.fault.is_none());
    let Some(first) = ended.next() else {
        return Vec::new();
    };
    let rest: Vec<&Run> = ended.collect();
    let differs = |at: usize| rest.iter().any(|run| run.contents[at].1 != first.contents[at].1);
    let names = first.contents.iter().enumerate();
    names
        .filter(|(at, _)| differs(*at))
        .map(|(_, (name, _))| name.clone())
        .collect()
}

impl Display for Report {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for run in &self.runs {
            match &run.fault {
                Some(fault) => writeln!(f, "seed {}: {fault}", run.seed)?,
                None => writeln!(
                    f,
                    "seed {}: ok, {} instructions of warps, {} of threads",
                    run.seed, run.warp_instructions, run.thread_instructions
                )?,
            }
        }
        let shown = self.runs.iter().rev().find(|run| run.fault.is_none());
        for (name, values) in shown.iter().flat_map(|run| &run.shown) {
            let values: Vec<String> = values.iter().map(ToString::to_string).collect();
            writeln!(f, "{name}: {}", values.join(" "))?;
        }
        if !self.differ.is_empty() {
            writeln!(f, "not the same for every seed: {}", self.differ.join(", "))?;
        }
        let faulty = self.runs.iter().filter(|run| run.fault.is_some()).count();
        writeln!(
            f,
            "{} on {}: {} seeds, {faulty} faulty",
            self.kernel,
            self.device,
            self.runs.len()
        )
    }
}
