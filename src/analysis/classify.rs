//! Reads the parts of a verdict off the normal form of a recurrence.
//!
//! Comes in: for each state its terms. Goes out: the transition (a chain that ends where it started is elementwise, one
//! that contracts an axis and expands it again is of low rank, anything else is dense), the axes along which coefficients
//! vary, whether they vary in time, and whether the input is an outer product.

use super::term::{Axis, Label, Labels, Source, Term};
use super::{InputTerm, Transition};
use crate::ir::{Graph, Kind, NodeId, Size};
use std::collections::{BTreeMap, BTreeSet};

/// A recurrence in normal form.
pub(super) struct Normal<'a> {
    pub(super) graph: &'a Graph,
    pub(super) labels: &'a Labels,
    /// The states that are read with a delay within the recurrence, each with its terms.
    pub(super) states: Vec<(NodeId, Vec<Term>)>,
}

/// Of a state: which of its axes takes the place of each axis of the first state.
type Alignment = Vec<usize>;

impl Normal<'_> {
    fn links(&self) -> impl Iterator<Item = (NodeId, Source, &Term)> {
        self.states.iter().flat_map(|(state, terms)| {
            let sourced = terms.iter().filter_map(|t| Some((t.source?, t)));
            sourced.map(|(source, term)| (*state, source, term))
        })
    }

    fn axes(&self, state: NodeId) -> &[Size] {
        &self.graph.node(state).ty.axes
    }

    /// The axes of the first state.
    pub(super) fn state_axes(&self) -> Vec<Size> {
        self.states
            .first()
            .map_or(Vec::new(), |(state, _)| self.axes(*state).to_vec())
    }

    /// The form of the map from states to states.
    pub(super) fn transition(&self) -> Transition {
        if self.alignments().is_some() {
            return match self.companion_size() {
                0 | 1 => Transition::Elementwise,
                k => Transition::Block(k),
            };
        }
        match self.low_rank() {
            Some(rank) => Transition::LowRank(rank),
            None => Transition::Dense,
        }
    }

    /// How many earlier values of a channel the next one is made of.
    fn companion_size(&self) -> u32 {
        let mut longest: BTreeMap<NodeId, u32> = BTreeMap::new();
        for (_, source, _) in self.links() {
            let delay = longest.entry(source.state).or_default();
            *delay = (*delay).max(source.delay.unsigned_abs());
        }
        longest.values().fold(0, |sum, k| sum.saturating_add(*k))
    }

    /// If every chain leads from a channel to the same channel: how the states' axes lie over each other.
    pub(super) fn alignments(&self) -> Option<BTreeMap<NodeId, Alignment>> {
        let mut ways = Vec::new();
        let mut meets: BTreeMap<NodeId, Vec<usize>> = BTreeMap::new();
        for (state, source, term) in self.links() {
            meets.entry(state).or_default().push(ways.len());
            meets.entry(source.state).or_default().push(ways.len());
            ways.push((source.state, state, straight(term)?));
        }
        let mut known: BTreeMap<NodeId, Alignment> = BTreeMap::new();
        for (root, _) in &self.states {
            let mut next = vec![*root];
            known
                .entry(*root)
                .or_insert_with(|| (0..self.axes(*root).len()).collect());
            while let Some(state) = next.pop() {
                for (from, to, way) in meets.get(&state).into_iter().flatten().map(|at| &ways[*at]) {
                    next.extend(align(&mut known, *from, *to, way)?);
                }
            }
        }
        Some(known)
    }

    /// The rank of what is added to a diagonal: one state, delay 1, and all other chains contract and re-expand the
    /// same axes.
    fn low_rank(&self) -> Option<u32> {
        let [(state, _)] = self.states.as_slice() else {
            return None;
        };
        let (mut rank, mut places) = (0u32, None);
        for (_, source, term) in self.links() {
            if !term.exact || source.delay != 1 || source.state != *state {
                return None;
            }
            if straight(term).is_some_and(|way| way.iter().enumerate().all(|(i, j)| i == *j)) {
                continue;
            }
            let (axes, of_term) = rank_of(term, self.labels)?;
            if places.get_or_insert_with(|| axes.clone()) != &axes {
                return None;
            }
            rank = rank.checked_add(of_term)?;
        }
        Some(rank)
    }

    /// The axes along which some coefficient varies, in the order of the first state's axes; those of further states after
    /// them where they are others.
    pub(super) fn coefficient_axes(&self) -> Vec<Size> {
        let alignments = self.alignments();
        let mut found: BTreeSet<(usize, usize)> = BTreeSet::new();
        let order: Vec<NodeId> = self.states.iter().map(|(state, _)| *state).collect();
        let numbers: BTreeMap<NodeId, usize> = order.iter().enumerate().map(|(i, s)| (*s, i)).collect();
        for (state, source, term) in self.links() {
            for (owner, axes) in [(state, &term.to), (source.state, &term.from)] {
                for at in self.varying(term, owner, axes) {
                    let common = alignments
                        .as_ref()
                        .and_then(|a| a.get(&owner)?.iter().position(|b| *b == at));
                    found.insert(common.map_or((numbers[&owner], at), |at| (0, at)));
                }
            }
        }
        let mut sizes: Vec<Size> = Vec::new();
        for (state, at) in found {
            let size = &self.axes(order[state])[at];
            if state == 0 || !sizes.contains(size) {
                sizes.push(size.clone());
            }
        }
        sizes
    }

    fn varying(&self, term: &Term, owner: NodeId, axes: &[Axis]) -> Vec<usize> {
        let sizes = self.axes(owner);
        let varies = |at: usize| {
            let axis = &axes[at];
            let scaled = |l: &Label| term.factors.iter().any(|f| f.labels.contains(l));
            axis.labels.iter().any(scaled) || !self.labels.is_whole(axis, &sizes[at])
        };
        match term.exact {
            true => (0..axes.len()).filter(|at| varies(*at)).collect(),
            false => (0..sizes.len()).collect(),
        }
    }

    /// Whether every coefficient is the same in all frames.
    pub(super) fn time_invariant(&self) -> bool {
        self.links()
            .all(|(_, _, term)| term.factors.iter().all(|f| f.kind < Kind::Frame))
    }

    /// The form of what is added: rank 1 if that holds of every state.
    pub(super) fn input(&self) -> InputTerm {
        let all = self.states.iter().all(|(state, terms)| {
            let constant: Vec<&Term> = terms.iter().filter(|t| t.source.is_none()).collect();
            is_outer_product(&constant, self.axes(*state), self.labels)
        });
        match all {
            true => InputTerm::Rank1,
            false => InputTerm::General,
        }
    }

    /// How many blocks of units never meet: the extent of the axes, or leading parts of axes, that every chain keeps.
    pub(super) fn blocks(&self) -> Option<Size> {
        let first = self.axes(self.states.first()?.0).to_vec();
        if self.states.iter().any(|(state, _)| self.axes(*state) != first) {
            return None;
        }
        let mut blocks = Size::int(1);
        for (at, size) in first.iter().enumerate() {
            let mut kept = size.clone();
            for (_, _, term) in self.links() {
                if !term.exact {
                    return None;
                }
                kept = coarser(kept, kept_along(term, at, size, self.labels)?)?;
            }
            blocks = blocks.mul(&kept)?;
        }
        (blocks.as_int() != Some(1)).then_some(blocks)
    }
}

