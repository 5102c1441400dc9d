//! Compiles a body into a [`Program`] over blocks of points.
//!
//! In: a body, its space, and what its slots and states are. Out: the program, in which every step knows where its
//! operands lie, every load and store which elements its points address, and narrow operands are widened where needed.

use super::access::{Access, points};
use super::program::{Number, Op, Place, Program, Source, State, StoreOp, Table, Width, allocate, unplaced};
use crate::plan::{Body, Carried, Elem, Frame, Guard, Index, Load, Plan, Reg, Scope, Step};
use crate::scalar::Binary;

/// The space of a body and what it refers to.
pub(super) struct Space<'a> {
    pub(super) plan: &'a Plan,
    pub(super) channels: &'a [usize],
    pub(super) inner: &'a [usize],
    pub(super) carried: &'a [Carried],
    /// Widths of the slots.
    pub(super) slots: &'a [Width],
    /// Whether a block stays with its sequences while frames pass: then what varies by sequence stays the same.
    pub(super) sequences_stay: bool,
}

/// Compiles the body; `results` are registers to be had afterwards, at least so wide.
pub(super) fn compile(body: &Body, space: &Space<'_>, results: &[(Reg, Width)]) -> Program {
    let (widths, state_widths) = widths(body, space);
    let mut compiler = Compiler {
        space,
        extents: space.channels.iter().chain(space.inner).copied().collect(),
        registers: vec![None; body.steps.len()],
        numbers: Vec::new(),
        widened: Vec::new(),
        program: Vec::new(),
    };
    let needed = needed(body, space.carried, results);
    let rings = compiler.rings(&state_widths);
    for (i, step) in body.steps.iter().enumerate().filter(|(i, _)| needed[*i]) {
        compiler.step(i, step, widths[i], body, &rings);
    }
    compiler.finish(body, &rings, results)
}

/// Which steps something asked for depends on.
fn needed(body: &Body, carried: &[Carried], results: &[(Reg, Width)]) -> Vec<bool> {
    let mut needed = vec![false; body.steps.len()];
    let stored = body.stores.iter().map(|s| s.value);
    for reg in stored
        .chain(carried.iter().map(|c| c.value))
        .chain(results.iter().map(|r| r.0))
    {
        needed[reg.0 as usize] = true;
    }
    for i in (0..needed.len()).rev().collect::<Vec<usize>>() {
        if needed[i] {
            body.steps[i].reads().iter().for_each(|r| needed[r.0 as usize] = true);
        }
    }
    needed
}

/// The widths of all registers and states. A state is as wide as its index and its value; found by iteration.
fn widths(body: &Body, space: &Space<'_>) -> (Vec<Width>, Vec<Width>) {
    let mut states: Vec<Width> = space.carried.iter().map(|c| space.width(&[&c.index])).collect();
    loop {
        let mut widths: Vec<Width> = Vec::with_capacity(body.steps.len());
        for step in &body.steps {
            widths.push(step_width(step, space, &widths, &states));
        }
        let value = |c: &Carried| widths[c.value.0 as usize];
        let next: Vec<Width> = space
            .carried
            .iter()
            .zip(&states)
            .map(|(c, s)| value(c).max(*s))
            .collect();
        if next == states {
            return (widths, states);
        }
        states = next;
    }
}

fn step_width(step: &Step, space: &Space<'_>, before: &[Width], states: &[Width]) -> Width {
    let read = step
        .reads()
        .iter()
        .map(|r| before[r.0 as usize])
        .max()
        .unwrap_or(Width::Copy);
    match step {
        Step::Load(load) => space.guarded_width(&load.index, &load.guards),
        Step::Number(index) | Step::Value { index, .. } => space.width(&[index]),
        Step::Inside(guards) => guards
            .iter()
            .map(|g| space.width(&[&g.index]))
            .max()
            .unwrap_or(Width::Copy),
        Step::Gather { index, .. } => read.max(space.width(&[index])),
        Step::Carried { state, .. } => states[*state],
        Step::Slot(slot) => space.slots[*slot],
        Step::Reduce(..) => read.min(Width::Channel),
        Step::Const(_) | Step::Unary(..) | Step::Binary(..) | Step::Select(..) | Step::Clamp(..) => read,
    }
}

impl Space<'_> {
    fn width(&self, indices: &[&Index]) -> Width {
        let uses = |from: usize, to: usize| (from..to).any(|v| indices.iter().any(|i| i.uses(v as u8)));
        let (channels, all) = (self.channels.len(), self.channels.len() + self.inner.len());
        match (uses(channels, all), uses(0, channels)) {
            (true, _) => Width::Point,
            (_, true) => Width::Channel,
            _ => Width::Copy,
        }
    }

    fn guarded_width(&self, index: &Index, guards: &[Guard]) -> Width {
        let all: Vec<&Index> = std::iter::once(index).chain(guards.iter().map(|g| &g.index)).collect();
        self.width(&all)
    }
}

