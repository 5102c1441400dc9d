//! Where variables lie: those of a module in device memory, those of a kernel in shared memory and among its parameters.

use super::ProgramError;
use crate::memory::Memory;
use crate::ptx::ast::{Function, Initial, Module, Space, Statement, Variable};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// A parameter of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Param {
    /// Its name.
    pub name: Arc<str>,
    /// Where it begins.
    pub offset: u32,
    /// Its bytes.
    pub bytes: u32,
}

/// Bytes of a variable.
pub fn bytes_of(variable: &Variable) -> u64 {
    let element = u64::from(variable.ty.bytes()) * u64::from(variable.vector.max(1));
    element.saturating_mul(variable.len.unwrap_or(1))
}

/// Parameters one after another, each aligned; and the bytes of all.
pub fn params(variables: &[Variable]) -> (Vec<Param>, u32) {
    let mut at = 0u32;
    let place = |variable: &Variable| {
        let offset = at.next_multiple_of(variable.align.max(1));
        let bytes = bytes_of(variable).min(1 << 20) as u32;
        at = offset + bytes;
        Param {
            name: Arc::clone(&variable.name),
            offset,
            bytes,
        }
    };
    let params = variables.iter().map(place).collect();
    (params, at)
}

/// Addresses of the variables of a module.
pub type Globals = HashMap<Arc<str>, u64>;

/// Puts the `.global` and `.const` variables of a module into memory. Those without an initial value are zero, as CUDA
/// promises.
///
/// # Errors
/// An initial value that names something unknown.
pub fn define_globals(module: &Module, memory: &mut Memory) -> Result<Globals, ProgramError> {
    let mut globals = Globals::new();
    let placed = || {
        module
            .variables
            .iter()
            .filter(|v| matches!(v.space, Space::Global | Space::Const))
    };
    for variable in placed() {
        let size = usize::try_from(bytes_of(variable)).unwrap_or(0);
        let address = memory.define(&variable.name, variable.space, vec![0; size], true);
        globals.insert(Arc::clone(&variable.name), address);
    }
    // Initial values may name variables that come later.
    for variable in placed().filter(|v| !v.init.is_empty()) {
        let bytes = initial_bytes(variable, &globals)?;
        let written = memory.write(globals[&variable.name], &bytes);
        written.map_err(|wrong| unplaced(variable, wrong.message))?;
    }
    Ok(globals)
}

fn unplaced(variable: &Variable, message: String) -> ProgramError {
    ProgramError {
        line: variable.line,
        message,
    }
}

fn initial_bytes(variable: &Variable, globals: &Globals) -> Result<Vec<u8>, ProgramError> {
    let width = variable.ty.bytes() as usize;
    let mut bytes = Vec::new();
    for initial in &variable.init {
        let value = match initial {
            Initial::Bits(bits) => *bits,
            // Functions have no addresses here: a table of them is as good as zero until something calls through it.
            Initial::Address { name, offset, .. } => globals.get(name).map_or(0, |at| at.wrapping_add_signed(*offset)),
        };
        bytes.extend(
            value
                .to_le_bytes()
                .iter()
                .copied()
                .chain(std::iter::repeat(0))
                .take(width),
        );
    }
    let size = usize::try_from(bytes_of(variable)).unwrap_or(0);
    if bytes.len() > size {
        return Err(unplaced(
            variable,
            format!("{} has more initial values than elements", variable.name),
        ));
    }
    Ok(bytes)
}

/// The shared memory of a kernel: the address of each variable, static ones first.
#[derive(Clone, Debug, Default)]
pub struct Shared {
    /// Variables of the module, by name.
    pub module: HashMap<Arc<str>, u32>,
    /// Variables in bodies, by function and name.
    pub bodies: HashMap<(Arc<str>, Arc<str>), u32>,
    /// Bytes of the static ones.
    pub bytes: u32,
}

/// Lays out the shared variables that the given functions name or declare.
pub fn shared(module: &Module, functions: &[&Function]) -> Shared {
    let mut shared = Shared::default();
    let named = names_in(functions);
    let used = module
        .variables
        .iter()
        .filter(|v| v.space == Space::Shared && named.contains(&v.name));
    let (dynamic, fixed): (Vec<&Variable>, Vec<&Variable>) = used.partition(|v| v.external);
    for variable in fixed {
        let at = shared.place(variable);
        shared.module.insert(Arc::clone(&variable.name), at);
    }
    for function in functions {
        let mut bodies = Vec::new();
        each_variable(function.body.as_deref().unwrap_or_default(), &mut |variable| {
            bodies.push(variable.clone())
        });
        for variable in bodies.iter().filter(|v| v.space == Space::Shared) {
            let at = shared.place(variable);
            shared
                .bodies
                .insert((Arc::clone(&function.name), Arc::clone(&variable.name)), at);
        }
    }
    // All dynamic arrays are one: they begin where the static ones end.
    let at = shared
        .bytes
        .next_multiple_of(dynamic.iter().map(|v| v.align).max().unwrap_or(1).max(16));
    if !dynamic.is_empty() {
        shared.bytes = at;
    }
    dynamic.iter().for_each(|v| {
        shared.module.insert(Arc::clone(&v.name), at);
    });
    shared
}

impl Shared {
    fn place(&mut self, variable: &Variable) -> u32 {
        let at = self.bytes.next_multiple_of(variable.align.max(1));
        self.bytes = at.saturating_add(bytes_of(variable).min(1 << 30) as u32);
        at
    }
}

/// Calls a function with every variable of a body, nested scopes included.
pub fn each_variable(body: &[Statement], f: &mut impl FnMut(&Variable)) {
    for statement in body {
        match statement {
            Statement::Variable(variable) => f(variable),
            Statement::Block(inner) => each_variable(inner, f),
            _ => {}
        }
    }
}

/// Every name that instructions of these functions mention.
pub fn names_in(functions: &[&Function]) -> HashSet<Arc<str>> {
    let mut names = HashSet::new();
    for function in functions {
        each_operand(function.body.as_deref().unwrap_or_default(), &mut |operand| {
            collect(operand, &mut names)
        });
    }
    names
}

fn each_operand(body: &[Statement], f: &mut impl FnMut(&crate::ptx::ast::Operand)) {
    for statement in body {
        match statement {
            Statement::Block(inner) => each_operand(inner, f),
            Statement::Instruction(instruction) => instruction.operands.iter().for_each(&mut *f),
            _ => {}
        }
    }
}

fn collect(operand: &crate::ptx::ast::Operand, names: &mut HashSet<Arc<str>>) {
    use crate::ptx::ast::Operand;
    match operand {
        Operand::Name(name) | Operand::Offset { name, .. } => {
            names.insert(Arc::clone(name));
        }
        Operand::Address { base: Some(name), .. } => {
            names.insert(Arc::clone(name));
        }
        Operand::Vector(parts) | Operand::List(parts) => parts.iter().for_each(|part| collect(part, names)),
        _ => {}
    }
}
