//! The assembler's report (`--ptxas-options=-v`) goes in; registers, shared memory and spills of each function come out.

use serde::{Deserialize, Serialize};

/// What a kernel, or a device function that was not inlined, uses on the architecture that it was assembled for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Its symbol: for `extern "C"` the name in the text.
    pub name: String,
    /// Whether it is a kernel.
    pub kernel: bool,
    /// Registers a thread (0 for a device function: its callers' figure covers it).
    pub registers: u32,
    /// Static shared memory of a block, in bytes.
    pub shared: u32,
    /// Stack of a thread, in bytes: arrays that are indexed at run time, calls and spills.
    pub stack: u32,
    /// Bytes that a thread writes out for want of registers.
    pub spill_stores: u32,
    /// Bytes that a thread reads back.
    pub spill_loads: u32,
}

impl Usage {
    /// Whether registers ran out.
    pub fn spills(&self) -> bool {
        self.spill_stores + self.spill_loads > 0
    }
}

/// Splits a log into what functions use, in the assembler's order, and all other messages.
pub(super) fn parse(log: &str) -> (Vec<Usage>, String) {
    let mut functions: Vec<Usage> = Vec::new();
    let mut messages = String::new();
    // The function that the lines without a name speak of, and the kernel that a `Used` line speaks of.
    let (mut current, mut kernel) = (None, None);
    for line in log.lines() {
        let Some(info) = info(line) else {
            if !line.trim().is_empty() {
                messages.push_str(line);
                messages.push('\n');
            }
            continue;
        };
        if let Some(name) = quoted(info, "Compiling entry function '") {
            kernel = Some(entry(&mut functions, name));
            current = kernel;
        } else if let Some(name) = info.strip_prefix("Function properties for ") {
            current = Some(entry(&mut functions, name.trim()));
        } else if info.starts_with("Used ") {
            with(&mut functions, kernel, |f| used(f, info));
        } else if info.contains("stack frame") {
            with(&mut functions, current, |f| properties(f, info));
        }
    }
    (functions, messages)
}

/// The rest of a line that is information of the assembler, which continues lines by a dot, or in older versions by blanks.
fn info(line: &str) -> Option<&str> {
    let Some(rest) = line.strip_prefix("ptxas") else {
        return line.contains("bytes stack frame").then_some(line.trim());
    };
    let rest = rest.trim_start();
    let named = rest.strip_prefix("info").and_then(|r| r.trim_start().strip_prefix(':'));
    named.or(rest.strip_prefix('.')).map(str::trim_start)
}

fn quoted<'a>(info: &'a str, before: &str) -> Option<&'a str> {
    info.strip_prefix(before)?.split('\'').next()
}

fn entry(functions: &mut Vec<Usage>, name: &str) -> usize {
    functions.iter().position(|f| f.name == name).unwrap_or_else(|| {
        functions.push(Usage {
            name: name.to_owned(),
            ..Usage::default()
        });
        functions.len() - 1
    })
}

fn with(functions: &mut [Usage], at: Option<usize>, change: impl FnOnce(&mut Usage)) {
    if let Some(function) = at.and_then(|at| functions.get_mut(at)) {
        change(function);
    }
}

/// `Used 12 registers, used 1 barriers, 400 bytes smem, 372 bytes cmem[0]`
fn used(function: &mut Usage, info: &str) {
    function.kernel = true;
    for part in info.trim_start_matches("Used ").split(", ") {
        match number(part) {
            (n, "registers") => function.registers = n,
            (n, "bytes smem") => function.shared = n,
            _ => {}
        }
    }
}

/// `8 bytes stack frame, 4 bytes spill stores, 4 bytes spill loads`
fn properties(function: &mut Usage, info: &str) {
    for part in info.split(", ") {
        match number(part) {
            (n, "bytes stack frame") => function.stack = n,
            (n, "bytes spill stores") => function.spill_stores = n,
            (n, "bytes spill loads") => function.spill_loads = n,
            _ => {}
        }
    }
}

/// A number and what it counts.
fn number(part: &str) -> (u32, &str) {
    let (digits, what) = part.trim().split_once(' ').unwrap_or((part, ""));
    (digits.parse().unwrap_or(0), what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_kernels_functions_and_messages_apart() {
        let log = "\
cell.cu(8): warning #177-D: variable \"unused\" was declared but never referenced

ptxas warning : Value of threads per SM for entry spill is out of range. .minnctapersm will be ignored
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'spill' for 'sm_75'
ptxas info    : Function properties for spill
ptxas         .     2360 bytes stack frame, 3396 bytes spill stores, 4680 bytes spill loads
ptxas info    : Used 64 registers, used 1 barriers, 2360 bytes cumulative stack size, 364 bytes cmem[0]
ptxas info    : Compile time = 226.024 ms
ptxas info    : Function properties for _Z6helperf
ptxas         .     0 bytes stack frame, 4 bytes spill stores, 4 bytes spill loads
ptxas info    : Compiling entry function 'k' for 'sm_75'
ptxas info    : Function properties for k
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 11 registers, used 1 barriers, 400 bytes smem, 372 bytes cmem[0]
";
        let (functions, messages) = parse(log);
        let names: Vec<_> = functions
            .iter()
            .map(|f| (f.name.as_str(), f.kernel, f.spills()))
            .collect();
        assert_eq!(
            names,
            [("spill", true, true), ("_Z6helperf", false, true), ("k", true, false)]
        );
        let spill = &functions[0];
        assert_eq!((spill.registers, spill.stack), (64, 2360));
        assert_eq!((spill.spill_stores, spill.spill_loads), (3396, 4680));
        assert_eq!((functions[2].registers, functions[2].shared), (11, 400));
        assert_eq!(messages.lines().count(), 2, "{messages}");
    }
}
