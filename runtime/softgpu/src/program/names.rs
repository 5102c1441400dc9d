//! Names of a function: registers, variables and labels, in nested scopes.

use crate::ops::File;
use crate::ptx::ast::Type;
use std::collections::HashMap;
use std::sync::Arc;

/// A register of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Register {
    /// Its file.
    pub file: File,
    /// Its number; a 128-bit register is this one and the next.
    pub number: u32,
    /// Its bits.
    pub bits: u32,
}

/// What a name stands for.
#[derive(Clone, Debug, PartialEq)]
pub enum Symbol {
    /// A register.
    Register(Register),
    /// Registers named with a number after a prefix: the first, and how many.
    Registers(Register, u32),
    /// A parameter: its words, its offset among the parameters, and its bytes.
    Param {
        /// The first word.
        word: u32,
        /// Where it begins.
        offset: u32,
        /// How long it is.
        bytes: u32,
    },
    /// Shared memory at an address.
    Shared(u32),
    /// Local memory at an offset of the frame.
    Local(u32),
    /// Branch targets.
    Targets(Arc<[Arc<str>]>),
}

/// The names of a function, innermost scope last.
#[derive(Debug, Default)]
pub struct Names {
    scopes: Vec<Scope>,
    next_scope: u32,
    labels: HashMap<(u32, Arc<str>), u32>,
    /// Registers of each file so far.
    pub counts: [u32; 3],
}

#[derive(Debug, Default)]
struct Scope {
    id: u32,
    symbols: HashMap<Arc<str>, Symbol>,
}

/// The scopes that see a label, outermost first.
pub type Chain = Vec<u32>;

impl Names {
    /// Opens a scope.
    pub fn open(&mut self) {
        self.scopes.push(Scope {
            id: self.next_scope,
            symbols: HashMap::new(),
        });
        self.next_scope += 1;
    }

    /// Closes the innermost scope.
    pub fn close(&mut self) {
        self.scopes.pop();
    }

    /// Declares a name in the innermost scope.
    pub fn declare(&mut self, name: &Arc<str>, symbol: Symbol) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.symbols.insert(Arc::clone(name), symbol);
        }
    }

    /// Declares registers: a name, or a prefix with a count.
    pub fn declare_registers(&mut self, ty: Type, name: &Arc<str>, count: Option<u32>) {
        let (file, rows) = file_of(ty);
        let bits = if ty == Type::Pred { 1 } else { 8 * ty.bytes() };
        let number = self.fresh_many(file, rows * count.unwrap_or(1));
        let register = Register { file, number, bits };
        let symbol = count.map_or(Symbol::Register(register), |count| Symbol::Registers(register, count));
        self.declare(name, symbol);
    }

    /// A register that no name stands for.
    pub fn fresh(&mut self, file: File) -> u32 {
        self.fresh_many(file, 1)
    }

    /// So many neighbouring registers.
    pub fn fresh_many(&mut self, file: File, count: u32) -> u32 {
        let next = &mut self.counts[file as usize];
        let first = *next;
        *next = next.saturating_add(count);
        first
    }

    /// What a name stands for, from the innermost scope outwards.
    pub fn find(&self, name: &str) -> Option<Symbol> {
        let numbered = split_number(name);
        self.scopes.iter().rev().find_map(|scope| {
            if let Some(symbol) = scope.symbols.get(name) {
                return Some(symbol.clone());
            }
            let (prefix, number) = numbered?;
            match scope.symbols.get(prefix)? {
                Symbol::Registers(first, count) if number < *count => {
                    let rows = if first.bits == 128 { 2 } else { 1 };
                    Some(Symbol::Register(Register {
                        number: first.number + rows * number,
                        ..*first
                    }))
                }
                _ => None,
            }
        })
    }

    /// The scopes of here.
    pub fn chain(&self) -> Chain {
        self.scopes.iter().map(|scope| scope.id).collect()
    }

    /// A label at an instruction.
    pub fn label(&mut self, name: &Arc<str>, at: u32) {
        let scope = self.scopes.last().map_or(0, |scope| scope.id);
        self.labels.insert((scope, Arc::clone(name)), at);
    }

    /// Where a label stands that these scopes see.
    pub fn find_label(&self, chain: &Chain, name: &Arc<str>) -> Option<u32> {
        chain
            .iter()
            .rev()
            .find_map(|scope| self.labels.get(&(*scope, Arc::clone(name))).copied())
    }
}

/// `%f12` as `%f` and 12. A number with leading zeros is part of the name.
fn split_number(name: &str) -> Option<(&str, u32)> {
    let digits = name.bytes().rev().take_while(u8::is_ascii_digit).count();
    let (prefix, number) = name.split_at(name.len() - digits);
    let plain = !number.starts_with('0') || number.len() == 1;
    number.parse().ok().filter(|_| plain).map(|number| (prefix, number))
}

/// The file of a type, and how many rows a register of it takes.
pub fn file_of(ty: Type) -> (File, u32) {
    match ty {
        Type::Pred => (File::Predicate, 1),
        Type::B128 => (File::Double, 2),
        _ if ty.bytes() == 8 => (File::Double, 1),
        _ => (File::Word, 1),
    }
}
