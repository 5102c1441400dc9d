//! Numbers as C: an `f64` of the plan in, the literal of the nearest `float` out.

/// The literal. Its value is exactly the nearest `float`; infinities and NaN use the prelude's macros.
pub fn float(value: f64) -> String {
    let single = value as f32;
    if single.is_nan() {
        return "NAN".to_string();
    }
    if single.is_infinite() {
        return if single > 0.0 { "INFINITY" } else { "-INFINITY" }.to_string();
    }
    // Debug prints the shortest digits that read back as the same float, always with a point or an exponent.
    format!("{single:?}f")
}

#[cfg(test)]
mod tests {
    use super::float;

    #[test]
    fn literals_are_exact_and_short() {
        for (value, text) in [
            (0.1, "0.1f"),
            (-0.0, "-0.0f"),
            (1.0, "1.0f"),
            (1e-5, "1e-5f"),
            (3.0e38, "3e38f"),
            (1e-45, "1e-45f"),
            (f64::INFINITY, "INFINITY"),
            (-1e300, "-INFINITY"),
            (f64::NAN, "NAN"),
            (16777217.0, "16777216.0f"),
        ] {
            assert_eq!(float(value), text);
        }
    }

    #[test]
    fn every_finite_literal_reads_back() {
        for bits in (0..u32::MAX).step_by(65_521) {
            let single = f32::from_bits(bits);
            if single.is_finite() {
                let text = float(f64::from(single));
                let read: f32 = text.trim_end_matches('f').parse().unwrap();
                assert_eq!(read.to_bits(), bits, "{text}");
            }
        }
    }
}
