//! The long-memory task of Hochreiter & Schmidhuber as Martin & Cundy state it (2018, arXiv 1709.04057): the sign of the first
//! frame is to be told after the last, and all frames between are random one-hot vectors in 128 dimensions. Two layers of
//! GILR-LSTM, whose recurrences are scans, learn it until five minibatches in a row are right; then two layers of LSTM, whose
//! recurrences are loops, are given the same time.
//!
//! ```sh
//! cargo run --release --example long_memory -- --frames 1024
//! ```

mod common;

use clap::Parser;
use common::{DeviceArgs, Failure, Line};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rnnc::optim::{Optimizer, Rule};
use rnnc::{Device, Options, Run, Tensor, Tensors, Training, compile_gradient};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// One-hot vectors have this length.
const DIMS: usize = 128;
/// So many minibatches in a row must be right.
const PERFECT: usize = 5;

#[derive(Parser)]
struct Args {
    /// T: frames of a sequence
    #[arg(long, default_value_t = 1024)]
    frames: usize,
    /// Units of each layer
    #[arg(long, default_value_t = 64)]
    hidden: usize,
    /// Sequences of a minibatch
    #[arg(long, default_value_t = 16)]
    batch: usize,
    #[arg(long, default_value_t = 4e-3)]
    rate: f32,
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Give up on a model after so many steps
    #[arg(long, default_value_t = 5000)]
    steps: usize,
    /// How long the LSTM may take, in times of what the GILR-LSTM took; 0 leaves it out
    #[arg(long, default_value_t = 1.0)]
    patience: f64,
    /// Where to draw both losses, as SVG
    #[arg(long)]
    curve: Option<PathBuf>,
    #[command(flatten)]
    device: DeviceArgs,
}

/// How a model fared.
struct Outcome {
    name: &'static str,
    solved: bool,
    steps: usize,
    time: Duration,
    losses: Vec<(f64, f64)>,
}

impl Outcome {
    fn report(&self) -> String {
        let each = self.time.as_secs_f64() * 1e3 / self.steps.max(1) as f64;
        let what = if self.solved {
            "five perfect minibatches"
        } else {
            "not solved"
        };
        let seconds = self.time.as_secs_f64();
        format!(
            "{:10} {what} after {seconds:.1} s, {} steps of {each:.0} ms",
            self.name, self.steps
        )
    }
}

fn main() -> Result<(), Failure> {
    let args = Args::parse();
    if args.frames < 2 || args.batch == 0 {
        return Err("there must be two frames and one sequence at least".into());
    }
    let device = args.device.device()?;
    let gilr = learn(
        &args,
        &device,
        "gilr_lstm",
        include_str!("memory/gilr_lstm.rnn"),
        Duration::MAX,
    )?;
    println!("{}", gilr.report());
    let mut outcomes = vec![gilr];
    if args.patience > 0.0 {
        let limit = outcomes[0].time.mul_f64(args.patience);
        let lstm = learn(&args, &device, "lstm", include_str!("memory/lstm.rnn"), limit)?;
        println!("{}", lstm.report());
        outcomes.push(lstm);
    }
    if let Some(path) = &args.curve {
        let line = |o: &'_ Outcome| (o.name, o.losses.clone());
        let named: Vec<_> = outcomes.iter().map(line).collect();
        let lines: Vec<Line<'_>> = named.iter().map(|(name, points)| Line { name, points }).collect();
        common::draw(
            path,
            &format!("long memory, T = {}", args.frames),
            ["steps", "loss"],
            &lines,
        )?;
    }
    Ok(())
}

