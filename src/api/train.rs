//! Gradients: a cell is run forward, which leaves a tape, and the tape backward.

use super::checkpoint::Checkpoints;
use super::{Cell, Device, Error, Loaded, Options, Run, Tensor, Tensors};
use crate::ir::NodeId;
use crate::transform::gradient::{Forward, Source, Taped, Window, cotangent, over_frames};
use rnnc_runtime::engine::Data;
use rnnc_runtime::plan::{Buffer, Role, Scope};

/// A cell with its derivative, compiled.
pub struct Trainable {
    forward: Cell,
    backward: Cell,
    defaults: Option<Cell>,
    tape: Vec<Taped>,
    windows: Vec<Window>,
}

/// Compiles a cell for training.
///
/// # Errors
/// As [`compile`](super::compile).
pub fn compile_gradient(source: &str, options: &Options) -> Result<Trainable, Error> {
    let (found, fast_math) = super::planned(source, options, crate::driver::gradient, |d| &d.forward.analysed.graph)?;
    let cell = |planned| Cell { planned, fast_math };
    Ok(Trainable {
        forward: cell(found.forward),
        backward: cell(found.backward),
        defaults: found.defaults.map(cell),
        tape: found.tape,
        windows: found.windows,
    })
}

impl Trainable {
    /// The cell; its plan has the tape among its outputs.
    pub fn forward(&self) -> &Cell {
        &self.forward
    }

    /// What computes the gradients.
    pub fn backward(&self) -> &Cell {
        &self.backward
    }

    /// Puts both on a device.
    ///
    /// # Errors
    /// As [`Cell::load`].
    pub fn load(&self, device: &Device) -> Result<Training, Error> {
        let graph = self.forward.graph();
        let is_ahead = |id: &NodeId| graph.uses(*id).iter().any(|u| u.delay < 0);
        Ok(Training {
            ahead: graph.states().into_iter().find(is_ahead).map(|id| graph.label(id)),
            forward: self.forward.load(device)?,
            backward: self.backward.load(device)?,
            defaults: self.defaults.as_ref().map(|cell| cell.load(device)).transpose()?,
            tape: self.tape.clone(),
            windows: self.windows.clone(),
        })
    }
}

/// A cell and its derivative on a device.
pub struct Training {
    forward: Loaded,
    backward: Loaded,
    defaults: Option<Loaded>,
    tape: Vec<Taped>,
    windows: Vec<Window>,
    /// A name that is read ahead of time, if any is.
    ahead: Option<String>,
}

/// What a forward run leaves for the backward one.
#[derive(Clone, Debug)]
pub struct Tape {
    inputs: Tensors,
    states: Tensors,
    outputs: Tensors,
    /// If the run kept these, it kept neither states nor outputs.
    checkpoints: Option<Checkpoints>,
}

impl Tape {
    pub(super) fn checkpointed(inputs: Tensors, kept: Checkpoints) -> Tape {
        Tape {
            inputs,
            states: Tensors::new(),
            outputs: Tensors::new(),
            checkpoints: Some(kept),
        }
    }
}

/// Gradients of the sum of cotangents times results.
#[derive(Clone, Debug, PartialEq)]
pub struct Gradients {
    /// By input that is no index, of its shape.
    pub inputs: Tensors,
    /// By parameter, of its shape.
    pub params: Tensors,
    /// By name that is read delayed, of its initial window's shape.
    pub states: Tensors,
}

impl Training {
    /// The device's name.
    pub fn device(&self) -> String {
        self.forward.device()
    }

    /// Takes the parameters, by name.
    ///
    /// # Errors
    /// As [`Loaded::set_params`].
    pub fn set_params(&mut self, params: &Tensors) -> Result<(), Error> {
        self.forward.set_params(params)?;
        for loaded in std::iter::once(&mut self.backward).chain(&mut self.defaults) {
            let mut read = params.clone();
            read.retain(|name, _| loaded.has(name, |role| *role == Role::Param));
            loaded.set_params(&read)?;
        }
        Ok(())
    }

