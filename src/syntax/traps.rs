//! What users of other languages write: recognised, named, answered with what to write here.
//!
//! Most of these are reported and skipped, so that the rest of the line is parsed as if it had been written right; the
//! others become the message of a failure.

use super::ast::{CompareOp, ExprId, ExprKind};
use super::parser::Parser;
use super::recover::starts_line;
use super::token::{
    Fault, Parsed, continues_name, describe, expected, extent, is_keyword, number_text, starts_name, word,
};
use crate::diagnostics::{Code, Diagnostic, Span};

/// The message for text that does not start with `what`.
pub(super) fn unexpected(p: &Parser<'_>, at: &str, what: &'static str) -> Diagnostic {
    let place = p.position(at);
    let span = Span::new(place, place + extent(at));
    let wanted = if what.starts_with(|c: char| c.is_ascii_alphabetic() || c == '`') {
        what.to_string()
    } else {
        format!("`{what}`")
    };
    let found = word(at);
    if is_keyword(found) && matches!(what, "a name" | "an expression") && !starts_line(p.source, place) {
        return keyword_as_name(found, span);
    }
    let code = if foreign_hint(at).is_some() {
        Code::ForeignSyntax
    } else {
        Code::UnexpectedToken
    };
    let message = format!("expected {wanted}, found {}", describe(at));
    let told = Diagnostic::new(code, message, span).label(format!("expected {wanted}"));
    match foreign_hint(at).or_else(|| hint(p, at, what)) {
        Some(hint) => told.hint(hint),
        None => told,
    }
}

fn keyword_as_name(keyword: &str, span: Span) -> Diagnostic {
    Diagnostic::new(
        Code::KeywordAsName,
        format!("the keyword `{keyword}` cannot be a name"),
        span,
    )
    .label("a keyword of the language")
    .hint(format!("choose another name, such as `{keyword}_`"))
}

/// What to do instead, for marks that no rule of the language has.
fn foreign_hint(at: &str) -> Option<&'static str> {
    let table = [
        ("**", "a power is written `x ^ 2`"),
        (
            "'",
            "a transpose is written `transpose(W)`; `@` needs none for a vector",
        ),
        ("?", "a choice is written `where(c, a, b)`"),
        ("&", "comparisons give 0 or 1: write `a * b` for `and`"),
        ("|", "comparisons give 0 or 1: write `max(a, b)` for `or`"),
        ("!", "comparisons give 0 or 1: write `1 - a` for `not a`"),
        ("%", "a remainder is written `mod(a, b)`; a comment starts with `#`"),
        ("//", "a comment starts with `#`; a rounded quotient is `floor(a / b)`"),
        ("/*", "a comment starts with `#` and ends with its line"),
        (";", "a line needs no semicolon"),
        (":=", "an equation is written `y = ...`"),
        ("+=", "names are defined once: a sum over frames is `s = s[t-1] + ...`"),
        ("-=", "names are defined once: a sum over frames is `s = s[t-1] - ...`"),
        (
            "*=",
            "names are defined once: a product over frames is `s = s[t-1] * ...`",
        ),
        ("/=", "names are defined once"),
        ("<-", "an equation is written `y = ...`"),
        ("->", "an equation is written `y = ...`"),
        ("=>", "an equation is written `y = ...`; \"at least\" is `>=`"),
        (
            "\\",
            "there is no `\\`; a line goes on by itself until its expression is complete",
        ),
        ("\u{d7}", "products are written `*` (elementwise) and `@`"),
        ("\u{b7}", "products are written `*` (elementwise) and `@`"),
        ("\u{2299}", "the elementwise product is written `*`"),
        ("\u{2212}", "this is a typographic minus sign: write `-`"),
        ("\u{2019}", "a transpose is written `transpose(W)`"),
        ("\u{a0}", "this is a no-break space: write a plain one"),
    ];
    table
        .iter()
        .find(|(mark, _)| at.starts_with(mark))
        .map(|(_, hint)| *hint)
}

