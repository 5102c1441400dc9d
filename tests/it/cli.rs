//! The command as a user meets it: exit codes, what is printed where, files.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn cell(name: &str) -> String {
    root()
        .join("examples/cells")
        .join(format!("{name}.rnn"))
        .display()
        .to_string()
}

fn rnnc(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rnnc"));
    command.args(args).env("NO_COLOR", "1").output().expect("rnnc starts")
}

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Runs rnnc, which must end with this code and print all of these (on either stream).
fn expect(args: &[&str], code: i32, texts: &[&str]) -> String {
    let output = rnnc(args);
    let printed = out(&output) + &err(&output);
    assert_eq!(output.status.code(), Some(code), "rnnc {}\n{printed}", args.join(" "));
    for text in texts {
        assert!(
            printed.contains(text),
            "rnnc {} does not print `{text}`:\n{printed}",
            args.join(" ")
        );
    }
    printed
}

fn file(folder: &tempfile::TempDir, name: &str, text: &str) -> String {
    let path = folder.path().join(name);
    std::fs::write(&path, text).expect("writable");
    path.display().to_string()
}

fn temp() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder")
}

const FAULTY: &str = "cell faulty(I, H) {\n  input x: [I]\n  param W: [H, I]\n  output y\n  y = x + W @ x\n}\n";

#[test]
fn check_says_what_is_wrong_and_where() {
    let folder = temp();
    let faulty = file(&folder, "faulty.rnn", FAULTY);
    expect(&["check", &cell("lstm")], 0, &["ok"]);
    expect(&["check", &faulty], 1, &["E0202", "faulty.rnn:5:", "[I]", "[H]"]);
    expect(&["check", "no_such_file.rnn"], 1, &["no_such_file.rnn"]);
    expect(&["check"], 2, &["Usage"]);
    let printed = out(&rnnc(&["check", "--json", &faulty]));
    let json: serde_json::Value = serde_json::from_str(&printed).expect("JSON");
    assert!(json.to_string().contains("E0202"), "{json}");
}

#[test]
fn fmt_checks_or_rewrites() {
    let folder = temp();
    let loose = file(&folder, "loose.rnn", "cell loose( H ){ input x:[H]\noutput y\ny=x*2 }");
    expect(&["fmt", "--check", &loose], 1, &["not formatted"]);
    expect(&["fmt", &loose], 0, &[]);
    expect(&["fmt", "--check", &loose], 0, &[]);
    for name in ["lstm", "mlstm", "rwkv4"] {
        expect(&["fmt", "--check", &cell(name)], 0, &[]);
    }
}

#[test]
fn explain_knows_every_code() {
    expect(&["explain", "e0301"], 0, &["E0301", "h[t-1]"]);
    expect(&["explain"], 0, &["E0001", "W0501"]);
    expect(&["explain", "E9999"], 2, &["rnnc explain"]);
}

#[test]
fn compile_writes_text_header_and_manifest() {
    let folder = temp();
    let target = folder.path().join("out").display().to_string();
    expect(
        &["compile", &cell("mingru"), "-o", &target],
        0,
        &["I, H not given, taken as 256"],
    );
    for extension in ["cu", "h", "json"] {
        assert!(
            Path::new(&target).join(format!("mingru.{extension}")).is_file(),
            "mingru.{extension}"
        );
    }
    let emit = ["--dims", "I=5,H=7", "--emit", "ast,ir,plan", "-o", &target, "--json"];
    let printed = out(&rnnc(&[&["compile", &cell("mingru")], &emit[..]].concat()));
    let files: serde_json::Value = serde_json::from_str(&printed).expect("JSON");
    assert_eq!(files.as_array().map(Vec::len), Some(3), "{files}");
    expect(
        &["compile", &cell("mingru"), "--dims", "Q=3", "-o", &target],
        2,
        &["no dimension Q", "I, H"],
    );
    expect(
        &["compile", &cell("mingru"), "--dims", "H=0", "-o", &target],
        2,
        &["at least 1"],
    );
    expect(
        &["compile", &cell("mingru"), "--dims", "H=99999999999", "-o", &target],
        1,
        &["E0401"],
    );
}

#[test]
fn the_same_cell_compiles_to_the_same_bytes() {
    let folder = temp();
    let texts: Vec<String> = ["a", "b"]
        .iter()
        .map(|name| {
            let target = folder.path().join(name).display().to_string();
            expect(&["compile", &cell("mlstm"), "-o", &target], 0, &[]);
            std::fs::read_to_string(Path::new(&target).join("mlstm.cu")).expect("written")
        })
        .collect();
    assert_eq!(texts[0], texts[1]);
}

#[test]
fn explain_plan_prints_what_tools_need() {
    let printed = out(&rnnc(&[
        "explain-plan",
        &cell("mamba_s6"),
        "--dims",
        "D=64,N=16",
        "--json",
    ]));
    let json: serde_json::Value = serde_json::from_str(&printed).expect("JSON");
    let recurrence = &json["recurrences"][0];
    for key in [
        "members",
        "class",
        "semiring",
        "transition",
        "coefficient_axes",
        "time_invariant",
        "input_rank",
    ] {
        assert!(!recurrence[key].is_null(), "{key} is missing in {recurrence}");
    }
    for key in ["phases", "reason", "spans"] {
        assert!(!recurrence[key].is_null(), "{key} is missing in {recurrence}");
    }
    assert_eq!(json["launches"].as_array().map(Vec::len), Some(2));
    assert_eq!(json["prologue"].as_array().map(Vec::len), Some(1));
    for key in ["family", "equations", "bytes", "operations"] {
        assert!(
            !json["launches"][1][key].is_null(),
            "{key} is missing in {}",
            json["launches"][1]
        );
    }
    expect(
        &["explain-plan", &cell("lstm")],
        0,
        &["nonlinear", "h[t-1]", "1 exchange a frame", "GILR"],
    );
}

