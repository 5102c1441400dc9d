//! Optimizers against the formulas that PyTorch documents, in f64, on every device that runs here.

use rnnc::optim::{Optimizer, Rule};
use rnnc::{Device, Error, Tensor, Tensors};
use rnnc_runtime::nvrtc;
use rnnc_runtime::sim::{self, Model};
use std::collections::BTreeMap;

/// Relative error of the norm that f32 may have after these steps.
const TOLERANCE: f64 = 1e-5;

const STEPS: usize = 9;

/// Parameters of odd sizes, one of them a scalar.
const SHAPES: [(&str, &[usize]); 4] = [("E", &[11, 3]), ("W", &[7, 13]), ("b", &[5]), ("scale", &[])];

type Numbers = BTreeMap<&'static str, Vec<f64>>;

/// Numbers of both signs and of very different sizes, the same in f32 and f64.
fn numbers(seed: usize) -> Numbers {
    let number = |i: usize| f64::from((((i * 7919 + seed * 104_729) % 1009) as f32 / 500.0 - 1.0).powi(3));
    let values = |k: usize, shape: &[usize]| (0..shape.iter().product()).map(|i| number(i + 331 * k)).collect();
    SHAPES
        .iter()
        .enumerate()
        .map(|(k, (name, shape))| (*name, values(k, shape)))
        .collect()
}

fn tensors(numbers: &Numbers) -> Tensors {
    let tensor = |(name, shape): &(&str, &[usize])| {
        let values = numbers[name].iter().map(|v| *v as f32).collect();
        ((*name).to_owned(), Tensor::new(shape, values))
    };
    SHAPES.iter().map(tensor).collect()
}

/// A step's size: a schedule, since the size is not part of the compiled rule.
fn rate(step: usize) -> f32 {
    0.05 / (1.0 + step as f32)
}

/// `torch.nn.utils.clip_grad_norm_`; the norm.
fn clip(gradients: &mut Numbers, limit: f64) -> f64 {
    let norm = gradients.values().flatten().map(|g| g * g).sum::<f64>().sqrt();
    let scale = (limit / (norm + 1e-6)).min(1.0);
    gradients.values_mut().flatten().for_each(|g| *g *= scale);
    norm
}

/// An element of a parameter with its averages, advanced as `torch.optim` documents it.
#[derive(Default)]
struct Element {
    first: f64,
    second: f64,
}

impl Element {
    fn step(&mut self, rule: &Rule, p: f64, g: f64, rate: f64, n: i32) -> f64 {
        match *rule {
            Rule::Sgd {
                momentum,
                nesterov,
                decay,
            } => {
                let (momentum, d) = (f64::from(momentum), g + f64::from(decay) * p);
                self.first = if n == 1 { d } else { momentum * self.first + d };
                p - rate
                    * if nesterov {
                        d + momentum * self.first
                    } else {
                        self.first
                    }
            }
            Rule::Adam {
                beta1,
                beta2,
                epsilon,
                decay,
            } => self.adam(p, g + f64::from(decay) * p, rate, n, [beta1, beta2, epsilon]),
            Rule::AdamW {
                beta1,
                beta2,
                epsilon,
                decay,
            } => {
                let decayed = p - rate * f64::from(decay) * p;
                self.adam(decayed, g, rate, n, [beta1, beta2, epsilon])
            }
        }
    }

    fn adam(&mut self, p: f64, g: f64, rate: f64, n: i32, settings: [f32; 3]) -> f64 {
        let [beta1, beta2, epsilon] = settings.map(f64::from);
        self.first = beta1 * self.first + (1.0 - beta1) * g;
        self.second = beta2 * self.second + (1.0 - beta2) * g * g;
        let denominator = self.second.sqrt() / (1.0 - beta2.powi(n)).sqrt() + epsilon;
        p - rate / (1.0 - beta1.powi(n)) * self.first / denominator
    }
}

/// Parameters and norms of all steps in f64.
fn expected(rule: &Rule, limit: f64) -> (Numbers, Vec<f64>) {
    let (mut params, mut norms) = (numbers(0), Vec::new());
    let mut elements: Vec<Element> = params.values().flatten().map(|_| Element::default()).collect();
    for n in 1..=STEPS {
        let mut gradients = numbers(n);
        norms.push(clip(&mut gradients, limit));
        let all = params.values_mut().flatten().zip(gradients.values().flatten());
        for ((p, g), element) in all.zip(&mut elements) {
            *p = element.step(rule, *p, *g, f64::from(rate(n)), n as i32);
        }
    }
    (params, norms)
}

fn devices() -> Vec<Device> {
    let mut devices = vec![Device::Cpu { threads: 1 }, Device::Cpu { threads: 3 }];
    if nvrtc::find().is_empty() {
        eprintln!("SKIPPED on sim: no NVRTC; run `cargo xtask setup`");
    } else {
        devices.push(Device::Sim {
            model: Model::named("a100").unwrap(),
            options: sim::Options::default(),
        });
    }
    devices
}

