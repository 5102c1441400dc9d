//! The parser on faulty text: what it reports, how it goes on, and that nothing makes it panic or dawdle.

use super::ast::{File, Top};
use super::parse;
use crate::diagnostics::render::render;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

/// The codes found in a cell with these lines.
fn codes(lines: &str) -> Vec<&'static str> {
    let source = format!("cell c(H) {{\n{lines}\n}}\n");
    parse(source.as_bytes()).1.0.iter().map(|d| d.code.as_str()).collect()
}

fn report(source: &str) -> String {
    render(&parse(source.as_bytes()).1, "cell.rnn", source, false)
}

/// How many items of the last cell were understood.
fn items(file: &File) -> usize {
    match file.items.last() {
        Some(Top::Cell(cell)) => cell.items.len(),
        _ => 0,
    }
}

/// What people write by habit, with the codes of what is said of it.
const TRAPS: &[(&str, &str)] = &[
    ("y = x ** 2", "E0009"),
    ("y = x'", "E0009"),
    ("y = W' @ x' + b", "E0009 E0009"),
    ("y = x .* z", "E0009"),
    ("y = a % b", "E0009"),
    ("y = (a > 0) && (b > 0)", "E0009"),
    ("y = a > 0 and b > 0", "E0009 E0003"),
    ("y = a or b", "E0009"),
    ("y = x;", "E0009"),
    ("y = x; z = 3; ", "E0009 E0009"),
    ("y = x // comment (", "E0009"),
    ("y := x", "E0009"),
    ("y <- x", "E0009"),
    ("y += x", "E0009"),
    ("y = c ? a : b", "E0009"),
    ("y = !c", "E0009"),
    ("if c { y = x }", "E0009"),
    ("y = a if c else b", "E0009"),
    ("for i in x\ny = 3", "E0009"),
    ("let y = x", "E0009"),
    ("y = h[t]", "E0005"),
    ("y = h[t-0]", "E0005"),
    ("y = h[t+0]", "E0005"),
    ("y = h[t-k]", "E0005"),
    ("y = h[t-1.5]", "E0005"),
    ("y = h[t--1]", "E0005"),
    ("y = h[t-99999999999]", "E0005"),
    ("y = h[0]", "E0006"),
    ("y = h[-1]", "E0006"),
    ("y = h[T-1]", "E0006"),
    ("y = x[:, 1:]", "E0006"),
    ("y = x[1:2] + x[..., 0]", "E0006 E0006"),
    ("y = h[a[0]]", "E0006"),
    ("y = (a + b)[t-1]", "E0006"),
    ("y = tanh(h)[t-1]", "E0006"),
    ("y = h[t-1][t-1]", "E0006"),
    ("h[t] = x", "E0006"),
    ("h[t+1] = h[t]", "E0006 E0005"),
    ("y = h[t-1", "E0006"),
    ("y = .5", "E0004"),
    ("y = 2.", "E0004"),
    ("y = 2. * x", "E0004"),
    ("y = 2H", "E0004"),
    ("y = 1.0f", "E0004"),
    ("y = 0x10", "E0004"),
    ("y = 1_000", "E0004"),
    ("y = 1e", "E0004"),
    ("y = 1.2.3", "E0004"),
    ("y = 1e999", "E0004"),
    ("param W: [4H, 2.5]", "E0004 E0004"),
    ("param W: [1e-5, 2e3]", "E0004 E0004"),
    ("param W: [99999999999999999999]", "E0401"),
    ("y == x", "E0003"),
    ("y = where(a = b, c, d)", ""),
    ("y = where((a = b), c, d)", "E0003"),
    ("y = a = b", "E0003"),
    ("y = a < b < c", "E0003"),
    ("y = 2 x", "E0003"),
    ("y = W x", "E0003"),
    ("y = f(a b)", "E0003"),
    ("y = f(a,)", "E0003"),
    ("y = f(,a)", "E0003"),
    ("y = + x", "E0003"),
    ("y = a + * b", "E0003"),
    ("y = [a, b]", "E0003"),
    ("y = \"text\"", "E0003"),
    ("y = ", "E0003"),
    ("y", "E0003"),
    ("= x", "E0003"),
    (")", "E0003"),
    ("y = (a + b", "E0003"),
    ("y = a + b)", "E0003"),
    ("y = \u{3bb} * x", "E0003"),
    ("y = a \u{d7} b", "E0009"),
    ("param W: [H/2]", "E0003"),
    ("param W: [H], \ny = W", "E0003"),
    ("param W", "E0003"),
    ("param W [H]", "E0003"),
    ("param W: H", "E0003"),
    ("static x: [H]", "E0003"),
    ("input x: index[V]", "E0003"),
    ("return x", "E0003"),
    ("state = 3", "E0010"),
    ("param input: [H]", "E0010"),
    ("y = input + 1", "E0010"),
    ("y = f(output=1)", ""),
    ("y = f(output)", "E0010"),
    ("y = low.state", "E0010"),
    ("y = stack lstm(x)", "E0003"),
    ("y = backward x", "E0003"),
    ("y = backward (x)", "E0003"),
    ("y = a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.q", "E0008"),
    ("y = a. b", ""),
    ("y = 3 . b", "E0003"),
];