/// A hint for marks of the language at a wrong place.
fn hint(p: &Parser<'_>, at: &str, what: &str) -> Option<&'static str> {
    let first = at.chars().next()?;
    match (first, what) {
        ('+', "an expression") => Some("there is no sign `+`: leave it out"),
        ('[', "an expression") => Some("there are no list values: `concat(a, b)` joins vectors"),
        ('"', "an expression") => Some("only `einsum` takes a string, as its first argument"),
        ('/', "]" | ")" | ",") => Some("sizes have no division: name the smaller size and write the larger as `2*H`"),
        (':', _) if what != "=" => {
            Some("axes are not sliced by position: write `slice(x, N, lo, hi)` or `split(x, n)`")
        }
        (c, _) if c.is_alphabetic() && !c.is_ascii() => {
            Some("names are made of ASCII letters, digits and `_`: write `lambda` or `alpha`")
        }
        (c, ")" | "]") if starts_name(c) => Some("a comma or an operator may be missing"),
        (_, "a name" | "an expression") if p.source[..p.position(at)].trim_end().ends_with(',') => {
            Some("no comma stands behind the last of a list")
        }
        _ => None,
    }
}

/// `a < b < c`: comparisons do not chain. The rest of the chain is skipped.
pub(super) fn chained_comparison<'a>(p: &Parser<'a>, i: &'a str) -> Result<&'a str, nom::Err<Fault<'a>>> {
    let Ok((mut rest, _)) = p.compare_op(i) else {
        return Ok(i);
    };
    let told = Diagnostic::new(Code::UnexpectedToken, "comparisons do not chain", p.span(i, extent(i)))
        .label("a second comparison")
        .hint("write `(a < b) * (b < c)`: comparisons give 0 or 1");
    p.report(told);
    loop {
        (rest, _) = p.operand_of_comparison(rest)?;
        match p.compare_op(rest) {
            Ok((next, _)) => rest = next,
            Err(_) => return Ok(rest),
        }
    }
}

/// `=` between two values, meant as `==`.
pub(super) fn assign_for_equal<'a>(p: &Parser<'a>, i: &'a str) -> Parsed<'a, CompareOp> {
    if foreign_hint(i).is_some() {
        return expected(i, "an operator");
    }
    let (rest, span) = p.token(i, 1);
    let told = Diagnostic::new(Code::UnexpectedToken, "`=` cannot stand inside an expression", span)
        .label("a second `=`")
        .hint("a comparison is written `a == b`; every equation defines one name");
    p.report(told);
    Ok((rest, CompareOp::Eq))
}

/// `a % b`, `a && b`, `a or b`: reported, then taken for a product.
pub(super) fn foreign_operator<'a>(p: &Parser<'a>, i: &'a str) -> Parsed<'a, bool> {
    let length = match word(i) {
        word @ ("and" | "or") if !is_target(i) => word.len(),
        _ => ["&&", "||", "&", "|", "%"]
            .into_iter()
            .find(|s| i.starts_with(s))
            .map_or(0, str::len),
    };
    if length == 0 {
        return expected(i, "an operator");
    }
    let (rest, span) = p.token(i, length);
    let hint = foreign_hint(i).unwrap_or("comparisons give 0 or 1: write `a * b` for `and`, `max(a, b)` for `or`");
    p.report(
        Diagnostic::new(
            Code::ForeignSyntax,
            format!("there is no operator `{}`", &i[..length]),
            span,
        )
        .hint(hint),
    );
    Ok((rest, false))
}

/// `**`, taken for `^`.
pub(super) fn double_star<'a>(p: &Parser<'a>, i: &'a str) -> Parsed<'a, ()> {
    if !i.starts_with("**") {
        return expected(i, "^");
    }
    let (rest, span) = p.token(i, 2);
    p.report(
        Diagnostic::new(Code::ForeignSyntax, "there is no operator `**`", span).hint("a power is written `x ^ 2`"),
    );
    Ok((rest, ()))
}

/// What may hang on an operand in other languages: `x'`, `(a + b)[t-1]`, `x .* y`, `x // comment`.
pub(super) fn after_operand<'a>(
    p: &Parser<'a>,
    mut i: &'a str,
    operand: ExprId,
) -> Result<&'a str, nom::Err<Fault<'a>>> {
    loop {
        i = match i.as_bytes() {
            [b'\'', ..] => transpose_mark(p, i),
            [b'[', ..] => bracket_after(p, i, operand)?,
            [b'.', ..] if i[1..].starts_with(DOTTED) => dotted_operator(p, i),
            [b'/', b'/', ..] => slash_comment(p, i),
            _ => return Ok(i),
        };
    }
}

