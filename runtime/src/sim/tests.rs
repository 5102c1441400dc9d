//! The simulated device as the engine sees it: memory, launches, what it refuses, and how a fault of a kernel arrives.

use super::{Model, Options, Sim};
use crate::engine::RunError;
use crate::exec::{Arg, Gpu, LaunchShape, Word};
use crate::nvrtc::{Compiled, Compiler};

const TEXT: &str = r#"
extern "C" __global__ void __launch_bounds__(64) add(float* y, const float* x, int n, unsigned a) {
  int i = blockIdx.x * 64 + threadIdx.x;
  if (i < n) y[i] = x[i] + a;
}
extern "C" __global__ void past(float* y) { y[threadIdx.x] = 1; }
extern "C" __global__ void races(float* y) {
  __shared__ float s[64];
  s[threadIdx.x] = 0;
  __syncthreads();
  s[threadIdx.x] = threadIdx.x;
  y[threadIdx.x] = s[63 - threadIdx.x];
}
"#;

fn sim(model: &str) -> Sim {
    Sim::new(Model::named(model).unwrap(), Options::default()).unwrap()
}

/// The text for a model; none where there is no NVRTC.
fn compiled(arch: &str) -> Option<Compiled> {
    match Compiler::open() {
        Ok(compiler) => Some(compiler.compile(TEXT, "sim.cu", arch, &["-lineinfo"]).unwrap()),
        Err(_) => {
            eprintln!("SKIPPED: no NVRTC; run `cargo xtask setup`");
            None
        }
    }
}

fn shape(grid: u32) -> LaunchShape {
    LaunchShape {
        grid,
        block: 64,
        shared: 0,
        cooperative: false,
    }
}

#[test]
fn every_model_is_known_to_softgpu() {
    for model in super::MODELS {
        let sim = Sim::new(*model, Options::default()).unwrap();
        assert!(
            sim.limits().processors > 50 && sim.limits().shared > 90_000,
            "{model:?}"
        );
        assert_eq!(sim.name(), format!("sim:{}", model.name));
    }
    assert_eq!(sim("a100").limits().arch, "sm_80");
    assert_eq!(Model::named("h1000"), None);
}

#[test]
fn memory_is_copied_filled_and_freed() {
    let mut sim = sim("h100");
    let mut a = sim.alloc(12, "a").unwrap();
    let mut b = sim.alloc(8, "b").unwrap();
    sim.upload(&mut a, &[1, 2, 3, 4, 5, 6, 7, 8]).unwrap();
    sim.copy((&a, 2), (&mut b, 4), 4).unwrap();
    let unwritten = sim.download(&b, &mut [0; 8]).unwrap_err();
    assert!(unwritten.to_string().contains("nobody wrote"), "{unwritten}");
    sim.fill(&mut b, Word::Bits16(0x0201), 2).unwrap();
    let mut out = [0; 8];
    sim.download(&b, &mut out).unwrap();
    assert_eq!(out, [1, 2, 1, 2, 3, 4, 5, 6]);
    assert!(matches!(
        sim.alloc(81 << 30, "too much"),
        Err(RunError::Unsupported { .. })
    ));
    assert!(sim.upload(&mut b, &[0; 9]).is_err());
    drop(a);
    sim.synchronize().unwrap();
}

#[test]
fn kernels_run_and_are_counted() {
    let Some(module) = compiled("sm_90") else { return };
    let mut sim = sim("h100");
    let loaded = sim.load(&module).unwrap();
    let add = sim.function(&loaded, "add", 0).unwrap();
    assert!(sim.function(&loaded, "none", 0).is_err());
    assert!(matches!(
        sim.function(&loaded, "add", 1 << 20),
        Err(RunError::Unsupported { .. })
    ));
    assert!(sim.resident(&add, 64, 0).unwrap() >= 132);
    let (mut x, y) = (sim.alloc(400, "x").unwrap(), sim.alloc(400, "y").unwrap());
    let values: Vec<u8> = (0..100).flat_map(|i| (i as f32).to_le_bytes()).collect();
    sim.upload(&mut x, &values).unwrap();
    let arguments = [Arg::Memory(&y), Arg::Memory(&x), Arg::Int(100), Arg::Unsigned(3)];
    sim.launch(&add, shape(2), &arguments).unwrap();
    let mut out = vec![0; 400];
    sim.download(&y, &mut out).unwrap();
    let expected: Vec<u8> = (0..100).flat_map(|i| (i as f32 + 3.0).to_le_bytes()).collect();
    assert_eq!(out, expected);
    assert_eq!(sim.counts()["add"].launches, 1);
    assert!(sim.counts()["add"].thread_instructions > 100);
}

#[test]
fn faults_are_errors_that_say_where() {
    let Some(module) = compiled("sm_80") else { return };
    let mut sim = sim("a100");
    let loaded = sim.load(&module).unwrap();
    let y = sim.alloc(240, "y").unwrap();
    for (kernel, expected) in [("past", "error[out-of-bounds]"), ("races", "error[shared-race]")] {
        let function = sim.function(&loaded, kernel, 0).unwrap();
        let error = sim
            .launch(&function, shape(1), &[Arg::Memory(&y)])
            .unwrap_err()
            .to_string();
        let place = format!("kernel {kernel}");
        assert!(error.contains(expected) && error.contains(&place), "{error}");
        assert!(error.contains("sim.cu:"), "{error}");
        assert_eq!(sim.fault().unwrap().kernel, kernel);
    }
}

#[test]
fn a_module_for_another_gpu_is_refused() {
    let Some(module) = compiled("sm_90") else { return };
    let error = sim("a100").load(&module).unwrap_err().to_string();
    assert!(error.contains("sm_90"), "{error}");
}
