//! Dictionary of all names of facts, each with its type and meaning.
//!
//! Columns of commands, of SQL and of exports are declared by these names ([`names`]); `docs/json-schema.md` is generated
//! from them. A name has one type and one meaning wherever it is used; when a value is `null` depends on the row and is
//! declared with the column.

use std::borrow::Cow;

/// Type of the values of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueKind {
    /// A text.
    Text,
    /// An object ID.
    Id,
    /// A count or a size in bytes.
    Integer,
    /// An integer that may be negative.
    Signed,
    /// A number with a fraction.
    Float,
    /// A boolean.
    Boolean,
    /// A time.
    Time,
    /// A list of texts.
    Texts,
    /// A list of integers.
    Integers,
    /// A list of object IDs.
    Ids,
    /// A record, in JSON only.
    Record,
    /// A list of records, in JSON only.
    Records,
    /// One of several types, as the meaning says.
    Any,
}

/// A name of the dictionary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Name {
    /// Key in JSON, and name of the column in CSV, SQL and exported tables.
    pub key: &'static str,
    /// Type of its values.
    pub kind: ValueKind,
    /// Meaning: unit, and subject of the count.
    pub meaning: &'static str,
}

/// Key of a column: a name, optionally within a record or of one side of a comparison.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnKey {
    /// Full key: `total.retained_bytes_delta`.
    pub text: Cow<'static, str>,
    /// Name.
    pub name: Name,
    /// Type of the values; signed for a difference.
    pub kind: ValueKind,
}

/// One of two compared files, or the difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ComparedValue {
    /// The old file.
    Old,
    /// The new file.
    New,
    /// New minus old.
    Delta,
}

impl ComparedValue {
    /// Returns the suffix of this side's keys.
    fn suffix(self) -> &'static str {
        match self {
            Self::Old => "old",
            Self::New => "new",
            Self::Delta => "delta",
        }
    }
}

impl From<Name> for ColumnKey {
    fn from(name: Name) -> Self {
        Self { text: Cow::Borrowed(name.key), name, kind: name.kind }
    }
}

impl Name {
    /// Returns the key of a name within a record of this name.
    pub fn dot(self, inner: impl Into<ColumnKey>) -> ColumnKey {
        debug_assert!(matches!(self.kind, ValueKind::Record | ValueKind::Any), "{} is no record", self.key);
        let inner = inner.into();
        ColumnKey { text: format!("{}.{}", self.key, inner.text).into(), ..inner }
    }

    /// Returns the key of this name within a record, or on its own.
    pub fn in_record(self, record: Option<Self>) -> ColumnKey {
        match record {
            Some(record) => record.dot(self),
            None => self.into(),
        }
    }

    /// Returns the key of one value of an enumeration within a record of counts by that enumeration.
    pub fn count(self, value: &str) -> ColumnKey {
        ColumnKey { text: format!("{}.{value}", self.key).into(), name: self, kind: ValueKind::Integer }
    }

    /// Returns the key of one side of a comparison: `NAME_old`, `NAME_new`, `NAME_delta`.
    pub fn for_side(self, side: ComparedValue) -> ColumnKey {
        ColumnKey::from(self).for_side(side)
    }
}

impl ColumnKey {
    /// Creates a key that the user or the dump chose: a column of a query, a field of a class.
    pub fn chosen(text: impl Into<Cow<'static, str>>, kind: ValueKind) -> Self {
        Self { text: text.into(), name: names::CELL, kind }
    }

    /// Returns the key of one side of a comparison: `NAME_old`, `NAME_new`, `NAME_delta`.
    pub fn for_side(self, side: ComparedValue) -> Self {
        let kind = match self.kind {
            ValueKind::Integer if side == ComparedValue::Delta => ValueKind::Signed,
            kind => kind,
        };
        Self { text: format!("{}_{}", self.text, side.suffix()).into(), kind, ..self }
    }
}

