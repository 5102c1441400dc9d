//! Every part of every verdict: of the 26 golden cells, and of small cells written to reach what those do not. Verdicts
//! are the same before and after the transforms.

use rnnc::analysis::{self, Facts, report};
use rnnc::ir::Graph;

/// The graph of a cell's text.
fn graph_of(source: &str, stem: &str) -> Graph {
    let (file, found) = rnnc::syntax::parse(source.as_bytes());
    assert!(!found.has_errors(), "{stem}: {found:?}");
    let (graph, found) = rnnc::lower::lower(&file, None, Some(stem));
    graph.unwrap_or_else(|| panic!("{stem}: {found:?}"))
}

/// One line a recurrence: `{members} class semiring transition [coefficient axes] in time, input, phases, what else`.
fn lines(graph: &Graph, facts: &Facts) -> Vec<String> {
    report::report(graph, facts).0.iter().map(line).collect()
}

fn line(row: &report::Row) -> String {
    let mut members = row.members.clone();
    members.sort();
    let mut text = format!("{{{}}}", members.join(","));
    match row.semiring {
        Some(semiring) => text += &format!(" linear {}", semiring.symbol()),
        None => text += " nonlinear",
    }
    text += &format!(" {}", row.transition);
    if let Some(axes) = &row.coefficient_axes {
        let names: Vec<String> = axes.iter().map(ToString::to_string).collect();
        text += &format!(" [{}]", names.join(","));
    }
    match row.time_invariant {
        Some(true) => text += " invariant",
        Some(false) => text += " varying",
        None => {}
    }
    match row.input_rank {
        Some(report::InputRank::One) => text += " rank1",
        Some(report::InputRank::General) => text += " general",
        None => {}
    }
    text += &format!(" {}", row.phases);
    if row.chunkable {
        text += " chunkable";
    }
    if let Some(blocks) = &row.blocks {
        text += &format!(" blocks={blocks}");
    }
    text
}

/// The verdicts of a cell, found twice: as lowered, and after the transforms.
fn verdicts(source: &str, stem: &str) -> Vec<String> {
    let mut graph = graph_of(source, stem);
    let facts = analysis::analyse(&graph).expect("no cycle within a frame");
    let before = lines(&graph, &facts);
    rnnc::transform::run(&mut graph);
    let facts = analysis::analyse(&graph).expect("transforms make no cycles");
    let mut after = lines(&graph, &facts);
    let mut sorted = before.clone();
    sorted.sort();
    after.sort();
    assert_eq!(sorted, after, "{stem}: transforms change the verdict");
    for row in &report::report(&graph, &facts).0 {
        assert!(
            !row.reason.is_empty() && !row.spans.is_empty(),
            "{stem}: a verdict without a reason: {row:?}"
        );
    }
    before
}

const GATED: &str = "linear (+,x) elementwise [H] varying general 0";

