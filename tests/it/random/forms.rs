//! What expressions a type has: a table a kind of type, a row a form.
//!
//! A row is the text with `$1`, `$2`... for operands, and the operands between blanks: `=` is an expression of the row's
//! own type, `[A,B]` one of that type, `p[A,B]` a parameter, `exact` a value that f32 holds exactly (an input), of the own
//! type or a scalar, and `token` the input of indices, of some frame. `A` and `B` are the first axes of the row's type (the
//! table's), `C` and `D` other dimensions; of an axis `N*A`, N is the factor and `M*A` what is left without `A`.
//!
//! Forms keep values within a few units. What jumps (comparisons, `sign`, `floor`, `mod`) reads only what is exact: a value
//! rounded otherwise must not come out on the other side.

/// A form: its text and its operands.
pub type Form = (&'static str, &'static str);

/// Of every type: elementwise.
pub const ANY: &[Form] = &[
    ("tanh($1)", "="),
    ("sigmoid($1)", "="),
    ("relu($1)", "="),
    ("softplus($1)", "="),
    ("logsigmoid($1)", "="),
    ("gelu($1)", "="),
    ("silu($1)", "="),
    ("sin($1)", "="),
    ("cos($1)", "="),
    ("abs($1)", "="),
    ("erf($1)", "="),
    ("hard_sigmoid($1)", "="),
    ("stop_gradient($1)", "="),
    ("(-$1)", "="),
    ("(0.5 * $1)", "="),
    ("(1 - $1)", "="),
    ("(0.3 * $1 ^ 2)", "="),
    ("exp(-abs($1))", "="),
    ("sqrt(abs($1) + 0.25)", "="),
    ("log(softplus($1) + 0.5)", "="),
    ("clamp($1, -0.9, 0.8)", "="),
    ("($1 + $2)", "= ="),
    ("($1 + $2)", "= ="),
    ("($1 - $2)", "= ="),
    ("($1 - $2)", "= ="),
    ("($1 * $2)", "= ="),
    ("($1 * $2)", "= ="),
    ("max($1, $2)", "= ="),
    ("min($1, $2)", "= ="),
    ("logaddexp($1, $2)", "= ="),
    ("($1 / (1.5 + abs($2)))", "= ="),
    ("pow(abs($1) + 0.5, tanh($2))", "= ="),
    ("clamp($1, -abs($2), 0.5)", "= ="),
    ("($1 * $2)", "= []"),
    ("($1 + $2)", "[] ="),
    ("where($1 < 0.25, $2, $3)", "exact = ="),
    ("where($1 >= 0.25, $2, $3)", "exact = ="),
    ("($2 * ($1 > 0) - 0.5 * $2)", "exact ="),
    ("($2 + 0.5 * ($1 <= -0.25))", "exact ="),
    ("where($1 != 0.5, $2, 0.5 * $2)", "exact ="),
    ("where($1 == 0.5, 0.5 * $2, $2)", "exact ="),
    ("where($1, $2, $3)", "exact = ="),
    ("($2 * sign($1))", "exact ="),
    ("($2 + 0.25 * floor(4 * $1))", "exact ="),
    ("($2 - mod($1, 0.5))", "exact ="),
    ("logaddexp($2, where($1 < 0.25, -inf, $3))", "exact = ="),
    ("exp(where($1 < 0, -inf, -abs($2)))", "exact ="),
    ("sigmoid(where($1 > 0.5, inf, $2))", "exact ="),
    ("where(token == 1, $2, $1)", "= = token"),
];

