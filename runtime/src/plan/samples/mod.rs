//! Small plans written by hand, for tests: every kernel family, step and scope occurs in one of them.

mod channels;
mod loops;
mod products;
mod totals;

pub(crate) use channels::{decay, embedding, matrix_state, softmax, swap, taps};
pub(crate) use loops::{lstm, norms};
pub(crate) use products::products;
pub(crate) use totals::totals;

use super::{
    Body, Buffer, BufferId, Channel, Elem, Family, Frame, Index, Initial, Kernel, Launch, Load, Plan, ProductOperand,
    Reg, Role, Scope, Step, Store, StoreFrame, Weight,
};
use crate::scalar::{Binary, Reduce, Unary};

/// Builds a body step by step.
#[derive(Default)]
pub(crate) struct BodyMaker(Body);

impl BodyMaker {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn step(&mut self, step: Step) -> Reg {
        self.0.steps.push(step);
        Reg(self.0.steps.len() as u32 - 1)
    }

    pub(crate) fn number(&mut self, x: f64) -> Reg {
        self.step(Step::Const(x))
    }

    pub(crate) fn load(&mut self, buffer: BufferId, frame: Frame, index: Index) -> Reg {
        self.step(Step::Load(Load {
            buffer,
            frame,
            index,
            guards: vec![],
        }))
    }

    /// Element `index` of this frame.
    pub(crate) fn now(&mut self, buffer: BufferId, index: Index) -> Reg {
        self.load(buffer, NOW, index)
    }

    pub(crate) fn constant(&mut self, buffer: BufferId, index: Index) -> Reg {
        self.load(buffer, Frame::Const, index)
    }

    pub(crate) fn carried(&mut self, state: usize, delay: usize) -> Reg {
        self.step(Step::Carried { state, delay })
    }

    pub(crate) fn value(&mut self, value: usize, delay: usize) -> Reg {
        self.step(Step::Value {
            value,
            delay,
            index: Index::var(0),
        })
    }

    pub(crate) fn slot(&mut self, slot: usize) -> Reg {
        self.step(Step::Slot(slot))
    }

    pub(crate) fn unary(&mut self, op: Unary, a: Reg) -> Reg {
        self.step(Step::Unary(op, a))
    }

    pub(crate) fn binary(&mut self, op: Binary, a: Reg, b: Reg) -> Reg {
        self.step(Step::Binary(op, a, b))
    }

    pub(crate) fn add(&mut self, a: Reg, b: Reg) -> Reg {
        self.binary(Binary::Add, a, b)
    }

    pub(crate) fn sub(&mut self, a: Reg, b: Reg) -> Reg {
        self.binary(Binary::Sub, a, b)
    }

    pub(crate) fn mul(&mut self, a: Reg, b: Reg) -> Reg {
        self.binary(Binary::Mul, a, b)
    }

    pub(crate) fn reduce(&mut self, op: Reduce, a: Reg) -> Reg {
        self.step(Step::Reduce(op, a))
    }

    pub(crate) fn store(&mut self, buffer: BufferId, frame: StoreFrame, index: Index, value: Reg) {
        self.0.stores.push(Store {
            buffer,
            frame,
            index,
            value,
        });
    }

    pub(crate) fn done(self) -> Body {
        self.0
    }
}

/// This frame.
pub(crate) const NOW: Frame = Frame::At { delay: 0, window: None };

/// `delay` frames back; the window holds what lies before the first.
pub(crate) fn back(delay: i32, window: BufferId) -> Frame {
    Frame::At {
        delay,
        window: Some(window),
    }
}

/// `Var(v) * stride` for each pair, added up.
pub(crate) fn at(terms: &[(u8, i64)]) -> Index {
    terms.iter().fold(Index::int(0), |sum, (v, stride)| {
        sum.add(&Index::var(*v).times(*stride))
    })
}

pub(crate) fn u() -> Index {
    Index::var(0)
}

/// Builds a plan buffer by buffer, launch by launch; each launch comes after all those before it.
pub(crate) struct PlanMaker(pub(crate) Plan);

