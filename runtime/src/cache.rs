//! Compiled modules on disk: what a module depends on goes in as a key; the module comes out if it was ever compiled here.
//!
//! A cache may be shared by any number of threads and processes: an entry appears by one rename, is whole or absent, and
//! carries its key and a checksum, so that a damaged file is a miss. Nothing about the cache is ever an error: a folder
//! that cannot be read or written only makes compilation happen again.

use crate::nvrtc::Compiled;
use std::env;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// How many bytes of modules are kept: some thousands of cells.
pub const LIMIT: u64 = 512 << 20;

/// Begins every entry; the number grows when the layout changes.
const MAGIC: &[u8; 8] = b"rnncmod1";

/// Files of writers that died are removed after this long.
const ABANDONED: Duration = Duration::from_secs(3600);

/// Everything that a compiled module depends on.
#[derive(Clone, Copy, Debug)]
pub struct Key<'a> {
    /// The CUDA text.
    pub text: &'a str,
    /// Its name in messages.
    pub name: &'a str,
    /// The architecture: `sm_90`.
    pub arch: &'a str,
    /// NVRTC's options, in order.
    pub options: &'a [&'a str],
    /// Which NVRTC: its version, and what else tells builds apart.
    pub nvrtc: &'a str,
}

impl Key<'_> {
    /// One number for all of it, and for our own version. Lengths are hashed too, so that no two keys run together.
    fn hash(&self) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new();
        let mut add = |field: &str| {
            hasher.update(&(field.len() as u64).to_le_bytes());
            hasher.update(field.as_bytes());
        };
        let fixed = [env!("CARGO_PKG_VERSION"), self.nvrtc, self.arch, self.name, self.text];
        fixed.iter().chain(self.options).copied().for_each(&mut add);
        hasher.finalize()
    }
}

/// A folder of compiled modules, or none.
#[derive(Clone, Debug)]
pub struct Cache {
    folder: Option<PathBuf>,
    limit: u64,
}

impl Cache {
    /// The user's: RNNC_CACHE (`off` for none), else `rnnc` in XDG_CACHE_HOME, else in `.cache` at home.
    pub fn of_user() -> Cache {
        let set = |name: &str| env::var_os(name).filter(|v| !v.is_empty());
        Cache {
            folder: folder(set("RNNC_CACHE"), set("XDG_CACHE_HOME"), set("HOME")),
            limit: LIMIT,
        }
    }

    /// In a folder, which is made when something is stored, with at most so many bytes.
    pub fn in_folder(folder: &Path, limit: u64) -> Cache {
        Cache {
            folder: Some(folder.to_owned()),
            limit,
        }
    }

    /// None: every module is compiled.
    pub fn off() -> Cache {
        Cache { folder: None, limit: 0 }
    }

    /// Where it is.
    pub fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    /// How many modules it holds, and their bytes.
    pub fn size(&self) -> (usize, u64) {
        let entries = self.folder().map(list).unwrap_or_default();
        (entries.len(), entries.iter().map(|e| e.bytes).sum())
    }

    /// Whether a module could be stored.
    ///
    /// # Errors
    /// The folder cannot be made or written.
    pub fn check_writable(&self) -> io::Result<()> {
        let Some(folder) = self.folder() else {
            return Ok(());
        };
        fs::create_dir_all(folder)?;
        temporary(folder).map(drop)
    }

    /// The module, if an undamaged one is here.
    pub fn get(&self, key: &Key<'_>) -> Option<Compiled> {
        let hash = key.hash();
        let path = entry(self.folder()?, &hash);
        let compiled = decode(&hash, &fs::read(&path).ok()?)?;
        // Marks it as used, for eviction; a cache that can only be read still serves.
        let _ = File::open(&path).and_then(|file| file.set_modified(SystemTime::now()));
        Some(compiled)
    }

    /// Stores a module; then removes those unused longest, if there are too many bytes.
    ///
    /// # Errors
    /// The folder cannot be written. Callers go on without: the module is only compiled again.
    pub fn put(&self, key: &Key<'_>, compiled: &Compiled) -> io::Result<()> {
        let Some(folder) = self.folder() else {
            return Ok(());
        };
        fs::create_dir_all(folder)?;
        let hash = key.hash();
        let mut file = temporary(folder)?;
        file.write_all(&encode(&hash, compiled))?;
        file.persist(entry(folder, &hash)).map_err(|e| e.error)?;
        self.evict(folder);
        Ok(())
    }

    fn evict(&self, folder: &Path) {
        remove_abandoned(folder);
        let mut entries = list(folder);
        let mut bytes: u64 = entries.iter().map(|e| e.bytes).sum();
        if bytes <= self.limit {
            return;
        }
        entries.sort_by_key(|e| e.used);
        // A quarter more than needed, so that a full cache is not tidied at every store.
        let goal = self.limit / 4 * 3;
        for old in entries {
            if bytes <= goal {
                break;
            }
            // Another process may have removed it already.
            let _ = fs::remove_file(&old.path);
            bytes -= old.bytes;
        }
    }
}

