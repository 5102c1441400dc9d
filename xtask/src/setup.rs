//! NVRTC for a machine that has none: PyPI's wheels, by exact version and hash, into `target/nvrtc/VERSION`.
//!
//! Two versions, because the PTX of one is not that of the next, and what we emit has to go through both. Doing it again
//! costs nothing; half an installation is never seen, for the folder takes its name only when it is whole.

use crate::shell::{self, Place};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A version and the requirement file that pins its wheel.
struct Wheel {
    version: &'static str,
    requirement: &'static str,
    text: &'static str,
}

const WHEELS: [Wheel; 2] = [
    Wheel {
        version: "13.5",
        requirement: "xtask/requirements/nvrtc-13.5.txt",
        text: include_str!("../requirements/nvrtc-13.5.txt"),
    },
    Wheel {
        version: "12.9",
        requirement: "xtask/requirements/nvrtc-12.9.txt",
        text: include_str!("../requirements/nvrtc-12.9.txt"),
    },
];

/// The pip of this machine, in the order of trying.
const PIPS: [&[&str]; 4] = [&["python3", "-m", "pip"], &["python", "-m", "pip"], &["pip3"], &["pip"]];

/// Written last into a finished folder: the requirement that it fulfils.
const STAMP: &str = "requirement.txt";

/// Installs what is missing.
pub(crate) fn run(place: &Place) -> Result<(), String> {
    let folder = place.target.join("nvrtc");
    for wheel in &WHEELS {
        let goal = folder.join(wheel.version);
        if is_done(&goal, wheel) {
            eprintln!("NVRTC {} is in {}", wheel.version, goal.display());
        } else {
            eprintln!(
                "NVRTC {} goes into {} (a wheel of 45 to 90 MB)",
                wheel.version,
                goal.display()
            );
            install(place, wheel, &goal)?;
        }
    }
    Ok(())
}

/// The newest NVRTC that is installed.
pub(crate) fn installed(place: &Place) -> Option<PathBuf> {
    let folder = place.target.join("nvrtc");
    WHEELS.iter().find_map(|wheel| library(&folder.join(wheel.version)))
}

fn is_done(goal: &Path, wheel: &Wheel) -> bool {
    fs::read_to_string(goal.join(STAMP)).is_ok_and(|text| text == wheel.text)
}

/// Beside the goal first, then by one rename.
fn install(place: &Place, wheel: &Wheel, goal: &Path) -> Result<(), String> {
    let partial = goal.with_file_name(format!(".{}.{}", wheel.version, std::process::id()));
    let result = fetch(place, wheel, &partial).and_then(|()| settle(wheel, &partial, goal));
    if partial.exists() {
        remove(&partial)?;
    }
    result
}

fn fetch(place: &Place, wheel: &Wheel, partial: &Path) -> Result<(), String> {
    let pip = PIPS
        .iter()
        .find(|pip| shell::succeeds(pip[0], &[&pip[1..], &["--version"]].concat()));
    let pip =
        pip.ok_or("Python's pip is needed (python3 -m pip): install python3-pip, or set RNNC_NVRTC to an NVRTC")?;
    fs::create_dir_all(partial).map_err(|e| format!("cannot make {}: {e}", partial.display()))?;
    let mut command = Command::new(pip[0]);
    command
        .args(&pip[1..])
        .args(["install", "--no-deps", "--only-binary=:all:", "--require-hashes"]);
    command
        .arg("--target")
        .arg(partial)
        .arg("-r")
        .arg(place.root.join(wheel.requirement));
    // A user's own default of `--user` contradicts `--target`; the two warnings are not about this.
    command
        .env_remove("PIP_USER")
        .env("PIP_ROOT_USER_ACTION", "ignore")
        .env("PIP_DISABLE_PIP_VERSION_CHECK", "1");
    shell::run(&mut command).map_err(|e| {
        format!(
            "{e}\npip could not get NVRTC {}: is there a network, and is this Linux on x86-64 or 64-bit Arm? \
             (An NVRTC that you have will do for `demo`: set RNNC_NVRTC to its libnvrtc.so.)",
            wheel.version
        )
    })
}

fn settle(wheel: &Wheel, partial: &Path, goal: &Path) -> Result<(), String> {
    library(partial).ok_or_else(|| format!("the wheel of NVRTC {} has no libnvrtc.so", wheel.version))?;
    let failed = |e: std::io::Error| format!("cannot finish {}: {e}", goal.display());
    fs::write(partial.join(STAMP), wheel.text).map_err(failed)?;
    if goal.exists() {
        remove(goal)?;
    }
    match fs::rename(partial, goal) {
        // Another set-up finished between our look and our rename: its folder is as good.
        Err(_) if is_done(goal, wheel) => Ok(()),
        other => other.map_err(failed),
    }
}

/// `nvidia/*/lib/libnvrtc.so*` in a folder of packages.
fn library(packages: &Path) -> Option<PathBuf> {
    let list = |folder: PathBuf| fs::read_dir(folder).into_iter().flatten().flatten().map(|e| e.path());
    let mut files = list(packages.join("nvidia")).flat_map(|package| list(package.join("lib")));
    files.find(|f| {
        f.file_name()
            .is_some_and(|n| n.to_string_lossy().starts_with("libnvrtc.so"))
    })
}

fn remove(folder: &Path) -> Result<(), String> {
    fs::remove_dir_all(folder).map_err(|e| format!("cannot remove {}: {e}", folder.display()))
}
