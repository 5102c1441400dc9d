//! Runs emitted CUDA text on the CPU, for tests: the text is compiled by g++ against `shim.h` and run in a process of its
//! own, every CUDA thread a fiber. Errors of indices, barriers, shuffles and exchanges show up here without a GPU.

use rnnc_runtime::engine::Data;
use rnnc_runtime::manifest::{Argument, KernelLaunch, Manifest};
use rnnc_runtime::plan::{BufferId, Elem, Initial, Role};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Emitted text, compiled.
pub struct Shim {
    manifest: Manifest,
    folder: PathBuf,
}

/// How to run.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    /// T.
    pub frames: usize,
    /// B.
    pub batch: usize,
    /// Blocks that can be on the device at once.
    pub resident: u64,
    /// Decides the order of threads.
    pub seed: u64,
    /// Where epochs begin.
    pub epoch: u32,
    /// So many runs with the same workspaces, one after another; the last one counts.
    pub repeats: usize,
}

impl Run {
    /// One run on a large device.
    pub fn new(frames: usize, batch: usize, seed: u64) -> Run {
        Run {
            frames,
            batch,
            resident: 1 << 20,
            seed,
            epoch: 0,
            repeats: 1,
        }
    }
}

/// Whether there is a C++ compiler; says so where there is none.
pub fn available() -> bool {
    let found = Command::new("g++")
        .arg("--version")
        .output()
        .is_ok_and(|o| o.status.success());
    if !found {
        eprintln!("SKIPPED: emitted kernels are not run, because there is no g++");
    }
    found
}

