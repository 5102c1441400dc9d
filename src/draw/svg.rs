//! A scalable picture, with a legend under it.

use super::layout::{CHARACTER, Knot, Layout, Rect};
use super::palette::{escaped, fill, stroke};
use super::picture::{Arrow, Box, Group, Picture, Shape};
use std::fmt::Write;

/// Height of a line of the legend.
const LINE: f64 = 22.0;
/// Longer lines of the legend are cut.
const MAX_LEGEND: usize = 110;

/// `t-1`, `t+2`.
pub(super) fn delay_text(delay: i32) -> String {
    match delay > 0 {
        true => format!("t-{delay}"),
        false => format!("t+{}", -delay),
    }
}

/// Writes a picture as SVG.
pub(super) fn svg(picture: &Picture, layout: &Layout) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = write_all(&mut out, picture, layout);
    out
}

fn write_all(out: &mut String, picture: &Picture, layout: &Layout) -> std::fmt::Result {
    let legend = legend(picture);
    let longest = legend.iter().map(|(_, text)| text.chars().count()).max().unwrap_or(0);
    let width = layout.width.max(longest as f64 * CHARACTER + 90.0);
    let height = layout.height + 30.0 + legend.len() as f64 * LINE + 16.0;
    writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" viewBox=\"0 0 {width:.0} \
         {height:.0}\" font-family=\"ui-monospace, 'DejaVu Sans Mono', monospace\" font-size=\"12\">"
    )?;
    writeln!(out, "<title>{}</title>", escaped(&picture.title))?;
    writeln!(out, "{STYLE}")?;
    writeln!(out, "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>")?;
    for (arrow, knots) in picture.arrows.iter().zip(&layout.routes) {
        write_arrow(out, arrow, knots)?;
    }
    for (number, (drawn, rect)) in picture.boxes.iter().zip(&layout.boxes).enumerate() {
        write_box(out, picture, number, drawn, *rect)?;
    }
    for (arrow, knots) in picture.arrows.iter().zip(&layout.routes).filter(|(a, _)| a.delay != 0) {
        write_delay(out, arrow, knots)?;
    }
    for (line, (mark, text)) in legend.iter().enumerate() {
        let y = layout.height + 30.0 + line as f64 * LINE;
        write_mark(out, mark, y)?;
        writeln!(out, "<text x=\"64\" y=\"{:.0}\">{}</text>", y + 4.0, escaped(text))?;
    }
    writeln!(out, "</svg>")
}

const STYLE: &str = "<defs><marker id=\"tip\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" \
     markerHeight=\"7\" orient=\"auto\"><path d=\"M0 0.5 L8 4 L0 7.5 z\" fill=\"#555\"/></marker><marker id=\"late\" \
     viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" markerHeight=\"7\" orient=\"auto\"><path \
     d=\"M0 0.5 L8 4 L0 7.5 z\" fill=\"#b02a1a\"/></marker></defs>";

fn write_arrow(out: &mut String, arrow: &Arrow, knots: &[Knot]) -> std::fmt::Result {
    let (colour, dashes, tip) = match arrow.delay {
        0 => ("#555", "", "tip"),
        _ => ("#b02a1a", " stroke-dasharray=\"5 3\"", "late"),
    };
    writeln!(
        out,
        "<path class=\"arrow\" data-from=\"{}\" data-to=\"{}\" d=\"{}\" fill=\"none\" stroke=\"{colour}\"{dashes} \
         marker-end=\"url(#{tip})\"/>",
        arrow.from,
        arrow.to,
        path(knots)
    )
}

/// Cubic curves that have each knot's direction there.
fn path(knots: &[Knot]) -> String {
    let mut text = String::new();
    for (at, knot) in knots.iter().enumerate() {
        let Some(before) = at.checked_sub(1).map(|i| knots[i]) else {
            text += &format!("M{:.1} {:.1}", knot.x, knot.y);
            continue;
        };
        let (a, b) = (reach_of(&before, knot, 1.0), reach_of(knot, &before, -1.0));
        text += &format!(
            " C{:.1} {:.1} {:.1} {:.1} {:.1} {:.1}",
            a.0, a.1, b.0, b.1, knot.x, knot.y
        );
    }
    text
}

/// The control point of a knot on the way to another: far enough for a smooth curve, not so far that it leaves the gap
/// between two rows.
fn reach_of(knot: &Knot, other: &Knot, way: f64) -> (f64, f64) {
    let (dx, dy) = ((other.x - knot.x).abs(), (other.y - knot.y).abs());
    let reach = match knot.dx == 0.0 {
        true => (dx * 0.3).clamp(dy * 0.5, dy * 0.85),
        false => (dx * 0.4).max(18.0),
    };
    (knot.x + knot.dx * reach * way, knot.y + knot.dy * reach * way)
}

/// The delay, beside the middle of its arrow.
fn write_delay(out: &mut String, arrow: &Arrow, knots: &[Knot]) -> std::fmt::Result {
    let middle = knots.len() / 2;
    let (x, y) = match (knots.get(middle.saturating_sub(1)), knots.get(middle)) {
        (Some(a), Some(b)) if knots.len().is_multiple_of(2) => ((a.x + b.x) / 2.0 + 4.0, (a.y + b.y) / 2.0),
        (_, Some(b)) => (b.x + 3.0, b.y),
        _ => (0.0, 0.0),
    };
    let text = delay_text(arrow.delay);
    let y = y + 4.0;
    // Twice, the first time as a white edge, so that lines do not run through the letters.
    for look in ["fill=\"white\" stroke=\"white\" stroke-width=\"4\"", "fill=\"#b02a1a\""] {
        writeln!(
            out,
            "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"11\" {look}>{text}</text>"
        )?;
    }
    Ok(())
}

