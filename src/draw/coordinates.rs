//! Horizontal places: each item as near as can be to the mean of those it is joined to, rows in their order, nothing
//! overlapping. A row is solved exactly (least squares under order, by pooling neighbours that would overlap).

use super::layout::Rows;

/// Between two items of a row.
const GAP: f64 = 26.0;
/// Sweeps over all rows.
const SWEEPS: usize = 16;
/// How much more it counts that a long arrow is straight than that a box stands under what it reads.
const STRAIGHT: f64 = 8.0;

/// The centre of every item; the leftmost edge is at 0.
pub(super) fn coordinates(rows: &Rows) -> Vec<f64> {
    let n = rows.row.len();
    let (mut up, mut down) = (vec![Vec::new(); n], vec![Vec::new(); n]);
    for (a, b) in &rows.joints {
        down[*a].push(*b);
        up[*b].push(*a);
    }
    let mut x = vec![0.0; n];
    for row in &rows.rows {
        let mut left = 0.0;
        for item in row {
            x[*item] = left + rows.width[*item] / 2.0;
            left += rows.width[*item] + GAP;
        }
    }
    let count = rows.rows.len();
    for sweep in 0..SWEEPS {
        for step in 0..count {
            let at = if sweep % 2 == 0 { step } else { count - 1 - step };
            let sides: &[&Vec<Vec<usize>>] = match (sweep + 2 >= SWEEPS, sweep % 2) {
                (true, _) => &[&up, &down],
                (false, 0) => &[&up],
                (false, _) => &[&down],
            };
            place(&rows.rows[at], rows, sides, &mut x);
        }
    }
    let left = (0..n).map(|i| x[i] - rows.width[i] / 2.0).fold(f64::INFINITY, f64::min);
    x.iter().map(|x| x - left).collect()
}

fn place(row: &[usize], rows: &Rows, sides: &[&Vec<Vec<usize>>], x: &mut [f64]) {
    let wanted: Vec<(f64, f64)> = row.iter().map(|item| mean(*item, rows, sides, x)).collect();
    // Offsets turn "in order and apart" into "not descending".
    let mut offset = 0.0;
    let mut offsets = Vec::with_capacity(row.len());
    for (at, item) in row.iter().enumerate() {
        if at > 0 {
            offset += (rows.width[row[at - 1]] + rows.width[*item]) / 2.0 + GAP;
        }
        offsets.push(offset);
    }
    let free: Vec<(f64, f64)> = wanted
        .iter()
        .zip(&offsets)
        .map(|((w, weight), o)| (w - o, *weight))
        .collect();
    for ((item, place), offset) in row.iter().zip(not_descending(&free)).zip(offsets) {
        x[*item] = place + offset;
    }
}

/// Where an item would stand by itself, and how much that counts.
fn mean(item: usize, rows: &Rows, sides: &[&Vec<Vec<usize>>], x: &[f64]) -> (f64, f64) {
    let (mut sum, mut weight) = (0.0, 0.0);
    for joined in sides.iter().flat_map(|side| &side[item]) {
        let each = match (rows.is_lane(item), rows.is_lane(*joined)) {
            (true, true) => STRAIGHT,
            _ => 1.0,
        };
        sum += each * x[*joined];
        weight += each;
    }
    match weight > 0.0 {
        true => (sum / weight, weight),
        false => (x[item], 0.1),
    }
}

/// The sequence nearest to `wanted` (each with its weight) that does not descend.
fn not_descending(wanted: &[(f64, f64)]) -> Vec<f64> {
    // Weighted sum, weight, and number of the values that are one.
    let mut pools: Vec<(f64, f64, usize)> = Vec::new();
    for (value, weight) in wanted {
        let (mut sum, mut total, mut count) = (value * weight, *weight, 1);
        while let Some((s, w, c)) = pools.last().filter(|(s, w, _)| s / w > sum / total).copied() {
            (sum, total, count) = (sum + s, total + w, count + c);
            pools.pop();
        }
        pools.push((sum, total, count));
    }
    let each = pools
        .into_iter()
        .flat_map(|(sum, total, count)| std::iter::repeat_n(sum / total, count));
    each.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pooling_gives_the_nearest_sequence() {
        let even = |values: &[f64]| not_descending(&values.iter().map(|v| (*v, 1.0)).collect::<Vec<_>>());
        assert_eq!(even(&[1.0, 3.0, 2.0, 4.0]), [1.0, 2.5, 2.5, 4.0]);
        assert_eq!(even(&[3.0, 2.0, 1.0]), [2.0, 2.0, 2.0]);
        assert!(even(&[]).is_empty());
        assert_eq!(not_descending(&[(4.0, 3.0), (0.0, 1.0)]), [3.0, 3.0]);
    }
}
