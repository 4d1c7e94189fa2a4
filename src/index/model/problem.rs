//! What is wrong or odd about a dump, as found while reading it.

use std::fmt;

/// How bad a [`Problem`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "lowercase")]
#[repr(u8)]
pub enum Severity {
    /// Odd, but all of the file was read; what it means for figures, `doctor` says.
    Note = 0,
    /// Part of the dump is missing or unreadable: figures are of what is there.
    Damage = 1,
}

/// Declares the kinds of problems with their numbers and names.
macro_rules! kinds {
    ($($(#[$about:meta])* $kind:ident = $code:literal $name:literal,)*) => {
        /// What kind of thing a [`Problem`] is.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum ProblemKind { $($(#[$about])* $kind = $code,)* }

        impl ProblemKind {
            /// All kinds.
            pub const ALL: &[Self] = &[$(Self::$kind,)*];

            /// The name in JSON.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$kind => $name,)* }
            }
        }
    };
}

kinds! {
    /// The file ends inside a record.
    FileCut = 1 "file_cut",
    /// The compressed file ends early, or what follows could not be unpacked.
    PackedCut = 2 "compressed_file_cut",
    /// Bytes at the top level that are no record.
    UnknownRecord = 3 "unknown_record",
    /// A top-level record that does not hold what it states.
    BadRecord = 4 "damaged_record",
    /// Bytes in a heap dump that are no sub-record.
    UnknownSubRecord = 5 "unknown_sub_record",
    /// A sub-record that does not fit its record.
    BadSubRecord = 6 "damaged_sub_record",
    /// No record follows where a heap dump record ends.
    LostEnd = 7 "no_record_follows",
    /// The file was copied or stored as if it were text.
    TextMode = 8 "text_mode",
    /// More places than are listed.
    MorePlaces = 9 "more_places",
    /// The last heap dump has no end record.
    NoEnd = 10 "no_end_record",
    /// A heap dump record of more than 4 GiB.
    LengthWrapped = 11 "length_wrapped",
    /// A heap dump record states length 0, and is none.
    LengthOpen = 12 "length_open",
    /// Segments without a sub-record.
    EmptySegments = 13 "empty_segments",
    /// Objects with the id of another.
    RepeatedObjects = 14 "repeated_objects",
    /// Classes dumped more than once.
    RepeatedClasses = 15 "repeated_classes",
    /// Classes that have objects but no CLASS DUMP.
    MissingClasses = 16 "missing_classes",
    /// Classes that no record names.
    UnnamedClasses = 17 "unnamed_classes",
    /// Instances with more or fewer bytes than their class declares.
    OddInstances = 18 "odd_instances",
    /// Arrays that the JVM may have cut.
    CutArrays = 19 "cut_arrays",
    /// A cut dump without its threads: Thread objects are taken as roots.
    ThreadsAssumed = 20 "threads_assumed",
    /// The file ends before a heap dump begins.
    NoHeapDump = 21 "no_heap_dump",
    /// The last sub-record of a file that is cut.
    CutSubRecord = 22 "cut_sub_record",
}

impl ProblemKind {
    /// The kind with this number.
    pub(crate) fn from_code(code: u8) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| *kind as u8 == code)
    }
}

impl serde::Serialize for ProblemKind {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// Something wrong or odd about a dump.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Problem {
    /// How bad it is.
    pub severity: Severity,
    /// What kind of thing it is.
    pub kind: ProblemKind,
    /// What it is, and what was done about it.
    pub text: String,
    /// Offset in the (unpacked) file, where there is one place.
    pub offset: Option<u64>,
    /// Bytes that were not read for it.
    pub skipped_bytes: u64,
}

impl Problem {
    pub(crate) fn note(kind: ProblemKind, text: impl Into<String>, offset: Option<u64>) -> Self {
        Self { severity: Severity::Note, kind, text: text.into(), offset, skipped_bytes: 0 }
    }

    pub(crate) fn damage(kind: ProblemKind, text: impl Into<String>, offset: Option<u64>) -> Self {
        Self { severity: Severity::Damage, ..Self::note(kind, text, offset) }
    }

    /// The same, with the bytes that were not read for it.
    pub(crate) fn skipping(self, bytes: usize) -> Self {
        Self { skipped_bytes: bytes as u64, ..self }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.offset {
            Some(offset) => write!(f, "{} (at offset {offset:#x})", self.text),
            None => f.write_str(&self.text),
        }
    }
}

/// What was read of a dump, and what was not, in numbers: nothing is left out of these, though only the first places
/// are listed as problems.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Account {
    /// Bytes of the (unpacked) file.
    pub file_bytes: u64,
    /// Bytes that the file has to have at least, as its last record says; the same as `file_bytes` if nothing is
    /// missing there; `None` if nobody can tell.
    pub expected_bytes: Option<u64>,
    /// Bytes that are there and could not be read.
    pub skipped_bytes: u64,
    /// Places at the top level where records are lost: one or more at each.
    pub lost_records: u64,
    /// Places in the heap dump where sub-records are lost: one or more at each.
    pub lost_places: u64,
    /// Classes that LOAD CLASS or objects name, and that are not dumped.
    pub undumped_classes: u64,
    /// Instances of classes that are not dumped: what their fields are nobody knows.
    pub objects_without_class: u64,
    /// Instances with more or fewer bytes than their class declares.
    pub odd_instances: u64,
    /// Segments without a sub-record.
    pub empty_segments: u64,
    /// Object arrays as long as HotSpot can dump them.
    pub cut_object_arrays: u64,
    /// The same of primitive arrays.
    pub cut_primitive_arrays: u64,
    /// Whether the heap dump itself is not whole: the file is cut in it, or some of it could not be read.
    pub heap_damaged: bool,
}

impl Account {
    /// Bytes that were read.
    pub fn read_bytes(&self) -> u64 {
        self.file_bytes.saturating_sub(self.skipped_bytes)
    }
}
