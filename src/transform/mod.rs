//! Passes that rewrite a graph, each a file with one `run`.
