//! A chunk: its events, their types and constants.

use std::collections::HashMap;
use std::ops::{Deref, Range};
use std::sync::Arc;

use crate::error::{FlightError, FlightErrorKind};
use crate::events::{EventHeader, Events, HEADER};
use crate::metadata::{Class, Metadata};
use crate::plan::{self, Plans};
use crate::pools::Pools;
use crate::reader::Reader;
use crate::recording::{ChunkHeader, ChunkSpan};

/// Type of the event that contains the metadata.
pub const METADATA: i64 = 0;
/// Type of the events that contain constants.
pub const CHECKPOINT: i64 = 1;
/// Maximum number of problems of a chunk that are stored.
const MAX_PROBLEMS: usize = 8;

/// Maximum number of selected events whose offsets are stored.
const MAX_SELECTED: usize = if cfg!(test) { 4 } else { 1 << 20 };

/// Number of events of a part of a chunk.
pub const PART_EVENTS: u64 = 1 << 13;

/// A chunk of a recording: its tables, and the bytes of the file.
#[derive(Debug, Clone)]
pub struct Chunk<'a> {
    tables: Arc<ChunkTables>,
    pub(crate) reader: Reader<'a>,
}

/// Tables of a chunk whose events have all been visited: types, constants, and offsets of the events. They borrow nothing, so
/// that parts of a chunk that are read at different times can share them.
#[derive(Debug)]
pub struct ChunkTables {
    /// Header of the chunk.
    pub header: ChunkHeader,
    /// Types of events and constants.
    pub metadata: Metadata,
    /// Number and bytes of the events of each type, ascending by type.
    pub counts: Vec<TypeCount>,
    /// The first damaged regions and damaged checkpoints.
    pub problems: Vec<FlightError>,
    pub(crate) plans: Plans,
    pub(crate) pools: Pools,
    /// Offsets of the events that can be read, one after the other: one range, and one more after each damaged region.
    pub(crate) runs: Vec<Range<usize>>,
    pub(crate) selected: SelectedEvents,
}

/// Events of selected types. Their offsets are stored when a chunk is visited, so that headers are read once.
#[derive(Debug)]
pub(crate) struct SelectedEvents {
    /// `true` for selected types, by index of the type.
    pub(crate) is_selected: Vec<bool>,
    pub(crate) places: Vec<EventPlace>,
    /// Offset of the first selectable event that is not stored. Events from it on are visited again.
    pub(crate) rest: usize,
}

/// Offsets of a selected event in its chunk, and index of its type.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EventPlace {
    pub(crate) class: u32,
    pub(crate) start: u32,
    pub(crate) fields: u32,
    pub(crate) end: u32,
}

/// Number and size of the events of a type.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TypeCount {
    /// ID of the type in this chunk.
    pub type_id: i64,
    /// Number of events.
    pub events: u64,
    /// Bytes of these events.
    pub bytes: u64,
}

impl Deref for Chunk<'_> {
    type Target = ChunkTables;

    fn deref(&self) -> &ChunkTables {
        &self.tables
    }
}

impl<'a> Chunk<'a> {
    /// Reads the types and constants of a chunk.
    ///
    /// # Errors
    /// If it contains no metadata, or damaged metadata.
    pub fn read(file: &'a [u8], span: &ChunkSpan) -> Result<Self, FlightError> {
        Self::read_selecting(file, span, |_| false)
    }

    /// Reads the types and constants of a chunk, for [`Chunk::selected_events`].
    ///
    /// # Errors
    /// If it contains no metadata, or damaged metadata.
    pub fn read_selecting(
        file: &'a [u8],
        span: &ChunkSpan,
        select: impl Fn(&Class) -> bool,
    ) -> Result<Self, FlightError> {
        Ok(Self::from_tables(file, span, Arc::new(ChunkTables::read_selecting(file, span, &select)?)))
    }

    /// Returns the chunk whose tables were read before.
    pub fn from_tables(file: &'a [u8], span: &ChunkSpan, tables: Arc<ChunkTables>) -> Self {
        Self { tables, reader: reader_of(file, span) }
    }

