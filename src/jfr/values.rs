//! Fields of events and constants.

use std::borrow::Cow;
use std::ops::Range;

use crate::chunk::{Chunk, EventPlace, SelectedEvents};
use crate::error::FlightError;
use crate::events::Events;
use crate::metadata::Class;
use crate::plan::Primitive;
use crate::reader::{InlineText, Reader, Text};

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

/// Range of one or more values of a type in a chunk.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ValueRange<'c> {
    pub(crate) chunk: &'c Chunk<'c>,
    pub(crate) class: usize,
    at: usize,
    end: usize,
}

impl<'c> ValueRange<'c> {
    #[inline]
    pub(crate) fn reader(&self) -> Reader<'c> {
        self.chunk.reader.at(self.at).until(self.end)
    }
}

/// A value with fields: an event, a constant, or the value of a field.
#[derive(Debug, Clone, Copy)]
pub struct Record<'c> {
    pub(crate) place: ValueRange<'c>,
}

/// Value of a field.
#[derive(Debug, Clone)]
pub enum Value<'c> {
    /// An integer, `boolean` or `char`.
    Integer(i64),
    /// A floating-point number.
    Number(f64),
    /// A string.
    Text(StringValue<'c>),
    /// A constant.
    Constant(Constant<'c>),
    /// A value with fields.
    Record(Record<'c>),
    /// An array.
    Array(Array<'c>),
}

/// A string, which is decoded only by [`StringValue::decode`]: any number of values can refer to one long text.
#[derive(Debug, Clone, Copy)]
pub struct StringValue<'c>(EncodedText<'c>);

/// Form of a string in the chunk.
#[derive(Debug, Clone, Copy)]
enum EncodedText<'c> {
    Null,
    Constant(Constant<'c>),
    Inline(InlineText<'c>),
}

/// Reference to a constant.
#[derive(Debug, Clone, Copy)]
pub struct Constant<'c> {
    chunk: &'c Chunk<'c>,
    class: usize,
    key: i64,
}

/// Number of a constant in its chunk. Both parts are dense: unlike keys, which the file chooses freely, numbers cannot be chosen
/// to collide in a hash table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConstantNumber {
    /// Index of the type in [`classes`](crate::metadata::Metadata::classes).
    pub class: usize,
    /// Number among the constants of the type: at most a small multiple of their count.
    pub number: usize,
}

/// An array of values.
#[derive(Debug, Clone, Copy)]
pub struct Array<'c> {
    pub(crate) place: ValueRange<'c>,
    is_constant: bool,
    count: usize,
}

/// Type of a field, and how its values are encoded.
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

    /// Returns the events that start in a range of offsets, such as one of [`parts`], which starts with an event. Earlier bytes
    /// are not read.
    ///
    /// [`parts`]: crate::chunk::parts
    pub fn events_in(&self, starts: Range<usize>) -> impl Iterator<Item = Event<'_>> {
        let first = self.runs.partition_point(|run| run.end <= starts.start);
        let runs = self.runs.get(first..).unwrap_or_default().iter();
        EventsOf { chunk: self, runs, events: None, starts }
    }

    /// Returns the events that were selected when the chunk was read ([`Chunk::read_selecting`]), in the order of the file.
    pub fn selected_events(&self) -> impl Iterator<Item = Event<'_>> {
        let SelectedEvents { is_selected, places, rest } = &self.selected;
        let stored = places.iter().filter_map(|place| {
            let EventPlace { class, start, fields, end } = *place;
            let fields = Record::new(self, class as usize, fields as usize, end as usize)?;
            Some(Event { class: class as usize, start: start as usize, fields })
        });
        let is_selected = |event: &Event<'_>| is_selected.get(event.class) == Some(&true);
        stored.chain(self.events_in(*rest..usize::MAX).filter(is_selected))
    }

    /// Returns the type and encoding of a field; `None` if there is no such field.
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
        is_readable.then_some(Self { place: ValueRange { chunk, class, at, end } })
    }

    /// Returns the chunk that contains the value.
    #[inline]
    pub fn chunk(&self) -> &'c Chunk<'c> {
        self.place.chunk
    }

    /// Returns the type of the value.
    pub fn class(&self) -> Option<&'c Class> {
        self.chunk().metadata.classes.get(self.place.class)
    }

    /// Returns the value of the field with this index; `None` if there is no such field.
    ///
    /// # Errors
    /// If the value is damaged.
    pub fn value(&self, index: usize) -> Result<Option<Value<'c>>, FlightError> {
        let ValueRange { chunk, class, .. } = self.place;
        let Some(read) = chunk.field_read(class, index) else { return Ok(None) };
        let mut reader = self.place.reader();
        chunk.plans.skip_to(class, index, &mut reader)?;
        read.value(chunk, &mut reader).map(Some)
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

    /// Returns the value of a boolean field; `false` if there is none.
    pub fn is(&self, name: &str) -> bool {
        self.integer(name).is_some_and(|value| value != 0)
    }

    /// Returns the string in a field.
    pub fn string(&self, name: &str) -> Option<StringValue<'c>> {
        match self.get(name)? {
            Value::Text(text) => Some(text),
            Value::Constant(constant) => Some(constant.string()),
            _ => None,
        }
    }

    /// Returns the text of a field, decoded like [`StringValue::decode`].
    pub fn text(&self, name: &str, max_bytes: usize) -> Option<Cow<'c, str>> {
        self.string(name)?.decode(max_bytes)
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

    /// Returns the array in a field.
    pub fn array(&self, name: &str) -> Option<Array<'c>> {
        match self.get(name)? {
            Value::Array(array) => Some(array),
            _ => None,
        }
    }
}

