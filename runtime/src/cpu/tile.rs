//! Products of a few rows with packed weights: the tiles that hold their sums in registers.
//!
//! Weights lie in panels of [`PANEL`] outputs, `[k][PANEL]`. Each sum runs over k in order with one accumulator, whatever
//! tile it falls into, so results do not depend on how work is cut.

use super::isa::Isa;

/// Outputs of a panel.
pub(super) const PANEL: usize = 16;

/// Most rows of a tile: with two vectors a row, 12 sums fill the registers of AVX2.
const ROWS: usize = 6;

/// The left operand: `count` rows of `k` elements.
#[derive(Clone, Copy)]
pub(super) struct Rows {
    pub(super) start: *const f32,
    /// Elements between rows.
    pub(super) stride: usize,
    pub(super) count: usize,
    pub(super) k: usize,
}

/// A panel and where its sums go.
#[derive(Clone, Copy)]
pub(super) struct Panel {
    pub(super) weights: *const f32,
    /// Of row 0.
    pub(super) out: *mut f32,
    /// Outputs that exist, at most [`PANEL`].
    pub(super) count: usize,
}

/// `out[row][i] = sum over k of rows[row][k] * weights[k][i]` for each panel; rows of results lie `out_stride` apart.
///
/// # Safety
/// The rows may be read, the panels' weights have `k * PANEL` elements, `count` elements of each result row may be written
/// and overlap nothing that is read.
pub(super) unsafe fn multiply(isa: Isa, rows: &Rows, panels: &[Panel], out_stride: usize) {
    let tiles = rows.count.div_ceil(ROWS);
    for group in panels.chunks(panels_at_once(rows.count)) {
        let mut first = 0;
        for tile in 0..tiles {
            // Nearly equal tiles: a last tile of one row would wait for its few sums.
            let count = (rows.count - first).div_ceil(tiles - tile);
            let part = Rows {
                start: rows.start.wrapping_add(first * rows.stride),
                count,
                ..*rows
            };
            // SAFETY: parts of what the caller promises.
            unsafe { tile_of(isa, &part, group, first * out_stride, out_stride) };
            first += count;
        }
    }
}

/// Few rows take several panels at once, to have enough independent sums.
fn panels_at_once(rows: usize) -> usize {
    match rows {
        0 | 1 => 4,
        2 => 3,
        3 => 2,
        _ => 1,
    }
}

/// Calls the tile of these many rows and panels.
///
/// # Safety
/// As [`multiply`].
unsafe fn tile_of(isa: Isa, rows: &Rows, panels: &[Panel], offset: usize, out_stride: usize) {
    macro_rules! tile {
        ($rows:literal, $panels:literal) => {{
            let panels = std::array::from_fn(|i| panels[i]);
            match isa {
                // SAFETY: the caller's promise; the machine has AVX2 and FMA.
                #[cfg(target_arch = "x86_64")]
                Isa::Avx2 => unsafe { avx2::<$rows, $panels>(rows, panels, offset, out_stride) },
                // SAFETY: the caller's promise.
                Isa::Portable => unsafe { portable::<$rows, $panels>(rows, panels, offset, out_stride) },
            }
        }};
    }
    match (rows.count, panels.len()) {
        (1, 4) => tile!(1, 4),
        (1, 3) => tile!(1, 3),
        (1, 2) => tile!(1, 2),
        (1, 1) => tile!(1, 1),
        (2, 3) => tile!(2, 3),
        (2, 2) => tile!(2, 2),
        (2, 1) => tile!(2, 1),
        (3, 2) => tile!(3, 2),
        (3, 1) => tile!(3, 1),
        (4, 1) => tile!(4, 1),
        (5, 1) => tile!(5, 1),
        _ => tile!(6, 1),
    }
}

/// # Safety
/// As [`multiply`], for `R` rows and `P` panels; the machine has AVX2 and FMA.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn avx2<const R: usize, const P: usize>(rows: &Rows, panels: [Panel; P], offset: usize, out_stride: usize) {
    use std::arch::x86_64::{_mm256_fmadd_ps, _mm256_loadu_ps, _mm256_set1_ps, _mm256_setzero_ps, _mm256_storeu_ps};
    let mut sums = [[[_mm256_setzero_ps(); 2]; P]; R];
    for k in 0..rows.k {
        for p in 0..P {
            // SAFETY: panels have k * PANEL weights.
            let weights = unsafe {
                let at = panels[p].weights.add(k * PANEL);
                [_mm256_loadu_ps(at), _mm256_loadu_ps(at.add(8))]
            };
            for (r, sums) in sums.iter_mut().enumerate() {
                // SAFETY: there are R rows of k elements.
                let x = _mm256_set1_ps(unsafe { *rows.start.add(r * rows.stride + k) });
                sums[p][0] = _mm256_fmadd_ps(x, weights[0], sums[p][0]);
                sums[p][1] = _mm256_fmadd_ps(x, weights[1], sums[p][1]);
            }
        }
    }
    for (r, sums) in sums.iter().enumerate() {
        for (panel, sums) in panels.iter().zip(sums) {
            let mut row = [0.0; PANEL];
            // SAFETY: the array has PANEL elements; so many of the result as exist may be written.
            unsafe {
                _mm256_storeu_ps(row.as_mut_ptr(), sums[0]);
                _mm256_storeu_ps(row.as_mut_ptr().add(8), sums[1]);
                put(&row, panel, offset + r * out_stride);
            }
        }
    }
}

