//! Which elements the points of a space address: an index expression and its guards, prepared for walking in order.

use crate::plan::{Atom, Guard, Index};

/// Elements by point, points counted row-major.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Access {
    /// Strides by axis, neighbouring axes merged where one step of the outer is a full run of the inner.
    Affine {
        /// Of point 0.
        base: i64,
        /// Extent and stride of each merged axis; none where the space has one point, or the element is always the same.
        axes: Vec<(usize, i64)>,
    },
    /// Element by element; negative where a guard does not hold.
    Table(Vec<i32>),
}

impl Access {
    /// Prepares an index over a space. Nothing is addressed where a guard fails, or a variable of `zero` is not 0.
    pub(super) fn new(index: &Index, guards: &[Guard], zero: &[usize], extents: &[usize]) -> Access {
        let strides: Option<Vec<i64>> = (0..extents.len()).map(|v| index.stride_of(v as u8)).collect();
        let affine = index.terms.iter().all(|t| matches!(t.atom, Atom::Var(_)));
        match strides {
            Some(strides) if affine && guards.is_empty() && zero.is_empty() => {
                Access::affine(index.base, extents, &strides)
            }
            _ => Access::Table(points(extents).map(|p| element(index, guards, zero, &p)).collect()),
        }
    }

    fn affine(base: i64, extents: &[usize], strides: &[i64]) -> Access {
        let mut axes: Vec<(usize, i64)> = Vec::new();
        for (extent, stride) in extents
            .iter()
            .copied()
            .zip(strides.iter().copied())
            .filter(|a| a.0 != 1)
        {
            match axes.last_mut() {
                Some(outer) if outer.1 == stride * extent as i64 => *outer = (outer.0 * extent, stride),
                _ => axes.push((extent, stride)),
            }
        }
        if axes.iter().all(|a| a.1 == 0) {
            axes.clear();
        }
        Access::Affine { base, axes }
    }

    /// Whether point p addresses element p, for all `n` points.
    pub(super) fn is_identity(&self, n: usize) -> bool {
        match self {
            Access::Affine { base: 0, axes } => n == 1 && axes.is_empty() || axes.as_slice() == [(n, 1)],
            _ => false,
        }
    }

    /// The element of point 0, if the others follow one by one.
    pub(super) fn contiguous(&self) -> Option<usize> {
        match self {
            Access::Affine { base, axes } if axes.is_empty() || matches!(axes.as_slice(), [(_, 1)]) => {
                Some(*base as usize)
            }
            _ => None,
        }
    }

    /// Copies the elements of points `first..first + out.len()`.
    pub(super) fn read(&self, source: &[f32], first: usize, out: &mut [f32]) {
        match self {
            Access::Affine { base, axes } => {
                runs(*base, axes, first, out.len(), |at, element, n, stride| {
                    let out = &mut out[at..at + n];
                    match stride {
                        0 => out.fill(source[element]),
                        1 => out.copy_from_slice(&source[element..element + n]),
                        _ => {
                            for (i, out) in out.iter_mut().enumerate() {
                                *out = source[(element as i64 + i as i64 * stride) as usize];
                            }
                        }
                    }
                });
            }
            Access::Table(elements) => {
                for (out, element) in out.iter_mut().zip(&elements[first..]) {
                    *out = usize::try_from(*element).map_or(0.0, |e| source[e]);
                }
            }
        }
    }

    /// Copies `values` to the elements of points `first..first + values.len()` of a shape of `len` elements.
    ///
    /// # Safety
    /// `target` may be written up to `len`, and nobody else touches the addressed elements meanwhile.
    pub(super) unsafe fn write(&self, target: *mut f32, len: usize, first: usize, values: &[f32]) {
        let put = |element: i64, value: f32| {
            assert!((0..len as i64).contains(&element), "a write within the shape");
            // SAFETY: checked just above.
            unsafe { target.add(element as usize).write(value) };
        };
        match self {
            Access::Affine { base, axes } => {
                runs(*base, axes, first, values.len(), |at, element, n, stride| {
                    let values = &values[at..at + n];
                    if stride == 1 {
                        assert!(element + n <= len, "a write within the shape");
                        // SAFETY: checked just above; registers never overlap buffers.
                        unsafe { std::ptr::copy_nonoverlapping(values.as_ptr(), target.add(element), n) };
                    } else {
                        let elements = (0..).map(|i: i64| element as i64 + i * stride);
                        elements.zip(values).for_each(|(e, value)| put(e, *value));
                    }
                });
            }
            Access::Table(elements) => {
                for (element, value) in elements[first..].iter().zip(values).filter(|(e, _)| **e >= 0) {
                    put(i64::from(*element), *value);
                }
            }
        }
    }
}