    /// Returns the length of the chunk in bytes.
    pub fn byte_count(&self) -> usize {
        self.reader.end()
    }

    /// Returns the tables, for [`Chunk::from_tables`].
    pub fn tables(&self) -> &Arc<ChunkTables> {
        &self.tables
    }
}

impl ChunkTables {
    /// Reads the types and constants of a chunk.
    ///
    /// # Errors
    /// If the chunk contains no metadata, or damaged metadata.
    pub fn read(file: &[u8], span: &ChunkSpan) -> Result<Self, FlightError> {
        Self::read_selecting(file, span, &|_| false)
    }

    fn read_selecting(
        file: &[u8],
        span: &ChunkSpan,
        select: &dyn Fn(&Class) -> bool,
    ) -> Result<Self, FlightError> {
        let reader = reader_of(file, span);
        let (mut counts, mut checkpoints, mut last) = (Counts::new(reader.end()), Vec::new(), None);
        let HeaderFacts { starts, metadata } = HeaderFacts::new(reader, span);
        let selection = |metadata: &Metadata| metadata.classes.iter().map(select).collect::<Vec<bool>>();
        let mut selected = SelectedEvents::new(metadata.as_ref().map(selection));
        let headers = EventHeaders { reader, span, metadata: metadata.as_ref() };
        let Walk { runs, mut problems } = headers.visit(starts, |event| {
            counts.add(event);
            match event.type_id {
                METADATA => last = Some(*event),
                CHECKPOINT => checkpoints.push(*event),
                type_id => selected.add(event, || metadata.as_ref()?.index_of(type_id)),
            }
        });
        let metadata = match metadata {
            Some(metadata) => metadata,
            None => {
                let none = FlightError::new(FlightErrorKind::NoMetadata, span.start as u64);
                let event = last.ok_or(none)?;
                let metadata = Metadata::read(reader.at(event.fields).until(event.end))?;
                selected.is_selected = selection(&metadata);
                metadata
            }
        };
        let plans = plan::plans(&metadata, reader.is_compressed());
        let problem = |problem| add_problem(&mut problems, problem);
        let pools = Pools::read(reader, &checkpoints, (&metadata, &plans), problem);
        Ok(Self {
            header: span.header,
            metadata,
            counts: counts.finish(),
            problems,
            plans,
            pools,
            runs,
            selected,
        })
    }

    /// Converts a time in ticks to nanoseconds since 1970.
    pub fn nanos(&self, ticks: i64) -> i64 {
        let since = self.duration_nanos(ticks.saturating_sub(self.header.start_ticks));
        self.header.start_nanos.saturating_add(since)
    }

    /// Converts a duration in ticks to nanoseconds.
    pub fn duration_nanos(&self, ticks: i64) -> i64 {
        let per_second = i128::from(self.header.ticks_per_second.max(1));
        let nanos = i128::from(ticks) * 1_000_000_000 / per_second;
        i64::try_from(nanos).unwrap_or(if nanos < 0 { i64::MIN } else { i64::MAX })
    }
}

/// Returns the parts of a chunk: ranges of offsets with [`PART_EVENTS`] events each, the last one with fewer, for
/// [`Chunk::events_in`]. Only headers of events are read.
pub fn parts(file: &[u8], span: &ChunkSpan) -> Vec<Range<usize>> {
    let (mut starts, mut events) = (Vec::new(), 0u64);
    let reader = reader_of(file, span);
    let HeaderFacts { starts: stated, metadata } = HeaderFacts::new(reader, span);
    let headers = EventHeaders { reader, span, metadata: metadata.as_ref() };
    let Walk { runs, .. } = headers.visit(stated, |event| {
        if events.is_multiple_of(PART_EVENTS) {
            starts.push(event.start);
        }
        events += 1;
    });
    let end = runs.last().map_or(0, |run| run.end);
    let ends = starts.iter().copied().skip(1).chain([end]);
    starts.iter().copied().zip(ends).map(|(start, end)| start..end).collect()
}

fn reader_of<'a>(file: &'a [u8], span: &ChunkSpan) -> Reader<'a> {
    let bytes = file.get(span.start..span.end).unwrap_or_default();
    Reader::new(bytes, span.start as u64, span.header.is_compressed())
}

