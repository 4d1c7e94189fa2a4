//! The walk over the top-level records of a dump, and how it resynchronises after damage.
//!
//! A record is believed if records follow where its length says that it ends. Where none does, the walk continues at the
//! first offset from which many records follow one another, or a few that end exactly where the file does. All such
//! searches of a file together are bounded ([`super::search_budget`]).

mod heap_dump;

use std::cell::OnceCell;

use hprof_parser::record::{self, BodyReader, RECORD_HEADER, Record, tag};
use hprof_parser::{FormatError, Header};

use heap_dump::HeapDumpForm;

use super::search_budget::HeapDumpSearch;
use super::top_level::{Contents, RecordLocation};
use crate::model::problem::{Problem, ProblemKind};
use crate::storage::allowance::Allowance;
use crate::storage::memory::NoMemory;

/// Problems kept at most.
const MAX_PROBLEMS: usize = 200;

/// Walks over the records of `bytes`, whose header is `header`.
///
/// # Errors
/// [`NoMemory`] if there are too many to be kept.
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
        unlisted: 0,
        mangled: OnceCell::new(),
    };
    walk.run(header.len);
    walk.no_memory.map_or(Ok(walk.contents), Err)
}

struct RecordWalk<'a> {
    bytes: &'a [u8],
    /// What tables may take; if they cannot, the walk ends.
    allowance: &'a Allowance,
    no_memory: Option<NoMemory>,
    reader: BodyReader<'a>,
    contents: Contents,
    /// Inside a heap dump made of segments.
    inside: bool,
    /// The record before: it is kept when a record follows where its length says, as nothing else tells that it is right.
    doubtful: Option<Record>,
    /// What was read last goes to the end of the file, for want of a place where something else begins.
    consumed: bool,
    search: HeapDumpSearch<'a>,
    /// Problems that are not kept.
    unlisted: u64,
    /// How a text-mode transfer has mangled the file, once that was looked for.
    mangled: OnceCell<Option<&'static str>>,
}

