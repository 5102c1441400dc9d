//! The C header: a launcher for everything in a manifest, in terms of the CUDA driver API.

use super::kernel::{indented, words};
use super::names::identifier;
use super::templates::{View, render};
use rnnc_runtime::manifest::{Argument, BufferEntry, Grid, KernelLaunch, Manifest, Workspace};
use rnnc_runtime::plan::{BufferId, Elem, FinalCopy, Initial, Role, Scope};
use serde::Serialize;
use std::collections::BTreeSet;

/// Dynamic shared memory that a kernel may use without asking.
const FREE_SHARED: u32 = 48 << 10;

/// `header.h`
#[derive(Serialize)]
struct Header {
    title: String,
    cell: String,
    guard: String,
    workspace_type: String,
    memory: String,
    kernels: String,
    sizes: String,
    load: String,
    launches: String,
    prologue: String,
    defaults: String,
    run: String,
}

impl View for Header {
    const TEMPLATE: &'static str = "header.h";
}

/// Prints the header of a manifest.
pub fn print(manifest: &Manifest) -> String {
    let cell = identifier(&manifest.cell);
    let printer = Printer { manifest, cell: &cell };
    let dims: Vec<String> = manifest.dims.iter().map(|(n, v)| format!("{n} = {v}")).collect();
    let at = if dims.is_empty() {
        String::new()
    } else {
        format!(" at {}", dims.join(", "))
    };
    render(&Header {
        title: format!("{}{at}", manifest.cell),
        guard: format!("RNNC_{}_H", cell.to_uppercase()),
        workspace_type: printer.workspace_type(),
        memory: indented(&printer.memory(), 1),
        kernels: indented(&printer.kernels(), 1),
        sizes: indented(&printer.sizes(), 0),
        load: indented(&printer.load(), 1),
        launches: indented(&printer.launch_functions(), 0),
        prologue: indented(
            &using("kernels memory stream", &printer.calls(&manifest.prologue, "1, 1")),
            1,
        ),
        defaults: indented(&using("kernels memory B stream", &printer.defaults()), 1),
        run: indented(&using("kernels memory T B stream", &printer.run()), 1),
        cell: cell.clone(),
    })
}

struct Printer<'a> {
    manifest: &'a Manifest,
    cell: &'a str,
}

