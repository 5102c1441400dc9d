//! Where each step of a channel kernel's body belongs: before the frames or in each, before or after which folds, once a
//! channel or once an inner element.

use rnnc_runtime::plan::{Channel, Frame, Lanes, Load, Reg, Step};
use rnnc_runtime::scalar::Reduce;

/// The two times at which steps run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Once, before the frames: what is the same in all of them.
    Before,
    /// In every frame.
    Frame,
}

/// What is known of one step.
#[derive(Clone, Copy, Debug)]
pub struct Fact {
    /// When it runs.
    pub phase: Phase,
    /// How many folds of its phase come before it, one after another.
    pub stage: usize,
    /// Whether there is a value for each inner element.
    pub inner: bool,
    /// Whether a register must hold it for code elsewhere: another loop over inner elements, a later phase, a state.
    pub kept: bool,
}

/// What is known of a body.
pub struct Facts {
    /// By step.
    pub steps: Vec<Fact>,
    /// Whether a lane walks several inner elements, so that inner steps stand in loops.
    pub looped: bool,
}

impl Facts {
    /// Examines a body, simplified ([`super::fold`]). Unless `hoist`, all of it runs in each frame.
    pub fn of(channel: &Channel, lanes: Lanes, hoist: bool) -> Facts {
        let inner = channel.inner_registers();
        let mut facts = Facts {
            steps: Vec::with_capacity(inner.len()),
            looped: lanes.each > 1,
        };
        for (step, inner) in channel.body.steps.iter().zip(inner) {
            let phase = facts.phase(step, hoist);
            let stage = facts.stage(step, phase);
            facts.steps.push(Fact {
                phase,
                stage,
                inner,
                kept: false,
            });
        }
        facts.mark_kept(channel);
        facts
    }

    /// What is known of the step that defines a register.
    pub fn get(&self, reg: Reg) -> Fact {
        self.steps[reg.0 as usize]
    }

    /// One past the last stage of a phase.
    pub fn stages(&self, phase: Phase) -> usize {
        let stages = self.steps.iter().filter(|f| f.phase == phase).map(|f| f.stage + 1);
        stages.max().unwrap_or(0).max(1)
    }

    fn phase(&self, step: &Step, hoist: bool) -> Phase {
        let moves = match step {
            Step::Load(Load { frame, .. }) => matches!(frame, Frame::At { .. }),
            Step::Carried { .. } => true,
            _ => false,
        };
        let still = !moves && step.reads().iter().all(|r| self.get(*r).phase == Phase::Before);
        if hoist && still { Phase::Before } else { Phase::Frame }
    }

    fn stage(&self, step: &Step, phase: Phase) -> usize {
        let before = |r: &Reg| {
            let fact = self.get(*r);
            if fact.phase == phase { fact.stage } else { 0 }
        };
        let operands = step.reads().iter().map(before).max().unwrap_or(0);
        operands + usize::from(matches!(step, Step::Reduce(..)))
    }

    fn mark_kept(&mut self, channel: &Channel) {
        for (j, step) in channel.body.steps.iter().enumerate() {
            for reg in step.reads() {
                if self.crosses(reg, j, matches!(step, Step::Reduce(..))) {
                    self.steps[reg.0 as usize].kept = true;
                }
            }
        }
        for state in &channel.carried {
            self.steps[state.value.0 as usize].kept = true;
        }
        for store in &channel.body.stores {
            let fact = &mut self.steps[store.value.0 as usize];
            fact.kept |= fact.phase == Phase::Before;
        }
    }

    /// Whether reader j stands in other code than the definition of `reg`.
    fn crosses(&self, reg: Reg, j: usize, folds: bool) -> bool {
        let (of, by) = (self.get(reg), self.steps[j]);
        if of.phase != by.phase {
            return true;
        }
        // A fold accumulates in the loop that computes its operand.
        let other_loop = !folds && of.stage != by.stage;
        let into_loop = !of.inner && (by.inner || folds);
        self.looped && (into_loop || of.inner && other_loop)
    }
}

/// Whether a step is so cheap that it is written out wherever it is needed.
pub fn is_trivial(step: &Step) -> bool {
    matches!(step, Step::Const(_) | Step::Number(_) | Step::Inside(_))
}

/// Whether a step is a read that a later frame's turn can be issued early for.
pub fn is_leaf(step: &Step) -> bool {
    matches!(
        step,
        Step::Load(Load {
            frame: Frame::At { .. },
            ..
        })
    )
}

/// The C function that folds over a group of lanes, how two values combine, and what changes nothing.
pub fn fold_parts(op: Reduce) -> (&'static str, Option<&'static str>, f64) {
    match op {
        Reduce::Max => ("maximum_of_lanes", Some("maximum"), f64::NEG_INFINITY),
        Reduce::Min => ("minimum_of_lanes", Some("minimum"), f64::INFINITY),
        // The others were rewritten as sums.
        Reduce::Sum | Reduce::Mean | Reduce::Var | Reduce::LogSumExp => ("sum_of_lanes", None, 0.0),
    }
}
