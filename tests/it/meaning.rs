//! What functions and operators mean: cells evaluated by the reference against formulas written out in Rust.

use super::golden::lower;
use rnnc::ir::{Graph, Name, NodeId, Op, Scalar, Size};
use rnnc::reference::{Tensor, evaluate};
use std::collections::BTreeMap;

const FRAMES: usize = 3;
const BATCH: usize = 2;

/// The values of one frame of one sequence, by name.
struct Frame<'t> {
    tensors: BTreeMap<&'t str, &'t [f64]>,
}

impl Frame<'_> {
    fn get(&self, name: &str) -> &[f64] {
        self.tensors[name]
    }

    /// Element (i, j) of a matrix with so many columns.
    fn at(&self, name: &str, columns: usize, i: usize, j: usize) -> f64 {
        self.get(name)[i * columns + j]
    }
}

/// Numbers from -1.5 to 1.5 that look random; whole ones below `below` for an index.
fn numbers(seed: usize, shape: &[usize], below: Option<i64>) -> Tensor {
    let mut state = seed as u64 * 7919 + 17;
    Tensor::from_fn(shape, |_| {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        let unit = (state >> 40) as f64 / (1u64 << 24) as f64;
        below.map_or(3.0 * unit - 1.5, |n| (unit * n as f64).floor())
    })
}

fn leading(graph: &Graph, id: NodeId) -> Vec<usize> {
    match graph.node(id).op {
        Op::Input => vec![FRAMES, BATCH],
        Op::StaticInput => vec![BATCH],
        _ => vec![],
    }
}

/// Evaluates a cell on made-up inputs and compares an output of every frame with a formula.
fn check(text: &str, dims: &[(&str, i64)], output: &str, formula: impl Fn(&Frame) -> Vec<f64>) {
    let graph = lower("c", text);
    let dims: BTreeMap<Name, i64> = dims.iter().map(|(n, v)| ((*n).into(), *v)).collect();
    let mut given = BTreeMap::new();
    for (seed, id) in graph.inputs.iter().chain(&graph.params).enumerate() {
        let node = graph.node(*id);
        let axes = node.ty.axes.iter().map(|s: &Size| s.eval(&dims).unwrap() as usize);
        let shape: Vec<usize> = leading(&graph, *id).into_iter().chain(axes).collect();
        let below = match &node.ty.scalar {
            Scalar::Index(n) => n.eval(&dims),
            Scalar::Real => None,
        };
        let prefix = if node.op == Op::Param { "p" } else { "x" };
        given.insert(
            format!("{prefix}.{}", node.name.as_ref().unwrap()),
            numbers(seed, &shape, below),
        );
    }
    let found = evaluate(&graph, &dims, FRAMES, BATCH, &given).unwrap();
    let found = &found[&format!("y.{output}")].data;
    let size = found.len() / (FRAMES * BATCH);
    for place in 0..FRAMES * BATCH {
        let tensors = given.iter().map(|(key, t)| {
            let (name, parts) = match (&key[..1], t.shape.len()) {
                ("p", _) => (&key[2..], 1),
                _ => (&key[2..], FRAMES * BATCH),
            };
            let length = t.data.len() / parts;
            let start = if parts == 1 { 0 } else { place * length };
            (name, &t.data[start..start + length])
        });
        let expected = formula(&Frame {
            tensors: tensors.collect(),
        });
        assert_eq!(expected.len(), size, "{output}: {text}");
        for (a, b) in expected.iter().zip(&found[place * size..]) {
            assert!(
                (a - b).abs() <= 1e-12 * (1.0 + a.abs()),
                "{output} is {b}, not {a}: {text}"
            );
        }
    }
}

const HK: &[(&str, i64)] = &[("H", 3), ("K", 4)];

fn each(x: &[f64], f: impl Fn(f64) -> f64) -> Vec<f64> {
    x.iter().map(|v| f(*v)).collect()
}

/// A matrix of H = 3 rows and K = 4 columns, element by element.
fn matrix(f: impl Fn(usize, usize) -> f64) -> Vec<f64> {
    (0..12).map(|p| f(p / 4, p % 4)).collect()
}

#[test]
fn softmax_sums_to_one_along_its_axis() {
    check(
        "cell c(H, K) { input x: [H, K] output y y = softmax(x, H) }",
        HK,
        "y",
        |f| {
            let column = |j: usize| (0..3).map(|i| f.at("x", 4, i, j).exp()).sum::<f64>();
            matrix(|i, j| f.at("x", 4, i, j).exp() / column(j))
        },
    );
    check(
        "cell c(H, K) { input x: [H, K] output y y = softmax(x) }",
        HK,
        "y",
        |f| {
            let total: f64 = f.get("x").iter().map(|v| v.exp()).sum();
            each(f.get("x"), |v| v.exp() / total)
        },
    );
}