impl Printer<'_> {
    fn all(&self) -> impl Iterator<Item = &KernelLaunch> {
        let m = self.manifest;
        m.prologue.iter().chain(&m.initial).chain(&m.launches)
    }

    fn workspace_type(&self) -> String {
        if self.manifest.workspaces.is_empty() {
            return String::new();
        }
        let cell = self.cell;
        format!(
            "/* Memory that blocks exchange values in. Zero all of it once, and `epochs`; both live on from run to run. */\n\
             typedef struct {cell}_workspace {{\n    CUdeviceptr words;\n    size_t bytes;\n    unsigned long long epochs;\n\
             }} {cell}_workspace;\n\n"
        )
    }

    fn memory(&self) -> Vec<String> {
        let buffers = self.manifest.buffers.iter();
        let mut lines: Vec<String> = buffers
            .map(|b| format!("CUdeviceptr {}; /* {} {}: {} */", b.pointer, what(b), b.name, b.layout))
            .collect();
        let workspaces = self.manifest.workspaces.iter();
        lines.extend(workspaces.map(|w| format!("{}_workspace {};", self.cell, w.name)));
        lines
    }

    fn kernels(&self) -> Vec<String> {
        self.all().map(|k| format!("CUfunction {};", k.kernel)).collect()
    }

    fn sizes(&self) -> Vec<String> {
        let mut lines = vec!["/* Bytes of each buffer. */".to_string()];
        for buffer in &self.manifest.buffers {
            let bytes = buffer.shape.iter().product::<usize>() * buffer.elem.bytes();
            let (parameters, copies) = match buffer.scope {
                Scope::Const => ("void", String::new()),
                Scope::Batch | Scope::Window(1) => ("size_t B", "B * ".to_string()),
                Scope::Window(k) => ("size_t B", format!("{k} * B * ")),
                Scope::Frame => ("size_t T, size_t B", "T * B * ".to_string()),
            };
            lines.extend([
                format!(
                    "static inline size_t {}_bytes_{}({parameters})",
                    self.cell, buffer.pointer
                ),
                "{".to_string(),
                format!("return {copies}(size_t){bytes};"),
                "}".to_string(),
                String::new(),
            ]);
        }
        for kernel in self.all() {
            if let Grid::Groups { batch_tile, .. } = kernel.grid {
                let used = workspaces(kernel, &self.manifest.workspaces);
                lines.extend(used.iter().flat_map(|w| self.workspace_size(w, batch_tile)));
            }
        }
        lines.pop();
        lines
    }

    /// What a workspace needs at most.
    fn workspace_size(&self, workspace: &Workspace, batch_tile: u64) -> [String; 5] {
        let (name, bytes) = (&workspace.name, workspace.bytes_per_group);
        [
            format!("static inline size_t {}_bytes_{name}(size_t B)", self.cell),
            "{".to_string(),
            format!("return (B + {}) / {batch_tile} * (size_t){bytes};", batch_tile - 1),
            "}".to_string(),
            String::new(),
        ]
    }

    fn load(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for kernel in self.all() {
            let name = &kernel.kernel;
            lines.push(format!(
                "result = cuModuleGetFunction(&kernels->{name}, module, \"{name}\");"
            ));
            lines.extend(leave_on_failure());
            if kernel.shared > FREE_SHARED {
                lines.push(format!(
                    "result = cuFuncSetAttribute(kernels->{name}, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, {});",
                    kernel.shared
                ));
                lines.extend(leave_on_failure());
            }
        }
        lines
    }

    fn launch_functions(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for kernel in self.all() {
            if !lines.is_empty() {
                lines.push(String::new());
            }
            lines.extend(self.launch_function(kernel));
        }
        lines
    }

    fn launch_function(&self, kernel: &KernelLaunch) -> Vec<String> {
        let (cell, name) = (self.cell, &kernel.kernel);
        let body = match &kernel.grid {
            Grid::Cover {
                scope,
                each,
                per_block,
                times,
                limit,
            } => self.cover(kernel, *scope, [*each, *per_block, *times, *limit]),
            Grid::Groups { batch_tile, blocks } => self.groups(kernel, *batch_tile, *blocks),
        };
        let mut lines = vec![
            format!(
                "static inline CUresult {cell}_launch_{name}(CUfunction kernel, {cell}_memory *memory, int T, int B, CUstream stream)"
            ),
            "{".to_string(),
        ];
        lines.extend(using("T B", &body));
        lines.push("}".to_string());
        lines
    }

    fn cover(&self, kernel: &KernelLaunch, scope: Scope, [each, per_block, times, limit]: [u64; 4]) -> Vec<String> {
        let copies = match scope {
            Scope::Const => "1ULL",
            Scope::Batch | Scope::Window(_) => "(unsigned long long)B",
            Scope::Frame => "(unsigned long long)T * (unsigned long long)B",
        };
        vec![
            self.arguments(kernel),
            format!(
                "unsigned long long blocks = ({copies} * {each} + {}) / {per_block} * {times};",
                per_block - 1
            ),
            format!("if (blocks > {limit}) {{"),
            format!("blocks = {limit};"),
            "}".to_string(),
            format!(
                "return cuLaunchKernel(kernel, (unsigned)blocks, 1, 1, {}, 1, 1, {}, stream, arguments, NULL);",
                kernel.block, kernel.shared
            ),
        ]
    }

    /// A cooperative launch: as many groups of blocks as can be resident.
    fn groups(&self, kernel: &KernelLaunch, batch_tile: u64, blocks: u64) -> Vec<String> {
        let (block, shared) = (kernel.block, kernel.shared);
        let mut lines: Vec<String> = [
            "CUdevice device;".to_string(),
            "int processors, resident;".to_string(),
            "CUresult result = cuCtxGetDevice(&device);".to_string(),
        ]
        .into();
        lines.extend(leave_on_failure());
        lines.push(
            "result = cuDeviceGetAttribute(&processors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device);".into(),
        );
        lines.extend(leave_on_failure());
        lines.push(format!(
            "result = cuOccupancyMaxActiveBlocksPerMultiprocessor(&resident, kernel, {block}, {shared});"
        ));
        lines.extend(leave_on_failure());
        lines.extend([
            format!(
                "const unsigned long long tiles = ((unsigned long long)B + {}) / {batch_tile};",
                batch_tile - 1
            ),
            format!(
                "unsigned long long groups = (unsigned long long)processors * (unsigned long long)resident / {blocks};"
            ),
            "if (groups == 0) {".to_string(),
            "return CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;".to_string(),
            "}".to_string(),
            "if (groups > tiles) {".to_string(),
            "groups = tiles;".to_string(),
            "}".to_string(),
        ]);
        let workspaces = workspaces(kernel, &self.manifest.workspaces);
        for workspace in &workspaces {
            lines.extend(self.epochs(workspace));
        }
        lines.push(self.arguments(kernel));
        lines.push(format!(
            "result = cuLaunchCooperativeKernel(kernel, (unsigned)({blocks} * groups), 1, 1, {block}, 1, 1, {shared}, stream, arguments);"
        ));
        lines.extend(
            workspaces
                .iter()
                .map(|w| format!("memory->{0}.epochs += {0}_epochs;", w.name)),
        );
        lines.push("return result;".to_string());
        lines
    }

    /// Epochs that the launch will use on a workspace; where they would wrap, it starts afresh.
    fn epochs(&self, workspace: &Workspace) -> Vec<String> {
        let Workspace { name, exchanges, .. } = workspace;
        let mut lines = vec![
            format!(
                "const unsigned long long {name}_epochs = (unsigned long long)T * {exchanges} * ((tiles + groups - 1) / groups);"
            ),
            format!("if (memory->{name}.epochs + {name}_epochs > 0xffffffffULL) {{"),
            format!("result = cuMemsetD8Async(memory->{name}.words, 0, memory->{name}.bytes, stream);"),
        ];
        lines.extend(leave_on_failure());
        lines.extend([
            format!("memory->{name}.epochs = 0;"),
            "}".to_string(),
            format!("unsigned {name}_epoch = (unsigned)memory->{name}.epochs;"),
        ]);
        lines
    }

    fn arguments(&self, kernel: &KernelLaunch) -> String {
        let workspace = |n: &usize| &self.manifest.workspaces[*n].name;
        let one = |argument: &Argument| match argument {
            Argument::Buffer { buffer, .. } => format!("&memory->{}", self.manifest.buffer(*buffer).pointer),
            Argument::Frames => "&T".to_string(),
            Argument::Batch => "&B".to_string(),
            Argument::Workspace(n) => format!("&memory->{}.words", workspace(n)),
            Argument::Epoch(n) => format!("&{}_epoch", workspace(n)),
        };
        let list: Vec<String> = kernel.arguments.iter().map(one).collect();
        format!("void *arguments[] = {{{}}};", list.join(", "))
    }

    /// Calls of launch functions, one after another.
    fn calls(&self, launches: &[KernelLaunch], extents: &str) -> Vec<String> {
        let cell = self.cell;
        let call = |k: &KernelLaunch| {
            let name = &k.kernel;
            let mut lines = vec![format!(
                "result = {cell}_launch_{name}(kernels->{name}, memory, {extents}, stream);"
            )];
            lines.extend(leave_on_failure());
            lines
        };
        launches.iter().flat_map(call).collect()
    }

    fn defaults(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for buffer in &self.manifest.buffers {
            if let Role::Initial(Initial::Fill(value)) = buffer.role {
                lines.push(format!("result = {};", self.fill(buffer, value)));
                lines.extend(leave_on_failure());
            }
        }
        lines.extend(self.calls(&self.manifest.initial, "1, B"));
        lines
    }

    /// Sets every element of a buffer.
    fn fill(&self, buffer: &BufferEntry, value: f64) -> String {
        let (bits, pattern) = pattern(buffer.elem, value);
        let bytes = format!("{}_bytes_{}((size_t)B)", self.cell, buffer.pointer);
        format!(
            "cuMemsetD{bits}Async(memory->{}, {pattern:#x}, {bytes} / {}, stream)",
            buffer.pointer,
            bits / 8
        )
    }

    fn run(&self) -> Vec<String> {
        let mut lines = self.calls(&self.manifest.launches, "T, B");
        for copy in &self.manifest.finals {
            lines.extend(self.final_copy(copy));
        }
        for short in &self.manifest.short {
            let frames = short.frames;
            lines.push(format!("if (T < {frames}) {{"));
            lines.extend(self.copy(
                short.target,
                "0",
                short.initial,
                "(size_t)T",
                &format!("(size_t)({frames} - T)"),
            ));
            lines.push("}".to_string());
        }
        lines
    }

    /// Frames `T-k..T` of `window ++ source`.
    fn final_copy(&self, copy: &FinalCopy) -> Vec<String> {
        let Scope::Window(k) = self.manifest.buffer(copy.target).scope else {
            return Vec::new();
        };
        let mut lines = vec![format!("if (T < {k}) {{")];
        lines.extend(self.copy(
            copy.target,
            "0",
            copy.initial,
            "(size_t)T",
            &format!("(size_t)({k} - T)"),
        ));
        lines.extend(self.copy(
            copy.target,
            &format!("(size_t)({k} - T)"),
            copy.source,
            "0",
            "(size_t)T",
        ));
        lines.push("} else {".to_string());
        lines.extend(self.copy(
            copy.target,
            "0",
            copy.source,
            &format!("(size_t)(T - {k})"),
            &k.to_string(),
        ));
        lines.push("}".to_string());
        lines
    }

    /// Copies frames between buffers of one shape.
    fn copy(&self, target: BufferId, to: &str, source: BufferId, from: &str, frames: &str) -> Vec<String> {
        let (target, source) = (self.manifest.buffer(target), self.manifest.buffer(source));
        let bytes = target.shape.iter().product::<usize>() * target.elem.bytes();
        let at = |buffer: &BufferEntry, frame: &str| match frame {
            "0" => format!("memory->{}", buffer.pointer),
            _ => format!("memory->{} + {frame} * B * {bytes}", buffer.pointer),
        };
        let mut lines = vec![format!(
            "result = cuMemcpyDtoDAsync({}, {}, {frames} * (size_t)B * {bytes}, stream);",
            at(target, to),
            at(source, from)
        )];
        lines.extend(leave_on_failure());
        lines
    }
}

