//! The text of an exchange: what a phase has set is published by its owners and received by every other block.

use super::layout::{Exchange, IN_FLIGHT, PAYLOAD, Payload, ValuePlace};
use super::printer::{Fixed, Printer, with_definitions};

impl Printer<'_> {
    /// The function that says where number `number` of a warp's words of this phase belongs: how far into a frame of the
    /// ring, for a block that owns the units from 0 on; -1 for padding.
    pub fn destination(&self, phase: usize, exchange: &Exchange) -> Vec<String> {
        let mut lines = vec![
            format!("// Where a number in the words of phase {phase} belongs, for the block of rank 0; -1: nowhere."),
            format!(
                "const auto {} = [](int warp, int number) {{",
                self.fixed(Fixed::Destination, phase)
            ),
        ];
        for (i, payload) in exchange.payloads.iter().enumerate() {
            let last = i + 1 == exchange.payloads.len();
            let end = payload.offset + payload.slice.items;
            let cut = last && end % PAYLOAD == 0;
            if !cut {
                lines.push(format!("if (number < {end}) {{"));
            }
            lines.extend(self.destination_of(payload));
            if !cut {
                lines.push("}".to_string());
            }
            if last && !cut {
                lines.push("return -1;".to_string());
            }
        }
        lines.push("};".to_string());
        lines
    }

    fn destination_of(&self, payload: &Payload) -> Vec<String> {
        let slice = payload.slice;
        let item = match payload.offset {
            0 => "number".to_string(),
            n => format!("(number - {n})"),
        };
        let (own, column) = match slice.per_warp {
            1 => ("warp".to_string(), item),
            n => (format!("warp * {n} + {item} % {n}"), format!("{item} / {n}")),
        };
        let (offset, row) = match self.layout.values[payload.value] {
            ValuePlace::Gathered { offset, row, .. } => (offset, row),
            _ => (0, 0),
        };
        let mut place = format!("{column} * {row} + own");
        if offset > 0 {
            place = format!("{offset} + {place}");
        }
        let value = if slice.per_warp * self.shape().warps > slice.per_block {
            format!("return own < {} ? {place} : -1;", slice.per_block)
        } else {
            format!("return {place};")
        };
        vec![format!("const int own = {own};"), value]
    }

    /// How far a block's units lie from those of the block before, by the number in a word; one text if all agree.
    fn block_step(&self, exchange: &Exchange, number: &str) -> String {
        let mut text = String::new();
        let steps: Vec<usize> = exchange.payloads.iter().map(|p| p.slice.per_block).collect();
        let mut i = 0;
        while i + 1 < steps.len() {
            // Neighbours of equal step need no test between them.
            if steps[i] != steps[i + 1] {
                let end = exchange.payloads[i + 1].offset;
                text.push_str(&format!("{number} < {end} ? {} : ", steps[i]));
            }
            i += 1;
        }
        text.push_str(&steps[steps.len() - 1].to_string());
        text
    }

    /// Publishes the own units' values.
    pub fn publish(&self, phase: usize, exchange: &Exchange) -> Vec<String> {
        let (blocks, words) = (self.shape().blocks, exchange.words);
        let half = format!("words + (epoch % 2 * {blocks} + rank) * {}", self.layout.words);
        let from = self.frame_element(exchange, "from", "rank");
        let destination = self.fixed(Fixed::Destination, phase);
        let mut lines = vec![
            "// Publish: three numbers and their epoch are written at once.".to_string(),
            "__syncwarp();".to_string(),
        ];
        let piece = if words <= 32 {
            lines.push(format!("if (lane < {words}) {{"));
            "lane"
        } else {
            lines.push(format!("for (int piece = lane; piece < {words}; piece += 32) {{"));
            "piece"
        };
        lines.extend([
            "Word word;".to_string(),
            "word.epoch = epoch;".to_string(),
            "#pragma unroll".to_string(),
            "for (int i = 0; i < 3; ++i) {".to_string(),
            format!("const int number = {piece} * 3 + i;"),
            format!("const int from = {destination}(warp, number);"),
            format!("word.number[i] = from < 0 ? 0.0f : {from};"),
            "}".to_string(),
            format!("publish({half} + warp * {words} + {piece}, word);"),
            "}".to_string(),
        ]);
        lines
    }

    /// The element that a word's number goes to or comes from, for the block `owner`.
    fn frame_element(&self, exchange: &Exchange, place: &str, owner: &str) -> String {
        let step = self.block_step(exchange, "number");
        let step = if step.contains('?') { format!("({step})") } else { step };
        format!(
            "{}[{place} + {owner} * {step}]",
            self.fixed(Fixed::Frame, exchange.ring)
        )
    }

    /// Receives what the other blocks have published.
    pub fn receive(&self, phase: usize, exchange: &Exchange) -> Vec<String> {
        let shape = self.shape();
        let words = exchange.words * shape.warps;
        let others = shape.blocks - 1;
        let together = (shape.threads() / words).clamp(1, others);
        let in_flight = others.div_ceil(together).min(IN_FLIGHT);
        let mut lines = vec!["// Receive what the other blocks have set.".to_string()];
        let start = if words >= shape.threads() {
            lines.push("#pragma unroll 1".to_string());
            lines.push(format!(
                "for (int piece = threadIdx.x; piece < {words}; piece += {}) {{",
                shape.threads()
            ));
            "0".to_string()
        } else {
            lines.push(format!("if (threadIdx.x < {}) {{", words * together));
            lines.push(format!("const int piece = threadIdx.x % {words};"));
            format!("(int)threadIdx.x / {words}")
        };
        let half = format!("words + epoch % 2 * {}", shape.blocks * self.layout.words);
        lines.push(format!("const Word* const from = {half} + piece;"));
        let walk = Walk {
            others,
            together,
            in_flight,
        };
        if others > together * in_flight {
            let step = together * in_flight;
            lines.push(format!(
                "for (int start = {start}; start < {others}; start += {step}) {{"
            ));
            lines.extend(self.receive_some(phase, exchange, walk));
            lines.push("}".to_string());
        } else {
            let some = self.receive_some(phase, exchange, walk);
            lines.extend(with_definitions(some, &[("start", start)]));
        }
        lines.push("}".to_string());
        lines
    }

    /// Receives one word of each of some blocks.
    fn receive_some(&self, phase: usize, exchange: &Exchange, walk: Walk) -> Vec<String> {
        let (blocks, words) = (self.shape().blocks, exchange.words);
        let other = match walk.in_flight {
            1 => "start".to_string(),
            _ => format!("start + i * {}", walk.together),
        };
        let owner = if blocks == 2 {
            "1 - rank".to_string()
        } else {
            format!("(rank + 1 + {other}) % {blocks}")
        };
        let all_exist = walk.others.is_multiple_of(walk.together * walk.in_flight);
        let owner = if all_exist {
            owner
        } else {
            format!("{other} < {} ? {owner} : -1", walk.others)
        };
        let (warp, first) = match words {
            1 => ("piece".to_string(), String::new()),
            n => (format!("piece / {n}"), format!("piece % {n} * 3 + ")),
        };
        let n = walk.in_flight;
        let mut lines = vec![
            format!("const auto owner = [&](int i) {{ return {owner}; }};"),
            format!("Word got[{n}];"),
            format!("receive(got, from, {}, epoch, owner);", self.layout.words),
            "#pragma unroll".to_string(),
            format!("for (int i = 0; i < {}; ++i) {{", n * 3),
            format!("const int number = {first}i % 3;"),
            format!(
                "const int to = {}({warp}, number);",
                self.fixed(Fixed::Destination, phase)
            ),
        ];
        let test = if all_exist {
            "to >= 0"
        } else {
            "to >= 0 && owner(i / 3) >= 0"
        };
        lines.extend([
            format!("if ({test}) {{"),
            format!(
                "{} = got[i / 3].number[i % 3];",
                self.frame_element(exchange, "to", "owner(i / 3)")
            ),
            "}".to_string(),
            "}".to_string(),
        ]);
        lines
    }
}

/// How a thread goes through the other blocks.
#[derive(Clone, Copy)]
struct Walk {
    /// How many there are.
    others: usize,
    /// How many threads look at the same word of different blocks.
    together: usize,
    /// How many words a thread asks for at once.
    in_flight: usize,
}
