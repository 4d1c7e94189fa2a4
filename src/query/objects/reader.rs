//! Reading objects: their records, their fields by name, their elements, and what Strings say.
//!
//! What commands that look inside objects share. Nothing here allocates for an object but texts.

use std::sync::OnceLock;

use crate::hprof::class_dump::ClassDump;
use crate::hprof::heap::{self, HeapVisitor, Instance, ObjectArray, PrimitiveArray};
use crate::hprof::{BasicType, IdSize, be_id, be_u16, be_value};
use crate::index::ObjectGraph;
use crate::index::model::class_table::ClassTable;
use crate::index::model::summary::{ClassNumber, Summary};
use crate::index::objects::object_table::BLOCK;

/// An object as its record states it.
#[derive(Debug, Clone, Copy)]
pub enum Record<'a> {
    /// An instance.
    Instance(Instance<'a>),
    /// An array of references.
    ObjectArray(ObjectArray<'a>),
    /// An array of primitives.
    PrimitiveArray(PrimitiveArray<'a>),
    /// A class object.
    Class(ClassDump<'a>),
}

/// A field of the instances of a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its type.
    pub kind: BasicType,
    /// The class that declares it.
    pub class: ClassNumber,
    /// Where its value starts in an instance's bytes.
    at: u32,
}

/// A primitive value, or the id of an object; 0 is null.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bits {
    /// The type.
    pub kind: BasicType,
    /// The value, in the lower bits.
    pub bits: u64,
}

impl Bits {
    /// The value as a whole number, if it is one.
    #[allow(clippy::cast_possible_truncation)] // The upper bits of smaller types are zero.
    pub fn integer(self) -> Option<i64> {
        Some(match self.kind {
            BasicType::Byte => (self.bits as u8).cast_signed().into(),
            BasicType::Short => (self.bits as u16).cast_signed().into(),
            BasicType::Int => (self.bits as u32).cast_signed().into(),
            BasicType::Long => self.bits.cast_signed(),
            BasicType::Char => i64::from(self.bits as u16),
            BasicType::Boolean | BasicType::Float | BasicType::Double | BasicType::Object => return None,
        })
    }

    /// The value as a `float`.
    #[allow(clippy::cast_possible_truncation)] // A float has 32 bits.
    pub fn as_float(self) -> f32 {
        f32::from_bits(self.bits as u32)
    }
}

/// Fields of well-known classes and of their superclasses: none has as many.
pub(crate) const MOST_FIELDS: usize = 4096;

/// Reads the objects of a dump.
#[derive(Debug)]
pub struct Objects<'a> {
    /// What is known of classes.
    pub summary: &'a Summary,
    /// The graph.
    pub graph: &'a ObjectGraph,
    bytes: &'a [u8],
    id_size: IdSize,
    table: &'a ClassTable,
    /// By class number: the fields that it declares itself, once they were asked for, their places from the first of
    /// them on. Those that it inherits are not here again: in a long chain of classes that would be the square of it.
    own: Vec<OnceLock<Own<'a>>>,
}

/// The fields that a class declares.
#[derive(Debug)]
struct Own<'a> {
    slots: Box<[Slot<'a>]>,
    /// The bytes of all of them.
    bytes: u32,
}

/// The type of a field, and where its value starts in an instance's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The type.
    pub kind: BasicType,
    at: u32,
}

/// Catches one record.
#[derive(Default)]
struct Catch<'a>(Option<Record<'a>>);

impl<'a> HeapVisitor<'a> for Catch<'a> {
    #[inline(always)]
    fn instance(&mut self, record: Instance<'a>) {
        self.0 = Some(Record::Instance(record));
    }
    #[inline(always)]
    fn object_array(&mut self, record: ObjectArray<'a>) {
        self.0 = Some(Record::ObjectArray(record));
    }
    #[inline(always)]
    fn primitive_array(&mut self, record: PrimitiveArray<'a>) {
        self.0 = Some(Record::PrimitiveArray(record));
    }
    fn class(&mut self, record: ClassDump<'a>) {
        self.0 = Some(Record::Class(record));
    }
}

