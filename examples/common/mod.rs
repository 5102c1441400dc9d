//! What the training examples share: the device by its name, first values of parameters, checkpoints, the progress bar and
//! the curve of losses.

#![allow(dead_code, reason = "each example uses a part")]

use indicatif::{ProgressBar, ProgressStyle};
use plotters::prelude::*;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rnnc::{Cell, Device, Tensor, Tensors};
use rnnc_runtime::plan::Role;
use rnnc_runtime::sim::{Model, Options};
use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorView};
use std::collections::{BTreeMap, HashMap};
use std::error::Error;
use std::path::Path;

/// Anything that ends an example early.
pub type Failure = Box<dyn Error>;

/// Where to run.
#[derive(Clone, Debug, clap::Args)]
pub struct DeviceArgs {
    /// cpu, cuda, cuda:1 or sim
    #[arg(long, default_value = "cpu")]
    device: String,
    /// Threads of the cpu device (default: all processors)
    #[arg(long)]
    threads: Option<usize>,
}

impl DeviceArgs {
    /// The device that is named.
    pub fn device(&self) -> Result<Device, Failure> {
        let processors = || std::thread::available_parallelism().map_or(1, Into::into);
        let threads = self.threads.unwrap_or_else(processors);
        match self.device.split_once(':').unwrap_or((&self.device, "0")) {
            ("cpu", "0") => Ok(Device::Cpu { threads }),
            ("cuda", ordinal) => Ok(Device::Cuda {
                ordinal: ordinal.parse()?,
            }),
            ("sim", "0") => Ok(Device::Sim {
                model: Model::named("a100").ok_or("the simulated GPU is known")?,
                options: Options::default(),
            }),
            _ => Err(format!(
                "`{}` is not a device; there are cpu, cuda, cuda:1, ... and sim",
                self.device
            )
            .into()),
        }
    }
}

/// First values of a cell's parameters. Matrices are uniform with a variance of 1 over their columns (LeCun et al. 1998),
/// vectors zero; `special` says by name what else a parameter starts from, element by element.
pub fn initial_params(
    cell: &Cell,
    rng: &mut ChaCha8Rng,
    special: impl Fn(&str, usize, &mut ChaCha8Rng) -> Option<f32>,
) -> Tensors {
    let mut params = Tensors::new();
    for buffer in cell.plan().buffers.iter().filter(|b| b.role == Role::Param) {
        let width = match buffer.shape.as_slice() {
            [.., columns] if buffer.shape.len() > 1 => (3.0 / *columns as f32).sqrt(),
            _ => 0.0,
        };
        let mut element = |i| special(&buffer.name, i, rng).unwrap_or_else(|| width * rng.random_range(-1.0..1.0));
        let values = (0..buffer.elements()).map(&mut element).collect();
        params.insert(buffer.name.clone(), Tensor::new(&buffer.shape, values));
    }
    params
}

/// How many numbers are learned.
pub fn count(params: &Tensors) -> usize {
    params.values().map(|tensor| tensor.data.len()).sum()
}

/// The bar of a run of so many steps.
pub fn bar(steps: usize, done: usize) -> Result<ProgressBar, Failure> {
    let style = "{bar:24} {pos}/{len} {elapsed}, {eta} left  {msg}";
    let bar = ProgressBar::new(steps as u64).with_style(ProgressStyle::with_template(style)?);
    bar.set_position(done as u64);
    bar.reset_eta();
    Ok(bar)
}

/// The size of a step: it grows over the first steps, then falls to a tenth along half a cosine (Loshchilov & Hutter 2017).
pub fn rate(most: f32, step: usize, steps: usize) -> f32 {
    // A short run has a short warm-up: a tenth of it.
    let warm = ((step + 1) as f32 / (steps / 10).clamp(1, 100) as f32).min(1.0);
    let along = step as f32 / steps.max(1) as f32;
    most * warm * (0.55 + 0.45 * (std::f32::consts::PI * along).cos())
}

/// All that a run needs to go on.
#[derive(Default)]
pub struct Checkpoint {
    /// The settings of the run: one that goes on must have the same.
    pub run: String,
    /// Steps done.
    pub done: usize,
    /// Tensors in groups: `params`, `states`, ...
    pub groups: BTreeMap<String, Tensors>,
}

