//! The syntax tree: what the text says, nothing about what it means.
//!
//! Expressions live in an arena and are named by [`ExprId`]; `+ -`, `* /` and `@` chains are flat lists, so that neither
//! a pass nor a destructor recurses once a term. Every node has a span; comments are kept beside the tree for `fmt`.

use crate::diagnostics::Span;
use std::sync::Arc;

/// An interned piece of the user's text.
pub type Name = Arc<str>;

/// A name and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ident {
    /// The name.
    pub name: Name,
    /// Where.
    pub span: Span,
}

/// A whole file.
#[derive(Clone, Debug, Default)]
pub struct File {
    /// Its top-level items in order.
    pub items: Vec<Top>,
    /// The arena of all expressions in the file.
    pub exprs: Vec<Expr>,
    /// Every `#` comment, in order, without the newline.
    pub comments: Vec<Span>,
}

/// An expression's place in [`File::exprs`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExprId(pub u32);

impl std::ops::Index<ExprId> for File {
    type Output = Expr;
    fn index(&self, id: ExprId) -> &Expr {
        &self.exprs[id.0 as usize]
    }
}

/// A top-level item.
#[derive(Clone, Debug)]
pub enum Top {
    /// `use "lstm.rnn"` or `use std.lstm`.
    Use(Use),
    /// A function definition.
    Fn(FnDef),
    /// A cell definition.
    Cell(CellDef),
}

/// What a `use` names.
#[derive(Clone, Debug)]
pub struct Use {
    /// The file (text without quotes), or the path's text.
    pub target: Ident,
    /// Whether it was written as a string.
    pub is_file: bool,
    /// The whole item.
    pub span: Span,
}

/// `fn name(params) = expr`, or with a block.
#[derive(Clone, Debug)]
pub struct FnDef {
    /// Its name.
    pub name: Ident,
    /// Its parameters.
    pub params: Vec<FnParam>,
    /// The equations of the block form; empty for the short one.
    pub equations: Vec<Equation>,
    /// What it returns; one or more.
    pub returns: Vec<ExprId>,
    /// Whether it was written as a block.
    pub block: bool,
    /// The whole item.
    pub span: Span,
}

/// A parameter of a `fn`, with or without a shape.
#[derive(Clone, Debug)]
pub struct FnParam {
    /// Its name.
    pub name: Ident,
    /// Its shape, if written.
    pub shape: Option<Shape>,
}

/// `cell name(dims) { items }`.
#[derive(Clone, Debug)]
pub struct CellDef {
    /// Its name.
    pub name: Ident,
    /// Its dimensions.
    pub dims: Vec<Ident>,
    /// Its items in order.
    pub items: Vec<Item>,
    /// The whole item.
    pub span: Span,
}

/// A line of a cell.
#[derive(Clone, Debug)]
pub enum Item {
    /// `dim H = N*E, ...`.
    Dim(Vec<(Ident, Size)>, Span),
    /// `input x: [I], token: index(V)`.
    Input(Vec<Typed>, Span),
    /// `static input ctx: [C]`.
    StaticInput(Vec<Typed>, Span),
    /// `param W: [4*H, I], ...`.
    Param(Vec<Group>, Span),
    /// `state h, c: [H] = h0`.
    State(Vec<Group>, Span),
    /// `output h, y: [O]`.
    Output(Vec<Group>, Span),
    /// `a, b: [H] = expr`.
    Equation(Equation),
}

/// Names with one input type.
#[derive(Clone, Debug)]
pub struct Typed {
    /// The names.
    pub names: Vec<Ident>,
    /// Their type.
    pub ty: InputType,
}

/// The type of an input.
#[derive(Clone, Debug)]
pub enum InputType {
    /// Real numbers with axes.
    Real(Shape),
    /// `index(V)`: whole numbers below V.
    Index(Size, Span),
}

