//! A random cell: typed expressions that print as the language, and the sizes that it is run with.

use crate::runs::Sizes;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Axes as they are written: `H`, `2*H`, `3`.
pub type Ty = Vec<String>;

/// The dimensions of every cell.
pub const DIMS: [&str; 5] = ["H", "I", "K", "O", "V"];

/// Their values, by seed: odd and unequal where they can be, one of them 1, some beyond the lanes of a vector.
const VALUES: [[i64; 5]; 5] = [
    [7, 3, 5, 1, 4],
    [2, 1, 3, 5, 3],
    [37, 3, 1, 2, 5],
    [5, 9, 17, 3, 2],
    [3, 2, 7, 33, 6],
];

/// T by seed: one frame, and fewer than a window has, are among them.
const FRAMES: [usize; 7] = [5, 1, 8, 3, 2, 19, 6];

/// B by seed.
const BATCH: [usize; 4] = [3, 1, 2, 5];

/// The inputs of every frame that cells may have, with their types.
pub const INPUTS: [(&str, &[&str]); 6] = [
    ("x", &["I"]),
    ("u", &["H"]),
    ("g", &[]),
    ("w", &["H", "K"]),
    ("v", &["K"]),
    ("z", &["H", "H"]),
];

/// The static inputs that cells may have.
pub const STATICS: [(&str, &[&str]); 3] = [("sc", &[]), ("sh", &["H"]), ("sk", &["K"])];

/// The input of indices, below V.
pub const TOKEN: &str = "token";

/// An expression: text with `$1` where the first operand stands, and so on.
#[derive(Clone, Debug)]
pub struct Expr {
    /// Its axes, in this order.
    pub ty: Ty,
    /// What is around the operands.
    pub form: String,
    /// The operands.
    pub args: Vec<Expr>,
    /// Whether it differs from frame to frame.
    pub frame: bool,
}

impl Expr {
    /// `form` around operands.
    pub fn new(ty: &[String], form: &str, args: Vec<Expr>) -> Expr {
        Expr {
            ty: ty.to_vec(),
            form: form.to_owned(),
            frame: args.iter().any(|a| a.frame),
            args,
        }
    }

    /// What reads no operand.
    pub fn leaf(ty: &[String], form: &str, frame: bool) -> Expr {
        Expr {
            frame,
            ..Expr::new(ty, form, Vec::new())
        }
    }
}

impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut pieces = self.form.split('$');
        f.write_str(pieces.next().unwrap_or_default())?;
        for piece in pieces {
            let (number, rest) = piece.split_at(1);
            let number: usize = number.parse().map_err(|_| fmt::Error)?;
            write!(f, "{}{rest}", self.args[number - 1])?;
        }
        Ok(())
    }
}

/// `name: [axes] = value`, or `a, b: [axes] = split(value, 2)`.
#[derive(Clone, Debug)]
pub struct Equation {
    /// One name, or several that get the parts of the value.
    pub names: Vec<String>,
    /// The type of each.
    pub ty: Ty,
    /// The right-hand side.
    pub value: Expr,
    /// A `state` line with this initial value (`0` is not written).
    pub state: Option<Expr>,
}

impl Equation {
    fn state_line(&self) -> Option<String> {
        let initial = self.state.as_ref()?.to_string();
        let line = format!("  state {}: {}", self.names[0], shape(&self.ty));
        Some(if initial == "0" {
            line
        } else {
            format!("{line} = {initial}")
        })
    }

    fn line(&self) -> String {
        match self.names.as_slice() {
            [name] if self.state.is_some() => format!("  {name} = {}", self.value),
            [name] => format!("  {name}: {} = {}", shape(&self.ty), self.value),
            names => {
                let (names, count, ty) = (names.join(", "), names.len(), shape(&self.ty));
                format!("  {names}: {ty} = split({}, {count})", self.value)
            }
        }
    }
}

/// A cell; `Display` prints the file.
#[derive(Clone, Debug)]
pub struct Cell {
    /// From which it was made.
    pub seed: u64,
    /// In any order.
    pub equations: Vec<Equation>,
    /// Names of equations.
    pub outputs: Vec<String>,
    /// Parameters by name.
    pub params: BTreeMap<String, Ty>,
}

/// `[H, 2*K]`.
pub fn shape(ty: &[String]) -> String {
    format!("[{}]", ty.join(", "))
}

impl Cell {
    /// What it is run with.
    pub fn sizes(&self) -> Sizes {
        let pick = |n: usize, stride: u64| (self.seed / stride % n as u64) as usize;
        let values = VALUES[pick(VALUES.len(), 1)];
        Sizes {
            dims: DIMS.iter().zip(values).map(|(d, n)| ((*d).into(), n)).collect(),
            frames: FRAMES[pick(FRAMES.len(), 1)],
            batch: BATCH[pick(BATCH.len(), 1)],
        }
    }

    /// Every word in equations and initial values: what of the declarations is needed.
    fn words(&self) -> BTreeSet<String> {
        let initial = |e: &Equation| e.state.as_ref().map(ToString::to_string).unwrap_or_default();
        let text: String = self
            .equations
            .iter()
            .map(|e| format!("{} {} ", e.value, initial(e)))
            .chain([self.outputs.join(" ")])
            .collect();
        let is_between = |c: char| !(c.is_ascii_alphanumeric() || c == '_');
        text.split(is_between).map(str::to_owned).collect()
    }

    /// Lines of declarations, only of what is used.
    fn declarations(&self) -> Vec<String> {
        let words = self.words();
        let typed = |(name, axes): &(&str, &[&str])| {
            let is_used = words.contains(*name);
            is_used.then(|| format!("{name}: [{}]", axes.join(", ")))
        };
        let mut inputs: Vec<String> = INPUTS.iter().filter_map(typed).collect();
        inputs.extend(words.contains(TOKEN).then(|| format!("{TOKEN}: index(V)")));
        let statics: Vec<String> = STATICS.iter().filter_map(typed).collect();
        let used = self.params.iter().filter(|(name, _)| words.contains(*name));
        let params: Vec<String> = used.map(|(name, ty)| format!("{name}: {}", shape(ty))).collect();
        let lists = [("input", inputs), ("static input", statics), ("param", params)];
        let lines = lists.iter().filter(|(_, list)| !list.is_empty());
        lines
            .map(|(what, list)| format!("  {what} {}", list.join(", ")))
            .collect()
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Sizes { dims, frames, batch } = self.sizes();
        let values: Vec<String> = dims.iter().map(|(d, n)| format!("{d}={n}")).collect();
        writeln!(
            f,
            "# seed {}; --dims {}; T = {frames}, B = {batch}",
            self.seed,
            values.join(",")
        )?;
        writeln!(f, "cell random({}) {{", DIMS.join(", "))?;
        let states = self.equations.iter().filter_map(Equation::state_line);
        let output = format!("  output {}\n", self.outputs.join(", "));
        let lines = self.declarations().into_iter().chain(states).chain([output]);
        for line in lines.chain(self.equations.iter().map(Equation::line)) {
            writeln!(f, "{line}")?;
        }
        writeln!(f, "}}")
    }
}
