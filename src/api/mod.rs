//! The Rust API: compile a cell, load it on a device, run it.
//!
//! ```
//! use rnnc::{Device, Options, Tensor, Tensors, compile};
//!
//! let source = "
//!     cell leaky(H) {
//!       input  x: [H]
//!       param  a: [H]
//!       state  h: [H]
//!       output h
//!       h = sigmoid(a) * h[t-1] + x
//!     }";
//! let cell = compile(source, &Options::default().dim("H", 2))?;
//! let mut leaky = cell.load(&Device::Cpu { threads: 1 })?;
//! leaky.set_params(&Tensors::from([("a".into(), Tensor::new(&[2], vec![0.0, 0.0]))]))?;
//! let x = Tensor::new(&[3, 1, 2], vec![1.0; 6]); // T = 3 frames of B = 1 sequence
//! let run = leaky.forward(&Tensors::from([("x".into(), x)]), &Tensors::new())?;
//! assert_eq!(run.outputs["h"].values(), [1.0, 1.0, 1.5, 1.5, 1.75, 1.75]);
//! // The final states continue the sequence.
//! let x = Tensor::new(&[1, 1, 2], vec![0.0; 2]);
//! let next = leaky.forward(&Tensors::from([("x".into(), x)]), &run.states)?;
//! assert_eq!(next.outputs["h"].values(), [0.875, 0.875]);
//! # Ok::<(), rnnc::Error>(())
//! ```

mod checkpoint;
mod error;
mod gpu;
mod load;
pub mod modelled;
pub mod optim;
pub mod sanitize;
mod tensor;
mod train;

pub use error::Error;
pub use load::{Device, Loaded, Run};
pub use tensor::{Tensor, Tensors};
pub use train::{Gradients, Tape, Trainable, Training, compile_gradient};

use crate::diagnostics::{Code, Diagnostic, Diagnostics, Span};
use crate::driver::{self, Choice};
use crate::ir::{Graph, Name};
use rnnc_runtime::plan::{Elem, Plan};
use std::collections::BTreeMap;

/// What to compile, and for which sizes.
#[derive(Clone, Debug)]
pub struct Options {
    /// The file's name, for messages and to choose the cell that is named as the file.
    pub file: String,
    /// The cell, if the file holds several.
    pub cell: Option<String>,
    /// Values of the dimensions.
    pub dims: BTreeMap<String, i64>,
    /// How inputs, parameters and outputs are stored on the device.
    pub elem: Elem,
    /// Write approximations of `exp`, `tanh` and their kin into GPU kernels.
    pub fast_math: bool,
}

impl Default for Options {
    fn default() -> Options {
        let dims = BTreeMap::new();
        Options {
            file: "cell.rnn".into(),
            cell: None,
            dims,
            elem: Elem::F32,
            fast_math: false,
        }
    }
}

impl Options {
    /// Sets a dimension.
    #[must_use]
    pub fn dim(mut self, name: &str, value: i64) -> Options {
        self.dims.insert(name.to_owned(), value);
        self
    }

    /// Chooses a cell.
    #[must_use]
    pub fn cell(mut self, name: &str) -> Options {
        self.cell = Some(name.to_owned());
        self
    }
}

/// A compiled cell: its plan at given dimensions, ready to be loaded on any device.
pub struct Cell {
    planned: driver::Planned,
    fast_math: bool,
}

/// Compiles a cell.
///
/// # Errors
/// [`Error::Source`] with everything that is wrong with the text, or a dimension without a value or out of range.
pub fn compile(source: &str, options: &Options) -> Result<Cell, Error> {
    let (planned, fast_math) = planned(source, options, driver::plan, |p| &p.analysed.graph)?;
    Ok(Cell { planned, fast_math })
}

/// A stage of the driver: text, choice of the cell, dimensions and storage to plans.
type Stage<P> = fn(&[u8], &Choice, &BTreeMap<Name, i64>, Elem) -> Result<P, Diagnostics>;

/// Runs a stage of the driver with what the options say.
fn planned<P>(source: &str, options: &Options, stage: Stage<P>, graph: fn(&P) -> &Graph) -> Result<(P, bool), Error> {
    let stem = options
        .file
        .rsplit(['/', '\\'])
        .next()
        .unwrap_or("")
        .trim_end_matches(".rnn");
    let choice = Choice {
        cell: options.cell.clone(),
        stem: Some(stem.to_owned()),
    };
    let dims: BTreeMap<Name, i64> = options.dims.iter().map(|(k, v)| (Name::from(k.as_str()), *v)).collect();
    let fail = |diagnostics| Error::Source {
        diagnostics,
        file: options.file.clone(),
        text: source.to_owned(),
    };
    let planned = stage(source.as_bytes(), &choice, &dims, options.elem).map_err(fail)?;
    let known = &graph(&planned).dims;
    if let Some(name) = dims.keys().find(|name| !known.contains(name)) {
        return Err(fail(unknown_dim(name, known)));
    }
    Ok((planned, options.fast_math))
}

fn unknown_dim(name: &str, known: &[Name]) -> Diagnostics {
    let known = known.iter().map(AsRef::as_ref).collect::<Vec<&str>>().join(", ");
    let message = format!("the cell has no dimension {name}; its dimensions are {known}");
    Diagnostics(vec![Diagnostic::new(Code::UnknownDim, message, Span::default())])
}

impl Cell {
    /// The kernels and buffers.
    pub fn plan(&self) -> &Plan {
        &self.planned.plan
    }

    /// The graph after all transforms.
    pub fn graph(&self) -> &Graph {
        &self.planned.analysed.graph
    }

    /// The recurrences.
    pub fn facts(&self) -> &crate::analysis::Facts {
        &self.planned.analysed.facts
    }

    /// Warnings about the text.
    pub fn warnings(&self) -> &Diagnostics {
        &self.planned.analysed.warnings
    }
}
