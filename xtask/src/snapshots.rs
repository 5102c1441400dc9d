//! Snapshots that no test compares with any more are found: insta lists those that it read, the tree lists those that exist.

use crate::shell::Place;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Where insta shall append the path of every snapshot it reads; emptied.
pub(crate) fn fresh_list(place: &Place) -> Result<String, String> {
    let list = place.target.join("snapshots-read.txt");
    fs::create_dir_all(&place.target)
        .and_then(|()| fs::write(&list, ""))
        .map_err(|e| format!("cannot write {}: {e}", list.display()))?;
    list.to_str()
        .map(str::to_owned)
        .ok_or_else(|| format!("{} is not UTF-8", list.display()))
}

/// Fails if there are snapshots that were not read, or new ones that nobody has accepted.
pub(crate) fn check(place: &Place, list: &str) -> Result<(), String> {
    let text = fs::read_to_string(list).map_err(|e| format!("cannot read {list}: {e}"))?;
    let read: BTreeSet<PathBuf> = text
        .lines()
        .filter_map(|line| place.root.join(line).canonicalize().ok())
        .collect();
    let mut present = Vec::new();
    for folder in ["src", "tests", "runtime", "examples", "grammar", "templates", "xtask"] {
        walk(&place.root.join(folder), &mut present);
    }
    let stray = |p: &&PathBuf| is_pending(p) || p.canonicalize().is_ok_and(|p| !read.contains(&p));
    let strays: Vec<String> = present.iter().filter(stray).map(|p| p.display().to_string()).collect();
    eprintln!("{} snapshots, {} of them read by tests", present.len(), read.len());
    if strays.is_empty() {
        return Ok(());
    }
    Err(format!(
        "no test reads these snapshots (remove them, or accept the new ones):\n  {}",
        strays.join("\n  ")
    ))
}

fn is_pending(path: &Path) -> bool {
    path.extension().is_some_and(|e| e != "snap")
}

/// Every `.snap`, `.snap.new` and `.pending-snap` below a folder, sorted within each folder.
fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|e| e.path())
        .collect();
    entries.sort();
    for path in entries {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() && name != "target" {
            walk(&path, found);
        } else if [".snap", ".snap.new", ".pending-snap"]
            .iter()
            .any(|end| name.ends_with(end))
        {
            found.push(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strays_and_pending_snapshots_fail() {
        let root = std::env::temp_dir().join(format!("xtask-snapshots-{}", std::process::id()));
        let folder = root.join("tests/it/snapshots");
        fs::create_dir_all(&folder).unwrap();
        let place = Place {
            target: root.join("target"),
            root: root.clone(),
        };
        let list = fresh_list(&place).unwrap();
        fs::write(folder.join("a.snap"), "").unwrap();
        let stray = check(&place, &list).unwrap_err();
        assert!(stray.contains("a.snap"), "{stray}");
        // insta writes paths as its caller's file has them, `..` and all.
        fs::write(
            &list,
            format!("{}\n", root.join("tests/it/../it/snapshots/a.snap").display()),
        )
        .unwrap();
        check(&place, &list).unwrap();
        fs::write(folder.join("b.snap.new"), "").unwrap();
        let pending = check(&place, &list).unwrap_err();
        assert!(
            pending.contains("b.snap.new") && !pending.contains("a.snap\n"),
            "{pending}"
        );
        fs::remove_dir_all(&root).unwrap();
    }
}
