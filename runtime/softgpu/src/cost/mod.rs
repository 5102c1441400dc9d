//! A model of how long a launch would take on a card, for where there is no card: counts, and a range of time with its terms.
//!
//! While a launch runs, a [`Recorder`] writes down what each warp does between two events that others can see, and which
//! event waits for which ([`trace`]). [`longest_path`] lines the segments up at the units of the card and follows what decides
//! the end. Rates are published figures ([`rates`]), at their fast and at their slow end: the answer is a range.
//!
//! It ranks variants and shows what a kernel waits for. It is no measurement and never a speed.

mod access;
mod board;
mod cache;
mod counts;
mod evaluate;
pub mod kind;
pub mod microbench;

pub mod rates;
mod recorder;
mod requests;
mod signals;
pub mod trace;
mod words;

pub use counts::Counts;
pub use evaluate::{Path, longest_path};
pub use rates::Rates;
pub(crate) use recorder::{Recorder, Shape, Who};
pub(crate) use requests::Request;
pub(crate) use signals::Signal;
pub(crate) use words::{Key, place};

use serde::Serialize;
use std::collections::BTreeMap;
use trace::{Term, Trace};

/// What a launch came to.
#[derive(Clone, Debug, Serialize)]
pub struct Cost {
    /// What was counted.
    pub counts: Counts,
    /// The modelled time.
    pub modelled: Modelled,
}

/// A modelled time: microseconds at the fast and at the slow end of the rates.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Modelled {
    /// The longest path.
    pub microseconds: [f64; 2],
    /// What it is made of; terms that are nothing are left out.
    pub terms: BTreeMap<Term, [f64; 2]>,
    /// Launching, which comes on top.
    pub launch: [f64; 2],
}

impl Modelled {
    /// Of a trace, on a card of these rates.
    pub fn of(trace: &Trace, rates: &[Rates; 2]) -> Modelled {
        let paths = [0, 1].map(|end| longest_path(trace, &rates[end], end));
        let to_us = |end: usize, cycles: f64| cycles / rates[end].clock / 1e3;
        let term = |term: Term| {
            let both = [0, 1].map(|end| to_us(end, paths[end].terms[term as usize]));
            (both != [0.0; 2]).then_some((term, both))
        };
        Modelled {
            microseconds: [0, 1].map(|end| to_us(end, paths[end].cycles)),
            terms: Term::ALL.into_iter().filter_map(term).collect(),
            launch: [0, 1].map(|end| rates[end].launch),
        }
    }

    /// Adds a launch that comes after.
    pub fn add(&mut self, other: &Modelled) {
        let sum = |into: &mut [f64; 2], more: &[f64; 2]| into.iter_mut().zip(more).for_each(|(a, b)| *a += b);
        sum(&mut self.microseconds, &other.microseconds);
        sum(&mut self.launch, &other.launch);
        for (term, both) in &other.terms {
            sum(self.terms.entry(*term).or_default(), both);
        }
    }

    /// What is more than in another, `steps` times.
    #[must_use]
    pub fn less(&self, other: &Modelled, steps: f64) -> Modelled {
        let each = |a: &[f64; 2], b: &[f64; 2]| [0, 1].map(|end| (a[end] - b[end]) / steps);
        let nothing = [0.0; 2];
        let terms = Term::ALL.into_iter().filter_map(|term| {
            let of = |m: &Modelled| m.terms.get(&term).copied().unwrap_or(nothing);
            let both = each(&of(self), &of(other));
            (both != nothing).then_some((term, both))
        });
        Modelled {
            microseconds: each(&self.microseconds, &other.microseconds),
            terms: terms.collect(),
            launch: nothing,
        }
    }
}
