//! Judges the kernels of a cell and of its gradients on a simulated GPU, every access checked.

use super::judge::{Case, Subject, without_panic};
use rnnc::codegen::Tuning;
use rnnc::transform::{self, gradient};
use rnnc::{Cell, Options, reference};
use rnnc_runtime::sim::{self, Model};

/// What the design allows gradients in f32.
const GRADIENTS: f64 = 1e-4;

impl Subject {
    /// What is wrong with the kernels, forward and backward.
    ///
    /// # Errors
    /// A fault that the simulated GPU found, or how far a result is off.
    pub fn judge_simulated(&self) -> Result<(), String> {
        without_panic(|| {
            let mut graph = self.lowered()?;
            let options = self.options();
            let cell = rnnc::compile(&self.text, &options).map_err(|e| e.to_string())?;
            self.simulate(&cell, &Case::new(self, &graph)?)?;
            transform::run(&mut graph);
            let derived = gradient::run(&graph);
            let (given, cotangents) = self.drawn(&graph, self.seed)?;
            let size = (self.sizes.frames, self.sizes.batch);
            let taken = reference::backward_arguments(&derived, &self.sizes.dims, size, &given, &cotangents);
            let taken = taken.map_err(|e| format!("its tape: {e}"))?;
            let case = Case::of(&self.sizes, &derived.backward, taken)?.within(GRADIENTS);
            let trainable = rnnc::compile_gradient(&self.text, &options).map_err(|e| e.to_string())?;
            self.simulate(trainable.backward(), &case)
                .map_err(|e| format!("backward, {e}"))
        })
    }

    fn options(&self) -> Options {
        let dims = self.sizes.dims.iter();
        dims.fold(Options::default(), |options, (name, value)| options.dim(name, *value))
    }

    fn simulate(&self, cell: &Cell, case: &Case) -> Result<(), String> {
        let how = sim::Options {
            seed: self.seed,
            ..sim::Options::default()
        };
        let model = Model::named("h100").ok_or("no such model")?;
        let engine = cell.simulate(model, how, Tuning::default());
        let mut engine = engine.map_err(|e| format!("not loaded: {e}"))?;
        let got = case.run_on(&mut engine, cell.plan());
        let got = got.map_err(|e| format!("on a simulated GPU: {e}"))?;
        if case.is_beyond_f32() || case.is_steep() {
            return Ok(());
        }
        case.judge_single(&got).map_err(|e| format!("on a simulated GPU: {e}"))
    }
}