#[test]
fn golden_cells_have_their_pinned_verdicts() {
    let gated = |state: &str| vec![format!("{{{state}}} {GATED}")];
    let one = |text: &str| vec![text.to_owned()];
    let two = |a: &str, b: &str| vec![a.to_owned(), b.to_owned()];
    let three = |a: &str, b: &str, c: &str| vec![a.to_owned(), b.to_owned(), c.to_owned()];
    let table = [
        ("sru", gated("c")),
        ("qrnn2", gated("c")),
        ("gilr", gated("h")),
        ("mingru", gated("h")),
        ("rg_lru", gated("h")),
        ("gilr_lstm", [gated("hs"), gated("c")].concat()),
        ("mamba_s6", one("{S} linear (+,x) elementwise [D,N] varying rank1 0")),
        ("gla", one("{S} linear (+,x) elementwise [K] varying rank1 0 chunkable")),
        (
            "mlstm",
            three(
                "{m} linear (max,+) elementwise [] varying general 0",
                "{C} linear (+,x) elementwise [] varying rank1 0 chunkable",
                "{n} linear (+,x) elementwise [] varying general 0",
            ),
        ),
        (
            "rwkv4",
            three(
                "{p} linear (max,+) elementwise [H] invariant general 0",
                "{a} linear (+,x) elementwise [H] varying general 0",
                "{b} linear (+,x) elementwise [H] varying general 0",
            ),
        ),
        ("lru", one("{hi,hr} linear (+,x) block(2) [N] invariant general 0")),
        (
            "deltanet",
            one("{S} linear (+,x) low_rank(1) [K] varying rank1 1 chunkable"),
        ),
        ("lmu_lti", one("{m} linear (+,x) dense [N] invariant general 1")),
        ("indrnn", one("{h} nonlinear elementwise 0")),
        ("elman", one("{h} nonlinear dense 1")),
        ("lstm", one("{c,h} nonlinear dense 1")),
        ("gru", one("{h} nonlinear dense 1")),
        ("lstm_peephole", one("{c,h} nonlinear dense 1")),
        ("lstm_zoneout_masks", one("{c,h} nonlinear dense 1")),
        ("gru_reset_before", one("{h} nonlinear dense 2")),
        ("lstm_projected", one("{c,r} nonlinear dense 2")),
        ("lstm_layer_norm", one("{c,h} nonlinear dense 3")),
        ("rhn3", one("{y} nonlinear dense 3")),
        ("slstm", one("{c,h,m,n} nonlinear dense 1 blocks=N")),
        ("hrnn", two("{c1,h1} nonlinear dense 1", "{c2,h2} nonlinear dense 1")),
        ("delay_graph", one("{a,b} nonlinear dense 2")),
    ];
    assert_eq!(table.len(), 26);
    for (cell, expected) in table {
        let path = format!("examples/cells/{cell}.rnn");
        let source = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
        let mut found = verdicts(&source, cell);
        // Recurrences that do not read each other stand in any order.
        if matches!(cell, "mlstm" | "rwkv4") {
            found[1..].sort();
        }
        assert_eq!(found, expected, "{cell}");
    }
}

/// A cell's body and its verdicts; the header declares dimensions I, H, K, V, N, E and what is used of the inputs
/// `x: [I]`, `u, w: [H]`, `k: [K]`, `v: [V]`, `s: []`.
struct Case {
    what: &'static str,
    text: &'static str,
    expected: &'static [&'static str],
}