/// The record of an object at an offset of a dump's bytes; `None` if it cannot be read.
pub(crate) fn record_at(bytes: &[u8], id_size: IdSize, offset: u64) -> Option<Record<'_>> {
    let mut catch = Catch::default();
    heap::visit_one(bytes, id_size, usize::try_from(offset).ok()?, bytes.len(), &mut catch).ok()?;
    catch.0
}

impl<'a> Objects<'a> {
    /// The objects of `graph`; `bytes` are the dump's ([`crate::index::Heap::bytes`]).
    pub fn new(summary: &'a Summary, graph: &'a ObjectGraph, bytes: &'a [u8]) -> Self {
        let own = summary.classes().iter().map(|_| OnceLock::new()).collect();
        Self { summary, graph, bytes, id_size: summary.id_size(), table: summary.class_table(), own }
    }

    /// The record of an object; `None` if it cannot be read.
    pub fn record(&self, object: u32) -> Option<Record<'a>> {
        self.record_at(self.graph.objects.offset(self.bytes, self.id_size, object)?)
    }

    /// The record at an offset of the dump; `None` if it cannot be read.
    pub fn record_at(&self, offset: u64) -> Option<Record<'a>> {
        record_at(self.bytes, self.id_size, offset)
    }

    /// Calls `visit` with the records of some objects of a block: those whose bits are set, from `first` on, which is the
    /// first of the block; `None` for one that cannot be read. One after another they are found faster than one by one.
    pub fn records_of_block(&self, first: u32, wanted: u64, mut visit: impl FnMut(u32, Option<Record<'a>>)) {
        let count = u64::BITS - wanted.leading_zeros();
        let mut object = first;
        let places = &self.graph.objects.places;
        places.visit(self.bytes, self.id_size, first / BLOCK, count, &mut Catch::default(), |catch| {
            let record = catch.0.take();
            if wanted & (1 << (object - first)) != 0 {
                visit(object, record);
            }
            object += 1;
        });
    }

    /// The bytes of an instance's fields.
    pub fn instance(&self, object: u32) -> Option<&'a [u8]> {
        match self.record(object)? {
            Record::Instance(record) => Some(record.fields),
            _ => None,
        }
    }

    /// The fields of the instances of a class: its own first, then those of its superclass, and so on up, in the order of
    /// the record.
    pub fn slots(&self, class: ClassNumber) -> impl Iterator<Item = Slot<'a>> + '_ {
        let mut base = 0u32;
        let mut next = Some(class);
        std::iter::from_fn(move || {
            let class = next?;
            let own = self.own(class)?;
            let at = base;
            // No record is longer.
            let behind = base.checked_add(own.bytes);
            base = behind.unwrap_or(base);
            next = behind.and_then(|_| self.table.superclass_with_fields(class));
            Some(
                own.slots.iter().filter_map(move |slot| Some(Slot { at: slot.at.checked_add(at)?, ..*slot })),
            )
        })
        .flatten()
    }

    fn own(&self, number: ClassNumber) -> Option<&Own<'a>> {
        let own = self.own.get(number.0 as usize)?;
        Some(own.get_or_init(|| {
            let (mut slots, mut bytes) = (Vec::new(), 0u32);
            for (name, kind) in
                self.summary.class(number).into_iter().flat_map(|row| self.summary.fields(row))
            {
                slots.push(Slot { name, kind, class: number, at: bytes });
                let len = u32::try_from(kind.dump_bytes(self.id_size)).unwrap_or(0);
                bytes = bytes.saturating_add(len);
            }
            Own { slots: slots.into(), bytes }
        }))
    }

    /// The field of this name, of the class itself or of the nearest superclass that has it.
    pub fn slot(&self, class: ClassNumber, name: &str) -> Option<Slot<'a>> {
        self.slots(class).find(|slot| slot.name == name)
    }

    /// By class number: the field of this name, of the class itself or of the nearest superclass that has it. For all
    /// classes at once, in time linear in their fields, however long their chains are.
    pub fn places(&self, name: &str) -> Vec<Option<Place>> {
        self.table.derive(|class, above: Option<&Option<Place>>| {
            let own = self.own(class)?;
            match own.slots.iter().find(|slot| slot.name == name) {
                Some(slot) => Some(Place { kind: slot.kind, at: slot.at }),
                None => {
                    let Place { kind, at } = (*above?)?;
                    Some(Place { kind, at: at.checked_add(own.bytes)? })
                }
            }
        })
    }

    /// The value at a place in an instance's bytes.
    #[inline]
    pub fn value_at(&self, fields: &[u8], place: Place) -> Option<Bits> {
        Some(Bits { kind: place.kind, bits: be_value(fields, place.at as usize, place.kind, self.id_size)? })
    }

    /// The value of a field in an instance's bytes.
    #[inline]
    pub fn value(&self, fields: &[u8], slot: &Slot<'_>) -> Option<Bits> {
        Some(Bits { kind: slot.kind, bits: be_value(fields, slot.at as usize, slot.kind, self.id_size)? })
    }

    /// The value of a field of an object, by name.
    pub fn field(&self, object: u32, name: &str) -> Option<Bits> {
        let fields = self.instance(object)?;
        self.value_of(self.graph.objects.class(object)?, fields, name)
    }

    /// The value of a field, by name, in the bytes of an instance of a class.
    fn value_of(&self, class: ClassNumber, fields: &[u8], name: &str) -> Option<Bits> {
        // A record shorter than its class says has none of the fields behind; they are not even looked at.
        let mut there = self.slots(class).take_while(|slot| (slot.at as usize) < fields.len());
        self.value(fields, &there.find(|slot| slot.name == name)?)
    }

    /// The value of a field that `class` declares or inherits, of an instance of it or of a subclass. What superclasses
    /// declare stands at the end of a record: fields of subclasses, which can have the same names, are passed over, and no
    /// chain of them, however long, makes it slower.
    pub fn field_of(&self, object: u32, class: ClassNumber, name: &str) -> Option<Bits> {
        let (mut found, mut bytes) = (None, 0);
        for (number, slot) in self.slots(class).enumerate() {
            if number == MOST_FIELDS {
                return None;
            }
            bytes = slot.at as usize + slot.kind.dump_bytes(self.id_size);
            found = found.or_else(|| (slot.name == name).then_some(slot));
        }
        let fields = self.instance(object)?;
        self.value(fields.get(fields.len().checked_sub(bytes)?..)?, &found?)
    }

    /// The object in a field; `None` also for null, and for what is not in the dump.
    pub fn reference(&self, object: u32, name: &str) -> Option<u32> {
        self.object(self.field(object, name)?)
    }

    /// The object that a value refers to; `None` also for null, and for what is not in the dump.
    pub fn object(&self, value: Bits) -> Option<u32> {
        let is_reference = value.kind == BasicType::Object && value.bits != 0;
        is_reference.then(|| self.graph.objects.addresses.index_of(value.bits)).flatten()
    }

    /// The ids in an array of references; 0 is null.
    pub fn elements(&self, record: &ObjectArray<'a>) -> impl ExactSizeIterator<Item = u64> + use<'a> {
        let id_size = self.id_size;
        record.elements.chunks_exact(id_size.bytes()).map(move |id| be_id(id, 0, id_size).unwrap_or(0))
    }

    /// The characters of a java.lang.String; `None` if it is none.
    pub fn string(&self, object: u32) -> Option<Characters<'a>> {
        self.string_of(self.graph.objects.class(object)?, self.instance(object)?)
    }

    /// The characters of a java.lang.String by its class and the bytes of its fields; `None` if it is none.
    pub fn string_of(&self, class: ClassNumber, fields: &[u8]) -> Option<Characters<'a>> {
        let value = |name| self.value_of(class, fields, name);
        let array = self.record(self.object(value("value")?)?)?;
        let Record::PrimitiveArray(array) = array else { return None };
        let (elements, number) = (array.elements?, |name| value(name).and_then(Bits::integer));
        match array.element {
            // JDK 6 and older: part of an array. Since JDK 7 all of it.
            BasicType::Char => match (number("offset"), number("count")) {
                (Some(offset), Some(count)) => {
                    let (offset, count) = (usize::try_from(offset).ok()?, usize::try_from(count).ok()?);
                    let start = offset.checked_mul(2)?;
                    elements.get(start..start.checked_add(count.checked_mul(2)?)?).map(Characters::Utf16Be)
                }
                _ => Some(Characters::Utf16Be(elements)),
            },
            // Since JDK 9, in the JVM's own byte order: little-endian nearly everywhere.
            BasicType::Byte if number("coder") == Some(1) => Some(Characters::Utf16Le(elements)),
            BasicType::Byte => Some(Characters::Latin1(elements)),
            _ => None,
        }
    }
}

