//! Evaluates a graph in f64, slow and obvious.
