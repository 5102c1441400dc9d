//! Regroups sums and products so that what changes least combines first.
//!
//! Terms of one sum that are constant combine with each other, then with those that are static, then with those of the
//! frame, and only the result meets what a recurrence computes: `W @ x + R @ h[t-1] + b` becomes
//! `(W @ x + b) + R @ h[t-1]`, whose parenthesis runs for all frames at once. A sum is regrouped only where that leaves
//! fewer operations to a later class; its terms keep their order within a class.

use super::rebuild::Rebuild;
use crate::diagnostics::Span;
use crate::ir::op::Binary;
use crate::ir::{Graph, Kind, NodeId, Op, Read, Type};

/// Groups of more terms than this become balanced trees, as lowering makes them.
const LONGEST_CHAIN: usize = 16;

/// How many classes of terms there are: const, static, frame, and this recurrence.
const CLASSES: usize = 4;

/// Returns how many sums and products were regrouped.
pub fn run(graph: &mut Graph) -> usize {
    let trees = Trees::find(graph);
    let mut inner = vec![false; graph.bound()]; // dissolved into a tree that is regrouped
    let mut regrouped: Vec<Option<Tree>> = vec![None; graph.bound()];
    let mut changes = 0;
    for root in graph.ids().filter(|id| trees.is_root(*id)) {
        let tree = trees.gather(root);
        if tree.gains() {
            tree.inner.iter().for_each(|id| inner[id.index()] = true);
            regrouped[root.index()] = Some(tree);
            changes += 1;
        }
    }
    if changes == 0 {
        return 0;
    }
    let mut rebuild = Rebuild::new(graph, |_| true);
    for id in graph.topological().into_iter().filter(|id| !inner[id.index()]) {
        match &regrouped[id.index()] {
            Some(tree) => tree.build(&mut rebuild, graph, id),
            None => rebuild.copy(id),
        }
    }
    *graph = rebuild.finish();
    changes
}

/// A sum or a product, whose operations reassociate.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Family {
    Sum,
    Product,
}

fn family(op: &Op) -> Option<Family> {
    match op {
        Op::Binary(Binary::Add | Binary::Sub) => Some(Family::Sum),
        Op::Binary(Binary::Mul) => Some(Family::Product),
        _ => None,
    }
}

/// What is needed to find the trees of a graph.
struct Trees<'g> {
    graph: &'g Graph,
    /// By node: the recurrence that it is in.
    recurrence: Vec<Option<usize>>,
    /// By node: whether it is only part of the tree of its one reader.
    absorbed: Vec<bool>,
}