    /// Runs all frames of the inputs, as [`Loaded::forward`] does, and keeps what the backward run needs.
    ///
    /// # Errors
    /// As [`Loaded::forward`].
    pub fn forward(&mut self, inputs: &Tensors, states: &Tensors) -> Result<(Run, Tape), Error> {
        let Run {
            outputs,
            states: finals,
        } = self.forward.forward(inputs, states)?;
        // The user's names have no dots.
        let own = outputs.iter().filter(|(name, _)| !name.contains('.'));
        let run = Run {
            outputs: own.map(|(name, tensor)| (name.clone(), tensor.clone())).collect(),
            states: finals,
        };
        let tape = Tape {
            inputs: inputs.clone(),
            states: states.clone(),
            outputs,
            checkpoints: None,
        };
        Ok((run, tape))
    }

    /// The gradients, given the cotangents of outputs (`[T, B, axes]`) and of final states; what is not given is zero.
    ///
    /// # Errors
    /// A cotangent of an unknown name or of the wrong shape; the device fails.
    pub fn backward(&mut self, tape: &Tape, outputs: &Tensors, states: &Tensors) -> Result<Gradients, Error> {
        self.refuse_unknown(outputs, states)?;
        if let Some(kept) = &tape.checkpoints {
            return self.backward_stretches(&tape.inputs, kept, outputs, states);
        }
        let mut taken = Tensors::new();
        for of in &self.tape {
            if let Some(tensor) = taped(of, tape) {
                taken.insert(of.name.to_string(), tensor);
            }
        }
        for (name, tensor) in &tape.inputs {
            if self.backward.has(name, |role| *role == Role::Input) {
                taken.entry(name.clone()).or_insert_with(|| tensor.clone());
            }
        }
        for (name, like) in &tape.outputs {
            let given = cotangent(name).to_string();
            if self.backward.has(&given, |role| *role == Role::Input) {
                let zero = || Tensor::new(&like.shape, vec![0.0; like.data.len()]);
                taken.insert(given, outputs.get(name).cloned().unwrap_or_else(zero));
            }
        }
        let first = |window: &Window| Some((window.parts.first()?.0.to_string(), states.get(&*window.name)?.clone()));
        let ends = self.windows.iter().filter_map(first).collect();
        let run = self.backward.forward_owned(taken, ends)?;
        let mut found = self.gradients(tape, run);
        if let Some(defaults) = &mut self.defaults {
            add_defaults(defaults, tape, &mut found)?;
        }
        Ok(found)
    }

    /// A name that is read ahead of time, if any is.
    pub(super) fn reads_ahead(&self) -> Option<&str> {
        self.ahead.as_deref()
    }

    /// Buffers of the forward plan.
    pub(super) fn forward_buffers<'a>(
        &'a self,
        wanted: impl Fn(&Role) -> bool + 'a,
    ) -> impl Iterator<Item = &'a Buffer> {
        self.forward.buffers(wanted)
    }

    fn refuse_unknown(&self, outputs: &Tensors, states: &Tensors) -> Result<(), Error> {
        let window = |name: &String| self.windows.iter().any(|w| *w.name == **name);
        let unknown = |kind: &'static str, name: &String, known: Vec<String>| Error::Unknown {
            kind,
            name: name.clone(),
            known: known.join(", "),
        };
        let is_output = |name: &String| self.forward.has(name, |role| *role == Role::Output);
        if let Some(name) = outputs.keys().find(|name| !is_output(name)) {
            let known = self.forward.names(|role| *role == Role::Output);
            return Err(unknown("output", name, known));
        }
        if let Some(name) = states.keys().find(|name| !window(name)) {
            let known = self.windows.iter().map(|w| w.name.to_string()).collect();
            return Err(unknown("state", name, known));
        }
        Ok(())
    }

    /// Sorts the results of the backward run; what no gradient reaches is zero.
    fn gradients(&self, tape: &Tape, run: Run) -> Gradients {
        let mut found = Gradients {
            inputs: Tensors::new(),
            params: Tensors::new(),
            states: Tensors::new(),
        };
        for (name, tensor) in run.outputs {
            match name.split_once('.') {
                Some(("dx", input)) => found.inputs.insert(input.to_owned(), tensor),
                Some(("dp", param)) => found.params.insert(param.to_owned(), tensor),
                _ => None,
            };
        }
        for (name, like) in &tape.inputs {
            if let Data::F32(values) = &like.data {
                let zero = || Tensor::new(&like.shape, vec![0.0; values.len()]);
                found.inputs.entry(name.clone()).or_insert_with(zero);
            }
        }
        for buffer in self.forward.buffers(|role| *role == Role::Param) {
            let zero = || Tensor::new(&buffer.shape, vec![0.0; buffer.elements()]);
            found.params.entry(buffer.name.clone()).or_insert_with(zero);
        }
        let states = self.windows.iter();
        found.states = states.filter_map(|w| window(w, &run.states)).collect();
        found
    }
}

