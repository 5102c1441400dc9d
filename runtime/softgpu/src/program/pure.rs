//! Instructions that only compute: the opcode's function is looked up and its operands are bound; `mov` with its many forms.

use super::bind::parts_of;
use super::decode::{Decoder, Outcome};
use super::{Action, special};
use crate::memory::access::{LOCAL_BASE, SHARED_BASE};
use crate::ops::combine::Compute;
use crate::ops::{Args, File, Opcode, Slot, carry, moves};
use crate::ptx::ast::{Instruction, Operand};
use std::sync::Arc;

impl Decoder<'_> {
    /// Decodes a pure instruction; false where it is none.
    pub fn pure(&mut self, instruction: &Instruction) -> Outcome<bool> {
        let operands = &instruction.operands;
        match &*instruction.opcode[0] {
            "mov" => self.mov(instruction)?,
            "cvta" => self.convert_address(instruction)?,
            "bfi" => self.insert(instruction)?,
            "lop3" => self.lookup(instruction)?,
            "mapa" => self.map_shared(instruction)?,
            _ => {
                let bits = operands
                    .first()
                    .and_then(|d| self.register(d))
                    .map_or(0, |register| register.bits);
                let mut op = Opcode::new(&instruction.opcode, bits);
                let Some(compute) = crate::ops::select(&mut op) else {
                    return Ok(false);
                };
                self.no_rest(&op)?;
                let carry = carry::uses_carry(&op);
                self.compute(compute, operands, carry)?;
            }
        }
        Ok(true)
    }

    /// Fails where a modifier was not understood.
    pub fn no_rest(&self, op: &Opcode<'_>) -> Outcome<()> {
        match op.rest() {
            None => Ok(()),
            Some(word) => self.fail(format!("{}: the modifier .{word} is not known here", op.text())),
        }
    }

    /// Binds the operands of a computation: one or two destinations, then the sources.
    fn compute(&mut self, compute: Compute, operands: &[Operand], carry: bool) -> Outcome<()> {
        let mut args = Args {
            flags: compute.flags,
            ..Args::default()
        };
        let sources: Vec<Slot> = compute.src.iter().flatten().copied().collect();
        // A `setp` may combine with a third predicate.
        let third = compute.dst.file == File::Predicate && operands.len() == sources.len() + 2;
        if operands.len() != sources.len() + 1 + usize::from(third) {
            return self.fail(format!(
                "{} operands where {} are needed",
                operands.len(),
                sources.len() + 1
            ));
        }
        let into = [&mut args.a, &mut args.b, &mut args.c];
        for ((slot, operand), into) in sources.iter().zip(&operands[1..]).zip(into) {
            *into = self.source(operand, *slot)?;
        }
        if third {
            args.c = self.source(&operands[operands.len() - 1], Slot::PREDICATE)?;
        }
        (args.d, args.e) = self.one_or_two(&operands[0], compute.dst.file)?;
        if carry {
            args.e = self.carry();
        }
        self.emit_pure(&compute, args);
        Ok(())
    }

    /// `d` or `d|e`.
    pub fn one_or_two(&mut self, operand: &Operand, file: File) -> Outcome<(u32, u32)> {
        match operand {
            Operand::Pair(first, second) => Ok((
                self.destination(first, file)?,
                self.destination(second, File::Predicate)?,
            )),
            single => Ok((self.destination(single, file)?, self.scratch(File::Predicate))),
        }
    }

    fn carry(&mut self) -> u32 {
        let names = &mut self.body.names;
        *self.body.carry.get_or_insert_with(|| names.fresh(File::Predicate))
    }

    fn emit_compute(&mut self, compute: Compute, d: u32, a: u32, b: u32) {
        let args = Args {
            d,
            a,
            b,
            flags: compute.flags,
            ..Args::default()
        };
        self.emit_pure(&compute, args);
    }

    fn mov(&mut self, instruction: &Instruction) -> Outcome<()> {
        let operands = &instruction.operands;
        let (to, from) = (self.operand(operands, 0)?, self.operand(operands, 1)?);
        if instruction.opcode.len() != 2 {
            return self.fail(format!("{} is not known", instruction.opcode.join(".")));
        }
        match (to, from) {
            (Operand::Vector(parts), _) => self.unpack(parts, from),
            (_, Operand::Vector(parts)) => self.pack(to, parts),
            (_, Operand::Name(name)) if special::clock(name).is_some() => self.clock(to, name),
            _ if &*instruction.opcode[1] == "b128" => self.move_wide(to, from),
            _ => {
                let mut op = Opcode::new(&instruction.opcode, 0);
                match crate::ops::select(&mut op) {
                    Some(compute) => self.compute(compute, operands, false),
                    None => self.fail(format!("{} is not known", op.text())),
                }
            }
        }
    }

    fn clock(&mut self, to: &Operand, name: &str) -> Outcome<()> {
        let wide = special::clock(name) == Some(true);
        let d = self.destination(to, if wide { File::Double } else { File::Word })?;
        self.emit(Action::Clock { wide }, Args { d, ..Args::default() });
        Ok(())
    }

    fn move_wide(&mut self, to: &Operand, from: &Operand) -> Outcome<()> {
        let (Some(to), Some(from)) = (self.register(to), self.register(from)) else {
            return self.fail("mov.b128 needs two registers".into());
        };
        for half in 0..2 {
            self.emit_compute(moves::copy::<u64>(false), to.number + half, from.number + half, 0);
        }
        Ok(())
    }

    /// `mov {a, b}, c`: each part is cut out of `c`.
    fn unpack(&mut self, parts: &[Operand], from: &Operand) -> Outcome<()> {
        let Some(whole) = self.register(from) else {
            return self.fail("what is taken apart must be a register".into());
        };
        let bits = whole.bits / parts.len().max(1) as u32;
        for (at, part) in parts.iter().enumerate().filter(|(_, part)| **part != Operand::Sink) {
            let at = at as u32 * bits;
            match bits {
                64 => {
                    let d = self.destination(part, File::Double)?;
                    self.emit_compute(moves::copy::<u64>(false), d, whole.number + at / 64, 0);
                }
                _ => {
                    let d = self.destination(part, File::Word)?;
                    let wide = whole.file == File::Double;
                    let piece = if wide {
                        moves::piece_of_double(at, bits)
                    } else {
                        moves::piece_of_word(at, bits)
                    };
                    self.emit_compute(piece, d, whole.number, 0);
                }
            }
        }
        Ok(())
    }

    /// `mov c, {a, b}`.
    fn pack(&mut self, to: &Operand, parts: &[Operand]) -> Outcome<()> {
        let Some(whole) = self.register(to) else {
            return self.fail("what is put together must be a register".into());
        };
        let bits = whole.bits / parts.len().max(1) as u32;
        let file = if bits == 64 { File::Double } else { File::Word };
        let slot = Slot {
            file,
            bits: bits as u8,
            float: false,
        };
        let parts: Vec<u32> = parts
            .iter()
            .map(|part| self.source(part, slot))
            .collect::<Outcome<_>>()?;
        match (whole.bits, parts.as_slice()) {
            (128, [low, high]) => {
                self.emit_compute(moves::copy::<u64>(false), whole.number, *low, 0);
                self.emit_compute(moves::copy::<u64>(false), whole.number + 1, *high, 0);
            }
            (64, [low, high]) => self.emit_compute(moves::join_words(), whole.number, *low, *high),
            (32, [low, high]) => self.emit_compute(moves::join_halves(), whole.number, *low, *high),
            (16, [low, high]) => self.emit_compute(moves::join_bytes(), whole.number, *low, *high),
            (_, [a, b, c, d]) => self.pack_four(whole.bits, whole.number, [*a, *b, *c, *d])?,
            _ => return self.fail(format!("{} parts of a register of {} bits", parts.len(), whole.bits)),
        }
        Ok(())
    }

    fn pack_four(&mut self, bits: u32, d: u32, parts: [u32; 4]) -> Outcome<()> {
        let [a, b, c, e] = parts;
        let (low, high) = (self.body.names.fresh(File::Word), self.body.names.fresh(File::Word));
        let (inner, outer) = match bits {
            64 => (moves::join_halves(), moves::join_words()),
            32 => (moves::join_bytes(), moves::join_halves()),
            128 => return self.pack_words(d, parts),
            _ => return self.fail(format!("four parts of a register of {bits} bits")),
        };
        self.emit_compute(inner, low, a, b);
        self.emit_compute(inner, high, c, e);
        self.emit_compute(outer, d, low, high);
        Ok(())
    }

    fn pack_words(&mut self, d: u32, [a, b, c, e]: [u32; 4]) -> Outcome<()> {
        self.emit_compute(moves::join_words(), d, a, b);
        self.emit_compute(moves::join_words(), d + 1, c, e);
        Ok(())
    }

    /// `cvta`: shared and local addresses are offsets of generic ones here, the others are the same.
    fn convert_address(&mut self, instruction: &Instruction) -> Outcome<()> {
        let mut op = Opcode::new(&instruction.opcode, 0);
        let to = op.flag("to");
        let spaces = [
            ("global", 0),
            ("const", 0),
            ("shared", SHARED_BASE),
            ("shared::cta", SHARED_BASE),
            ("shared::cluster", SHARED_BASE),
            ("local", LOCAL_BASE),
        ];
        let Some(base) = op.one_of(&spaces) else {
            return self.fail(format!("{} is not known", op.text()));
        };
        op.ty();
        self.no_rest(&op)?;
        let wide = Slot {
            file: File::Double,
            bits: 64,
            float: false,
        };
        let a = self.source(self.operand(&instruction.operands, 1)?, wide)?;
        let d = self.destination(self.operand(&instruction.operands, 0)?, File::Double)?;
        if base == 0 {
            self.emit_compute(moves::copy::<u64>(false), d, a, 0);
            return Ok(());
        }
        let b = self.constant(File::Double, base);
        let name = if to { "sub" } else { "add" };
        self.emit_words(
            &[name, "u64"],
            Args {
                d,
                a,
                b,
                ..Args::default()
            },
        )
    }

    /// `bfi`: position and length are packed into one operand.
    fn insert(&mut self, instruction: &Instruction) -> Outcome<()> {
        let operands = &instruction.operands;
        let place = match (self.operand(operands, 3)?, self.operand(operands, 4)?) {
            (Operand::Integer(at), Operand::Integer(len)) => {
                self.constant(File::Word, (at & 255 | (len & 255) << 8) as u64)
            }
            (at, len) => self.packed_place(at, len)?,
        };
        let mut op = Opcode::new(&instruction.opcode, 0);
        let Some(compute) = crate::ops::select(&mut op) else {
            return self.fail(format!("{} is not known", op.text()));
        };
        self.no_rest(&op)?;
        let slot = compute.dst;
        let a = self.source(&operands[1], slot)?;
        let b = self.source(&operands[2], slot)?;
        let d = self.destination(&operands[0], slot.file)?;
        self.emit_pure(
            &compute,
            Args {
                d,
                a,
                b,
                c: place,
                ..Args::default()
            },
        );
        Ok(())
    }

    fn packed_place(&mut self, at: &Operand, len: &Operand) -> Outcome<u32> {
        let slot = moves::copy::<u32>(false).dst;
        let (at, len) = (self.source(at, slot)?, self.source(len, slot)?);
        let place = self.body.names.fresh(File::Word);
        self.emit_compute(moves::join_bytes(), place, at, len);
        Ok(place)
    }

    /// `lop3`: the table is part of the instruction.
    fn lookup(&mut self, instruction: &Instruction) -> Outcome<()> {
        let operands = &instruction.operands;
        let Some(Operand::Integer(table)) = operands.get(4).filter(|_| operands.len() == 5) else {
            return self.fail("lop3 needs a table as its last operand".into());
        };
        let mut op = Opcode::new(&instruction.opcode, 0);
        let Some(compute) = crate::ops::select(&mut op) else {
            return self.fail(format!("{} is not known", op.text()));
        };
        self.no_rest(&op)?;
        self.compute(compute.with(*table as u32 & 255), &operands[..4], false)
    }

    /// `mapa`: the same offset in the window of another block of the cluster.
    fn map_shared(&mut self, instruction: &Instruction) -> Outcome<()> {
        let mut op = Opcode::new(&instruction.opcode, 0);
        let shared = op.flag("shared::cluster");
        let wide = op.ty().is_some_and(|ty| ty.bytes() == 8);
        self.no_rest(&op)?;
        let file = if wide { File::Double } else { File::Word };
        let slot = if wide {
            moves::copy::<u64>(false).dst
        } else {
            moves::copy::<u32>(false).dst
        };
        let operands = &instruction.operands;
        let a = self.source(self.operand(operands, 1)?, slot)?;
        let b = self.source(self.operand(operands, 2)?, moves::copy::<u32>(false).dst)?;
        let d = self.destination(self.operand(operands, 0)?, file)?;
        let compute = match (wide, shared) {
            (false, _) => moves::map_word(),
            (true, true) => moves::map_double(),
            (true, false) => moves::map_generic(),
        };
        self.emit_compute(compute, d, a, b);
        Ok(())
    }

    /// The words of an instruction's vector operand.
    pub fn words_of(&mut self, operand: &Operand) -> Outcome<Vec<u32>> {
        let slot = moves::copy::<u32>(false).dst;
        parts_of(operand).iter().map(|part| self.source(part, slot)).collect()
    }

    /// A name as an operand.
    pub fn name_of(&self, operand: &Operand) -> Outcome<Arc<str>> {
        match operand {
            Operand::Name(name) => Ok(Arc::clone(name)),
            _ => self.fail("a name is needed here".into()),
        }
    }
}
