//! Derivatives of every operation against finite differences of the reference, in f64.

use crate::golden;
use crate::support::Tensors;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rnnc::ir::{Graph, Name};
use rnnc::reference::{self, Effort, Tensor, draw};
use rnnc::transform::{self, gradient};
use std::collections::BTreeMap;

/// T and B: more frames than any window, and fewer.
const SIZES: [(usize, usize); 2] = [(5, 2), (1, 1)];
/// What remains of rounding and of the third derivative.
const TOLERANCE: f64 = 1e-6;

/// What a cell computes from vectors `u` and `v` of A numbers (`v` has a past), a vector `w` of B numbers, `M: [B, A]`,
/// `Q: [A, A]`, `K: [2, B, A]`, a scalar `q` and a static vector `s` of A numbers.
const EXPRESSIONS: &[&str] = &[
    "-u",
    "exp(u)",
    "log(u*u + 1.1)",
    "sqrt(u*u + 0.5)",
    "abs(u)",
    "tanh(u)",
    "sigmoid(u)",
    "relu(u)",
    "softplus(u)",
    "logsigmoid(u)",
    "gelu(u)",
    "silu(u)",
    "sin(u)",
    "cos(u)",
    "u * sign(v)",
    "u * floor(3*v)",
    "erf(u)",
    "hard_sigmoid(4*u)",
    "u + v*v",
    "u - v*u",
    "u * v * v",
    "u / (v*v + 1)",
    "max(u, v)",
    "min(u*u, v)",
    "pow(u*u + 0.5, v)",
    "u^3",
    "mod(u, 0.7 + v*v)",
    "logaddexp(u, v)",
    "where(u > v, u*v, v)",
    "clamp(u, -0.3, 0.4)",
    "clamp(u, v - 0.1, v + 0.2)",
    "sum(u * v, A)",
    "u * mean(v, A)",
    "u * amax(v, A)",
    "u * amin(v, A)",
    "logsumexp(u, A)",
    "norm(u, A)",
    "softmax(u, A)",
    "layer_norm(u, p, s)",
    "rms_norm(u, p)",
    "sum(K * q, [2, B])",
    "logsumexp(K * u, A)",
    "slice(u, A, 1, A)",
    "slice(u, A, 0, 2)",
    "slice(u, A, 1, 2) * slice(u, A, 0, 1)",
    "concat(u, w)",
    "concat(v, u*u)",
    "reshape(K, [2*B, A]) @ u",
    "shift(u, A, 1)",
    "shift(u, A, -2)",
    "transpose(M) @ w",
    "expand(q * u, [B, A])",
    "tril(Q) @ u",
    "triu(Q) @ v",
    "eye(A) @ u",
    "M @ u",
    "M @ (Q @ v)",
    "M @ u + M @ v",
    "(M @ Q) @ u",
    "einsum(\"i, j -> i j\", u, w)",
    "einsum(\"i i -> i\", Q) * u",
    "einsum(\"i i, i -> i\", Q, u)",
    "einsum(\"i j, i -> \", Q, u)",
    "einsum(\"k j i, i -> k j\", K, u)",
    "einsum(\"k j i, j -> i k\", K, w)",
    "einsum(\"k j i, k j i -> k i\", K, K * u)",
    "einsum(\"i, j -> i\", u, w)",
    "einsum(\"i j -> \", Q) * q",
    "u * iota(A)",
    "p * u + p * p",
    "q * u * q",
    "s * u + s",
    "(Q @ s) * u",
    "tanh(M @ s)",
    "exp(p) * q",
    "u[t+1] * v",
    "x[t+2] * x[t+1] - x[t-1] * x",
    "Q @ v[t+1] + v[t+3]",
    "slice(v[t+1], A, 1, 2) * q",
    "sum(u[t+4] * u[t-1], A)",
];

fn cell(expression: &str) -> String {
    format!(
        "cell c(A, B) {{
  input x: [A], z: [B]
  static input s: [A]
  param p: [A], q: [], M: [B, A], Q: [A, A], K: [2, B, A]
  state v: [A], w: [B] = 0.3
  output y, v
  u = x + 0.2 * x[t-2]
  v = tanh(0.7 * v[t-1] - 0.4 * v[t-3] + x)
  w = z * w[t-1] + 0.5
  y = {expression}
}}"
    )
}

/// Warnings of unused declarations are of no interest here.
fn graph(text: &str) -> Graph {
    let (file, found) = rnnc::syntax::parse(text.as_bytes());
    let shown = |found: &rnnc::diagnostics::Diagnostics| rnnc::diagnostics::render::render(found, "cell", text, false);
    assert!(!found.has_errors(), "{}", shown(&found));
    let (graph, found) = rnnc::lower::lower(&file, None, None);
    assert!(!found.has_errors(), "{}", shown(&found));
    graph.unwrap()
}

struct Check<'g> {
    graph: &'g Graph,
    dims: BTreeMap<Name, i64>,
    size: (usize, usize),
    given: Tensors,
    cotangents: Tensors,
}

