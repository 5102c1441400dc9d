//! A device of the host: emitted CUDA text, compiled by the machine's C++ compiler with `host/device.hpp`, in a process of
//! its own. It shows that kernels compute what they should where there is no GPU; it shows nothing about memory ordering.

use rnnc_runtime::engine::RunError;
use rnnc_runtime::exec::{Arg, Gpu, LaunchShape, Limits, Word};
use rnnc_runtime::manifest::{Argument, KernelLaunch, Manifest};
use rnnc_runtime::nvrtc::Compiled;
use rnnc_runtime::plan::Elem;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex};

/// Compiles a text; the program is a device that can run its kernels. `None` where there is no C++ compiler.
pub fn build(text: &str, manifest: &Manifest, folder: &Path) -> Option<PathBuf> {
    let support = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/host");
    let (source, program) = (folder.join("cell.cpp"), folder.join("cell"));
    let code = format!(
        "#include \"device.hpp\"\n#include \"server.hpp\"\n{}\n{}",
        on_host(text),
        table(manifest)
    );
    std::fs::write(&source, code).unwrap();
    let compiled = Command::new("g++")
        .args([
            "-std=c++17",
            "-O1",
            "-fsanitize=address",
            "-fpermissive",
            "-w",
            "-pthread",
            "-I",
        ])
        .arg(support)
        .arg("-o")
        .args([&program, &source])
        .output();
    let Ok(compiled) = compiled else {
        eprintln!("SKIPPED: no g++");
        return None;
    };
    assert!(
        compiled.status.success(),
        "{}",
        String::from_utf8_lossy(&compiled.stderr)
    );
    Some(program)
}

/// The text without what only a GPU's assembler understands: `device.hpp` has those.
fn on_host(text: &str) -> String {
    let (prelude, kernels) = text.split_at(text.find("extern \"C\"").unwrap_or(0));
    let entries = prelude.split("\n\n//").filter(|entry| !entry.contains("asm"));
    let kept: Vec<&str> = entries.collect();
    format!("{}{}{kernels}", kept.join("\n\n//"), "\n")
}

/// Registers every kernel with the types of its parameters.
fn table(manifest: &Manifest) -> String {
    let all = manifest
        .prologue
        .iter()
        .chain(&manifest.initial)
        .chain(&manifest.launches);
    let entries: String = all.map(|kernel| registration(manifest, kernel)).collect();
    format!("int main()\n{{\n{entries}    host::serve();\n}}\n")
}

fn registration(manifest: &Manifest, kernel: &KernelLaunch) -> String {
    let argument = |(i, argument): (usize, &Argument)| match argument {
        Argument::Buffer { buffer, .. } => {
            let ty = match manifest.buffer(*buffer).elem {
                Elem::F32 => "float",
                Elem::F16 => "f16",
                Elem::Bf16 => "bf16",
                Elem::I32 => "int",
            };
            format!("a.address<{ty}>({i})")
        }
        Argument::Frames | Argument::Batch => format!("a.integer({i})"),
        Argument::Workspace(_) => format!("a.address<Word>({i})"),
        Argument::Epoch(_) => format!("a.natural({i})"),
    };
    let arguments: Vec<String> = kernel.arguments.iter().enumerate().map(argument).collect();
    let name = &kernel.kernel;
    format!(
        "    host::kernels()[\"{name}\"] = [](const host::Arguments& a) {{ {name}({}); }};\n",
        arguments.join(", ")
    )
}

/// The device: a process that serves requests.
pub struct Host {
    pipe: Arc<Mutex<Pipe>>,
    limits: Limits,
    /// Most blocks that it says it can hold at once.
    resident: u64,
}

struct Pipe {
    child: Child,
    requests: ChildStdin,
    answers: ChildStdout,
}

/// Memory of the process.
pub struct Memory {
    pipe: Arc<Mutex<Pipe>>,
    address: u64,
}

impl Host {
    /// Starts a program made by [`build`].
    pub fn start(program: &Path, resident: u64) -> Host {
        let mut child = Command::new(program)
            .env("ASAN_OPTIONS", "detect_leaks=0:detect_stack_use_after_return=0")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (requests, answers) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Host {
            pipe: Arc::new(Mutex::new(Pipe {
                child,
                requests,
                answers,
            })),
            limits: Limits {
                product: "host".to_string(),
                arch: "sm_80".to_string(),
                processors: 8,
                shared: 99 << 10,
                memory: 1 << 30,
                driver: None,
            },
            resident,
        }
    }

