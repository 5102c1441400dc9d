//! Makes one total of several that lie side by side: `concat(total(a1, x), total(a2, x))` is `total(concat(a1, a2), x)`.
//!
//! The gates of a cell are rows of one weight, told apart early so that each is computed where it is needed; the gradient
//! of that weight is one product again.

use super::rebuild::Rebuild;
use crate::ir::{Graph, NodeId, Op, Read, Type};

/// Returns how many totals went into others.
pub fn run(graph: &mut Graph) -> usize {
    let mut merges: Vec<Option<Merge>> = (0..graph.bound()).map(|_| None).collect();
    let mut gone = vec![false; graph.bound()];
    for id in graph.ids() {
        let Some(merge) = Merge::of(graph, id) else { continue };
        merge.totals.iter().for_each(|t| gone[t.index()] = true);
        merges[id.index()] = Some(merge);
    }
    let count = gone.iter().filter(|g| **g).count();
    if count == 0 {
        return 0;
    }
    let mut rebuild = Rebuild::new(graph, |_| true);
    for id in graph.topological().into_iter().filter(|id| !gone[id.index()]) {
        match &merges[id.index()] {
            Some(merge) => merge.build(&mut rebuild, graph, id),
            None => rebuild.copy(id),
        }
    }
    *graph = rebuild.finish();
    count
}

/// A concatenation of totals that differ in one operand.
struct Merge {
    totals: Vec<NodeId>,
    /// The operand in which they differ, and along which of its axes they are joined.
    port: usize,
    axis: usize,
}

impl Merge {
    fn of(graph: &Graph, id: NodeId) -> Option<Merge> {
        let Op::Concat { axis } = graph.node(id).op else {
            return None;
        };
        let reads = graph.operands(id);
        let totals: Vec<NodeId> = reads.iter().map(|r| r.node).collect();
        let first = graph.node(*totals.first()?);
        let Op::Total { labels, out } = &first.op else {
            return None;
        };
        let label = out.get(axis)?;
        let mut with = (0..labels.len()).filter(|port| labels[*port].contains(label));
        let (port, None) = (with.next()?, with.next()) else {
            return None;
        };
        let mut places = labels[port].iter().enumerate().filter(|(_, l)| *l == label);
        let (Some((along, _)), None) = (places.next(), places.next()) else {
            return None;
        };
        let others = |id: NodeId| -> Vec<Read> {
            let operands = graph.operands(id).into_iter().enumerate();
            operands.filter(|(i, _)| *i != port).map(|(_, r)| r).collect()
        };
        let common = others(totals[0]);
        let alike = |id: &NodeId| {
            let node = graph.node(*id);
            let only_here = graph.uses(*id).len() == 1 && graph.outputs.iter().all(|o| o.node != *id);
            node.op == first.op && node.kind == first.kind && others(*id) == common && only_here
        };
        let merge = Merge {
            port,
            axis: along,
            totals,
        };
        (merge.totals.len() > 1 && merge.totals.iter().all(alike)).then_some(merge)
    }

    fn build(&self, rebuild: &mut Rebuild<'_>, graph: &Graph, id: NodeId) {
        let (joined, first) = (graph.node(id), graph.node(self.totals[0]));
        let parts: Vec<Read> = self.totals.iter().map(|t| graph.operands(*t)[self.port]).collect();
        let mut axes = graph.node(parts[0].node).ty.axes.clone();
        let (Op::Concat { axis }, Op::Total { .. }) = (&joined.op, &first.op) else {
            return rebuild.copy(id);
        };
        axes[self.axis].clone_from(&joined.ty.axes[*axis]);
        let parts: Vec<Read> = parts.into_iter().map(|r| rebuild.read(r)).collect();
        let along = Op::Concat { axis: self.axis };
        let whole = rebuild.add(along, Type::real(axes), joined.span, &parts);
        let mut operands: Vec<Read> = graph.operands(self.totals[0]).into_iter().collect();
        operands.iter_mut().enumerate().for_each(|(port, read)| {
            *read = if port == self.port {
                Read::now(whole)
            } else {
                rebuild.read(*read)
            };
        });
        let total = rebuild.add_of_kind(first.op.clone(), joined.ty.clone(), first.kind, joined.span, &operands);
        rebuild.put(id, Read::now(total));
    }
}
