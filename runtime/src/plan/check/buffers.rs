//! Buffers: names, scopes by role, windows in pairs.

use super::Report;
use crate::plan::{Buffer, BufferId, FinalCopy, Initial, Plan, Role, Scope};
use std::collections::BTreeSet;

pub(super) fn check(plan: &Plan, report: &mut Report) {
    let mut seen = BTreeSet::new();
    for buffer in &plan.buffers {
        let key = (role_name(&buffer.role), buffer.name.as_str());
        report.require(seen.insert(key), || {
            format!("two {} buffers are named `{}`", key.0, key.1)
        });
        report.require(scope_fits(&buffer.role, buffer.scope), || {
            format!("{} `{}` has scope {:?}", key.0, key.1, buffer.scope)
        });
        report.require(buffer.elements() > 0, || {
            format!("{} `{}` has no elements", key.0, key.1)
        });
        match &buffer.role {
            Role::Final => pair(plan, buffer, report),
            Role::Initial(Initial::Launch(i)) => report.require(*i < plan.initial.len(), || {
                format!(
                    "window `{}` names initial launch {i}, which does not exist",
                    buffer.name
                )
            }),
            _ => {}
        }
    }
    plan.finals.iter().for_each(|copy| final_copy(plan, copy, report));
}

pub(super) fn role_name(role: &Role) -> &'static str {
    match role {
        Role::Input => "input",
        Role::Param => "param",
        Role::Initial(_) => "initial",
        Role::Output => "output",
        Role::Final => "final",
        Role::Prologue => "prologue",
        Role::Temp => "temp",
    }
}

fn scope_fits(role: &Role, scope: Scope) -> bool {
    match role {
        Role::Input => matches!(scope, Scope::Frame | Scope::Batch),
        Role::Param | Role::Prologue => scope == Scope::Const,
        Role::Initial(_) | Role::Final => matches!(scope, Scope::Window(k) if k >= 1),
        Role::Output | Role::Temp => !matches!(scope, Scope::Window(_)),
    }
}

/// A final window goes with the initial window of its name: frames before the first come from there.
fn pair(plan: &Plan, buffer: &Buffer, report: &mut Report) {
    let initial = plan
        .buffers
        .iter()
        .find(|b| matches!(b.role, Role::Initial(_)) && b.name == buffer.name);
    let same = initial.is_some_and(|b| b.scope == buffer.scope && b.elements() == buffer.elements());
    report.require(same, || {
        format!("final window `{}` has no initial window like it", buffer.name)
    });
}

fn final_copy(plan: &Plan, copy: &FinalCopy, report: &mut Report) {
    let ids = [copy.target, copy.source, copy.initial];
    if ids.iter().any(|id| id.0 as usize >= plan.buffers.len()) {
        report.push(&format!(
            "a final copy names buffers {ids:?}, one of which does not exist"
        ));
        return;
    }
    let [target, source, initial] = ids.map(|id| plan.buffer(id));
    let name = &target.name;
    report.require(
        target.role == Role::Final && matches!(initial.role, Role::Initial(_)),
        || format!("final copy `{name}`: from {:?} to {:?}", initial.role, target.role),
    );
    report.require(source.scope == Scope::Frame, || {
        format!("final copy `{name}`: its source has no frames")
    });
    let same = source.elements() == target.elements() && source.elem == target.elem;
    report.require(same, || {
        format!("final copy `{name}`: its source has another shape or type")
    });
    report.require(initial.name == *name, || {
        format!("final copy `{name}`: its initial window is `{}`", initial.name)
    });
}

/// The elements of a frame of the initial window `id`, which must hold `frames` frames.
pub(super) fn window(plan: &Plan, id: Option<BufferId>, frames: usize, report: &mut Report) -> Option<usize> {
    let buffer = id.and_then(|id| plan.buffers.get(id.0 as usize));
    let Some(buffer) = buffer else {
        report.push(&format!(
            "{frames} earlier frames are read, but there is no initial window"
        ));
        return None;
    };
    let fits = matches!((&buffer.role, buffer.scope), (Role::Initial(_), Scope::Window(k)) if k >= frames);
    report.require(fits, || {
        let name = &buffer.name;
        format!("{frames} earlier frames are read from `{name}`, which is no initial window of so many")
    });
    Some(buffer.elements())
}
