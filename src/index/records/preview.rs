//! A look at the start of a heap dump, before the scan: the classes that stand there and how ids are ordered.
//!
//! HotSpot writes all classes before the first object. Knowing them, a giant record can be cut into pieces
//! ([`hprof_parser::resync`]), and knowing how ids ascend, the scan chooses how to measure distances between objects.

use crate::storage::id_map::IdMap;

use hprof_parser::class_dump::ClassDump;
use hprof_parser::heap::{self, HeapVisitor, Instance, ObjectArray, PrimitiveArray};
use hprof_parser::resync::KnownClasses;
use hprof_parser::{BasicType, IdSize, ObjectId};

use super::top_level::{Contents, HeapDump};
use crate::model::class_table::ClassTable;
use crate::model::tables::NONE;

/// Objects looked at.
const SAMPLE: u64 = 50_000;

/// What the start of a heap dump tells.
#[derive(Debug, Default)]
pub(crate) struct Preview {
    /// Class id, superclass id and bytes of the class's own fields.
    own: Vec<(ObjectId, ObjectId, u32)>,
    /// Class id -> bytes of an instance's fields, where all superclasses are known.
    known: IdMap<ObjectId, Option<u64>>,
    /// Objects seen.
    pub(crate) objects: u64,
    /// How often an id was lower than the one before.
    pub(crate) descents: u64,
    /// All ids or'ed: its trailing zeros are their common alignment.
    pub(crate) id_bits: u64,
    last: u64,
    id_size: Option<IdSize>,
}

impl Preview {
    /// Looks at the start of `dump`.
    pub(crate) fn read(bytes: &[u8], id_size: IdSize, contents: &Contents, dump: &HeapDump) -> Self {
        let mut preview = Self { id_size: Some(id_size), ..Self::default() };
        for segment in &dump.segments {
            heap::walk(bytes, id_size, segment.start, segment.end, segment.end, &mut preview);
            if !preview.go_on() {
                break;
            }
        }
        preview.resolve(contents);
        preview
    }

    /// Whether ids jump about, as in the dumps of collectors that visit objects by following references (ZGC,
    /// Shenandoah).
    pub(crate) fn is_unordered(&self) -> bool {
        self.descents * 8 > self.objects
    }

    /// Adds up the fields of each class and its superclasses, each class once.
    fn resolve(&mut self, contents: &Contents) {
        for load in &contents.loads {
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
            // A superclass that is not there, or closes a circle.
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
