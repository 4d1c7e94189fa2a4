//! Writing of a recovered dump.

use std::io::{self, Write};
use std::ops::Range;

use hprof_format::binary::record_head;
use hprof_index::Progress;
use hprof_index::remains::{DumpPart, HeapRemains, WholeRecords};
use hprof_index::storage::id_map::IdSet;
use hprof_parser::Version;
use hprof_parser::record::tag;
use hprof_values::{IdSize, RootKind};

use super::{RecoverSource, Recovery};

/// Bytes per write: with 128 KiB or more, Linux takes five times as long (decision 11).
const WRITTEN: usize = 64 << 10;
/// Number of bytes after which pages of the input are released.
const RELEASED: usize = 64 << 20;
/// First serial number of classes that the recovery names: larger than those of any writer.
const FIRST_SERIAL: u32 = 1 << 31;
/// Maximum length of a heap dump segment.
const MAX_SEGMENT: u64 = 1 << 30;

/// Output that counts the written bytes.
struct Writer<'w> {
    out: &'w mut dyn Write,
    written: u64,
    /// `true` if each heap dump is a single record.
    is_single: bool,
    id_size: IdSize,
}

impl Writer<'_> {
    fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.written += bytes.len() as u64;
        self.out.write_all(bytes)
    }

    fn record(&mut self, tag: u8, body: &[u8]) -> io::Result<()> {
        self.bytes(&record_head(tag, 0, u32::try_from(body.len()).unwrap_or(u32::MAX)))?;
        self.bytes(body)
    }

    fn push_id(&self, out: &mut Vec<u8>, id: u64) {
        let bytes = id.to_be_bytes();
        out.extend_from_slice(bytes.get(bytes.len() - self.id_size.bytes()..).unwrap_or_default());
    }
}

