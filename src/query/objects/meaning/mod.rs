//! What objects of well-known classes mean: the text of a String, the number of a BigInteger, the day of a LocalDate.
//!
//! The one place that knows the fields of these classes. Labels are the same, cut short ([`super::label`]). Reading is
//! bounded, whatever the dump holds: by the characters that are wanted, by the objects that are looked at, and by how
//! deep they lie in each other.

mod known;
mod number;
mod read;
mod stack;
mod text;
mod time;

use rustc_hash::FxHashMap;

use crate::hprof::heap::{Instance, PrimitiveArray};
use crate::hprof::{BasicType, IdSize, be_u16, be_value};
use crate::index::ObjectGraph;
use crate::index::model::summary::{ClassNumber, Summary};

use super::reader::{Bits, Record, record_at};
use known::{How, KNOWN};
use text::Text;

pub use number::{double, float};
pub use stack::Stack;

/// Fields that are looked at to find one.
const MAX_FIELDS: usize = 4096;
/// Objects that are looked at, one behind the other.
const MAX_STEPS: u32 = 5;

/// What an object means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Meaning {
    /// As text.
    pub text: String,
    /// Whether that is only its start.
    pub is_cut: bool,
}

/// Knows what objects of a heap mean.
#[derive(Debug)]
pub struct Meanings<'a> {
    summary: &'a Summary,
    graph: &'a ObjectGraph,
    bytes: &'a [u8],
    /// By class number: how its instances are read, and the class that says so.
    known: Vec<Option<(How, ClassNumber)>>,
    /// Class objects and their classes, ascending.
    class_objects: Vec<(u32, ClassNumber)>,
}

/// The fields of an instance, from those of a class on upwards.
#[derive(Clone, Copy)]
struct Fields<'a> {
    class: ClassNumber,
    bytes: &'a [u8],
}

impl<'a> Meanings<'a> {
    /// What objects of `graph` mean; `bytes` are the dump's ([`crate::index::Heap::bytes`]).
    pub fn new(summary: &'a Summary, graph: &'a ObjectGraph, bytes: &'a [u8]) -> Self {
        let by_name: FxHashMap<&str, How> = KNOWN.iter().copied().collect();
        let own = summary
            .numbered_classes()
            .map(|(number, class)| by_name.get(summary.class_name(class)).map(|how| (*how, number)));
        let known = summary.class_table().inherit(&own.collect::<Vec<_>>());
        let classes = summary.numbered_classes();
        let mut class_objects: Vec<(u32, ClassNumber)> =
            classes.filter_map(|(number, _)| Some((graph.class_object(number)?, number))).collect();
        class_objects.sort_unstable();
        Self { summary, graph, bytes, known, class_objects }
    }

    /// What an object means, in at most so many characters. Not escaped; half a character is `\udXXX`.
    pub fn meaning(&self, object: u32, most: usize) -> Option<Meaning> {
        let mut text = Text::new(most, true);
        self.append(&mut text, object, MAX_STEPS)?;
        Some(Meaning { is_cut: text.is_cut(), text: text.into_text() })
    }

    /// The same, cut to a few words; an ellipsis stands for what is left out.
    pub(crate) fn short(&self, object: u32, most: usize) -> Option<String> {
        let mut text = Text::new(most, false);
        self.append(&mut text, object, MAX_STEPS)?;
        Some(text.into_short())
    }

    /// The class that an object is the class object of.
    pub fn class_of_class_object(&self, object: u32) -> Option<ClassNumber> {
        let at = self.class_objects.binary_search_by_key(&object, |(object, _)| *object).ok()?;
        self.class_objects.get(at).map(|(_, class)| *class)
    }

    fn id_size(&self) -> IdSize {
        self.summary.id_size()
    }

