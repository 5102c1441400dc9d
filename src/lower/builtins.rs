//! The table of built-in functions: name, parameters, rule. One row a function.
//!
//! To add one: a row here and, if its rule is new, a variant of [`Rule`] and its arm in `call.rs`.

use crate::ir::op::{Binary, Reduce, Unary};

/// What a parameter takes, which also tells the name space of names in its argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ArgKind {
    /// A value.
    Value,
    /// One axis, by its size.
    Axis,
    /// One axis or a list of them.
    Axes,
    /// A size.
    Size,
    /// A shape in brackets.
    Shape,
    /// A number of equal parts, or a list of sizes.
    Parts,
    /// A whole number known to the compiler.
    Whole,
    /// A string.
    Text,
}

impl ArgKind {
    /// Whether names in the argument are sizes.
    pub(super) fn is_size(self) -> bool {
        !matches!(self, ArgKind::Value | ArgKind::Text)
    }
}

/// How often a parameter is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Need {
    /// Exactly once.
    One,
    /// At most once.
    Optional,
    /// At least once; takes all positional arguments that follow.
    Many,
}

/// A parameter of a built-in function or of a `fn`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Param<'a> {
    /// By which it may be given.
    pub name: &'a str,
    /// What it takes.
    pub kind: ArgKind,
    /// How often.
    pub need: Need,
}

/// How calls are typed and what they become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rule {
    Unary(Unary),
    Binary(Binary),
    Clamp,
    Where,
    Reduce(Reduce),
    Norm,
    Softmax,
    LayerNorm,
    RmsNorm,
    Split,
    Concat,
    Slice,
    Reshape,
    Expand,
    Shift,
    Transpose,
    Eye,
    Iota,
    /// Keeps the lower triangle.
    Tril,
    /// Keeps the upper triangle.
    Triu,
    OneHot,
    Embed,
    CrossEntropy,
    Einsum,
    /// Reserved: not built yet.
    Unbuilt,
}

/// A row of the table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Builtin {
    pub name: &'static str,
    pub params: &'static [Param<'static>],
    pub rule: Rule,
}

const fn one(name: &'static str, kind: ArgKind) -> Param<'static> {
    let need = Need::One;
    Param { name, kind, need }
}

const fn optional(name: &'static str, kind: ArgKind) -> Param<'static> {
    let need = Need::Optional;
    Param { name, kind, need }
}

const fn many(name: &'static str) -> Param<'static> {
    let (kind, need) = (ArgKind::Value, Need::Many);
    Param { name, kind, need }
}

const fn row(name: &'static str, params: &'static [Param<'static>], rule: Rule) -> Builtin {
    Builtin { name, params, rule }
}

use ArgKind::{Axes, Axis, Parts, Shape, Size, Text, Value, Whole};

const X: &[Param] = &[one("x", Value)];
const AB: &[Param] = &[one("a", Value), one("b", Value)];
const REDUCTION: &[Param] = &[one("x", Value), optional("axis", Axes)];
const N: &[Param] = &[one("size", Size)];
const INDEX: &[Param] = &[one("index", Value)];

/// Every built-in function.
pub(super) const TABLE: &[Builtin] = &[
    row("exp", X, Rule::Unary(Unary::Exp)),
    row("log", X, Rule::Unary(Unary::Log)),
    row("sqrt", X, Rule::Unary(Unary::Sqrt)),
    row("abs", X, Rule::Unary(Unary::Abs)),
    row("tanh", X, Rule::Unary(Unary::Tanh)),
    row("sigmoid", X, Rule::Unary(Unary::Sigmoid)),
    row("relu", X, Rule::Unary(Unary::Relu)),
    row("softplus", X, Rule::Unary(Unary::Softplus)),
    row("logsigmoid", X, Rule::Unary(Unary::LogSigmoid)),
    row("gelu", X, Rule::Unary(Unary::Gelu)),
    row("silu", X, Rule::Unary(Unary::Silu)),
    row("sin", X, Rule::Unary(Unary::Sin)),
    row("cos", X, Rule::Unary(Unary::Cos)),
    row("sign", X, Rule::Unary(Unary::Sign)),
    row("floor", X, Rule::Unary(Unary::Floor)),
    row("erf", X, Rule::Unary(Unary::Erf)),
    row("hard_sigmoid", X, Rule::Unary(Unary::HardSigmoid)),
    row("stop_gradient", X, Rule::Unary(Unary::StopGradient)),
    row("max", AB, Rule::Binary(Binary::Max)),
    row("min", AB, Rule::Binary(Binary::Min)),
    row("pow", AB, Rule::Binary(Binary::Pow)),
    row("mod", AB, Rule::Binary(Binary::Mod)),
    row("logaddexp", AB, Rule::Binary(Binary::LogAddExp)),
    row(
        "clamp",
        &[one("x", Value), one("lo", Value), one("hi", Value)],
        Rule::Clamp,
    ),
    row(
        "where",
        &[one("condition", Value), one("a", Value), one("b", Value)],
        Rule::Where,
    ),
    row("sum", REDUCTION, Rule::Reduce(Reduce::Sum)),
    row("mean", REDUCTION, Rule::Reduce(Reduce::Mean)),
    row("amax", REDUCTION, Rule::Reduce(Reduce::Max)),
    row("amin", REDUCTION, Rule::Reduce(Reduce::Min)),
    row("logsumexp", REDUCTION, Rule::Reduce(Reduce::LogSumExp)),
    row("norm", REDUCTION, Rule::Norm),
    row("softmax", REDUCTION, Rule::Softmax),
    row(
        "layer_norm",
        &[
            one("x", Value),
            one("gain", Value),
            one("bias", Value),
            optional("eps", Value),
        ],
        Rule::LayerNorm,
    ),
    row(
        "rms_norm",
        &[one("x", Value), one("gain", Value), optional("eps", Value)],
        Rule::RmsNorm,
    ),
    row(
        "split",
        &[one("x", Value), one("parts", Parts), optional("axis", Axis)],
        Rule::Split,
    ),
    row("concat", &[many("values"), optional("axis", Axis)], Rule::Concat),
    row(
        "slice",
        &[one("x", Value), one("axis", Axis), one("lo", Size), one("hi", Size)],
        Rule::Slice,
    ),
    row("reshape", &[one("x", Value), one("shape", Shape)], Rule::Reshape),
    row("expand", &[one("x", Value), one("shape", Shape)], Rule::Expand),
    row(
        "shift",
        &[one("x", Value), one("axis", Axis), one("by", Whole)],
        Rule::Shift,
    ),
    row("transpose", X, Rule::Transpose),
    row("eye", N, Rule::Eye),
    row("iota", N, Rule::Iota),
    row("tril", X, Rule::Tril),
    row("triu", X, Rule::Triu),
    row("one_hot", INDEX, Rule::OneHot),
    row("embed", &[one("table", Value), one("index", Value)], Rule::Embed),
    row(
        "cross_entropy",
        &[one("logits", Value), one("index", Value)],
        Rule::CrossEntropy,
    ),
    row("einsum", &[one("labels", Text), many("values")], Rule::Einsum),
    row("dropout", AB, Rule::Unbuilt),
    row(
        "zoneout",
        &[one("new", Value), one("old", Value), one("p", Value)],
        Rule::Unbuilt,
    ),
];

/// The row of a name.
pub(super) fn find(name: &str) -> Option<&'static Builtin> {
    TABLE.iter().find(|b| b.name == name)
}
