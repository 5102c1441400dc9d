//! Dense loops: one cooperative launch for all frames. A loop of the plan in, a kernel and how it is launched out.
//!
//! [`layout`] says where everything is (chosen by [`choose`], which estimates what a frame costs); the `*_text` files
//! print it. docs/loop.md explains the design and proves the exchange between blocks.

mod body_text;
pub mod choose;
mod dot_text;
pub mod dots;
mod exchange_text;
mod fold_text;
mod frame_text;
pub mod layout;
pub mod machine;
pub mod places;
mod printer;
mod setup_text;
mod slots;
#[cfg(test)]
mod tests;

use super::kernel::{Context, Emission, indented, opening_comment};
use super::templates::{View, render};
use crate::codegen::Target;
use layout::Layout;
use machine::Machine;
use places::Shape;
use printer::Printer;
pub use printer::own_names;
use rnnc_runtime::manifest::{Argument, Family, Grid, KernelLaunch, Workspace};
use rnnc_runtime::plan::{Launch, Loop, Plan};
use serde::Serialize;

/// How many sequences a run has, where the target does not say.
const USUAL_BATCH: usize = 16;

/// The places of `loop.cu`.
#[derive(Serialize)]
struct LoopView {
    comment: String,
    threads: usize,
    name: String,
    parameters: String,
    setup: String,
    first: String,
    step: String,
    start: String,
    frame: String,
}

impl View for LoopView {
    const TEMPLATE: &'static str = "loop.cu";
}

/// The layout of a loop for a target: of the shape that the target asks for, or of the best one found.
pub fn layout_for(plan: &Plan, looped: &Loop, target: &Target) -> Layout {
    let tuning = &target.tuning;
    let machine = Machine::new(target.sm(), tuning.sms);
    match tuning.loop_shape {
        Some(shape) => Layout::new(plan, looped, shape, &machine),
        None => choose::choose(plan, looped, &machine, tuning.batch.unwrap_or(USUAL_BATCH)),
    }
}

/// Prints a loop.
pub fn emit(context: &Context, launch: &Launch, looped: &Loop) -> Emission {
    let layout = layout_for(context.plan, looped, context.target);
    let printer = Printer::new(*context, launch, looped, &layout);
    Emission {
        text: text(&printer, launch),
        launch: describe(context, launch, &layout),
        workspaces: workspaces(launch, &layout),
    }
}

fn text(printer: &Printer, launch: &Launch) -> String {
    let layout = printer.layout;
    let Shape { blocks, sequences, .. } = layout.shape;
    let mut parameters = printer.cx.parameters(launch);
    parameters.extend(["int T", "int B"].map(String::from));
    parameters.extend(extra_parameters(layout).map(|(declaration, _)| declaration.to_string()));
    let groups = if blocks == 1 {
        "gridDim.x".to_string()
    } else {
        format!("gridDim.x / {blocks}")
    };
    let (first, step) = match sequences {
        1 => ("group".to_string(), groups),
        n => (format!("(long long)group * {n}"), format!("{groups} * {n}LL")),
    };
    let parameters: Vec<String> = parameters.iter().map(|p| format!("    {p}")).collect();
    render(&LoopView {
        comment: opening_comment(launch, &how(layout)),
        threads: layout.shape.threads(),
        name: launch.name.clone(),
        parameters: parameters.join(",\n"),
        setup: indented(&printer.setup(), 1),
        first,
        step,
        start: indented(&printer.start(), 2),
        frame: indented(&printer.frame(), 3),
    })
}

/// What the kernel's opening comment says about how it works.
fn how(layout: &Layout) -> String {
    let Shape { blocks, sequences, .. } = layout.shape;
    let some = |n: usize, what: &str| {
        if n == 1 {
            format!("one {what}")
        } else {
            format!("{n} {what}s")
        }
    };
    let tile = some(sequences, "sequence");
    if blocks == 1 {
        return format!("A block takes {tile} at a time through all frames.");
    }
    format!(
        "A group of {blocks} blocks takes {tile} at a time through all frames. A block owns some of the units, with\n\
         their rows of the recurrent weights; {} a frame the blocks exchange what they have set.",
        match layout.exchanges() {
            1 => "once".to_string(),
            n => format!("{n} times"),
        }
    )
}

/// Parameters beside buffers, T and B.
fn extra_parameters(layout: &Layout) -> impl Iterator<Item = (&'static str, Argument)> {
    let workspace = (layout.group_bytes() > 0).then_some(("uint4* workspace", Argument::Workspace(0)));
    let epoch = (layout.words > 0).then_some(("unsigned epoch", Argument::Epoch(0)));
    workspace.into_iter().chain(epoch)
}

fn describe(context: &Context, launch: &Launch, layout: &Layout) -> KernelLaunch {
    let shape = layout.shape;
    let mut arguments = context.arguments(launch);
    arguments.extend([Argument::Frames, Argument::Batch]);
    arguments.extend(extra_parameters(layout).map(|(_, argument)| argument));
    KernelLaunch {
        kernel: launch.name.clone(),
        family: Family::Loop,
        equations: launch.equations.clone(),
        after: launch.after.clone(),
        arguments,
        block: shape.threads() as u32,
        shared: layout.shared as u32,
        cooperative: shape.blocks > 1,
        grid: Grid::Groups {
            batch_tile: shape.sequences as u64,
            blocks: shape.blocks as u64,
        },
    }
}

fn workspaces(launch: &Launch, layout: &Layout) -> Vec<Workspace> {
    let needed = layout.group_bytes() > 0;
    let workspace = Workspace {
        name: format!("{}_workspace", launch.name),
        bytes_per_group: layout.group_bytes() as u64,
        exchanges: layout.exchanges() as u64,
    };
    needed.then_some(workspace).into_iter().collect()
}

#[cfg(test)]
mod view_tests {
    use super::*;

    #[test]
    fn the_template_has_the_views_places() {
        let text = || "x".to_string();
        super::super::templates::assert_exact(&LoopView {
            comment: text(),
            threads: 32,
            name: text(),
            parameters: text(),
            setup: text(),
            first: text(),
            step: text(),
            start: text(),
            frame: text(),
        });
    }
}
