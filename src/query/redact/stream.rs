//! Reading of the records of a dump in one pass, from a file or a pipe, in bounded memory.

use std::io::{self, Read};
use std::ops::Range;

use hprof_index::model::problem::Severity;
use hprof_index::remains::DumpPart;
use hprof_parser::heap::{self, HeapVisitor};
use hprof_parser::record::{self, RECORD_HEADER, Record, is_known, tag};
use hprof_parser::resync::{self, KnownClasses};
use hprof_parser::{FormatErrorKind, Header, heap_tag};
use hprof_values::{BasicType, IdSize, ObjectId, be_id, be_u32};

use super::bytes::BLOCK;

/// Maximum number of bytes of sub-records that are passed on at once.
const WINDOW: usize = 16 << 20;
/// Approximate number of bytes of sub-records per parallel task.
const PIECE: usize = 256 << 10;
/// Size of the longest header in bytes.
const LONGEST_HEADER: usize = 31;

/// Receiver of the records of a dump.
pub(super) trait RecordSink {
    /// Receives the header.
    fn header(&mut self, header: &Header, bytes: &[u8]) -> io::Result<()>;
    /// Receives a record that is not a heap dump. `body` is complete.
    fn record(&mut self, record: &Record, body: &[u8]) -> io::Result<()>;
    /// Receives the header of a record whose body follows in several calls.
    fn head(&mut self, record: &Record) -> io::Result<()>;
    /// Receives complete sub-records. `offset` is the offset of the first one; `pieces` are ranges that start at a sub-record.
    fn sub_records(&mut self, bytes: &[u8], offset: u64, pieces: &[Range<usize>]) -> io::Result<()>;
    /// Receives bytes that contain no values to redact.
    fn plain(&mut self, bytes: &[u8]) -> io::Result<()>;
    /// Receives the next elements of a primitive array that is larger than a window.
    fn elements(&mut self, array: &LargeArray, is_first: bool, bytes: &[u8]) -> io::Result<()>;
    /// Returns the size of the fields of an instance of a class: `None` if the class is unknown, `Some(None)` if only the size
    /// is.
    fn instance_size(&self, class: ObjectId) -> Option<Option<u64>>;
    /// Receives the length of a damaged region within a heap dump.
    fn damaged_region(&mut self, bytes: u64) -> io::Result<()>;
}

/// End of a dump, and damage before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StreamEnd {
    /// Number of bytes read.
    pub bytes: u64,
    /// Offset from which on nothing was read: the rest is truncated, or not a record.
    pub lost_from: Option<u64>,
    /// Number of records that were read although their headers are damaged.
    pub damaged_records: u64,
}

/// Bytes of a dump.
pub enum DumpBytes<'r> {
    /// Bytes that are read once.
    Stream(&'r mut dyn Read),
    /// A mapped file, and a function that is called with ranges of its bytes, in order, once they are no longer needed.
    Mapped(&'r [u8], &'r mut dyn FnMut(&[u8])),
}

/// Buffered input of a stream or a mapped file.
struct Input<'r> {
    from: DumpBytes<'r>,
    /// Bytes of a stream that were read.
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Offset of `start`.
    offset: u64,
    is_over: bool,
}

