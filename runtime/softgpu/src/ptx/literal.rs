//! The values of literals.

use super::ast::Type;

/// A literal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Literal {
    /// Decimal, hexadecimal (`0x`), octal (`0`) or binary (`0b`), with or without a `U`.
    Integer(i128),
    /// `0f` and the bits.
    F32(u32),
    /// `0d` and the bits, or a decimal number with a point or an exponent.
    F64(u64),
}

/// The value of a number; none if it is malformed or above 128 bits.
pub(super) fn literal(text: &str) -> Option<Literal> {
    let digits = |prefix: [char; 2]| text.strip_prefix('0').and_then(|rest| rest.strip_prefix(prefix));
    if let Some(bits) = digits(['f', 'F']) {
        return bits_of(bits, 8)
            .and_then(|bits| u32::try_from(bits).ok())
            .map(Literal::F32);
    }
    if let Some(bits) = digits(['d', 'D']) {
        return bits_of(bits, 16).map(Literal::F64);
    }
    if let Some(hexadecimal) = digits(['x', 'X']) {
        return integer(hexadecimal, 16);
    }
    if let Some(binary) = digits(['b', 'B']) {
        return integer(binary, 2);
    }
    if text.contains(['.', 'e', 'E']) {
        return text.parse().ok().map(|value: f64| Literal::F64(value.to_bits()));
    }
    match text.strip_prefix('0') {
        Some(octal) if !octal.trim_end_matches(['u', 'U']).is_empty() => integer(octal, 8),
        _ => integer(text, 10),
    }
}

fn integer(digits: &str, radix: u32) -> Option<Literal> {
    let digits = digits.strip_suffix(['u', 'U']).unwrap_or(digits);
    // The sign that `from_str_radix` would take is no part of a literal.
    let value = u128::from_str_radix(digits, radix).ok()?;
    digits
        .starts_with(|c: char| c.is_ascii_alphanumeric())
        .then_some(Literal::Integer(value.cast_signed()))
}

fn bits_of(digits: &str, length: usize) -> Option<u64> {
    let proper = digits.len() == length && digits.bytes().all(|b| b.is_ascii_hexdigit());
    proper.then(|| u64::from_str_radix(digits, 16).ok()).flatten()
}

impl Literal {
    /// Its negative; that of bits flips their sign.
    pub(super) fn negative(self) -> Literal {
        match self {
            Literal::Integer(value) => Literal::Integer(value.wrapping_neg()),
            Literal::F32(bits) => Literal::F32(bits ^ 1 << 31),
            Literal::F64(bits) => Literal::F64(bits ^ 1 << 63),
        }
    }

    /// The bits of this value in a type, as an initial value has them: numbers are converted, bits of the right size are kept.
    pub(super) fn bits(self, ty: Type) -> u64 {
        match (self, ty) {
            (Literal::Integer(value), Type::F32) => u64::from((value as f32).to_bits()),
            (Literal::Integer(value), Type::F64) => (value as f64).to_bits(),
            (Literal::Integer(value), _) => value as u64,
            (Literal::F32(bits), Type::F64) => f64::from(f32::from_bits(bits)).to_bits(),
            (Literal::F32(bits), _) => u64::from(bits),
            (Literal::F64(bits), Type::F32) => u64::from((f64::from_bits(bits) as f32).to_bits()),
            (Literal::F64(bits), _) => bits,
        }
    }
}
