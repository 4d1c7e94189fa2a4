//! Definition of a table: its columns with their types and meanings.

use std::borrow::Cow;

use hprof_base::dictionary::{self, ColumnKey};

/// Type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnType {
    /// An integer: 64 bits, signed.
    Integer,
    /// A floating-point number: 64 bits.
    Real,
    /// A boolean.
    Boolean,
    /// A text.
    Text,
    /// A text with few distinct values, such as the names of classes.
    Name,
    /// An object ID: 64 bits, as a signed number.
    Id,
}

impl ColumnType {
    /// Returns the declared type in SQL, which SQLite reports for the columns of a query.
    pub fn sql_type(self) -> &'static str {
        match self {
            Self::Integer => "INTEGER",
            Self::Real => "REAL",
            Self::Boolean => "BOOLEAN",
            Self::Text | Self::Name => "TEXT",
            Self::Id => "ID",
        }
    }
}

impl From<dictionary::ValueKind> for ColumnType {
    /// Converts a type of the dictionary. JSON lists and records become texts.
    fn from(kind: dictionary::ValueKind) -> Self {
        match kind {
            dictionary::ValueKind::Id => Self::Id,
            dictionary::ValueKind::Integer | dictionary::ValueKind::Signed => Self::Integer,
            dictionary::ValueKind::Float => Self::Real,
            dictionary::ValueKind::Boolean => Self::Boolean,
            _ => Self::Text,
        }
    }
}

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Name.
    pub name: Cow<'static, str>,
    /// Type.
    pub kind: ColumnType,
    /// Meaning, for human readers.
    pub meaning: Cow<'static, str>,
    /// Condition under which it is null, if it can be.
    pub null: Option<Cow<'static, str>>,
    /// `true` if it contains data of the heap, such as the text of a String, which may be secret.
    pub is_secret: bool,
}

impl Column {
    /// Creates a column that is never null.
    pub fn new(key: impl Into<ColumnKey>) -> Self {
        let ColumnKey { text, name, kind } = key.into();
        Self { name: text, kind: kind.into(), meaning: name.meaning.into(), null: None, is_secret: false }
    }

    /// Creates a column for a field of a class, which is never null.
    pub fn field(name: String, kind: ColumnType, meaning: String) -> Self {
        Self { name: name.into(), kind, meaning: meaning.into(), null: None, is_secret: false }
    }

    /// Marks the column as having few distinct texts.
    pub fn few(self) -> Self {
        Self { kind: ColumnType::Name, ..self }
    }

    /// Marks the column as null under a condition.
    pub fn or_null(self, when: impl Into<Cow<'static, str>>) -> Self {
        Self { null: Some(when.into()), ..self }
    }

    /// Marks the column as containing data of the heap.
    pub fn secret(self) -> Self {
        Self { is_secret: true, ..self }
    }
}

/// A table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition {
    /// Name.
    pub name: Cow<'static, str>,
    /// Meaning of a row, for human readers.
    pub meaning: Cow<'static, str>,
    /// Order of the rows, for human readers.
    pub order: Cow<'static, str>,
    /// Columns. Tables that every dump has have at most 64, see [`ColumnSet`].
    pub columns: Vec<Column>,
}

impl Definition {
    /// Returns the number of the column of this name.
    pub fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }
}

/// Set of requested columns; those from number 63 on share a bit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ColumnSet(pub u64);

impl ColumnSet {
    /// All columns.
    pub const ALL: Self = Self(u64::MAX);

    /// Returns whether a column is requested.
    #[inline]
    pub fn has(self, column: usize) -> bool {
        self.0 & (1 << column.min(63)) != 0
    }
}
