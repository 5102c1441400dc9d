//! Bindings to NVRTC by path.
