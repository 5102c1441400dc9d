//! The parser on well-formed text: the tree it gives, the limits it keeps, the time it takes.

use super::ast::{ExprKind, File, Item, Top};
use super::parse;
use crate::diagnostics::Code;
use std::fmt::Write as _;

/// The tree of a cell with this one equation; there must be no error.
fn equation(text: &str) -> String {
    let source = format!("cell c(H) {{ y = {text} }}");
    let (file, diagnostics) = parse(source.as_bytes());
    assert!(diagnostics.0.is_empty(), "{source}: {diagnostics:?}");
    let Top::Cell(cell) = &file.items[0] else {
        panic!("no cell")
    };
    let Item::Equation(equation) = &cell.items[0] else {
        panic!("no equation")
    };
    assert_eq!(cell.items.len(), 1, "{source}");
    show(&file, equation.value)
}

/// An expression with every operation in brackets of its own.
fn show(file: &File, id: super::ast::ExprId) -> String {
    let list = |marks: [&str; 2], links: &[(bool, super::ast::ExprId)]| {
        let mut out = String::from("{");
        for (n, (second, e)) in links.iter().enumerate() {
            let mark = if n == 0 { "" } else { marks[usize::from(*second)] };
            let _ = write!(out, "{mark}{}", show(file, *e));
        }
        out + "}"
    };
    match &file[id].kind {
        ExprKind::Number(n) => format!("{n}"),
        ExprKind::Sum(links) => list(["+", "-"], links),
        ExprKind::Product(links) => list(["*", "/"], links),
        ExprKind::Neg(count, e) => format!("neg{count}{{{}}}", show(file, *e)),
        ExprKind::MatMul(es) => format!(
            "{{{}}}",
            es.iter().map(|e| show(file, *e)).collect::<Vec<_>>().join("@")
        ),
        ExprKind::Power(a, b) => format!("{{{}^{}}}", show(file, *a), show(file, *b)),
        ExprKind::Compare(op, a, b) => format!("{{{} {op:?} {}}}", show(file, *a), show(file, *b)),
        ExprKind::Paren(e) => format!("({})", show(file, *e)),
        ExprKind::Path { segments, delay } => {
            let names: Vec<&str> = segments.iter().map(|s| &*s.name).collect();
            if *delay == 0 {
                names.join(".")
            } else {
                format!("{}[{delay}]", names.join("."))
            }
        }
        ExprKind::Call { prefixes, callee, args } => {
            format!("{prefixes:?}{}/{}", callee.name, args.len())
        }
        ExprKind::Error => "error".into(),
    }
}

#[test]
fn operators_bind_as_the_grammar_says() {
    for (text, tree) in [
        ("a + b - c", "{a+b-c}"),
        ("a * b / c + d", "{{a*b/c}+d}"),
        ("r * R @ h", "{r*{R@h}}"),
        ("-a^2", "neg1{{a^2}}"),
        ("a^b^c", "{a^{b^c}}"),
        ("a^-b", "{a^neg1{b}}"),
        ("A @ -B @ c", "{A@neg1{B}@c}"),
        ("---x * -y", "{neg3{x}*neg1{y}}"),
        ("- - x", "neg2{x}"),
        ("a < b + 1", "{a Lt {b+1}}"),
        ("a>=b", "{a Ge b}"),
        ("(a + b) * c", "{({a+b})*c}"),
        ("1e-5 + 2.50 + 3E2", "{0.00001+2.5+300}"),
        ("x\n - x", "{x-x}"),
    ] {
        assert_eq!(equation(text), tree, "{text}");
    }
}

#[test]
fn names_paths_delays_and_calls() {
    for (text, tree) in [
        ("h[t-1]", "h[1]"),
        ("h [ t + 12 ]", "h[-12]"),
        ("low.h[t-1]", "low.h[1]"),
        ("l.0.W", "l.0.W"),
        ("l.0.1", "l.0.1"),
        ("f()", "[]f/0"),
        ("f(x, H, axis=K, [N, E], \"a b -> a\", a == b)", "[]f/6"),
        ("backward stack 3 lstm(x, H=H, reset=r)", "[Backward, Stack(3)]lstm/3"),
        (
            "t * T * B * inf * pi * index * mean * reset * every",
            "{t*T*B*inf*pi*index*mean*reset*every}",
        ),
    ] {
        assert_eq!(equation(text), tree, "{text}");
    }
}

