//! Types of events and constants, as a chunk describes them.

use rustc_hash::FxHashMap;

use crate::error::{FlightError, FlightErrorKind};
use crate::reader::{Reader, Text};

/// Maximum depth of nested elements and of nested values.
pub const MAX_DEPTH: usize = 32;

/// Types of a chunk.
#[derive(Debug, Default)]
pub struct Metadata {
    /// Types, in the order of the file.
    pub classes: Vec<Class>,
    /// Indices of types with small IDs, as those of the JVM are; [`NONE`] for no type.
    small: Vec<u32>,
    /// Indices of the other types.
    by_id: FxHashMap<i64, usize>,
}

/// Number of IDs that are looked up in a table.
const SMALL: usize = 4096;
/// No type.
const NONE: u32 = u32::MAX;

/// A type.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Class {
    /// ID in this chunk.
    pub id: i64,
    /// Name, `jdk.ExecutionSample`.
    pub name: String,
    /// Name of the supertype, `jdk.jfr.Event`; empty for none.
    pub super_name: String,
    /// Fields, in the order of their values.
    pub fields: Vec<Field>,
}

/// A field.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Field {
    /// Name.
    pub name: String,
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
        self.super_name == "jdk.jfr.Event"
    }

    /// Returns the index of a field.
    pub fn field(&self, name: &str) -> Option<usize> {
        self.fields.iter().position(|field| field.name == name)
    }
}

impl Metadata {
    /// Reads the fields of a metadata event.
    pub(crate) fn read(mut reader: Reader<'_>) -> Result<Self, FlightError> {
        // Start, duration, ID of the metadata.
        for _ in 0..3 {
            reader.long()?;
        }
        let mut strings = Vec::new();
        for _ in 0..reader.count()? {
            strings.push(match reader.text()? {
                Text::Inline(text) => text.into_owned(),
                Text::Null | Text::Constant(_) => String::new(),
            });
        }
        let mut metadata = Self::default();
        Elements { strings: &strings, metadata: &mut metadata }.element(&mut reader, 0)?;
        metadata.small = vec![NONE; SMALL];
        for (index, class) in metadata.classes.iter().enumerate() {
            let small = usize::try_from(class.id).ok().and_then(|id| metadata.small.get_mut(id));
            match (small, u32::try_from(index)) {
                (Some(small), Ok(index)) => *small = index,
                _ => _ = metadata.by_id.insert(class.id, index),
            }
        }
        Ok(metadata)
    }

    /// Returns the index of a type.
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
    pub fn named(&self, name: &str) -> Option<usize> {
        self.classes.iter().position(|class| class.name == name)
    }
}

/// Reader of the tree of elements.
struct Elements<'m> {
    strings: &'m [String],
    metadata: &'m mut Metadata,
}

impl Elements<'_> {
    /// Reads an element with its attributes and children.
    fn element(&mut self, reader: &mut Reader<'_>, depth: usize) -> Result<(), FlightError> {
        if depth > MAX_DEPTH {
            return Err(reader.error(FlightErrorKind::TooDeep));
        }
        let name = self.string(reader)?;
        let mut attributes = Vec::new();
        for _ in 0..reader.count()? {
            attributes.push((self.string(reader)?, self.string(reader)?));
        }
        let attribute = |wanted| attributes.iter().find(|(key, _)| *key == wanted).map(|(_, value)| *value);
        let text = |wanted| attribute(wanted).unwrap_or_default().to_owned();
        let id = |wanted| attribute(wanted).and_then(|value| value.parse().ok()).unwrap_or(-1);
        match name {
            "class" => self.metadata.classes.push(Class {
                id: id("id"),
                name: text("name"),
                super_name: text("superType"),
                fields: Vec::new(),
            }),
            "field" => {
                let field = Field {
                    name: text("name"),
                    type_id: id("class"),
                    is_constant: attribute("constantPool") == Some("true"),
                    is_array: attribute("dimension").is_some_and(|dimension| dimension != "0"),
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

    fn string<'s>(&self, reader: &mut Reader<'_>) -> Result<&'s str, FlightError>
    where
        Self: 's,
    {
        let at = *reader;
        let index = usize::try_from(reader.int()?).ok();
        let string = index.and_then(|index| self.strings.get(index));
        string.map(String::as_str).ok_or_else(|| at.error(FlightErrorKind::StringIndex))
    }
}
