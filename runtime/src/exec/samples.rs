//! Manifests written by hand for small plans, and the data that tests run them with.

use crate::engine::Data;
use crate::manifest::{Argument, BufferEntry, Family, Grid, KernelLaunch, Manifest, ShortRun, Workspace};
use crate::plan::samples::{NOW, PlanMaker, biased, plain_operand};
use crate::plan::{BufferId, Index, Initial, Kernel, Plan, Product, Scope, Segment, Weight};
use std::collections::BTreeMap;

pub(crate) fn entry(kernel: &str, arguments: Vec<Argument>, grid: Grid) -> KernelLaunch {
    KernelLaunch {
        kernel: kernel.to_owned(),
        family: Family::Pointwise,
        equations: vec![],
        after: vec![],
        arguments,
        block: 64,
        shared: 128,
        cooperative: matches!(grid, Grid::Groups { .. }),
        grid,
    }
}

pub(crate) fn cover(scope: Scope, each: u64) -> Grid {
    Grid::Cover {
        scope,
        each,
        per_block: 64,
        times: 1,
        limit: 1 << 20,
    }
}

pub(crate) fn reads(id: u32) -> Argument {
    Argument::Buffer {
        buffer: BufferId(id),
        written: false,
    }
}

pub(crate) fn writes(id: u32) -> Argument {
    Argument::Buffer {
        buffer: BufferId(id),
        written: true,
    }
}

/// A manifest of the plan's buffers, without launches.
pub(crate) fn manifest(plan: &Plan) -> Manifest {
    let buffers = plan.buffers.iter().map(|b| BufferEntry {
        name: b.name.clone(),
        pointer: b.name.clone(),
        role: b.role.clone(),
        scope: b.scope,
        shape: b.shape.clone(),
        elem: b.elem,
        layout: String::new(),
    });
    Manifest {
        format: crate::manifest::FORMAT,
        cell: plan.cell.clone(),
        dims: vec![],
        arch: "sm_90".to_owned(),
        buffers: buffers.collect(),
        workspaces: vec![],
        prologue: vec![],
        initial: vec![],
        launches: vec![],
        finals: plan.finals.clone(),
        short: vec![],
    }
}

pub(crate) fn data(pairs: &[(u32, &[f32])]) -> BTreeMap<BufferId, Data> {
    pairs
        .iter()
        .map(|(id, v)| (BufferId(*id), Data::F32(v.to_vec())))
        .collect()
}

pub(crate) fn reals(out: &BTreeMap<BufferId, Data>, id: u32) -> Vec<f32> {
    match &out[&BufferId(id)] {
        Data::F32(v) => v.clone(),
        Data::I32(v) => panic!("integers: {v:?}"),
    }
}

/// `taps` of the plan's samples with n = 1: x 0, context 1, raw 2, scale 3, s0.x 4, sT.x 5, y 6.
/// y = scale * x[t-2] (with x[t-1] left out), the window of x computed from the context.
pub(crate) fn taps_manifest(plan: &Plan) -> Manifest {
    let mut manifest = manifest(plan);
    manifest.prologue = vec![entry("exp_scale", vec![reads(2), writes(3)], cover(Scope::Const, 1))];
    manifest.initial = vec![entry(
        "window_of_x",
        vec![reads(1), writes(4), Argument::Batch],
        cover(Scope::Batch, 1),
    )];
    let arguments = vec![
        reads(0),
        reads(4),
        reads(3),
        writes(6),
        Argument::Frames,
        Argument::Batch,
    ];
    manifest.launches = vec![entry("sum_taps", arguments, cover(Scope::Frame, 1))];
    manifest
}

/// A loop of one value h, h[t-2] read: x 0, s0.h 1, sT.h 2, y 3. Words of the workspace carry the epoch of the frame.
pub(crate) fn looped() -> (Plan, Manifest) {
    let mut maker = PlanMaker::new("looped");
    maker.input("x", &[1]);
    maker.windows("h", 2, &[1], Initial::Fill(0.25));
    maker.output("y", &[1]);
    let plan = maker.0;
    let mut manifest = manifest(&plan);
    manifest.workspaces = vec![Workspace {
        name: "words".to_owned(),
        bytes_per_group: 256,
        exchanges: 2,
    }];
    let arguments = vec![
        reads(0),
        reads(1),
        writes(2),
        writes(3),
        Argument::Frames,
        Argument::Batch,
        Argument::Workspace(0),
        Argument::Epoch(0),
    ];
    let grid = Grid::Groups {
        batch_tile: 2,
        blocks: 3,
    };
    manifest.launches = vec![entry("loop", arguments, grid)];
    manifest.short = vec![ShortRun {
        target: BufferId(2),
        initial: BufferId(1),
        frames: 2,
    }];
    (plan, manifest)
}

/// A plan of one product, `y[1..3] = W x + b` with `x: [3]`, W two rows of `[_, 4]` and y one element wider than the result:
/// x 0, W 1, b 2, y 3; and its manifest.
pub(crate) fn one_product() -> (Plan, Manifest) {
    let mut maker = PlanMaker::new("one_product");
    let x = maker.input("x", &[3]);
    let weight = maker.param("W", &[2, 4]);
    let bias = maker.param("b", &[2]);
    let y = maker.output("y", &[3]);
    let mut body = biased(bias, y);
    body.stores[0].index = Index::var(0).plus(1);
    let product = Product {
        scope: Scope::Frame,
        operands: vec![plain_operand(x, NOW, 3)],
        segments: vec![Segment {
            rows: 2,
            weights: vec![Weight {
                buffer: weight,
                offset: 1,
                row_stride: 4,
                k_stride: 1,
            }],
            body,
        }],
    };
    maker.run("product", Kernel::Product(product));
    let plan = maker.0;
    let mut manifest = manifest(&plan);
    let arguments = vec![reads(0), reads(1), reads(2), writes(3), Argument::Frames];
    manifest.launches = vec![entry("product", arguments, cover(Scope::Frame, 2))];
    (plan, manifest)
}
