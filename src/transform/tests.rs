//! What each pass makes of small graphs, and that values stay.

use super::{PASSES, fold, hoist, merge_products, prune, run, share, split_products};
use crate::ir::op::{Binary, Reduce, Unary};
use crate::ir::testing::Build;
use crate::ir::{Graph, Name, NodeId, Op, Read, Size, Type, print::print, verify::verify};
use crate::reference::{Tensor, arguments, evaluate};
use std::collections::BTreeMap;

/// Outputs and final windows for arguments that depend on names and shapes only.
fn values(graph: &Graph) -> BTreeMap<String, Tensor> {
    let dims: BTreeMap<Name, i64> = graph
        .dims
        .iter()
        .enumerate()
        .map(|(i, d)| (d.clone(), 2 + i as i64))
        .collect();
    let (frames, batch) = (3, 2);
    let mut given = BTreeMap::new();
    for argument in arguments(graph, &dims, frames, batch).unwrap() {
        let seed = argument.key.bytes().map(f64::from).sum::<f64>();
        let tensor = Tensor::from_fn(&argument.shape, |i| ((i as f64 + 1.0) * seed).sin());
        given.insert(argument.key, tensor);
    }
    evaluate(graph, &dims, frames, batch, &given).unwrap()
}

/// Applies a pass and checks that the graph is still sound and means the same.
fn apply(graph: &mut Graph, pass: fn(&mut Graph) -> usize) -> usize {
    assert_eq!(verify(graph), Ok(()));
    let before = values(graph);
    let changes = pass(graph);
    assert_eq!(verify(graph), Ok(()), "{}", print(graph));
    let after = values(graph);
    assert!(before.keys().eq(after.keys()));
    for (key, want) in &before {
        let off = want
            .data
            .iter()
            .zip(&after[key].data)
            .map(|(a, b)| (a - b).abs())
            .fold(0.0, f64::max);
        assert!(off < 1e-12, "{key} is off by {off:e} after\n{}", print(graph));
        assert_eq!(want.shape, after[key].shape);
    }
    changes
}

/// The text of the one output's definition after `fold` and `prune`.
fn folded(b: Build, node: NodeId) -> String {
    let mut graph = b.graph;
    graph.outputs.push(crate::ir::Output {
        name: Name::from("y"),
        node,
        span: Default::default(),
    });
    apply(&mut graph, fold::run);
    apply(&mut graph, prune::run);
    expression(&graph, Read::now(graph.outputs[0].node))
}

/// A node as nested calls.
fn expression(graph: &Graph, read: Read) -> String {
    let node = graph.node(read.node);
    let operands = || {
        graph
            .operands(read.node)
            .iter()
            .map(|r| expression(graph, *r))
            .collect::<Vec<_>>()
            .join(", ")
    };
    match (&node.name, &node.op) {
        (Some(name), Op::Param | Op::Input | Op::State { .. }) if read.delay == 0 => name.to_string(),
        (Some(name), Op::State { .. }) => format!("{name}[t-{}]", read.delay),
        (_, Op::Literal(value)) => format!("{value:?}"),
        (_, Op::Broadcast { map }) => format!("broadcast{map:?}({})", operands()),
        (_, Op::Slice { axis, lo, hi }) => format!("slice({}, {axis}, {lo}, {hi})", operands()),
        (_, Op::Contract { labels, out }) => format!("contract({}; {labels:?} -> {out:?})", operands()),
        (_, op) => format!("{}({})", op.name(), operands()),
    }
}