const CASES: &[Case] = &[
    Case {
        what: "relu of a sum is the (max,+) sum with 0",
        text: "cell c(H) { input u: [H] state h: [H] output h h = relu(h[t-1] + u) }",
        expected: &["{h} linear (max,+) elementwise [H] varying general 0"],
    },
    Case {
        what: "momentum: delays 1 and 2 of one state, in companion form",
        text: "cell c(H) { input u: [H] param a, b: [H] state h: [H] output h h = a * h[t-1] - b * h[t-2] + u }",
        expected: &["{h} linear (+,x) block(2) [H] invariant general 0"],
    },
    Case {
        what: "momentum as a state of its own",
        text: "cell c(H) { input u: [H] state h, m: [H] output h m = 0.9 * m[t-1] + u h = h[t-1] + m }",
        expected: &[
            "{m} linear (+,x) elementwise [] invariant general 0",
            "{h} linear (+,x) elementwise [] invariant general 0",
        ],
    },
    Case {
        what: "coupled oscillators: two states, each reads both",
        text: "cell c(H) { input u: [H] param w: [H] state p, q: [H] output q
                 p = p[t-1] - w * q[t-1] + u
                 q = q[t-1] + w * p }",
        expected: &["{p,q} linear (+,x) block(2) [H] invariant general 0"],
    },
    Case {
        what: "a coefficient that depends on another recurrence is a coefficient all the same",
        text: "cell c(H) { input u: [H] param R: [H, H] state g, h: [H] output h
                 g = tanh(R @ g[t-1] + u)
                 h = sigmoid(g[t-1]) * h[t-1] + u }",
        expected: &[
            "{g} nonlinear dense 1",
            "{h} linear (+,x) elementwise [H] varying general 0",
        ],
    },
    Case {
        what: "a coefficient that depends on the recurrence itself is a product of two reads",
        text: "cell c(H) { input u: [H] state g, h: [H] output h
                 g = g[t-1] * h[t-1] + u
                 h = g[t-1] + u }",
        expected: &["{g,h} nonlinear elementwise 0"],
    },
    Case {
        what: "a decay in the log domain",
        text: "cell c(H) { input u, w: [H] state h: [H] = -inf output h h = logaddexp(h[t-1] - softplus(w), u) }",
        expected: &["{h} linear (logaddexp,+) elementwise [H] varying general 0"],
    },
    Case {
        what: "softplus adds 1 in the log domain",
        text: "cell c(H) { input u: [H] state h: [H] output h h = softplus(h[t-1] + u) }",
        expected: &["{h} linear (logaddexp,+) elementwise [H] varying general 0"],
    },
    Case {
        what: "a running bound from below and above",
        text: "cell c(H) { input lo, hi: [H] state h: [H] output h h = max(min(h[t-1], hi), lo) }",
        expected: &["{h} linear (max,min) elementwise [H] varying general 0"],
    },
    Case {
        what: "clamp is linear over (max,min)",
        text: "cell c(H) { input lo, hi: [H] state h: [H] output h h = clamp(h[t-1], lo, hi) }",
        expected: &["{h} linear (max,min) elementwise [H] varying general 0"],
    },
    Case {
        what: "a sum that is clamped on both sides is not linear over any of these",
        text: "cell c(H) { input u: [H] state h: [H] output h h = clamp(h[t-1] + u, -1, 1) }",
        expected: &["{h} nonlinear elementwise 0"],
    },
    Case {
        what: "a running minimum of costs",
        text: "cell c(H) { input u, w: [H] state h: [H] output h h = min(h[t-1] + u, w) }",
        expected: &["{h} linear (min,+) elementwise [H] varying general 0"],
    },
    Case {
        what: "a running maximum has no coefficient",
        text: "cell c(H) { input u: [H] state h: [H] output h h = max(h[t-1], u) }",
        expected: &["{h} linear (max,+) elementwise [] invariant general 0"],
    },
    Case {
        what: "a step of Viterbi's kind through a narrower layer is dense over (max,+)",
        text: "cell c(K, V) { input u: [K] param A: [V, K], B: [K, V] state h: [K] output h
                 m = amax(A + h[t-1], K)
                 h = amax(B + m, V) + u }",
        expected: &["{h} linear (max,+) dense [K] varying general 2"],
    },
    Case {
        what: "an outer product of the input with a projection of the state",
        text: "cell c(H) { input u, w: [H] state h: [H] output h h = h[t-1] + u * (w @ h[t-1]) }",
        expected: &["{h} linear (+,x) low_rank(1) [H] varying general 1"],
    },
    Case {
        what: "two terms of rank 1",
        text: "cell c(H) { input u, w: [H] param p, q: [H] state h: [H] output h
                 h = h[t-1] + u * (w @ h[t-1]) - p * (q @ h[t-1]) }",
        expected: &["{h} linear (+,x) low_rank(2) [H] varying general 1"],
    },
    Case {
        what: "factors of a fixed inner size",
        text: "cell c(H) { input u: [H] param U: [H, 3], W: [3, H] state h: [H] output h
                 h = 0.5 * h[t-1] + U @ (W @ h[t-1]) + u }",
        expected: &["{h} linear (+,x) low_rank(3) [H] invariant general 2"],
    },
    Case {
        what: "a matrix made outside as a diagonal minus an outer product",
        text: "cell c(K, V) { input k: [K], v: [V] state S: [K, V] output y
                 A = eye(K) - einsum(\"i, j -> i j\", k, k)
                 S = A @ S[t-1] + k * v
                 y = k @ S }",
        expected: &["{S} linear (+,x) low_rank(1) [K] varying rank1 1 chunkable"],
    },
    Case {
        what: "a sum that is expanded again is of rank 1",
        text: "cell c(H) { input u: [H] state h: [H] output h h = u + h[t-1] - expand(mean(h[t-1], H), [H]) }",
        expected: &["{h} linear (+,x) low_rank(1) [] invariant general 1"],
    },
    Case {
        what: "a matrix that changes from frame to frame",
        text: "cell c(H) { input A: [H, H], u: [H] state h: [H] output h h = A @ h[t-1] + u }",
        expected: &["{h} linear (+,x) dense [H] varying general 1"],
    },
    Case {
        what: "a transposed state mixes its elements",
        text: "cell c(K) { input A: [K, K] state S: [K, K] output S S = transpose(S[t-1]) + A }",
        expected: &["{S} linear (+,x) dense [] invariant general 0"],
    },
    Case {
        what: "two states, each the transpose of the other, have the same channels",
        text: "cell c(K, V) { input a: [K], A: [K, V] state S: [K, V], Z: [V, K] output S
                 S = a * transpose(Z[t-1]) + A
                 Z = transpose(S[t-1]) }",
        expected: &["{S,Z} linear (+,x) block(2) [K] varying general 0"],
    },
    Case {
        what: "a reshape there and back leaves each element by itself",
        text: "cell c(N, E) { input a: [N], u: [N*E] state h: [N*E] output h
                 h = reshape(a * reshape(h[t-1], [N, E]), [N*E]) + u }",
        expected: &["{h} linear (+,x) elementwise [E*N] varying general 0"],
    },
    Case {
        what: "a split and a concat leave each element by itself",
        text: "cell c(H) { input u: [2*H] param f, g: [H] state h: [2*H] output h
                 a, b = split(h[t-1], 2)
                 h = concat(f * a, g * b) + u }",
        expected: &["{h} linear (+,x) elementwise [2*H] invariant general 0"],
    },
    Case {
        what: "a concat that exchanges the halves does not",
        text: "cell c(H) { input u: [2*H] state h: [2*H] output h
                 a, b = split(h[t-1], 2)
                 h = concat(b, a) + u }",
        expected: &["{h} linear (+,x) dense [2*H] invariant general 0"],
    },
    Case {
        what: "a reset is a mask",
        text: "cell c(H) { input u: [H], reset: [] state h: [H] output h h = where(reset, 0, h[t-1]) + u }",
        expected: &["{h} linear (+,x) elementwise [] varying general 0"],
    },
    Case {
        what: "a reset that the state itself decides is not linear",
        text: "cell c(H) { input u: [H] state h: [H] output h h = where(h[t-1] > 1, 0, h[t-1]) + u }",
        expected: &["{h} nonlinear elementwise 0"],
    },
    Case {
        what: "a product of two delayed reads",
        text: "cell c(H) { input u: [H] state h: [H] output h h = h[t-1] * h[t-2] + u }",
        expected: &["{h} nonlinear elementwise 0"],
    },
    Case {
        what: "stop_gradient changes no value",
        text: "cell c(H) { input u: [H] state h: [H] output h h = 0.5 * stop_gradient(h[t-1]) + u }",
        expected: &["{h} linear (+,x) elementwise [] invariant general 0"],
    },
    Case {
        what: "division by a value from outside",
        text: "cell c(H) { input u: [H], s: [] state h: [H] output h h = (h[t-1] + u) / s }",
        expected: &["{h} linear (+,x) elementwise [] varying general 0"],
    },
    Case {
        what: "division by the state",
        text: "cell c(H) { input u: [H] state h: [H] output h h = u / (2 + h[t-1]) }",
        expected: &["{h} nonlinear elementwise 0"],
    },
    Case {
        what: "a counter",
        text: "cell c() { input s: [] state n: [] = -1 output n n = n[t-1] + 1 }",
        expected: &["{n} linear (+,x) elementwise [] invariant general 0"],
    },
    Case {
        what: "heads with a matrix a head are dense in blocks",
        text: "cell c(N, E) { input u: [N, E] param R: [N, E, E] state h: [N, E] output h
                 h = einsum(\"n o i, n i -> n o\", R, h[t-1]) + u }",
        expected: &["{h} linear (+,x) dense [N,E] invariant general 1 blocks=N"],
    },
    Case {
        what: "a fast weight matrix that is squashed and read by its own state",
        text: "cell c(K) { input x: [K] state S: [K, K], h: [K] output h
                 h = tanh(S[t-1] @ h[t-1] + x)
                 S = 0.9 * S[t-1] + einsum(\"i, j -> i j\", h, x) }",
        expected: &["{S,h} nonlinear matrix_state 1"],
    },
    Case {
        what: "a shift needs the neighbours",
        text: "cell c(H) { input u: [H] state h: [H] output h h = tanh(shift(h[t-1], H, 1)) + u }",
        expected: &["{h} nonlinear dense 1"],
    },
    Case {
        what: "a linear shift register",
        text: "cell c(H) { input u: [H] state h: [H] output h h = shift(h[t-1], H, 1) + u }",
        expected: &["{h} linear (+,x) dense [H] invariant general 1"],
    },
    Case {
        what: "a norm written out counts mean and variance apart",
        text: "cell c(H) { input u: [H] state h: [H] output h
                 d = h[t-1] - mean(h[t-1], H)
                 h = d / sqrt(mean(d * d, H) + 1e-5) + u }",
        expected: &["{h} nonlinear dense 2"],
    },
    Case {
        what: "a norm counts once",
        text: "cell c(H) { input u: [H] param g, b: [H] state h: [H] output h h = layer_norm(h[t-1] + u, g, b) }",
        expected: &["{h} nonlinear dense 1"],
    },
    Case {
        what: "an alias that is delayed",
        text: "cell c(H) { input u: [H] state h: [H] output y
                 h = 0.5 * y[t-1] + u
                 y = h }",
        expected: &["{y} linear (+,x) elementwise [] invariant general 0"],
    },
    Case {
        what: "no recurrence at all",
        text: "cell c(H) { input u: [H] output y y = u + u[t-3] }",
        expected: &[],
    },
];

