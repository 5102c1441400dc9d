//! Numbers in JSON, which has none for infinities: those are strings.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Number {
    Finite(f64),
    Other(String),
}

/// Writes a number, or the name of one that JSON lacks.
pub fn serialize<S: Serializer>(x: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    let number = if x.is_finite() {
        Number::Finite(*x)
    } else {
        Number::Other(x.to_string())
    };
    number.serialize(serializer)
}

/// Reads what [`serialize`] writes.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    match Number::deserialize(deserializer)? {
        Number::Finite(x) => Ok(x),
        Number::Other(text) => text
            .parse()
            .map_err(|_| D::Error::custom(format!("`{text}` is not a number"))),
    }
}
