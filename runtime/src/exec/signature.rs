//! A module's PTX and the launches of a manifest go in; whether they belong together comes out. The driver believes what it
//! is told about arguments, so a mix-up of files would otherwise read and write anywhere.

use crate::manifest::{Argument, KernelLaunch};

/// A kernel as the PTX declares it.
#[derive(Debug, PartialEq)]
struct Entry<'a> {
    name: &'a str,
    /// Bytes of each parameter.
    parameters: Vec<u32>,
    /// Most threads a block, if the text says so.
    threads: Option<u32>,
}

/// Every launch names a kernel of the PTX, with as many arguments of the same sizes, and a block that it allows.
///
/// # Errors
/// What does not fit.
pub(super) fn check<'a>(ptx: &str, launches: impl Iterator<Item = &'a KernelLaunch>) -> Result<(), String> {
    let entries = entries(ptx);
    for launch in launches {
        let name = &launch.kernel;
        let entry = entries
            .iter()
            .find(|e| e.name == name)
            .ok_or_else(|| format!("the module has no kernel {name}"))?;
        let wanted: Vec<u32> = launch.arguments.iter().map(bytes).collect();
        if entry.parameters != wanted {
            return Err(format!(
                "{name} takes parameters of {:?} bytes, the manifest has {wanted:?}",
                entry.parameters
            ));
        }
        if let Some(threads) = entry.threads.filter(|t| launch.block > *t) {
            return Err(format!(
                "{name} allows blocks of {threads} threads, the manifest has {}",
                launch.block
            ));
        }
    }
    Ok(())
}

fn bytes(argument: &Argument) -> u32 {
    match argument {
        Argument::Buffer { .. } | Argument::Workspace(_) => 8,
        Argument::Frames | Argument::Batch | Argument::Epoch(_) => 4,
    }
}

/// `.entry name( .param .u64 name_param_0, .param .u32 name_param_1 ) .maxntid 256, 1, 1 {`
fn entries(ptx: &str) -> Vec<Entry<'_>> {
    ptx.split(".entry ").skip(1).filter_map(entry).collect()
}

fn entry(text: &str) -> Option<Entry<'_>> {
    let (name, rest) = text.split_once('(')?;
    let (parameters, rest) = rest.split_once(')')?;
    let (directives, _) = rest.split_once('{')?;
    let sizes = parameters.split(".param").skip(1).map(parameter_bytes);
    Some(Entry {
        name: name.trim(),
        parameters: sizes.collect::<Option<_>>()?,
        threads: threads(directives),
    })
}

/// `.u64 .ptr .align 1 scale_param_0,`: 8. Other than numbers no kernel of ours takes.
fn parameter_bytes(text: &str) -> Option<u32> {
    let kind = text.split_whitespace().next()?;
    let bits: u32 = kind.trim_start_matches(['.', 'u', 's', 'b', 'f']).parse().ok()?;
    Some(bits / 8)
}

fn threads(directives: &str) -> Option<u32> {
    let (_, after) = directives.split_once("ntid")?;
    let first = after.trim_start().split(|c: char| !c.is_ascii_digit()).next()?;
    first.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::samples::{cover, entry as launch, looped, reads, writes};
    use crate::nvrtc::{Compiler, find};
    use crate::plan::Scope;

    const TEXT: &str = r#"
extern "C" __global__ void __launch_bounds__(64, 1) loop(const float* x, const float* s0, float* sT, float* y, int T, int B,
                                                         uint4* words, unsigned epoch) {
  y[threadIdx.x] = x[0] + s0[0] + T + B + epoch + words[0].x;
  sT[0] = 1;
}
extern "C" __global__ void plain(float* y) { y[0] = 1; }
"#;

    #[test]
    fn what_nvrtc_declares_is_what_the_manifest_says() {
        let found = find();
        if found.is_empty() {
            eprintln!("SKIPPED what_nvrtc_declares_is_what_the_manifest_says: no NVRTC; run `cargo xtask setup`");
        }
        for found in found {
            let text = format!(
                "struct uint4_ {{ unsigned x, y, z, w; }};\n{}",
                TEXT.replace("uint4*", "uint4_*")
            );
            let ptx = Compiler::open_file(&found.path)
                .unwrap()
                .compile(&text, "loop.cu", "sm_90", &[])
                .unwrap()
                .ptx;
            let names: Vec<_> = entries(&ptx)
                .iter()
                .map(|e| (e.name, e.parameters.len(), e.threads))
                .collect();
            assert_eq!(names.len(), 2);
            assert!(
                names.contains(&("loop", 8, Some(64))) && names.contains(&("plain", 1, None)),
                "{names:?}"
            );
            let (_, manifest) = looped();
            let mut launches = manifest.launches;
            assert_eq!(check(&ptx, launches.iter()), Ok(()));
            launches[0].arguments.swap(5, 6);
            let swapped = check(&ptx, launches.iter()).unwrap_err();
            assert!(
                swapped.starts_with("loop takes parameters of [8, 8, 8, 8, 4, 4, 8, 4] bytes"),
                "{swapped}"
            );
            launches[0].arguments.swap(5, 6);
            launches[0].block = 65;
            let wide = check(&ptx, launches.iter()).unwrap_err();
            assert_eq!(wide, "loop allows blocks of 64 threads, the manifest has 65");
            let other = [launch("other", vec![reads(0), writes(1)], cover(Scope::Const, 1))];
            assert_eq!(check(&ptx, other.iter()).unwrap_err(), "the module has no kernel other");
        }
    }
}
