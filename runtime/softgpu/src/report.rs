//! Faults for readers: in a terminal, in the manner of a compiler's diagnostics, with the lines of the texts that are at hand;
//! and as JSON for programs.

use std::fmt::Write;

use serde::Serialize;

use crate::fault::{Fault, Kind, Place, Thread};

/// The texts that lines are quoted from.
#[derive(Clone, Debug, Default)]
pub struct Texts {
    files: Vec<(String, String)>,
    /// Whether to use the colours of a terminal.
    pub colour: bool,
}

impl Texts {
    /// No texts, no colours.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a text under the path that `.file` in the PTX names it by.
    #[must_use]
    pub fn with(mut self, path: &str, text: &str) -> Self {
        self.files.push((path.into(), text.into()));
        self
    }

    fn line(&self, path: &str, line: u32) -> Option<&str> {
        let found = self
            .files
            .iter()
            .find(|(known, _)| known == path || path.ends_with(&format!("/{known}")))?;
        found.1.lines().nth((line as usize).checked_sub(1)?)
    }

    fn paint(&self, text: &str, code: &str) -> String {
        if self.colour {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.into()
        }
    }
}

impl Kind {
    /// The name: `global-race`.
    pub fn name(self) -> &'static str {
        match self {
            Self::OutOfBounds => "out-of-bounds",
            Self::Misaligned => "misaligned",
            Self::UseAfterFree => "use-after-free",
            Self::Uninitialised => "uninitialised",
            Self::SharedRace => "shared-race",
            Self::GlobalRace => "global-race",
            Self::BarrierDivergence => "barrier-divergence",
            Self::WarpMask => "warp-mask",
            Self::Unaligned => "unaligned",
            Self::Deadlock => "deadlock",
            Self::Budget => "budget",
            Self::CoResidency => "co-residency",
            Self::NonCoherent => "non-coherent",
            Self::AsyncRace => "async-race",
            Self::Mbarrier => "mbarrier",
            Self::Cluster => "cluster",
            Self::Launch => "launch",
            Self::Trap => "trap",
        }
    }
}

/// A fault as a terminal shows it.
pub fn render(fault: &Fault, texts: &Texts) -> String {
    let mut out = String::new();
    let head = texts.paint(&format!("error[{}]", fault.kind.name()), "1;31");
    line(&mut out, format_args!("{head}: {}", fault.message));
    let who = fault.thread.map(name_thread);
    let kernel = format!(
        "kernel {}{}",
        fault.kernel,
        who.map_or(String::new(), |who| format!(", {who}"))
    );
    match &fault.place {
        Some(place) => quote(&mut out, texts, place, &kernel),
        None => line(&mut out, format_args!("  --> {kernel}")),
    }
    if let Some(earlier) = &fault.earlier {
        line(
            &mut out,
            format_args!("{}: {}", texts.paint("earlier", "1;34"), earlier.what),
        );
        quote(&mut out, texts, &earlier.place, &name_thread(earlier.thread));
    }
    if let Some(address) = &fault.address {
        line(&mut out, format_args!("  = address: {address}"));
    }
    if let Some(hint) = &fault.hint {
        line(&mut out, format_args!("  = {}: {hint}", texts.paint("help", "1;36")));
    }
    out
}

/// As [`render`] shows it without texts and colours.
impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(render(self, &Texts::new()).trim_end())
    }
}

impl std::error::Error for Fault {}

/// A place with the lines that are known of it.
fn quote(out: &mut String, texts: &Texts, place: &Place, who: &str) {
    let (name, number) = match &place.source {
        Some((path, number)) => (path.as_str(), *number),
        None => ("PTX", place.ptx_line),
    };
    line(out, format_args!("  --> {name}:{number}, {who}"));
    let width = number.max(place.ptx_line).to_string().len().max(3);
    let source = place
        .source
        .as_ref()
        .and_then(|(path, number)| Some((*number, texts.line(path, *number)?)));
    line(out, format_args!("{:width$} |", ""));
    if let Some((number, text)) = source {
        line(out, format_args!("{number:width$} | {}", text.trim_end()));
    }
    line(
        out,
        format_args!(
            "{:>width$} | {}  (PTX line {})",
            "ptx", place.instruction, place.ptx_line
        ),
    );
}