/// A step whose places are register numbers still: `Place::slot` holds the number.
struct Compiler<'a> {
    space: &'a Space<'a>,
    extents: Vec<usize>,
    /// The number of each register of the body that was compiled.
    registers: Vec<Option<usize>>,
    numbers: Vec<Number>,
    /// (number, width, number of the widened copy)
    widened: Vec<(usize, Width, usize)>,
    program: Vec<(bool, Op)>,
}

impl Compiler<'_> {
    /// Rings of slots for the states; the slots are counted from 0 and come before all others.
    fn rings(&self, widths: &[Width]) -> Vec<Place> {
        let mut used = [0; 3];
        let mut rings = Vec::new();
        for (carried, width) in self.space.carried.iter().zip(widths) {
            // One more than the window: this frame's value is written while the oldest is still read.
            let ring = carried.window + 1;
            rings.push(Place {
                width: *width,
                slot: used[*width as usize],
                ring,
                delay: 0,
            });
            used[*width as usize] += ring;
        }
        rings
    }

    fn number(&mut self, width: Width, once: bool) -> Place {
        self.numbers.push(Number {
            width,
            once,
            ring: None,
        });
        unplaced(width, self.numbers.len() - 1)
    }

    /// The place of a register, at least so wide.
    fn operand(&mut self, reg: Reg, width: Width) -> Place {
        let number = self.registers[reg.0 as usize].unwrap_or_default();
        let own = self.numbers[number];
        if own.width >= width {
            return unplaced(own.width, number);
        }
        if let Some(known) = self.widened.iter().find(|w| w.0 == number && w.1 == width) {
            return unplaced(width, known.2);
        }
        let out = self.number(width, own.once);
        self.widened.push((number, width, out.slot));
        let a = unplaced(own.width, number);
        self.program.push((own.once, Op::Widen { a, out }));
        out
    }

    fn once(&self, reads: &[Reg]) -> bool {
        reads
            .iter()
            .all(|r| self.numbers[self.registers[r.0 as usize].unwrap_or_default()].once)
    }

    fn step(&mut self, i: usize, step: &Step, width: Width, body: &Body, rings: &[Place]) {
        if let Step::Carried { state, delay } = step {
            let ring = Place {
                delay: *delay,
                ..rings[*state]
            };
            self.numbers.push(Number {
                width: ring.width,
                once: false,
                ring: Some(ring),
            });
            self.registers[i] = Some(self.numbers.len() - 1);
            return;
        }
        let once = self.once(&step.reads()) && self.stays(step);
        // Operands first: widening them takes numbers.
        let mut op = self.operation(step, width, body);
        let out = self.number(width, once);
        self.registers[i] = Some(out.slot);
        if let Some(place) = op.places_mut().pop() {
            *place = out;
        }
        self.program.push((once, op));
    }

    /// Whether the step itself gives the same from frame to frame.
    fn stays(&self, step: &Step) -> bool {
        match step {
            Step::Load(load) => match load.frame {
                Frame::Const => true,
                Frame::Batch => self.space.sequences_stay,
                Frame::At { .. } => false,
            },
            Step::Carried { .. } | Step::Value { .. } | Step::Slot(_) => false,
            _ => true,
        }
    }

    /// The step as an operation whose result has no place yet.
    fn operation(&mut self, step: &Step, width: Width, body: &Body) -> Op {
        let out = unplaced(width, 0);
        match step {
            Step::Const(value) => Op::Fill {
                value: *value as f32,
                out,
            },
            Step::Load(load) => self.load(load, width),
            Step::Value { value, delay, index } => Op::Load {
                source: Source::Value {
                    value: *value,
                    delay: *delay,
                },
                access: Access::new(index, &[], &[], self.extents_of(width)),
                out,
            },
            Step::Number(index) => self.numbers_of(width, |p| index.eval(p) as f32),
            Step::Inside(guards) => {
                let holds = |p: &[i64]| guards.iter().all(|g| (g.lo..g.hi).contains(&g.index.eval(p)));
                self.numbers_of(width, |p| f32::from(u8::from(holds(p))))
            }
            Step::Gather {
                table,
                row,
                rows,
                stride,
                index,
            } => {
                let elements = self.space.plan.buffer(*table).elements();
                let table = Table {
                    id: *table,
                    rows: *rows,
                    stride: *stride,
                    elements,
                };
                self.gather(table, *row, index, width)
            }
            Step::Unary(op, a) => Op::Unary {
                op: *op,
                a: self.operand(*a, width),
                out,
            },
            // A square is the one power that cells write often.
            Step::Binary(Binary::Pow, a, b) if matches!(body.steps[b.0 as usize], Step::Const(2.0)) => {
                let a = self.operand(*a, width);
                Op::Binary {
                    op: Binary::Mul,
                    a,
                    b: a,
                    out,
                }
            }
            Step::Binary(op, a, b) => {
                let [a, b] = [a, b].map(|r| self.operand(*r, width));
                Op::Binary { op: *op, a, b, out }
            }
            Step::Select(c, a, b) => {
                let [c, a, b] = [c, a, b].map(|r| self.operand(*r, width));
                Op::Select { c, a, b, out }
            }
            Step::Clamp(x, lo, hi) => {
                let [x, lo, hi] = [x, lo, hi].map(|r| self.operand(*r, width));
                Op::Clamp { x, lo, hi, out }
            }
            Step::Reduce(op, a) => Op::Reduce {
                op: *op,
                a: self.operand(*a, Width::Point),
                out,
            },
            Step::Slot(slot) => Op::Slot { slot: *slot, out },
            // Handled by the caller: it has a place of its own.
            Step::Carried { .. } => Op::Fill { value: f32::NAN, out },
        }
    }

    fn load(&self, load: &Load, width: Width) -> Op {
        let plan = self.space.plan;
        let buffer = plan.buffer(load.buffer);
        let window = match load.frame {
            Frame::At { window: Some(id), .. } => plan.buffer(id).scope.copies(1, 1),
            _ => 0,
        };
        Op::Load {
            source: Source::Buffer {
                id: load.buffer,
                frame: load.frame,
                elements: buffer.elements(),
                window,
                integer: buffer.elem == Elem::I32,
            },
            access: Access::new(&load.index, &load.guards, &[], self.extents_of(width)),
            out: unplaced(width, 0),
        }
    }

    fn gather(&mut self, table: Table, row: Reg, index: &Index, width: Width) -> Op {
        // A row for every element, or one for all of a copy.
        let row = match self.width_of(row) {
            Width::Copy => self.operand(row, Width::Copy),
            _ => self.operand(row, width),
        };
        Op::Gather {
            table,
            row,
            access: Access::new(index, &[], &[], self.extents_of(width)),
            out: unplaced(width, 0),
        }
    }

    fn width_of(&self, reg: Reg) -> Width {
        self.numbers[self.registers[reg.0 as usize].unwrap_or_default()].width
    }

    fn numbers_of(&self, width: Width, f: impl Fn(&[i64]) -> f32) -> Op {
        let values: Vec<f32> = points(self.extents_of(width)).map(|p| f(&p)).collect();
        Op::Numbers {
            values,
            out: unplaced(width, 0),
        }
    }

    /// The axes that a register of this width varies with.
    fn extents_of(&self, width: Width) -> &[usize] {
        match width {
            Width::Copy => &[],
            Width::Channel => self.space.channels,
            Width::Point => &self.extents,
        }
    }

    fn finish(mut self, body: &Body, rings: &[Place], results: &[(Reg, Width)]) -> Program {
        let mut stores: Vec<StoreOp> = body.stores.iter().map(|store| self.store(store)).collect();
        let space = self.space;
        let carried = space.carried.iter().zip(rings);
        let mut states: Vec<State> = carried.map(|(carried, ring)| self.state(carried, *ring)).collect();
        let mut results: Vec<Place> = results.iter().map(|(reg, width)| self.operand(*reg, *width)).collect();
        let ends: Vec<Place> = stores
            .iter()
            .map(|s| s.value)
            .chain(states.iter().map(|s| s.value))
            .collect();
        let ends: Vec<Place> = ends.into_iter().chain(results.iter().copied()).collect();
        let mut first = [0; 3];
        rings.iter().for_each(|ring| first[ring.width as usize] += ring.ring);
        let (places, slots) = allocate(&self.numbers, &self.program, &ends, first);
        let place = |p: &mut Place| *p = places[p.slot];
        stores.iter_mut().for_each(|s| place(&mut s.value));
        states.iter_mut().for_each(|s| place(&mut s.value));
        results.iter_mut().for_each(place);
        self.program
            .iter_mut()
            .for_each(|(_, op)| op.places_mut().into_iter().for_each(place));
        let (once, each): (Vec<_>, Vec<_>) = self.program.into_iter().partition(|(once, _)| *once);
        Program {
            channels: space.channels.iter().product(),
            inner: space.inner.iter().product(),
            once: once.into_iter().map(|(_, op)| op).collect(),
            each: each.into_iter().map(|(_, op)| op).collect(),
            states,
            stores,
            results,
            slots,
        }
    }

    fn store(&mut self, store: &crate::plan::Store) -> StoreOp {
        let plan = self.space.plan;
        let buffer = plan.buffer(store.buffer);
        let width = self
            .space
            .width(&[&store.index])
            .max(self.width_of(store.value))
            .max(Width::Channel);
        let value = self.operand(store.value, width);
        let extents = self.extents_of(width);
        let lacks = |v: &usize| extents[*v] > 1 && !store.index.uses(*v as u8);
        let zero: Vec<usize> = (0..extents.len()).filter(lacks).collect();
        StoreOp {
            buffer: store.buffer,
            frame: store.frame,
            elem: buffer.elem,
            elements: buffer.elements(),
            window: match buffer.scope {
                Scope::Window(k) => k,
                _ => 0,
            },
            access: Access::new(&store.index, &[], &zero, extents),
            value,
        }
    }

    fn state(&mut self, carried: &Carried, ring: Place) -> State {
        let buffer = self.space.plan.buffer(carried.initial);
        State {
            ring,
            window: carried.window,
            initial: carried.initial,
            initial_frames: buffer.scope.copies(1, 1),
            elements: buffer.elements(),
            access: Access::new(&carried.index, &[], &[], self.extents_of(ring.width)),
            value: self.operand(carried.value, ring.width),
        }
    }
}
