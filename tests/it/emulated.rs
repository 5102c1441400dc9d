//! Emitted CUDA text run on the host: against PyTorch's recorded numbers, and against the CPU engine at other sizes.

use crate::cpu::{error, plan, run_on};
use crate::golden::{Case, cases};
use crate::host::{self, Host};
use rnnc::codegen::{Target, cuda};
use rnnc_runtime::exec::GpuEngine;
use rnnc_runtime::nvrtc::Compiled;
use rnnc_runtime::plan::{Family, Plan};

/// What the design allows f32 against f64.
const TOLERANCE: f64 = 1e-5;

/// Blocks that the emulated device holds at once.
const RESIDENT: u64 = 8;

/// The engine of a plan's CUDA text; `None` where there is no C++ compiler.
fn engine(plan: &Plan, folder: &std::path::Path) -> Option<GpuEngine<Host>> {
    let emitted = cuda::emit(plan, &Target::default());
    let program = host::build(&emitted.text, &emitted.manifest, folder)?;
    let device = Host::start(&program, RESIDENT);
    let module = Compiled::new(String::new(), Vec::new(), "");
    Some(GpuEngine::new(device, plan.clone(), emitted.manifest, &module).unwrap())
}

fn golden_error(case: &Case) -> Option<String> {
    let plan = plan(case);
    if plan.launches.iter().any(|l| l.family == Family::Loop) {
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut engine = engine(&plan, folder.path())?;
    let (key, error) = match run_on(&mut engine, &plan, case) {
        Ok(results) => error(&results, case),
        Err(e) => return Some(format!("{}: {e}", case.name)),
    };
    (error > TOLERANCE).then(|| format!("{}: {key} is off by {error:.2e}", case.name))
}

#[test]
fn golden_cells_run_from_their_cuda_text() {
    let cases = cases();
    let halves: Vec<&[Case]> = cases.chunks(cases.len().div_ceil(2).max(1)).collect();
    let wrong: Vec<String> = std::thread::scope(|scope| {
        let workers: Vec<_> = halves
            .iter()
            .map(|half| scope.spawn(|| half.iter().filter_map(golden_error).collect::<Vec<_>>()))
            .collect();
        workers.into_iter().flat_map(|w| w.join().unwrap()).collect()
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
