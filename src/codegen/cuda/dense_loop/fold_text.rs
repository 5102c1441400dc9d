//! The text of slots that are no matrix products: folds, one warp each.

use super::layout::SlotPlace;
use super::printer::{PartAt, Printer, mentions};
use crate::codegen::cuda::expr::Expr;
use crate::codegen::cuda::index::{self, Variable};
use crate::codegen::cuda::place::{FrameNames, Place};
use crate::codegen::cuda::statements::Statements;
use rnnc_runtime::plan::{Body, Reg, Slot, Step};
use rnnc_runtime::scalar::Reduce;

impl Printer<'_> {
    /// The slots of a phase that have one value for all units: tasks of a slot and a sequence, dealt out to the warps.
    pub fn fold_common(&self, phase: usize) -> Vec<String> {
        let common = &self.layout.phases[phase].common;
        let parts = self.parts_of(phase);
        let n = self.shape().sequences;
        let mut lines = vec![
            "// What is the same for all units of a sequence.".to_string(),
            format!(
                "for (int task = warp; task < {}; task += {}) {{",
                common.len() * n,
                self.shape().warps
            ),
            format!("const int column = task % {n};"),
            "const long long seq = first + column;".to_string(),
            "if (seq >= B) {".to_string(),
            "continue;".to_string(),
            "}".to_string(),
            "float folded;".to_string(),
        ];
        for (number, (part, slot)) in common.iter().enumerate() {
            let fold = self.fold(&parts[*part], *slot, "0");
            let last = number + 1 == common.len();
            lines.push(match (number, last) {
                (0, true) => "{".to_string(),
                (0, false) => format!("if (task < {n}) {{"),
                (_, true) => "} else {".to_string(),
                (_, false) => format!("}} else if (task < {}) {{", (number + 1) * n),
            });
            lines.extend(fold);
        }
        lines.push("}".to_string());
        lines.extend(["if (lane == 0) {", "common[task] = folded;", "}", "}"].map(String::from));
        lines
    }

    /// The folds of a part that depend on the unit: each warp those of its own units.
    pub fn fold_own(&self, at: &PartAt) -> Vec<String> {
        let slice = at.layout.slice;
        let mut lines = Vec::new();
        for slot in &at.layout.folds {
            let SlotPlace::Own(offset) = at.layout.slots[*slot] else {
                continue;
            };
            let own = match slice.per_warp {
                1 => "warp".to_string(),
                n => format!("warp * {n} + item % {n}"),
            };
            let mut tests = vec!["seq < B".to_string()];
            if slice.per_warp * self.shape().warps > slice.per_block {
                tests.push(format!("{own} < {}", slice.per_block));
            }
            if slice.per_block * self.shape().blocks > slice.units {
                tests.push(format!("unit < {}", slice.units));
            }
            lines.extend([
                "#pragma unroll 1".to_string(),
                format!("for (int item = 0; item < {}; ++item) {{", slice.items),
                format!("const int column = item / {};", slice.per_warp),
                format!("const int unit = {};", self.in_block(slice, &own)),
                "const long long seq = first + column;".to_string(),
                format!("if ({}) {{", tests.join(" && ")),
                "float folded;".to_string(),
            ]);
            lines.extend(self.fold(at, *slot, "unit"));
            lines.extend([
                "if (lane == 0) {".to_string(),
                format!("area[{offset} + item] = folded;"),
            ]);
            lines.extend(["}", "}", "}"].map(String::from));
        }
        lines
    }

    /// `folded = fold of slot`, at (`unit`, `column`, `seq`), by all lanes of a warp.
    fn fold(&self, at: &PartAt, slot: usize, unit: &str) -> Vec<String> {
        let vars = |extent: usize| [Variable::new(unit, at.part.units), Variable::new("kk", extent)];
        let (op, extent, term) = match &at.part.slots[slot] {
            Slot::Dot { extent, .. } => (
                Reduce::Sum,
                *extent,
                self.dot_term(&at.part.slots[slot], &vars(*extent)),
            ),
            Slot::Fold {
                op,
                extent,
                body,
                result,
            } => (*op, *extent, self.fold_term(at, body, *result, &vars(*extent))),
        };
        let function = match op {
            Reduce::Sum => "fold_sum",
            Reduce::Mean => "fold_mean",
            Reduce::Var => "fold_var",
            Reduce::Max => "fold_max",
            Reduce::Min => "fold_min",
            Reduce::LogSumExp => "fold_logsumexp",
        };
        let mut lines = Vec::new();
        if term.iter().any(|line| mentions(line, "at")) {
            lines.push("const long long at = (long long)t * B + seq;".to_string());
        }
        lines.push(format!("folded = {function}({extent}, lane, [&](int kk) {{"));
        lines.extend(term);
        lines.push("});".to_string());
        lines
    }

    fn dot_term(&self, slot: &Slot, vars: &[Variable]) -> Vec<String> {
        let Slot::Dot {
            weight,
            weight_index,
            value,
            delay,
            value_index,
            ..
        } = slot
        else {
            return Vec::new();
        };
        let place = self.fold_place(vars, &|_| None);
        let weight = place.element(*weight, None, weight_index);
        let frame = self.frame_of(*value, *delay);
        let offset = index::print_within(&Expr::int("column"), self.row(*value), value_index, vars);
        vec![format!("return (float){} * {frame}[{}];", weight.text, offset.text)]
    }

    fn fold_term(&self, at: &PartAt, body: &Body, result: Reg, vars: &[Variable]) -> Vec<String> {
        let leaf = |step: &Step| self.read(step, vars, "column", at.layout.slice);
        let place = self.fold_place(vars, &leaf);
        let mut names = self.names.clone();
        let mut statements = Statements::new(body, &[result]);
        let mut lines = Vec::new();
        statements.define_all(&place, &mut names, &mut lines);
        lines.push(format!("return {};", statements.get(result).as_float().text));
        lines
    }

    fn fold_place<'b>(&'b self, vars: &'b [Variable], leaf: &'b dyn Fn(&Step) -> Option<Expr>) -> Place<'b> {
        Place {
            plan: self.cx.plan,
            pointers: self.cx.pointers,
            vars,
            frame: FrameNames {
                at: "at".to_string(),
                seq: "seq".to_string(),
                t: Some("t".to_string()),
            },
            leaf,
            fast_math: self.cx.target.fast_math,
        }
    }
}
