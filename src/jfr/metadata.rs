//! Types of events and constants, as a chunk describes them.

use std::collections::HashMap;
use std::sync::Arc;

use crate::error::{FlightError, FlightErrorKind};
use crate::reader::{Reader, Text};

/// Maximum depth of nested elements and of nested values.
pub const MAX_DEPTH: usize = 32;

/// Types of the events and constants of a chunk.
#[derive(Debug, Default)]
pub struct Metadata {
    /// Types, in the order of the file.
    pub classes: Vec<Class>,
    /// Indices of types with small IDs, as those of the JVM are; [`NONE`] for no type.
    small: Vec<u32>,
    /// Indices of the other types. The file chooses their IDs, so the hash is seeded.
    by_id: HashMap<i64, usize>,
}

/// Maximum number of IDs that are looked up in a table. It is no larger than the metadata.
const MAX_SMALL: usize = 4096;
/// Maximum number of strings, and of all fields. A JVM has a few thousand.
const MAX_STRINGS: usize = 1 << 20;
/// Maximum number of types.
const MAX_TYPES: usize = if cfg!(test) { 1 << 10 } else { 1 << 16 };
/// Maximum length of the names of all types and fields, as a multiple of the length of the metadata, in which any number of
/// fields can share a name.
const MAX_NAMES: usize = 64;
/// Maximum length of a number that is written as a text.
const MAX_DIGITS: usize = 20;
/// No type.
const NONE: u32 = u32::MAX;

/// A type of events, constants or values.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Class {
    /// ID in this chunk.
    pub id: i64,
    /// Name, `jdk.ExecutionSample`.
    pub name: Arc<str>,
    /// Name of the supertype, `jdk.jfr.Event`; empty for none.
    pub super_name: Arc<str>,
    /// Fields, in the order of their values.
    pub fields: Vec<Field>,
    /// Indices of the fields, ascending by name: fields of events and constants are looked up by name.
    by_name: Vec<u32>,
}

/// A field of a type.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Field {
    /// Name.
    pub name: Arc<str>,
    /// ID of the type.
    pub type_id: i64,
    /// `true` if the value is the key of a constant.
    pub is_constant: bool,
    /// `true` if the value is an array.
    pub is_array: bool,
}

impl Class {
    /// Returns whether this is a type of events.
    pub fn is_event(&self) -> bool {
        &*self.super_name == "jdk.jfr.Event"
    }

    /// Returns the index of a field; of several with one name, the index of the first.
    pub fn field(&self, name: &str) -> Option<usize> {
        let field = |at: &u32| self.fields.get(*at as usize).map_or("", |field| &field.name);
        let first = self.by_name.partition_point(|at| field(at) < name);
        self.by_name.get(first).filter(|at| field(at) == name).map(|at| *at as usize)
    }

    fn sort_names(&mut self) {
        let fields = &self.fields;
        self.by_name = (0..).take(fields.len()).collect();
        self.by_name.sort_by_key(|at| fields.get(*at as usize).map(|field| &field.name));
    }
}

impl Metadata {
    /// Reads the types from the fields of a metadata event.
    pub(crate) fn read(mut reader: Reader<'_>) -> Result<Self, FlightError> {
        // Start, duration, ID of the metadata.
        for _ in 0..3 {
            reader.long()?;
        }
        let none: Arc<str> = "".into();
        let mut strings: Vec<Arc<str>> = Vec::new();
        let start = reader.position();
        let count = reader.count()?;
        if count > MAX_STRINGS {
            return Err(reader.error(FlightErrorKind::TooManyTypes));
        }
        for _ in 0..count {
            strings.push(match reader.text()? {
                Text::Inline(text) => match text.decode(usize::MAX)? {
                    text if text.is_empty() => Arc::clone(&none),
                    text => text.into(),
                },
                Text::Null | Text::Constant(_) => Arc::clone(&none),
            });
        }
        let mut metadata = Self::default();
        let (names, fields) = (0, 0);
        let mut elements =
            Elements { strings: &strings, none, metadata: &mut metadata, start, names, fields };
        elements.element(&mut reader, 0)?;
        let length = reader.position().saturating_sub(start);
        metadata.small = vec![NONE; length.min(MAX_SMALL)];
        for (index, class) in metadata.classes.iter_mut().enumerate() {
            class.sort_names();
            let small = usize::try_from(class.id).ok().and_then(|id| metadata.small.get_mut(id));
            match (small, u32::try_from(index)) {
                (Some(small), Ok(index)) => *small = index,
                _ => _ = metadata.by_id.insert(class.id, index),
            }
        }
        Ok(metadata)
    }

