//! One bundle for a machine with a GPU and no Rust: a program, its data and a runner go into an archive; there
//! `python3 run.py` checks every kernel, measures, and writes one table. A dry run unpacks it here and runs it on a simulated GPU.

use crate::setup;
use crate::shell::{self, Place};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What an archive may have.
const MOST: u64 = 60 << 20;

/// The archive, below the target folder.
const ARCHIVE: &str = "gpu-check/rnnc-gpu-check.tar.gz";

/// Packs the bundle, of a release build; says what to do with it.
pub(crate) fn pack(place: &Place) -> Result<(), String> {
    let archive = bundle(place, true)?;
    eprintln!(
        "{} is the bundle. On a machine with a GPU: tar xzf it, then python3 rnnc-gpu-check/run.py",
        archive.display()
    );
    Ok(())
}

/// Packs a bundle, unpacks it elsewhere and runs it on a simulated GPU. The program is that of tests, since a release build of
/// its own would take longer than the run.
pub(crate) fn dry_run(place: &Place) -> Result<(), String> {
    setup::run(place)?;
    let archive = bundle(place, false)?;
    let folder = std::env::temp_dir().join(format!("rnnc-gpu-check-{}", std::process::id()));
    fs::create_dir_all(&folder).map_err(|e| format!("cannot make {}: {e}", folder.display()))?;
    let result = unpack(&archive, &folder).and_then(|()| simulate(place, &folder.join("rnnc-gpu-check")));
    let removed = fs::remove_dir_all(&folder);
    result.and(removed.map_err(|e| format!("cannot remove {}: {e}", folder.display())))
}

fn unpack(archive: &Path, folder: &Path) -> Result<(), String> {
    shell::run(Command::new("tar").arg("-xzf").arg(archive).arg("-C").arg(folder))
}

fn simulate(place: &Place, unpacked: &Path) -> Result<(), String> {
    let mut command = Command::new("python3");
    command
        .arg(unpacked.join("run.py"))
        .args(["--device", "sim:h100", "--out"])
        .arg(unpacked)
        .current_dir(unpacked);
    if let Some(library) = setup::installed(place) {
        command.env("RNNC_NVRTC", library);
    }
    shell::run(&mut command)?;
    let written = ["results.json", "results.md"]
        .iter()
        .all(|name| unpacked.join(name).is_file());
    if written {
        Ok(())
    } else {
        Err("the dry run wrote no results".to_owned())
    }
}

/// Builds the program and packs it with its data.
fn bundle(place: &Place, release: bool) -> Result<PathBuf, String> {
    let mut arguments = vec!["build", "--example", "gpu_check"];
    arguments.extend(release.then_some("--release"));
    shell::cargo(place, &arguments)?;
    let folder = place.target.join("gpu-check/rnnc-gpu-check");
    if folder.exists() {
        fs::remove_dir_all(&folder).map_err(|e| format!("cannot remove {}: {e}", folder.display()))?;
    }
    let profile = if release { "release" } else { "debug" };
    let program = place.target.join(profile).join("examples/gpu_check");
    fill(place, &folder, &program)?;
    let archive = place.target.join(ARCHIVE);
    shell::run(
        Command::new("tar")
            .arg("-czf")
            .arg(&archive)
            .arg("-C")
            .arg(place.target.join("gpu-check"))
            .arg("rnnc-gpu-check"),
    )?;
    let bytes = fs::metadata(&archive)
        .map_err(|e| format!("{}: {e}", archive.display()))?
        .len();
    eprintln!("{:.1} MiB", bytes as f64 / f64::from(1 << 20));
    if bytes > MOST {
        return Err(format!("{} is larger than {} MiB", archive.display(), MOST >> 20));
    }
    Ok(archive)
}

fn fill(place: &Place, folder: &Path, program: &Path) -> Result<(), String> {
    let scripts = place.root.join("examples/gpu_check");
    copy_all(&place.root.join("examples/cells"), &folder.join("data/cells"), "rnn")?;
    copy_all(&scripts, folder, "py")?;
    match golden(&place.root) {
        Some(vectors) => copy_all(&vectors, &folder.join("data/golden"), "")?,
        None => eprintln!("SKIPPED: ../shared/golden/cells is not here; the bundle has no recorded vectors"),
    }
    // Symbols would be most of it; a machine without strip gets them.
    let target = folder.join("gpu_check");
    let strip = Command::new("strip").arg("-o").arg(&target).arg(program).status();
    if strip.is_ok_and(|status| status.success()) {
        return Ok(());
    }
    let copied = fs::copy(program, &target);
    copied
        .map(|_| ())
        .map_err(|e| format!("cannot copy {}: {e}", program.display()))
}

/// The recorded vectors beside the project, or further up where it is a worktree.
fn golden(root: &Path) -> Option<PathBuf> {
    root.ancestors()
        .map(|a| a.join("shared/golden/cells"))
        .find(|p| p.is_dir())
}

/// Copies the files of a folder with this extension; all with none.
fn copy_all(from: &Path, to: &Path, extension: &str) -> Result<(), String> {
    let failed = |e: std::io::Error| format!("cannot copy {} to {}: {e}", from.display(), to.display());
    fs::create_dir_all(to).map_err(failed)?;
    for entry in fs::read_dir(from).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let wanted = extension.is_empty() || path.extension().is_some_and(|e| e == extension);
        if let (true, true, Some(name)) = (wanted, path.is_file(), path.file_name()) {
            fs::copy(&path, to.join(name)).map_err(failed)?;
        }
    }
    Ok(())
}
