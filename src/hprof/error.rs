//! Errors in the bytes of a dump, with their offsets.

use std::fmt;

/// An error in the bytes of a dump: the kind, and the offset in the file.
///
/// One word wide, so that results stay small on the hot path.
#[derive(Debug, thiserror::Error)]
#[error("{}", self.0)]
pub struct FormatError(Box<Inner>);

/// Contents of a [`FormatError`].
#[derive(Debug)]
struct Inner {
    kind: FormatErrorKind,
    offset: u64,
}

/// Kind of a [`FormatError`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum FormatErrorKind {
    /// The file is empty.
    Empty,
    /// The file does not start like an HPROF binary; the text describes its apparent format.
    NotADump(String),
    /// The identifier size is neither 4 nor 8.
    IdSize(u32),
    /// The header is truncated.
    HeaderCut,
    /// A record of this tag extends beyond the end of its container.
    RecordCut {
        /// Tag of the record.
        tag: u8,
        /// Size of the record, including the tag, if known.
        needed: Option<u64>,
        /// Number of bytes left.
        left: u64,
    },
    /// A heap sub-record with a tag that no version of the format defines.
    UnknownSubRecord(u8),
    /// A top-level record with a tag that no version of the format defines.
    UnknownRecord(u8),
    /// The segments of a heap dump that starts here are not followed by HEAP DUMP END.
    NoHeapDumpEnd,
    /// An invalid basic type in a sub-record of this tag.
    BasicType {
        /// Tag of the sub-record.
        tag: u8,
        /// Type code that was read.
        found: u8,
    },
}

impl FormatError {
    #[cold]
    pub(crate) fn new(kind: FormatErrorKind, offset: u64) -> Self {
        Self(Box::new(Inner { kind, offset }))
    }

    /// Returns the kind of the error.
    pub fn kind(&self) -> &FormatErrorKind {
        &self.0.kind
    }

    /// Returns the offset of the error in the (unpacked) file.
    pub fn offset(&self) -> u64 {
        self.0.offset
    }
}

impl fmt::Display for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            FormatErrorKind::Empty => return write!(f, "the file is empty"),
            FormatErrorKind::NotADump(looks_like) => return write!(f, "not a heap dump: {looks_like}"),
            FormatErrorKind::IdSize(size) => {
                write!(f, "invalid object ID size: {size} bytes instead of 4 or 8")?
            }
            FormatErrorKind::HeaderCut => write!(f, "the header is truncated")?,
            FormatErrorKind::RecordCut { tag, needed: Some(needed), left } => {
                write!(f, "record {tag:#04x} is truncated: {left} of {needed} bytes are left")?;
            }
            FormatErrorKind::RecordCut { tag, needed: None, left } => {
                write!(f, "record {tag:#04x} is truncated; bytes left: {left}")?;
            }
            FormatErrorKind::UnknownSubRecord(tag) => write!(f, "unknown heap sub-record {tag:#04x}")?,
            FormatErrorKind::UnknownRecord(tag) => write!(f, "unknown record {tag:#04x}")?,
            FormatErrorKind::NoHeapDumpEnd => write!(f, "the heap dump has no HEAP DUMP END record")?,
            FormatErrorKind::BasicType { tag, found } => {
                write!(f, "unknown basic type {found} in sub-record {tag:#04x}")?;
            }
        }
        write!(f, " (at offset {:#x})", self.offset)
    }
}