/// The user's folder, from the three variables.
fn folder(
    chosen: Option<std::ffi::OsString>,
    cache_home: Option<std::ffi::OsString>,
    home: Option<std::ffi::OsString>,
) -> Option<PathBuf> {
    match chosen {
        Some(chosen) if chosen == "off" => None,
        Some(chosen) => Some(PathBuf::from(chosen)),
        None => {
            let base = cache_home.map(PathBuf::from).filter(|p| p.is_absolute());
            Some(base.or(home.map(|h| PathBuf::from(h).join(".cache")))?.join("rnnc"))
        }
    }
}

fn entry(folder: &Path, hash: &blake3::Hash) -> PathBuf {
    folder.join(format!("{}.module", hash.to_hex()))
}

fn temporary(folder: &Path) -> io::Result<tempfile::NamedTempFile> {
    tempfile::Builder::new().prefix(".part-").tempfile_in(folder)
}

/// A module's file.
struct Entry {
    path: PathBuf,
    bytes: u64,
    used: SystemTime,
}

/// The files with this end of name; those that vanish meanwhile are left out.
fn files(folder: &Path, wanted: impl Fn(&str) -> bool) -> Vec<Entry> {
    let read = fs::read_dir(folder).into_iter().flatten().flatten();
    let wanted = read.filter(|e| wanted(&e.file_name().to_string_lossy()));
    let entry = |e: fs::DirEntry| {
        let meta = e.metadata().ok()?;
        Some(Entry {
            path: e.path(),
            bytes: meta.len(),
            used: meta.modified().ok()?,
        })
    };
    wanted.filter_map(entry).collect()
}

fn list(folder: &Path) -> Vec<Entry> {
    files(folder, |name| name.ends_with(".module"))
}

fn remove_abandoned(folder: &Path) {
    for part in files(folder, |name| name.starts_with(".part-")) {
        if part.used.elapsed().is_ok_and(|age| age > ABANDONED) {
            let _ = fs::remove_file(part.path);
        }
    }
}

/// Magic, key, checksum of the rest; then PTX, cubin and log, each behind its length.
fn encode(hash: &blake3::Hash, compiled: &Compiled) -> Vec<u8> {
    let mut body = Vec::new();
    for part in [compiled.ptx.as_bytes(), &compiled.cubin, compiled.log.as_bytes()] {
        body.extend((part.len() as u64).to_le_bytes());
        body.extend(part);
    }
    let sum = blake3::hash(&body);
    [MAGIC.as_slice(), hash.as_bytes(), sum.as_bytes(), &body].concat()
}

fn decode(hash: &blake3::Hash, bytes: &[u8]) -> Option<Compiled> {
    let rest = bytes.strip_prefix(MAGIC)?.strip_prefix(hash.as_bytes())?;
    let (sum, mut body) = rest.split_at_checked(blake3::OUT_LEN)?;
    if blake3::hash(body).as_bytes() != sum {
        return None;
    }
    let ptx = String::from_utf8(take(&mut body)?).ok()?;
    let cubin = take(&mut body)?;
    let log = String::from_utf8(take(&mut body)?).ok()?;
    body.is_empty().then(|| Compiled::new(ptx, cubin, &log))
}

