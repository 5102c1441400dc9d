//! The pages of `rnnc explain` and the language reference: every block of code in them is compiled.

use rnnc::diagnostics::{Code, Diagnostics, page, render::render};
use rnnc::{analysis, lower, schedule, syntax, transform};
use rnnc_runtime::plan::Elem;
use std::collections::BTreeMap;
use std::path::Path;

/// A fenced block: what stands behind the fence, the text, the line where it starts.
struct Block {
    marks: Vec<String>,
    text: String,
    line: usize,
}

impl Block {
    fn has(&self, mark: &str) -> bool {
        self.marks.iter().any(|m| m == mark)
    }
}

/// Every ```` ```rnn ```` block of a page.
fn blocks(markdown: &str) -> Vec<Block> {
    let mut found = Vec::new();
    let mut lines = markdown.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        let Some(info) = line.strip_prefix("```") else { continue };
        let body: Vec<&str> = lines
            .by_ref()
            .map(|(_, line)| line)
            .take_while(|line| *line != "```")
            .collect();
        let marks: Vec<String> = info.split([',', ' ']).map(str::to_string).collect();
        if marks[0] == "rnn" {
            found.push(Block {
                marks,
                text: body.join("\n") + "\n",
                line: number + 2,
            });
        }
    }
    found
}

/// The text of a block as bytes; `\xe9` stands for a byte in blocks marked `bytes`.
fn bytes(block: &Block) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = block.text.as_str();
    while let Some((before, after)) = rest.split_once("\\x").filter(|_| block.has("bytes")) {
        out.extend(before.bytes());
        out.push(u8::from_str_radix(&after[..2], 16).unwrap());
        rest = &after[2..];
    }
    out.extend(rest.bytes());
    out
}

/// All messages on a block: of `check`, of the choice of a cell (`choose`), or of a plan without dimensions (`compile`).
fn messages(block: &Block) -> Diagnostics {
    let (file, found) = syntax::parse(&bytes(block));
    if found.has_errors() {
        return found;
    }
    if block.has("choose") {
        return lower::lower(&file, None, None).1;
    }
    let checked = lower::check(&file);
    if !block.has("compile") || checked.has_errors() {
        return checked;
    }
    let mut graph = lower::lower(&file, None, None).0.unwrap();
    transform::run(&mut graph);
    let facts = analysis::analyse(&graph).unwrap();
    let options = schedule::Options {
        dims: BTreeMap::new(),
        elem: Elem::F32,
        source: &block.text,
    };
    schedule::plan(&graph, &facts, &options).err().unwrap_or_default()
}

/// What is wrong with a page: a block that does not say what its marks promise.
fn faults(name: &str, markdown: &str) -> String {
    let mut out = String::new();
    for block in blocks(markdown) {
        let found = messages(&block);
        let mut codes: Vec<&str> = found.0.iter().map(|d| d.code.as_str()).collect();
        codes.dedup();
        let wanted: Vec<&str> = block
            .marks
            .iter()
            .map(String::as_str)
            .filter(|m| Code::parse(m).is_some())
            .collect();
        if codes != wanted {
            let text = render(&found, name, &block.text, false);
            out += &format!("{name}:{}: {wanted:?} promised\n{}{text}\n", block.line, block.text);
        }
    }
    out
}

#[test]
fn every_code_has_a_page_with_an_example_and_its_cure() {
    let mut out = String::new();
    for &code in Code::ALL {
        let text = page(code);
        let heading = format!("# {}: {}\n", code.as_str(), code.title());
        assert!(text.starts_with(&heading), "{} has another title", code.as_str());
        assert!(text.contains("\n## What to do\n"), "{}", code.as_str());
        let (meaning, cure) = text.split_once("\n## What to do\n").unwrap();
        assert_eq!(
            blocks(meaning).iter().filter(|b| b.has("error")).count(),
            1,
            "{}",
            code.as_str()
        );
        assert_eq!(
            blocks(cure).iter().filter(|b| !b.has("error")).count(),
            1,
            "{}",
            code.as_str()
        );
        out += &faults(
            code.as_str(),
            &text.replace("```rnn,error", &format!("```rnn,error,{}", code.as_str())),
        );
    }
    assert!(out.is_empty(), "{out}");
}

#[test]
fn no_page_is_without_a_code() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/diagnostics/pages");
    let files = std::fs::read_dir(folder).unwrap();
    let stems = files.map(|f| f.unwrap().path().file_stem().unwrap().to_str().unwrap().to_string());
    assert_eq!(stems.filter(|s| Code::parse(s).is_some()).count(), Code::ALL.len());
}

#[test]
fn the_language_reference_is_right() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("grammar/README.md");
    let markdown = std::fs::read_to_string(path).unwrap();
    assert!(blocks(&markdown).len() > 20);
    let out = faults("grammar/README.md", &markdown);
    assert!(out.is_empty(), "{out}");
}
