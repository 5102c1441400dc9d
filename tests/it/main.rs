//! All integration tests in one binary: a module each.

mod golden;
mod support;
