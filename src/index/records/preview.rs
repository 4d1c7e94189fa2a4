//! Preview of the start of a heap dump, before the scan: its classes, and the order of object IDs.
//!
//! HotSpot writes all classes before the first object. With them, a giant record can be divided into
//! chunks ([`hprof_parser::resync`]); with the order of IDs, the scan chooses how to measure distances
//! between objects.

use crate::storage::id_map::IdMap;

use hprof_parser::class_dump::ClassDump;
use hprof_parser::heap::{self, HeapVisitor, Instance, ObjectArray, PrimitiveArray};
use hprof_parser::record::LoadClass;
use hprof_parser::resync::KnownClasses;
use hprof_values::{BasicType, IdSize, ObjectId};

use super::top_level::{Contents, HeapDump};
use crate::model::class_table::ClassTable;
use crate::model::tables::NONE;

/// Maximum number of objects read.
const SAMPLE: u64 = 50_000;

/// Classes and order of IDs at the start of a heap dump.
#[derive(Debug, Default)]
pub(crate) struct Preview {
    /// Class ID, superclass ID, and size of the class's own fields in bytes.
    own: Vec<(ObjectId, ObjectId, u32)>,
    /// Class ID -> size of an instance's fields in bytes, if all superclasses are known.
    known: IdMap<ObjectId, Option<u64>>,
    /// Number of objects read.
    pub(crate) objects: u64,
    /// Number of IDs that are lower than the previous one.
    pub(crate) descents: u64,
    /// Bitwise OR of all IDs: its trailing zeros are their common alignment.
    pub(crate) id_bits: u64,
    last: u64,
    id_size: Option<IdSize>,
}

impl Preview {
    /// Reads the start of heap dump `dump`.
    pub(crate) fn read(bytes: &[u8], id_size: IdSize, contents: &Contents, dump: &HeapDump) -> Self {
        let mut preview = Self { id_size: Some(id_size), ..Self::default() };
        for segment in &dump.segments {
            heap::walk(bytes, id_size, segment.start, segment.end, segment.end, &mut preview);
            if !preview.go_on() {
                break;
            }
        }
        preview.resolve(&contents.loads);
        preview
    }

    /// Reads the start of each heap dump of several files, which are parts of one dump.
    pub(crate) fn of_parts<'p>(
        id_size: IdSize,
        parts: impl Iterator<Item = (&'p [u8], &'p Contents)>,
    ) -> Self {
        let mut preview = Self { id_size: Some(id_size), ..Self::default() };
        let mut loads = Vec::new();
        for (bytes, contents) in parts {
            loads.extend_from_slice(&contents.loads);
            for dump in &contents.dumps {
                preview.objects = 0;
                for segment in &dump.segments {
                    heap::walk(bytes, id_size, segment.start, segment.end, segment.end, &mut preview);
                    if !preview.go_on() {
                        break;
                    }
                }
            }
        }
        preview.resolve(&loads);
        preview
    }

    /// Returns `true` if more than an eighth of the IDs are lower than the previous one, as in dumps of collectors that visit
    /// objects by following references (ZGC, Shenandoah).
    pub(crate) fn is_unordered(&self) -> bool {
        self.descents * 8 > self.objects
    }

    /// Adds up the field sizes of each class and its superclasses, each class once.
    fn resolve(&mut self, loads: &[LoadClass]) {
        for load in loads {
            self.known.insert(load.id, None);
        }
        let numbers: IdMap<ObjectId, u32> = self.own.iter().map(|(id, ..)| *id).zip(0..).collect();
        let superclass = |id: &ObjectId| numbers.get(id).copied().unwrap_or(NONE);
        let table = ClassTable::new(
            self.own.iter().map(|(_, above, _)| superclass(above)).collect(),
            self.own.iter().map(|(.., bytes)| *bytes).collect(),
        );
        let sums = table.derive(|class, above: Option<&Option<u64>>| {
            let (_, super_id, bytes) = self.own.get(class.0 as usize)?;
            // A superclass that does not exist, or closes a cycle.
            let above = above.copied().unwrap_or(super_id.is_null().then_some(0));
            above.map(|above| above.saturating_add((*bytes).into()))
        });
        self.known.extend(self.own.iter().map(|(id, ..)| *id).zip(sums));
    }

    fn object(&mut self, ObjectId(id): ObjectId) {
        self.objects += 1;
        self.descents += u64::from(id < self.last);
        self.last = id;
        self.id_bits |= id;
    }
}

impl KnownClasses for Preview {
    fn class(&self, id: ObjectId) -> Option<Option<u64>> {
        self.known.get(&id).copied()
    }
}

impl<'a> HeapVisitor<'a> for Preview {
    fn instance(&mut self, record: Instance<'a>) {
        self.object(record.id);
    }
    fn object_array(&mut self, record: ObjectArray<'a>) {
        self.object(record.id);
    }
    fn primitive_array(&mut self, record: PrimitiveArray<'a>) {
        self.object(record.id);
    }
    fn class(&mut self, record: ClassDump<'a>) {
        let id_size = self.id_size.unwrap_or(IdSize::Eight);
        let bytes: usize = record.fields().map(|field| BasicType::dump_bytes(field.kind, id_size)).sum();
        self.own.push((record.id, record.super_class, u32::try_from(bytes).unwrap_or(u32::MAX)));
        self.id_bits |= record.id.0;
    }
    fn go_on(&mut self) -> bool {
        self.objects < SAMPLE
    }
}
