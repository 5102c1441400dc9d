//! The text before the frames: where things are, weights that stay, the windows before the first frame.

use super::layout::ValuePlace;
use super::printer::{BLANK, Fixed, Printer, mentions, plus, with_definitions};
use rnnc_runtime::plan::LoopValue;

/// Before loops that run once: unrolling them would only cost time to compile.
const ROLLED: &str = "#pragma unroll 1";

impl Printer<'_> {
    /// Once a launch.
    pub fn setup(&self) -> Vec<String> {
        let mut rest = self.setup_weights();
        rest.extend(self.setup_rings());
        rest.extend(self.setup_destinations());
        rest.extend(self.declare_values());
        for at in self.parts() {
            rest.extend(self.declare_loads(&at));
        }
        let mut lines = self.setup_places();
        lines.extend(rest);
        lines.push("__syncthreads();".to_string());
        lines
    }

    /// Who this thread is, and where its block's memory is.
    fn setup_places(&self) -> Vec<String> {
        let layout = self.layout;
        let blocks = layout.shape.blocks;
        let mut lines = Vec::new();
        if layout.shared > 0 {
            lines.push("extern __shared__ uint4 memory[];".to_string());
        }
        lines.push("const int lane = threadIdx.x % 32;".to_string());
        lines.push("const int warp = threadIdx.x / 32;".to_string());
        if blocks > 1 {
            lines.push(format!("const int rank = blockIdx.x % {blocks};"));
            lines.push(format!("const int group = blockIdx.x / {blocks};"));
        } else {
            lines.push("const int group = blockIdx.x;".to_string());
        }
        let group = format!("workspace + group * {}LL", layout.group_bytes() / 16);
        if layout.words > 0 {
            lines.push(format!("Word* const words = (Word*)({group});"));
        }
        if layout.scratch > 0 {
            let mut place = plus(&group, layout.word_bytes() / 16);
            if blocks > 1 {
                place = format!("{place} + rank * {}", layout.scratch / 16);
            }
            lines.push(format!("uint4* const scratch = {place};"));
        }
        if layout.area > 0 {
            let sums = self.pointer("float", layout.sums);
            let own = if layout.shape.warps > 1 {
                format!(" + warp * {}", layout.area)
            } else {
                String::new()
            };
            lines.push(format!("float* const area = {sums}{own};"));
        }
        if layout.phases.iter().any(|p| !p.common.is_empty()) {
            lines.push(format!(
                "float* const common = {};",
                self.pointer("float", layout.common)
            ));
        }
        lines
    }

    fn setup_weights(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for at in self.parts() {
            for group in 0..at.layout.dots.len() {
                lines.extend(self.load_weights(&at, group));
            }
        }
        if !lines.is_empty() {
            lines.insert(0, "// Weights of the own rows stay for all frames.".to_string());
            lines.insert(0, BLANK.to_string());
        }
        lines
    }

    /// Memory of values. It starts as zeros: padding is multiplied too.
    fn setup_rings(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for (number, ring) in self.layout.rings.iter().enumerate() {
            let ring_name = self.fixed(Fixed::Ring, number);
            let names: Vec<&str> = self.ring_values(number).map(|(_, v)| v.name.as_str()).collect();
            lines.extend([
                BLANK.to_string(),
                format!(
                    "// The last {} frames of {}, of all units; padding stays 0.",
                    ring.slots,
                    names.join(", ")
                ),
                format!("float* const {ring_name} = {};", self.pointer("float", ring.memory)),
                ROLLED.to_string(),
                format!(
                    "for (int item = threadIdx.x; item < {}; item += {}) {{",
                    ring.slots * ring.frame,
                    self.shape().threads()
                ),
                format!("{ring_name}[item] = 0.0f;"),
                "}".to_string(),
            ]);
        }
        for (value, place) in self.layout.values.iter().enumerate() {
            if let (ValuePlace::Block(memory), true) = (place, self.is_kept_value(value)) {
                lines.push(format!(
                    "float* const {} = {};",
                    self.block_name(value),
                    self.pointer("float", *memory)
                ));
            }
        }
        lines
    }

    /// The values of a ring.
    fn ring_values(&self, number: usize) -> impl Iterator<Item = (usize, &LoopValue)> {
        self.looped.values.iter().enumerate().filter(
            move |(value, _)| matches!(self.layout.values[*value], ValuePlace::Gathered { ring, .. } if ring == number),
        )
    }

    fn setup_destinations(&self) -> Vec<String> {
        if self.layout.words == 0 {
            return Vec::new();
        }
        let mut lines = vec![BLANK.to_string()];
        for (number, phase) in self.layout.phases.iter().enumerate() {
            if let Some(exchange) = &phase.exchange {
                lines.extend(self.destination(number, exchange));
            }
        }
        lines
    }

    /// Once a tile of sequences.
    pub fn start(&self) -> Vec<String> {
        let mut windows = Vec::new();
        for (number, ring) in self.layout.rings.iter().enumerate() {
            for (value, info) in self.ring_values(number) {
                windows.extend(self.start_gathered(value, info, number, ring.slots, ring.frame));
            }
        }
        let mut rest = Vec::new();
        for at in self.parts() {
            rest.extend(self.start_own(&at));
            rest.extend(self.load_still(&at));
        }
        let mut functions = Vec::new();
        for (number, at) in self.parts().iter().enumerate() {
            let loads = self.load_next(at);
            if !loads.is_empty() {
                functions.push("// Loads what a frame needs, before it is needed.".to_string());
                let name = self.fixed(Fixed::LoadAhead, number);
                functions.push(format!("const auto {name} = [&](int next) {{"));
                functions.extend(loads);
                functions.push("};".to_string());
                rest.push(format!("{name}(0);"));
            }
        }
        let used = |item: &super::printer::Item| {
            let frame = self.frame();
            let all = || functions.iter().chain(&rest).chain(&frame);
            [&item.unit, &item.column, &item.live, &item.seq].map(|name| all().any(|line| mentions(line, name)))
        };
        let mut lines = windows;
        for slice in self.slices().into_iter().filter(|s| s.rounds == 1) {
            let item = self.item(slice);
            if used(&item).contains(&true) {
                lines.extend(self.item_lines(slice, "lane"));
            }
        }
        lines.extend(functions);
        lines.extend(rest);
        lines.push("__syncthreads();".to_string());
        lines
    }

    /// Copies the frames before the first into a ring.
    fn start_gathered(&self, value: usize, info: &LoopValue, ring: usize, slots: usize, frame: usize) -> Vec<String> {
        let (Some(initial), ValuePlace::Gathered { offset, row, .. }) = (info.initial, self.layout.values[value])
        else {
            return Vec::new();
        };
        if info.window == 0 {
            return Vec::new();
        }
        let column = if self.shape().sequences == 1 {
            String::new()
        } else {
            format!(" + column * {row}")
        };
        let copies = (1..=info.window).map(|delay| {
            let place = (slots - delay) * frame + offset;
            let e = self.initial(initial, delay, "unit", "seq", info.extent);
            format!(
                "{}[{place}{column} + unit] = seq < B ? {e} : 0.0f;",
                self.fixed(Fixed::Ring, ring)
            )
        });
        let mut lines = vec![
            format!("// The frames of {} before the first.", info.name),
            ROLLED.to_string(),
            format!(
                "for (int item = threadIdx.x; item < {}; item += {}) {{",
                info.extent * self.shape().sequences,
                self.shape().threads()
            ),
        ];
        let definitions = [
            ("column", format!("item / {}", info.extent)),
            ("unit", format!("item % {}", info.extent)),
        ];
        let mut inner = vec![match self.shape().sequences {
            1 => "const long long seq = first;".to_string(),
            _ => "const long long seq = first + column;".to_string(),
        }];
        inner.extend(copies);
        lines.extend(with_definitions(inner, &definitions));
        lines.push("}".to_string());
        lines
    }
}
