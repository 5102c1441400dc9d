//! Folds over inner axes in terms of three that lanes can do: sum, largest, smallest.
//!
//! A mean is a sum divided by how many there are; a variance is the mean square of the distance from the mean, in two
//! passes; a `logsumexp` is taken relative to the largest element, or to 0 where that is infinite.

use rnnc_runtime::plan::{Body, Channel, Reg, Step, Store};
use rnnc_runtime::scalar::{Binary, Reduce, Unary};

/// The same kernel, whose body folds by sum, largest and smallest only.
pub fn simplified(channel: &Channel) -> Channel {
    let elements: usize = channel.inner.iter().product();
    let mut rewriter = Rewriter {
        body: Body::default(),
        moved: Vec::with_capacity(channel.body.steps.len()),
        elements: elements as f64,
    };
    for step in &channel.body.steps {
        let reg = rewriter.step(step);
        rewriter.moved.push(reg);
    }
    rewriter.finish(channel)
}

struct Rewriter {
    body: Body,
    /// Where each old register is now.
    moved: Vec<Reg>,
    elements: f64,
}

impl Rewriter {
    fn push(&mut self, step: Step) -> Reg {
        self.body.steps.push(step);
        Reg(self.body.steps.len() as u32 - 1)
    }

    fn at(&self, reg: Reg) -> Reg {
        self.moved[reg.0 as usize]
    }

    fn step(&mut self, step: &Step) -> Reg {
        match step {
            Step::Reduce(Reduce::Mean, a) => self.mean(self.at(*a)),
            Step::Reduce(Reduce::Var, a) => self.variance(self.at(*a)),
            Step::Reduce(Reduce::LogSumExp, a) => self.log_sum_exp(self.at(*a)),
            other => {
                let same = self.renumbered(other);
                self.push(same)
            }
        }
    }

    fn mean(&mut self, a: Reg) -> Reg {
        let sum = self.push(Step::Reduce(Reduce::Sum, a));
        let n = self.push(Step::Const(self.elements));
        self.push(Step::Binary(Binary::Div, sum, n))
    }

    fn variance(&mut self, a: Reg) -> Reg {
        let mean = self.mean(a);
        let distance = self.push(Step::Binary(Binary::Sub, a, mean));
        let square = self.push(Step::Binary(Binary::Mul, distance, distance));
        self.mean(square)
    }

    fn log_sum_exp(&mut self, a: Reg) -> Reg {
        let top = self.push(Step::Reduce(Reduce::Max, a));
        let size = self.push(Step::Unary(Unary::Abs, top));
        let infinity = self.push(Step::Const(f64::INFINITY));
        let infinite = self.push(Step::Binary(Binary::Eq, size, infinity));
        let zero = self.push(Step::Const(0.0));
        let base = self.push(Step::Select(infinite, zero, top));
        let below = self.push(Step::Binary(Binary::Sub, a, base));
        let part = self.push(Step::Unary(Unary::Exp, below));
        let sum = self.push(Step::Reduce(Reduce::Sum, part));
        let log = self.push(Step::Unary(Unary::Log, sum));
        self.push(Step::Binary(Binary::Add, log, base))
    }

    fn renumbered(&self, step: &Step) -> Step {
        match step {
            Step::Gather {
                table,
                row,
                rows,
                stride,
                index,
            } => Step::Gather {
                table: *table,
                row: self.at(*row),
                rows: *rows,
                stride: *stride,
                index: index.clone(),
            },
            Step::Unary(op, a) => Step::Unary(*op, self.at(*a)),
            Step::Binary(op, a, b) => Step::Binary(*op, self.at(*a), self.at(*b)),
            Step::Select(a, b, c) => Step::Select(self.at(*a), self.at(*b), self.at(*c)),
            Step::Clamp(a, b, c) => Step::Clamp(self.at(*a), self.at(*b), self.at(*c)),
            Step::Reduce(op, a) => Step::Reduce(*op, self.at(*a)),
            Step::Const(_) | Step::Load(_) | Step::Number(_) | Step::Inside(_) => step.clone(),
            Step::Carried { .. } | Step::Value { .. } | Step::Slot(_) => step.clone(),
        }
    }

    fn finish(mut self, channel: &Channel) -> Channel {
        let names = channel.body.names.iter().map(|(r, n)| (self.at(*r), n.clone()));
        self.body.names = names.collect();
        let stores = channel.body.stores.iter().map(|s| Store {
            value: self.at(s.value),
            ..s.clone()
        });
        self.body.stores = stores.collect();
        let mut carried = channel.carried.clone();
        for state in &mut carried {
            state.value = self.at(state.value);
        }
        Channel {
            carried,
            body: self.body,
            ..channel.clone()
        }
    }
}
