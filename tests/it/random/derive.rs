//! Judges a cell's gradients: by finite differences, after every pass, as a plan, and on the CPU engine.

use super::coverage::Coverage;
use super::judge::{Case, Subject, compare, without_panic};
use crate::support::Tensors;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rnnc::driver;
use rnnc::ir::{Graph, verify::verify};
use rnnc::reference::{self, Difference, Effort};
use rnnc::transform;
use rnnc::transform::gradient::{self, Gradient};
use rnnc_runtime::plan::{self, Elem};

/// What remains of a central difference's error; the gradients of cells that amplify are large.
const SLOPES: f64 = 1e-4;

/// A wrong rule is wrong along nearly every direction.
const FEW: Effort = Effort {
    small: 1,
    directions: 1,
};

/// At how many points a slope may disagree: a corner of `relu` or `max` within a step of one point is chance.
const POINTS: u64 = 3;

/// What the design allows gradients in f32.
const SINGLE: f64 = 1e-4;

/// What the passes may change in f64.
const PASSES: f64 = 1e-9;

impl Subject {
    /// Whether the reference's gradients are slopes.
    ///
    /// # Errors
    /// Which is not.
    pub fn judge_slopes(&self) -> Result<(), String> {
        without_panic(|| self.with_slopes().compare_slopes())
    }

    /// What is wrong with the cell's gradients besides the reference's, a panic included.
    ///
    /// # Errors
    /// Where they first differ, and by how much.
    pub fn judge_gradients(&self, seen: &mut Coverage) -> Result<(), String> {
        without_panic(|| {
            let graph = self.lowered()?;
            let derived = gradient::run(&graph);
            let mut small = graph.clone();
            transform::run(&mut small);
            let after = gradient::run(&small);
            let (given, cotangents) = self.drawn(&graph, self.seed)?;
            let all = |g: &Gradient| self.all_gradients(g, &given, &cotangents);
            let expected = all(&derived)?;
            compare(&all(&after)?, &expected, PASSES).map_err(|e| format!("derived after the passes: {e}"))?;
            self.judge_engines(&after, &given, &cotangents, seen)
        })
    }

    /// Numbers for arguments (windows too) and cotangents.
    pub(super) fn drawn(&self, graph: &Graph, seed: u64) -> Result<(Tensors, Tensors), String> {
        let given = self.sizes.arguments(graph, seed, true);
        let results = self.sizes.reference(graph, &given).map_err(|e| e.to_string())?;
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let cotangent = |(key, tensor): (&String, &_)| {
            let tensor: &reference::Tensor = tensor;
            (format!("d{key}"), reference::draw(&mut random, &tensor.shape))
        };
        let mut cotangents: Tensors = results.iter().map(cotangent).collect();
        let real = gradient::run(graph).windows;
        cotangents.retain(|key, _| {
            let window = key.strip_prefix("dsT.");
            window.is_none_or(|name| real.iter().any(|w| *w.name == *name))
        });
        Ok((given, cotangents))
    }

    fn all_gradients(&self, gradient: &Gradient, given: &Tensors, cotangents: &Tensors) -> Result<Tensors, String> {
        let size = (self.sizes.frames, self.sizes.batch);
        let found = reference::gradients(gradient, &self.sizes.dims, size, given, cotangents);
        found.map_err(|e| format!("its gradients: {e}"))
    }

    /// The cell without what stops gradients, for there no slope is the gradient.
    fn with_slopes(&self) -> Subject {
        Subject {
            text: self.text.replace("stop_gradient(", "("),
            choice: self.choice.clone(),
            sizes: self.sizes.clone(),
            seed: self.seed,
        }
    }

    /// Gradients against slopes.
    fn compare_slopes(&self) -> Result<(), String> {
        let graph = &self.lowered()?;
        let gradient = &gradient::run(graph);
        verify(&gradient.backward).map_err(|e| format!("its backward graph is not sound: {e:?}"))?;
        let wrong = |seed: u64| -> Result<Option<Difference>, String> {
            let (given, cotangents) = self.drawn(graph, seed)?;
            let size = (self.sizes.frames, self.sizes.batch);
            let mut random = ChaCha8Rng::seed_from_u64(seed);
            let tensors = (&given, &cotangents);
            let rows = reference::differences(graph, gradient, &self.sizes.dims, size, tensors, FEW, &mut random);
            let rows = rows.map_err(|e| e.to_string())?;
            Ok(rows.into_iter().find(|row| row.error > SLOPES))
        };
        let mut last = None;
        for point in 0..POINTS {
            match wrong(self.seed + point)? {
                None => return Ok(()),
                found => last = found,
            }
        }
        match last {
            Some(row) => Err(format!("{} is off its slope by {:.1e}", row.key, row.error)),
            None => Ok(()),
        }
    }

    /// The plans of both directions, the backward one point by point and on the CPU engine.
    fn judge_engines(
        &self,
        derived: &Gradient,
        given: &Tensors,
        cotangents: &Tensors,
        seen: &mut Coverage,
    ) -> Result<(), String> {
        let found = driver::gradient(self.text.as_bytes(), &self.choice, &self.sizes.dims, Elem::F32);
        let found = found.map_err(|d| format!("its gradients are not planned:\n{}", self.rendered(&d)))?;
        for planned in [&found.forward, &found.backward] {
            verify(&planned.analysed.graph).map_err(|e| format!("its graph for training is not sound: {e:?}"))?;
            plan::check(&planned.plan).map_err(|e| format!("its plan for training is not sound: {e:?}"))?;
        }
        seen.count_plan(&found.backward.plan);
        let size = (self.sizes.frames, self.sizes.batch);
        let taken = reference::backward_arguments(derived, &self.sizes.dims, size, given, cotangents);
        let case = Case::of(
            &self.sizes,
            &derived.backward,
            taken.map_err(|e| format!("its tape: {e}"))?,
        )?;
        case.judge_plan(&found.backward.plan)
            .map_err(|e| format!("backward, {e}"))?;
        let case = case.within(SINGLE);
        if case.is_beyond_f32() || case.is_steep() {
            seen.count_unjudged();
            return Ok(());
        }
        case.judge_cpu(&found.backward.plan, 1 + self.seed as usize % 2)
            .map_err(|e| format!("backward, {e}"))
    }
}
