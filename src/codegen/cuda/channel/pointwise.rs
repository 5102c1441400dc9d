//! Channel kernels without a carried state: all frames, sequences and channels at once.

use super::facts::{Facts, Phase};
use super::space::Space;
use super::user_names;
use super::work::{Walk, Work};
use crate::codegen::cuda::kernel::{Context, Emission, extents, indented, needed, opening_comment, parameter_list};
use crate::codegen::cuda::place::{FrameNames, Place};
use crate::codegen::cuda::statements::Statements;
use crate::codegen::cuda::templates::{View, render};
use rnnc_runtime::manifest::{Grid, KernelLaunch};
use rnnc_runtime::plan::{Channel, Launch, Scope};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Threads a block.
const THREADS: u32 = 256;

/// Most blocks of a launch; each thread then takes several items.
const LIMIT: u64 = 1 << 20;

/// Registers a lane may spend on inner elements that several loops need.
const KEPT_REGISTERS: usize = 64;

/// Steps that an unrolled loop may have, all rounds together.
const UNROLLED_STEPS: usize = 1500;

/// `pointwise.cu`
#[derive(Serialize)]
struct Pointwise {
    comment: String,
    threads: u32,
    name: String,
    parameters: String,
    count: String,
    coordinates: String,
    body: String,
}

impl View for Pointwise {
    const TEMPLATE: &'static str = "pointwise.cu";
}

/// Prints the kernel.
pub fn emit(context: &Context, launch: &Launch, channel: &Channel) -> Emission {
    let facts = Facts::of(channel, channel.lanes(), false);
    let walk = choose_walk(channel, &facts);
    let mut names = context.names(launch);
    let space = Space::new(channel, walk, &user_names(channel), &mut names);
    let place = Place {
        plan: context.plan,
        pointers: context.pointers,
        vars: &space.vars,
        frame: frame_names(channel.scope),
        leaf: &|_| None,
        fast_math: context.target.fast_math,
    };
    let mut work = Work {
        channel,
        facts: &facts,
        space: &space,
        walk,
        names,
        statements: Statements::new(&channel.body, &[]),
        early: BTreeMap::new(),
        skipped: BTreeSet::new(),
    };
    let body = work.print(Phase::Frame, &place);
    let text = render(&Pointwise {
        comment: opening_comment(launch, &how(channel, &space)),
        threads: THREADS,
        name: launch.name.clone(),
        parameters: parameters(context, launch, channel.scope),
        count: count(channel.scope, space.threads_each()),
        coordinates: coordinates(channel.scope, &space, &body),
        body: indented(&body, 2),
    });
    Emission {
        text,
        launch: manifest(context, launch, channel.scope, space.threads_each()),
        workspaces: Vec::new(),
    }
}

fn choose_walk(channel: &Channel, facts: &Facts) -> Walk {
    let each = channel.lanes().each;
    let kept = facts.steps.iter().filter(|f| f.inner && f.kept).count();
    let steps = facts.steps.iter().filter(|f| f.inner).count();
    if each > 1 && (each * kept > KEPT_REGISTERS || each * steps > UNROLLED_STEPS) {
        Walk::Strided
    } else {
        Walk::Unrolled
    }
}

fn frame_names(scope: Scope) -> FrameNames {
    let at = if scope == Scope::Frame { "at" } else { "seq" };
    FrameNames {
        at: at.to_string(),
        seq: "seq".to_string(),
        t: None,
    }
}

fn how(channel: &Channel, space: &Space) -> String {
    let who = match space.lanes.lanes {
        1 => "One thread",
        n => return format!("{n} lanes for each {}.", what(channel)),
    };
    format!("{who} for each {}.", what(channel))
}

fn what(channel: &Channel) -> &'static str {
    match channel.scope {
        Scope::Const => "channel",
        Scope::Batch | Scope::Window(_) => "sequence and channel",
        Scope::Frame => "frame, sequence and channel",
    }
}

fn parameters(context: &Context, launch: &Launch, scope: Scope) -> String {
    let mut parameters = context.parameters(launch);
    parameters.extend(extents(scope).0);
    parameter_list(&parameters)
}

fn count(scope: Scope, each: u64) -> String {
    let copies = match scope {
        Scope::Const => return each.to_string(),
        Scope::Batch | Scope::Window(_) => "(long long)B",
        Scope::Frame => "(long long)T * B",
    };
    if each == 1 {
        copies.to_string()
    } else {
        format!("{copies} * {each}")
    }
}

/// Where the thread is: what the body mentions of it.
fn coordinates(scope: Scope, space: &Space, body: &[String]) -> String {
    let mut lines = space.channel_lines();
    let copy = match space.threads_each() {
        1 => "item".to_string(),
        n => format!("item / {n}"),
    };
    match scope {
        Scope::Const => {}
        Scope::Batch | Scope::Window(_) => lines.push(format!("const long long seq = {copy};")),
        Scope::Frame => {
            lines.push(format!("const long long at = {copy};"));
            lines.push("const long long seq = at % B;".to_string());
        }
    }
    if space.lanes.lanes > 1 {
        lines.push(format!("const unsigned group = lane_group<{}>();", space.lanes.lanes));
    }
    lines.extend(space.inner_lines());
    indented(&needed(lines, &body.join("\n")), 2)
}

fn manifest(context: &Context, launch: &Launch, scope: Scope, each: u64) -> KernelLaunch {
    let mut arguments = context.arguments(launch);
    arguments.extend(extents(scope).1);
    KernelLaunch {
        kernel: launch.name.clone(),
        family: launch.family,
        equations: launch.equations.clone(),
        after: launch.after.clone(),
        arguments,
        block: THREADS,
        shared: 0,
        cooperative: false,
        grid: Grid::Cover {
            scope,
            each,
            per_block: THREADS.into(),
            times: 1,
            limit: LIMIT,
        },
    }
}
