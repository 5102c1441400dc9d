//! Products: tiles of copies by rows, k in double-buffered slices, operands computed where they are read, what becomes
//! of a sum computed where it ends. One launch takes several segments of rows.

mod fetch;
mod tile;

use super::expr::Expr;
use super::index::Variable;
use super::kernel::{Context, Emission, extents, indented, opening_comment, parameter_list};
use super::names::Names;
use super::place::Place;
use super::statements::Statements;
use super::templates::{View, render};
use rnnc_runtime::manifest::{Grid, KernelLaunch};
use rnnc_runtime::plan::{Launch, Product, Scope, Segment, Step};
use serde::Serialize;
use std::collections::BTreeSet;
use tile::{DEPTH, Tile};

/// Variables that are in scope where buffers are read or written.
const NAMES: &str = "thread tile strip segment rows first_row first_copy last_copy copies sum line half total shared i \
    slice copy column kk operand_next weight_next tiles weights";

/// Most blocks of a launch; each then takes several tiles.
const LIMIT: u64 = 1 << 24;

/// `product.cu`
#[derive(Serialize)]
struct Tiled {
    comment: String,
    threads: usize,
    resident: usize,
    name: String,
    parameters: String,
    depth: usize,
    operand_pitch: usize,
    weight_pitch: usize,
    tile_copies: usize,
    tile_rows: usize,
    copies_at_once: usize,
    last_copy: usize,
    columns: usize,
    copies: &'static str,
    strips: usize,
    segment: String,
    operand_each: usize,
    weight_each: usize,
    copies_each: usize,
    rows_each: usize,
    copy_quads: usize,
    row_quads: usize,
    copy_spacing: usize,
    row_spacing: usize,
    slices: usize,
    fetch: String,
    operand_k: String,
    operand_copy: String,
    weight_k: String,
    weight_row: String,
    and_row_exists: String,
    finish: String,
}

impl View for Tiled {
    const TEMPLATE: &'static str = "product.cu";
}

/// What buffers may not be called: the kernel has variables of these names.
pub fn own_names() -> impl Iterator<Item = &'static str> {
    NAMES.split_whitespace()
}

/// Prints a product.
pub fn emit(context: &Context, launch: &Launch, product: &Product) -> Emission {
    let tile = Tile::choose(product);
    let mut names = context.names(launch);
    names.reserve(own_names());
    names.reserve(["j", "x", "w", "quad", "step"]);
    let view = view(context, launch, product, tile, &names);
    Emission {
        text: render(&view),
        launch: manifest(context, launch, product, tile),
        workspaces: Vec::new(),
    }
}

fn view(context: &Context, launch: &Launch, product: &Product, tile: Tile, names: &Names) -> Tiled {
    let along_k = fetch::weights_along_k(product);
    let mut parameters = context.parameters(launch);
    parameters.extend(extents(product.scope).0);
    Tiled {
        comment: opening_comment(launch, &how(product, tile)),
        threads: tile.threads(),
        resident: tile.resident(),
        name: launch.name.clone(),
        parameters: parameter_list(&parameters),
        depth: DEPTH,
        // Four floats more than needed: columns then start in different banks, and quads stay aligned.
        operand_pitch: tile.copies + 4,
        weight_pitch: tile.rows + 4,
        tile_copies: tile.copies,
        tile_rows: tile.rows,
        copies_at_once: tile.copies_at_once(),
        last_copy: tile.copies - 1,
        columns: tile.columns(),
        copies: copies(product.scope),
        strips: strips(product, tile),
        segment: indented(&segment_lines(product, tile), 2),
        operand_each: tile.operand_each(),
        weight_each: tile.weight_each(),
        copies_each: tile.copies_each,
        rows_each: tile.rows_each,
        copy_quads: tile.copies_each / 4,
        row_quads: tile.rows_each / 4,
        copy_spacing: tile.copies / (tile.copies_each / 4),
        row_spacing: tile.rows / (tile.rows_each / 4),
        slices: product.operands.iter().map(|o| o.extent.div_ceil(DEPTH)).sum(),
        fetch: indented(&fetch::print(context, product, tile, names), 4),
        operand_k: format!("thread % {DEPTH}"),
        operand_copy: fetch::spread(tile, DEPTH),
        weight_k: fetch::weight_k(tile, along_k),
        weight_row: fetch::weight_row(tile, along_k),
        and_row_exists: and_row_exists(product, tile),
        finish: indented(&finish(context, product, names), 3),
    }
}

