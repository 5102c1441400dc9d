//! What a launch moves and computes at given frames and batch: the figures that `explain-plan` prints and that schedules
//! are compared by.
//!
//! Bytes are those that must cross memory once: an element that several steps read counts once, weights count once a
//! launch. Operations are those of the plan as written; engines that keep what does not change do fewer.

use super::access::{Site, SiteKind};
use super::depend::{bits, dependence, inner_bits};
use super::{BufferId, Frame, Kernel, Launch, Load, Plan, Product, Scope, Slot, Step, Store, StoreFrame};
use crate::scalar::{Binary, Reduce, Unary};
use serde::Serialize;
use std::collections::BTreeMap;

/// The cost of a launch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Cost {
    /// Bytes of weights and other constants, read once.
    pub weight_bytes: u64,
    /// Bytes read of buffers that exist per sequence or frame.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Additions, multiplications and the like; a multiplication and addition of a product count as two.
    pub operations: u64,
    /// Exponentials and what is computed by them; not in `operations`.
    pub transcendentals: u64,
    /// Exchanges of values between units a frame: phases of a loop that set a shared value.
    pub exchanges: u64,
}

impl Cost {
    /// All bytes moved.
    pub fn bytes(&self) -> u64 {
        self.weight_bytes
            .saturating_add(self.read_bytes)
            .saturating_add(self.written_bytes)
    }
}

/// The cost of a launch of `plan` at so many frames and sequences.
pub fn cost(plan: &Plan, launch: &Launch, frames: usize, batch: usize) -> Cost {
    let mut cost = Cost::default();
    memory(plan, &launch.kernel, frames, batch, &mut cost);
    for site in launch.kernel.sites() {
        let times = site.scope.copies(frames, batch) as u64;
        work(&launch.kernel, &site, times, &mut cost);
    }
    match &launch.kernel {
        Kernel::Product(product) => sums(product, product.scope.copies(frames, batch), &mut cost),
        Kernel::Channel(_) => {}
        Kernel::Total(totals) => totals.iter().for_each(|total| {
            let columns = total.parts.iter().map(|part| part.columns).sum();
            let terms = [total.groups, total.rows, columns, total.inner];
            let each = terms.iter().fold(2, |n: u64, e| n.saturating_mul(*e as u64));
            add(&mut cost.operations, each, total.over.copies(frames, batch) as u64);
        }),
        Kernel::Loop(kernel) => {
            let parts = kernel.phases.iter().flat_map(|p| &p.parts);
            let dots = parts.flat_map(|part| part.slots.iter().map(move |slot| dot(slot, part.units)));
            add(
                &mut cost.operations,
                dots.fold(0, u64::saturating_add),
                (frames * batch) as u64,
            );
            let shares = |p: &&super::Phase| {
                p.parts
                    .iter()
                    .flat_map(|p| &p.sets)
                    .any(|(v, _)| kernel.values[*v].shared)
            };
            cost.exchanges = kernel.phases.iter().filter(shares).count() as u64;
        }
    }
    cost
}

fn add(to: &mut u64, n: u64, times: u64) {
    *to = to.saturating_add(n.saturating_mul(times));
}

fn sums(product: &Product, copies: usize, cost: &mut Cost) {
    let k: usize = product.operands.iter().map(|o| o.extent).sum();
    let rows: usize = product.segments.iter().map(|s| s.rows).sum();
    add(
        &mut cost.operations,
        2 * (rows as u64).saturating_mul(k as u64),
        copies as u64,
    );
}

fn dot(slot: &Slot, units: usize) -> u64 {
    match slot {
        Slot::Dot { extent, .. } => 2 * (units as u64).saturating_mul(*extent as u64),
        Slot::Fold { .. } => 0,
    }
}

/// The points of the variables in `set`.
fn points(site: &Site<'_>, set: u64) -> u64 {
    let used = site.extents.iter().enumerate().filter(|(v, _)| set >> v & 1 == 1);
    used.fold(1, |n, (_, extent)| n.saturating_mul(*extent as u64))
}

