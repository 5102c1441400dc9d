//! Matrix instructions: `mma`, `ldmatrix`, `stmatrix`, `movmatrix`.

use super::bind::{parts_of, slot_of};
use super::decode::{Decoder, Outcome};
use super::modifiers;
use super::{Action, Matrices, MatrixTransfer};
use crate::ops::mma::{Element, Mma};
use crate::ops::{Args, File, Opcode};
use crate::ptx::ast::{Instruction, Operand, Type};

impl Decoder<'_> {
    /// Decodes a matrix instruction; false where it is none.
    pub fn matrix(&mut self, instruction: &Instruction) -> Outcome<bool> {
        let mut op = Opcode::new(&instruction.opcode, 0);
        let operands = instruction.operands.as_slice();
        match op.base() {
            "mma" => self.product(&mut op, operands)?,
            "ldmatrix" => self.move_matrices(&mut op, operands, false)?,
            "stmatrix" => self.move_matrices(&mut op, operands, true)?,
            "movmatrix" => {
                for word in ["sync", "aligned", "m8n8", "trans"] {
                    if !op.flag(word) {
                        return self.fail(format!("{} is not known", op.text()));
                    }
                }
                op.ty();
                let a = self.source(self.operand(operands, 1)?, slot_of(Type::B32))?;
                let d = self.destination(self.operand(operands, 0)?, File::Word)?;
                self.emit(
                    Action::Transpose,
                    Args {
                        d,
                        a,
                        ..Args::default()
                    },
                );
            }
            _ => return Ok(false),
        }
        self.no_rest(&op)?;
        Ok(true)
    }

    fn product(&mut self, op: &mut Opcode<'_>, operands: &[Operand]) -> Outcome<()> {
        let synchronous = op.flag("sync") && op.flag("aligned") && op.flag("row") && op.flag("col");
        let shape = op.find(Mma::shape);
        let types: Vec<Element> = std::iter::from_fn(|| op.find(Element::named)).take(4).collect();
        let mma = match (shape, types.as_slice()) {
            (Some((m, n, k)), [d, a, b, c]) if synchronous => Mma::new((m, n, k), [*d, *a, *b, *c]),
            _ => None,
        };
        let Some(mma) = mma else {
            return self.fail(format!("{}: this shape with these types is not known", op.text()));
        };
        op.flag("satfinite");
        let d = self.destination_words(self.operand(operands, 0)?)?;
        let [a, b, c] = [1, 2, 3].map(|at| self.operand(operands, at).cloned());
        let (a, b, c) = (self.words_of(&a?)?, self.words_of(&b?)?, self.words_of(&c?)?);
        let sizes = mma.registers();
        if [d.len(), a.len(), b.len(), c.len()] != sizes {
            return self.fail(format!("{} needs fragments of {sizes:?} registers", op.text()));
        }
        self.emit(Action::Mma(Box::new(Matrices { mma, d, a, b, c })), Args::default());
        Ok(())
    }

    fn destination_words(&mut self, operand: &Operand) -> Outcome<Vec<u32>> {
        parts_of(operand)
            .iter()
            .map(|part| self.destination(part, File::Word))
            .collect()
    }

    fn move_matrices(&mut self, op: &mut Opcode<'_>, operands: &[Operand], store: bool) -> Outcome<()> {
        op.ty();
        let (space, _) = modifiers::space(op);
        let known = op.flag("sync") && op.flag("aligned") && op.flag("m8n8");
        let count = op.one_of(&[("x1", 1), ("x2", 2), ("x4", 4)]);
        let transpose = op.flag("trans");
        let Some(count) = count.filter(|_| known) else {
            return self.fail(format!("{} is not known", op.text()));
        };
        let (at, data) = if store { (0, 1) } else { (1, 0) };
        let address = self.address(self.operand(operands, at)?)?;
        let data = self.operand(operands, data)?;
        let registers = if store {
            self.words_of(data)?
        } else {
            self.destination_words(data)?
        };
        if registers.len() != count {
            return self.fail(format!("{} registers for {count} matrices", registers.len()));
        }
        let transfer = MatrixTransfer {
            store,
            transpose,
            space: Self::shared_or_generic(space),
            address,
            registers,
        };
        self.emit(Action::Matrix(Box::new(transfer)), Args::default());
        Ok(())
    }
}
