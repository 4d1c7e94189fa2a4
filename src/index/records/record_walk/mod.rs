//! The walk over the top-level records of a dump, and its resynchronization after damage.
//!
//! A record is accepted if records follow where its length says that it ends. If none does, the walk
//! continues at the first offset from which many consecutive records follow, or a few that end exactly at
//! the end of the file. All such searches of a file together are bounded ([`super::search_budget`]).

mod heap_dump;

use std::cell::OnceCell;
use std::collections::BTreeMap;

use hprof_parser::record::{self, BodyReader, RECORD_HEADER, Record, STATED_SIZES_MAGIC, tag};
use hprof_parser::{FormatError, Header};
use hprof_values::be_u32;

use heap_dump::HeapDumpForm;

use super::search_budget::HeapDumpSearch;
use super::top_level::{Contents, RecordLocation, Segment};
use crate::model::problem::{Problem, ProblemKind};
use crate::storage::allowance::Allowance;
use crate::storage::human_bytes::plural;
use crate::storage::memory::NoMemory;

/// Maximum number of listed problems.
const MAX_PROBLEMS: usize = 200;

/// Walks over the records of `bytes`, whose header is `header`.
///
/// # Errors
/// [`NoMemory`] if the tables do not fit into memory.
pub(crate) fn read(bytes: &[u8], header: &Header, allowance: &Allowance) -> Result<Contents, NoMemory> {
    let mut walk = RecordWalk {
        bytes,
        allowance,
        no_memory: None,
        reader: BodyReader::new(bytes, header.id_size),
        contents: Contents::default(),
        inside: false,
        doubtful: None,
        consumed: false,
        search: HeapDumpSearch::new(bytes, header),
        unsupported: BTreeMap::new(),
        unlisted: 0,
        mangled: OnceCell::new(),
    };
    walk.run(header.len);
    walk.no_memory.map_or(Ok(walk.contents), Err)
}

/// State of a walk over the top-level records.
struct RecordWalk<'a> {
    bytes: &'a [u8],
    /// Memory for tables; if they need more, the walk ends.
    allowance: &'a Allowance,
    no_memory: Option<NoMemory>,
    reader: BodyReader<'a>,
    contents: Contents,
    /// `true` inside a heap dump made of segments.
    inside: bool,
    /// Previous record: it is stored when a record follows where its length says, because nothing else
    /// confirms it.
    doubtful: Option<Record>,
    /// `true` if the last record read extends to the end of the file because no other record was found.
    consumed: bool,
    search: HeapDumpSearch<'a>,
    /// Number of complete records with an unknown tag, and the bytes of their bodies, by tag.
    unsupported: BTreeMap<u8, (u64, u64)>,
    /// Number of problems that are not listed.
    unlisted: u64,
    /// Damage by a text-mode transfer, once it was searched for.
    mangled: OnceCell<Option<&'static str>>,
}

/// Appends to a table, and records a failure to grow.
struct TableAppender<'w> {
    allowance: &'w Allowance,
    no_memory: &'w mut Option<NoMemory>,
}

impl TableAppender<'_> {
    fn push<T>(&mut self, table: &mut Vec<T>, row: T) {
        if let Err(error) = self.allowance.push(table, row) {
            *self.no_memory = Some(error);
        }
    }
}

