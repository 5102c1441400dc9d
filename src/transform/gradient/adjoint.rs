//! Adds up what reaches each value: over its readers, over the delays with which it is read, over its parts.

use super::Window;
use super::build::Build;
use crate::ir::{Graph, Kind, Name, NodeId, Op, Read, Scalar, Size};
use std::collections::BTreeMap;

/// The adjoint of part of a value: of positions `lo..hi` of an axis.
struct Part {
    axis: usize,
    lo: Size,
    hi: Size,
    read: Read,
}

/// What has reached one value.
#[derive(Default)]
struct Sum {
    whole: Vec<Read>,
    parts: Vec<Part>,
}

/// What has reached every value of the forward graph.
pub(super) struct Adjoints {
    /// By node: readers of the same frame.
    sums: Vec<Sum>,
    /// By state and delay (negative: read ahead): what these reads add up to, a state of the backward graph.
    delayed: BTreeMap<(NodeId, i32), (NodeId, Sum)>,
}

impl Adjoints {
    /// Nothing has reached anything; the states for delayed reads stand.
    pub(super) fn new(build: &mut Build<'_>) -> Adjoints {
        let forward = build.forward;
        let mut adjoints = Adjoints::within_frame(forward);
        for id in forward.states() {
            let node = forward.node(id);
            if node.ty.scalar != Scalar::Real {
                continue;
            }
            for delay in delays(forward, id) {
                let name = delayed(&format!("d.{}", forward.label(id)), delay);
                // What is read ahead comes from frames that the backward run has yet to reach: nothing is before its first.
                let window = delay.max(0).unsigned_abs();
                let state = build.leaf(Op::State { window }, &node.ty, name);
                adjoints.delayed.insert((id, delay), (state, Sum::default()));
            }
        }
        adjoints
    }

    /// As [`Adjoints::new`], where nothing that is read with a delay takes part.
    pub(super) fn within_frame(forward: &Graph) -> Adjoints {
        let mut sums = Vec::new();
        sums.resize_with(forward.bound(), Sum::default);
        Adjoints {
            sums,
            delayed: BTreeMap::new(),
        }
    }

    /// How the gradients of initial windows come about.
    pub(super) fn windows(&self, forward: &Graph) -> Vec<Window> {
        let real = |id: &NodeId| forward.node(*id).ty.scalar == Scalar::Real;
        let states = forward.states().into_iter().filter(real);
        let window = |id: NodeId| {
            let delays: Vec<i32> = delays(forward, id).into_iter().filter(|d| *d > 0).collect();
            let own = format!("d.{}", forward.label(id));
            let part = |d: &i32| (delayed(&own, *d), d.unsigned_abs());
            Some(Window {
                name: forward.label(id).into(),
                frames: delays.last()?.unsigned_abs(),
                parts: delays.iter().rev().map(part).collect(),
            })
        };
        states.filter_map(window).collect()
    }

    /// Adds to the adjoint of a value of this frame.
    pub(super) fn whole(&mut self, id: NodeId, adjoint: Read) {
        self.sums[id.index()].whole.push(adjoint);
    }

    fn sum(&mut self, read: Read) -> Option<&mut Sum> {
        match read.delay {
            0 => self.sums.get_mut(read.node.index()),
            delay => {
                let delayed = self.delayed.get_mut(&(read.node, delay));
                delayed.map(|(_, sum)| sum)
            }
        }
    }

    /// Adds to the adjoint of what was read.
    pub(super) fn add(&mut self, read: Read, adjoint: Read) {
        if let Some(sum) = self.sum(read) {
            sum.whole.push(adjoint);
        }
    }

    /// Adds to the adjoint of positions `lo..hi` of an axis of what was read.
    pub(super) fn add_part(&mut self, of: Read, axis: usize, (lo, hi): (&Size, &Size), read: Read) {
        let (lo, hi) = (lo.clone(), hi.clone());
        if let Some(sum) = self.sum(of) {
            sum.parts.push(Part { axis, lo, hi, read });
        }
    }

    /// The adjoint of a value all of whose readers of this frame were seen; none if nothing reaches it.
    pub(super) fn finish(&mut self, build: &mut Build<'_>, id: NodeId) -> Option<Read> {
        let mut sum = std::mem::take(&mut self.sums[id.index()]);
        // Both run against each other: what was read late reaches the value early, d frames back in the backward run.
        let delayed = self.delayed.range((id, i32::MIN)..=(id, i32::MAX));
        sum.whole.extend(delayed.map(|((_, delay), (state, _))| Read {
            node: *state,
            delay: *delay,
        }));
        let node = build.forward.node(id);
        build.span = node.span;
        sum.total(build, &node.ty.axes, node.kind)
    }

