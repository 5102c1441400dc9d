//! Kernels that are wrong, and near misses that are not: a file of CUDA text a kind of fault in `tests/faults`, the
//! expectation in the line before each kernel:
//!
//! `// @run NAME grid=2 block=64 args=zeros:64,u32:3 fault=global-race earlier`
//!
//! - `grid`, `block`, `cluster`, `shared` (bytes), `cooperative`, `budget` (instructions of threads): the launch.
//! - `args`: buffers of words (`zeros:N`, `iota:N`, `fill:N:VALUE`, `raw:N` that nobody wrote, `freed:N`, `same:I` as argument
//!   I) and numbers (`u32:VALUE`).
//! - `fault=a|b`: every seed must end in one of these; `some`: at least one seed must; `earlier`: the report names the access
//!   that it collides with. `varies`: no fault, and seeds differ in what the buffers hold. Nothing: no fault, and all seeds
//!   agree.

use crate::nvrtc::compile;
use softgpu::fault::{Fault, Kind};
use softgpu::report::{Texts, render};
use softgpu::{Arg, Device, Gpu, Launch, Module};
use std::collections::BTreeSet;
use std::path::Path;

const SEEDS: u64 = 6;

/// A case of a file.
#[derive(Debug, Default)]
struct Case {
    name: String,
    kernel: String,
    line: usize,
    launch: Launch,
    args: Vec<String>,
    faults: Vec<String>,
    earlier: bool,
    some: bool,
    varies: bool,
}

impl Case {
    /// Whether it is one of those that are wrong.
    fn is_wrong(&self) -> bool {
        self.varies || !self.faults.is_empty()
    }

    fn parse(line: &str, number: usize) -> Self {
        let mut words = line.split_whitespace();
        let mut case = Self {
            name: words.next().unwrap().into(),
            line: number,
            ..Self::default()
        };
        case.launch.budget = 1 << 19;
        for word in words {
            let (key, value) = word.split_once('=').unwrap_or((word, ""));
            let size = || value.parse::<u32>().unwrap();
            match key {
                "grid" => case.launch.grid = [size(), 1, 1],
                "block" => case.launch.block = [size(), 1, 1],
                "cluster" => case.launch.cluster = Some([size(), 1, 1]),
                "shared" => case.launch.shared = size(),
                "cooperative" => case.launch.cooperative = true,
                "budget" => case.launch.budget = value.parse().unwrap(),
                "args" => case.args = value.split(',').map(str::to_owned).collect(),
                "fault" => case.faults = value.split('|').map(str::to_owned).collect(),
                "earlier" => case.earlier = true,
                "some" => case.some = true,
                "varies" => case.varies = true,
                _ => panic!("line {number}: {word}"),
            }
        }
        case
    }

    /// Runs it; what the buffers hold in the end.
    fn run(&self, gpu: &mut Gpu, module: &Module, seed: u64) -> Result<Vec<Option<Vec<u8>>>, Box<Fault>> {
        let mut addresses: Vec<(u64, usize)> = Vec::new();
        let mut arguments = Vec::new();
        for (i, text) in self.args.iter().enumerate() {
            let parts: Vec<&str> = text.split(':').collect();
            let number: u64 = parts[1].parse().unwrap();
            if parts[0] == "u32" {
                addresses.push((0, 0));
                arguments.push(Arg::U32(number as u32));
                continue;
            }
            let address = match parts[0] {
                "same" => addresses[number as usize],
                kind => buffer(gpu, &format!("argument {i}"), kind, number, parts.get(2)),
            };
            addresses.push(address);
            arguments.push(Arg::U64(address.0));
        }
        let launch = Launch {
            seed,
            ..self.launch.clone()
        };
        gpu.launch(module, &self.kernel, &launch, &arguments)?;
        Ok(addresses
            .iter()
            .map(|&(address, bytes)| gpu.download(address, bytes).ok())
            .collect())
    }

    /// What is wrong with what it did.
    fn judge(&self, ptx: &str, text: &str) -> Result<(), String> {
        let mut outcomes = BTreeSet::new();
        let mut found = 0;
        for seed in 0..SEEDS {
            let mut gpu = Gpu::new(Device::named("h100").unwrap(), seed);
            let module = gpu.load(ptx).map_err(|error| error.to_string())?;
            match self.run(&mut gpu, &module, seed) {
                Ok(buffers) => {
                    outcomes.insert(buffers);
                    if !self.faults.is_empty() && !self.some {
                        return Err(format!("seed {seed}: nothing was found; expected {:?}", self.faults));
                    }
                }
                Err(fault) => {
                    found += 1;
                    self.judge_fault(&fault, text)
                        .map_err(|error| format!("seed {seed}: {error}"))?;
                }
            }
        }
        match (self.some && found == 0, self.varies, outcomes.len()) {
            (true, _, _) => Err("no seed found anything".into()),
            (_, true, 1) => Err("all seeds agree".into()),
            (_, false, 2..) if self.faults.is_empty() => Err("seeds disagree".into()),
            _ => Ok(()),
        }
    }

