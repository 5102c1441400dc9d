//! Bodies: registers, the steps that each kind of body may have, indices within what they index.

use super::{Report, channel_variables, space};
use crate::plan::access::{Matrix, Site, SiteKind};
use crate::plan::depend::dependence;
use crate::plan::{BufferId, Guard, Index, Kernel, Load, Loop, Plan, Reg, Scope, Slot, Step};

pub(super) fn check(plan: &Plan, kernel: &Kernel, site: &Site<'_>, report: &mut Report) {
    let body = site.body;
    report.require(site.extents.iter().all(|n| *n > 0), || "an extent is 0".to_owned());
    let earlier = |r: &Reg, i: usize| (r.0 as usize) < i;
    for (i, step) in body.steps.iter().enumerate() {
        report.require(step.reads().iter().all(|r| earlier(r, i)), || {
            format!("step {i} reads {:?}, not all of them earlier", step.reads())
        });
        check_step(plan, kernel, site, i, step, report);
    }
    let count = body.steps.len();
    report.require(body.names.iter().all(|(r, _)| earlier(r, count)), || {
        "a name of no register".to_owned()
    });
    for (i, store) in body.stores.iter().enumerate() {
        report.require(earlier(&store.value, count), || {
            format!("store {i} writes {:?}, no register", store.value)
        });
        if let Some(elements) = elements(plan, store.buffer, report) {
            index(
                &format!("store {i}"),
                &store.index,
                &[],
                &site.extents,
                elements,
                report,
            );
        }
    }
    if let SiteKind::Channel(_) = site.kind {
        inner_stores(kernel, site, report);
    }
}

fn elements(plan: &Plan, id: BufferId, report: &mut Report) -> Option<usize> {
    let buffer = plan.buffers.get(id.0 as usize);
    report.require(buffer.is_some(), || format!("buffer {} does not exist", id.0));
    buffer.map(crate::plan::Buffer::elements)
}

/// An index is well formed and, where the guards hold, in `0..limit`.
pub(super) fn index(what: &str, index: &Index, guards: &[Guard], extents: &[usize], limit: usize, report: &mut Report) {
    let all = std::iter::once(index).chain(guards.iter().map(|g| &g.index));
    let malformed = all.filter_map(|i| space::malformed(i, extents.len())).next();
    let found = malformed.or_else(|| space::outside(index, guards, extents, limit));
    if let Some(found) = found {
        report.push(&format!("{what}: {found}"));
    }
}

/// An index that is a number, not a place: it may be negative.
fn well_formed(what: &str, index: &Index, site: &Site<'_>, report: &mut Report) {
    if let Some(found) = space::malformed(index, site.extents.len()) {
        report.push(&format!("{what}: {found}"));
    }
}

fn check_step(plan: &Plan, kernel: &Kernel, site: &Site<'_>, i: usize, step: &Step, report: &mut Report) {
    let what = format!("step {i}");
    match step {
        Step::Load(load) => check_load(plan, site, &what, load, report),
        Step::Number(number) => well_formed(&what, number, site, report),
        Step::Inside(guards) => guards.iter().for_each(|g| well_formed(&what, &g.index, site, report)),
        Step::Gather {
            table,
            rows,
            stride,
            index: at,
            ..
        } => {
            if let Some(elements) = elements(plan, *table, report) {
                report.require(plan.buffer(*table).scope == Scope::Const, || {
                    format!("{what}: its table is not constant")
                });
                let before = rows.saturating_sub(1).saturating_mul(*stride);
                report.require(*rows > 0 && before < elements, || {
                    format!("{what}: the table has fewer rows")
                });
                index(&what, at, &[], &site.extents, elements.saturating_sub(before), report);
            }
        }
        Step::Reduce(..) => report.require(matches!(site.kind, SiteKind::Channel(_)), || {
            format!("{what}: a reduction outside a channel kernel")
        }),
        Step::Carried { state, delay } => {
            let window = match kernel {
                Kernel::Channel(channel) => channel.carried.get(*state).map_or(0, |c| c.window),
                _ => 0,
            };
            report.require((1..=window).contains(delay), || {
                format!("{what}: state {state} is not kept {delay} frames back")
            });
        }
        Step::Value { value: v, delay, index } => match (kernel, site.kind) {
            (Kernel::Loop(kernel), SiteKind::Fold { phase, .. } | SiteKind::Part { phase, .. }) => {
                value(kernel, phase, (*v, *delay), index, &site.extents, report);
            }
            _ => report.push(&format!("{what}: a value outside a loop")),
        },
        Step::Slot(slot) => report.require(*slot < slots(kernel, site.kind), || {
            format!("{what}: slot {slot} does not exist here")
        }),
        Step::Const(_) | Step::Unary(..) | Step::Binary(..) | Step::Select(..) | Step::Clamp(..) => {}
    }
}