fn add_problem(problems: &mut Vec<FlightError>, problem: FlightError) {
    if problems.len() < MAX_PROBLEMS {
        problems.push(problem);
    }
}

/// Result of a walk over the headers of all events.
struct Walk {
    runs: Vec<Range<usize>>,
    problems: Vec<FlightError>,
}

/// Number of consecutive events of described types that confirm the first of them after a damaged region, unless the last one
/// ends where the events end.
const CONFIRMING: usize = 3;

/// Headers of the events of a chunk.
struct EventHeaders<'c> {
    reader: Reader<'c>,
    span: &'c ChunkSpan,
    /// Types, if they are known before the walk.
    metadata: Option<&'c Metadata>,
}

impl EventHeaders<'_> {
    /// Visits the headers of all events that can be read. No event extends into one whose offset is in `starts`. After a damaged
    /// region, the walk continues at the first offset from which events of described types follow one another.
    fn visit(&self, starts: Vec<usize>, mut visit: impl FnMut(&EventHeader)) -> Walk {
        let reader = self.reader;
        let (mut walk, mut at) = (Walk { runs: Vec::new(), problems: Vec::new() }, HEADER);
        for end in starts.into_iter().chain([reader.end()]) {
            loop {
                let (start, mut found) = (at, None);
                for event in Events::from(reader.at(start).until(end)) {
                    match event {
                        Ok(event) => {
                            visit(&event);
                            at = event.end;
                        }
                        Err(error) => found = Some(error),
                    }
                }
                match walk.runs.last_mut().filter(|run| run.end == start) {
                    Some(run) => run.end = at,
                    None => walk.runs.push(start..at),
                }
                let Some(FlightError { kind, offset }) = found else { break };
                // The last event of a truncated file is not damaged: nothing follows it.
                let is_at_cut =
                    kind == FlightErrorKind::EventTruncated && end == reader.end() && !self.span.is_whole;
                let next = if is_at_cut { None } else { self.next_events(at + 1..end) };
                let Some(next) = next else {
                    let overlaps = kind == FlightErrorKind::EventTruncated && end < reader.end();
                    let kind = if overlaps { FlightErrorKind::EventOverlaps } else { kind };
                    add_problem(&mut walk.problems, FlightError::new(kind, offset));
                    break;
                };
                let skipped = FlightErrorKind::EventsSkipped { bytes: next - at };
                add_problem(&mut walk.problems, FlightError::new(skipped, offset));
                at = next;
            }
            at = end;
        }
        walk
    }

    /// Returns the first offset in a range from which events of described types follow one another.
    fn next_events(&self, range: Range<usize>) -> Option<usize> {
        let metadata = self.metadata?;
        let is_event = |id: i64| metadata.class(id).is_some_and(Class::is_event);
        let is_known = |id| matches!(id, METADATA | CHECKPOINT) || is_event(id);
        // Events of all types begin with their start, which bytes in the middle of an event hardly are.
        let start_ticks = self.span.header.start_ticks;
        let is_in_chunk = |event: &EventHeader| {
            let start = self.reader.at(event.fields).until(event.end).long();
            start.is_ok_and(|start| start >= start_ticks)
        };
        range.clone().find(|start| {
            let mut end = *start;
            for event in Events::from(self.reader.at(*start).until(range.end)).take(CONFIRMING) {
                match event {
                    Ok(event) if is_known(event.type_id) && is_in_chunk(&event) => end = event.end,
                    _ => return false,
                }
            }
            end > *start
        })
    }
}

impl SelectedEvents {
    /// Creates an empty list of events of the selected types; with `None`, types are unknown, and nothing is stored.
    fn new(is_selected: Option<Vec<bool>>) -> Self {
        let rest = if is_selected.is_some() { usize::MAX } else { 0 };
        Self { is_selected: is_selected.unwrap_or_default(), places: Vec::new(), rest }
    }

