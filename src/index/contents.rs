//! The top level of a dump: one hop over its records, without looking into heap dumps.
//!
//! Out of it come the places of strings, frames and traces, the loaded classes, the threads, and for each heap dump
//! in the file the ranges that hold its sub-records.

use std::cell::OnceCell;

use crate::hprof::record::{self, BodyReader, LoadClass, RECORD_HEADER, Record, StartThread, tag};
use crate::hprof::{FormatError, Header};

use super::problem::{Problem, ProblemKind, Severity};

/// A range of sub-records: the body of one HEAP DUMP or HEAP DUMP SEGMENT.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Segment {
    /// Offset of the first sub-record.
    pub(crate) start: usize,
    /// Offset just past the last.
    pub(crate) end: usize,
}

/// One heap dump of the file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct HeapDump {
    /// Its segments, in the order of the file.
    pub(crate) segments: Vec<Segment>,
    /// Time since the header's, in microseconds, of its first record.
    pub(crate) time_us: u32,
    /// Whether a HEAP DUMP END closes it (or it is one HEAP DUMP record, which needs none).
    pub(crate) ended: bool,
}

impl HeapDump {
    /// Bytes of all segments.
    pub(crate) fn bytes(&self) -> u64 {
        self.segments.iter().map(|segment| (segment.end - segment.start) as u64).sum()
    }
}

/// The place of a thing that has an id or a serial number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    /// The id or serial number.
    pub(crate) id: u64,
    /// Offset of its top-level record in the file.
    pub(crate) offset: u64,
}

/// What stands at the top level.
#[derive(Debug, Clone, Default)]
pub(crate) struct Contents {
    /// STRING records, ascending by id; after [`Contents::narrow`], of each id one.
    pub(crate) strings: Vec<Place>,
    /// STACK FRAME records, ascending by id.
    pub(crate) frames: Vec<Place>,
    /// STACK TRACE records, ascending by serial number.
    pub(crate) traces: Vec<Place>,
    /// LOAD CLASS records in the order of the file.
    pub(crate) loads: Vec<LoadClass>,
    /// Their offsets.
    load_offsets: Vec<u64>,
    /// After [`Contents::narrow`], the LOAD CLASS record that names each class.
    pub(crate) class_loads: Vec<LoadClass>,
    /// Serial numbers of UNLOAD CLASS records.
    pub(crate) unloads: Vec<u32>,
    /// START THREAD records in the order of the file.
    pub(crate) threads: Vec<StartThread>,
    /// Serial numbers of END THREAD records.
    pub(crate) ended_threads: Vec<u32>,
    /// Offsets of ALLOC SITES records.
    pub(crate) alloc_sites: Vec<u64>,
    /// Offsets of CPU SAMPLES records.
    pub(crate) cpu_samples: Vec<u64>,
    /// Offsets of HEAP SUMMARY records.
    pub(crate) heap_summaries: Vec<u64>,
    /// Offsets of CONTROL SETTINGS records.
    pub(crate) control_settings: Vec<u64>,
    /// The heap dumps.
    pub(crate) dumps: Vec<HeapDump>,
    /// What is wrong at the top level: the first places.
    pub(crate) problems: Vec<Problem>,
    /// Where the file has to end at least, as a record says that reaches beyond its end.
    pub(crate) expected_end: Option<u64>,
    /// Bytes at the top level that could not be read.
    pub(crate) skipped_bytes: u64,
    /// Places at the top level where records are lost.
    pub(crate) lost_records: u64,
    /// Heap dump records without a sub-record.
    pub(crate) empty_segments: u64,
    /// Whether there is a HEAP DUMP END.
    has_end: bool,
}

impl Contents {
    /// Hops over the records of `bytes`, whose header is `header`.
    pub(crate) fn read(bytes: &[u8], header: &Header) -> Self {
        let mut hop = Hop {
            bytes,
            reader: BodyReader::new(bytes, header.id_size),
            contents: Self::default(),
            inside: false,
            doubtful: None,
            mangled: OnceCell::new(),
        };
        hop.run(header.len);
        hop.contents
    }