/// `i, f, g, o = split(W @ x + R @ h[t-1] + b, 4)` and what an LSTM makes of it.
fn lstm() -> Graph {
    let mut b = Build::new("lstm", &["I", "H"]);
    let x = b.input("x", &["I"]);
    let (w, r) = (b.param("W", &["4*H", "I"]), b.param("R", &["4*H", "H"]));
    let bias = b.param("b", &["4*H"]);
    let (h, c) = (b.state("h", 1, &["H"]), b.state("c", 1, &["H"]));
    let wx = b.contract("oi,i->o", &[w.into(), x.into()]);
    let rh = b.contract("oi,i->o", &[r.into(), Read { node: h, delay: 1 }]);
    let sum = b.binary(Binary::Add, wx, rh);
    let sum = b.binary(Binary::Add, sum, bias);
    let bounds = ["0", "H", "2*H", "3*H", "4*H"];
    let gate = |b: &mut Build, i: usize, name: &str| {
        let gate = b.slice(sum, 0, bounds[i], bounds[i + 1]);
        b.name(gate, name)
    };
    let (i, f, g, o) = (
        gate(&mut b, 0, "i"),
        gate(&mut b, 1, "f"),
        gate(&mut b, 2, "g"),
        gate(&mut b, 3, "o"),
    );
    let (i, f, o) = (
        b.unary(Unary::Sigmoid, i),
        b.unary(Unary::Sigmoid, f),
        b.unary(Unary::Sigmoid, o),
    );
    let g = b.unary(Unary::Tanh, g);
    let kept = b.binary(Binary::Mul, f, Read { node: c, delay: 1 });
    let new = b.binary(Binary::Mul, i, g);
    let sum = b.binary(Binary::Add, kept, new);
    b.close(c, sum);
    let squashed = b.unary(Unary::Tanh, c);
    let value = b.binary(Binary::Mul, o, squashed);
    b.close(h, value);
    b.output("h", h);
    b.graph
}

fn count(graph: &Graph, is: fn(&Op) -> bool) -> usize {
    graph.ids().filter(|id| is(&graph.node(*id).op)).count()
}

#[test]
fn an_lstm_falls_apart_into_gates() {
    let mut graph = lstm();
    let before = print(&graph);
    let before_values = values(&graph);
    let applied = run(&mut graph);
    assert_eq!(verify(&graph), Ok(()));
    let changes: BTreeMap<&str, usize> = applied.iter().map(|a| (a.pass, a.changes)).collect();
    assert_eq!((changes["hoist"], changes["split_products"]), (4, 4));
    assert_eq!(count(&graph, |op| matches!(op, Op::Contract { .. })), 8);
    for (key, want) in before_values {
        assert_eq!(want.shape, values(&graph)[&key].shape);
    }
    insta::assert_snapshot!(format!("{before}\n{}", print(&graph)));
}

#[test]
fn each_pass_keeps_the_values_of_an_lstm() {
    let mut graph = lstm();
    for (_, pass) in PASSES {
        apply(&mut graph, *pass);
    }
    let text = print(&graph);
    for (name, pass) in PASSES {
        assert_eq!(
            (pass(&mut graph), print(&graph)),
            (0, text.clone()),
            "{name} has more to do"
        );
    }
}

#[test]
fn literals_are_computed_where_that_is_a_number() {
    let mut b = Build::new("one", &["H"]);
    let (two, zero, p) = (b.literal(2.0), b.literal(0.0), b.param("p", &["H"]));
    let half = b.unary(Unary::Neg, two);
    let wide = b.spread(half, &["H"]);
    let wide = b.unary(Unary::Exp, wide);
    let product = b.binary(Binary::Mul, wide, p);
    assert_eq!(folded(b, product), "mul(broadcast[](0.1353352832366127), p)");
    let mut b = Build::new("one", &[]);
    let _ = zero;
    let zero = b.literal(0.0);
    let nan = b.binary(Binary::Div, zero, zero);
    let mut graph = b.graph;
    assert_eq!((fold::run(&mut graph), graph.contains(nan)), (0, true));
}

#[test]
fn identities_go_if_they_hold_to_the_last_bit() {
    let rows: [(Binary, f64, bool, &str); 9] = [
        (Binary::Mul, 1.0, false, "p"),
        (Binary::Mul, 1.0, true, "p"),
        (Binary::Div, 1.0, false, "p"),
        (Binary::Pow, 1.0, false, "p"),
        (Binary::Sub, 0.0, false, "p"),
        (Binary::Add, -0.0, false, "p"),
        (Binary::Add, 0.0, false, "add(p, broadcast[](0.0))"), // -0 + 0 is 0
        (Binary::Mul, 0.0, false, "mul(p, broadcast[](0.0))"), // 0 * inf is NaN
        (Binary::Mul, -1.0, true, "neg(p)"),
    ];
    for (f, value, left, want) in rows {
        let mut b = Build::new("one", &["H"]);
        let (n, p) = (b.literal(value), b.param("p", &["H"]));
        let n = b.spread(n, &["H"]);
        let node = if left { b.binary(f, n, p) } else { b.binary(f, p, n) };
        assert_eq!(folded(b, node), want, "{f:?} {value}");
    }
}

