//! A sanitizer for emitted kernels: a cell and a list of sizes go in; its kernels run on simulated GPUs that check every
//! access, and their results are held to the reference in f64.

use super::{Error, Options, compile};
use crate::codegen::Tuning;
use crate::codegen::cuda::dense_loop::places::Shape;
use crate::diagnostics::Diagnostics;
use crate::driver::{self, Choice};
use crate::ir::{Graph, Name};
use crate::reference::{self, ReferenceError, Tensor, farthest};
use rnnc_runtime::engine::{Data, Engine, RunError};
use rnnc_runtime::exec::{Gpu, GpuEngine};
use rnnc_runtime::given::key;
use rnnc_runtime::plan::{Buffer, BufferId, Elem, Family, Plan, Role, Scope};
use rnnc_runtime::sim::{Counts, Fault, Model, Options as SimOptions, Sim};
use serde::Serialize;
use std::collections::BTreeMap;

/// Which runs are made: every combination.
#[derive(Clone, Debug)]
pub struct Sweep {
    /// GPUs.
    pub models: Vec<Model>,
    /// Frames.
    pub frames: Vec<usize>,
    /// Sequences.
    pub batch: Vec<usize>,
    /// Seeds, of the numbers and of the order of events.
    pub seeds: Vec<u64>,
    /// Whether loops are also split over several small blocks, however few units they have.
    pub split: bool,
    /// Largest error: the norm of the difference over that of the reference.
    pub tolerance: f64,
}

/// What one run came to.
#[derive(Clone, Debug, Serialize)]
pub struct Checked {
    /// The GPU.
    pub gpu: &'static str,
    /// Whether loops were split over small blocks.
    pub split: bool,
    /// Frames.
    pub frames: usize,
    /// Sequences.
    pub batch: usize,
    /// The seed.
    pub seed: u64,
    /// What was farthest from the reference.
    pub tensor: String,
    /// How far; none where the run did not end.
    pub error: Option<f64>,
    /// What ran, by kernel.
    pub kernels: BTreeMap<String, Counts>,
    /// Why the run did not end.
    pub message: Option<String>,
    /// The fault, if a kernel is at fault.
    pub fault: Option<Fault>,
    /// Whether it ended, with errors within the tolerance.
    pub ok: bool,
}

/// Runs the kernels of a cell and tells `each` what every run came to. Inputs of 16-bit buffers are rounded beforehand, so
/// that the reference starts from the same.
///
/// # Errors
/// The text is at fault, or has no such sizes; there is no NVRTC. What is wrong with a kernel is no error but in the results.
pub fn check_kernels(
    source: &str,
    options: &Options,
    sweep: &Sweep,
    each: &mut dyn FnMut(Checked),
) -> Result<(), Error> {
    check_altered(source, options, sweep, &str::to_owned, each)
}

/// As [`check_kernels`], with the CUDA text changed before it is compiled: deliberate faults show what the checks catch.
///
/// # Errors
/// As there; the changed text does not compile.
pub fn check_altered(
    source: &str,
    options: &Options,
    sweep: &Sweep,
    alter: &dyn Fn(&str) -> String,
    each: &mut dyn FnMut(Checked),
) -> Result<(), Error> {
    let job = Job::new(source, options, sweep, alter)?;
    for model in &sweep.models {
        for split in job.splits() {
            for seed in &sweep.seeds {
                job.sizes(*model, split, *seed, each)?;
            }
        }
    }
    Ok(())
}

pub(super) struct Job<'a> {
    graph: Graph,
    dims: BTreeMap<Name, i64>,
    cell: super::Cell,
    sweep: &'a Sweep,
    alter: &'a dyn Fn(&str) -> String,
}

