//! Products summed over frames and sequences: tiles of the result, to which each slice of frames adds what it contributes,
//! in the order of time, so that the sum does not depend on how blocks run. The tiles of several parts follow one another; a
//! block is in one part at a time, so that branches between them do not diverge.

use super::expr::Expr;
use super::index::Variable;
use super::kernel::{Context, Emission, extents, indented, needed, opening_comment, parameter_list};
use super::names::Names;
use super::place::{FrameNames, Place};
use super::statements::Statements;
use super::templates::{View, render};
use rnnc_runtime::manifest::{Grid, KernelLaunch};
use rnnc_runtime::plan::{Launch, ProductOperand, Scope, Step, Total, TotalPart};
use serde::Serialize;

/// Rows and columns of a tile.
const SIDE: usize = 64;
/// Rows and columns of a thread.
const EACH: usize = 4;
/// Terms of a slice.
const DEPTH: usize = 16;
/// Threads side by side along the columns.
const ACROSS: usize = SIDE / EACH;
/// Threads a block.
const THREADS: usize = ACROSS * ACROSS;
/// Most blocks of a launch; each then takes several tiles.
const LIMIT: u64 = 1 << 24;

/// `total.cu`
#[derive(Serialize)]
struct Tiled {
    comment: String,
    threads: usize,
    name: String,
    parameters: String,
    depth: usize,
    pitch: usize,
    across: usize,
    terms: String,
    tiles: String,
    place: String,
    each: usize,
    loads: usize,
    side: usize,
    rows: String,
    columns: String,
    load_left: String,
    load_right: String,
    finish: String,
}

impl View for Tiled {
    const TEMPLATE: &'static str = "total.cu";
}

/// A launch's totals, which are alike in what they are summed over, part by part.
struct Parts<'p> {
    /// Any of them, for what they have in common.
    any: &'p Total,
    all: Vec<(&'p Total, &'p TotalPart)>,
}

/// Prints totals.
pub fn emit(context: &Context, launch: &Launch, totals: &[Total]) -> Emission {
    let all = totals
        .iter()
        .flat_map(|total| total.parts.iter().map(move |part| (total, part)));
    let parts = Parts {
        any: &totals[0], // the check of plans has found one
        all: all.collect(),
    };
    let total = parts.any;
    let mut names = context.names(launch);
    names.reserve(
        "left right thread line column terms tiles tile total first first_row first_column own_row".split(' '),
    );
    names.reserve("own_column group sequence i j step item term value sum x w element at seq result".split(' '));
    names.reserve("strip part part_strip rows_of columns_of down_of across_of".split(' '));
    let mut parameters = context.parameters(launch);
    parameters.extend(extents(total.over).0);
    let view = Tiled {
        comment: opening_comment(launch, &how(total)),
        threads: THREADS,
        name: launch.name.clone(),
        parameters: parameter_list(&parameters),
        depth: DEPTH,
        pitch: SIDE + 4,
        across: ACROSS,
        terms: terms(total),
        tiles: match total.scope {
            Scope::Batch => format!("(long long)B * {}", strips(&parts)),
            _ => strips(&parts).to_string(),
        },
        place: indented(&place_lines(&parts), 2),
        each: EACH,
        loads: SIDE * DEPTH / THREADS,
        side: SIDE,
        rows: extent(&parts, ROWS.0, ROWS.1),
        columns: extent(&parts, COLUMNS.0, COLUMNS.1),
        load_left: indented(
            &by_part(&parts, |(total, _)| {
                load(context, total, &total.left, "first_row", total.rows, &names)
            }),
            5,
        ),
        load_right: indented(
            &by_part(&parts, |(total, part)| {
                load(context, total, &part.right, "first_column", part.columns, &names)
            }),
            5,
        ),
        finish: indented(
            &by_part(&parts, |(total, part)| finish(context, total, part, &names)),
            5,
        ),
    };
    Emission {
        text: render(&view),
        launch: manifest(context, launch, &parts),
        workspaces: Vec::new(),
    }
}

fn how(total: &Total) -> String {
    let what = match (total.over, total.scope) {
        (Scope::Frame, Scope::Const) => "frames of sequences",
        (Scope::Frame, _) => "frames of its sequence",
        _ => "sequences",
    };
    format!("A block takes tiles of {SIDE} by {SIDE} sums over all {what}, in order.")
}

/// The terms of one sum.
fn terms(total: &Total) -> String {
    let copies = match (total.over, total.scope) {
        (Scope::Frame, Scope::Const) => "(long long)T * B",
        (Scope::Frame, _) => "(long long)T",
        _ => "(long long)B",
    };
    match total.inner {
        1 => copies.to_string(),
        n => format!("{copies} * {n}"),
    }
}