#[test]
fn a_choice_by_a_number_is_made() {
    for (value, want) in [(0.0, "q"), (2.0, "p")] {
        let mut b = Build::new("one", &["H"]);
        let (n, p, q) = (b.literal(value), b.param("p", &["H"]), b.param("q", &["H"]));
        let n = b.spread(n, &["H"]);
        let ty = b.ty(p);
        let node = b.add(Op::Where, ty, &[n.into(), p.into(), q.into()]);
        assert_eq!(folded(b, node), want);
    }
}

#[test]
fn views_of_views_are_one() {
    let mut b = Build::new("one", &["H", "K"]);
    let p = b.param("p", &["H"]);
    let once = b.broadcast(p, &[1], &["K", "H"]);
    let twice = b.broadcast(once, &[2, 0], &["H", "3", "K"]);
    assert_eq!(folded(b, twice), "broadcast[0](p)");
    let mut b = Build::new("one", &["H"]);
    let p = b.param("p", &["4*H"]);
    let once = b.slice(p, 0, "H", "4*H");
    let twice = b.slice(once, 0, "H", "2*H");
    assert_eq!(folded(b, twice), "slice(p, 0, 2*H, 3*H)");
    let mut b = Build::new("one", &["H", "K"]);
    let p = b.param("p", &["H", "K"]);
    let flat = b.add(Op::Reshape, Type::real(Build::axes(&["H*K"])), &[p.into()]);
    let back = b.add(Op::Reshape, Type::real(Build::axes(&["H", "K"])), &[flat.into()]);
    assert_eq!(folded(b, back), "p");
    let mut b = Build::new("one", &["H", "K"]);
    let (p, q) = (b.param("p", &["H"]), b.param("q", &["K"]));
    let mut joined = b.ty(p);
    joined.axes[0] = Size::dim(&Name::from("H")).add(&Size::dim(&Name::from("K"))).unwrap();
    let whole = b.add(Op::Concat { axis: 0 }, joined, &[p.into(), q.into()]);
    let (lo, hi) = (Size::dim(&Name::from("H")), b.ty(whole).axes[0].clone());
    let ty = b.ty(q);
    let part = b.add(Op::Slice { axis: 0, lo, hi }, ty, &[whole.into()]);
    assert_eq!(folded(b, part), "q");
}

#[test]
fn views_that_change_nothing_go() {
    let mut b = Build::new("one", &["H", "K"]);
    let p = b.param("p", &["H", "K"]);
    let same = b.broadcast(p, &[0, 1], &["H", "K"]);
    let same = b.slice(same, 0, "0", "H");
    let ty = b.ty(p);
    let same = b.add(Op::Shift { axis: 1, by: 0 }, ty.clone(), &[same.into()]);
    let same = b.add(Op::Concat { axis: 0 }, ty, &[same.into()]);
    let same = b.reduce(Reduce::Max, same, &[]);
    assert_eq!(folded(b, same), "p");
}

#[test]
fn a_function_of_spread_values_comes_before_spreading() {
    let mut b = Build::new("one", &["H", "K"]);
    let (p, q) = (b.param("p", &["H"]), b.param("q", &["H"]));
    let (p, q) = (b.broadcast(p, &[1], &["K", "H"]), b.broadcast(q, &[1], &["K", "H"]));
    let p = b.unary(Unary::Exp, p);
    let product = b.binary(Binary::Mul, p, q);
    assert_eq!(folded(b, product), "broadcast[1](mul(exp(p), q))");
}

#[test]
fn products_take_views_into_their_labels() {
    let mut b = Build::new("one", &["H", "K"]);
    let (p, q) = (b.param("p", &["K", "H"]), b.param("q", &["K"]));
    let turned = b.broadcast(p, &[1, 0], &["H", "K"]);
    let product = b.contract("hk,k->h", &[turned.into(), q.into()]);
    assert_eq!(folded(b, product), "contract(p, q; [[10, 7], [10]] -> [7])");
    // A sum over copies is not the value itself; a product with them is.
    let mut b = Build::new("one", &["H", "K"]);
    let (p, q) = (b.param("p", &["H"]), b.param("q", &["K"]));
    let wide = b.broadcast(p, &[0], &["H", "K"]);
    let product = b.contract("hk,k->h", &[wide.into(), q.into()]);
    assert_eq!(folded(b, product), "contract(p, q; [[7], [10]] -> [7])");
    let mut b = Build::new("one", &["H", "K"]);
    let p = b.param("p", &["H"]);
    let wide = b.broadcast(p, &[0], &["H", "K"]);
    let product = b.contract("hk->h", &[wide.into()]);
    assert_eq!(folded(b, product), "contract(broadcast[0](p); [[7, 10]] -> [7])");
}