fn how(product: &Product, tile: Tile) -> String {
    let what = match product.scope {
        Scope::Frame => "frames of sequences",
        _ => "sequences",
    };
    format!("A block takes tiles of {} {what} by {} rows.", tile.copies, tile.rows)
}

fn copies(scope: Scope) -> &'static str {
    match scope {
        Scope::Const => "1",
        Scope::Batch | Scope::Window(_) => "B",
        Scope::Frame => "(long long)T * B",
    }
}

fn strips(product: &Product, tile: Tile) -> usize {
    product.segments.iter().map(|s| tile.strips(s.rows)).sum()
}

/// Which rows of which segment a tile has.
fn segment_lines(product: &Product, tile: Tile) -> Vec<String> {
    let strip = format!("tile % {}", strips(product, tile));
    if product.segments.len() == 1 {
        return vec![format!("const int first_row = (int)({strip}) * {};", tile.rows)];
    }
    let each: BTreeSet<usize> = product.segments.iter().map(|s| tile.strips(s.rows)).collect();
    let mut starts = vec![0];
    for segment in &product.segments {
        starts.push(starts[starts.len() - 1] + tile.strips(segment.rows));
    }
    let count = product.segments.len();
    let choose = |value: &dyn Fn(usize) -> String, test: &dyn Fn(usize) -> String| fetch::choose(count, value, test);
    let by_strip = |i: usize| format!("strip < {}", starts[i + 1]);
    let by_segment = |i: usize| format!("segment == {i}");
    let mut lines = vec![format!("const int strip = (int)({strip});")];
    match each.first() {
        Some(strips) if each.len() == 1 => {
            lines.push(format!("const int segment = strip / {strips};"));
            lines.push(format!("const int first_row = strip % {strips} * {};", tile.rows));
        }
        _ => {
            let start = choose(&|i| starts[i].to_string(), &by_segment);
            lines.push(format!(
                "const int segment = {};",
                choose(&|i| i.to_string(), &by_strip)
            ));
            lines.push(format!("const int first_row = (strip - ({start})) * {};", tile.rows));
        }
    }
    if is_ragged(product, tile) {
        let count = match product.segments.first() {
            Some(first) if product.segments.iter().all(|s| s.rows == first.rows) => first.rows.to_string(),
            _ => choose(&|i| product.segments[i].rows.to_string(), &by_segment),
        };
        lines.push(format!("const int rows = {count};"));
    }
    lines
}

/// Whether some segment does not fill its last tile.
fn is_ragged(product: &Product, tile: Tile) -> bool {
    product.segments.iter().any(|s| s.rows % tile.rows != 0)
}

fn and_row_exists(product: &Product, tile: Tile) -> String {
    match product.segments.as_slice() {
        _ if !is_ragged(product, tile) => String::new(),
        [only] => format!(" && row < {}", only.rows),
        _ => " && row < rows".to_string(),
    }
}

/// What becomes of a sum.
fn finish(context: &Context, product: &Product, names: &Names) -> Vec<String> {
    let bodies = product
        .segments
        .iter()
        .map(|s| finish_segment(context, product, s, names));
    let body = fetch::by_segment(bodies.collect());
    let mut lines = fetch::copy_lines(product.scope, "copy", &body);
    lines.extend(body);
    lines
}

fn finish_segment(context: &Context, product: &Product, segment: &Segment, names: &Names) -> Vec<String> {
    let sum = |step: &Step| matches!(step, Step::Slot(_)).then(|| Expr::float("sum"));
    let vars = [Variable::new("row", segment.rows)];
    let place = Place {
        plan: context.plan,
        pointers: context.pointers,
        vars: &vars,
        frame: fetch::frame_names(product.scope),
        leaf: &sum,
        fast_math: context.target.fast_math,
    };
    let mut statements = Statements::new(&segment.body, &[]);
    let (mut names, mut lines) = (names.clone(), Vec::new());
    statements.define_all(&place, &mut names, &mut lines);
    for store in &segment.body.stores {
        statements.store(store, &place, None, &mut lines);
    }
    lines
}

fn manifest(context: &Context, launch: &Launch, product: &Product, tile: Tile) -> KernelLaunch {
    let mut arguments = context.arguments(launch);
    arguments.extend(extents(product.scope).1);
    KernelLaunch {
        kernel: launch.name.clone(),
        family: launch.family,
        equations: launch.equations.clone(),
        after: launch.after.clone(),
        arguments,
        block: tile.threads() as u32,
        shared: 0,
        cooperative: false,
        grid: Grid::Cover {
            scope: product.scope,
            each: 1,
            per_block: tile.copies as u64,
            times: strips(product, tile) as u64,
            limit: LIMIT,
        },
    }
}
