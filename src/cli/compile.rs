//! `rnnc compile`.

use super::{CellArgs, Dtype, Failure, Outcome, input, source};
use clap::ValueEnum;
use rnnc::codegen::{self, Emitted, Target};
use rnnc::driver::{self, Planned};
use rnnc::ir::{self, Name};
use rnnc_runtime::cache::Cache;
use rnnc_runtime::nvrtc::{self, Job};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The value of dimensions that are not given.
pub const DEFAULT_DIM: i64 = 256;

/// Arguments of `rnnc compile`.
#[derive(clap::Args)]
pub struct CompileArgs {
    #[command(flatten)]
    cell: CellArgs,
    /// The GPU architecture
    #[arg(long, default_value = "sm_80")]
    arch: String,
    /// How reals are stored; arithmetic is in f32
    #[arg(long, value_enum, default_value_t)]
    dtype: Dtype,
    /// What to write
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [Emit::Cu, Emit::Header, Emit::Manifest])]
    emit: Vec<Emit>,
    /// The folder to write to
    #[arg(short, long, value_name = "DIR", default_value = ".")]
    output: PathBuf,
    /// Use approximations of exp, tanh and their kin
    #[arg(long)]
    fast_math: bool,
    /// For training: write the cell with its tape, and NAME_backward, which computes the gradients
    #[arg(long)]
    grad: bool,
    /// Print the list of files as JSON
    #[arg(long)]
    json: bool,
}

/// What can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
enum Emit {
    /// The syntax tree, as text
    Ast,
    /// The graph after all transforms, as text
    Ir,
    /// The plan, as JSON
    Plan,
    /// CUDA text
    Cu,
    /// PTX (needs NVRTC)
    Ptx,
    /// A cubin (needs NVRTC)
    Cubin,
    /// A C header with a launcher
    Header,
    /// Everything needed to run the cubin, as JSON
    Manifest,
}

impl Emit {
    fn extension(self) -> &'static str {
        match self {
            Emit::Ast => "ast.txt",
            Emit::Ir => "ir.txt",
            Emit::Plan => "plan.json",
            Emit::Cu => "cu",
            Emit::Ptx => "ptx",
            Emit::Cubin => "cubin",
            Emit::Header => "h",
            Emit::Manifest => "json",
        }
    }
}

/// A written file.
#[derive(Serialize)]
struct Written {
    file: String,
    bytes: usize,
}

/// Compiles and writes.
pub fn run(args: &CompileArgs) -> Outcome {
    let file = source::read(&args.cell.file)?;
    let (plans, defaulted) = plans(&file, &args.cell, args.dtype, args.grad)?;
    plans.iter().for_each(|planned| file.report(&planned.analysed.warnings));
    if !defaulted.is_empty() && !args.json {
        eprintln!(
            "note: {} not given, taken as {DEFAULT_DIM} (set with --dims)",
            defaulted.join(", ")
        );
    }
    std::fs::create_dir_all(&args.output).map_err(input(args.output.display()))?;
    let mut written = Vec::new();
    for planned in &plans {
        write_plan(args, &file, planned, &mut written)?;
    }
    if args.json {
        return super::print_json(&written);
    }
    written
        .iter()
        .try_for_each(|w| super::print(&format!("{} ({} bytes)", w.file, w.bytes)))
}

/// Writes everything wanted of one plan.
fn write_plan(args: &CompileArgs, file: &source::Source, planned: &Planned, written: &mut Vec<Written>) -> Outcome {
    let target = Target {
        arch: args.arch.clone(),
        fast_math: args.fast_math,
        ..Target::default()
    };
    let emitted = codegen::cuda::emit(&planned.plan, &target);
    let mut emit = args.emit.clone();
    emit.sort_unstable();
    emit.dedup();
    let module = Module {
        emitted: &emitted,
        args,
        compiled: std::cell::OnceCell::new(),
    };
    for what in emit {
        let bytes = contents(what, file, planned, &module)?;
        written.push(write(&args.output, &planned.plan.cell, what, &bytes)?);
    }
    Ok(())
}

/// Plans a cell; dimensions that are not given have a default, and are listed.
pub fn plan(file: &source::Source, cell: &CellArgs, dtype: Dtype) -> Result<(Planned, Vec<String>), Failure> {
    let (dims, defaulted) = dims(file, cell)?;
    let planned = driver::plan(&file.bytes, &source::choice(cell), &dims, dtype.into()).map_err(|d| file.fail(&d))?;
    Ok((planned, defaulted))
}

