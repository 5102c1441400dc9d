//! A GPU without a GPU: the PTX that NVRTC produced is parsed, decoded and run, warp by warp, in a seeded random order, and
//! every access is checked.
//!
//! The pipeline is the list of modules: text -> [`ptx`] -> [`program`], whose instructions are functions of [`ops`] ->
//! [`machine`], which reads and writes through [`memory`]; what is wrong with a kernel is a [`fault::Fault`]. A host uses
//! [`Gpu`]. This crate knows nothing of rnnc.

pub mod cost;
pub mod fault;
mod gpu;
pub mod machine;
pub mod memory;
pub mod ops;
pub mod program;
pub mod ptx;
pub mod report;

pub use gpu::{Arg, Gpu, LoadError, Module};
pub use machine::{Device, Launch, Report};

#[doc = include_str!("../README.md")]
#[cfg(doctest)]
struct Readme;