fn memory(plan: &Plan, kernel: &Kernel, frames: usize, batch: usize, cost: &mut Cost) {
    // Elements of one copy that are touched, and copies of what is read.
    let mut read: BTreeMap<BufferId, (u64, u64)> = BTreeMap::new();
    for matrix in kernel.matrices() {
        let n = matrix.extents.iter().fold(1, |n: u64, e| n.saturating_mul(*e as u64));
        touch(&mut read, matrix.buffer, n, 1);
    }
    for id in kernel.windows() {
        let buffer = plan.buffer(id);
        touch(
            &mut read,
            id,
            buffer.elements() as u64,
            buffer.scope.copies(frames, batch) as u64,
        );
    }
    for site in kernel.sites() {
        for step in &site.body.steps {
            read_by_step(plan, &site, step, (frames, batch), &mut read);
        }
        for store in &site.body.stores {
            let copies = stored_copies(plan, store, frames, batch);
            let bytes = plan.buffer(store.buffer).elem.bytes() as u64;
            add(
                &mut cost.written_bytes,
                points(&site, bits([&store.index])) * bytes,
                copies,
            );
        }
    }
    for (id, (elements, copies)) in read {
        let buffer = plan.buffer(id);
        let n = elements
            .min(buffer.elements() as u64)
            .saturating_mul(buffer.elem.bytes() as u64);
        let to = if buffer.scope == Scope::Const {
            &mut cost.weight_bytes
        } else {
            &mut cost.read_bytes
        };
        add(to, n, copies);
    }
}

/// Adds up elements: different parts of a buffer are read by different steps, and never more than there are.
fn touch(read: &mut BTreeMap<BufferId, (u64, u64)>, id: BufferId, elements: u64, copies: u64) {
    let known = read.entry(id).or_insert((0, copies));
    known.0 = known.0.saturating_add(elements);
    known.1 = known.1.max(copies);
}

fn read_by_step(
    plan: &Plan,
    site: &Site<'_>,
    step: &Step,
    (frames, batch): (usize, usize),
    read: &mut BTreeMap<BufferId, (u64, u64)>,
) {
    match step {
        Step::Load(Load {
            buffer,
            frame,
            index,
            guards,
        }) => {
            let guarded = guards.iter().map(|g| &g.index);
            let n = points(site, bits(std::iter::once(index).chain(guarded)));
            touch(
                read,
                *buffer,
                n,
                plan.buffer(*buffer).scope.copies(frames, batch) as u64,
            );
            if let Frame::At { window: Some(id), .. } = frame {
                touch(read, *id, n, plan.buffer(*id).scope.copies(frames, batch) as u64);
            }
        }
        Step::Gather { table, index, .. } => {
            // A row for every frame and sequence, but no more than the table.
            let n = points(site, bits([index])).saturating_mul(site.scope.copies(frames, batch) as u64);
            touch(read, *table, n, 1);
        }
        _ => {}
    }
}

fn stored_copies(plan: &Plan, store: &Store, frames: usize, batch: usize) -> u64 {
    let copies = match store.frame {
        StoreFrame::Const => 1,
        StoreFrame::Batch | StoreFrame::Window(_) => batch,
        StoreFrame::Now => frames * batch,
        StoreFrame::Final => plan
            .buffer(store.buffer)
            .scope
            .copies(frames, batch)
            .min(frames * batch),
    };
    copies as u64
}

/// The operations of a body, each as often as its register has values.
fn work(kernel: &Kernel, site: &Site<'_>, times: u64, cost: &mut Cost) {
    let sets = dependence(kernel, site);
    let inner = match kernel {
        Kernel::Channel(channel) => inner_bits(channel),
        _ => 0,
    };
    for (step, set) in site.body.steps.iter().zip(&sets) {
        // A reduction visits its inner points.
        let set = if matches!(step, Step::Reduce(..)) {
            set | inner
        } else {
            *set
        };
        let values = points(site, set);
        let (operations, transcendentals) = of_step(step);
        add(&mut cost.operations, operations * values, times);
        add(&mut cost.transcendentals, transcendentals * values, times);
    }
    if let (SiteKind::Fold { phase, part, slot }, Kernel::Loop(kernel)) = (site.kind, kernel)
        && let Slot::Fold { op, .. } = &kernel.phases[phase].parts[part].slots[slot]
    {
        let varies = kernel.phases[phase].parts[part].slots[slot].varies_by_unit();
        let (operations, transcendentals) = of_reduction(*op);
        let values = points(site, if varies { 0b11 } else { 0b10 });
        add(&mut cost.operations, operations * values, times);
        add(&mut cost.transcendentals, transcendentals * values, times);
    }
}

