//! What the parts of a loop's text have in common: names, pointers to frames, the items of a thread.

use super::layout::{Layout, PartLayout, ValuePlace};
use super::places::{Memory, Shape, Slice};
use super::slots;
use crate::codegen::cuda::expr::{Expr, Type};
use crate::codegen::cuda::index::{self, Variable};
use crate::codegen::cuda::kernel::Context;
use crate::codegen::cuda::names::{Names, identifier};
use crate::codegen::cuda::place::{FrameNames, Place};
use crate::codegen::cuda::statements::Statements;
use rnnc_runtime::plan::{Index, Launch, Loop, LoopPart, Reg, Step};
use std::collections::{BTreeMap, BTreeSet};

/// Prints the parts of one loop.
pub struct Printer<'a> {
    /// The plan, what its buffers are called, the target.
    pub cx: Context<'a>,
    /// The loop.
    pub looped: &'a Loop,
    /// Where everything is.
    pub layout: &'a Layout,
    /// Names taken at the kernel's outer level.
    pub names: Names,
    /// The pointer to the frame of a gathered value, by value and delay.
    frames: BTreeMap<(usize, usize), String>,
    /// The stem of the names of a value that is not gathered.
    stems: Vec<String>,
    /// The distinct numbers of units, and the names of their items.
    families: Vec<(usize, Item)>,
    /// Names that there are one of a phase, part or ring: by what they are and its number.
    fixed: BTreeMap<(Fixed, usize), String>,
    /// The variables of loads that are kept, by phase, part and step.
    kept: BTreeMap<(usize, usize, usize), Kept>,
    /// The arrays of weights that stay, by phase, part and group.
    weights: BTreeMap<(usize, usize, usize), String>,
}

/// A load that is made ahead of time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// The variable: an array if a thread has several items.
    pub name: String,
    /// What it is.
    pub ty: Type,
}

/// What there is one of in each phase, part or ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fixed {
    /// The memory of a ring.
    Ring,
    /// This frame of a ring.
    Frame,
    /// The function that says where a phase's numbers belong.
    Destination,
    /// The function that loads what a part needs of a later frame.
    LoadAhead,
}

/// The names of a thread's item: `unit`, `seq` and so on, with a number where parts differ in their units.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// Which unit.
    pub unit: String,
    /// Which sequence of the tile.
    pub column: String,
    /// Which sequence.
    pub seq: String,
    /// Whether there is such a unit and sequence.
    pub live: String,
}

impl Item {
    fn new(mut name: impl FnMut(&str) -> String) -> Item {
        Item {
            unit: name("unit"),
            column: name("column"),
            seq: name("seq"),
            live: name("live"),
        }
    }
}

/// Variables of the kernel that are in sight wherever a user's name is used.
const OUTER_NAMES: &str = "rank warp column item seq first next live memory workspace words epoch scratch area common round \
    more task folded";

/// Variables of smaller blocks, in which only buffers have names of the user's.
const INNER_NAMES: &str = "tile chunk own number sum to from got piece owner operand factor first_sum start word i";

/// What a buffer must not be called, or a loop could not reach it.
pub fn own_names() -> impl Iterator<Item = &'static str> {
    OUTER_NAMES.split_whitespace().chain(INNER_NAMES.split_whitespace())
}

impl<'a> Printer<'a> {
    /// Gives everything its name.
    pub fn new(cx: Context<'a>, launch: &Launch, looped: &'a Loop, layout: &'a Layout) -> Printer<'a> {
        let mut names = cx.names(launch);
        names.reserve(OUTER_NAMES.split_whitespace());
        let mut printer = Printer {
            cx,
            looped,
            layout,
            names,
            frames: BTreeMap::new(),
            stems: Vec::new(),
            families: Vec::new(),
            fixed: BTreeMap::new(),
            kept: BTreeMap::new(),
            weights: BTreeMap::new(),
        };
        printer.name_items();
        printer.name_fixed();
        printer.name_values();
        printer.name_loads();
        printer.name_weights();
        printer
    }

    /// The shape of the launch.
    pub fn shape(&self) -> Shape {
        self.layout.shape
    }

    /// All parts with their phase, number and layout.
    pub fn parts(&self) -> Vec<PartAt<'a>> {
        let phases = self.looped.phases.iter().zip(&self.layout.phases).enumerate();
        phases
            .flat_map(|(p, (phase, layout))| {
                let parts = phase.parts.iter().zip(&layout.parts).enumerate();
                parts.map(move |(q, (part, layout))| PartAt {
                    phase: p,
                    number: q,
                    part,
                    layout,
                })
            })
            .collect()
    }

