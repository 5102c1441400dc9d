//! What instructions compute: for an opcode, the function that does it for the 32 lanes of a warp.
//!
//! In comes the opcode, word by word; out goes a [`Compute`]: a function over whole registers and the kinds of its operands.
//! Each family is a file with one `select`. Everything here is pure: it reads and writes registers and knows neither memory
//! nor other lanes.

pub mod approx;
pub mod bits;
pub mod carry;
pub mod combine;
pub mod compare;
pub mod convert;
pub mod dot;
pub mod float;
pub mod half;
pub mod int;
pub mod mma;
pub mod moves;
pub mod narrow;
pub mod opcode;
pub mod registers;
pub mod rounding;

pub use combine::{Args, Compute, Run};
pub use opcode::Opcode;
pub use registers::{File, Regs, Row, Slot};

/// The families, in the order in which they are asked. An opcode belongs to the first that knows it.
const FAMILIES: &[fn(&mut Opcode<'_>) -> Option<Compute>] = &[
    int::select,
    bits::select,
    carry::select,
    dot::select,
    float::select,
    half::select,
    approx::select,
    convert::select,
    compare::select,
    moves::select,
];

/// The function of a pure opcode; none where it is not pure, or not known. A family takes words off the opcode, so that what
/// is left over is a modifier that nobody honours.
pub fn select(opcode: &mut Opcode<'_>) -> Option<Compute> {
    for family in FAMILIES {
        opcode.reset();
        if let Some(compute) = family(opcode) {
            return Some(compute);
        }
    }
    opcode.reset();
    None
}
