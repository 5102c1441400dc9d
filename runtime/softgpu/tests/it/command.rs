//! The command `softgpu`, on the launches of the examples.

use std::path::Path;
use std::process::{Command, Output};

fn softgpu(arguments: &[&str]) -> Output {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/launches");
    let mut command = Command::new(env!("CARGO_BIN_EXE_softgpu"));
    if let Some(nvrtc) = crate::nvrtc::paths().first() {
        command.env("SOFTGPU_NVRTC", nvrtc);
    }
    command.current_dir(examples).args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn ptx_runs_and_shows_its_results() {
    let output = softgpu(&["run", "scale.json"]);
    let out = text(&output.stdout);
    assert!(output.status.success(), "{out}{}", text(&output.stderr));
    assert!(
        out.contains("y: 0 2 4 6 8\n") && out.ends_with("scale on h100: 2 seeds, 0 faulty\n"),
        "{out}"
    );
    let output = softgpu(&["run", "scale.json", "--json", "--seed", "5", "--seeds", "1"]);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&json["runs"][0]["seed"], &json["runs"][0]["fault"]),
        (&5.into(), &serde_json::Value::Null)
    );
}

#[test]
fn a_race_is_told_with_both_its_lines() {
    if crate::nvrtc::paths().is_empty() {
        eprintln!("SKIPPED: no NVRTC; run `cargo xtask setup`");
        return;
    }
    let output = softgpu(&["run", "sum.json"]);
    let out = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{out}{}", text(&output.stderr));
    assert!(
        out.contains("error[shared-race]") && out.matches("sum.cu:9").count() >= 2,
        "{out}"
    );
}

#[test]
fn mistakes_are_told() {
    assert_eq!(softgpu(&["walk"]).status.code(), Some(2));
    assert_eq!(softgpu(&["run", "scale.json", "--seeds"]).status.code(), Some(2));
    let missing = softgpu(&["run", "none.json"]);
    assert_eq!(missing.status.code(), Some(1));
    assert!(text(&missing.stderr).contains("none.json"));
}
