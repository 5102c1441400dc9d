//! The normal form of one linear chain: which element of which delayed read reaches which element of a value, scaled by
//! what.
//!
//! A term says `value[to] (+)= sum over labels not in to of product of factors * read[from]`. Labels name index
//! variables; an axis is a window of an index range written by its labels in row-major order, so that slices, joins and
//! reshapes stay exact. A term without a source is a constant: something that does not depend on the recurrence.
//! Where an operation cannot be written so, the term becomes inexact: still linear, of unknown structure.

use crate::ir::{Kind, NodeId, Size};

/// More factors than this are not told apart.
const MAX_FACTORS: usize = 32;

/// An index variable, by its place in [`Labels`].
pub(super) type Label = u32;

/// The extents of all index variables of one interpretation.
#[derive(Debug, Default)]
pub(super) struct Labels {
    sizes: Vec<Size>,
}

impl Labels {
    /// A new variable.
    pub(super) fn fresh(&mut self, size: Size) -> Label {
        self.sizes.push(size);
        self.sizes.len() as Label - 1
    }

    /// How many values a variable takes.
    pub(super) fn size(&self, label: Label) -> &Size {
        &self.sizes[label as usize]
    }

    /// A whole axis as one new variable; an axis of one element needs none.
    pub(super) fn whole(&mut self, size: &Size) -> Axis {
        let labels = match size.as_int() {
            Some(1) => Vec::new(),
            _ => vec![self.fresh(size.clone())],
        };
        Axis {
            lo: Size::int(0),
            labels,
        }
    }

    /// How many elements a list of variables has together.
    pub(super) fn extent(&self, labels: &[Label]) -> Option<Size> {
        labels.iter().try_fold(Size::int(1), |n, l| n.mul(self.size(*l)))
    }

    /// Whether an axis is all of an axis of this size.
    pub(super) fn is_whole(&self, axis: &Axis, size: &Size) -> bool {
        axis.lo == Size::int(0) && self.extent(&axis.labels).as_ref() == Some(size)
    }
}

/// Positions `lo ..` of an axis, as many as its labels have together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Axis {
    pub(super) lo: Size,
    pub(super) labels: Vec<Label>,
}

/// A scale: a value outside the recurrence, and the variables along which it varies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Factor {
    pub(super) node: NodeId,
    /// Whether it is the inverse of that value (under the algebra's product) that scales.
    pub(super) inverse: bool,
    pub(super) kind: Kind,
    pub(super) labels: Vec<Label>,
}

/// A delayed read of a state of the recurrence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Source {
    pub(super) state: NodeId,
    pub(super) delay: i32,
}

/// One chain of linear operators on a delayed read, or on nothing.
#[derive(Clone, Debug)]
pub(super) struct Term {
    /// What is read; `None` for a constant.
    pub(super) source: Option<Source>,
    /// The edges by which it is read, as places in the interpretation's list of reads.
    pub(super) reads: Vec<u32>,
    /// Whether `from` and `to` are exact; else they are empty.
    pub(super) exact: bool,
    /// The axes of the read state.
    pub(super) from: Vec<Axis>,
    /// The axes of the value.
    pub(super) to: Vec<Axis>,
    /// What it is scaled by.
    pub(super) factors: Vec<Factor>,
}

impl Term {
    /// The same dependence, its structure given up.
    pub(super) fn inexact(mut self) -> Term {
        self.exact = false;
        self.from.clear();
        self.to.clear();
        for factor in &mut self.factors {
            factor.labels.clear();
        }
        self
    }

    /// Adds a factor. Beyond some number they are one, which varies along all that any of them varies along.
    pub(super) fn scale(&mut self, factor: Factor) {
        if self.factors.contains(&factor) {
            return;
        }
        let full = self.factors.len() >= MAX_FACTORS;
        match self.factors.last_mut().filter(|_| full) {
            Some(last) => {
                last.kind = last.kind.max(factor.kind);
                last.labels.extend(factor.labels);
                last.labels.sort_unstable();
                last.labels.dedup();
            }
            None => self.factors.push(factor),
        }
    }

