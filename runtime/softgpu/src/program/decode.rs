//! From a syntax tree to a program: functions are found, laid out and decoded one after another.

use super::allocate;
use super::layout::{self, Globals, Shared};
use super::names::{Chain, Names, Symbol};
use super::registers::{self, Shape};
use super::{Action, Function, Guard, Inst, Origin, Program, ProgramError, Special};
use crate::cost::kind::{self, Class, Facts, Kind};
use crate::ops::combine::Compute;
use crate::ops::{Args, File};
use crate::ptx::ast::{self, Instruction, Module, Operand, Space, Statement, Variable};
use std::collections::HashMap;
use std::sync::Arc;

/// Decodes a kernel of a module whose variables are at `globals`.
///
/// # Errors
/// The module has no such kernel, or something in it is not known: the error names the line.
pub fn decode(module: &Module, kernel: &str, globals: &Globals) -> Result<Program, ProgramError> {
    let entry = module
        .functions
        .iter()
        .find(|f| f.entry && &*f.name == kernel && f.body.is_some());
    let entry = entry.ok_or_else(|| ProgramError {
        line: 1,
        message: format!("the module has no kernel {kernel}"),
    })?;
    let functions = reachable(module, entry);
    let mut decoder = Decoder::new(module, globals, &functions);
    for function in &functions {
        decoder.function(function)?;
    }
    decoder.program(entry)
}

/// The kernel and the functions that it calls, directly or not, in the order in which they are met.
fn reachable<'m>(module: &'m Module, entry: &'m ast::Function) -> Vec<&'m ast::Function> {
    let mut found = vec![entry];
    let mut next = 0;
    while next < found.len() {
        let names = layout::names_in(&found[next..=next]);
        let called = module
            .functions
            .iter()
            .filter(|f| !f.entry && f.body.is_some() && names.contains(&f.name));
        let new: Vec<_> = called
            .filter(|f| !found.iter().any(|known| known.name == f.name))
            .collect();
        found.extend(new);
        next += 1;
    }
    found
}

/// What is known so far.
pub(super) struct Decoder<'m> {
    pub module: &'m Module,
    pub globals: &'m Globals,
    pub shared: Shared,
    /// Numbers of the functions.
    pub ids: HashMap<Arc<str>, u32>,
    pub code: Vec<Inst>,
    places: Vec<Origin>,
    /// The files of the operands of pure instructions.
    shapes: Vec<Shape>,
    kinds: Vec<Kind>,
    facts: Vec<Facts>,
    functions: Vec<Function>,
    /// The function that is being decoded.
    pub body: Body,
    pub asynchronous: bool,
    pub cluster: bool,
}

/// What is known of the function that is being decoded.
#[derive(Default)]
pub(super) struct Body {
    pub name: Arc<str>,
    pub entry: bool,
    pub names: Names,
    pub constants: HashMap<(File, u64), u32>,
    pub specials: HashMap<Special, u32>,
    pub locals: HashMap<(File, u64), u32>,
    pub scratch: HashMap<File, u32>,
    pub carry: Option<u32>,
    pub guard: Option<(u32, bool)>,
    pub origin: Origin,
    /// Branches whose targets are not known yet.
    pub fixups: Vec<Fixup>,
    local_bytes: u32,
    results: Vec<u32>,
    params: Vec<u32>,
}

/// A branch whose target is a name yet.
pub(super) struct Fixup {
    pub at: usize,
    pub chain: Chain,
    pub targets: Arc<[Arc<str>]>,
    pub line: u32,
}

pub(super) type Outcome<T> = Result<T, ProgramError>;