/// What follows the dot of an elementwise operator elsewhere.
pub(super) const DOTTED: [char; 5] = ['*', '/', '^', '+', '-'];

fn transpose_mark<'a>(p: &Parser<'a>, i: &'a str) -> &'a str {
    let (rest, span) = p.token(i, 1);
    let told = Diagnostic::new(Code::ForeignSyntax, "there is no transpose mark `'`", span)
        .hint("write `transpose(W)`; `k @ S` is already the transpose of `S` times `k`")
        .hint("in a name, write `i_` or `i2` for `i'`");
    p.report(told);
    rest
}

fn dotted_operator<'a>(p: &Parser<'a>, i: &'a str) -> &'a str {
    let (rest, span) = p.token(i, 1);
    let message = format!("there is no operator `{}`", &i[..2]);
    let hint = format!("`{}` is elementwise already", &i[1..2]);
    p.report(Diagnostic::new(Code::ForeignSyntax, message, span).hint(hint));
    rest
}

/// `// ...` to the end of the line.
fn slash_comment<'a>(p: &Parser<'a>, i: &'a str) -> &'a str {
    p.report(
        Diagnostic::new(Code::ForeignSyntax, "there is no `//`", p.span(i, 2))
            .hint("a comment starts with `#`; a rounded quotient is `floor(a / b)`"),
    );
    p.space(&i[i.find('\n').unwrap_or(i.len())..])
}

/// Brackets behind something that is not a bare name.
fn bracket_after<'a>(p: &Parser<'a>, i: &'a str, operand: ExprId) -> Result<&'a str, nom::Err<Fault<'a>>> {
    let (rest, span) = skip_brackets(p, i)?;
    let told = Diagnostic::new(Code::BadSubscript, "only a name can be read with a delay", span)
        .label("not behind a name")
        .also(p.span_of(operand), "this is an expression");
    let told = if p.is_delayed(operand) {
        told.hint("write one delay: `h[t-2]` for `h[t-1][t-1]`")
    } else {
        told.hint("give the expression a name, in an equation of its own, and read that name with a delay")
    };
    p.report(told);
    Ok(rest)
}

/// The rest after a bracket that is closed on the same line, and the span of the whole.
fn skip_brackets<'a>(p: &Parser<'a>, i: &'a str) -> Result<(&'a str, Span), nom::Err<Fault<'a>>> {
    let mut depth = 0;
    for (at, c) in i.char_indices() {
        match c {
            '[' => depth += 1,
            ']' if depth == 1 => return Ok(p.token(i, at + 1)),
            ']' => depth -= 1,
            '\n' | '#' | '{' | '}' => break,
            _ => {}
        }
    }
    let told = Diagnostic::new(Code::BadSubscript, "this bracket is not closed", p.span(i, 1))
        .hint("the only bracket behind a name is a delay: `h[t-1]`");
    Err(nom::Err::Failure(Fault::Told(Box::new(told))))
}

/// Brackets behind a name that are no delay: reported, and the name is taken as it stands (or one frame back).
pub(super) fn subscript<'a>(p: &Parser<'a>, i: &'a str) -> Result<(&'a str, i32, Span), nom::Err<Fault<'a>>> {
    let (rest, span) = skip_brackets(p, i)?;
    let inside = &p.source[span.start as usize + 1..span.end as usize - 1];
    let (told, delay) = explain_subscript(inside.trim(), span);
    p.report(told);
    Ok((rest, delay, span))
}