impl Recovery<'_> {
    /// Writes the dump; returns its length.
    ///
    /// # Errors
    /// Errors of writing to `out`.
    pub fn write(&self, out: &mut dyn Write, progress: &dyn Progress) -> io::Result<u64> {
        let total = self.parts.iter().map(|part| part.bytes().len() as u64).sum();
        progress.begin("writing the dump", total);
        let (is_single, id_size) = (self.are_single(), self.header.id_size);
        let mut writer = Writer { out, written: 0, is_single, id_size };
        self.write_header(&mut writer)?;
        let (mut has_names, mut is_open) = (false, false);
        let last_heap = self.heaps.iter().rposition(|heap| !heap.segments.is_empty());
        for (number, (part, heap)) in self.parts.iter().zip(&self.heaps).enumerate() {
            let Some(source) = self.sources.get(number) else { continue };
            let mut records = part.records().peekable();
            let mut at = 0;
            while at < heap.segments.len() {
                let dump = dump_from(heap, at);
                for (segment, offset) in dump.iter().map(|segment| (segment, segment.offset)) {
                    while let Some(range) = records.next_if(|range| range.start < offset) {
                        self.copy(&mut writer, source, range, progress)?;
                    }
                    if !std::mem::replace(&mut has_names, true) {
                        self.write_names(&mut writer)?;
                    }
                    let is_last = last_heap == Some(number) && at + dump.len() == heap.segments.len();
                    let is_last_segment = is_last && dump.last() == Some(segment);
                    let roots = if is_last_segment { self.roots(&writer) } else { Vec::new() };
                    is_open |= self.write_segment(&mut writer, source, segment, &roots, progress)?;
                }
                at += dump.len();
                // The segments of another file belong to the last heap dump.
                if is_open && at < heap.segments.len() {
                    writer.record(tag::HEAP_DUMP_END, &[])?;
                    is_open = false;
                }
            }
            for range in records {
                self.copy(&mut writer, source, range, progress)?;
            }
        }
        if is_open || last_heap.is_none() {
            writer.record(tag::HEAP_DUMP_END, &[])?;
        }
        writer.out.flush()?;
        progress.end();
        Ok(writer.written)
    }

    /// Returns `true` if each heap dump is written as a single record, as in the files. With both forms in one
    /// file, neither is certain.
    fn are_single(&self) -> bool {
        let roots = (self.threads.len() * (1 + self.header.id_size.bytes())) as u64;
        let fits = |segment: &WholeRecords| {
            segment.is_single && u32::try_from(length(&segment.ranges) + roots).is_ok()
        };
        self.heaps.iter().flat_map(|heap| &heap.segments).all(fits)
    }

    fn write_header(&self, writer: &mut Writer<'_>) -> io::Result<()> {
        // Older versions have no segments.
        let version = match self.header.version {
            Version::V1_0 | Version::V1_0_1 if !writer.is_single => Version::V1_0_2,
            version => version,
        };
        writer.bytes(version.name().as_bytes())?;
        writer.bytes(&[0])?;
        writer.bytes(&(if self.header.id_size == IdSize::Four { 4_u32 } else { 8 }).to_be_bytes())?;
        writer.bytes(&self.header.created_ms.to_be_bytes())
    }

    /// Writes the names of classes and fields that are missing.
    fn write_names(&self, writer: &mut Writer<'_>) -> io::Result<()> {
        for (id, name) in &self.names.members {
            write_string(writer, *id, name)?;
        }
        if self.names.classes.is_empty() {
            return Ok(());
        }
        // IDs of lost names are not reused. Those of JVMs are addresses or count up from 1.
        let members = self.names.members.iter().map(|(id, _)| *id);
        let used: IdSet<u64> = members.chain(self.parts.iter().flat_map(DumpPart::string_uses)).collect();
        let is_free =
            |id: &u64| !used.contains(id) && self.parts.iter().all(|part| part.string(*id).is_none());
        let last = if self.header.id_size == IdSize::Four { u64::from(u32::MAX) } else { u64::MAX };
        let mut ids = (1..last).rev().filter(is_free);
        for (serial, (class, name)) in (FIRST_SERIAL..).zip(&self.names.classes) {
            let Some(string) = ids.next() else { break };
            write_string(writer, string, name)?;
            let mut body = serial.to_be_bytes().to_vec();
            writer.push_id(&mut body, class.0);
            body.extend_from_slice(&0_u32.to_be_bytes());
            writer.push_id(&mut body, string);
            writer.record(tag::LOAD_CLASS, &body)?;
        }
        Ok(())
    }

    /// Returns the sub-records of threads that are written as roots.
    fn roots(&self, writer: &Writer<'_>) -> Vec<u8> {
        let mut roots = Vec::new();
        for thread in &self.threads {
            roots.push(RootKind::Unknown.tag());
            writer.push_id(&mut roots, thread.0);
        }
        roots
    }

    /// Writes the complete sub-records of a heap dump record, followed by `roots`. Returns `true` if they were written as
    /// segments, which an end record has to follow.
    fn write_segment(
        &self,
        writer: &mut Writer<'_>,
        source: &RecoverSource,
        segment: &WholeRecords,
        roots: &[u8],
        progress: &dyn Progress,
    ) -> io::Result<bool> {
        let is_single = writer.is_single;
        let head = |length: u64| {
            let tag = if is_single { tag::HEAP_DUMP } else { tag::HEAP_DUMP_SEGMENT };
            record_head(tag, segment.time_us, u32::try_from(length).unwrap_or(u32::MAX))
        };
        let mut rest = segment.ranges.as_slice();
        if is_single && rest.is_empty() && roots.is_empty() {
            return Ok(false);
        }
        if is_single {
            writer.bytes(&head(length(rest) + roots.len() as u64))?;
            for range in rest {
                self.copy(writer, source, range.clone(), progress)?;
            }
            writer.bytes(roots)?;
            return Ok(false);
        }
        while !rest.is_empty() {
            let mut sum = 0;
            let more = |range: &&Range<usize>| {
                sum += range.len() as u64;
                sum <= MAX_SEGMENT
            };
            // A range is at most as long as a record.
            let count = rest.iter().take_while(more).count().max(1);
            let (now, later) = rest.split_at_checked(count).unwrap_or((rest, &[]));
            writer.bytes(&head(length(now)))?;
            for range in now {
                self.copy(writer, source, range.clone(), progress)?;
            }
            rest = later;
        }
        if !roots.is_empty() {
            writer.bytes(&head(roots.len() as u64))?;
            writer.bytes(roots)?;
        }
        Ok(true)
    }

    /// Copies a range of bytes of a file.
    fn copy(
        &self,
        writer: &mut Writer<'_>,
        source: &RecoverSource,
        range: Range<usize>,
        progress: &dyn Progress,
    ) -> io::Result<()> {
        let (start, bytes) = (range.start, source.bytes().get(range).unwrap_or_default());
        for (part, at) in bytes.chunks(RELEASED).zip((start..).step_by(RELEASED)) {
            for chunk in part.chunks(WRITTEN) {
                writer.bytes(chunk)?;
            }
            progress.advance(part.len() as u64);
            source.give_back(at..at + part.len());
        }
        Ok(())
    }
}

/// Returns the segments from `at` to the end of the heap dump to which the segment at `at` belongs.
fn dump_from(heap: &HeapRemains, at: usize) -> &[WholeRecords] {
    let rest = heap.segments.get(at..).unwrap_or_default();
    let dump = rest.first().map_or(0, |first| first.dump);
    rest.get(..rest.iter().take_while(|segment| segment.dump == dump).count()).unwrap_or_default()
}

fn length(ranges: &[Range<usize>]) -> u64 {
    ranges.iter().map(|range| range.len() as u64).sum()
}

fn write_string(writer: &mut Writer<'_>, id: u64, text: &[u8]) -> io::Result<()> {
    let mut body = Vec::with_capacity(text.len() + 8);
    writer.push_id(&mut body, id);
    body.extend_from_slice(text);
    writer.record(tag::STRING, &body)
}
