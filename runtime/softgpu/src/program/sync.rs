//! What lanes, warps and blocks do together: votes, shuffles, barriers, fences, mbarriers.

use super::bind::slot_of;
use super::decode::{Decoder, Outcome};
use super::modifiers;
use super::{Action, Barrier, BarrierKind, MbarrierOp, Reduce, Shuffle, Transfer, Vote};
use crate::memory::Mbarrier;
use crate::memory::access::{Order, Scope};
use crate::ops::{Args, File, Opcode, Slot};
use crate::ptx::ast::{Instruction, Operand, Space, Type};

const WORD: Type = Type::B32;

/// The operations on mbarriers.
const MBARRIERS: [&str; 9] = [
    "init",
    "inval",
    "arrive",
    "arrive_drop",
    "expect_tx",
    "complete_tx",
    "test_wait",
    "try_wait",
    "pending_count",
];

/// An operation that is no arrival.
fn mbarrier_operation(name: &str, parity: bool) -> Mbarrier {
    let may_wait = name == "try_wait";
    match name {
        "init" => Mbarrier::Init,
        "inval" => Mbarrier::Invalidate,
        "expect_tx" => Mbarrier::ExpectTx,
        "complete_tx" => Mbarrier::CompleteTx,
        "pending_count" => Mbarrier::PendingCount,
        _ if parity => Mbarrier::TestParity { may_wait },
        _ => Mbarrier::TestState { may_wait },
    }
}