fn take(body: &mut &[u8]) -> Option<Vec<u8>> {
    let (length, rest) = body.split_first_chunk()?;
    let (part, rest) = rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
    *body = rest;
    Some(part.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    const LOG: &str = "\
a.cu(1): warning: odd
ptxas info    : Compiling entry function 'k' for 'sm_90'
ptxas info    : Used 12 registers, used 1 barriers, 400 bytes smem
";

    fn module(number: usize, bytes: usize) -> Compiled {
        let cubin = (0..bytes).map(|i| (i * 7 + number) as u8).collect();
        Compiled::new(format!(".entry k{number}"), cubin, LOG)
    }

    fn key(text: &str) -> Key<'_> {
        Key {
            text,
            name: "a.cu",
            arch: "sm_90",
            options: &["-lineinfo"],
            nvrtc: "13.5",
        }
    }

    #[test]
    fn what_is_put_is_got_and_every_part_of_the_key_counts() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::in_folder(&folder.path().join("new/deep"), LIMIT);
        let module = module(1, 1000);
        assert_eq!(cache.get(&key("text")), None);
        cache.put(&key("text"), &module).unwrap();
        assert_eq!(cache.get(&key("text")), Some(module));
        let usage = cache.get(&key("text")).unwrap();
        assert_eq!(
            (usage.kernel("k").unwrap().shared, usage.messages.trim()),
            (400, "a.cu(1): warning: odd")
        );
        let base = key("text");
        let others = [
            Key { text: "texT", ..base },
            Key { name: "b.cu", ..base },
            Key { arch: "sm_80", ..base },
            Key { options: &[], ..base },
            Key {
                options: &["-line", "info"],
                ..base
            },
            Key { nvrtc: "12.9", ..base },
        ];
        assert!(others.iter().all(|other| cache.get(other).is_none()));
        assert_eq!(cache.size().0, 1);
    }

    #[test]
    fn damaged_files_are_misses_and_are_mended() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::in_folder(folder.path(), LIMIT);
        let module = module(2, 300);
        cache.put(&key("t"), &module).unwrap();
        let path = entry(folder.path(), &key("t").hash());
        let whole = fs::read(&path).unwrap();
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x10;
            fs::write(&path, &bytes).unwrap();
            assert_eq!(cache.get(&key("t")), None, "byte {at} flipped");
            fs::write(&path, &whole[..at]).unwrap();
            assert_eq!(cache.get(&key("t")), None, "cut at {at}");
        }
        fs::write(&path, [&whole[..], b"x"].concat()).unwrap();
        assert_eq!(cache.get(&key("t")), None, "a byte too many");
        // An undamaged entry of another key, under this key's name.
        cache.put(&key("other"), &module).unwrap();
        fs::copy(entry(folder.path(), &key("other").hash()), &path).unwrap();
        assert_eq!(cache.get(&key("t")), None, "another key's module");
        cache.put(&key("t"), &module).unwrap();
        assert_eq!(cache.get(&key("t")), Some(module));
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_a_miss() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        let cache = Cache::in_folder(&file.join("below"), LIMIT);
        assert!(cache.put(&key("t"), &module(1, 10)).is_err() && cache.check_writable().is_err());
        assert_eq!((cache.get(&key("t")), cache.size()), (None, (0, 0)));
        Cache::off().put(&key("t"), &module(1, 10)).unwrap();
        assert_eq!(Cache::off().get(&key("t")), None);
    }

    #[test]
    fn the_longest_unused_are_removed_first() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::in_folder(folder.path(), 8 * 1200);
        let texts: Vec<String> = (0..12).map(|i| i.to_string()).collect();
        for (i, text) in texts.iter().enumerate() {
            cache.put(&key(text), &module(i, 1000)).unwrap();
            // Older by an hour each, oldest first; the first is used again and again.
            let age = Duration::from_secs(60 * (20 - i as u64));
            let path = entry(folder.path(), &key(text).hash());
            File::open(path).unwrap().set_modified(SystemTime::now() - age).unwrap();
            assert!(cache.get(&key("0")).is_some(), "after {i}");
        }
        assert!(cache.size().1 <= 8 * 1200);
        assert_eq!((cache.get(&key("1")), cache.get(&key("11")).is_some()), (None, true));
    }

    #[test]
    fn folders_follow_the_variables() {
        let path = |s: &str| Some(std::ffi::OsString::from(s));
        assert_eq!(folder(path("/c"), path("/x"), path("/h")), Some(PathBuf::from("/c")));
        assert_eq!(folder(path("off"), path("/x"), path("/h")), None);
        assert_eq!(folder(None, path("/x"), path("/h")), Some(PathBuf::from("/x/rnnc")));
        assert_eq!(
            folder(None, path("relative"), path("/h")),
            Some(PathBuf::from("/h/.cache/rnnc"))
        );
        assert_eq!(folder(None, None, None), None);
    }

    /// Writers and readers of a few keys at once: whatever is got is whole and belongs to its key.
    fn hammer(folder: &Path, rounds: usize) {
        // A limit that a handful of modules exceeds, so that eviction races with everything else.
        let cache = Cache::in_folder(folder, 5 * 4200);
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let cache = &cache;
                scope.spawn(move || {
                    for round in 0..rounds {
                        let number = (thread + round * 3) % 7;
                        let text = number.to_string();
                        if let Some(got) = cache.get(&key(&text)) {
                            assert_eq!(got, module(number, 4000));
                        }
                        cache.put(&key(&text), &module(number, 4000)).unwrap();
                    }
                });
            }
        });
    }

    /// Names the folder to the processes that the test below starts.
    const FOLDER: &str = "RNNC_TEST_CACHE_FOLDER";

    #[test]
    fn many_threads_and_processes_share_a_folder() {
        if let Some(folder) = env::var_os(FOLDER) {
            return hammer(Path::new(&folder), 30);
        }
        let folder = tempfile::tempdir().unwrap();
        let itself = "cache::tests::many_threads_and_processes_share_a_folder";
        let start = |_| {
            let mut command = Command::new(env::current_exe().unwrap());
            command.args(["--exact", itself]).env(FOLDER, folder.path());
            command.stdout(std::process::Stdio::null()).spawn().unwrap()
        };
        let children: Vec<_> = (0..4).map(start).collect();
        hammer(folder.path(), 30);
        for mut child in children {
            assert!(child.wait().unwrap().success());
        }
        assert!(files(folder.path(), |name| name.starts_with(".part-")).is_empty());
        assert!(Cache::in_folder(folder.path(), LIMIT).size().0 > 0);
    }
}