    fn axes_mut(&mut self) -> impl Iterator<Item = &mut Axis> {
        self.from.iter_mut().chain(&mut self.to)
    }

    /// Makes two variables one.
    pub(super) fn rename(&mut self, old: Label, new: Label) {
        self.substitute(old, &[new]);
    }

    /// Puts `with` in the place of a label wherever it occurs.
    fn substitute(&mut self, label: Label, with: &[Label]) {
        let lists = self.from.iter_mut().chain(&mut self.to).map(|a| &mut a.labels);
        for list in lists.chain(self.factors.iter_mut().map(|f| &mut f.labels)) {
            if let Some(at) = list.iter().position(|l| *l == label) {
                list.splice(at..=at, with.iter().copied());
            }
        }
    }

    /// The same with variables of its own, so that it can be joined with another term that holds the old ones.
    pub(super) fn renamed(&self, labels: &mut Labels) -> Term {
        let mut term = self.clone();
        let mut known: Vec<(Label, Label)> = Vec::new();
        let lists = term.from.iter_mut().chain(&mut term.to).map(|a| &mut a.labels);
        for label in lists.chain(term.factors.iter_mut().map(|f| &mut f.labels)).flatten() {
            *label = match known.iter().find(|(old, _)| old == label) {
                Some((_, new)) => *new,
                None => {
                    let new = labels.fresh(labels.size(*label).clone());
                    known.push((*label, new));
                    new
                }
            };
        }
        term
    }

    /// Restricts a variable to `start .. start + len`. Only a leading variable of an axis can be restricted.
    fn restrict(&mut self, label: Label, start: &Size, len: Size, labels: &mut Labels) -> Option<()> {
        for axis in self.axes_mut() {
            match axis.labels.iter().position(|l| *l == label) {
                None => {}
                Some(0) => {
                    let inner = labels.extent(&axis.labels[1..])?;
                    axis.lo = axis.lo.add(&start.mul(&inner)?)?;
                }
                Some(_) => return None,
            }
        }
        if len.as_int() == Some(1) {
            self.substitute(label, &[]);
        } else {
            let shorter = labels.fresh(len);
            self.substitute(label, &[shorter]);
        }
        Some(())
    }

    /// Keeps positions `lo .. hi` of axis `at`, in the axis's own positions. `None`: nothing of the term is left.
    pub(super) fn cut(mut self, at: usize, lo: &Size, hi: &Size, labels: &mut Labels) -> Option<Term> {
        if !self.exact {
            return Some(self);
        }
        let axis = self.to[at].clone();
        let Some(end) = labels.extent(&axis.labels).and_then(|n| n.add(&axis.lo)) else {
            return Some(self.inexact());
        };
        if hi.is_at_most(&axis.lo) || end.is_at_most(lo) {
            return None;
        }
        if lo.is_at_most(&axis.lo) && end.is_at_most(hi) {
            return Some(self);
        }
        match self.cut_inside(&axis, &end, lo, hi, labels) {
            Some(()) => Some(self),
            None => Some(self.inexact()),
        }
    }

    fn cut_inside(&mut self, axis: &Axis, end: &Size, lo: &Size, hi: &Size, labels: &mut Labels) -> Option<()> {
        let larger = |a: &Size, b: &Size| match a.is_at_most(b) {
            true => Some(b.clone()),
            false => b.is_at_most(a).then(|| a.clone()),
        };
        let start = larger(lo, &axis.lo)?.sub(&axis.lo)?;
        let stop = match end.is_at_most(hi) {
            true => end.clone(),
            false => hi.is_at_most(end).then(|| hi.clone())?,
        };
        let len = stop.sub(&axis.lo)?.sub(&start)?;
        let inner = labels.extent(axis.labels.get(1..)?)?;
        self.restrict(axis.labels[0], &start.div(&inner)?, len.div(&inner)?, labels)
    }

