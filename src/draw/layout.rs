//! Where boxes stand and how arrows run.
//!
//! Comes in: a picture. Goes out: a rectangle a box and a path an arrow. Boxes lie in rows, each below all that it reads in
//! the same frame; an arrow over several rows takes a place in each row that it crosses, so that it meets no box.

use super::coordinates;
use super::picture::{Arrow, Box, Picture};
use super::{order, routes};

/// Width of a character of the font, in pixels.
pub(super) const CHARACTER: f64 = 7.25;
/// Between two rows.
const ROW_GAP: f64 = 52.0;
/// What a box with an arrow to itself keeps free at its right.
const LOOP_ROOM: f64 = 62.0;
/// How tall a row is for an arrow that crosses it, at least.
pub(super) const LANE_HEIGHT: f64 = 26.0;
/// The width that an arrow takes in a row that it crosses.
const LANE: f64 = 16.0;
/// More places of arrows than this are not kept: the longest arrows then run straight.
const MAX_LANES: usize = 8000;
/// Around the drawing.
const MARGIN: f64 = 24.0;

/// A box's place.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rect {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) w: f64,
    pub(super) h: f64,
}

/// A point of an arrow, and which way the arrow runs there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Knot {
    pub(super) x: f64,
    pub(super) y: f64,
    /// Direction: (0, 1) is down.
    pub(super) dx: f64,
    pub(super) dy: f64,
}

/// A laid-out picture.
pub(super) struct Layout {
    pub(super) boxes: Vec<Rect>,
    /// The knots of each arrow, from the value read to its reader.
    pub(super) routes: Vec<Vec<Knot>>,
    pub(super) width: f64,
    pub(super) height: f64,
}

/// Boxes and lanes in rows.
pub(super) struct Rows {
    /// The row of each item: boxes first, then lanes.
    pub(super) row: Vec<usize>,
    /// The width of each item.
    pub(super) width: Vec<f64>,
    /// Pairs of items of adjacent rows that an arrow joins, upper first.
    pub(super) joints: Vec<(usize, usize)>,
    /// The items of each row, in order.
    pub(super) rows: Vec<Vec<usize>>,
    /// How many of the items are boxes.
    boxes: usize,
    /// The lanes of each arrow, from its source on.
    pub(super) lanes: Vec<Vec<usize>>,
}

/// Lays a picture out.
pub(super) fn layout(picture: &Picture) -> Layout {
    let sizes: Vec<(f64, f64)> = picture.boxes.iter().map(size).collect();
    let mut rows = rows(picture, &sizes);
    order::order(&mut rows);
    let centres = coordinates::coordinates(&rows);
    let tops = tops(&rows, &sizes);
    let mut boxes: Vec<Rect> = Vec::with_capacity(sizes.len());
    for (number, (w, h)) in sizes.iter().enumerate() {
        let left = centres[number] - rows.width[number] / 2.0;
        boxes.push(Rect {
            x: left + MARGIN,
            y: tops[rows.row[number]] + MARGIN,
            w: *w,
            h: *h,
        });
    }
    let lane = |item: usize| (centres[item] + MARGIN, tops[rows.row[item]] + MARGIN);
    let routes = routes::routes(picture, &rows, &boxes, &lane);
    let right = rows.width.iter().zip(&centres).map(|(w, x)| x + w / 2.0);
    Layout {
        width: right.fold(0.0, f64::max) + 2.0 * MARGIN,
        height: tops.last().copied().unwrap_or(0.0) + 2.0 * MARGIN,
        boxes,
        routes,
    }
}

/// Width and height of a box.
fn size(drawn: &Box) -> (f64, f64) {
    let title = drawn.title.chars().count() + drawn.axes.chars().count() + 1;
    let text = drawn.text.chars().count();
    let width = title.max(text) as f64 * CHARACTER + 20.0;
    match drawn.text.is_empty() {
        true => (width, 26.0),
        false => (width, 42.0),
    }
}

