//! What is wrong or odd about a dump, as found while reading it.

use std::fmt;

/// How bad a [`Problem`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "lowercase")]
#[repr(u8)]
pub enum Severity {
    /// Odd, but every figure stands.
    Note = 0,
    /// Part of the dump is missing or unreadable: figures are of what is there.
    Damage = 1,
}

/// Something wrong or odd about a dump.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Problem {
    /// How bad it is.
    pub severity: Severity,
    /// What it is, and what was done about it.
    pub text: String,
    /// Offset in the (unpacked) file, where there is one place.
    pub offset: Option<u64>,
}

impl Problem {
    pub(crate) fn note(text: impl Into<String>, offset: Option<u64>) -> Self {
        Self { severity: Severity::Note, text: text.into(), offset }
    }

    pub(crate) fn damage(text: impl Into<String>, offset: Option<u64>) -> Self {
        Self { severity: Severity::Damage, text: text.into(), offset }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.offset {
            Some(offset) => write!(f, "{} (at offset {offset:#x})", self.text),
            None => f.write_str(&self.text),
        }
    }
}
