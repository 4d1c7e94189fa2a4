//! Reading objects: records, fields by class and name, elements, and the text of Strings.
//!
//! All code that inspects objects uses this reader. Only texts are allocated per object.

use super::fields::{self, Fields};
use super::object_graph::ObjectGraph;
use super::object_table::BLOCK;
use super::record::{ObjectWalk, RecordVisitor};
use super::strings::StringFields;
use crate::graph::numbers::ObjectIndex;
use crate::model::summary::{ClassNumber, Summary};
use hprof_parser::heap;
use hprof_values::{BasicType, IdSize, ObjectId, be_ids};

pub use super::fields::{Bits, FieldPlace, FieldSlot};
pub use super::record::{ClassObject, Instance, ObjectArray, ObjectRecord, ObjectVisitor, PrimitiveArray};
pub use super::strings::Characters;

/// Reader for the objects of a dump.
#[derive(Debug, Clone, Copy)]
pub struct ObjectReader<'a> {
    /// Summary of the dump, with its classes.
    pub summary: &'a Summary,
    /// Object graph.
    pub graph: &'a ObjectGraph,
    bytes: &'a [u8],
    id_size: IdSize,
    /// Class java.lang.String and the locations of its fields, cached because Strings are read most often.
    string: Option<(ClassNumber, StringFields)>,
}

/// Returns the record at an offset of a dump's bytes; `None` if it cannot be read.
pub(crate) fn record_at(bytes: &[u8], id_size: IdSize, offset: u64) -> Option<ObjectRecord<'_>> {
    let mut found = None;
    let mut visitor = RecordVisitor { record: None, visit: |_, record| found = record };
    let mut walk = ObjectWalk { visitor: &mut visitor, object: ObjectIndex(0), wanted: 1 };
    heap::visit_one(bytes, id_size, usize::try_from(offset).ok()?, bytes.len(), &mut walk).ok()?;
    walk.advance();
    found
}

impl<'a> ObjectReader<'a> {
    /// Creates a reader for the objects of `graph`; `bytes` are the dump's ([`crate::Heap::bytes`]).
    pub(crate) fn new(summary: &'a Summary, graph: &'a ObjectGraph, bytes: &'a [u8]) -> Self {
        let mut classes = summary.numbered_classes();
        let string = classes.find(|(_, row)| row.is_dumped() && summary.is_named(row, "java.lang.String"));
        let string = string.and_then(|(class, _)| Some((class, StringFields::for_class(summary, class)?)));
        Self { summary, graph, bytes, id_size: summary.id_size(), string }
    }

