//! Reads files of cells and prints what is wrong with them.

use super::{CellArgs, Failure};
use rnnc::diagnostics::{Diagnostics, render};
use rnnc::driver::Choice;
use std::io::IsTerminal;
use std::path::Path;

/// A file of cells.
pub struct Source {
    /// Its name, for messages.
    pub name: String,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// Reads a file; `-` is standard input.
pub fn read(path: &Path) -> Result<Source, Failure> {
    let name = path.display().to_string();
    let bytes = if name == "-" {
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut std::io::stdin(), &mut bytes).map(|_| bytes)
    } else {
        std::fs::read(path)
    };
    let bytes = bytes.map_err(|error| Failure::Input(format!("{name}: {error}")))?;
    Ok(Source { name, bytes })
}

/// Which cell of the file is meant.
pub fn choice(args: &CellArgs) -> Choice {
    let stem = args.file.file_stem().map(|s| s.to_string_lossy().into_owned());
    Choice {
        cell: args.cell.clone(),
        stem,
    }
}

impl Source {
    /// The text, with what is not UTF-8 replaced.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }

    /// Prints messages to standard error.
    pub fn report(&self, diagnostics: &Diagnostics) {
        if !diagnostics.0.is_empty() {
            let color = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
            eprint!("{}", render::render(diagnostics, &self.name, &self.text(), color));
        }
    }

    /// Prints messages and fails.
    pub fn fail(&self, diagnostics: &Diagnostics) -> Failure {
        self.report(diagnostics);
        Failure::Reported
    }
}
