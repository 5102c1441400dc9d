//! Renders diagnostics for a terminal, with source lines and carets.