/// The statements of a function, which says so where it has no use for a parameter.
fn using(parameters: &str, body: &[String]) -> Vec<String> {
    let code = body.join("\n");
    let used: BTreeSet<&str> = words(&code).collect();
    let unused = parameters.split(' ').filter(|p| !used.contains(p));
    unused
        .map(|p| format!("(void){p};"))
        .chain(body.iter().cloned())
        .collect()
}

fn leave_on_failure() -> [String; 3] {
    ["if (result != CUDA_SUCCESS) {", "return result;", "}"].map(String::from)
}

/// The workspaces of a launch.
fn workspaces<'a>(kernel: &KernelLaunch, all: &'a [Workspace]) -> Vec<&'a Workspace> {
    let used = kernel.arguments.iter().filter_map(|a| match a {
        Argument::Epoch(n) => Some(&all[*n]),
        _ => None,
    });
    used.collect()
}

fn what(buffer: &BufferEntry) -> &'static str {
    match buffer.role {
        Role::Input => "input",
        Role::Param => "parameter",
        Role::Initial(_) => "initial window of",
        Role::Output => "output",
        Role::Final => "final window of",
        Role::Prologue => "of parameters alone:",
        Role::Temp => "between kernels:",
    }
}

/// The width of an element in bits, and the value's bits.
fn pattern(elem: Elem, value: f64) -> (usize, u32) {
    match elem {
        Elem::F32 => (32, (value as f32).to_bits()),
        Elem::I32 => (32, value as i32 as u32),
        Elem::F16 => (16, half::f16::from_f64(value).to_bits().into()),
        Elem::Bf16 => (16, half::bf16::from_f64(value).to_bits().into()),
    }
}
