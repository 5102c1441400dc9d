//! What is tested on the PTX that NVRTC makes from CUDA text; all modules in one binary.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test reports by panicking")]

mod command;
mod copies;
mod cost;
mod faults;
mod fuzz;
mod host;
mod lanes;
mod matrix;
mod nvrtc;
mod ops;
mod ptx;
mod run;
mod widths;
