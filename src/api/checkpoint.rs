//! Gradients of long runs in little memory: states are kept every so many frames only, and the stretch between two of them is
//! run again when the backward run comes to it.
//!
//! Memory for the tape is that of one stretch plus the states at the beginning of each (T / k of them). A stretch is an
//! ordinary run, from states that were given, so gradients of inputs and of initial states are the same to the bit as
//! without checkpoints; those of parameters add up stretch by stretch, in another order.

use super::train::{Gradients, Tape, Training};
use super::{Error, Run, Tensor, Tensors};
use rnnc_runtime::plan::{Role, Scope};
use std::ops::Range;

/// What a run with checkpoints keeps.
#[derive(Clone, Debug)]
pub(super) struct Checkpoints {
    /// Frames of a stretch; the last may have fewer.
    every: usize,
    /// All frames.
    frames: usize,
    /// The states at the beginning of each stretch, of which there is one at least; of the first, those that the caller gave.
    starts: Vec<Tensors>,
}

impl Training {
    /// Runs all frames as [`Training::forward`] does, but keeps states only every `every` frames, for
    /// [`Training::backward`] to run what is between them again. An `every` near the square root of T needs the least
    /// memory; gradients cost one more forward run.
    ///
    /// # Errors
    /// As [`Training::forward`]; `every` is 0; or the cell reads ahead, so that no stretch can be run without the next.
    pub fn forward_checkpointed(
        &mut self,
        inputs: &Tensors,
        states: &Tensors,
        every: usize,
    ) -> Result<(Run, Tape), Error> {
        self.refuse_checkpoints(every)?;
        let frames = self.frames(inputs);
        let (first, others) = stretches(frames, every);
        let (mut run, _) = self.forward(&self.stretch(inputs, &first), states)?;
        let mut starts = vec![states.clone()];
        for stretch in others {
            let (part, _) = self.forward(&self.stretch(inputs, &stretch), &run.states)?;
            starts.push(std::mem::replace(&mut run.states, part.states));
            for (name, tensor) in part.outputs {
                if let Some(own) = run.outputs.get_mut(&name) {
                    own.append(tensor);
                }
            }
        }
        let kept = Checkpoints { every, frames, starts };
        Ok((run, Tape::checkpointed(inputs.clone(), kept)))
    }

    /// As [`Training::backward`], stretch by stretch, the last one first.
    pub(super) fn backward_stretches(
        &mut self,
        inputs: &Tensors,
        kept: &Checkpoints,
        outputs: &Tensors,
        states: &Tensors,
    ) -> Result<Gradients, Error> {
        let (first, others) = stretches(kept.frames, kept.every);
        let others: Vec<Range<usize>> = others.collect();
        let mut later = Vec::new(); // the last stretch first
        let mut reaching = states.clone();
        for (stretch, start) in others.iter().zip(&kept.starts[1..]).rev() {
            let mut part = self.backward_stretch(inputs, (stretch, start), outputs, &reaching)?;
            reaching = std::mem::take(&mut part.states);
            later.push(part);
        }
        let mut found = self.backward_stretch(inputs, (&first, &kept.starts[0]), outputs, &reaching)?;
        for part in later.into_iter().rev() {
            self.join_gradients(&mut found, part);
        }
        Ok(found)
    }

    /// Runs a stretch again, from the states at its beginning, and back.
    fn backward_stretch(
        &mut self,
        inputs: &Tensors,
        (stretch, start): (&Range<usize>, &Tensors),
        outputs: &Tensors,
        states: &Tensors,
    ) -> Result<Gradients, Error> {
        let (_, tape) = self.forward(&self.stretch(inputs, stretch), start)?;
        let cotangents = outputs.iter().map(|(name, t)| (name.clone(), t.frames(stretch)));
        self.backward(&tape, &cotangents.collect(), states)
    }

    fn refuse_checkpoints(&self, every: usize) -> Result<(), Error> {
        if every == 0 {
            return Err(Error::Checkpoints {
                why: "a stretch has at least one frame".to_owned(),
            });
        }
        match self.reads_ahead() {
            None => Ok(()),
            Some(name) => Err(Error::Checkpoints {
                why: format!("{name} is read ahead of time, so no stretch can be run before the next"),
            }),
        }
    }

    /// Whether an input has frames.
    fn has_frames(&self, name: &str) -> bool {
        let mut inputs = self.forward_buffers(|role| *role == Role::Input);
        inputs.any(|buffer| buffer.name == name && buffer.scope == Scope::Frame)
    }

    /// T, as the first input that has frames says.
    fn frames(&self, inputs: &Tensors) -> usize {
        let mut framed = inputs.iter().filter(|(name, _)| self.has_frames(name));
        framed.next().and_then(|(_, t)| t.shape.first().copied()).unwrap_or(1)
    }

    fn stretch(&self, inputs: &Tensors, frames: &Range<usize>) -> Tensors {
        let part = |(name, tensor): (&String, &Tensor)| {
            let part = match self.has_frames(name) {
                true => tensor.frames(frames),
                false => tensor.clone(),
            };
            (name.clone(), part)
        };
        inputs.iter().map(part).collect()
    }

    /// Adds the gradients of a later stretch.
    fn join_gradients(&self, earlier: &mut Gradients, later: Gradients) {
        for (name, tensor) in later.inputs {
            let framed = self.has_frames(&name);
            if let Some(own) = earlier.inputs.get_mut(&name) {
                match framed {
                    true => own.append(tensor),
                    false => own.add(&tensor),
                }
            }
        }
        for (name, tensor) in &later.params {
            if let Some(own) = earlier.params.get_mut(name) {
                own.add(tensor);
            }
        }
    }
}

/// The first stretch, which may have no frames, and the others.
fn stretches(frames: usize, every: usize) -> (Range<usize>, impl Iterator<Item = Range<usize>>) {
    let from = move |first: usize| first..(first + every).min(frames);
    (from(0), (every..frames).step_by(every).map(from))
}