fn line(out: &mut String, text: std::fmt::Arguments) {
    // Writing to a string does not fail.
    let _ = writeln!(out, "{text}");
}

fn name_thread(thread: Thread) -> String {
    let [x, y, z] = thread.thread;
    let [bx, by, bz] = thread.block;
    format!("thread ({x},{y},{z}) of block ({bx},{by},{bz})")
}

/// What JSON reports hold.
#[derive(Serialize)]
struct Document<'a> {
    faults: &'a [Fault],
}

/// Faults as JSON: `{"faults": [...]}`, each with the fields of [`Fault`]. One document a run, so that the same seed gives the
/// same bytes.
pub fn json(faults: &[Fault]) -> String {
    serde_json::to_string_pretty(&Document { faults }).unwrap_or_else(|error| format!("{{\"error\": \"{error}\"}}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::Earlier;

    fn race() -> Fault {
        let place = |ptx_line, instruction: &str, source: u32| Place {
            ptx_line,
            instruction: instruction.into(),
            source: Some(("scan.cu".into(), source)),
        };
        let thread = |block, thread| Thread {
            block: [block, 0, 0],
            thread: [thread, 0, 0],
        };
        Fault {
            kind: Kind::GlobalRace,
            kernel: "scan".into(),
            message: "weak read of 4 bytes of h + 128 is not ordered after a weak write of 4 bytes there".into(),
            place: Some(place(210, "ld.global.u32 %r3, [%rd4];", 2)),
            thread: Some(thread(1, 3)),
            address: Some("h + 128".into()),
            earlier: Some(Earlier {
                thread: thread(0, 32),
                place: place(87, "st.global.u32 [%rd4], %r1;", 1),
                what: "weak write of 4 bytes".into(),
            }),
            hint: Some("order them".into()),
        }
    }

    #[test]
    fn a_terminal_shows_both_accesses_with_their_lines() {
        let texts = Texts::new().with("scan.cu", "h[i] = y;\n  x = h[j];\n");
        let expected = "\
error[global-race]: weak read of 4 bytes of h + 128 is not ordered after a weak write of 4 bytes there
  --> scan.cu:2, kernel scan, thread (3,0,0) of block (1,0,0)
    |
  2 |   x = h[j];
ptx | ld.global.u32 %r3, [%rd4];  (PTX line 210)
earlier: weak write of 4 bytes
  --> scan.cu:1, thread (32,0,0) of block (0,0,0)
    |
  1 | h[i] = y;
ptx | st.global.u32 [%rd4], %r1;  (PTX line 87)
  = address: h + 128
  = help: order them
";
        assert_eq!(render(&race(), &texts), expected);
    }

    #[test]
    fn what_is_not_known_is_left_out() {
        let bare = Fault {
            place: None,
            thread: None,
            address: None,
            earlier: None,
            hint: None,
            ..race()
        };
        let text = render(&bare, &Texts::new());
        assert_eq!(text.lines().nth(1), Some("  --> kernel scan"));
        assert_eq!(text.lines().count(), 2);
    }

    #[test]
    fn json_has_the_fields_by_name() {
        let value: serde_json::Value = serde_json::from_str(&json(&[race()])).unwrap();
        let fault = &value["faults"][0];
        assert_eq!(fault["kind"], "global-race");
        assert_eq!(fault["place"]["source"][1], 2);
        assert_eq!(fault["earlier"]["thread"]["thread"][0], 32);
    }

    #[test]
    fn names_are_those_of_json() {
        for kind in [
            Kind::OutOfBounds,
            Kind::UseAfterFree,
            Kind::CoResidency,
            Kind::AsyncRace,
            Kind::Mbarrier,
        ] {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.name());
        }
    }
}