    /// Moves axis `at` by an offset.
    pub(super) fn moved(mut self, at: usize, by: &Size) -> Term {
        if !self.exact {
            return self;
        }
        match self.to[at].lo.add(by) {
            Some(lo) => {
                self.to[at].lo = lo;
                self
            }
            None => self.inexact(),
        }
    }

    /// `slice`: keeps `lo .. hi` of an axis and counts from lo.
    pub(super) fn slice(self, at: usize, lo: &Size, hi: &Size, labels: &mut Labels) -> Option<Term> {
        let kept = self.cut(at, lo, hi, labels)?;
        Some(match Size::int(0).sub(lo) {
            Some(back) => kept.moved(at, &back),
            None => kept.inexact(),
        })
    }

    /// `shift`: moves along an axis of this size; what leaves it is lost.
    pub(super) fn shift(self, at: usize, by: i64, size: &Size, labels: &mut Labels) -> Option<Term> {
        self.moved(at, &Size::int(by)).cut(at, &Size::int(0), size, labels)
    }

    /// A broadcast or permutation to axes of these sizes: axis i of the value becomes axis `map[i]`.
    pub(super) fn broadcast(mut self, map: &[usize], sizes: &[Size], labels: &mut Labels) -> Term {
        if !self.exact {
            return self;
        }
        let old = std::mem::take(&mut self.to);
        self.to = (0..sizes.len())
            .map(|at| match map.iter().position(|m| *m == at) {
                Some(i) => old[i].clone(),
                None => labels.whole(&sizes[at]),
            })
            .collect();
        self
    }

    /// A row-major reshape.
    pub(super) fn reshape(mut self, old: &[Size], new: &[Size], labels: &mut Labels) -> Term {
        if !self.exact {
            return self;
        }
        let head = old.iter().zip(new).take_while(|(a, b)| a == b).count();
        let ends = old[head..].iter().rev().zip(new[head..].iter().rev());
        let tail = ends.take_while(|(a, b)| a == b).count();
        let middle = head..old.len() - tail;
        let whole = middle.clone().all(|i| labels.is_whole(&self.to[i], &old[i]));
        match self.regroup(middle, &new[head..new.len() - tail], labels) {
            Some(()) if whole => self,
            _ => self.inexact(),
        }
    }

    /// Deals the variables of some axes out to new axes of these sizes, splitting them where need be.
    fn regroup(&mut self, middle: std::ops::Range<usize>, sizes: &[Size], labels: &mut Labels) -> Option<()> {
        let mut queue: Vec<Label> = self.to[middle.clone()].iter().flat_map(|a| a.labels.clone()).collect();
        self.to.splice(middle.clone(), []);
        queue.reverse();
        let mut dealt = Vec::with_capacity(sizes.len());
        for size in sizes {
            let (mut taken, mut missing) = (Vec::new(), size.clone());
            while missing.as_int() != Some(1) {
                let label = queue.pop()?;
                let extent = labels.size(label).clone();
                if let Some(rest) = missing.div(&extent) {
                    taken.push(label);
                    missing = rest;
                } else {
                    let inner = labels.fresh(extent.div(&missing)?);
                    let outer = labels.fresh(missing);
                    self.split(label, outer, inner, &mut dealt);
                    taken.push(outer);
                    queue.push(inner);
                    missing = Size::int(1);
                }
            }
            dealt.push(Axis {
                lo: Size::int(0),
                labels: taken,
            });
        }
        let at = middle.start;
        self.to.splice(at..at, dealt);
        queue.is_empty().then_some(())
    }

