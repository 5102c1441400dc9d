//! The places where an NVRTC may lie go in (environment, loader, toolkits, Python's wheels, `target/nvrtc`); what is
//! there comes out, best first.

use super::NvrtcError;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::env;
use std::fmt;
use std::path::{Path, PathBuf};

/// Major and minor version, as in 13.5.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Version {
    /// The first number; a driver runs cubins of its own or an older one.
    pub major: i32,
    /// The second.
    pub minor: i32,
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// Where an NVRTC was found, in the order of preference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// RNNC_NVRTC names it.
    Variable,
    /// On the loader's path: LD_LIBRARY_PATH, then the system's library folders.
    Loader,
    /// In a CUDA toolkit: CUDA_HOME, CUDA_PATH, or where toolkits are installed.
    Toolkit,
    /// In one of Python's nvidia wheels.
    Wheel,
    /// In `target/nvrtc`, where `cargo xtask setup` puts it.
    Setup,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Origin::Variable => "RNNC_NVRTC",
            Origin::Loader => "the loader's path",
            Origin::Toolkit => "a CUDA toolkit",
            Origin::Wheel => "a Python wheel",
            Origin::Setup => "cargo xtask setup",
        })
    }
}

/// An NVRTC that opens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Found {
    /// The library.
    pub path: PathBuf,
    /// Its own word.
    pub version: Version,
    /// Where it was found.
    pub origin: Origin,
}

/// Every NVRTC on this machine that opens, in the order of preference; each file once.
pub fn find() -> Vec<Found> {
    let open = |c: Candidate| {
        let nvrtc = nvrtc_sys::Nvrtc::open(&c.path).ok()?;
        let (major, minor) = nvrtc.version().ok()?;
        Some(Found {
            path: c.path,
            version: Version { major, minor },
            origin: c.origin,
        })
    };
    candidates(&Surroundings::here()).into_iter().filter_map(open).collect()
}

/// A file that bears NVRTC's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Candidate {
    pub(super) path: PathBuf,
    pub(super) origin: Origin,
}

/// What the search depends on.
#[derive(Clone, Debug, Default)]
pub(super) struct Surroundings {
    /// RNNC_NVRTC.
    pub(super) variable: Option<PathBuf>,
    /// Folders of the loader.
    pub(super) loader: Vec<PathBuf>,
    /// Roots of toolkits.
    pub(super) toolkits: Vec<PathBuf>,
    /// Folders that may hold `python3.x/site-packages`.
    pub(super) python: Vec<PathBuf>,
    /// Folders whose ancestors may hold `target/nvrtc` or `nvrtc`.
    pub(super) starts: Vec<PathBuf>,
    /// A target folder of the user's choice.
    pub(super) target: Option<PathBuf>,
}

impl Surroundings {
    /// Those of this process.
    pub(super) fn here() -> Surroundings {
        Surroundings {
            variable: path_of("RNNC_NVRTC"),
            loader: loader_folders(),
            toolkits: ["CUDA_HOME", "CUDA_PATH"]
                .iter()
                .filter_map(|v| path_of(v))
                .chain([PathBuf::from("/usr/local/cuda")])
                .collect(),
            python: python_folders(),
            starts: [env::current_dir().ok(), executable_folder()]
                .into_iter()
                .flatten()
                .collect(),
            target: path_of("CARGO_TARGET_DIR"),
        }
    }

    /// RNNC_NVRTC, where it names no NVRTC.
    pub(super) fn check_variable(&self) -> Result<(), NvrtcError> {
        match &self.variable {
            Some(path) if variable(path).is_empty() => Err(NvrtcError::Variable { path: path.clone() }),
            _ => Ok(()),
        }
    }
}

/// Every candidate, in the order of preference, each file once. If RNNC_NVRTC is set, it alone counts.
pub(super) fn candidates(around: &Surroundings) -> Vec<Candidate> {
    let groups: [(Origin, Vec<PathBuf>); 5] = [
        (
            Origin::Variable,
            around.variable.as_deref().map(variable).unwrap_or_default(),
        ),
        (
            Origin::Loader,
            around.loader.iter().flat_map(|d| libraries(d)).collect(),
        ),
        (
            Origin::Toolkit,
            around.toolkits.iter().flat_map(|d| toolkit(d)).collect(),
        ),
        (Origin::Wheel, around.python.iter().flat_map(|d| wheels(d)).collect()),
        (Origin::Setup, setups(around)),
    ];
    let used = if around.variable.is_some() {
        &groups[..1]
    } else {
        &groups[1..]
    };
    let mut seen = BTreeSet::new();
    let mut out = Vec::new();
    for (origin, paths) in used {
        for path in paths {
            if seen.insert(path.canonicalize().unwrap_or_else(|_| path.clone())) {
                out.push(Candidate {
                    path: path.clone(),
                    origin: *origin,
                });
            }
        }
    }
    out
}

