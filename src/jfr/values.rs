//! Fields of events and constants.

use std::borrow::Cow;
use std::ops::Range;

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
    /// Offset in the chunk.
    pub start: usize,
    /// Fields.
    pub fields: Record<'c>,
}

/// A value with fields: an event, a constant, or the value of a field.
#[derive(Debug, Clone, Copy)]
pub struct Record<'c> {
    chunk: &'c Chunk<'c>,
    class: usize,
    at: usize,
    end: usize,
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
    at: usize,
    end: usize,
}

/// How the value of a field is read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FieldRead {
    /// Type; `usize::MAX` if it is not known.
    class: usize,
    primitive: Option<Primitive>,
    is_constant: bool,
    is_array: bool,
}

impl Chunk<'_> {
    /// Returns the events whose type is described, in the order of the file.
    pub fn events(&self) -> impl Iterator<Item = Event<'_>> {
        self.events_in(0..usize::MAX)
    }

    /// Returns these events: those that start in a range of offsets, such as one of [`parts`], which starts with an event.
    /// What is before it is not read.
    ///
    /// [`parts`]: crate::chunk::parts
    pub fn events_in(&self, starts: Range<usize>) -> impl Iterator<Item = Event<'_>> {
        let first = self.runs.partition_point(|run| run.end <= starts.start);
        let runs = self.runs.get(first..).unwrap_or_default().iter();
        EventsOf { chunk: self, runs, events: None, starts }
    }

    /// Returns how a field is read; `None` if there is no such field.
    pub(crate) fn field_read(&self, class: usize, index: usize) -> Option<FieldRead> {
        let field = self.metadata.classes.get(class)?.fields.get(index)?;
        // The type of a key can be unknown: then it has no constants.
        let class = self.metadata.index_of(field.type_id).unwrap_or(usize::MAX);
        let primitive = self.plans.primitive(class);
        Some(FieldRead { class, primitive, is_constant: field.is_constant, is_array: field.is_array })
    }
}

/// Iterator over the events whose type is described.
struct EventsOf<'c> {
    chunk: &'c Chunk<'c>,
    runs: std::slice::Iter<'c, Range<usize>>,
    events: Option<Events<'c>>,
    starts: Range<usize>,
}

impl<'c> Iterator for EventsOf<'c> {
    type Item = Event<'c>;

    #[inline]
    fn next(&mut self) -> Option<Event<'c>> {
        loop {
            let Some(event) = self.events.as_mut().and_then(Iterator::next) else {
                let run = self.runs.next()?;
                let start = run.start.max(self.starts.start);
                self.events = Some(Events::from(self.chunk.reader.at(start).until(run.end)));
                continue;
            };
            let event = event.ok().filter(|event| event.start < self.starts.end)?;
            let Some(class) = self.chunk.metadata.index_of(event.type_id) else { continue };
            if let Some(fields) = Record::new(self.chunk, class, event.fields, event.end) {
                return Some(Event { class, start: event.start, fields });
            }
        }
    }
}

impl<'c> Record<'c> {
    #[inline]
    pub(crate) fn new(chunk: &'c Chunk<'c>, class: usize, at: usize, end: usize) -> Option<Self> {
        let is_readable = chunk.plans.is_readable(class);
        is_readable.then_some(Self { chunk, class, at, end })
    }

    #[inline]
    pub(crate) fn class_index(&self) -> usize {
        self.class
    }

    #[inline]
    pub(crate) fn reader(&self) -> Reader<'c> {
        self.chunk.reader.at(self.at).until(self.end)
    }

    /// Returns the chunk that contains the value.
    #[inline]
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
        let Some(read) = self.chunk.field_read(self.class, index) else { return Ok(None) };
        let mut reader = self.reader();
        self.chunk.plans.skip_to(self.class, index, &mut reader)?;
        read.value(self.chunk, &mut reader).map(Some)
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
    pub(crate) fn new(chunk: &'c Chunk<'c>, class: usize, key: i64) -> Self {
        Self { chunk, class, key }
    }

    /// Returns the chunk.
    pub fn chunk(&self) -> &'c Chunk<'c> {
        self.chunk
    }

    /// Returns the fields of the constant; `None` if the chunk does not contain it, as with key 0 for null.
    pub fn record(&self) -> Option<Record<'c>> {
        let at = self.chunk.pools.offset(self.class, self.key)?;
        Record::new(self.chunk, self.class, at, usize::MAX)
    }

    /// Returns the text of a string.
    pub fn text(&self) -> Option<Cow<'c, str>> {
        string(self.chunk, self.class, self.key)
    }
}