impl Input<'_> {
    /// Returns the next `wanted` bytes, or all remaining ones if there are fewer.
    fn peek(&mut self, wanted: usize) -> io::Result<&[u8]> {
        let from = match &mut self.from {
            DumpBytes::Stream(from) => from,
            DumpBytes::Mapped(bytes, _) => {
                let end = self.end.min(self.start.saturating_add(wanted));
                return Ok(bytes.get(self.start..end).unwrap_or_default());
            }
        };
        if self.end - self.start < wanted && !self.is_over {
            // The buffer has twice the size of a window: its contents are rarely moved.
            if self.start + wanted > self.buffer.len() {
                self.buffer.copy_within(self.start..self.end, 0);
                self.end -= self.start;
                self.start = 0;
            }
            while self.end - self.start < wanted {
                match from.read(self.buffer.get_mut(self.end..).unwrap_or_default()) {
                    Ok(0) => {
                        self.is_over = true;
                        break;
                    }
                    Ok(read) => self.end += read,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                }
            }
        }
        let end = self.end.min(self.start.saturating_add(wanted));
        Ok(self.buffer.get(self.start..end).unwrap_or_default())
    }

    fn advance(&mut self, bytes: usize) {
        let start = self.start;
        self.start = self.end.min(self.start.saturating_add(bytes));
        if let DumpBytes::Mapped(all, passed) = &mut self.from {
            passed(all.get(start..self.start).unwrap_or_default());
        }
        self.offset += bytes as u64;
    }
}

/// Reads all records of `from`, and passes them to `sink`.
///
/// # Errors
/// Errors of reading and of the sink; [`io::ErrorKind::InvalidData`] with a [`hprof_parser::FormatError`] if the header is
/// invalid.
pub(super) fn read_records(from: DumpBytes<'_>, sink: &mut dyn RecordSink) -> io::Result<StreamEnd> {
    let (buffer, end) = match &from {
        DumpBytes::Stream(_) => (vec![0; 2 * WINDOW], 0),
        DumpBytes::Mapped(bytes, _) => (Vec::new(), bytes.len()),
    };
    let input = Input { from, buffer, start: 0, end, offset: 0, is_over: false };
    let mut records = Records { input, id_size: IdSize::Eight, sink, damaged_records: 0 };
    let is_lost = match records.input.from {
        DumpBytes::Mapped(bytes, _) => records.read_mapped(bytes)?,
        DumpBytes::Stream(_) => records.read_pipe()?,
    };
    let lost_from = is_lost.then_some(records.input.offset);
    let damaged_records = records.damaged_records;
    Ok(StreamEnd { bytes: records.input.offset, lost_from, damaged_records })
}

/// Reader that passes the records of a dump to a sink.
struct Records<'r, 's> {
    input: Input<'r>,
    id_size: IdSize,
    sink: &'s mut dyn RecordSink,
    /// Number of damaged records that were read nevertheless.
    damaged_records: u64,
}

impl Records<'_, '_> {
    fn header(&mut self) -> io::Result<Header> {
        let start = self.input.peek(LONGEST_HEADER)?;
        let header =
            Header::parse(start).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        self.id_size = header.id_size;
        self.sink.header(&header, start.get(..header.len).unwrap_or_default())?;
        self.input.advance(header.len);
        Ok(header)
    }

    /// Reads a file, whose records are found as in all other commands. Returns `true` if the end of the file is missing.
    fn read_mapped(&mut self, bytes: &[u8]) -> io::Result<bool> {
        let header = self.header()?;
        let part = DumpPart::read(bytes, header);
        let part = part.map_err(|error| io::Error::new(io::ErrorKind::OutOfMemory, error.to_string()))?;
        let problems = part.problems().iter().filter(|problem| problem.severity == Severity::Damage);
        self.damaged_records = problems.count() as u64;
        let records = part.records().map(|range| (range, false));
        let heaps =
            part.heap_ranges().map(|range| (range.start.saturating_sub(RECORD_HEADER)..range.end, true));
        let mut parts: Vec<(Range<usize>, bool)> = records.chain(heaps).collect();
        parts.sort_unstable_by_key(|(range, _)| range.start);
        let mut is_open = false;
        for (range, is_heap) in parts {
            self.between(bytes, range.start, &mut is_open)?;
            if is_heap {
                let Some(record) = Record::at(bytes, range.start) else { return Ok(true) };
                is_open |= record.tag != tag::HEAP_DUMP;
                // A truncated record states a length beyond the end.
                let is_cut = record.end() > bytes.len() as u64 && range.end == bytes.len();
                let left = if is_cut { record.length.into() } else { (range.len() - RECORD_HEADER) as u64 };
                if self.heap(&record, left, false)? {
                    return Ok(true);
                }
                continue;
            }
            while self.offset() < range.end {
                let Some(record) = Record::at(bytes, self.offset()) else { return Ok(true) };
                if self.pass_on_other_record(&record)? {
                    return Ok(true);
                }
            }
        }
        let mut ends = self.empty_records(bytes, bytes.len(), &mut is_open)?;
        // The records above exclude those too short for their contents.
        while let Some(record) = Record::at(bytes, ends).filter(|record| is_complete(record, bytes.len())) {
            if self.pass_on_other_record(&record)? {
                return Ok(true);
            }
            ends = self.empty_records(bytes, bytes.len(), &mut is_open)?;
        }
        // Bytes after the last record are not read.
        let is_blank = |byte: &u8| matches!(byte, 0 | b' ' | b'\r' | b'\n');
        let rest = bytes.get(ends..).unwrap_or_default();
        Ok(is_open || !rest.iter().all(is_blank))
    }

