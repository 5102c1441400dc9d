//! Every published cell at odd sizes beyond a warp: its emitted CUDA text, run on the CPU (see `support/cuda_shim`), and the
//! CPU engine, both against the reference in f64.
//!
//! The numbers are scaled as those of a trained cell are. With weights of 1 and windows of either sign a cell such as rwkv4
//! divides by what cancels to almost nothing: the reference itself then moves by 1e-4 where its inputs are rounded
//! otherwise, and no engine in f32 can be held to 1e-5.

use crate::cuda_shim::{self, Run, Shim};
use crate::golden;
use crate::runs::{self, Sizes, nudged};
use crate::support::{Tensors, farthest};
use rnnc::codegen::{Target, cuda};
use rnnc::driver::{self, Choice};
use rnnc::ir::Graph;
use rnnc_runtime::plan::{Elem, Plan};
use std::collections::BTreeMap;

/// What the design allows f32 against f64.
const TOLERANCE: f64 = 1e-5;

/// How far the reference may move for such numbers, were its arguments rounded otherwise.
const CONDITION: f64 = 1e-6;

/// A cell, its plan at these sizes, and what it should compute.
struct Job {
    name: String,
    graph: Graph,
    plan: Plan,
    sizes: Sizes,
    given: Tensors,
    expected: Tensors,
}

/// A cell with dimensions 35, 37, 39...: lanes take several elements, tiles several rows, none of them full.
fn job(name: &str, text: &str) -> Job {
    let graph = golden::lower(name, text);
    let dims: BTreeMap<_, i64> = graph.dims.iter().cloned().zip((35..).step_by(2)).collect();
    let choice = Choice {
        cell: None,
        stem: Some(name.to_owned()),
    };
    let planned = driver::plan(text.as_bytes(), &choice, &dims, Elem::F32);
    let plan = planned.unwrap_or_else(|d| panic!("{name}: {d:?}")).plan;
    let sizes = Sizes {
        dims,
        frames: 3,
        batch: 2,
    };
    let given = sizes.arguments(&graph, 1, true);
    let expected = sizes.reference(&graph, &given).unwrap();
    Job {
        name: name.to_owned(),
        graph,
        plan,
        sizes,
        given,
        expected,
    }
}

impl Job {
    fn on_shim(&self) -> Tensors {
        let emitted = cuda::emit(&self.plan, &Target::default());
        let shim = Shim::compile(&emitted.text, &emitted.manifest);
        let run = Run::new(self.sizes.frames, self.sizes.batch, 7);
        runs::on_shim(&shim, &self.plan, run, &self.given)
    }

    /// What is wrong with a result.
    fn fault(&self, what: &str, got: &Tensors, tolerance: f64) -> Option<String> {
        let (key, off) = farthest(got, &self.expected);
        (off > tolerance).then(|| format!("{}: {what}: {key} is off by {off:.2e}", self.name))
    }

    /// Whether the numbers are such that f32 can be held to anything, and both engines.
    fn faults(&self) -> Vec<String> {
        let nudged = nudged(&self.graph, &self.sizes, &self.given, 1);
        let moved = self.sizes.reference(&self.graph, &nudged).unwrap();
        let cpu = runs::on_cpu(&self.plan, self.sizes.frames, self.sizes.batch, &self.given).unwrap();
        let found = [
            self.fault("the reference, rounded otherwise", &moved, CONDITION),
            self.fault("the CPU engine", &cpu, TOLERANCE),
            self.fault("the emitted text", &self.on_shim(), TOLERANCE),
        ];
        found.into_iter().flatten().collect()
    }
}

#[test]
fn all_cells_compute_what_the_reference_does_beyond_a_warp() {
    if !cuda_shim::available() {
        return;
    }
    let texts: Vec<(String, String)> = golden::cells().into_iter().collect();
    let some = |first: usize| -> Vec<String> {
        let own = texts.iter().skip(first).step_by(2);
        own.flat_map(|(name, text)| job(name, text).faults()).collect()
    };
    let wrong: Vec<String> = std::thread::scope(|scope| {
        let even = scope.spawn(|| some(0));
        let mut wrong = some(1);
        wrong.extend(even.join().unwrap());
        wrong
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