impl<'c> StringValue<'c> {
    /// Returns the length that the file states for the text, in bytes or UTF-16 units; 0 for null, and for a text that the chunk
    /// does not contain.
    pub fn stated_len(&self) -> usize {
        let text = match self.0 {
            EncodedText::Null => None,
            EncodedText::Constant(constant) => constant.inline(),
            EncodedText::Inline(text) => Some(text),
        };
        text.map_or(0, |text| text.stated_len())
    }

    /// Returns the text, truncated after the last character that ends within `max_bytes`: no more is decoded. `None` for null,
    /// and for a text that is damaged.
    pub fn decode(&self, max_bytes: usize) -> Option<Cow<'c, str>> {
        match self.0 {
            EncodedText::Null => None,
            EncodedText::Constant(constant) => constant.inline()?.decode(max_bytes).ok(),
            EncodedText::Inline(text) => text.decode(max_bytes).ok(),
        }
    }
}

impl<'c> Constant<'c> {
    pub(crate) fn new(chunk: &'c Chunk<'c>, class: usize, key: i64) -> Self {
        Self { chunk, class, key }
    }

    /// Returns the chunk that contains the reference.
    pub fn chunk(&self) -> &'c Chunk<'c> {
        self.chunk
    }

    /// Returns the index of the constant's type in [`classes`](crate::metadata::Metadata::classes); `usize::MAX` if the type is
    /// not described.
    #[inline]
    pub fn class_index(&self) -> usize {
        self.class
    }

    /// Returns the key of the constant, which is unique among the constants of its type.
    #[inline]
    pub fn key(&self) -> i64 {
        self.key
    }

    /// Returns the number of the constant; `None` if the chunk does not contain the constant, as with key 0 for null.
    #[inline]
    pub fn number(&self) -> Option<ConstantNumber> {
        let number = self.chunk.pools.number(self.class, self.key)?;
        Some(ConstantNumber { class: self.class, number })
    }

    /// Returns the first key of the constants of this type, if these are numbered by their keys from it.
    pub fn first_key(&self) -> Option<i64> {
        self.chunk.pools.first_key(self.class)
    }

    /// Returns the fields of the constant; `None` if the chunk does not contain it.
    pub fn record(&self) -> Option<Record<'c>> {
        let at = self.chunk.pools.offset(self.class, self.key)?;
        Record::new(self.chunk, self.class, at, usize::MAX)
    }

    /// Returns the constant as a string. If the string is itself the key of a constant, that is not followed.
    pub fn string(&self) -> StringValue<'c> {
        StringValue(EncodedText::Constant(*self))
    }

    /// Returns the text of the constant, if it is a string.
    fn inline(&self) -> Option<InlineText<'c>> {
        if self.chunk.plans.primitive(self.class) != Some(Primitive::Text) {
            return None;
        }
        match self.chunk.reader.at(self.chunk.pools.offset(self.class, self.key)?).text_start().ok()? {
            Text::Inline(text) => Some(text),
            Text::Null | Text::Constant(_) => None,
        }
    }
}

impl<'c> Array<'c> {
    /// Returns whether elements are values with fields, not keys of constants.
    pub(crate) fn has_fields(&self) -> bool {
        !self.is_constant && self.place.chunk.plans.primitive(self.place.class).is_none()
    }

    /// Returns the index of the type of the elements.
    pub fn class_index(&self) -> usize {
        self.place.class
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
        let Self { place: ValueRange { chunk, class, .. }, is_constant, count } = *self;
        let mut reader = self.place.reader();
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

    /// Returns the elements that have fields, including constants that elements refer to.
    pub fn records(&self) -> impl Iterator<Item = Record<'c>> + use<'c> {
        self.values().filter_map(|value| match value {
            Value::Record(record) => Some(record),
            Value::Constant(constant) => constant.record(),
            _ => None,
        })
    }
}

impl FieldRead {
    /// Returns the index of the field's type; `usize::MAX` if it is not known.
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

    /// Reads a value. For a value with fields, the reader is left at its start.
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
            return Ok(Value::Array(Array {
                place: ValueRange { chunk, class, at, end },
                is_constant,
                count,
            }));
        }
        if is_constant {
            return Ok(Value::Constant(Constant::new(chunk, class, self.number(reader)?)));
        }
        Ok(match self.primitive {
            Some(Primitive::Byte | Primitive::Short | Primitive::Char | Primitive::Int | Primitive::Long) => {
                Value::Integer(self.number(reader)?)
            }
            Some(Primitive::Float) => Value::Number(reader.f32()?.into()),
            Some(Primitive::Double) => Value::Number(reader.f64()?),
            Some(Primitive::Text) => Value::Text(StringValue(match reader.text()? {
                Text::Null => EncodedText::Null,
                Text::Inline(text) => EncodedText::Inline(text),
                Text::Constant(key) => EncodedText::Constant(Constant::new(chunk, class, key)),
            })),
            None => {
                let (at, end) = (reader.position(), reader.end());
                Value::Record(Record { place: ValueRange { chunk, class, at, end } })
            }
        })
    }
}
