//! The CPU engine's LSTM against a NumPy loop: `cargo bench --bench cpu`.
//!
//! Both run in turn, round after round, on as many threads, so that what else the machine does hits both. Prints medians
//! and how many times faster the engine is. NumPy comes from `python3`, or the interpreter that RNNC_PYTHON names.

use rnnc::driver::{self, Choice};
use rnnc_runtime::cpu::CpuEngine;
use rnnc_runtime::engine::{Data, Engine};
use rnnc_runtime::plan::{BufferId, Elem, Plan, Role};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

/// Frames, batch, inputs, units.
const SHAPES: [[usize; 4]; 6] = [
    [128, 32, 256, 256],
    [128, 1, 256, 256],
    [1000, 1, 40, 256],
    [128, 8, 64, 100],
    [128, 16, 128, 128],
    [64, 64, 512, 512],
];
const ROUNDS: usize = 9;
/// The engine may take three times NumPy's time, not more.
const LEAST: f64 = 1.0 / 3.0;

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let most = std::thread::available_parallelism()?.get();
    let mut threads = vec![1, most];
    threads.dedup();
    for threads in threads {
        let mut peer = Peer::start(threads);
        match &peer {
            Ok(peer) => println!("\n{threads} thread(s), NumPy {}", peer.version),
            Err(reason) => println!("\n{threads} thread(s)\nTHE COMPARISON IS SKIPPED: no NumPy ({reason})"),
        }
        println!(
            "{:>18} {:>10} {:>10} {:>8}",
            "T x B x I x H", "rnnc ms", "NumPy ms", "ratio"
        );
        for shape in SHAPES {
            compare(shape, threads, peer.as_mut().ok())?;
        }
    }
    Ok(())
}

fn compare(shape: [usize; 4], threads: usize, mut peer: Option<&mut Peer>) -> Result<(), Failure> {
    let [frames, batch, inputs, units] = shape;
    let plan = lstm(inputs, units)?;
    let mut engine = CpuEngine::new(plan.clone(), threads)?;
    engine.set_params(&numbers(&plan, 1, 1, &Role::Param))?;
    let given = numbers(&plan, frames, batch, &Role::Input);
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..=ROUNDS {
        let start = Instant::now();
        let results = engine.run(frames, batch, &given)?;
        ours.push(start.elapsed().as_secs_f64());
        drop(results);
        if let Some(peer) = peer.as_mut() {
            theirs.push(peer.time(shape)?);
        }
    }
    // The first round warms up.
    let (ours, theirs) = (median(&ours[1..]), theirs.get(1..).map(median));
    let name = shape.map(|n| n.to_string()).join("x");
    match theirs {
        None => println!("{name:>18} {:>10.2}", ours * 1e3),
        Some(theirs) => {
            let slow = if theirs / ours < LEAST { "  TOO SLOW" } else { "" };
            println!(
                "{name:>18} {:>10.2} {:>10.2} {:>8.2}{slow}",
                ours * 1e3,
                theirs * 1e3,
                theirs / ours
            );
        }
    }
    Ok(())
}

fn median(times: &[f64]) -> f64 {
    let mut sorted = times.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

fn lstm(inputs: usize, units: usize) -> Result<Plan, Failure> {
    let source = include_bytes!("../examples/cells/lstm.rnn");
    let choice = Choice {
        cell: None,
        stem: Some("lstm".into()),
    };
    let dims = BTreeMap::from([("I".into(), inputs as i64), ("H".into(), units as i64)]);
    let planned = driver::plan(source, &choice, &dims, Elem::F32).map_err(|d| format!("{d:?}"))?;
    Ok(planned.plan)
}

/// Numbers around 0 for the buffers of a role.
fn numbers(plan: &Plan, frames: usize, batch: usize, role: &Role) -> BTreeMap<BufferId, Data> {
    let mut state = 1u32;
    let mut next = move || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 24) as f32 * 0.4 - 0.2
    };
    let buffers = plan.ids().filter(|(_, b)| b.role == *role);
    buffers
        .map(|(id, b)| (id, Data::F32((0..b.len(frames, batch)).map(|_| next()).collect())))
        .collect()
}

/// A Python process that times passes on request.
struct Peer {
    process: Child,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
    version: String,
}

impl Peer {
    fn start(threads: usize) -> Result<Peer, Failure> {
        let python = std::env::var("RNNC_PYTHON").unwrap_or_else(|_| "python3".into());
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/lstm.py");
        let mut command = Command::new(python);
        for library in ["OPENBLAS", "OMP", "MKL"] {
            command.env(format!("{library}_NUM_THREADS"), threads.to_string());
        }
        command
            .arg(script)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut process = command.spawn()?;
        let (requests, answers) = (process.stdin.take(), process.stdout.take());
        let (Some(requests), Some(answers)) = (requests, answers) else {
            return Err("no pipes".into());
        };
        let mut peer = Peer {
            process,
            requests,
            answers: BufReader::new(answers),
            version: String::new(),
        };
        let line = peer.line()?;
        let version = line.strip_prefix("ready ").ok_or("NumPy is not installed")?;
        peer.version = version.to_owned();
        Ok(peer)
    }

    fn line(&mut self) -> Result<String, Failure> {
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        Ok(line.trim().to_owned())
    }

    /// Seconds of one pass.
    fn time(&mut self, shape: [usize; 4]) -> Result<f64, Failure> {
        writeln!(self.requests, "{}", shape.map(|n| n.to_string()).join(" "))?;
        Ok(self.line()?.parse()?)
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // It ends by itself when its input closes; a zombie is all that could be left.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
