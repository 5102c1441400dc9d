//! The CPU engine.

mod access;
mod fold;
mod isa;
mod math;
mod memory;
