//! The CUDA text of published cells: how it reads, that NVRTC turns it into cubins without a warning or a spill, and that
//! its C headers compile.

use crate::golden;
use rnnc::codegen::{Emitted, Target, cuda};
use rnnc::driver::{self, Choice};
use rnnc_runtime::manifest::{Argument, Grid, KernelLaunch, Manifest};
use rnnc_runtime::nvrtc::{self, Compiler};
use rnnc_runtime::plan::{Elem, Plan};
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

/// Cells whose text is recorded: every family of kernels, and what is peculiar to some.
const RECORDED: &[&str] = &[
    "delay_graph",
    "deltanet",
    "elman",
    "gilr_lstm",
    "gla",
    "gru",
    "hrnn",
    "indrnn",
    "lru",
    "lstm",
    "lstm_layer_norm",
    "mamba_s6",
    "mingru",
    "mlstm",
    "qrnn2",
    "rwkv4",
    "slstm",
    "sru",
];

/// What text is compiled for.
const TARGETS: &[(&str, Elem)] = &[
    ("sm_75", Elem::F32),
    ("sm_75", Elem::F16),
    ("sm_80", Elem::F32),
    ("sm_90", Elem::F32),
    ("sm_90", Elem::Bf16),
    ("sm_100", Elem::F32),
    ("sm_120", Elem::F32),
];

/// The NVRTC whose register counts are recorded.
const RECORDED_NVRTC: (i32, i32) = (13, 5);

/// The plan of a published cell, at dimensions that some user might have.
fn plan(name: &str, elem: Elem) -> Plan {
    let text = &golden::cells()[name];
    let choice = Choice {
        cell: None,
        stem: Some(name.to_owned()),
    };
    let checked = driver::check(text.as_bytes(), &choice).unwrap();
    let value = |dim: &str| match dim {
        "I" => 40,
        "H" | "D" => 96,
        "N" => 16,
        _ => 24,
    };
    let dims = checked.graph.dims.iter().map(|d| (d.clone(), value(d))).collect();
    driver::plan(text.as_bytes(), &choice, &dims, elem).unwrap().plan
}

fn emit(name: &str, arch: &str, elem: Elem) -> Emitted {
    let target = Target {
        arch: arch.to_owned(),
        ..Target::default()
    };
    cuda::emit(&plan(name, elem), &target)
}

fn launch_line(manifest: &Manifest, list: &str, launch: &KernelLaunch) -> String {
    let argument = |argument: &Argument| match argument {
        Argument::Buffer { buffer, written } => {
            let entry = manifest.buffer(*buffer);
            format!(
                "{}{}: {}",
                if *written { "out " } else { "" },
                entry.pointer,
                entry.layout
            )
        }
        Argument::Frames => "T".to_owned(),
        Argument::Batch => "B".to_owned(),
        Argument::Workspace(n) => format!("workspace {n}"),
        Argument::Epoch(n) => format!("epoch {n}"),
    };
    let grid = match &launch.grid {
        Grid::Cover {
            scope,
            each,
            per_block,
            times,
            ..
        } => format!("ceil({scope:?} x {each} / {per_block}) x {times}"),
        Grid::Groups { batch_tile, blocks } => format!("{blocks} x ceil(B / {batch_tile}), cooperative"),
    };
    let arguments: Vec<String> = launch.arguments.iter().map(argument).collect();
    format!(
        "{list} {} ({}): {grid} blocks of {} threads, {} bytes of shared memory, after {:?}\n    {}\n",
        launch.kernel,
        launch.family.name(),
        launch.block,
        launch.shared,
        launch.after,
        arguments.join("\n    ")
    )
}

fn launches(manifest: &Manifest) -> String {
    let lists = [
        ("prologue", &manifest.prologue),
        ("initial", &manifest.initial),
        ("run", &manifest.launches),
    ];
    let lines = lists
        .iter()
        .flat_map(|(name, list)| list.iter().map(|l| launch_line(manifest, name, l)));
    lines.collect()
}

#[test]
fn the_text_of_published_cells_is_as_recorded() {
    for name in RECORDED {
        let emitted = emit(name, "sm_80", Elem::F32);
        let source = &golden::cells()[*name];
        let all = format!("{source}\n{}\n{}", launches(&emitted.manifest), emitted.text);
        insta::assert_snapshot!(format!("text_{name}"), all);
    }
}

