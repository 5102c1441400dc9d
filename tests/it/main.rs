//! All integration tests in one binary: a module each.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test reports by panicking")]

mod cli;
mod cpu;
mod golden;
mod layering;
mod structure;
mod support;
mod verdicts;
