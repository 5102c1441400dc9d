//! All integration tests in one binary: a module each.

mod cpu;
mod golden;
mod layering;
mod structure;
mod support;
