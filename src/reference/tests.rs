//! The reference against values computed by hand, and its errors.

use super::{ReferenceError, Tensor, evaluate};
use crate::ir::op::{Binary, Reduce, Unary};
use crate::ir::testing::Build;
use crate::ir::{Graph, Kind, Name, NodeId, Op, Read, Size, Type, verify::verify};
use std::collections::BTreeMap;

type Tensors = BTreeMap<String, Tensor>;

fn tensor(shape: &[usize], data: &[f64]) -> Tensor {
    assert_eq!(shape.iter().product::<usize>(), data.len());
    Tensor {
        shape: shape.to_vec(),
        data: data.to_vec(),
    }
}

fn dims(values: &[(&str, i64)]) -> BTreeMap<Name, i64> {
    values.iter().map(|(d, n)| (Name::from(*d), *n)).collect()
}

fn given(tensors: &[(&str, Tensor)]) -> Tensors {
    tensors.iter().map(|(k, t)| ((*k).to_owned(), t.clone())).collect()
}

/// The value of `node` under one frame of one sequence; parameters by name.
fn once(mut b: Build, node: NodeId, sizes: &[(&str, i64)], tensors: &[(&str, Tensor)]) -> Tensor {
    b.output("result", node);
    verify(&b.graph).unwrap();
    let mut result = evaluate(&b.graph, &dims(sizes), 1, 1, &given(tensors))
        .unwrap()
        .remove("y.result")
        .unwrap();
    result.shape.drain(..2);
    result
}

fn read(node: NodeId, delay: i32) -> Read {
    Read { node, delay }
}

/// `y = x[t-3] + 10 x[t-1]`, with a default window.
fn taps(initial: bool) -> Graph {
    let mut b = Build::new("taps", &[]);
    let x = b.input("x", &[]);
    let state = b.add(Op::State { window: 3 }, Type::scalar(), &[x.into()]);
    b.name(state, "x");
    if initial {
        let p = b.param("p", &[]);
        b.graph.set_operand(state, 1, p.into());
    }
    let ten = b.literal(10.0);
    let near = b.binary(Binary::Mul, read(state, 1), ten);
    let y = b.binary(Binary::Add, read(state, 3), near);
    b.output("y", y);
    b.graph
}

#[test]
fn elman_agrees_with_a_loop_by_hand() {
    let graph = Build::elman();
    let (i, h, frames, batch) = (3, 2, 4, 2);
    let wave = |shape: &[usize], phase: f64| Tensor::from_fn(shape, |k| (0.7 * k as f64 + phase).sin());
    let tensors = given(&[
        ("x.x", wave(&[frames, batch, i], 0.1)),
        ("p.W", wave(&[h, i], 0.2)),
        ("p.R", wave(&[h, h], 0.3)),
        ("p.b", wave(&[h], 0.4)),
        ("s0.h", wave(&[batch, h], 0.5)),
    ]);
    let got = evaluate(&graph, &dims(&[("I", 3), ("H", 2)]), frames, batch, &tensors).unwrap();
    let at = |key: &str, k: usize| tensors[key].data[k];
    let mut state = tensors["s0.h"].data.clone();
    let mut all = Vec::new();
    for t in 0..frames {
        let mut next = Vec::new();
        for (n, u) in (0..batch).flat_map(|n| (0..h).map(move |u| (n, u))) {
            let input: f64 = (0..i)
                .map(|k| at("p.W", u * i + k) * at("x.x", (t * batch + n) * i + k))
                .sum();
            let own: f64 = (0..h).map(|k| at("p.R", u * h + k) * state[n * h + k]).sum();
            next.push((input + own + at("p.b", u)).tanh());
        }
        state = next;
        all.extend(&state);
    }
    let largest = got["y.h"]
        .data
        .iter()
        .zip(&all)
        .map(|(a, b)| (a - b).abs())
        .fold(0.0, f64::max);
    assert!(largest < 1e-15, "{largest:e}");
    assert_eq!(got["y.h"].shape, [frames, batch, h]);
    assert_eq!(got["sT.h"].shape, [batch, h]);
    assert_eq!(got["sT.h"].data, got["y.h"].data[(frames - 1) * batch * h..]);
}