impl<'a> Job<'a> {
    pub(super) fn new(
        source: &str,
        options: &Options,
        sweep: &'a Sweep,
        alter: &'a dyn Fn(&str) -> String,
    ) -> Result<Job<'a>, Error> {
        let cell = compile(source, options)?;
        let choice = Choice {
            cell: Some(cell.plan().cell.clone()),
            stem: None,
        };
        // The graph as it was written, so that transforms are checked too.
        let checked = driver::check(source.as_bytes(), &choice);
        let fail = |diagnostics: Diagnostics| Error::Source {
            diagnostics,
            file: options.file.clone(),
            text: source.to_owned(),
        };
        let graph = checked.map_err(fail)?.graph;
        let dims = options.dims.iter().map(|(k, v)| (Name::from(k.as_str()), *v)).collect();
        Ok(Job {
            graph,
            dims,
            cell,
            sweep,
            alter,
        })
    }

    /// Loops as they are, and split, if there are loops.
    fn splits(&self) -> Vec<bool> {
        let plan = self.cell.plan();
        let has_loop = plan.launches.iter().any(|l| l.family == Family::Loop);
        if has_loop && self.sweep.split {
            vec![false, true]
        } else {
            vec![false]
        }
    }

    fn engine(&self, model: Model, split: bool, seed: u64) -> Result<GpuEngine<Sim>, Error> {
        let options = SimOptions {
            seed,
            ..SimOptions::default()
        };
        self.engine_with(model, split, options)
    }

    /// An engine whose loops are split over small blocks, or as they are.
    pub(super) fn engine_with(&self, model: Model, split: bool, options: SimOptions) -> Result<GpuEngine<Sim>, Error> {
        let sms = Sim::new(model, options)?.limits().processors as usize;
        let tuning = Tuning {
            sms: Some(sms),
            loop_shape: split.then_some(Shape::SPLIT),
            ..Tuning::default()
        };
        self.cell.simulate_altered(model, options, tuning, self.alter)
    }

    /// All T and B on one engine, as a user's calls would come, until a run fails.
    fn sizes(&self, model: Model, split: bool, seed: u64, each: &mut dyn FnMut(Checked)) -> Result<(), Error> {
        let mut engine = self.engine(model, split, seed)?;
        for frames in &self.sweep.frames {
            for batch in &self.sweep.batch {
                let given = self.arguments(*frames, *batch, seed)?;
                let before = engine.gpu().counts().clone();
                let result = self.run(&mut engine, (*frames, *batch), &given);
                let mut checked = Checked {
                    gpu: model.name,
                    split,
                    frames: *frames,
                    batch: *batch,
                    seed,
                    tensor: String::new(),
                    error: None,
                    kernels: since(&before, engine.gpu().counts()),
                    message: None,
                    fault: engine.gpu().fault().cloned(),
                    ok: false,
                };
                match result {
                    Ok(got) => self.compare(&got, (*frames, *batch), &given, &mut checked)?,
                    Err(error) => {
                        checked.message = Some(error.to_string());
                        // What a failed launch left behind is nothing to go on from.
                        engine = self.engine(model, split, seed)?;
                    }
                }
                each(checked);
            }
        }
        Ok(())
    }

    /// Numbers drawn from a seed for all parameters, inputs and initial states.
    pub(super) fn arguments(&self, frames: usize, batch: usize, seed: u64) -> Result<Tensors, Error> {
        let arguments = reference::arguments(&self.graph, &self.dims, frames, batch).map_err(|e| failed(&e))?;
        let mut given = reference::sample(&arguments, seed);
        for buffer in &self.cell.plan().buffers {
            if let Some(tensor) = given.get_mut(&key(buffer)) {
                tensor.data.iter_mut().for_each(|x| *x = stored(*x, buffer.elem));
            }
        }
        Ok(given)
    }

    /// Sets the parameters and runs `(T, B)`.
    fn run(&self, engine: &mut GpuEngine<Sim>, run: (usize, usize), given: &Tensors) -> Result<Tensors, Error> {
        self.set_params(engine, given)?;
        self.run_frames(engine, run, given)
    }

    pub(super) fn set_params(&self, engine: &mut GpuEngine<Sim>, given: &Tensors) -> Result<(), Error> {
        let params = data(self.cell.plan(), given, |role| *role == Role::Param);
        Ok(engine.set_params(&params)?)
    }

    pub(super) fn run_frames(
        &self,
        engine: &mut GpuEngine<Sim>,
        run: (usize, usize),
        given: &Tensors,
    ) -> Result<Tensors, Error> {
        let plan = self.cell.plan();
        let inputs = data(plan, given, |role| matches!(role, Role::Input | Role::Initial(_)));
        let results = engine.run(run.0, run.1, &inputs)?;
        Ok(results
            .into_iter()
            .map(|(id, data)| named(plan.buffer(id), data, run))
            .collect())
    }

    fn compare(&self, got: &Tensors, run: (usize, usize), given: &Tensors, checked: &mut Checked) -> Result<(), Error> {
        let want = reference::evaluate(&self.graph, &self.dims, run.0, run.1, given).map_err(|e| failed(&e))?;
        let (tensor, error) = farthest(got, &want);
        checked.ok = error <= self.sweep.tolerance;
        checked.tensor = tensor;
        checked.error = Some(error);
        Ok(())
    }
}

type Tensors = BTreeMap<String, Tensor>;

/// The plan was made for the same sizes, so that the reference takes them too.
fn failed(error: &ReferenceError) -> Error {
    Error::Run(RunError::Device(format!("the reference: {error}")))
}

/// A number as a buffer holds it.
fn stored(x: f64, elem: Elem) -> f64 {
    match elem {
        Elem::F32 | Elem::I32 => x,
        Elem::F16 => half::f16::from_f64(x).to_f64(),
        Elem::Bf16 => half::bf16::from_f64(x).to_f64(),
    }
}

fn data(plan: &Plan, given: &Tensors, wanted: impl Fn(&Role) -> bool) -> BTreeMap<BufferId, Data> {
    let buffers = plan.ids().filter(|(_, b)| wanted(&b.role));
    let data = buffers.filter_map(|(id, buffer)| {
        let values = &given.get(&key(buffer))?.data;
        let data = match buffer.elem {
            Elem::I32 => Data::I32(values.iter().map(|v| *v as i32).collect()),
            _ => Data::F32(values.iter().map(|v| *v as f32).collect()),
        };
        Some((id, data))
    });
    data.collect()
}

fn named(buffer: &Buffer, data: Data, (frames, batch): (usize, usize)) -> (String, Tensor) {
    let mut shape = match buffer.scope {
        Scope::Window(1) => vec![batch],
        Scope::Window(k) => vec![k, batch],
        _ => vec![frames, batch],
    };
    shape.extend(&buffer.shape);
    let data = match data {
        Data::F32(values) => values.into_iter().map(f64::from).collect(),
        Data::I32(values) => values.into_iter().map(f64::from).collect(),
    };
    (key(buffer), Tensor { shape, data })
}

/// What was counted between.
fn since(before: &BTreeMap<String, Counts>, now: &BTreeMap<String, Counts>) -> BTreeMap<String, Counts> {
    let difference = |(name, now): (&String, &Counts)| {
        let then = before.get(name).copied().unwrap_or_default();
        (name.clone(), now.minus(then))
    };
    now.iter().map(difference).filter(|(_, c)| c.launches > 0).collect()
}