    /// Returns the current offset in the file.
    fn offset(&self) -> usize {
        usize::try_from(self.input.offset).unwrap_or(usize::MAX)
    }

    /// Passes on everything before the next record: HEAP DUMP END records, then a damaged region.
    fn between(&mut self, bytes: &[u8], end: usize, is_open: &mut bool) -> io::Result<()> {
        let at = self.empty_records(bytes, end, is_open)?;
        let lost = end.saturating_sub(at);
        if lost > 0 {
            self.sink.damaged_region(lost as u64)?;
            self.input.advance(lost);
        }
        Ok(())
    }

    /// Passes on heap dump records without a body up to an offset. Returns the offset after them.
    fn empty_records(&mut self, bytes: &[u8], end: usize, is_open: &mut bool) -> io::Result<usize> {
        loop {
            let at = self.offset();
            let record = Record::at(bytes, at).filter(|record| record.body_offset() <= end);
            // The tag of an end record and its length may be damaged.
            let is_empty = |record: &Record| {
                is_known(record.tag) && (record.length == 0 || record.tag == tag::HEAP_DUMP_END)
            };
            let Some(record) = record.filter(is_empty) else { return Ok(at) };
            *is_open = record.tag == tag::HEAP_DUMP_SEGMENT;
            self.sink.head(&record)?;
            self.input.advance(RECORD_HEADER);
        }
    }

    /// Reads a pipe. Returns `true` if the end of the dump is missing.
    fn read_pipe(&mut self) -> io::Result<bool> {
        self.header()?;
        let mut is_open = false;
        loop {
            let head = self.input.peek(RECORD_HEADER)?;
            if head.is_empty() {
                return Ok(is_open);
            }
            let Some(record) = Record::at(head, 0) else { return Ok(true) };
            if !is_known(record.tag) && record.tag != tag::STATED_SIZES {
                // Only the tag may be damaged.
                let (id_size, mut budget) = (self.id_size, MAX_RECORDS);
                let is_lost = if is_heap(self.input.peek(WINDOW)?, &record, id_size, &mut budget) {
                    self.damaged_records += 1;
                    is_open = true;
                    self.heap(&record, record.length.into(), false)?
                } else {
                    !self.resynchronize()?
                };
                if is_lost {
                    return Ok(true);
                }
                continue;
            }
            if !self.is_there(&record)? {
                if !self.resynchronize()? {
                    return Ok(true);
                }
                continue;
            }
            is_open = match record.tag {
                tag::HEAP_DUMP_SEGMENT => true,
                tag::HEAP_DUMP_END => false,
                _ => is_open,
            };
            let is_lost = match record.tag {
                tag::HEAP_DUMP | tag::HEAP_DUMP_SEGMENT => {
                    self.heap(&record, record.length.into(), record.tag == tag::HEAP_DUMP)?
                }
                _ => self.pass_on_other_record(&record)?,
            };
            if is_lost {
                return Ok(true);
            }
        }
    }

