//! The text of dot products: loading the weights that stay, and multiplying them in every frame.

use super::dots::{DotGroup, WeightPlace};
use super::layout::SlotPlace;
use super::printer::{PartAt, Printer, with_definitions};
use crate::codegen::cuda::expr::Expr;
use crate::codegen::cuda::index::{self, Variable};
use crate::codegen::cuda::place::{FrameNames, Place};
use crate::codegen::cuda::pointers::element_type;
use rnnc_runtime::plan::{Atom, Elem, Index, Slot};

impl Printer<'_> {
    /// Puts a group's weights where they stay; nothing for those that are read in every frame.
    pub fn load_weights(&self, at: &PartAt, number: usize) -> Vec<String> {
        let group = &at.layout.dots[number];
        match group.weights {
            WeightPlace::Registers => self.load_registers(at, number, group),
            WeightPlace::Shared(offset) => self.load_shared(at, number, group, offset),
            WeightPlace::Global => Vec::new(),
        }
    }

    fn load_registers(&self, at: &PartAt, number: usize, group: &DotGroup) -> Vec<String> {
        let (t, name) = (&group.tile, self.weights(at, number));
        let mut lines = vec![format!(
            "float {name}[{}][{}][{}][{}][{}];",
            t.count,
            t.units,
            t.chunks,
            group.rows(),
            t.vector
        )];
        let rows = self.row_vectors(at, group);
        let numbers = if rows.is_some() { 1 } else { t.vector };
        let loops: Vec<(&str, usize)> = [
            ("tile", t.count),
            ("row", t.units),
            ("chunk", t.chunks),
            ("number", numbers),
        ]
        .into_iter()
        .filter(|(_, n)| *n > 1)
        .collect();
        for (variable, n) in &loops {
            lines.push("#pragma unroll".to_string());
            lines.push(format!("for (int {variable} = 0; {variable} < {n}; ++{variable}) {{"));
        }
        if loops.is_empty() {
            lines.push("{".to_string());
        }
        let [tile, row, chunk, n] = [
            or_0("tile", t.count),
            or_0("row", t.units),
            or_0("chunk", t.chunks),
            or_0("number", numbers),
        ];
        let to = |g: usize| format!("{name}[{tile}][{row}][{chunk}][{g}]");
        let assigned: Vec<String> = match rows {
            Some(rows) => rows
                .iter()
                .enumerate()
                .map(|(g, from)| format!("load_row({}, {from});", to(g)))
                .collect(),
            None => {
                let elements = self.row_elements(at, group, "0.0f");
                elements
                    .iter()
                    .enumerate()
                    .map(|(g, e)| format!("{}[{n}] = {e};", to(g)))
                    .collect()
            }
        };
        let own = self.own_in_tile(at, group, "row");
        let kk = plus_name(&self.first_k(group), "number", numbers);
        lines.extend(with_definitions(
            assigned,
            &[("unit", self.nearest_unit(at, &own)), ("kk", kk)],
        ));
        lines.extend((0..loops.len().max(1)).map(|_| "}".to_string()));
        lines
    }

    /// Where a lane's terms of each row of a group begin, and whether they exist where they may not: if they lie side by
    /// side and aligned, so that one load takes them.
    fn row_vectors(&self, at: &PartAt, group: &DotGroup) -> Option<Vec<String>> {
        let (t, vars) = (&group.tile, row_variables(at, group));
        let exist = if t.row() > group.extent {
            format!(", kk < {}", group.extent)
        } else {
            String::new()
        };
        let vector = t.vector as i64;
        let row = |slot: &usize| match &at.part.slots[*slot] {
            Slot::Dot {
                weight, weight_index, ..
            } if lies_in_vectors(weight_index, vector) => Some(format!(
                "{} + {}{exist}",
                self.cx.pointers.get(*weight),
                index::print(weight_index, &vars).text
            )),
            _ => None,
        };
        let whole = t.vector > 1 && group.extent.is_multiple_of(t.vector);
        if whole {
            group.slots.iter().map(row).collect()
        } else {
            None
        }
    }

    fn load_shared(&self, at: &PartAt, number: usize, group: &DotGroup, offset: usize) -> Vec<String> {
        let (row, units, rows) = (group.tile.row(), group.tile.warp_units(), group.rows());
        let ty = element_type(group.elem);
        let name = self.weights(at, number);
        let shape = self.shape();
        let per_warp = at.layout.slice.per_warp;
        let zero = match group.elem {
            Elem::F32 | Elem::I32 => "0.0f".to_string(),
            Elem::F16 | Elem::Bf16 => format!("{ty}(0.0f)"),
        };
        let mut lines = vec![
            format!(
                "{ty}* const {name} = {};",
                self.pointer(ty, super::places::Memory::Shared(offset))
            ),
            format!(
                "for (int item = threadIdx.x; item < {}; item += {}) {{",
                shape.warps * units * row,
                shape.threads()
            ),
            format!("const int kk = item % {row};"),
            format!("const int own = item / {row};"),
            format!("{ty}* const to = {name} + own * {} + kk;", rows * row),
        ];
        let elements = self.row_elements(at, group, &zero);
        let assign = |(g, element): (usize, &String)| format!("to[{}] = {element};", g * row);
        let assigned: Vec<String> = elements.iter().enumerate().map(assign).collect();
        let unit = self.nearest_unit(at, &format!("own / {units} * {per_warp} + own % {units}"));
        lines.extend(with_definitions(assigned, &[("unit", unit)]));
        lines.push("}".to_string());
        lines
    }

    /// The unit of this number within the block, or the last one there is: rows of padding repeat it.
    fn nearest_unit(&self, at: &PartAt, own: &str) -> String {
        format!("min({}, {})", self.in_block(at.layout.slice, own), at.part.units - 1)
    }

    /// Which of the block's units is unit `row` of the strip's tile at hand.
    fn own_in_tile(&self, at: &PartAt, group: &DotGroup, row: &str) -> String {
        let start = self.tile_start(group);
        let warp = match at.layout.slice.per_warp {
            1 => "warp".to_string(),
            n => format!("warp * {n}"),
        };
        let start = if start == "0" {
            warp
        } else {
            format!("{warp} + {start}")
        };
        own_of_warp(&start, row, group.tile.units)
    }

    /// Which of the warp's units is the first of the strip's tile.
    fn tile_start(&self, group: &DotGroup) -> String {
        let t = &group.tile;
        let strip = match (t.strips(), t.count) {
            (1, 1) => return "0".to_string(),
            (1, _) => "tile".to_string(),
            (_, 1) => format!("lane / {}", t.lanes),
            (strips, _) => format!("(tile * {strips} + lane / {})", t.lanes),
        };
        if t.units == 1 {
            strip
        } else {
            format!("{strip} * {}", t.units)
        }
    }

    /// The first term that a lane takes of a chunk.
    fn first_k(&self, group: &DotGroup) -> String {
        let t = &group.tile;
        let lane = if t.lanes == 32 {
            "lane".to_string()
        } else {
            format!("lane % {}", t.lanes)
        };
        let step = match t.chunks {
            1 => lane,
            _ => format!("chunk * {} + {lane}", t.lanes),
        };
        match (t.vector, t.chunks) {
            (1, _) => step,
            (v, 1) if t.lanes == 32 => format!("{step} * {v}"),
            (v, _) => format!("({step}) * {v}"),
        }
    }

    /// Element (unit, kk) of each row of a group, `zero` past the end.
    fn row_elements(&self, at: &PartAt, group: &DotGroup, zero: &str) -> Vec<String> {
        let vars = row_variables(at, group);
        let none = |_: &_| None;
        let place = Place {
            plan: self.cx.plan,
            pointers: self.cx.pointers,
            vars: &vars,
            frame: FrameNames {
                at: "at".to_string(),
                seq: "seq".to_string(),
                t: None,
            },
            leaf: &none,
            fast_math: self.cx.target.fast_math,
        };
        let element = |slot: &usize| match &at.part.slots[*slot] {
            Slot::Dot {
                weight, weight_index, ..
            } => padded(group, place.element(*weight, None, weight_index).text, zero),
            Slot::Fold { .. } => zero.to_string(),
        };
        group.slots.iter().map(element).collect()
    }

    /// Computes a group in one frame and leaves its sums in the warp's area.
    pub fn multiply(&self, at: &PartAt, number: usize) -> Vec<String> {
        let group = &at.layout.dots[number];
        let t = &group.tile;
        let sums = group.sums(self.shape().sequences);
        let resident = group.weights == WeightPlace::Registers;
        let mut lines = vec![format!("// {}", self.describe(at, group)), "{".to_string()];
        if t.count > 1 {
            lines.push(format!("#pragma unroll{}", if resident { "" } else { " 1" }));
            lines.push(format!("for (int tile = 0; tile < {}; ++tile) {{", t.count));
        }
        lines.push(format!("float sum[{sums}] = {{}};"));
        if t.chunks > 1 {
            lines.push(format!(
                "#pragma unroll{}",
                if resident || t.chunks <= 8 { "" } else { " 4" }
            ));
            lines.push(format!("for (int chunk = 0; chunk < {}; ++chunk) {{", t.chunks));
        } else {
            lines.push("{".to_string());
        }
        lines.extend(self.multiply_chunk(at, number, group));
        lines.push("}".to_string());
        lines.extend(self.keep_sums(at, group, sums));
        if t.count > 1 {
            lines.push("}".to_string());
        }
        lines.push("}".to_string());
        lines
    }

    /// Which product it is, in words.
    fn describe(&self, at: &PartAt, group: &DotGroup) -> String {
        let mut names: Vec<&str> = Vec::new();
        for slot in &group.slots {
            if let Slot::Dot { weight, .. } = &at.part.slots[*slot] {
                let name = self.cx.pointers.get(*weight);
                if !names.contains(&name) {
                    names.push(name);
                }
            }
        }
        let value = &self.looped.values[group.value].name;
        let when = if group.delay == 0 {
            String::new()
        } else {
            format!("[t-{}]", group.delay)
        };
        let place = match group.weights {
            WeightPlace::Registers => "in registers",
            WeightPlace::Shared(_) => "in shared memory",
            WeightPlace::Global => "read again in each frame",
        };
        format!(
            "{} @ {value}{when}: {} rows a unit, weights {place}",
            names.join(", "),
            group.rows()
        )
    }

    fn multiply_chunk(&self, at: &PartAt, number: usize, group: &DotGroup) -> Vec<String> {
        let (t, n) = (&group.tile, self.shape().sequences);
        let row = self.row(group.value);
        let frame = self.frame_of(group.value, group.delay);
        let mut lines = vec![format!("float operand[{n}][{}];", t.vector)];
        if group.dense {
            lines.push(format!("load_rows(operand, {frame} + kk, {row});"));
        } else {
            lines.extend(self.gather_terms(at, group, frame, row));
        }
        if t.units > 1 {
            lines.push("#pragma unroll".to_string());
            lines.push(format!("for (int row = 0; row < {}; ++row) {{", t.units));
            lines.extend(self.multiply_unit(at, number, group, "row"));
            lines.push("}".to_string());
        } else {
            lines.extend(self.multiply_unit(at, number, group, "0"));
        }
        let mut definitions = vec![("kk", self.first_k(group))];
        if !group.dense {
            definitions.push(("unit", self.nearest_unit(at, &self.own_in_tile(at, group, "0"))));
        }
        with_definitions(lines, &definitions)
    }

    /// Terms of a vector that differ from unit to unit, one by one.
    fn gather_terms(&self, at: &PartAt, group: &DotGroup, frame: &str, row: usize) -> Vec<String> {
        let vars = [Variable::new("unit", at.part.units), Variable::new("kk", group.extent)];
        let offset = index::print_within(&Expr::int("column"), row, &group.value_index, &vars);
        let element = format!("{frame}[{}]", offset.text);
        vec![
            "#pragma unroll".to_string(),
            format!("for (int column = 0; column < {}; ++column) {{", self.shape().sequences),
            format!("operand[column][0] = {};", padded(group, element, "0.0f")),
            "}".to_string(),
        ]
    }

    /// Multiplies the rows of unit `row` of the tile.
    fn multiply_unit(&self, at: &PartAt, number: usize, group: &DotGroup, row: &str) -> Vec<String> {
        let (t, rows, name) = (&group.tile, group.rows(), self.weights(at, number));
        let to = match row {
            "0" => "sum".to_string(),
            _ => format!("sum + {row} * {}", rows * self.shape().sequences),
        };
        match group.weights {
            WeightPlace::Registers => {
                let (tile, chunk) = (or_0("tile", t.count), or_0("chunk", t.chunks));
                vec![format!("add_products({to}, {name}[{tile}][{row}][{chunk}], operand);")]
            }
            WeightPlace::Shared(_) => {
                let own = [&format!("warp * {}", t.warp_units()), &self.tile_start(group), row];
                let own: Vec<&str> = own.into_iter().filter(|part| *part != "0").collect();
                let from = format!("{name} + ({}) * {} + kk", own.join(" + "), rows * t.row());
                vec![
                    format!("float factor[{rows}][{}];", t.vector),
                    format!("load_rows(factor, {from}, {});", t.row()),
                    format!("add_products({to}, factor, operand);"),
                ]
            }
            WeightPlace::Global => {
                let elements = self.row_elements(at, group, "0.0f");
                let list: Vec<String> = elements.iter().map(|e| format!("{{{e}}}")).collect();
                let lines = vec![
                    format!("const float factor[{rows}][1] = {{{}}};", list.join(", ")),
                    format!("add_products({to}, factor, operand);"),
                ];
                if !group.dense {
                    return lines;
                }
                let unit = self.nearest_unit(at, &self.own_in_tile(at, group, row));
                with_definitions(lines, &[("unit", unit)])
            }
        }
    }

    /// Adds the lanes' sums up and leaves each where the bodies look for it.
    fn keep_sums(&self, at: &PartAt, group: &DotGroup, sums: usize) -> Vec<String> {
        let (t, n, rows) = (&group.tile, self.shape().sequences, group.rows());
        let slice = at.layout.slice;
        let offset = match at.layout.slots[group.slots[0]] {
            SlotPlace::Own(offset) | SlotPlace::Common(offset) => offset,
        };
        let totals = format!("total_over_lanes<{}>(sum, lane)", t.lanes);
        let each = (sums / t.lanes).max(1);
        let shared_by = t.lanes / sums.min(t.lanes);
        let mut lines = Vec::new();
        if each > 1 {
            lines.push(format!("const int first_sum = {totals};"));
            lines.push("#pragma unroll".to_string());
            lines.push(format!("for (int i = 0; i < {each}; ++i) {{"));
            lines.push("const int number = first_sum + i;".to_string());
        } else {
            lines.push(format!("const int number = {totals};"));
        }
        let start = self.tile_start(group);
        let own = own_of_warp(
            if start == "0" { "" } else { &start },
            &format!("number / {}", rows * n),
            t.units,
        );
        lines.push(format!(
            "const int own = {};",
            if own.is_empty() { "0".to_string() } else { own }
        ));
        let mut tests = Vec::new();
        if shared_by > 1 {
            tests.push(format!("lane % {shared_by} == 0"));
        }
        if t.units * rows * n < sums {
            tests.push(format!("number < {}", t.units * rows * n));
        }
        if t.warp_units() > slice.per_warp {
            tests.push(format!("own < {}", slice.per_warp));
        }
        let (column, row) = (format!("number % {n}"), format!("number / {n} % {rows}"));
        let mut place = format!("{row} * {} + {column} * {} + own", slice.items, slice.per_warp);
        if offset > 0 {
            place = format!("{offset} + {place}");
        }
        let keep = format!("area[{place}] = sum[{}];", or_0("i", each));
        if tests.is_empty() {
            lines.push(keep);
        } else {
            lines.extend([format!("if ({}) {{", tests.join(" && ")), keep, "}".to_string()]);
        }
        if each > 1 {
            lines.push("}".to_string());
        }
        lines
    }
}

