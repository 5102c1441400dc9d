//! Horizontal places: each item as near as can be to the mean of those it is joined to, rows in their order, nothing
//! overlapping. A row is solved exactly (least squares under order, by pooling neighbours that would overlap).

use super::layout::Rows;

/// Between two items of a row.
const GAP: f64 = 26.0;
/// Sweeps over all rows.
const SWEEPS: usize = 12;

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
    let wanted: Vec<f64> = row.iter().map(|item| mean(*item, sides, x)).collect();
    // Offsets turn "in order and apart" into "not descending".
    let mut offset = 0.0;
    let mut offsets = Vec::with_capacity(row.len());
    for (at, item) in row.iter().enumerate() {
        if at > 0 {
            offset += (rows.width[row[at - 1]] + rows.width[*item]) / 2.0 + GAP;
        }
        offsets.push(offset);
    }
    let free: Vec<f64> = wanted.iter().zip(&offsets).map(|(w, o)| w - o).collect();
    for ((item, place), offset) in row.iter().zip(not_descending(&free)).zip(offsets) {
        x[*item] = place + offset;
    }
}

fn mean(item: usize, sides: &[&Vec<Vec<usize>>], x: &[f64]) -> f64 {
    let joined: Vec<f64> = sides.iter().flat_map(|side| &side[item]).map(|j| x[*j]).collect();
    match joined.len() {
        0 => x[item],
        n => joined.iter().sum::<f64>() / n as f64,
    }
}

/// The sequence nearest to `wanted` that does not descend.
fn not_descending(wanted: &[f64]) -> Vec<f64> {
    let mut pools: Vec<(f64, usize)> = Vec::new();
    for value in wanted {
        let (mut sum, mut count) = (*value, 1);
        while let Some((s, c)) = pools
            .last()
            .filter(|(s, c)| s / *c as f64 > sum / count as f64)
            .copied()
        {
            sum += s;
            count += c;
            pools.pop();
        }
        pools.push((sum, count));
    }
    let each = pools
        .into_iter()
        .flat_map(|(sum, count)| std::iter::repeat_n(sum / count as f64, count));
    each.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pooling_gives_the_nearest_sequence() {
        assert_eq!(not_descending(&[1.0, 3.0, 2.0, 4.0]), [1.0, 2.5, 2.5, 4.0]);
        assert_eq!(not_descending(&[3.0, 2.0, 1.0]), [2.0, 2.0, 2.0]);
        assert!(not_descending(&[]).is_empty());
    }
}
