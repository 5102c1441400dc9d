//! The 8-bit floating-point formats of `cvt`: e4m3 and e5m2, in pairs, with saturation.

use super::half::{Binary16, Half};
use super::rounding::{Round, significand};

/// e4m3: no infinities, `0x7f` is NaN, the largest is 448. Out-of-range values saturate; NaN stays.
pub fn to_e4m3(value: f64) -> u8 {
    small(value, 4, 7, 0x7E, 0x7F)
}

/// e5m2: the upper half of an f16; the largest is 57344. Out-of-range values saturate; NaN stays.
pub fn to_e5m2(value: f64) -> u8 {
    small(value, 3, 15, 0x7B, 0x7F)
}

fn small(value: f64, digits: i32, bias: i32, largest: u8, nan: u8) -> u8 {
    if value.is_nan() {
        return nan;
    }
    let sign = u8::from(value.is_sign_negative()) << 7;
    if value.is_infinite() {
        return sign | largest;
    }
    let least = 2 - bias - digits;
    let (whole, unit) = significand(value, digits, least, Round::Nearest);
    let bits = if whole == 0 {
        0
    } else {
        whole as i64 + (i64::from(unit - least) << (digits - 1))
    };
    sign | bits.min(largest.into()) as u8
}

/// From e4m3, exactly.
pub fn from_e4m3(bits: u8) -> f32 {
    let (exponent, fraction) = (i32::from(bits >> 3 & 15), f32::from(bits & 7));
    let size = match (exponent, bits & 0x7F) {
        (_, 0x7F) => return f32::from_bits(0x7FFF_FFFF),
        (0, _) => fraction * 2f32.powi(-9),
        _ => (8.0 + fraction) * 2f32.powi(exponent - 10),
    };
    if bits & 0x80 != 0 { -size } else { size }
}

/// From e5m2, exactly.
pub fn from_e5m2(bits: u8) -> f32 {
    Binary16::wide(u16::from(bits) << 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_comes_back() {
        for bits in 0..=u8::MAX {
            let value = from_e4m3(bits);
            if !value.is_nan() {
                assert_eq!(to_e4m3(value.into()), bits);
            }
            let value = from_e5m2(bits);
            if value.is_finite() {
                assert_eq!(to_e5m2(value.into()), bits);
            }
        }
    }

    #[test]
    fn the_manuals_extremes() {
        assert_eq!(from_e4m3(0x7E), 448.0);
        assert_eq!(from_e4m3(0x01), 2f32.powi(-9));
        assert_eq!(from_e5m2(0x7B), 57344.0);
        assert_eq!(to_e4m3(1e9), 0x7E);
        assert_eq!(to_e5m2(-1e9), 0xFB);
        assert_eq!(to_e4m3(f64::NAN), 0x7F);
        // A tie goes to even.
        assert_eq!(to_e4m3(17.0), to_e4m3(16.0));
        assert_eq!(to_e4m3(19.0), to_e4m3(20.0));
    }
}
