//! A GPU without a GPU: the PTX that NVRTC produced is parsed, decoded and run, warp by warp, in a seeded random order, and
//! every access is checked.
//!
//! The pipeline is the list of modules: text -> [`ptx`] -> program -> machine, which reads and writes through [`memory`]; what
//! is wrong with a kernel is a [`fault::Fault`]. This crate knows nothing of rnnc.

pub mod fault;
pub mod memory;
pub mod ptx;