impl<'g> Check<'g> {
    fn new(graph: &'g Graph, dims: BTreeMap<Name, i64>, size: (usize, usize)) -> Check<'g> {
        let mut random = ChaCha8Rng::seed_from_u64(7);
        let (mut given, mut cotangents) = (Tensors::new(), Tensors::new());
        for argument in reference::arguments(graph, &dims, size.0, size.1).unwrap() {
            let tensor = match argument.range {
                Some(rows) => Tensor::from_fn(&argument.shape, |i| ((i * 7 + 3) % rows) as f64),
                None => draw(&mut random, &argument.shape),
            };
            given.insert(argument.key, tensor);
        }
        for (key, tensor) in reference::evaluate(graph, &dims, size.0, size.1, &given).unwrap() {
            if key != "sT.token" {
                cotangents.insert(format!("d{key}"), draw(&mut random, &tensor.shape));
            }
        }
        Check {
            graph,
            dims,
            size,
            given,
            cotangents,
        }
    }

    fn run(&self, what: &str) {
        let gradient = gradient::run(self.graph);
        assert_eq!(rnnc::ir::verify::verify(&gradient.backward), Ok(()), "{what}");
        let mut random = ChaCha8Rng::seed_from_u64(11);
        let tensors = (&self.given, &self.cotangents);
        let rows = reference::differences(
            self.graph,
            &gradient,
            &self.dims,
            self.size,
            tensors,
            Effort::default(),
            &mut random,
        );
        let rows = rows.unwrap_or_else(|e| panic!("{what}: {e}"));
        let real = self.given.keys().filter(|key| !key.ends_with("token")).count();
        assert_eq!(rows.len(), real, "{what}");
        for row in rows {
            assert!(row.error < TOLERANCE, "{what}: {} is off by {:e}", row.key, row.error);
        }
    }
}

/// As written and after the passes.
fn check(text: &str, dims: &[(&str, i64)]) {
    let dims: BTreeMap<Name, i64> = dims.iter().map(|(k, v)| (Name::from(*k), *v)).collect();
    for size in SIZES {
        let mut graph = graph(text);
        Check::new(&graph, dims.clone(), size).run(text);
        transform::run(&mut graph);
        Check::new(&graph, dims.clone(), size).run(&format!("after the passes: {text}"));
    }
}

#[test]
fn every_operation_has_its_derivative() {
    for expression in EXPRESSIONS {
        check(&cell(expression), &[("A", 3), ("B", 4)]);
    }
}

#[test]
fn tables_and_losses_have_derivatives() {
    let text = "cell c(V, E) {
  input token: index(V)
  param E: [V, E], W: [V, E]
  state h: [E]
  output loss
  h = tanh(embed(E, token) + 0.5 * h[t-1] + embed(E, token[t-1]))
  loss = cross_entropy(W @ h, token)
}";
    check(text, &[("V", 5), ("E", 3)]);
}

/// States that are not given start from parameters and static inputs, which get their gradients.
#[test]
fn defaults_of_windows_have_derivatives() {
    let text = "cell c(H) {
  input x: [H]
  static input s: [H]
  param p: [H], q: []
  state h: [H] = tanh(p) * s, g: [H] = q, k: [H] = 0.5
  output h, k
  h = tanh(x + 0.5 * h[t-1] * g[t-2])
  g = g[t-1] * 0.9 + h
  k = k[t-1] * p + g
}";
    let dims = BTreeMap::from([(Name::from("H"), 3)]);
    for size in SIZES {
        let mut graph = graph(text);
        transform::run(&mut graph);
        let mut check = Check::new(&graph, dims.clone(), size);
        check.given.retain(|key, _| !key.starts_with("s0.") || key == "s0.k");
        check.run(text);
    }
}

/// More delays than frames: what the final windows get goes on to the initial ones.
#[test]
fn windows_longer_than_the_run_hand_cotangents_through() {
    let text = "cell c(H) {
  input x: [H]
  state h: [H]
  output y
  h = x + 0.5 * h[t-4] * h[t-1]
  y = h[t-2] * x[t-3]
}";
    check(text, &[("H", 2)]);
}

#[test]
fn no_gradient_passes_where_none_is_wanted() {
    let text = "cell c(H) {
  input x: [H], z: [H]
  output y
  y = stop_gradient(x) * z + sign(x) + (x > z)
}";
    let graph = graph(text);
    let dims = BTreeMap::from([(Name::from("H"), 3)]);
    let check = Check::new(&graph, dims.clone(), (2, 2));
    let gradient = gradient::run(&graph);
    let got = reference::gradients(&gradient, &dims, (2, 2), &check.given, &check.cotangents).unwrap();
    assert!(got["dx.x"].data.iter().all(|g| *g == 0.0));
    assert!(got["dx.z"].data.iter().all(|g| *g != 0.0));
}

/// What PyTorch does at corners and between equal values.
#[test]
fn corners_follow_pytorch() {
    let text = "cell c(H) {
  input x: [H], z: [H]
  output y
  y = max(x, z) + relu(x) + abs(x) + clamp(x, 0, 1) + amax(x, H)
}";
    let graph = graph(text);
    let dims = BTreeMap::from([(Name::from("H"), 2)]);
    let zero = Tensor::from_fn(&[1, 1, 2], |_| 0.0);
    let given = Tensors::from([("x.x".to_owned(), zero.clone()), ("x.z".to_owned(), zero)]);
    let one = Tensor::from_fn(&[1, 1, 2], |_| 1.0);
    let cotangents = Tensors::from([("dy.y".to_owned(), one)]);
    let got = reference::gradients(&gradient::run(&graph), &dims, (1, 1), &given, &cotangents).unwrap();
    // max shares: 1/2; relu and abs: 0; clamp at its bound: 1; amax between two: 1/2 of 2.
    assert_eq!(got["dx.x"].data, [2.5, 2.5]);
    assert_eq!(got["dx.z"].data, [0.5, 0.5]);
}

#[test]
fn every_golden_cell_is_derived_at_other_sizes() {
    for case in golden::cases() {
        Check::new(&case.graph, case.dims.clone(), (3, 1)).run(&case.name);
    }
}
