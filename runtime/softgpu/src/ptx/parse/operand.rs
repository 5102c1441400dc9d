//! Operands of instructions.

use super::{Parsed, Parser};
use crate::ptx::ast::Operand;
use crate::ptx::lex::Token;
use crate::ptx::literal::Literal;

impl<'t> Parser<'t> {
    pub(super) fn operand(&mut self) -> Parsed<Operand> {
        let first = self.single()?;
        if !self.eat('|') {
            return Ok(first);
        }
        let second = self.single()?;
        match (&first, &second) {
            (Operand::Name(_) | Operand::Sink, Operand::Name(_) | Operand::Sink) => {
                Ok(Operand::Pair(Box::new(first), Box::new(second)))
            }
            _ => Err(self.error("a pair `a|b` of something else than registers")),
        }
    }

    fn single(&mut self) -> Parsed<Operand> {
        match self.peek() {
            Token::Word(_) => self.named(),
            Token::Number(_) | Token::Mark('-' | '~') => Ok(match self.literal()? {
                Literal::Integer(value) => Operand::Integer(value),
                Literal::F32(bits) => Operand::F32(bits),
                Literal::F64(bits) => Operand::F64(bits),
            }),
            Token::Mark('!') => {
                self.at += 1;
                Ok(Operand::Not(self.name("a predicate")?))
            }
            Token::Mark('{') => {
                self.at += 1;
                self.deeper(|parser| parser.list('}', Self::operand))
                    .map(Operand::Vector)
            }
            Token::Mark('(') => {
                self.at += 1;
                self.deeper(|parser| parser.list(')', Self::operand)).map(Operand::List)
            }
            Token::Mark('[') => {
                self.at += 1;
                self.address()
            }
            _ => self.wanted("an operand"),
        }
    }

    /// `name`, `name+4`, `_`.
    fn named(&mut self) -> Parsed<Operand> {
        let name = self.name("a name")?;
        if &*name == "_" {
            return Ok(Operand::Sink);
        }
        if self.is('[') {
            return Err(self.error("an indexed operand `name[i]` is not supported: write `name+bytes`"));
        }
        if !self.is('+') && !self.is('-') {
            return Ok(Operand::Name(name));
        }
        let offset = self.offset()?;
        Ok(Operand::Offset { name, offset })
    }

    /// `[base+offset]` after its bracket; the base may be missing.
    fn address(&mut self) -> Parsed<Operand> {
        let (base, offset) = match self.peek() {
            Token::Word(_) => {
                let base = self.name("a base")?;
                (Some(base), self.offset()?)
            }
            _ => (None, self.absolute()?),
        };
        if self.is(',') {
            return Err(self.error("addresses of several parts (tensor maps, textures) are not supported"));
        }
        self.mark(']')?;
        Ok(Operand::Address { base, offset })
    }

    /// An address of 64 bits, kept as the signed number of the same bits.
    fn absolute(&mut self) -> Parsed<i64> {
        let line = self.line();
        let address: i128 = self.integer()?;
        let message = "an address of more than 64 bits".to_owned();
        let signed = i64::try_from(address).or_else(|_| u64::try_from(address).map(u64::cast_signed));
        signed.map_err(|_| super::ParseError { line, message })
    }
}