/// Of `[]`.
pub const SCALAR: &[Form] = &[
    ("(0.3 * $1 @ $2)", "[C] [C]"),
    ("(0.3 * $1 @ $2)", "p[C] [C]"),
    ("(0.3 * sum($1, C))", "[C]"),
    ("mean($1, C)", "[C]"),
    ("amax($1, C)", "[C]"),
    ("amin($1, C)", "[C]"),
    ("logsumexp($1, C)", "[C]"),
    ("(0.3 * norm($1 + 1.5, C))", "[C]"),
    ("mean($1)", "[C,D]"),
    ("(0.1 * sum($1))", "[C,D]"),
    ("amax($1)", "[C,D]"),
    ("logsumexp($1)", "[C,D]"),
    ("($1 / sqrt(C))", "="),
    ("embed($1, token)", "p[V] token"),
    ("(0.5 * cross_entropy($1, token))", "[V] token"),
    ("(0.2 * einsum(\"i j, i j -> \", $1, $2))", "p[C,D] [C,D]"),
    ("(0.2 * einsum(\"i i -> \", $1))", "p[C,C]"),
    ("max(amax(where(iota(C) < 0.5, -inf, $1), C), -3)", "[C]"),
    ("max(logsumexp(where(iota(C) < 0.5, -inf, $1), C), -3)", "[C]"),
];

/// Of `[A]`.
pub const VECTOR: &[Form] = &[
    ("(0.8 * $1 @ $2)", "p[A,C] [C]"),
    ("(0.8 * $1 @ $2)", "p[A,C] [C]"),
    ("(0.8 * $1 @ $2)", "p[A,A] ="),
    ("(0.5 * $1 @ $2)", "[C] p[C,A]"),
    ("(0.5 * einsum(\"i j, i -> j\", $1, $2))", "p[C,A] [C]"),
    ("($1 @ $2 + $3 @ $4)", "p[A,C] [C] p[A,D] [D]"),
    ("(tril($1) @ $2)", "p[A,A] ="),
    ("(triu($1) @ $2)", "p[A,A] ="),
    ("(transpose($1) @ $2)", "p[A,A] ="),
    ("((eye(A) + 0.3 * $1) @ $2)", "p[A,A] ="),
    ("((0.3 * tanh($1)) @ $2)", "p[A,A] ="),
    ("(0.3 * $1 @ $2)", "[A,C] [C]"),
    ("(0.3 * sum($1, C))", "[A,C]"),
    ("mean($1, C)", "[A,C]"),
    ("amax($1, C)", "[A,C]"),
    ("amin($1, C)", "[C,A]"),
    ("logsumexp($1, C)", "[A,C]"),
    ("(0.3 * norm($1 + 1.5, C))", "[A,C]"),
    ("(0.3 * sum($1 * $2, C))", "[A,C] [C]"),
    ("(0.2 * sum($1 * $2, [C, D]))", "[A,C,D] [C]"),
    ("softmax($1, A)", "="),
    ("layer_norm($1, $2, $3, eps=0.1)", "= p[A] p[A]"),
    ("rms_norm($1, $2, eps=0.1)", "= p[A]"),
    ("shift($1, A, 1)", "="),
    ("shift($1, A, -1)", "="),
    ("shift($1, A, 2)", "="),
    ("slice($1, 2*A, 0, A)", "[2*A]"),
    ("slice($1, 2*A, A, 2*A)", "[2*A]"),
    ("embed($1, token)", "p[V,A] token"),
    ("(one_hot(token) @ $1)", "p[V,A] token"),
    ("(0.1 * iota(A) * $1)", "[]"),
    ("(0.5 * einsum(\"i i -> i\", $1))", "[A,A]"),
    ("(0.4 * einsum(\"i i, i -> i\", $1, $2))", "p[A,A] ="),
    ("(0.3 * einsum(\"i j, j k, k -> i\", $1, $2, $3))", "p[A,C] p[C,D] [D]"),
    ("softmax(where(iota(A) < 1.5, $1, -inf), A)", "="),
    ("reshape($1, [A])", "[A,1]"),
    ("expand($1, [A])", "[]"),
];