#[test]
fn norms_use_the_last_axis_and_the_biased_variance() {
    let text = "cell c(H, K) { input x: [H, K] param g, b: [K] output y, z
        y = layer_norm(x, g, b, eps=1e-3) z = rms_norm(x, g) }";
    let row = |f: &Frame, i: usize| f.get("x")[i * 4..i * 4 + 4].to_vec();
    check(text, HK, "y", |f| {
        matrix(|i, j| {
            let x = row(f, i);
            let mean = x.iter().sum::<f64>() / 4.0;
            let variance = x.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / 4.0;
            (x[j] - mean) / (variance + 1e-3).sqrt() * f.get("g")[j] + f.get("b")[j]
        })
    });
    check(text, HK, "z", |f| {
        matrix(|i, j| {
            let x = row(f, i);
            let square = x.iter().map(|v| v * v).sum::<f64>() / 4.0;
            x[j] / (square + 1e-5).sqrt() * f.get("g")[j]
        })
    });
}

#[test]
fn indices_choose_rows() {
    let dims = &[("V", 5), ("H", 3)];
    let text = "cell c(V, H) { input token, other: index(V), x: [V] param E: [V, H] output row, loss, hot, same
        row = embed(E, token) loss = cross_entropy(x, token) hot = one_hot(token) same = (token == other) + (token != 2) }";
    let token = |f: &Frame| f.get("token")[0] as usize;
    check(text, dims, "row", |f| {
        f.get("E")[token(f) * 3..token(f) * 3 + 3].to_vec()
    });
    check(text, dims, "loss", |f| {
        let total: f64 = f.get("x").iter().map(|v| v.exp()).sum();
        vec![total.ln() - f.get("x")[token(f)]]
    });
    check(text, dims, "hot", |f| {
        (0..5).map(|i| f64::from(i == token(f))).collect()
    });
    check(text, dims, "same", |f| {
        vec![f64::from(f.get("token") == f.get("other")) + f64::from(token(f) != 2)]
    });
}

#[test]
fn triangles_identity_and_counting() {
    let text = "cell c(H, K) { input x: [H, K] output lower, upper, one, count
        lower = tril(x) upper = triu(x) one = eye(K) count = iota(K) }";
    check(text, HK, "lower", |f| {
        matrix(|i, j| if j <= i { f.at("x", 4, i, j) } else { 0.0 })
    });
    check(text, HK, "upper", |f| {
        matrix(|i, j| if j >= i { f.at("x", 4, i, j) } else { 0.0 })
    });
    check(text, HK, "one", |_| {
        (0..16).map(|p| f64::from(p / 4 == p % 4)).collect()
    });
    check(text, HK, "count", |_| vec![0.0, 1.0, 2.0, 3.0]);
}

#[test]
fn products_contract_last_with_first() {
    let text = "cell c(H, K) { input x: [K], u: [H] param W: [H, K] output a, b, d, e
        a = W @ x b = u @ W d = u @ W @ x e = 2 * u * W @ x }";
    let row = |f: &Frame, i: usize| (0..4).map(|j| f.at("W", 4, i, j) * f.get("x")[j]).sum::<f64>();
    check(text, HK, "a", |f| (0..3).map(|i| row(f, i)).collect());
    check(text, HK, "b", |f| {
        (0..4)
            .map(|j| (0..3).map(|i| f.get("u")[i] * f.at("W", 4, i, j)).sum())
            .collect()
    });
    check(text, HK, "d", |f| vec![(0..3).map(|i| f.get("u")[i] * row(f, i)).sum()]);
    check(text, HK, "e", |f| {
        (0..3).map(|i| 2.0 * f.get("u")[i] * row(f, i)).collect()
    });
}

#[test]
fn sums_of_products_are_what_they_say() {
    let text = "cell c(H, K) { input S: [H, K], u, w: [H], v: [K], s: [] output a, b, d, e
        a = sum(s * v * S * u * w, H) b = sum(u * S * v) d = sum(u * v, H) e = sum(S * S * S, [H, K]) }";
    let s = |f: &Frame, i, j| f.at("S", 4, i, j);
    check(text, HK, "a", |f| {
        let term = |i: usize, j: usize| s(f, i, j) * f.get("u")[i] * f.get("w")[i];
        (0..4)
            .map(|j| f.get("s")[0] * f.get("v")[j] * (0..3).map(|i| term(i, j)).sum::<f64>())
            .collect()
    });
    check(text, HK, "b", |f| {
        vec![matrix(|i, j| f.get("u")[i] * s(f, i, j) * f.get("v")[j]).iter().sum()]
    });
    check(text, HK, "d", |f| {
        each(f.get("v"), |v| v * f.get("u").iter().sum::<f64>())
    });
    check(text, HK, "e", |f| vec![f.get("S").iter().map(|v| v.powi(3)).sum()]);
}

