//! Heap dump records: their ends, and the heap dump that each belongs to.

use hprof_parser::record::{self, Record};

use super::{RecordWalk, TableAppender};
use crate::model::problem::{Problem, ProblemKind};
use crate::records::search_budget::ENOUGH;
use crate::records::top_level::{HeapDump, Segment};

/// Number of consecutive records that confirm the end of a heap dump record, whose length may have wrapped.
const ENOUGH_BEHIND_HEAP: usize = 64;
/// Maximum number of heap dumps; of more, the last one is kept.
const MAX_HEAP_DUMPS: usize = 1 << 16;

/// Form of a heap dump: one record, or segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HeapDumpForm {
    Single,
    Segment,
}

/// Completeness of a heap dump record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RecordCompleteness {
    Yes,
    No,
    /// The length was never filled in: unknown.
    Open,
}

impl RecordWalk<'_> {
    /// Adds a heap dump record and returns the offset of the next record.
    pub(super) fn heap_dump(&mut self, record: &Record, form: HeapDumpForm) -> usize {
        let start = record.body_offset();
        let goes_on = self.inside && form == HeapDumpForm::Segment;
        let (end, whole) = match form {
            HeapDumpForm::Single => self.single_end(record),
            HeapDumpForm::Segment => self.segment_end(record),
        };
        if start >= end {
            self.contents.empty_segments += 1;
            if form == HeapDumpForm::Single {
                return end;
            }
        }
        let dumps = &mut self.contents.dumps;
        if !goes_on || dumps.is_empty() {
            if dumps.len() >= MAX_HEAP_DUMPS {
                dumps.pop();
                self.contents.more_heap_dumps += 1;
            }
            let ended = form == HeapDumpForm::Single && whole == RecordCompleteness::Yes;
            let open = whole == RecordCompleteness::Open;
            let time_us = record.time_us;
            dumps.push(HeapDump { segments: Vec::new(), time_us, ended, open, broken: false });
        }
        self.inside = form == HeapDumpForm::Segment;
        if start < end
            && let Some(dump) = dumps.last_mut()
        {
            let Self { allowance, no_memory, .. } = self;
            TableAppender { allowance, no_memory }.push(&mut dump.segments, Segment { start, end });
        }
        end
    }

    /// Returns the end of a segment. Its length is accepted if a known record follows: writers start a
    /// new segment long before 4 GiB.
    fn segment_end(&mut self, record: &Record) -> (usize, RecordCompleteness) {
        let (len, start) = (self.bytes.len(), record.body_offset());
        let stated = usize::try_from(record.end()).unwrap_or(usize::MAX);
        if stated <= len {
            // A root looks like the tag of a record: where a length of 0 may mean an unknown one, that is
            // not enough.
            let follows = match self.bytes.get(stated) {
                None => true,
                Some(tag) if record.length > 0 => record::is_known(*tag),
                Some(_) => self.search.chain(stated, ENOUGH).is_some(),
            };
            // Or only the tag is wrong.
            if follows || (record.length > 0 && self.search.goes_on_after(stated)) {
                return (stated, RecordCompleteness::Yes);
            }
            if let Some(end) = self.wrapped_end(record, stated) {
                return (end, RecordCompleteness::Yes);
            }
        }
        // In a file that was changed throughout, no length is right.
        let next = if self.text_mode_damage().is_none() { self.search.find_segment(start) } else { None };
        if let Some(next) = next {
            let text = format!(
                "a heap dump segment states a length of {} bytes, but the next record starts after {}; the \
                 segment was read up to that record",
                record.length,
                next - start
            );
            if self.search.is_heap(start, next) {
                self.report_wrong_length(record, text);
            } else {
                self.report_bad_header(record, text);
            }
            return (next, RecordCompleteness::Yes);
        }
        self.read_to_the_end(record, stated)
    }

    /// Returns the end of a heap dump of one record, whose length may have wrapped.
    fn single_end(&mut self, record: &Record) -> (usize, RecordCompleteness) {
        let (len, start) = (self.bytes.len(), record.body_offset());
        let stated = usize::try_from(record.end()).unwrap_or(usize::MAX);
        if stated <= len {
            let good = self.is_good_end(record, stated);
            if good {
                return (stated, RecordCompleteness::Yes);
            }
            if let Some(end) = self.wrapped_end(record, stated) {
                return (end, RecordCompleteness::Yes);
            }
            // Followed by records that are truncated themselves.
            let known = self.bytes.get(stated).is_none_or(|tag| record::is_known(*tag));
            let believed = self.search.chain(stated, 4).is_some_and(|chain| chain.records >= 2)
                || (!known && self.search.goes_on_after(stated));
            if record.length > 0 && (believed || (known && self.search.is_heap(start, stated))) {
                return (stated, RecordCompleteness::Yes);
            }
        }
        self.read_to_the_end(record, stated)
    }

    /// Returns the end of a record of more than 4 GiB, whose length has wrapped: the real end is a multiple of
    /// 4 GiB later, where records continue.
    fn wrapped_end(&mut self, record: &Record, stated: usize) -> Option<usize> {
        let mut end = stated;
        loop {
            end = end.checked_add(1 << 32).filter(|end| *end <= self.bytes.len())?;
            if self.is_good_end(record, end) {
                let bytes = end - record.body_offset();
                let text = format!(
                    "a heap dump record of {bytes} bytes states its length modulo 4 GiB; it was read in full"
                );
                let offset = Some(record.offset as u64);
                self.contents.problems.push(Problem::note(ProblemKind::LengthWrapped, text, offset));
                return Some(end);
            }
        }
    }

    /// Returns `true` if many records follow, or the file ends there; an empty range is not a heap dump.
    fn is_good_end(&mut self, record: &Record, end: usize) -> bool {
        let is_empty = end == record.body_offset() && end == self.bytes.len();
        let chain = self.search.chain(end, ENOUGH_BEHIND_HEAP);
        !is_empty && chain.is_some_and(|chain| chain.to_end || chain.records >= ENOUGH_BEHIND_HEAP)
    }

    /// Ends the heap dump record at the end of the file, the only plausible end.
    fn read_to_the_end(&mut self, record: &Record, stated: usize) -> (usize, RecordCompleteness) {
        let len = self.bytes.len();
        let offset = Some(record.offset as u64);
        self.consumed = true;
        if stated > len {
            let there = len - record.body_offset();
            let text = format!(
                "the file is truncated at offset {len:#x}: its last heap dump record states a length of {} \
                 bytes, but only {there} are left",
                record.length
            );
            self.contents.expected_end = Some(record.end());
            self.list(Problem::damage(ProblemKind::FileCut, text, offset));
            return (len, RecordCompleteness::No);
        }
        if record.length == 0 {
            // The writer was killed, or could not seek back, before it knew the length.
            let text = "a heap dump record states a length of 0; it was read to the end of the file";
            self.list(Problem::note(ProblemKind::LengthOpen, text, offset));
            return (len, RecordCompleteness::Open);
        }
        let how = self.text_mode_damage();
        let text =
            "no record follows the stated end of this heap dump record; it was read to the end of the file";
        let kind = if how.is_some() { ProblemKind::TextMode } else { ProblemKind::LostEnd };
        let how = how.map_or(String::new(), |how| format!(": {how}"));
        self.contents.end_unknown = true;
        self.list(Problem::damage(kind, format!("{text}{how}"), offset));
        (len, RecordCompleteness::No)
    }
}
