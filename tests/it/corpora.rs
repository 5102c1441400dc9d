//! The corpora as text: formatting keeps what they say, and the published examples are printed as `rnnc fmt` prints them.

use rnnc::syntax::{ast::File, format, parse};
use std::path::{Path, PathBuf};

fn files(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut files: Vec<PathBuf> = entries
        .map(|e| e.unwrap().path())
        .filter(|p| p.extension().is_some_and(|e| e == "rnn"))
        .collect();
    files.sort();
    files
}

/// The tree without its places.
fn tree(file: &File) -> String {
    let all = format!("{:?} {:?}", file.items, file.exprs);
    let mut parts = all.split("Span {");
    let first = parts.next().unwrap_or_default().to_string();
    parts.fold(first, |out, part| {
        out + part.split_once('}').map_or("", |(_, rest)| rest)
    })
}

#[test]
fn formatting_keeps_what_the_corpora_say() {
    let mut formatted = 0;
    for path in ["examples/cells", "tests/cells/ok", "tests/cells/err"]
        .into_iter()
        .flat_map(files)
    {
        let source = std::fs::read(&path).unwrap();
        let (before, found) = parse(&source);
        if found.has_errors() {
            continue;
        }
        let once = format(&source).unwrap();
        let (after, _) = parse(once.as_bytes());
        assert_eq!(tree(&before), tree(&after), "{}", path.display());
        assert_eq!(before.comments.len(), after.comments.len(), "{}", path.display());
        assert_eq!(format(once.as_bytes()).unwrap(), once, "{}", path.display());
        formatted += 1;
    }
    assert!(formatted >= 26);
}

#[test]
fn examples_are_in_canonical_form() {
    for path in files("examples/cells") {
        let source = std::fs::read_to_string(&path).unwrap();
        assert_eq!(
            format(source.as_bytes()).unwrap(),
            source,
            "run `rnnc fmt {}`",
            path.display()
        );
    }
}