#[test]
fn every_item_parses_on_one_line_and_on_many() {
    let source = "use \"lstm.rnn\" use std.lstm fn sq(x) = x^2 fn two(x, W: [A, B]) { a = x b: [A] = W @ x return a, b }\
        cell c(I, H) { dim K = 4*H, L = (H + I)*2 - 1 input x, z: [I], k: index(K + 1) static input ctx: [I] \
        param W: [H, I], b: [] state h, c: [H] = tanh(h0), d: [H] output h, y: [H] a, b = split(x, 2) h: [H] = W @ x }";
    for text in [
        source.to_string(),
        source.replace(' ', "\n"),
        source.replace(' ', "  # comment\r\n\t"),
    ] {
        let (file, diagnostics) = parse(text.as_bytes());
        assert!(diagnostics.0.is_empty(), "{diagnostics:?}");
        assert_eq!(file.items.len(), 5);
        let Top::Cell(cell) = &file.items[4] else {
            panic!("no cell")
        };
        assert_eq!(cell.items.len(), 8);
    }
}

#[test]
fn an_item_reaches_to_its_last_token() {
    let source = "cell c(H) {\n  state h: [H] = a  # c\n  output h, y: [H]\n h = 1 }";
    let (file, _) = parse(source.as_bytes());
    let Top::Cell(cell) = &file.items[0] else {
        panic!("no cell")
    };
    let spans: Vec<&str> = cell
        .items
        .iter()
        .map(|item| match item {
            Item::State(_, s) | Item::Output(_, s) => &source[s.range()],
            Item::Equation(e) => &source[e.span.range()],
            _ => "",
        })
        .collect();
    assert_eq!(spans, ["state h: [H] = a", "output h, y: [H]", "h = 1"]);
    assert_eq!(file.comments.len(), 1);
    assert_eq!(&source[file.comments[0].range()], "# c");
}

#[test]
fn long_chains_are_flat() {
    let many = |term: &str, n: usize| vec![term; n].join("");
    for text in [
        format!("a{}", many(" + a", 100_000)),
        format!("a{}", many("*a", 100_000)),
        format!("a{}", many("@a", 100_000)),
        format!("{}a", many("-", 200_000)),
        format!("f(a{})", many(", a", 100_000)),
    ] {
        let source = format!("cell c(H) {{ y = {text} }}");
        let (file, diagnostics) = parse(source.as_bytes());
        assert!(diagnostics.0.is_empty());
        assert!(file.exprs.len() <= 100_003);
    }
}

#[test]
fn nesting_is_bounded_and_linear() {
    let nested = |n: usize, open: &str, close: &str| {
        let source = format!("cell c(H) {{ y = {}1{} }}", open.repeat(n), close.repeat(n));
        let codes: Vec<Code> = parse(source.as_bytes()).1.0.iter().map(|d| d.code).collect();
        codes
    };
    for (open, close) in [
        ("(", ")"),
        ("f(", ")"),
        ("a^", ""),
        ("f(b, -(a + ", "))"),
        ("f(axis=", ")"),
    ] {
        let depth = 200 / open.matches(['(', '^']).count();
        assert_eq!(nested(depth, open, close), [], "{open}");
        assert_eq!(nested(depth + 1, open, close), [Code::TooDeep], "{open}");
        assert_eq!(nested(50_000, open, close), [Code::TooDeep], "{open}");
    }
    let size = format!(
        "cell c(H) {{ input x: [{}H{}] }}",
        "(".repeat(100_000),
        ")".repeat(100_000)
    );
    assert_eq!(parse(size.as_bytes()).1.0[0].code, Code::TooDeep);
}

#[test]
fn files_that_are_no_text_or_hold_nothing() {
    let code = |bytes: &[u8]| parse(bytes).1.0.iter().map(|d| d.code).collect::<Vec<_>>();
    assert_eq!(code(b""), [Code::EmptyFile]);
    assert_eq!(code(b"  # only a comment\n"), [Code::EmptyFile]);
    assert_eq!(code(b"cell c(H) { output \xff }"), [Code::NotText]);
    assert_eq!(code(b"cell c(H) {\0 }"), [Code::NotText]);
    assert_eq!(code(&vec![b' '; super::MAX_FILE + 1]), [Code::FileTooLarge]);
    assert_eq!(code("\u{feff}cell c(H) {}".as_bytes()), []);
}
