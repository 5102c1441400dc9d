//! Syntax tree to graph: names are resolved, axes inferred and checked.