/// Settles how the second of two states lies, from the first, or the reverse; the state that was settled, if any.
/// `None`: they lie in two ways at once.
fn align(known: &mut BTreeMap<NodeId, Alignment>, from: NodeId, to: NodeId, way: &[usize]) -> Option<Option<NodeId>> {
    let forward = known
        .get(&from)
        .map(|axes| axes.iter().map(|a| way[*a]).collect::<Alignment>());
    match (forward, known.get(&to)) {
        (Some(reached), Some(settled)) => (reached == *settled).then_some(None),
        (Some(reached), None) => {
            known.insert(to, reached);
            Some(Some(to))
        }
        (None, Some(settled)) => {
            let back = |a: &usize| way.iter().position(|w| w == a);
            let reached = settled.iter().map(back).collect::<Option<_>>()?;
            known.insert(from, reached);
            Some(Some(from))
        }
        (None, None) => Some(None),
    }
}

/// If a chain leads each element to one element of the same extent along all axes: for each axis of the source, the axis
/// of the value.
fn straight(term: &Term) -> Option<Vec<usize>> {
    if !term.exact || term.from.len() != term.to.len() {
        return None;
    }
    let mut taken = vec![false; term.to.len()];
    let mut way = Vec::with_capacity(term.from.len());
    for (i, axis) in term.from.iter().enumerate() {
        let fits = |j: &usize| !taken[*j] && term.to[*j] == *axis;
        let j = Some(i).filter(fits).or_else(|| (0..taken.len()).find(fits))?;
        taken[j] = true;
        way.push(j);
    }
    let mut seen = BTreeSet::new();
    let repeats = term.from.iter().flat_map(|a| &a.labels).any(|l| !seen.insert(*l));
    (!repeats).then_some(way)
}