/// The message on what stands in brackets, and the delay to go on with.
fn explain_subscript(inside: &str, span: Span) -> (Diagnostic, i32) {
    let compact: String = inside.chars().filter(|c| !c.is_ascii_whitespace()).collect();
    let bad_delay = |message: &str| Diagnostic::new(Code::BadDelay, message, span);
    if let Some(after) = compact
        .strip_prefix('t')
        .filter(|a| a.is_empty() || a.starts_with(['-', '+']))
    {
        return match after.get(1..).unwrap_or("") {
            "" => (
                bad_delay("`[t]` is not needed").hint("a name alone is this frame's value: leave out `[t]`"),
                0,
            ),
            zeros if zeros.bytes().all(|b| b == b'0') => (
                bad_delay("a delay of 0 frames is no delay").hint("a name alone is this frame's value"),
                0,
            ),
            digits if digits.bytes().all(|b| b.is_ascii_digit()) => (
                bad_delay("this delay is too long").hint(format!("at most {} frames", i32::MAX)),
                1,
            ),
            other => {
                let message = format!("a delay is a whole number of frames, not `{other}`");
                (
                    bad_delay(&message).hint("write `h[t-1]`, `h[t-2]`, ...; delays are constants"),
                    1,
                )
            }
        };
    }
    let told = Diagnostic::new(
        Code::BadSubscript,
        format!("`[{inside}]` cannot stand behind a name"),
        span,
    );
    let told = match compact.as_bytes() {
        [b'-', digits @ ..] if !digits.is_empty() && digits.iter().all(u8::is_ascii_digit) => {
            told.hint(format!("the value {} frames ago is `[t{compact}]`", &compact[1..]))
        }
        [b'T' | b'i' | b'k' | b'n' | b's', b'-' | b'+', ..] => told.hint("time is called `t`: write `h[t-1]`"),
        _ => told.hint(
            "the only bracket is a delay, `h[t-1]`; parts of an axis are `slice(x, N, lo, hi)` or `a, b = split(x, 2)`",
        ),
    };
    (told, 0)
}

/// A number with something stuck to it: reported, and taken for its digits.
pub(super) fn malformed_number<'a>(p: &Parser<'a>, i: &'a str, digits: &str) -> (&'a str, ExprId) {
    let end = i
        .find(|c: char| !continues_name(c) && c != '.')
        .unwrap_or(i.len())
        .max(digits.len());
    // `2.*x` is `2 .* x` in Matlab and `2. * x` in C; either way the dot belongs to the number.
    let (rest, span) = p.token(i, end);
    p.report(explain_number(&i[..end], digits, span));
    (rest, p.alloc(ExprKind::Number(digits.parse().unwrap_or(1.0)), span))
}

fn explain_number(text: &str, digits: &str, span: Span) -> Diagnostic {
    let told = Diagnostic::new(Code::BadNumber, format!("`{}` is not a number", shorten(text)), span);
    let tail = &text[digits.len()..];
    let product = tail.starts_with(starts_name) && tail.chars().all(continues_name) && !digits.is_empty();
    match tail {
        "" => Diagnostic::new(Code::BadNumber, "this number is too large for 64 bits", span)
            .hint("infinity is written `inf`"),
        "." => told.hint(format!("digits follow the point: write `{digits}` or `{digits}.0`")),
        _ if digits.is_empty() => told.hint(format!("digits stand before the point: write `0{text}`")),
        "f" | "F" | "d" => told.hint(format!("numbers have no suffix: write `{digits}`")),
        _ if tail.starts_with('_') => told.hint("digits are not grouped: leave out the `_`"),
        _ if digits == "0" && tail.starts_with(['x', 'b', 'o']) => told.hint("numbers are decimal"),
        "e" | "E" => told.hint(format!("digits follow the `e`: write `{digits}e-3`")),
        _ if product => told.hint(format!("a product needs its sign: write `{digits}*{tail}`")),
        _ => told,
    }
}

fn shorten(text: &str) -> String {
    if text.len() <= 24 {
        text.to_string()
    } else {
        format!("{}...", &text[..24])
    }
}

/// A size that starts with a digit and goes on as something else.
pub(super) fn malformed_size<'a>(p: &Parser<'a>, i: &'a str) -> (&'a str, Span) {
    let end = i.find(|c: char| !continues_name(c) && c != '.').unwrap_or(i.len());
    let digits = number_text(i).unwrap_or_default();
    let end = end.max(digits.len()); // `1e-5` goes on behind a sign
    let (rest, span) = p.token(i, end);
    let told = if digits.len() == end {
        Diagnostic::new(Code::BadNumber, "a size is a whole number", span)
    } else {
        explain_number(&i[..end], digits, span)
    };
    p.report(told);
    (rest, span)
}

/// `;` or `// ...` behind an item.
pub(super) fn after_item<'a>(p: &Parser<'a>, mut i: &'a str) -> &'a str {
    loop {
        i = if i.starts_with("//") {
            slash_comment(p, i)
        } else if i.starts_with(';') {
            let (rest, span) = p.token(i, 1);
            p.report(Diagnostic::new(Code::ForeignSyntax, "a line needs no semicolon", span).hint("leave out the `;`"));
            rest
        } else {
            return i;
        };
    }
}

