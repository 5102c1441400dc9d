//! The device against a driver that stands in for NVIDIA's: which functions are called, with what, from any thread.
//!
//! The driver is a C file, compiled here and found by the loader in a process of its own: drivers cannot be exchanged in one.

use super::{Cuda, CudaError, probe};
use crate::engine::{Engine, RunError};
use crate::exec::GpuEngine;
use crate::exec::samples::{data, looped, one_product, reals, taps_manifest};
use crate::manifest::Manifest;
use crate::nvrtc::Compiled;
use crate::plan::Plan;
use crate::plan::samples::taps;
use std::path::Path;
use std::process::Command;

/// Set in the process that runs on the stand-in.
const CHILD: &str = "RNNC_TEST_STAND_IN";

#[test]
fn the_device_drives_the_driver() {
    if std::env::var_os(CHILD).is_some() {
        return on_the_stand_in();
    }
    let folder = tempfile::tempdir().unwrap();
    compile(folder.path(), "libcuda.so.1", include_str!("stand_in.c"));
    compile(folder.path(), "libcublasLt.so", include_str!("stand_in_blaslt.c"));
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "cuda::tests::the_device_drives_the_driver", "--nocapture"]);
    child
        .env(CHILD, "1")
        .env("LD_LIBRARY_PATH", folder.path())
        .env_remove("RNNC_CUBLASLT");
    let output = child.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{text}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let calls: Vec<&str> = text
        .lines()
        .filter(|l| l.contains("launch ") || l.contains("attribute "))
        .collect();
    assert_eq!(calls, CALLS);
}

fn compile(folder: &Path, name: &str, text: &str) {
    let source = folder.join(name).with_extension("c");
    std::fs::write(&source, text).unwrap();
    let mut compile = Command::new("cc");
    compile
        .args(["-shared", "-fPIC", "-O1", "-o"])
        .arg(folder.join(name))
        .arg(&source)
        .arg("-lm");
    assert!(compile.status().unwrap().success());
}

/// What the stand-in is to see.
const CALLS: [&str; 10] = [
    "launch exp_scale 1 x 64, 128 bytes",
    "launch window_of_x 1 x 64, 128 bytes",
    "launch sum_taps 1 x 64, 128 bytes",
    "launch window_of_x 1 x 64, 128 bytes",
    "launch sum_taps 1 x 64, 128 bytes",
    // 8 is the opt-in for dynamic shared memory above 48 KB.
    "attribute 8 of loop is 100000",
    "cooperative launch loop 3 x 64, 100000 bytes, T 3, B 1, epoch 0",
    "cooperative launch loop 6 x 64, 100000 bytes, T 2, B 3, epoch 0",
    "cooperative launch loop 3 x 64, 100000 bytes, T 3, B 1, epoch 4",
    "cublaslt launch 2 x 2 x 3 with bias",
];

fn module() -> Compiled {
    Compiled::new(String::new(), b"\x7fELF".to_vec(), "")
}

fn open(plan: &Plan, manifest: &Manifest, module: &Compiled) -> Result<GpuEngine<Cuda>, RunError> {
    GpuEngine::new(Cuda::open(0).unwrap(), plan.clone(), manifest.clone(), module)
}

fn on_the_stand_in() {
    let found = probe().unwrap();
    let limits = found.devices[0].as_ref().unwrap();
    assert_eq!(
        (limits.arch.as_str(), limits.processors, limits.shared),
        ("sm_90", 132, 232_448)
    );
    assert_eq!(
        (found.driver.to_string(), limits.driver),
        ("12.9".to_owned(), Some(found.driver))
    );
    assert!(matches!(
        Cuda::open(1),
        Err(CudaError::NoDevice { ordinal: 1, count: 1 })
    ));
    computes();
    loops();
    multiplies();
    refuses();
}

/// By the library: the weight starts at an odd element, the result in the middle of a row.
fn multiplies() {
    let (plan, manifest) = one_product();
    let mut engine = open(&plan, &manifest, &module()).unwrap();
    let weight: Vec<f32> = (0..8).map(|i| i as f32).collect();
    engine.set_params(&data(&[(1, &weight), (2, &[0.5, -0.5])])).unwrap();
    let out = engine
        .run(2, 1, &data(&[(0, &[1.0, 10.0, 100.0, 2.0, 20.0, 200.0])]))
        .unwrap();
    let y = reals(&out, 3);
    assert_eq!([y[1], y[2], y[4], y[5]], [321.5, 764.5, 642.5, 1529.5]);
}

fn computes() {
    let plan = taps(1);
    let mut engine = open(&plan, &taps_manifest(&plan), &module()).unwrap();
    assert_eq!(engine.name(), "cuda:0");
    engine.set_params(&data(&[(2, &[0.0])])).unwrap();
    let x = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
    let out = engine.run(3, 2, &data(&[(0, &x), (1, &[10.0, 20.0])])).unwrap();
    assert_eq!(reals(&out, 6), [10.0, 20.0, 5.0, 10.0, 1.0, 2.0]);
    assert_eq!(reals(&out, 5), [3.0, 4.0, 5.0, 6.0]);
    let out = engine
        .run(1, 2, &data(&[(0, &[1.0, 2.0]), (1, &[10.0, 20.0])]))
        .unwrap();
    assert_eq!(reals(&out, 5), [5.0, 10.0, 1.0, 2.0]);
    let large = vec![0.0; 1 << 24];
    let refused = engine.run(1 << 24, 1, &data(&[(0, &large), (1, &[1.0])])).err();
    let error = refused.map(|e| e.to_string()).unwrap_or_default();
    assert!(error.contains("no room for 67108864 bytes"), "{error}");
}

fn loops() {
    let (plan, mut manifest) = looped();
    manifest.launches[0].shared = 100_000;
    let mut engine = open(&plan, &manifest, &module()).unwrap();
    engine.run(3, 1, &data(&[(0, &[1.0; 3])])).unwrap();
    engine.run(2, 3, &data(&[(0, &[1.0; 6])])).unwrap();
    // Another thread has to bind the context for itself.
    let run = move || engine.run(3, 1, &data(&[(0, &[1.0; 3])])).map(drop);
    std::thread::spawn(run).join().unwrap().unwrap();
}

fn refuses() {
    let refused = |plan: &Plan, manifest: &Manifest, module: &Compiled| {
        open(plan, manifest, module)
            .err()
            .map(|e| e.to_string())
            .unwrap_or_default()
    };
    let (plan, mut manifest) = looped();
    let empty = refused(&plan, &manifest, &Compiled::new(String::new(), vec![], ""));
    assert_eq!(empty, "cuda:0: the module has no cubin for sm_90");
    let damaged = refused(&plan, &manifest, &Compiled::new(String::new(), vec![0; 64], ""));
    assert!(
        damaged.starts_with("cuda:0: cannot load the module: the stand-in says no (CUDA_ERROR"),
        "{damaged}"
    );
    manifest.launches[0].shared = 300_000;
    let shared = refused(&plan, &manifest, &module());
    assert!(
        shared.contains("loop needs 300000 bytes of shared memory a block, and there are 232448"),
        "{shared}"
    );
    manifest.launches[0].kernel = "gone".to_owned();
    let gone = refused(&plan, &manifest, &module());
    assert!(gone.starts_with("cuda:0: cannot find a kernel of the module"), "{gone}");
}
