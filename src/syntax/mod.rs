//! Text to syntax tree and back: the parser, the tree, the canonical form. Knows nothing of the graph.

pub mod ast;
