//! Host data to the bytes of a buffer, and back: 16-bit storage is rounded to nearest, everything else is as it is.

use super::Word;
use crate::engine::Data;
use crate::plan::Elem;
use half::{bf16, f16};

/// The bytes of `data`, stored as `elem`. Data of the other kind than the buffer's was refused before.
pub(super) fn encode(data: &Data, elem: Elem) -> Vec<u8> {
    match (data, elem) {
        (Data::I32(values), _) => values.iter().flat_map(|v| v.to_le_bytes()).collect(),
        (Data::F32(values), Elem::F16) => values.iter().flat_map(|v| f16::from_f32(*v).to_le_bytes()).collect(),
        (Data::F32(values), Elem::Bf16) => values.iter().flat_map(|v| bf16::from_f32(*v).to_le_bytes()).collect(),
        (Data::F32(values), Elem::F32 | Elem::I32) => values.iter().flat_map(|v| v.to_le_bytes()).collect(),
    }
}

/// What the bytes of a buffer hold.
pub(super) fn decode(bytes: &[u8], elem: Elem) -> Data {
    let (twos, _) = bytes.as_chunks::<2>();
    let (fours, _) = bytes.as_chunks::<4>();
    match elem {
        Elem::F32 => Data::F32(fours.iter().map(|b| f32::from_le_bytes(*b)).collect()),
        Elem::I32 => Data::I32(fours.iter().map(|b| i32::from_le_bytes(*b)).collect()),
        Elem::F16 => Data::F32(twos.iter().map(|b| f16::from_le_bytes(*b).to_f32()).collect()),
        Elem::Bf16 => Data::F32(twos.iter().map(|b| bf16::from_le_bytes(*b).to_f32()).collect()),
    }
}

/// A number as one element.
pub(super) fn word(value: f64, elem: Elem) -> Word {
    match elem {
        Elem::F32 => Word::Bits32((value as f32).to_bits()),
        Elem::I32 => Word::Bits32((value as i32).cast_unsigned()),
        Elem::F16 => Word::Bits16(f16::from_f64(value).to_bits()),
        Elem::Bf16 => Word::Bits16(bf16::from_f64(value).to_bits()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_back() {
        let values = vec![0.0, -1.5, 3.0, f32::NEG_INFINITY, 0.1];
        let data = Data::F32(values.clone());
        assert_eq!(decode(&encode(&data, Elem::F32), Elem::F32), data);
        for (elem, tenth) in [(Elem::F16, 0.099_975_586), (Elem::Bf16, 0.100_097_656)] {
            let bytes = encode(&data, elem);
            assert_eq!(bytes.len(), 10);
            let mut rounded = values.clone();
            rounded[4] = tenth;
            assert_eq!(decode(&bytes, elem), Data::F32(rounded), "{elem:?}");
        }
        let indices = Data::I32(vec![7, -1, i32::MAX]);
        assert_eq!(decode(&encode(&indices, Elem::I32), Elem::I32), indices);
    }

    #[test]
    fn fills_are_elements() {
        assert_eq!(word(-1.0, Elem::F32), Word::Bits32(0xbf80_0000));
        assert_eq!(word(-1.0, Elem::F16), Word::Bits16(0xbc00));
        assert_eq!(word(f64::NEG_INFINITY, Elem::Bf16), Word::Bits16(0xff80));
        assert_eq!(word(-2.0, Elem::I32), Word::Bits32(u32::MAX - 1));
    }
}