impl Shim {
    /// Compiles text with its manifest.
    ///
    /// # Panics
    /// It does not compile.
    pub fn compile(text: &str, manifest: &Manifest) -> Shim {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = temporary().join(format!("shim-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let source = folder.join("kernels.cpp");
        std::fs::write(&source, program(text, manifest)).unwrap();
        compile(&[&source, machine()], &folder.join("kernels"), &[]);
        Shim {
            manifest: manifest.clone(),
            folder,
        }
    }

    /// Runs everything: prologue, initial windows that are not given, launches. Returns all buffers.
    ///
    /// # Panics
    /// The kernels fail: a deadlock, an access outside a buffer.
    pub fn run(&self, run: Run, given: &BTreeMap<BufferId, Data>) -> BTreeMap<BufferId, Data> {
        let script = self.script(run, given);
        let input: Vec<u8> = given.values().flat_map(bytes).collect();
        let at = |name: &str| self.folder.join(format!("{name}-{}", run.seed));
        std::fs::write(at("script"), &script).unwrap();
        std::fs::write(at("in"), input).unwrap();
        let output = Command::new(self.folder.join("kernels"))
            .args([at("script"), at("in"), at("out")])
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{run:?}: {}\n{}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        );
        let mut result = self.read(run, &std::fs::read(at("out")).unwrap());
        self.finish(run, &mut result);
        result
    }

    /// What the process does, a command a line.
    fn script(&self, run: Run, given: &BTreeMap<BufferId, Data>) -> String {
        let manifest = &self.manifest;
        let mut script = format!("run {} {} {}\n", run.frames, run.batch, run.seed.max(1));
        for buffer in &manifest.buffers {
            let elem = match buffer.elem {
                Elem::F32 => 0,
                Elem::F16 => 1,
                Elem::Bf16 => 2,
                Elem::I32 => 3,
            };
            writeln!(script, "buffer {} {elem}", buffer.len(run.frames, run.batch)).unwrap();
        }
        for id in given.keys() {
            writeln!(script, "read {}", id.0).unwrap();
        }
        for (i, workspace) in manifest.workspaces.iter().enumerate() {
            let user = self
                .all_launches()
                .find(|l| l.arguments.contains(&Argument::Workspace(i)));
            let groups = user.map_or(0, |l| l.grid.groups(run.batch as u64, run.resident));
            writeln!(script, "workspace {}", workspace.bytes(groups)).unwrap();
        }
        let skipped: Vec<usize> = self.skipped_initial(given, &mut script);
        let mut epochs = vec![run.epoch; manifest.workspaces.len()];
        for _ in 0..run.repeats {
            for (i, launch) in self.all_launches().enumerate().filter(|(i, _)| !skipped.contains(i)) {
                self.launch(i, launch, run, &mut epochs, &mut script);
            }
        }
        for i in 0..manifest.buffers.len() {
            writeln!(script, "write {i}").unwrap();
        }
        script
    }

    /// Fills windows, and says which launches are not needed because their window is given.
    fn skipped_initial(&self, given: &BTreeMap<BufferId, Data>, script: &mut String) -> Vec<usize> {
        let mut skipped = Vec::new();
        for (i, buffer) in self.manifest.buffers.iter().enumerate() {
            let is_given = given.contains_key(&BufferId(i as u32));
            match &buffer.role {
                Role::Initial(Initial::Fill(x)) if !is_given => writeln!(script, "fill {i} {x}").unwrap(),
                Role::Initial(Initial::Launch(n)) if is_given => skipped.push(self.manifest.prologue.len() + n),
                _ => {}
            }
        }
        skipped
    }

    fn launch(&self, number: usize, launch: &KernelLaunch, run: Run, epochs: &mut [u32], script: &mut String) {
        let (frames, batch) = (run.frames as u64, run.batch as u64);
        let blocks = launch.grid.blocks(frames, batch, run.resident);
        for argument in &launch.arguments {
            if let Argument::Epoch(i) = argument {
                writeln!(script, "epoch {i} {}", epochs[*i]).unwrap();
                let used = self.manifest.workspaces[*i].epochs(frames, launch.grid.rounds(batch, run.resident));
                epochs[*i] = epochs[*i].wrapping_add(used as u32);
            }
        }
        writeln!(script, "launch {number} {blocks}").unwrap();
    }

    fn all_launches(&self) -> impl Iterator<Item = &KernelLaunch> {
        let m = &self.manifest;
        m.prologue.iter().chain(&m.initial).chain(&m.launches)
    }

    fn read(&self, run: Run, bytes: &[u8]) -> BTreeMap<BufferId, Data> {
        let mut words = bytes.chunks_exact(4).map(|c| [c[0], c[1], c[2], c[3]]);
        let buffers = self.manifest.buffers.iter().enumerate();
        buffers
            .map(|(i, buffer)| {
                let own = words.by_ref().take(buffer.len(run.frames, run.batch));
                let data = match buffer.elem {
                    Elem::I32 => Data::I32(own.map(i32::from_le_bytes).collect()),
                    _ => Data::F32(own.map(f32::from_le_bytes).collect()),
                };
                (BufferId(i as u32), data)
            })
            .collect()
    }

    /// The copies that a device makes after the launches.
    fn finish(&self, run: Run, all: &mut BTreeMap<BufferId, Data>) {
        for copy in &self.manifest.finals {
            let initial = numbers(&all[&copy.initial]);
            let source = numbers(&all[&copy.source]);
            let window = numbers(&all[&copy.target]).len();
            let whole: Vec<f32> = initial.iter().chain(&source).copied().collect();
            all.insert(copy.target, Data::F32(whole[whole.len() - window..].to_vec()));
        }
        for short in self.manifest.short.iter().filter(|s| run.frames < s.frames) {
            let initial = numbers(&all[&short.initial]);
            let mut target = numbers(&all[&short.target]);
            let frame = target.len() / short.frames;
            let kept = (short.frames - run.frames) * frame;
            target[..kept].copy_from_slice(&initial[run.frames * frame..]);
            all.insert(short.target, Data::F32(target));
        }
    }
}

/// The compiled machine that all programs share.
fn machine() -> &'static Path {
    static MACHINE: OnceLock<PathBuf> = OnceLock::new();
    MACHINE.get_or_init(|| {
        let object = temporary().join(format!("shim-{}.o", std::process::id()));
        compile(&[&folder_of_shim().join("shim.cpp")], &object, &["-c"]);
        object
    })
}

/// Cargo's folder for what tests leave.
fn temporary() -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
}