/// Appends to tables, and notes if one cannot grow.
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
                    let text =
                        format!("record {:#04x} is in place of a heap dump end; read as one", record.tag);
                    self.mislabelled(&record, text);
                    self.heap_dump_end();
                    record.body_offset()
                }
                Some(record) if record::is_known(record.tag) => {
                    self.settle();
                    self.take(&record)
                }
                Some(record) => self.skip_unknown(&record),
                None if record::is_known(*first) => {
                    self.settle();
                    self.consumed = true;
                    self.contents.expected_end = Some(at as u64 + RECORD_HEADER as u64);
                    let there = len - at;
                    let text = format!(
                        "the file is truncated at offset {len:#x}, in the header of a record: it has {there} of {RECORD_HEADER} bytes"
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

    /// Keeps the record before: something follows it.
    fn settle(&mut self) {
        let Some(record) = self.doubtful.take() else { return };
        let text = if record.tag == tag::HEAP_DUMP_END {
            format!("a heap dump end states {} bytes, but has no body; skipped", record.length)
        } else if let Err(error) = self.keep(&record) {
            format!("{}; skipped", error_text(&error))
        } else {
            return;
        };
        let bytes = RECORD_HEADER + record.length as usize;
        self.lose(ProblemKind::BadRecord, text, record.offset, bytes);
    }

    /// Says that what follows is of no use, and nothing is lost with it.
    fn stray(&mut self, at: usize) {
        let bytes = self.bytes.len() - at;
        let text = format!("{bytes} stray bytes after the last record");
        self.contents.skipped_bytes += bytes as u64;
        self.list(Problem::note(ProblemKind::UnknownRecord, text, Some(at as u64)).skipping(bytes));
    }

    /// What can be said only when all was read.
    fn end(&mut self) {
        let end = Some(self.bytes.len() as u64);
        let contents = &mut self.contents;
        if contents.empty_segments > 0 {
            let text = format!("{} heap dump records are empty", contents.empty_segments);
            contents.problems.push(Problem::note(ProblemKind::EmptySegments, text, None));
        }
        if self.unlisted > 0 {
            let text = format!("{} more damaged regions at the top level are not listed", self.unlisted);
            contents.problems.push(Problem::damage(ProblemKind::MorePlaces, text, None));
        }
        // HotSpot, the agent and Android all write an end record. A file that was cut between two records shows no other
        // sign.
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
            return self.misnamed(record, HeapDumpForm::Segment);
        }
        match record.tag {
            tag::HEAP_DUMP => return self.heap_dump(record, HeapDumpForm::Single),
            tag::HEAP_DUMP_SEGMENT => return self.heap_dump(record, HeapDumpForm::Segment),
            // It has no body: records behind it say more than its length.
            tag::HEAP_DUMP_END if record.length == 0 || self.ends_or_goes_on(record.body_offset()) => {
                if record.length > 0 {
                    let text = format!("a heap dump end states {} bytes, but has no body", record.length);
                    self.mislabelled(record, text);
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

    /// Notes the end of a heap dump; of one without objects too.
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

    /// Keeps what a record other than a heap dump says, or where it is.
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

    /// A record other than a heap dump that reaches beyond the end of the file: its length is wrong if records go on
    /// behind it, else the file is cut. Returns where to go on.
    fn beyond_the_end(&mut self, record: &Record) -> usize {
        let len = self.bytes.len();
        let there = len - record.body_offset();
        if let Some(next) = self.search.find_record(record.offset + 1..len) {
            let skipped = next - record.offset;
            let text = format!(
                "record {:#04x} states {} bytes, but only {there} are left; skipped {skipped} bytes to the next record",
                record.tag, record.length
            );
            self.lose(ProblemKind::BadRecord, text, record.offset, skipped);
            return next;
        }
        // Of tables what is there is used; half a name would be another name.
        if record.tag != tag::STRING {
            let _ = self.keep(record);
        }
        self.consumed = true;
        self.contents.expected_end = Some(record.end());
        let text = format!(
            "the file is truncated at offset {len:#x}: record {:#04x} states {} bytes, but only {there} are left",
            record.tag, record.length
        );
        self.lose(ProblemKind::FileCut, text, record.offset, len - record.offset);
        len
    }

    /// Skips what is not a record and returns the offset of the next one.
    fn skip_unknown(&mut self, record: &Record) -> usize {
        let len = self.bytes.len();
        let how = self.mangled();
        let stated = usize::try_from(record.end()).ok().filter(|end| *end <= len);
        let heap_end = stated.filter(|end| {
            how.is_none() && record.length > 0 && self.search.is_heap(record.body_offset(), *end)
        });
        // The length of the record before may have led here: records may go on inside of it.
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
            let text = format!("unknown record {:#04x}: {how}; nothing after it can be read", record.tag);
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
            return self.misnamed(record, form);
        }
        if let Some(end) = stated.filter(|end| *end == len || self.search.goes_on(*end, 1)) {
            return self.skip(record, end);
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

    /// Reads a record as a heap dump, which its tag does not say.
    fn misnamed(&mut self, record: &Record, form: HeapDumpForm) -> usize {
        let text = format!("record {:#04x} contains heap sub-records; read as a heap dump", record.tag);
        self.mislabelled(record, text);
        self.heap_dump(record, form)
    }

    /// Whether a segment or the end of a heap dump of segments is at `at`, by its tag.
    fn is_segment(&self, at: usize) -> bool {
        matches!(self.bytes.get(at), Some(&(tag::HEAP_DUMP_SEGMENT | tag::HEAP_DUMP_END)))
    }

    /// Whether a record is the end of a heap dump whose tag was changed: it stands among segments, is empty, and other
    /// records follow.
    fn is_misnamed_end(&mut self, record: &Record) -> bool {
        let next = record.body_offset();
        let is_empty = self.inside && record.length == 0 && record.tag != tag::HEAP_DUMP_END;
        // An empty segment at the end of a file is one that was not filled.
        let at_end = next == self.bytes.len() && record.tag != tag::HEAP_DUMP_SEGMENT;
        is_empty && !self.is_segment(next) && (at_end || self.search.goes_on(next, 1))
    }

    /// Whether a record that ends at `next` is a segment whose tag was changed to another that there is: it stands where
    /// segments do, and is filled with sub-records.
    fn is_misnamed_segment(&mut self, record: &Record, next: usize) -> bool {
        let follows = self.is_segment(next);
        let is_likely = match record.tag {
            tag::HEAP_DUMP_SEGMENT => false,
            // A file of heap dumps of one record each has such neighbours if another of its tags is wrong.
            tag::HEAP_DUMP => {
                let next = Record::at(self.bytes, next).filter(|next| next.tag == tag::HEAP_DUMP_SEGMENT);
                let behind = next.and_then(|next| usize::try_from(next.end()).ok());
                follows && (self.inside || behind.is_some_and(|behind| self.is_segment(behind)))
            }
            _ => follows || self.inside,
        };
        // The id and the text of a name can look like a root or two.
        is_likely
            && (self.search.walk(record.body_offset(), next))
                .is_some_and(|walked| walked.has_object || walked.sub_records > 2)
    }

    fn skip(&mut self, record: &Record, next: usize) -> usize {
        let text = format!("unknown record {:#04x}; skipped {} bytes", record.tag, next - record.offset);
        self.lose(ProblemKind::UnknownRecord, text, record.offset, next - record.offset);
        next
    }

    /// Whether nothing but blanks, line ends and NUL follow what is whole: somebody has taken the file for text, or filled
    /// up a block.
    fn is_blank(&self, at: usize) -> bool {
        let ended = !self.inside && self.contents.dumps.last().is_some_and(|last| last.ended);
        let rest = self.bytes.get(at..).unwrap_or_default();
        ended && rest.iter().all(|byte| matches!(byte, 0 | b' ' | b'\r' | b'\n'))
    }

    fn mangled(&self) -> Option<&'static str> {
        *self.mangled.get_or_init(|| mangled(self.bytes))
    }

    /// One or more records are lost here.
    fn lose(&mut self, kind: ProblemKind, text: String, offset: usize, bytes: usize) {
        self.contents.lost_records += 1;
        self.contents.skipped_bytes += bytes as u64;
        // What was lost between two segments may have been one.
        if self.inside
            && let Some(dump) = self.contents.dumps.last_mut()
        {
            dump.broken = true;
        }
        self.list(Problem::damage(kind, text, Some(offset as u64)).skipping(bytes));
    }

    /// A record's tag or length is wrong, and nothing is lost with it.
    fn mislabelled(&mut self, record: &Record, text: String) {
        self.list(Problem::damage(ProblemKind::BadRecord, text, Some(record.offset as u64)));
    }

    fn list(&mut self, problem: Problem) {
        // A hostile file can be wrong at every byte; the first places tell enough, and why it ends.
        if self.contents.problems.len() < MAX_PROBLEMS || self.consumed {
            self.contents.problems.push(problem);
        } else {
            self.unlisted += 1;
        }
    }
}

/// The error without its offset, which the problem carries itself.
fn error_text(error: &FormatError) -> String {
    let text = error.to_string();
    text.split(" (at offset").next().unwrap_or_default().to_owned()
}

/// Says if the start of the file looks as text-mode transfers leave it.
fn mangled(bytes: &[u8]) -> Option<&'static str> {
    let bytes = bytes.get(..bytes.len().min(1 << 20)).unwrap_or_default();
    let replaced = bytes.windows(3).filter(|window| *window == [0xef, 0xbf, 0xbd]).count();
    let line_ends = bytes.windows(2).filter(|window| *window == [0x0d, 0x0a]).count();
    let line_feeds = bytes.iter().filter(|byte| **byte == 0x0a).count();
    if replaced > 16 && replaced * 1000 > bytes.len() {
        Some(
            "bytes were replaced with U+FFFD because the file was treated as text; copy it again in binary mode",
        )
    } else if line_ends > 16 && line_ends == line_feeds {
        Some(
            "line endings were changed because the file was copied in text mode; copy it again in binary mode",
        )
    } else {
        None
    }
}
