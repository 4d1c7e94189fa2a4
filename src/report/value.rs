//! Unformatted values of cells.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use serde::ser::{Serialize, SerializeMap, Serializer};

use super::digits;
use hprof_query::dictionary::Name;
use hprof_query::fact::FactValue;
use hprof_values::{ObjectId, TraceSerial};

/// Value of a cell. Texts are raw, as in the dump; each renderer escapes them.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Value<'a> {
    /// Unknown or missing value: `null` in JSON, empty elsewhere.
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
    /// An object ID, `0x7c00012a8`.
    Id(ObjectId),
    /// A text.
    Text(Cow<'a, str>),
    /// A text that CSV does not escape: a number with the digits that Java prints, or a text that is already escaped.
    Verbatim(Cow<'a, str>),
    /// A list; in CSV one cell with the values joined by `; `.
    List(Vec<Value<'a>>),
    /// A record; in CSV one column for each field that the column declares, otherwise `key=value` in one cell.
    Record(Vec<(Cow<'a, str>, Value<'a>)>),
    /// A list whose values are generated as they are written.
    LazyList(LazyList<'a>),
}

/// List whose values are generated as it is written, and need not fit into memory.
#[derive(Clone)]
pub struct LazyList<'a>(Arc<dyn MakeValues + Send + Sync + 'a>);

/// Source of a list's values. It is a trait, so that [`Value`] is covariant.
trait MakeValues {
    fn make(&self) -> Box<dyn Iterator<Item = Value<'static>> + '_>;
}

struct Maker<F, I>(F, PhantomData<fn() -> I>);

impl<F: Fn() -> I, I: Iterator<Item = Value<'static>>> MakeValues for Maker<F, I> {
    fn make(&self) -> Box<dyn Iterator<Item = Value<'static>> + '_> {
        Box::new((self.0)())
    }
}

impl<'a> LazyList<'a> {
    /// Creates a list of the values that `make` returns. `make` is called each time the list is written.
    pub fn new<I: Iterator<Item = Value<'static>> + 'a>(make: impl Fn() -> I + Send + Sync + 'a) -> Self {
        Self(Arc::new(Maker(make, PhantomData)))
    }

    /// Generates the values of the list.
    pub fn values(&self) -> impl Iterator<Item = Value<'static>> + '_ {
        self.0.make()
    }
}

impl fmt::Debug for LazyList<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Each")
    }
}

impl PartialEq for LazyList<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.values().eq(other.values())
    }
}

impl Value<'_> {
    /// Returns the value of a key in a record; a dot in the key refers to a nested record. `Null` if there is no value.
    pub(super) fn at(&self, key: &str) -> &Self {
        let Self::Record(values) = self else { return &Self::Null };
        match (values.iter().find(|(known, _)| known == key), key.split_once('.')) {
            (Some((_, value)), _) => value,
            (None, Some((outer, inner))) => self.at(outer).at(inner),
            (None, None) => &Self::Null,
        }
    }

    /// Returns the value without borrowed data.
    pub fn into_owned(self) -> Value<'static> {
        match self {
            Self::Null => Value::Null,
            Self::Boolean(value) => Value::Boolean(value),
            Self::Integer(value) => Value::Integer(value),
            Self::Signed(value) => Value::Signed(value),
            Self::Float(value) => Value::Float(value),
            Self::Id(value) => Value::Id(value),
            Self::Text(text) => Value::Text(Cow::Owned(text.into_owned())),
            Self::Verbatim(text) => Value::Verbatim(Cow::Owned(text.into_owned())),
            Self::List(values) => Value::List(values.into_iter().map(Value::into_owned).collect()),
            Self::Record(values) => Value::Record(
                values
                    .into_iter()
                    .map(|(key, value)| (Cow::Owned(key.into_owned()), value.into_owned()))
                    .collect(),
            ),
            Self::LazyList(each) => Value::List(each.values().collect()),
        }
    }
}

