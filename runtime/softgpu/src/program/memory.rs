//! Loads, stores and atomic operations; parameters are registers.

use super::bind::slot_of;
use super::decode::{Decoder, Outcome};
use super::modifiers;
use super::names::Symbol;
use super::{Action, Address, AtomicTransfer, Target, Transfer};
use crate::memory::access::{Atomic, Order, Scope};
use crate::ops::opcode::is_signed;
use crate::ops::{Args, File, Opcode, moves};
use crate::ptx::ast::{Instruction, Operand, Space, Type};
use std::sync::Arc;

impl Decoder<'_> {
    /// Decodes an instruction of memory; false where it is none.
    pub fn memory(&mut self, instruction: &Instruction) -> Outcome<bool> {
        match &*instruction.opcode[0] {
            "ld" | "ldu" => self.load(instruction)?,
            "st" if instruction.opcode.get(1).is_none_or(|word| &**word != "async") => self.store(instruction)?,
            "atom" => self.atomic(instruction, true)?,
            "red" if instruction.opcode.get(1).is_none_or(|word| &**word != "async") => {
                self.atomic(instruction, false)?;
            }
            // They speak to caches alone.
            "prefetch" | "prefetchu" | "applypriority" => self.emit(Action::Nothing, Args::default()),
            "createpolicy" => self.policy(instruction)?,
            "isspacep" => self.is_space(instruction)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// What a load or store says about itself. The targets come later.
    fn transfer(&mut self, instruction: &Instruction) -> Outcome<(Transfer, Type)> {
        let mut op = Opcode::new(&instruction.opcode, 0);
        let Some(ty) = op.ty() else {
            return self.fail(format!("{} has no type", op.text()));
        };
        let elements = modifiers::vector(&mut op);
        let (space, own_block) = modifiers::space(&mut op);
        let (order, scope) = modifiers::order(&mut op);
        modifiers::caches(&mut op);
        self.no_rest(&op)?;
        let transfer = Transfer {
            space,
            own_block,
            address: Address { base: None, offset: 0 },
            bytes: ty.bytes(),
            elements,
            signed: is_signed(ty),
            order,
            scope,
            targets: Vec::new(),
        };
        Ok((transfer, ty))
    }

    fn load(&mut self, instruction: &Instruction) -> Outcome<()> {
        let operands = &instruction.operands;
        let (to, from) = (self.operand(operands, 0)?, self.operand(operands, 1)?);
        self.load_or_store(instruction, from, |decoder, ty| decoder.destinations(to, ty), true)
    }

    fn store(&mut self, instruction: &Instruction) -> Outcome<()> {
        let operands = &instruction.operands;
        let (to, from) = (self.operand(operands, 0)?, self.operand(operands, 1)?);
        self.load_or_store(instruction, to, |decoder, ty| decoder.sources(from, ty), false)
    }

    /// A transfer between the registers that `registers` finds and the memory, or the parameter, that `place` names.
    fn load_or_store(
        &mut self,
        instruction: &Instruction,
        place: &Operand,
        registers: impl FnOnce(&mut Self, Type) -> Outcome<Vec<Target>>,
        loads: bool,
    ) -> Outcome<()> {
        let (mut transfer, ty) = self.transfer(instruction)?;
        transfer.targets = registers(self, ty)?;
        self.count_elements(&transfer)?;
        if let Some((word, at)) = self.parameter(&transfer, place)? {
            return if loads {
                self.load_parameter(&transfer, word, at)
            } else {
                self.store_parameter(&transfer, word, at)
            };
        }
        transfer.address = self.address(place)?;
        let transfer = Box::new(transfer);
        let action = if loads {
            Action::Load(transfer)
        } else {
            Action::Store(transfer)
        };
        self.emit(action, Args::default());
        Ok(())
    }

    fn count_elements(&self, transfer: &Transfer) -> Outcome<()> {
        let rows = transfer.elements * if transfer.bytes == 16 { 2 } else { 1 };
        if transfer.targets.len() != rows as usize {
            return self.fail(format!(
                "{} registers for {} elements",
                transfer.targets.len(),
                transfer.elements
            ));
        }
        Ok(())
    }

    /// The first word of a parameter that an address names, and the offset from there.
    fn parameter(&self, transfer: &Transfer, operand: &Operand) -> Outcome<Option<(u32, u32)>> {
        let Operand::Address {
            base: Some(name),
            offset,
        } = operand
        else {
            return Ok(None);
        };
        let Some(Symbol::Param { word, bytes, .. }) = self.body.names.find(name) else {
            return Ok(None);
        };
        let end = offset + i64::from(transfer.bytes * transfer.elements);
        if transfer.space != Space::Param || *offset < 0 || end > i64::from(bytes) {
            return self.fail(format!(
                "bytes {offset} to {end} of the parameter {name}, which has {bytes}"
            ));
        }
        Ok(Some((word, *offset as u32)))
    }

    fn load_parameter(&mut self, transfer: &Transfer, word: u32, at: u32) -> Outcome<()> {
        for (element, target) in transfer.targets.iter().enumerate() {
            let at = at + element as u32 * transfer.bytes.min(8);
            let (a, shift) = (word + at / 4, at % 4 * 8);
            // A narrow parameter may fill a wider register: by way of a word.
            let wide = target.file == File::Double && transfer.bytes < 8;
            let d = if wide {
                self.scratch(File::Word)
            } else {
                target.register
            };
            let args = Args {
                d,
                a,
                b: a + 1,
                ..Args::default()
            };
            let compute = match transfer.bytes {
                8 | 16 => moves::join_words(),
                4 => moves::copy::<u32>(false),
                bytes => moves::piece_of_word(shift, 8 * bytes),
            };
            if shift != 0 && transfer.bytes >= 4 {
                return self.fail("a parameter that is not aligned".into());
            }
            self.emit_pure(
                &compute,
                Args {
                    flags: compute.flags,
                    ..args
                },
            );
            if transfer.signed && transfer.bytes < 4 && target.bits >= 32 {
                self.extend(transfer, d)?;
            }
            if wide {
                let (to, from) = if transfer.signed {
                    ("s64", "s32")
                } else {
                    ("u64", "u32")
                };
                let widen = Args {
                    d: target.register,
                    a: d,
                    ..Args::default()
                };
                self.emit_words(&["cvt", to, from], widen)?;
            }
        }
        Ok(())
    }

    /// Extends a narrow parameter with its sign.
    fn extend(&mut self, transfer: &Transfer, register: u32) -> Outcome<()> {
        let from = if transfer.bytes == 1 { "s8" } else { "s16" };
        let args = Args {
            d: register,
            a: register,
            ..Args::default()
        };
        self.emit_words(&["cvt", "s32", from], args)
    }

    fn store_parameter(&mut self, transfer: &Transfer, word: u32, at: u32) -> Outcome<()> {
        for (element, target) in transfer.targets.iter().enumerate() {
            let at = at + element as u32 * transfer.bytes.min(8);
            let (d, shift) = (word + at / 4, at % 4 * 8);
            let a = target.register;
            match transfer.bytes {
                8 | 16 => {
                    for half in 0..2 {
                        let piece = moves::piece_of_double(32 * half, 32);
                        let args = Args {
                            d: d + half,
                            a,
                            flags: piece.flags,
                            ..Args::default()
                        };
                        self.emit_pure(&piece, args);
                    }
                }
                4 if target.file == File::Double => {
                    let low = moves::piece_of_double(0, 32);
                    let args = Args {
                        d,
                        a,
                        flags: low.flags,
                        ..Args::default()
                    };
                    self.emit_pure(&low, args);
                }
                1 | 2 if target.file == File::Double => {
                    return self.fail("a narrow parameter from a 64-bit register".into());
                }
                4 => self.emit_pure(
                    &moves::copy::<u32>(false),
                    Args {
                        d,
                        a,
                        ..Args::default()
                    },
                ),
                bytes => {
                    let insert = moves::piece_into_word(shift, 8 * bytes);
                    let args = Args {
                        d,
                        a,
                        b: d,
                        flags: insert.flags,
                        ..Args::default()
                    };
                    self.emit_pure(&insert, args);
                }
            }
        }
        Ok(())
    }

    fn atomic(&mut self, instruction: &Instruction, returns: bool) -> Outcome<()> {
        let mut op = Opcode::new(&instruction.opcode, 0);
        let Some(ty) = op.ty() else {
            return self.fail(format!("{} has no type", op.text()));
        };
        let elements = modifiers::vector(&mut op);
        let (space, own_block) = modifiers::space(&mut op);
        let (order, scope) = modifiers::order(&mut op);
        modifiers::caches(&mut op);
        op.flag("noftz");
        let Some(atomic) = modifiers::atomic(&mut op, ty) else {
            return self.fail(format!("{}: the operation is not known", op.text()));
        };
        self.no_rest(&op)?;
        let operands = &instruction.operands;
        let first = usize::from(returns);
        let targets = match returns {
            true => self.destinations(self.operand(operands, 0)?, ty)?,
            false => Vec::new(),
        };
        let address = self.address(self.operand(operands, first)?)?;
        let values = self.sources(self.operand(operands, first + 1)?, ty)?;
        let second = match atomic {
            Atomic::CompareAndSwap => self.sources(self.operand(operands, first + 2)?, ty)?.pop(),
            _ => None,
        };
        let at = Transfer {
            space,
            own_block,
            address,
            bytes: ty.bytes(),
            elements,
            signed: false,
            order: if order == Order::Weak { Order::Relaxed } else { order },
            scope,
            targets,
        };
        if ty == Type::B128 {
            return self.fail("atomic operations of 128 bits are not known".into());
        }
        let atomic = AtomicTransfer {
            at,
            op: atomic,
            operands: values,
            second,
        };
        self.emit(Action::Atomic(Box::new(atomic)), Args::default());
        Ok(())
    }

    /// A policy speaks to caches: any value will do.
    fn policy(&mut self, instruction: &Instruction) -> Outcome<()> {
        let d = self.destination(self.operand(&instruction.operands, 0)?, File::Double)?;
        let a = self.constant(File::Double, 0);
        self.emit_pure(
            &moves::copy::<u64>(false),
            Args {
                d,
                a,
                ..Args::default()
            },
        );
        Ok(())
    }

    /// `isspacep`: whether a generic address lies in a space.
    fn is_space(&mut self, instruction: &Instruction) -> Outcome<()> {
        use crate::memory::access::{LOCAL_BASE, SHARED_BASE, SHARED_WINDOW};
        let mut op = Opcode::new(&instruction.opcode, 0);
        let range = op.one_of(&[
            ("global", (0, SHARED_BASE)),
            ("shared", (SHARED_BASE, SHARED_WINDOW)),
            ("shared::cta", (SHARED_BASE, SHARED_WINDOW)),
            ("shared::cluster", (SHARED_BASE, LOCAL_BASE - SHARED_BASE)),
            ("local", (LOCAL_BASE, LOCAL_BASE)),
        ]);
        let Some((base, len)) = range else {
            return self.fail(format!("{} is not known", op.text()));
        };
        self.no_rest(&op)?;
        let d = self.destination(self.operand(&instruction.operands, 0)?, File::Predicate)?;
        let a = self.source(self.operand(&instruction.operands, 1)?, slot_of(Type::B64))?;
        let offset = self.body.names.fresh(File::Double);
        let (base, len) = (self.constant(File::Double, base), self.constant(File::Double, len));
        self.emit_words(
            &["sub", "u64"],
            Args {
                d: offset,
                a,
                b: base,
                ..Args::default()
            },
        )?;
        let e = self.scratch(File::Predicate);
        self.emit_words(
            &["setp", "lt", "u64"],
            Args {
                d,
                e,
                a: offset,
                b: len,
                ..Args::default()
            },
        )
    }

    /// A transfer of shared memory at an address, for instructions that are no plain loads.
    pub fn shared_transfer(&mut self, address: Address, space: Space, bytes: u32) -> Transfer {
        Transfer {
            space,
            own_block: false,
            address,
            bytes,
            elements: 1,
            signed: false,
            order: Order::Relaxed,
            scope: Scope::Block,
            targets: Vec::new(),
        }
    }

    /// Whether a name is a function of the module.
    pub fn function_named(&self, name: &Arc<str>) -> Option<&crate::ptx::ast::Function> {
        let module = self.module;
        module.functions.iter().find(|f| f.name == *name)
    }
}
