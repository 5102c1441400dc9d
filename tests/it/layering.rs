//! The folders are the pipeline: a stage may use only what comes before it. Reads the `use` lines and paths of the source.

use std::fs;
use std::path::{Path, PathBuf};

/// For each folder of `src`, the modules of this crate that it may name.
const MAY_USE: &[(&str, &[&str])] = &[
    ("diagnostics", &["diagnostics"]),
    ("syntax", &["diagnostics", "syntax"]),
    ("ir", &["diagnostics", "ir"]),
    ("lower", &["diagnostics", "syntax", "ir", "lower"]),
    ("transform", &["diagnostics", "ir", "transform"]),
    ("analysis", &["diagnostics", "ir", "analysis"]),
    ("reference", &["diagnostics", "ir", "transform", "reference"]),
    ("draw", &["ir", "analysis", "draw"]),
    ("schedule", &["diagnostics", "ir", "analysis", "schedule"]),
    ("codegen", &["codegen"]),
];

/// Crates that only some places may use, outside tests: (crate, where it may be named).
const ONLY_IN: &[(&str, &[&str])] = &[
    ("nom::", &["src/syntax/"]),
    ("petgraph::", &["src/ir/", "src/analysis/", "src/lower/order.rs"]),
    ("tera::", &["src/codegen/"]),
    ("cudarc::", &["runtime/src/"]),
    ("libloading::", &["runtime/nvrtc-sys/src/", "runtime/src/"]),
    ("unsafe ", &["runtime/"]),
    ("std::fs", &["src/cli/", "src/main.rs", "runtime/"]),
    ("std::env", &["src/cli/", "src/main.rs", "runtime/"]),
    ("println!", &["src/cli/", "src/main.rs"]),
    ("Instant::now", &["src/cli/", "src/main.rs", "runtime/"]),
];

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .filter_map(|e| e.ok().map(|e| e.path()))
        .collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs")
            && !path
                .file_name()
                .is_some_and(|n| n.to_string_lossy().starts_with("tests"))
        {
            found.push(path);
        }
    }
}

/// The lines of code of a file, without its test module and comments.
fn code(path: &Path) -> Vec<(usize, String)> {
    let text = fs::read_to_string(path).expect("source is readable");
    let shipped = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or("").to_owned();
    let lines = shipped.lines().enumerate();
    lines
        .map(|(i, l)| (i + 1, l.split("//").next().unwrap_or("").to_owned()))
        .collect()
}

#[test]
fn stages_use_only_what_comes_before_them() {
    let mut breaches = Vec::new();
    for (folder, may_use) in MAY_USE {
        let mut sources = Vec::new();
        files(&root().join("src").join(folder), &mut sources);
        assert!(!sources.is_empty(), "src/{folder} is empty");
        for path in sources {
            for (line, text) in code(&path) {
                for used in text.split("crate::").skip(1) {
                    let module: String = used.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
                    let known =
                        MAY_USE.iter().any(|(name, _)| *name == module) || module == "driver" || module == "api";
                    if known && !may_use.contains(&module.as_str()) {
                        breaches.push(format!("{}:{line} uses {module}", path.display()));
                    }
                }
            }
        }
    }
    assert!(breaches.is_empty(), "layers are breached:\n{}", breaches.join("\n"));
}

#[test]
fn crates_stay_in_their_places() {
    let mut sources = Vec::new();
    for folder in ["src", "runtime/src", "runtime/nvrtc-sys/src"] {
        files(&root().join(folder), &mut sources);
    }
    let mut breaches = Vec::new();
    for path in sources {
        let name = path
            .strip_prefix(root())
            .expect("below the root")
            .to_string_lossy()
            .replace('\\', "/");
        for (line, text) in code(&path) {
            for (what, places) in ONLY_IN {
                if text.contains(what) && !places.iter().any(|place| name.starts_with(place)) {
                    breaches.push(format!("{name}:{line} has {what}"));
                }
            }
        }
    }
    assert!(breaches.is_empty(), "crates out of place:\n{}", breaches.join("\n"));
}
