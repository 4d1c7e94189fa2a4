//! What can be wrong with the bytes of a dump, and where.

use std::fmt;

/// An error in the bytes of a dump: what was expected, and at which offset in the file.
///
/// One word wide, so that results stay small on the hot path.
#[derive(Debug, thiserror::Error)]
#[error("{}", self.0)]
pub struct FormatError(Box<Inner>);

#[derive(Debug)]
struct Inner {
    kind: FormatErrorKind,
    offset: u64,
}

/// The kinds of [`FormatError`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum FormatErrorKind {
    /// The file holds no byte.
    Empty,
    /// The file does not start as an HPROF binary does; the text names what it looks like.
    NotADump(String),
    /// The identifier size is neither 4 nor 8.
    IdSize(u32),
    /// The header is cut.
    HeaderCut,
    /// A record of this tag runs past the end of what holds it.
    RecordCut {
        /// The record's tag.
        tag: u8,
        /// Bytes that it needs, tag included, if that is known.
        needed: Option<u64>,
        /// Bytes that are left.
        left: u64,
    },
    /// A heap sub-record with a tag that no version of the format knows.
    UnknownSubRecord(u8),
    /// A top-level record with a tag that no version of the format knows.
    UnknownRecord(u8),
    /// The segments of a heap dump that begins here are not followed by HEAP DUMP END.
    NoHeapDumpEnd,
    /// A basic type that does not exist, in a sub-record of this tag.
    BasicType {
        /// The sub-record's tag.
        tag: u8,
        /// The type's number as found.
        found: u8,
    },
}

impl FormatError {
    #[cold]
    pub(crate) fn new(kind: FormatErrorKind, offset: u64) -> Self {
        Self(Box::new(Inner { kind, offset }))
    }

    /// What is wrong.
    pub fn kind(&self) -> &FormatErrorKind {
        &self.0.kind
    }

    /// The offset in the (unpacked) file at which it is wrong.
    pub fn offset(&self) -> u64 {
        self.0.offset
    }
}

impl fmt::Display for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            FormatErrorKind::Empty => return write!(f, "the file is empty"),
            FormatErrorKind::NotADump(looks_like) => return write!(f, "not a heap dump: {looks_like}"),
            FormatErrorKind::IdSize(size) => write!(f, "object IDs of {size} bytes (expected 4 or 8)")?,
            FormatErrorKind::HeaderCut => write!(f, "the header is truncated")?,
            FormatErrorKind::RecordCut { tag, needed: Some(needed), left } => {
                write!(f, "record {tag:#04x} needs {needed} bytes, {left} are left")?;
            }
            FormatErrorKind::RecordCut { tag, needed: None, left } => {
                write!(f, "record {tag:#04x} is truncated, {left} bytes are left")?;
            }
            FormatErrorKind::UnknownSubRecord(tag) => write!(f, "unknown heap sub-record {tag:#04x}")?,
            FormatErrorKind::UnknownRecord(tag) => write!(f, "unknown record {tag:#04x}")?,
            FormatErrorKind::NoHeapDumpEnd => write!(f, "the heap dump has no HEAP DUMP END")?,
            FormatErrorKind::BasicType { tag, found } => {
                write!(f, "unknown basic type {found} in sub-record {tag:#04x}")?;
            }
        }
        write!(f, " (at offset {:#x})", self.offset)
    }
}