    /// Returns `false` if a record that must be read entirely is too long, or its end is missing: its length may be
    /// damaged.
    fn is_there(&mut self, record: &Record) -> io::Result<bool> {
        let is_whole = !matches!(
            record.tag,
            tag::HEAP_DUMP | tag::HEAP_DUMP_SEGMENT | tag::ALLOC_SITES | tag::CPU_SAMPLES
        );
        let length = record.length as usize;
        Ok(!is_whole
            || length <= WINDOW && self.input.peek(RECORD_HEADER + length)?.len() == RECORD_HEADER + length)
    }

    /// Skips a damaged region of a pipe, up to a heap dump or a sequence of many records. Returns `false` if neither follows.
    fn resynchronize(&mut self) -> io::Result<bool> {
        loop {
            let window = self.input.peek(WINDOW)?;
            let mut budget = MAX_RECORDS;
            let starts_here = |at: &usize| is_start(window, *at, self.id_size, &mut budget);
            let found = (1..window.len()).find(starts_here);
            // The end of a window may be the start of a record.
            let skipped = found.unwrap_or(window.len().saturating_sub(RECORD_HEADER).max(1));
            let is_over = found.is_none() && window.len() < WINDOW;
            if is_over {
                return Ok(false);
            }
            self.sink.damaged_region(skipped as u64)?;
            self.input.advance(skipped);
            if found.is_some() {
                return Ok(true);
            }
        }
    }

    /// Passes on a record that is not a heap dump. Returns `true` if it is truncated.
    fn pass_on_other_record(&mut self, record: &Record) -> io::Result<bool> {
        match record.tag {
            // Flags, four numbers of bytes and objects, then sites; numbers of samples, then traces.
            tag::ALLOC_SITES => self.table(record, 34, 25),
            tag::CPU_SAMPLES => self.table(record, 8, 8),
            _ => self.small(record),
        }
    }

    fn small(&mut self, record: &Record) -> io::Result<bool> {
        let length = record.length as usize;
        if length > WINDOW {
            return Ok(true);
        }
        let bytes = self.input.peek(RECORD_HEADER + length)?;
        let Some(body) = bytes.get(RECORD_HEADER..RECORD_HEADER + length) else { return Ok(true) };
        self.sink.record(record, body)?;
        self.input.advance(RECORD_HEADER + length);
        Ok(false)
    }

    /// Passes on a record with a table. `head` is the number of bytes before the rows, which ends with their number; `row` is
    /// the size of a row. Bytes after the table are replaced by zeros. Returns `true` if the record is truncated.
    fn table(&mut self, record: &Record, head: usize, row: u64) -> io::Result<bool> {
        self.sink.head(record)?;
        self.input.advance(RECORD_HEADER);
        let length = u64::from(record.length);
        let rows = be_u32(self.input.peek(head)?, head - 4).map_or(0, u64::from);
        let known = (head as u64 + rows * row).min(length);
        let known = if length < head as u64 { 0 } else { known };
        if self.copy(known)? {
            return Ok(true);
        }
        let mut left = length - known;
        while left > 0 {
            let passed = self.input.peek(at_most(left, WINDOW))?.len();
            if passed == 0 {
                return Ok(true);
            }
            self.sink.plain(&vec![0; passed])?;
            self.input.advance(passed);
            left -= passed as u64;
        }
        Ok(false)
    }

    /// Passes on `left` bytes. Returns `true` if there are fewer.
    fn copy(&mut self, mut left: u64) -> io::Result<bool> {
        while left > 0 {
            let bytes = self.input.peek(at_most(left, WINDOW))?;
            if bytes.is_empty() {
                return Ok(true);
            }
            self.sink.plain(bytes)?;
            let passed = bytes.len();
            left -= passed as u64;
            self.input.advance(passed);
        }
        Ok(false)
    }

