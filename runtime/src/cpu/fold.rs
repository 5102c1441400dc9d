//! Element-wise steps and reductions over runs of registers, compiled for each instruction set.

use super::isa::for_each_isa;
use super::math::{self, log_add_exp, maximum, minimum};
use crate::scalar::{Binary, Reduce, Unary};

for_each_isa! {
    /// `out[i] = op(a[i])`.
    fn unary(op: Unary, out: &mut [f32], a: &[f32]) = unary_with
}

for_each_isa! {
    /// `out[i] = op(a[i], b[i])`.
    fn binary(op: Binary, out: &mut [f32], a: &[f32], b: &[f32]) = binary_with
}

for_each_isa! {
    /// `out[i] = if c[i] != 0 { a[i] } else { b[i] }`.
    fn select(out: &mut [f32], c: &[f32], a: &[f32], b: &[f32]) = select_with
}

for_each_isa! {
    /// `out[i] = min(max(x[i], lo[i]), hi[i])`.
    fn clamp(out: &mut [f32], x: &[f32], lo: &[f32], hi: &[f32]) = clamp_with
}

for_each_isa! {
    /// `out[i] = fold of terms[i * n..(i + 1) * n]`; the order of additions depends on n alone.
    fn reduce(op: Reduce, out: &mut [f32], terms: &[f32], n: usize) = reduce_with
}

#[inline(always)]
fn unary_with<const F: bool>(op: Unary, out: &mut [f32], a: &[f32]) {
    math::unary::<F>(op, out, a);
}

#[inline(always)]
fn map2(out: &mut [f32], a: &[f32], b: &[f32], f: impl Fn(f32, f32) -> f32) {
    for ((out, a), b) in out.iter_mut().zip(a).zip(b) {
        *out = f(*a, *b);
    }
}

#[inline(always)]
fn map3(out: &mut [f32], a: &[f32], b: &[f32], c: &[f32], f: impl Fn(f32, f32, f32) -> f32) {
    for (((out, a), b), c) in out.iter_mut().zip(a).zip(b).zip(c) {
        *out = f(*a, *b, *c);
    }
}

#[inline(always)]
fn truth(holds: bool) -> f32 {
    if holds { 1.0 } else { 0.0 }
}

#[inline(always)]
fn binary_with<const F: bool>(op: Binary, out: &mut [f32], a: &[f32], b: &[f32]) {
    match op {
        Binary::Add => map2(out, a, b, |a, b| a + b),
        Binary::Sub => map2(out, a, b, |a, b| a - b),
        Binary::Mul => map2(out, a, b, |a, b| a * b),
        Binary::Div => map2(out, a, b, |a, b| a / b),
        Binary::Max => map2(out, a, b, maximum),
        Binary::Min => map2(out, a, b, minimum),
        // Rounded once from f64, like every libm that is accurate.
        Binary::Pow => map2(out, a, b, |a, b| f64::from(a).powf(f64::from(b)) as f32),
        Binary::Mod => map2(out, a, b, |a, b| Binary::Mod.eval(f64::from(a), f64::from(b)) as f32),
        Binary::LogAddExp => map2(out, a, b, log_add_exp::<F>),
        Binary::Eq => map2(out, a, b, |a, b| truth(a == b)),
        Binary::Ne => map2(out, a, b, |a, b| truth(a != b)),
        Binary::Lt => map2(out, a, b, |a, b| truth(a < b)),
        Binary::Le => map2(out, a, b, |a, b| truth(a <= b)),
        Binary::Gt => map2(out, a, b, |a, b| truth(a > b)),
        Binary::Ge => map2(out, a, b, |a, b| truth(a >= b)),
    }
}

#[inline(always)]
fn select_with<const F: bool>(out: &mut [f32], c: &[f32], a: &[f32], b: &[f32]) {
    map3(out, c, a, b, |c, a, b| if c != 0.0 { a } else { b });
}

#[inline(always)]
fn clamp_with<const F: bool>(out: &mut [f32], x: &[f32], lo: &[f32], hi: &[f32]) {
    map3(out, x, lo, hi, |x, lo, hi| minimum(maximum(x, lo), hi));
}

/// Partial results of a reduction, folded in pairs at the end.
const LANES: usize = 8;

#[inline(always)]
fn fold(terms: &[f32], start: f32, f: impl Fn(f32, f32) -> f32, join: impl Fn(f32, f32) -> f32) -> f32 {
    let mut lanes = [start; LANES];
    let (chunks, rest) = terms.as_chunks::<LANES>();
    for chunk in chunks {
        for (lane, x) in lanes.iter_mut().zip(chunk) {
            *lane = f(*lane, *x);
        }
    }
    for (lane, x) in lanes.iter_mut().zip(rest) {
        *lane = f(*lane, *x);
    }
    let mut width = LANES;
    while width > 1 {
        width /= 2;
        for i in 0..width {
            lanes[i] = join(lanes[i], lanes[i + width]);
        }
    }
    lanes[0]
}

#[inline(always)]
fn sum(terms: &[f32]) -> f32 {
    fold(terms, 0.0, |a, x| a + x, |a, b| a + b)
}

