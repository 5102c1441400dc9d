//! Tokens to the tree, by recursive descent: [`module`] reads directives and functions, [`variable`] declarations and initial
//! values, [`body`] statements, [`operand`] operands. What is unknown is an error with its line, never skipped.

mod body;
mod module;
mod operand;
mod variable;

use super::ParseError;
use super::ast::Module;
use super::lex::{Token, lex};
use super::literal::{Literal, literal};
use std::collections::HashMap;
use std::sync::Arc;

/// Scopes, vectors and initial values may be so deep within each other; compilers stay below ten.
const DEEPEST: u32 = 100;

/// Parses a module.
///
/// # Errors
/// The first line that is not PTX, or that this parser does not know.
pub fn parse(text: &str) -> Result<Module, ParseError> {
    let mut parser = Parser {
        tokens: lex(text)?,
        at: 0,
        depth: 0,
        names: HashMap::new(),
    };
    parser.module()
}

/// Where the parser stands.
struct Parser<'t> {
    tokens: Vec<(Token<'t>, u32)>,
    at: usize,
    depth: u32,
    /// Equal names share their memory.
    names: HashMap<&'t str, Arc<str>>,
}

type Parsed<T> = Result<T, ParseError>;

impl<'t> Parser<'t> {
    fn peek(&self) -> Token<'t> {
        self.ahead(0)
    }

    fn ahead(&self, count: usize) -> Token<'t> {
        self.tokens
            .get(self.at.saturating_add(count))
            .map_or(Token::End, |(token, _)| *token)
    }

    fn line(&self) -> u32 {
        let token = self.tokens.get(self.at).or(self.tokens.last());
        token.map_or(1, |(_, line)| *line)
    }

    /// Takes a token; the end stays.
    fn next(&mut self) -> Token<'t> {
        let token = self.peek();
        if token != Token::End {
            self.at += 1;
        }
        token
    }

    fn error(&self, message: impl Into<String>) -> ParseError {
        ParseError {
            line: self.line(),
            message: message.into(),
        }
    }

    /// What stands here is not what should.
    fn wanted<T>(&self, what: &str) -> Parsed<T> {
        let found = match self.peek() {
            Token::Word(text) | Token::Number(text) => format!("`{text}`"),
            Token::Dot(text) => format!("`.{text}`"),
            Token::Text(text) => format!("\"{text}\""),
            Token::Mark(mark) => format!("`{mark}`"),
            Token::End => "the end of the text".to_owned(),
        };
        Err(self.error(format!("expected {what}, found {found}")))
    }

    fn is(&self, mark: char) -> bool {
        self.peek() == Token::Mark(mark)
    }

    /// Takes the mark if it stands here.
    fn eat(&mut self, mark: char) -> bool {
        let found = self.is(mark);
        self.at += usize::from(found);
        found
    }

    /// Takes the mark, which must stand here.
    fn mark(&mut self, mark: char) -> Parsed<()> {
        match self.eat(mark) {
            true => Ok(()),
            false => self.wanted(&format!("`{mark}`")),
        }
    }

    /// Takes a directive or modifier if it stands here.
    fn eat_dot(&mut self, word: &str) -> bool {
        let found = self.peek() == Token::Dot(word);
        self.at += usize::from(found);
        found
    }

    fn intern(&mut self, text: &'t str) -> Arc<str> {
        Arc::clone(self.names.entry(text).or_insert_with(|| Arc::from(text)))
    }

    fn name(&mut self, what: &str) -> Parsed<Arc<str>> {
        let Token::Word(text) = self.peek() else {
            return self.wanted(what);
        };
        self.at += 1;
        Ok(self.intern(text))
    }

    fn string(&mut self) -> Parsed<&'t str> {
        let Token::Text(text) = self.peek() else {
            return self.wanted("a string");
        };
        self.at += 1;
        Ok(text)
    }

    /// A literal with its sign.
    fn literal(&mut self) -> Parsed<Literal> {
        if self.eat('-') {
            return self.magnitude().map(Literal::negative);
        }
        match (self.eat('~'), self.magnitude()?) {
            (true, Literal::Integer(value)) => Ok(Literal::Integer(!value)),
            (true, _) => Err(self.error("~ of a floating-point number")),
            (false, value) => Ok(value),
        }
    }

    fn magnitude(&mut self) -> Parsed<Literal> {
        let Token::Number(text) = self.peek() else {
            return self.wanted("a number");
        };
        let Some(value) = literal(text) else {
            return Err(self.error(format!("`{text}` is not a number")));
        };
        self.at += 1;
        Ok(value)
    }

    /// An integer that fits.
    fn integer<N: TryFrom<i128>>(&mut self) -> Parsed<N> {
        let line = self.line();
        let fits = match self.literal()? {
            Literal::Integer(value) => N::try_from(value).ok(),
            _ => None,
        };
        let message = "expected an integer within its range".to_owned();
        fits.ok_or(ParseError { line, message })
    }

    /// `+ n`, `- n` and sums of them, if there are any.
    fn offset(&mut self) -> Parsed<i64> {
        let mut sum = 0_i64;
        while self.is('+') || self.is('-') {
            // A minus is left to the literal.
            self.eat('+');
            let term: i64 = self.integer()?;
            sum = sum.wrapping_add(term);
        }
        Ok(sum)
    }

    /// One level further in.
    fn deeper<T>(&mut self, inner: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth >= DEEPEST {
            return Err(self.error(format!("nested more than {DEEPEST} deep")));
        }
        self.depth += 1;
        let parsed = inner(self);
        self.depth -= 1;
        parsed
    }

    /// `item, item, ...` up to the closing mark, which is taken.
    fn list<T>(&mut self, close: char, mut item: impl FnMut(&mut Self) -> Parsed<T>) -> Parsed<Vec<T>> {
        let mut items = Vec::new();
        if self.eat(close) {
            return Ok(items);
        }
        loop {
            items.push(item(self)?);
            if self.eat(close) {
                return Ok(items);
            }
            if !self.eat(',') {
                return self.wanted(&format!("`,` or `{close}`"));
            }
        }
    }

    /// Everything between a mark and its partner, which may hold more of both.
    fn skip_balanced(&mut self, open: char, close: char) -> Parsed<()> {
        let line = self.line();
        self.mark(open)?;
        let mut depth = 1_u32;
        while depth > 0 {
            match self.next() {
                Token::Mark(mark) if mark == open => depth += 1,
                Token::Mark(mark) if mark == close => depth -= 1,
                Token::End => {
                    let message = format!("`{open}` without `{close}`");
                    return Err(ParseError { line, message });
                }
                _ => {}
            }
        }
        Ok(())
    }
}