    fn judge_fault(&self, fault: &Fault, text: &str) -> Result<(), String> {
        let shown = render(fault, &Texts::new().with("test.cu", text));
        if !self.faults.iter().any(|kind| kind == fault.kind.name()) {
            return Err(format!("expected {:?}, found\n{shown}", self.faults));
        }
        if fault.kernel != self.kernel || fault.message.is_empty() {
            return Err(format!("the report lacks its kernel or its sentence:\n{shown}"));
        }
        let somewhere = !matches!(fault.kind, Kind::Launch | Kind::CoResidency);
        let lines = fault.place.as_ref().and_then(|place| place.source.as_ref());
        if somewhere
            && (fault.thread.is_none() || lines.is_none_or(|(file, line)| !file.ends_with(".cu") || *line == 0))
        {
            return Err(format!(
                "the report names no thread, or no line of the CUDA text:\n{shown}"
            ));
        }
        if self.earlier && fault.earlier.is_none() {
            return Err(format!("the report does not name the earlier access:\n{shown}"));
        }
        Ok(())
    }
}

/// A buffer of `count` words.
fn buffer(gpu: &mut Gpu, name: &str, kind: &str, count: u64, value: Option<&&str>) -> (u64, usize) {
    let bytes = count as usize * 4;
    let address = gpu.memory().allocate(count * 4, name);
    let word = |i: u64| match kind {
        "iota" => i as u32,
        "fill" => value.unwrap().parse().unwrap(),
        _ => 0,
    };
    if kind != "raw" {
        let words: Vec<u8> = (0..count).flat_map(|i| word(i).to_le_bytes()).collect();
        gpu.memory().write(address, &words).unwrap();
    }
    if kind == "freed" {
        gpu.memory().free(address).unwrap();
    }
    (address, bytes)
}

/// The cases of a text: each belongs to the kernel that follows.
fn cases(text: &str) -> Vec<Case> {
    let (mut all, mut open): (Vec<Case>, Vec<Case>) = (Vec::new(), Vec::new());
    for (i, line) in text.lines().enumerate() {
        if let Some(run) = line.strip_prefix("// @run ") {
            open.push(Case::parse(run, i + 1));
        }
        if line.starts_with("extern \"C\" __global__") {
            let head = line
                .split("void ")
                .nth(1)
                .unwrap()
                .trim_start_matches("__cluster_dims__(2, 1, 1) ");
            let kernel = head.split('(').next().unwrap();
            all.extend(open.drain(..).map(|case| Case {
                kernel: kernel.into(),
                ..case
            }));
        }
    }
    all
}

/// Runs a file with every NVRTC and collects what is wrong.
fn check(name: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/faults")
        .join(format!("{name}.cu"));
    let text = std::fs::read_to_string(path).unwrap();
    let cases = cases(&text);
    let wrong = cases.iter().filter(|case| case.is_wrong()).count();
    assert!(
        wrong >= 2 && wrong < cases.len(),
        "{name}: at least two that are wrong, and a near miss"
    );
    let mut errors = Vec::new();
    for ptx in compile(&text, "sm_90", &["-lineinfo"]) {
        for case in &cases {
            if let Err(error) = case.judge(&ptx.text, &text) {
                errors.push(format!(
                    "{name}.cu:{}: {} (NVRTC {}): {error}",
                    case.line, case.name, ptx.version
                ));
            }
        }
    }
    assert!(errors.is_empty(), "\n{}", errors.join("\n"));
}

macro_rules! kinds {
    ($($test:ident $file:literal;)*) => {
        $(#[test] fn $test() { check($file); })*

        #[test]
        fn every_file_is_run() {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/faults");
            let names = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
            let here: BTreeSet<String> = [$(concat!($file, ".cu").to_owned()),*].into();
            assert_eq!(names.collect::<BTreeSet<_>>(), here);
        }
    };
}

kinds! {
    bounds "01-bounds";
    uninitialised "02-uninitialised";
    shared_races "03-shared-races";
    global_races "04-global-races";
    barriers_and_masks "05-barriers-and-masks";
    waiting_for_ever "06-waiting-for-ever";
    non_coherent "07-non-coherent";
    asynchronous "08-asynchronous";
    distributed_shared "09-distributed-shared";
    order "10-order";
    forward_progress "11-forward-progress";
    exits_and_limits "12-exits-and-limits";
    wrap "13-wrap";
    stale_reads "14-stale-reads";
    aligned "15-aligned";
}
