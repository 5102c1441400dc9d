//! Builds every group's kernel and puts the plan together: order, dependences, windows, names.

use super::buffers::Buffers;
use super::fuse::{Form, Fusion, Group};
use super::memory::Memory;
use super::point::Evaluator;
use super::stage::Stage;
use super::store::Stores;
use super::{Options, Scheduled, channel, dense, describe, product, total};
use crate::analysis::Verdict;
use crate::ir::{NodeId, Op};
use rnnc_runtime::plan::{
    Channel, Family, FinalCopy, Index, Initial, Kernel, Launch, Plan, Role, Scope, Store, StoreFrame,
};
use std::collections::{BTreeMap, BTreeSet};

/// The plan of what was decided.
pub fn assemble(fusion: &Fusion<'_>, mut buffers: Buffers, options: &Options<'_>) -> Scheduled {
    let mut names = Names {
        cell: identifier(&fusion.graph.name),
        taken: BTreeSet::new(),
    };
    let mut lists: [Vec<Launch>; 3] = Default::default();
    let mut computed = BTreeMap::new();
    let mut order: Vec<usize> = (0..fusion.groups.len()).collect();
    order.sort_by_key(|g| (fusion.groups[*g].stage, fusion.groups[*g].level, *g));
    for group in order {
        if let Some((kernel, nodes)) = build(fusion, &buffers, group) {
            let list = match fusion.groups[group].stage {
                Stage::Const => 0,
                Stage::Static => 1,
                Stage::Frame | Stage::LateStatic | Stage::LateConst => 2,
            };
            let family = family(fusion, &fusion.groups[group]);
            let name = names.take(family.name());
            computed.insert(name.clone(), nodes.iter().copied().collect());
            let equations = describe::equations(fusion.graph, options.source, &nodes);
            lists[list].push(Launch {
                name,
                family,
                equations,
                after: Vec::new(),
                kernel,
            });
        }
    }
    let [prologue, mut initial, launches] = lists;
    default_windows(fusion, &mut buffers, &mut initial, &mut names);
    let mut plan = Plan {
        cell: fusion.graph.name.clone(),
        dims: fusion
            .graph
            .dims
            .iter()
            .map(|d| (d.to_string(), options.dims.get(d).copied().unwrap_or(0)))
            .collect(),
        against_time: fusion.graph.against_time,
        finals: final_copies(fusion, &buffers),
        buffers: buffers.list,
        prologue,
        initial,
        launches,
    };
    for list in [&mut plan.prologue, &mut plan.initial, &mut plan.launches] {
        depend(list);
    }
    Scheduled { plan, nodes: computed }
}

fn build(fusion: &Fusion<'_>, buffers: &Buffers, id: usize) -> Option<(Kernel, BTreeSet<NodeId>)> {
    let group = &fusion.groups[id];
    let memory = Memory {
        fusion,
        buffers,
        stage: group.stage,
        level: group.level,
    };
    let stores = Stores { fusion, buffers };
    match &group.form {
        Form::Products(products) => Some(product::product(memory, &stores, products)),
        Form::Rows | Form::Scan => channel::channels(memory, &stores, group),
        Form::Loop => Some(dense::dense(memory, &stores, group)),
        Form::Total(nodes) => Some(total::totals(memory, &stores, nodes)),
        Form::Pointwise(_) => {
            let repeated: Vec<NodeId> = fusion
                .repeated
                .iter()
                .filter(|(_, g)| **g == id)
                .map(|(node, _)| *node)
                .collect();
            channel::pointwise(memory, &stores, group, &repeated)
        }
    }
}

/// The family that a group's kernel belongs to, as `explain-plan` calls it.
fn family(fusion: &Fusion<'_>, group: &Group) -> Family {
    match &group.form {
        Form::Products(_) => Family::Product,
        Form::Total(_) => Family::Total,
        Form::Rows => Family::Rows,
        Form::Pointwise(_) => Family::Pointwise,
        Form::Loop => Family::Loop,
        Form::Scan => {
            let linear = |r: &usize| matches!(fusion.facts.recurrences[*r].verdict, Verdict::Linear(_));
            let inner = fusion.channels(&group.live, true).is_some_and(|c| !c.inner.is_empty());
            match (group.recurrences.iter().all(linear), inner) {
                (true, false) => Family::Scan,
                (true, true) => Family::MatrixState,
                (false, _) => Family::ChannelLoop,
            }
        }
    }
}

