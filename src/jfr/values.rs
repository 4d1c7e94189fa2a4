//! Fields of events and constants.

use std::borrow::Cow;

use crate::chunk::Chunk;
use crate::error::FlightError;
use crate::events::Events;
use crate::metadata::Class;
use crate::plan::Primitive;
use crate::reader::{Reader, Text};

/// An event whose type is described by the metadata.
#[derive(Debug, Clone, Copy)]
pub struct Event<'c> {
    /// Index of the type in [`classes`](crate::metadata::Metadata::classes).
    pub class: usize,
    /// Fields.
    pub fields: Record<'c>,
}

/// A value with fields: an event, a constant, or the value of a field.
#[derive(Debug, Clone, Copy)]
pub struct Record<'c> {
    chunk: &'c Chunk<'c>,
    class: usize,
    reader: Reader<'c>,
}

/// Value of a field.
#[derive(Debug, Clone)]
pub enum Value<'c> {
    /// An integer, `boolean` or `char`.
    Integer(i64),
    /// A floating-point number.
    Number(f64),
    /// A string; `None` for null.
    Text(Option<Cow<'c, str>>),
    /// A constant.
    Constant(Constant<'c>),
    /// A value with fields.
    Record(Record<'c>),
    /// An array.
    Array(Array<'c>),
}

/// Reference to a constant.
#[derive(Debug, Clone, Copy)]
pub struct Constant<'c> {
    chunk: &'c Chunk<'c>,
    class: usize,
    /// Key among the constants of its type.
    pub key: i64,
}

/// An array of values.
#[derive(Debug, Clone, Copy)]
pub struct Array<'c> {
    chunk: &'c Chunk<'c>,
    class: usize,
    is_constant: bool,
    count: usize,
    reader: Reader<'c>,
}

impl Chunk<'_> {
    /// Returns the events whose type is described, in the order of the file.
    pub fn events(&self) -> impl Iterator<Item = Event<'_>> {
        let found = Events::new(self.bytes, self.base, self.header.is_compressed()).map_while(Result::ok);
        found.filter_map(|event| {
            let class = self.metadata.index_of(event.type_id)?;
            let fields = Record::new(self, class, event.fields, event.end)?;
            Some(Event { class, fields })
        })
    }
}

impl<'c> Record<'c> {
    pub(crate) fn new(chunk: &'c Chunk<'c>, class: usize, at: usize, end: usize) -> Option<Self> {
        let is_readable = chunk.plans.is_readable(class);
        is_readable.then(|| Self { chunk, class, reader: chunk.reader.at(at).until(end) })
    }

    /// Returns the chunk that contains the value.
    pub fn chunk(&self) -> &'c Chunk<'c> {
        self.chunk
    }

    /// Returns the type.
    pub fn class(&self) -> Option<&'c Class> {
        self.chunk.metadata.classes.get(self.class)
    }

    /// Returns the value of the field with this index; `None` if there is no such field.
    ///
    /// # Errors
    /// If the value is damaged.
    pub fn value(&self, index: usize) -> Result<Option<Value<'c>>, FlightError> {
        let Some(field) = self.class().and_then(|class| class.fields.get(index)) else { return Ok(None) };
        let metadata = &self.chunk.metadata;
        let mut reader = self.reader;
        self.chunk.plans.skip_to(self.class, index, &mut reader)?;
        // The type of a key can be unknown: then it has no constants.
        let class = metadata.index_of(field.type_id).unwrap_or(usize::MAX);
        if field.is_array {
            let stated = reader.count()?;
            let (chunk, is_constant) = (self.chunk, field.is_constant);
            let count = if !is_constant && self.chunk.plans.is_empty(class) { 0 } else { stated };
            return Ok(Some(Value::Array(Array { chunk, class, is_constant, count, reader })));
        }
        read(self.chunk, class, field.is_constant, &mut reader).map(Some)
    }

    /// Returns the value of a field; `None` if it is damaged or does not exist: JVMs differ in the fields of events.
    pub fn get(&self, name: &str) -> Option<Value<'c>> {
        self.value(self.class()?.field(name)?).ok().flatten()
    }

    /// Returns the value of an integer field.
    pub fn integer(&self, name: &str) -> Option<i64> {
        match self.get(name)? {
            Value::Integer(value) => Some(value),
            _ => None,
        }
    }

    /// Returns the value of a boolean field.
    pub fn is(&self, name: &str) -> bool {
        self.integer(name).is_some_and(|value| value != 0)
    }

    /// Returns the text of a field.
    pub fn text(&self, name: &str) -> Option<Cow<'c, str>> {
        match self.get(name)? {
            Value::Text(text) => text,
            Value::Constant(constant) => constant.text(),
            _ => None,
        }
    }

    /// Returns the constant that a field refers to.
    pub fn constant(&self, name: &str) -> Option<Constant<'c>> {
        match self.get(name)? {
            Value::Constant(constant) => Some(constant),
            _ => None,
        }
    }

    /// Returns the value of a field that has fields itself.
    pub fn record(&self, name: &str) -> Option<Record<'c>> {
        match self.get(name)? {
            Value::Record(record) => Some(record),
            Value::Constant(constant) => constant.record(),
            _ => None,
        }
    }

    /// Returns the values of an array.
    pub fn array(&self, name: &str) -> Option<Array<'c>> {
        match self.get(name)? {
            Value::Array(array) => Some(array),
            _ => None,
        }
    }
}

