//! Published cells: the text of `examples/cells` lowered, checked and evaluated against numbers from PyTorch in f64.

use crate::support::{Tensors, farthest, read_tensors};
use rnnc::ir::{Graph, Name, NodeId, Op, print::print, verify::verify};
use rnnc::{reference, transform};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Relative error of the norm allowed to the reference.
const TOLERANCE: f64 = 1e-12;

/// The folder of golden cells: beside the project, or further up where the project is a worktree.
pub fn folder() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let found = root
        .ancestors()
        .map(|a| a.join("shared/golden/cells"))
        .find(|p| p.is_dir());
    if found.is_none() {
        eprintln!("SKIPPED: ../shared/golden/cells is not here");
    }
    found
}

/// The texts of all golden cells, by name.
pub fn cells() -> BTreeMap<String, String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/cells");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let texts = files.map(|path| {
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        (name, std::fs::read_to_string(&path).unwrap())
    });
    texts.collect()
}

/// The graph of a text that has no error, checked.
pub fn lower(name: &str, text: &str) -> Graph {
    let (file, found) = rnnc::syntax::parse(text.as_bytes());
    assert!(
        found.0.is_empty(),
        "{}",
        rnnc::diagnostics::render::render(&found, name, text, false)
    );
    let (graph, found) = rnnc::lower::lower(&file, None, Some(name));
    assert!(
        found.0.is_empty(),
        "{}",
        rnnc::diagnostics::render::render(&found, name, text, false)
    );
    let graph = graph.unwrap();
    rnnc::ir::verify::verify(&graph).unwrap_or_else(|faults| panic!("{name}: {faults:#?}"));
    graph
}

/// A golden cell with its data.
pub struct Case {
    /// The stem of its files.
    pub name: String,
    /// Its text.
    pub text: String,
    /// Lowered, not transformed.
    pub graph: Graph,
    /// Values of the dimensions.
    pub dims: BTreeMap<Name, i64>,
    /// T.
    pub frames: usize,
    /// B.
    pub batch: usize,
    /// Tensors under `x. p. s0.`.
    pub given: Tensors,
    /// Tensors under `y. sT.`.
    pub expected: Tensors,
    /// Tensors under `dy. dsT.`.
    pub cotangents: Tensors,
    /// Tensors under `dx. dp. ds0.`.
    pub gradients: Tensors,
}

/// Every golden cell, or none where the data is absent.
pub fn cases() -> Vec<Case> {
    cells().iter().map_while(|(name, text)| case(name, text)).collect()
}

fn case(name: &str, text: &str) -> Option<Case> {
    let (about, data) = golden(name)?;
    let number = |key: &str| about[key].as_u64().unwrap() as usize;
    let dims = about["dims"].as_object().unwrap().iter();
    let pick = |prefixes: &[&str]| -> Tensors {
        let wanted = |key: &str| prefixes.iter().any(|p| key.starts_with(p));
        data.iter()
            .filter(|(k, _)| wanted(k))
            .map(|(k, v)| (k.clone(), v.clone()))
            .collect()
    };
    Some(Case {
        name: name.to_owned(),
        text: text.to_owned(),
        graph: lower(name, text),
        dims: dims.map(|(k, v)| (k.as_str().into(), v.as_i64().unwrap())).collect(),
        frames: number("T"),
        batch: number("B"),
        given: pick(&["x.", "p.", "s0."]),
        expected: pick(&["y.", "sT."]),
        cotangents: pick(&["dy.", "dsT."]),
        gradients: pick(&["dx.", "dp.", "ds0."]),
    })
}

fn golden(name: &str) -> Option<(serde_json::Value, Tensors)> {
    let folder = folder()?;
    let json = std::fs::read_to_string(folder.join(format!("{name}.json"))).unwrap();
    let data = read_tensors(&folder.join(format!("{name}.safetensors")));
    Some((serde_json::from_str(&json).unwrap(), data))
}

fn with_prefix<'t>(tensors: &'t Tensors, prefix: &str) -> Vec<&'t str> {
    tensors.keys().filter_map(|k| k.strip_prefix(prefix)).collect()
}

fn sorted(graph: &Graph, nodes: &[NodeId]) -> Vec<String> {
    let mut names: Vec<String> = nodes
        .iter()
        .map(|id| graph.node(*id).name.as_ref().unwrap().to_string())
        .collect();
    names.sort();
    names
}

#[test]
fn every_golden_cell_has_a_text_and_the_reverse() {
    let Some(folder) = folder() else { return };
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "json"))
        .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    names.sort();
    assert_eq!(names.len(), 26);
    assert_eq!(names, cells().into_keys().collect::<Vec<_>>());
}