    #[inline]
    fn add(&mut self, event: &EventHeader, class: impl FnOnce() -> Option<usize>) {
        if self.rest != usize::MAX {
            return;
        }
        let Some(class) = class().filter(|class| self.is_selected.get(*class) == Some(&true)) else { return };
        if self.places.len() < MAX_SELECTED
            && let Ok(class) = u32::try_from(class)
            && let Ok(start) = u32::try_from(event.start)
            && let Ok(fields) = u32::try_from(event.fields)
            && let Ok(end) = u32::try_from(event.end)
        {
            self.places.push(EventPlace { class, start, fields, end });
        } else {
            self.rest = event.start;
        }
    }
}

/// Metadata and offsets of events, found through the header of a chunk.
#[derive(Default)]
struct HeaderFacts {
    /// Offsets of the metadata and of the checkpoints, ascending. Each checkpoint states the distance to the previous one.
    starts: Vec<usize>,
    metadata: Option<Metadata>,
}

impl HeaderFacts {
    fn new(reader: Reader<'_>, span: &ChunkSpan) -> Self {
        // A header that the JVM was still writing states nothing that is certain.
        let is_stated = span.is_whole || !span.header.is_in_flight();
        if is_stated { Self::read(reader, &span.header) } else { Self::default() }
    }

    fn read(reader: Reader<'_>, header: &ChunkHeader) -> Self {
        let mut stated = Self::default();
        if let Some((at, event)) = event_at(reader, header.metadata, METADATA) {
            // Bytes that happen to look like the start of an event are not metadata.
            stated.metadata = Metadata::read(event).ok();
            stated.starts.extend(stated.metadata.is_some().then_some(at));
        }
        let mut at = header.checkpoint;
        while let Some((start, mut fields)) = event_at(reader, at, CHECKPOINT) {
            // Start, duration, distance to the checkpoint before.
            let distance = fields.long().and_then(|_| fields.long()).and_then(|_| fields.long());
            let Ok(distance) = distance else { break };
            stated.starts.push(start);
            if distance >= 0 {
                break;
            }
            at = at.saturating_add(distance);
        }
        stated.starts.sort_unstable();
        stated.starts.dedup();
        stated
    }
}

/// Returns the offset and the fields of an event that must be of this type. Its size can be damaged.
fn event_at(reader: Reader<'_>, offset: i64, type_id: i64) -> Option<(usize, Reader<'_>)> {
    let at = usize::try_from(offset).ok().filter(|at| *at >= HEADER)?;
    let mut reader = reader.at(at);
    reader.int().ok()?;
    (reader.long().ok()? == type_id).then_some((at, reader))
}

/// Counts of events by type. Types of the JVM have small IDs.
struct Counts {
    small: Vec<TypeCount>,
    max_small: usize,
    /// Other types. The file chooses their IDs, so the hash is seeded.
    other: HashMap<i64, TypeCount>,
}

/// Maximum number of types that are counted in a table.
const MAX_SMALL: usize = 4096;

impl Counts {
    /// Creates counts of the events of a chunk with a length of `bytes`. Its table is not much larger.
    fn new(bytes: usize) -> Self {
        Self { small: Vec::new(), max_small: bytes.min(MAX_SMALL), other: HashMap::new() }
    }

    #[inline]
    fn add(&mut self, event: &EventHeader) {
        let small = usize::try_from(event.type_id).ok().filter(|id| *id < self.max_small);
        let count = match small {
            Some(id) => {
                if self.small.len() <= id {
                    self.small.resize(id + 1, TypeCount::default());
                }
                self.small.get_mut(id)
            }
            None => Some(self.other.entry(event.type_id).or_default()),
        };
        if let Some(count) = count {
            count.type_id = event.type_id;
            count.events += 1;
            count.bytes += (event.end - event.start) as u64;
        }
    }

    fn finish(self) -> Vec<TypeCount> {
        let all = self.small.into_iter().chain(self.other.into_values());
        let mut all: Vec<TypeCount> = all.filter(|count| count.events > 0).collect();
        all.sort_unstable_by_key(|count| count.type_id);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hprof_writer::hostile_keys::is_seeded;

    /// The file chooses the IDs of types: without a seed it could choose those that collide.
    #[test]
    fn the_hash_of_types_has_a_seed() {
        assert!(is_seeded(&Counts::new(1).other));
    }
}
