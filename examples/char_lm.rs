//! A character language model on any text: truncated back-propagation through time, the state carried from one stretch of
//! text to the next. Its cells are the files of `examples/lm`. The last tenth of the text is never trained on.
//!
//! ```sh
//! cargo run --release --example char_lm -- examples/data/emma.txt --model lstm --steps 3000
//! ```

mod common;

use clap::{Parser, ValueEnum};
use common::{Checkpoint, DeviceArgs, Failure, Line};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rnnc::optim::{Optimizer, Rule};
use rnnc::{Cell, Device, Loaded, Options, Tensor, Tensors, Training, compile, compile_gradient};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Instant;

/// The training stretch of the text, in parts of the whole.
const TRAINED: (usize, usize) = (9, 10);

#[derive(Parser)]
struct Args {
    /// The text, UTF-8
    text: PathBuf,
    #[arg(long, value_enum, default_value = "lstm")]
    model: Model,
    /// Units of a layer
    #[arg(long, default_value_t = 256)]
    hidden: i64,
    /// Numbers that stand for a character, and the width between the layers of minGRU and Mamba
    #[arg(long, default_value_t = 64)]
    embedding: i64,
    #[arg(long, default_value_t = 3000)]
    steps: usize,
    /// Stretches of text side by side
    #[arg(long, default_value_t = 32)]
    batch: usize,
    /// Characters of a stretch in a step: so far gradients reach back
    #[arg(long, default_value_t = 96)]
    frames: usize,
    /// The largest size of a step
    #[arg(long, default_value_t = 4e-3)]
    rate: f32,
    /// The largest norm of a gradient
    #[arg(long, default_value_t = 1.0)]
    clip: f32,
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Steps between measurements on the held-out text, and between checkpoints
    #[arg(long, default_value_t = 500)]
    every: usize,
    /// Where to keep all that a run needs to go on
    #[arg(long)]
    checkpoint: Option<PathBuf>,
    /// Go on from the checkpoint
    #[arg(long, requires = "checkpoint")]
    resume: bool,
    /// Stop after so many steps of the run, as if it had been interrupted
    #[arg(long)]
    stop: Option<usize>,
    /// Where to draw the loss, as SVG
    #[arg(long)]
    curve: Option<PathBuf>,
    /// Characters to make up at the end
    #[arg(long, default_value_t = 400)]
    sample: usize,
    /// Below 1, likelier characters are preferred
    #[arg(long, default_value_t = 0.7)]
    temperature: f32,
    #[command(flatten)]
    device: DeviceArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
enum Model {
    Lstm,
    Gru,
    Mingru,
    Mamba,
}

impl Model {
    fn source(self) -> (&'static str, &'static str) {
        match self {
            Model::Lstm => ("lstm", include_str!("lm/lstm.rnn")),
            Model::Gru => ("gru", include_str!("lm/gru.rnn")),
            Model::Mingru => ("mingru", include_str!("lm/mingru.rnn")),
            Model::Mamba => ("mamba", include_str!("lm/mamba.rnn")),
        }
    }

    /// What does not start as [`common::initial_params`] says: element `i` of a parameter.
    fn special(name: &str, i: usize, rng: &mut ChaCha8Rng) -> Option<f32> {
        match name {
            "embedding" => Some(rng.random_range(-0.5..0.5)),
            _ if name.starts_with("gain") || name.starts_with("skip") => Some(1.0),
            // Mamba: decays 1 to 16, steps whose softplus is spread over 1/1000 to 1/10 evenly in the logarithm.
            _ if name.starts_with("decay") => Some((1.0 + (i % 16) as f32).ln()),
            _ if name.starts_with("step") => Some((10f32.powf(rng.random_range(-3.0..-1.0)).exp() - 1.0).ln()),
            _ => None,
        }
    }
}

/// Characters and their numbers: those of the training text, and one number for any other.
struct Alphabet(Vec<char>);

impl Alphabet {
    fn of(text: &[char]) -> Alphabet {
        Alphabet(text.iter().copied().collect::<BTreeSet<char>>().into_iter().collect())
    }

    fn size(&self) -> usize {
        self.0.len() + 1
    }

    fn number(&self, c: char) -> i32 {
        self.0.binary_search(&c).unwrap_or(self.0.len()) as i32
    }

    fn character(&self, number: usize) -> char {
        self.0.get(number).copied().unwrap_or('\u{fffd}')
    }
}

/// A text as numbers, cut into rows of the same length that are read side by side.
struct Rows {
    numbers: Vec<i32>,
    rows: usize,
    /// Characters of a row that have a successor.
    length: usize,
}

impl Rows {
    fn new(numbers: Vec<i32>, rows: usize) -> Result<Rows, Failure> {
        let length = numbers.len().saturating_sub(1) / rows;
        if length == 0 {
            return Err(format!("a text of {} characters is too short for {rows} rows", numbers.len()).into());
        }
        Ok(Rows { numbers, rows, length })
    }

