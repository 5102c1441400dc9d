//! The rnnc command.
fn main() {}
