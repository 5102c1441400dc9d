//! Plans and graphs run with tensors under the keys of golden files: made-up arguments in, results of any engine out, and
//! how far results may be apart.

use crate::cuda_shim::{Run, Shim};
use crate::support::Tensors;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rnnc::ir::{Graph, Name};
use rnnc::reference::{self, ReferenceError, Tensor, arguments};
use rnnc_runtime::cpu::CpuEngine;
use rnnc_runtime::engine::{Data, Engine, RunError};
use rnnc_runtime::given::key;
use rnnc_runtime::plan::interpret::interpret;
use rnnc_runtime::plan::{self, Buffer, BufferId, Elem, Plan, Role, Scope};
use std::collections::BTreeMap;

/// Sizes of a run.
#[derive(Clone, Debug)]
pub struct Sizes {
    /// Values of the dimensions.
    pub dims: BTreeMap<Name, i64>,
    /// T.
    pub frames: usize,
    /// B.
    pub batch: usize,
}

impl Sizes {
    /// What the reference makes of a graph.
    pub fn reference(&self, graph: &Graph, given: &Tensors) -> Result<Tensors, ReferenceError> {
        reference::evaluate(graph, &self.dims, self.frames, self.batch, given)
    }

    /// A tensor for every argument of the graph, as [`reference::sample`] makes them; windows only if wanted.
    pub fn arguments(&self, graph: &Graph, seed: u64, windows: bool) -> Tensors {
        let mut wanted = arguments(graph, &self.dims, self.frames, self.batch).unwrap();
        wanted.retain(|a| windows || !a.is_window);
        reference::sample(&wanted, seed)
    }
}

/// The tensors as data of the plan's buffers. What the plan does not take is left out.
pub fn data(plan: &Plan, given: &Tensors) -> BTreeMap<BufferId, Data> {
    let data = |(id, values): (BufferId, Vec<f64>)| {
        let data = match plan.buffer(id).elem {
            Elem::I32 => Data::I32(values.iter().map(|v| *v as i32).collect()),
            _ => Data::F32(values.iter().map(|v| *v as f32).collect()),
        };
        (id, data)
    };
    values(plan, given).into_iter().map(data).collect()
}

/// The tensors as values of the plan's buffers, their frames in the order in which the plan runs.
fn values(plan: &Plan, given: &Tensors) -> BTreeMap<BufferId, Vec<f64>> {
    let values = |(id, buffer): (BufferId, &Buffer)| {
        let tensor = given.get(&key(buffer))?;
        let mut values = tensor.data.clone();
        turn(plan, buffer, &tensor.shape, &mut values);
        Some((id, values))
    };
    plan.ids().filter_map(values).collect()
}

/// Reverses the frames of a buffer (of a tensor of this shape) if its plan runs against time, as the API does.
fn turn(plan: &Plan, buffer: &Buffer, shape: &[usize], values: &mut [f64]) {
    if plan.against_time {
        let own = buffer.shape.len();
        let batch = shape.len().checked_sub(own + 1).map(|axis| shape[axis]);
        plan::reverse_frames(buffer.scope, batch.unwrap_or(1) * buffer.elements(), values);
    }
}

/// Outputs and final windows as tensors.
pub fn named(plan: &Plan, frames: usize, batch: usize, results: BTreeMap<BufferId, Data>) -> Tensors {
    let results = results.into_iter().map(|(id, data)| {
        let data = match data {
            Data::F32(values) => values.into_iter().map(f64::from).collect(),
            Data::I32(values) => values.into_iter().map(f64::from).collect(),
        };
        (id, data)
    });
    tensors(plan, frames, batch, results.collect())
}

fn tensors(plan: &Plan, frames: usize, batch: usize, mut results: BTreeMap<BufferId, Vec<f64>>) -> Tensors {
    results.retain(|id, _| matches!(plan.buffer(*id).role, Role::Output | Role::Final));
    let named = results.into_iter().map(|(id, data)| {
        let buffer = plan.buffer(id);
        let mut shape = match buffer.scope {
            Scope::Const => vec![],
            Scope::Batch | Scope::Window(1) => vec![batch],
            Scope::Window(k) => vec![k, batch],
            Scope::Frame => vec![frames, batch],
        };
        shape.extend(&buffer.shape);
        let mut data = data;
        turn(plan, buffer, &shape, &mut data);
        (key(buffer), Tensor { shape, data })
    });
    named.collect()
}

/// Runs a plan on the CPU engine, with two threads.
pub fn on_cpu(plan: &Plan, frames: usize, batch: usize, given: &Tensors) -> Result<Tensors, RunError> {
    on_threads(2, plan, frames, batch, given)
}

/// Runs a plan on the CPU engine.
pub fn on_threads(
    threads: usize,
    plan: &Plan,
    frames: usize,
    batch: usize,
    given: &Tensors,
) -> Result<Tensors, RunError> {
    on_engine(
        &mut CpuEngine::new(plan.clone(), threads)?,
        plan,
        (frames, batch),
        given,
    )
}

/// Runs a plan on the engine that was made for it.
pub fn on_engine(
    engine: &mut dyn Engine,
    plan: &Plan,
    (frames, batch): (usize, usize),
    given: &Tensors,
) -> Result<Tensors, RunError> {
    let is_param = |id: &BufferId| plan.buffer(*id).role == Role::Param;
    let (params, inputs) = data(plan, given).into_iter().partition(|(id, _)| is_param(id));
    engine.set_params(&params)?;
    Ok(named(plan, frames, batch, engine.run(frames, batch, &inputs)?))
}

/// Runs a plan's emitted text.
pub fn on_shim(shim: &Shim, plan: &Plan, run: Run, given: &Tensors) -> Tensors {
    named(plan, run.frames, run.batch, shim.run(run, &data(plan, given)))
}

/// Runs a plan point by point in f64.
pub fn interpreted(plan: &Plan, frames: usize, batch: usize, given: &Tensors) -> Tensors {
    tensors(
        plan,
        frames,
        batch,
        interpret(plan, frames, batch, &values(plan, given)),
    )
}

/// The arguments with every number moved by half a unit in the last place of f32, up or down; indices stay.
pub fn nudged(graph: &Graph, sizes: &Sizes, given: &Tensors, seed: u64) -> Tensors {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut nudge = |x: f64| {
        let by = if rng.random_bool(0.5) { ROUNDING } else { -ROUNDING };
        x * (1.0 + by)
    };
    let mut given = given.clone();
    for about in arguments(graph, &sizes.dims, sizes.frames, sizes.batch).unwrap() {
        let tensor = given.get_mut(&about.key).filter(|_| about.range.is_none());
        tensor
            .into_iter()
            .flat_map(|t| &mut t.data)
            .for_each(|x| *x = nudge(*x));
    }
    given
}

/// The largest relative error of rounding to f32.
const ROUNDING: f64 = 1.0 / (1u64 << 24) as f64;