impl<'g> Trees<'g> {
    fn find(graph: &'g Graph) -> Trees<'g> {
        let mut recurrence = vec![None; graph.bound()];
        for (i, members) in graph.components(false).iter().enumerate() {
            if graph.is_cycle(members) {
                members.iter().for_each(|id| recurrence[id.index()] = Some(i));
            }
        }
        let mut absorbed = vec![false; graph.bound()];
        for id in graph.ids() {
            let family = family(&graph.node(id).op);
            let uses = graph.uses(id);
            absorbed[id.index()] = family.is_some()
                && uses.len() == 1
                && uses
                    .iter()
                    .all(|u| u.delay == 0 && self::family(&graph.node(u.reader).op) == family);
        }
        for output in &graph.outputs {
            absorbed[output.node.index()] = false;
        }
        Trees {
            graph,
            recurrence,
            absorbed,
        }
    }

    fn is_root(&self, id: NodeId) -> bool {
        !self.absorbed[id.index()] && family(&self.graph.node(id).op).is_some()
    }

    /// The terms of the tree under `root`, left to right, and how many operations of each class it has.
    fn gather(&self, root: NodeId) -> Tree {
        let mut tree = Tree::default();
        let mut open = vec![(Read::now(root), false)];
        while let Some((read, negative)) = open.pop() {
            let class = self.class(read, root);
            if read.node != root && (read.delay != 0 || !self.absorbed[read.node.index()]) {
                let place = tree.terms.len();
                tree.terms.push(Term {
                    read,
                    negative,
                    class,
                    place,
                });
                continue;
            }
            if read.node != root {
                tree.inner.push(read.node);
            }
            tree.operations[class] += 1;
            let subtracts = self.graph.node(read.node).op == Op::Binary(Binary::Sub);
            let operands = self.graph.operands(read.node);
            open.push((operands[1], negative ^ subtracts));
            open.push((operands[0], negative));
        }
        tree
    }

    /// How late the value is known: by its kind, and last if it is of the recurrence in which `root` is.
    fn class(&self, read: Read, root: NodeId) -> usize {
        let own = self.recurrence[read.node.index()];
        match self.graph.node(read.node).kind {
            Kind::Const => 0,
            Kind::Static => 1,
            Kind::Frame if own.is_none() || own != self.recurrence[root.index()] => 2,
            Kind::Frame => 3,
        }
    }
}

/// A term of a sum or product.
#[derive(Clone, Copy)]
struct Term {
    read: Read,
    /// Whether it is subtracted.
    negative: bool,
    class: usize,
    /// From the left, to keep the order in which they were written.
    place: usize,
}

/// The terms under a root and what joins them now.
#[derive(Clone, Default)]
struct Tree {
    terms: Vec<Term>,
    /// The operations below the root.
    inner: Vec<NodeId>,
    /// How many operations are of each class, the root's included.
    operations: [usize; CLASSES],
}

impl Tree {
    /// Whether grouping by class leaves fewer operations to a later class.
    fn gains(&self) -> bool {
        let mut grouped = [0; CLASSES];
        let mut before = 0;
        for (class, operations) in grouped.iter_mut().enumerate() {
            let terms = self.terms.iter().filter(|t| t.class == class).count();
            *operations = (terms + before.min(1)).saturating_sub(1) * terms.min(1);
            before += terms;
        }
        grouped != self.operations
    }

    fn build(&self, rebuild: &mut Rebuild<'_>, graph: &Graph, root: NodeId) {
        let node = graph.node(root);
        let mut join = Join {
            product: family(&node.op) == Some(Family::Product),
            ty: node.ty.clone(),
            span: node.span,
            rebuild,
        };
        let mut all: Option<Term> = None;
        for class in 0..CLASSES {
            let of_class = self.terms.iter().filter(|t| t.class == class);
            let terms = of_class
                .map(|t| Term {
                    read: join.rebuild.read(t.read),
                    ..*t
                })
                .collect();
            all = match (all, join.group(terms)) {
                (Some(a), Some(b)) => Some(join.two(a, b)),
                (a, b) => a.or(b),
            };
        }
        if let Some(all) = all {
            debug_assert!(!all.negative, "the first term of a sum is never subtracted");
            rebuild.put(root, all.read);
        }
    }
}

/// Adds the operations of one tree.
struct Join<'r, 'g> {
    product: bool,
    ty: Type,
    span: Span,
    rebuild: &'r mut Rebuild<'g>,
}

impl Join<'_, '_> {
    /// A chain of a few terms, a balanced tree of many.
    fn group(&mut self, mut terms: Vec<Term>) -> Option<Term> {
        while terms.len() > LONGEST_CHAIN {
            terms = terms.chunks(2).map(|pair| self.pair(pair)).collect();
        }
        terms.into_iter().reduce(|a, b| self.two(a, b))
    }

    fn pair(&mut self, pair: &[Term]) -> Term {
        match pair {
            [a, b] => self.two(*a, *b),
            _ => pair[0],
        }
    }

    fn two(&mut self, a: Term, b: Term) -> Term {
        let (first, second) = if a.place < b.place { (a, b) } else { (b, a) };
        let (op, left, right, negative) = match (self.product, first.negative, second.negative) {
            (true, ..) => (Binary::Mul, first, second, false),
            (false, true, false) => (Binary::Sub, second, first, false),
            (false, false, true) => (Binary::Sub, first, second, false),
            (false, both, _) => (Binary::Add, first, second, both),
        };
        let node = self
            .rebuild
            .add(Op::Binary(op), self.ty.clone(), self.span, &[left.read, right.read]);
        Term {
            read: Read::now(node),
            negative,
            class: a.class.max(b.class),
            place: first.place,
        }
    }
}