/// An extent of a part, with the variable that holds it where parts differ.
type Extent = (&'static str, fn((&Total, &TotalPart)) -> usize);
const ROWS: Extent = ("rows_of", |(total, _)| total.rows);
const COLUMNS: Extent = ("columns_of", |(_, part)| part.columns);

/// Tiles of all parts, for one sequence where each has sums of its own.
fn strips(parts: &Parts<'_>) -> usize {
    parts.all.iter().map(|part| part_strips(*part)).sum()
}

fn part_strips((total, part): (&Total, &TotalPart)) -> usize {
    total.groups * total.rows.div_ceil(SIDE) * part.columns.div_ceil(SIDE)
}

/// An extent of the part that the block is in: a number if all have the same, else a variable.
fn extent(parts: &Parts<'_>, variable: &str, of: fn((&Total, &TotalPart)) -> usize) -> String {
    let first = of(parts.all[0]);
    match parts.all.iter().all(|part| of(*part) == first) {
        true => first.to_string(),
        false => variable.to_string(),
    }
}

/// Lines for the part that the block is in. Parts that follow one another and have the same lines share them.
fn by_part(parts: &Parts<'_>, lines: impl Fn((&Total, &TotalPart)) -> Vec<String>) -> Vec<String> {
    let mut ways: Vec<(usize, Vec<String>)> = Vec::new(); // up to which part
    for (i, part) in parts.all.iter().enumerate() {
        let own = lines(*part);
        match ways.last_mut() {
            Some((end, same)) if *same == own => *end = i + 1,
            _ => ways.push((i + 1, own)),
        }
    }
    let last = ways.len() - 1;
    if last == 0 {
        return ways.swap_remove(0).1;
    }
    let mut all = Vec::new();
    for (i, (end, own)) in ways.into_iter().enumerate() {
        all.push(match i {
            0 => format!("if (part < {end}) {{"),
            i if i == last => "} else {".to_string(),
            _ => format!("}} else if (part < {end}) {{"),
        });
        all.extend(own.into_iter().map(|line| format!("    {line}")));
    }
    all.push("}".to_string());
    all
}

/// The value for the part that the block is in.
fn of_part(values: &[usize]) -> String {
    let (last, before) = match values {
        [first, rest @ ..] if rest.iter().all(|v| v == first) => (first, &[][..]),
        [before @ .., last] => (last, before),
        [] => return String::new(),
    };
    let choices = before.iter().enumerate().map(|(i, v)| format!("part == {i} ? {v} : "));
    choices.chain([last.to_string()]).collect()
}

/// Which part of the result a tile is.
fn place_lines(parts: &Parts<'_>) -> Vec<String> {
    match &parts.all[..] {
        [(total, only)] => place_in_only(total, only),
        _ => place_in_part(parts),
    }
}

/// As [`place_lines`], where the tiles of several parts follow one another.
fn place_in_part(parts: &Parts<'_>) -> Vec<String> {
    let mut ends: Vec<usize> = Vec::new();
    for part in &parts.all {
        ends.push(ends.last().unwrap_or(&0) + part_strips(*part));
    }
    let before: Vec<usize> = std::iter::once(0)
        .chain(ends.iter().copied())
        .take(ends.len())
        .collect();
    let last = ends.len() - 1;
    let choices = ends[..last]
        .iter()
        .enumerate()
        .map(|(i, end)| format!("strip < {end} ? {i} : "));
    let each = |of: fn((&Total, &TotalPart)) -> usize| {
        let values: Vec<usize> = parts.all.iter().map(|part| of(*part)).collect();
        of_part(&values)
    };
    let mut lines = vec![
        format!("const int strip = (int)(tile % {});", ends[last]),
        format!("const int part = {}{last};", choices.collect::<String>()),
        format!("const int part_strip = strip - ({});", of_part(&before)),
        format!("const int down_of = {};", each(|(total, _)| total.rows.div_ceil(SIDE))),
        format!(
            "const int across_of = {};",
            each(|(_, part)| part.columns.div_ceil(SIDE))
        ),
        format!("const int first_column = part_strip % across_of * {SIDE};"),
        format!("const int first_row = part_strip / across_of % down_of * {SIDE};"),
    ];
    for (variable, of) in [ROWS, COLUMNS] {
        if extent(parts, variable, of) == variable {
            lines.push(format!("const int {variable} = {};", each(of)));
        }
    }
    if parts.any.groups > 1 {
        lines.push("const int group = part_strip / across_of / down_of;".to_string());
    }
    if parts.any.scope == Scope::Batch {
        lines.push(format!("const long long sequence = tile / {};", ends[last]));
    }
    lines
}

fn place_in_only(total: &Total, only: &TotalPart) -> Vec<String> {
    let (down, across) = (total.rows.div_ceil(SIDE), only.columns.div_ceil(SIDE));
    let part = |before: usize, of: usize| match (before, of) {
        (_, 1) => "0".to_string(),
        (1, n) => format!("(int)(tile % {n}) * {SIDE}"),
        (before, n) => format!("(int)(tile / {before} % {n}) * {SIDE}"),
    };
    let mut lines = vec![
        format!("const int first_column = {};", part(1, across)),
        format!("const int first_row = {};", part(across, down)),
    ];
    if total.groups > 1 {
        let tiles = down * across;
        lines.push(format!("const int group = (int)(tile / {tiles} % {});", total.groups));
    }
    if total.scope == Scope::Batch {
        lines.push(format!(
            "const long long sequence = tile / {};",
            part_strips((total, only))
        ));
    }
    lines
}

/// Sets `value` to the element of a factor that `term` and `item` name.
fn load(
    context: &Context,
    total: &Total,
    factor: &ProductOperand,
    first: &str,
    own: usize,
    names: &Names,
) -> Vec<String> {
    let vars = [Variable::new("element", factor.extent)];
    let place = Place {
        plan: context.plan,
        pointers: context.pointers,
        vars: &vars,
        frame: frame_names(total.over),
        leaf: &|_| None,
        fast_math: context.target.fast_math,
    };
    let mut statements = Statements::new(&factor.body, &[factor.result]);
    let (mut names, mut body) = (names.clone(), Vec::new());
    statements.define_all(&place, &mut names, &mut body);
    body.push(format!("value = {};", statements.get(factor.result).as_float().text));
    let row = match total.groups {
        1 => format!("{first} + item"),
        _ => format!("group * {own} + {first} + item"),
    };
    let (copy, element) = match total.inner {
        1 => ("term".to_string(), row),
        n => (format!("term / {n}"), format!("({row}) * {n} + (int)(term % {n})")),
    };
    let mut lines = match (total.over, total.scope) {
        (Scope::Frame, Scope::Batch) => vec![
            format!("const long long at = ({copy}) * B + sequence;"),
            "const long long seq = sequence;".to_string(),
        ],
        (Scope::Frame, _) => vec![
            format!("const long long at = {copy};"),
            "const long long seq = at % B;".to_string(),
        ],
        _ => vec![format!("const long long seq = {copy};")],
    };
    lines.push(format!("const int element = {element};"));
    let mut lines = needed(lines, &body.join("\n"));
    lines.extend(body);
    lines
}

fn frame_names(scope: Scope) -> FrameNames {
    let at = if scope == Scope::Frame { "at" } else { "seq" };
    FrameNames {
        at: at.to_string(),
        seq: "seq".to_string(),
        t: None,
    }
}

/// What becomes of a sum.
fn finish(context: &Context, total: &Total, part: &TotalPart, names: &Names) -> Vec<String> {
    let leaf = |step: &Step| matches!(step, Step::Slot(_)).then(|| Expr::float("sum"));
    let vars = [Variable::new("result", total.groups * total.rows * part.columns)];
    let frame = FrameNames {
        at: "sequence".to_string(),
        seq: "sequence".to_string(),
        t: None,
    };
    let place = Place {
        plan: context.plan,
        pointers: context.pointers,
        vars: &vars,
        frame,
        leaf: &leaf,
        fast_math: context.target.fast_math,
    };
    let mut statements = Statements::new(&part.body, &[]);
    let (mut names, mut body) = (names.clone(), Vec::new());
    statements.define_all(&place, &mut names, &mut body);
    for store in &part.body.stores {
        statements.store(store, &place, None, &mut body);
    }
    let row = match total.groups {
        1 => "own_row".to_string(),
        _ => format!("(group * {} + own_row)", total.rows),
    };
    let at = format!("const int result = {row} * {} + own_column;", part.columns);
    let mut lines = needed(vec![at], &body.join("\n"));
    lines.extend(body);
    lines
}

fn manifest(context: &Context, launch: &Launch, parts: &Parts<'_>) -> KernelLaunch {
    let total = parts.any;
    let mut arguments = context.arguments(launch);
    arguments.extend(extents(total.over).1);
    KernelLaunch {
        kernel: launch.name.clone(),
        family: launch.family,
        equations: launch.equations.clone(),
        after: launch.after.clone(),
        arguments,
        block: THREADS as u32,
        shared: 0,
        cooperative: false,
        grid: Grid::Cover {
            scope: total.scope,
            each: 1,
            per_block: 1,
            times: strips(parts) as u64,
            limit: LIMIT,
        },
    }
}