/// Returns the key of a name: the constant's name in lower case. Evaluated at compile time, where a wrong index is an
/// error.
#[allow(clippy::indexing_slicing)]
const fn lower<const N: usize>(name: &str) -> [u8; N] {
    let (bytes, mut key, mut at) = (name.as_bytes(), [0; N], 0);
    while at < N {
        key[at] = bytes[at].to_ascii_lowercase();
        at += 1;
    }
    key
}

/// Declares names of one topic: `NAME: ValueKind, "meaning";`, with `as "key"` where another name has the key too.
macro_rules! names {
    ($($name:ident $(as $key:literal)?: $kind:ident, $meaning:literal;)*) => {
        $(
            #[doc = $meaning]
            pub const $name: super::Name = super::Name {
                key: names!(@key $name $($key)?),
                kind: super::ValueKind::$kind,
                meaning: $meaning,
            };
        )*

        /// All names of this topic.
        pub(super) const ALL: &[super::Name] = &[$($name),*];
    };
    (@key $name:ident) => {{
        const KEY: [u8; stringify!($name).len()] = super::lower(stringify!($name));
        match std::str::from_utf8(&KEY) {
            Ok(key) => key,
            Err(_) => panic!("a name is ASCII"),
        }
    }};
    (@key $name:ident $key:literal) => { $key };
}

mod analyses;
mod files;
pub mod nulls;
mod objects;
mod processes;
mod threads;

/// All names.
pub mod names {
    pub use super::analyses::*;
    pub use super::files::*;
    pub use super::objects::*;
    pub use super::processes::*;
    pub use super::threads::*;
}

/// Returns all names by topic: title and names.
pub fn topics() -> [(&'static str, &'static [Name]); 5] {
    [
        ("Objects, classes and references", objects::ALL),
        ("Threads and recordings", threads::ALL),
        ("Leaks, waste, growth and rules", analyses::ALL),
        ("Dumps, files and answers", files::ALL),
        ("Running JVMs", processes::ALL),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keys with two types or meanings.
    const OF_TWO_TYPES: [&str; 11] = [
        "path",
        "dominator",
        "objects",
        "place",
        "facts",
        "holder",
        "reachable",
        "container",
        "keys",
        "evidence",
        // Of a collection, and what is left of a dump's: both promised.
        "contents",
    ];

    #[test]
    fn a_key_has_one_type_and_one_meaning() {
        let mut keys: Vec<&str> =
            topics().iter().flat_map(|(_, names)| *names).map(|name| name.key).collect();
        keys.sort_unstable();
        let twice: Vec<&str> =
            keys.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0]).collect();
        let mut known = OF_TWO_TYPES;
        known.sort_unstable();
        assert_eq!(twice, known);
    }

    #[test]
    fn names_follow_the_rules() {
        for name in topics().iter().flat_map(|(_, names)| *names) {
            let is = |prefix: &str| name.key.starts_with(prefix);
            let ends = |suffix: &str| name.key.ends_with(suffix);
            assert!(name.key.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{}", name.key);
            // Promised by the interfaces of `secrets` and `redact`.
            let is_promised = ["reachable", "equal"].contains(&name.key) && name.kind == ValueKind::Boolean;
            let is_boolean = is("is_") || is_promised;
            assert_eq!(name.kind == ValueKind::Boolean, is_boolean, "{}: booleans begin with is_", name.key);
            assert!(!ends("_bytes") || name.kind == ValueKind::Integer, "{}: sizes are integers", name.key);
            assert!(!ends("_percent") || name.kind == ValueKind::Float, "{}: shares are numbers", name.key);
            assert!(
                !ends("_object") || is("is_") || name.kind == ValueKind::Id,
                "{}: objects are IDs",
                name.key
            );
            assert!(!name.meaning.is_empty() && !name.meaning.ends_with('.'), "{}", name.key);
        }
    }
}
