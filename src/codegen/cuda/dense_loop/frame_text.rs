//! The text of one frame: phase after phase.

use super::layout::ValuePlace;
use super::printer::{BLANK, Fixed, Printer, mentions};

impl Printer<'_> {
    /// One frame.
    pub fn frame(&self) -> Vec<String> {
        let mut work: Vec<String> = Vec::new();
        for phase in 0..self.layout.phases.len() {
            work.extend(self.print_phase(phase));
        }
        work.extend(self.age());
        let mut lines: Vec<String> = self
            .pointers_of_frame()
            .into_iter()
            .filter(|(name, _)| work.iter().any(|line| mentions(line, name)))
            .map(|(_, definition)| definition)
            .collect();
        if work.iter().any(|line| mentions(line, "more")) {
            lines.push(format!("const bool more = t + 1 < T || first + {} < B;", self.step()));
        }
        lines.extend(work);
        lines
    }

    /// How far a group's next tile is.
    fn step(&self) -> String {
        let shape = self.shape();
        let groups = format!("gridDim.x / {}", shape.blocks);
        if shape.sequences == 1 {
            groups
        } else {
            format!("{groups} * {}LL", shape.sequences)
        }
    }

    /// Pointers to values of this frame and earlier ones: names and definitions.
    fn pointers_of_frame(&self) -> Vec<(String, String)> {
        let mut pointers = Vec::new();
        for (number, ring) in self.layout.rings.iter().enumerate() {
            let name = self.fixed(Fixed::Frame, number);
            let place = slot_offset(ring.slots, 0, ring.frame, 0);
            let definition = format!("float* const {name} = {}{place};", self.fixed(Fixed::Ring, number));
            pointers.push((name.to_string(), definition));
        }
        for (value, delay, name) in self.frames() {
            let ValuePlace::Gathered { ring, offset, .. } = self.layout.values[value] else {
                continue;
            };
            let ring_layout = self.layout.rings[ring];
            let place = slot_offset(ring_layout.slots, delay, ring_layout.frame, offset);
            let constant = if delay == 0 { "" } else { "const " };
            let definition = format!(
                "{constant}float* const {name} = {}{place};",
                self.fixed(Fixed::Ring, ring)
            );
            pointers.push((name.to_string(), definition));
        }
        pointers.extend(self.pointers_of_blocks());
        pointers
    }

    fn pointers_of_blocks(&self) -> Vec<(String, String)> {
        let mut pointers = Vec::new();
        for at in self.parts() {
            for (value, _) in &at.part.sets {
                if !matches!(self.layout.values[*value], ValuePlace::Block(_)) {
                    continue;
                }
                let window = self.looped.values[*value].window;
                for delay in 0..=window {
                    let name = self.own_name(*value, delay);
                    let size = at.layout.slice.rounds * self.shape().threads();
                    let place = slot_offset(window + 1, delay, size, 0);
                    let definition = format!("float* const {name} = {}{place};", self.block_name(*value));
                    pointers.push((name, definition));
                }
            }
        }
        pointers
    }

    fn print_phase(&self, number: usize) -> Vec<String> {
        let phase = &self.layout.phases[number];
        let parts = self.parts_of(number);
        let mut lines = vec![BLANK.to_string()];
        if !phase.common.is_empty() {
            lines.extend(self.fold_common(number));
            lines.push("__syncthreads();".to_string());
        }
        let mut stores = Vec::new();
        for at in &parts {
            for group in 0..at.layout.dots.len() {
                lines.extend(self.multiply(at, group));
            }
            lines.extend(self.fold_own(at));
            if !at.layout.dots.is_empty() || !at.layout.folds.is_empty() {
                lines.push("__syncwarp();".to_string());
            }
            let work = self.work(at);
            lines.extend(work.before);
            lines.extend(work.compute);
            stores.extend(work.stores);
        }
        lines.extend(self.exchange_around(number, stores));
        lines.push("__syncthreads();".to_string());
        lines
    }

    /// Publishes first, so that others wait as little as possible; then everything that nobody waits for; then receives.
    fn exchange_around(&self, number: usize, stores: Vec<String>) -> Vec<String> {
        let exchange = self.layout.phases[number]
            .exchange
            .as_ref()
            .filter(|_| self.layout.words > 0);
        let mut quiet = stores;
        for (part, at) in self.parts().iter().enumerate() {
            if at.phase == number && !self.load_next(at).is_empty() {
                quiet.extend([
                    "if (t + 1 < T) {".to_string(),
                    format!("{}(t + 1);", self.fixed(Fixed::LoadAhead, part)),
                    "}".to_string(),
                ]);
            }
        }
        let Some(exchange) = exchange else {
            return quiet;
        };
        let mut lines = vec![BLANK.to_string(), "++epoch;".to_string()];
        // Nobody needs what the last exchange of a launch would bring, unless a phase of the same frame comes after it.
        let last = number + 1 == self.layout.phases.len();
        let guarded = |inner: Vec<String>| {
            let mut all = Vec::new();
            if last {
                all.push("if (more) {".to_string());
            }
            all.extend(inner);
            if last {
                all.push("}".to_string());
            }
            all
        };
        lines.extend(guarded(self.publish(number, exchange)));
        lines.extend(quiet);
        lines.extend(guarded(self.receive(number, exchange)));
        lines
    }
}

/// ` + slot * size + offset` for the slot of `delay` frames ago in a ring of so many.
fn slot_offset(slots: usize, delay: usize, size: usize, offset: usize) -> String {
    let slot = match (slots, delay) {
        (1, _) => String::new(),
        (s, 0) => format!(" + t % {s} * {size}"),
        (s, d) => format!(" + (t + {}) % {s} * {size}", s - d),
    };
    if offset == 0 {
        slot
    } else {
        format!("{slot} + {offset}")
    }
}
