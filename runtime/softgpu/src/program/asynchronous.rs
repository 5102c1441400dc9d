//! Asynchronous operations: `cp.async`, `cp.async.bulk`, `st.async`, `red.async`, and waiting for them.

use super::bind::slot_of;
use super::decode::{Decoder, Outcome};
use super::modifiers;
use super::{Action, Address, AsyncStart, MbarrierOp, Target};
use crate::memory::Mbarrier;
use crate::ops::{Args, File, Opcode, Slot};
use crate::ptx::ast::{Instruction, Operand, Space, Type};

impl Decoder<'_> {
    /// Decodes an asynchronous instruction; false where it is none.
    pub fn asynchronous(&mut self, instruction: &Instruction) -> Outcome<bool> {
        let mut op = Opcode::new(&instruction.opcode, 0);
        let operands = instruction.operands.as_slice();
        if !op.flag("async") {
            return Ok(false);
        }
        self.asynchronous = true;
        match op.base() {
            "cp" if op.flag("bulk") => self.bulk(&mut op, operands)?,
            "cp" => self.copy(&mut op, operands)?,
            "st" | "red" => self.store_async(&mut op, operands)?,
            _ => return Ok(false),
        }
        self.no_rest(&op)?;
        Ok(true)
    }

    fn copy(&mut self, op: &mut Opcode<'_>, operands: &[Operand]) -> Outcome<()> {
        if op.flag("commit_group") {
            self.emit(Action::Commit { bulk: false }, Args::default());
            return Ok(());
        }
        if op.flag("wait_all") {
            self.emit(
                Action::WaitGroup {
                    most: None,
                    bulk: false,
                    read: false,
                },
                Args::default(),
            );
            return Ok(());
        }
        if op.flag("wait_group") {
            return self.wait_group(operands, false, false);
        }
        if op.flag("mbarrier") {
            return self.copies_arrive(op, operands);
        }
        op.flag("ca");
        op.flag("cg");
        op.flag("shared");
        op.flag("shared::cta");
        op.flag("global");
        let policy = modifiers::caches(op);
        let (to, from) = (
            self.address(self.operand(operands, 0)?)?,
            self.address(self.operand(operands, 1)?)?,
        );
        let Some(Operand::Integer(bytes @ (4 | 8 | 16))) = operands.get(2) else {
            return self.fail("cp.async copies 4, 8 or 16 bytes".into());
        };
        let more = &operands[3..operands.len() - usize::from(policy && operands.len() > 3)];
        let (read, ignore) = self.ignored_source(more)?;
        let start = AsyncStart::Copy {
            to,
            from,
            bytes: *bytes as u32,
            read,
            ignore,
        };
        self.emit(Action::Async(Box::new(start)), Args::default());
        Ok(())
    }

    /// The operand after the size: how many bytes are read, or a predicate that says that none are.
    fn ignored_source(&mut self, more: &[Operand]) -> Outcome<(Option<Target>, Option<u32>)> {
        match more {
            [] => Ok((None, None)),
            [one]
                if self
                    .register(one)
                    .is_some_and(|register| register.file == File::Predicate) =>
            {
                Ok((None, Some(self.source(one, Slot::PREDICATE)?)))
            }
            [one] => Ok((self.sources(one, Type::U32)?.pop(), None)),
            _ => self.fail("too many operands".into()),
        }
    }

    fn wait_group(&mut self, operands: &[Operand], bulk: bool, read: bool) -> Outcome<()> {
        let Some(Operand::Integer(most)) = operands.first() else {
            return self.fail("a number of groups is needed".into());
        };
        let most = Some(*most as u32);
        self.emit(Action::WaitGroup { most, bulk, read }, Args::default());
        Ok(())
    }

    fn copies_arrive(&mut self, op: &mut Opcode<'_>, operands: &[Operand]) -> Outcome<()> {
        op.flag("arrive");
        op.ty();
        let (space, _) = modifiers::space(op);
        let no_increment = op.flag("noinc");
        let address = self.address(self.operand(operands, 0)?)?;
        let at = self.shared_transfer(address, Self::shared_or_generic(space), 8);
        let arrive = Mbarrier::Arrive {
            count_given: false,
            drop: false,
            expect: false,
            no_complete: false,
        };
        let op = MbarrierOp {
            op: arrive,
            at,
            operand: None,
            result: None,
            of_copies: Some(no_increment),
        };
        self.emit(Action::Mbarrier(Box::new(op)), Args::default());
        Ok(())
    }

    /// `cp.async.bulk.dst.src...` and `cp.reduce.async.bulk`.
    fn bulk(&mut self, op: &mut Opcode<'_>, operands: &[Operand]) -> Outcome<()> {
        if op.flag("commit_group") {
            self.emit(Action::Commit { bulk: true }, Args::default());
            return Ok(());
        }
        if op.flag("wait_group") {
            let read = op.flag("read");
            return self.wait_group(operands, true, read);
        }
        if op.flag("prefetch") {
            while op.find(|_| Some(())).is_some() {}
            self.emit(Action::Nothing, Args::default());
            return Ok(());
        }
        let reduce = match op.flag("reduce") {
            true => self.reduction(op)?,
            false => None,
        };
        let (to, from) = (self.bulk_space(op)?, self.bulk_space(op)?);
        let counted = op.flag("mbarrier::complete_tx::bytes");
        op.flag("bulk_group");
        let multicast = op.flag("multicast::cluster");
        modifiers::caches(op);
        let to = (to, self.address(self.operand(operands, 0)?)?);
        let from = (from, self.address(self.operand(operands, 1)?)?);
        let bytes = self.one(self.operand(operands, 2)?, Type::U32)?;
        let mbarrier = match counted {
            true => Some(self.address(self.operand(operands, 3)?)?),
            false => None,
        };
        let multicast = match multicast {
            true => Some(self.one(self.operand(operands, 4)?, Type::U16)?),
            false => None,
        };
        let start = AsyncStart::Bulk {
            to,
            from,
            bytes,
            mbarrier,
            multicast,
            reduce,
        };
        self.emit(Action::Async(Box::new(start)), Args::default());
        Ok(())
    }

    fn one(&mut self, operand: &Operand, ty: Type) -> Outcome<Target> {
        let slot = slot_of(ty);
        let register = self.source(operand, slot)?;
        Ok(Target {
            file: slot.file,
            register,
            bits: slot.bits.into(),
        })
    }

    fn reduction(&mut self, op: &mut Opcode<'_>) -> Outcome<Option<(crate::memory::Atomic, u32)>> {
        let Some(ty) = op.ty() else {
            return self.fail(format!("{} has no type", op.text()));
        };
        op.flag("noftz");
        match modifiers::atomic(op, ty) {
            Some(atomic) => Ok(Some((atomic, ty.bytes()))),
            None => self.fail(format!("{}: the operation is not known", op.text())),
        }
    }

    fn bulk_space(&mut self, op: &mut Opcode<'_>) -> Outcome<Space> {
        let named = op.find(|word| match word {
            "global" => Some(Space::Global),
            "shared::cta" | "shared::cluster" => Some(Space::Shared),
            _ => None,
        });
        match named {
            Some(space) => Ok(space),
            None => self.fail(format!("{} does not name two spaces", op.text())),
        }
    }

    fn store_async(&mut self, op: &mut Opcode<'_>, operands: &[Operand]) -> Outcome<()> {
        let Some(ty) = op.ty() else {
            return self.fail(format!("{} has no type", op.text()));
        };
        for word in [
            "weak",
            "relaxed",
            "cluster",
            "shared::cluster",
            "mbarrier::complete_tx::bytes",
        ] {
            op.flag(word);
        }
        modifiers::vector(op);
        let reduce = match op.base() {
            "red" => match modifiers::atomic(op, ty) {
                Some(atomic) => Some(atomic),
                None => return self.fail(format!("{}: the operation is not known", op.text())),
            },
            _ => None,
        };
        let to: Address = self.address(self.operand(operands, 0)?)?;
        let values = self.sources(self.operand(operands, 1)?, ty)?;
        let mbarrier = self.address(self.operand(operands, 2)?)?;
        let start = AsyncStart::Store {
            to,
            values,
            bytes: ty.bytes(),
            mbarrier,
            reduce,
        };
        self.emit(Action::Async(Box::new(start)), Args::default());
        Ok(())
    }
}
