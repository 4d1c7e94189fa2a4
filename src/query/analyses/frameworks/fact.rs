//! Values of facts about framework objects.

use std::fmt;

use hprof_index::storage::human_bytes::group_digits;

/// Value of a fact about a framework object.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub enum FrameworkFact {
    /// No value: a field is null or missing, or a list is too long to be examined.
    Null,
    /// A truth value.
    Bool(bool),
    /// A whole number.
    Whole(i64),
    /// A number with a fraction.
    Double(#[serde(with = "bits")] f64),
    /// A text.
    Text(String),
    /// A text of the dump, if values are hidden.
    Hidden,
}

impl fmt::Display for FrameworkFact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Bool(value) => write!(f, "{value}"),
            Self::Whole(value) => f.write_str(&format_number(*value)),
            Self::Double(value) => write!(f, "{value:.1}"),
            Self::Text(text) => f.write_str(text),
            Self::Hidden => f.write_str("*"),
        }
    }
}

/// A number with thousands separators.
pub(super) fn format_number(number: i64) -> String {
    let sign = if number < 0 { "-" } else { "" };
    format!("{sign}{}", group_digits(number.unsigned_abs()))
}

/// Serialization of floating-point numbers by their bits: a decimal text may not round-trip.
mod bits {
    use serde::{Deserialize, Deserializer, Serializer};

    #[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes fields by reference")]
    pub(super) fn serialize<S: Serializer>(number: &f64, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u64(number.to_bits())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
        u64::deserialize(from).map(f64::from_bits)
    }
}