struct Names {
    cell: String,
    taken: BTreeSet<String>,
}

impl Names {
    fn take(&mut self, family: &str) -> String {
        let stem = format!("{}_{family}", self.cell);
        let mut name = stem.clone();
        let mut n = 2;
        while !self.taken.insert(name.clone()) {
            name = format!("{stem}_{n}");
            n += 1;
        }
        name
    }
}

fn identifier(name: &str) -> String {
    name.chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
        .collect()
}

/// A launch waits for those before it that write what it reads.
fn depend(list: &mut [Launch]) {
    let written: Vec<BTreeSet<_>> = list.iter().map(Launch::writes).collect();
    for (i, launch) in list.iter_mut().enumerate() {
        let read = launch.reads();
        launch.after = (0..i).filter(|j| !written[*j].is_disjoint(&read)).collect();
    }
}

/// What windows hold where the caller gives none: a number, or what a small kernel computes.
fn default_windows(fusion: &Fusion<'_>, buffers: &mut Buffers, initial: &mut Vec<Launch>, names: &mut Names) {
    for state in fusion.graph.states() {
        let Some(value) = fusion.graph.operands(state).get(1).map(|r| r.node) else {
            continue;
        };
        let Some(buffer) = buffers.initial.get(&state).copied() else {
            continue;
        };
        let default = match constant(fusion, value) {
            Some(x) => Initial::Fill(x),
            None => {
                let kernel = window_kernel(fusion, buffers, state, value);
                let equations = vec![format!("s0.{} by default", fusion.graph.label(state))];
                initial.push(Launch {
                    family: Family::Pointwise,
                    name: names.take("initial"),
                    equations,
                    after: Vec::new(),
                    kernel,
                });
                Initial::Launch(initial.len() - 1)
            }
        };
        buffers.list[buffer.0 as usize].role = Role::Initial(default);
    }
}

/// The number that a node is everywhere, if it is a literal below broadcasts.
fn constant(fusion: &Fusion<'_>, mut id: NodeId) -> Option<f64> {
    loop {
        match fusion.graph.node(id).op {
            Op::Literal(x) => return Some(x),
            Op::Broadcast { .. } | Op::Reshape | Op::Slice { .. } => id = fusion.graph.operands(id)[0].node,
            _ => return None,
        }
    }
}

fn window_kernel(fusion: &Fusion<'_>, buffers: &Buffers, state: NodeId, value: NodeId) -> Kernel {
    // Values of any earlier stage are in memory by now, whatever their level.
    let memory = Memory {
        fusion,
        buffers,
        stage: Stage::Frame,
        level: 0,
    };
    let shape = fusion.shapes.of(state).to_vec();
    let index: Vec<Index> = (0..shape.len()).map(|axis| Index::var(axis as u8)).collect();
    let mut evaluator = Evaluator::new(fusion.graph, fusion.shapes, product::InMemory(memory), shape.clone());
    let result = evaluator.eval(&super::point::Point::now(value, index.clone()));
    let at = super::point::flatten(&index, &shape);
    let (mut body, _) = evaluator.finish();
    let frames = match buffers.list[buffers.initial[&state].0 as usize].scope {
        Scope::Window(k) => k,
        _ => 1,
    };
    for j in 0..frames {
        let frame = StoreFrame::Window(j);
        body.stores.push(Store {
            buffer: buffers.initial[&state],
            frame,
            index: at.clone(),
            value: result,
        });
    }
    Kernel::Channel(Channel {
        scope: Scope::Batch,
        sequential: false,
        channels: shape,
        inner: Vec::new(),
        carried: Vec::new(),
        body,
    })
}

fn final_copies(fusion: &Fusion<'_>, buffers: &Buffers) -> Vec<FinalCopy> {
    let mut copies = Vec::new();
    for state in fusion.graph.states() {
        let (Some(input), Some(last)) = (fusion.input_of(state), buffers.last.get(&state)) else {
            continue;
        };
        copies.push(FinalCopy {
            target: *last,
            source: buffers.value[&input],
            initial: buffers.initial[&state],
        });
    }
    copies
}
