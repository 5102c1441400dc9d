//! A cell on a device: names and shapes are checked before anything runs.

use super::{Cell, Error, Tensor, Tensors};
use rnnc_runtime::cpu::CpuEngine;
use rnnc_runtime::engine::{Data, Engine};
use rnnc_runtime::plan::{Buffer, BufferId, Plan, Role, Scope};
use rnnc_runtime::sim::{Model, Options};
use std::collections::BTreeMap;

/// Where to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Device {
    /// This machine's processor.
    Cpu {
        /// How many threads; results do not depend on it.
        threads: usize,
    },
    /// An NVIDIA GPU.
    Cuda {
        /// Which, counted from 0.
        ordinal: usize,
    },
    /// A simulated GPU: runs the kernels' own PTX and reports what they do wrong. Needs NVRTC, no GPU.
    Sim {
        /// What is simulated.
        model: Model,
        /// How.
        options: Options,
    },
}

/// A cell on a device.
pub struct Loaded {
    plan: Plan,
    engine: Box<dyn Engine>,
}

/// What a run gives.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// The outputs, `[T, B, axes]`.
    pub outputs: Tensors,
    /// The final windows of delayed names, `[B, axes]` or `[k, B, axes]`: the initial states of a run that goes on.
    pub states: Tensors,
}

impl Cell {
    /// Puts the cell on a device.
    ///
    /// # Errors
    /// The device is not there, lacks something that this cell needs, or its compiler fails.
    pub fn load(&self, device: &Device) -> Result<Loaded, Error> {
        let engine: Box<dyn Engine> = match device {
            Device::Cpu { threads } => Box::new(CpuEngine::new(self.plan().clone(), *threads)?),
            Device::Cuda { ordinal } => self.cuda(*ordinal)?,
            Device::Sim { model, options } => self.sim(*model, *options)?,
        };
        Ok(Loaded {
            plan: self.plan().clone(),
            engine,
        })
    }
}

impl Loaded {
    /// The device's name.
    pub fn device(&self) -> String {
        self.engine.name()
    }

    /// Takes the parameters, by name, and does the work that depends on them alone.
    ///
    /// # Errors
    /// A parameter is missing, unknown, or has the wrong shape; the device fails.
    pub fn set_params(&mut self, params: &Tensors) -> Result<(), Error> {
        let sizes = Sizes { frames: 1, batch: 1 };
        let data = self.bind("parameter", params.clone(), sizes, true, |role| {
            matches!(role, Role::Param)
        })?;
        Ok(self.engine.set_params(&data)?)
    }

    /// Runs all frames of the inputs. Initial states that are not given have their defaults.
    ///
    /// # Errors
    /// A tensor is missing, unknown, or has the wrong shape; parameters were not set; the device fails.
    pub fn forward(&mut self, inputs: &Tensors, states: &Tensors) -> Result<Run, Error> {
        self.forward_owned(inputs.clone(), states.clone())
    }

    /// As [`Loaded::forward`], of tensors that nobody else needs.
    pub(super) fn forward_owned(&mut self, inputs: Tensors, states: Tensors) -> Result<Run, Error> {
        let sizes = self.sizes(&inputs)?;
        let mut data = self.bind("input", inputs, sizes, true, |role| matches!(role, Role::Input))?;
        data.extend(self.bind("state", states, sizes, false, |role| matches!(role, Role::Initial(_)))?);
        let results = self.engine.run(sizes.frames, sizes.batch, &data)?;
        Ok(self.name(results, sizes))
    }

    /// Whether a buffer of a role has this name.
    pub(super) fn has(&self, name: &str, wanted: impl Fn(&Role) -> bool) -> bool {
        self.plan.buffers.iter().any(|b| wanted(&b.role) && b.name == name)
    }

    /// The buffers of a role.
    pub(super) fn buffers<'a>(&'a self, wanted: impl Fn(&Role) -> bool + 'a) -> impl Iterator<Item = &'a Buffer> {
        self.plan.buffers.iter().filter(move |b| wanted(&b.role))
    }

    /// The initial windows of names that are read delayed.
    pub(super) fn windows(&self) -> impl Iterator<Item = &Buffer> {
        self.buffers(|role| matches!(role, Role::Initial(_)))
    }

    /// The names of the buffers of a role.
    pub(super) fn names(&self, wanted: impl Fn(&Role) -> bool) -> Vec<String> {
        self.buffers(wanted).map(|b| b.name.clone()).collect()
    }

