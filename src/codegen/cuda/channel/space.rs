//! The iteration space of a channel kernel in C: which variables there are and how a lane comes to its elements.

use super::work::Walk;
use crate::codegen::cuda::expr::{Expr, Prec, Type};
use crate::codegen::cuda::index::{Variable, both};
use crate::codegen::cuda::kernel::{coordinates, letter, needed, variables};
use crate::codegen::cuda::names::Names;
use rnnc_runtime::plan::{Channel, Lanes, Store};

/// The variables of a kernel.
pub struct Space {
    /// Channel axes, then inner axes.
    pub vars: Vec<Variable>,
    /// How inner elements lie on lanes.
    pub lanes: Lanes,
    /// Where a lane may have no element: the condition that it has. Its variables then stay within the axes.
    pub inside: Option<Expr>,
    /// Counts inner elements where there are several inner axes.
    flat: Option<String>,
    /// How many variables are channel axes.
    channels: usize,
}

impl Space {
    /// Names the variables; `users` are names that they leave to the body.
    pub fn new(channel: &Channel, walk: Walk, users: &[&str], names: &mut Names) -> Space {
        let lanes = channel.lanes();
        let mut vars = variables(&channel.channels, "u v w i j", users, names);
        let lane_is_element = lanes.each == 1 && !lanes.is_ragged() && channel.inner.len() == 1;
        if lane_is_element {
            vars.push(Variable::new("lane", lanes.elements));
        } else {
            vars.extend(variables(&channel.inner, "n m k e", users, names));
        }
        let several = channel.inner.len() > 1 && lanes.elements > 1;
        Space {
            vars,
            lanes,
            inside: inside(lanes, walk),
            flat: several.then(|| letter("e element", users, names)),
            channels: channel.channels.len(),
        }
    }

    /// Threads for each copy.
    pub fn threads_each(&self) -> u64 {
        let channels: u64 = self.channel_vars().iter().map(|v| v.extent as u64).product();
        channels * self.lanes.lanes as u64
    }

    /// The variables of channel axes.
    pub fn channel_vars(&self) -> &[Variable] {
        &self.vars[..self.channels]
    }

    fn inner_vars(&self) -> &[Variable] {
        &self.vars[self.channels..]
    }

    /// The channel's variables from `item`, which counts threads: copies, channels, lanes, the last fastest.
    pub fn channel_lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let lanes = self.lanes.lanes;
        if lanes > 1 {
            lines.push(format!("const int lane = threadIdx.x % {lanes};"));
        }
        let vars = self.channel_vars();
        let channels: u64 = vars.iter().map(|v| v.extent as u64).product();
        let one = |flat: &str| match lanes {
            1 => format!("(int)({flat} % {channels})"),
            _ => format!("(int)({flat} / {lanes} % {channels})"),
        };
        match vars {
            [] => {}
            [var] => lines.push(format!("const int {} = {};", var.name, one("item"))),
            several => {
                lines.push(format!("const int channel = {};", one("item")));
                lines.extend(coordinates(&Expr::int("channel"), several));
            }
        }
        lines
    }

    /// The inner variables where a lane has one element.
    pub fn inner_lines(&self) -> Vec<String> {
        if self.lanes.each > 1 || self.lanes.lanes == 1 {
            return Vec::new();
        }
        let last = self.lanes.elements - 1;
        let element = match self.inside {
            Some(_) => format!("min(lane, {last})"),
            None => "lane".to_string(),
        };
        match (&self.flat, self.inner_vars()) {
            (None, [var]) if var.name == "lane" => Vec::new(),
            _ => self.element_lines(&element),
        }
    }

    fn element_lines(&self, element: &str) -> Vec<String> {
        match &self.flat {
            None => self
                .inner_vars()
                .iter()
                .map(|v| format!("const int {} = {element};", v.name))
                .collect(),
            Some(flat) => {
                let mut lines = vec![format!("const int {flat} = {element};")];
                lines.extend(coordinates(&Expr::int(flat), self.inner_vars()));
                lines
            }
        }
    }

    /// A loop over the lane's elements.
    pub fn inner_loop(&self, walk: Walk, body: Vec<String>) -> Vec<String> {
        let Lanes { lanes, each, elements } = self.lanes;
        let mut lines = Vec::new();
        let code = body.join("\n");
        match walk {
            Walk::Unrolled => {
                lines.push("#pragma unroll".to_string());
                lines.push(format!("for (int round = 0; round < {each}; ++round) {{"));
                let element = match self.inside {
                    Some(_) => format!("min(lane + round * {lanes}, {})", elements - 1),
                    None => format!("lane + round * {lanes}"),
                };
                lines.extend(needed(self.element_lines(&element), &code));
            }
            Walk::Strided => {
                let head = |name: &str| format!("for (int {name} = lane; {name} < {elements}; {name} += {lanes}) {{");
                match (&self.flat, self.inner_vars()) {
                    (None, [var]) => lines.push(head(&var.name)),
                    (flat, vars) => {
                        let flat = flat.as_deref().unwrap_or("element");
                        lines.push(head(flat));
                        lines.extend(needed(coordinates(&Expr::int(flat), vars), &code));
                    }
                }
            }
        }
        lines.extend(body);
        lines.push("}".to_string());
        lines
    }

    /// Which lanes and channels do a store: where its index lacks a variable, those where that variable is 0.
    pub fn store_condition(&self, store: &Store, inner: bool) -> Option<Expr> {
        let test = |text: String| Some(Expr::new(text, Prec::Equality, Type::Bool));
        let mut condition = None;
        for (v, var) in self.vars.iter().enumerate() {
            let counts = v < self.channels || inner;
            if counts && var.extent > 1 && !store.index.uses(v as u8) {
                condition = both(condition, test(format!("{} == 0", var.name)));
            }
        }
        if inner {
            return both(condition, self.inside.clone());
        }
        let one_lane = (self.lanes.lanes > 1).then(|| test("lane == 0".to_string())).flatten();
        both(condition, one_lane)
    }
}

fn inside(lanes: Lanes, walk: Walk) -> Option<Expr> {
    let test = |text: String| Expr::new(text, Prec::Relational, Type::Bool);
    match (walk, lanes.each) {
        _ if !lanes.is_ragged() => None,
        (Walk::Strided, 2..) => None,
        (_, 1) => Some(test(format!("lane < {}", lanes.elements))),
        _ => Some(test(format!("lane + round * {} < {}", lanes.lanes, lanes.elements))),
    }
}