/// As [`plan`]; with `grad` the cell with its tape, then its gradients.
pub fn plans(
    file: &source::Source,
    cell: &CellArgs,
    dtype: Dtype,
    grad: bool,
) -> Result<(Vec<Planned>, Vec<String>), Failure> {
    if !grad {
        return plan(file, cell, dtype).map(|(planned, defaulted)| (vec![planned], defaulted));
    }
    let (dims, defaulted) = dims(file, cell)?;
    let choice = source::choice(cell);
    let found = driver::gradient(&file.bytes, &choice, &dims, dtype.into()).map_err(|d| file.fail(&d))?;
    Ok((vec![found.forward, found.backward], defaulted))
}

/// Values of a cell's dimensions, and those among them that are the default.
fn dims(file: &source::Source, cell: &CellArgs) -> Result<(BTreeMap<Name, i64>, Vec<String>), Failure> {
    let choice = source::choice(cell);
    let checked = driver::check(&file.bytes, &choice).map_err(|d| file.fail(&d))?;
    let given = cell.given_dims();
    if let Some(name) = given
        .keys()
        .find(|name| !checked.graph.dims.iter().any(|d| d.as_ref() == name.as_str()))
    {
        let known = checked
            .graph
            .dims
            .iter()
            .map(AsRef::as_ref)
            .collect::<Vec<&str>>()
            .join(", ");
        return Err(Failure::Usage(format!(
            "--dims: the cell has no dimension {name}; its dimensions are {known}"
        )));
    }
    let mut dims: BTreeMap<Name, i64> = BTreeMap::new();
    let mut defaulted = Vec::new();
    for dim in &checked.graph.dims {
        let value = given.get(dim.as_ref()).copied();
        if value.is_none() {
            defaulted.push(dim.to_string());
        }
        dims.insert(dim.clone(), value.unwrap_or(DEFAULT_DIM));
    }
    Ok((dims, defaulted))
}

/// The compiled text, made when it is first needed.
struct Module<'a> {
    emitted: &'a Emitted,
    args: &'a CompileArgs,
    compiled: std::cell::OnceCell<nvrtc::Compiled>,
}

impl Module<'_> {
    fn compiled(&self) -> Result<&nvrtc::Compiled, Failure> {
        if let Some(compiled) = self.compiled.get() {
            return Ok(compiled);
        }
        let options: &[&str] = if self.args.fast_math { &["--use_fast_math"] } else { &[] };
        let name = format!("{}.cu", self.emitted.manifest.cell);
        let job = Job {
            text: &self.emitted.text,
            name: &name,
            arch: &self.args.arch,
            options,
            driver: None,
        };
        let built = nvrtc::build(&Cache::of_user(), &job).map_err(|e| Failure::Machine(e.to_string()))?;
        Ok(self.compiled.get_or_init(|| built.compiled))
    }
}

fn contents(what: Emit, file: &source::Source, planned: &Planned, module: &Module<'_>) -> Result<Vec<u8>, Failure> {
    let json = |value: serde_json::Result<String>| value.map(String::into_bytes).map_err(input("writing JSON"));
    Ok(match what {
        Emit::Ast => format!("{:#?}\n", rnnc::syntax::parse(&file.bytes).0).into_bytes(),
        Emit::Ir => ir::print::print(&planned.analysed.graph).into_bytes(),
        Emit::Plan => json(serde_json::to_string_pretty(&planned.plan))?,
        Emit::Cu => module.emitted.text.clone().into_bytes(),
        Emit::Header => module.emitted.header.clone().into_bytes(),
        Emit::Manifest => json(serde_json::to_string_pretty(&module.emitted.manifest))?,
        Emit::Ptx => module.compiled()?.ptx.clone().into_bytes(),
        Emit::Cubin => module.compiled()?.cubin.clone(),
    })
}

fn write(folder: &Path, cell: &str, what: Emit, bytes: &[u8]) -> Result<Written, Failure> {
    let path = folder.join(format!("{cell}.{}", what.extension()));
    std::fs::write(&path, bytes).map_err(input(path.display()))?;
    Ok(Written {
        file: path.display().to_string(),
        bytes: bytes.len(),
    })
}
