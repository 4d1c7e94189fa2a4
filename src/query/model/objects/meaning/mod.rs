//! Meaning of objects of well-known classes: the text of a String, the number of a BigInteger, the day of a LocalDate.
//!
//! Only this module defines the fields of these classes. Labels are the same texts, truncated ([`super::label`]). Reading is
//! bounded, whatever the dump contains: by the number of characters, the number of objects read, and their nesting depth.

mod known;
mod number;
mod read;
mod stack;
mod text;
mod time;

use std::sync::Arc;

use rustc_hash::FxHashMap;

use hprof_index::Dump;
use hprof_index::graph::numbers::ObjectIndex;
use hprof_index::model::summary::{ClassNumber, Summary};
use hprof_values::BasicType;

use super::reader::{Characters, Instance, ObjectReader, ObjectRecord, PrimitiveArray};
use hprof_index::objects::fields::Fields;
use known::{KNOWN, ReadMethod};
use text::Text;

pub use number::{double, float};
pub use stack::ThrowableStack;

/// Maximum number of objects read in succession.
const MAX_STEPS: u32 = 5;

/// Meaning of an object as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Meaning {
    /// The meaning as text.
    pub text: String,
    /// `true` if the text is truncated.
    pub is_cut: bool,
}

/// Method of reading the instances of each class, and the known class that determines it; by class number.
#[derive(Debug)]
struct KnownClasses(Vec<Option<(ReadMethod, ClassNumber)>>);

/// Reader of the meanings of objects.
#[derive(Debug)]
pub struct Meanings<'a> {
    objects: ObjectReader<'a>,
    known: Arc<KnownClasses>,
}

impl KnownClasses {
    fn new(summary: &Summary) -> Self {
        let by_name: FxHashMap<&str, ReadMethod> = KNOWN.iter().copied().collect();
        let own = summary
            .numbered_classes()
            .map(|(number, class)| by_name.get(summary.class_name(class)).map(|how| (*how, number)));
        Self(summary.class_table().inherit(&own.collect::<Vec<_>>()))
    }
}

impl<'a> Meanings<'a> {
    /// Prepares reading the meanings of objects.
    pub fn new(dump: &Dump<'a>) -> Self {
        let known = dump.summary.get_or_compute(|| KnownClasses::new(dump.summary));
        Self { objects: dump.objects, known }
    }

    /// Returns the meaning of an object in at most `most` characters. Not escaped; an unpaired surrogate is `\udXXX`.
    pub fn meaning(&self, object: ObjectIndex, most: usize) -> Option<Meaning> {
        let mut text = Text::new(most, true);
        self.append(&mut text, object, MAX_STEPS)?;
        Some(Meaning { is_cut: text.is_cut(), text: text.into_text() })
    }

    /// Returns the meaning of an object as a short text; a truncated one ends with an ellipsis.
    pub fn short(&self, object: ObjectIndex, most: usize) -> Option<String> {
        let mut text = Text::new(most, false);
        self.append(&mut text, object, MAX_STEPS)?;
        Some(text.into_short())
    }

    /// Returns how an instance is read, and the fields that this uses.
    fn read_method(&self, whole: Fields<'a>) -> Option<(ReadMethod, Fields<'a>)> {
        let (how, known) = self.known.0.get(whole.class().0 as usize).copied().flatten()?;
        Some((how, whole.superclass_fields(known)?))
    }

    fn class_name(&self, class: ClassNumber) -> Option<&'a str> {
        self.objects.summary.class(class).map(|class| self.objects.summary.class_name(class))
    }

    /// Returns the object in a field; `None` if the field is null or missing.
    fn object(&self, fields: Fields<'a>, name: &str) -> Option<ObjectIndex> {
        self.objects.object(fields.value(name)?)
    }

    /// Returns the type and elements of the array of primitives in a field.
    fn primitives(&self, fields: Fields<'a>, name: &str) -> Option<(BasicType, &'a [u8])> {
        self.objects.primitives(self.object(fields, name)?)
    }

    fn append(&self, text: &mut Text, object: ObjectIndex, steps: u32) -> Option<()> {
        let steps = steps.checked_sub(1)?;
        text.look()?;
        let graph = self.objects.graph;
        if let Some(class) = graph.class_of_class_object(object) {
            text.push(self.class_name(class)?);
            return Some(());
        }
        match self.objects.record(object)? {
            // Buffers are padded with zeros.
            ObjectRecord::PrimitiveArray(PrimitiveArray {
                element: BasicType::Char,
                elements: Some(elements),
                ..
            }) => {
                let characters = Characters::Utf16Be(elements);
                let units = characters.unless_removed(self.objects.summary.missing_contents()).units();
                text.grow(|text| text.push_utf16(units.take_while(|unit| *unit != 0)))
            }
            ObjectRecord::Instance(Instance { fields, .. }) => {
                let whole = Fields::new(self.objects.summary, graph.objects.class(object)?, fields);
                let (how, fields) = self.read_method(whole)?;
                self.instance(text, how, fields, whole, steps)
            }
            _ => None,
        }
    }

    /// Appends the object in a field; returns `None` if that is null, or has no meaning.
    fn append_field(&self, text: &mut Text, fields: Fields<'a>, name: &str, steps: u32) -> Option<()> {
        self.append(text, self.object(fields, name)?, steps)
    }

    /// Returns the text of the object in a field; empty if it is null.
    fn text_of(&self, text: &mut Text, fields: Fields<'a>, name: &str, steps: u32) -> String {
        let mut part = text.part();
        let found = self.object(fields, name).and_then(|object| self.append(&mut part, object, steps));
        text.look_as(&part);
        found.map(|()| part.into_text()).unwrap_or_default()
    }
}