/// Of `[N*A]`, N from 2 to 4: gates.
pub const MULTIPLE: &[Form] = &[
    ("concat($1, $2)", "[A] [M*A]"),
    ("concat($1, $2)", "[M*A] [A]"),
    ("reshape($1, [N*A])", "[N,A]"),
    ("reshape($1, [N*A])", "[A,N]"),
    ("(0.8 * $1 @ $2)", "p[N*A,C] [C]"),
    ("(0.8 * $1 @ $2 + $3)", "p[N*A,C] [C] p[N*A]"),
    ("($1 @ $2 + $3 @ $4 + $5)", "p[N*A,C] [C] p[N*A,A] [A] p[N*A]"),
    ("($1 @ $2 + $3 @ $4 + $5)", "p[N*A,C] [C] p[N*A,A] [A] p[N*A]"),
    ("(0.5 * $1 @ $2)", "[C] p[C,N*A]"),
    (
        "(reshape(einsum(\"g i j, j -> g i\", $1, $2), [N*A]) + $3)",
        "p[N,A,A] [A] =",
    ),
    ("softmax($1, N*A)", "="),
    ("layer_norm($1, $2, $3, eps=0.1)", "= p[N*A] p[N*A]"),
    ("shift($1, N*A, 1)", "="),
    ("expand($1, [N*A])", "[]"),
];

/// Of `[A, B]`, two different axes.
pub const MATRIX: &[Form] = &[
    ("($1 * $2)", "[A] [B]"),
    ("($1 * $2)", "[A] [B]"),
    ("($1 + $2)", "= [A]"),
    ("($1 + $2)", "= [B]"),
    ("($1 * $2)", "= [B]"),
    ("($1 * $2)", "= [A]"),
    ("max($1, $2)", "= [A]"),
    ("(0.3 * $1 @ $2)", "p[A,C] [C,B]"),
    ("(0.3 * $1 @ $2)", "[A,C] p[C,B]"),
    ("(0.3 * $1 @ $2)", "[A,C] [C,B]"),
    ("transpose($1)", "[B,A]"),
    ("einsum(\"i j -> j i\", $1)", "[B,A]"),
    ("(0.4 * einsum(\"i j k, i k -> i j\", $1, $2))", "p[A,B,C] [A,C]"),
    ("softmax($1, A)", "="),
    ("softmax($1, B)", "="),
    ("(0.2 * sum($1 * $2, C))", "[A,C] [C,B]"),
    ("(0.2 * sum($1, C))", "[A,C,B]"),
    ("amax($1, C)", "[C,A,B]"),
    ("expand($1, [A, B])", "[A]"),
    ("expand($1, [A, B])", "[B]"),
    ("layer_norm($1, $2, $3, eps=0.1)", "= p[B] p[B]"),
    ("rms_norm($1, $2, eps=0.1)", "= p[B]"),
    ("shift($1, A, 1)", "="),
    ("shift($1, B, -1)", "="),
    ("slice(concat($1, $2), 2*A, A, 2*A)", "= ="),
    ("slice(concat($1, $2, axis=B), 2*B, B, 2*B)", "= ="),
    ("reshape($1, [A, B])", "[B,A]"),
];

/// Of `[A, A]`.
pub const SQUARE: &[Form] = &[
    ("einsum(\"i, j -> i j\", $1, $2)", "[A] [A]"),
    ("transpose($1)", "="),
    ("(0.3 * $1 @ $2)", "= p[A,A]"),
    ("(0.3 * $1 @ $2)", "[A,C] [C,A]"),
    ("tril($1)", "="),
    ("triu($1)", "="),
    ("($1 * eye(A))", "="),
    ("expand($1, [A, A])", "[]"),
];

/// Of `[A, B, C]`, three different axes.
pub const CUBE: &[Form] = &[
    ("einsum(\"i j, k -> i j k\", $1, $2)", "[A,B] [C]"),
    ("($1 * $2)", "[A,B] [C]"),
    ("($1 * $2)", "= [B]"),
    ("($1 + $2)", "= [A,C]"),
    ("softmax($1, B)", "="),
    ("(0.3 * $1 @ $2)", "= p[C,C]"),
    ("(0.4 * einsum(\"i j k, j k l -> i j l\", $1, $2))", "= p[B,C,C]"),
    ("einsum(\"i j k -> k i j\", $1)", "[B,C,A]"),
    ("expand($1, [A, B, C])", "[C]"),
];

