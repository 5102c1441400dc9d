//! The level of the module: directives, variables, functions.

use super::{Parsed, Parser};
use crate::ptx::ast::{Function, Module, Space, Variable};
use crate::ptx::lex::Token;
use std::sync::Arc;

/// Directives of a function's head that take no numbers.
const FLAGS: [&str; 4] = ["noreturn", "explicitcluster", "blocksareclusters", "unified"];

/// Directives of a function's head with one to three numbers.
const NUMBERED: [&str; 8] = [
    "maxntid",
    "reqntid",
    "minnctapersm",
    "maxnctapersm",
    "maxnreg",
    "maxclusterrank",
    "reqnctapercluster",
    "abi_preserve",
];

/// `.alias name, aliasee;` and its line.
struct Alias {
    name: Arc<str>,
    of: Arc<str>,
    line: u32,
}

impl<'t> Parser<'t> {
    pub(super) fn module(&mut self) -> Parsed<Module> {
        let mut module = Module::default();
        let mut aliases = Vec::new();
        loop {
            match self.peek() {
                Token::End => break,
                Token::Dot("alias") => aliases.push(self.alias()?),
                Token::Dot(directive) => self.directive(directive, &mut module)?,
                Token::Mark(';') => self.at += 1,
                _ => return self.wanted("a directive"),
            }
        }
        if module.version == (0, 0) {
            return Err(self.error("there is no .version: this is not PTX"));
        }
        for alias in aliases {
            self.resolve(&alias, &mut module)?;
        }
        Ok(module)
    }

    fn directive(&mut self, directive: &'t str, module: &mut Module) -> Parsed<()> {
        match directive {
            "version" => module.version = self.version()?,
            "target" => module.target = self.target()?,
            "address_size" => self.address_size()?,
            "file" => module.files.push(self.file()?),
            "pragma" => self.pragma()?,
            "section" => self.section()?,
            _ => self.linked(module)?,
        }
        Ok(())
    }

    /// `.version 8.7`: the lexer takes the two numbers for one with a point.
    fn version(&mut self) -> Parsed<(u32, u32)> {
        self.at += 1;
        let Token::Number(text) = self.peek() else {
            return self.wanted("a version");
        };
        let parts = text
            .split_once('.')
            .and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)));
        let Some(version @ (1.., _)) = parts else {
            return Err(self.error(format!("`{text}` is not a version of PTX")));
        };
        self.at += 1;
        Ok(version)
    }

    /// `.target sm_90a, debug`: the architecture.
    fn target(&mut self) -> Parsed<String> {
        self.at += 1;
        let target = self.name("an architecture such as sm_90")?;
        while self.eat(',') {
            self.name("an option of the target")?;
        }
        Ok(target.to_string())
    }

    fn address_size(&mut self) -> Parsed<()> {
        self.at += 1;
        match self.peek() {
            Token::Number("64") => self.at += 1,
            _ => return self.wanted("64, the only size of addresses that is supported"),
        }
        Ok(())
    }

    /// `.file 1 "path"`, with or without a time and a size.
    fn file(&mut self) -> Parsed<(u32, String)> {
        self.at += 1;
        let file = (self.integer()?, self.string()?.to_owned());
        while self.eat(',') {
            self.integer::<i128>()?;
        }
        Ok(file)
    }

    /// `.pragma "nounroll";`: advice to ptxas, of no effect here.
    pub(super) fn pragma(&mut self) -> Parsed<()> {
        self.at += 1;
        self.string()?;
        while self.eat(',') {
            self.string()?;
        }
        self.mark(';')
    }

    /// `.section .debug_info { ... }`: tables for debuggers, not read.
    fn section(&mut self) -> Parsed<()> {
        self.at += 1;
        let Token::Dot(_) = self.peek() else {
            return self.wanted("the name of a section");
        };
        self.at += 1;
        self.skip_balanced('{', '}')
    }

    fn alias(&mut self) -> Parsed<Alias> {
        let line = self.line();
        self.at += 1;
        let name = self.name("a name")?;
        self.mark(',')?;
        let of = self.name("a function")?;
        self.mark(';')?;
        Ok(Alias { name, of, line })
    }

    /// An alias becomes a function of its own with the same body; its declaration goes.
    fn resolve(&self, alias: &Alias, module: &mut Module) -> Parsed<()> {
        let original = module.functions.iter().find(|f| f.name == alias.of && f.body.is_some());
        let Some(original) = original else {
            return Err(super::ParseError {
                line: alias.line,
                message: format!("{} is an alias of {}, which has no body", alias.name, alias.of),
            });
        };
        let copy = Function {
            name: Arc::clone(&alias.name),
            ..original.clone()
        };
        module.functions.retain(|f| f.name != alias.name);
        module.functions.push(copy);
        Ok(())
    }

    /// A variable or a function, after how it is linked. One module is all there is, so that only `.extern` matters.
    fn linked(&mut self, module: &mut Module) -> Parsed<()> {
        let mut external = false;
        while let Token::Dot(linkage @ ("extern" | "visible" | "weak" | "common")) = self.peek() {
            external |= linkage == "extern";
            self.at += 1;
        }
        match self.peek() {
            Token::Dot("entry") => module.functions.push(self.function(true)?),
            Token::Dot("func") => module.functions.push(self.function(false)?),
            Token::Dot("global") => self.variables(Space::Global, external, &mut module.variables)?,
            Token::Dot("const") => self.variables(Space::Const, external, &mut module.variables)?,
            Token::Dot("shared") => self.variables(Space::Shared, external, &mut module.variables)?,
            Token::Dot(space @ ("tex" | "surf" | "local" | "param" | "reg")) => {
                return Err(self.error(format!("a .{space} variable of the module is not supported")));
            }
            _ => return self.wanted("a variable or a function"),
        }
        Ok(())
    }

    fn function(&mut self, entry: bool) -> Parsed<Function> {
        self.at += 1;
        while self.eat_dot("attribute") {
            self.skip_balanced('(', ')')?;
        }
        let results = match !entry && self.is('(') {
            true => self.parameters()?,
            false => Vec::new(),
        };
        let line = self.line();
        let name = self.name("the name of a function")?;
        let params = match self.is('(') {
            true => self.parameters()?,
            false => Vec::new(),
        };
        let directives = self.head()?;
        let body = match self.eat(';') {
            true => None,
            false => Some(self.scope()?),
        };
        Ok(Function {
            entry,
            name,
            results,
            params,
            directives,
            body,
            line,
        })
    }

    /// `(.param .b32 a, ...)`.
    pub(super) fn parameters(&mut self) -> Parsed<Vec<Variable>> {
        self.mark('(')?;
        self.list(')', Self::parameter)
    }

    /// The directives between a function's parameters and its body.
    fn head(&mut self) -> Parsed<Vec<(String, Vec<u32>)>> {
        let mut directives = Vec::new();
        while let Token::Dot(directive) = self.peek() {
            match directive {
                "pragma" => self.pragma()?,
                _ if FLAGS.contains(&directive) => {
                    self.at += 1;
                    directives.push((directive.to_owned(), Vec::new()));
                }
                _ if NUMBERED.contains(&directive) => {
                    self.at += 1;
                    directives.push((directive.to_owned(), self.numbers()?));
                }
                _ => return Err(self.error(format!("unknown directive .{directive} of a function"))),
            }
        }
        Ok(directives)
    }

    fn numbers(&mut self) -> Parsed<Vec<u32>> {
        let mut numbers = vec![self.integer()?];
        while self.eat(',') {
            numbers.push(self.integer()?);
        }
        Ok(numbers)
    }
}
