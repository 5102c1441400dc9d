//! Branches, ends and traps.

use super::Action;
use super::bind::slot_of;
use super::decode::{Decoder, Fixup, Outcome};
use super::names::Symbol;
use crate::ops::{Args, Opcode};
use crate::ptx::ast::{Instruction, Operand, Type};
use std::sync::Arc;

impl Decoder<'_> {
    /// Decodes an instruction of control; false where it is none.
    pub fn control(&mut self, instruction: &Instruction) -> Outcome<bool> {
        let mut op = Opcode::new(&instruction.opcode, 0);
        match op.base() {
            "bra" => self.branch(instruction, &mut op)?,
            "brx" => self.branch_indexed(instruction, &mut op)?,
            "ret" | "exit" => {
                op.flag("uni");
                self.no_rest(&op)?;
                let leaves = self.body.entry || op.base() == "exit";
                self.emit(if leaves { Action::Exit } else { Action::Return }, Args::default());
            }
            "trap" => self.emit(Action::Trap("the kernel executes trap"), Args::default()),
            "brkpt" => self.emit(Action::Trap("the kernel executes brkpt"), Args::default()),
            "nanosleep" => self.emit(Action::Sleep, Args::default()),
            "pmevent" | "griddepcontrol" | "setmaxnreg" | "discard" => self.emit(Action::Nothing, Args::default()),
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn branch(&mut self, instruction: &Instruction, op: &mut Opcode<'_>) -> Outcome<()> {
        op.flag("uni");
        self.no_rest(op)?;
        let target = self.name_of(self.operand(&instruction.operands, 0)?)?;
        self.later([target].into());
        self.emit(Action::Jump(0), Args::default());
        Ok(())
    }

    fn branch_indexed(&mut self, instruction: &Instruction, op: &mut Opcode<'_>) -> Outcome<()> {
        op.flag("idx");
        op.flag("uni");
        self.no_rest(op)?;
        let a = self.source(self.operand(&instruction.operands, 0)?, slot_of(Type::U32))?;
        let table = self.operand(&instruction.operands, 1)?;
        let targets = match table {
            Operand::Name(name) => self.body.names.find(name),
            _ => None,
        };
        let Some(Symbol::Targets(targets)) = targets else {
            return self.fail("brx.idx needs a list of targets that is declared before it".into());
        };
        self.later(targets);
        self.emit(Action::JumpTable(Box::default()), Args { a, ..Args::default() });
        Ok(())
    }

    /// The next instruction jumps to these labels.
    fn later(&mut self, targets: Arc<[Arc<str>]>) {
        let fixup = Fixup {
            at: self.code.len(),
            chain: self.body.names.chain(),
            targets,
            line: self.body.origin.line,
        };
        self.body.fixups.push(fixup);
    }
}