    /// Keeps of records with the same id those that belong to heap dump `number`, from 1: files of several runs use ids
    /// again. Those are the last ones before the dump's end, or the first ones behind it.
    pub(crate) fn narrow(&mut self, number: usize) {
        let dump = number.checked_sub(1).and_then(|at| self.dumps.get(at));
        let end = dump.and_then(|dump| dump.segments.last()).map_or(u64::MAX, |segment| segment.end as u64);
        for places in [&mut self.strings, &mut self.frames, &mut self.traces] {
            narrow_places(places, end);
        }
        let placed = self.loads.iter().zip(&self.load_offsets);
        let mut places: Vec<Place> =
            placed.clone().map(|(load, offset)| Place { id: load.id, offset: *offset }).collect();
        narrow_places(&mut places, end);
        let naming = placed.filter(|(load, offset)| find_place(&places, load.id) == Some(**offset));
        self.class_loads = naming.map(|(load, _)| *load).collect();
    }

    /// Ids of the class objects that LOAD CLASS records before the end of `dump` name. Those behind it may be of another
    /// run of the JVM, in which the addresses are others.
    pub(crate) fn loaded_before_end_of(&self, dump: &HeapDump) -> Vec<u64> {
        let end = dump.segments.last().map_or(u64::MAX, |segment| segment.end as u64);
        let placed = self.loads.iter().zip(&self.load_offsets);
        placed.filter(|(_, offset)| **offset < end).map(|(load, _)| load.id).collect()
    }

    /// Whether an agent has recorded something besides a heap dump: files of such recordings need none.
    fn has_recordings(&self) -> bool {
        let offsets = [&self.alloc_sites, &self.cpu_samples, &self.heap_summaries, &self.control_settings];
        offsets.iter().any(|offsets| !offsets.is_empty())
            || !self.threads.is_empty()
            || !self.ended_threads.is_empty()
    }

    /// Whether the file ends between two records, before its time.
    pub(crate) fn ends_early(&self) -> bool {
        let early = [ProblemKind::NoEnd, ProblemKind::NoHeapDump];
        self.problems.iter().any(|problem| early.contains(&problem.kind))
    }

    /// The offset of the STRING record with this id.
    pub(crate) fn string(&self, id: u64) -> Option<u64> {
        find_place(&self.strings, id)
    }
}

/// The offset that belongs to `id` in places that ascend.
pub(crate) fn find_place(places: &[Place], id: u64) -> Option<u64> {
    let at = places.binary_search_by_key(&id, |place| place.id).ok()?;
    places.get(at).map(|place| place.offset)
}

/// Sorts by id and keeps of equal ids the last before `end`, or else the first behind it.
fn narrow_places(places: &mut Vec<Place>, end: u64) {
    if places.is_sorted_by(|a, b| a.id < b.id) {
        return;
    }
    // Behind `end` first, from far to near; then before it, from first to last: the last of a group is the one.
    places.sort_unstable_by_key(|place| {
        let before = place.offset < end;
        (place.id, before, if before { place.offset } else { u64::MAX - place.offset })
    });
    places.reverse();
    places.dedup_by_key(|place| place.id);
    places.reverse();
}

/// Problems kept at most.
const MAX_PROBLEMS: usize = 200;
/// Records that have to follow one another before a place is believed to be the start of one.
const ENOUGH: usize = 16;
/// Places that one search for a record looks at more closely: files in which every byte looks like a record end it.
const FIND_BUDGET: usize = 1 << 24;

struct Hop<'a> {
    bytes: &'a [u8],
    reader: BodyReader<'a>,
    contents: Contents,
    /// Inside a heap dump made of segments.
    inside: bool,
    /// The record before, if its length may be wrong: nothing but the record behind it tells.
    doubtful: Option<usize>,
    /// How a text-mode transfer has mangled the file, once that was looked for.
    mangled: OnceCell<Option<&'static str>>,
}

