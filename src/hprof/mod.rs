//! The HPROF file formats, and nothing else: bytes in, records out.
//!
//! * [`input`] opens a file: maps it, recognises what it is ([`sniff`]). [`packed`] unpacks gzip, zstd, tar and zip.
//! * [`header`] reads the first line, the identifier size and the date.
//! * [`record`] hops over the top-level records and reads their bodies.
//! * [`heap`] walks the sub-records of a heap dump or heap dump segment; [`class_dump`] reads the one of varying shape.
//! * [`resync`] finds a record boundary in the middle of a heap dump, for pieces and for damaged files.
//! * [`mutf8`] and [`names`] turn the bytes of names into the one form in which they are shown.
//!
//! Nothing here knows of an index, a class table or a question. Every error carries the offset in the file
//! ([`FormatError`]). Nothing panics on any input: positions are checked against the bytes that are there, and
//! lengths are added in `u64`, in which no sum of lengths that a file states can overflow.
//!
//! Sources: the HPROF agent's documentation ("Binary Dump Format"), `heapDumper.cpp` of the JDK, and
//! `art/runtime/hprof` of Android for the 1.0.3 sub-records.

pub mod class_dump;
mod error;
pub mod header;
pub mod heap;
pub mod mutf8;
pub mod names;
pub mod record;
pub mod resync;
pub mod sniff;
pub mod text;
mod types;

pub use error::{FormatError, FormatErrorKind};
pub use header::{Header, Version};
pub use types::{BasicType, IdSize, RootKind};

/// Reads a big-endian `u16` at `at`, if it is there.
pub(crate) fn be_u16(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|chunk| u16::from_be_bytes(*chunk))
}

/// Reads a big-endian `u32` at `at`, if it is there.
pub(crate) fn be_u32(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|chunk| u32::from_be_bytes(*chunk))
}

/// Reads a big-endian `u64` at `at`, if it is there.
pub(crate) fn be_u64(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().map(|chunk| u64::from_be_bytes(*chunk))
}

/// Reads the bits of a value of `kind` at `at`, if it is there.
#[inline]
pub(crate) fn be_value(bytes: &[u8], at: usize, kind: BasicType, size: IdSize) -> Option<u64> {
    let value = bytes.get(at..)?.get(..kind.dump_bytes(size))?;
    Some(value.iter().fold(0, |bits, byte| (bits << 8) | u64::from(*byte)))
}

/// Reads an identifier of `size` bytes at `at`, if it is there.
pub(crate) fn be_id(bytes: &[u8], at: usize, size: IdSize) -> Option<u64> {
    match size {
        IdSize::Four => be_u32(bytes, at).map(u64::from),
        IdSize::Eight => be_u64(bytes, at),
    }
}