    /// The parts of one phase.
    pub fn parts_of(&self, phase: usize) -> Vec<PartAt<'a>> {
        self.parts().into_iter().filter(|p| p.phase == phase).collect()
    }

    fn name_items(&mut self) {
        for at in self.parts() {
            let units = at.part.units;
            if self.families.iter().any(|(known, _)| *known == units) {
                continue;
            }
            let item = match self.families.len() {
                0 => Item::new(str::to_string),
                n => Item::new(|stem| self.names.unique(&format!("{stem}{}", n + 1))),
            };
            self.families.push((units, item));
        }
    }

    /// The names of a thread's item where the units are divided like this.
    pub fn item(&self, slice: Slice) -> Item {
        let family = self.families.iter().find(|(units, _)| *units == slice.units);
        family.map_or_else(|| Item::new(str::to_string), |(_, item)| item.clone())
    }

    /// The slices that differ in their units.
    pub fn slices(&self) -> Vec<Slice> {
        let units = self.families.iter().map(|(units, _)| *units);
        units.map(|units| Slice::new(units, self.shape())).collect()
    }

    fn name_fixed(&mut self) {
        for ring in 0..self.layout.rings.len() {
            self.fix(Fixed::Ring, ring, "ring");
            self.fix(Fixed::Frame, ring, "frame");
        }
        for phase in 0..self.layout.phases.len() {
            self.fix(Fixed::Destination, phase, "destination");
        }
        for part in 0..self.parts().len() {
            self.fix(Fixed::LoadAhead, part, "load_ahead");
        }
    }

    fn fix(&mut self, what: Fixed, number: usize, stem: &str) {
        let name = self.names.unique(&format!("{stem}{number}"));
        self.fixed.insert((what, number), name);
    }

    /// A name that there is one of a phase, part or ring.
    pub fn fixed(&self, what: Fixed, number: usize) -> &str {
        self.fixed.get(&(what, number)).map_or("", String::as_str)
    }

    fn name_values(&mut self) {
        let mut wanted: BTreeSet<(usize, usize)> = BTreeSet::new();
        for at in self.parts() {
            wanted.extend(slots::slot_reads(at.part).map(|r| (r.value, r.delay)));
            wanted.extend(slots::body_reads(&at.part.body).map(|r| (r.value, r.delay)));
            wanted.extend(at.part.sets.iter().map(|(value, _)| (*value, 0)));
        }
        for (value, place) in self.layout.values.iter().enumerate() {
            let name = identifier(&self.looped.values[value].name);
            if matches!(place, ValuePlace::Gathered { .. }) {
                for (_, delay) in wanted.range((value, 0)..(value + 1, 0)) {
                    let pointer = self.names.unique(&delayed(&name, *delay));
                    self.frames.insert((value, *delay), pointer);
                }
                self.stems.push(name);
            } else {
                let stem = self.free_stem(&name, self.looped.values[value].window);
                self.stems.push(stem);
            }
        }
    }

    /// A stem of which no delayed form is taken.
    fn free_stem(&mut self, name: &str, window: usize) -> String {
        let mut stem = name.to_string();
        let taken = |names: &Names, stem: &str| {
            let mut all = (0..=window).map(|d| delayed(stem, d)).chain([all_frames(stem)]);
            all.any(|name| !names.is_free(&name))
        };
        while taken(&self.names, &stem) {
            stem.push('_');
        }
        let mut all: Vec<String> = (0..=window).map(|d| delayed(&stem, d)).collect();
        all.push(all_frames(&stem));
        self.names.reserve(all.iter().map(String::as_str));
        stem
    }

    fn name_loads(&mut self) {
        for at in self.parts().into_iter().filter(|at| at.layout.kept) {
            let roots: Vec<Reg> = at.part.sets.iter().map(|(_, reg)| *reg).collect();
            let statements = Statements::new(&at.part.body, &roots);
            let item = self.item(at.layout.slice);
            for (step, load) in slots::loads(&at.part.body) {
                if !statements.is_used(Reg(step as u32)) {
                    continue;
                }
                let name = self.names.unique(&self.cx.plan.buffer(load.buffer).name.clone());
                let ty = self.with_place(&at, &item, "t", |place| statements.expr(Reg(step as u32), place).ty);
                self.kept.insert((at.phase, at.number, step), Kept { name, ty });
            }
        }
    }

    fn name_weights(&mut self) {
        for at in self.parts() {
            for group in 0..at.layout.dots.len() {
                let name = self.names.numbered("weights");
                self.weights.insert((at.phase, at.number, group), name);
            }
        }
    }

    /// The array of a group's weights.
    pub fn weights(&self, at: &PartAt, group: usize) -> &str {
        self.weights
            .get(&(at.phase, at.number, group))
            .map_or("weights", String::as_str)
    }

    /// The kept loads of a part: step and variable.
    pub fn kept(&self, at: &PartAt) -> Vec<(usize, &Kept)> {
        let range = (at.phase, at.number, 0)..(at.phase, at.number + 1, 0);
        self.kept
            .range(range)
            .map(|((_, _, step), kept)| (*step, kept))
            .collect()
    }

    /// The element of an array over rounds that belongs to the item at hand.
    pub fn of_round(&self, name: &str, slice: Slice) -> String {
        if slice.rounds == 1 {
            name.to_string()
        } else {
            format!("{name}[round]")
        }
    }

    /// A declaration of such an array, or variable.
    pub fn declare(&self, ty: Type, name: &str, slice: Slice) -> String {
        match (slice.rounds, ty) {
            (1, Type::Float) => format!("float {name} = 0.0f;"),
            (1, _) => format!("{} {name} = 0;", ty.c()),
            (rounds, _) => format!("{} {name}[{rounds}] = {{}};", ty.c()),
        }
    }

    /// Where a value that is not gathered is kept, by the thread at hand.
    pub fn own_value(&self, value: usize, delay: usize, slice: Slice) -> Expr {
        let name = delayed(&self.stems[value], delay);
        match self.layout.values[value] {
            ValuePlace::Block(_) => Expr::float(format!(
                "{name}[{}threadIdx.x]",
                if slice.rounds == 1 {
                    String::new()
                } else {
                    format!("round * {} + ", self.shape().threads())
                }
            )),
            _ => Expr::float(self.of_round(&name, slice)),
        }
    }

    /// The memory of a value that its thread keeps in the block's memory.
    pub fn block_name(&self, value: usize) -> String {
        all_frames(&self.stems[value])
    }

    /// The name of a value that is not gathered, of so many frames ago.
    pub fn own_name(&self, value: usize, delay: usize) -> String {
        delayed(&self.stems[value], delay)
    }

    /// The pointer to a gathered value's frame.
    pub fn frame_of(&self, value: usize, delay: usize) -> &str {
        self.frames.get(&(value, delay)).map_or("frame", String::as_str)
    }

    /// All pointers to frames: value, delay, name.
    pub fn frames(&self) -> impl Iterator<Item = (usize, usize, &str)> {
        self.frames
            .iter()
            .map(|((value, delay), name)| (*value, *delay, name.as_str()))
    }

    /// Floats of a sequence of a gathered value.
    pub fn row(&self, value: usize) -> usize {
        match self.layout.values[value] {
            ValuePlace::Gathered { row, .. } => row,
            _ => 0,
        }
    }

    /// A value as the steps of a part's body, or of a fold, read it.
    pub fn read(&self, step: &Step, vars: &[Variable], column: &str, slice: Slice) -> Option<Expr> {
        let Step::Value { value, delay, index } = step else {
            return None;
        };
        Some(match self.layout.values[*value] {
            ValuePlace::Gathered { row, .. } => self.element(self.frame_of(*value, *delay), column, row, index, vars),
            _ => self.own_value(*value, *delay, slice),
        })
    }

    /// `frame[column * row + index]`
    fn element(&self, frame: &str, column: &str, row: usize, i: &Index, vars: &[Variable]) -> Expr {
        let column = if self.shape().sequences == 1 { "0" } else { column };
        let offset = index::print_within(&Expr::int(column), row, i, vars);
        Expr::float(format!("{frame}[{}]", offset.text))
    }

    /// Calls with the place where a part's body is evaluated at frame `t`: the name of the frame's number.
    pub fn with_place<R>(&self, at: &PartAt, item: &Item, t: &str, run: impl FnOnce(&Place) -> R) -> R {
        let vars = [Variable::new(item.unit.clone(), at.part.units)];
        let slice = at.layout.slice;
        let leaf = |step: &Step| match step {
            Step::Slot(slot) => Some(self.slot(at, *slot, item)),
            _ => self.read(step, &vars, &item.column, slice),
        };
        run(&Place {
            plan: self.cx.plan,
            pointers: self.cx.pointers,
            vars: &vars,
            frame: FrameNames {
                at: "at".to_string(),
                seq: item.seq.clone(),
                t: Some(t.to_string()),
            },
            leaf: &leaf,
            fast_math: self.cx.target.fast_math,
        })
    }

    fn slot(&self, at: &PartAt, slot: usize, item: &Item) -> Expr {
        use super::layout::SlotPlace;
        Expr::float(match at.layout.slots[slot] {
            SlotPlace::Own(offset) => format!("area[{}]", plus(number_name(at.layout.slice), offset)),
            SlotPlace::Common(offset) => format!("common[{}]", plus(&item.column, offset)),
        })
    }

    /// Lines that a thread runs for each of its items. With one item a thread its names are known already.
    pub fn for_items(&self, slice: Slice, unrolled: bool, lines: Vec<String>) -> Vec<String> {
        if slice.rounds == 1 {
            return lines;
        }
        let mut all = Vec::new();
        all.push(format!("#pragma unroll{}", if unrolled { "" } else { " 1" }));
        all.push(format!("for (int round = 0; round < {}; ++round) {{", slice.rounds));
        all.extend(self.item_lines(slice, "round * 32 + lane"));
        all.extend(lines);
        all.push("}".to_string());
        all
    }

    /// Defines the names of an item: `item` itself only where a thread has several.
    pub fn item_lines(&self, slice: Slice, number: &str) -> Vec<String> {
        let item = self.item(slice);
        let (column, own) = match slice.per_warp {
            1 => (number_name(slice).to_string(), "warp".to_string()),
            n => (
                format!("{} / {n}", number_name(slice)),
                format!("warp * {n} + {} % {n}", number_name(slice)),
            ),
        };
        let mut lines = Vec::new();
        if slice.rounds > 1 {
            lines.push(format!("const int item = {number};"));
        }
        lines.push(format!("const int {} = {column};", item.column));
        lines.push(format!("const int {} = {};", item.unit, self.in_block(slice, &own)));
        lines.push(format!("const long long {} = first + {};", item.seq, item.column));
        lines.push(format!("const bool {} = {};", item.live, self.live(slice, &item, &own)));
        lines
    }

    /// The unit whose number within the block is `own`.
    pub fn in_block(&self, slice: Slice, own: &str) -> String {
        match self.shape().blocks {
            1 => own.to_string(),
            _ => format!("rank * {} + {own}", slice.per_block),
        }
    }

    fn live(&self, slice: Slice, item: &Item, own: &str) -> String {
        let shape = self.shape();
        let mut tests = Vec::new();
        if !slice.items.is_multiple_of(32) {
            tests.push(format!("{} < {}", number_name(slice), slice.items));
        }
        if slice.per_warp * shape.warps > slice.per_block {
            tests.push(format!("{own} < {}", slice.per_block));
        }
        if slice.per_block * shape.blocks > slice.units {
            tests.push(format!("{} < {}", item.unit, slice.units));
        }
        tests.push(format!("{} < B", item.seq));
        tests.join(" && ")
    }

    /// The expression of a region's first byte, as a pointer to `ty`.
    pub fn pointer(&self, ty: &str, memory: Memory) -> String {
        let (base, offset) = match memory {
            Memory::Shared(offset) => ("memory", offset),
            Memory::Scratch(offset) => ("scratch", offset),
        };
        match offset {
            0 => format!("({ty}*){base}"),
            _ => format!("({ty}*)({base} + {})", offset / 16),
        }
    }
}

