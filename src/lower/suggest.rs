//! "Did you mean ...?": a misspelt name and the names there are go in, the nearest of them comes out.

/// What other systems call our functions.
const FOREIGN: &[(&str, &str)] = &[
    ("add", "write `a + b`"),
    ("arange", "write `iota(N)`"),
    ("argmax", "indices are inputs only; the language has no argmax"),
    (
        "bmm",
        "write an `einsum`, such as `einsum(\"n o i, n i -> n o\", R, h)`",
    ),
    ("cat", "write `concat(a, b)`"),
    ("chunk", "write `split(e, n)`"),
    ("clip", "write `clamp(x, lo, hi)`"),
    ("div", "write `a / b`"),
    ("dot", "write `a @ b`"),
    ("elu", "write `where(x > 0, x, exp(x) - 1)`"),
    ("expm1", "write `exp(x) - 1`"),
    ("fabs", "write `abs(x)`"),
    ("hardsigmoid", "write `hard_sigmoid(x)`"),
    ("identity", "write `eye(H)`"),
    ("layernorm", "write `layer_norm(e, gain, bias)`"),
    ("leaky_relu", "write `max(x, 0.01 * x)`"),
    ("linear", "write `W @ x + b`"),
    ("ln", "write `log(x)`"),
    ("log1p", "write `log(1 + x)`"),
    ("log_softmax", "write `x - logsumexp(x, N)`"),
    ("logistic", "write `sigmoid(x)`"),
    ("matmul", "write `A @ B`"),
    ("maximum", "write `max(a, b)`"),
    ("minimum", "write `min(a, b)`"),
    ("mul", "write `a * b`"),
    ("outer", "write `a * b`: axes of different names combine"),
    ("power", "write `a ^ b`"),
    ("prod", "write `exp(sum(log(x), N))` for positive x"),
    ("reciprocal", "write `1 / x`"),
    ("rmsnorm", "write `rms_norm(e, gain)`"),
    ("rsqrt", "write `1 / sqrt(x)`"),
    ("square", "write `x^2`"),
    ("std", "write `sqrt(mean((x - mean(x, N))^2, N))`"),
    ("sub", "write `a - b`"),
    ("swish", "write `silu(x)`"),
    ("tan", "write `sin(x) / cos(x)`"),
    ("var", "write `mean((x - mean(x, N))^2, N)`"),
    ("zeros", "write `expand(0, [H])`"),
    ("ones", "write `expand(1, [H])`"),
];

/// More candidates, and longer ones, are not compared: a hint is not worth the time that a hostile file could make it take.
const MOST: usize = 400;
const LONGEST: usize = 40;

/// How to write here what other systems call `name`.
pub(super) fn foreign(name: &str) -> Option<&'static str> {
    let lower = name.to_lowercase();
    FOREIGN.iter().find(|(n, _)| *n == lower).map(|(_, hint)| *hint)
}

/// The candidate nearest to `name`, if it is near enough to be a slip of the pen: the case aside, or one letter in three.
pub(super) fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = (name.chars().count() / 3).max(1);
    candidates
        .into_iter()
        .take(MOST)
        .filter(|c| *c != name && c.len().abs_diff(name.len()) <= limit && c.len() <= LONGEST)
        .map(|c| (distance(name, c), c))
        .filter(|(d, c)| *d <= limit && (*d == 0 || c.chars().count() > 1))
        .min()
        .map(|(_, c)| c)
}

/// 0 for names that differ in case only.
fn distance(a: &str, b: &str) -> usize {
    if a.eq_ignore_ascii_case(b) {
        return 0;
    }
    strsim::damerau_levenshtein(a, b)
}

/// `did you mean `x`?`, if there is a near candidate.
pub(super) fn hint<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<String> {
    nearest(name, candidates).map(|c| format!("did you mean `{c}`?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_takes_slips_and_leaves_strangers() {
        assert_eq!(nearest("sigmiod", ["tanh", "sigmoid"]), Some("sigmoid"));
        assert_eq!(nearest("w", ["W", "x"]), Some("W"));
        assert_eq!(nearest("q", ["x", "y"]), None);
        assert_eq!(nearest("hidden", ["input", "cell"]), None);
    }

    #[test]
    fn foreign_names_are_known_in_any_case() {
        assert_eq!(foreign("LayerNorm"), Some("write `layer_norm(e, gain, bias)`"));
        assert_eq!(foreign("frobnicate"), None);
    }
}
