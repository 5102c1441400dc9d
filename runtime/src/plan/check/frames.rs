//! Which copy of a buffer is read or written: scopes of kernels and buffers, roles and lists.

use super::{List, Report, buffers};
use crate::plan::access::Site;
use crate::plan::{Buffer, Frame, Initial, Load, Plan, Role, Scope, Store, StoreFrame};

pub(super) fn check(plan: &Plan, list: List, site: &Site<'_>, report: &mut Report) {
    for load in site.body.loads() {
        check_load(plan, list, site.scope, load, report);
    }
    for store in &site.body.stores {
        check_store(plan, list, site.scope, store, report);
    }
}

/// Const within batch within frame: what a kernel of one scope may read of another.
fn rank(scope: Scope) -> usize {
    match scope {
        Scope::Const => 0,
        Scope::Batch => 1,
        Scope::Frame => 2,
        Scope::Window(_) => 3,
    }
}

fn check_load(plan: &Plan, list: List, scope: Scope, load: &Load, report: &mut Report) {
    let Some(buffer) = plan.buffers.get(load.buffer.0 as usize) else {
        return;
    };
    let name = &buffer.name;
    let expected = match load.frame {
        Frame::Const => Scope::Const,
        Frame::Batch => Scope::Batch,
        Frame::At { .. } => Scope::Frame,
    };
    report.require(buffer.scope == expected, || {
        format!("`{name}` of scope {:?} is read by {:?}", buffer.scope, load.frame)
    });
    report.require(rank(expected) <= rank(scope), || {
        format!("`{name}` is read by {:?} in a kernel of scope {scope:?}", load.frame)
    });
    let allowed = match list {
        List::Prologue => matches!(buffer.role, Role::Param | Role::Prologue),
        List::Initial => matches!(buffer.role, Role::Param | Role::Prologue | Role::Input | Role::Temp),
        List::Run => true,
    };
    report.require(allowed, || {
        format!("`{name}` is not there yet in the list of this launch")
    });
    if let Frame::At { delay: 1.., window } = load.frame {
        check_window(plan, load, window, buffer, report);
    }
}

fn check_window(plan: &Plan, load: &Load, window: Option<crate::plan::BufferId>, buffer: &Buffer, report: &mut Report) {
    let delay = match load.frame {
        Frame::At { delay, .. } => delay.max(0) as usize,
        _ => 0,
    };
    let elements = buffers::window(plan, window, delay, report);
    report.require(elements.is_none_or(|n| n == buffer.elements()), || {
        format!("`{}` and its window have different shapes", buffer.name)
    });
}

fn check_store(plan: &Plan, list: List, scope: Scope, store: &Store, report: &mut Report) {
    let Some(buffer) = plan.buffers.get(store.buffer.0 as usize) else {
        return;
    };
    let frame = store.frame;
    let fits = match frame {
        StoreFrame::Const => buffer.scope == Scope::Const && scope == Scope::Const,
        StoreFrame::Batch => buffer.scope == Scope::Batch && scope == Scope::Batch,
        StoreFrame::Now => buffer.scope == Scope::Frame && scope == Scope::Frame,
        StoreFrame::Final => buffer.role == Role::Final && scope == Scope::Frame,
        StoreFrame::Window(j) => matches!(buffer.scope, Scope::Window(k) if j < k) && scope == Scope::Batch,
    };
    report.require(fits, || {
        format!(
            "{frame:?} of `{}` of scope {:?} is written in a kernel of scope {scope:?}",
            buffer.name, buffer.scope
        )
    });
    let allowed = match list {
        List::Prologue => buffer.role == Role::Prologue,
        List::Initial => matches!(buffer.role, Role::Initial(Initial::Launch(_)) | Role::Temp),
        List::Run => matches!(buffer.role, Role::Output | Role::Final | Role::Temp),
    };
    report.require(allowed, || {
        format!("`{}` ({}) is written", buffer.name, buffers::role_name(&buffer.role))
    });
}