    fn record(&self, object: u32) -> Option<Record<'a>> {
        record_at(self.bytes, self.id_size(), self.graph.objects.offset(self.bytes, self.id_size(), object)?)
    }

    /// How an object of a class is read, and the class that says so; and where its fields start in an instance.
    fn how(&self, class: ClassNumber) -> Option<(How, ClassNumber, usize)> {
        let (how, known) = self.known.get(class.0 as usize).copied().flatten()?;
        let table = self.summary.class_table();
        let below = table.bytes(class).checked_sub(table.bytes(known))?;
        Some((how, known, usize::try_from(below).ok()?))
    }

    fn field(&self, fields: Fields<'a>, name: &str) -> Option<Bits> {
        let (mut class, mut at, mut left) = (fields.class, 0, MAX_FIELDS);
        loop {
            let row = self.summary.class(class)?;
            left = left.checked_sub(usize::from(row.fields.get()))?;
            for (field, kind) in self.summary.fields(row) {
                if field == name {
                    return Some(Bits { kind, bits: be_value(fields.bytes, at, kind, self.id_size())? });
                }
                at += kind.dump_bytes(self.id_size());
            }
            class = self.summary.class_table().superclass_with_fields(class)?;
        }
    }

    /// The whole number in a field.
    fn integer(&self, fields: Fields<'a>, name: &str) -> Option<i64> {
        self.field(fields, name)?.integer()
    }

    /// The object in a field; `None` also for null.
    fn object(&self, fields: Fields<'a>, name: &str) -> Option<u32> {
        match self.field(fields, name)? {
            Bits { kind: BasicType::Object, bits: id } if id != 0 => {
                self.graph.objects.addresses.index_of(id)
            }
            _ => None,
        }
    }

    /// The array of primitives in a field: its type and elements.
    fn primitives(&self, fields: Fields<'a>, name: &str) -> Option<(BasicType, &'a [u8])> {
        match self.record(self.object(fields, name)?)? {
            Record::PrimitiveArray(PrimitiveArray { element, elements: Some(elements), .. }) => {
                Some((element, elements))
            }
            _ => None,
        }
    }

    /// All fields of an instance.
    fn fields(&self, object: u32) -> Option<Fields<'a>> {
        match self.record(object)? {
            Record::Instance(Instance { fields, .. }) => {
                Some(Fields { class: self.graph.objects.class(object)?, bytes: fields })
            }
            _ => None,
        }
    }

    fn append(&self, text: &mut Text, object: u32, steps: u32) -> Option<()> {
        let steps = steps.checked_sub(1)?;
        text.look()?;
        if let Some(class) = self.class_of_class_object(object) {
            text.push(self.summary.class_name(self.summary.class(class)?));
            return Some(());
        }
        let class = self.graph.objects.class(object)?;
        match self.record(object)? {
            // Buffers are filled up with zeros.
            Record::PrimitiveArray(PrimitiveArray {
                element: BasicType::Char,
                elements: Some(elements),
                ..
            }) => text.grow(|text| text.push_utf16(utf16(elements).take_while(|unit| *unit != 0))),
            Record::Instance(Instance { fields, .. }) => {
                let (how, known, start) = self.how(class)?;
                let whole = Fields { class, bytes: fields };
                self.instance(text, how, Fields { class: known, bytes: fields.get(start..)? }, whole, steps)
            }
            _ => None,
        }
    }

    /// As the object in a field; `None` if that is null, or means nothing.
    fn append_field(&self, text: &mut Text, fields: Fields<'a>, name: &str, steps: u32) -> Option<()> {
        self.append(text, self.object(fields, name)?, steps)
    }

    /// The text of the object in a field, empty if there is none.
    fn text_of(&self, text: &mut Text, fields: Fields<'a>, name: &str, steps: u32) -> String {
        let mut part = text.part();
        let found = self.object(fields, name).and_then(|object| self.append(&mut part, object, steps));
        text.look_as(&part);
        found.map(|()| part.into_text()).unwrap_or_default()
    }
}

/// The units of an array of chars.
fn utf16(elements: &[u8]) -> impl Iterator<Item = u16> + '_ {
    elements.chunks_exact(2).filter_map(|unit| be_u16(unit, 0))
}
