//! Published cells: the text of `examples/cells` lowered, checked and evaluated against numbers from PyTorch in f64.

use rnnc::ir::{Graph, Name, NodeId, Op};
use rnnc::reference::Tensor;
use safetensors::{Dtype, SafeTensors};
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

/// All tensors of a file, in f64.
pub fn tensors(path: &Path) -> BTreeMap<String, Tensor> {
    let bytes = std::fs::read(path).unwrap();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    let tensors = file.tensors().into_iter().map(|(name, view)| {
        assert_eq!(view.dtype(), Dtype::F64, "{name}");
        let data = view
            .data()
            .as_chunks::<8>()
            .0
            .iter()
            .map(|b| f64::from_le_bytes(*b))
            .collect();
        let shape = view.shape().to_vec();
        (name, Tensor { shape, data })
    });
    tensors.collect()
}

/// Relative error of the norm; absolute where the expected norm is zero.
pub fn error(expected: &Tensor, got: &Tensor) -> f64 {
    assert_eq!(expected.shape, got.shape);
    let norm = |values: &mut dyn Iterator<Item = f64>| values.map(|v| v * v).sum::<f64>().sqrt();
    let apart = norm(&mut expected.data.iter().zip(&got.data).map(|(a, b)| a - b));
    let whole = norm(&mut expected.data.iter().copied());
    if whole == 0.0 { apart } else { apart / whole }
}

fn golden(name: &str) -> Option<(serde_json::Value, BTreeMap<String, Tensor>)> {
    let folder = folder()?;
    let json = std::fs::read_to_string(folder.join(format!("{name}.json"))).unwrap();
    let data = tensors(&folder.join(format!("{name}.safetensors")));
    Some((serde_json::from_str(&json).unwrap(), data))
}

fn with_prefix<'t>(tensors: &'t BTreeMap<String, Tensor>, prefix: &str) -> Vec<&'t str> {
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
    for (name, text) in cells() {
        let graph = lower(&name, &text);
        let Some((about, data)) = golden(&name) else { return };
        let dims: BTreeMap<Name, i64> = about["dims"]
            .as_object()
            .unwrap()
            .iter()
            .map(|(k, v)| (k.as_str().into(), v.as_i64().unwrap()))
            .collect();
        let number = |key: &str| about[key].as_u64().unwrap() as usize;
        let given: BTreeMap<String, Tensor> = data
            .iter()
            .filter(|(k, _)| ["x.", "p.", "s0."].iter().any(|prefix| k.starts_with(prefix)))
            .map(|(k, v)| (k.clone(), v.clone()))
            .collect();
        let found = rnnc::reference::evaluate(&graph, &dims, number("T"), number("B"), &given).unwrap();
        let expected: Vec<&String> = data
            .keys()
            .filter(|k| k.starts_with("y.") || k.starts_with("sT."))
            .collect();
        assert!(!expected.is_empty());
        for key in expected {
            let error = error(&data[key], &found[key]);
            assert!(error <= TOLERANCE, "{name} {key}: {error:e}");
        }
    }
}
