//! The CPU engine.

mod math;
