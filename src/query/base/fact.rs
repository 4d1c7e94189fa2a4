//! Facts of rows: each is declared once, with its name, its value, and the condition under which it has no value.
//!
//! JSON and CSV show the facts of a row in the order of their declaration. SQL and exported tables select them by name. A
//! command adds the facts that depend on its options.

use std::borrow::Cow;

use hprof_index::model::summary::ClassNumber;
use hprof_values::{ObjectId, TraceSerial};

use crate::dictionary::Name;

/// Value of a fact, before a renderer formats it.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum FactValue<'r> {
    /// Unknown or missing.
    #[default]
    Null,
    /// A boolean.
    Boolean(bool),
    /// A count, or a size in bytes.
    Integer(u64),
    /// A number that may be negative.
    Signed(i64),
    /// A number with a fraction.
    Float(f64),
    /// An object ID.
    Id(ObjectId),
    /// A text, as in the dump.
    Text(Cow<'r, str>),
    /// A class, shown by its name.
    Class(ClassNumber),
}

macro_rules! from {
    ($($kind:ty => |$value:ident| $made:expr;)*) => {$(
        impl<'r> From<$kind> for FactValue<'r> {
            fn from($value: $kind) -> Self {
                $made
            }
        }
    )*};
}

from! {
    bool => |value| Self::Boolean(value);
    u64 => |value| Self::Integer(value);
    u32 => |value| Self::Integer(value.into());
    i64 => |value| Self::Signed(value);
    f64 => |value| Self::Float(value);
    ObjectId => |value| Self::Id(value);
    TraceSerial => |value| Self::Integer(value.0.into());
    ClassNumber => |value| Self::Class(value);
    &'r str => |value| Self::Text(Cow::Borrowed(value));
    &'r String => |value| Self::Text(Cow::Borrowed(value));
    String => |value| Self::Text(Cow::Owned(value));
}

impl<'r, T: Into<FactValue<'r>>> From<Option<T>> for FactValue<'r> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

/// A fact of rows of type `R`: its name, and a function that returns its value.
#[derive(Debug)]
pub struct Fact<R> {
    /// Name, which has a type and a meaning.
    pub name: Name,
    /// Condition under which there is no value; `None` if there always is one.
    pub null: Option<&'static str>,
    /// `true` if it contains data of the heap, such as the text of a String, which may be secret.
    pub is_secret: bool,
    /// Returns the value of a row.
    pub value: for<'r> fn(&'r R) -> FactValue<'r>,
}

impl<R> Fact<R> {
    /// Creates a fact that every row has.
    pub const fn new(name: Name, value: for<'r> fn(&'r R) -> FactValue<'r>) -> Self {
        Self { name, null: None, is_secret: false, value }
    }

    /// Sets the condition under which there is no value.
    pub const fn or_null(self, when: &'static str) -> Self {
        Self { null: Some(when), ..self }
    }

    /// Marks the fact as data of the heap, which may be secret.
    pub const fn secret(self) -> Self {
        Self { is_secret: true, ..self }
    }
}