    /// T and B, from the first input that has them.
    fn sizes(&self, inputs: &Tensors) -> Result<Sizes, Error> {
        let is_input = |(_, b): &(BufferId, &Buffer)| b.role == Role::Input;
        let mut sizes = Sizes { frames: 1, batch: 1 };
        let known = self.known(|role| matches!(role, Role::Input));
        for (_, buffer) in self.plan.ids().filter(is_input) {
            let Some(tensor) = inputs.get(&buffer.name) else {
                return Err(Error::Missing {
                    kind: "input",
                    name: buffer.name.clone(),
                    known,
                });
            };
            match (buffer.scope, tensor.shape.as_slice()) {
                (Scope::Frame, [frames, batch, ..]) => {
                    return Ok(Sizes {
                        frames: *frames,
                        batch: *batch,
                    });
                }
                (_, [batch, ..]) => sizes.batch = *batch,
                _ => {}
            }
        }
        Ok(sizes)
    }

    fn known(&self, wanted: impl Fn(&Role) -> bool) -> String {
        let names: Vec<&str> = self
            .plan
            .buffers
            .iter()
            .filter(|b| wanted(&b.role))
            .map(|b| b.name.as_str())
            .collect();
        if names.is_empty() {
            "none".to_owned()
        } else {
            names.join(", ")
        }
    }

    fn bind(
        &self,
        kind: &'static str,
        mut tensors: Tensors,
        sizes: Sizes,
        all: bool,
        wanted: impl Fn(&Role) -> bool,
    ) -> Result<BTreeMap<BufferId, Data>, Error> {
        let known = || self.known(&wanted);
        let mut bound = BTreeMap::new();
        for (id, buffer) in self.plan.ids().filter(|(_, b)| wanted(&b.role)) {
            let Some(tensor) = tensors.remove(&buffer.name) else {
                if all {
                    return Err(Error::Missing {
                        kind,
                        name: buffer.name.clone(),
                        known: known(),
                    });
                }
                continue;
            };
            let expected = sizes.shape(buffer);
            if tensor.shape != expected || tensor.data.len() != expected.iter().product::<usize>() {
                let (name, got) = (buffer.name.clone(), tensor.shape);
                return Err(Error::Shape {
                    kind,
                    name,
                    expected: layout(buffer, &expected),
                    got,
                });
            }
            let mut data = tensor.data;
            if self.plan.against_time {
                super::train::reversed(buffer.scope, sizes.batch, buffer.elements(), &mut data);
            }
            bound.insert(id, data);
        }
        match tensors.into_keys().next() {
            Some(name) => Err(Error::Unknown {
                kind,
                name,
                known: known(),
            }),
            None => Ok(bound),
        }
    }

    fn name(&self, results: BTreeMap<BufferId, Data>, sizes: Sizes) -> Run {
        let mut run = Run {
            outputs: Tensors::new(),
            states: Tensors::new(),
        };
        for (id, mut data) in results {
            let buffer = self.plan.buffer(id);
            if self.plan.against_time {
                super::train::reversed(buffer.scope, sizes.batch, buffer.elements(), &mut data);
            }
            let tensor = Tensor {
                shape: sizes.shape(buffer),
                data,
            };
            match buffer.role {
                Role::Output => run.outputs.insert(buffer.name.clone(), tensor),
                _ => run.states.insert(buffer.name.clone(), tensor),
            };
        }
        run
    }
}

#[derive(Clone, Copy)]
struct Sizes {
    frames: usize,
    batch: usize,
}

impl Sizes {
    /// The whole shape of a buffer, as golden vectors have it.
    fn shape(self, buffer: &Buffer) -> Vec<usize> {
        let lead = match buffer.scope {
            Scope::Const => vec![],
            Scope::Batch | Scope::Window(1) => vec![self.batch],
            Scope::Frame => vec![self.frames, self.batch],
            Scope::Window(k) => vec![k, self.batch],
        };
        lead.into_iter().chain(buffer.shape.iter().copied()).collect()
    }
}

/// A shape for messages: which extents are T and B, and their values.
fn layout(buffer: &Buffer, shape: &[usize]) -> String {
    let lead = match buffer.scope {
        Scope::Const => "",
        Scope::Batch | Scope::Window(1) => " (B first)",
        Scope::Frame => " (T, then B first)",
        Scope::Window(_) => " (the window's frames, then B first)",
    };
    format!("{shape:?}{lead}")
}
