//! What a kernel touches: a plan's bodies one by one with the space each is evaluated over, and the buffers that a launch
//! reads and writes. Everything that walks a plan (checker, cost model, engines) goes through these lists.

use super::{Body, BufferId, Frame, Index, Kernel, Launch, Load, Scope, Slot, Step, Weight};
use std::collections::BTreeSet;

/// A body where it stands in a kernel.
#[derive(Clone, Debug)]
pub struct Site<'a> {
    /// Where, for messages: `operand 0`, `segment 1`, `phase 0 part 0 slot 2`; empty in a channel kernel.
    pub place: String,
    /// What kind of body it is: this decides which steps it may have.
    pub kind: SiteKind,
    /// Once, once a sequence, or once a frame and sequence.
    pub scope: Scope,
    /// The extents of its variables: `Var(i)` is below `extents[i]`.
    pub extents: Vec<usize>,
    /// The body.
    pub body: &'a Body,
}

/// The kinds of bodies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SiteKind {
    /// An operand of a product.
    Operand,
    /// The epilogue of a segment of a product.
    Epilogue,
    /// A channel kernel's; the first so many variables are channel axes.
    Channel(usize),
    /// A term of a fold of a loop: slot `slot` of part `part` of phase `phase`.
    Fold {
        /// Which phase.
        phase: usize,
        /// Which part.
        part: usize,
        /// Which slot.
        slot: usize,
    },
    /// The own work of units of part `part` of phase `phase`.
    Part {
        /// Which phase.
        phase: usize,
        /// Which part.
        part: usize,
    },
}

/// A matrix that a kernel multiplies with, and where.
#[derive(Clone, Debug)]
pub struct Matrix<'a> {
    /// Where, for messages.
    pub place: String,
    /// The buffer.
    pub buffer: BufferId,
    /// The element that (row `Var(0)`, column `Var(1)`) lies at.
    pub index: Index,
    /// Rows and columns.
    pub extents: [usize; 2],
    /// The slot, if it is one of a loop.
    pub slot: Option<&'a Slot>,
}

impl Weight {
    /// Where (row `Var(0)`, column `Var(1)`) lies.
    pub fn index(&self) -> Index {
        let row = Index::var(0).times(self.row_stride);
        let column = Index::var(1).times(self.k_stride);
        row.add(&column).plus(self.offset)
    }
}

impl Body {
    /// Every read of a buffer by a load, in order.
    pub fn loads(&self) -> impl Iterator<Item = &Load> {
        self.steps.iter().filter_map(|step| match step {
            Step::Load(load) => Some(load),
            _ => None,
        })
    }

    /// Every buffer that the steps read.
    fn read_buffers(&self) -> impl Iterator<Item = BufferId> {
        self.steps.iter().flat_map(|step| {
            let (a, b) = match step {
                Step::Load(Load {
                    buffer,
                    frame: Frame::At { window, .. },
                    ..
                }) => (Some(*buffer), *window),
                Step::Load(load) => (Some(load.buffer), None),
                Step::Gather { table, .. } => (Some(*table), None),
                _ => (None, None),
            };
            a.into_iter().chain(b)
        })
    }
}

impl Kernel {
    /// How often its work exists.
    pub fn scope(&self) -> Scope {
        match self {
            Kernel::Product(product) => product.scope,
            Kernel::Total(totals) => totals.first().map_or(Scope::Const, |total| total.over),
            Kernel::Channel(channel) => channel.scope,
            Kernel::Loop(_) => Scope::Frame,
        }
    }

    /// Its bodies in the order in which they run.
    pub fn sites(&self) -> Vec<Site<'_>> {
        match self {
            Kernel::Product(product) => product_sites(product),
            Kernel::Total(totals) => totals.iter().enumerate().flat_map(total_sites).collect(),
            Kernel::Channel(channel) => vec![Site {
                place: String::new(),
                kind: SiteKind::Channel(channel.channels.len()),
                scope: channel.scope,
                extents: channel.channels.iter().chain(&channel.inner).copied().collect(),
                body: &channel.body,
            }],
            Kernel::Loop(kernel) => loop_sites(kernel),
        }
    }

    /// The matrices that it multiplies with.
    pub fn matrices(&self) -> Vec<Matrix<'_>> {
        match self {
            Kernel::Product(product) => product_matrices(product),
            Kernel::Channel(_) | Kernel::Total(_) => Vec::new(),
            Kernel::Loop(kernel) => loop_matrices(kernel),
        }
    }

    /// The initial windows of what it carries.
    pub fn windows(&self) -> Vec<BufferId> {
        match self {
            Kernel::Product(_) | Kernel::Total(_) => Vec::new(),
            Kernel::Channel(channel) => channel.carried.iter().map(|c| c.initial).collect(),
            Kernel::Loop(kernel) => kernel.values.iter().filter_map(|v| v.initial).collect(),
        }
    }
}

