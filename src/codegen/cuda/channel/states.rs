//! Carried states in registers: where they start, how they move on, where they end.

use super::space::Space;
use super::work::{Walk, Work};
use crate::codegen::cuda::expr::{Expr, Prec, Type};
use crate::codegen::cuda::names::{Names, identifier};
use crate::codegen::cuda::place::{Place, window_frames};
use rnnc_runtime::plan::{BufferId, Carried, Channel, Index, Plan, Step, Store, StoreFrame};
use std::collections::BTreeSet;

/// The variables of all states.
pub struct States {
    states: Vec<State>,
}

struct State {
    /// The variable of each delay, from 1 on.
    variables: Vec<String>,
    /// Elements a lane, if the state is an array.
    array: Option<usize>,
    initial: BufferId,
    index: Index,
    value: rnnc_runtime::plan::Reg,
}

impl States {
    /// Names the variables: `h_prev`, or `h_prev1`, `h_prev2` of a longer window.
    pub fn new(channel: &Channel, names: &mut Names) -> States {
        let each = channel.lanes().each;
        let state = |c: &Carried| State {
            variables: (1..=c.window)
                .map(|d| {
                    let number = if c.window == 1 { String::new() } else { d.to_string() };
                    names.unique(&format!("{}_prev{number}", identifier(&c.name)))
                })
                .collect(),
            array: (each > 1 && channel.varies_within(&c.index)).then_some(each),
            initial: c.initial,
            index: c.index.clone(),
            value: c.value,
        };
        States {
            states: channel.carried.iter().map(state).collect(),
        }
    }

    /// The expression of a carried state.
    pub fn carried(&self, step: &Step) -> Option<Expr> {
        match step {
            Step::Carried { state, delay } => Some(Expr::float(self.states[*state].at(*delay))),
            _ => None,
        }
    }

    /// Loads the first window.
    pub fn first(&self, space: &Space, place: &Place) -> Vec<String> {
        let (mut plain, mut arrays, mut in_loop) = (Vec::new(), Vec::new(), Vec::new());
        for state in &self.states {
            let frames = window_frames(place.plan.buffer(state.initial));
            for delay in 1..=state.variables.len() {
                let frame = frames - delay as i64;
                let value = place.element(state.initial, Some(window_copy(frame)), &state.index);
                match state.array {
                    None => plain.push(format!("float {} = {};", state.at(delay), value.text)),
                    Some(each) => {
                        arrays.push(format!("float {}[{each}];", state.variables[delay - 1]));
                        in_loop.push(format!("{} = {};", state.at(delay), value.text));
                    }
                }
            }
        }
        with_loop(plain, arrays, in_loop, space)
    }

    /// Moves every window on by a frame.
    pub fn advance(&self, work: &Work) -> Vec<String> {
        let (mut plain, mut in_loop) = (Vec::new(), Vec::new());
        for state in &self.states {
            let lines = if state.array.is_some() {
                &mut in_loop
            } else {
                &mut plain
            };
            for delay in (2..=state.variables.len()).rev() {
                lines.push(format!("{} = {};", state.at(delay), state.at(delay - 1)));
            }
            let value = work.statements.get(state.value).as_float();
            lines.push(format!("{} = {};", state.at(1), value.text));
        }
        with_loop(plain, Vec::new(), in_loop, work.space)
    }

    /// The stores whose frames are just what the registers hold after the last frame, also in a run shorter than they.
    pub fn stores_at_end(&self, channel: &Channel, plan: &Plan) -> BTreeSet<usize> {
        let all = channel.body.stores.iter().enumerate();
        all.filter(|(_, store)| self.held(store, plan).is_some())
            .map(|(i, _)| i)
            .collect()
    }

    fn held(&self, store: &Store, plan: &Plan) -> Option<&State> {
        let frames = window_frames(plan.buffer(store.buffer)) as usize;
        let same = |s: &&State| s.value == store.value && s.index == store.index && s.variables.len() >= frames;
        self.states
            .iter()
            .find(same)
            .filter(|_| store.frame == StoreFrame::Final)
    }

    /// Stores the final windows that the registers hold.
    pub fn last(&self, channel: &Channel, space: &Space, place: &Place, which: &BTreeSet<usize>) -> Vec<String> {
        let (mut plain, mut in_loop) = (Vec::new(), Vec::new());
        for store in which.iter().map(|i| &channel.body.stores[*i]) {
            let Some(state) = self.held(store, place.plan) else {
                continue;
            };
            let lines = if state.array.is_some() {
                &mut in_loop
            } else {
                &mut plain
            };
            let frames = window_frames(place.plan.buffer(store.buffer));
            let inner = channel.varies_within(&store.index);
            for frame in 0..frames {
                let target = place.element(store.buffer, Some(window_copy(frame)), &store.index);
                let statement = format!("{} = {};", target.text, state.at((frames - frame) as usize));
                match space.store_condition(store, inner) {
                    None => lines.push(statement),
                    Some(condition) => {
                        lines.extend([format!("if ({}) {{", condition.text), statement, "}".to_string()]);
                    }
                }
            }
        }
        with_loop(plain, Vec::new(), in_loop, space)
    }
}

impl State {
    fn at(&self, delay: usize) -> String {
        let element = if self.array.is_some() { "[round]" } else { "" };
        format!("{}{element}", self.variables[delay - 1])
    }
}

/// Frame `frame` of a window, of this sequence.
fn window_copy(frame: i64) -> Expr {
    match frame {
        0 => Expr::int("seq"),
        1 => Expr::new("seq + B", Prec::Sum, Type::Int),
        n => Expr::new(format!("seq + {n}LL * B"), Prec::Sum, Type::Int),
    }
}

fn with_loop(plain: Vec<String>, arrays: Vec<String>, in_loop: Vec<String>, space: &Space) -> Vec<String> {
    let mut lines = plain;
    lines.extend(arrays);
    if !in_loop.is_empty() {
        lines.extend(space.inner_loop(Walk::Unrolled, in_loop));
    }
    lines
}
