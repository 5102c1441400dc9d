//! Colours, and text made safe for the formats.

/// Light fills for recurrences: told apart by hue, also by readers who confuse red and green.
const FILLS: [&str; 8] = [
    "#cfe3f7", "#fde0c2", "#d3eed3", "#f7d0dc", "#e2d8f3", "#f5efb8", "#cdeeed", "#e8d9cb",
];

/// Strong colours for kernels.
const STROKES: [&str; 8] = [
    "#0072b2", "#d55e00", "#009e73", "#cc3377", "#6f4fb5", "#a08a00", "#1098a6", "#7a4a21",
];

/// The fill of a recurrence.
pub(super) fn fill(number: usize) -> &'static str {
    FILLS[number % FILLS.len()]
}

/// The colour of a kernel.
pub(super) fn stroke(number: usize) -> &'static str {
    STROKES[number % STROKES.len()]
}

/// Text for XML, between tags or in quotes.
pub(super) fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            c => safe.push(c),
        }
    }
    safe
}
