//! Orders and cycles of things that read each other, as lists of indices.

use petgraph::graph::{DiGraph, NodeIndex};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// All indices, each after those it reads and otherwise ascending; none if there is a cycle.
pub(super) fn ascending(reads: &[Vec<usize>]) -> Option<Vec<usize>> {
    let mut readers = vec![Vec::new(); reads.len()];
    let mut missing: Vec<usize> = reads.iter().map(Vec::len).collect();
    for (from, list) in reads.iter().enumerate() {
        list.iter().for_each(|to| readers[*to].push(from));
    }
    let mut ready: BTreeSet<usize> = (0..reads.len()).filter(|i| missing[*i] == 0).collect();
    let mut order = Vec::with_capacity(reads.len());
    while let Some(at) = ready.pop_first() {
        order.push(at);
        for reader in &readers[at] {
            missing[*reader] -= 1;
            if missing[*reader] == 0 {
                ready.insert(*reader);
            }
        }
    }
    (order.len() == reads.len()).then_some(order)
}

/// Strongly connected groups, each after those it reads (`reads[i]` lists what i reads), members ascending.
///
/// petgraph's Kosaraju is used because it does not recurse: a file may hold a chain of 100,000 equations.
pub(super) fn groups(reads: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let mut graph: DiGraph<(), (), usize> = DiGraph::default();
    for _ in reads {
        graph.add_node(());
    }
    for (from, list) in reads.iter().enumerate() {
        for to in list {
            graph.add_edge(NodeIndex::new(from), NodeIndex::new(*to), ());
        }
    }
    let components = petgraph::algo::kosaraju_scc(&graph); // what is read comes before its readers
    let sorted = |members: Vec<NodeIndex<usize>>| {
        let mut members: Vec<usize> = members.into_iter().map(NodeIndex::index).collect();
        members.sort_unstable();
        members
    };
    components.into_iter().map(sorted).collect()
}

/// Whether a group found by [`groups`] is a cycle: several members, or one that reads itself.
pub(super) fn is_cycle(group: &[usize], reads: &[Vec<usize>]) -> bool {
    match group {
        [one] => reads[*one].contains(one),
        _ => group.len() > 1,
    }
}

/// A shortest cycle through the first member of a cyclic group: each reads the next, the last reads the first.
pub(super) fn cycle(group: &[usize], reads: &[Vec<usize>]) -> Vec<usize> {
    let Some(&start) = group.first() else { return Vec::new() };
    let inside: BTreeSet<usize> = group.iter().copied().collect();
    let mut from = BTreeMap::new();
    let mut queue = VecDeque::from([start]);
    while let Some(at) = queue.pop_front() {
        for next in reads[at].iter().filter(|n| inside.contains(n)) {
            if *next == start {
                return trace(at, start, &from);
            }
            if !from.contains_key(next) {
                from.insert(*next, at);
                queue.push_back(*next);
            }
        }
    }
    vec![start]
}

fn trace(end: usize, start: usize, from: &BTreeMap<usize, usize>) -> Vec<usize> {
    let mut path = vec![end];
    let mut at = end;
    while at != start {
        at = from.get(&at).copied().unwrap_or(start);
        path.push(at);
    }
    path.reverse();
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_come_after_what_they_read() {
        let reads = vec![vec![1], vec![2, 3], vec![1], vec![]];
        assert_eq!(groups(&reads), vec![vec![3], vec![1, 2], vec![0]]);
    }

    #[test]
    fn ascending_order_follows_the_source() {
        assert_eq!(
            ascending(&[vec![2], vec![], vec![], vec![0, 0]]),
            Some(vec![1, 2, 0, 3])
        );
        assert_eq!(ascending(&[vec![1], vec![0]]), None);
    }

    #[test]
    fn a_shortest_cycle_is_found() {
        let reads = vec![vec![1, 2], vec![2], vec![0], vec![3], vec![]];
        assert_eq!(cycle(&[0, 1, 2], &reads), vec![0, 2]);
        assert_eq!(cycle(&[3], &reads), vec![3]);
        assert!(is_cycle(&[3], &reads) && !is_cycle(&[4], &reads));
    }

    #[test]
    fn a_chain_of_a_hundred_thousand_is_ordered() {
        let n = 100_000;
        let reads: Vec<Vec<usize>> = (0..n).map(|i| if i + 1 < n { vec![i + 1] } else { vec![] }).collect();
        let order: Vec<usize> = groups(&reads).into_iter().flatten().collect();
        assert!(order.iter().rev().copied().eq(0..n));
    }
}
