//! Devices, buffers, NVRTC and the plan.

pub mod cache;
pub mod cpu;
pub mod cuda;
pub mod doctor;
pub mod engine;
pub mod exec;
pub mod given;
pub mod manifest;
pub mod nvrtc;
pub mod plan;
pub mod scalar;
pub mod sim;