    /// Passes on a heap dump record with `left` bytes of sub-records, or more if the record is larger than 4 GiB.
    fn heap(&mut self, record: &Record, mut left: u64, is_single: bool) -> io::Result<bool> {
        self.sink.head(record)?;
        self.input.advance(RECORD_HEADER);
        while left > 0 {
            let offset = self.input.offset;
            // Bytes after a segment are not needed to read it.
            let wanted = if is_single { WINDOW } else { at_most(left, WINDOW) };
            let window = self.input.peek(wanted)?;
            if window.is_empty() {
                return Ok(true);
            }
            let end = at_most(left, window.len());
            // The length of a HEAP DUMP of more than 4 GiB is stated modulo 2^32.
            let limit = if is_single { window.len() } else { end };
            let mut cuts = Pieces::default();
            let walked = heap::walk(window, self.id_size, 0, end, limit, &mut cuts);
            if walked.next > 0 {
                let next = walked.next;
                cuts.finish(next);
                let bytes = window.get(..next).unwrap_or_default();
                self.sink.sub_records(bytes, offset, &cuts.pieces)?;
                self.input.advance(next);
                if next as u64 > left {
                    left += 1 << 32;
                }
                left -= next as u64;
                continue;
            }
            let is_cut =
                walked.error.is_some_and(|error| matches!(error.kind(), FormatErrorKind::RecordCut { .. }));
            if is_cut && window.len() < WINDOW && (window.len() as u64) < left {
                // Truncated: the record states a length beyond the end.
                return Ok(true);
            }
            if is_cut
                && window.len() == WINDOW
                && let Some(array) = LargeArray::at(window, self.id_size)
            {
                let bytes = array.head as u64 + array.bytes;
                if bytes <= left || is_single {
                    if bytes > left {
                        left += 1 << 32;
                    }
                    left = left.saturating_sub(bytes);
                    if self.large(&array)? {
                        return Ok(true);
                    }
                    continue;
                }
            }
            // A damaged region is skipped, and not passed on.
            let known = SinkClasses(self.sink);
            let skipped = resync::find(window, self.id_size, 1, end, end, &known).unwrap_or(end);
            self.sink.damaged_region(skipped as u64)?;
            self.input.advance(skipped);
            left -= skipped as u64;
        }
        Ok(false)
    }

    /// Passes on an array that is larger than a window. Returns `true` if it is truncated.
    fn large(&mut self, array: &LargeArray) -> io::Result<bool> {
        self.sink.plain(self.input.peek(array.head)?)?;
        self.input.advance(array.head);
        if array.kind.is_none() {
            return self.copy(array.bytes);
        }
        let mut left = array.bytes;
        let mut is_first = true;
        while left > 0 {
            let wanted = at_most(left, BLOCK);
            let bytes = self.input.peek(wanted)?;
            if bytes.len() < wanted {
                return Ok(true);
            }
            self.sink.elements(array, std::mem::replace(&mut is_first, false), bytes)?;
            self.input.advance(wanted);
            left -= wanted as u64;
        }
        Ok(false)
    }
}

/// Maximum number of records that are read in searching a window: in hostile files every byte can look like a record.
const MAX_RECORDS: usize = 1 << 20;
/// Number of consecutive records, or of sub-records of a heap dump, that confirm a start.
const ENOUGH: usize = 16;

/// Returns `true` if a record that is not a heap dump is complete, regardless of its contents.
fn is_complete(record: &Record, length: usize) -> bool {
    let is_heap = matches!(record.tag, tag::HEAP_DUMP | tag::HEAP_DUMP_SEGMENT);
    is_known(record.tag) && !is_heap && record.end() <= length as u64
}

