//! A column of rows: made in memory, or a section of a mapped index file.

use std::ops::{Deref, Range};
use std::sync::Arc;

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use hprof_input::file::MappedFile;

/// Requirements of a row type.
pub trait ColumnRow: FromBytes + IntoBytes + Immutable + KnownLayout + Unaligned {}
impl<T: FromBytes + IntoBytes + Immutable + KnownLayout + Unaligned> ColumnRow for T {}

/// A column of rows.
#[derive(Debug)]
pub enum IndexColumn<T> {
    /// In memory.
    Owned(Vec<T>),
    /// In a mapped file whose checksum was verified when the column was created.
    Mapped {
        /// Mapped file.
        file: Arc<MappedFile>,
        /// Range of bytes in the file.
        range: Range<usize>,
    },
}

impl<T> Default for IndexColumn<T> {
    fn default() -> Self {
        Self::Owned(Vec::new())
    }
}

impl<T> From<Vec<T>> for IndexColumn<T> {
    fn from(rows: Vec<T>) -> Self {
        Self::Owned(rows)
    }
}

impl<T: ColumnRow> Deref for IndexColumn<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        match self {
            Self::Owned(rows) => rows,
            Self::Mapped { file, range } => {
                let bytes = file.bytes().get(range.clone()).unwrap_or_default();
                <[T]>::ref_from_bytes(bytes).unwrap_or_default()
            }
        }
    }
}
