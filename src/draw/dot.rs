//! Graphviz's DOT.

use super::palette::{fill, stroke};
use super::picture::{Box, Picture, Shape};
use std::fmt::Write;

/// Writes a picture as DOT: a cluster a recurrence, delayed reads dashed, kernels by the colour of the outline.
pub(super) fn dot(picture: &Picture) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = write_all(&mut out, picture);
    out
}

fn write_all(out: &mut String, picture: &Picture) -> std::fmt::Result {
    writeln!(out, "digraph \"{}\" {{", quoted(&picture.title))?;
    writeln!(
        out,
        "  node [shape=box, style=\"rounded,filled\", fillcolor=white, fontname=monospace, fontsize=10]"
    )?;
    writeln!(out, "  edge [fontname=monospace, fontsize=9]")?;
    for (number, group) in picture.recurrences.iter().enumerate() {
        writeln!(out, "  subgraph cluster_{number} {{")?;
        writeln!(out, "    label=\"{}: {}\"", quoted(&group.name), quoted(&group.what))?;
        writeln!(out, "    style=\"rounded,filled\"; color=\"{}\"", fill(number))?;
        write_boxes(out, picture, Some(number), "    ")?;
        writeln!(out, "  }}")?;
    }
    write_boxes(out, picture, None, "  ")?;
    for arrow in &picture.arrows {
        write!(out, "  n{} -> n{}", arrow.from, arrow.to)?;
        match arrow.delay {
            0 => writeln!(out)?,
            delay => writeln!(
                out,
                " [style=dashed, constraint=false, label=\"{}\"]",
                super::svg::delay_text(delay)
            )?,
        }
    }
    writeln!(out, "}}")
}

fn write_boxes(out: &mut String, picture: &Picture, recurrence: Option<usize>, indent: &str) -> std::fmt::Result {
    for (number, drawn) in picture.boxes.iter().enumerate() {
        if drawn.recurrence == recurrence {
            write!(out, "{indent}n{number} [label=\"{}\"", label(drawn))?;
            match drawn.shape {
                Shape::Input => write!(out, ", shape=oval")?,
                Shape::Constant => write!(out, ", style=\"rounded,filled,dashed\"")?,
                Shape::Product | Shape::Value => {}
            }
            if drawn.output {
                write!(out, ", peripheries=2")?;
            }
            if let Some(kernel) = drawn.kernels.first() {
                write!(out, ", color=\"{}\", penwidth=2", stroke(*kernel))?;
            }
            writeln!(out, "]")?;
        }
    }
    Ok(())
}

fn label(drawn: &Box) -> String {
    let title = format!("{} {}", quoted(&drawn.title), quoted(&drawn.axes));
    match drawn.text.is_empty() {
        true => title,
        false => format!("{title}\\n{}", quoted(&drawn.text)),
    }
}

fn quoted(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
