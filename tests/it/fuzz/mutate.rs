//! How a text of the corpora is changed: gently, so that many results still compile; by tokens and lines; by bytes.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

/// The corpora, cut into tokens.
pub struct Mutator {
    texts: Vec<Vec<u8>>,
    tokens: Vec<Vec<String>>,
    /// Texts that are well-formed as they stand.
    good: Vec<usize>,
}

/// Functions of one value, which may stand for one another without harm to types.
const UNARY: [&str; 16] = [
    "exp",
    "log",
    "sqrt",
    "abs",
    "tanh",
    "sigmoid",
    "relu",
    "softplus",
    "logsigmoid",
    "gelu",
    "silu",
    "sin",
    "erf",
    "hard_sigmoid",
    "stop_gradient",
    "floor",
];

/// Tokens from everywhere in the language.
const SPICE: [&str; 44] = [
    "+",
    "-",
    "*",
    "/",
    "@",
    "^",
    "==",
    "<",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ",",
    "=",
    ":",
    ".",
    "cell",
    "fn",
    "state",
    "param",
    "input",
    "output",
    "dim",
    "static",
    "return",
    "backward",
    "stack",
    "index",
    "split",
    "concat",
    "sum",
    "einsum",
    "reshape",
    "expand",
    "where",
    "softmax",
    "layer_norm",
    "[t-1]",
    "[t+1]",
    "\"i j -> j\"",
    "99999999999999999999",
    "\u{3b1}",
];

/// Numbers that often matter.
const NUMBERS: [&str; 10] = [
    "0",
    "1",
    "2",
    "3",
    "7",
    "64",
    "1e-5",
    "1e300",
    "2147483647",
    "9223372036854775807",
];

impl Mutator {
    /// A mutator of these texts.
    pub fn new(texts: Vec<Vec<u8>>) -> Mutator {
        let tokens = texts
            .iter()
            .map(|text| tokens(&String::from_utf8_lossy(text)))
            .collect();
        let good = |text: &[u8]| !rnnc::syntax::parse(text).1.has_errors();
        let good = (0..texts.len()).filter(|&n| good(&texts[n])).collect();
        Mutator { texts, tokens, good }
    }

    /// A new text.
    pub fn text(&self, random: &mut ChaCha8Rng) -> Vec<u8> {
        let gentle = random.random_bool(0.5);
        let base = if gentle {
            *pick(random, &self.good)
        } else {
            random.random_range(0..self.texts.len())
        };
        let mut text = self.tokens[base].clone();
        for _ in 0..random.random_range(1..6) {
            if gentle {
                soften(random, &mut text);
            } else {
                self.shuffle(random, &mut text);
            }
        }
        let mut bytes = text.concat().into_bytes();
        if !gentle && random.random_bool(0.4) {
            for _ in 0..random.random_range(1..5) {
                damage(random, &mut bytes);
            }
        }
        bytes
    }

    /// One change of tokens or lines, often a fatal one.
    fn shuffle(&self, random: &mut ChaCha8Rng, text: &mut Vec<String>) {
        let other = pick(random, &self.tokens);
        if text.is_empty() || other.is_empty() {
            text.push((*pick(random, &SPICE)).to_string());
            return;
        }
        let at = random.random_range(0..text.len());
        let elsewhere = random.random_range(0..text.len());
        match random.random_range(0..9) {
            0 => text.swap(at, elsewhere),
            1 => drop(text.remove(at)),
            2 => text.insert(at, text[elsewhere].clone()),
            3 => text[at] = pick(random, other).clone(),
            4 => text[at] = (*pick(random, &SPICE)).to_string(),
            5 => text.insert(at, (*pick(random, &SPICE)).to_string()),
            6 => {
                let from = random.random_range(0..other.len());
                let to = (from + random.random_range(1..30)).min(other.len());
                text.splice(at..at, other[from..to].iter().cloned());
            }
            7 => {
                let to = (at + random.random_range(1..30)).min(text.len());
                text.drain(at..to);
            }
            _ => {
                let from = random.random_range(0..other.len());
                text.truncate(at);
                text.extend_from_slice(&other[from..]);
            }
        }
        text.truncate(20_000);
    }
}

