//! How a GPU spreads the inner axes of a channel kernel over lanes, and whether a state then fits the registers.
//!
//! The printer lays kernels out by these rules, and the scheduler asks them before it chooses a channel kernel.

use super::{Channel, Step};

/// Lanes of a warp.
const WARP: usize = 32;

/// Registers a lane may spend on carried states.
const STATE_REGISTERS: usize = 96;

/// A group of neighbouring lanes for each channel and sequence. Inner element e (all inner axes, row-major) belongs to
/// lane `e % lanes` and is its number `e / lanes`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lanes {
    /// Lanes a group: a power of two, at most 32.
    pub lanes: usize,
    /// Inner elements a lane, rounded up.
    pub each: usize,
    /// Inner elements.
    pub elements: usize,
}

impl Lanes {
    /// The layout for so many inner elements.
    pub fn of(elements: usize) -> Lanes {
        let lanes = elements.next_power_of_two().clamp(1, WARP);
        Lanes {
            lanes,
            each: elements.div_ceil(lanes),
            elements,
        }
    }

    /// Whether the last round of elements leaves lanes without one.
    pub fn is_ragged(self) -> bool {
        self.elements != self.lanes * self.each
    }
}

impl Channel {
    /// How its inner axes are laid out.
    pub fn lanes(&self) -> Lanes {
        Lanes::of(self.inner.iter().product())
    }

    /// Whether variable `v` is an inner one.
    pub fn is_inner(&self, v: u8) -> bool {
        v as usize >= self.channels.len()
    }

    /// Whether an index differs between inner elements.
    pub fn varies_within(&self, index: &super::Index) -> bool {
        (self.channels.len()..self.channels.len() + self.inner.len()).any(|v| index.uses(v as u8))
    }

    /// Which registers of the body have a value for each inner element; the others have one for each channel.
    pub fn inner_registers(&self) -> Vec<bool> {
        let mut inner: Vec<bool> = Vec::with_capacity(self.body.steps.len());
        for step in &self.body.steps {
            let own = match step {
                Step::Load(load) => {
                    self.varies_within(&load.index) || load.guards.iter().any(|g| self.varies_within(&g.index))
                }
                Step::Number(index) | Step::Gather { index, .. } => self.varies_within(index),
                Step::Inside(guards) => guards.iter().any(|g| self.varies_within(&g.index)),
                Step::Carried { state, .. } => self.varies_within(&self.carried[*state].index),
                _ => false,
            };
            let folded = matches!(step, Step::Reduce(..));
            inner.push(!folded && (own || step.reads().iter().any(|r| inner[r.0 as usize])));
        }
        inner
    }

    /// Registers that a lane needs for what is carried.
    pub fn state_registers(&self) -> usize {
        let each = self.lanes().each;
        let one = |index| if self.varies_within(index) { each } else { 1 };
        self.carried.iter().map(|c| c.window * one(&c.index)).sum()
    }

    /// Whether its states fit the registers of a GPU's thread. Where they do not, the recurrence must be planned as a
    /// loop; kernels that carry nothing always fit.
    pub fn fits(&self) -> bool {
        self.state_registers() <= STATE_REGISTERS
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::samples;
    use crate::plan::{Kernel, Plan};

    #[test]
    fn inner_elements_spread_over_lanes_first() {
        for (elements, lanes, each, ragged) in [
            (1, 1, 1, false),
            (3, 4, 1, true),
            (16, 16, 1, false),
            (33, 32, 2, true),
            (256, 32, 8, false),
        ] {
            let got = Lanes::of(elements);
            assert_eq!((got.lanes, got.each, got.is_ragged()), (lanes, each, ragged));
        }
    }

    fn channel(plan: &Plan) -> &Channel {
        match &plan.launches[0].kernel {
            Kernel::Channel(channel) => channel,
            other => panic!("no channel kernel: {other:?}"),
        }
    }

    #[test]
    fn a_state_of_many_elements_a_lane_does_not_fit() {
        assert!(channel(&samples::matrix_state(7, 256)).fits());
        assert!(channel(&samples::decay(100_000)).fits());
        assert!(!channel(&samples::matrix_state(7, 5000)).fits());
    }

    #[test]
    fn folding_gives_one_value_a_channel() {
        let plan = samples::matrix_state(7, 5);
        let kernel = channel(&plan);
        let inner = kernel.inner_registers();
        for (step, inner) in kernel.body.steps.iter().zip(&inner) {
            if matches!(step, Step::Reduce(..)) {
                assert!(!inner);
            }
            if matches!(step, Step::Carried { .. }) {
                assert!(inner);
            }
        }
    }
}
