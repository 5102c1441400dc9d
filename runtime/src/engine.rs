//! What every device offers: parameters in, then runs. A device owns a plan and whatever it made of it.

use crate::plan::BufferId;
use std::collections::BTreeMap;

/// The contents of a buffer on the host, in the plan's layout.
#[derive(Clone, Debug, PartialEq)]
pub enum Data {
    /// Real numbers (converted where the buffer is stored in 16 bits).
    F32(Vec<f32>),
    /// Indices.
    I32(Vec<i32>),
}

impl Data {
    /// Elements.
    pub fn len(&self) -> usize {
        match self {
            Data::F32(v) => v.len(),
            Data::I32(v) => v.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Why a run did not happen, or did not end.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A buffer that the plan needs was not given.
    #[error("{name} is missing")]
    Missing {
        /// The buffer's key, such as `x.token` or `p.W`.
        name: String,
    },
    /// A buffer has another size, or other elements, than the plan has.
    #[error("{name} holds {got}, expected {expected}")]
    Mismatch {
        /// The buffer's key.
        name: String,
        /// What the plan has.
        expected: String,
        /// What was given.
        got: String,
    },
    /// An index is outside its range.
    #[error("{name} holds the index {value}, outside 0..{rows}")]
    IndexRange {
        /// The buffer's key.
        name: String,
        /// The index.
        value: i64,
        /// How many rows there are.
        rows: usize,
    },
    /// The device cannot run this plan (co-residency, memory, a type it lacks).
    #[error("{device} cannot run this cell: {reason}")]
    Unsupported {
        /// Which device.
        device: String,
        /// Why, and what to do.
        reason: String,
    },
    /// The driver or the compiler behind the device failed.
    #[error("{0}")]
    Device(String),
}

/// A device with a plan loaded.
pub trait Engine: Send {
    /// Its name: `cpu`, `cuda:0`.
    fn name(&self) -> String;

    /// Takes every parameter of the plan (role param) and runs the prologue.
    ///
    /// # Errors
    /// A parameter is missing or has the wrong size; the device fails.
    fn set_params(&mut self, params: &BTreeMap<BufferId, Data>) -> Result<(), RunError>;

    /// Runs `frames` >= 1 frames of `batch` >= 1 sequences. `given` holds every input and any initial windows; what
    /// comes back are all outputs and final windows.
    ///
    /// # Errors
    /// A buffer is missing or has the wrong size; parameters were never set; the device fails.
    fn run(
        &mut self,
        frames: usize,
        batch: usize,
        given: &BTreeMap<BufferId, Data>,
    ) -> Result<BTreeMap<BufferId, Data>, RunError>;
}
