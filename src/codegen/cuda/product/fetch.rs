//! The reads of a slice: which part of k it is, the operand's elements there, the weights of the tile's rows. Where the
//! segments' weights lie alike, one read serves all of them, from a pointer that the segment chooses.

use super::tile::{DEPTH, Tile};
use crate::codegen::cuda::index::{self, Variable};
use crate::codegen::cuda::kernel::{Context, letter, needed};
use crate::codegen::cuda::names::Names;
use crate::codegen::cuda::place::{FrameNames, Place};
use crate::codegen::cuda::pointers::element_type;
use crate::codegen::cuda::statements::Statements;
use rnnc_runtime::plan::{Index, Product, ProductOperand, Scope, Weight};

/// Whether threads lie along k when they read weights; else along the rows.
pub fn weights_along_k(product: &Product) -> bool {
    let weights = product.segments.iter().flat_map(|s| &s.weights);
    let (k, row) = weights.fold((0, 0), |(k, row), w| {
        (
            k + i64::from(w.k_stride.abs() == 1),
            row + i64::from(w.row_stride.abs() == 1),
        )
    });
    k >= row
}

/// The copy at hand: `at` where there are frames, `seq` where there are only sequences.
pub fn frame_names(scope: Scope) -> FrameNames {
    let at = if scope == Scope::Frame { "at" } else { "seq" };
    FrameNames {
        at: at.to_string(),
        seq: "seq".to_string(),
        t: None,
    }
}

/// Declares the copy at hand, `copy` copies into the tile, as far as the code needs it.
pub fn copy_lines(scope: Scope, copy: &str, code: &[String]) -> Vec<String> {
    let lines = match scope {
        Scope::Frame => vec![
            format!("const long long at = first_copy + {copy};"),
            "const long long seq = at % B;".to_string(),
        ],
        _ => vec![format!("const long long seq = first_copy + {copy};")],
    };
    needed(lines, &code.join("\n"))
}

/// The reads of slice `slice`.
pub fn print(context: &Context, product: &Product, tile: Tile, names: &Names) -> Vec<String> {
    let mut lines = Vec::new();
    let mut first = 0;
    for (part, operand) in product.operands.iter().enumerate() {
        let slices = operand.extent.div_ceil(DEPTH);
        let (start, end) = (first, first + slices);
        first = end;
        let several = product.operands.len() > 1;
        if several {
            let is_last = part + 1 == product.operands.len();
            let test = if is_last {
                String::new()
            } else {
                format!("if (slice < {end}) ")
            };
            let or = if part == 0 { "" } else { "} else " };
            lines.push(format!("{or}{test}{{"));
        }
        lines.extend(fetch_part(context, product, operand, part, start, tile, names));
    }
    if product.operands.len() > 1 {
        lines.push("}".to_string());
    }
    lines
}

fn fetch_part(
    context: &Context,
    product: &Product,
    operand: &ProductOperand,
    part: usize,
    first_slice: usize,
    tile: Tile,
    names: &Names,
) -> Vec<String> {
    let base = match first_slice {
        0 => format!("slice * {DEPTH}"),
        n => format!("(slice - {n}) * {DEPTH}"),
    };
    let mut names = names.clone();
    let users: Vec<&str> = operand.body.names.iter().map(|(_, n)| n.as_str()).collect();
    let k = Variable::new(letter("k n c", &users, &mut names), operand.extent);
    let mut lines = vec![format!("const int {} = {base} + thread % {DEPTH};", k.name)];
    lines.extend(operand_lines(context, product, operand, tile, &k, &mut names));
    lines.extend(weight_lines(context, product, part, tile, &k, &base));
    lines
}

fn operand_lines(
    context: &Context,
    product: &Product,
    operand: &ProductOperand,
    tile: Tile,
    k: &Variable,
    names: &mut Names,
) -> Vec<String> {
    let place = Place {
        plan: context.plan,
        pointers: context.pointers,
        vars: std::slice::from_ref(k),
        frame: frame_names(product.scope),
        leaf: &|_| None,
        fast_math: context.target.fast_math,
    };
    let mut statements = Statements::new(&operand.body, &[operand.result]);
    let mut body = Vec::new();
    statements.define_all(&place, names, &mut body);
    let result = statements.get(operand.result).as_float();
    let exists = exists(k);
    let value = match (&exists, body.is_empty()) {
        (Some(test), true) => format!(
            "operand_next[i] = {test} ? {} : 0.0f;",
            result.within(crate::codegen::cuda::expr::Prec::And)
        ),
        _ => format!("operand_next[i] = {};", result.text),
    };
    if let (Some(test), false) = (exists, body.is_empty()) {
        body.insert(0, format!("if ({test}) {{"));
        body.insert(0, "operand_next[i] = 0.0f;".to_string());
        body.extend([value, "}".to_string()]);
    } else {
        body.push(value);
    }
    let copy = format!("min({}, last_copy)", spread(tile, DEPTH));
    let mut inside = copy_lines(product.scope, &copy, &body);
    inside.extend(body);
    unrolled(tile.operand_each(), inside)
}

/// The condition that element k of the operand exists, where it may not.
fn exists(k: &Variable) -> Option<String> {
    (!k.extent.is_multiple_of(DEPTH)).then(|| format!("{} < {}", k.name, k.extent))
}