#[test]
fn products_that_sum_nothing_are_elementwise() {
    let mut b = Build::new("one", &["H", "K"]);
    let (p, q) = (b.param("p", &["H"]), b.param("q", &["K"]));
    let outer = b.contract("h,k->kh", &[p.into(), q.into()]);
    assert_eq!(folded(b, outer), "mul(broadcast[1](p), broadcast[0](q))");
    let mut b = Build::new("one", &["H", "K"]);
    let p = b.param("p", &["H", "K"]);
    let turned = b.contract("hk->kh", &[p.into()]);
    assert_eq!(folded(b, turned), "broadcast[1, 0](p)");
    let mut b = Build::new("one", &["H"]);
    let p = b.param("p", &["H", "H"]);
    let diagonal = b.contract("hh->h", &[p.into()]);
    assert_eq!(folded(b, diagonal), "contract(p; [[7, 7]] -> [7])");
}

#[test]
fn equal_expressions_are_shared_but_never_states() {
    let mut b = Build::new("one", &["H"]);
    let (x, p) = (b.input("x", &["H"]), b.param("p", &["H"]));
    let one = b.binary(Binary::Add, x, p);
    let other = b.binary(Binary::Add, p, x);
    let (u, v) = (b.state("u", 1, &["H"]), b.state("v", 1, &["H"]));
    b.close(u, one);
    b.close(v, other);
    let (old_u, old_v) = (Read { node: u, delay: 1 }, Read { node: v, delay: 1 });
    let (a, c) = (b.binary(Binary::Sub, old_u, x), b.binary(Binary::Sub, old_v, x));
    let (d, e) = (b.binary(Binary::Sub, x, old_u), b.binary(Binary::Mul, a, c));
    let y = b.binary(Binary::Mul, d, e);
    b.output("y", y);
    assert_eq!(apply(&mut b.graph, share::run), 1);
    assert_eq!(b.graph.states().len(), 2);
    assert_eq!(apply(&mut b.graph, share::run), 0);
}

#[test]
fn literals_of_different_sign_of_zero_are_not_shared() {
    let mut b = Build::new("one", &[]);
    let x = b.input("x", &[]);
    let (plus, minus, again) = (b.literal(0.0), b.literal(-0.0), b.literal(0.0));
    let a = b.binary(Binary::Div, x, plus);
    let c = b.binary(Binary::Div, x, minus);
    let d = b.binary(Binary::Div, x, again);
    for (name, id) in [("a", a), ("c", c), ("d", d)] {
        b.output(name, id);
    }
    assert_eq!(share::run(&mut b.graph), 2);
}

#[test]
fn pruning_keeps_the_interface_and_every_window() {
    let mut b = Build::new("one", &["H"]);
    let (x, unused) = (b.input("x", &["H"]), b.param("unused", &["H"]));
    let held = b.add(Op::State { window: 2 }, b.ty(x), &[x.into()]);
    b.name(held, "x");
    let dead = b.unary(Unary::Exp, Read { node: held, delay: 2 });
    let ahead = b.add(Op::State { window: 0 }, b.ty(x), &[dead.into()]);
    b.name(ahead, "dead");
    let y = b.unary(Unary::Tanh, x);
    b.output("y", y);
    assert_eq!(apply(&mut b.graph, prune::run), 2);
    assert_eq!((b.graph.params.len(), b.graph.states().len()), (1, 1));
    let _ = unused;
}

/// The output's definition after `hoist`.
fn hoisted(mut b: Build, node: NodeId) -> String {
    b.output("y", node);
    apply(&mut b.graph, hoist::run);
    let output = b.graph.outputs[0].node;
    expression(&b.graph, Read::now(output))
}

