//! From operands to register numbers.

use super::Address;
use super::Target;
use super::decode::{Decoder, Outcome};
use super::names::{Register, Symbol};
use super::special;
use crate::ops::{Args, File, Opcode, Slot};
use crate::ptx::ast::{Operand, Type};
use std::sync::Arc;

impl Decoder<'_> {
    /// The register that holds a source operand; literals and addresses get one of their own.
    pub fn source(&mut self, operand: &Operand, slot: Slot) -> Outcome<u32> {
        match operand {
            Operand::Name(name) => self.named(name, 0, slot),
            Operand::Offset { name, offset } => self.named(name, *offset, slot),
            Operand::Not(name) => self.negated(name),
            Operand::Integer(value) => Ok(self.constant(slot.file, masked(*value as u64, slot.bits))),
            Operand::F32(bits) if slot.bits == 64 && slot.float => {
                Ok(self.constant(slot.file, f64::from(f32::from_bits(*bits)).to_bits()))
            }
            Operand::F32(bits) => Ok(self.constant(slot.file, (*bits).into())),
            Operand::F64(bits) if slot.bits == 32 && slot.float => {
                Ok(self.constant(slot.file, (f64::from_bits(*bits) as f32).to_bits().into()))
            }
            Operand::F64(bits) => Ok(self.constant(slot.file, *bits)),
            _ => self.fail("an operand that this instruction cannot take".into()),
        }
    }

    fn named(&mut self, name: &Arc<str>, offset: i64, slot: Slot) -> Outcome<u32> {
        match self.body.names.find(name) {
            Some(Symbol::Register(register)) => self.checked(name, register, slot),
            Some(Symbol::Shared(at)) => Ok(self.constant(slot.file, u64::from(at).wrapping_add_signed(offset))),
            Some(Symbol::Param { offset: at, .. }) if self.body.entry => {
                Ok(self.constant(slot.file, u64::from(at).wrapping_add_signed(offset)))
            }
            Some(Symbol::Local(at)) => Ok(self.local(slot.file, u64::from(at).wrapping_add_signed(offset))),
            Some(_) => self.fail(format!("{name} is no value")),
            None => self.global(name, offset, slot),
        }
    }

    fn checked(&self, name: &str, register: Register, slot: Slot) -> Outcome<u32> {
        if register.file != slot.file {
            return self.fail(format!(
                "{name} has {} bits where {} are needed",
                register.bits, slot.bits
            ));
        }
        Ok(register.number)
    }

    /// Names that are declared outside of functions: special registers and variables of the module.
    fn global(&mut self, name: &Arc<str>, offset: i64, slot: Slot) -> Outcome<u32> {
        if &**name == "WARP_SZ" {
            return Ok(self.constant(slot.file, 32));
        }
        if let Some(special) = special::named(name) {
            return self.special(special, slot);
        }
        match self.module_address(name) {
            Some(address) => Ok(self.constant(slot.file, address.wrapping_add_signed(offset))),
            None => self.fail(format!("{name} is not declared")),
        }
    }

    fn module_address(&self, name: &Arc<str>) -> Option<u64> {
        let shared = self.shared.module.get(name).map(|at| u64::from(*at));
        shared.or_else(|| self.globals.get(name).copied())
    }

    fn special(&mut self, special: super::Special, slot: Slot) -> Outcome<u32> {
        let file = special::file(special);
        if file != slot.file {
            return self.fail("a special register of another width".into());
        }
        let names = &mut self.body.names;
        Ok(*self.body.specials.entry(special).or_insert_with(|| names.fresh(file)))
    }

    /// A register that holds a constant.
    pub fn constant(&mut self, file: File, value: u64) -> u32 {
        let value = if file == File::Word { value & 0xFFFF_FFFF } else { value };
        let names = &mut self.body.names;
        *self
            .body
            .constants
            .entry((file, value))
            .or_insert_with(|| names.fresh(file))
    }

    fn local(&mut self, file: File, offset: u64) -> u32 {
        let names = &mut self.body.names;
        *self
            .body
            .locals
            .entry((file, offset))
            .or_insert_with(|| names.fresh(file))
    }

    /// The opposite of a predicate, in a register of its own.
    fn negated(&mut self, name: &Arc<str>) -> Outcome<u32> {
        let a = self.named(name, 0, Slot::PREDICATE)?;
        let d = self.body.names.fresh(File::Predicate);
        self.emit_words(
            &["not", "pred"],
            Args {
                d,
                a,
                ..Args::default()
            },
        )?;
        Ok(d)
    }

    /// Emits a pure instruction by its words.
    pub fn emit_words(&mut self, words: &[&str], args: Args) -> Outcome<()> {
        let words: Vec<Arc<str>> = words.iter().map(|word| (*word).into()).collect();
        match crate::ops::select(&mut Opcode::new(&words, 0)) {
            Some(compute) => {
                let flags = compute.flags;
                self.emit_pure(&compute, Args { flags, ..args });
                Ok(())
            }
            None => self.fail(format!("the instruction {} is not known", words.join("."))),
        }
    }

    /// The register of a destination; what is thrown away goes to a register that nobody reads.
    pub fn destination(&mut self, operand: &Operand, file: File) -> Outcome<u32> {
        match operand {
            Operand::Sink => Ok(self.scratch(file)),
            Operand::Name(name) => match self.body.names.find(name) {
                Some(Symbol::Register(register)) if register.file == file => Ok(register.number),
                Some(Symbol::Register(register)) => {
                    self.fail(format!("{name} has {} bits, which the result has not", register.bits))
                }
                _ => self.fail(format!("{name} is no register")),
            },
            _ => self.fail("a destination that is no register".into()),
        }
    }

    /// A register that nobody reads.
    pub fn scratch(&mut self, file: File) -> u32 {
        let names = &mut self.body.names;
        *self.body.scratch.entry(file).or_insert_with(|| names.fresh(file))
    }

    /// The register that an operand names, if it names one.
    pub fn register(&self, operand: &Operand) -> Option<Register> {
        match operand {
            Operand::Name(name) => match self.body.names.find(name)? {
                Symbol::Register(register) => Some(register),
                _ => None,
            },
            _ => None,
        }
    }

    /// Operand number `at`.
    pub fn operand<'o>(&self, operands: &'o [Operand], at: usize) -> Outcome<&'o Operand> {
        match operands.get(at) {
            Some(operand) => Ok(operand),
            None => self.fail(format!("operand {} is missing", at + 1)),
        }
    }

    /// An address in brackets.
    pub fn address(&mut self, operand: &Operand) -> Outcome<Address> {
        let Operand::Address { base, offset } = operand else {
            return self.fail("an address in brackets is needed".into());
        };
        let Some(name) = base else {
            return Ok(Address {
                base: None,
                offset: *offset,
            });
        };
        let register = self.register(&Operand::Name(Arc::clone(name)));
        if let Some(register) = register {
            return match register.file {
                File::Predicate => self.fail(format!("{name} is no address")),
                file => Ok(Address {
                    base: Some((file, register.number)),
                    offset: *offset,
                }),
            };
        }
        self.variable_address(name, *offset)
    }

    fn variable_address(&mut self, name: &Arc<str>, offset: i64) -> Outcome<Address> {
        let fixed = |at: u64| Address {
            base: None,
            offset: (at as i64).wrapping_add(offset),
        };
        match self.body.names.find(name) {
            Some(Symbol::Shared(at)) => Ok(fixed(at.into())),
            Some(Symbol::Param { offset: at, .. }) if self.body.entry => Ok(fixed(at.into())),
            Some(Symbol::Local(at)) => Ok(Address {
                base: Some((File::Double, self.local(File::Double, at.into()))),
                offset,
            }),
            Some(_) => self.fail(format!("{name} has no address")),
            None => match self.module_address(name) {
                Some(at) => Ok(fixed(at)),
                None => self.fail(format!("{name} is not declared")),
            },
        }
    }

    /// The registers of a source, element by element; `bits` each.
    pub fn sources(&mut self, operand: &Operand, ty: Type) -> Outcome<Vec<Target>> {
        let parts = parts_of(operand);
        let narrow = slot_of(ty);
        let mut targets = Vec::new();
        for part in parts {
            // A narrow store may take the low bits of a wider register.
            let wide = narrow.file == File::Word && self.register(part).is_some_and(|r| r.file == File::Double);
            let slot = if wide { slot_of(Type::B64) } else { narrow };
            let register = self.source(part, slot)?;
            let bits = slot.bits.into();
            targets.push(Target {
                file: slot.file,
                register,
                bits,
            });
            if ty == Type::B128 {
                targets.push(Target {
                    file: slot.file,
                    register: register + 1,
                    bits,
                });
            }
        }
        Ok(targets)
    }

    /// The registers of a destination, element by element.
    pub fn destinations(&mut self, operand: &Operand, ty: Type) -> Outcome<Vec<Target>> {
        let file = slot_of(ty).file;
        let mut targets = Vec::new();
        for part in parts_of(operand) {
            let bits = 8 * ty.bytes();
            let named = self.register(part);
            // A narrow load may fill a wider register.
            let (file, bits) = named.map_or((file, bits), |register| (register.file, register.bits));
            let register = self.destination(part, file)?;
            targets.push(Target { file, register, bits });
            if ty == Type::B128 {
                targets.push(Target {
                    file,
                    register: register + u32::from(named.is_some()),
                    bits,
                });
            }
        }
        Ok(targets)
    }
}

/// `{a, b}` as its parts, anything else as one.
pub(super) fn parts_of(operand: &Operand) -> &[Operand] {
    match operand {
        Operand::Vector(parts) | Operand::List(parts) => parts,
        other => std::slice::from_ref(other),
    }
}

/// What an operand of a type must be.
pub(super) fn slot_of(ty: Type) -> Slot {
    let (file, _) = super::names::file_of(ty);
    Slot {
        file,
        bits: (8 * ty.bytes()).min(64) as u8,
        float: matches!(ty, Type::F32 | Type::F64),
    }
}

fn masked(value: u64, bits: u8) -> u64 {
    if bits >= 64 { value } else { value & ((1 << bits) - 1) }
}