fn write_box(out: &mut String, picture: &Picture, number: usize, drawn: &Box, rect: Rect) -> std::fmt::Result {
    let Rect { x, y, w, h } = rect;
    let colour = drawn.recurrence.map_or("#ffffff", fill);
    let edge = drawn.kernels.first().map_or("#666666", |k| stroke(*k));
    let (radius, dashes) = match drawn.shape {
        Shape::Input => (h / 2.0, ""),
        Shape::Constant => (3.0, " stroke-dasharray=\"3 3\""),
        Shape::Product => (0.0, ""),
        Shape::Value => (6.0, ""),
    };
    writeln!(out, "<g class=\"box\" data-box=\"{number}\">")?;
    writeln!(out, "<title>{}</title>", escaped(&details(picture, drawn)))?;
    writeln!(
        out,
        "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{w:.1}\" height=\"{h:.1}\" rx=\"{radius:.1}\" fill=\"{colour}\" \
         stroke=\"{edge}\" stroke-width=\"{}\"{dashes}/>",
        if drawn.kernels.is_empty() { 1.0 } else { 2.0 }
    )?;
    if drawn.output {
        writeln!(
            out,
            "<path d=\"M{:.1} {:.1} h{:.1}\" stroke=\"#111\" stroke-width=\"3.5\"/>",
            x + w * 0.2,
            y + h,
            w * 0.6
        )?;
    }
    writeln!(
        out,
        "<text x=\"{:.1}\" y=\"{:.1}\"><tspan font-weight=\"bold\">{}</tspan> <tspan fill=\"#777\">{}</tspan></text>",
        x + 10.0,
        y + 17.0,
        escaped(&drawn.title),
        escaped(&drawn.axes)
    )?;
    if !drawn.text.is_empty() {
        writeln!(
            out,
            "<text x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            x + 10.0,
            y + 33.0,
            escaped(&drawn.text)
        )?;
    }
    writeln!(out, "</g>")
}

/// What a reader sees who points at a box.
fn details(picture: &Picture, drawn: &Box) -> String {
    let mut lines = vec![format!("{} {}", drawn.title, drawn.axes)];
    if !drawn.text.is_empty() {
        lines.push(format!("= {}", drawn.text));
    }
    if let Some(group) = drawn.recurrence.and_then(|r| picture.recurrences.get(r)) {
        lines.push(format!("recurrence {}: {}", group.name, group.what));
        lines.push(group.detail.clone());
    }
    for group in drawn.kernels.iter().filter_map(|k| picture.kernels.get(*k)) {
        lines.push(format!("kernel {}: {}", group.name, group.what));
    }
    if drawn.output {
        lines.push("an output of the cell".to_owned());
    }
    lines.join("\n")
}

enum Mark {
    Fill(&'static str),
    Edge(&'static str),
    Arrow,
    Late,
    Output,
}

fn legend(picture: &Picture) -> Vec<(Mark, String)> {
    let cut = |text: String| match text.char_indices().nth(MAX_LEGEND) {
        Some((at, _)) => format!("{}...", &text[..at]),
        None => text,
    };
    let line = |group: &Group| format!("{}: {}", group.name, group.what);
    let recurrences = picture.recurrences.iter().enumerate();
    let mut lines: Vec<(Mark, String)> = recurrences
        .map(|(r, g)| (Mark::Fill(fill(r)), cut(format!("recurrence {}", line(g)))))
        .collect();
    let kernels = picture.kernels.iter().enumerate();
    lines.extend(kernels.map(|(k, g)| (Mark::Edge(stroke(k)), cut(format!("kernel {}", line(g))))));
    lines.push((Mark::Arrow, "reads this frame's value".to_owned()));
    if picture.arrows.iter().any(|a| a.delay != 0) {
        lines.push((Mark::Late, "reads another frame's value".to_owned()));
    }
    lines.push((Mark::Output, "output of the cell".to_owned()));
    lines
}

fn write_mark(out: &mut String, mark: &Mark, y: f64) -> std::fmt::Result {
    let line = |colour: &str, dashes: &str, tip: &str| {
        format!("<path d=\"M24 {y:.0} h28\" stroke=\"{colour}\"{dashes} marker-end=\"url(#{tip})\"/>")
    };
    let rect = |inside: &str, edge: &str, width: f64| {
        format!(
            "<rect x=\"24\" y=\"{:.0}\" width=\"28\" height=\"14\" rx=\"3\" fill=\"{inside}\" stroke=\"{edge}\" \
             stroke-width=\"{width}\"/>",
            y - 7.0
        )
    };
    let text = match mark {
        Mark::Fill(colour) => rect(colour, "#666666", 1.0),
        Mark::Edge(colour) => rect("#ffffff", colour, 2.0),
        Mark::Arrow => line("#555", "", "tip"),
        Mark::Late => line("#b02a1a", " stroke-dasharray=\"5 3\"", "late"),
        Mark::Output => format!("<path d=\"M24 {y:.0} h28\" stroke=\"#111\" stroke-width=\"3.5\"/>"),
    };
    writeln!(out, "{text}")
}