/// The library or libraries that RNNC_NVRTC means: a file, or any folder that one of the other origins would know.
fn variable(path: &Path) -> Vec<PathBuf> {
    if path.is_file() {
        return vec![path.to_owned()];
    }
    [libraries(path), toolkit(path), wheel(path), versions(path)].concat()
}

/// `libnvrtc.so*` in a folder, the newest first. (`libnvrtc.alt.so`, another build of the same, and the builtins are not meant.)
fn libraries(folder: &Path) -> Vec<PathBuf> {
    let mut found = entries(folder);
    found.retain(|p| {
        p.file_name()
            .is_some_and(|n| n.to_string_lossy().starts_with("libnvrtc.so"))
            && p.is_file()
    });
    found.sort_by_key(|p| std::cmp::Reverse(numbers(p)));
    found
}

/// In a toolkit's root.
fn toolkit(root: &Path) -> Vec<PathBuf> {
    ["lib64", "lib", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib"]
        .iter()
        .flat_map(|sub| libraries(&root.join(sub)))
        .collect()
}

/// In the packages of each Python under a folder such as `/usr/lib`.
fn wheels(folder: &Path) -> Vec<PathBuf> {
    let pythons = entries(folder).into_iter().rev();
    let pythons = pythons.filter(|p| {
        p.file_name()
            .is_some_and(|n| n.to_string_lossy().starts_with("python3"))
    });
    pythons
        .flat_map(|p| ["site-packages", "dist-packages"].map(|sub| p.join(sub)))
        .flat_map(|site| wheel(&site))
        .collect()
}

/// In a folder of packages: `nvidia/cu13/lib`, `nvidia/cuda_nvrtc/lib`, or what comes after them; newest first.
fn wheel(site: &Path) -> Vec<PathBuf> {
    let packages = entries(&site.join("nvidia"));
    let mut found: Vec<PathBuf> = packages.iter().flat_map(|p| libraries(&p.join("lib"))).collect();
    found.sort_by_key(|p| std::cmp::Reverse(numbers(p)));
    found
}

/// In a folder of set-ups, one a version, the newest first.
fn versions(folder: &Path) -> Vec<PathBuf> {
    let mut versions = entries(folder);
    versions.sort_by_key(|p| std::cmp::Reverse(numbers(p)));
    versions.iter().flat_map(|v| wheel(v)).collect()
}

/// Under the user's target folder, then upward from each start: `target/nvrtc`, and `nvrtc` beside an executable's profile.
fn setups(around: &Surroundings) -> Vec<PathBuf> {
    let chosen = around.target.iter().map(|t| t.join("nvrtc"));
    let ancestors = around.starts.iter().flat_map(|s| s.ancestors());
    let upward = ancestors.flat_map(|a| [a.join("target/nvrtc"), a.join("nvrtc")]);
    chosen.chain(upward).flat_map(|d| versions(&d)).collect()
}

/// A folder's entries, sorted; none where it cannot be read.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let Ok(read) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut found: Vec<PathBuf> = read.filter_map(|e| Some(e.ok()?.path())).collect();
    found.sort();
    found
}

/// The numbers in a file's name, for ordering by version: 13.10 comes after 13.9.
fn numbers(path: &Path) -> Vec<u64> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    name.split(|c: char| !c.is_ascii_digit())
        .filter_map(|n| n.parse().ok())
        .collect()
}

fn path_of(variable: &str) -> Option<PathBuf> {
    env::var_os(variable).filter(|v| !v.is_empty()).map(PathBuf::from)
}

fn executable_folder() -> Option<PathBuf> {
    Some(env::current_exe().ok()?.parent()?.to_owned())
}

/// LD_LIBRARY_PATH, what `/etc/ld.so.conf.d` lists, and the folders that every loader knows.
fn loader_folders() -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = Vec::new();
    if let Some(path) = env::var_os("LD_LIBRARY_PATH") {
        folders.extend(env::split_paths(&path).filter(|p| p.is_absolute()));
    }
    for file in [
        vec![PathBuf::from("/etc/ld.so.conf")],
        entries(Path::new("/etc/ld.so.conf.d")),
    ]
    .concat()
    {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        folders.extend(
            text.lines()
                .map(str::trim)
                .filter(|l| l.starts_with('/'))
                .map(PathBuf::from),
        );
    }
    folders.extend(["/usr/lib64", "/usr/lib", "/lib64", "/lib"].map(PathBuf::from));
    folders
}

