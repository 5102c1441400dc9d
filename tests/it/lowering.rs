//! The corpora: every faulty text with what is said about it, every good text with its graph.

use super::golden;
use rnnc::diagnostics::{Code, Diagnostics, render::render};
use rnnc::driver::Choice;
use rnnc::ir::{Name, print::print, solve, values};
use rnnc::lower;
use rnnc_runtime::plan::Elem;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

fn corpus(kind: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cells").join(kind);
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    files
}

/// All messages on a file. One that begins with `# cell: NAME` is lowered as by `--cell NAME` (`# cell:` as without it).
fn messages(source: &[u8]) -> Diagnostics {
    let (file, found) = rnnc::syntax::parse(source);
    if found.has_errors() {
        return found;
    }
    let first = source.split(|b| *b == b'\n').next().unwrap_or_default();
    match first
        .strip_prefix(b"# cell:")
        .map(|rest| std::str::from_utf8(rest).unwrap().trim())
    {
        Some("") => lower::lower(&file, None, None).1,
        Some(name) => lower::lower(&file, Some(name), None).1,
        None => lower::check(&file),
    }
}

fn codes(source: &[u8]) -> BTreeSet<Code> {
    messages(source).0.iter().map(|d| d.code).collect()
}

/// A snapshot that shows the text and what came of it.
fn snapshot(folder: &str, path: &Path, source: &str, result: &str) {
    let name = path.file_stem().unwrap().to_str().unwrap();
    insta::with_settings!({
        snapshot_path => format!("../cells/{folder}"),
        prepend_module_to_snapshot => false,
        omit_expression => true,
    }, {
        insta::assert_snapshot!(name, format!("{source}\n----\n{result}"));
    });
}

#[test]
fn faulty_texts_say_what_is_wrong() {
    let files = corpus("err");
    assert!(files.len() >= 40);
    for path in files {
        let source = std::fs::read_to_string(&path).unwrap();
        let name = path.file_name().unwrap().to_str().unwrap();
        let found = messages(source.as_bytes());
        assert!(!found.0.is_empty(), "{name} is not faulty");
        snapshot("err_snapshots", &path, &source, &render(&found, name, &source, false));
    }
}

#[test]
fn good_texts_become_graphs() {
    let files = corpus("ok");
    assert!(files.len() >= 30);
    for path in files {
        let source = std::fs::read_to_string(&path).unwrap();
        let graph = golden::lower(path.file_stem().unwrap().to_str().unwrap(), &source);
        snapshot("ok_snapshots", &path, &source, &print(&graph));
    }
}

#[test]
fn every_snapshot_has_its_text() {
    let stems = |folder: &str| {
        let stem = |path: &PathBuf| path.file_stem().unwrap().to_str().unwrap().to_owned();
        corpus(folder).iter().map(stem).collect::<Vec<_>>()
    };
    assert_eq!(stems("err"), stems("err_snapshots"));
    assert_eq!(stems("ok"), stems("ok_snapshots"));
}