/// How many slots a body may read: those that come before it.
fn slots(kernel: &Kernel, kind: SiteKind) -> usize {
    match (kernel, kind) {
        (_, SiteKind::Epilogue) => 1,
        (Kernel::Loop(kernel), SiteKind::Part { phase, part }) => kernel.phases[phase].parts[part].slots.len(),
        _ => 0,
    }
}

fn check_load(plan: &Plan, site: &Site<'_>, what: &str, load: &Load, report: &mut Report) {
    if let Some(elements) = elements(plan, load.buffer, report) {
        index(what, &load.index, &load.guards, &site.extents, elements, report);
    }
}

/// A read of element `index` of `(value, delay)` of a loop in phase `phase`.
pub(super) fn value(
    kernel: &Loop,
    phase: usize,
    (value, delay): (usize, usize),
    at: &Index,
    extents: &[usize],
    report: &mut Report,
) {
    let Some(of) = kernel.values.get(value) else {
        report.push(&format!("value {value} does not exist"));
        return;
    };
    let name = &of.name;
    report.require(delay <= of.window, || {
        format!("value `{name}` is not kept {delay} frames back")
    });
    report.require(of.shared || *at == Index::var(0), || {
        format!("element {at:?} of value `{name}`, which is not shared")
    });
    index(&format!("value `{name}`"), at, &[], extents, of.extent, report);
    if delay == 0 {
        let sets = |p: &crate::plan::Phase| p.parts.iter().any(|part| part.sets.iter().any(|s| s.0 == value));
        report.require(kernel.phases[..phase].iter().any(sets), || {
            format!("value `{name}` of this frame is read before a phase that sets it")
        });
    }
}

/// A matrix lies within a buffer of scope const.
pub(super) fn matrix(plan: &Plan, matrix: &Matrix<'_>, report: &mut Report) {
    if let Some(elements) = elements(plan, matrix.buffer, report) {
        let buffer = plan.buffer(matrix.buffer);
        report.require(buffer.scope == Scope::Const, || {
            format!("weight `{}` is not constant", buffer.name)
        });
        index(
            &format!("weight `{}`", buffer.name),
            &matrix.index,
            &[],
            &matrix.extents,
            elements,
            report,
        );
    }
    if let Some(Slot::Dot { extent: 0, .. }) = matrix.slot {
        report.push("a dot product of no terms");
    }
}

/// A store of something that varies along an inner axis must say where along it.
fn inner_stores(kernel: &Kernel, site: &Site<'_>, report: &mut Report) {
    let varies = dependence(kernel, site);
    let first = channel_variables(site.kind, &site.extents);
    for (i, store) in site.body.stores.iter().enumerate() {
        let missing = (first..site.extents.len()).filter(|v| site.extents[*v] > 1).any(|v| {
            varies.get(store.value.0 as usize).is_some_and(|set| set >> v & 1 == 1) && !store.index.uses(v as u8)
        });
        report.require(!missing, || {
            format!("store {i}: its value varies along an inner axis, its index does not")
        });
    }
}
