//! The rules and their settings: which cell of `rules.rnn` is meant, and the values of its parameters.

use crate::api::Error;

/// How parameters follow from gradients. Every field is one of PyTorch's, of the same meaning and default.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rule {
    /// Stochastic gradient descent (Sutskever, Martens, Dahl & Hinton 2013; `torch.optim.SGD`).
    Sgd {
        /// The share of the last step in this one, from 0 up to but not including 1.
        momentum: f32,
        /// Whether the gradient counts once more on top of the momentum.
        nesterov: bool,
        /// Added to the gradient: so much of the parameter.
        decay: f32,
    },
    /// Adam (Kingma & Ba 2015; `torch.optim.Adam`).
    Adam {
        /// The share of the last average of gradients in the next.
        beta1: f32,
        /// The same of their squares.
        beta2: f32,
        /// Added to the root of the squares.
        epsilon: f32,
        /// Added to the gradient: so much of the parameter.
        decay: f32,
    },
    /// Adam with decay apart from the gradient (Loshchilov & Hutter 2019; `torch.optim.AdamW`).
    AdamW {
        /// The share of the last average of gradients in the next.
        beta1: f32,
        /// The same of their squares.
        beta2: f32,
        /// Added to the root of the squares.
        epsilon: f32,
        /// A step takes `rate * decay` of the parameter away.
        decay: f32,
    },
}

impl Rule {
    /// Plain descent with this momentum, PyTorch's defaults otherwise.
    pub fn sgd(momentum: f32) -> Rule {
        Rule::Sgd {
            momentum,
            nesterov: false,
            decay: 0.0,
        }
    }

    /// Adam with PyTorch's defaults.
    pub fn adam() -> Rule {
        Rule::Adam {
            beta1: 0.9,
            beta2: 0.999,
            epsilon: 1e-8,
            decay: 0.0,
        }
    }

    /// AdamW with PyTorch's defaults.
    pub fn adamw() -> Rule {
        Rule::AdamW {
            beta1: 0.9,
            beta2: 0.999,
            epsilon: 1e-8,
            decay: 0.01,
        }
    }

    /// Its cell.
    pub(super) fn cell(&self) -> &'static str {
        match self {
            Rule::Sgd { .. } => "sgd",
            Rule::Adam { .. } => "adam",
            Rule::AdamW { .. } => "adamw",
        }
    }

    /// The values of the cell's parameters, once they are known to be in their ranges.
    pub(super) fn settings(&self, clip: Option<f32>) -> Result<Vec<(&'static str, f32)>, Error> {
        let share = |name, value: f32| within(name, value, (0.0..1.0).contains(&value), "at least 0 and below 1");
        let size = |name, value: f32| within(name, value, value >= 0.0 && value.is_finite(), "at least 0 and finite");
        let limit = match clip {
            Some(limit) => within("clip", limit, limit > 0.0, "above 0")?,
            None => ("limit", f32::INFINITY),
        };
        let own = match *self {
            Rule::Sgd {
                momentum,
                nesterov,
                decay,
            } => vec![
                share("momentum", momentum)?,
                ("nesterov", f32::from(nesterov)),
                size("decay", decay)?,
            ],
            Rule::Adam {
                beta1,
                beta2,
                epsilon,
                decay,
            }
            | Rule::AdamW {
                beta1,
                beta2,
                epsilon,
                decay,
            } => vec![
                share("beta1", beta1)?,
                share("beta2", beta2)?,
                size("epsilon", epsilon)?,
                size("decay", decay)?,
            ],
        };
        Ok(own.into_iter().chain([("limit", limit.1)]).collect())
    }
}

fn within(name: &'static str, value: f32, holds: bool, expected: &'static str) -> Result<(&'static str, f32), Error> {
    if holds {
        Ok((name, value))
    } else {
        Err(Error::Setting { name, value, expected })
    }
}