impl Decoder<'_> {
    /// Decodes an instruction that lanes or warps do together; false where it is none.
    pub fn sync(&mut self, instruction: &Instruction) -> Outcome<bool> {
        let mut op = Opcode::new(&instruction.opcode, 0);
        let operands = instruction.operands.as_slice();
        match op.base() {
            "shfl" => self.shuffle(&mut op, operands)?,
            "vote" => self.vote(&mut op, operands)?,
            "match" => self.matching(&mut op, operands)?,
            "redux" => self.reduce(&mut op, operands)?,
            "elect" => {
                op.flag("sync");
                let b = self.word(operands, 1)?;
                let (d, e) = self.one_or_two(self.operand(operands, 0)?, File::Word)?;
                let args = Args {
                    d,
                    e,
                    b,
                    ..Args::default()
                };
                self.emit(Action::Elect, args);
            }
            "activemask" => {
                op.ty();
                let d = self.destination(self.operand(operands, 0)?, File::Word)?;
                self.emit(Action::ActiveMask, Args { d, ..Args::default() });
            }
            "bar" | "barrier" => self.barrier(&mut op, operands)?,
            "membar" | "fence" => self.fence(&mut op)?,
            "mbarrier" => self.mbarrier(&mut op, operands)?,
            "getctarank" => return self.fail("getctarank is not known".into()),
            _ => return Ok(false),
        }
        self.no_rest(&op)?;
        Ok(true)
    }

    fn word(&mut self, operands: &[Operand], at: usize) -> Outcome<u32> {
        self.source(self.operand(operands, at)?, slot_of(WORD))
    }

    /// The mask of lanes goes into the flags: a shuffle has four sources.
    fn shuffle(&mut self, op: &mut Opcode<'_>, operands: &[Operand]) -> Outcome<()> {
        op.ty();
        let modes = [
            ("up", Shuffle::Up),
            ("down", Shuffle::Down),
            ("bfly", Shuffle::Butterfly),
            ("idx", Shuffle::Index),
        ];
        let Some(mode) = op.one_of(&modes).filter(|_| op.flag("sync")) else {
            return self.fail("a shuffle without .sync, or of an unknown mode".into());
        };
        let (a, b, c) = (
            self.word(operands, 1)?,
            self.word(operands, 2)?,
            self.word(operands, 3)?,
        );
        let flags = self.word(operands, 4)?;
        let (d, e) = self.one_or_two(self.operand(operands, 0)?, File::Word)?;
        self.emit(Action::Shuffle(mode), Args { d, e, a, b, c, flags });
        Ok(())
    }

    fn vote(&mut self, op: &mut Opcode<'_>, operands: &[Operand]) -> Outcome<()> {
        op.ty();
        let modes = [
            ("all", Vote::All),
            ("any", Vote::Any),
            ("uni", Vote::Uniform),
            ("ballot", Vote::Ballot),
        ];
        let Some(mode) = op.one_of(&modes).filter(|_| op.flag("sync")) else {
            return self.fail("a vote without .sync, or of an unknown mode".into());
        };
        let a = self.source(self.operand(operands, 1)?, Slot::PREDICATE)?;
        let b = self.word(operands, 2)?;
        let file = if mode == Vote::Ballot {
            File::Word
        } else {
            File::Predicate
        };
        let d = self.destination(self.operand(operands, 0)?, file)?;
        let args = Args {
            d,
            a,
            b,
            ..Args::default()
        };
        self.emit(Action::Vote(mode), args);
        Ok(())
    }

    fn matching(&mut self, op: &mut Opcode<'_>, operands: &[Operand]) -> Outcome<()> {
        let ty = op.ty().unwrap_or(WORD);
        let all = op.flag("all");
        op.flag("any");
        op.flag("sync");
        let a = self.source(self.operand(operands, 1)?, slot_of(ty))?;
        let b = self.word(operands, 2)?;
        let (d, e) = self.one_or_two(self.operand(operands, 0)?, File::Word)?;
        let wide = ty.bytes() == 8;
        let args = Args {
            d,
            e,
            a,
            b,
            ..Args::default()
        };
        self.emit(Action::Match { wide, all }, args);
        Ok(())
    }

    fn reduce(&mut self, op: &mut Opcode<'_>, operands: &[Operand]) -> Outcome<()> {
        let ty = op.ty().unwrap_or(WORD);
        op.flag("sync");
        let signed = ty == Type::S32;
        let kinds = match ty {
            Type::F32 => [("min", Reduce::MinFloat), ("max", Reduce::MaxFloat)],
            _ if signed => [("min", Reduce::MinSigned), ("max", Reduce::MaxSigned)],
            _ => [("min", Reduce::MinUnsigned), ("max", Reduce::MaxUnsigned)],
        };
        let others = [
            ("add", Reduce::Add),
            ("and", Reduce::And),
            ("or", Reduce::Or),
            ("xor", Reduce::Xor),
        ];
        let Some(kind) = op.one_of(&kinds).or_else(|| op.one_of(&others)) else {
            return self.fail(format!("{} is not known", op.text()));
        };
        let (a, b) = (self.word(operands, 1)?, self.word(operands, 2)?);
        let d = self.destination(self.operand(operands, 0)?, File::Word)?;
        let args = Args {
            d,
            a,
            b,
            ..Args::default()
        };
        self.emit(Action::Reduce(kind), args);
        Ok(())
    }

    /// `bar` is aligned always, `barrier` where it says so.
    fn barrier(&mut self, op: &mut Opcode<'_>, operands: &[Operand]) -> Outcome<()> {
        if op.flag("warp") {
            op.flag("sync");
            let b = self.word(operands, 0)?;
            self.emit(Action::WarpSync, Args { b, ..Args::default() });
            return Ok(());
        }
        if op.flag("cluster") {
            return self.cluster_barrier(op);
        }
        op.flag("cta");
        let aligned = op.flag("aligned") || op.base() == "bar";
        let base = op.one_of(&[("sync", 0), ("arrive", 1), ("red", 2)]);
        match base {
            Some(0) => self.plain_barrier(BarrierKind::Sync, aligned, operands),
            Some(1) => self.plain_barrier(BarrierKind::Arrive, aligned, operands),
            Some(_) => self.reducing_barrier(op, aligned, operands),
            None => self.fail(format!("{} is not known", op.text())),
        }
    }

    fn plain_barrier(&mut self, kind: BarrierKind, aligned: bool, operands: &[Operand]) -> Outcome<()> {
        let counted = operands.len() > 1;
        let a = self.word(operands, 0)?;
        let b = if counted { self.word(operands, 1)? } else { a };
        let barrier = Barrier { kind, aligned, counted };
        let args = Args {
            a,
            b,
            ..Args::default()
        };
        self.emit(Action::Barrier(Box::new(barrier)), args);
        Ok(())
    }

    fn reducing_barrier(&mut self, op: &mut Opcode<'_>, aligned: bool, operands: &[Operand]) -> Outcome<()> {
        op.ty();
        let kinds = [
            ("popc", BarrierKind::Count),
            ("and", BarrierKind::And),
            ("or", BarrierKind::Or),
        ];
        let Some(kind) = op.one_of(&kinds) else {
            return self.fail(format!("{} is not known", op.text()));
        };
        let file = if kind == BarrierKind::Count {
            File::Word
        } else {
            File::Predicate
        };
        let counted = operands.len() > 3;
        let a = self.word(operands, 1)?;
        let b = if counted { self.word(operands, 2)? } else { a };
        let c = self.source(self.operand(operands, operands.len() - 1)?, Slot::PREDICATE)?;
        let d = self.destination(self.operand(operands, 0)?, file)?;
        let barrier = Barrier { kind, aligned, counted };
        let args = Args {
            d,
            a,
            b,
            c,
            ..Args::default()
        };
        self.emit(Action::Barrier(Box::new(barrier)), args);
        Ok(())
    }

    fn cluster_barrier(&mut self, op: &mut Opcode<'_>) -> Outcome<()> {
        self.cluster = true;
        let aligned = op.flag("aligned");
        let (relaxed, _, acquire) = (op.flag("relaxed"), op.flag("release"), op.flag("acquire"));
        let action = match op.one_of(&[("arrive", true), ("wait", false)]) {
            Some(true) => Action::ClusterArrive {
                release: !relaxed,
                aligned,
            },
            // A wait acquires unless it says nothing; and by the manual, saying nothing means acquire.
            Some(false) => Action::ClusterWait {
                acquire: acquire || !relaxed,
                aligned,
            },
            None => return self.fail(format!("{} is not known", op.text())),
        };
        self.emit(action, Args::default());
        Ok(())
    }

    fn fence(&mut self, op: &mut Opcode<'_>) -> Outcome<()> {
        let old = op.one_of(&[("cta", Scope::Block), ("gl", Scope::Gpu), ("sys", Scope::System)]);
        if let Some(scope) = old.filter(|_| op.base() == "membar") {
            self.emit(Action::Fence(Order::AcquireRelease, scope), Args::default());
            return Ok(());
        }
        if op.find(|word| word.starts_with("proxy").then_some(())).is_some() {
            // Which proxies, in which space, makes no difference here.
            while op.find(|_| Some(())).is_some() {}
            self.emit(Action::ProxyFence, Args::default());
            return Ok(());
        }
        let orders = [
            ("sc", Order::AcquireRelease),
            ("acq_rel", Order::AcquireRelease),
            ("acquire", Order::Acquire),
            ("release", Order::Release),
        ];
        let of_init = op.flag("mbarrier_init");
        // `.sync_restrict::` is a fence of its order and scope.
        op.find(|word| word.starts_with("sync_restrict").then_some(()));
        let order = op.one_of(&orders).unwrap_or(Order::AcquireRelease);
        let Some(scope) = old.or_else(|| modifiers::scope(op)) else {
            return self.fail(format!("{} has no scope", op.text()));
        };
        let fence = if of_init {
            Action::MbarrierInitFence
        } else {
            Action::Fence(order, scope)
        };
        self.emit(fence, Args::default());
        Ok(())
    }

    fn mbarrier(&mut self, op: &mut Opcode<'_>, operands: &[Operand]) -> Outcome<()> {
        self.asynchronous = true;
        op.ty();
        let (space, own_block) = modifiers::space(op);
        let (order, scope) = self.mbarrier_order(op);
        let no_complete = op.flag("noComplete");
        let known = |word: &str| MBARRIERS.iter().find(|known| **known == word).copied();
        let Some(name) = op.find(known) else {
            return self.fail(format!("{} is not known", op.text()));
        };
        let expect = name.starts_with("arrive") && op.flag("expect_tx");
        let parity = op.flag("parity");
        let returns = matches!(
            name,
            "arrive" | "arrive_drop" | "test_wait" | "try_wait" | "pending_count"
        );
        let returns = returns && !matches!(operands.first(), Some(Operand::Address { .. }));
        let first = usize::from(returns);
        let transfer = match name {
            "pending_count" => self.shared_transfer(super::Address { base: None, offset: 0 }, space, 8),
            _ => {
                let address = self.address(self.operand(operands, first)?)?;
                self.shared_transfer(address, space, 8)
            }
        };
        let at = Transfer {
            own_block,
            order,
            scope,
            ..transfer
        };
        let operand = if name == "pending_count" {
            operands.get(1)
        } else {
            operands.get(first + 1)
        };
        let state = matches!(name, "pending_count") || (name.ends_with("wait") && !parity);
        let ty = if state { Type::B64 } else { WORD };
        let value = operand
            .map(|operand| self.sources(operand, ty))
            .transpose()?
            .and_then(|mut list| list.pop());
        let operation = match name {
            "arrive" | "arrive_drop" => Mbarrier::Arrive {
                count_given: value.is_some(),
                drop: name == "arrive_drop",
                expect,
                no_complete,
            },
            _ => mbarrier_operation(name, parity),
        };
        let result = match returns {
            true => self.mbarrier_result(self.operand(operands, 0)?, name)?,
            false => None,
        };
        let op = MbarrierOp {
            op: operation,
            at,
            operand: value,
            result,
            of_copies: None,
        };
        self.emit(Action::Mbarrier(Box::new(op)), Args::default());
        Ok(())
    }

    /// Arrivals release and waits acquire unless they are relaxed, in the block unless they say more.
    fn mbarrier_order(&self, op: &mut Opcode<'_>) -> (Order, Scope) {
        let waits = op.text().contains("wait");
        let default = if waits { Order::Acquire } else { Order::Release };
        let order = if op.flag("relaxed") { Order::Relaxed } else { default };
        op.flag("acquire");
        op.flag("release");
        (order, modifiers::scope(op).unwrap_or(Scope::Block))
    }

    fn mbarrier_result(&mut self, operand: &Operand, name: &str) -> Outcome<Option<super::Target>> {
        let (file, bits) = match name {
            "test_wait" | "try_wait" => (File::Predicate, 1),
            "pending_count" => (File::Word, 32),
            _ => (File::Double, 64),
        };
        if *operand == Operand::Sink {
            return Ok(None);
        }
        let register = self.destination(operand, file)?;
        Ok(Some(super::Target { file, register, bits }))
    }

    /// Whether shared memory is meant by a space that may be left out.
    pub fn shared_or_generic(space: Space) -> Space {
        if space == Space::Shared {
            Space::Shared
        } else {
            Space::Generic
        }
    }
}
