//! All integration tests in one binary: a module each.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test reports by panicking")]

mod backward;
mod cli;
mod corpora;
mod cpu;
mod cuda;
#[path = "../support/cuda_shim/mod.rs"]
mod cuda_shim;
mod dense_loop;
mod emitted;
mod emitted_corpora;
mod emulated;
mod examples;
mod fuzz;
mod golden;
mod gradients;
mod grammar;
mod host;
mod layering;
mod lowering;
mod meaning;
mod optim;
mod pages;
mod random;
mod runs;
mod sim;
mod structure;
mod support;
mod training;
mod verdicts;