/// Trains one model until it has solved the task, or time or steps are up.
fn learn(args: &Args, device: &Device, name: &'static str, source: &str, limit: Duration) -> Result<Outcome, Failure> {
    let options = Options::default()
        .cell(name)
        .dim("I", DIMS as i64)
        .dim("H", args.hidden as i64);
    let compiled = compile_gradient(source, &options)?;
    let mut rng = ChaCha8Rng::seed_from_u64(args.seed);
    let bias = |name: &str, i, _: &mut ChaCha8Rng| bias(args, name, i);
    let mut params = common::initial_params(compiled.forward(), &mut rng, bias);
    let mut training = compiled.load(device)?;
    let mut optimizer = Optimizer::new(Rule::adam(), Some(1.0), &params, device)?;
    let bar = common::bar(args.steps, 0)?;
    let (mut in_a_row, mut steps, mut losses) = (0, 0, Vec::new());
    let start = Instant::now();
    while in_a_row < PERFECT && steps < args.steps && start.elapsed() < limit {
        let minibatch = minibatch(args, &mut rng);
        training.set_params(&params)?;
        let (run, gradients) = gradients(&mut training, &minibatch)?;
        let (right, loss) = judge(&run, &minibatch["label"]);
        in_a_row = if right == args.batch { in_a_row + 1 } else { 0 };
        optimizer.step(&mut params, &gradients, args.rate)?;
        steps += 1;
        losses.push((steps as f64, loss));
        bar.set_position(steps as u64);
        bar.set_message(format!(
            "{name}: loss {loss:.3}, {right} of {} right, {in_a_row} in a row",
            args.batch
        ));
    }
    let time = start.elapsed();
    bar.finish_and_clear();
    Ok(Outcome {
        name,
        solved: in_a_row == PERFECT,
        steps,
        time,
        losses,
    })
}

/// Biases of both models' gates (Tallec & Ollivier 2018): units remember over horizons from 1 to T frames, spread evenly, and
/// take in as much less as they keep longer. The gates of a layer are input, forget, candidate, output.
fn bias(args: &Args, name: &str, i: usize) -> Option<f32> {
    let (unit, gate) = (i % args.hidden, i / args.hidden);
    let share = (unit as f32 + 0.5) / args.hidden as f32;
    let horizon = (1.0 + share * (args.frames - 1) as f32).ln();
    match (name, gate) {
        ("b1" | "b2", 0) => Some(-horizon),
        ("b1" | "b2", 1) | ("v1" | "v2", 0) => Some(horizon),
        _ => None,
    }
}

/// Random sequences; the label of each is the sign of its first frame.
fn minibatch(args: &Args, rng: &mut ChaCha8Rng) -> Tensors {
    let (frames, batch) = (args.frames, args.batch);
    let labels: Vec<f32> = (0..batch)
        .map(|_| if rng.random_range(0..2) == 0 { 1.0 } else { -1.0 })
        .collect();
    let mut tokens = vec![0; batch];
    tokens.extend((batch..frames * batch).map(|_| rng.random_range(0..DIMS as i32)));
    let mut signs = vec![1.0; frames * batch];
    signs[..batch].copy_from_slice(&labels);
    Tensors::from([
        ("token".to_owned(), Tensor::indices(&[frames, batch], tokens)),
        ("sign".to_owned(), Tensor::new(&[frames, batch], signs)),
        ("label".to_owned(), Tensor::new(&[batch], labels)),
    ])
}

/// Runs forward and backward; only the loss of the last frame counts.
fn gradients(training: &mut Training, inputs: &Tensors) -> Result<(Run, Tensors), Failure> {
    let (run, tape) = training.forward(inputs, &Tensors::new())?;
    let shape = &run.outputs["loss"].shape;
    let (all, batch) = (shape.iter().product::<usize>(), shape[1]);
    let mut cotangent = vec![0.0; all];
    cotangent[all - batch..].fill(1.0 / batch as f32);
    let cotangents = Tensors::from([("loss".to_owned(), Tensor::new(shape, cotangent))]);
    let gradients = training.backward(&tape, &cotangents, &Tensors::new())?;
    Ok((run, gradients.params))
}

/// How many sequences were told right after their last frame, and the mean loss there.
fn judge(run: &Run, labels: &Tensor) -> (usize, f64) {
    let labels = labels.values();
    let last = |name: &str| {
        let values = run.outputs[name].values();
        values[values.len() - labels.len()..].to_vec()
    };
    let right = last("logit")
        .iter()
        .zip(labels)
        .filter(|(logit, label)| *logit * *label > 0.0)
        .count();
    let loss = last("loss").iter().map(|v| f64::from(*v)).sum::<f64>() / labels.len() as f64;
    (right, loss)
}