#[inline(always)]
fn reduce_with<const F: bool>(op: Reduce, out: &mut [f32], terms: &[f32], n: usize) {
    let groups = out.iter_mut().zip(terms.chunks_exact(n));
    match op {
        Reduce::Sum => groups.for_each(|(out, x)| *out = sum(x)),
        Reduce::Mean => groups.for_each(|(out, x)| *out = sum(x) / n as f32),
        Reduce::Var => groups.for_each(|(out, x)| *out = variance(x)),
        Reduce::Max => groups.for_each(|(out, x)| *out = greatest(x)),
        Reduce::Min => groups.for_each(|(out, x)| *out = fold(x, f32::INFINITY, minimum, minimum)),
        Reduce::LogSumExp => groups.for_each(|(out, x)| *out = log_sum_exp::<F>(x)),
    }
}

#[inline(always)]
fn greatest(terms: &[f32]) -> f32 {
    fold(terms, f32::NEG_INFINITY, maximum, maximum)
}

/// In two passes: the mean first.
#[inline(always)]
fn variance(terms: &[f32]) -> f32 {
    let mean = sum(terms) / terms.len() as f32;
    fold(terms, 0.0, |a, x| a + (x - mean) * (x - mean), |a, b| a + b) / terms.len() as f32
}

#[inline(always)]
fn log_sum_exp<const F: bool>(terms: &[f32]) -> f32 {
    let most = greatest(terms);
    if most.is_infinite() {
        return most;
    }
    let sum = fold(terms, 0.0, |a, x| a + math::exp::<F>(x - most), |a, b| a + b);
    most + sum.ln()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::isa::Isa;

    fn terms(n: usize) -> Vec<f32> {
        (0..n).map(|i| ((i * 37 + 11) % 23) as f32 * 0.37 - 3.0).collect()
    }

    #[test]
    fn reductions_agree_with_f64() {
        for (isa, op) in Isa::all()
            .iter()
            .flat_map(|isa| Reduce::ALL.iter().map(move |op| (isa, op)))
        {
            for n in [1, 2, 7, 8, 9, 64, 1000] {
                let x = terms(3 * n);
                let mut out = [0.0; 3];
                reduce(*isa, *op, &mut out, &x, n);
                for (got, group) in out.iter().zip(x.chunks(n)) {
                    let wide: Vec<f64> = group.iter().map(|x| f64::from(*x)).collect();
                    let want = op.eval(&wide);
                    let scale = want.abs().max(1.0);
                    assert!(
                        (f64::from(*got) - want).abs() <= 1e-5 * scale,
                        "{op:?} of {n}: {got}, should be {want}"
                    );
                }
            }
        }
    }

    #[test]
    fn reductions_keep_nan_and_infinities() {
        for (isa, op) in Isa::all()
            .iter()
            .flat_map(|isa| Reduce::ALL.iter().map(move |op| (isa, op)))
        {
            for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
                let mut x = terms(20);
                x[13] = bad;
                let mut out = [0.0; 2];
                reduce(*isa, *op, &mut out, &x, 10);
                let want = op.eval(&x[10..].iter().map(|x| f64::from(*x)).collect::<Vec<f64>>()) as f32;
                let near = (out[1] - want).abs() <= 1e-5 || out[1] == want || out[1].is_nan() && want.is_nan();
                assert!(
                    near && out[0].is_finite(),
                    "{op:?} with {bad}: {}, should be {want}",
                    out[1]
                );
            }
        }
    }

    #[test]
    fn operations_on_two_numbers_agree_with_f64() {
        let values = [
            -2.5,
            -1.0,
            -0.0,
            0.0,
            0.5,
            3.0,
            f32::INFINITY,
            f32::NEG_INFINITY,
            f32::NAN,
        ];
        let pairs = values.iter().flat_map(|a| values.iter().map(move |b| (*a, *b)));
        let (a, b): (Vec<f32>, Vec<f32>) = pairs.unzip();
        for (isa, op) in Isa::all()
            .iter()
            .flat_map(|isa| Binary::ALL.iter().map(move |op| (isa, op)))
        {
            let mut out = vec![0.0; a.len()];
            binary(*isa, *op, &mut out, &a, &b);
            for ((a, b), got) in a.iter().zip(&b).zip(out) {
                let want = op.eval(f64::from(*a), f64::from(*b)) as f32;
                let same = got == want || got.is_nan() && want.is_nan() || (got - want).abs() <= 2e-7 * want.abs();
                assert!(same, "{op:?}({a}, {b}) = {got}, should be {want}");
            }
        }
    }

    #[test]
    fn selections_and_clamps_keep_nan() {
        for isa in Isa::all() {
            let mut out = [0.0; 3];
            select(isa, &mut out, &[0.0, f32::NAN, 2.0], &[1.0; 3], &[5.0; 3]);
            assert_eq!(out, [5.0, 1.0, 1.0]);
            clamp(isa, &mut out, &[f32::NAN, 9.0, -9.0], &[0.0; 3], &[1.0; 3]);
            assert!(out[0].is_nan() && out[1..] == [1.0, 0.0]);
        }
    }
}
