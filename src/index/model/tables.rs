//! Rows of the index, exactly as they are stored on disk.
//!
//! All rows are little-endian and unaligned, so that a mapped section is a slice of rows without a copy.
//! `docs/index-format.md` describes them byte by byte; a change of any row needs a new
//! [`crate::storage::store::FORMAT_VERSION`].

use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use hprof_values::{BasicType, ObjectId};

/// Declares row types and derives the traits that a section needs.
macro_rules! rows {
    ($($(#[$about:meta])* $name:ident { $($(#[$field_about:meta])* $field:ident: $kind:ty,)* })*) => {$(
        $(#[$about])*
        #[derive(Debug, Clone, Copy, Default, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
        #[repr(C)]
        pub struct $name { $($(#[$field_about])* pub $field: $kind,)* }
    )*};
}

/// Number of a class: its row in the class table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClassNumber(pub u32);

/// Number of logarithms (base 2, rounded down) of an array's length.
pub(crate) const LENGTH_BITS: usize = 32;

/// Number of filled parts, the longest and those that are shorter by one element each, whose arrays are counted.
pub(crate) const NEAR: usize = 4;

/// Marker for "none" in columns of class numbers and text numbers.
pub const NONE: u32 = u32::MAX;

rows! {
    /// A class: contents of its CLASS DUMP and LOAD CLASS, and counts of the scan.
    ClassRow {
        /// Object ID of the class object; 0 if the dump has none.
        id: U64,
        /// Object ID of the superclass's class object.
        super_id: U64,
        /// Object ID of the loader; 0 for the boot loader.
        loader: U64,
        /// Object ID of the signers.
        signers: U64,
        /// Object ID of the protection domain.
        protection_domain: U64,
        /// Offset of its CLASS DUMP in the file; 0 if it is not dumped.
        offset: U64,
        /// Number of INSTANCE DUMPs, OBJECT ARRAY DUMPs or PRIMITIVE ARRAY DUMPs of the class.
        objects: U64,
        /// Number of INSTANCE DUMPs with more or fewer field bytes than the class declares, where that is
        /// known.
        deviant: U64,
        /// Text number of the name in Java source form.
        name: U32,
        /// Class number of the superclass that the dump states, or NONE. Stated superclasses can be cyclic, unlike the ones in
        /// [`super::class_table::ClassTable`].
        super_class: U32,
        /// Instance size stated by the CLASS DUMP.
        stated_size: U32,
        /// Class serial number in its LOAD CLASS; 0 without one.
        serial: U32,
        /// Trace serial number in its CLASS DUMP.
        trace: U32,
        /// Number of its first row in the field table.
        first_field: U32,
        /// Number of its first row in the static field table.
        first_static: U32,
        /// Smallest distance from an instance to the next object; NONE if none was measured.
        distance_min: U32,
        /// Number of times the smallest distance occurs.
        distance_hits: U32,
        /// Number of measured distances.
        distance_seen: U32,
        /// Instance size given by ALLOC SITES; 0 if there is none.
        site_size: U32,
        /// Number of rows in the field table.
        fields: U16,
        /// Number of rows in the static field table.
        statics: U16,
        /// Kind of its objects: 0 instances, 2 object arrays, 4 to 11 primitive arrays of this basic type.
        kind: u8,
        /// Bit 0: has a CLASS DUMP; bit 1: has a LOAD CLASS.
        flags: u8,
        /// Always 0.
        reserved: U16,
    }

    /// An instance field. The rows of a class are in the order of its CLASS DUMP.
    FieldRow {
        /// Text number of the name.
        name: U32,
        /// Basic type.
        kind: u8,
    }

    /// A static field.
    StaticRow {
        /// Bits of the value; an object ID for references.
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
        /// Length modulo 64.
        length: u8,
    }

    /// Total number of elements of the object arrays of a class.
    ElementsRow {
        /// Number of elements.
        elements: U64,
        /// Class number.
        class: U32,
    }

    /// Smallest measured distance; `min` is NONE if there was none.
    DistanceRow {
        /// Distance in bytes.
        min: U32,
        /// Number of times it occurs.
        hits: U32,
        /// Number of measured distances.
        seen: U32,
    }

    /// Distance from a class object to the next object.
    ClassDistanceRow {
        /// Distance in bytes.
        bytes: U64,
        /// Number of the class of this class object.
        class: U32,
    }

    /// Instances of `jdk.internal.vm.StackChunk` with the same stack size.
    StackChunkRow {
        /// Number of instances.
        instances: U64,
        /// Stack size in words.
        words: U32,
        /// Distances of these instances.
        distance: DistanceRow,
    }

    /// A GC root.
    RootRow {
        /// Object ID.
        id: U64,
        /// Thread serial number; NONE if the kind has none.
        thread: U32,
        /// Frame number, or trace serial number of a thread object; NONE if the kind has none.
        frame: U32,
        /// Tag of the root sub-record.
        kind: u8,
    }

    /// Offset of a STRING, STACK FRAME or STACK TRACE record.
    PlaceRow {
        /// ID or serial number of the record.
        id: U64,
        /// Offset of the record in the file.
        offset: U64,
    }

    /// A LOAD CLASS record.
    LoadRow {
        /// Object ID of the class object.
        id: U64,
        /// String ID of the name.
        name: U64,
        /// Class serial number.
        serial: U32,
        /// Trace serial number.
        trace: U32,
    }

    /// A START THREAD record.
    ThreadRow {
        /// Object ID of the thread.
        id: U64,
        /// String ID of the name.
        name: U64,
        /// String ID of the group's name.
        group: U64,
        /// String ID of the parent group's name.
        parent_group: U64,
        /// Thread serial number.
        serial: U32,
        /// Trace serial number.
        trace: U32,
    }

    /// Body of a HEAP DUMP or HEAP DUMP SEGMENT record.
    SegmentRow {
        /// Offset of the first sub-record.
        start: U64,
        /// End offset of the last sub-record (exclusive).
        end: U64,
    }

    /// A value from a record that is not stored as a whole, with the record's tag.
    RecordRow {
        /// Offset of the record (ALLOC SITES, CPU SAMPLES, HEAP SUMMARY, CONTROL SETTINGS), or the serial
        /// number that it contains (UNLOAD CLASS, END THREAD).
        value: U64,
        /// Tag of the record.
        tag: u8,
    }

    /// A class loader other than the boot loader.
    LoaderRow {
        /// Object ID.
        id: U64,
        /// Class number, or NONE if the class is not in the dump.
        class: U32,
        /// Text number of the name given to it, or NONE (`java.lang.ClassLoader.name`, since JDK 9).
        name: U32,
    }

    /// A system property of the JVM, or a heap of Android.
    PairRow {
        /// Text number of the property's key, or number of the heap.
        key: U32,
        /// Text number of the value.
        value: U32,
    }

    /// A problem or oddity.
    ProblemRow {
        /// Offset in the file; `u64::MAX` for none.
        offset: U64,
        /// Number of bytes skipped because of it.
        skipped_bytes: U64,
        /// Text number of the description.
        text: U32,
        /// Severity: 0 note, 1 damage.
        severity: u8,
        /// Code of the kind.
        kind: u8,
    }

    /// A heap dump of the file, whether it was read or not.
    HeapDumpRow {
        /// Offset of its first sub-record.
        offset: U64,
        /// Size of its sub-records in bytes.
        bytes: U64,
        /// Number of its heap dump records that contain sub-records.
        segments: U32,
        /// Microseconds from the header's time to its first record.
        time_us: U32,
        /// 1 if an end record terminates it, or if none is needed.
        ended: u8,
    }

    /// Totals of read, skipped and damaged data: `Account` without the values of other tables.
    AccountRow {
        /// Minimum size of the complete file; `u64::MAX` if it cannot be determined.
        expected_bytes: U64,
        /// Number of bytes that could not be read.
        skipped_bytes: U64,
        /// Damaged regions at the top level.
        lost_records: U64,
        /// Damaged regions in the heap dump.
        lost_places: U64,
        /// Heap dump records without a sub-record.
        empty_segments: U64,
        /// Number of object arrays of the maximum length that HotSpot dumps, which may be truncated.
        cut_object_arrays: U64,
        /// Number of primitive arrays of the maximum length that HotSpot dumps, which may be truncated.
        cut_primitive_arrays: U64,
        /// 1 if the heap dump itself is incomplete.
        heap_damaged: u8,
    }

    /// Scalar values of a dump.
    FactsRow {
        /// Creation time in milliseconds since 1970.
        created_ms: U64,
        /// Size of the (unpacked) dump in bytes.
        dump_bytes: U64,
        /// Bitwise OR of all object IDs.
        id_bits: U64,
        /// Highest ID of a flattened object; 0 if there are none.
        last_flat_id: U64,
        /// Number of classes with a CLASS DUMP.
        class_objects: U64,
        /// Number of objects whose ID an earlier object has.
        repeated_objects: U64,
        /// Number of heap dumps in the file.
        heap_dumps: U32,
        /// Number of the heap dump that was read, from 1; 0 if there is none.
        heap_dump: U32,
        /// Highest allocation trace serial number of an object, including class objects; 0 without objects.
        max_trace: U32,
        /// Lowest allocation trace serial number; `u32::MAX` without objects.
        min_trace: U32,
        /// Microseconds from the header's time to the record of the heap dump that was read.
        time_us: U32,
        /// Class number of java.lang.Class, or NONE.
        java_lang_class: U32,
        /// Identifier size in bytes.
        id_bytes: u8,
        /// Version of the format: 0 for 1.0, 1 for 1.0.1, 2 for 1.0.2, 3 for 1.0.3.
        version: u8,
        /// Compression of the file: 0 none, 1 gzip, 2 zstd, 3 tar, 4 tar in gzip, 5 tar in zstd, 6 zip.
        compression: u8,
        /// 1 if the dump was made from a text report: it states all sizes, and contains no values.
        is_from_text: u8,
    }

    /// Class of the arrays that state the class of their elements instead of their own (JVMPI).
    ElementArrayRow {
        /// ID of the elements' class; 0 for arrays that state no class.
        element: U64,
        /// Class number of the array class.
        class: U32,
    }

    /// Size that a dump made from a text report states for an object.
    StatedSizeRow {
        /// Object ID.
        id: U64,
        /// Size in bytes.
        bytes: U64,
    }

    /// Objects of a class whose sizes are stated one by one.
    StatedTotalRow {
        /// Number of objects.
        objects: U64,
        /// Sum of their sizes.
        bytes: U64,
        /// Class number.
        class: U32,
    }

    /// How far the arrays of one element type are filled.
    FillRow {
        /// Number of elements of the longest filled part of an array.
        longest: U32,
        /// Number of arrays that are filled up to `longest`, and to one to three elements before it.
        near_counts: [U64; NEAR],
        /// Lengths of these arrays modulo 64, as sets.
        near_lengths: [U64; NEAR],
        /// 1 if all elements of all arrays have the same value.
        has_one_value: u8,
        /// Number of arrays that end with zeros, by the logarithm of their length to base 2, rounded down.
        zero_ends: [U64; LENGTH_BITS],
    }

    /// Flattened objects of a class.
    FlatClassRow {
        /// Number of objects.
        objects: U64,
        /// Class number.
        class: U32,
    }

    /// Field that contains flattened objects.
    FlatFieldRow {
        /// Class number of the class that declares the field.
        class: U32,
        /// Number of the field among those that the class declares.
        field: U32,
        /// Class number of the objects.
        value_class: U32,
    }

    /// Arrays of a class that contain flattened objects.
    FlatArrayRow {
        /// Class number of the arrays.
        class: U32,
        /// Class number of the elements.
        value_class: U32,
        /// 1 if an element is null.
        has_null: u8,
        /// Total number of elements.
        elements: U64,
        /// Number of arrays by length modulo 64.
        lengths: [[U64; 32]; 2],
    }

    /// Row of a table of counts.
    CountRow {
        /// The count.
        count: U64,
    }

    /// End of a text in the bytes of all texts; it starts at the end of the previous text.
    TextRow {
        /// End offset (exclusive).
        end: U32,
    }
}

/// Kind of the objects of a class.
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
    /// Returns the code of this kind in a [`ClassRow`].
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Instance => 0,
            Self::ObjectArray => BasicType::Object.code(),
            Self::PrimitiveArray(element) => element.code(),
        }
    }

    /// Returns the kind with this code.
    pub(crate) fn from_code(code: u8) -> Self {
        match BasicType::from_code(code) {
            None => Self::Instance,
            Some(BasicType::Object) => Self::ObjectArray,
            Some(element) => Self::PrimitiveArray(element),
        }
    }
}

impl ClassRow {
    /// Returns `true` if the dump contains a CLASS DUMP of the class.
    pub fn is_dumped(&self) -> bool {
        self.flags & 1 != 0
    }

    /// Returns the ID of its class object, if that is in the dump.
    pub fn class_object(&self) -> Option<ObjectId> {
        self.is_dumped().then(|| self.id.into())
    }

    /// Returns the kind of the class's objects.
    pub fn kind(&self) -> ClassKind {
        ClassKind::from_code(self.kind)
    }
}

impl From<crate::model::measurements::Distance> for DistanceRow {
    fn from(distance: crate::model::measurements::Distance) -> Self {
        Self { min: distance.min.into(), hits: distance.hits.into(), seen: distance.seen.into() }
    }
}

impl From<DistanceRow> for crate::model::measurements::Distance {
    fn from(row: DistanceRow) -> Self {
        Self { min: row.min.get(), hits: row.hits.get(), seen: row.seen.get() }
    }
}
