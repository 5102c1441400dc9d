//! `softgpu run LAUNCH.json`: a kernel of your own, from CUDA text or PTX, on a simulated GPU.

mod description;
mod nvrtc;
mod run;

use std::path::Path;
use std::process::ExitCode;

const HELP: &str = "\
softgpu run LAUNCH.json [--seed N] [--seeds N] [--json]

Runs a kernel on a simulated GPU, once for each seed, and checks every access: bounds, races, uninitialised values, barriers,
masks, asynchronous copies. LAUNCH.json names the text (.cu or .ptx), the launch and its arguments; README.md describes it.
Text in CUDA needs NVRTC: SOFTGPU_NVRTC names its library or folder, else it is looked for on the loader's path.

  --seed N    the first seed (default 0)
  --seeds N   how many seeds (default: what the file says, else 3)
  --json      print the result as JSON

Exit codes: 0 no fault, 1 the kernel is at fault or the input is, 2 usage.
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["run", file, options @ ..] if !file.starts_with('-') => match Choices::parse(options) {
            Some(choices) => start(Path::new(file), &choices),
            None => usage(),
        },
        ["help" | "--help" | "-h"] => {
            print!("{HELP}");
            ExitCode::SUCCESS
        }
        _ => usage(),
    }
}

fn usage() -> ExitCode {
    eprint!("{HELP}");
    ExitCode::from(2)
}

/// What the command line says.
struct Choices {
    seed: u64,
    seeds: Option<u64>,
    json: bool,
}

impl Choices {
    fn parse(mut options: &[&str]) -> Option<Choices> {
        let mut choices = Choices {
            seed: 0,
            seeds: None,
            json: false,
        };
        loop {
            options = match options {
                [] => return Some(choices),
                ["--json", rest @ ..] => {
                    choices.json = true;
                    rest
                }
                ["--seed", number, rest @ ..] => {
                    choices.seed = number.parse().ok()?;
                    rest
                }
                ["--seeds", number, rest @ ..] => {
                    choices.seeds = Some(number.parse().ok()?);
                    rest
                }
                _ => return None,
            };
        }
    }
}

fn start(file: &Path, choices: &Choices) -> ExitCode {
    let outcome = description::read(file).and_then(|found| run::run(&found, choices.seed, choices.seeds));
    let report = match outcome {
        Ok(report) => report,
        Err(message) => {
            eprintln!("error: {message}");
            return ExitCode::FAILURE;
        }
    };
    if choices.json {
        match serde_json::to_string_pretty(&report) {
            Ok(text) => println!("{text}"),
            Err(error) => eprintln!("error: {error}"),
        }
    } else {
        print!("{report}");
    }
    if report.ok() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
