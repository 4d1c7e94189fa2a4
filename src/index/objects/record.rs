//! Records of objects, as queries see them: what a record contains, without its form in the file.

use hprof_parser::class_dump::ClassDump;
use hprof_parser::heap::{self, HeapVisitor};
use hprof_values::{BasicType, ObjectId, TraceSerial};

use super::fields::Bits;
use crate::graph::numbers::ObjectIndex;

/// An instance.
#[derive(Debug, Clone, Copy)]
pub struct Instance<'a> {
    /// Offset of the record in the dump.
    pub offset: u64,
    /// Object ID.
    pub id: ObjectId,
    /// Serial number of the allocation trace.
    pub trace: TraceSerial,
    /// ID of the class object.
    pub(crate) class: ObjectId,
    /// Values of the fields: the class's own first, then its superclass's, and so on.
    pub fields: &'a [u8],
}

/// An array of references.
#[derive(Debug, Clone, Copy)]
pub struct ObjectArray<'a> {
    /// Offset of the record in the dump.
    pub offset: u64,
    /// Object ID.
    pub id: ObjectId,
    /// Serial number of the allocation trace.
    pub trace: TraceSerial,
    /// Number of elements.
    pub length: u32,
    /// Elements: consecutive identifiers.
    pub elements: &'a [u8],
}

/// An array of primitives.
#[derive(Debug, Clone, Copy)]
pub struct PrimitiveArray<'a> {
    /// Offset of the record in the dump.
    pub offset: u64,
    /// Object ID.
    pub id: ObjectId,
    /// Serial number of the allocation trace.
    pub trace: TraceSerial,
    /// Element type.
    pub element: BasicType,
    /// Number of elements.
    pub length: u32,
    /// Elements, big-endian; `None` in Android's arrays without data.
    pub elements: Option<&'a [u8]>,
}

/// A class object. Its static fields are in the summary.
#[derive(Debug, Clone, Copy)]
pub struct ClassObject<'a>(pub(crate) ClassDump<'a>);

impl<'a> ClassObject<'a> {
    /// Returns the object ID.
    pub fn id(&self) -> ObjectId {
        self.0.id
    }

    /// Returns the ID of the superclass's class object; null for none.
    pub fn superclass(&self) -> ObjectId {
        self.0.super_class
    }

    /// Returns the ID of the loader; null for the boot loader.
    pub fn loader(&self) -> ObjectId {
        self.0.loader
    }

    /// Returns the ID of the signers; null for none.
    pub fn signers(&self) -> ObjectId {
        self.0.signers
    }

    /// Returns the ID of the protection domain; null for none.
    pub fn protection_domain(&self) -> ObjectId {
        self.0.protection_domain
    }

    /// Returns entries of the constant pool, by index. Dumps of the HPROF agent have them.
    pub fn constants(&self) -> impl Iterator<Item = (u16, Bits)> + use<'a> {
        let constants = self.0.constants();
        constants.map(|constant| (constant.index, Bits { kind: constant.kind, bits: constant.value }))
    }
}

/// Record of an object.
#[derive(Debug, Clone, Copy)]
pub enum ObjectRecord<'a> {
    /// An instance.
    Instance(Instance<'a>),
    /// An array of references.
    ObjectArray(ObjectArray<'a>),
    /// An array of primitives.
    PrimitiveArray(PrimitiveArray<'a>),
    /// A class object.
    Class(ClassObject<'a>),
}

impl ObjectRecord<'_> {
    /// Returns the number of elements of an array; `None` for other objects.
    pub fn length(&self) -> Option<u32> {
        match self {
            Self::ObjectArray(array) => Some(array.length),
            Self::PrimitiveArray(array) => Some(array.length),
            Self::Instance(_) | Self::Class(_) => None,
        }
    }

    /// Returns the offset of the record in the dump.
    pub fn offset(&self) -> u64 {
        match self {
            Self::Instance(record) => record.offset,
            Self::ObjectArray(record) => record.offset,
            Self::PrimitiveArray(record) => record.offset,
            Self::Class(record) => record.0.offset as u64,
        }
    }

    /// Returns the serial number of the allocation trace.
    pub fn trace(&self) -> TraceSerial {
        match self {
            Self::Instance(record) => record.trace,
            Self::ObjectArray(record) => record.trace,
            Self::PrimitiveArray(record) => record.trace,
            Self::Class(record) => record.0.trace,
        }
    }
}

/// Visitor of objects in a walk ([`super::reader::ObjectReader::visit_block`]). Methods that a visitor does not need have
/// empty defaults: the walk is compiled for each visitor, which pays only for what it uses.
pub trait ObjectVisitor<'a> {
    /// Visits an instance.
    fn instance(&mut self, object: ObjectIndex, record: Instance<'a>) {
        let _ = (object, record);
    }
    /// Visits an array of references.
    fn object_array(&mut self, object: ObjectIndex, record: ObjectArray<'a>) {
        let _ = (object, record);
    }
    /// Visits an array of primitives.
    fn primitive_array(&mut self, object: ObjectIndex, record: PrimitiveArray<'a>) {
        let _ = (object, record);
    }
    /// Visits a class object.
    fn class(&mut self, object: ObjectIndex, record: ClassObject<'a>) {
        let _ = (object, record);
    }
    /// Called after each object that is visited, including one whose record cannot be read.
    #[inline(always)]
    fn end(&mut self, object: ObjectIndex) {
        let _ = object;
    }
}

/// Passes the records of consecutive objects to a visitor of objects.
pub(super) struct ObjectWalk<'v, V> {
    pub(super) visitor: &'v mut V,
    /// Object whose record is read.
    pub(super) object: ObjectIndex,
    /// Objects to be visited, from this one on, one bit each.
    pub(super) wanted: u64,
}