/// Names that share a shape and, for states, an initial value.
#[derive(Clone, Debug)]
pub struct Group {
    /// The names.
    pub names: Vec<Ident>,
    /// Their shape; only outputs may go without.
    pub shape: Option<Shape>,
    /// The initial value of states.
    pub init: Option<ExprId>,
}

/// `names [: shape] = expr`.
#[derive(Clone, Debug)]
pub struct Equation {
    /// One name, or several for a destructuring.
    pub names: Vec<Ident>,
    /// The annotated shape.
    pub shape: Option<Shape>,
    /// The right-hand side.
    pub value: ExprId,
    /// The whole line.
    pub span: Span,
}

/// `[4*H, I]`.
#[derive(Clone, Debug)]
pub struct Shape {
    /// Its axes.
    pub axes: Vec<Size>,
    /// With the brackets.
    pub span: Span,
}

/// A size expression.
#[derive(Clone, Debug)]
pub struct Size {
    /// What it is.
    pub kind: SizeKind,
    /// Where.
    pub span: Span,
}

/// The forms of a size.
#[derive(Clone, Debug)]
pub enum SizeKind {
    /// A literal.
    Int(i64),
    /// A dimension (or a size parameter of a `fn`).
    Dim(Name),
    /// Terms, each added or (true) subtracted.
    Sum(Vec<(bool, Size)>),
    /// Factors.
    Product(Vec<Size>),
}

/// An expression.
#[derive(Clone, Debug)]
pub struct Expr {
    /// What it is.
    pub kind: ExprKind,
    /// Where.
    pub span: Span,
}

/// The forms of an expression.
#[derive(Clone, Debug)]
pub enum ExprKind {
    /// A literal; `fmt` prints the source's own digits.
    Number(f64),
    /// `a + b - c`: terms, each added or (true) subtracted; the first is never subtracted.
    Sum(Vec<(bool, ExprId)>),
    /// `a * b / c`: factors, each multiplied or (true) divided.
    Product(Vec<(bool, ExprId)>),
    /// `--x`: so many minus signs (at least one).
    Neg(u32, ExprId),
    /// `A @ B @ c`, left to right.
    MatMul(Vec<ExprId>),
    /// `base ^ exponent`.
    Power(ExprId, ExprId),
    /// One comparison.
    Compare(CompareOp, ExprId, ExprId),
    /// `( e )`, kept for `fmt`.
    Paren(ExprId),
    /// `low.h[t-1]`: one segment or more, with or without a delay.
    Path {
        /// The segments; digits appear as names.
        segments: Vec<Ident>,
        /// Frames back (positive) or ahead (negative); 0 where no bracket stands.
        delay: i32,
    },
    /// `f(x, N, axis=K)`, with `backward` and `stack n` in front where it is a use of a cell.
    Call {
        /// In the order written.
        prefixes: Vec<Prefix>,
        /// What is called.
        callee: Ident,
        /// With what.
        args: Vec<Arg>,
    },
    /// Stands where the text could not be parsed; an error was reported.
    Error,
}

/// What may stand before the use of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prefix {
    /// Runs against time.
    Backward,
    /// So many layers.
    Stack(u32),
}

/// An argument of a call.
#[derive(Clone, Debug)]
pub struct Arg {
    /// `name=`, if written.
    pub name: Option<Ident>,
    /// What is passed.
    pub value: ArgValue,
    /// The whole argument.
    pub span: Span,
}

/// What may be passed. An axis such as `N` or `4*H` parses as an expression; the callee makes a size of it.
#[derive(Clone, Debug)]
pub enum ArgValue {
    /// An expression.
    Expr(ExprId),
    /// `[N, E]`.
    Shape(Shape),
    /// A string without its quotes.
    Str(Ident),
}

/// Comparisons; they give 0 or 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompareOp {
    /// `==`
    Eq,
    /// `!=`
    Ne,
    /// `<`
    Lt,
    /// `<=`
    Le,
    /// `>`
    Gt,
    /// `>=`
    Ge,
}
