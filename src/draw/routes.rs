//! How each arrow runs, between boxes that stand and through the places that it has in the rows it crosses.

use super::layout::{Knot, LANE_HEIGHT, Rect, Rows};
use super::picture::{Arrow, Picture};

/// An arrow this far beside a box, not nearer and not further, meets it at its side.
const SIDE: std::ops::Range<f64> = 12.0..90.0;

/// The knots of every arrow. `lane` gives the middle and the top of a place in a row.
pub(super) fn routes(
    picture: &Picture,
    rows: &Rows,
    boxes: &[Rect],
    lane: &dyn Fn(usize) -> (f64, f64),
) -> Vec<Vec<Knot>> {
    let (leave, arrive) = ports(picture, rows, boxes, lane);
    let each = picture.arrows.iter().enumerate().map(|(number, arrow)| {
        let places: Vec<(f64, f64)> = rows.lanes[number].iter().map(|item| lane(*item)).collect();
        if arrow.from == arrow.to {
            around(boxes[arrow.from])
        } else if rows.row[arrow.from] < rows.row[arrow.to] {
            down(arrow, boxes, &places, leave[number], arrive[number])
        } else if rows.row[arrow.from] == rows.row[arrow.to] {
            level(arrow, boxes)
        } else {
            up(arrow, boxes, &places)
        }
    });
    each.collect()
}

/// From the bottom of a box to the top of one further down.
fn down(arrow: &Arrow, boxes: &[Rect], places: &[(f64, f64)], leave: f64, arrive: f64) -> Vec<Knot> {
    let (from, to) = (boxes[arrow.from], boxes[arrow.to]);
    let mut knots = vec![knot(leave, from.y + from.h, 0.0, 1.0)];
    for (x, y) in places {
        knots.extend([knot(*x, *y, 0.0, 1.0), knot(*x, y + LANE_HEIGHT, 0.0, 1.0)]);
    }
    knots.push(knot(arrive, to.y, 0.0, 1.0));
    knots
}

/// To a box of the same row, under those between.
fn level(arrow: &Arrow, boxes: &[Rect]) -> Vec<Knot> {
    let (from, to) = (boxes[arrow.from], boxes[arrow.to]);
    let right = if to.x > from.x { 1.0 } else { -1.0 };
    let (start, end) = (from.x + from.w * (0.5 + 0.3 * right), to.x + to.w * (0.5 - 0.3 * right));
    let bottom = (from.y + from.h).max(to.y + to.h);
    vec![
        knot(start, from.y + from.h, 0.0, 1.0),
        knot((start + end) / 2.0, bottom + 20.0, right, 0.0),
        knot(end, to.y + to.h, 0.0, -1.0),
    ]
}

/// To a box further up.
fn up(arrow: &Arrow, boxes: &[Rect], places: &[(f64, f64)]) -> Vec<Knot> {
    let (from, to) = (boxes[arrow.from], boxes[arrow.to]);
    let first = places.first().map_or(to.x + to.w / 2.0, |(x, _)| *x);
    let last = places.last().map_or(from.x + from.w / 2.0, |(x, _)| *x);
    let mut knots = vec![upward(from, first, from.y, 1.0)];
    for (x, y) in places {
        knots.extend([knot(*x, y + LANE_HEIGHT, 0.0, -1.0), knot(*x, *y, 0.0, -1.0)]);
    }
    knots.push(upward(to, last, to.y + to.h, -1.0));
    knots
}

fn knot(x: f64, y: f64, dx: f64, dy: f64) -> Knot {
    Knot { x, y, dx, dy }
}

/// Where an arrow that runs up leaves a box (`out` is 1) or arrives at it (-1), coming from or going to `x`: at the
/// side that faces it, or at `edge`, the top or bottom, if it lies over the box.
fn upward(rect: Rect, x: f64, edge: f64, out: f64) -> Knot {
    let (right, middle) = (rect.x + rect.w, rect.y + rect.h / 2.0);
    if SIDE.contains(&(x - right)) {
        knot(right, middle, out, 0.0)
    } else if SIDE.contains(&(rect.x - x)) {
        knot(rect.x, middle, -out, 0.0)
    } else {
        knot(x.clamp(rect.x + 8.0, right - 8.0), edge, 0.0, -1.0)
    }
}

/// From a box to itself, at its right.
fn around(rect: Rect) -> Vec<Knot> {
    let right = rect.x + rect.w;
    vec![
        knot(right, rect.y + rect.h * 0.75, 1.0, 0.0),
        knot(right + 24.0, rect.y + rect.h * 0.5, 0.0, -1.0),
        knot(right, rect.y + rect.h * 0.25, -1.0, 0.0),
    ]
}

/// Where on the bottom of its source, and on the top of its reader, each arrow that runs down stands: side by side, in the
/// order of where it goes.
fn ports(picture: &Picture, rows: &Rows, boxes: &[Rect], lane: &dyn Fn(usize) -> (f64, f64)) -> (Vec<f64>, Vec<f64>) {
    let centre = |b: usize| boxes[b].x + boxes[b].w / 2.0;
    let n = picture.arrows.len();
    let (mut leave, mut arrive) = (vec![0.0; n], vec![0.0; n]);
    let mut below: Vec<Vec<(f64, usize)>> = vec![Vec::new(); boxes.len()];
    let mut above = below.clone();
    for (number, arrow) in picture.arrows.iter().enumerate() {
        if rows.row[arrow.from] < rows.row[arrow.to] {
            let lanes = &rows.lanes[number];
            below[arrow.from].push((lanes.first().map_or(centre(arrow.to), |l| lane(*l).0), number));
            above[arrow.to].push((lanes.last().map_or(centre(arrow.from), |l| lane(*l).0), number));
        }
    }
    for (ends, place) in [(&mut below, &mut leave), (&mut above, &mut arrive)] {
        for (number, list) in ends.iter_mut().enumerate() {
            list.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
            let step = boxes[number].w * 0.7 / list.len().max(1) as f64;
            let step = step.min(22.0);
            let first = centre(number) - step * (list.len().saturating_sub(1)) as f64 / 2.0;
            for (at, (_, arrow)) in list.iter().enumerate() {
                place[*arrow] = first + step * at as f64;
            }
        }
    }
    (leave, arrive)
}
