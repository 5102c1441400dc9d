//! What the kernels of a cell would cost on cards that are not there: counts, and a range of modelled time.
//!
//! The kernels that rnnc fits to each card run on it as softgpu simulates it. Times are modelled from published rates
//! (softgpu's `cost`); they rank variants and are never a speed.

use super::sanitize::{Job, Sweep};
use super::{Error, Options};
use rnnc_runtime::sim::{Cost, CostCounts, Model, Modelled, Options as SimOptions};
use serde::Serialize;
use std::collections::BTreeMap;

/// Frames by which the second run is longer: two steady ones.
const STEADY: usize = 2;

/// What a kernel came to in one run.
#[derive(Clone, Debug, Default, Serialize)]
pub struct KernelCost {
    /// Launches.
    pub launches: u64,
    /// What was counted.
    pub counts: CostCounts,
    /// The modelled time of all of them.
    pub modelled: Modelled,
}

/// What a cell came to on a card.
#[derive(Clone, Debug, Serialize)]
pub struct CellCost {
    /// The card.
    pub gpu: &'static str,
    /// Frames.
    pub frames: usize,
    /// Sequences.
    pub batch: usize,
    /// What depends on the parameters alone, once.
    pub prologue: BTreeMap<String, KernelCost>,
    /// A run, by kernel.
    pub kernels: BTreeMap<String, KernelCost>,
    /// All kernels of a run, one after another.
    pub total: Modelled,
    /// What one more frame adds.
    pub frame: Modelled,
    /// Looks that showed something new, of all warps, and barriers of blocks and clusters, that one more frame adds.
    pub exchanges_a_frame: f64,
    /// The same of barriers.
    pub barriers_a_frame: f64,
}

/// Runs `(T, B)` on each card.
///
/// # Errors
/// The text is at fault, or has no such sizes; there is no NVRTC; a kernel is at fault.
pub fn costs(source: &str, options: &Options, models: &[Model], run: (usize, usize)) -> Result<Vec<CellCost>, Error> {
    let sweep = Sweep {
        models: models.to_vec(),
        frames: Vec::new(),
        batch: Vec::new(),
        seeds: Vec::new(),
        split: false,
        tolerance: 0.0,
    };
    let job = Job::new(source, options, &sweep, &str::to_owned)?;
    models.iter().map(|model| on(&job, *model, run)).collect()
}

fn on(job: &Job<'_>, model: Model, (frames, batch): (usize, usize)) -> Result<CellCost, Error> {
    let (prologue, kernels) = once(job, model, (frames, batch))?;
    let (_, longer) = once(job, model, (frames + STEADY, batch))?;
    let (total, more) = (total(&kernels), total(&longer));
    let a_frame = |of: fn(&CostCounts) -> u64| {
        let sum = |all: &BTreeMap<String, KernelCost>| all.values().map(|kernel| of(&kernel.counts)).sum::<u64>();
        (sum(&longer) as f64 - sum(&kernels) as f64) / STEADY as f64
    };
    Ok(CellCost {
        gpu: model.name,
        frames,
        batch,
        prologue,
        frame: more.less(&total, STEADY as f64),
        exchanges_a_frame: a_frame(|counts| counts.exchanges),
        barriers_a_frame: a_frame(|counts| counts.barriers + counts.cluster_barriers),
        kernels,
        total,
    })
}

type Kernels = BTreeMap<String, KernelCost>;

/// What setting the parameters and then a run came to.
fn once(job: &Job<'_>, model: Model, run: (usize, usize)) -> Result<(Kernels, Kernels), Error> {
    let options = SimOptions {
        modelled: true,
        ..SimOptions::default()
    };
    let mut engine = job.engine_with(model, false, options)?;
    let given = job.arguments(run.0, run.1, 0)?;
    job.set_params(&mut engine, &given)?;
    let before = engine.gpu().costs().len();
    job.run_frames(&mut engine, run, &given)?;
    let (prologue, launches) = engine.gpu().costs().split_at(before);
    Ok((by_kernel(prologue), by_kernel(launches)))
}

fn by_kernel(launches: &[(String, Cost)]) -> Kernels {
    let mut kernels = Kernels::new();
    for (name, cost) in launches {
        let kernel = kernels.entry(name.clone()).or_default();
        kernel.launches += 1;
        kernel.counts.add(&cost.counts);
        kernel.modelled.add(&cost.modelled);
    }
    kernels
}

fn total(kernels: &Kernels) -> Modelled {
    let mut total = Modelled::default();
    kernels.values().for_each(|kernel| total.add(&kernel.modelled));
    total
}
