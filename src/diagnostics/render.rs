//! Diagnostics for people and for tools: source lines with carets for a terminal, or JSON with lines and columns.
//!
//! Both take any spans with any text, also text that a lossy conversion made out of bytes: places are moved to the next
//! character that exists.

use super::{Diagnostic, Diagnostics, Label, Severity, Span};
use codespan_reporting::diagnostic as codespan;
use codespan_reporting::files::{Error, SimpleFile};
use codespan_reporting::term::{self, Config, Styles, StylesWriter, termcolor::Buffer};
use serde_json::{Value, json};

/// Longer lines are not printed whole: an excerpt around each label stands for them.
const MAX_LINE: usize = 400;

/// How many bytes an excerpt shows on each side.
const EXCERPT: usize = 30;

/// All messages with their source lines, hints as notes, and a last line that counts them; empty if there are none.
/// With `color` the text holds ANSI escapes.
pub fn render(diagnostics: &Diagnostics, file_name: &str, source: &str, color: bool) -> String {
    if diagnostics.0.is_empty() {
        return String::new();
    }
    let printable = printable(source);
    let source = printable.as_str();
    let files = SimpleFile::new(file_name, source);
    let lines = Lines::new(source);
    let mut out = String::new();
    for diagnostic in &diagnostics.0 {
        let shown = translate(diagnostic, &lines);
        // The only failures are places outside the file, which `translate` has moved inside.
        out += &emit(&files, &shown, color).unwrap_or_else(|_| format!("{}\n", diagnostic.message));
    }
    out + &summary(diagnostics) + "\n"
}

/// The text with every control character but tabs and line ends made visible, byte for byte, so that a file cannot
/// send escapes to the terminal.
fn printable(source: &str) -> String {
    source.replace(|c: char| c.is_ascii_control() && !matches!(c, '\n' | '\r' | '\t'), "?")
}

/// `2 errors, 1 warning`, and where to read more.
pub fn summary(diagnostics: &Diagnostics) -> String {
    let errors = count(diagnostics, Severity::Error);
    let warnings = count(diagnostics, Severity::Warning);
    let plural = |n: usize, noun: &str| match n {
        0 => None,
        1 => Some(format!("1 {noun}")),
        _ => Some(format!("{n} {noun}s")),
    };
    let counts: Vec<String> = [plural(errors, "error"), plural(warnings, "warning")]
        .into_iter()
        .flatten()
        .collect();
    let first = diagnostics
        .0
        .iter()
        .max_by_key(|d| (d.severity == Severity::Error, std::cmp::Reverse(d.code)));
    match first {
        Some(first) => format!(
            "{}; `rnnc explain {}` says more",
            counts.join(", "),
            first.code.as_str()
        ),
        None => "no errors".to_string(),
    }
}

/// Everything a tool may want of one file: counts, and each message with lines and columns (both from 1, columns in
/// characters) beside its bytes.
pub fn to_json(diagnostics: &Diagnostics, file_name: &str, source: &str) -> Value {
    let lines = Lines::new(source);
    let label = |label: &Label| {
        let [start, end] = [label.span.start, label.span.end].map(|byte| {
            let (line, column) = lines.position(byte as usize);
            json!({ "byte": byte, "line": line, "column": column })
        });
        json!({ "start": start, "end": end, "text": label.text, "primary": label.primary })
    };
    let one = |d: &Diagnostic| {
        json!({
            "code": d.code,
            "severity": d.severity,
            "message": d.message,
            "labels": d.labels.iter().map(label).collect::<Vec<_>>(),
            "hints": d.hints,
        })
    };
    json!({
        "file": file_name,
        "errors": count(diagnostics, Severity::Error),
        "warnings": count(diagnostics, Severity::Warning),
        "diagnostics": diagnostics.0.iter().map(one).collect::<Vec<_>>(),
    })
}

fn count(diagnostics: &Diagnostics, severity: Severity) -> usize {
    diagnostics.0.iter().filter(|d| d.severity == severity).count()
}

