//! Columns of an index file that are checked when they are read, in blocks of 64 KiB with a checksum
//! each.
//!
//! An index of a large dump takes gigabytes, and a query reads a few pages of it. A block whose checksum
//! does not match is never used: reading it returns nothing, and marks the file as damaged. Callers check
//! that mark before they return a result ([`crate::ObjectGraph::is_damaged`]). While an index is built,
//! columns are in memory or in scratch arrays.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rayon::prelude::*;
use xxhash_rust::xxh3::xxh3_64;
use zerocopy::FromBytes;

use super::column::ColumnRow;
use super::prefetch::prefetch;
use super::scratch::Array;
use hprof_input::file::MappedFile;

/// Size in bytes of a block, which has its own hash.
pub const BLOCK_BYTES: usize = 1 << 16;

/// Hashes of a section's blocks, and the set of blocks that were checked and are valid.
#[derive(Debug)]
pub(crate) struct Checks {
    hashes: Vec<u64>,
    right: Vec<AtomicU64>,
}

impl Checks {
    pub(crate) fn new(hashes: Vec<u64>) -> Self {
        let right = (0..hashes.len().div_ceil(64)).map(|_| AtomicU64::new(0)).collect();
        Self { hashes, right }
    }

    #[inline(always)]
    fn is_known(&self, block: usize) -> bool {
        let word = self.right.get(block / 64).map_or(0, |word| word.load(Ordering::Relaxed));
        word & (1 << (block % 64)) != 0
    }

    /// Returns `true` if a block of `section` is valid.
    #[cold]
    fn check(&self, section: &[u8], block: usize) -> bool {
        let start = block * BLOCK_BYTES;
        let bytes = section.get(start..section.len().min(start + BLOCK_BYTES)).unwrap_or_default();
        let right = self.hashes.get(block).is_some_and(|hash| *hash == xxh3_64(bytes));
        if let (true, Some(word)) = (right, self.right.get(block / 64)) {
            word.fetch_or(1 << (block % 64), Ordering::Relaxed);
        }
        right
    }

    /// Returns `true` if all blocks are valid. Checks them on all cores if there are many.
    pub(crate) fn all_valid(&self, section: &[u8]) -> bool {
        self.are_valid(section, 0..self.hashes.len())
    }

    /// Returns `true` if all blocks of a range are valid.
    pub(crate) fn are_valid(&self, section: &[u8], mut blocks: Range<usize>) -> bool {
        let right = |block: usize| self.is_known(block) || self.check(section, block);
        if blocks.len() > 64 { blocks.into_par_iter().all(right) } else { blocks.all(right) }
    }
}

/// A column of rows: made in memory, or a section of a mapped index file that is checked as it is read.
#[derive(Debug)]
pub struct CheckedColumn<T>(Inner<T>);

/// Storage of a [`CheckedColumn`].
#[derive(Debug)]
enum Inner<T> {
    Owned(Vec<T>),
    Scratch(Array<T>),
    Mapped { file: Arc<MappedFile>, range: Range<usize>, checks: Checks, damage: Arc<AtomicBool> },
}

impl<T> Default for CheckedColumn<T> {
    fn default() -> Self {
        Self(Inner::Owned(Vec::new()))
    }
}

impl<T> From<Vec<T>> for CheckedColumn<T> {
    fn from(rows: Vec<T>) -> Self {
        Self(Inner::Owned(rows))
    }
}

impl<T> From<Array<T>> for CheckedColumn<T> {
    fn from(rows: Array<T>) -> Self {
        Self(Inner::Scratch(rows))
    }
}

impl<T: ColumnRow> CheckedColumn<T> {
    pub(crate) fn from_mapped(
        file: Arc<MappedFile>,
        range: Range<usize>,
        checks: Checks,
        damage: Arc<AtomicBool>,
    ) -> Self {
        Self(Inner::Mapped { file, range, checks, damage })
    }

    /// Returns the number of rows.
    #[inline]
    pub fn len(&self) -> usize {
        match &self.0 {
            Inner::Owned(rows) => rows.len(),
            Inner::Scratch(rows) => rows.len(),
            Inner::Mapped { range, .. } => range.len() / size_of::<T>(),
        }
    }

    /// Returns `true` if there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns a range of rows; `None` if it is out of range or damaged.
    #[inline]
    pub fn rows(&self, rows: Range<usize>) -> Option<&[T]> {
        match &self.0 {
            Inner::Owned(all) => all.get(rows),
            Inner::Scratch(all) => all.get(rows),
            Inner::Mapped { file, range, checks, damage } => {
                let section = file.bytes().get(range.clone())?;
                let bytes = rows.start.checked_mul(size_of::<T>())?..rows.end.checked_mul(size_of::<T>())?;
                let part = section.get(bytes.clone())?;
                if !part.is_empty() {
                    for block in bytes.start / BLOCK_BYTES..=(bytes.end - 1) / BLOCK_BYTES {
                        if !checks.is_known(block) && !checks.check(section, block) {
                            damage.store(true, Ordering::Relaxed);
                            return None;
                        }
                    }
                }
                <[T]>::ref_from_bytes(part).ok()
            }
        }
    }

    /// Returns one row.
    #[inline]
    pub fn get(&self, row: usize) -> Option<&T> {
        self.rows(row..row.checked_add(1)?)?.first()
    }

    /// Prefetches a row, without checking it.
    #[inline]
    pub(crate) fn prefetch(&self, row: usize) {
        match &self.0 {
            Inner::Owned(rows) => prefetch(rows, row),
            Inner::Scratch(rows) => prefetch(rows, row),
            Inner::Mapped { file, range, .. } => {
                let at = row.saturating_mul(size_of::<T>()).saturating_add(range.start);
                prefetch(file.bytes(), at.min(range.end));
            }
        }
    }

    /// Returns all rows after checking them; none if some are damaged.
    pub fn all(&self) -> &[T] {
        match &self.0 {
            Inner::Owned(rows) => rows,
            Inner::Scratch(rows) => rows,
            Inner::Mapped { file, range, checks, damage } => {
                let section = file.bytes().get(range.clone()).unwrap_or_default();
                if !checks.all_valid(section) {
                    damage.store(true, Ordering::Relaxed);
                    return &[];
                }
                <[T]>::ref_from_bytes(section).unwrap_or_default()
            }
        }
    }
}
