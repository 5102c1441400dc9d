//! Facts to plan: which kernels, on which buffers, in which order.