#[test]
fn traps_have_one_message_each() {
    let mut wrong = String::new();
    for (lines, wanted) in TRAPS {
        if codes(lines).join(" ") != *wanted {
            let _ = writeln!(
                wrong,
                "{wanted} wanted of {lines}\n{}",
                report(&format!("cell c(H) {{\n{lines}\n}}\n"))
            );
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn messages_read_well() {
    let sources = [
        "cell c(H) {\n  y = x ** 2 + h[t] + x[:, 1:]\n  z = (a + b)[t-1] * 2H\n}\n",
        "cell c(H) {\n  state h: [H] = 2.\n  y == where(a = b, 1, .5)\n  k = x' @ W 3\n",
        "cell c(I H) {\n  param W: [H, I],\n  output y\n  y = tanh(W @ x\n  z = state + h[t-k]\n}\ncell d() { y = \u{3b1} }\n",
        "def lstm(x):\n  return x\n\nfn f(x) {\n  y = x\n}\nfn g(x) { return x z = 2 }\n",
        "cell c(H) {\n  y = a\n\ncell d(H) {\n  y = \"a\n}",
    ];
    let mut out = String::new();
    for source in sources {
        let _ = writeln!(out, "{source}--------\n{}========", report(source));
    }
    insta::assert_snapshot!(out);
}

#[test]
fn the_rest_of_the_file_is_parsed() {
    let source = "cell a(H {\n  input x: [H\n  y = x +\n  z = f(x,\n    k = 3 $ 2,\n    l = 4)\n  w = 1\n}\n\
        cell b(H) {\n  input ] x\n  state h: [H]\n  h = 1 )\n  k = 2\n}\n";
    let (file, diagnostics) = parse(source.as_bytes());
    let lines: Vec<usize> = diagnostics
        .0
        .iter()
        .map(|d| source[..d.labels[0].span.start as usize].matches('\n').count() + 1)
        .collect();
    assert_eq!(lines, [1, 3, 4, 5, 10, 12], "{}", report(source));
    assert_eq!(items(&file), 3);
}

/// Far above what a linear parser needs for a megabyte on a busy machine, far below what a quadratic one takes.
const LIMIT: Duration = Duration::from_secs(5);

#[test]
fn faulty_files_of_any_size_are_parsed_fast() {
    let body = |line: &str, n: usize| format!("cell c(H) {{\n{}\n}}", line.repeat(n));
    let sources = [
        body("y = (((((((\n", 60_000),
        body("y = f(a, b(\n", 60_000),
        body("a, ", 300_000),
        body("x' ", 300_000),
        body("h[", 400_000),
        body("h[t]", 200_000),
        body("}{", 400_000),
        body("cell c {\n", 100_000),
        body("cell c(\n", 100_000),
        body("# comment\n", 90_000),
        body("y = -a^\n", 100_000),
        body("\"", 900_000),
        body("y = a.b\n.c", 90_000),
        body("y = x < ", 100_000),
        "(".repeat(1 << 20),
        "cell c(".repeat(140_000),
        "\u{3b1}".repeat(1 << 19),
    ];
    for source in sources {
        let start = Instant::now();
        let (_, diagnostics) = parse(source.as_bytes());
        assert!(start.elapsed() < LIMIT, "{:?} for {:?}", start.elapsed(), &source[..20]);
        assert!(diagnostics.0.len() <= 200);
        let start = Instant::now();
        assert!(render(&diagnostics, "f", &source, false).len() < 200_000);
        assert!(
            start.elapsed() < LIMIT,
            "{:?} to render {:?}",
            start.elapsed(),
            &source[..20]
        );
    }
}
