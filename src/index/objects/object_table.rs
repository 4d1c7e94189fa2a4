//! The stage `objects`: class and record of each object, by object index.
//!
//! Objects that are consecutive in address order are mostly consecutive in the file too. So one offset is
//! stored for 64 objects if their records are contiguous: the others are found by skipping records. Irregular
//! blocks (a segment ends, a class object intervenes, IDs are unordered) store the offset of each object.

use std::ops::Range;

use roaring::RoaringBitmap;
use zerocopy::little_endian::U64;

use hprof_parser::heap::{self, HeapVisitor};
use hprof_values::IdSize;

use super::address_index::AddressIndex;
use crate::graph::numbers::ObjectIndex;
use crate::model::summary::ClassNumber;
use crate::storage::checked_column::CheckedColumn;

/// Number of objects that share an entry of the block table.
pub const BLOCK: u32 = 64;

/// Class and record offset of each object.
#[derive(Debug)]
pub struct ObjectTable {
    /// Mapping of object IDs to object indices.
    pub addresses: AddressIndex,
    /// Class numbers, `class_bytes` bytes each, little-endian.
    pub classes: CheckedColumn<u8>,
    /// Size of a class number in `classes`, in bytes.
    pub class_bytes: u8,
    /// Offsets of the records.
    pub places: RecordPlaces,
    /// Object indices of class objects.
    pub(crate) class_objects: RoaringBitmap,
}

/// Offsets of all objects' records.
#[derive(Debug, Default)]
pub struct RecordPlaces {
    /// Entry of each block: the offset of its first record shifted left by one; or, with bit 0 set, the
    /// number of its row in `offsets`.
    pub(crate) blocks: CheckedColumn<U64>,
    /// Offsets of the objects of irregular blocks, 64 to a row, `offset_bytes` bytes each, little-endian.
    pub(crate) offsets: CheckedColumn<u8>,
    pub(crate) offset_bytes: u8,
}

impl RecordPlaces {
    fn block(&self, block: u32) -> Option<BlockPlace> {
        let entry = self.blocks.get(block as usize)?.get();
        let place = usize::try_from(entry >> 1).ok()?;
        if entry & 1 == 0 {
            return Some(BlockPlace::Run(place));
        }
        place.checked_mul(BLOCK as usize).map(BlockPlace::Apart)
    }

    fn offset(&self, bytes: &[u8], id_size: IdSize, index: u32) -> Option<u64> {
        let within = index % BLOCK;
        match self.block(index / BLOCK)? {
            BlockPlace::Apart(row) => {
                little_endian(&self.offsets, row.checked_add(within as usize)?, self.offset_bytes)
            }
            BlockPlace::Run(mut at) => {
                for _ in 0..within {
                    at = heap::visit_one(bytes, id_size, at, bytes.len(), &mut SkipVisitor).ok()?;
                }
                Some(at as u64)
            }
        }
    }

    /// Visits the records of the first `count` objects of a block, and calls `done` after each with its
    /// position in the block.
    pub fn visit<'a, V: HeapVisitor<'a>>(
        &self,
        bytes: &'a [u8],
        id_size: IdSize,
        block: u32,
        count: u32,
        visitor: &mut V,
        mut done: impl FnMut(&mut V),
    ) {
        let mut place = self.block(block);
        for within in 0..count {
            let at = match place {
                Some(BlockPlace::Run(at)) => Some(at),
                Some(BlockPlace::Apart(row)) => {
                    let offset = little_endian(&self.offsets, row + within as usize, self.offset_bytes);
                    offset.and_then(|offset| usize::try_from(offset).ok())
                }
                None => None,
            };
            // The records at these offsets were read before; if the dump has changed since, the offsets may be invalid.
            let next = at.and_then(|at| heap::visit_one(bytes, id_size, at, bytes.len(), visitor).ok());
            if let Some(BlockPlace::Run(_)) = place {
                place = next.map(BlockPlace::Run);
            }
            done(visitor);
        }
    }
}

/// Offsets of the records of a block.
#[derive(Debug, Clone, Copy)]
enum BlockPlace {
    /// Contiguous from this offset on.
    Run(usize),
    /// At the offsets in the rows from this one on.
    Apart(usize),
}

/// Visitor that skips records.
pub(super) struct SkipVisitor;
impl HeapVisitor<'_> for SkipVisitor {}

impl ObjectTable {
    /// Returns the number of objects.
    pub fn len(&self) -> u32 {
        self.addresses.objects()
    }

    /// Returns the indices of all objects.
    pub fn indices(&self) -> Range<ObjectIndex> {
        ObjectIndex(0)..ObjectIndex(self.len())
    }

    /// Reads and checks IDs and classes; damage sets the mark of the file.
    pub(crate) fn check(&self) {
        self.addresses.check();
        self.classes.all();
    }

    /// Returns `true` if there are no objects.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the class of an object; java.lang.Class for class objects.
    #[inline]
    pub fn class(&self, object: ObjectIndex) -> Option<ClassNumber> {
        self.known_class(little_endian(&self.classes, object.at(), self.class_bytes)?)
    }

    /// Returns the classes of a range of objects, in order: faster than single lookups.
    pub fn classes(&self, objects: Range<ObjectIndex>) -> impl Iterator<Item = Option<ClassNumber>> + '_ {
        let width = usize::from(self.class_bytes);
        let (start, end) = (objects.start.at() * width, objects.end.0.min(self.len()) as usize * width);
        let rows = self.classes.rows(start..end.max(start)).unwrap_or_default();
        rows.chunks_exact(width.max(1)).map(move |bytes| self.known_class(number(bytes)))
    }

    #[inline]
    fn known_class(&self, number: u64) -> Option<ClassNumber> {
        // All bits set means no class: NONE, truncated to the width.
        let none = u64::MAX.checked_shr(64 - u32::from(self.class_bytes) * 8).unwrap_or(0);
        u32::try_from(number).ok().filter(|_| number != none).map(ClassNumber)
    }

    /// Returns the object indices of all class objects.
    pub fn class_objects(&self) -> &RoaringBitmap {
        &self.class_objects
    }

    /// Returns the offset of an object's record in `bytes`, the dump.
    pub fn offset(&self, bytes: &[u8], id_size: IdSize, object: ObjectIndex) -> Option<u64> {
        if object.0 >= self.len() {
            return None;
        }
        self.places.offset(bytes, id_size, object.0)
    }
}

/// Returns the number at row `at` of a column of `width` bytes each.
#[inline]
fn little_endian(column: &CheckedColumn<u8>, at: usize, width: u8) -> Option<u64> {
    let start = at.checked_mul(usize::from(width))?;
    let bytes = column.rows(start..start.checked_add(usize::from(width))?)?;
    Some(number(bytes))
}

/// Reads little-endian bytes as a number.
#[inline]
fn number(bytes: &[u8]) -> u64 {
    // A loop over two bytes would take longer than everything else.
    match *bytes {
        [a] => a.into(),
        [a, b] => u16::from_le_bytes([a, b]).into(),
        _ => bytes.iter().rev().fold(0, |number, byte| (number << 8) | u64::from(*byte)),
    }
}

/// Returns the number of bytes that every number up to `max` fits into.
pub(crate) fn width(max: u64) -> u8 {
    // At most eight.
    #[allow(clippy::cast_possible_truncation)]
    let bytes = (64 - max.leading_zeros()).div_ceil(8).max(1) as u8;
    bytes
}