#[test]
fn graph_draws() {
    let folder = temp();
    for extension in ["svg", "html", "dot"] {
        let path = folder.path().join(format!("lstm.{extension}"));
        expect(
            &["graph", &cell("lstm"), "-o", &path.display().to_string()],
            0,
            &["wrote"],
        );
        assert!(std::fs::metadata(&path).expect("written").len() > 500);
    }
    expect(&["graph", &cell("lstm"), "-o", "lstm.bmp"], 2, &[".svg"]);
}

#[test]
fn run_writes_what_verify_reads() {
    let folder = temp();
    let y = folder.path().join("y.safetensors").display().to_string();
    let args = [
        "run",
        &cell("lstm"),
        "--dims",
        "I=3,H=5",
        "-T",
        "4",
        "-B",
        "2",
        "--device",
        "cpu",
        "-o",
        &y,
    ];
    expect(&args, 0, &["lstm on cpu", "y.h", "[4, 2, 5]", "sT.c", "wrote"]);
    expect(&["run", &cell("lstm"), "--device", "tpu"], 2, &["not a device"]);
    expect(&["run", &cell("lstm"), "--weights", &y, "--device", "cpu"], 1, &["W"]);
    let missing = ["run", &cell("lstm"), "--map", "Q=a", "--device", "cpu"];
    expect(&missing, 2, &["no parameter Q", "W, R, b"]);
}

#[test]
fn a_device_that_is_not_there_is_the_machines_fault() {
    if rnnc_runtime::cuda::probe().is_ok() {
        return;
    }
    let args = ["run", &cell("lstm"), "--dims", "I=3,H=5", "--device", "cuda:0"];
    expect(&args, 3, &["libcuda", "--device cpu"]);
}

#[test]
fn new_makes_a_cell_that_checks() {
    let folder = temp();
    let place = folder.path().display().to_string();
    expect(&["new", "mine", "--from", "gru", "-C", &place], 0, &["mine.rnn"]);
    let path: PathBuf = folder.path().join("mine.rnn");
    expect(&["check", &path.display().to_string()], 0, &["ok"]);
    expect(&["new", "mine", "--from", "gru", "-C", &place], 1, &["mine.rnn"]);
    expect(&["new", "9lives", "-C", &place], 2, &["not a name"]);
}

#[test]
fn completions_and_doctor_print() {
    expect(&["completions", "bash"], 0, &["rnnc"]);
    expect(&["doctor"], 0, &["cpu", "nvrtc"]);
    let json: serde_json::Value = serde_json::from_str(&out(&rnnc(&["doctor", "--json"]))).expect("JSON");
    assert!(json.is_object());
}

fn golden(name: &str) -> Option<String> {
    crate::golden::folder().map(|f| f.join(format!("{name}.safetensors")).display().to_string())
}

#[test]
fn verify_tells_a_ported_cell_from_a_wrong_one() {
    let Some(lstm) = golden("lstm") else { return };
    expect(
        &["verify", &cell("lstm"), "--data", &lstm, "--device", "cpu"],
        0,
        &["y.h", "relative", "ok"],
    );
    let folder = temp();
    let text = std::fs::read_to_string(cell("lstm")).expect("readable");
    let wrong = file(&folder, "lstm.rnn", &text.replace("i, f, g, o", "i, f, o, g"));
    expect(
        &["verify", &wrong, "--data", &lstm, "--device", "cpu"],
        1,
        &["MISMATCH"],
    );
    let other = file(
        &folder,
        "other.rnn",
        &text.replace("b: [4*H]", "bias: [4*H]").replace("+ b", "+ bias"),
    );
    expect(&["verify", &other, "--data", &lstm, "--device", "cpu"], 1, &["p.b"]);
    let gru = golden("gru").expect("beside it");
    expect(
        &["verify", &cell("lstm"), "--data", &gru, "--device", "cpu"],
        1,
        &["error"],
    );
}

#[test]
fn bench_models_what_it_cannot_measure() {
    let cell = cell("lstm");
    let bench = |device: &'static str| {
        let dims = ["bench", &cell, "--dims", "I=5,H=40", "-T", "3", "-B", "2"]
            .map(str::to_owned)
            .to_vec();
        let rest = ["--device", device, "--model", "h100,a100", "--json"].map(str::to_owned);
        [dims, rest.to_vec()].concat()
    };
    let words = bench("cpu");
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    expect(&words, 2, &["--device sim"]);
    if rnnc_runtime::nvrtc::find().is_empty() {
        eprintln!("SKIPPED: no NVRTC; run `cargo xtask setup`");
        return;
    }
    let words = bench("sim");
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let output = rnnc(&words);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    let cards: serde_json::Value = serde_json::from_str(&out(&output)).unwrap();
    assert_eq!(cards.as_array().unwrap().len(), 2);
    for card in cards.as_array().unwrap() {
        let range = |of: &serde_json::Value| [0, 1].map(|end| of["microseconds"][end].as_f64().unwrap());
        let [low, high] = range(&card["total"]);
        assert!(0.0 < low && low <= high, "{card}");
        let [low, high] = range(&card["frame"]);
        assert!(0.0 < low && low <= high, "{card}");
        let counts = &card["kernels"]["lstm_loop"]["counts"];
        assert!(counts["instructions"]["fma"].as_u64().unwrap() > 0, "{counts}");
        assert!(
            counts["global_least_sectors"].as_u64() <= counts["global_sectors"].as_u64(),
            "{counts}"
        );
        assert!(card["barriers_a_frame"].as_f64().unwrap() >= 1.0, "{card}");
    }
}