    /// Characters `from..from + frames` of every row and their successors.
    fn inputs(&self, from: usize, frames: usize) -> Tensors {
        let shifted = |by: usize| {
            let at = |t: usize, row: usize| self.numbers[row * self.length + from + t + by];
            let numbers = (0..frames).flat_map(|t| (0..self.rows).map(move |row| at(t, row)));
            Tensor::indices(&[frames, self.rows], numbers.collect())
        };
        Tensors::from([("token".to_owned(), shifted(0)), ("target".to_owned(), shifted(1))])
    }
}

fn main() -> Result<(), Failure> {
    let args = Args::parse();
    let text: Vec<char> = std::fs::read_to_string(&args.text)
        .map_err(|e| format!("{}: {e}", args.text.display()))?
        .chars()
        .collect();
    let (train, held_out) = text.split_at(text.len() * TRAINED.0 / TRAINED.1);
    let alphabet = Alphabet::of(train);
    let numbers = |part: &[char]| part.iter().map(|c| alphabet.number(*c)).collect::<Vec<i32>>();
    let mut run = Run::new(&args, &alphabet)?;
    println!(
        "{:?} on {}: {} parameters, {} characters to learn from, {} held out",
        args.model,
        run.training.device(),
        common::count(&run.params),
        train.len(),
        held_out.len()
    );
    let start = Instant::now();
    run.train(&args, &Rows::new(numbers(train), args.batch)?, &numbers(held_out))?;
    let seconds = start.elapsed().as_secs_f64();
    let bits = run.measure(&Rows::new(numbers(held_out), 1)?)?;
    println!("{seconds:.0} s of training; held-out text, read as one: {bits:.3} bits a character");
    println!("{}", run.sample(&args, &alphabet, &train[..64.min(train.len())])?);
    Ok(())
}

/// A model in training.
struct Run {
    training: Training,
    /// The cell without a tape, for measurements and samples.
    loaded: Loaded,
    optimizer: Optimizer,
    params: Tensors,
    /// What the next stretch starts from.
    states: Tensors,
    /// Steps done.
    done: usize,
    trained: Vec<(f64, f64)>,
    measured: Vec<(f64, f64)>,
}

impl Run {
    fn new(args: &Args, alphabet: &Alphabet) -> Result<Run, Failure> {
        let (name, source) = args.model.source();
        let options = Options::default()
            .cell(name)
            .dim("V", alphabet.size() as i64)
            .dim("E", args.embedding)
            .dim("H", args.hidden);
        let device: Device = args.device.device()?;
        let cell: Cell = compile(source, &options)?;
        let mut rng = ChaCha8Rng::seed_from_u64(args.seed);
        let params = common::initial_params(&cell, &mut rng, Model::special);
        let optimizer = Optimizer::new(Rule::adam(), Some(args.clip), &params, &device)?;
        let mut run = Run {
            training: compile_gradient(source, &options)?.load(&device)?,
            loaded: cell.load(&device)?,
            optimizer,
            params,
            states: Tensors::new(),
            done: 0,
            trained: Vec::new(),
            measured: Vec::new(),
        };
        if let Some(path) = args.checkpoint.as_ref().filter(|_| args.resume) {
            let found = Checkpoint::load(path, &identity(args))?;
            run.params = found.group("params");
            run.states = found.group("states");
            run.optimizer.restore(&found.group("optimizer"))?;
            run.done = found.done;
        }
        Ok(run)
    }

    fn save(&self, args: &Args) -> Result<(), Failure> {
        let Some(path) = &args.checkpoint else { return Ok(()) };
        let groups = [
            ("params", self.params.clone()),
            ("states", self.states.clone()),
            ("optimizer", self.optimizer.state()),
        ];
        Checkpoint {
            run: identity(args),
            done: self.done,
            groups: groups.map(|(name, group)| (name.to_owned(), group)).into(),
        }
        .save(path)
    }

    /// Steps through the text, again and again, until all steps are done.
    fn train(&mut self, args: &Args, rows: &Rows, held_out: &[i32]) -> Result<(), Failure> {
        let frames = args.frames.min(rows.length);
        let stretches = rows.length / frames;
        let measured = Rows::new(held_out.to_vec(), 16)?;
        let bar = common::bar(args.steps, self.done)?;
        let end = args.stop.unwrap_or(args.steps).min(args.steps);
        while self.done < end {
            let stretch = self.done % stretches;
            if stretch == 0 {
                self.states.clear();
            }
            let rate = common::rate(args.rate, self.done, args.steps);
            let bits = self.step(&rows.inputs(stretch * frames, frames), rate)?;
            self.done += 1;
            let smooth = self
                .trained
                .last()
                .map_or(bits, |(_, last)| last + 0.05 * (bits - last));
            self.trained.push((self.done as f64, smooth));
            bar.set_position(self.done as u64);
            if self.done.is_multiple_of(args.every) || self.done == end {
                let held_out = self.measure(&measured)?;
                self.measured.push((self.done as f64, held_out));
                let said = format!("step {:6}: {smooth:.3} bits, held out {held_out:.3}", self.done);
                bar.suspend(|| println!("{said}"));
                self.save(args)?;
                self.draw(args)?;
            }
            bar.set_message(format!("{smooth:.3} bits"));
        }
        bar.finish();
        Ok(())
    }

