//! Devices, buffers, NVRTC and the plan.

pub mod plan;
pub mod scalar;
