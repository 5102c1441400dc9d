//! Statements: declarations, labels, scopes, places in the source, instructions.

use super::{Parsed, Parser};
use crate::ptx::ast::{Instruction, Operand, Space, Statement};
use crate::ptx::lex::Token;
use std::sync::Arc;

impl<'t> Parser<'t> {
    /// `{ statements }`.
    pub(super) fn scope(&mut self) -> Parsed<Vec<Statement>> {
        self.mark('{')?;
        self.deeper(|parser| {
            let mut statements = Vec::new();
            while !parser.eat('}') {
                parser.statement(&mut statements)?;
            }
            Ok(statements)
        })
    }

    fn statement(&mut self, out: &mut Vec<Statement>) -> Parsed<()> {
        match (self.peek(), self.ahead(1)) {
            (Token::Mark(';'), _) => self.at += 1,
            (Token::Mark('{'), _) => out.push(Statement::Block(self.scope()?)),
            (Token::Dot(directive), _) => self.local_directive(directive, out)?,
            (Token::Word(_), Token::Mark(':')) => self.label(out)?,
            (Token::Word(_) | Token::Mark('@'), _) => out.push(Statement::Instruction(self.instruction()?)),
            _ => return self.wanted("a statement"),
        }
        Ok(())
    }

    fn local_directive(&mut self, directive: &'t str, out: &mut Vec<Statement>) -> Parsed<()> {
        let space = match directive {
            "reg" => {
                out.push(self.registers()?);
                return Ok(());
            }
            "loc" => {
                out.push(self.location()?);
                return Ok(());
            }
            "pragma" => return self.pragma(),
            "shared" => Space::Shared,
            "local" => Space::Local,
            "param" => Space::Param,
            "global" => Space::Global,
            "const" => Space::Const,
            _ => return Err(self.error(format!("unknown directive .{directive} in a function"))),
        };
        let mut variables = Vec::new();
        self.variables(space, false, &mut variables)?;
        out.extend(variables.into_iter().map(Statement::Variable));
        Ok(())
    }

    /// `.reg .f32 %f<12>, x;`.
    fn registers(&mut self) -> Parsed<Statement> {
        let line = self.line();
        self.at += 1;
        let ty = match self.next() {
            Token::Dot("v2" | "v4") => return Err(self.error("vector registers are not supported")),
            Token::Dot(word) => self.type_of(word)?,
            _ => {
                self.at = self.at.saturating_sub(1);
                return self.wanted("a type");
            }
        };
        let names = self.list(';', Self::register)?;
        Ok(Statement::Registers { ty, names, line })
    }

    fn register(&mut self) -> Parsed<(Arc<str>, Option<u32>)> {
        let name = self.name("a register")?;
        if !self.eat('<') {
            return Ok((name, None));
        }
        let count = self.integer()?;
        self.mark('>')?;
        Ok((name, Some(count)))
    }

    /// `.loc 1 20 3`, then perhaps `, function_name label+4, inlined_at 1 30 5`. No mark ends it.
    fn location(&mut self) -> Parsed<Statement> {
        self.at += 1;
        let (file, line, column) = (self.integer()?, self.integer()?, self.integer()?);
        while self.eat(',') {
            match self.next() {
                Token::Word("function_name") => {
                    self.name("the name of a function")?;
                    self.offset()?;
                }
                Token::Word("inlined_at") => {
                    for _ in 0..3 {
                        self.integer::<u32>()?;
                    }
                }
                _ => {
                    self.at = self.at.saturating_sub(1);
                    return self.wanted("`function_name` or `inlined_at`");
                }
            }
        }
        Ok(Statement::Location { file, line, column })
    }

    /// `name:`, or a list of targets or a prototype of that name.
    fn label(&mut self, out: &mut Vec<Statement>) -> Parsed<()> {
        let name = self.name("a label")?;
        self.mark(':')?;
        match self.peek() {
            Token::Dot("branchtargets" | "calltargets") => {
                self.at += 1;
                let targets = self.list(';', |parser| parser.name("a target"))?;
                out.push(Statement::Targets { name, targets });
            }
            Token::Dot("callprototype") => self.prototype()?,
            _ => out.push(Statement::Label(name)),
        }
        Ok(())
    }

    /// `.callprototype (.param .b32 _) _ (.param .b32 _);`: checked and dropped; the called function's own head rules.
    fn prototype(&mut self) -> Parsed<()> {
        self.at += 1;
        if self.is('(') {
            self.parameters()?;
        }
        self.name("`_`")?;
        if self.is('(') {
            self.parameters()?;
        }
        while let Token::Dot("noreturn" | "abi_preserve" | "abi_preserve_control") = self.peek() {
            self.at += 1;
            if let Token::Number(_) = self.peek() {
                self.integer::<u32>()?;
            }
        }
        self.mark(';')
    }

    fn instruction(&mut self) -> Parsed<Instruction> {
        let guard = match self.eat('@') {
            true => {
                let negated = self.eat('!');
                Some((self.name("a predicate")?, negated))
            }
            false => None,
        };
        let line = self.line();
        let Token::Word(opcode) = self.peek() else {
            return self.wanted("an instruction");
        };
        self.at += 1;
        let opcode = opcode.split('.').map(|word| self.intern(word)).collect();
        let operands: Vec<Operand> = self.list(';', Self::operand)?;
        Ok(Instruction {
            guard,
            opcode,
            operands,
            line,
        })
    }
}