impl Launch {
    /// Every buffer that it reads.
    pub fn reads(&self) -> BTreeSet<BufferId> {
        let sites = self.kernel.sites();
        let loads = sites.iter().flat_map(|site| site.body.read_buffers());
        let matrices = self.kernel.matrices().into_iter().map(|m| m.buffer);
        loads.chain(matrices).chain(self.kernel.windows()).collect()
    }

    /// Every buffer that it writes.
    pub fn writes(&self) -> BTreeSet<BufferId> {
        let sites = self.kernel.sites();
        sites
            .iter()
            .flat_map(|site| site.body.stores.iter().map(|store| store.buffer))
            .collect()
    }
}

fn product_sites(product: &super::Product) -> Vec<Site<'_>> {
    let operands = product.operands.iter().enumerate().map(|(i, operand)| Site {
        place: format!("operand {i}"),
        kind: SiteKind::Operand,
        scope: product.scope,
        extents: vec![operand.extent],
        body: &operand.body,
    });
    let segments = product.segments.iter().enumerate().map(|(i, segment)| Site {
        place: format!("segment {i}"),
        kind: SiteKind::Epilogue,
        scope: product.scope,
        extents: vec![segment.rows],
        body: &segment.body,
    });
    operands.chain(segments).collect()
}

fn total_sites((number, total): (usize, &super::Total)) -> Vec<Site<'_>> {
    fn factor<'a>(place: String, scope: Scope, operand: &'a super::ProductOperand) -> Site<'a> {
        Site {
            place,
            kind: SiteKind::Operand,
            scope,
            extents: vec![operand.extent],
            body: &operand.body,
        }
    }
    let mut sites = vec![factor(format!("total {number} left"), total.over, &total.left)];
    for (i, part) in total.parts.iter().enumerate() {
        let place = format!("total {number} part {i}");
        sites.push(factor(format!("{place} right"), total.over, &part.right));
        sites.push(Site {
            place: format!("{place} sum"),
            kind: SiteKind::Epilogue,
            scope: total.scope,
            extents: vec![total.groups * total.rows * part.columns],
            body: &part.body,
        });
    }
    sites
}

fn loop_sites(kernel: &super::Loop) -> Vec<Site<'_>> {
    let mut sites = Vec::new();
    for (phase, part, at) in parts(kernel) {
        for (slot, what) in at.slots.iter().enumerate() {
            if let Slot::Fold { extent, body, .. } = what {
                sites.push(Site {
                    place: format!("phase {phase} part {part} slot {slot}"),
                    kind: SiteKind::Fold { phase, part, slot },
                    scope: Scope::Frame,
                    extents: vec![at.units, *extent],
                    body,
                });
            }
        }
        sites.push(Site {
            place: format!("phase {phase} part {part}"),
            kind: SiteKind::Part { phase, part },
            scope: Scope::Frame,
            extents: vec![at.units],
            body: &at.body,
        });
    }
    sites
}

fn parts(kernel: &super::Loop) -> impl Iterator<Item = (usize, usize, &super::LoopPart)> {
    let phases = kernel.phases.iter().enumerate();
    phases.flat_map(|(p, phase)| phase.parts.iter().enumerate().map(move |(i, part)| (p, i, part)))
}

fn product_matrices(product: &super::Product) -> Vec<Matrix<'_>> {
    let segments = product.segments.iter().enumerate();
    let matrix = |(s, segment): (usize, &super::Segment), o: usize, weight: &Weight| Matrix {
        place: format!("segment {s} weight {o}"),
        buffer: weight.buffer,
        index: weight.index(),
        extents: [
            segment.rows,
            product.operands.get(o).map_or(0, |operand| operand.extent),
        ],
        slot: None,
    };
    segments
        .flat_map(|at| {
            at.1.weights
                .iter()
                .enumerate()
                .map(move |(o, weight)| matrix(at, o, weight))
        })
        .collect()
}

fn loop_matrices(kernel: &super::Loop) -> Vec<Matrix<'_>> {
    let mut matrices = Vec::new();
    for (phase, part, at) in parts(kernel) {
        for (i, slot) in at.slots.iter().enumerate() {
            if let Slot::Dot {
                extent,
                weight,
                weight_index,
                ..
            } = slot
            {
                matrices.push(Matrix {
                    place: format!("phase {phase} part {part} slot {i}"),
                    buffer: *weight,
                    index: weight_index.clone(),
                    extents: [at.units, *extent],
                    slot: Some(slot),
                });
            }
        }
    }
    matrices
}
