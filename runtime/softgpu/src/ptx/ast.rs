//! The syntax tree of a PTX module, as NVRTC writes it. Nothing is resolved: opcodes are words split at their dots, operands
//! are names and literals. Every item keeps the line of the text it came from (1-based).

use std::sync::Arc;

/// A whole module.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Module {
    /// `.version`.
    pub version: (u32, u32),
    /// `.target`, such as `sm_90a`.
    pub target: String,
    /// `.file` numbers and paths.
    pub files: Vec<(u32, String)>,
    /// Variables at module level (`.global`, `.const`, `.shared`).
    pub variables: Vec<Variable>,
    /// Entries and functions; a declaration alone has no body.
    pub functions: Vec<Function>,
}

/// A state space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Space {
    /// Not named: found from the address.
    Generic,
    /// Device memory.
    Global,
    /// The block's own memory, or a peer's within the cluster.
    Shared,
    /// A thread's own memory.
    Local,
    /// Constant memory.
    Const,
    /// Parameters of an entry or of a call.
    Param,
}

/// A scalar type. Untyped bits are `B`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the names are those of PTX")]
pub enum Type {
    Pred,
    B8,
    B16,
    B32,
    B64,
    B128,
    U8,
    U16,
    U32,
    U64,
    S8,
    S16,
    S32,
    S64,
    F16,
    F16x2,
    BF16,
    BF16x2,
    TF32,
    F32,
    F64,
    E4M3x2,
    E5M2x2,
}

impl Type {
    /// The type of this name, without its dot: `u32`.
    pub fn named(word: &str) -> Option<Type> {
        Some(match word {
            "pred" => Type::Pred,
            "b8" => Type::B8,
            "b16" => Type::B16,
            "b32" => Type::B32,
            "b64" => Type::B64,
            "b128" => Type::B128,
            "u8" => Type::U8,
            "u16" => Type::U16,
            "u32" => Type::U32,
            "u64" => Type::U64,
            "s8" => Type::S8,
            "s16" => Type::S16,
            "s32" => Type::S32,
            "s64" => Type::S64,
            "f16" => Type::F16,
            "f16x2" => Type::F16x2,
            "bf16" => Type::BF16,
            "bf16x2" => Type::BF16x2,
            "tf32" => Type::TF32,
            "f32" => Type::F32,
            "f64" => Type::F64,
            "e4m3x2" => Type::E4M3x2,
            "e5m2x2" => Type::E5M2x2,
            _ => return None,
        })
    }

    /// Bytes of a value; a predicate counts as one.
    pub fn bytes(self) -> u32 {
        match self {
            Type::Pred | Type::B8 | Type::U8 | Type::S8 => 1,
            Type::B16 | Type::U16 | Type::S16 | Type::F16 | Type::BF16 | Type::E4M3x2 | Type::E5M2x2 => 2,
            Type::B32 | Type::U32 | Type::S32 | Type::F16x2 | Type::BF16x2 | Type::TF32 | Type::F32 => 4,
            Type::B64 | Type::U64 | Type::S64 | Type::F64 => 8,
            Type::B128 => 16,
        }
    }
}

/// A variable: a scalar, a vector or an array.
#[derive(Clone, Debug, PartialEq)]
pub struct Variable {
    /// Where it lives.
    pub space: Space,
    /// Its alignment in bytes (that of the type where none is written).
    pub align: u32,
    /// The type of an element.
    pub ty: Type,
    /// Elements of a `.v2` or `.v4` type, else 1.
    pub vector: u32,
    /// Its name.
    pub name: Arc<str>,
    /// Elements of an array (several dimensions are multiplied); none for a scalar, 0 for `[]`.
    pub len: Option<u64>,
    /// The initial value, element by element; elements beyond it are zero.
    pub init: Vec<Initial>,
    /// `.extern`.
    pub external: bool,
    /// Its line.
    pub line: u32,
}

