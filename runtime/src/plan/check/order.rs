//! Between launches: everything is written before it is read, each element once, and `after` says so.

use super::{Report, buffers, space};
use crate::plan::access::Site;
use crate::plan::{BufferId, Initial, Launch, Plan, Role, Store, StoreFrame};
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn check(plan: &Plan, report: &mut Report) {
    let mut written: BTreeSet<BufferId> = BTreeSet::new();
    for list in [&plan.prologue, &plan.initial, &plan.launches] {
        dependencies(plan, list, &mut written, report);
    }
    report.launch.clear();
    report.place.clear();
    defaults(plan, report);
    coverage(plan, report);
}

/// Walks one list: a read needs an earlier write, and `after` must lead from the reader to every writer of its list, and
/// from a writer to every earlier reader.
fn dependencies(plan: &Plan, list: &[Launch], written: &mut BTreeSet<BufferId>, report: &mut Report) {
    let mut writers: BTreeMap<BufferId, Vec<usize>> = BTreeMap::new();
    let mut readers: BTreeMap<BufferId, Vec<usize>> = BTreeMap::new();
    for (j, launch) in list.iter().enumerate() {
        report.launch.clone_from(&launch.name);
        let (reads, writes) = (launch.reads(), launch.writes());
        for id in &reads {
            let made = matches!(
                plan.buffer(*id).role,
                Role::Prologue | Role::Temp | Role::Output | Role::Final
            );
            report.require(!made || written.contains(id), || {
                format!("`{}` is read before anything is written to it", plan.buffer(*id).name)
            });
        }
        let before = reads.iter().filter_map(|id| Some((id, writers.get(id)?)));
        let over = writes.iter().filter_map(|id| Some((id, readers.get(id)?)));
        for (id, others) in before.chain(over) {
            for i in others.iter().filter(|i| !leads_to(list, j, **i)) {
                let (name, other) = (&plan.buffer(*id).name, &list[*i].name);
                report.push(&format!(
                    "its `after` does not lead to `{other}`, which also uses `{name}`"
                ));
            }
        }
        reads.iter().for_each(|id| readers.entry(*id).or_default().push(j));
        writes.iter().for_each(|id| writers.entry(*id).or_default().push(j));
        written.extend(writes);
    }
}

/// Whether `after` leads from launch `from` to the earlier launch `to`.
fn leads_to(list: &[Launch], from: usize, to: usize) -> bool {
    let (mut open, mut seen) = (vec![from], BTreeSet::new());
    while let Some(at) = open.pop() {
        for next in &list[at].after {
            if *next == to {
                return true;
            }
            if *next > to && seen.insert(*next) {
                open.push(*next);
            }
        }
    }
    false
}

/// A launch that is left out where its window is given writes that window and nothing else; no other writes a window.
fn defaults(plan: &Plan, report: &mut Report) {
    let mut owner: BTreeMap<usize, BufferId> = BTreeMap::new();
    for (id, buffer) in plan.ids() {
        if let Role::Initial(Initial::Launch(i)) = buffer.role {
            report.require(owner.insert(i, id).is_none(), || {
                format!("two windows name initial launch {i}")
            });
        }
    }
    for (i, launch) in plan.initial.iter().enumerate() {
        let writes = launch.writes();
        let window = |id: &BufferId| matches!(plan.buffer(*id).role, Role::Initial(_));
        let fits = match owner.get(&i) {
            Some(id) => writes == BTreeSet::from([*id]),
            None => !writes.iter().any(window),
        };
        report.require(fits, || {
            format!("initial launch {i} does not write exactly the window that names it")
        });
    }
}

/// Every element of every buffer that launches make is written, once.
fn coverage(plan: &Plan, report: &mut Report) {
    let mut stores: BTreeMap<BufferId, Vec<(Site<'_>, &Store)>> = BTreeMap::new();
    for launch in super::lists(plan).map(|(_, launch)| launch) {
        for site in launch.kernel.sites() {
            for store in &site.body.stores {
                stores.entry(store.buffer).or_default().push((site.clone(), store));
            }
        }
    }
    for (id, buffer) in plan.ids() {
        let made = match buffer.role {
            Role::Input | Role::Param | Role::Initial(Initial::Fill(_)) => false,
            Role::Initial(Initial::Launch(_)) | Role::Output | Role::Prologue | Role::Temp | Role::Final => true,
        };
        let copies = plan.finals.iter().filter(|copy| copy.target == id).count();
        let found = stores.remove(&id).unwrap_or_default();
        let name = format!("{} `{}`", buffers::role_name(&buffer.role), buffer.name);
        match (made, copies) {
            (false, _) => {}
            (true, 0) => cover(&name, frames(plan, id), buffer.elements(), &found, report),
            (true, n) => report.require(n == 1 && found.is_empty(), || {
                format!("{name} is written more than once")
            }),
        }
    }
}

/// How many frames of the buffer stores tell apart: those of an initial window.
fn frames(plan: &Plan, id: BufferId) -> usize {
    match (&plan.buffer(id).role, plan.buffer(id).scope) {
        (Role::Initial(_), crate::plan::Scope::Window(k)) => k,
        _ => 1,
    }
}

fn cover(name: &str, frames: usize, elements: usize, stores: &[(Site<'_>, &Store)], report: &mut Report) {
    let used = |at: &(Site<'_>, &Store)| space::variables([&at.1.index]);
    let points = stores.iter().map(|at| space::points(&at.0.extents, &used(at)));
    let large = points.fold(0usize, usize::saturating_add) > space::WHOLE;
    if large || frames.saturating_mul(elements) > 16 * space::WHOLE {
        return;
    }
    let mut seen = vec![false; frames * elements];
    let mut twice = None;
    for at in stores {
        let frame = match at.1.frame {
            StoreFrame::Window(j) => j,
            _ => 0,
        };
        space::visit(&at.0.extents, &used(at), |vars| {
            let element = frame * elements + at.1.index.eval(vars) as usize;
            if std::mem::replace(&mut seen[element], true) {
                twice = Some(element);
            }
            twice.is_none()
        });
    }
    report.require(twice.is_none(), || {
        format!("{name}: element {twice:?} is written twice")
    });
    let hole = seen.iter().position(|s| !s);
    report.require(hole.is_none() || twice.is_some(), || {
        format!("{name}: element {hole:?} is never written")
    });
}