/// One change after which most texts still have a meaning: another function, operator, number, delay or name of the same
/// kind, or lines in another order.
fn soften(random: &mut ChaCha8Rng, text: &mut Vec<String>) {
    match random.random_range(0..7) {
        0 | 1 => replace(random, text, |t| UNARY.contains(&t), &UNARY),
        2 => replace(random, text, |t| matches!(t, "+" | "-"), &["+", "-", "*"]),
        3 => replace(random, text, |t| t.starts_with(|c: char| c.is_ascii_digit()), &NUMBERS),
        4 => delay(random, text),
        5 => rename(random, text),
        _ => swap_lines(random, text),
    }
}

/// Replaces one token of a kind.
fn replace(random: &mut ChaCha8Rng, text: &mut [String], is_kind: impl Fn(&str) -> bool, by: &[&str]) {
    let places: Vec<usize> = (0..text.len()).filter(|&n| is_kind(&text[n])).collect();
    if !places.is_empty() {
        text[*pick(random, &places)] = (*pick(random, by)).to_string();
    }
}

/// Changes a delay: the number behind `[`, `t`, `-`.
fn delay(random: &mut ChaCha8Rng, text: &mut [String]) {
    let is_delay = |n: &usize| text[*n] == "t" && text[n - 1] == "[" && matches!(text[n + 1].as_str(), "-" | "+");
    let places: Vec<usize> = (1..text.len().saturating_sub(2)).filter(is_delay).collect();
    if !places.is_empty() {
        let at = *pick(random, &places);
        text[at + 2] = (*pick(random, &["1", "1", "2", "3", "5", "1000"])).to_string();
        text[at + 1] = (*pick(random, &["-", "-", "-", "-", "+"])).to_string();
    }
}

/// Puts another name of the text in the place of one.
fn rename(random: &mut ChaCha8Rng, text: &mut [String]) {
    let is_name = |t: &str| t.len() <= 3 && t.starts_with(|c: char| c.is_ascii_alphabetic());
    let places: Vec<usize> = (0..text.len()).filter(|&n| is_name(&text[n])).collect();
    if !places.is_empty() {
        let (to, from) = (*pick(random, &places), *pick(random, &places));
        text[to] = text[from].clone();
    }
}

/// Exchanges two lines that are indented.
fn swap_lines(random: &mut ChaCha8Rng, text: &mut Vec<String>) {
    let joined = text.concat();
    let mut lines: Vec<&str> = joined.split_inclusive('\n').collect();
    let places: Vec<usize> = (0..lines.len()).filter(|&n| lines[n].starts_with("  ")).collect();
    if places.is_empty() {
        return;
    }
    let (a, b) = (*pick(random, &places), *pick(random, &places));
    lines.swap(a, b);
    *text = tokens(&lines.concat());
}

/// One change of bytes.
fn damage(random: &mut ChaCha8Rng, bytes: &mut Vec<u8>) {
    if bytes.is_empty() {
        return bytes.push(random.random());
    }
    let at = random.random_range(0..bytes.len());
    match random.random_range(0..5) {
        0 => bytes[at] ^= 1 << random.random_range(0..8),
        1 => bytes.insert(at, random.random()),
        2 => bytes.insert(at, b"(){}[],=+-*/@^.#\"'\n"[random.random_range(0..19)]),
        3 => drop(bytes.remove(at)),
        _ => {
            let to = (at + random.random_range(1..40)).min(bytes.len());
            let copy = bytes[at..to].to_vec();
            let times = random.random_range(1..20);
            let place = random.random_range(0..=bytes.len());
            bytes.splice(place..place, copy.repeat(times));
        }
    }
}

/// Words, numbers, white space, comments, and single marks; together they are the text.
fn tokens(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let kind: fn(char) -> bool = match first {
            c if c.is_alphanumeric() || c == '_' => |c| c.is_alphanumeric() || c == '_',
            c if c.is_whitespace() => char::is_whitespace,
            '#' => |c| c != '\n',
            '=' | '<' | '>' | '!' => |c| c == '=' || c == '<' || c == '>' || c == '!',
            _ => |_| false,
        };
        let length = rest[first.len_utf8()..]
            .find(|c| !kind(c))
            .map_or(rest.len(), |n| n + first.len_utf8());
        found.push(rest[..length].to_string());
        rest = &rest[length..];
    }
    found
}

fn pick<'t, T>(random: &mut ChaCha8Rng, from: &'t [T]) -> &'t T {
    &from[random.random_range(0..from.len())]
}