/// The `lib` folders of the Pythons that the user can mean: the active environment, those on PATH, the user's own.
fn python_folders() -> Vec<PathBuf> {
    let active = ["VIRTUAL_ENV", "CONDA_PREFIX"].iter().filter_map(|v| path_of(v));
    let home = path_of("HOME");
    let versions = home.iter().flat_map(|h| entries(&h.join(".pyenv/versions"))).rev();
    let path = env::var_os("PATH").unwrap_or_default();
    let on_path = env::split_paths(&path)
        .filter(|p| p.join("python3").exists())
        .filter_map(|p| Some(p.parent()?.to_owned()));
    active
        .chain(on_path.collect::<Vec<_>>())
        .chain(home.iter().map(|h| h.join(".local")))
        .chain(versions)
        .map(|prefix| prefix.join("lib"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn touch(root: &Path, files: &[&str]) {
        for file in files {
            let path = root.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
    }

    fn names(root: &Path, around: &Surroundings) -> Vec<(Origin, String)> {
        let name = |c: Candidate| {
            (
                c.origin,
                c.path.strip_prefix(root).unwrap().to_string_lossy().into_owned(),
            )
        };
        candidates(around).into_iter().map(name).collect()
    }

    #[test]
    fn places_come_in_order_and_the_newest_first() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        touch(
            root,
            &[
                "ld/libnvrtc.so.12",
                "ld/libnvrtc-builtins.so.12.9",
                "cuda/lib64/libnvrtc.so.12",
                "cuda/lib64/libnvrtc.so.13",
                "venv/lib/python3.11/site-packages/nvidia/cu13/lib/libnvrtc.so.13",
                "venv/lib/python3.11/site-packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.12",
                "venv/lib/python3.11/site-packages/nvidia/cuda_nvrtc/lib/libnvrtc.alt.so.12",
                "work/target/nvrtc/13.9/nvidia/cu13/lib/libnvrtc.so.13",
                "work/target/nvrtc/13.10/nvidia/cu13/lib/libnvrtc.so.13",
                "custom/nvrtc/12.9/nvidia/cuda_nvrtc/lib/libnvrtc.so.12",
            ],
        );
        let around = Surroundings {
            variable: None,
            loader: vec![root.join("ld"), root.join("absent")],
            toolkits: vec![root.join("cuda")],
            python: vec![root.join("venv/lib")],
            starts: vec![root.join("work/src/deep"), root.join("custom/release")],
            target: None,
        };
        let setup = |p: &str| (Origin::Setup, p.to_owned());
        let wheel = "venv/lib/python3.11/site-packages/nvidia";
        assert_eq!(
            names(root, &around),
            [
                (Origin::Loader, "ld/libnvrtc.so.12".to_owned()),
                (Origin::Toolkit, "cuda/lib64/libnvrtc.so.13".to_owned()),
                (Origin::Toolkit, "cuda/lib64/libnvrtc.so.12".to_owned()),
                (Origin::Wheel, format!("{wheel}/cu13/lib/libnvrtc.so.13")),
                (Origin::Wheel, format!("{wheel}/cuda_nvrtc/lib/libnvrtc.so.12")),
                setup("work/target/nvrtc/13.10/nvidia/cu13/lib/libnvrtc.so.13"),
                setup("work/target/nvrtc/13.9/nvidia/cu13/lib/libnvrtc.so.13"),
                setup("custom/nvrtc/12.9/nvidia/cuda_nvrtc/lib/libnvrtc.so.12"),
            ]
        );
    }

    #[test]
    fn the_variable_alone_counts_and_may_be_a_file_or_a_folder() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let file = "t/nvrtc/12.9/nvidia/cuda_nvrtc/lib/libnvrtc.so.12";
        touch(root, &["ld/libnvrtc.so.13", file]);
        let folders = [
            "t/nvrtc",
            "t/nvrtc/12.9",
            "t/nvrtc/12.9/nvidia/cuda_nvrtc/lib",
            "t/nvrtc/12.9/nvidia/cuda_nvrtc",
            file,
        ];
        for value in folders {
            let around = Surroundings {
                variable: Some(root.join(value)),
                loader: vec![root.join("ld")],
                ..Surroundings::default()
            };
            assert_eq!(names(root, &around), [(Origin::Variable, file.to_owned())], "{value}");
            assert!(around.check_variable().is_ok());
        }
        let wrong = Surroundings {
            variable: Some(root.join("nowhere")),
            loader: vec![root.join("ld")],
            ..Surroundings::default()
        };
        assert!(names(root, &wrong).is_empty());
        assert!(
            wrong
                .check_variable()
                .unwrap_err()
                .to_string()
                .contains("RNNC_NVRTC is ")
        );
    }

    #[test]
    fn one_file_by_two_names_is_one() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        touch(root, &["cuda/lib64/libnvrtc.so.13"]);
        std::os::unix::fs::symlink("libnvrtc.so.13", root.join("cuda/lib64/libnvrtc.so")).unwrap();
        let around = Surroundings {
            toolkits: vec![root.join("cuda"), root.join("cuda")],
            ..Surroundings::default()
        };
        assert_eq!(names(root, &around).len(), 1);
    }
}
