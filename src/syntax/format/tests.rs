//! The canonical form: what it looks like, and that it keeps tree and comments whatever the file.

use crate::syntax::{ast::File, format, parse};
use proptest::prelude::*;

/// The tree without its places, as text.
fn tree(file: &File) -> String {
    let all = format!("{:?} {:?}", file.items, file.exprs);
    let mut out = String::new();
    let mut rest = all.as_str();
    while let Some((before, after)) = rest.split_once("Span {") {
        out += before;
        rest = after.split_once('}').map_or("", |(_, rest)| rest);
    }
    out + rest
}

fn comments<'s>(file: &File, source: &'s str) -> Vec<&'s str> {
    file.comments.iter().map(|c| &source[c.range()]).collect()
}

/// Formats, and checks all that must hold of the result.
fn checked(source: &str) -> String {
    let once = format(source.as_bytes()).unwrap_or_else(|e| panic!("{e:?}\n{source}"));
    let (before, _) = parse(source.as_bytes());
    let (after, diagnostics) = parse(once.as_bytes());
    assert!(diagnostics.0.is_empty(), "{diagnostics:?}\n{once}");
    assert_eq!(tree(&before), tree(&after), "{source}\n--------\n{once}");
    assert_eq!(
        comments(&before, source),
        comments(&after, &once),
        "{source}\n--------\n{once}"
    );
    let twice = format(once.as_bytes()).unwrap_or_default();
    assert_eq!(once, twice, "{source}");
    assert!(
        once.ends_with('\n') && !once.contains("\n\n\n") && !once.contains(" \n"),
        "{once}"
    );
    once
}

#[test]
fn the_canonical_form_reads_well() {
    let source = "\u{feff}# Header\r\n# of the file\n\n\n\nuse \"a.rnn\" # why\nuse std.lstm fn sq ( x )=x^2\n# two\nfn two(x,W:[A , B]){ a=x\n\n return a , -  - b }\n\
cell   lstm(I,H){# the cell\n\n# inputs\ninput x:[ I ],clock : [],k:index( 2 * V+1 )\nstatic   input ctx:[C]\ndim K=4*(H+I)-1,L=(2)*(3*H)\n\
\nparam W:[4*H , I],# from below\n R : [4*H,H] # recurrent\n , b:[4*H]\nstate h,c:[H]=-inf\n\n\n\
output h\n y  = x\n - x # joined\n z=a+ # one\n # two\n b *( c@ -D )^-2.50e-3 #three\n\n\
# own\n i,f , g,o=split( W@x+R @ h [t - 1]+b,4,axis = H)\n  w = backward  stack 3 lstm( x,H=H, [N,E],\"a b\" )< low . h[t+2] # last\n# end\n}# after\n# more\nfn f(x)=x\n";
    insta::assert_snapshot!(checked(source));
}

#[test]
fn long_lines_are_broken_where_they_bind_least() {
    let sum = [
        "W_one @ x",
        "0.5 * tanh(R @ h[t-1])",
        "where(a == b, first_value, second_value)",
    ]
    .repeat(4)
    .join("+");
    let params = ["Wa, Ra, Fa: [H, 4*H + 2*I]", "b: [H]"].repeat(5).join(",");
    let source = format!(
        "cell c(H) {{ param {params} y = {sum} z = concat(({sum}), {}) {} = x }}",
        ["value", "another"].repeat(9).join(","),
        ["name_of_something"; 9].join(",")
    );
    let formatted = checked(&source);
    assert!(formatted.lines().all(|l| l.len() <= 100), "{formatted}");
    insta::assert_snapshot!(formatted);
}

#[test]
fn faulty_files_are_not_touched() {
    assert!(format(b"cell c(H) { y = }").is_err());
    assert!(format(b"\xff").is_err());
}

#[test]
fn long_chains_are_printed_fast() {
    let source = format!(
        "cell c(H) {{ y = {}a z = {}a }}",
        "a + ".repeat(100_000),
        "-".repeat(200_000)
    );
    let start = std::time::Instant::now();
    let formatted = format(source.as_bytes()).unwrap_or_default();
    assert!(start.elapsed().as_secs() < 5, "{:?}", start.elapsed());
    assert_eq!(formatted.lines().map(str::len).filter(|&n| n > 100).count(), 1);
}

/// Names of many kinds: short, reserved nowhere, with digits.
fn name() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "x",
        "h",
        "t",
        "T",
        "index",
        "W_1",
        "sum_of_everything",
        "inf",
        "a2",
    ])
    .prop_map(String::from)
}

fn size_text() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("H".to_string()),
        Just("N".to_string()),
        (0..300i64).prop_map(|n| n.to_string())
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        let part = prop_oneof![inner.clone(), inner.prop_map(|s| format!("({s})"))];
        (part.clone(), prop::sample::select(vec!["+", "-", "*", " * "]), part)
            .prop_map(|(a, op, b)| format!("{a}{op}{b}"))
    })
}

