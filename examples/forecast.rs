//! A forecast twelve months ahead of a real series, carbon dioxide at Mauna Loa, against the seasonal-naive one (a month is
//! taken to be what it was when last seen). Where the data come from: `examples/data/NOTICE.md`.
//!
//! ```sh
//! cargo run --release --example forecast
//! ```

mod common;

use clap::Parser;
use common::{DeviceArgs, Failure, Line};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rnnc::optim::{Optimizer, Rule};
use rnnc::{Options, Tensor, Tensors, compile, compile_gradient};
use std::f32::consts::TAU;
use std::path::PathBuf;

const CELL: &str = include_str!("forecast/seasonal.rnn");
const WEEKS: &str = include_str!("data/mauna_loa_co2.csv");

/// Months ahead, and of a season.
const YEAR: usize = 12;
/// What the model reads of a month.
const FEATURES: usize = 4;
/// Of the months whose forecast can be judged, the first so many percent are learned from.
const TRAINED: usize = 75;

#[derive(Parser)]
struct Args {
    #[arg(long, default_value_t = 400)]
    steps: usize,
    #[arg(long, default_value_t = 16)]
    hidden: i64,
    #[arg(long, default_value_t = 1e-2)]
    rate: f32,
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Where to draw forecasts and what came, as SVG
    #[arg(long)]
    curve: Option<PathBuf>,
    #[command(flatten)]
    device: DeviceArgs,
}

/// Mean values of months one after another; months without a value lie on the line between their neighbours.
fn months(csv: &str) -> Result<Vec<f32>, Failure> {
    let mut sums: Vec<(f32, f32)> = Vec::new();
    let mut first = None;
    for line in csv.lines().skip(1) {
        let (date, value) = line.split_once(',').ok_or(format!("no comma in `{line}`"))?;
        let number: usize = date[..4].parse::<usize>()? * YEAR + date[4..6].parse::<usize>()?;
        let at = number - *first.get_or_insert(number);
        sums.resize(sums.len().max(at + 1), (0.0, 0.0));
        if !value.is_empty() {
            sums[at].0 += value.parse::<f32>()?;
            sums[at].1 += 1.0;
        }
    }
    let known: Vec<usize> = (0..sums.len()).filter(|i| sums[*i].1 > 0.0).collect();
    let mean = |i: usize| sums[i].0 / sums[i].1;
    let between = |i: usize| {
        let next = known.partition_point(|k| *k < i).min(known.len() - 1);
        let (before, after) = (known[next.saturating_sub(usize::from(known[next] > i))], known[next]);
        let share = (i - before) as f32 / (after - before).max(1) as f32;
        mean(before) + share * (mean(after) - mean(before))
    };
    Ok((0..sums.len()).map(between).collect())
}

/// What the model is given of months `months`, one sequence: the last steps of the series and the season, then what is to be
/// told, which is the change over the year that follows.
fn inputs(series: &[f32], range: std::ops::Range<usize>) -> Tensors {
    let change = |now: usize, before: usize| series[now] - series[before];
    let mut x = Vec::new();
    for now in range.clone() {
        let angle = TAU * (now % YEAR) as f32 / YEAR as f32;
        x.extend([
            change(now, now - 1),
            change(now, now - YEAR) - 1.0,
            angle.sin(),
            angle.cos(),
        ]);
    }
    let target = range.clone().map(|now| change(now + YEAR, now)).collect();
    Tensors::from([
        ("x".to_owned(), Tensor::new(&[range.len(), 1, FEATURES], x)),
        ("target".to_owned(), Tensor::new(&[range.len(), 1], target)),
    ])
}

/// The mean of the sizes.
fn mean_error(errors: impl ExactSizeIterator<Item = f32>) -> f32 {
    let count = errors.len().max(1) as f32;
    errors.map(f32::abs).sum::<f32>() / count
}

fn main() -> Result<(), Failure> {
    let args = Args::parse();
    let series = months(WEEKS)?;
    // Every month with a year behind it, to be read, and a year after it, to be judged.
    let judged = series.len() - 2 * YEAR;
    let cut = YEAR + judged * TRAINED / 100;
    let device = args.device.device()?;
    let options = Options::default().dim("I", FEATURES as i64).dim("H", args.hidden);
    let cell = compile(CELL, &options)?;
    let mut rng = ChaCha8Rng::seed_from_u64(args.seed);
    let mut params = common::initial_params(&cell, &mut rng, |_, _, _| None);
    let mut training = compile_gradient(CELL, &options)?.load(&device)?;
    let mut optimizer = Optimizer::new(Rule::adamw(), Some(1.0), &params, &device)?;

    // The last months learned from lie a year before the first that is judged: nothing of what is told is known.
    let learned = inputs(&series, YEAR..cut - YEAR);
    let bar = common::bar(args.steps, 0)?;
    for step in 0..args.steps {
        training.set_params(&params)?;
        let (run, tape) = training.forward(&learned, &Tensors::new())?;
        let loss = &run.outputs["loss"];
        let share = vec![1.0 / loss.data.len() as f32; loss.data.len()];
        let cotangents = Tensors::from([("loss".to_owned(), Tensor::new(&loss.shape, share))]);
        let gradients = training.backward(&tape, &cotangents, &Tensors::new())?;
        optimizer.step(
            &mut params,
            &gradients.params,
            common::rate(args.rate, step, args.steps),
        )?;
        let mean = loss.values().iter().sum::<f32>() / loss.data.len() as f32;
        bar.set_position(step as u64 + 1);
        bar.set_message(format!("mean square {mean:.3}"));
    }
    bar.finish();

    let mut model = cell.load(&device)?;
    model.set_params(&params)?;
    let run = model.forward(&inputs(&series, YEAR..series.len() - YEAR), &Tensors::new())?;
    let told = &run.outputs["forecast"].values()[cut - YEAR..];
    let held_out = cut..series.len() - YEAR;
    let mine = mean_error(
        held_out
            .clone()
            .zip(told)
            .map(|(now, change)| series[now] + change - series[now + YEAR])
            .collect::<Vec<_>>()
            .into_iter(),
    );
    let naive = mean_error(held_out.clone().map(|now| series[now] - series[now + YEAR]));
    println!(
        "{} months to learn from, {} to judge, on {}",
        cut - 2 * YEAR,
        held_out.len(),
        model.device()
    );
    println!("mean absolute error twelve months ahead: {mine:.3} ppm; seasonal naive {naive:.3} ppm");
    if let Some(path) = &args.curve {
        let point = |month: usize, value: f32| (month as f64, f64::from(value));
        let came: Vec<_> = held_out
            .clone()
            .map(|now| point(now + YEAR, series[now + YEAR]))
            .collect();
        let said: Vec<_> = held_out
            .zip(told)
            .map(|(now, change)| point(now + YEAR, series[now] + change))
            .collect();
        let lines = [
            Line {
                name: "measured",
                points: &came,
            },
            Line {
                name: "forecast",
                points: &said,
            },
        ];
        common::draw(path, "carbon dioxide at Mauna Loa", ["months", "ppm"], &lines)?;
    }
    Ok(())
}
