//! Grows random cells that are well typed by construction.
//!
//! A seed comes in, a cell goes out: one to five equations, states or not, of up to three axes, each an expression out of
//! the tables of `forms`. Recurrences do not amplify, so that a plan in f32 can be held to the reference.

use super::cell::{Cell, Equation, Expr, INPUTS, STATICS, TOKEN, Ty, shape};
use super::forms::{self, Form};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeMap;

/// The cell of a seed; larger seeds give no larger cells.
pub fn grow(seed: u64) -> Cell {
    let mut grower = Grower {
        rng: ChaCha8Rng::seed_from_u64(seed),
        params: BTreeMap::new(),
        readable: Vec::new(),
        earlier: Vec::new(),
        is_still: false,
    };
    grower.declare_inputs();
    let plan = grower.plan();
    let mut equations: Vec<Equation> = plan.into_iter().flat_map(|planned| grower.equations(planned)).collect();
    let outputs = grower.outputs(&equations);
    grower.shuffle(&mut equations);
    Cell {
        seed,
        equations,
        outputs,
        params: grower.params,
    }
}

/// Types of equations. Common ones stand twice.
const TYPES: [&[&str]; 14] = [
    &["H"],
    &["H"],
    &["K"],
    &["O"],
    &[],
    &["H", "K"],
    &["H", "K"],
    &["K", "H"],
    &["2*H"],
    &["3*K"],
    &["K", "2"],
    &["H", "H"],
    &["H", "K", "I"],
    &["I", "O", "H"],
];

/// Equations that are to be.
struct Planned {
    names: Vec<String>,
    ty: Ty,
    role: Role,
}

#[derive(Clone, Copy, PartialEq)]
enum Role {
    /// Has a `state` line; is read with a delay, by itself at least.
    State,
    /// As `State`, over (max, +) or the like: before the first frame it is minus infinity.
    Peak,
    /// Two states that turn into each other.
    Turn,
    /// An equation.
    Value,
    /// The same in every frame.
    Still,
    /// Names of the parts of one value.
    Parts,
}

/// A name that expressions may read.
#[derive(Clone)]
struct Name {
    name: String,
    ty: Ty,
    frame: bool,
    /// Whether an earlier value may be minus infinity.
    is_peak: bool,
}

struct Grower {
    rng: ChaCha8Rng,
    params: BTreeMap<String, Ty>,
    /// What may be read without delay.
    readable: Vec<Name>,
    /// What may be read with one.
    earlier: Vec<Name>,
    /// Whether nothing that differs between frames may be read.
    is_still: bool,
}

fn ty(axes: &[&str]) -> Ty {
    axes.iter().map(|a| (*a).to_owned()).collect()
}

impl Grower {
    fn chance(&mut self, p: f64) -> bool {
        self.rng.random_bool(p)
    }

    fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.rng.random_range(0..from.len())].clone()
    }

    fn shuffle<T>(&mut self, list: &mut [T]) {
        for i in (1..list.len()).rev() {
            list.swap(i, self.rng.random_range(0..=i));
        }
    }

    fn declare_inputs(&mut self) {
        let name = |(name, axes): &(&str, &[&str]), frame| Name {
            name: (*name).to_owned(),
            ty: ty(axes),
            frame,
            is_peak: false,
        };
        self.earlier.extend(INPUTS.iter().map(|i| name(i, true)));
        self.readable.extend(INPUTS.iter().map(|i| name(i, true)));
        self.readable.extend(STATICS.iter().map(|i| name(i, false)));
    }

    /// The equations to be; what they define may from now on be read with a delay.
    fn plan(&mut self) -> Vec<Planned> {
        let count = self.rng.random_range(1..=5);
        let plan: Vec<Planned> = (0..count).map(|i| self.planned(i)).collect();
        for planned in plan.iter().filter(|p| p.role != Role::Still) {
            let names = planned.names.iter().map(|name| Name {
                name: name.clone(),
                ty: planned.ty.clone(),
                frame: true,
                is_peak: planned.role == Role::Peak,
            });
            self.earlier.extend(names);
        }
        plan
    }

    fn planned(&mut self, i: usize) -> Planned {
        let ty = ty(self.pick(&TYPES));
        let (names, ty, role) = match self.rng.random_range(0..16) {
            0..7 => (vec![format!("h{i}")], ty, Role::State),
            7 => (vec![format!("m{i}")], ty, Role::Peak),
            8 => (vec![format!("r{i}"), format!("s{i}")], ty, Role::Turn),
            9 => (vec![format!("c{i}")], ty, Role::Still),
            10..12 => {
                let parts = self.rng.random_range(2..=4);
                let names = ["i", "f", "o", "q"][..parts]
                    .iter()
                    .map(|n| format!("{n}{i}"))
                    .collect();
                let axis = self.pick(&["H", "H", "K", "I"]);
                (names, self::ty(&[axis]), Role::Parts)
            }
            _ => (vec![format!("e{i}")], ty, Role::Value),
        };
        Planned { names, ty, role }
    }

    /// Some of the names, the last always, and an input now and then.
    fn outputs(&mut self, equations: &[Equation]) -> Vec<String> {
        let names: Vec<String> = equations.iter().flat_map(|e| e.names.clone()).collect();
        let last = names.last().cloned().unwrap_or_default();
        let mut outputs: Vec<String> = names.into_iter().filter(|n| *n != last && self.chance(0.4)).collect();
        outputs.push(last);
        if self.chance(0.1) {
            let input = self.pick(&["x", "g", "w", "sc", "sh"]);
            outputs.push(input.to_owned());
        }
        outputs
    }

    fn equations(&mut self, planned: Planned) -> Vec<Equation> {
        let Planned { names, ty, role } = planned;
        let depth = self.rng.random_range(1..=4);
        self.is_still = role == Role::Still;
        let values = match role {
            Role::Turn => self.turn(&names, &ty, depth),
            Role::Parts => {
                let whole = vec![format!("{}*{}", names.len(), ty[0])];
                vec![self.held(&whole, depth)]
            }
            Role::State | Role::Peak => vec![self.update(&names[0], &ty, depth, role)],
            Role::Value | Role::Still => vec![self.held(&ty, depth)],
        };
        let values: Vec<Expr> = values.into_iter().map(|v| self.moving(v)).collect();
        self.is_still = false;
        self.readable.extend(names.iter().map(|name| Name {
            name: name.clone(),
            ty: ty.clone(),
            frame: role != Role::Still,
            is_peak: false,
        }));
        let count = if role == Role::Parts { names.len() } else { 1 };
        let groups = names.chunks(count).map(<[String]>::to_vec);
        let mut equation = |(names, value)| Equation {
            names,
            ty: ty.clone(),
            value,
            state: self.initial(&ty, role),
        };
        groups.zip(values).map(&mut equation).collect()
    }

    /// The value, differing from frame to frame unless it is to be still: only such may be read with a delay.
    fn moving(&mut self, value: Expr) -> Expr {
        if value.frame || self.is_still {
            return value;
        }
        let ty = value.ty.clone();
        let input = self.exact(&ty);
        Expr::new(&ty, "($1 + 0.1 * $2)", vec![value, input])
    }

    /// An expression that stays within bounds where it may feed back.
    fn held(&mut self, ty: &Ty, depth: u32) -> Expr {
        let value = self.expr(ty, depth);
        if self.chance(0.4) {
            Expr::new(ty, "tanh($1)", vec![value])
        } else if value.to_string().contains("[t-") {
            Expr::new(ty, "clamp($1, -2, 2)", vec![value])
        } else {
            value
        }
    }

    /// What a state becomes.
    fn update(&mut self, name: &str, ty: &Ty, depth: u32, role: Role) -> Expr {
        let more = match ty.len() {
            1 if !ty[0].contains('*') => forms::VECTOR_UPDATES,
            2 if ty[0] != ty[1] => forms::MATRIX_UPDATES,
            _ => &[],
        };
        let form = match role {
            Role::Peak => self.pick(&PEAKS),
            _ if !more.is_empty() && self.chance(0.5) => self.pick(more),
            _ => self.pick(forms::UPDATES),
        };
        self.fill(form, ty, depth, &[name])
    }

    /// The values of two states that turn into each other.
    fn turn(&mut self, names: &[String], ty: &Ty, depth: u32) -> Vec<Expr> {
        let (first, second) = self.pick(forms::TURNS);
        let old: Vec<Expr> = names
            .iter()
            .map(|n| Expr::leaf(ty, &format!("{n}[t-1]"), true))
            .collect();
        let with = |grower: &mut Grower, (text, spec): Form| {
            let more = spec.split_whitespace().map(|s| grower.operand(s, ty, depth, &[]));
            Expr::new(ty, text, old.iter().cloned().chain(more.collect::<Vec<_>>()).collect())
        };
        vec![with(self, first), with(self, second)]
    }

    fn initial(&mut self, ty: &Ty, role: Role) -> Option<Expr> {
        let zero = Expr::leaf(ty, "0", false);
        match role {
            Role::Peak => Some(Expr::leaf(ty, "-inf", false)),
            Role::State | Role::Turn => Some(match self.rng.random_range(0..6) {
                0 => Expr::leaf(ty, &full("0.5", ty), false),
                1 => self.param(ty),
                2 => {
                    let lasting = self.readable.iter().filter(|n| n.ty == *ty && !n.frame).cloned();
                    let lasting: Vec<Name> = lasting.collect();
                    let picked = (!lasting.is_empty()).then(|| self.pick(&lasting));
                    picked.map_or(zero, |name| Expr::leaf(ty, &name.name, false))
                }
                3 => {
                    let param = self.param(ty);
                    Expr::new(ty, "tanh(2 * $1)", vec![param])
                }
                _ => zero,
            }),
            _ => None,
        }
    }

    /// An earlier value.
    fn delayed(&mut self, name: &Name) -> Expr {
        let delay = if self.chance(0.6) {
            1
        } else {
            self.rng.random_range(1..=4)
        };
        let read = Expr::leaf(&name.ty, &format!("{}[t-{delay}]", name.name), true);
        if name.is_peak {
            Expr::new(&name.ty, "max($1, -2)", vec![read])
        } else {
            read
        }
    }

    /// A parameter of this type: one that there is, or a new one.
    fn param(&mut self, ty: &[String]) -> Expr {
        let same = self.params.iter().filter(|(_, t)| *t == ty).map(|(n, _)| n.clone());
        let same: Vec<String> = same.collect();
        if !same.is_empty() && self.chance(0.3) {
            return Expr::leaf(ty, &self.pick(&same), false);
        }
        let name = format!("p{}", self.params.len());
        self.params.insert(name.clone(), ty.to_vec());
        Expr::leaf(ty, &name, false)
    }

    /// A value that f32 holds exactly, of this type or a scalar that stands for it.
    fn exact(&mut self, ty: &Ty) -> Expr {
        let inputs: &[(&str, &[&str])] = if self.is_still { &STATICS } else { &INPUTS };
        let found = inputs.iter().find(|(_, axes)| self::ty(axes) == *ty);
        match found {
            Some((name, _)) if self.chance(0.8) => Expr::leaf(ty, name, !self.is_still),
            _ => {
                let scalar = if self.is_still { "sc" } else { "g" };
                Expr::leaf(ty, &full(scalar, ty), !self.is_still)
            }
        }
    }

    fn leaf(&mut self, ty: &Ty) -> Expr {
        let is_still = self.is_still;
        let readable = |n: &&Name| n.ty == *ty && !(n.frame && is_still);
        let now: Vec<Name> = self.readable.iter().filter(readable).cloned().collect();
        let earlier: Vec<Name> = self.earlier.iter().filter(readable).cloned().collect();
        match self.rng.random_range(0..10) {
            0..4 if !now.is_empty() => {
                let found = self.pick(&now);
                Expr::leaf(ty, &found.name, found.frame)
            }
            4..7 if !earlier.is_empty() => {
                let found = self.pick(&earlier);
                let is_input = INPUTS.iter().any(|(name, _)| *name == found.name);
                if is_input && self.chance(0.15) {
                    let ahead = self.rng.random_range(1..=2);
                    return Expr::leaf(ty, &format!("{}[t+{ahead}]", found.name), true);
                }
                self.delayed(&found)
            }
            7 if ty.is_empty() => Expr::leaf(ty, &format!("{:.2}", self.rng.random_range(0.1..1.5)), false),
            8 if !ty.is_empty() => {
                let scalar = self.leaf(&Ty::new());
                Expr::new(ty, &full("$1", ty), vec![scalar])
            }
            _ => self.param(ty),
        }
    }

    /// Any expression of this type.
    fn expr(&mut self, ty: &Ty, depth: u32) -> Expr {
        if depth == 0 || self.chance(0.1) {
            return self.leaf(ty);
        }
        let own = match ty.as_slice() {
            [] => forms::SCALAR,
            [a] if a.contains('*') => forms::MULTIPLE,
            [_] => forms::VECTOR,
            [a, b] if a == b => forms::SQUARE,
            [_, _] => forms::MATRIX,
            _ => forms::CUBE,
        };
        let table = if self.chance(0.45) { forms::ANY } else { own };
        let form = self.pick(table);
        // Twice a number might be the number of another axis.
        let has_numbers = ty.iter().any(|a| a.parse::<u32>().is_ok());
        if self.is_still && form.1.contains(TOKEN) || has_numbers && form.0.contains("2*") {
            return self.leaf(ty);
        }
        self.fill(form, ty, depth - 1, &[])
    }

    /// The form with operands. `old` names the state that it may read.
    fn fill(&mut self, (text, spec): Form, ty: &Ty, depth: u32, old: &[&str]) -> Expr {
        let axes = self.axes(ty);
        let spec = in_axes(spec, ty, &axes);
        let args = spec.split_whitespace().filter(|s| *s != TOKEN);
        let args: Vec<Expr> = args.map(|s| self.operand(s, ty, depth, old)).collect();
        let mut expr = Expr::new(ty, &in_axes(text, ty, &axes), args);
        if spec.contains(TOKEN) {
            expr.frame = true;
            expr.form = expr.form.replace(TOKEN, &self.token());
        }
        expr
    }

    /// The index of this frame, an earlier one, or one to come.
    fn token(&mut self) -> String {
        match self.rng.random_range(0..8) {
            0 => format!("{TOKEN}[t-{}]", self.rng.random_range(1..=3)),
            1 => format!("{TOKEN}[t+1]"),
            _ => TOKEN.to_owned(),
        }
    }

    fn operand(&mut self, spec: &str, ty: &Ty, depth: u32, old: &[&str]) -> Expr {
        match spec {
            "=" => self.expr(ty, depth),
            "p=" => self.param(ty),
            "held" => self.held(ty, depth),
            "exact" => self.exact(ty),
            "old" => {
                let name = Name {
                    name: old[0].to_owned(),
                    ty: ty.clone(),
                    frame: true,
                    is_peak: false,
                };
                self.delayed(&name)
            }
            _ => match spec.strip_prefix('p') {
                Some(spec) => self.param(&listed(spec)),
                None => self.expr(&listed(spec), depth),
            },
        }
    }

    /// What A, B, C and D stand for: the axes of the type, then other dimensions; a multiple's axis without its factor.
    fn axes(&mut self, ty: &[String]) -> Vec<String> {
        let mut axes: Vec<String> = ty.iter().map(|a| factor(a).1.to_owned()).collect();
        if axes.len() == 2 && axes[0] == axes[1] {
            axes.pop();
        }
        let is_square = axes.len() < ty.len();
        let mut others = ["H", "K", "I", "O"].map(str::to_owned);
        self.shuffle(&mut others);
        let unused: Vec<String> = others.into_iter().filter(|a| !axes.contains(a)).collect();
        if axes.is_empty() || is_square {
            axes.resize(2, unused[0].clone());
        }
        axes.extend(unused);
        axes
    }
}

