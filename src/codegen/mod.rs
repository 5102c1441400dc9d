//! Plan to text: CUDA, C header, manifest. Nothing is decided here that the plan left open except how a kernel is written.

pub mod cuda;

use serde::{Deserialize, Serialize};

/// What the text is written for. Element types come from the plan's buffers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Target {
    /// The compilation target, such as `sm_90`.
    pub arch: String,
    /// Whether approximate exponentials, logarithms and tangents are welcome.
    pub fast_math: bool,
    /// What the plan does not know of runs and devices.
    pub tuning: Tuning,
}

/// What kernels may be fitted to; they are right for other runs and devices too, or refuse to start.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tuning {
    /// How many multiprocessors the device has. A loop's groups of blocks are no larger than that.
    pub sms: Option<usize>,
    /// How many sequences runs have, about.
    pub batch: Option<usize>,
    /// The shape of dense loops, in place of the one that the cost model finds.
    pub loop_shape: Option<cuda::dense_loop::places::Shape>,
}

impl Target {
    /// The number in [`Target::arch`]: 90 for `sm_90` and `sm_90a`. An arch without one counts as the oldest, 75.
    pub fn sm(&self) -> u32 {
        let digits: String = self.arch.chars().filter(char::is_ascii_digit).collect();
        digits.parse().unwrap_or(75)
    }
}

impl Default for Target {
    fn default() -> Target {
        Target {
            arch: "sm_80".to_string(),
            fast_math: false,
            tuning: Tuning::default(),
        }
    }
}

/// What a plan becomes.
#[derive(Clone, Debug)]
pub struct Emitted {
    /// The CUDA text: compiles alone.
    pub text: String,
    /// How to run it, for programs.
    pub manifest: rnnc_runtime::manifest::Manifest,
    /// How to run it, for C.
    pub header: String,
    /// What the text is made of.
    parts: cuda::Parts,
}

impl Emitted {
    /// The kernels of the text in at most `most` texts of about the same length, each of which compiles alone: side by
    /// side they compile faster.
    pub fn split(&self, most: usize) -> Vec<String> {
        self.parts.split(most)
    }
}