/// The axes that a chain contracts and expands again, and the rank of the matrix by which it does.
fn rank_of(term: &Term, labels: &Labels) -> Option<(Vec<usize>, u32)> {
    if term.from.len() != term.to.len() {
        return None;
    }
    let (mut places, mut read, mut written) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
    let mut kept = BTreeSet::new();
    for (at, (from, to)) in term.from.iter().zip(&term.to).enumerate() {
        let same = from.labels.iter().zip(&to.labels).take_while(|(a, b)| a == b).count();
        kept.extend(from.labels[..same].iter().copied());
        if from == to {
            continue;
        }
        places.push(at);
        read.extend(from.labels[same..].iter().copied());
        written.extend(to.labels[same..].iter().copied());
    }
    let crossed =
        read.intersection(&written).next().is_some() || kept.iter().any(|l| read.contains(l) || written.contains(l));
    if crossed || read.is_empty() && written.is_empty() {
        return None;
    }
    let inner: BTreeSet<Label> = term.factors.iter().flat_map(|f| f.labels.iter().copied()).collect();
    let inner = inner
        .into_iter()
        .filter(|l| !read.contains(l) && !written.contains(l) && !kept.contains(l));
    let narrow: Vec<Label> = inner.filter(|l| labels.size(*l).as_int().is_some()).collect();
    let mut ignored: BTreeSet<Label> = kept;
    if !joined(term, &read, &written, &ignored) {
        return Some((places, 1));
    }
    ignored.extend(narrow.iter().copied());
    if joined(term, &read, &written, &ignored) {
        return None;
    }
    let extent = narrow
        .iter()
        .try_fold(1i64, |n, l| n.checked_mul(labels.size(*l).as_int()?))?;
    Some((places, u32::try_from(extent).ok()?))
}

/// Whether factors join a variable of one set with one of the other, not counting the ignored ones.
fn joined(term: &Term, start: &BTreeSet<Label>, end: &BTreeSet<Label>, ignored: &BTreeSet<Label>) -> bool {
    let mut reached = start.clone();
    loop {
        let before = reached.len();
        for factor in &term.factors {
            if factor.labels.iter().any(|l| reached.contains(l)) {
                reached.extend(factor.labels.iter().copied().filter(|l| !ignored.contains(l)));
            }
        }
        if reached.len() == before {
            return reached.intersection(end).next().is_some();
        }
    }
}

/// Whether a sum of constants is an outer product along two of the axes, for each element of the others.
fn is_outer_product(terms: &[&Term], axes: &[Size], labels: &Labels) -> bool {
    if axes.len() < 2 || terms.is_empty() || terms.iter().any(|t| !t.exact) {
        return false;
    }
    let whole = |t: &&&Term| t.to.iter().zip(axes).all(|(axis, size)| labels.is_whole(axis, size));
    if !terms.iter().all(|t| whole(&t)) {
        return false;
    }
    match terms {
        [one] => (0..axes.len()).any(|a| (0..a).any(|b| !axes_joined(one, a, b))),
        many => (0..axes.len()).any(|at| many.iter().all(|t| !varies_along(t, at))),
    }
}

fn axes_joined(term: &Term, a: usize, b: usize) -> bool {
    let set = |at: usize| term.to[at].labels.iter().copied().collect::<BTreeSet<Label>>();
    let others = (0..term.to.len()).filter(|at| *at != a && *at != b);
    let ignored = others.flat_map(set).collect();
    joined(term, &set(a), &set(b), &ignored) || set(a).intersection(&set(b)).next().is_some()
}

fn varies_along(term: &Term, at: usize) -> bool {
    term.to[at]
        .labels
        .iter()
        .any(|l| term.factors.iter().any(|f| f.labels.contains(l)))
}

/// How many leading blocks of an axis a chain keeps apart.
fn kept_along(term: &Term, at: usize, size: &Size, labels: &Labels) -> Option<Size> {
    let (from, to) = (term.from.get(at)?, term.to.get(at)?);
    if from == to {
        return Some(size.clone());
    }
    let whole = labels.is_whole(from, size) && labels.is_whole(to, size);
    let same = from
        .labels
        .iter()
        .zip(&to.labels)
        .take_while(|(a, b)| whole && a == b)
        .count();
    labels.extent(&from.labels[..same])
}

/// The coarser of two ways to cut an axis into blocks.
fn coarser(a: Size, b: Size) -> Option<Size> {
    match (a.div(&b), b.div(&a)) {
        (Some(_), _) => Some(b),
        (None, Some(_)) => Some(a),
        (None, None) => Some(Size::int(1)),
    }
}