impl RecordWalk<'_> {
    fn run(&mut self, start: usize) {
        let len = self.bytes.len();
        let mut at = start;
        while let Some(first) = self.bytes.get(at)
            && self.no_memory.is_none()
        {
            if matches!(first, 0 | b' ' | b'\r' | b'\n') && self.is_blank(at) {
                self.stray(at);
                break;
            }
            at = match Record::at(self.bytes, at) {
                Some(record) if self.is_misnamed_end(&record) => {
                    self.settle();
                    let text = format!(
                        "record {:#04x} was found instead of a HEAP DUMP END record; it was read as one",
                        record.tag
                    );
                    self.report_bad_header(&record, text);
                    self.heap_dump_end();
                    record.body_offset()
                }
                Some(record) if record::is_known(record.tag) => {
                    self.settle();
                    self.take(&record)
                }
                Some(record) if self.is_stated_sizes(&record) => self.stated_sizes(&record),
                Some(record) => self.skip_unknown(&record),
                None if record::is_known(*first) => {
                    self.settle();
                    self.consumed = true;
                    self.contents.expected_end = Some(at as u64 + RECORD_HEADER as u64);
                    let there = len - at;
                    let text = format!(
                        "the file is truncated at offset {len:#x}, in the header of a record: only {there} \
                         of {RECORD_HEADER} bytes are left"
                    );
                    self.lose(ProblemKind::FileCut, text, at, there);
                    len
                }
                None => {
                    self.stray(at);
                    len
                }
            };
        }
        self.settle();
        self.end();
    }

    /// Returns `true` for a whole STATED SIZES record. Its tag alone means nothing: other programs may use it too.
    fn is_stated_sizes(&self, record: &Record) -> bool {
        let rest = self.bytes.get(record.body_offset()..).unwrap_or_default();
        record.tag == tag::STATED_SIZES
            && record.length as usize >= STATED_SIZES_MAGIC.len() + 4
            && rest.len() >= record.length as usize
            && rest.starts_with(STATED_SIZES_MAGIC)
    }

    /// Stores the rows of a STATED SIZES record and returns the offset of the next record.
    fn stated_sizes(&mut self, record: &Record) -> usize {
        self.settle();
        let number = record.body_offset() + STATED_SIZES_MAGIC.len();
        let (start, end) = (number + 4, record.body_offset() + record.length as usize);
        let heap_dump = be_u32(self.bytes, number).unwrap_or(0);
        let Self { contents, allowance, no_memory, .. } = self;
        TableAppender { allowance, no_memory }
            .push(&mut contents.stated_sizes, (heap_dump, Segment { start, end }));
        self.keep_range(record.offset, end);
        end
    }

    /// Stores the previous record, which is confirmed by the next one.
    fn settle(&mut self) {
        let Some(record) = self.doubtful.take() else { return };
        let text = if record.tag == tag::HEAP_DUMP_END {
            format!(
                "a HEAP DUMP END record states a length of {} bytes instead of 0; it was skipped",
                record.length
            )
        } else if let Err(error) = self.keep(&record) {
            format!("{}; it was skipped", error_text(&error))
        } else {
            return self.keep_range(record.offset, record.body_offset() + record.length as usize);
        };
        let bytes = RECORD_HEADER + record.length as usize;
        self.lose(ProblemKind::BadRecord, text, record.offset, bytes);
    }

    /// Adds a whole record to those that can be copied.
    fn keep_range(&mut self, start: usize, end: usize) {
        let Self { contents, allowance, no_memory, .. } = self;
        match contents.records.last_mut().filter(|last| last.end == start) {
            Some(last) => last.end = end,
            None => {
                TableAppender { allowance, no_memory }.push(&mut contents.records, Segment { start, end });
            }
        }
    }

    /// Reports stray bytes up to the end of the file, with which nothing is lost.
    fn stray(&mut self, at: usize) {
        let bytes = self.bytes.len() - at;
        let text = format!("{bytes} stray {} after the last record", plural(bytes as u64, "byte", "bytes"));
        self.contents.skipped_bytes += bytes as u64;
        self.list(Problem::note(ProblemKind::UnknownRecord, text, Some(at as u64)).skipping(bytes));
    }

    /// Adds problems that are known only at the end of the file.
    fn end(&mut self) {
        let end = Some(self.bytes.len() as u64);
        let contents = &mut self.contents;
        if contents.empty_segments > 0 {
            let count = contents.empty_segments;
            let text = format!(
                "{count} {}",
                plural(count, "heap dump record is empty", "heap dump records are empty")
            );
            contents.problems.push(Problem::note(ProblemKind::EmptySegments, text, None));
        }
        for (tag, (count, bytes)) in std::mem::take(&mut self.unsupported) {
            let records = plural(count, "record", "records");
            let text = format!("{count} {records} with the unknown tag {tag:#04x}, {bytes} bytes; skipped");
            contents.problems.push(Problem::note(ProblemKind::UnsupportedRecord, text, None));
        }
        if self.unlisted > 0 {
            let regions = plural(self.unlisted, "region at the top level is", "regions at the top level are");
            let text = format!("{} more damaged {regions} not listed", self.unlisted);
            contents.problems.push(Problem::damage(ProblemKind::MorePlaces, text, None));
        }
        // HotSpot, the agent and Android all write an end record. A file that was truncated between two
        // records shows no other sign.
        let missing = match contents.dumps.last() {
            Some(last) if !last.ended && !self.consumed => Some((
                ProblemKind::NoEnd,
                "the last heap dump has no end record: the file is truncated between two records, or its writer was interrupted",
            )),
            None if !contents.has_end && !contents.has_recordings() && !self.consumed => Some((
                ProblemKind::NoHeapDump,
                "the file ends before a heap dump begins: it is truncated, or its writer was interrupted",
            )),
            _ => None,
        };
        if let Some((kind, text)) = missing {
            contents.ends_early = true;
            contents.problems.push(Problem::damage(kind, text, end));
        }
        contents.end_unknown |= missing.is_some();
    }

    /// Reads a known record and returns the offset of the next.
    fn take(&mut self, record: &Record) -> usize {
        let next = usize::try_from(record.end()).ok().filter(|end| *end <= self.bytes.len());
        if next.is_some_and(|next| self.is_misnamed_segment(record, next)) {
            return self.read_as_heap_dump(record, HeapDumpForm::Segment);
        }
        match record.tag {
            tag::HEAP_DUMP => return self.heap_dump(record, HeapDumpForm::Single),
            tag::HEAP_DUMP_SEGMENT => return self.heap_dump(record, HeapDumpForm::Segment),
            // It has no body: the records after it are more reliable than its length.
            tag::HEAP_DUMP_END if record.length == 0 || self.ends_or_goes_on(record.body_offset()) => {
                if record.length > 0 {
                    let text = format!(
                        "a HEAP DUMP END record states a length of {} bytes instead of 0; the length was ignored",
                        record.length
                    );
                    self.report_wrong_length(record, text);
                }
                self.heap_dump_end();
                return record.body_offset();
            }
            _ => {}
        }
        let Some(next) = next else { return self.beyond_the_end(record) };
        self.doubtful = Some(*record);
        next
    }

    /// Handles the end of a heap dump, including one without objects.
    fn heap_dump_end(&mut self) {
        self.inside = false;
        self.contents.has_end = true;
        if let Some(dump) = self.contents.dumps.last_mut() {
            dump.ended = true;
        }
    }

    fn ends_or_goes_on(&mut self, at: usize) -> bool {
        at == self.bytes.len() || self.search.goes_on(at, 1)
    }

    /// Stores the contents of a record other than a heap dump, or its offset.
    fn keep(&mut self, record: &Record) -> Result<(), FormatError> {
        let place = |id| RecordLocation { id, offset: record.offset as u64 };
        let offset = record.offset as u64;
        let Self { contents, allowance, no_memory, .. } = self;
        let mut kept = TableAppender { allowance, no_memory };
        match record.tag {
            tag::STRING => {
                self.reader.string(record).map(|(id, _)| kept.push(&mut contents.strings, place(id)))
            }
            tag::LOAD_CLASS => self.reader.load_class(record).map(|load| {
                kept.push(&mut contents.loads, load);
                kept.push(&mut contents.load_offsets, offset);
            }),
            tag::UNLOAD_CLASS => {
                self.reader.serial(record).map(|serial| kept.push(&mut contents.unloads, serial))
            }
            tag::FRAME => {
                self.reader.frame(record).map(|frame| kept.push(&mut contents.frames, place(frame.id)))
            }
            tag::TRACE => self
                .reader
                .trace(record)
                .map(|trace| kept.push(&mut contents.traces, place(trace.serial.0.into()))),
            tag::START_THREAD => {
                self.reader.start_thread(record).map(|thread| kept.push(&mut contents.threads, thread))
            }
            tag::END_THREAD => {
                self.reader.serial(record).map(|serial| kept.push(&mut contents.ended_threads, serial))
            }
            tag::ALLOC_SITES => {
                self.reader.alloc_sites(record).map(|_| kept.push(&mut contents.alloc_sites, offset))
            }
            tag::CPU_SAMPLES => {
                self.reader.cpu_samples(record).map(|_| kept.push(&mut contents.cpu_samples, offset))
            }
            tag::HEAP_SUMMARY => {
                self.reader.heap_summary(record).map(|_| kept.push(&mut contents.heap_summaries, offset))
            }
            tag::CONTROL_SETTINGS => self
                .reader
                .control_settings(record)
                .map(|_| kept.push(&mut contents.control_settings, offset)),
            _ => Ok(()),
        }
    }

    /// Handles a record other than a heap dump that extends beyond the end of the file: its length is
    /// wrong if records continue after it, otherwise the file is truncated. Returns the offset at which
    /// to continue.
    fn beyond_the_end(&mut self, record: &Record) -> usize {
        let len = self.bytes.len();
        let there = len - record.body_offset();
        if let Some(next) = self.search.find_record(record.offset + 1..len) {
            let skipped = next - record.offset;
            let text = format!(
                "record {:#04x} states a length of {} bytes, but only {there} are left; skipped {skipped} \
                 bytes to the next record",
                record.tag, record.length
            );
            self.lose(ProblemKind::BadRecord, text, record.offset, skipped);
            return next;
        }
        // The complete rows of a table are used; half a name would be a different name.
        if record.tag != tag::STRING {
            let _ = self.keep(record);
        }
        self.consumed = true;
        self.contents.expected_end = Some(record.end());
        let text = format!(
            "the file is truncated at offset {len:#x}: record {:#04x} states a length of {} bytes, but \
             only {there} are left",
            record.tag, record.length
        );
        self.lose(ProblemKind::FileCut, text, record.offset, len - record.offset);
        len
    }

    /// Skips bytes that are not a record and returns the offset of the next record.
    fn skip_unknown(&mut self, record: &Record) -> usize {
        let len = self.bytes.len();
        let how = self.text_mode_damage();
        let stated = usize::try_from(record.end()).ok().filter(|end| *end <= len);
        let heap_end = stated.filter(|end| {
            how.is_none() && record.length > 0 && self.search.is_heap(record.body_offset(), *end)
        });
        // The length of the previous record may have led here: records may continue inside it.
        if how.is_none()
            && heap_end.is_none()
            && let Some(before) = self.doubtful.map(|before| before.offset)
            && let Some(next) = self.search.find_record(before + 1..record.offset)
        {
            self.doubtful = None;
            let text = format!(
                "the length of a record is wrong: the next record starts inside it, at offset {next:#x}"
            );
            self.lose(ProblemKind::BadRecord, text, before, next - before);
            return next;
        }
        self.settle();
        if let Some(how) = how {
            let text = format!("unknown record {:#04x}, after which nothing can be read: {how}", record.tag);
            self.consumed = true;
            self.contents.end_unknown = true;
            self.lose(ProblemKind::TextMode, text, record.offset, len - record.offset);
            return len;
        }
        if let Some(end) = heap_end {
            let form = if self.inside || self.is_segment(end) {
                HeapDumpForm::Segment
            } else {
                HeapDumpForm::Single
            };
            return self.read_as_heap_dump(record, form);
        }
        let is_zeros = record.tag == 0 && record.length == 0;
        if let Some(end) = stated.filter(|_| !is_zeros && self.search.goes_on_after(record.offset)) {
            let (count, bytes) = self.unsupported.entry(record.tag).or_default();
            (*count, *bytes) = (*count + 1, *bytes + u64::from(record.length));
            return end;
        }
        match self.search.find_record(record.offset + 1..len) {
            Some(next) => self.skip(record, next),
            None => {
                self.consumed = true;
                self.contents.end_unknown = true;
                self.skip(record, len)
            }
        }
    }

    /// Reads a record as a heap dump although its tag is different.
    fn read_as_heap_dump(&mut self, record: &Record, form: HeapDumpForm) -> usize {
        let text =
            format!("record {:#04x} contains heap sub-records; it was read as a heap dump", record.tag);
        self.report_bad_header(record, text);
        self.heap_dump(record, form)
    }

    /// Returns `true` if the tag at `at` is that of a segment or of the end of a heap dump.
    fn is_segment(&self, at: usize) -> bool {
        matches!(self.bytes.get(at), Some(&(tag::HEAP_DUMP_SEGMENT | tag::HEAP_DUMP_END)))
    }

    /// Returns `true` if a record is the end of a heap dump with a changed tag: it is among segments, is
    /// empty, and other records follow.
    fn is_misnamed_end(&mut self, record: &Record) -> bool {
        let next = record.body_offset();
        let is_empty = self.inside && record.length == 0 && record.tag != tag::HEAP_DUMP_END;
        // An empty segment at the end of a file is one that was not filled in.
        let at_end = next == self.bytes.len() && record.tag != tag::HEAP_DUMP_SEGMENT;
        is_empty && !self.is_segment(next) && (at_end || self.search.goes_on(next, 1))
    }

    /// Returns `true` if a record that ends at `next` is a segment whose tag was changed to another valid
    /// one: it is where segments are expected, and contains sub-records.
    fn is_misnamed_segment(&mut self, record: &Record, next: usize) -> bool {
        let follows = self.is_segment(next);
        let is_likely = match record.tag {
            tag::HEAP_DUMP_SEGMENT => false,
            // A file of single-record heap dumps has such neighbors if another of its tags is wrong.
            tag::HEAP_DUMP => {
                let next = Record::at(self.bytes, next).filter(|next| next.tag == tag::HEAP_DUMP_SEGMENT);
                let behind = next.and_then(|next| usize::try_from(next.end()).ok());
                follows && (self.inside || behind.is_some_and(|behind| self.is_segment(behind)))
            }
            _ => follows || self.inside,
        };
        // The ID and text of a name can look like a few roots.
        is_likely
            && (self.search.walk(record.body_offset(), next))
                .is_some_and(|walked| walked.has_object || walked.sub_records > 2)
    }

    fn skip(&mut self, record: &Record, next: usize) -> usize {
        let skipped = next - record.offset;
        let bytes = plural(skipped as u64, "byte", "bytes");
        let text = format!("unknown record {:#04x}; skipped {skipped} {bytes}", record.tag);
        self.lose(ProblemKind::UnknownRecord, text, record.offset, skipped);
        next
    }

    /// Returns `true` if only blanks, line ends and NULs follow the complete records: the file was
    /// treated as text, or a block was padded.
    fn is_blank(&self, at: usize) -> bool {
        let ended = !self.inside && self.contents.dumps.last().is_some_and(|last| last.ended);
        let rest = self.bytes.get(at..).unwrap_or_default();
        ended && rest.iter().all(|byte| matches!(byte, 0 | b' ' | b'\r' | b'\n'))
    }

    fn text_mode_damage(&self) -> Option<&'static str> {
        *self.mangled.get_or_init(|| find_text_mode_damage(self.bytes))
    }

    /// Reports that one or more records are lost in a damaged region.
    fn lose(&mut self, kind: ProblemKind, text: String, offset: usize, bytes: usize) {
        self.contents.lost_records += 1;
        self.contents.skipped_bytes += bytes as u64;
        // The lost record between two segments may have been a segment.
        if self.inside
            && let Some(dump) = self.contents.dumps.last_mut()
        {
            dump.broken = true;
        }
        self.list(Problem::damage(kind, text, Some(offset as u64)).skipping(bytes));
    }

    /// Reports a wrong length with which nothing is lost.
    fn report_wrong_length(&mut self, record: &Record, text: String) {
        self.list(Problem::note(ProblemKind::WrongLength, text, Some(record.offset as u64)));
    }

    /// Reports a wrong tag, or a wrong length of a record that is not well-formed, with which nothing is lost.
    fn report_bad_header(&mut self, record: &Record, text: String) {
        self.list(Problem::damage(ProblemKind::BadRecord, text, Some(record.offset as u64)));
    }

    fn list(&mut self, problem: Problem) {
        // A hostile file can have an error at every byte; the first ones are enough, together with the
        // reason why it ends.
        if self.contents.problems.len() < MAX_PROBLEMS || self.consumed {
            self.contents.problems.push(problem);
        } else {
            self.unlisted += 1;
        }
    }
}

/// Returns the error without its offset, which the problem contains.
fn error_text(error: &FormatError) -> String {
    let text = error.to_string();
    text.split(" (at offset").next().unwrap_or_default().to_owned()
}

/// Returns the damage by a text-mode transfer that the start of the file shows, if any.
fn find_text_mode_damage(bytes: &[u8]) -> Option<&'static str> {
    let bytes = bytes.get(..bytes.len().min(1 << 20)).unwrap_or_default();
    let replaced = bytes.windows(3).filter(|window| *window == [0xef, 0xbf, 0xbd]).count();
    let line_ends = bytes.windows(2).filter(|window| *window == [0x0d, 0x0a]).count();
    let line_feeds = bytes.iter().filter(|byte| **byte == 0x0a).count();
    if replaced > 16 && replaced * 1000 > bytes.len() {
        Some(
            "bytes were replaced with U+FFFD because the file was treated as text; copy the file again in binary mode",
        )
    } else if line_ends > 16 && line_ends == line_feeds {
        Some(
            "line endings were changed because the file was copied in text mode; copy the file again in binary mode",
        )
    } else {
        None
    }
}