#[test]
fn terms_outside_a_recurrence_combine_first() {
    let mut graph = Build::elman();
    assert_eq!(apply(&mut graph, hoist::run), 1);
    let value = graph.operands(graph.states()[0])[0];
    assert_eq!(
        expression(&graph, value),
        "tanh(add(add(contract(W, x; [[14, 8], [8]] -> [14]), b), contract(R, h[t-1]; [[14, 8], [8]] -> [14])))"
    );
    assert_eq!(hoist::run(&mut graph), 0);
}

#[test]
fn constant_terms_and_factors_combine() {
    let mut b = Build::new("one", &["H"]);
    let (x, p, q) = (b.input("x", &["H"]), b.param("p", &["H"]), b.param("q", &["H"]));
    let sum = b.binary(Binary::Sub, p, x);
    let sum = b.binary(Binary::Sub, sum, q);
    assert_eq!(hoisted(b, sum), "sub(sub(p, q), x)");
    let mut b = Build::new("one", &["H"]);
    let (x, p, q) = (b.input("x", &["H"]), b.param("p", &["H"]), b.param("q", &["H"]));
    let inner = b.binary(Binary::Add, p, q);
    let (left, right) = (b.binary(Binary::Sub, x, p), b.binary(Binary::Sub, inner, q));
    let sum = b.binary(Binary::Sub, left, right);
    assert_eq!(hoisted(b, sum), "add(x, sub(q, add(add(p, p), q)))");
    let mut b = Build::new("one", &["H"]);
    let (x, p, s) = (b.input("x", &["H"]), b.param("p", &["H"]), b.static_input("s", &["H"]));
    let product = b.binary(Binary::Mul, s, x);
    let product = b.binary(Binary::Mul, product, p);
    assert_eq!(hoisted(b, product), "mul(mul(static_input(), p), x)");
}

#[test]
fn what_is_read_twice_or_is_an_output_stays() {
    let mut b = Build::new("one", &["H"]);
    let (x, p, q) = (b.input("x", &["H"]), b.param("p", &["H"]), b.param("q", &["H"]));
    let inner = b.binary(Binary::Add, x, p);
    let sum = b.binary(Binary::Add, inner, q);
    b.output("inner", inner);
    b.output("sum", sum);
    assert_eq!(apply(&mut b.graph, hoist::run), 0);
}

#[test]
fn what_is_needed_whole_is_not_split() {
    let mut b = Build::new("one", &["I", "H"]);
    let (x, w) = (b.input("x", &["I"]), b.param("W", &["2*H", "I"]));
    let product = b.contract("oi,i->o", &[w.into(), x.into()]);
    let total = b.reduce(Reduce::Sum, product, &[0]);
    let wide = b.spread(total, &["2*H"]);
    let norm = b.binary(Binary::Div, product, wide);
    let (u, v) = (b.slice(norm, 0, "0", "H"), b.slice(norm, 0, "H", "2*H"));
    b.output("u", u);
    b.output("v", v);
    // The quotient and its divisor are split, the product under the sum is not.
    assert_eq!(apply(&mut b.graph, split_products::run), 2);
    assert_eq!(count(&b.graph, |op| matches!(op, Op::Contract { .. })), 1);
}

#[test]
fn heads_of_a_reshaped_product_become_blocks() {
    let mut b = Build::new("one", &["N", "E"]);
    let (h, r) = (b.input("h", &["N", "E"]), b.param("R", &["4", "N", "E", "E"]));
    let product = b.contract("gnoi,ni->gno", &[r.into(), h.into()]);
    let flat = b.add(Op::Reshape, Type::real(Build::axes(&["4*N*E"])), &[product.into()]);
    for (name, lo, hi) in [("a", "0", "N*E"), ("b", "N*E", "2*N*E"), ("c", "3*N*E", "4*N*E")] {
        let part = b.slice(flat, 0, lo, hi);
        b.output(name, part);
    }
    assert_eq!(apply(&mut b.graph, split_products::run), 2);
    let node = b.graph.outputs[2].node;
    assert_eq!(
        expression(&b.graph, Read::now(node)),
        "reshape(contract(slice(R, 0, 3, 4), h; [[6, 13, 14, 8], [13, 8]] -> [6, 13, 14]))"
    );
}