/// One element of an initial value.
#[derive(Clone, Debug, PartialEq)]
pub enum Initial {
    /// Bits of an integer or floating-point literal, in the type of the variable.
    Bits(u64),
    /// The address of a variable or function plus a constant; `generic(name)` where `generic`.
    Address {
        /// The name.
        name: Arc<str>,
        /// What is added, in bytes.
        offset: i64,
        /// Whether the generic address is meant.
        generic: bool,
    },
}

/// An entry (kernel) or a function.
#[derive(Clone, Debug, PartialEq)]
pub struct Function {
    /// Whether it is a kernel.
    pub entry: bool,
    /// Its name.
    pub name: Arc<str>,
    /// Return parameters of a function.
    pub results: Vec<Variable>,
    /// Parameters.
    pub params: Vec<Variable>,
    /// Directives of its head, such as (`maxntid`, [128, 1, 1]) or (`reqnctapercluster`, [4, 1, 1]).
    pub directives: Vec<(String, Vec<u32>)>,
    /// The statements; none for a declaration.
    pub body: Option<Vec<Statement>>,
    /// Its line.
    pub line: u32,
}

/// A statement of a body.
#[derive(Clone, Debug, PartialEq)]
pub enum Statement {
    /// `.reg .f32 %f<12>;` declares `%f0` to `%f11`: (`%f`, Some(12)); a plain name has no count.
    Registers {
        /// The type.
        ty: Type,
        /// Names, or prefixes with a count.
        names: Vec<(Arc<str>, Option<u32>)>,
        /// The line.
        line: u32,
    },
    /// A variable (`.shared`, `.local`, `.param`).
    Variable(Variable),
    /// A label.
    Label(Arc<str>),
    /// `{ ... }`: a scope of its own for registers, variables and labels.
    Block(Vec<Statement>),
    /// `.loc file line column`: where the next instructions come from; `inlined` holds `function_name` and `inlined_at`.
    Location {
        /// The number of a `.file`.
        file: u32,
        /// The line there.
        line: u32,
        /// The column there.
        column: u32,
    },
    /// `name: .branchtargets a, b, c;` or `name: .calltargets`.
    Targets {
        /// The label.
        name: Arc<str>,
        /// The targets.
        targets: Vec<Arc<str>>,
    },
    /// An instruction.
    Instruction(Instruction),
}

/// An instruction.
#[derive(Clone, Debug, PartialEq)]
pub struct Instruction {
    /// `@%p` or `@!%p`: the predicate's name and whether it is negated.
    pub guard: Option<(Arc<str>, bool)>,
    /// The opcode, split at dots without them: `ld.relaxed.gpu.global.v2.u32` is six words; `::` stays inside a word
    /// (`shared::cta`).
    pub opcode: Vec<Arc<str>>,
    /// The operands in the order of the text.
    pub operands: Vec<Operand>,
    /// Its line.
    pub line: u32,
}

/// An operand.
#[derive(Clone, Debug, PartialEq)]
pub enum Operand {
    /// A register, special register (`%tid.x` whole), label, variable or function.
    Name(Arc<str>),
    /// `!%p`.
    Not(Arc<str>),
    /// An integer literal (two's complement).
    Integer(i128),
    /// `0f3F800000`: bits of an f32.
    F32(u32),
    /// `0d3FF0000000000000` or a decimal literal: bits of an f64.
    F64(u64),
    /// `{a, b}`.
    Vector(Vec<Operand>),
    /// `[base+offset]`; a base that is a vector or several operands (tensor maps) does not occur here.
    Address {
        /// A register or a variable; none for an absolute address.
        base: Option<Arc<str>>,
        /// Bytes added.
        offset: i64,
    },
    /// `name+offset` outside brackets, as in `mov.u64 %rd1, table+8`.
    Offset {
        /// The variable.
        name: Arc<str>,
        /// Bytes added.
        offset: i64,
    },
    /// `%p|%q` (setp, shfl): both destinations.
    Pair(Box<Operand>, Box<Operand>),
    /// `(a, b)`: results or arguments of a call.
    List(Vec<Operand>),
    /// `_`: a destination that is thrown away.
    Sink,
}