/// Adds what reaches parameters and static inputs by the defaults of states that were not given.
fn add_defaults(defaults: &mut Loaded, tape: &Tape, found: &mut Gradients) -> Result<(), Error> {
    let mut taken = Tensors::new();
    for buffer in defaults.buffers(|role| *role == Role::Input) {
        let state = buffer.name.strip_prefix("ds0.").unwrap_or_default();
        let tensor = match found.states.get(state) {
            Some(window) => summed(window, buffer.shape.len(), tape.states.contains_key(state)),
            None => match tape.inputs.get(&buffer.name) {
                Some(tensor) => tensor.clone(),
                None => continue,
            },
        };
        taken.insert(buffer.name.clone(), tensor);
    }
    for (name, more) in defaults.forward(&taken, &Tensors::new())?.outputs {
        let sum = match name.split_once('.') {
            Some(("dx", input)) => found.inputs.get_mut(input),
            Some(("dp", param)) => found.params.get_mut(param),
            _ => None,
        };
        if let Some(Data::F32(values)) = sum.map(|s| &mut s.data) {
            values.iter_mut().zip(floats(&more)).for_each(|(s, v)| *s += v);
        }
    }
    Ok(())
}

/// The sum over the frames of a window of values with `rank` axes; 0 if the window was given, for then its default took
/// no part.
fn summed(window: &Tensor, rank: usize, was_given: bool) -> Tensor {
    let shape = &window.shape[window.shape.len().saturating_sub(rank + 1)..];
    let frame = shape.iter().product();
    let sum = match was_given {
        true => vec![0.0; frame],
        false => over_frames(floats(window), frame),
    };
    Tensor::new(shape, sum)
}

/// An input of the backward run, from the tape.
fn taped(taped: &Taped, tape: &Tape) -> Option<Tensor> {
    let like = match &taped.source {
        Source::Input(name) => tape.inputs.get(&**name)?,
        Source::Output(name) => tape.outputs.get(&**name)?,
    };
    let frames = *like.shape.first()?;
    Some(Tensor {
        shape: like.shape.clone(),
        data: match &like.data {
            Data::F32(_) => Data::F32(taped.values(&Of(tape, floats), frames)?),
            Data::I32(_) => Data::I32(taped.values(&Of(tape, integers), frames)?),
        },
    })
}

/// The numbers of one type on a tape.
struct Of<'a, T>(&'a Tape, fn(&Tensor) -> &[T]);

impl<T> Forward<T> for Of<'_, T> {
    fn input(&self, name: &str) -> Option<&[T]> {
        self.0.inputs.get(name).map(self.1)
    }

    fn output(&self, name: &str) -> Option<&[T]> {
        self.0.outputs.get(name).map(self.1)
    }

    fn window(&self, name: &str) -> Option<&[T]> {
        self.0.states.get(name).map(self.1)
    }
}

fn floats(tensor: &Tensor) -> &[f32] {
    match &tensor.data {
        Data::F32(values) => values,
        Data::I32(_) => &[],
    }
}

fn integers(tensor: &Tensor) -> &[i32] {
    match &tensor.data {
        Data::I32(values) => values,
        Data::F32(_) => &[],
    }
}

/// The gradient of an initial window, of the shape that its first part has.
fn window(window: &Window, states: &Tensors) -> Option<(String, Tensor)> {
    let sum = window.gradient(|state| states.get(state).map(floats))?;
    let shape = &states.get(&*window.parts.first()?.0)?.shape;
    Some((window.name.to_string(), Tensor::new(shape, sum)))
}

/// Turns the frames of a buffer round, if it has any.
pub(super) fn reversed(scope: Scope, batch: usize, frame: usize, data: &mut Data) {
    match data {
        Data::F32(values) => rnnc_runtime::plan::reverse_frames(scope, batch * frame, values),
        Data::I32(values) => rnnc_runtime::plan::reverse_frames(scope, batch * frame, values),
    }
}
