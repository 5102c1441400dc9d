//! The order of items within rows, for few crossings: sweeps down and up in which each item moves to the mean place of
//! those it is joined to; the best order met is kept.

use super::layout::Rows;

/// Sweeps without a better order after which it is kept.
const PATIENCE: usize = 4;
/// Sweeps in all.
const MAX_SWEEPS: usize = 16;

/// Orders the items of every row.
pub(super) fn order(rows: &mut Rows) {
    let n = rows.row.len();
    let (mut up, mut down) = (vec![Vec::new(); n], vec![Vec::new(); n]);
    for (a, b) in &rows.joints {
        down[*a].push(*b);
        up[*b].push(*a);
    }
    let mut place = vec![0usize; n];
    for row in &rows.rows {
        settle(row, &mut place);
    }
    let (mut best, mut fewest, mut idle) = (rows.rows.clone(), crossings(&rows.rows, &down, &place), 0);
    for sweep in 0..MAX_SWEEPS {
        if idle >= PATIENCE || fewest == 0 {
            break;
        }
        let towards = if sweep % 2 == 0 { &up } else { &down };
        let count = rows.rows.len();
        for step in 0..count {
            let at = if sweep % 2 == 0 { step } else { count - 1 - step };
            arrange(&mut rows.rows[at], towards, &mut place);
        }
        let now = crossings(&rows.rows, &down, &place);
        idle += 1;
        if now < fewest {
            (best, fewest, idle) = (rows.rows.clone(), now, 0);
        }
    }
    rows.rows = best;
}

fn settle(row: &[usize], place: &mut [usize]) {
    for (at, item) in row.iter().enumerate() {
        place[*item] = at;
    }
}

fn arrange(row: &mut [usize], towards: &[Vec<usize>], place: &mut [usize]) {
    let mean = |item: usize| match towards[item].len() {
        0 => place[item] as f64,
        n => towards[item].iter().map(|j| place[*j] as f64).sum::<f64>() / n as f64,
    };
    let mut wanted: Vec<(f64, usize, usize)> = row.iter().map(|i| (mean(*i), place[*i], *i)).collect();
    wanted.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    for (slot, (_, _, item)) in row.iter_mut().zip(wanted) {
        *slot = item;
    }
    settle(row, place);
}

/// How many pairs of joints cross: inversions between each row and the next, counted in a Fenwick tree.
fn crossings(rows: &[Vec<usize>], down: &[Vec<usize>], place: &[usize]) -> usize {
    let mut total = 0;
    for (row, next) in rows.iter().zip(rows.iter().skip(1)) {
        let mut tree = vec![0usize; next.len() + 1];
        let mut seen = 0;
        for item in row {
            let mut ends: Vec<usize> = down[*item].iter().map(|j| place[*j]).collect();
            ends.sort_unstable();
            total += ends.iter().map(|end| seen - prefix(&tree, *end)).sum::<usize>();
            ends.iter().for_each(|end| add(&mut tree, *end));
            seen += ends.len();
        }
    }
    total
}

/// How many ends lie at or before a place.
fn prefix(tree: &[usize], place: usize) -> usize {
    let (mut at, mut sum) = (place + 1, 0);
    while at > 0 {
        sum += tree[at];
        at &= at - 1;
    }
    sum
}

fn add(tree: &mut [usize], place: usize) {
    let mut at = place + 1;
    while at < tree.len() {
        tree[at] += 1;
        at += at & at.wrapping_neg();
    }
}
