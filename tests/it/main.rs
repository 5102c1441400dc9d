//! All integration tests in one binary: a module each.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test reports by panicking")]

mod cli;
mod corpora;
mod corpus;
mod cpu;
mod golden;
mod grammar;
mod layering;
mod meaning;
mod pages;
mod structure;
mod support;
mod verdicts;
