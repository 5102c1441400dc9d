//! Optimizers: what becomes of parameters when their gradients are known, on every device.
//!
//! An optimizer is a recurrence over steps of training, so its rule is a cell of the language (`rules.rnn`), compiled and run
//! by the same engines as the model: parameters and running averages are its states, a gradient is its input. All parameters
//! lie side by side in one matrix ([`layout`]), so a step is a few kernels however many parameters there are, and the norm
//! that limits the gradient is a reduction of the language.
//!
//! ```
//! use rnnc::optim::{Optimizer, Rule};
//! use rnnc::{Device, Tensor, Tensors};
//!
//! // The minimum of (w - 3)^2, whose gradient is 2 (w - 3).
//! let mut params = Tensors::from([("w".into(), Tensor::new(&[1], vec![0.0]))]);
//! let mut optimizer = Optimizer::new(Rule::adam(), None, &params, &Device::Cpu { threads: 1 })?;
//! for _ in 0..200 {
//!     let gradient = 2.0 * (params["w"].values()[0] - 3.0);
//!     let gradients = Tensors::from([("w".into(), Tensor::new(&[1], vec![gradient]))]);
//!     optimizer.step(&mut params, &gradients, 0.1)?;
//! }
//! assert!((params["w"].values()[0] - 3.0).abs() < 1e-2);
//! # Ok::<(), rnnc::Error>(())
//! ```

mod layout;
mod rule;

pub use rule::Rule;

use super::{Device, Error, Loaded, Options, Tensor, Tensors, compile};
use layout::Layout;

/// The cells of all rules.
const RULES: &str = include_str!("rules.rnn");

/// The state that holds the parameters.
const PARAMS: &str = "p";

/// A rule, its running averages for the parameters of one model, and the device it runs on.
pub struct Optimizer {
    loaded: Loaded,
    layout: Layout,
    /// What the next step starts from; nothing but parameters before the first.
    states: Tensors,
    inputs: Tensors,
}

impl Optimizer {
    /// An optimizer for parameters of these names and shapes, before its first step. `clip` limits the norm of all
    /// gradients together; larger ones are scaled down to it (Pascanu, Mikolov & Bengio 2013).
    ///
    /// # Errors
    /// A setting of the rule is out of its range, a parameter holds indices, or the device refuses.
    pub fn new(rule: Rule, clip: Option<f32>, params: &Tensors, device: &Device) -> Result<Optimizer, Error> {
        let settings = rule.settings(clip)?;
        let layout = Layout::new(params)?;
        let options = Options::default()
            .cell(rule.cell())
            .dim("R", layout.rows as i64)
            .dim("C", layout.columns as i64);
        let mut loaded = compile(RULES, &options)?.load(device)?;
        let scalar = |(name, value): (&str, f32)| (name.to_owned(), Tensor::new(&[], vec![value]));
        loaded.set_params(&settings.into_iter().map(scalar).collect())?;
        let frame = layout.frame();
        Ok(Optimizer {
            loaded,
            states: Tensors::from([(PARAMS.to_owned(), layout.zeros(&frame[1..]))]),
            inputs: Tensors::from([
                ("gradient".to_owned(), layout.zeros(&frame)),
                ("rate".to_owned(), Tensor::new(&[1, 1], vec![0.0])),
            ]),
            layout,
        })
    }

    /// Moves the parameters one step of size `rate` along their gradients. Returns the norm of all gradients together, as
    /// it was before it was limited.
    ///
    /// # Errors
    /// The parameters are not those of [`Optimizer::new`], a gradient is missing or has another shape, or the device fails.
    pub fn step(&mut self, params: &mut Tensors, gradients: &Tensors, rate: f32) -> Result<f32, Error> {
        if let Some(gradient) = self.inputs.get_mut("gradient") {
            self.layout.gather("gradient", gradients, gradient)?;
        }
        self.inputs.insert("rate".to_owned(), Tensor::new(&[1, 1], vec![rate]));
        if let Some(before) = self.states.get_mut(PARAMS) {
            self.layout.gather("parameter", params, before)?;
        }
        let run = self.loaded.forward(&self.inputs, &self.states)?;
        self.states = run.states;
        self.layout.scatter(&self.states[PARAMS], params);
        Ok(run.outputs["norm"].values()[0])
    }

    /// The running averages after the last step, for a checkpoint: `NAME.PARAMETER`, of the parameter's shape, and scalars.
    /// Empty before the first step.
    pub fn state(&self) -> Tensors {
        let mut state = Tensors::new();
        for (name, tensor) in self.states.iter().filter(|(name, _)| *name != PARAMS) {
            if tensor.shape.len() == 1 {
                state.insert(name.clone(), Tensor::new(&[], tensor.values().to_vec()));
            } else {
                let parts = self.layout.parts(tensor);
                state.extend(parts.map(|(param, part)| (format!("{name}.{param}"), part)));
            }
        }
        state
    }

    /// Goes on from what [`Optimizer::state`] gave: the next step is the same to the bit as if there had been no break.
    ///
    /// # Errors
    /// A tensor is missing, is not of this rule, or has another shape.
    pub fn restore(&mut self, state: &Tensors) -> Result<(), Error> {
        let averages = self.loaded.windows().filter(|b| b.name != PARAMS);
        let averages: Vec<(String, bool)> = averages.map(|b| (b.name.clone(), b.shape.is_empty())).collect();
        let keys = |(name, is_number): &(String, bool)| match is_number {
            true => vec![name.clone()],
            false => self.layout.names().map(|param| format!("{name}.{param}")).collect(),
        };
        let known: Vec<String> = averages.iter().flat_map(keys).collect();
        let lacking = known.iter().find(|key| !state.is_empty() && !state.contains_key(*key));
        let strange = state.keys().find(|key| !known.contains(key));
        let (kind, names) = ("average", known.join(", "));
        if let Some(name) = strange.cloned() {
            return Err(Error::Unknown {
                kind,
                name,
                known: names,
            });
        }
        if let Some(name) = lacking.cloned() {
            return Err(Error::Missing {
                kind,
                name,
                known: names,
            });
        }
        let mut states = Tensors::from([(PARAMS.to_owned(), self.layout.zeros(&self.layout.frame()[1..]))]);
        for (name, is_number) in averages.into_iter().filter(|_| !state.is_empty()) {
            let tensor = if is_number {
                Tensor::new(&[1], state[&name].values().to_vec())
            } else {
                self.whole(&name, state)?
            };
            states.insert(name, tensor);
        }
        self.states = states;
        Ok(())
    }

    /// The matrix of an average from its parts.
    fn whole(&self, name: &str, state: &Tensors) -> Result<Tensor, Error> {
        let prefix = format!("{name}.");
        let part = |(key, part): (&String, &Tensor)| Some((key.strip_prefix(&prefix)?.to_owned(), part.clone()));
        let mut whole = self.layout.zeros(&self.layout.frame()[1..]);
        let parts = state.iter().filter_map(part).collect();
        self.layout.gather("average", &parts, &mut whole)?;
        Ok(whole)
    }
}
