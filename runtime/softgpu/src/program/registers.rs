//! Every register that an instruction names: one visitor, so that renumbering cannot forget one.

use super::{Action, Address, AsyncStart, BarrierKind, Inst, Target, Transfer, Vote};
use crate::cost::kind::{Facts, Kind};
use crate::ops::combine::Compute;
use crate::ops::{Args, File, Slot};

/// The files of the operands of a pure instruction; other instructions know theirs.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Shape {
    dst: Option<File>,
    src: [Option<File>; 3],
}

impl Shape {
    pub fn of(compute: &Compute) -> Shape {
        Shape {
            dst: Some(compute.dst.file),
            src: compute.src.map(|slot| slot.map(|slot: Slot| slot.file)),
        }
    }
}

/// What an instruction does to a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Reads it.
    Use,
    /// Writes it, in the lanes that execute the instruction.
    Define,
    /// Reads or writes it in another frame's time: it must keep a place of its own.
    Pin,
}

/// What the model of cost must know of an instruction.
pub(super) fn facts(inst: &mut Inst, shape: &Shape, kind: Kind) -> Facts {
    let (mut reads, mut writes) = (Vec::new(), Vec::new());
    each_register(inst, shape, &mut |file, register, role| {
        let register = (file == File::Double, *register);
        match (file, role) {
            (File::Predicate, _) => {}
            (_, Role::Use) => reads.push(register),
            (_, Role::Define) => writes.push(register),
            (_, Role::Pin) => {}
        }
    });
    Facts {
        kind,
        reads: reads.into(),
        writes: writes.into(),
    }
}

/// A visitor.
pub(super) type Visit<'f> = &'f mut dyn FnMut(File, &mut u32, Role);

/// Calls `f` with every register of the word and double files that an instruction names. One flat match, so that a new
/// instruction cannot be forgotten.
pub(super) fn each_register(inst: &mut Inst, shape: &Shape, f: Visit<'_>) {
    let args = &mut inst.args;
    let word = File::Word;
    match &mut inst.action {
        Action::Compute(_) => {
            for (file, register) in shape.src.into_iter().zip([&mut args.a, &mut args.b, &mut args.c]) {
                if let Some(file) = file {
                    f(file, register, Role::Use);
                }
            }
            if let Some(file) = shape.dst {
                f(file, &mut args.d, Role::Define);
            }
        }
        Action::Load(transfer) => {
            address(&mut transfer.address, f);
            targets(&mut transfer.targets, Role::Define, f);
        }
        Action::Store(transfer) => {
            address(&mut transfer.address, f);
            targets(&mut transfer.targets, Role::Use, f);
        }
        Action::Atomic(atomic) => {
            targets(&mut atomic.operands, Role::Use, f);
            targets(atomic.second.as_mut_slice(), Role::Use, f);
            address(&mut atomic.at.address, f);
            targets(&mut atomic.at.targets, Role::Define, f);
        }
        Action::JumpTable(_) => f(word, &mut args.a, Role::Use),
        Action::Call(site) => {
            let words = site.arguments.iter_mut().chain(&mut site.results);
            words.for_each(|register| f(word, register, Role::Pin));
        }
        Action::Clock { wide } => f(if *wide { File::Double } else { word }, &mut args.d, Role::Define),
        Action::ActiveMask | Action::WarpSync | Action::Shuffle(_) | Action::Vote(_) => lanes(&inst.action, args, f),
        Action::Match { .. } | Action::Reduce(_) | Action::Transpose | Action::Elect => lanes(&inst.action, args, f),
        Action::Barrier(barrier) => {
            f(word, &mut args.a, Role::Use);
            f(word, &mut args.b, Role::Use);
            // The result comes when others have arrived.
            if barrier.kind == BarrierKind::Count {
                f(word, &mut args.d, Role::Pin);
            }
        }
        Action::Mma(m) => {
            let uses = m.a.iter_mut().chain(&mut m.b).chain(&mut m.c);
            uses.for_each(|register| f(word, register, Role::Use));
            m.d.iter_mut().for_each(|register| f(word, register, Role::Define));
        }
        Action::Matrix(matrix) => {
            address(&mut matrix.address, f);
            let role = if matrix.store { Role::Use } else { Role::Define };
            matrix.registers.iter_mut().for_each(|register| f(word, register, role));
        }
        Action::Mbarrier(op) => {
            transfer(&mut op.at, f);
            targets(op.operand.as_mut_slice(), Role::Use, f);
            targets(op.result.as_mut_slice(), Role::Define, f);
        }
        Action::Async(start) => asynchronous(start, f),
        Action::Jump(_) | Action::Return | Action::Exit | Action::Trap(_) | Action::Sleep | Action::Nothing => {}
        Action::ClusterArrive { .. } | Action::ClusterWait { .. } | Action::Fence(..) => {}
        Action::ProxyFence | Action::MbarrierInitFence => {}
        Action::Commit { .. } | Action::WaitGroup { .. } => {}
    }
}

/// The registers of what the lanes of a warp do together.
fn lanes(action: &Action, args: &mut Args, f: Visit<'_>) {
    let word = File::Word;
    let uses: &mut [&mut u32] = match action {
        Action::Shuffle(_) => &mut [&mut args.a, &mut args.b, &mut args.c, &mut args.flags],
        Action::Match { wide: true, .. } => {
            f(File::Double, &mut args.a, Role::Use);
            &mut [&mut args.b]
        }
        Action::Match { .. } | Action::Reduce(_) => &mut [&mut args.a, &mut args.b],
        Action::Transpose => &mut [&mut args.a],
        Action::WarpSync | Action::Vote(_) | Action::Elect => &mut [&mut args.b],
        _ => &mut [],
    };
    uses.iter_mut().for_each(|register| f(word, register, Role::Use));
    // The other results are predicates.
    if !matches!(action, Action::WarpSync) && !matches!(action, Action::Vote(vote) if *vote != Vote::Ballot) {
        f(word, &mut args.d, Role::Define);
    }
}

fn address(address: &mut Address, f: Visit<'_>) {
    if let Some((file, register)) = &mut address.base {
        f(*file, register, Role::Use);
    }
}

fn targets(targets: &mut [Target], role: Role, f: Visit<'_>) {
    for target in targets {
        if target.file != File::Predicate {
            f(target.file, &mut target.register, role);
        }
    }
}

fn transfer(at: &mut Transfer, f: Visit<'_>) {
    address(&mut at.address, f);
    targets(&mut at.targets, Role::Use, f);
}

fn asynchronous(start: &mut AsyncStart, f: Visit<'_>) {
    match start {
        AsyncStart::Copy { to, from, read, .. } => {
            address(to, f);
            address(from, f);
            targets(read.as_mut_slice(), Role::Use, f);
        }
        AsyncStart::Bulk {
            to,
            from,
            bytes,
            mbarrier,
            multicast,
            ..
        } => {
            address(&mut to.1, f);
            address(&mut from.1, f);
            targets(std::slice::from_mut(bytes), Role::Use, f);
            mbarrier.iter_mut().for_each(|at| address(at, f));
            targets(multicast.as_mut_slice(), Role::Use, f);
        }
        AsyncStart::Store {
            to, values, mbarrier, ..
        } => {
            address(to, f);
            targets(values, Role::Use, f);
            address(mbarrier, f);
        }
    }
}