    /// Returns the dump's bytes.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Returns the record of an object; `None` if it cannot be read.
    pub fn record(&self, object: ObjectIndex) -> Option<ObjectRecord<'a>> {
        self.record_at(self.graph.objects.offset(self.bytes, self.id_size, object)?)
    }

    /// Returns the record at an offset of the dump; `None` if it cannot be read.
    pub fn record_at(&self, offset: u64) -> Option<ObjectRecord<'a>> {
        record_at(self.bytes, self.id_size, offset)
    }

    /// Calls `visit` with the record of each object of a block whose bit is set in `wanted`; with `None` for one that cannot be
    /// read. Bit 0 is `first`, the first object of the block. Faster than separate lookups.
    pub fn records_of_block(
        &self,
        first: ObjectIndex,
        wanted: u64,
        visit: impl FnMut(ObjectIndex, Option<ObjectRecord<'a>>),
    ) {
        self.visit_block(first, wanted, &mut RecordVisitor { record: None, visit });
    }

    /// Passes the records of the objects of a block whose bits are set in `wanted` to a visitor. Bit 0 is `first`, the first
    /// object of the block. The fastest way to read many: the decoder is compiled with the visitor.
    #[inline(always)]
    pub fn visit_block<V: ObjectVisitor<'a>>(&self, first: ObjectIndex, wanted: u64, visitor: &mut V) {
        let count = u64::BITS - wanted.leading_zeros();
        let places = &self.graph.objects.places;
        let mut walk = ObjectWalk { visitor, object: first, wanted };
        places.visit(self.bytes, self.id_size, first.0 / BLOCK, count, &mut walk, ObjectWalk::advance);
    }

    /// Passes the record of an object to a visitor.
    pub fn visit_object<V: ObjectVisitor<'a>>(&self, object: ObjectIndex, visitor: &mut V) {
        let mut walk = ObjectWalk { visitor, object, wanted: 1 };
        let offset = self.graph.objects.offset(self.bytes, self.id_size, object);
        if let Some(at) = offset.and_then(|offset| usize::try_from(offset).ok()) {
            // A record that cannot be read contains nothing.
            let _ = heap::visit_one(self.bytes, self.id_size, at, self.bytes.len(), &mut walk);
        }
        walk.advance();
    }

    /// Returns the field bytes of an instance.
    pub fn instance(&self, object: ObjectIndex) -> Option<&'a [u8]> {
        match self.record(object)? {
            ObjectRecord::Instance(record) => Some(record.fields),
            _ => None,
        }
    }

    /// Returns all fields of an instance.
    pub fn fields(&self, object: ObjectIndex) -> Option<Fields<'a>> {
        Some(Fields::new(self.summary, self.graph.objects.class(object)?, self.instance(object)?))
    }

    /// Returns the fields that `class` declares or inherits, for an instance of it or of a subclass.
    pub fn fields_of(&self, object: ObjectIndex, class: ClassNumber) -> Option<Fields<'a>> {
        self.fields(object)?.superclass_fields(class)
    }

    /// Returns the fields of the instances of a class: its own first, then those of its superclass, and
    /// so on, in the order of the record.
    pub fn slots(&self, class: ClassNumber) -> impl Iterator<Item = FieldSlot<'a>> + use<'a> {
        fields::slots(self.summary, class)
    }

    /// Returns, by class number, the location of the field of this name that the class itself or its nearest superclass
    /// declares. For passes over many objects.
    pub fn places(&self, name: &str) -> Vec<Option<FieldPlace>> {
        fields::places(self.summary, name)
    }

    /// Returns the value at a location in an instance's bytes.
    #[inline]
    pub fn value_at(&self, fields: &[u8], place: FieldPlace) -> Option<Bits> {
        place.value(fields, self.id_size)
    }

    /// Returns the value of a field in an instance's bytes.
    #[inline]
    pub fn value(&self, fields: &[u8], slot: &FieldSlot<'_>) -> Option<Bits> {
        slot.place.value(fields, self.id_size)
    }

    /// Returns the value of a field of an object, by name.
    pub fn field(&self, object: ObjectIndex, name: &str) -> Option<Bits> {
        self.fields(object)?.value(name)
    }

    /// Returns the value of a field that `class` declares or inherits, for an instance of it or of a
    /// subclass.
    pub fn field_of(&self, object: ObjectIndex, class: ClassNumber, name: &str) -> Option<Bits> {
        self.fields_of(object, class)?.value(name)
    }

    /// Returns the object that a field refers to; `None` for null, for dangling references and if there is no such field.
    pub fn reference(&self, object: ObjectIndex, name: &str) -> Option<ObjectIndex> {
        self.object(self.field(object, name)?)
    }

    /// Returns the object that a value refers to; `None` for null, for dangling references and for primitive values.
    pub fn object(&self, value: Bits) -> Option<ObjectIndex> {
        self.graph.objects.addresses.index_of(value.reference()?)
    }

    /// Returns the IDs in an array of references; 0 is null.
    pub fn elements(&self, record: &ObjectArray<'a>) -> impl ExactSizeIterator<Item = ObjectId> + use<'a> {
        be_ids(record.elements, self.id_size)
    }

    /// Returns the IDs in an object that is an array of references; 0 is null.
    pub fn ids(&self, array: ObjectIndex) -> Option<impl ExactSizeIterator<Item = ObjectId> + use<'a>> {
        match self.record(array)? {
            ObjectRecord::ObjectArray(array) => Some(self.elements(&array)),
            _ => None,
        }
    }

    /// Returns the element type and the elements of an object that is an array of primitives.
    pub fn primitives(&self, array: ObjectIndex) -> Option<(BasicType, &'a [u8])> {
        match self.record(array)? {
            ObjectRecord::PrimitiveArray(PrimitiveArray { element, elements: Some(elements), .. }) => {
                Some((element, elements))
            }
            _ => None,
        }
    }

    /// Returns the characters of a java.lang.String; `None` for other objects.
    pub fn string(&self, object: ObjectIndex) -> Option<Characters<'a>> {
        self.characters(&self.fields(object)?)
    }

    /// Returns the characters of a java.lang.String given its fields, or those of a builder's array;
    /// `None` for other objects.
    pub fn characters(&self, fields: &Fields<'a>) -> Option<Characters<'a>> {
        let places = match self.string {
            Some((class, places)) if class == fields.class() => places,
            _ => StringFields::for_class(self.summary, fields.class())?,
        };
        let (array, part) = places.read(fields.bytes(), self.id_size)?;
        let (element, elements) = self.primitives(self.graph.objects.addresses.index_of(array)?)?;
        part.characters_left(element, elements, self.summary.missing_contents())
    }
}