impl<'c> Array<'c> {
    pub(crate) fn chunk(&self) -> &'c Chunk<'c> {
        self.chunk
    }

    #[inline]
    pub(crate) fn class_index(&self) -> usize {
        self.class
    }

    #[inline]
    pub(crate) fn reader(&self) -> Reader<'c> {
        self.chunk.reader.at(self.at).until(self.end)
    }

    /// Returns whether elements are values with fields, not keys of constants.
    pub(crate) fn has_fields(&self) -> bool {
        !self.is_constant && self.chunk.plans.primitive(self.class).is_none()
    }

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
        let Self { chunk, class, is_constant, count, .. } = *self;
        let mut reader = self.reader();
        let primitive = chunk.plans.primitive(class);
        let element = FieldRead { class, primitive, is_constant, is_array: false };
        (0..count).map_while(move |_| {
            let value = element.value(chunk, &mut reader).ok()?;
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

impl FieldRead {
    /// Returns the type.
    pub(crate) fn class(&self) -> usize {
        self.class
    }

    /// Returns whether the value is the key of a constant.
    pub(crate) fn is_key(&self) -> bool {
        !self.is_array && self.is_constant
    }

    /// Returns whether the value is an integer.
    pub(crate) fn is_integer(&self) -> bool {
        let is_other =
            |primitive| matches!(primitive, Primitive::Text | Primitive::Float | Primitive::Double);
        !self.is_array && !self.is_constant && self.primitive.is_some_and(|primitive| !is_other(primitive))
    }

    /// Reads a key or an integer. The reader is moved over it exactly as by skipping it, which fails for the same bytes.
    #[inline]
    pub(crate) fn number(&self, reader: &mut Reader<'_>) -> Result<i64, FlightError> {
        match self.primitive.filter(|_| !self.is_constant) {
            Some(Primitive::Byte) => Ok(reader.u8()?.cast_signed().into()),
            Some(Primitive::Short) => reader.short(),
            Some(Primitive::Char) => reader.char(),
            Some(Primitive::Int) => reader.int(),
            _ => reader.long(),
        }
    }

    /// Reads a value. Of one with fields, the reader stays at its start.
    pub(crate) fn value<'c>(
        &self,
        chunk: &'c Chunk<'c>,
        reader: &mut Reader<'c>,
    ) -> Result<Value<'c>, FlightError> {
        let Self { class, is_constant, .. } = *self;
        if self.is_array {
            let stated = reader.count()?;
            let count = if !is_constant && chunk.plans.is_empty(class) { 0 } else { stated };
            let (at, end) = (reader.position(), reader.end());
            return Ok(Value::Array(Array { chunk, class, is_constant, count, at, end }));
        }
        if is_constant {
            return Ok(Value::Constant(Constant { chunk, class, key: self.number(reader)? }));
        }
        Ok(match self.primitive {
            Some(Primitive::Byte | Primitive::Short | Primitive::Char | Primitive::Int | Primitive::Long) => {
                Value::Integer(self.number(reader)?)
            }
            Some(Primitive::Float) => Value::Number(reader.f32()?.into()),
            Some(Primitive::Double) => Value::Number(reader.f64()?),
            Some(Primitive::Text) => Value::Text(match reader.text()? {
                Text::Null => None,
                Text::Inline(text) => Some(text),
                Text::Constant(key) => string(chunk, class, key),
            }),
            None => {
                let (at, end) = (reader.position(), reader.end());
                Value::Record(Record { chunk, class, at, end })
            }
        })
    }
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
