//! Why compiling, loading or running a cell failed.

use crate::diagnostics::{Diagnostics, render};
use rnnc_runtime::engine::RunError;

/// An error of the Rust API.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The text is at fault. Prints as the command line prints it, without colour.
    #[error("{}", render::render(diagnostics, file, text, false))]
    Source {
        /// Everything found.
        diagnostics: Diagnostics,
        /// The file's name.
        file: String,
        /// Its text.
        text: String,
    },
    /// A tensor is missing.
    #[error("{kind} {name} is missing; this cell has {known}")]
    Missing {
        /// Input, parameter or initial state.
        kind: &'static str,
        /// Its name.
        name: String,
        /// The names that there are.
        known: String,
    },
    /// A tensor has a name that the cell does not have.
    #[error("there is no {kind} {name}; this cell has {known}")]
    Unknown {
        /// Input, parameter or initial state.
        kind: &'static str,
        /// The name given.
        name: String,
        /// The names that there are.
        known: String,
    },
    /// A tensor has the wrong shape.
    #[error("{kind} {name} has shape {got:?}, expected {expected}")]
    Shape {
        /// Input, parameter or initial state.
        kind: &'static str,
        /// Its name.
        name: String,
        /// What it must be, with T and B where they are open.
        expected: String,
        /// What was given.
        got: Vec<usize>,
    },
    /// A run cannot keep checkpoints.
    #[error("no checkpoints: {why}; call `forward` instead")]
    Checkpoints {
        /// What stands against it.
        why: String,
    },
    /// A number that sets how something is done is out of its range.
    #[error("{name} is {value}, expected {expected}")]
    Setting {
        /// Its name.
        name: &'static str,
        /// What was given.
        value: f32,
        /// What it may be.
        expected: &'static str,
    },
    /// The device refused or failed.
    #[error(transparent)]
    Run(#[from] RunError),
}