#[test]
fn small_cells_have_the_verdicts_that_follow_from_their_equations() {
    let mut wrong = Vec::new();
    for case in CASES {
        let found = verdicts(case.text, "c");
        if found != case.expected {
            wrong.push(format!("{}: {:#?}, expected {:#?}", case.what, found, case.expected));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn explanations_read_well() {
    let mut paths: Vec<_> = std::fs::read_dir("examples/cells")
        .expect("the examples")
        .map(|e| e.expect("one").path())
        .collect();
    paths.sort();
    let mut text = String::new();
    for path in paths {
        let stem = path.file_stem().expect("a name").to_string_lossy().into_owned();
        let graph = graph_of(&std::fs::read_to_string(&path).expect("text"), &stem);
        let facts = analysis::analyse(&graph).expect("no cycle within a frame");
        text += &format!("# {stem}\n{}\n", report::report(&graph, &facts));
    }
    insta::assert_snapshot!(text);
}

#[test]
fn rows_serialise_under_the_documented_names() {
    let graph = graph_of(CASES[0].text, "c");
    let facts = analysis::analyse(&graph).expect("no cycle within a frame");
    let json = serde_json::to_value(report::report(&graph, &facts)).expect("serialisable");
    let row = &json[0];
    assert_eq!(row["members"], serde_json::json!(["h"]));
    assert_eq!(row["class"], "linear");
    assert_eq!(row["semiring"], "(max,+)");
    assert_eq!(row["transition"], "elementwise");
    assert_eq!(row["coefficient_axes"], serde_json::json!(["H"]));
    assert_eq!(row["time_invariant"], false);
    assert_eq!(row["input_rank"], "general");
    assert_eq!(row["phases"], 0);
    assert!(row["reason"].as_str().is_some_and(|r| r.contains("`h[t-1]`")));
    assert!(row["spans"][0]["start"].is_u64());
}