#[test]
fn einsums_follow_their_labels() {
    let text = "cell c(H, K) { input M: [K, K], S: [H, K], u: [H], v: [K] output diagonal, trace, outer, form, turned
        diagonal = einsum(\"i i -> i\", M) trace = einsum(\"i i ->\", M) outer = einsum(\"i, j -> j i\", u, v)
        form = einsum(\"i, i j, j ->\", u, S, v) turned = einsum(\"i j -> j i\", S) }";
    check(text, HK, "diagonal", |f| (0..4).map(|i| f.at("M", 4, i, i)).collect());
    check(text, HK, "trace", |f| vec![(0..4).map(|i| f.at("M", 4, i, i)).sum()]);
    check(text, HK, "outer", |f| {
        (0..12).map(|p| f.get("v")[p / 3] * f.get("u")[p % 3]).collect()
    });
    check(text, HK, "form", |f| {
        vec![
            matrix(|i, j| f.get("u")[i] * f.at("S", 4, i, j) * f.get("v")[j])
                .iter()
                .sum(),
        ]
    });
    check(text, HK, "turned", |f| {
        (0..12).map(|p| f.at("S", 4, p % 3, p / 3)).collect()
    });
}

#[test]
fn parts_are_cut_joined_and_moved() {
    let text = "cell c(H, K) { input x: [3*H], S: [H, K] output a, b, d, e, g, h
        p, q, r = split(x, 3) a = concat(r, p - q) b = slice(x, 3*H, 1, H + 1)
        d = shift(S, K, 1) e = shift(S, H, -2) g = reshape(transpose(S), [H*K]) h = reshape(x, [3, H]) @ p }";
    check(text, HK, "a", |f| {
        let x = f.get("x");
        vec![x[6], x[7], x[8], x[0] - x[3], x[1] - x[4], x[2] - x[5]]
    });
    check(text, HK, "b", |f| f.get("x")[1..4].to_vec());
    check(text, HK, "d", |f| {
        matrix(|i, j| if j >= 1 { f.at("S", 4, i, j - 1) } else { 0.0 })
    });
    check(text, HK, "e", |f| {
        matrix(|i, j| if i == 0 { f.at("S", 4, 2, j) } else { 0.0 })
    });
    check(text, HK, "g", |f| (0..12).map(|p| f.at("S", 4, p % 3, p / 3)).collect());
    check(text, HK, "h", |f| {
        let x = f.get("x");
        (0..3).map(|i| (0..3).map(|j| x[i * 3 + j] * x[j]).sum()).collect()
    });
}

#[test]
fn operators_bind_as_stated() {
    let dims = &[("H", 3)];
    let text = "cell c(H) { input x, z: [H] output a, b, d, e, g, h
        a = -x^2 + 2 * x / 4 / 2 - -z b = (x - z - 1)^3 + x^-2 + x^4 d = 2^3^2 + 0 * x
        e = (x < z) + 2 * (x >= z) + 4 * (x == x) g = mod(x, -0.4) + max(x, z) - min(x, 0) + clamp(x, -1, 1)
        h = where(x > 0, H, pi) + logaddexp(x, z) }";
    let pairs = |f: &Frame, g: &dyn Fn(f64, f64) -> f64| {
        f.get("x")
            .iter()
            .zip(f.get("z"))
            .map(|(x, z)| g(*x, *z))
            .collect::<Vec<f64>>()
    };
    check(text, dims, "a", |f| pairs(f, &|x, z| -(x * x) + x / 4.0 + z));
    check(text, dims, "b", |f| {
        pairs(f, &|x, z| (x - z - 1.0).powi(3) + x.powi(-2) + x.powi(4))
    });
    check(text, dims, "d", |_| vec![512.0; 3]);
    check(text, dims, "e", |f| pairs(f, &|x, z| if x < z { 5.0 } else { 6.0 }));
    check(text, dims, "g", |f| {
        let modulo = |x: f64| x - (-0.4) * (x / -0.4).floor();
        pairs(f, &|x, z| modulo(x) + x.max(z) - x.min(0.0) + x.clamp(-1.0, 1.0))
    });
    check(text, dims, "h", |f| {
        let chosen = |x: f64| if x > 0.0 { 3.0 } else { std::f64::consts::PI };
        pairs(f, &|x, z| chosen(x) + (x.exp() + z.exp()).ln())
    });
}