impl<'a> From<FactValue<'a>> for Value<'a> {
    /// Converts the value of a fact. A class becomes `null`, because its name is known only with the dump.
    fn from(value: FactValue<'a>) -> Self {
        match value {
            FactValue::Null | FactValue::Class(_) => Self::Null,
            FactValue::Boolean(value) => Self::Boolean(value),
            FactValue::Integer(value) => Self::Integer(value),
            FactValue::Signed(value) => Self::Signed(value),
            FactValue::Float(value) => Self::Float(value),
            FactValue::Id(value) => Self::Id(value),
            FactValue::Text(text) => Self::Text(text),
        }
    }
}

macro_rules! from {
    ($($kind:ty => |$value:ident| $made:expr;)*) => {$(
        impl<'a> From<$kind> for Value<'a> {
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
    u16 => |value| Self::Integer(value.into());
    u8 => |value| Self::Integer(value.into());
    usize => |value| Self::Integer(value as u64);
    i64 => |value| Self::Signed(value);
    i32 => |value| Self::Signed(value.into());
    f64 => |value| Self::Float(value);
    &'a str => |value| Self::Text(Cow::Borrowed(value));
    &'a String => |value| Self::Text(Cow::Borrowed(value));
    String => |value| Self::Text(Cow::Owned(value));
    Cow<'a, str> => |value| Self::Text(value);
    Vec<Value<'a>> => |value| Self::List(value);
    LazyList<'a> => |value| Self::LazyList(value);
}

impl<'a, T: Into<Value<'a>>> From<Option<T>> for Value<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

impl From<TraceSerial> for Value<'_> {
    fn from(serial: TraceSerial) -> Self {
        Value::Integer(serial.0.into())
    }
}

/// Converts the serialized form of a library type, such as a record of figures.
impl From<serde_json::Value> for Value<'_> {
    fn from(value: serde_json::Value) -> Self {
        use serde_json::Value as Json;
        match value {
            Json::Null => Self::Null,
            Json::Bool(value) => Self::Boolean(value),
            Json::Number(number) => match (number.as_u64(), number.as_i64()) {
                (Some(number), _) => Self::Integer(number),
                (None, Some(number)) => Self::Signed(number),
                (None, None) => number.as_f64().map_or(Self::Null, Self::Float),
            },
            Json::String(text) => text.into(),
            Json::Array(values) => list(values),
            Json::Object(values) => {
                Self::Record(values.into_iter().map(|(key, value)| (key.into(), value.into())).collect())
            }
        }
    }
}

/// Creates a record from names and values.
pub fn record<'a, const N: usize>(values: [(Name, Value<'a>); N]) -> Value<'a> {
    Value::Record(values.into_iter().map(|(name, value)| (Cow::Borrowed(name.key), value)).collect())
}

/// Creates a list of values.
pub fn list<'a, T: Into<Value<'a>>>(values: impl IntoIterator<Item = T>) -> Value<'a> {
    Value::List(values.into_iter().map(Into::into).collect())
}

/// Creates an object ID, or `null` for `None`.
pub fn id<'a>(id: impl Into<Option<ObjectId>>) -> Value<'a> {
    id.into().map_or(Value::Null, Value::Id)
}

/// Serializes as in JSON: object IDs are hex strings.
impl Serialize for Value<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Boolean(value) => serializer.serialize_bool(*value),
            Self::Integer(value) => serializer.serialize_u64(*value),
            Self::Signed(value) => serializer.serialize_i64(*value),
            Self::Float(value) => serializer.serialize_f64(*value),
            Self::Id(id) => serializer.serialize_str(digits::prefixed_hex(id.0, &mut [0; 18])),
            Self::Text(text) | Self::Verbatim(text) => serializer.serialize_str(text),
            Self::List(values) => serializer.collect_seq(values),
            Self::LazyList(each) => serializer.collect_seq(each.values()),
            Self::Record(values) => {
                let mut map = serializer.serialize_map(Some(values.len()))?;
                values.iter().try_for_each(|(key, value)| map.serialize_entry(key, value))?;
                map.end()
            }
        }
    }
}