/// The same plan gives the same bytes: nothing depends on hashing or time.
#[test]
fn emission_is_reproducible() {
    for name in RECORDED {
        let [a, b] = [(); 2].map(|()| emit(name, "sm_90", Elem::F32));
        assert_eq!((a.text, a.header, a.manifest), (b.text, b.header, b.manifest), "{name}");
    }
}

#[test]
fn manifests_survive_json() {
    for name in RECORDED {
        let manifest = emit(name, "sm_90", Elem::F32).manifest;
        let text = manifest.to_json().unwrap();
        assert_eq!(Manifest::from_json(&text).unwrap(), manifest, "{name}");
        let other = text.replacen("\"format\": 1", "\"format\": 2", 1);
        assert!(Manifest::from_json(&other).is_err(), "{name}");
    }
}

/// What the kernels of a cell use on each target, a line each; what NVRTC complains of goes to `faults`.
fn usage(compiler: &Compiler, name: &str, faults: &mut Vec<String>) -> String {
    let mut table = String::new();
    for (arch, elem) in TARGETS {
        let emitted = emit(name, arch, *elem);
        let compiled = match compiler.compile(&emitted.text, &format!("{name}.cu"), arch, &[]) {
            Ok(compiled) => compiled,
            Err(e) => {
                faults.push(format!("{name} {arch} {elem:?}: {e}"));
                continue;
            }
        };
        if !compiled.messages.is_empty() {
            faults.push(format!("{name} {arch} {elem:?}: {}", compiled.messages));
        }
        if let Err(e) = softgpu::ptx::parse(&compiled.ptx) {
            faults.push(format!("{name} {arch} {elem:?}: softgpu does not read its PTX: {e}"));
        }
        for kernel in &compiled.functions {
            if kernel.spills() {
                faults.push(format!("{name} {arch} {elem:?}: {kernel:?}"));
            }
            writeln!(
                table,
                "{arch:6} {:4} {:32} {:3} registers {:6} bytes of static shared memory",
                format!("{elem:?}").to_lowercase(),
                kernel.name,
                kernel.registers,
                kernel.shared
            )
            .unwrap();
        }
    }
    table
}

#[test]
fn every_target_takes_the_text_without_warnings_or_spills() {
    if nvrtc::find().is_empty() {
        eprintln!("SKIPPED: no NVRTC; run `cargo xtask setup`");
        return;
    }
    let halves: Vec<Vec<&str>> = (0..2)
        .map(|i| RECORDED.iter().skip(i).step_by(2).copied().collect())
        .collect();
    let work = |names: &[&'static str]| {
        let compiler = Compiler::open().unwrap();
        let recorded = (compiler.version().major, compiler.version().minor) == RECORDED_NVRTC;
        let mut faults = Vec::new();
        let tables = names.iter().map(|name| (*name, usage(&compiler, name, &mut faults)));
        let tables: Vec<_> = tables.collect();
        (recorded, tables, faults)
    };
    let done: Vec<_> = std::thread::scope(|scope| {
        let workers: Vec<_> = halves.iter().map(|names| scope.spawn(|| work(names))).collect();
        workers.into_iter().map(|w| w.join().unwrap()).collect()
    });
    for (recorded, tables, faults) in done {
        assert!(faults.is_empty(), "{}", faults.join("\n"));
        for (name, table) in tables.into_iter().filter(|_| recorded) {
            insta::assert_snapshot!(format!("usage_{name}"), table);
        }
    }
}

/// One C99 file includes the headers of all cells: each compiles without a warning, and no two collide.
#[test]
fn headers_are_c99() {
    let folder = tempfile::tempdir().unwrap();
    let mut includes = String::new();
    for (name, _) in golden::cells() {
        let emitted = emit(&name, "sm_80", Elem::F32);
        std::fs::write(folder.path().join(format!("{name}.h")), emitted.header).unwrap();
        writeln!(includes, "#include \"{name}.h\"").unwrap();
    }
    let source = folder.path().join("all.c");
    std::fs::write(&source, includes + "int main(void)\n{\n    return 0;\n}\n").unwrap();
    let stub = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/cuda_stub");
    let compiled = Command::new("gcc")
        .args([
            "-std=c99",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-pedantic",
            "-fsyntax-only",
            "-I",
        ])
        .arg(stub)
        .arg(&source)
        .output();
    match compiled {
        Ok(result) => assert!(result.status.success(), "{}", String::from_utf8_lossy(&result.stderr)),
        Err(_) => eprintln!("SKIPPED: no gcc"),
    }
}
