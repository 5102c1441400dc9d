//! CUDA text. A kernel's skeleton is a template; what it computes is printed here, statement by statement.

pub mod channel;
pub mod dense_loop;
pub mod expr;
mod file;
mod header;
pub mod index;
pub mod kernel;
pub mod literal;
pub mod names;
mod parts;
pub mod place;
pub mod pointers;
pub mod prelude;
pub mod product;
pub mod spelling;
pub mod statements;
pub mod templates;
mod total;

pub use file::emit;
pub(super) use parts::Parts;