fn weight_lines(
    context: &Context,
    product: &Product,
    part: usize,
    tile: Tile,
    k: &Variable,
    base: &str,
) -> Vec<String> {
    let along_k = weights_along_k(product);
    let mut inside = Vec::new();
    let last = if product.segments.iter().all(|s| s.rows % tile.rows == 0) {
        String::new()
    } else if let [only] = product.segments.as_slice() {
        (only.rows - 1).to_string()
    } else {
        "rows - 1".to_string()
    };
    let row = format!("first_row + {}", weight_row(tile, along_k));
    let row = if last.is_empty() {
        row
    } else {
        format!("min({row}, {last})")
    };
    inside.push(format!("const int row = {row};"));
    let column = if along_k {
        k.clone()
    } else {
        Variable::new("kk", k.extent)
    };
    if !along_k {
        inside.push(format!("const int kk = {base} + {};", weight_k(tile, along_k)));
    }
    let rows = product.segments.iter().map(|s| s.rows).max().unwrap_or(1);
    let vars = [Variable::new("row", rows), column.clone()];
    let read = |pointer: &str, index: &Index| {
        let element = format!("{pointer}[{}]", index::print(index, &vars).text);
        match exists(&column) {
            Some(test) => format!("weight_next[i] = {test} ? {element} : 0.0f;"),
            None => format!("weight_next[i] = {element};"),
        }
    };
    let weights: Vec<Weight> = product.segments.iter().map(|s| s.weights[part]).collect();
    let mut lines = Vec::new();
    if let Some((declaration, index)) = shared_weights(context, &weights) {
        lines.push(declaration);
        inside.push(read("weights", &index));
    } else {
        let reads = weights
            .iter()
            .map(|w| vec![read(context.pointers.get(w.buffer), &w.index())]);
        inside.extend(by_segment(reads.collect()));
    }
    lines.extend(unrolled(tile.weight_each(), inside));
    lines
}

/// Where several segments' weights lie alike: the declaration of `weights`, where the tile's own begin, and an element's
/// index from there.
fn shared_weights(context: &Context, weights: &[Weight]) -> Option<(String, Index)> {
    let first = weights.first()?;
    let elem = |w: &Weight| context.plan.buffer(w.buffer).elem;
    let alike = |w: &Weight| (w.row_stride, w.k_stride, elem(w)) == (first.row_stride, first.k_stride, elem(first));
    if weights.len() == 1 || !weights.iter().all(alike) {
        return None;
    }
    let start = start_of(context, weights);
    let declaration = format!("const {}* const weights = {start};", element_type(elem(first)));
    Some((declaration, Weight { offset: 0, ..*first }.index()))
}

/// The address of the first weight of the tile's segment.
fn start_of(context: &Context, weights: &[Weight]) -> String {
    let from = |buffer, offset: &str| match offset {
        "0" => context.pointers.get(buffer).to_string(),
        _ => format!("{} + {offset}", context.pointers.get(buffer)),
    };
    let [first, second, ..] = weights else {
        return String::new();
    };
    let step = second.offset - first.offset;
    let regular = |(i, w): (usize, &Weight)| w.buffer == first.buffer && w.offset == first.offset + step * i as i64;
    if weights.iter().enumerate().all(regular) {
        let index = Index::var(0).times(step).plus(first.offset);
        return from(
            first.buffer,
            &index::print(&index, &[Variable::new("segment", weights.len())]).text,
        );
    }
    choose(
        weights.len(),
        &|i| from(weights[i].buffer, &index::constant(weights[i].offset).text),
        &|i| format!("segment == {i}"),
    )
}

/// The value of the first of `count` cases whose test holds; the last needs none.
pub fn choose(count: usize, value: &dyn Fn(usize) -> String, test: &dyn Fn(usize) -> String) -> String {
    let last = count - 1;
    let cases: String = (0..last).map(|i| format!("{} ? {} : ", test(i), value(i))).collect();
    format!("{cases}{}", value(last))
}

/// The row within the tile that a thread reads or puts in round `i`.
pub fn weight_row(tile: Tile, along_k: bool) -> String {
    match along_k {
        true => spread(tile, DEPTH),
        false => format!("thread % {}", tile.rows),
    }
}

/// The element of k within the slice that a thread reads or puts in round `i`.
pub fn weight_k(tile: Tile, along_k: bool) -> String {
    match along_k {
        true => format!("thread % {DEPTH}"),
        false => spread(tile, tile.rows),
    }
}

/// `thread / across + i * ...`: the slower coordinate of a thread's i-th element where the faster has `across` values.
pub fn spread(tile: Tile, across: usize) -> String {
    format!("thread / {across} + i * {}", tile.threads() / across)
}

/// Statements that depend on the tile's segment.
pub fn by_segment(mut cases: Vec<Vec<String>>) -> Vec<String> {
    if cases.len() == 1 {
        return cases.remove(0);
    }
    let mut lines = Vec::new();
    let last = cases.len() - 1;
    for (i, case) in cases.into_iter().enumerate() {
        lines.push(match i {
            0 => "if (segment == 0) {".to_string(),
            _ if i == last => "} else {".to_string(),
            _ => format!("}} else if (segment == {i}) {{"),
        });
        lines.extend(case);
    }
    lines.push("}".to_string());
    lines
}

fn unrolled(rounds: usize, inside: Vec<String>) -> Vec<String> {
    let mut lines = vec![
        "#pragma unroll".to_string(),
        format!("for (int i = 0; i < {rounds}; ++i) {{"),
    ];
    lines.extend(inside);
    lines.push("}".to_string());
    lines
}