fn rows(picture: &Picture, sizes: &[(f64, f64)]) -> Rows {
    let mut rows = Rows {
        row: ranks(picture),
        width: sizes.iter().map(|(w, _)| *w).collect(),
        joints: Vec::new(),
        rows: Vec::new(),
        boxes: sizes.len(),
        lanes: vec![Vec::new(); picture.arrows.len()],
    };
    for arrow in picture.arrows.iter().filter(|a| a.from == a.to) {
        rows.width[arrow.from] = sizes[arrow.from].0 + LOOP_ROOM;
    }
    let mut by_length: Vec<usize> = (0..picture.arrows.len()).collect();
    by_length.sort_by_key(|a| (span(&rows.row, &picture.arrows[*a]), *a));
    for number in by_length {
        rows.thread(number, &picture.arrows[number]);
    }
    let count = rows.row.iter().max().map_or(0, |last| last + 1);
    rows.rows = vec![Vec::new(); count];
    for (item, row) in rows.row.iter().enumerate() {
        rows.rows[*row].push(item);
    }
    rows
}

fn span(row: &[usize], arrow: &Arrow) -> usize {
    row[arrow.from].abs_diff(row[arrow.to])
}

impl Rows {
    /// Whether an item is a place of an arrow.
    pub(super) fn is_lane(&self, item: usize) -> bool {
        item >= self.boxes
    }

    /// Gives an arrow a lane in each row between its ends.
    fn thread(&mut self, number: usize, arrow: &Arrow) {
        let (first, last) = (self.row[arrow.from], self.row[arrow.to]);
        let between = first.abs_diff(last).saturating_sub(1);
        if first == last || between + self.row.len() > MAX_LANES {
            return;
        }
        let mut before = arrow.from;
        for step in 1..=between {
            let row = if first < last { first + step } else { first - step };
            let lane = self.row.len();
            self.row.push(row);
            self.width.push(LANE);
            self.lanes[number].push(lane);
            self.join(before, lane);
            before = lane;
        }
        self.join(before, arrow.to);
    }

    fn join(&mut self, a: usize, b: usize) {
        match self.row[a] < self.row[b] {
            true => self.joints.push((a, b)),
            false => self.joints.push((b, a)),
        }
    }
}

/// The row of each box: below everything that it reads in its frame; what reads nothing stands just above its first
/// reader.
fn ranks(picture: &Picture) -> Vec<usize> {
    let n = picture.boxes.len();
    let (mut readers, mut missing) = (vec![Vec::new(); n], vec![0usize; n]);
    for arrow in picture.arrows.iter().filter(|a| a.delay == 0 && a.from != a.to) {
        readers[arrow.from].push(arrow.to);
        missing[arrow.to] += 1;
    }
    let leaf: Vec<bool> = missing.iter().map(|m| *m == 0).collect();
    let mut ready: Vec<usize> = (0..n).filter(|b| leaf[*b]).collect();
    let mut row = vec![0usize; n];
    while let Some(next) = ready.pop() {
        for reader in &readers[next] {
            row[*reader] = row[*reader].max(row[next] + 1);
            missing[*reader] -= 1;
            if missing[*reader] == 0 {
                ready.push(*reader);
            }
        }
    }
    for number in (0..n).filter(|b| leaf[*b]) {
        let first = readers[number].iter().map(|r| row[*r]).min().unwrap_or(0);
        row[number] = first.saturating_sub(1);
    }
    row
}

/// The top of each row, and the bottom of the last.
fn tops(rows: &Rows, sizes: &[(f64, f64)]) -> Vec<f64> {
    let mut tops = vec![0.0];
    for row in &rows.rows {
        let heights = row.iter().filter_map(|item| sizes.get(*item)).map(|(_, h)| *h);
        let top = tops.last().copied().unwrap_or(0.0);
        tops.push(top + heights.fold(0.0, f64::max) + ROW_GAP);
    }
    if let Some(last) = tops.last_mut() {
        *last -= ROW_GAP;
    }
    tops
}