/// What stands between steps and settings in the file's one word of metadata.
const OF: &str = " steps of ";

impl Checkpoint {
    /// Writes a safetensors file beside `path` and then puts it in its place, so that there is a whole one at any time.
    pub fn save(&self, path: &Path) -> Result<(), Failure> {
        let bytes = |tensor: &Tensor| tensor.values().iter().flat_map(|v| v.to_le_bytes()).collect();
        let mut stored: Vec<(String, &[usize], Vec<u8>)> = Vec::new();
        for (group, tensors) in &self.groups {
            let named = tensors
                .iter()
                .map(|(name, t)| (format!("{group}/{name}"), &*t.shape, bytes(t)));
            stored.extend(named);
        }
        let mut views = Vec::new();
        for (key, shape, data) in &stored {
            views.push((key, TensorView::new(Dtype::F32, shape.to_vec(), data)?));
        }
        let words = HashMap::from([("run".to_owned(), format!("{}{OF}{}", self.done, self.run))]);
        let beside = path.with_extension("part");
        safetensors::serialize_to_file(views, Some(words), &beside)?;
        Ok(std::fs::rename(beside, path)?)
    }

    /// Reads what [`Checkpoint::save`] wrote; `run` are the settings that it must have.
    pub fn load(path: &Path, run: &str) -> Result<Checkpoint, Failure> {
        let bytes = std::fs::read(path).map_err(|e| format!("{}: {e}", path.display()))?;
        let (_, header) = SafeTensors::read_metadata(&bytes)?;
        let word = header.metadata().as_ref().and_then(|words| words.get("run"));
        let (done, settings) = word
            .and_then(|word| word.split_once(OF))
            .ok_or("this is no checkpoint")?;
        if settings != run {
            return Err(format!("{} is of a run with other settings: {settings}", path.display()).into());
        }
        let mut found = Checkpoint {
            run: run.to_owned(),
            done: done.parse()?,
            groups: BTreeMap::new(),
        };
        for (key, view) in SafeTensors::deserialize(&bytes)?.tensors() {
            let (group, name) = key.split_once('/').ok_or("a checkpoint's tensors are in groups")?;
            let values = view
                .data()
                .as_chunks()
                .0
                .iter()
                .map(|b| f32::from_le_bytes(*b))
                .collect();
            let group = found.groups.entry(group.to_owned()).or_default();
            group.insert(name.to_owned(), Tensor::new(view.shape(), values));
        }
        Ok(found)
    }

    /// A group; empty if there is none.
    pub fn group(&self, name: &str) -> Tensors {
        self.groups.get(name).cloned().unwrap_or_default()
    }
}

/// A line of a drawing: points (x, y).
pub struct Line<'a> {
    /// What it shows.
    pub name: &'a str,
    /// In the order of x.
    pub points: &'a [(f64, f64)],
}

/// Draws lines as SVG; the axes are named.
pub fn draw(path: &Path, title: &str, [across, unit]: [&str; 2], lines: &[Line<'_>]) -> Result<(), Failure> {
    let all = || lines.iter().flat_map(|line| line.points).filter(|p| p.1.is_finite());
    let last = all().map(|p| p.0).fold(1.0, f64::max);
    let low = all().map(|p| p.1).fold(f64::INFINITY, f64::min).min(1e9);
    let high = all().map(|p| p.1).fold(low + 1e-9, f64::max);
    let margin = (high - low) * 0.05;
    let root = SVGBackend::new(path, (800, 450)).into_drawing_area();
    root.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&root)
        .caption(title, ("sans-serif", 20))
        .margin(12)
        .x_label_area_size(36)
        .y_label_area_size(52)
        .build_cartesian_2d(0.0..last, low - margin..high + margin)?;
    chart.configure_mesh().x_desc(across).y_desc(unit).draw()?;
    let colours = [BLUE, RED, GREEN, MAGENTA];
    for (line, colour) in lines.iter().zip(colours) {
        let points = line.points.iter().copied().filter(|p| p.1.is_finite());
        chart
            .draw_series(LineSeries::new(points, &colour))?
            .label(line.name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], colour));
    }
    chart
        .configure_series_labels()
        .background_style(WHITE.mix(0.8))
        .border_style(BLACK)
        .draw()?;
    Ok(root.present()?)
}
