//! Set-up, tests and demo.
fn main() {}
