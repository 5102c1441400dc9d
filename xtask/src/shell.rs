//! Commands: which folder and programs; each is shown before it runs, and a failure is a sentence.

use std::env;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Instant;

/// Where things are.
pub(crate) struct Place {
    /// The root of the workspace.
    pub(crate) root: PathBuf,
    /// Cargo's target folder: CARGO_TARGET_DIR, or `target`.
    pub(crate) target: PathBuf,
}

impl Place {
    /// Of this checkout.
    pub(crate) fn here() -> Place {
        // Cargo sets the variable for `cargo run`; started by hand, the working directory has to be the root.
        let package = env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
        let root = package
            .and_then(|p| Some(p.parent()?.to_owned()))
            .unwrap_or_else(|| PathBuf::from("."));
        let target = match env::var_os("CARGO_TARGET_DIR") {
            // A relative one is relative to where cargo was started, which is where we are.
            Some(chosen) => env::current_dir().unwrap_or_default().join(chosen),
            None => root.join("target"),
        };
        Place { root, target }
    }
}

/// Runs cargo in the root.
pub(crate) fn cargo(place: &Place, arguments: &[&str]) -> Result<(), String> {
    cargo_with(place, arguments, &[])
}

/// Runs cargo in the root, with variables set.
pub(crate) fn cargo_with(place: &Place, arguments: &[&str], environment: &[(&str, &str)]) -> Result<(), String> {
    let mut command = Command::new("cargo");
    command
        .args(arguments)
        .current_dir(&place.root)
        .env("CARGO_TARGET_DIR", &place.target);
    command.envs(environment.iter().copied());
    for variable in inherited() {
        command.env_remove(variable);
    }
    run(&mut command)
}

/// What `cargo run` told us about our own package and would mislead the next cargo.
fn inherited() -> impl Iterator<Item = String> {
    env::vars_os()
        .filter_map(|(name, _)| name.into_string().ok())
        .filter(|n| n.starts_with("CARGO_PKG_"))
}

/// Shows a command, runs it with our own output, and says how long it took.
pub(crate) fn run(command: &mut Command) -> Result<(), String> {
    let words: Vec<_> = std::iter::once(command.get_program())
        .chain(command.get_args())
        .collect();
    let shown = words.iter().map(|w| w.to_string_lossy()).collect::<Vec<_>>().join(" ");
    eprintln!("$ {shown}");
    let start = Instant::now();
    let status = command
        .status()
        .map_err(|error| format!("cannot run `{shown}`: {error}"))?;
    if !status.success() {
        return Err(format!("`{shown}` failed ({status})"));
    }
    eprintln!("  done in {:.1} s", start.elapsed().as_secs_f64());
    Ok(())
}

/// Whether a program exists and ends well, with nothing shown.
pub(crate) fn succeeds(program: &str, arguments: &[&str]) -> bool {
    let mut command = Command::new(program);
    command
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
