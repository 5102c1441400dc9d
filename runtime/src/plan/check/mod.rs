//! Checks a plan against what its doc comments say.
//!
//! In: any plan, also one read from a file. Out: every breach found, each with the launch and place. A plan that passes
//! reads and writes within its buffers (spaces beyond a million points are sampled), never before a value is there, and
//! its `after` lists order every pair of launches that touch the same elements.

mod body;
mod buffers;
mod frames;
mod order;
mod space;
#[cfg(test)]
mod tests;

use super::{Carried, Channel, Kernel, Launch, Loop, LoopValue, Plan, Product, Scope, SiteKind, Slot, Total};
use std::collections::BTreeSet;

/// Checks everything.
///
/// # Errors
/// What is wrong, in the order found.
pub fn check(plan: &Plan) -> Result<(), Vec<String>> {
    let mut report = Report::default();
    buffers::check(plan, &mut report);
    names(plan, &mut report);
    if report.errors.is_empty() {
        for (list, launch) in lists(plan) {
            report.launch.clone_from(&launch.name);
            report.place.clear();
            kernel(plan, list, launch, &mut report);
        }
    }
    // What follows evaluates indices: only of launches that are sound by themselves.
    if report.errors.is_empty() {
        order::check(plan, &mut report);
    }
    match report.errors.is_empty() {
        true => Ok(()),
        false => Err(report.errors),
    }
}

/// Which of the plan's lists a launch stands in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum List {
    /// `prologue`
    Prologue,
    /// `initial`
    Initial,
    /// `launches`
    Run,
}

/// All launches in the order of a run.
fn lists(plan: &Plan) -> impl Iterator<Item = (List, &Launch)> {
    let prologue = plan.prologue.iter().map(|l| (List::Prologue, l));
    let initial = plan.initial.iter().map(|l| (List::Initial, l));
    let run = plan.launches.iter().map(|l| (List::Run, l));
    prologue.chain(initial).chain(run)
}

/// Collects messages; knows where the checker is.
#[derive(Default)]
struct Report {
    errors: Vec<String>,
    launch: String,
    place: String,
}

impl Report {
    fn push(&mut self, message: &str) {
        let launch = &self.launch;
        self.errors.push(match (launch.as_str(), self.place.as_str()) {
            ("", _) => message.to_owned(),
            (_, "") => format!("launch `{launch}`: {message}"),
            (_, place) => format!("launch `{launch}`: {place}: {message}"),
        });
    }

    fn require(&mut self, holds: bool, message: impl FnOnce() -> String) {
        if !holds {
            self.push(&message());
        }
    }
}

fn names(plan: &Plan, report: &mut Report) {
    let mut seen = BTreeSet::new();
    for list in [&plan.prologue, &plan.initial, &plan.launches] {
        for (i, launch) in list.iter().enumerate() {
            report.launch.clone_from(&launch.name);
            report.require(is_identifier(&launch.name), || "its name is no C identifier".to_owned());
            report.require(seen.insert(&launch.name), || "another launch has its name".to_owned());
            report.require(launch.after.iter().all(|a| *a < i), || {
                format!(
                    "`after` {:?} names launches that do not come before number {i}",
                    launch.after
                )
            });
        }
    }
    report.launch.clear();
}