impl<'a, V: ObjectVisitor<'a>> ObjectWalk<'_, V> {
    #[inline(always)]
    fn is_wanted(&self) -> bool {
        self.wanted & 1 != 0
    }

    /// Moves on to the next object.
    #[inline(always)]
    pub(super) fn advance(&mut self) {
        if self.is_wanted() {
            self.visitor.end(self.object);
        }
        self.wanted >>= 1;
        self.object.0 += 1;
    }
}

impl<'a, V: ObjectVisitor<'a>> HeapVisitor<'a> for ObjectWalk<'_, V> {
    #[inline(always)]
    fn instance(&mut self, record: heap::Instance<'a>) {
        if self.is_wanted() {
            self.visitor.instance(self.object, record.into());
        }
    }
    #[inline(always)]
    fn object_array(&mut self, record: heap::ObjectArray<'a>) {
        if self.is_wanted() {
            self.visitor.object_array(self.object, record.into());
        }
    }
    #[inline(always)]
    fn primitive_array(&mut self, record: heap::PrimitiveArray<'a>) {
        if self.is_wanted() {
            self.visitor.primitive_array(self.object, record.into());
        }
    }
    #[inline(always)]
    fn class(&mut self, record: ClassDump<'a>) {
        if self.is_wanted() {
            self.visitor.class(self.object, ClassObject(record));
        }
    }
}

impl<'a> From<heap::Instance<'a>> for Instance<'a> {
    #[inline(always)]
    fn from(record: heap::Instance<'a>) -> Self {
        let heap::Instance { offset, id, trace, class, fields, .. } = record;
        Self { offset: offset as u64, id, trace, class, fields }
    }
}

impl<'a> From<heap::ObjectArray<'a>> for ObjectArray<'a> {
    #[inline(always)]
    fn from(record: heap::ObjectArray<'a>) -> Self {
        let heap::ObjectArray { offset, id, trace, length, elements, .. } = record;
        Self { offset: offset as u64, id, trace, length, elements }
    }
}

impl<'a> From<heap::PrimitiveArray<'a>> for PrimitiveArray<'a> {
    #[inline(always)]
    fn from(record: heap::PrimitiveArray<'a>) -> Self {
        let heap::PrimitiveArray { offset, id, trace, element, length, elements, .. } = record;
        Self { offset: offset as u64, id, trace, element, length, elements }
    }
}

/// Visitor that passes on the record of each object, `None` if it cannot be read.
pub(super) struct RecordVisitor<'a, F> {
    pub(super) record: Option<ObjectRecord<'a>>,
    pub(super) visit: F,
}

impl<'a, F: FnMut(ObjectIndex, Option<ObjectRecord<'a>>)> ObjectVisitor<'a> for RecordVisitor<'a, F> {
    #[inline(always)]
    fn instance(&mut self, _: ObjectIndex, record: Instance<'a>) {
        self.record = Some(ObjectRecord::Instance(record));
    }
    #[inline(always)]
    fn object_array(&mut self, _: ObjectIndex, record: ObjectArray<'a>) {
        self.record = Some(ObjectRecord::ObjectArray(record));
    }
    #[inline(always)]
    fn primitive_array(&mut self, _: ObjectIndex, record: PrimitiveArray<'a>) {
        self.record = Some(ObjectRecord::PrimitiveArray(record));
    }
    fn class(&mut self, _: ObjectIndex, record: ClassObject<'a>) {
        self.record = Some(ObjectRecord::Class(record));
    }
    #[inline(always)]
    fn end(&mut self, object: ObjectIndex) {
        (self.visit)(object, self.record.take());
    }
}