    /// One step along the gradient; bits a character before it.
    fn step(&mut self, inputs: &Tensors, rate: f32) -> Result<f64, Failure> {
        self.training.set_params(&self.params)?;
        let (run, tape) = self.training.forward(inputs, &self.states)?;
        let loss = &run.outputs["loss"];
        let share = 1.0 / loss.data.len() as f32;
        let cotangent = Tensor::new(&loss.shape, vec![share; loss.data.len()]);
        let cotangents = Tensors::from([("loss".to_owned(), cotangent)]);
        let gradients = self.training.backward(&tape, &cotangents, &Tensors::new())?;
        let bits = mean_bits(loss);
        // The state goes on, the tape does not: gradients end here.
        self.states = run.states;
        let norm = self.optimizer.step(&mut self.params, &gradients.params, rate)?;
        if !norm.is_finite() {
            return Err(format!("the gradient is {norm} at step {}; try a smaller --rate", self.done).into());
        }
        Ok(bits)
    }

    /// Bits a character of a text, from its beginning to its end.
    fn measure(&mut self, rows: &Rows) -> Result<f64, Failure> {
        const FRAMES: usize = 1024;
        self.loaded.set_params(&self.params)?;
        let (mut states, mut bits) = (Tensors::new(), 0.0);
        for from in (0..rows.length).step_by(FRAMES) {
            let frames = FRAMES.min(rows.length - from);
            let run = self.loaded.forward(&rows.inputs(from, frames), &states)?;
            bits += mean_bits(&run.outputs["loss"]) * frames as f64;
            states = run.states;
        }
        Ok(bits / rows.length as f64)
    }

    fn draw(&self, args: &Args) -> Result<(), Failure> {
        let Some(path) = &args.curve else { return Ok(()) };
        let trained = Line {
            name: "training",
            points: &self.trained,
        };
        let measured = Line {
            name: "held out",
            points: &self.measured,
        };
        let title = format!("{:?}, {} units", args.model, args.hidden);
        common::draw(path, &title, ["steps", "bits a character"], &[trained, measured])
    }

    /// Reads the beginning of a text and goes on by itself.
    fn sample(&mut self, args: &Args, alphabet: &Alphabet, begin: &[char]) -> Result<String, Failure> {
        let mut rng = ChaCha8Rng::seed_from_u64(args.seed);
        let mut text: Vec<char> = begin.to_vec();
        let (mut states, mut read) = (Tensors::new(), 0);
        self.loaded.set_params(&self.params)?;
        while text.len() < begin.len() + args.sample {
            let tokens: Vec<i32> = text[read..].iter().map(|c| alphabet.number(*c)).collect();
            read = text.len();
            let shape = [tokens.len(), 1];
            let nothing = Tensor::indices(&shape, vec![0; tokens.len()]);
            let inputs = Tensors::from([
                ("token".to_owned(), Tensor::indices(&shape, tokens)),
                ("target".to_owned(), nothing),
            ]);
            let run = self.loaded.forward(&inputs, &states)?;
            states = run.states;
            let logits = run.outputs["logits"].values();
            let last = &logits[logits.len() - alphabet.size()..];
            text.push(alphabet.character(draw_from(last, args.temperature, &mut rng)));
        }
        Ok(text.into_iter().collect())
    }
}

/// What a checkpoint's run must share with the one that goes on from it, to end the same to the bit.
fn identity(args: &Args) -> String {
    let model = format!("{:?} {} {}", args.model, args.hidden, args.embedding);
    let steps = format!(
        "{} {} {} {} {}",
        args.steps, args.batch, args.frames, args.rate, args.clip
    );
    format!("{model} {steps} {} {}", args.seed, args.text.display())
}

fn mean_bits(loss: &Tensor) -> f64 {
    let sum: f64 = loss.values().iter().map(|v| f64::from(*v)).sum();
    sum / loss.data.len() as f64 / std::f64::consts::LN_2
}

/// A number with the probability that the logits give it.
fn draw_from(logits: &[f32], temperature: f32, rng: &mut ChaCha8Rng) -> usize {
    let top = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let weights: Vec<f32> = logits
        .iter()
        .map(|l| ((l - top) / temperature.max(1e-3)).exp())
        .collect();
    let mut left = rng.random_range(0.0..1.0) * weights.iter().sum::<f32>();
    for (number, weight) in weights.iter().enumerate() {
        left -= weight;
        if left <= 0.0 {
            return number;
        }
    }
    weights.len() - 1
}
