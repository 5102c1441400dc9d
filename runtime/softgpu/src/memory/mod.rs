//! Every byte that a kernel can reach, and whether it may: allocations, validity, and the order of accesses.

pub mod access;