/// Returns `true` if a record starts at an offset of a window: many records follow it, or it is a heap dump with valid
/// sub-records.
fn is_start(window: &[u8], at: usize, id_size: IdSize, budget: &mut usize) -> bool {
    let Some(record) = Record::at(window, at).filter(|record| is_known(record.tag) && *budget > 0) else {
        return false;
    };
    let chain = record::chain(window, at, ENOUGH, budget);
    if chain.is_some_and(|chain| chain.records >= ENOUGH) {
        return true;
    }
    matches!(record.tag, tag::HEAP_DUMP | tag::HEAP_DUMP_SEGMENT) && is_heap(window, &record, id_size, budget)
}

/// Returns `true` if the sub-records of a heap dump follow the header of a record.
fn is_heap(window: &[u8], record: &Record, id_size: IdSize, budget: &mut usize) -> bool {
    /// Visitor that counts sub-records up to [`ENOUGH`].
    struct RecordCounter(usize);
    impl HeapVisitor<'_> for RecordCounter {
        fn go_on(&mut self) -> bool {
            self.0 += 1;
            self.0 < ENOUGH
        }
    }
    let mut counted = RecordCounter(0);
    let end = usize::try_from(record.end()).unwrap_or(usize::MAX).min(window.len());
    let walked = heap::walk(window, id_size, record.body_offset(), end, end, &mut counted);
    *budget = budget.saturating_sub(counted.0);
    counted.0 >= ENOUGH && walked.error.is_none()
}

fn at_most(left: u64, bytes: usize) -> usize {
    usize::try_from(left).unwrap_or(usize::MAX).min(bytes)
}

/// An array whose record is larger than a window.
pub(super) struct LargeArray {
    pub(super) id: ObjectId,
    /// Type of the elements; `None` for references.
    pub(super) kind: Option<BasicType>,
    pub(super) length: u64,
    /// Size of the elements in bytes.
    bytes: u64,
    /// Size of the record before the elements in bytes.
    head: usize,
}

impl LargeArray {
    fn at(window: &[u8], id_size: IdSize) -> Option<Self> {
        let w = id_size.bytes();
        let id = ObjectId(be_id(window, 1, id_size)?);
        let length = u64::from(be_u32(window, 5 + w)?);
        let (kind, bytes, head) = match *window.first()? {
            heap_tag::PRIMITIVE_ARRAY => {
                let kind = BasicType::from_code(*window.get(9 + w)?)?;
                (Some(kind), length * kind.dump_bytes(id_size) as u64, 10 + w)
            }
            heap_tag::OBJECT_ARRAY => (None, length * w as u64, 9 + 2 * w),
            _ => return None,
        };
        Some(Self { id, kind, length, bytes, head })
    }
}

/// Splitter of sub-records into pieces of about [`PIECE`] bytes.
#[derive(Default)]
struct Pieces {
    pieces: Vec<Range<usize>>,
    start: usize,
}

impl Pieces {
    #[inline(always)]
    fn end(&mut self, end: usize) {
        if end - self.start >= PIECE {
            self.finish(end);
        }
    }

    fn finish(&mut self, end: usize) {
        if end > self.start {
            self.pieces.push(self.start..end);
            self.start = end;
        }
    }
}

impl<'a> HeapVisitor<'a> for Pieces {
    fn instance(&mut self, record: heap::Instance<'a>) {
        self.end(record.end);
    }
    fn object_array(&mut self, record: heap::ObjectArray<'a>) {
        self.end(record.end);
    }
    fn primitive_array(&mut self, record: heap::PrimitiveArray<'a>) {
        self.end(record.end);
    }
    fn class(&mut self, record: hprof_parser::class_dump::ClassDump<'a>) {
        self.end(record.offset + record.len);
    }
}

/// Classes known to the receiver of the records.
struct SinkClasses<'s>(&'s dyn RecordSink);

impl KnownClasses for SinkClasses<'_> {
    fn class(&self, class: ObjectId) -> Option<Option<u64>> {
        self.0.instance_size(class)
    }
}
