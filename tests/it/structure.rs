//! The plans of the example cells: sound, and with the launches that they should have.

use rnnc::driver::{self, Choice, Planned};
use rnnc_runtime::plan::{Elem, Family, Kernel, Launch, Plan};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Every example cell, by name.
pub fn cells() -> Vec<(String, Vec<u8>)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("examples/cells");
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("the examples are there")
        .map(|e| e.expect("an entry").path())
        .collect();
    paths.sort();
    let name = |p: &PathBuf| p.file_stem().expect("a name").to_string_lossy().into_owned();
    paths
        .iter()
        .map(|p| (name(p), std::fs::read(p).expect("readable")))
        .collect()
}

/// The plan of a cell's text, each dimension with another odd value unless given.
pub fn plan(name: &str, text: &[u8], dims: &[(&str, i64)]) -> Planned {
    let choice = Choice {
        cell: None,
        stem: Some(name.to_owned()),
    };
    let checked = driver::check(text, &choice).unwrap_or_else(|d| panic!("{name}: {d:?}"));
    let mut values = BTreeMap::new();
    for (i, dim) in checked.graph.dims.iter().enumerate() {
        let given = dims.iter().find(|(n, _)| *n == dim.as_ref()).map(|(_, v)| *v);
        values.insert(dim.clone(), given.unwrap_or(5 + 2 * i as i64));
    }
    driver::plan(text, &choice, &values, Elem::F32).unwrap_or_else(|d| panic!("{name}: {d:?}"))
}

fn families(launches: &[Launch]) -> Vec<&'static str> {
    launches.iter().map(|l| l.family.name()).collect()
}

#[test]
fn every_plan_is_sound() {
    for (name, text) in cells() {
        let planned = plan(&name, &text, &[]);
        assert_eq!(rnnc_runtime::plan::check(&planned.plan), Ok(()), "{name}");
    }
}

#[test]
fn cells_have_the_launches_they_should() {
    let expected: &[(&str, &[&str])] = &[
        ("lstm", &["product", "loop"]),
        ("sru", &["product", "scan"]),
        ("mingru", &["product", "scan"]),
        ("indrnn", &["product", "channel_loop"]),
        ("gilr_lstm", &["product", "scan", "product", "scan"]),
        ("mamba_s6", &["product", "matrix_state"]),
    ];
    let cells: BTreeMap<String, Vec<u8>> = cells().into_iter().collect();
    let mut wrong = Vec::new();
    for (name, families_expected) in expected {
        let planned = plan(name, &cells[*name], &[]);
        let found = families(&planned.plan.launches);
        if found != *families_expected {
            wrong.push(format!("{name}: {found:?}, expected {families_expected:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_state_that_is_only_summed_is_never_stored() {
    let cells: BTreeMap<String, Vec<u8>> = cells().into_iter().collect();
    let planned = plan("mamba_s6", &cells["mamba_s6"], &[]);
    let Plan { buffers, launches, .. } = &planned.plan;
    assert!(
        !buffers
            .iter()
            .any(|b| b.shape.len() == 2 && b.scope == rnnc_runtime::plan::Scope::Frame),
        "S is stored"
    );
    assert!(launches.iter().all(|l| !matches!(l.kernel, Kernel::Loop(_))));
    assert_eq!(
        families(&planned.plan.prologue),
        ["pointwise"],
        "-exp(Alog) is computed once"
    );
    assert_eq!(launches[1].family, Family::MatrixState);
}

#[test]
fn families_of_all_cells() {
    let lines: Vec<String> = cells()
        .into_iter()
        .map(|(name, text)| {
            let plan = plan(&name, &text, &[]).plan;
            let list = |l: &[Launch]| families(l).join(" ");
            format!("{name}: [{}] {}", list(&plan.prologue), list(&plan.launches))
        })
        .collect();
    insta::assert_snapshot!(lines.join("\n"));
}