/// The variables of an element of a row.
fn row_variables(at: &PartAt, group: &DotGroup) -> [Variable; 2] {
    [Variable::new("unit", at.part.units), Variable::new("kk", group.extent)]
}

/// Whether `vector` neighbouring terms of a row, from a multiple of `vector` on, are neighbours in memory and aligned.
fn lies_in_vectors(index: &Index, vector: i64) -> bool {
    let is_term = |atom: &Atom| *atom == Atom::Var(1);
    index.stride_of(1) == Some(1)
        && index.base % vector == 0
        && index.terms.iter().all(|t| is_term(&t.atom) || t.stride % vector == 0)
}

/// What lies past the end of a row is `zero`.
fn padded(group: &DotGroup, element: String, zero: &str) -> String {
    if group.tile.row() > group.extent {
        format!("kk < {} ? {element} : {zero}", group.extent)
    } else {
        element
    }
}

/// `start + row`, where a tile has several units.
fn own_of_warp(start: &str, row: &str, units: usize) -> String {
    match (units, row, start) {
        (1, _, _) | (_, "0", _) => start.to_string(),
        (_, _, "") => row.to_string(),
        _ => format!("{start} + {row}"),
    }
}

/// `e + name`, where the name can be more than 0.
fn plus_name(e: &str, name: &str, extent: usize) -> String {
    if extent == 1 {
        e.to_string()
    } else {
        format!("{e} + {name}")
    }
}

/// The variable of a loop of so many rounds; one round needs no loop.
fn or_0(variable: &str, rounds: usize) -> &str {
    if rounds == 1 { "0" } else { variable }
}
