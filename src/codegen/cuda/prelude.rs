//! The small device functions that emitted text may use; a file gets the ones it names, and what those name.
//!
//! They live in `prelude/*.cu`, one file a concern, entries separated by blank lines before a comment or `#define`.

use super::names::identifier;
use std::collections::BTreeSet;

/// Which architectures a file of the prelude is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum For {
    /// All.
    Any,
    /// This one and newer.
    From(u32),
    /// Older ones.
    Below(u32),
}

/// The files, in the order in which their entries are emitted: an entry may name earlier ones.
const FILES: &[(For, &str)] = &[
    (For::Any, include_str!("prelude/constants.cu")),
    (For::Any, include_str!("prelude/f16.cu")),
    (For::From(80), include_str!("prelude/bf16.cu")),
    (For::Below(80), include_str!("prelude/bf16_sm75.cu")),
    (For::Any, include_str!("prelude/math.cu")),
    (For::Any, include_str!("prelude/math_fast.cu")),
    (For::Any, include_str!("prelude/lanes.cu")),
    (For::Any, include_str!("prelude/dots.cu")),
    (For::Any, include_str!("prelude/folds.cu")),
    (For::Any, include_str!("prelude/exchange.cu")),
];

/// A function, type or macro.
struct Entry<'a> {
    name: &'a str,
    text: &'a str,
}

/// Names of all entries.
pub fn names() -> impl Iterator<Item = &'static str> {
    FILES.iter().flat_map(|(_, file)| entries(file)).map(|e| e.name)
}

/// The entries that `text` needs on this architecture, as text.
pub fn needed(text: &str, sm: u32) -> String {
    let all: Vec<Entry> = FILES
        .iter()
        .filter(|(arch, _)| arch.includes(sm))
        .flat_map(|(_, file)| entries(file))
        .collect();
    let mut wanted: BTreeSet<&str> = words(text).collect();
    // Entries name earlier ones only, so one pass backwards finds everything.
    let mut kept: Vec<&str> = Vec::new();
    for entry in all.iter().rev().filter(|e| e.is_used(&mut wanted)) {
        kept.push(entry.text);
    }
    kept.reverse();
    kept.join("\n\n")
}

impl For {
    fn includes(self, sm: u32) -> bool {
        match self {
            For::Any => true,
            For::From(least) => sm >= least,
            For::Below(limit) => sm < limit,
        }
    }
}

impl<'a> Entry<'a> {
    fn is_used(&self, wanted: &mut BTreeSet<&'a str>) -> bool {
        let used = wanted.contains(self.name);
        if used {
            wanted.extend(words(self.text));
        }
        used
    }
}

/// Cuts a file at blank lines that a line at the margin follows which opens an entry.
fn entries(file: &str) -> Vec<Entry<'_>> {
    let mut starts: Vec<usize> = vec![0];
    starts.extend(
        file.match_indices("\n\n")
            .map(|(at, _)| at + 2)
            .filter(|at| file[*at..].starts_with("//") || file[*at..].starts_with('#')),
    );
    let ends = starts.iter().skip(1).copied().chain([file.len()]);
    starts
        .iter()
        .zip(ends)
        .map(|(start, end)| file[*start..end].trim_end())
        .map(|text| Entry {
            name: entry_name(text),
            text,
        })
        .collect()
}

/// The word before the first bracket of the first line that is no comment; for types and macros the second word.
fn entry_name(text: &str) -> &str {
    let line = text.lines().find(|l| !l.starts_with("//")).unwrap_or("");
    match line.split_once('(') {
        Some((head, _)) if !line.starts_with('#') => {
            head.rsplit(' ').next().unwrap_or(head).trim_start_matches(['*', '&'])
        }
        _ => line.split(' ').nth(1).unwrap_or(line),
    }
}

/// The identifiers in a text, comments aside.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
        .map(|line| line.split_once("//").map_or(line, |(code, _)| code))
        .flat_map(|code| code.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')))
        .filter(|w| !w.is_empty() && identifier(w) == *w)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_gets_what_it_names_and_what_that_names() {
        let text = needed("// gelu\ny = softplus(x) + INFINITY;", 80);
        let order: Vec<&str> = ["#define INFINITY", "float relu(", "float softplus("]
            .into_iter()
            .filter(|part| text.contains(part))
            .collect();
        assert_eq!(order.len(), 3);
        assert!(!text.contains("struct") && !text.contains("gelu"));
        assert!(text.find("float relu(") < text.find("float softplus("));
    }

    #[test]
    fn every_entry_has_a_name_and_a_comment() {
        for (_, file) in FILES {
            for entry in entries(file) {
                assert_eq!(identifier(entry.name), entry.name, "{}", entry.text);
                assert!(
                    entry.text.starts_with("//") || entry.text.starts_with('#'),
                    "{}",
                    entry.text
                );
            }
        }
    }

    #[test]
    fn old_architectures_convert_bf16_by_hand() {
        assert!(needed("bf16", 75).contains("0x7fff"));
        assert!(needed("bf16", 90).contains("cvt.rn.bf16.f32"));
    }

    /// One backward pass is enough only if no entry names a later one.
    #[test]
    fn entries_name_earlier_ones_only() {
        let all: Vec<Entry> = FILES.iter().flat_map(|(_, file)| entries(file)).collect();
        for (i, entry) in all.iter().enumerate() {
            let later: BTreeSet<&str> = all[i + 1..]
                .iter()
                .map(|e| e.name)
                .filter(|n| *n != entry.name)
                .collect();
            assert!(!words(entry.text).any(|w| later.contains(w)), "{}", entry.name);
        }
    }
}