impl<'c> Constant<'c> {
    /// Returns the fields of the constant; `None` if the chunk does not contain it, as with key 0 for null.
    pub fn record(&self) -> Option<Record<'c>> {
        let at = self.chunk.pools.offset(self.class, self.key)?;
        let is_readable = self.chunk.plans.is_readable(self.class);
        let reader = self.chunk.reader.at(at);
        is_readable.then_some(Record { chunk: self.chunk, class: self.class, reader })
    }

    /// Returns the text of a string.
    pub fn text(&self) -> Option<Cow<'c, str>> {
        string(self.chunk, self.class, self.key)
    }
}

impl<'c> Array<'c> {
    /// Returns the number of elements, as stated.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Returns whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns the elements, up to the first that is damaged.
    pub fn values(&self) -> impl Iterator<Item = Value<'c>> + use<'c> {
        let Self { chunk, class, is_constant, count, mut reader } = *self;
        (0..count).map_while(move |_| {
            let value = read(chunk, class, is_constant, &mut reader).ok()?;
            if let Value::Record(_) = value {
                chunk.plans.skip(class, &mut reader).ok()?;
            }
            Some(value)
        })
    }

    /// Returns the elements that have fields.
    pub fn records(&self) -> impl Iterator<Item = Record<'c>> + use<'c> {
        self.values().filter_map(|value| match value {
            Value::Record(record) => Some(record),
            Value::Constant(constant) => constant.record(),
            _ => None,
        })
    }
}

/// Reads a value. Of one with fields, the reader stays at its start.
fn read<'c>(
    chunk: &'c Chunk<'c>,
    class: usize,
    is_constant: bool,
    reader: &mut Reader<'c>,
) -> Result<Value<'c>, FlightError> {
    if is_constant {
        return Ok(Value::Constant(Constant { chunk, class, key: reader.long()? }));
    }
    Ok(match chunk.plans.primitive(class) {
        Some(Primitive::Byte) => Value::Integer(reader.u8()?.cast_signed().into()),
        Some(Primitive::Short) => Value::Integer(reader.short()?),
        Some(Primitive::Char) => Value::Integer(reader.char()?),
        Some(Primitive::Int) => Value::Integer(reader.int()?),
        Some(Primitive::Long) => Value::Integer(reader.long()?),
        Some(Primitive::Float) => Value::Number(reader.f32()?.into()),
        Some(Primitive::Double) => Value::Number(reader.f64()?),
        Some(Primitive::Text) => Value::Text(match reader.text()? {
            Text::Null => None,
            Text::Inline(text) => Some(text),
            Text::Constant(key) => string(chunk, class, key),
        }),
        None => Value::Record(Record { chunk, class, reader: *reader }),
    })
}

/// Returns a constant string. One that is again a key of a constant is not followed.
fn string<'c>(chunk: &'c Chunk<'c>, class: usize, key: i64) -> Option<Cow<'c, str>> {
    if chunk.plans.primitive(class) != Some(Primitive::Text) {
        return None;
    }
    match chunk.reader.at(chunk.pools.offset(class, key)?).text().ok()? {
        Text::Inline(text) => Some(text),
        Text::Null | Text::Constant(_) => None,
    }
}
