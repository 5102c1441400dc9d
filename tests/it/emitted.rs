//! Emitted CUDA text of the example cells, run on the CPU (see `support/cuda_shim`) and compared with PyTorch's recorded
//! numbers.

use crate::cpu::{TOLERANCE, bind, error, named, plan};
use crate::cuda_shim::{self, Run, Shim};
use crate::golden::{Case, cases};
use rnnc::codegen::cuda::dense_loop::places::Shape;
use rnnc::codegen::{Target, Tuning, cuda};
use rnnc_runtime::plan::Role;

/// Loops of several small blocks, so that they exchange values even at the cells' small dimensions.
fn target() -> Target {
    Target {
        tuning: Tuning {
            loop_shape: Some(Shape::SPLIT),
            ..Tuning::default()
        },
        ..Target::default()
    }
}

/// What is wrong with a cell's emitted text.
fn fault(case: &Case) -> Option<String> {
    let plan = plan(case);
    let emitted = cuda::emit(&plan, &target());
    let shim = Shim::compile(&emitted.text, &emitted.manifest);
    let is_given = |r: &Role| matches!(r, Role::Input | Role::Param | Role::Initial(_));
    let given = bind(&plan, &case.given, is_given);
    let results = shim.run(Run::new(case.frames, case.batch, 5), &given);
    let (key, error) = error(&named(&plan, case, results), case);
    (error > TOLERANCE).then(|| format!("{}: {key} is off by {error:.2e}", case.name))
}

#[test]
fn golden_cells_run_as_emitted() {
    if !cuda_shim::available() {
        return;
    }
    let all = cases();
    // Compilers run side by side.
    let half = all.len() / 2;
    let some = |part: &[Case]| part.iter().filter_map(fault).collect::<Vec<_>>();
    let wrong: Vec<String> = std::thread::scope(|scope| {
        let first = scope.spawn(|| some(&all[..half]));
        let mut wrong = some(&all[half..]);
        wrong.extend(first.join().unwrap());
        wrong
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