/// Operations and transcendentals of a value.
fn of_step(step: &Step) -> (u64, u64) {
    match step {
        Step::Unary(op, _) => match op {
            Unary::Exp | Unary::Log | Unary::Tanh | Unary::Sigmoid | Unary::Softplus | Unary::LogSigmoid => (0, 1),
            Unary::Gelu | Unary::Silu | Unary::Sin | Unary::Cos | Unary::Erf => (0, 1),
            Unary::Neg | Unary::Sqrt | Unary::Abs | Unary::Relu | Unary::Sign | Unary::Floor | Unary::HardSigmoid => {
                (1, 0)
            }
            Unary::StopGradient => (0, 0),
        },
        Step::Binary(Binary::Pow | Binary::LogAddExp, ..) => (0, 1),
        Step::Binary(..) | Step::Select(..) => (1, 0),
        Step::Clamp(..) => (2, 0),
        Step::Reduce(op, _) => of_reduction(*op),
        Step::Const(_) | Step::Load(_) | Step::Number(_) | Step::Inside(_) | Step::Gather { .. } => (0, 0),
        Step::Carried { .. } | Step::Value { .. } | Step::Slot(_) => (0, 0),
    }
}

/// Operations and transcendentals of a term.
fn of_reduction(op: Reduce) -> (u64, u64) {
    match op {
        Reduce::Sum | Reduce::Mean | Reduce::Max | Reduce::Min => (1, 0),
        // The mean first, then squares of differences.
        Reduce::Var => (4, 0),
        Reduce::LogSumExp => (3, 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::samples::{decay, embedding, lstm, matrix_state, norms};

    #[test]
    fn an_lstm_costs_what_the_textbook_says() {
        let (i, h, t, b) = (3, 5, 7, 2);
        let plan = lstm(i, h);
        let project = cost(&plan, &plan.launches[0], t, b);
        let (i, h, tb) = (i as u64, h as u64, (t * b) as u64);
        assert_eq!(project.weight_bytes, 4 * (4 * h * i + 4 * h));
        assert_eq!(project.read_bytes, 4 * tb * i);
        assert_eq!(project.written_bytes, 4 * tb * 4 * h);
        assert_eq!(project.operations, tb * (2 * 4 * h * i + 4 * h));
        assert_eq!((project.transcendentals, project.exchanges), (0, 0));
        let recur = cost(&plan, &plan.launches[1], t, b);
        assert_eq!(recur.weight_bytes, 4 * 4 * h * h);
        assert_eq!(recur.read_bytes, 4 * (tb * 4 * h + 2 * b as u64 * h));
        assert_eq!(recur.written_bytes, 4 * (tb * h + 2 * b as u64 * h));
        // Four sums with the hoisted product, two products and a sum for c, one product for h.
        assert_eq!(recur.operations, tb * (2 * 4 * h * h + 8 * h));
        assert_eq!(recur.transcendentals, tb * 5 * h);
        assert_eq!(recur.exchanges, 1);
        assert_eq!(
            recur.bytes(),
            recur.weight_bytes + recur.read_bytes + recur.written_bytes
        );
    }

    #[test]
    fn shared_elements_count_once() {
        let plan = decay(6);
        let one = cost(&plan, &plan.launches[0], 10, 3);
        assert_eq!(one.read_bytes, 4 * (10 * 3 * 6 + 3 * 6));
        assert_eq!(one.weight_bytes, 4 * 6);
        let plan = matrix_state(3, 4);
        let matrix = cost(&plan, &plan.launches[0], 10, 2);
        assert_eq!(matrix.written_bytes, 4 * (10 * 2 * 3 + 2 * 12));
        assert_eq!(matrix.read_bytes, 4 * (10 * 2 * (4 + 3 + 1) + 2 * 12));
        // One gate a sequence, not one a cell of the matrix.
        assert_eq!(matrix.transcendentals, 10 * 2);
        let plan = embedding(5, 3);
        assert_eq!(cost(&plan, &plan.launches[0], 2, 1).weight_bytes, 4 * 12);
        assert_eq!(cost(&plan, &plan.launches[0], 100, 9).weight_bytes, 4 * 15);
    }

    #[test]
    fn exchanges_are_phases_that_share() {
        let plan = norms(2, 3, 4);
        let recur = cost(&plan, &plan.launches[0], 1, 1);
        assert_eq!(recur.exchanges, 3);
        let folds = 6 + 4 * 6 + 4 * 6 * 2;
        assert!(recur.operations > 2 * 6 * 3 + 2 * 6 * 4 + folds);
    }
}