/// A line of code that is empty.
pub const BLANK: &str = "\n";

/// A part and where it stands.
#[derive(Clone, Copy)]
pub struct PartAt<'a> {
    /// Which phase.
    pub phase: usize,
    /// Which part of it.
    pub number: usize,
    /// The part.
    pub part: &'a LoopPart,
    /// Its layout.
    pub layout: &'a PartLayout,
}

/// What an item's number is called: with one item a lane, the lane.
fn number_name(slice: Slice) -> &'static str {
    if slice.rounds == 1 { "lane" } else { "item" }
}

/// `h_now`, `h_t1`, `h_t2`: a value of so many frames ago.
fn delayed(name: &str, delay: usize) -> String {
    match delay {
        0 => format!("{name}_now"),
        d => format!("{name}_t{d}"),
    }
}

/// `h_all`: memory for all kept frames of a value.
fn all_frames(name: &str) -> String {
    format!("{name}_all")
}

/// `name + n`
pub fn plus(name: &str, n: usize) -> String {
    if n == 0 {
        name.to_string()
    } else {
        format!("{name} + {n}")
    }
}

/// Lines with definitions of those `int` variables in front that they mention; a later one may use an earlier one.
pub fn with_definitions(lines: Vec<String>, definitions: &[(&str, String)]) -> Vec<String> {
    let mut all = lines;
    for (name, value) in definitions.iter().rev() {
        if all.iter().any(|line| mentions(line, name)) {
            all.insert(0, format!("const int {name} = {value};"));
        }
    }
    all
}

/// Whether code mentions an identifier.
pub fn mentions(code: &str, name: &str) -> bool {
    code.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
        .any(|word| word == name)
}