    fn ask(&self, letter: u8, numbers: &[u64], data: &[u8]) -> Result<(), RunError> {
        self.pipe.lock().unwrap().ask(letter, numbers, data)
    }
}

impl Pipe {
    fn ask(&mut self, letter: u8, numbers: &[u64], data: &[u8]) -> Result<(), RunError> {
        let mut request = vec![letter];
        request.extend(numbers.iter().flat_map(|n| n.to_le_bytes()));
        request.extend(data);
        self.requests.write_all(&request).map_err(|e| self.died(&e))
    }

    fn answer(&mut self, bytes: &mut [u8]) -> Result<(), RunError> {
        let asked = self.requests.flush();
        let read = asked.and_then(|()| self.answers.read_exact(bytes));
        read.map_err(|e| self.died(&e))
    }

    fn died(&mut self, e: &std::io::Error) -> RunError {
        let status = self.child.wait();
        let mut words = String::new();
        if let Some(mut stderr) = self.child.stderr.take() {
            let _ = stderr.read_to_string(&mut words);
        }
        RunError::Device(format!("the device ended: {e}, {status:?}\n{words}"))
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        // The process ends when its requests do; one that hangs must not outlive the test.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if let Ok(mut pipe) = self.pipe.lock() {
            let _ = pipe.ask(b'F', &[self.address], &[]);
        }
    }
}

impl Gpu for Host {
    type Memory = Memory;
    type Module = ();
    type Function = String;

    fn name(&self) -> String {
        "host".to_string()
    }

    fn limits(&self) -> &Limits {
        &self.limits
    }

    fn alloc(&mut self, bytes: usize, _name: &str) -> Result<Memory, RunError> {
        let mut pipe = self.pipe.lock().unwrap();
        pipe.ask(b'A', &[bytes as u64], &[])?;
        let mut address = [0; 8];
        pipe.answer(&mut address)?;
        Ok(Memory {
            pipe: self.pipe.clone(),
            address: u64::from_le_bytes(address),
        })
    }

    fn upload(&mut self, to: &mut Memory, bytes: &[u8]) -> Result<(), RunError> {
        self.ask(b'U', &[to.address, bytes.len() as u64], bytes)
    }

    fn download(&mut self, from: &Memory, bytes: &mut [u8]) -> Result<(), RunError> {
        let mut pipe = self.pipe.lock().unwrap();
        pipe.ask(b'D', &[from.address, bytes.len() as u64], &[])?;
        pipe.answer(bytes)
    }

    fn copy(&mut self, from: (&Memory, usize), to: (&mut Memory, usize), bytes: usize) -> Result<(), RunError> {
        let (from, to) = (from.0.address + from.1 as u64, to.0.address + to.1 as u64);
        self.ask(b'C', &[from, to, bytes as u64], &[])
    }

    fn fill(&mut self, to: &mut Memory, word: Word, count: usize) -> Result<(), RunError> {
        let pattern = match word {
            Word::Bits16(bits) => bits.into(),
            Word::Bits32(bits) => bits.into(),
        };
        self.ask(b'S', &[to.address, pattern, word.bytes() as u64, count as u64], &[])
    }

    fn load(&mut self, _: &Compiled) -> Result<(), RunError> {
        Ok(())
    }

    fn function(&mut self, (): &(), name: &str, _: u32) -> Result<String, RunError> {
        Ok(name.to_string())
    }

    fn resident(&mut self, _: &String, _: u32, _: u32) -> Result<u64, RunError> {
        Ok(self.resident)
    }

    fn launch(&mut self, name: &String, shape: LaunchShape, arguments: &[Arg<'_, Memory>]) -> Result<(), RunError> {
        let words = arguments.iter().map(|argument| match argument {
            Arg::Memory(memory) => memory.address,
            Arg::Int(value) => *value as u64,
            Arg::Unsigned(value) => u64::from(*value),
        });
        let sizes = [shape.grid, shape.block, shape.shared].map(u64::from);
        let mut numbers: Vec<u64> = sizes.into();
        numbers.extend([u64::from(shape.cooperative), arguments.len() as u64]);
        numbers.extend(words);
        let mut data = name.clone().into_bytes();
        data.extend(numbers.iter().flat_map(|n| n.to_le_bytes()));
        self.ask(b'L', &[name.len() as u64], &data)
    }

    fn synchronize(&mut self) -> Result<(), RunError> {
        Ok(())
    }
}