    /// Returns the index of the type with this ID.
    #[inline]
    pub fn index_of(&self, id: i64) -> Option<usize> {
        match usize::try_from(id).ok().and_then(|id| self.small.get(id)) {
            Some(index) => Some(*index as usize).filter(|_| *index != NONE),
            None => self.by_id.get(&id).copied(),
        }
    }

    /// Returns a type by its ID.
    pub fn class(&self, id: i64) -> Option<&Class> {
        self.classes.get(self.index_of(id)?)
    }

    /// Returns the index of the type with this name.
    pub fn index_of_name(&self, name: &str) -> Option<usize> {
        self.classes.iter().position(|class| &*class.name == name)
    }
}

/// Reader of the tree of elements.
struct Elements<'m> {
    strings: &'m [Arc<str>],
    /// The empty string.
    none: Arc<str>,
    metadata: &'m mut Metadata,
    /// Position at which the strings start.
    start: usize,
    /// Length of the names of types and fields so far.
    names: usize,
    /// Number of fields of all types.
    fields: usize,
}

/// Attributes of an element that are used. Of several with one name, the first counts.
#[derive(Default)]
struct Attributes<'m> {
    name: Option<&'m Arc<str>>,
    id: Option<&'m Arc<str>>,
    super_type: Option<&'m Arc<str>>,
    class: Option<&'m Arc<str>>,
    constant_pool: Option<&'m Arc<str>>,
    dimension: Option<&'m Arc<str>>,
}

impl<'m> Attributes<'m> {
    fn add(&mut self, key: &str, value: &'m Arc<str>) {
        let place = match key {
            "name" => &mut self.name,
            "id" => &mut self.id,
            "superType" => &mut self.super_type,
            "class" => &mut self.class,
            "constantPool" => &mut self.constant_pool,
            "dimension" => &mut self.dimension,
            _ => return,
        };
        place.get_or_insert(value);
    }
}

impl<'m> Elements<'m> {
    /// Reads an element with its attributes and children.
    fn element(&mut self, reader: &mut Reader<'_>, depth: usize) -> Result<(), FlightError> {
        let at = *reader;
        if depth > MAX_DEPTH {
            return Err(at.error(FlightErrorKind::TooDeep));
        }
        let name = self.string(reader)?;
        let mut attributes = Attributes::default();
        for _ in 0..reader.count()? {
            let key = self.string(reader)?;
            attributes.add(key, self.string(reader)?);
        }
        let id = |text: Option<&Arc<str>>| {
            text.filter(|text| text.len() <= MAX_DIGITS).and_then(|text| text.parse().ok()).unwrap_or(-1)
        };
        match &**name {
            "class" => {
                if self.metadata.classes.len() >= MAX_TYPES {
                    return Err(at.error(FlightErrorKind::TooManyTypes));
                }
                let class = Class {
                    id: id(attributes.id),
                    name: self.name(attributes.name, &at)?,
                    super_name: Arc::clone(attributes.super_type.unwrap_or(&self.none)),
                    ..Class::default()
                };
                self.metadata.classes.push(class);
            }
            "field" => {
                if self.fields >= MAX_STRINGS {
                    return Err(at.error(FlightErrorKind::TooManyTypes));
                }
                self.fields += 1;
                let field = Field {
                    name: self.name(attributes.name, &at)?,
                    type_id: id(attributes.class),
                    is_constant: attributes.constant_pool.is_some_and(|is_constant| &**is_constant == "true"),
                    is_array: attributes.dimension.is_some_and(|dimension| &**dimension != "0"),
                };
                if let Some(class) = self.metadata.classes.last_mut() {
                    class.fields.push(field);
                }
            }
            _ => {}
        }
        for _ in 0..reader.count()? {
            self.element(reader, depth + 1)?;
        }
        Ok(())
    }