/// Codes that need a file too large to keep, or values of dimensions: [`generated`] and the tests below make them.
#[test]
fn every_code_is_given_by_some_text() {
    let mut seen: BTreeSet<Code> = generated().iter().flat_map(|(source, _)| codes(source)).collect();
    for path in corpus("err") {
        seen.extend(codes(&std::fs::read(path).unwrap()));
    }
    seen.extend(lstm_values(&[("I", 1 << 40), ("H", 1 << 40)]).0.iter().map(|d| d.code));
    seen.extend(lstm_values(&[("I", 40)]).0.iter().map(|d| d.code));
    let missing: Vec<&Code> = Code::ALL.iter().filter(|c| !seen.contains(c)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

fn cell_with(equation: &str) -> Vec<u8> {
    format!("cell c(H) {{ input x: [H] output y y = {equation} }}").into_bytes()
}

/// Texts that are made, not kept, and the code that each must give.
fn generated() -> Vec<(Vec<u8>, Code)> {
    let nested = format!("{}x{}", "(".repeat(100_000), ")".repeat(100_000));
    let calls = format!("{}x{}", "tanh(".repeat(50_000), ")".repeat(50_000));
    let mut large = cell_with("x");
    large.resize((1 << 20) + 1, b' ');
    vec![
        (Vec::new(), Code::EmptyFile),
        (b"   \n\n".to_vec(), Code::EmptyFile),
        (b"cell c(H) {\0}".to_vec(), Code::NotText),
        (b"cell \xff(H) {}".to_vec(), Code::NotText),
        (cell_with(&nested), Code::TooDeep),
        (cell_with(&calls), Code::TooDeep),
        (large, Code::FileTooLarge),
        (deep_functions(), Code::TooLarge),
        (squaring(), Code::SizeOverflow),
        (idle_functions(), Code::TooLarge),
    ]
}

/// A chain of functions, each of which calls the next.
fn deep_functions() -> Vec<u8> {
    let mut text = String::new();
    for i in 0..10_000 {
        text += &format!("fn f{i}(x) = f{}(x)\n", i + 1);
    }
    text += "fn f10000(x) = x\n";
    text.into_bytes().into_iter().chain(cell_with("f0(x)")).collect()
}

/// Functions whose calls of each other stand as deep in expressions as the parser allows.
fn deep_expressions() -> Vec<u8> {
    let nested = |inner: &str| format!("{}{inner}{}", "-(1 + 2 * x^(".repeat(60), "))".repeat(60));
    let mut text = format!("fn f0(x: [N]) = {}\n", nested("x"));
    for i in 1..60 {
        text += &format!("fn f{i}(x: [N]) = {}\n", nested(&format!("f{}(x)", i - 1)));
    }
    text.into_bytes().into_iter().chain(cell_with("f59(x)")).collect()
}

/// Sizes as deep as the parser allows, in a shape and as an argument.
fn deep_sizes() -> Vec<u8> {
    let size = format!("{}H{}", "(2*".repeat(60), " - H)".repeat(60));
    let plain = format!("{}H{}", "(1*(".repeat(95), "))".repeat(95));
    format!("cell c(H) {{ input x: [{plain}] output y, z y = x z = iota({size}) + iota({plain}) }}").into_bytes()
}

/// Functions that make no operation, but call each other exponentially often.
fn idle_functions() -> Vec<u8> {
    let mut text = "fn f0(x) = x\n".to_owned();
    for i in 1..64 {
        text += &format!("fn f{i}(x) = f{0}(f{0}(x))\n", i - 1);
    }
    text.into_bytes().into_iter().chain(cell_with("f63(x)")).collect()
}

/// Functions that square a size, one within the other.
fn squaring() -> Vec<u8> {
    let mut text = "fn f0(x, N) = x * sum(iota(N))\n".to_owned();
    for i in 1..64 {
        text += &format!("fn f{i}(x, N) = f{}(x, N*N + N)\n", i - 1);
    }
    text.into_bytes().into_iter().chain(cell_with("f63(x, H)")).collect()
}

#[test]
fn generated_texts_are_refused() {
    for (source, code) in generated() {
        let found = messages(&source);
        assert!(
            found.0.iter().any(|d| d.code == code),
            "{code:?}: {:?}",
            found.0.first()
        );
    }
}

/// The number of nodes of a cell without errors.
fn nodes(source: &[u8]) -> usize {
    let text = std::str::from_utf8(source).unwrap();
    golden::lower("c", text).len()
}

#[test]
fn long_texts_are_accepted() {
    assert!(nodes(&cell_with(&vec!["x"; 100_000].join(" + "))) >= 100_000);
    assert!(nodes(&cell_with(&format!("x{}", " + 1".repeat(100_000)))) > 100_000);
    assert!(nodes(&cell_with(&format!("x{}", " * 2 / x".repeat(40_000)))) > 80_000);
    assert!(nodes(&cell_with(&format!("x - {}x", "-".repeat(200_000)))) <= 4);
    assert!(nodes(&cell_with(&format!("x{}", " @ x * x".repeat(20_000)))) > 20_000);
}

#[test]
fn deep_texts_are_accepted() {
    assert!(nodes(&deep_expressions()) > 10_000);
    assert_eq!(nodes(&deep_sizes()), 4);
}

#[test]
fn a_chain_of_twenty_thousand_equations_is_lowered() {
    let mut text = "cell c(H) {\n  input x: [H]\n  output e0\n".to_owned();
    for i in 0..20_000 {
        text += &format!("  e{i} = tanh(e{})\n", i + 1);
    }
    text += "  e20000 = x\n}\n";
    assert_eq!(nodes(text.as_bytes()), 20_001);
}

#[test]
fn a_chain_of_delayed_equations_is_typed_in_order() {
    let mut text = "cell c(H) {\n  input x: [H]\n  output e0\n".to_owned();
    for i in 0..5_000 {
        text += &format!("  e{i} = -e{}[t-1]\n", i + 1);
    }
    text += "  e5000 = x\n}\n";
    assert_eq!(nodes(text.as_bytes()), 1 + 5_000 * 2);
}

#[test]
fn a_file_of_a_megabyte_is_checked() {
    let mut text = "cell c(H) {\n  input x: [H]\n  output y\n  y = x\n}\n".to_owned();
    while text.len() < (1 << 20) - 200 {
        let i = text.len();
        text += &format!("cell c{i}(H) {{ input x: [H] output y y = tanh(x) + q{i} }}\n");
    }
    let found = messages(text.as_bytes());
    assert!(found.has_errors() && found.0.len() <= 200);
}

fn lstm_values(dims: &[(&str, i64)]) -> Diagnostics {
    let graph = golden::lower("lstm", &golden::cells()["lstm"]);
    let dims: BTreeMap<Name, i64> = dims.iter().map(|(n, v)| ((*n).into(), *v)).collect();
    values::check(&graph, &dims)
}

#[test]
fn values_of_dimensions_are_checked() {
    let first = |dims: &[(&str, i64)]| lstm_values(dims).0.first().map(|d| (d.code, d.message.clone()));
    assert_eq!(first(&[("I", 40), ("H", 256)]), None);
    assert_eq!(first(&[("I", 1 << 40), ("H", 1 << 40)]).unwrap().0, Code::SizeOverflow);
    assert_eq!(first(&[("I", 1), ("H", i64::MAX / 2)]).unwrap().0, Code::SizeOverflow);
    assert_eq!(first(&[("I", (1 << 31) - 1), ("H", (1 << 29) - 1)]), None);
    assert_eq!(first(&[("I", 0), ("H", 1)]).unwrap().0, Code::SizeNotPositive);
    assert_eq!(first(&[("I", 40)]).unwrap().1, "the dimension `H` has no value");
    assert_eq!(
        first(&[("I", 40), ("H", 1), ("K", 2)]).unwrap().1,
        "the cell `lstm` has no dimension `K`"
    );
}

#[test]
fn tensors_beyond_bounds_are_refused() {
    let graph = golden::lower(
        "c",
        "cell c(A, B, C) { input x: [A, B, C] output y y = slice(x, A, 0, B) }",
    );
    let check = |a: i64, b: i64, c: i64| {
        let dims = [("A", a), ("B", b), ("C", c)].map(|(n, v)| (n.into(), v));
        values::check(&graph, &dims.into()).0.first().map(|d| d.code)
    };
    assert_eq!(check(5, 4, 3), None);
    assert_eq!(check(4, 5, 3), Some(Code::BadArgument));
    assert_eq!(check(1 << 30, 1 << 30, 1 << 30), Some(Code::SizeOverflow));
}

#[test]
fn planning_checks_the_values_of_dimensions() {
    let text = b"cell c(A, B) { input x: [A] output y y = slice(x, A, 0, B) }";
    let plan = |a: i64, b: i64| {
        let dims = [("A".into(), a), ("B".into(), b)].into();
        let planned = rnnc::driver::plan(text, &Choice::default(), &dims, Elem::F32);
        planned.map(|_| ()).map_err(|found| found.0[0].code)
    };
    assert_eq!(plan(5, 4), Ok(()));
    assert_eq!(plan(4, 5), Err(Code::BadArgument));
    assert_eq!(plan(1 << 40, 1), Err(Code::SizeOverflow));
}

#[test]
fn dimensions_follow_from_shapes() {
    for case in golden::cases() {
        let shapes = case.given.iter().map(|(k, t)| (k.clone(), t.shape.clone())).collect();
        assert_eq!(solve::solve_dims(&case.graph, &shapes), Ok(case.dims), "{}", case.name);
    }
}

fn solved(text: &str, shapes: &[(&str, &[usize])]) -> Result<Vec<(String, i64)>, String> {
    let graph = golden::lower("c", text);
    let shapes = shapes.iter().map(|(k, s)| ((*k).to_owned(), s.to_vec())).collect();
    let dims = solve::solve_dims(&graph, &shapes).map_err(|e| e.to_string())?;
    Ok(dims.iter().map(|(k, v)| (k.to_string(), *v)).collect())
}

#[test]
fn shapes_that_do_not_fit_are_told() {
    let text = "cell c(H, I) { input x: [I] param W: [3*H + 1, I], _u: [H*I] state h: [3*H + 1] output h
        h = W @ x + h[t-2] }";
    let pairs = |h: i64, i: i64| vec![("H".to_owned(), h), ("I".to_owned(), i)];
    assert_eq!(solved(text, &[("p.W", &[13, 5])]), Ok(pairs(4, 5)));
    assert_eq!(solved(text, &[("p._u", &[20]), ("x.x", &[7, 3, 5])]), Ok(pairs(4, 5)));
    assert_eq!(
        solved(text, &[("s0.h", &[2, 3, 13]), ("x.x", &[7, 3, 5])]),
        Ok(pairs(4, 5))
    );
    insta::assert_snapshot!(solved(text, &[("p.W", &[13, 5]), ("x.x", &[7, 3, 6])]).unwrap_err());
    insta::assert_snapshot!(solved(text, &[("p.W", &[12, 5])]).unwrap_err());
    insta::assert_snapshot!(solved(text, &[("p._u", &[20])]).unwrap_err());
    insta::assert_snapshot!(solved(text, &[("s0.h", &[3, 13])]).unwrap_err());
    insta::assert_snapshot!(solved(text, &[("p.W", &[13, 5]), ("p._u", &[21])]).unwrap_err());
}