    /// Gives the states of delayed reads their values.
    pub(super) fn close(self, build: &mut Build<'_>) {
        for ((id, _), (state, sum)) in self.delayed {
            let axes = &build.forward.node(id).ty.axes;
            build.span = build.forward.node(id).span;
            let value = sum.total(build, axes, Kind::Frame);
            let value = value.unwrap_or_else(|| build.literal(0.0, axes));
            build.graph.set_operand(state, 0, value);
        }
    }
}

/// The delays with which a state is read, ascending, those ahead first; its window is the last.
pub(super) fn delays(forward: &Graph, id: NodeId) -> Vec<i32> {
    let mut delays: Vec<i32> = forward.uses(id).iter().map(|u| u.delay).collect();
    if let Op::State { window } = forward.node(id).op {
        delays.push(window as i32); // sizes of windows are bounded by the verifier
    }
    delays.retain(|delay| *delay != 0);
    delays.sort_unstable();
    delays.dedup();
    delays
}

/// The name of something of another frame, in words that no user can write.
pub(super) fn delayed(name: &str, delay: i32) -> Name {
    match delay {
        ahead @ ..0 => format!("{name}.ahead{}", ahead.unsigned_abs()).into(),
        back => format!("{name}.{back}").into(),
    }
}

impl Sum {
    /// Everything added up, for a value of these axes and this kind.
    fn total(mut self, build: &mut Build<'_>, axes: &[Size], kind: Kind) -> Option<Read> {
        self.join(build, axes);
        // What exists as often is added before frames are summed over, so that there is one such sum.
        let mut by_kind: BTreeMap<Kind, Read> = BTreeMap::new();
        for read in self.whole {
            let own = build.kind(read);
            let sum = match by_kind.get(&own) {
                Some(sum) => build.plus(*sum, read),
                None => read,
            };
            by_kind.insert(own, sum);
        }
        let lowered = by_kind.into_values().map(|read| build.lowered(read, kind));
        let lowered: Vec<Read> = lowered.collect();
        lowered.into_iter().reduce(|a, b| build.plus(a, b))
    }

    /// Makes wholes of the parts: those that follow one another from end to end are joined, others set into zeros.
    fn join(&mut self, build: &mut Build<'_>, axes: &[Size]) {
        while let Some(part) = self.parts.pop() {
            let whole = match self.row(&part, axes) {
                Some(row) => {
                    let axis = part.axis;
                    let reads: Vec<Read> = row.iter().map(|p| p.read).collect();
                    let ty = crate::ir::Type::real(axes.to_vec());
                    build.add(Op::Concat { axis }, ty, &reads)
                }
                None => padded(build, &part, axes),
            };
            self.whole.push(whole);
        }
    }

    /// Takes the parts that, with this one, fill the axis without a gap.
    fn row(&mut self, part: &Part, axes: &[Size]) -> Option<Vec<Part>> {
        let end = &axes[part.axis];
        let mut at = Size::int(0);
        let mut chosen = Vec::new(); // by index; the part itself is one past the list
        while at != *end {
            let fits = |p: &Part| p.axis == part.axis && p.lo == at && p.lo != p.hi;
            let next = if fits(part) {
                self.parts.len()
            } else {
                self.parts.iter().position(fits)?
            };
            at = self.parts.get(next).map_or(&part.hi, |p| &p.hi).clone();
            if chosen.contains(&next) {
                return None;
            }
            chosen.push(next);
        }
        if !chosen.contains(&self.parts.len()) {
            return None;
        }
        let mut taken: Vec<Option<Part>> = std::mem::take(&mut self.parts).into_iter().map(Some).collect();
        taken.push(Some(part.copy()));
        let row = chosen.into_iter().filter_map(|i| taken[i].take()).collect();
        taken.pop();
        self.parts = taken.into_iter().flatten().collect();
        Some(row)
    }
}

impl Part {
    fn copy(&self) -> Part {
        let (lo, hi) = (self.lo.clone(), self.hi.clone());
        Part { lo, hi, ..*self }
    }
}

/// A part alone: a product with a matrix of zeros and ones sets it in place, whatever the sizes turn out to be.
fn padded(build: &mut Build<'_>, part: &Part, axes: &[Size]) -> Read {
    let own = build.axes(part.read);
    let selection = build.selection(&axes[part.axis], &own[part.axis], &part.lo);
    let rank = axes.len() as u32;
    let out: Vec<u32> = (0..rank).collect();
    let mut labels = out.clone();
    labels[part.axis] = rank;
    let rows = vec![part.axis as u32, rank];
    build.contract(Kind::Frame, &[(selection, rows), (part.read, labels)], &out)
}
