//! What a table has: its columns, their types and meanings.

use std::borrow::Cow;

use crate::dictionary::{self, ColumnKey};

/// The type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnType {
    /// A whole number, 64 bits, signed.
    Integer,
    /// A floating-point number, 64 bits.
    Real,
    /// Truth.
    Boolean,
    /// A text.
    Text,
    /// A text of few different values, such as the names of classes.
    Name,
    /// An object ID: 64 bits, as a signed number.
    Id,
}

impl ColumnType {
    /// The declared type in SQL. SQLite shows it to who asks for the types of a query's columns.
    pub fn declared(self) -> &'static str {
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
    /// The type in a table. What is a list or a record in JSON is a text.
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
    /// Its name.
    pub name: Cow<'static, str>,
    /// Its type.
    pub kind: ColumnType,
    /// What it says; for people.
    pub meaning: Cow<'static, str>,
    /// When it is null, if it can be.
    pub null: Option<Cow<'static, str>>,
    /// Whether it holds what was in the heap, such as the text of a String: it may be secret.
    pub is_secret: bool,
}

impl Column {
    /// A column that is never null.
    pub fn of(key: impl Into<ColumnKey>) -> Self {
        let ColumnKey { text, name, kind } = key.into();
        Self { name: text, kind: kind.into(), meaning: name.meaning.into(), null: None, is_secret: false }
    }

    /// A field of a class, which is never null.
    pub fn field(name: String, kind: ColumnType, meaning: String) -> Self {
        Self { name: name.into(), kind, meaning: meaning.into(), null: None, is_secret: false }
    }

    /// The same, with few different texts.
    pub fn few(self) -> Self {
        Self { kind: ColumnType::Name, ..self }
    }

    /// The same, but it may be null.
    pub fn or_null(self, when: impl Into<Cow<'static, str>>) -> Self {
        Self { null: Some(when.into()), ..self }
    }

    /// The same, but it holds what was in the heap.
    pub fn secret(self) -> Self {
        Self { is_secret: true, ..self }
    }
}

/// A table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition {
    /// Its name.
    pub name: Cow<'static, str>,
    /// What a row is; for people.
    pub meaning: Cow<'static, str>,
    /// The order of its rows; for people.
    pub order: Cow<'static, str>,
    /// Its columns. Tables that every dump has have at most 64, see [`Wanted`].
    pub columns: Vec<Column>,
}

impl Definition {
    /// The number of the column of this name.
    pub fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }
}

/// Which columns are wanted: those from number 63 on together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted(pub u64);

impl Wanted {
    /// All columns.
    pub const ALL: Self = Self(u64::MAX);

    /// Whether a column is.
    #[inline]
    pub fn has(self, column: usize) -> bool {
        self.0 & (1 << column.min(63)) != 0
    }
}