#[test]
fn windows_are_oldest_first_and_end_in_the_last_frames() {
    let x = tensor(&[2, 2], &[1.0, 2.0, 3.0, 4.0]);
    let s0 = tensor(&[3, 2], &[0.1, 0.2, 0.3, 0.4, 0.5, 0.6]);
    let got = evaluate(&taps(false), &dims(&[]), 2, 2, &given(&[("x.x", x), ("s0.x", s0)])).unwrap();
    assert_eq!(got["y.y"], tensor(&[2, 2], &[5.1, 6.2, 10.3, 20.4]));
    // T < k: the window still holds a frame from before the first.
    assert_eq!(got["sT.x"], tensor(&[3, 2], &[0.5, 0.6, 1.0, 2.0, 3.0, 4.0]));
}

#[test]
fn a_window_defaults_to_its_expression_or_to_zero() {
    let x = tensor(&[1, 1], &[1.0]);
    let zero = evaluate(&taps(false), &dims(&[]), 1, 1, &given(&[("x.x", x.clone())])).unwrap();
    assert_eq!(zero["y.y"].data, [0.0]);
    let p = tensor(&[], &[7.0]);
    let seven = evaluate(&taps(true), &dims(&[]), 1, 1, &given(&[("x.x", x), ("p.p", p)])).unwrap();
    assert_eq!(seven["y.y"].data, [77.0]);
    assert_eq!(seven["sT.x"].data, [7.0, 7.0, 1.0]);
}

/// `y = x[t+2]`, where x is the state of another recurrence: zero past the end, and no window.
#[test]
fn reading_ahead_finds_zero_past_the_last_frame() {
    let mut b = Build::new("ahead", &[]);
    let x = b.input("x", &[]);
    let state = b.add(Op::State { window: 0 }, Type::scalar(), &[x.into()]);
    b.name(state, "x");
    let y = b.unary(Unary::Neg, read(state, -2));
    b.output("y", y);
    verify(&b.graph).unwrap();
    let x = tensor(&[3, 1], &[1.0, 2.0, 3.0]);
    let got = evaluate(&b.graph, &dims(&[]), 3, 1, &given(&[("x.x", x)])).unwrap();
    assert_eq!(got["y.y"].data, [-3.0, 0.0, 0.0]);
    assert!(!got.contains_key("sT.x"));
}

#[test]
fn outputs_of_lower_kind_are_repeated() {
    let mut b = Build::new("repeat", &[]);
    let (c, p) = (b.static_input("c", &[]), b.param("p", &[]));
    let sum = b.binary(Binary::Add, c, p);
    let twice = b.binary(Binary::Add, p, p);
    b.output("s", sum);
    b.output("p", twice);
    let tensors = given(&[("x.c", tensor(&[2], &[1.0, 2.0])), ("p.p", tensor(&[], &[10.0]))]);
    let got = evaluate(&b.graph, &dims(&[]), 2, 2, &tensors).unwrap();
    assert_eq!(got["y.s"].data, [11.0, 12.0, 11.0, 12.0]);
    assert_eq!(got["y.p"].data, [20.0; 4]);
}

#[test]
fn every_mistake_of_the_caller_has_its_error() {
    let graph = taps(true);
    let good = given(&[("x.x", tensor(&[1, 1], &[1.0])), ("p.p", tensor(&[], &[1.0]))]);
    let with = |key: &str, t: Tensor| {
        let mut tensors = good.clone();
        tensors.insert(key.to_owned(), t);
        evaluate(&graph, &dims(&[]), 1, 1, &tensors).unwrap_err().to_string()
    };
    assert_eq!(with("s0.q", Tensor::default()), "the cell has no s0.q");
    assert_eq!(
        with("x.x", tensor(&[1], &[1.0])),
        "x.x has the shape [1], expected [1, 1]"
    );
    assert_eq!(
        with("s0.x", tensor(&[1, 1], &[1.0])),
        "s0.x has the shape [1, 1], expected [3, 1]"
    );
    let mut less = good.clone();
    less.remove("p.p");
    assert_eq!(
        evaluate(&graph, &dims(&[]), 1, 1, &less),
        Err(ReferenceError::Missing { name: "p.p".into() })
    );
    let call = |sizes: &[(&str, i64)], frames| {
        evaluate(&Build::elman(), &dims(sizes), frames, 1, &Tensors::new())
            .unwrap_err()
            .to_string()
    };
    assert_eq!(call(&[("I", 1)], 1), "the dimension H has no value");
    assert_eq!(call(&[("I", 1), ("H", 0)], 1), "H is 0, out of range");
    assert_eq!(call(&[("I", 1), ("H", 1), ("K", 1)], 1), "the cell has no dimension K");
    assert_eq!(
        call(&[("I", 1), ("H", 1)], 0),
        "the number of frames is 0, out of range"
    );
    assert_eq!(call(&[("I", 1), ("H", 1 << 32)], 1), "H is too large");
    assert_eq!(call(&[("I", 1 << 31), ("H", 1 << 31)], 4), "[H, I] is too large");
}