/// # Safety
/// As [`multiply`], for `R` rows and `P` panels.
unsafe fn portable<const R: usize, const P: usize>(rows: &Rows, panels: [Panel; P], offset: usize, out_stride: usize) {
    for panel in &panels {
        let mut sums = [[0.0f32; PANEL]; R];
        for k in 0..rows.k {
            // SAFETY: panels have k * PANEL weights.
            let weights = unsafe { &*panel.weights.add(k * PANEL).cast::<[f32; PANEL]>() };
            for (r, sums) in sums.iter_mut().enumerate() {
                // SAFETY: there are R rows of k elements.
                let x = unsafe { *rows.start.add(r * rows.stride + k) };
                sums.iter_mut().zip(weights).for_each(|(sum, w)| *sum += x * w);
            }
        }
        for (r, row) in sums.iter().enumerate() {
            // SAFETY: so many of the result as exist may be written.
            unsafe { put(row, panel, offset + r * out_stride) };
        }
    }
}

/// # Safety
/// `panel.count` elements from `offset` of its result may be written.
#[inline(always)]
unsafe fn put(row: &[f32; PANEL], panel: &Panel, offset: usize) {
    // SAFETY: the caller's promise; a local array overlaps nothing.
    unsafe {
        let out = panel.out.add(offset);
        if panel.count == PANEL {
            out.cast::<[f32; PANEL]>().write_unaligned(*row);
        } else {
            std::ptr::copy_nonoverlapping(row.as_ptr(), out, panel.count);
        }
    }
}

/// Appends a panel: output i of it has the weights `weight(i, k)`; outputs from `count` on are 0.
pub(super) fn pack(packed: &mut Vec<f32>, count: usize, k: usize, weight: impl Fn(usize, usize) -> f32) {
    for k in 0..k {
        packed.extend((0..PANEL).map(|i| if i < count { weight(i, k) } else { 0.0 }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(i: usize) -> f32 {
        ((i * 7919 + 13) % 101) as f32 / 50.0 - 1.0
    }

    /// Rows times outputs, any counts, against the sum written out; rows never depend on their neighbours.
    #[test]
    fn tiles_of_all_sizes_give_the_same_sums() {
        for isa in Isa::all() {
            for (rows, outputs, k) in [
                (1, 5usize, 1),
                (1, 80, 33),
                (2, 49, 20),
                (3, 40, 7),
                (4, 16, 9),
                (7, 17, 64),
                (13, 33, 5),
            ] {
                let a: Vec<f32> = (0..rows * k).map(number).collect();
                let weight = |i: usize, k: usize| number(i * 31 + k * 7);
                let mut packed = Vec::new();
                let panels = outputs.div_ceil(PANEL);
                let count = |p: usize| PANEL.min(outputs - p * PANEL);
                (0..panels).for_each(|p| pack(&mut packed, count(p), k, |i, k| weight(p * PANEL + i, k)));
                let mut out = vec![f32::NAN; rows * (outputs + 3)];
                let target = out.as_mut_ptr();
                let panel = |p: usize| Panel {
                    weights: packed[p * PANEL * k..].as_ptr(),
                    out: target.wrapping_add(p * PANEL),
                    count: count(p),
                };
                let left = Rows {
                    start: a.as_ptr(),
                    stride: k,
                    count: rows,
                    k,
                };
                // SAFETY: all arrays have the sizes promised.
                unsafe { multiply(isa, &left, &(0..panels).map(panel).collect::<Vec<Panel>>(), outputs + 3) };
                for (r, i) in (0..rows).flat_map(|r| (0..outputs).map(move |i| (r, i))) {
                    let want: f64 = (0..k)
                        .map(|k2| f64::from(a[r * k + k2]) * f64::from(weight(i, k2)))
                        .sum();
                    let got = f64::from(out[r * (outputs + 3) + i]);
                    assert!(
                        (got - want).abs() < 1e-5,
                        "{isa:?} {rows}x{outputs}x{k} at {r}, {i}: {got}, not {want}"
                    );
                }
                assert!(
                    (0..rows).all(|r| out[r * (outputs + 3) + outputs].is_nan()),
                    "nothing beyond is written"
                );
            }
        }
    }
}