impl Hop<'_> {
    fn run(&mut self, start: usize) {
        let mut at = start;
        while at < self.bytes.len() {
            let Some(record) = Record::at(self.bytes, at) else {
                let there = self.bytes.len() - at;
                self.contents.expected_end = Some(at as u64 + RECORD_HEADER as u64);
                let text =
                    format!("the file is cut inside the header of a record: {there} bytes of it are there");
                self.lose(ProblemKind::FileCut, text, at, there);
                break;
            };
            if record::is_known(record.tag) {
                at = self.take(&record);
                let is_heap = matches!(record.tag, tag::HEAP_DUMP | tag::HEAP_DUMP_SEGMENT);
                self.doubtful = (!is_heap).then_some(record.offset);
            } else {
                at = self.skip_unknown(&record);
                self.doubtful = None;
            }
        }
        let contents = &mut self.contents;
        if contents.empty_segments > 0 {
            let text = format!("{} heap dump records are empty", contents.empty_segments);
            contents.problems.push(Problem::note(ProblemKind::EmptySegments, text, None));
        }
        if contents.lost_records > 0
            || !contents.problems.iter().all(|problem| problem.severity == Severity::Note)
        {
            return;
        }
        // HotSpot, the agent and Android all write an end record. A file that was cut between two records shows no other sign.
        let end = Some(self.bytes.len() as u64);
        if contents.dumps.last().is_some_and(|last| !last.ended) {
            let text = "the last heap dump has no end record: the file is cut between two records, or its writer was \
                        interrupted";
            contents.problems.push(Problem::damage(ProblemKind::NoEnd, text, end));
        } else if contents.dumps.is_empty() && !contents.has_end && !contents.has_recordings() {
            let text = "the file ends before a heap dump begins: it is cut, or its writer was interrupted";
            contents.problems.push(Problem::damage(ProblemKind::NoHeapDump, text, end));
        }
    }

    /// Reads a known record and returns the offset of the next.
    fn take(&mut self, record: &Record) -> usize {
        if matches!(record.tag, tag::HEAP_DUMP | tag::HEAP_DUMP_SEGMENT) {
            return self.heap_dump(record);
        }
        let next = usize::try_from(record.end()).ok().filter(|end| *end <= self.bytes.len());
        let place = |id| Place { id, offset: record.offset as u64 };
        let contents = &mut self.contents;
        let taken = match record.tag {
            tag::STRING => self.reader.string(record).map(|(id, _)| contents.strings.push(place(id))),
            tag::LOAD_CLASS => self.reader.load_class(record).map(|load| {
                contents.loads.push(load);
                contents.load_offsets.push(record.offset as u64);
            }),
            tag::UNLOAD_CLASS => self.reader.serial(record).map(|serial| contents.unloads.push(serial)),
            tag::FRAME => self.reader.frame(record).map(|frame| contents.frames.push(place(frame.id))),
            tag::TRACE => {
                self.reader.trace(record).map(|trace| contents.traces.push(place(u64::from(trace.serial))))
            }
            tag::START_THREAD => self.reader.start_thread(record).map(|thread| contents.threads.push(thread)),
            tag::END_THREAD => self.reader.serial(record).map(|serial| contents.ended_threads.push(serial)),
            tag::ALLOC_SITES => {
                self.reader.alloc_sites(record).map(|_| contents.alloc_sites.push(record.offset as u64))
            }
            tag::CPU_SAMPLES => {
                self.reader.cpu_samples(record).map(|_| contents.cpu_samples.push(record.offset as u64))
            }
            tag::HEAP_SUMMARY => {
                self.reader.heap_summary(record).map(|_| contents.heap_summaries.push(record.offset as u64))
            }
            tag::CONTROL_SETTINGS => self
                .reader
                .control_settings(record)
                .map(|_| contents.control_settings.push(record.offset as u64)),
            _ => {
                // HEAP DUMP END, of a heap without objects too.
                self.inside = false;
                contents.has_end = true;
                if let Some(dump) = contents.dumps.last_mut() {
                    dump.ended = true;
                }
                Ok(())
            }
        };
        match (next, taken) {
            (None, _) => self.beyond_the_end(record),
            (Some(next), Ok(())) => next,
            (Some(next), Err(error)) => {
                let text = format!("{}; skipped", error_text(&error));
                self.lose(ProblemKind::BadRecord, text, record.offset, next - record.offset);
                next
            }
        }
    }

    /// A record other than a heap dump that reaches beyond the end of the file: its length is wrong if records go on
    /// behind it, else the file is cut. Returns where to go on.
    fn beyond_the_end(&mut self, record: &Record) -> usize {
        let len = self.bytes.len();
        let there = len - record.body_offset();
        if let Some(next) = self.find_record(record.offset + 1) {
            let text = format!(
                "record {:#04x} states {} bytes, and only {there} are there; skipped {} bytes to the next record",
                record.tag,
                record.length,
                next - record.offset
            );
            self.lose(ProblemKind::BadRecord, text, record.offset, next - record.offset);
            return next;
        }
        self.contents.expected_end = Some(record.end());
        let text = format!(
            "the file is cut: record {:#04x} states {} bytes, {there} are there",
            record.tag, record.length
        );
        self.lose(ProblemKind::FileCut, text, record.offset, len - record.offset);
        len
    }

    /// The first place from `from` on at which records go on.
    fn find_record(&self, from: usize) -> Option<usize> {
        let len = self.bytes.len();
        let mut budget = FIND_BUDGET;
        let mut believable = |at: usize| {
            let Some(record) = Record::at(self.bytes, at) else { return false };
            // Most bytes are told by the first hop.
            if !usize::try_from(record.end()).is_ok_and(|end| end <= len) || budget == 0 {
                return false;
            }
            budget -= 1;
            let chain = record::chain(self.bytes, at, ENOUGH);
            chain.is_some_and(|chain| (chain.to_end && chain.records > 1) || chain.records >= ENOUGH)
        };
        (from..len)
            .find(|at| self.bytes.get(*at).is_some_and(|tag| record::is_known(*tag)) && believable(*at))
    }

    /// Finds the end of a heap dump record, notes it and returns the offset of the next.
    fn heap_dump(&mut self, record: &Record) -> usize {
        let start = record.body_offset();
        let end = self.heap_dump_end(record);
        let single = record.tag == tag::HEAP_DUMP;
        if single || !self.inside || self.contents.dumps.is_empty() {
            let (time_us, is_cut) = (record.time_us, self.contents.expected_end.is_some());
            self.contents.dumps.push(HeapDump { segments: Vec::new(), time_us, ended: single && !is_cut });
        }
        self.inside = !single;
        if start >= end {
            self.contents.empty_segments += 1;
        } else if let Some(dump) = self.contents.dumps.last_mut() {
            dump.segments.push(Segment { start, end });
        }
        end
    }

    fn heap_dump_end(&mut self, record: &Record) -> usize {
        let len = self.bytes.len();
        let stated = usize::try_from(record.end()).unwrap_or(usize::MAX);
        let single = record.tag == tag::HEAP_DUMP;
        if stated > len {
            let text = format!(
                "the file is cut: its last heap dump record states {} bytes, {} are there",
                record.length,
                len - record.body_offset()
            );
            self.contents.expected_end = Some(record.end());
            self.damage(Problem::damage(ProblemKind::FileCut, text, Some(record.offset as u64)));
            return len;
        }
        // A segment's length is believed if a known record follows: writers cut their segments long before 4 GiB.
        // Or the beginning of one, in a file that is cut there.
        let follows = |at: usize| match self.bytes.get(at) {
            None => true,
            Some(tag) => record::is_known(*tag),
        };
        if !single && follows(stated) {
            return stated;
        }
        // Over 4 GiB the length has wrapped: the real end is some multiple of 4 GiB further, where records go on.
        let good = |at: usize| {
            record::chain(self.bytes, at, 64).is_some_and(|chain| chain.to_end || chain.records >= 64)
        };
        let ends =
            std::iter::successors(Some(stated), |at| at.checked_add(1 << 32)).take_while(|at| *at <= len);
        for end in ends {
            let empty = end == record.body_offset();
            if good(end) && !(empty && single && end == len) {
                if end != stated {
                    let text = format!(
                        "a heap dump record of {} bytes states its length modulo 4 GiB; read in full",
                        end - record.body_offset()
                    );
                    let offset = Some(record.offset as u64);
                    self.contents.problems.push(Problem::note(ProblemKind::LengthWrapped, text, offset));
                }
                return end;
            }
        }
        if record.length == 0 {
            // The writer died, or could not seek back, before it knew the length.
            let text = "a heap dump record states length 0; read to the end of the file";
            let offset = Some(record.offset as u64);
            self.contents.problems.push(Problem::note(ProblemKind::LengthOpen, text, offset));
            return len;
        }
        if follows(stated) { stated } else { self.end_by_force(record, stated) }
    }

    /// No end of the record makes sense: the stated one if a record can be found behind it, else the file's.
    fn end_by_force(&mut self, record: &Record, stated: usize) -> usize {
        if len_plausible_end(self.bytes, stated) {
            return stated;
        }
        let how =
            self.mangled.get_or_init(|| mangled(self.bytes)).map_or(String::new(), |how| format!(": {how}"));
        let text = "no record follows where this heap dump record ends; read to the end of the file";
        let kind = if how.is_empty() { ProblemKind::LostEnd } else { ProblemKind::TextMode };
        self.damage(Problem::damage(kind, format!("{text}{how}"), Some(record.offset as u64)));
        self.bytes.len()
    }

    /// Skips what is not a record and returns the offset of the next that looks like one.
    fn skip_unknown(&mut self, record: &Record) -> usize {
        let len = self.bytes.len();
        if let Some(how) = *self.mangled.get_or_init(|| mangled(self.bytes)) {
            let text =
                format!("unknown record {:#04x}: {how}; nothing behind this place can be read", record.tag);
            self.lose(ProblemKind::TextMode, text, record.offset, len - record.offset);
            return len;
        }
        let believable = |at: usize| {
            let chain = record::chain(self.bytes, at, ENOUGH);
            chain.is_some_and(|chain| (chain.to_end && chain.records > 0) || chain.records >= ENOUGH)
        };
        let stated = usize::try_from(record.end()).ok().filter(|end| *end <= len);
        let next = match stated {
            Some(end) if end == len || believable(end) => end,
            _ => {
                // The length of the record before may have led here: records may go on inside of it.
                let from = self.doubtful.map_or(record.offset, |before| before) + 1;
                self.find_record(from).unwrap_or(len)
            }
        };
        if next < record.offset {
            let text = format!("the length of a record is wrong: records go on inside of it, at {next:#x}");
            let before = self.doubtful.unwrap_or(next);
            self.lose(ProblemKind::BadRecord, text, before, 0);
        } else {
            let text = format!("unknown record {:#04x}; skipped {} bytes", record.tag, next - record.offset);
            self.lose(ProblemKind::UnknownRecord, text, record.offset, next - record.offset);
        }
        next
    }

    /// One or more records are lost here.
    fn lose(&mut self, kind: ProblemKind, text: String, offset: usize, bytes: usize) {
        self.contents.lost_records += 1;
        self.contents.skipped_bytes += bytes as u64;
        self.damage(Problem::damage(kind, text, Some(offset as u64)).skipping(bytes));
    }

    fn damage(&mut self, problem: Problem) {
        // A hostile file can be wrong at every byte; the first places tell enough.
        if self.contents.problems.len() < MAX_PROBLEMS {
            self.contents.problems.push(problem);
        }
    }
}

/// Whether a believable record starts at `at`.
fn len_plausible_end(bytes: &[u8], at: usize) -> bool {
    record::chain(bytes, at, 4).is_some_and(|chain| chain.records >= 2)
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
        Some("bytes were replaced by U+FFFD, the file was treated as text; copy it again in binary mode")
    } else if line_ends > 16 && line_ends == line_feeds {
        Some("line ends were changed, the file was copied in text mode; copy it again in binary mode")
    } else {
        None
    }
}