impl PlanMaker {
    pub(crate) fn new(cell: &str) -> Self {
        PlanMaker(Plan {
            cell: cell.to_owned(),
            dims: vec![],
            buffers: vec![],
            prologue: vec![],
            initial: vec![],
            launches: vec![],
            finals: vec![],
            against_time: false,
        })
    }

    pub(crate) fn buffer(&mut self, name: &str, role: Role, scope: Scope, shape: &[usize]) -> BufferId {
        self.0.buffers.push(Buffer {
            name: name.to_owned(),
            role,
            scope,
            shape: shape.to_vec(),
            elem: Elem::F32,
        });
        BufferId(self.0.buffers.len() as u32 - 1)
    }

    pub(crate) fn input(&mut self, name: &str, shape: &[usize]) -> BufferId {
        self.buffer(name, Role::Input, Scope::Frame, shape)
    }

    pub(crate) fn param(&mut self, name: &str, shape: &[usize]) -> BufferId {
        self.buffer(name, Role::Param, Scope::Const, shape)
    }

    pub(crate) fn output(&mut self, name: &str, shape: &[usize]) -> BufferId {
        self.buffer(name, Role::Output, Scope::Frame, shape)
    }

    pub(crate) fn temp(&mut self, name: &str, scope: Scope, shape: &[usize]) -> BufferId {
        self.buffer(name, Role::Temp, scope, shape)
    }

    /// The windows before and after.
    pub(crate) fn windows(&mut self, name: &str, k: usize, shape: &[usize], fill: Initial) -> (BufferId, BufferId) {
        let first = self.buffer(name, Role::Initial(fill), Scope::Window(k), shape);
        (first, self.buffer(name, Role::Final, Scope::Window(k), shape))
    }

    fn launch(list: &mut Vec<Launch>, name: &str, kernel: Kernel) {
        let family = match &kernel {
            Kernel::Product(_) => Family::Product,
            Kernel::Total(_) => Family::Total,
            Kernel::Channel(channel) if channel.sequential => Family::Scan,
            Kernel::Channel(_) => Family::Pointwise,
            Kernel::Loop(_) => Family::Loop,
        };
        list.push(Launch {
            family,
            name: name.to_owned(),
            equations: vec![],
            after: (0..list.len()).collect(),
            kernel,
        });
    }

    pub(crate) fn run(&mut self, name: &str, kernel: Kernel) {
        Self::launch(&mut self.0.launches, name, kernel);
    }

    pub(crate) fn prologue(&mut self, name: &str, kernel: Kernel) {
        Self::launch(&mut self.0.prologue, name, kernel);
    }

    pub(crate) fn initial(&mut self, name: &str, kernel: Kernel) {
        Self::launch(&mut self.0.initial, name, kernel);
    }
}
/// A row-major matrix with `k` columns.
pub(crate) fn matrix(buffer: BufferId, k: usize) -> Weight {
    Weight {
        buffer,
        offset: 0,
        row_stride: k as i64,
        k_stride: 1,
    }
}

/// `out = W @ x` for one operand that is a buffer of this frame.
pub(crate) fn plain_operand(buffer: BufferId, frame: Frame, extent: usize) -> ProductOperand {
    let mut body = BodyMaker::new();
    let result = body.load(buffer, frame, u());
    ProductOperand {
        extent,
        body: body.done(),
        result,
    }
}

/// The epilogue that adds a bias and stores.
pub(crate) fn biased(bias: BufferId, out: BufferId) -> Body {
    let mut body = BodyMaker::new();
    let sum = body.slot(0);
    let b = body.constant(bias, u());
    let y = body.add(sum, b);
    body.store(out, StoreFrame::Now, u(), y);
    body.done()
}

/// Pointwise work over one axis.
pub(crate) fn pointwise(scope: Scope, n: usize, body: Body) -> Kernel {
    Kernel::Channel(Channel {
        scope,
        sequential: false,
        channels: vec![n],
        inner: vec![],
        carried: vec![],
        body,
    })
}