    /// Returns the name of a type or a field.
    fn name(&mut self, name: Option<&Arc<str>>, at: &Reader<'_>) -> Result<Arc<str>, FlightError> {
        let name = name.unwrap_or(&self.none);
        self.names = self.names.saturating_add(name.len());
        // The number of bytes read, not of those left: the size that the event states can be damaged.
        let read = at.position().saturating_sub(self.start);
        if self.names > read.saturating_mul(MAX_NAMES) {
            return Err(at.error(FlightErrorKind::NamesTooLong));
        }
        Ok(Arc::clone(name))
    }

    fn string(&self, reader: &mut Reader<'_>) -> Result<&'m Arc<str>, FlightError> {
        let at = *reader;
        let index = usize::try_from(reader.int()?).ok();
        let string = index.and_then(|index| self.strings.get(index));
        string.ok_or_else(|| at.error(FlightErrorKind::StringIndex))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::{Chunk, Recording};
    use hprof_writer::flight::{FlightType, FlightWriter, LONG};
    use hprof_writer::hostile_keys::is_seeded;

    fn read(types: &[FlightType<'_>]) -> Result<(Metadata, usize), FlightError> {
        let mut made = FlightWriter::new(true);
        let start = made.position();
        made.metadata(types);
        let bytes = made.finish();
        let chunk = Chunk::read(&bytes, &Recording::new(&bytes).unwrap().chunks()[0])?;
        let tables = std::sync::Arc::clone(chunk.tables());
        drop(chunk);
        Ok((std::sync::Arc::into_inner(tables).unwrap().metadata, bytes.len() - start))
    }

    #[test]
    fn names_are_shared_up_to_a_multiple_of_the_metadata() {
        let name = "n".repeat(10_000);
        let (metadata, length) = read(&[(20, &name, &[(&name, LONG), ("x", LONG), (&name, LONG)])]).unwrap();
        let class = metadata.class(20).unwrap();
        assert!(class.fields.iter().step_by(2).all(|field| Arc::ptr_eq(&field.name, &class.name)));
        // Of fields with one name, the first.
        assert_eq!((class.field(&name), class.field("x"), class.field("")), (Some(0), Some(1), None));
        // The table of IDs is no larger than the metadata.
        assert!(metadata.small.len() <= length.min(MAX_SMALL), "{}", metadata.small.len());
        let fields = vec![(&*name, LONG); 1_000];
        let error = read(&[(20, "jdk.Sample", &fields)]).unwrap_err();
        assert_eq!(error.kind, FlightErrorKind::NamesTooLong);
    }

    /// A header states where the metadata starts, not where it ends: the bytes that follow it in the chunk must not raise the
    /// limit.
    #[test]
    fn bytes_after_the_metadata_allow_no_more_names() {
        let name = "n".repeat(10_000);
        let fields = vec![(&*name, LONG); 1_000];
        let mut made = FlightWriter::new(true);
        made.metadata(&[(20, "jdk.Sample", &fields)]);
        made.event(20, |body| body.raw(&[0; 1 << 20]));
        let bytes = made.finish();
        let error = Chunk::read(&bytes, &Recording::new(&bytes).unwrap().chunks()[0]).unwrap_err();
        assert_eq!(error.kind, FlightErrorKind::NamesTooLong);
    }

    /// The file chooses the IDs of types: without a seed it could choose those that collide.
    #[test]
    fn the_hash_of_ids_has_a_seed() {
        assert!(is_seeded(&Metadata::default().by_id));
    }

    #[test]
    fn too_many_types_are_an_error() {
        let types: Vec<FlightType<'_>> = (100..).take(MAX_TYPES).map(|id| (id, "T", &[][..])).collect();
        // With the primitive types there are more than the maximum.
        assert_eq!(read(&types).unwrap_err().kind, FlightErrorKind::TooManyTypes);
    }
}