#[test]
fn slices_stay_within_their_axis() {
    let mut b = Build::new("cut", &["N", "K"]);
    let p = b.param("p", &["N"]);
    let cut = b.slice(p, 0, "K", "2*K");
    b.output("y", cut);
    let tensors = given(&[("p.p", tensor(&[4], &[1.0, 2.0, 3.0, 4.0]))]);
    let run = |k| evaluate(&b.graph, &dims(&[("N", 4), ("K", k)]), 1, 1, &tensors);
    assert_eq!(run(2).unwrap()["y.y"].data, [3.0, 4.0]);
    assert_eq!(run(3).unwrap_err().to_string(), "2*K is 6, out of range");
}

#[test]
fn an_index_is_whole_and_in_range() {
    let mut b = Build::new("embed", &["V", "E"]);
    let (token, table) = (b.index("token", "V"), b.param("table", &["V", "E"]));
    let row = b.add(
        Op::Gather,
        Type::real(Build::axes(&["E"])),
        &[table.into(), token.into()],
    );
    let hot = b.add(Op::OneHot, Type::real(Build::axes(&["V"])), &[token.into()]);
    let real = b.add(Op::IndexToReal, Type::scalar(), &[token.into()]);
    for (name, id) in [("row", row), ("hot", hot), ("real", real)] {
        b.output(name, id);
    }
    let table = tensor(&[3, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let run = |token: f64| {
        let tensors = given(&[("x.token", tensor(&[1, 1], &[token])), ("p.table", table.clone())]);
        evaluate(&b.graph, &dims(&[("V", 3), ("E", 2)]), 1, 1, &tensors)
    };
    let got = run(2.0).unwrap();
    assert_eq!(got["y.row"].data, [5.0, 6.0]);
    assert_eq!(got["y.hot"].data, [0.0, 0.0, 1.0]);
    assert_eq!(got["y.real"].data, [2.0]);
    for (wrong, said) in [(3.0, "3"), (-1.0, "-1"), (0.5, "0.5"), (f64::NAN, "NaN")] {
        assert_eq!(
            run(wrong).unwrap_err().to_string(),
            format!("x.token holds the index {said}, outside 0..3")
        );
    }
}

#[test]
fn views_move_elements() {
    let matrix = || ("p.m", tensor(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]));
    let sizes = [("R", 2), ("C", 3)];
    let view = |op: Op, axes: &[&str]| {
        let mut b = Build::new("view", &["R", "C"]);
        let m = b.param("m", &["R", "C"]);
        let node = b.add(op, Type::real(Build::axes(axes)), &[m.into()]);
        once(b, node, &sizes, &[matrix()]).data
    };
    assert_eq!(
        view(Op::Broadcast { map: vec![1, 0] }, &["C", "R"]),
        [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]
    );
    assert_eq!(
        view(Op::Broadcast { map: vec![0, 2] }, &["R", "2", "C"]),
        [1.0, 2.0, 3.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 4.0, 5.0, 6.0]
    );
    assert_eq!(view(Op::Reshape, &["C*R"]), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    assert_eq!(
        view(Op::Shift { axis: 1, by: 1 }, &["R", "C"]),
        [0.0, 1.0, 2.0, 0.0, 4.0, 5.0]
    );
    assert_eq!(
        view(Op::Shift { axis: 0, by: -1 }, &["R", "C"]),
        [4.0, 5.0, 6.0, 0.0, 0.0, 0.0]
    );
    let slice = Op::Slice {
        axis: 1,
        lo: Size::int(1),
        hi: Size::int(3),
    };
    assert_eq!(view(slice, &["R", "2"]), [2.0, 3.0, 5.0, 6.0]);
    let mut b = Build::new("join", &["R", "C"]);
    let m = b.param("m", &["R", "C"]);
    let node = b.add(
        Op::Concat { axis: 1 },
        Type::real(Build::axes(&["R", "2*C"])),
        &[m.into(), m.into()],
    );
    let twice = [1.0, 2.0, 3.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 4.0, 5.0, 6.0];
    assert_eq!(once(b, node, &sizes, &[matrix()]).data, twice);
}

#[test]
fn contractions_sum_what_the_result_lacks() {
    let sizes = [("N", 2), ("K", 3)];
    let tensors = [
        ("p.a", tensor(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])),
        ("p.s", tensor(&[2, 2], &[1.0, 2.0, 3.0, 4.0])),
        ("p.v", tensor(&[3], &[1.0, 10.0, 100.0])),
    ];
    let contract = |spec: &str, names: &[&str]| {
        let mut b = Build::new("product", &["N", "K"]);
        let all = [
            ("a", b.param("a", &["N", "K"])),
            ("s", b.param("s", &["N", "N"])),
            ("v", b.param("v", &["K"])),
        ];
        let ids: BTreeMap<&str, NodeId> = all.into_iter().collect();
        let operands: Vec<Read> = names.iter().map(|n| Read::now(ids[n])).collect();
        let node = b.contract(spec, &operands);
        once(b, node, &sizes, &tensors).data
    };
    assert_eq!(contract("nk,k->n", &["a", "v"]), [321.0, 654.0]);
    assert_eq!(contract("nk->k", &["a"]), [5.0, 7.0, 9.0]);
    assert_eq!(contract("nn->n", &["s"]), [1.0, 4.0]);
    assert_eq!(contract("nn->", &["s"]), [5.0]);
    assert_eq!(contract("nk,nk->n", &["a", "a"]), [14.0, 77.0]);
    assert_eq!(contract("nm,nk->km", &["s", "a"]), [13.0, 18.0, 17.0, 24.0, 21.0, 30.0]);
    assert_eq!(contract("k,k->", &["v", "v"]), [10101.0]);
    assert_eq!(
        contract("i,k->ki", &["v", "v"]),
        [1.0, 10.0, 100.0, 10.0, 100.0, 1000.0, 100.0, 1000.0, 10000.0]
    );
}

#[test]
fn reductions_fold_their_axes() {
    let reduce = |op: Reduce, axes: &[usize]| {
        let mut b = Build::new("fold", &["N", "K"]);
        let a = b.param("a", &["N", "K"]);
        let node = b.reduce(op, a, axes);
        once(
            b,
            node,
            &[("N", 2), ("K", 3)],
            &[("p.a", tensor(&[2, 3], &[1.0, 2.0, 6.0, 3.0, 4.0, 5.0]))],
        )
        .data
    };
    assert_eq!(reduce(Reduce::Sum, &[1]), [9.0, 12.0]);
    assert_eq!(reduce(Reduce::Max, &[0]), [3.0, 4.0, 6.0]);
    assert_eq!(reduce(Reduce::Mean, &[0, 1]), [3.5]);
    assert_eq!(reduce(Reduce::Var, &[1]), [14.0 / 3.0, 2.0 / 3.0]);
}

#[test]
fn choices_and_numbers() {
    let mut b = Build::new("choose", &["N"]);
    let ty = Type::real(Build::axes(&["N"]));
    let at = b.add(Op::Iota, ty.clone(), &[]);
    let size = b.add(Op::SizeValue(Build::axes(&["2*N"]).remove(0)), Type::scalar(), &[]);
    let n = b.spread(size, &["N"]);
    let two = b.literal(2.0);
    let (two, zero) = (b.spread(two, &["N"]), b.literal(0.0));
    let zero = b.spread(zero, &["N"]);
    let less = b.binary(Binary::Lt, at, two);
    let chosen = b.add(Op::Where, ty.clone(), &[less.into(), n.into(), at.into()]);
    let clamped = b.add(Op::Clamp, ty, &[chosen.into(), zero.into(), two.into()]);
    let sum = b.binary(Binary::Add, chosen, clamped);
    assert_eq!(b.graph.node(sum).kind, Kind::Const);
    assert_eq!(once(b, sum, &[("N", 4)], &[]).data, [10.0, 10.0, 4.0, 5.0]);
}

#[test]
fn a_recurrence_does_not_read_its_own_future() {
    let mut b = Build::new("oracle", &[]);
    let h = b.state("h", 1, &[]);
    let sum = b.binary(Binary::Add, read(h, 1), read(h, -1));
    b.close(h, sum);
    b.output("h", h);
    let failed = evaluate(&b.graph, &dims(&[]), 1, 1, &Tensors::new());
    assert_eq!(failed, Err(ReferenceError::ReadsAhead { name: "h".into() }));
}