#[test]
fn long_chains_keep_their_signs() {
    let dims = &[("H", 2)];
    let mut text = "cell c(H) { input x: [H] output y, z y = 0".to_owned();
    for i in 0..101 {
        text += if i % 3 == 0 { " + x" } else { " - 2 * x" };
    }
    text += " z = 1";
    for i in 0..41 {
        text += if i % 2 == 0 { " / (2 + x)" } else { " * (2 + x) * 1.5" };
    }
    text += " }";
    check(&text, dims, "y", |f| each(f.get("x"), |x| 34.0 * x - 67.0 * 2.0 * x));
    check(&text, dims, "z", |f| each(f.get("x"), |x| 1.5f64.powi(20) / (2.0 + x)));
}

#[test]
fn reductions_reduce_what_is_named() {
    let text = "cell c(H, K) { input S: [H, K] output a, b, d, e
        a = mean(S, K) b = amax(S, H) - amin(S, H) d = logsumexp(S) e = norm(S, axis=H) }";
    check(text, HK, "a", |f| {
        (0..3)
            .map(|i| (0..4).map(|j| f.at("S", 4, i, j)).sum::<f64>() / 4.0)
            .collect()
    });
    check(text, HK, "b", |f| {
        let column = |j: usize| (0..3).map(move |i| f.at("S", 4, i, j));
        (0..4)
            .map(|j| column(j).fold(f64::MIN, f64::max) - column(j).fold(f64::MAX, f64::min))
            .collect()
    });
    check(text, HK, "d", |f| {
        vec![f.get("S").iter().map(|v| v.exp()).sum::<f64>().ln()]
    });
    check(text, HK, "e", |f| {
        (0..4)
            .map(|j| (0..3).map(|i| f.at("S", 4, i, j).powi(2)).sum::<f64>().sqrt())
            .collect()
    });
}

/// The outputs of a cell with one dimension H = 1, one sequence, and inputs 1, 2, 3, ... in every frame.
fn run(text: &str, given: &[(&str, &[f64])], output: &str) -> Vec<f64> {
    let graph = lower("c", text);
    let mut tensors: BTreeMap<String, Tensor> = BTreeMap::new();
    tensors.insert("x.x".to_owned(), Tensor::from_fn(&[FRAMES, 1, 1], |t| t as f64 + 1.0));
    for (key, data) in given {
        let shape = match (&key[..1], data.len()) {
            ("p", _) => vec![1],
            (_, 1) => vec![1, 1],
            (_, k) => vec![k, 1, 1],
        };
        let data = data.to_vec();
        tensors.insert((*key).to_owned(), Tensor { shape, data });
    }
    let dims = [("H".into(), 1)].into();
    evaluate(&graph, &dims, FRAMES, 1, &tensors).unwrap()[output]
        .data
        .clone()
}

#[test]
fn windows_start_as_declared() {
    let text = "cell c(H) { input x: [H] static input ctx: [H] param w: [H]
        state h: [H] = 2 * w + ctx, n: [] = -1 output h, n
        h = h[t-1] + x n = n[t-1] + 1 }";
    assert_eq!(
        run(text, &[("p.w", &[10.0]), ("x.ctx", &[5.0])], "y.h"),
        [26.0, 28.0, 31.0]
    );
    assert_eq!(
        run(text, &[("p.w", &[10.0]), ("x.ctx", &[5.0])], "y.n"),
        [0.0, 1.0, 2.0]
    );
    let given: &[(&str, &[f64])] = &[("p.w", &[10.0]), ("x.ctx", &[5.0]), ("s0.h", &[100.0])];
    assert_eq!(run(text, given, "y.h"), [101.0, 103.0, 106.0]);
}

#[test]
fn every_delayed_name_has_its_own_window() {
    let text = "cell c(H) { input x: [H] output z y = x z = 100 * y[t-1] + x[t-2] }";
    assert_eq!(run(text, &[], "y.z"), [0.0, 100.0, 201.0]);
    let given: &[(&str, &[f64])] = &[("s0.y", &[7.0]), ("s0.x", &[3.0, 4.0])];
    assert_eq!(run(text, given, "y.z"), [703.0, 104.0, 201.0]);
    assert_eq!(run(text, given, "sT.x"), [2.0, 3.0]);
}

#[test]
fn looking_ahead_gives_zero_past_the_end() {
    let text = "cell c(H) { input x: [H] output y a = 10 * x y = x[t+1] + a[t+2] }";
    assert_eq!(run(text, &[], "y.y"), [32.0, 3.0, 0.0]);
}