#[test]
fn names_are_those_of_the_golden_tensors() {
    for (name, text) in cells() {
        let graph = lower(&name, &text);
        let Some((_, data)) = golden(&name) else { return };
        assert_eq!(sorted(&graph, &graph.inputs), with_prefix(&data, "x."), "{name}");
        assert_eq!(sorted(&graph, &graph.params), with_prefix(&data, "p."), "{name}");
        assert_eq!(sorted(&graph, &graph.states()), with_prefix(&data, "sT."), "{name}");
        let mut outputs: Vec<&str> = graph.outputs.iter().map(|o| &*o.name).collect();
        outputs.sort_unstable();
        assert_eq!(outputs, with_prefix(&data, "y."), "{name}");
    }
}

#[test]
fn windows_are_those_of_the_golden_tensors() {
    for (name, text) in cells() {
        let graph = lower(&name, &text);
        let Some((_, data)) = golden(&name) else { return };
        for id in graph.states() {
            let node = graph.node(id);
            let Op::State { window } = node.op else { panic!() };
            let shape = &data[&format!("s0.{}", node.name.as_ref().unwrap())].shape;
            let extra = shape.len() - node.ty.axes.len() - 1;
            let expected = if extra == 0 { 1 } else { shape[0] };
            assert_eq!(window as usize, expected, "{name}");
        }
    }
}

#[test]
fn the_reference_reproduces_pytorch() {
    for case in cases() {
        assert!(!case.expected.is_empty());
        let got = reference::evaluate(&case.graph, &case.dims, case.frames, case.batch, &case.given);
        let (key, error) = farthest(&got.unwrap(), &case.expected);
        assert!(error <= TOLERANCE, "{} {key}: {error:e}", case.name);
    }
}

#[test]
fn every_pass_keeps_the_golden_values() {
    for mut case in cases() {
        for (pass, run) in transform::PASSES {
            run(&mut case.graph);
            assert_eq!(verify(&case.graph), Ok(()), "{} after {pass}", case.name);
            let got = reference::evaluate(&case.graph, &case.dims, case.frames, case.batch, &case.given);
            let (key, error) = farthest(&got.unwrap(), &case.expected);
            assert!(error <= TOLERANCE, "{} {key} after {pass}: {error:e}", case.name);
        }
    }
}

/// What the passes make of a few cells, before and after.
#[test]
fn graphs_before_and_after_the_passes() {
    let texts = cells();
    for name in [
        "gru",
        "lstm_layer_norm",
        "mamba_s6",
        "mlstm",
        "slstm",
        "hrnn",
        "delay_graph",
        "lru",
    ] {
        let mut graph = lower(name, &texts[name]);
        let before = print(&graph);
        let applied: Vec<String> = transform::run(&mut graph)
            .iter()
            .map(|a| format!("{} {}", a.pass, a.changes))
            .collect();
        let text = format!("{}\n{before}\n{}\n\n{}", texts[name], applied.join(", "), print(&graph));
        insta::assert_snapshot!(format!("passes_{name}"), text);
    }
}

/// The relative error allowed to gradients of the reference: sums over frames lose more than the values.
const GRADIENT_TOLERANCE: f64 = 1e-10;

/// The gradients of a graph against those of PyTorch; the backward graph is checked and taken through every pass.
fn check_gradients(case: &Case, graph: &Graph, what: &str) {
    let mut gradient = transform::gradient::run(graph);
    let compare = |gradient: &transform::gradient::Gradient, what: &str| {
        let name = &case.name;
        assert_eq!(verify(&gradient.forward), Ok(()), "{name} forward, {what}");
        assert_eq!(verify(&gradient.backward), Ok(()), "{name} backward, {what}");
        let size = (case.frames, case.batch);
        let got = reference::gradients(gradient, &case.dims, size, &case.given, &case.cotangents);
        let got: Tensors = got.unwrap_or_else(|e| panic!("{name}, {what}: {e}"));
        let wanted = |key: &String| case.gradients.contains_key(key);
        let got = got.into_iter().filter(|(key, _)| wanted(key)).collect();
        let (key, error) = farthest(&got, &case.gradients);
        assert!(
            error <= GRADIENT_TOLERANCE,
            "{name} {key}, {what}: {error:e}\n{}",
            print(&gradient.backward)
        );
    };
    compare(&gradient, what);
    for (pass, run) in transform::PASSES {
        run(&mut gradient.backward);
        compare(&gradient, &format!("{what}, backward after {pass}"));
    }
}

#[test]
fn gradients_reproduce_pytorch() {
    for mut case in cases() {
        assert!(!case.gradients.is_empty());
        check_gradients(&case, &case.graph, "as written");
        transform::run(&mut case.graph);
        check_gradients(&case, &case.graph, "after the passes");
    }
}
