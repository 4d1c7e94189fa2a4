//! Searches for records in a damaged dump. All searches of a file together read a bounded number of records and bytes: in
//! hostile files every byte can look like a record.

use std::ops::Range;

use memchr::memchr2_iter;

use hprof_parser::Header;
use hprof_parser::class_dump::ClassDump;
use hprof_parser::heap::{self, HeapVisitor, Instance, ObjectArray, PrimitiveArray};
use hprof_parser::record::{self, Chain, Record, tag};
use hprof_values::IdSize;

/// Maximum number of consecutive records with unknown tags before a known one confirms them.
const MAX_UNKNOWN: usize = 16;
/// Number of consecutive records that confirm a record start.
pub(crate) const ENOUGH: usize = 16;
/// Maximum number of records that all searches of a file read: in hostile files every byte can look like
/// a record.
const MAX_RECORDS: usize = 1 << 24;
/// Maximum number of sub-records that all searches of a file read to determine whether bytes are a heap
/// dump.
const MAX_SUB_RECORDS: usize = 1 << 26;
/// Number of bytes that cost as much as a sub-record in a walk over sub-records.
const BYTES_PER_SUB_RECORD: usize = 256;
/// Maximum number of bytes of an invalid class dump that are read.
const MAX_CLASS_BYTES: usize = 2 << 20;

/// Searches for records in a damaged file, with the budget that they share.
pub(crate) struct HeapDumpSearch<'a> {
    bytes: &'a [u8],
    id_size: IdSize,
    /// Remaining number of records.
    records_left: usize,
    /// Remaining number of sub-records.
    sub_records_left: usize,
}

impl<'a> HeapDumpSearch<'a> {
    pub(crate) fn new(bytes: &'a [u8], header: &Header) -> Self {
        Self { bytes, id_size: header.id_size, records_left: MAX_RECORDS, sub_records_left: MAX_SUB_RECORDS }
    }

    /// Walks over at most `enough` records from `at` on; `None` if they are not consecutive records.
    pub(crate) fn chain(&mut self, at: usize, enough: usize) -> Option<Chain> {
        record::chain(self.bytes, at, enough, &mut self.records_left)
    }

    /// Returns `true` if records certainly continue at `at`: many, or at least `few` that end exactly at
    /// the end of the file.
    pub(crate) fn goes_on(&mut self, at: usize, few: usize) -> bool {
        let chain = self.chain(at, ENOUGH);
        chain.is_some_and(|chain| (chain.to_end && chain.records >= few) || chain.records >= ENOUGH)
    }

    /// Returns `true` if known records follow the one at `at`, whatever its tag is, or the file ends there. Other unknown records
    /// may be between them.
    pub(crate) fn goes_on_after(&mut self, at: usize) -> bool {
        let mut at = at;
        for hop in 0..MAX_UNKNOWN {
            // Zeros would be one empty record after the other.
            let is_zeros = |record: &Record| hop > 0 && record.tag == 0 && record.length == 0;
            let record = Record::at(self.bytes, at).filter(|record| !is_zeros(record));
            let end = record.and_then(|record| usize::try_from(record.end()).ok());
            let Some(end) = end.filter(|end| *end <= self.bytes.len()) else { return false };
            if end == self.bytes.len() || self.goes_on(end, 1) {
                return true;
            }
            if self.bytes.get(end).is_none_or(|tag| record::is_known(*tag)) {
                return false;
            }
            at = end;
        }
        false
    }

    /// Returns the first of these offsets at which records continue.
    pub(crate) fn find_record(&mut self, mut places: Range<usize>) -> Option<usize> {
        places.find(|at| {
            let known = self.bytes.get(*at).is_some_and(|tag| record::is_known(*tag));
            // A single record is not enough: its length may lead to the end of the file by chance.
            known && self.records_left > 0 && self.goes_on(*at, 2)
        })
    }

    /// Returns the first offset, from `from` on, of a segment or the end of a heap dump.
    pub(crate) fn find_segment(&mut self, from: usize) -> Option<usize> {
        let rest = self.bytes.get(from..)?;
        for at in memchr2_iter(tag::HEAP_DUMP_SEGMENT, tag::HEAP_DUMP_END, rest).map(|at| from + at) {
            if self.records_left == 0 {
                return None;
            }
            if self.goes_on(at, 1) {
                return Some(at);
            }
        }
        None
    }

    /// Returns `true` if `start..end` consists of sub-records.
    pub(crate) fn is_heap(&mut self, start: usize, end: usize) -> bool {
        self.walk(start, end).is_some()
    }

    /// Walks over `start..end`; returns `None` if it does not consist of sub-records.
    pub(crate) fn walk(&mut self, start: usize, end: usize) -> Option<Sight> {
        let mut sight = Sight { has_object: false, sub_records: 0, max_sub_records: self.sub_records_left };
        let walked = heap::walk(self.bytes, self.id_size, start, end, end, &mut sight);
        // Up to thousands of constants of an invalid class dump are read.
        let looked_at = (walked.next - start) + (end - walked.next).min(MAX_CLASS_BYTES);
        let cost = sight.sub_records + looked_at / BYTES_PER_SUB_RECORD;
        self.sub_records_left = self.sub_records_left.saturating_sub(cost);
        (walked.error.is_none() && walked.next == end).then_some(sight)
    }
}

/// Result of a walk that tests whether bytes are sub-records.
pub(crate) struct Sight {
    pub(crate) has_object: bool,
    pub(crate) sub_records: usize,
    /// Maximum number of sub-records.
    max_sub_records: usize,
}

impl HeapVisitor<'_> for Sight {
    fn instance(&mut self, _: Instance<'_>) {
        self.has_object = true;
    }
    fn object_array(&mut self, _: ObjectArray<'_>) {
        self.has_object = true;
    }
    fn primitive_array(&mut self, _: PrimitiveArray<'_>) {
        self.has_object = true;
    }
    fn class(&mut self, _: ClassDump<'_>) {
        self.has_object = true;
    }
    fn go_on(&mut self) -> bool {
        self.sub_records += 1;
        self.sub_records < self.max_sub_records
    }
}
