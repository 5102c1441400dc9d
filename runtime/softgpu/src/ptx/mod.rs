//! The text of a module and its syntax tree: names are still names, opcodes still words.

pub mod ast;
