//! The rows of the index: what is known of a dump, in the very form in which it stands on disk.
//!
//! All rows are little-endian and unaligned, so that a mapped section is a slice of rows without a copy.
//! `docs/index-format.md` describes them byte by byte; a change of any row needs a new
//! [`crate::storage::store::FORMAT_VERSION`].

use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use hprof_parser::BasicType;

/// Declares a row and derives what a section of them needs.
macro_rules! rows {
    ($($(#[$about:meta])* $name:ident { $($(#[$field_about:meta])* $field:ident: $kind:ty,)* })*) => {$(
        $(#[$about])*
        #[derive(Debug, Clone, Copy, Default, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
        #[repr(C)]
        pub struct $name { $($(#[$field_about])* pub $field: $kind,)* }
    )*};
}

/// The number of a class: its row in the class table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClassNumber(pub u32);

/// "None" in columns of class numbers and text numbers.
pub const NONE: u32 = u32::MAX;

rows! {
    /// A class: what its CLASS DUMP and LOAD CLASS say, and what the scan counted.
    ClassRow {
        /// Id of the class object; 0 if the dump has none.
        id: U64,
        /// Id of the superclass's class object.
        super_id: U64,
        /// Object id of the loader; 0 for the boot loader.
        loader: U64,
        /// Object id of the signers.
        signers: U64,
        /// Object id of the protection domain.
        protection_domain: U64,
        /// Offset of its CLASS DUMP in the file; 0 if it is not dumped.
        offset: U64,
        /// INSTANCE DUMPs, OBJECT ARRAY DUMPs or PRIMITIVE ARRAY DUMPs of the class.
        objects: U64,
        /// INSTANCE DUMPs whose number of field bytes is not what the class declares, as far as that was known.
        deviant: U64,
        /// Text number of the name in Java source form.
        name: U32,
        /// Class number of the superclass that the dump states, or NONE: it can lead in a circle, which
        /// [`super::class_table::ClassTable`] does not.
        super_class: U32,
        /// The instance size that the CLASS DUMP states.
        stated_size: U32,
        /// Class serial number of its LOAD CLASS; 0 without one.
        serial: U32,
        /// Trace serial number of its CLASS DUMP.
        trace: U32,
        /// Number of its first row in the field table.
        first_field: U32,
        /// Number of its first row in the static field table.
        first_static: U32,
        /// The smallest distance from an instance to the next object; NONE if none was seen.
        distance_min: U32,
        /// How often that was seen.
        distance_hits: U32,
        /// Distances seen.
        distance_seen: U32,
        /// Bytes of an instance as ALLOC SITES give them; 0 if they do not.
        site_size: U32,
        /// Rows in the field table.
        fields: U16,
        /// Rows in the static field table.
        statics: U16,
        /// What its objects are: 0 instances, 2 object arrays, 4 to 11 primitive arrays of this basic type.
        kind: u8,
        /// Bit 0: has a CLASS DUMP; bit 1: has a LOAD CLASS.
        flags: u8,
        /// 0.
        reserved: U16,
    }

    /// An instance field, in the order of the class dump.
    FieldRow {
        /// Text number of the name.
        name: U32,
        /// Basic type.
        kind: u8,
    }

    /// A static field.
    StaticRow {
        /// The value's bits; an object id for references.
        value: U64,
        /// Text number of the name.
        name: U32,
        /// Basic type.
        kind: u8,
    }

    /// Object arrays of one class with the same length modulo 64.
    ObjectLengthRow {
        /// Number of arrays.
        count: U64,
        /// Class number.
        class: U32,
        /// The length modulo 64.
        length: u8,
    }

    /// All elements of the object arrays of a class.
    ElementsRow {
        /// Number of elements.
        elements: U64,
        /// Class number.
        class: U32,
    }

    /// The smallest distance seen; `min` is NONE if there was none.
    DistanceRow {
        /// Bytes.
        min: U32,
        /// How often it was seen.
        hits: U32,
        /// Distances seen.
        seen: U32,
    }

    /// The distance from a class object to the next object.
    ClassDistanceRow {
        /// Bytes.
        bytes: U64,
        /// Number of the class that the class object stands for.
        class: U32,
    }

    /// Instances of `jdk.internal.vm.StackChunk` of one stack size.
    StackChunkRow {
        /// Number of instances.
        instances: U64,
        /// Stack size in words.
        words: U32,
        /// Their distances.
        distance: DistanceRow,
    }

    /// A GC root.
    RootRow {
        /// Object id.
        id: U64,
        /// Thread serial number; NONE if its kind has none.
        thread: U32,
        /// Frame number, or a thread object's trace serial number; NONE if its kind has none.
        frame: U32,
        /// Tag of the root sub-record.
        kind: u8,
    }

    /// The place of a STRING, STACK FRAME or STACK TRACE record.
    PlaceRow {
        /// Its id or serial number.
        id: U64,
        /// Offset of the record in the file.
        offset: U64,
    }

    /// A LOAD CLASS record.
    LoadRow {
        /// Id of the class object.
        id: U64,
        /// String id of the name.
        name: U64,
        /// Class serial number.
        serial: U32,
        /// Trace serial number.
        trace: U32,
    }

    /// A START THREAD record.
    ThreadRow {
        /// Object id of the thread.
        id: U64,
        /// String id of the name.
        name: U64,
        /// String id of the group's name.
        group: U64,
        /// String id of the parent group's name.
        parent_group: U64,
        /// Thread serial number.
        serial: U32,
        /// Trace serial number.
        trace: U32,
    }

    /// The body of a HEAP DUMP or HEAP DUMP SEGMENT record.
    SegmentRow {
        /// Offset of the first sub-record.
        start: U64,
        /// Offset just past the last.
        end: U64,
    }

    /// A number that belongs to a record which is not kept whole, by the record's tag.
    RecordRow {
        /// Offset of the record (ALLOC SITES, CPU SAMPLES, HEAP SUMMARY, CONTROL SETTINGS), or the serial number
        /// that it holds (UNLOAD CLASS, END THREAD).
        value: U64,
        /// Tag of the record.
        tag: u8,
    }

    /// A class loader other than the boot loader.
    LoaderRow {
        /// Object id.
        id: U64,
        /// Class number of its class, or NONE if it is not in the dump.
        class: U32,
        /// Text number of the name that it was given, or NONE (`java.lang.ClassLoader.name`, since JDK 9).
        name: U32,
    }

    /// A system property of the JVM, or a heap of Android.
    PairRow {
        /// Text number of the property's key, or the heap's number.
        key: U32,
        /// Text number of the value.
        value: U32,
    }

    /// Something wrong or odd.
    ProblemRow {
        /// Offset in the file; `u64::MAX` for none.
        offset: U64,
        /// Bytes that were not read for it.
        skipped_bytes: U64,
        /// Text number.
        text: U32,
        /// 0 a note, 1 damage.
        severity: u8,
        /// Number of its kind.
        kind: u8,
    }

    /// A heap dump of the file, whether it was read or not.
    HeapDumpRow {
        /// Offset of its first sub-record.
        offset: U64,
        /// Bytes of its sub-records.
        bytes: U64,
        /// Heap dump records that it consists of, without empty ones.
        segments: U32,
        /// Microseconds from the header's time to its first record.
        time_us: U32,
        /// 1 if it is closed by an end record, or needs none.
        ended: u8,
    }

    /// What was read of the dump, and what was not: `Account` without what other tables tell.
    AccountRow {
        /// Bytes that the file has to have at least; `u64::MAX` if nobody can tell.
        expected_bytes: U64,
        /// Bytes that could not be read.
        skipped_bytes: U64,
        /// Places at the top level where records are lost.
        lost_records: U64,
        /// Places in the heap dump where sub-records are lost.
        lost_places: U64,
        /// Heap dump records without a sub-record.
        empty_segments: U64,
        /// Object arrays as long as HotSpot can dump them.
        cut_object_arrays: U64,
        /// The same of primitive arrays.
        cut_primitive_arrays: U64,
        /// 1 if the heap dump itself is not whole.
        heap_damaged: u8,
    }

    /// The numbers of a dump that stand alone.
    FactsRow {
        /// Creation time, milliseconds since 1970.
        created_ms: U64,
        /// Length of the (unpacked) dump.
        dump_bytes: U64,
        /// All object ids or'ed.
        id_bits: U64,
        /// CLASS DUMPs, each class counted once.
        class_objects: U64,
        /// Objects dumped again under an id that was there already.
        repeated_objects: U64,
        /// Heap dumps in the file.
        heap_dumps: U32,
        /// The one that was read, from 1; 0 if there is none.
        heap_dump: U32,
        /// The highest allocation trace serial number of an object, class objects included; 0 without objects.
        max_trace: U32,
        /// The lowest; `u32::MAX` without objects.
        min_trace: U32,
        /// Microseconds from the header's time to this heap dump's record.
        time_us: U32,
        /// Class number of java.lang.Class, or NONE.
        java_lang_class: U32,
        /// Identifier size.
        id_bytes: u8,
        /// Version: 0 for 1.0, 1 for 1.0.1, 2 for 1.0.2, 3 for 1.0.3.
        version: u8,
        /// How it was compressed: 0 not, 1 gzip, 2 zstd, 3 tar, 4 tar in gzip, 5 tar in zstd, 6 zip.
        compression: u8,
    }

    /// A count.
    CountRow {
        /// The count.
        count: U64,
    }

    /// The end of a text in the bytes of all texts; it starts where the one before ends.
    TextRow {
        /// Offset just past its last byte.
        end: U32,
    }
}

/// What the objects of a class are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClassKind {
    /// Instances.
    Instance,
    /// Arrays of references.
    ObjectArray,
    /// Arrays of a primitive type.
    PrimitiveArray(BasicType),
}

impl ClassKind {
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Instance => 0,
            Self::ObjectArray => BasicType::Object.code(),
            Self::PrimitiveArray(element) => element.code(),
        }
    }

    pub(crate) fn from_code(code: u8) -> Self {
        match BasicType::from_code(code) {
            None => Self::Instance,
            Some(BasicType::Object) => Self::ObjectArray,
            Some(element) => Self::PrimitiveArray(element),
        }
    }
}

impl ClassRow {
    /// Whether the dump holds a CLASS DUMP of it.
    pub fn is_dumped(&self) -> bool {
        self.flags & 1 != 0
    }

    /// What its objects are.
    pub fn kind(&self) -> ClassKind {
        ClassKind::from_code(self.kind)
    }
}

impl From<crate::layout::measurements::Distance> for DistanceRow {
    fn from(distance: crate::layout::measurements::Distance) -> Self {
        Self { min: distance.min.into(), hits: distance.hits.into(), seen: distance.seen.into() }
    }
}

impl From<DistanceRow> for crate::layout::measurements::Distance {
    fn from(row: DistanceRow) -> Self {
        Self { min: row.min.get(), hits: row.hits.get(), seen: row.seen.get() }
    }
}