fn rules() -> [(&'static str, Rule); 6] {
    let sgd = |momentum, nesterov, decay| Rule::Sgd {
        momentum,
        nesterov,
        decay,
    };
    let decayed = Rule::Adam {
        beta1: 0.8,
        beta2: 0.95,
        epsilon: 1e-3,
        decay: 0.1,
    };
    [
        ("plain descent", sgd(0.0, false, 0.0)),
        ("momentum", sgd(0.9, false, 0.01)),
        ("nesterov", sgd(0.9, true, 0.02)),
        ("adam", Rule::adam()),
        ("adam with decay", decayed),
        ("adamw", Rule::adamw()),
    ]
}

#[test]
fn rules_move_parameters_as_pytorch_does() {
    for device in devices() {
        for (name, rule) in rules() {
            for limit in [None, Some(2.5)] {
                let (wanted, norms) = expected(&rule, limit.map_or(f64::INFINITY, f64::from));
                assert!(norms.iter().all(|n| *n > 2.5), "the limit is reached in every step");
                let mut params = tensors(&numbers(0));
                let mut optimizer = Optimizer::new(rule, limit, &params, &device).unwrap();
                for (n, norm) in (1..).zip(norms) {
                    let got = optimizer.step(&mut params, &tensors(&numbers(n)), rate(n)).unwrap();
                    assert!(
                        (f64::from(got) / norm - 1.0).abs() < TOLERANCE,
                        "{name}: norm {got}, not {norm}"
                    );
                }
                for (param, wanted) in wanted {
                    let got = params[param].values().iter().map(|v| f64::from(*v));
                    let off: f64 = got.zip(&wanted).map(|(g, w)| (g - w).powi(2)).sum();
                    let error = (off / wanted.iter().map(|w| w * w).sum::<f64>()).sqrt();
                    assert!(
                        error < TOLERANCE,
                        "{name}, limit {limit:?}, {device:?}: {param} is off by {error:.1e}"
                    );
                }
            }
        }
    }
}

#[test]
fn a_restored_optimizer_goes_on_to_the_bit() {
    for (name, rule) in rules() {
        let device = Device::Cpu { threads: 2 };
        let mut params = tensors(&numbers(0));
        let mut optimizer = Optimizer::new(rule, Some(1.0), &params, &device).unwrap();
        assert!(optimizer.state().is_empty(), "nothing is known before the first step");
        let step = |optimizer: &mut Optimizer, params: &mut Tensors, n: usize| {
            optimizer.step(params, &tensors(&numbers(n)), rate(n)).unwrap();
        };
        (1..4).for_each(|n| step(&mut optimizer, &mut params, n));
        let (mut copy, state) = (params.clone(), optimizer.state());
        let mut other = Optimizer::new(rule, Some(1.0), &copy, &device).unwrap();
        other.restore(&state).unwrap();
        assert_eq!(other.state(), state, "{name}: nothing is lost");
        for n in 4..8 {
            step(&mut optimizer, &mut params, n);
            step(&mut other, &mut copy, n);
        }
        assert_eq!(params, copy, "{name}");
    }
}

#[test]
fn what_does_not_fit_is_refused_by_name() {
    let device = Device::Cpu { threads: 1 };
    let mut params = tensors(&numbers(0));
    let refused = |rule, clip| {
        Optimizer::new(rule, clip, &tensors(&numbers(0)), &device)
            .err()
            .unwrap()
            .to_string()
    };
    assert_eq!(
        refused(Rule::sgd(1.0), None),
        "momentum is 1, expected at least 0 and below 1"
    );
    assert_eq!(refused(Rule::adam(), Some(0.0)), "clip is 0, expected above 0");
    let indices = Tensors::from([("t".to_owned(), Tensor::indices(&[2], vec![0, 1]))]);
    assert!(matches!(
        Optimizer::new(Rule::adam(), None, &indices, &device),
        Err(Error::Shape { .. })
    ));

    let mut optimizer = Optimizer::new(Rule::adam(), None, &params, &device).unwrap();
    let mut step = |change: &dyn Fn(&mut Tensors)| {
        let mut gradients = tensors(&numbers(1));
        change(&mut gradients);
        optimizer
            .step(&mut params, &gradients, 0.1)
            .err()
            .map(|e| e.to_string())
    };
    let lacking = step(&|g| drop(g.remove("W"))).unwrap();
    assert_eq!(lacking, "gradient W is missing; this cell has E, W, b, scale");
    let turned = step(&|g| drop(g.insert("W".to_owned(), Tensor::new(&[13, 7], vec![0.0; 91])))).unwrap();
    assert_eq!(turned, "gradient W has shape [13, 7], expected [7, 13], of reals");
    assert!(step(&|g| drop(g.insert("X".to_owned(), Tensor::new(&[], vec![0.0])))).is_some());
    assert_eq!(step(&|_| ()), None, "a refused step leaves the optimizer usable");

    let mut other = Optimizer::new(Rule::sgd(0.9), None, &tensors(&numbers(0)), &device).unwrap();
    let strange = other.restore(&optimizer.state()).unwrap_err();
    assert!(
        matches!(strange, Error::Missing { .. } | Error::Unknown { .. }),
        "{strange}"
    );
}
