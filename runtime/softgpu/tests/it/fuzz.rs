//! Mutated PTX: bytes, tokens and lines are changed, moved, repeated and lost. The parser must return, and soon.
//!
//! The suite tries some thousands; `cargo run --release -p softgpu --example fuzz_ptx` a million.

use std::panic::catch_unwind;
use std::time::{Duration, Instant};

const CORPUS: &str = include_str!("../kernels/corpus.ptx");

/// A text of a few kilobytes takes microseconds; a busy machine may stop the thread for seconds.
const HANG: Duration = Duration::from_secs(10);

/// What mutations insert.
const PIECES: &[&str] = &[
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    ",",
    ";",
    ":",
    "::",
    "@",
    "@!",
    "|",
    "+",
    "-",
    "~",
    "=",
    "<",
    ">",
    "_",
    "%",
    "$",
    ".",
    "\"",
    "/*",
    "*/",
    "//",
    "\n",
    "\0",
    "é",
    "0x",
    "0f",
    "0d7FF",
    "0f7F800000",
    "1e999",
    "99999999999999999999999999999999999999999",
    "18446744073709551615",
    "-9223372036854775808",
    ".reg .b32 %a<4294967295>;",
    ".align 0",
    ".align 2147483648",
    ".b8 a[]",
    "[1099511627776][1099511627776]",
    ".entry",
    ".func",
    ".section .x {",
    ".alias kernel, kernel;",
    ".loc 1 2 3,",
    "generic(",
    ".callprototype",
    ".branchtargets",
    ".v4",
    ".pred",
    "a+1+2-3",
    "{{{{{{{{{{{{{{{{",
    "((((((((((((((((",
];

/// A small generator of good enough numbers (splitmix64).
pub struct Random(pub u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }

    /// A range of at most so many bytes.
    fn range(&mut self, length: usize, most: usize) -> std::ops::Range<usize> {
        let start = self.below(length + 1);
        let end = (start + self.below(most + 1)).min(length);
        start..end
    }
}

/// The text of this number.
pub fn text(seed: u64, number: u64) -> String {
    let mut random = Random(seed.wrapping_mul(0x1_0000_0001) ^ number.wrapping_mul(0x9e37_79b9));
    let mut bytes = CORPUS.as_bytes().to_vec();
    for _ in 0..=random.below(4) {
        mutate(&mut bytes, &mut random);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn mutate(bytes: &mut Vec<u8>, random: &mut Random) {
    let length = bytes.len();
    match random.below(9) {
        0 => {
            if let Some(byte) = {
                let at = random.below(length);
                bytes.get_mut(at)
            } {
                *byte ^= 1 << (random.next() % 8);
            }
        }
        1 => drop(bytes.drain(random.range(length, 40))),
        2 => drop(bytes.drain(random.range(length, length))),
        3 => bytes.truncate(random.below(length)),
        4 => {
            let piece = PIECES[random.below(PIECES.len())];
            let at = random.below(length + 1);
            bytes.splice(at..at, piece.bytes());
        }
        5 => {
            let piece = PIECES[random.below(PIECES.len())];
            let range = random.range(length, 10);
            bytes.splice(range, piece.bytes());
        }
        6 => {
            let copy = bytes[random.range(length, 200)].to_vec();
            let at = random.below(length + 1);
            bytes.splice(at..at, copy);
        }
        7 => {
            let piece = PIECES[random.below(PIECES.len())].repeat(random.below(300));
            let at = random.below(length + 1);
            bytes.splice(at..at, piece.bytes());
        }
        _ => swap_lines(bytes, random),
    }
}

fn swap_lines(bytes: &mut Vec<u8>, random: &mut Random) {
    let mut lines: Vec<Vec<u8>> = bytes.split(|b| *b == b'\n').map(<[u8]>::to_vec).collect();
    let (a, b) = (random.below(lines.len()), random.below(lines.len()));
    lines.swap(a, b);
    *bytes = lines.join(&b'\n');
}

/// What came of a run.
#[derive(Default)]
pub struct Report {
    /// Texts that are still modules.
    pub parsed: u64,
    /// Texts that were refused.
    pub refused: u64,
    /// Numbers of texts at which the parser panicked, hung, or named a line that is not there.
    pub failures: Vec<u64>,
    /// The longest time.
    pub slowest: Duration,
}

/// Parses texts `first..first + count` of a seed.
pub fn run(seed: u64, first: u64, count: u64) -> Report {
    let mut report = Report::default();
    for number in first..first + count {
        let text = text(seed, number);
        let start = Instant::now();
        let outcome = catch_unwind(|| softgpu::ptx::parse(&text));
        let took = start.elapsed();
        report.slowest = report.slowest.max(took);
        let lines = text.bytes().filter(|b| *b == b'\n').count() + 1;
        match outcome {
            Ok(Ok(_)) if took < HANG => report.parsed += 1,
            Ok(Err(e)) if took < HANG && (1..=lines).contains(&(e.line as usize)) => report.refused += 1,
            _ => report.failures.push(number),
        }
    }
    report
}

#[test]
fn mutated_texts_neither_panic_nor_hang() {
    let report = run(1, 0, 5000);
    assert!(report.failures.is_empty(), "texts {:?} of seed 1", report.failures);
    assert!(
        report.parsed > 200 && report.refused > 2000,
        "{} {}",
        report.parsed,
        report.refused
    );
}

#[test]
fn the_text_that_is_mutated_is_ptx() {
    softgpu::ptx::parse(CORPUS).unwrap();
}
