//! Channel kernels that carry a state: frames one after another, the state in registers, reads issued frames ahead.

use super::ahead::Ahead;
use super::facts::{Facts, Phase};
use super::space::Space;
use super::states::States;
use super::user_names;
use super::work::{Walk, Work};
use crate::codegen::cuda::kernel::{Context, Emission, extents, indented, needed, opening_comment, parameter_list};
use crate::codegen::cuda::place::{FrameNames, Place};
use crate::codegen::cuda::statements::Statements;
use crate::codegen::cuda::templates::{View, render};
use rnnc_runtime::manifest::{Grid, KernelLaunch};
use rnnc_runtime::plan::{Channel, Launch, Reg, Scope};
use serde::Serialize;

/// Threads a block: few, so that few channels still spread over many processors.
const THREADS: u32 = 64;

/// Blocks for which a multiprocessor shall have registers: all that a thread can address. Runs seldom have more blocks a
/// multiprocessor, and the assembler would spill to make room for them.
const RESIDENT: u32 = 4;

/// Registers a lane may spend on what is the same in all frames; beyond, it is read in each.
const STILL_REGISTERS: usize = 64;

/// `channel.cu`
#[derive(Serialize)]
struct Plain {
    comment: String,
    threads: u32,
    resident: u32,
    name: String,
    parameters: String,
    count: String,
    coordinates: String,
    before: String,
    body: String,
    after: String,
}

impl View for Plain {
    const TEMPLATE: &'static str = "channel.cu";
}

/// `channel_ahead.cu`
#[derive(Serialize)]
struct Early {
    comment: String,
    threads: u32,
    resident: u32,
    name: String,
    parameters: String,
    count: String,
    coordinates: String,
    before: String,
    frames: usize,
    next: String,
    now: String,
    moves: String,
    loads: String,
    next_loads: String,
    body: String,
    after: String,
}

impl View for Early {
    const TEMPLATE: &'static str = "channel_ahead.cu";
}

/// The parts of a kernel's text, as lines.
struct Parts {
    before: Vec<String>,
    ahead: Option<Ahead>,
    body: Vec<String>,
    after: Vec<String>,
}

/// Prints the kernel.
pub fn emit(context: &Context, launch: &Launch, channel: &Channel) -> Emission {
    let mut names = context.names(launch);
    let users = user_names(channel);
    let states = States::new(channel, &mut names);
    let space = Space::new(channel, Walk::Unrolled, &users, &mut names);
    let facts = facts(channel, &space);
    let leaf = |step: &_| states.carried(step);
    let place = Place {
        plan: context.plan,
        pointers: context.pointers,
        vars: &space.vars,
        frame: FrameNames {
            at: "at".to_string(),
            seq: "seq".to_string(),
            t: Some("t".to_string()),
        },
        leaf: &leaf,
        fast_math: context.target.fast_math,
    };
    let roots: Vec<Reg> = channel.carried.iter().map(|c| c.value).collect();
    let mut work = Work {
        channel,
        facts: &facts,
        space: &space,
        walk: Walk::Unrolled,
        names,
        statements: Statements::new(&channel.body, &roots),
        early: Default::default(),
        skipped: states.stores_at_end(channel, context.plan),
    };
    for state in &channel.carried {
        work.statements.suggest(state.value, &state.name);
    }
    let parts = print(&mut work, &states, &place);
    Emission {
        text: assemble(context, launch, &space, &parts),
        launch: manifest(context, launch, space.threads_each()),
        workspaces: Vec::new(),
    }
}

/// Hoists what is the same in all frames, if it can be kept.
fn facts(channel: &Channel, space: &Space) -> Facts {
    let hoisted = Facts::of(channel, space.lanes, true);
    let kept = hoisted.steps.iter().filter(|f| f.kept && f.phase == Phase::Before);
    let registers: usize = kept.map(|f| if f.inner { space.lanes.each } else { 1 }).sum();
    if registers <= STILL_REGISTERS {
        hoisted
    } else {
        Facts::of(channel, space.lanes, false)
    }
}

fn print(work: &mut Work, states: &States, place: &Place) -> Parts {
    let mut before = work.print(Phase::Before, place);
    before.extend(states.first(work.space, place));
    let ahead = Ahead::choose(work, place);
    if let Some(ahead) = &ahead {
        work.early = ahead.values();
    }
    let mut body = work.print(Phase::Frame, place);
    body.extend(states.advance(work));
    Parts {
        before,
        ahead,
        body,
        after: states.last(work.channel, work.space, place, &work.skipped),
    }
}

fn assemble(context: &Context, launch: &Launch, space: &Space, parts: &Parts) -> String {
    let how = match space.lanes.lanes {
        1 => "One thread for each sequence and channel, frame after frame.".to_string(),
        n => format!("{n} lanes for each sequence and channel, frame after frame."),
    };
    let comment = opening_comment(launch, &how);
    let mut parameters = context.parameters(launch);
    parameters.extend(extents(Scope::Frame).0);
    let parameters = parameter_list(&parameters);
    let count = match space.threads_each() {
        1 => "B".to_string(),
        n => format!("(long long)B * {n}"),
    };
    let name = launch.name.clone();
    let coordinates = coordinates(space, parts);
    let (before, after) = (indented(&parts.before, 1), after(parts));
    let at = "const long long at = (long long)t * B + seq;".to_string();
    let mut body = needed(vec![at], &parts.body.join("\n"));
    body.extend(parts.body.iter().cloned());
    let Some(ahead) = &parts.ahead else {
        return render(&Plain {
            comment,
            threads: THREADS,
            resident: RESIDENT,
            name,
            parameters,
            count,
            coordinates,
            before,
            body: indented(&body, 2),
            after,
        });
    };
    render(&Early {
        comment,
        threads: THREADS,
        resident: RESIDENT,
        name,
        parameters,
        count,
        coordinates,
        before,
        frames: ahead.frames,
        next: indented(&ahead.next, 1),
        now: indented(&ahead.now, 2),
        moves: indented(&ahead.moves, 3),
        loads: indented(&ahead.loads, 2),
        next_loads: indented(&ahead.loads, 3),
        body: indented(&body, 3),
        after,
    })
}

/// Where the thread is: what the rest mentions of it. The sequence is always needed for frames.
fn coordinates(space: &Space, parts: &Parts) -> String {
    let mut lines = space.channel_lines();
    lines.push(match space.threads_each() {
        1 => "const long long seq = item;".to_string(),
        n => format!("const long long seq = item / {n};"),
    });
    if space.lanes.lanes > 1 {
        lines.push(format!("const unsigned group = lane_group<{}>();", space.lanes.lanes));
    }
    lines.extend(space.inner_lines());
    let mut code = vec!["seq".to_string()];
    code.extend(parts.before.iter().chain(&parts.body).chain(&parts.after).cloned());
    if let Some(ahead) = &parts.ahead {
        code.extend(ahead.loads.iter().cloned());
    }
    indented(&needed(lines, &code.join("\n")), 1)
}

fn after(parts: &Parts) -> String {
    if parts.after.is_empty() {
        return String::new();
    }
    format!("\n{}", indented(&parts.after, 1))
}

fn manifest(context: &Context, launch: &Launch, each: u64) -> KernelLaunch {
    let mut arguments = context.arguments(launch);
    arguments.extend(extents(Scope::Frame).1);
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
            scope: Scope::Batch,
            each,
            per_block: THREADS.into(),
            times: 1,
            limit: u64::from(i32::MAX as u32),
        },
    }
}