    fn split(&mut self, label: Label, outer: Label, inner: Label, dealt: &mut [Axis]) {
        self.substitute(label, &[outer, inner]);
        for axis in dealt {
            if let Some(at) = axis.labels.iter().position(|l| *l == label) {
                axis.labels.splice(at..=at, [outer, inner]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::testing::Build;

    fn size(text: &str) -> Size {
        Build::axes(&[text]).remove(0)
    }

    /// A read of a state as it is.
    fn read(axes: &[&str], labels: &mut Labels) -> Term {
        let state = Build::new("none", &[]).state("h", 1, axes);
        let axes: Vec<Axis> = Build::axes(axes).iter().map(|s| labels.whole(s)).collect();
        Term {
            source: Some(Source { state, delay: 1 }),
            reads: vec![0],
            exact: true,
            from: axes.clone(),
            to: axes,
            factors: Vec::new(),
        }
    }

    #[test]
    fn a_slice_put_back_where_it_was_reads_itself() {
        let mut labels = Labels::default();
        let whole = read(&["2*H"], &mut labels);
        let half = whole.slice(0, &size("H"), &size("2*H"), &mut labels).expect("a half");
        assert_eq!((&half.from[0].lo, &half.to[0].lo), (&size("H"), &size("0")));
        let back = half.moved(0, &size("H"));
        assert_eq!(back.from, back.to);
        assert!(back.exact);
    }

    #[test]
    fn a_slice_elsewhere_leaves_nothing() {
        let mut labels = Labels::default();
        let half = read(&["2*H"], &mut labels).slice(0, &size("0"), &size("H"), &mut labels);
        let placed = half.expect("a half").moved(0, &size("H"));
        assert!(placed.clone().slice(0, &size("0"), &size("H"), &mut labels).is_none());
        assert!(placed.slice(0, &size("H"), &size("2*H"), &mut labels).is_some());
    }

    #[test]
    fn a_cut_that_depends_on_dimensions_is_inexact() {
        let mut labels = Labels::default();
        let placed = read(&["H"], &mut labels).moved(0, &size("N"));
        let cut = placed
            .slice(0, &size("0"), &size("M"), &mut labels)
            .expect("perhaps something");
        assert!(!cut.exact && cut.source.is_some());
    }

    #[test]
    fn a_reshape_splits_and_joins_variables() {
        let mut labels = Labels::default();
        let sizes = |text: &[&str]| Build::axes(text);
        let flat = read(&["N*E"], &mut labels);
        let heads = flat.reshape(&sizes(&["N*E"]), &sizes(&["N", "E"]), &mut labels);
        assert!(heads.exact);
        assert_eq!(heads.from[0].labels, [heads.to[0].labels[0], heads.to[1].labels[0]]);
        let joined = heads.reshape(&sizes(&["N", "E"]), &sizes(&["N*E"]), &mut labels);
        assert_eq!(joined.from, joined.to);
    }

    #[test]
    fn a_reshape_that_does_not_divide_is_inexact() {
        let mut labels = Labels::default();
        let term = read(&["N", "E"], &mut labels);
        assert!(
            !term
                .reshape(&Build::axes(&["N", "E"]), &Build::axes(&["E", "N"]), &mut labels)
                .exact
        );
    }

    #[test]
    fn a_slice_of_a_joined_axis_cuts_its_leading_variable() {
        let mut labels = Labels::default();
        let axes = Build::axes(&["4", "N", "E"]);
        let term = read(&["4", "N", "E"], &mut labels).reshape(&axes, &Build::axes(&["4*N*E"]), &mut labels);
        let (lo, hi) = (Build::axes(&["2*N*E"]).remove(0), Build::axes(&["3*N*E"]).remove(0));
        let gate = term.slice(0, &lo, &hi, &mut labels).expect("a gate");
        assert!(gate.exact);
        assert_eq!(gate.to[0].labels.len(), 2);
        assert_eq!((gate.from[0].lo.as_int(), gate.from[0].labels.len()), (Some(2), 0));
    }

    #[test]
    fn a_shift_loses_what_leaves_the_axis() {
        let mut labels = Labels::default();
        let term = read(&["H"], &mut labels)
            .shift(0, 1, &size("H"), &mut labels)
            .expect("most of it");
        assert_eq!((term.from[0].lo.as_int(), term.to[0].lo.as_int()), (Some(0), Some(1)));
        assert_eq!(labels.size(term.to[0].labels[0]).to_string(), "H-1");
    }
}