impl<'m> Decoder<'m> {
    fn new(module: &'m Module, globals: &'m Globals, functions: &[&'m ast::Function]) -> Decoder<'m> {
        let ids = functions
            .iter()
            .enumerate()
            .map(|(id, f)| (Arc::clone(&f.name), id as u32))
            .collect();
        Decoder {
            module,
            globals,
            shared: layout::shared(module, functions),
            ids,
            code: Vec::new(),
            places: Vec::new(),
            shapes: Vec::new(),
            kinds: Vec::new(),
            facts: Vec::new(),
            functions: Vec::new(),
            body: Body::default(),
            asynchronous: false,
            cluster: false,
        }
    }

    fn program(self, entry: &ast::Function) -> Outcome<Program> {
        let (params, _) = layout::params(&entry.params);
        // A recursive call takes the local memory of its function once more; a fixed depth is provided for.
        let local: u32 = self.functions.iter().map(|f| f.local.next_multiple_of(16)).sum();
        let deep = if self.functions.len() > 1 { 4096 } else { 0 };
        Ok(Program {
            kernel: Arc::clone(&entry.name),
            straight: straight(&self.code),
            code: self.code,
            places: self.places,
            facts: self.facts,
            functions: self.functions,
            params,
            shared: self.shared.bytes,
            local: if local == 0 { 0 } else { local + deep },
            directives: entry.directives.clone(),
            asynchronous: self.asynchronous,
            cluster: self.cluster,
        })
    }

    fn function(&mut self, function: &ast::Function) -> Outcome<()> {
        self.body = Body {
            name: Arc::clone(&function.name),
            entry: function.entry,
            ..Body::default()
        };
        self.body.names.open();
        self.body.origin.line = function.line;
        self.body.params = self.declare_params(&function.params);
        self.body.results = self.declare_params(&function.results);
        let start = self.code.len() as u32;
        self.statements(function.body.as_deref().unwrap_or_default())?;
        self.body.guard = None;
        self.emit(
            if function.entry { Action::Exit } else { Action::Return },
            Args::default(),
        );
        self.patch()?;
        let body = std::mem::take(&mut self.body);
        let mut function = body.finish(start);
        let from = start as usize;
        allocate::run(&mut self.code[from..], &self.shapes[from..], &mut function);
        self.kinds.resize(self.code.len(), Kind::new(Class::Control, 1));
        for at in from..self.code.len() {
            let facts = registers::facts(&mut self.code[at], &self.shapes[at], self.kinds[at]);
            self.facts.push(facts);
        }
        self.functions.push(function);
        Ok(())
    }

    /// Words of parameters; those of the kernel in one run, so that a word's number is its offset.
    fn declare_params(&mut self, variables: &[Variable]) -> Vec<u32> {
        let (params, bytes) = layout::params(variables);
        let names = &mut self.body.names;
        let first = names.fresh_many(File::Word, bytes.div_ceil(4));
        for param in params {
            let symbol = Symbol::Param {
                word: first + param.offset / 4,
                offset: param.offset,
                bytes: param.bytes,
            };
            names.declare(&param.name, symbol);
        }
        (first..first + bytes.div_ceil(4)).collect()
    }

    fn statements(&mut self, statements: &[Statement]) -> Outcome<()> {
        for statement in statements {
            match statement {
                Statement::Registers { ty, names, .. } => {
                    for (name, count) in names {
                        self.body.names.declare_registers(*ty, name, *count);
                    }
                }
                Statement::Variable(variable) => self.variable(variable)?,
                Statement::Label(name) => self.body.names.label(name, self.code.len() as u32),
                Statement::Block(inner) => {
                    self.body.names.open();
                    self.statements(inner)?;
                    self.body.names.close();
                }
                Statement::Location { file, line, .. } => self.body.origin.source = (*file, *line),
                Statement::Targets { name, targets } => {
                    self.body
                        .names
                        .declare(name, Symbol::Targets(targets.as_slice().into()));
                }
                Statement::Instruction(instruction) => self.instruction(instruction)?,
            }
        }
        Ok(())
    }

    fn variable(&mut self, variable: &Variable) -> Outcome<()> {
        let name = &variable.name;
        self.body.origin.line = variable.line;
        match variable.space {
            Space::Shared => {
                let key = (Arc::clone(&self.body.name), Arc::clone(name));
                let at = self.shared.bodies.get(&key).copied().unwrap_or(0);
                self.body.names.declare(name, Symbol::Shared(at));
            }
            Space::Local => {
                let at = self.body.local_bytes.next_multiple_of(variable.align.max(1));
                self.body.local_bytes = at.saturating_add(layout::bytes_of(variable).min(1 << 24) as u32);
                self.body.names.declare(name, Symbol::Local(at));
            }
            Space::Param => {
                let bytes = layout::bytes_of(variable).min(1 << 16) as u32;
                let word = self.body.names.fresh_many(File::Word, bytes.div_ceil(4));
                let symbol = Symbol::Param { word, offset: 0, bytes };
                self.body.names.declare(name, symbol);
            }
            _ => return self.fail(format!("{name}: a variable of this space inside a function")),
        }
        Ok(())
    }

    fn instruction(&mut self, instruction: &Instruction) -> Outcome<()> {
        self.body.origin.line = instruction.line;
        self.body.guard = None;
        if let Some((name, negated)) = &instruction.guard {
            let register = self.source(&Operand::Name(Arc::clone(name)), crate::ops::Slot::PREDICATE)?;
            self.body.guard = Some((register, *negated));
        }
        self.operation(instruction)
    }

    /// Finds the family of an instruction: the pure ones first, because they are most.
    fn operation(&mut self, instruction: &Instruction) -> Outcome<()> {
        let families = [
            Self::pure,
            Self::control,
            Self::call,
            Self::memory,
            Self::sync,
            Self::matrix,
            Self::asynchronous,
        ];
        let first = self.code.len();
        for family in families {
            if family(self, instruction)? {
                self.note_kind(instruction, first);
                return Ok(());
            }
        }
        self.fail(format!("the instruction {} is not known", instruction.opcode.join(".")))
    }

    /// What an instruction takes, whose code begins at `first`; several instructions here may be one of the hardware.
    fn note_kind(&mut self, instruction: &Instruction, first: usize) {
        self.kinds.resize(first, Kind::FREE);
        if self.code.len() > first {
            self.kinds.push(kind_of(&self.code[first].action, instruction));
        }
        self.kinds.resize(self.code.len(), Kind::FREE);
    }

    /// Appends a pure instruction under the current guard.
    pub fn emit_pure(&mut self, compute: &Compute, args: Args) {
        self.emit(Action::Compute(compute.run), args);
        if let Some(shape) = self.shapes.last_mut() {
            *shape = Shape::of(compute);
        }
    }

    /// Appends an instruction under the current guard.
    pub fn emit(&mut self, action: Action, args: Args) {
        self.shapes.push(Shape::default());
        let guard = self
            .body
            .guard
            .map_or(Guard::NONE, |(register, negated)| Guard::new(register, negated));
        self.code.push(Inst { action, args, guard });
        self.places.push(self.body.origin);
    }

    /// An error at the current line.
    pub fn fail<T>(&self, message: String) -> Outcome<T> {
        Err(ProgramError {
            line: self.body.origin.line,
            message,
        })
    }

    /// Puts the numbers of instructions where labels stood.
    fn patch(&mut self) -> Outcome<()> {
        for fixup in std::mem::take(&mut self.body.fixups) {
            let find = |name: &Arc<str>| {
                let found = self.body.names.find_label(&fixup.chain, name);
                found.ok_or_else(|| ProgramError {
                    line: fixup.line,
                    message: format!("there is no label {name}"),
                })
            };
            let targets: Vec<u32> = fixup.targets.iter().map(find).collect::<Outcome<_>>()?;
            match &mut self.code[fixup.at].action {
                Action::JumpTable(table) => *table = targets.into(),
                action => *action = Action::Jump(targets.first().copied().unwrap_or(0)),
            }
        }
        Ok(())
    }
}

/// The opcode tells of what computes; of the others the machine knows more.
fn kind_of(action: &Action, instruction: &Instruction) -> Kind {
    match action {
        Action::Compute(_) | Action::Mma(_) => kind::classify(&instruction.opcode),
        Action::Jump(_) | Action::JumpTable(_) | Action::Call(_) => Kind::new(Class::Control, 1),
        Action::Return | Action::Exit | Action::Trap(_) | Action::Sleep => Kind::new(Class::Control, 1),
        Action::Shuffle(_) | Action::Vote(_) | Action::Match { .. } => Kind::new(Class::Shuffle, 1),
        Action::Reduce(_) | Action::Elect | Action::Transpose => Kind::new(Class::Shuffle, 1),
        Action::Clock { .. } | Action::ActiveMask => Kind::new(Class::Arithmetic, 1),
        Action::Nothing => Kind::FREE,
        // Accesses and barriers are classed as they are recorded.
        _ => Kind::new(Class::Sync, 1),
    }
}

impl Body {
    /// The function as it is run. Tables come in the order of register numbers, so that nothing depends on hashing.
    fn finish(self, start: u32) -> Function {
        let mut constants: Vec<_> = self
            .constants
            .into_iter()
            .map(|((file, value), at)| (file, at, value))
            .collect();
        let mut locals: Vec<_> = self
            .locals
            .into_iter()
            .map(|((file, value), at)| (file, at, value))
            .collect();
        let mut specials: Vec<_> = self
            .specials
            .into_iter()
            .map(|(s, at)| (s, super::special::file(s), at))
            .collect();
        constants.sort_unstable();
        locals.sort_unstable();
        specials.sort_unstable_by_key(|(_, file, at)| (*file, *at));
        Function {
            name: self.name,
            start,
            registers: self.names.counts.map(|count| count as usize),
            constants,
            specials,
            locals,
            params: self.params,
            results: self.results,
            local: self.local_bytes,
        }
    }
}

/// How many instructions from each one on only compute, and are under no predicate.
fn straight(code: &[Inst]) -> Vec<u32> {
    let mut counts = vec![0; code.len()];
    let mut count = 0;
    for (inst, here) in code.iter().zip(&mut counts).rev() {
        let computes = matches!(inst.action, Action::Compute(_)) && inst.guard == Guard::NONE;
        count = if computes { count + 1 } else { 0 };
        *here = count;
    }
    counts
}