fn emit(files: &SimpleFile<&str, &str>, shown: &codespan::Diagnostic<()>, color: bool) -> Result<String, Error> {
    let config = Config::default();
    if !color {
        return term::emit_into_string(&config, files, shown);
    }
    let styles = Styles::default();
    let mut buffer = Buffer::ansi();
    term::emit_to_write_style(&mut StylesWriter::new(&mut buffer, &styles), &config, files, shown)?;
    Ok(String::from_utf8_lossy(buffer.as_slice()).into_owned())
}

/// Our diagnostic as codespan wants it.
fn translate(diagnostic: &Diagnostic, lines: &Lines<'_>) -> codespan::Diagnostic<()> {
    let severity = match diagnostic.severity {
        Severity::Error => codespan::Severity::Error,
        Severity::Warning => codespan::Severity::Warning,
    };
    let shown = codespan::Diagnostic::new(severity)
        .with_code(diagnostic.code.as_str())
        .with_message(&diagnostic.message);
    let hints = diagnostic.hints.iter().map(|hint| format!("hint: {hint}"));
    if diagnostic.labels.iter().any(|l| lines.is_long(l.span)) {
        let excerpts = diagnostic.labels.iter().map(|l| lines.excerpt(l));
        return shown.with_notes(excerpts.chain(hints).collect());
    }
    let labels = diagnostic.labels.iter().map(|label| {
        let style = if label.primary {
            codespan::LabelStyle::Primary
        } else {
            codespan::LabelStyle::Secondary
        };
        codespan::Label::new(style, (), lines.inside(label.span)).with_message(&label.text)
    });
    shown.with_labels(labels.collect()).with_notes(hints.collect())
}

/// Where the lines of a text start.
struct Lines<'s> {
    source: &'s str,
    starts: Vec<usize>,
}

