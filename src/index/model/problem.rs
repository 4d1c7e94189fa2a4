//! Problems and oddities found while reading a dump.

use std::fmt;

/// Severity of a [`Problem`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "lowercase")]
#[repr(u8)]
pub enum Severity {
    /// Odd, but the whole file was read; `doctor` explains the effect on counts and sizes.
    Note = 0,
    /// Part of the dump is missing or unreadable: counts and sizes cover only what could be read.
    Damage = 1,
}

/// Declares the kinds of problems with their numbers and names.
macro_rules! kinds {
    ($($(#[$about:meta])* $kind:ident = $code:literal $name:literal,)*) => {
        /// Kind of a [`Problem`].
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum ProblemKind { $($(#[$about])* $kind = $code,)* }

        impl ProblemKind {
            /// All kinds.
            pub const ALL: &[Self] = &[$(Self::$kind,)*];

            /// Returns the name in JSON.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$kind => $name,)* }
            }
        }
    };
}

kinds! {
    /// The file ends inside a record.
    FileCut = 1 "file_cut",
    /// The compressed file ends early, or the rest could not be unpacked.
    PackedCut = 2 "compressed_file_cut",
    /// Bytes at the top level that are not a record.
    UnknownRecord = 3 "unknown_record",
    /// A top-level record whose body does not match its length.
    BadRecord = 4 "damaged_record",
    /// Bytes in a heap dump that are not a sub-record.
    UnknownSubRecord = 5 "unknown_sub_record",
    /// A sub-record that extends beyond its record.
    BadSubRecord = 6 "damaged_sub_record",
    /// No record follows where a heap dump record ends.
    LostEnd = 7 "no_record_follows",
    /// The file was copied or stored as if it were text.
    TextMode = 8 "text_mode",
    /// More damaged regions than are listed.
    MorePlaces = 9 "more_places",
    /// The last heap dump has no end record.
    NoEnd = 10 "no_end_record",
    /// A heap dump record of more than 4 GiB.
    LengthWrapped = 11 "length_wrapped",
    /// A record that states length 0 but is not empty.
    LengthOpen = 12 "length_open",
    /// Segments without a sub-record.
    EmptySegments = 13 "empty_segments",
    /// Objects whose ID another object has.
    RepeatedObjects = 14 "repeated_objects",
    /// Classes dumped more than once.
    RepeatedClasses = 15 "repeated_classes",
    /// Classes that have objects but no CLASS DUMP.
    MissingClasses = 16 "missing_classes",
    /// Classes that no record names.
    UnnamedClasses = 17 "unnamed_classes",
    /// Instances with more or fewer bytes than their class declares.
    OddInstances = 18 "odd_instances",
    /// Arrays that the JVM may have truncated.
    CutArrays = 19 "cut_arrays",
    /// A truncated dump without its threads: Thread objects are assumed to be roots.
    ThreadsAssumed = 20 "threads_assumed",
    /// The file ends before a heap dump begins.
    NoHeapDump = 21 "no_heap_dump",
    /// The last sub-record of a truncated file.
    CutSubRecord = 22 "cut_sub_record",
    /// Complete top-level records of an unknown tag.
    UnsupportedRecord = 23 "unsupported_record",
    /// A heap dump record whose length is wrong though nothing of it is lost.
    WrongLength = 24 "wrong_length",
}

impl ProblemKind {
    /// Returns the kind with this code.
    pub(crate) fn from_code(code: u8) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| *kind as u8 == code)
    }
}

impl serde::Serialize for ProblemKind {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// A problem or oddity of a dump.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Problem {
    /// Severity of the problem.
    pub severity: Severity,
    /// Kind of the problem.
    pub kind: ProblemKind,
    /// Description of the problem and its consequence.
    pub text: String,
    /// Offset in the (unpacked) file, if the problem has a single location.
    pub offset: Option<u64>,
    /// Number of bytes skipped because of the problem.
    pub skipped_bytes: u64,
}

impl Problem {
    /// Creates a problem of severity [`Severity::Note`].
    pub(crate) fn note(kind: ProblemKind, text: impl Into<String>, offset: Option<u64>) -> Self {
        Self { severity: Severity::Note, kind, text: text.into(), offset, skipped_bytes: 0 }
    }

    /// Creates a problem of severity [`Severity::Damage`].
    pub(crate) fn damage(kind: ProblemKind, text: impl Into<String>, offset: Option<u64>) -> Self {
        Self { severity: Severity::Damage, ..Self::note(kind, text, offset) }
    }

    /// Creates the problem of a compressed file that could not be unpacked to its end.
    pub fn of_packed(error: &str) -> Self {
        let text = format!(
            "the compressed file is truncated or damaged: {error}; only the data that could be unpacked was read"
        );
        Self::damage(ProblemKind::PackedCut, text, None)
    }

    /// Sets the number of skipped bytes.
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

/// Totals of read, skipped and damaged data. They are complete, though only the first damaged regions are listed as problems.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Account {
    /// Size of the (unpacked) file in bytes.
    pub file_bytes: u64,
    /// Minimum size of the complete file by its last record; equal to `file_bytes` if nothing is missing at
    /// the end; `None` if it cannot be determined.
    pub expected_bytes: Option<u64>,
    /// Number of bytes in the file that could not be read.
    pub skipped_bytes: u64,
    /// Number of damaged regions at the top level: each contains one or more records.
    pub lost_records: u64,
    /// Number of damaged regions in the heap dump: each contains one or more sub-records.
    pub lost_places: u64,
    /// Number of classes that LOAD CLASS or objects refer to but that are not dumped.
    pub undumped_classes: u64,
    /// Number of instances of classes that are not dumped: their fields are unknown.
    pub objects_without_class: u64,
    /// Instances with more or fewer bytes than their class declares.
    pub odd_instances: u64,
    /// Segments without a sub-record.
    pub empty_segments: u64,
    /// Number of object arrays of the maximum length that HotSpot dumps, which may be truncated.
    pub cut_object_arrays: u64,
    /// Number of primitive arrays of the maximum length that HotSpot dumps, which may be truncated.
    pub cut_primitive_arrays: u64,
    /// `true` if the heap dump itself is incomplete: the file is truncated in it, or part of it could not be
    /// read.
    pub heap_damaged: bool,
}

impl Account {
    /// Returns the number of bytes that were read.
    pub fn read_bytes(&self) -> u64 {
        self.file_bytes.saturating_sub(self.skipped_bytes)
    }
}
