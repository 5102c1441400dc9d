//! Draws a cell: its values, which reads which and how many frames back, its recurrences and kernels in colour.
//!
//! Comes in: a graph, its facts, and perhaps the kernels of a plan. Goes out: text, as Graphviz's DOT, as SVG laid out
//! here, or as one HTML file that holds the SVG and lets the reader move and zoom. The same input gives the same bytes.
//!
//! `picture` decides what is a box, `layout` where it stands (the layered method of Sugiyama, Tagawa and Toda 1981),
//! `dot`, `svg` and `html` write it down.

mod coordinates;
mod dot;
mod html;
mod layout;
mod order;
mod palette;
mod picture;
mod routes;
mod svg;

use crate::analysis::Facts;
use crate::ir::{Graph, NodeId};

/// A kernel of a plan and the nodes that it computes.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// Its name.
    pub name: String,
    /// What it does, in a line.
    pub what: String,
    /// The nodes.
    pub nodes: Vec<NodeId>,
}

/// The formats that a drawing is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Graphviz's DOT text.
    Dot,
    /// A picture.
    Svg,
    /// A page with the picture, to move and zoom in, and with details of what the pointer is over.
    Html,
}

impl Format {
    /// The format that a file's extension asks for.
    pub fn of_extension(extension: &str) -> Option<Format> {
        match extension.to_ascii_lowercase().as_str() {
            "dot" | "gv" => Some(Format::Dot),
            "svg" => Some(Format::Svg),
            "html" | "htm" => Some(Format::Html),
            _ => None,
        }
    }
}

/// Draws a graph.
pub fn draw(graph: &Graph, facts: &Facts, kernels: &[Kernel], format: Format) -> String {
    let picture = picture::picture(graph, facts, kernels);
    match format {
        Format::Dot => dot::dot(&picture),
        Format::Svg => svg::svg(&picture, &layout::layout(&picture)),
        Format::Html => html::html(&picture, &layout::layout(&picture)),
    }
}

#[cfg(test)]
mod tests;