fn shape_text() -> impl Strategy<Value = String> {
    prop::collection::vec(size_text(), 0..3).prop_map(|axes| format!("[{}]", axes.join(" , ")))
}

fn expr_text() -> impl Strategy<Value = String> {
    let number = prop::sample::select(vec!["1", "0.50", "1e-5", "2E3", "007"]).prop_map(String::from);
    let delayed = (
        name(),
        prop::sample::select(vec!["[t-1]", " [ t + 12 ]", ".c[t-3]", ".0.W"]),
    )
        .prop_map(|(n, d)| n + d);
    let leaf = prop_oneof![name(), number, delayed];
    leaf.prop_recursive(5, 40, 4, |inner| {
        let op = prop::sample::select(vec!["+", "-", "*", "/", "@", "^", " @ - ", "\n-", "- -", "+ # c\n"]);
        let arg = prop_oneof![
            inner.clone(),
            (name(), inner.clone()).prop_map(|(n, e)| format!("{n} = {e}")),
            shape_text(),
            Just("\"a b -> a\"".to_string()),
        ];
        prop_oneof![
            4 => (inner.clone(), op, inner.clone()).prop_map(|(a, op, b)| format!("{a}{op}{b}")),
            2 => inner.clone().prop_map(|e| format!("( {e} )")),
            1 => inner.clone().prop_map(|e| format!("--{e}")),
            2 => (name(), prop::collection::vec(arg, 0..4)).prop_map(|(f, args)| format!("{f}({})", args.join(" ,"))),
            1 => inner.prop_map(|e| format!("backward stack 2 lstm({e})")),
        ]
    })
}

fn item_text() -> impl Strategy<Value = String> {
    let list = || prop::collection::vec(name(), 1..4).prop_map(|names| names.join(", "));
    let comparison = (expr_text(), expr_text()).prop_map(|(a, b)| format!("({a}) <= ({b})"));
    prop_oneof![
        (list(), shape_text()).prop_map(|(n, s)| format!("input {n}: {s}, k : index(V)")),
        (list(), shape_text()).prop_map(|(n, s)| format!("param {n}: {s}")),
        (list(), shape_text(), expr_text()).prop_map(|(n, s, e)| format!("state {n} : {s} = {e}")),
        list().prop_map(|n| format!("output {n}")),
        size_text().prop_map(|s| format!("dim K = {s}")),
        (list(), expr_text()).prop_map(|(n, e)| format!("{n} = {e}")),
        (name(), shape_text(), comparison).prop_map(|(n, s, e)| format!("{n}: {s} = {e}")),
    ]
}

fn file_text() -> impl Strategy<Value = String> {
    let gap = prop::sample::select(vec![
        "\n",
        " ",
        "\n\n\n",
        " # note\n",
        "\n  # own {\n",
        "\n\n# apart\n\n",
        "\r\n",
    ]);
    let items = prop::collection::vec((item_text(), gap.clone()), 0..6)
        .prop_map(|items| items.into_iter().map(|(item, gap)| item + gap).collect::<String>());
    let cell = (items, gap.clone()).prop_map(|(items, gap)| format!("cell c(H, N) {{{gap}{items}}}"));
    let function =
        (expr_text(), gap.clone()).prop_map(|(e, gap)| format!("fn f(x, W: [H]) {{{gap} y = x {gap}return {e}}}"));
    let short = expr_text().prop_map(|e| format!("fn g(x) = {e}"));
    let top = prop_oneof![4 => cell, 1 => function, 1 => short, 1 => Just("use std . lstm".to_string())];
    prop::collection::vec((gap, top), 1..4).prop_map(|tops| {
        tops.into_iter()
            .map(|(gap, top)| format!("{gap}{top}\n"))
            .collect::<String>()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_file_keeps_its_tree_and_comments(source in file_text()) {
        if parse(source.as_bytes()).1.0.is_empty() {
            checked(&source);
        }
    }

    #[test]
    fn comments_may_stand_between_any_two_tokens(source in file_text(), places in prop::collection::vec(0.0..1.0f64, 1..4)) {
        let (file, diagnostics) = parse(source.as_bytes());
        prop_assume!(diagnostics.0.is_empty());
        let mut blanks: Vec<usize> = source.match_indices([' ', '\n']).map(|(at, _)| at).collect();
        blanks.retain(|&at| !file.comments.iter().any(|c| c.range().contains(&at)) && !in_string(&source, at));
        prop_assume!(!blanks.is_empty());
        let mut at: Vec<usize> = places.iter().map(|p| blanks[(p * blanks.len() as f64) as usize]).collect();
        at.sort_unstable();
        at.dedup();
        let mut commented = source.clone();
        for (n, place) in at.iter().enumerate().rev() {
            commented.insert_str(*place, &format!(" #{n} }}\n"));
        }
        checked(&commented);
    }
}

/// Whether an odd number of quotes stands before `at` on its line.
fn in_string(source: &str, at: usize) -> bool {
    let start = source[..at].rfind('\n').map_or(0, |n| n + 1);
    source[start..at].matches('"').count() % 2 == 1
}