/// A keyword where an equation would start, with `=` behind it.
pub(super) fn keyword_as_target<'a>(p: &Parser<'a>, i: &str, rest: &str) -> Result<(), nom::Err<Fault<'a>>> {
    if !rest.starts_with('=') {
        return Ok(());
    }
    let keyword = word(i);
    let told = keyword_as_name(keyword, p.span(i, keyword.len()));
    Err(nom::Err::Failure(Fault::Told(Box::new(told))))
}

/// Whether an equation could start here.
fn is_target(i: &str) -> bool {
    i[word(i).len()..].trim_start().starts_with(['=', ',', ':', '['])
}

/// `if`, `for`, `def`... where an item would start.
pub(super) fn foreign_statement<'a>(p: &Parser<'a>, i: &'a str) -> Result<(), nom::Err<Fault<'a>>> {
    let statement = word(i);
    let hint = match statement {
        "if" | "else" | "elif" => "a choice is written `where(c, a, b)`",
        "for" | "while" => "there are no loops: every equation holds for each frame, and `h[t-1]` is the frame before",
        "def" | "class" | "function" | "lambda" | "struct" | "module" => {
            "a cell is written `cell name(H) { ... }`, a function `fn name(x) = ...`"
        }
        "let" | "var" | "const" | "auto" | "float" | "double" => "an equation is written `y = ...`, without a keyword",
        "import" | "from" | "include" => "another file is named by `use \"file.rnn\"`",
        "not" => "comparisons give 0 or 1: write `1 - a` for `not a`",
        _ => return Ok(()),
    };
    if is_target(i) {
        return Ok(());
    }
    let told = Diagnostic::new(
        Code::ForeignSyntax,
        format!("there is no `{statement}`"),
        p.span(i, statement.len()),
    )
    .hint(hint);
    Err(nom::Err::Failure(Fault::Told(Box::new(told))))
}

/// `h[t] = ...`: the bracket is reported and skipped.
pub(super) fn after_target<'a>(p: &Parser<'a>, i: &'a str) -> &'a str {
    if !i.starts_with('[') {
        return i;
    }
    let Ok((rest, span)) = skip_brackets(p, i) else {
        return i;
    };
    let told = Diagnostic::new(Code::BadSubscript, "the left side of an equation has no brackets", span)
        .hint("an equation gives this frame's value: write `h = ...`, and `h[t-1]` for the frame before");
    p.report(told);
    rest
}

/// What stands where the `=` of an equation should: `==`, `:=`, or the end of a line that lacks an operator. `start` is
/// where the equation starts.
pub(super) fn assignment<'a>(p: &Parser<'a>, start: &'a str, i: &'a str) -> Parsed<'a, Span> {
    if let Some(mark) = ["==", ":=", "<-"].into_iter().find(|m| i.starts_with(m)) {
        let (rest, span) = p.token(i, mark.len());
        let (code, hint) = match mark {
            "==" => (
                Code::UnexpectedToken,
                "an equation is written `y = ...`; `==` compares two values",
            ),
            _ => (Code::ForeignSyntax, "an equation is written `y = ...`"),
        };
        p.report(Diagnostic::new(code, format!("expected `=`, found `{mark}`"), span).hint(hint));
        return Ok((rest, span));
    }
    if starts_line(p.source, p.position(start)) || foreign_hint(i).is_some() {
        return expected(i, "=");
    }
    missing_operator(p, start)
}

/// Something that is neither a declaration nor an equation, at `i`.
pub(super) fn no_item<'a, T>(p: &Parser<'a>, i: &'a str) -> Parsed<'a, T> {
    let behind_expression =
        !starts_line(p.source, p.position(i)) && i.starts_with(|c: char| c == '"' || c.is_ascii_digit());
    if behind_expression {
        missing_operator(p, i)
    } else {
        expected(i, "a declaration, an equation or `}`")
    }
}

/// A value right behind another one.
fn missing_operator<'a, T>(p: &Parser<'a>, i: &'a str) -> Parsed<'a, T> {
    let told = Diagnostic::new(
        Code::UnexpectedToken,
        format!("unexpected {}", describe(i)),
        p.span(i, extent(i)),
    )
    .label("expected an operator or a new line")
    .hint("two values side by side are no product: write `a * b` or `A @ b`");
    Err(nom::Err::Failure(Fault::Told(Box::new(told))))
}
