//! One item as text: pieces are added from left to right, comments find their places between them, long lines are broken.

use crate::diagnostics::Span;

/// Lines are broken behind this column where an item has a place for it.
const WIDTH: usize = 100;

/// Comments that are still to be printed, in order, and the source they stand in.
pub(super) struct Comments<'s> {
    source: &'s str,
    pending: std::iter::Peekable<std::vec::IntoIter<Span>>,
    /// The end of what was printed last.
    pub printed: usize,
}

impl<'s> Comments<'s> {
    pub(super) fn new(source: &'s str, comments: Vec<Span>) -> Comments<'s> {
        let pending = comments.into_iter().peekable();
        Comments {
            source,
            pending,
            printed: 0,
        }
    }

    /// The text of the next comment that starts before `place`, and how many newlines stand before it.
    pub(super) fn next(&mut self, place: usize) -> Option<(&'s str, usize)> {
        let span = self.pending.next_if(|c| (c.start as usize) < place)?;
        let newlines = self.newlines(span.start as usize);
        self.printed = span.end as usize;
        Some((&self.source[span.range()], newlines))
    }

    /// The text of the next comment if it stands on the line of what was printed last, with no other token between
    /// but the end of a head.
    pub(super) fn next_on_line(&mut self) -> Option<&'s str> {
        let start = self.pending.peek()?.start as usize;
        let between = self.source.get(self.printed..start).unwrap_or("");
        if between.contains(|c| !matches!(c, ' ' | '\t' | '(' | ')' | '{')) {
            return None;
        }
        self.next(start + 1).map(|(text, _)| text)
    }

    /// How many newlines stand between what was printed last and `place`.
    pub(super) fn newlines(&self, place: usize) -> usize {
        self.source
            .get(self.printed..place)
            .map_or(0, |between| between.matches('\n').count())
    }
}

/// The cost of a break that is taken only where there is no other.
pub(super) const LAST_RESORT: u32 = u32::MAX / 2;

/// A part of a line that is not broken.
#[derive(Default)]
struct Segment {
    text: String,
    /// How unwelcome a break behind it is; the least unwelcome is taken first.
    cost: u32,
    /// A comment behind it, which ends the line.
    comment: Option<String>,
}

impl Segment {
    /// With the blank behind it.
    fn width(&self) -> usize {
        self.text.chars().count() + 1
    }
}

/// An item while it is printed.
pub(super) struct Line<'c, 's> {
    comments: &'c mut Comments<'s>,
    segments: Vec<Segment>,
    nesting: u32,
}

impl<'c, 's> Line<'c, 's> {
    pub(super) fn new(comments: &'c mut Comments<'s>) -> Self {
        Line {
            comments,
            segments: vec![Segment::default()],
            nesting: 0,
        }
    }

    /// The source that spans refer to.
    pub(super) fn source(&self) -> &'s str {
        self.comments.source
    }

    /// Adds text whose place in the source is not known.
    pub(super) fn text(&mut self, text: &str) {
        if let Some(last) = self.segments.last_mut() {
            last.text += text;
        }
    }

    /// Adds a token, behind the comments that stand before it in the source.
    pub(super) fn token(&mut self, text: &str, span: Span) {
        while let Some((comment, newlines)) = self.comments.next(span.start as usize) {
            if newlines > 0 && !self.is_at_line_start() {
                self.break_off(0, Some(String::new()));
            }
            self.break_off(0, Some(comment.to_string()));
        }
        self.text(text);
        self.comments.printed = span.end as usize;
    }

    fn is_at_line_start(&self) -> bool {
        match self.segments.as_slice() {
            [.., before, last] => last.text.is_empty() && before.comment.is_some(),
            _ => false,
        }
    }

    /// The last `bracket.len()` bytes of a span.
    pub(super) fn closing(&mut self, bracket: &str, span: Span) {
        self.nesting -= 1;
        self.token(
            bracket,
            Span {
                start: span.end - bracket.len() as u32,
                end: span.end,
            },
        );
    }

    /// Adds an opening bracket; what is inside breaks less willingly.
    pub(super) fn opening(&mut self, bracket: &str) {
        self.nesting += 1;
        self.text(bracket);
    }

    /// A place where a blank stands or the line is broken; `cost` is 0 to 3 within one pair of brackets.
    pub(super) fn blank(&mut self, cost: u32) {
        self.break_off(self.nesting * 4 + cost, None);
    }

    fn break_off(&mut self, cost: u32, comment: Option<String>) {
        if let Some(last) = self.segments.last_mut() {
            (last.cost, last.comment) = (cost, comment);
        }
        self.segments.push(Segment::default());
    }

    /// The text, its first line indented by `first` blanks, the others by `rest`; a comment on the line of its end
    /// stays there. No newline at the end.
    pub(super) fn finish(mut self, first: usize, rest: usize) -> String {
        if let Some(comment) = self.comments.next_on_line() {
            self.break_off(0, Some(comment.to_string()));
            self.segments.pop();
        }
        let mut lines = Vec::new();
        let mut line: Vec<&Segment> = Vec::new();
        let mut used = 0;
        for segment in &self.segments {
            line.push(segment);
            used += segment.width();
            let indent = |lines: &Vec<String>| if lines.is_empty() { first } else { rest };
            while indent(&lines) + used > WIDTH + 1 && line.len() > 1 {
                let tail = line.split_off(cheapest_break(&line));
                lines.push(write(&line, indent(&lines)));
                used = tail.iter().map(|s| s.width()).sum();
                line = tail;
            }
            if segment.comment.is_some() {
                lines.push(write(&line, indent(&lines)));
                line.clear();
                used = 0;
            }
        }
        if !line.is_empty() {
            let indent = if lines.is_empty() { first } else { rest };
            lines.push(write(&line, indent));
        }
        lines.join("\n")
    }
}

/// How many segments stay on the line: up to the last of the cheapest breaks.
fn cheapest_break(line: &[&Segment]) -> usize {
    let candidates = line[..line.len() - 1].iter().enumerate();
    candidates
        .min_by_key(|(n, s)| (s.cost, std::cmp::Reverse(*n)))
        .map_or(1, |(n, _)| n + 1)
}

fn write(line: &[&Segment], indent: usize) -> String {
    let texts: Vec<&str> = line.iter().map(|s| s.text.as_str()).collect();
    let text = texts.join(" ");
    let comment = line.last().and_then(|s| s.comment.as_deref()).unwrap_or("");
    let gap = if text.trim().is_empty() || comment.is_empty() {
        ""
    } else {
        "  "
    };
    format!("{:indent$}{}{gap}{comment}", "", text.trim_end())
}