/// What a (max, +) or (logaddexp, +) state becomes.
const PEAKS: [Form; 3] = [
    ("max($1 + 0.1 * tanh($2), $3)", "old held held"),
    ("(logaddexp($1 - 0.5, $2) - 0.1)", "old held"),
    ("max($1, $2)", "old held"),
];

/// A scalar as a value of this type.
fn full(scalar: &str, ty: &[String]) -> String {
    if ty.is_empty() {
        scalar.to_owned()
    } else {
        format!("expand({scalar}, {})", shape(ty))
    }
}

/// The text with axes in place of the letters A to D, and factors in place of N and M, where they stand alone.
fn in_axes(text: &str, ty: &[String], axes: &[String]) -> String {
    let n = ty.first().map_or(1, |a| factor(a).0);
    let rest = if n > 2 { format!("{}*A", n - 1) } else { "A".to_owned() };
    let text = text.replace("M*A", &rest).replace('N', &n.to_string());
    let axis = |c: char| "ABCD".find(c).and_then(|letter| axes.get(letter).cloned());
    text.chars().map(|c| axis(c).unwrap_or_else(|| c.to_string())).collect()
}

/// `3*H` as 3 and `H`.
fn factor(axis: &str) -> (usize, &str) {
    let parts = axis.split_once('*');
    parts.map_or((1, axis), |(n, axis)| (n.parse().unwrap(), axis))
}

/// `[A,B]` as a type.
fn listed(spec: &str) -> Ty {
    let inner = spec.trim_matches(['[', ']']);
    inner.split(',').filter(|a| !a.is_empty()).map(str::to_owned).collect()
}
