//! How fast the machine is, with all checks on: the forward pass of an LSTM, H = 128, B = 8, T = 32, on one core.
//!
//! Time is that of the processor, where the system tells it, so that a busy machine does not falsify it much.
//! `lstm.cu` is text that rnnc emitted for `sm_90`. `--iterations N` repeats the measurement; the best one counts.
//!
//! Other sizes, and what rnnc emits today: `rnnc compile examples/cells/lstm.rnn --dims I=256,H=256 --arch sm_90 -o DIR`, then
//! `cargo bench -p softgpu --bench lstm -- --units 256 --text DIR/lstm.cu`. The units must be a multiple of 128.

#![allow(clippy::unwrap_used, reason = "a benchmark reports by panicking")]

#[path = "../tests/it/nvrtc.rs"]
mod nvrtc;

use softgpu::{Arg, Device, Gpu, Launch, Module, Report};
use std::time::Instant;

const B: usize = 8;
const T: usize = 32;
/// Of the loop: four pairs of sequences, of eleven blocks each.
const BLOCKS: u32 = 11 * 4;

fn main() {
    let units = argument("--units").map_or(128, |units| units.parse().unwrap());
    let given = argument("--text").map(|file| std::fs::read_to_string(file).unwrap());
    let text = given.as_deref().unwrap_or(include_str!("lstm.cu"));
    let Some(ptx) = nvrtc::compile(text, "sm_90", &[]).pop() else {
        return;
    };
    println!("PTX of NVRTC {}, H = {units}", ptx.version);
    let rounds = argument("--iterations").map_or(3, |count| count.parse().unwrap());
    let mut best = Vec::new();
    for round in 0..rounds {
        let mut gpu = Gpu::new(Device::named("h100").unwrap(), round);
        let module = gpu.load(&ptx.text).unwrap();
        best.push(forward(&mut gpu, &module, units, round));
    }
    for kernel in 0..2 {
        let fastest = best
            .iter()
            .map(|runs| &runs[kernel])
            .min_by(|a, b| a.1.total_cmp(&b.1))
            .unwrap();
        let (report, seconds) = fastest;
        let rate = report.thread_instructions as f64 / seconds / 1e9;
        println!(
            "{:<14} {:>10} instructions of warps {:>10} of threads {:>8.1} ms {:>6.3} G/s",
            report.kernel,
            report.warp_instructions,
            report.thread_instructions,
            seconds * 1e3,
            rate
        );
    }
}

/// What follows an option on the command line.
fn argument(name: &str) -> Option<String> {
    std::env::args().skip_while(|argument| argument != name).nth(1)
}

/// The product with the inputs, then the loop over time.
fn forward(gpu: &mut Gpu, module: &Module, units: usize, seed: u64) -> Vec<(Report, f64)> {
    let (scale, words) = ((units / 128) as u32, 4 * 22 * units);
    let mut up = |name: &str, count: usize| {
        let numbers = (0..count).map(|i| ((i * 37 % 101) as f32 - 50.0) / 400.0);
        let bytes: Vec<u8> = numbers.flat_map(f32::to_le_bytes).collect();
        Arg::U64(gpu.upload(name, &bytes).unwrap())
    };
    let (x, w, r) = (
        up("x", T * B * units),
        up("W", 4 * units * units),
        up("R", 4 * units * units),
    );
    let (b, c0, h0) = (up("b", 4 * units), up("c_s0", B * units), up("h_s0", B * units));
    let mut empty = |name: &str, bytes: usize| gpu.memory().allocate(bytes as u64, name);
    let parts = ["i", "f", "g", "o"].map(|name| Arg::U64(empty(name, 4 * T * B * units)));
    let [i, f, g, o] = parts;
    let outs =
        [("c_sT", B * units), ("h_sT", B * units), ("h_out", T * B * units)].map(|(n, c)| Arg::U64(empty(n, 4 * c)));
    let workspace = empty("words", words);
    gpu.memory().write(workspace, &vec![0; words]).unwrap();
    let (frames, batch) = (Arg::I32(T as i32), Arg::I32(B as i32));
    let grid = (T * B).div_ceil(128) as u32 * 8 * scale;
    let product = Launch {
        grid: [grid, 1, 1],
        block: [128, 1, 1],
        registers: 128,
        seed,
        ..Launch::default()
    };
    let first = timed(
        gpu,
        module,
        "lstm_product",
        &product,
        &[x, w, b, i, f, g, o, frames, batch],
    );
    let looped = Launch {
        grid: [BLOCKS, 1, 1],
        block: [128 * scale, 1, 1],
        shared: 2496 * scale,
        cooperative: true,
        registers: 128,
        seed,
        ..Launch::default()
    };
    let arguments = [
        r,
        c0,
        h0,
        i,
        f,
        g,
        o,
        outs[0],
        outs[1],
        outs[2],
        frames,
        batch,
        Arg::U64(workspace),
        Arg::U32(0),
    ];
    let second = timed(gpu, module, "lstm_loop", &looped, &arguments);
    vec![first, second]
}

fn timed(gpu: &mut Gpu, module: &Module, kernel: &str, launch: &Launch, arguments: &[Arg<'_>]) -> (Report, f64) {
    let (start, busy) = (Instant::now(), processor_seconds());
    let report = gpu.launch(module, kernel, launch, arguments);
    let report = report.unwrap_or_else(|fault| panic!("{fault:#?}"));
    let elapsed = start.elapsed().as_secs_f64();
    let busy = busy.and_then(|busy| Some(processor_seconds()? - busy));
    (report, busy.unwrap_or(elapsed))
}

/// Seconds that this thread has run (Linux).
fn processor_seconds() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let nanoseconds: f64 = text.split_whitespace().next()?.parse().ok()?;
    Some(nanoseconds / 1e9)
}