/// What a state of any type becomes: linear in itself, over other semirings, nonlinear. `old` is an earlier value of itself,
/// `held` an expression within bounds.
pub const UPDATES: &[Form] = &[
    ("(sigmoid($1) * $2 + $3)", "held old held"),
    ("(sigmoid($1) * $2 + $3)", "held old held"),
    ("((1 - sigmoid($1)) * $2 + tanh($3) * 0.5)", "held old held"),
    ("(0.5 * $1 + $2)", "old held"),
    ("(0.4 * $1 - 0.3 * $2 + $3)", "old old held"),
    ("where($1 < 0.25, 0.8 * $2, $3)", "exact old held"),
    ("(sigmoid($1) * $2 + (1 - sigmoid($1)) * $3)", "[] old held"),
    ("max($1 + 0.1 * tanh($2), $3)", "old held held"),
    ("min($1 + 0.1 * tanh($2), $3)", "old held held"),
    ("max(min($1, $2), $3)", "old held held"),
    ("relu(0.5 * $1 + $2)", "old held"),
    ("(logaddexp($1 - 0.5, $2) - 0.1)", "old held"),
    ("tanh($1 + $2)", "old held"),
    ("(0.5 * $1 + relu($2 - $3))", "held old held"),
    ("($1 / (1 + abs($1)) + $2)", "old held"),
    ("(0.5 * tanh($1) + $2)", "= ="),
];

/// What a vector becomes besides.
pub const VECTOR_UPDATES: &[Form] = &[
    ("tanh($1 @ $2 + $3)", "p[A,A] old held"),
    ("tanh($1 @ $2 + $3)", "p[A,A] old held"),
    ("(0.4 * $1 @ $2 + $3)", "p[A,A] old held"),
    ("(sigmoid($1 @ $2 + $3) * $2 + 0.5 * $3)", "p[A,A] old held"),
    ("rms_norm($1 + $2, $3, eps=0.1)", "old held p[A]"),
    ("(0.5 * $1 * tanh(mean($2, A)) + $3)", "old old held"),
    ("(0.6 * shift($1, A, 1) + $2)", "old held"),
    ("(0.5 * softmax($1, A) + $2)", "old held"),
];

/// What a matrix becomes besides: outer products, gates along one axis, delta rules.
pub const MATRIX_UPDATES: &[Form] = &[
    ("(sigmoid($1) * $2 + $3 * $4)", "[A] old [A] [B]"),
    ("(sigmoid($1) * $2 + tanh($3) * tanh($4))", "[B] old [A] [B]"),
    ("(0.8 * $1 + $2 * $3)", "old [A] [B]"),
    ("($1 - softmax($2, A) * (softmax($2, A) @ $1) + $2 * $3)", "old [A] [B]"),
    ("(0.5 * $1 + tanh($1 @ $2) * $2)", "old [B]"),
    ("tanh(0.5 * $1 + 0.2 * $2 * (tanh($1 @ $3) @ $1))", "old [A] [B]"),
    ("(0.4 * $1 @ $2 + $3)", "p[A,A] old held"),
    ("(0.5 * softmax($1, B) + $2)", "old held"),
];

/// Two states that turn into each other: the values of both; `$1` and `$2` are their earlier values.
pub const TURNS: &[(Form, Form)] = &[
    (
        ("(0.7 * cos($3) * $1 - 0.7 * sin($3) * $2 + $4)", "p= held"),
        ("(0.7 * sin($3) * $1 + 0.7 * cos($3) * $2 + $4)", "p= held"),
    ),
    (
        ("(sigmoid($3) * $1 + $4)", "held held"),
        ("(0.5 * $2 + 0.5 * tanh($1) * $3 + $4)", "held held"),
    ),
];
