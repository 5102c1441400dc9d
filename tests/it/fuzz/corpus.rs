//! The texts that fuzzing starts from: every cell and faulty file of the project.

use std::path::Path;

/// The folders with `.rnn` files.
const FOLDERS: [&str; 3] = ["examples/cells", "tests/cells/ok", "tests/cells/err"];

/// All texts, in an order that does not depend on the file system: first those that are right.
pub fn texts() -> Vec<Vec<u8>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    for folder in FOLDERS {
        let Ok(entries) = std::fs::read_dir(root.join(folder)) else {
            continue;
        };
        let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
        paths.sort();
        paths.retain(|path| path.extension().is_some_and(|e| e == "rnn"));
        found.extend(paths.iter().filter_map(|path| std::fs::read(path).ok()));
    }
    found.extend(blocks(
        &std::fs::read_to_string(root.join("grammar/README.md")).unwrap_or_default(),
    ));
    // One huge file would take most of the time and teach little.
    found.retain(|text| text.len() < 20_000);
    assert!(found.len() > 20, "the corpora are missing");
    found
}

/// The blocks of a Markdown page.
fn blocks(markdown: &str) -> Vec<Vec<u8>> {
    let fences = markdown.split("\n```rnn").skip(1);
    let bodies = fences.filter_map(|rest| rest.split_once('\n')?.1.split_once("\n```"));
    bodies.map(|(body, _)| body.as_bytes().to_vec()).collect()
}