impl<'s> Lines<'s> {
    fn new(source: &'s str) -> Lines<'s> {
        let starts = std::iter::once(0)
            .chain(source.match_indices('\n').map(|(at, _)| at + 1))
            .collect();
        Lines { source, starts }
    }

    /// The next place that is between two characters of the text.
    fn boundary(&self, byte: usize) -> usize {
        (byte..self.source.len())
            .find(|&b| self.source.is_char_boundary(b))
            .unwrap_or(self.source.len())
    }

    fn inside(&self, span: Span) -> std::ops::Range<usize> {
        let start = self.boundary(span.start as usize);
        start..self.boundary(span.end as usize).max(start)
    }

    /// The index of the line that holds a byte.
    fn line(&self, byte: usize) -> usize {
        self.starts.partition_point(|&start| start <= byte) - 1
    }

    /// Line and column, from 1.
    fn position(&self, byte: usize) -> (usize, usize) {
        let byte = self.boundary(byte);
        let line = self.line(byte);
        (line + 1, self.source[self.starts[line]..byte].chars().count() + 1)
    }

    /// Whether the first or last line of a span is too long to be printed.
    fn is_long(&self, span: Span) -> bool {
        let range = self.inside(span);
        [range.start, range.end].into_iter().any(|byte| {
            let line = self.line(byte);
            let end = self.starts.get(line + 1).copied().unwrap_or(self.source.len());
            end - self.starts[line] > MAX_LINE
        })
    }

    /// The place and the text around its start, in one line.
    fn excerpt(&self, label: &Label) -> String {
        let (line, column) = self.position(label.span.start as usize);
        let at = self.boundary(label.span.start as usize);
        let line_start = self.starts[line - 1];
        let from = self.boundary(at.saturating_sub(EXCERPT).max(line_start));
        let to = self.boundary(at + EXCERPT);
        let text = self.source[from..to].lines().next().unwrap_or("");
        let colon = if label.text.is_empty() { "" } else { ": " };
        format!("line {line}, column {column}{colon}{}, at `{text}`", label.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostics::Code;

    fn sample(source: &str) -> Diagnostics {
        let at = |text: &str| {
            source
                .find(text)
                .map(|s| Span::new(s, s + text.len()))
                .unwrap_or_default()
        };
        Diagnostics(vec![
            Diagnostic::new(Code::SilentOuter, "`+` would give [I, H]", at("x + W @ x"))
                .label("no operand has both axes")
                .also(at("[I]"), "declared here")
                .hint("use one dimension for both, or `expand`"),
            Diagnostic::new(Code::UnusedEquation, "`z` is never used", at("z")).hint("remove it"),
        ])
    }

    #[test]
    fn a_message_shows_its_lines_labels_and_hints() {
        let source = "cell c(I, H) {\n  input x: [I]\n\ty = x + W @ x # \u{3b1}\n  z = 1\n}\n";
        insta::assert_snapshot!(render(&sample(source), "c.rnn", source, false));
    }

    #[test]
    fn color_adds_escapes_only() {
        let source = "cell c(I, H) {\n  input x: [I]\n  y = x + W @ x\n  z = 1\n}\n";
        let colored = render(&sample(source), "c.rnn", source, true);
        assert!(colored.contains("\u{1b}["));
        let mut plain = String::new();
        let mut rest = colored.as_str();
        while let Some(escape) = rest.find('\u{1b}') {
            plain += &rest[..escape];
            rest = rest[escape..].split_once('m').map_or("", |(_, after)| after);
        }
        assert_eq!(plain + rest, render(&sample(source), "c.rnn", source, false));
    }

    #[test]
    fn json_has_lines_and_columns_in_characters() {
        let source = "\u{3b1}\u{3b1} z\n  x + W @ x [I]";
        let value = to_json(&sample(source), "c.rnn", source);
        assert_eq!(value["errors"], 1);
        assert_eq!(value["warnings"], 1);
        let labels = &value["diagnostics"][0]["labels"];
        assert_eq!(labels[0]["start"], json!({ "byte": 9, "line": 2, "column": 3 }));
        assert_eq!(labels[0]["end"], json!({ "byte": 18, "line": 2, "column": 12 }));
        assert_eq!(value["diagnostics"][1]["labels"][0]["start"]["column"], 4);
        assert_eq!(value["diagnostics"][1]["severity"], "warning");
    }

    #[test]
    fn places_outside_the_text_or_inside_a_character_are_moved() {
        for source in ["", "\u{1d538}", "a\n", "\u{fffd}\u{fffd}\n\u{3b1}"] {
            for start in 0..6 {
                for end in 0..9 {
                    let one = Diagnostic::new(Code::NotText, "m", Span::new(start, end)).label("here");
                    let all = Diagnostics(vec![one]);
                    assert!(render(&all, "f", source, false).contains("E0001"));
                    assert_eq!(to_json(&all, "f", source)["errors"], 1);
                }
            }
        }
    }

    #[test]
    fn long_lines_are_cut() {
        let source = format!("y = {} + q", "a + ".repeat(100_000));
        let at = source.len() - 1;
        let one = Diagnostic::new(Code::UnknownName, "no value is named `q`", Span::new(at, at + 1));
        let text = render(&Diagnostics(vec![one]), "f", &source, false);
        assert!(text.len() < 300, "{}", text.len());
        assert!(text.contains("line 1, column 400008"), "{text}");
    }

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        let source = "y = \u{1b}[31m z\u{7}";
        let text = render(&sample(source), "f", source, false);
        assert!(
            !text.contains(['\u{1b}', '\u{7}']) && text.contains("y = ?[31m z?"),
            "{text}"
        );
    }

    #[test]
    fn the_summary_counts() {
        let all = sample("");
        assert_eq!(summary(&all), "1 error, 1 warning; `rnnc explain E0202` says more");
        assert_eq!(
            summary(&Diagnostics(vec![all.0[1].clone(); 2])),
            "2 warnings; `rnnc explain W0503` says more"
        );
        assert_eq!(render(&Diagnostics::default(), "f", "", false), "");
    }
}