/// The element of a point, -1 where it has none.
fn element(index: &Index, guards: &[Guard], zero: &[usize], point: &[i64]) -> i32 {
    let inside = guards.iter().all(|g| (g.lo..g.hi).contains(&g.index.eval(point)));
    let element = (inside && zero.iter().all(|v| point[*v] == 0)).then(|| index.eval(point));
    element.and_then(|e| i32::try_from(e).ok()).unwrap_or(-1)
}

/// Calls `run(offset, element, n, stride)` for each run along the innermost axis.
#[inline]
fn runs(base: i64, axes: &[(usize, i64)], first: usize, count: usize, mut run: impl FnMut(usize, usize, usize, i64)) {
    let Some(((extent, stride), outer)) = axes.split_last() else {
        run(0, base as usize, count, 0);
        return;
    };
    let mut at = 0;
    while at < count {
        let (mut row, column) = ((first + at) / extent, (first + at) % extent);
        let n = (extent - column).min(count - at);
        let mut element = base + column as i64 * stride;
        for (extent, stride) in outer.iter().rev() {
            element += (row % extent) as i64 * stride;
            row /= extent;
        }
        run(at, element as usize, n, *stride);
        at += n;
    }
}

/// Every point of a space, row-major.
pub(super) fn points(extents: &[usize]) -> impl Iterator<Item = Vec<i64>> {
    let total: usize = extents.iter().product();
    (0..total).map(move |mut p| {
        let mut vars = vec![0; extents.len()];
        for (var, extent) in vars.iter_mut().zip(extents).rev() {
            *var = (p % extent) as i64;
            p /= extent;
        }
        vars
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::samples::at;

    fn check(index: &Index, guards: &[Guard], extents: &[usize]) -> Access {
        let access = Access::new(index, guards, &[], extents);
        let source: Vec<f32> = (0..200).map(|x| x as f32).collect();
        let total: usize = extents.iter().product();
        for first in 0..total {
            let mut out = vec![-1.0; total - first];
            access.read(&source, first, &mut out);
            let want = points(extents).skip(first).map(|p| {
                let holds = guards.iter().all(|g| (g.lo..g.hi).contains(&g.index.eval(&p)));
                if holds { index.eval(&p) as f32 } else { 0.0 }
            });
            assert_eq!(out, want.collect::<Vec<f32>>(), "{index:?} from {first}");
        }
        access
    }

    #[test]
    fn points_read_what_their_index_says() {
        assert!(check(&at(&[(0, 12), (1, 4), (2, 1)]), &[], &[2, 3, 4]).is_identity(24));
        let merged = check(&at(&[(0, 1), (1, 8), (2, 2)]).plus(3), &[], &[2, 3, 4]);
        assert_eq!(
            merged,
            Access::Affine {
                base: 3,
                axes: vec![(2, 1), (12, 2)]
            }
        );
        check(&at(&[(0, -5), (1, 1)]).plus(20), &[], &[4, 5]);
        check(&Index::int(7), &[], &[3, 2]);
        check(&at(&[(1, 3)]), &[], &[3, 2]);
        check(&at(&[(0, 5), (1, 1)]).div_mod(2, Some(3), &[4, 5]), &[], &[4, 5]);
        let guard = Guard {
            index: Index::var(1),
            lo: 1,
            hi: 3,
        };
        check(&at(&[(0, 4), (1, 1)]).plus(-1), &[guard], &[3, 4]);
    }

    #[test]
    fn writes_mirror_reads() {
        for index in [
            at(&[(0, 4), (1, 1)]),
            at(&[(0, 1), (1, 3)]),
            at(&[(0, -4), (1, 1)]).plus(8),
        ] {
            let access = Access::new(&index, &[], &[], &[3, 4]);
            let values: Vec<f32> = (1..=12).map(|x| x as f32).collect();
            let (mut memory, mut back) = ([0.0; 12], [0.0; 12]);
            for (first, part) in [(0, &values[..5]), (5, &values[5..])] {
                // SAFETY: the array is ours.
                unsafe { access.write(memory.as_mut_ptr(), memory.len(), first, part) };
            }
            access.read(&memory, 0, &mut back);
            assert_eq!(back, *values);
        }
    }
}