fn folder_of_shim() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/cuda_shim")
}

fn compile(sources: &[&Path], to: &Path, options: &[&str]) {
    let output = Command::new("g++")
        .args(["-std=c++17", "-O1", "-w", "-fno-strict-aliasing", "-ffp-contract=off"])
        .args([
            "-fsanitize=alignment,bounds,signed-integer-overflow",
            "-fno-sanitize-recover=all",
        ])
        .args(options)
        .arg("-I")
        .arg(folder_of_shim())
        .arg("-o")
        .arg(to)
        .args(sources)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

impl Drop for Shim {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// The numbers of a buffer.
pub fn numbers(data: &Data) -> Vec<f32> {
    match data {
        Data::F32(v) => v.clone(),
        Data::I32(v) => v.iter().map(|x| *x as f32).collect(),
    }
}

fn bytes(data: &Data) -> Vec<u8> {
    match data {
        Data::F32(v) => v.iter().flat_map(|x| x.to_le_bytes()).collect(),
        Data::I32(v) => v.iter().flat_map(|x| x.to_le_bytes()).collect(),
    }
}

/// The text as a program: without the prelude's PTX, with a `main`.
fn program(text: &str, manifest: &Manifest) -> String {
    let mut program = String::from("#include \"shim.h\"\n\n");
    program.push_str(&without_ptx(text));
    program.push_str("\nstatic void launch_number(int number, shim::Run& run)\n{\n    switch (number) {\n");
    let lists = [&manifest.prologue, &manifest.initial, &manifest.launches];
    for (number, launch) in lists.into_iter().flatten().enumerate() {
        program.push_str(&call(number, launch, manifest));
    }
    program.push_str("    default: shim::fail(\"no such launch\");\n    }\n}\n\nint main(int, char** files)\n{\n");
    program.push_str("    return shim::follow(files, launch_number);\n}\n");
    program
}

fn call(number: usize, launch: &KernelLaunch, manifest: &Manifest) -> String {
    let arguments: Vec<String> = launch
        .arguments
        .iter()
        .map(|argument| match argument {
            Argument::Buffer { buffer, .. } => {
                let ty = match manifest.buffer(*buffer).elem {
                    Elem::F32 => "float",
                    Elem::F16 => "f16",
                    Elem::Bf16 => "bf16",
                    Elem::I32 => "int",
                };
                format!("({ty}*)run.buffer({})", buffer.0)
            }
            Argument::Frames => "run.T".to_string(),
            Argument::Batch => "run.B".to_string(),
            Argument::Workspace(i) => format!("(uint4*)run.workspace({i})"),
            Argument::Epoch(i) => format!("run.epoch({i})"),
        })
        .collect();
    format!(
        "    case {number}:\n        shim::launch(run.grid, {}, {}, {}, [&] {{ {}({}); }});\n        break;\n",
        launch.block,
        launch.shared,
        launch.cooperative,
        launch.kernel,
        arguments.join(", ")
    )
}

/// Leaves out entries of the prelude that contain PTX (the shim has them) and asks the shim for dynamic shared memory.
fn without_ptx(text: &str) -> String {
    let kernels = text.find("extern \"C\"").unwrap_or(text.len());
    let (prelude, kernels) = text.split_at(kernels);
    let mut kept = String::new();
    let mut entry = String::new();
    for line in prelude.lines() {
        let opens = line.starts_with("//") || line.starts_with("#define");
        if opens && entry.ends_with("\n\n") {
            keep(&mut kept, &entry);
            entry.clear();
        }
        entry.push_str(line);
        entry.push('\n');
    }
    keep(&mut kept, &entry);
    kept + &kernels.replace(
        "extern __shared__ uint4 memory[];",
        "uint4* const memory = (uint4*)shim::self.memory;",
    )
}

fn keep(kept: &mut String, entry: &str) {
    let replaced = entry.contains("asm")
        || ["struct Word", "struct bf16", "struct f16"]
            .iter()
            .any(|s| entry.contains(s));
    if !replaced {
        kept.push_str(entry);
    }
}