fn is_identifier(name: &str) -> bool {
    let head = name
        .bytes()
        .next()
        .is_some_and(|b| b.is_ascii_alphabetic() || b == b'_');
    head && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

fn kernel(plan: &Plan, list: List, launch: &Launch, report: &mut Report) {
    match &launch.kernel {
        Kernel::Product(product) => check_product(product, report),
        Kernel::Total(totals) => check_totals(totals, report),
        Kernel::Channel(channel) => check_channel(plan, channel, report),
        Kernel::Loop(kernel) => check_loop(plan, kernel, report),
    }
    let scope = launch.kernel.scope();
    report.require(list == List::Run || scope != Scope::Frame, || {
        "only a launch of a run has frames".to_owned()
    });
    report.require(list != List::Prologue || scope == Scope::Const, || {
        "a prologue has no sequences".to_owned()
    });
    for matrix in launch.kernel.matrices() {
        report.place.clone_from(&matrix.place);
        body::matrix(plan, &matrix, report);
    }
    for site in launch.kernel.sites() {
        report.place.clone_from(&site.place);
        body::check(plan, &launch.kernel, &site, report);
        frames::check(plan, list, &site, report);
    }
    report.place.clear();
    for buffer in launch.reads().intersection(&launch.writes()) {
        let name = &plan.buffer(*buffer).name;
        report.push(&format!("it reads `{name}`, which it writes"));
    }
}

fn check_product(product: &Product, report: &mut Report) {
    report.require(!matches!(product.scope, Scope::Window(_)), || {
        "its scope is a window".to_owned()
    });
    report.require(!product.operands.is_empty() && !product.segments.is_empty(), || {
        "a product without operands or segments".to_owned()
    });
    for (i, operand) in product.operands.iter().enumerate() {
        report.require((operand.result.0 as usize) < operand.body.steps.len(), || {
            format!("operand {i}: its result {:?} is no register", operand.result)
        });
        report.require(operand.body.stores.is_empty(), || format!("operand {i} stores"));
    }
    for (i, segment) in product.segments.iter().enumerate() {
        report.require(segment.weights.len() == product.operands.len(), || {
            format!(
                "segment {i}: {} weights for {} operands",
                segment.weights.len(),
                product.operands.len()
            )
        });
    }
}

fn check_totals(totals: &[Total], report: &mut Report) {
    report.require(!totals.is_empty(), || "a launch without totals".to_owned());
    let alike = |total: &Total| (total.over, total.scope, total.groups, total.inner);
    for pair in totals.windows(2) {
        report.require(alike(&pair[0]) == alike(&pair[1]), || {
            format!("totals of {:?} and {:?}", alike(&pair[0]), alike(&pair[1]))
        });
    }
    totals.iter().for_each(|total| check_total(total, report));
}

fn check_total(total: &Total, report: &mut Report) {
    let pair = (total.over, total.scope);
    let sums = [
        (Scope::Frame, Scope::Const),
        (Scope::Frame, Scope::Batch),
        (Scope::Batch, Scope::Const),
    ];
    report.require(sums.contains(&pair), || {
        format!("a sum over {:?} for each {:?}", total.over, total.scope)
    });
    report.require(!total.parts.is_empty(), || "a total without parts".to_owned());
    let parts = total.parts.iter().enumerate();
    let rights = parts.map(|(i, part)| (format!("part {i}"), &part.right, part.columns));
    for (name, factor, own) in std::iter::once(("left".to_owned(), &total.left, total.rows)).chain(rights) {
        report.require(factor.extent == total.groups * own * total.inner, || {
            format!("{name}: {} elements", factor.extent)
        });
        report.require((factor.result.0 as usize) < factor.body.steps.len(), || {
            format!("{name}: its result {:?} is no register", factor.result)
        });
        report.require(factor.body.stores.is_empty(), || format!("{name} stores"));
    }
}

fn check_channel(plan: &Plan, channel: &Channel, report: &mut Report) {
    report.require(!matches!(channel.scope, Scope::Window(_)), || {
        "its scope is a window".to_owned()
    });
    report.require(channel.sequential != channel.carried.is_empty(), || {
        "sequential is needed exactly if something is carried".to_owned()
    });
    report.require(!channel.sequential || channel.scope == Scope::Frame, || {
        "sequential without frames".to_owned()
    });
    let extents: Vec<usize> = channel.channels.iter().chain(&channel.inner).copied().collect();
    for carried in &channel.carried {
        report.place = format!("carried `{}`", carried.name);
        check_carried(plan, channel, carried, &extents, report);
    }
    report.place.clear();
}

fn check_carried(plan: &Plan, channel: &Channel, carried: &Carried, extents: &[usize], report: &mut Report) {
    report.require(carried.window >= 1, || "a window of no frames".to_owned());
    report.require((carried.value.0 as usize) < channel.body.steps.len(), || {
        format!("its value {:?} is no register", carried.value)
    });
    let elements = buffers::window(plan, Some(carried.initial), carried.window, report);
    if let Some(elements) = elements {
        body::index("its window", &carried.index, &[], extents, elements, report);
    }
}

fn check_loop(plan: &Plan, kernel: &Loop, report: &mut Report) {
    let mut seen = BTreeSet::new();
    for (v, value) in kernel.values.iter().enumerate() {
        report.place = format!("value `{}`", value.name);
        report.require(seen.insert(&value.name), || "another value has its name".to_owned());
        if value.window > 0 {
            let elements = buffers::window(plan, value.initial, value.window, report);
            report.require(elements.is_none_or(|n| n == value.extent), || {
                "its window has another extent".to_owned()
            });
        }
        check_setter(kernel, v, value, report);
    }
    report.place.clear();
    for site in kernel_parts(kernel) {
        report.place = format!("phase {} part {}", site.0, site.1);
        check_part(kernel, site, report);
    }
    report.place.clear();
}

/// Each value is set once, by a part that has a unit for every element.
fn check_setter(kernel: &Loop, v: usize, value: &LoopValue, report: &mut Report) {
    let parts = kernel.phases.iter().flat_map(|p| &p.parts);
    let sets: Vec<_> = parts
        .flat_map(|part| part.sets.iter().map(move |s| (part, s)))
        .filter(|(_, s)| s.0 == v)
        .collect();
    report.require(sets.len() == 1, || format!("{} parts set it, not one", sets.len()));
    for (part, (_, reg)) in sets {
        report.require(part.units == value.extent, || {
            format!(
                "it has {} elements, the part that sets it {} units",
                value.extent, part.units
            )
        });
        report.require((reg.0 as usize) < part.body.steps.len(), || {
            format!("{reg:?} is no register")
        });
    }
}

fn kernel_parts(kernel: &Loop) -> Vec<(usize, usize, &super::LoopPart)> {
    let phases = kernel.phases.iter().enumerate();
    phases
        .flat_map(|(p, phase)| phase.parts.iter().enumerate().map(move |(i, part)| (p, i, part)))
        .collect()
}

fn check_part(kernel: &Loop, (phase, _, part): (usize, usize, &super::LoopPart), report: &mut Report) {
    for (v, _) in &part.sets {
        report.require(*v < kernel.values.len(), || {
            format!("it sets value {v}, which does not exist")
        });
    }
    for (i, slot) in part.slots.iter().enumerate() {
        match slot {
            Slot::Dot {
                extent,
                value,
                delay,
                value_index,
                ..
            } => {
                let extents = [part.units, *extent];
                body::value(kernel, phase, (*value, *delay), value_index, &extents, report);
            }
            Slot::Fold { body, result, .. } => {
                report.require((result.0 as usize) < body.steps.len(), || {
                    format!("slot {i}: its result {result:?} is no register")
                });
                report.require(body.stores.is_empty(), || format!("slot {i} stores"));
            }
        }
    }
}

/// The number of channel variables of a site, all of them outside channel kernels.
fn channel_variables(kind: SiteKind, extents: &[usize]) -> usize {
    match kind {
        SiteKind::Channel(n) => n,
        _ => extents.len(),
    }
}