#[test]
fn slices_pass_through_spreading_gathering_and_other_views() {
    let mut b = Build::new("one", &["V", "H"]);
    let (token, table) = (b.index("token", "V"), b.param("E", &["V", "2*H"]));
    let row = b.add(
        Op::Gather,
        Type::real(Build::axes(&["2*H"])),
        &[table.into(), token.into()],
    );
    let wide = b.broadcast(row, &[1], &["3", "2*H"]);
    let ty = b.ty(wide);
    let moved = b.add(Op::Shift { axis: 0, by: 1 }, ty, &[wide.into()]);
    let some = b.slice(moved, 0, "1", "3");
    let both = b.add(
        Op::Concat { axis: 0 },
        Type::real(Build::axes(&["4", "2*H"])),
        &[some.into(), some.into()],
    );
    let (u, v) = (b.slice(both, 1, "0", "H"), b.slice(both, 1, "H", "2*H"));
    b.output("u", u);
    b.output("v", v);
    assert_eq!(split_products::run(&mut b.graph), 5);
    assert_eq!(verify(&b.graph), Ok(()));
    let node = b.graph.outputs[1].node;
    let text = expression(&b.graph, Read::now(node));
    assert!(text.contains("gather(slice(E, 1, H, 2*H)"), "{text}");
}

#[test]
fn joined_products_of_adjacent_slices_are_one() {
    let mut b = Build::new("one", &["I", "H"]);
    let (x, w, u) = (
        b.input("x", &["I"]),
        b.param("W", &["3*H", "I"]),
        b.param("U", &["H", "I"]),
    );
    let parts = [("0", "H"), ("H", "2*H")].map(|(lo, hi)| b.slice(w, 0, lo, hi));
    let mut operands: Vec<Read> = Vec::new();
    for part in parts.into_iter().chain([u]) {
        operands.push(b.contract("oi,i->o", &[part.into(), x.into()]).into());
    }
    let joined = b.add(Op::Concat { axis: 0 }, Type::real(Build::axes(&["3*H"])), &operands);
    b.output("y", joined);
    assert_eq!(apply(&mut b.graph, merge_products::run), 1);
    apply(&mut b.graph, prune::run);
    assert_eq!(count(&b.graph, |op| matches!(op, Op::Contract { .. })), 2);
}

#[test]
fn two_weights_of_one_operand_are_added_first() {
    let mut b = Build::new("one", &["I", "H"]);
    let (x, w, u) = (
        b.input("x", &["I"]),
        b.param("W", &["H", "I"]),
        b.param("U", &["H", "I"]),
    );
    let (a, c) = (
        b.contract("oi,i->o", &[w.into(), x.into()]),
        b.contract("oi,i->o", &[u.into(), x.into()]),
    );
    let y = b.binary(Binary::Sub, a, c);
    b.output("y", y);
    assert_eq!(apply(&mut b.graph, merge_products::run), 1);
    let node = b.graph.outputs[0].node;
    assert_eq!(
        expression(&b.graph, Read::now(node)),
        "contract(sub(W, U), x; [[14, 8], [8]] -> [14])"
    );
}

/// 50,000 nodes, some of them read by very many others: a pass whose time grew with their square would take minutes.
#[test]
fn passes_take_time_in_proportion() {
    let mut b = Build::new("long", &["H"]);
    let (x, p) = (b.input("x", &["8*H"]), b.param("p", &["8*H"]));
    let one = b.literal(1.0);
    let wide = b.spread(one, &["8*H"]);
    let mut sum = x;
    for i in 0..15_000 {
        let term = b.binary(Binary::Mul, if i % 2 == 0 { x } else { p }, wide);
        let squashed = b.unary(Unary::Tanh, term);
        let next = b.binary(Binary::Add, sum, squashed);
        sum = if i % 3 == 0 {
            b.binary(Binary::Max, next, p)
        } else {
            next
        };
    }
    let (u, v) = (b.slice(sum, 0, "0", "4*H"), b.slice(sum, 0, "4*H", "8*H"));
    b.output("u", u);
    b.output("v", v);
    for (name, pass) in PASSES {
        let start = std::time::Instant::now();
        pass(&mut b.graph);
        let seconds = start.elapsed().as_secs_f64();
        assert!(seconds < 10.0, "{name} took {seconds} s");
        println!("{name}: {seconds:.3} s, {} nodes", b.graph.len());
    }
}
