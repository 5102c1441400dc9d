//! Declarations of variables and parameters, and initial values.

use super::{Parsed, Parser};
use crate::ptx::ast::{Initial, Space, Type, Variable};
use crate::ptx::lex::Token;
use std::sync::Arc;

/// Most elements of an initial value; more is no module but an attack on memory.
const MOST: u64 = 1 << 26;

/// What precedes the name of a variable.
struct Head {
    align: Option<u32>,
    vector: u32,
    ty: Type,
}

impl<'t> Parser<'t> {
    /// `.shared .align 4 .b8 a[12], b;` from the state space on.
    pub(super) fn variables(&mut self, space: Space, external: bool, out: &mut Vec<Variable>) -> Parsed<()> {
        self.at += 1;
        let head = self.variable_head()?;
        loop {
            out.push(self.declared(&head, space, external)?);
            match self.next() {
                Token::Mark(',') => {}
                Token::Mark(';') => return Ok(()),
                _ => {
                    self.at = self.at.saturating_sub(1);
                    return self.wanted("`,` or `;`");
                }
            }
        }
    }

    /// One parameter of a function.
    pub(super) fn parameter(&mut self) -> Parsed<Variable> {
        if !self.eat_dot("param") {
            return self.wanted("`.param` (parameters in registers are not supported)");
        }
        let head = self.variable_head()?;
        self.declared(&head, Space::Param, false)
    }

    fn variable_head(&mut self) -> Parsed<Head> {
        let (mut align, mut vector, mut ty) = (None, 1, None);
        while let Token::Dot(word) = self.peek() {
            match word {
                "align" => {
                    self.at += 1;
                    align = Some(self.alignment()?);
                    continue;
                }
                "attribute" => {
                    self.at += 1;
                    self.skip_balanced('(', ')')?;
                    continue;
                }
                "ptr" => {
                    self.pointer()?;
                    continue;
                }
                "v2" => vector = 2,
                "v4" => vector = 4,
                "v8" => vector = 8,
                _ => ty = Some(self.type_of(word)?),
            }
            self.at += 1;
        }
        match ty {
            Some(ty) => Ok(Head { align, vector, ty }),
            None => self.wanted("a type"),
        }
    }

    fn alignment(&mut self) -> Parsed<u32> {
        let align: u32 = self.integer()?;
        match align.is_power_of_two() {
            true => Ok(align),
            false => Err(self.error(format!("an alignment of {align} bytes, which is not a power of two"))),
        }
    }

    /// `.ptr .global .align 4`: of what a parameter points to, which tells ptxas more than a run needs.
    fn pointer(&mut self) -> Parsed<()> {
        self.at += 1;
        if matches!(self.peek(), Token::Dot("global" | "const" | "local" | "shared")) {
            self.at += 1;
        }
        if self.eat_dot("align") {
            self.alignment()?;
        }
        Ok(())
    }

    /// The scalar type of this name.
    pub(super) fn type_of(&self, word: &str) -> Parsed<Type> {
        Type::named(word).ok_or_else(|| self.error(format!("unknown type .{word}")))
    }

    /// A name with its dimensions and initial value.
    fn declared(&mut self, head: &Head, space: Space, external: bool) -> Parsed<Variable> {
        let line = self.line();
        let name = self.name("the name of a variable")?;
        let mut dims = self.dims()?;
        let len = self.elements(&dims)?;
        let init = match self.eat('=') {
            true => {
                if head.vector > 1 {
                    dims.push(u64::from(head.vector));
                }
                self.initial(head.ty, &dims)?
            }
            false => Vec::new(),
        };
        let natural = head.ty.bytes() * head.vector;
        Ok(Variable {
            space,
            align: head.align.unwrap_or(natural),
            ty: head.ty,
            vector: head.vector,
            name,
            len: self.counted(len, &init, head.vector),
            init,
            external,
            line,
        })
    }

    /// The length, which an initial value gives where `[]` does not.
    fn counted(&self, len: Option<u64>, init: &[Initial], vector: u32) -> Option<u64> {
        match len {
            Some(0) if !init.is_empty() => Some((init.len() as u64).div_ceil(u64::from(vector))),
            len => len,
        }
    }

    /// `[2][3]`; 0 for `[]`.
    fn dims(&mut self) -> Parsed<Vec<u64>> {
        let mut dims = Vec::new();
        while self.eat('[') {
            if self.eat(']') {
                dims.push(0);
                continue;
            }
            dims.push(self.integer()?);
            self.mark(']')?;
        }
        Ok(dims)
    }

    fn elements(&self, dims: &[u64]) -> Parsed<Option<u64>> {
        if dims.is_empty() {
            return Ok(None);
        }
        let product = dims.iter().try_fold(1_u64, |product, dim| product.checked_mul(*dim));
        match product {
            Some(len) if len <= 1 << 40 => Ok(Some(len)),
            _ => Err(self.error("an array of more elements than any memory holds")),
        }
    }

    /// A value, or values in braces, flattened; what a nested brace leaves out is zero.
    fn initial(&mut self, ty: Type, dims: &[u64]) -> Parsed<Vec<Initial>> {
        let mut out = Vec::new();
        match self.is('{') {
            true => self.braces(ty, dims, &mut out)?,
            false => out.push(self.element(ty)?),
        }
        Ok(out)
    }

    fn braces(&mut self, ty: Type, dims: &[u64], out: &mut Vec<Initial>) -> Parsed<()> {
        self.mark('{')?;
        let inner = dims.get(1..).unwrap_or(&[]);
        let stride = self.elements(inner)?.unwrap_or(1).max(1);
        let start = out.len() as u64;
        let mut padding = 0;
        self.deeper(|parser| {
            parser.list('}', |parser| {
                out.extend(std::iter::repeat_n(Initial::Bits(0), std::mem::take(&mut padding)));
                if !parser.is('{') {
                    out.push(parser.element(ty)?);
                    return Ok(());
                }
                parser.braces(ty, inner, out)?;
                let missing = (stride - (out.len() as u64 - start) % stride) % stride;
                if out.len() as u64 + missing > MOST {
                    return Err(parser.error("an initial value of too many elements"));
                }
                padding = usize::try_from(missing).unwrap_or(0);
                Ok(())
            })
        })?;
        Ok(())
    }

    /// A number, the address of a name plus an offset, or `generic(name)` plus an offset.
    fn element(&mut self, ty: Type) -> Parsed<Initial> {
        let Token::Word(word) = self.peek() else {
            let bits = self.literal()?.bits(ty);
            return match self.is('(') {
                true => Err(self.error("a byte of an address, as in 0xFF(name), is not supported as an initial value")),
                false => Ok(Initial::Bits(bits)),
            };
        };
        self.at += 1;
        let generic = word == "generic" && self.eat('(');
        let name: Arc<str> = match generic {
            true => self.name("a variable or a function")?,
            false => self.intern(word),
        };
        if generic {
            self.mark(')')?;
        }
        let offset = self.offset()?;
        Ok(Initial::Address { name, offset, generic })
    }
}