/// The characters of a String, as they stand in the dump.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Characters<'a> {
    /// A byte a character.
    Latin1(&'a [u8]),
    /// Two bytes a unit, the upper one last.
    Utf16Le(&'a [u8]),
    /// Two bytes a unit, the upper one first.
    Utf16Be(&'a [u8]),
}

impl Characters<'_> {
    /// Number of UTF-16 units: what `String.length()` says.
    pub fn len(&self) -> usize {
        match self {
            Self::Latin1(bytes) => bytes.len(),
            Self::Utf16Le(bytes) | Self::Utf16Be(bytes) => bytes.len() / 2,
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The UTF-16 units.
    pub fn units(&self) -> impl Iterator<Item = u16> + '_ {
        let len = self.len();
        (0..len).map(|at| match self {
            Self::Latin1(bytes) => bytes.get(at).map_or(0, |byte| u16::from(*byte)),
            Self::Utf16Be(bytes) => be_u16(bytes, at * 2).unwrap_or(0),
            Self::Utf16Le(bytes) => be_u16(bytes, at * 2).unwrap_or(0).swap_bytes(),
        })
    }

    /// The text, up to `most` characters. A surrogate without its other half is `\udXXX`.
    pub fn text(&self, most: usize) -> String {
        let mut text = String::new();
        for unit in char::decode_utf16(self.units()).take(most) {
            match unit {
                Ok(c) => text.push(c),
                Err(lone) => text.push_str(&format!("\\u{:04x}", lone.unpaired_surrogate())),
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_in_every_form() {
        assert_eq!(Characters::Latin1(b"Gr\xfc\xdfe").text(99), "Grüße");
        assert_eq!(Characters::Utf16Be(&[0x65, 0xe5, 0x67, 0x2c]).text(99), "日本");
        assert_eq!(Characters::Utf16Le(&[0x3d, 0xd8, 0x00, 0xde]).text(99), "😀");
        assert_eq!(Characters::Utf16Be(&[0xd8, 0x00, 0, b'x']).text(99), "\\ud800x");
        assert_eq!(Characters::Latin1(b"abc").text(2), "ab");
        assert_eq!((Characters::Utf16Le(&[0; 7]).len(), Characters::Latin1(&[]).is_empty()), (3, true));
    }

    #[test]
    fn whole_numbers_have_their_signs() {
        let integer = |kind, bits| Bits { kind, bits }.integer();
        assert_eq!(integer(BasicType::Byte, 0xff), Some(-1));
        assert_eq!(integer(BasicType::Char, 0xffff), Some(65535));
        assert_eq!(integer(BasicType::Long, u64::MAX), Some(-1));
        assert_eq!(integer(BasicType::Object, 1), None);
    }
}
