//! A chunk: its events, their types and constants.

use rustc_hash::FxHashMap;

use crate::error::{FlightError, FlightErrorKind};
use crate::metadata::Metadata;
use crate::pools::Pools;
use crate::reader::Reader;
use crate::recording::{ChunkHeader, ChunkSpan, HEADER};
use crate::values::Record;

/// Type of the event that contains the metadata.
pub const METADATA: i64 = 0;
/// Type of the events that contain constants.
pub const CHECKPOINT: i64 = 1;
/// Maximum number of problems of a chunk that are stored.
const MAX_PROBLEMS: usize = 8;

/// A chunk.
#[derive(Debug)]
pub struct Chunk<'a> {
    /// Header.
    pub header: ChunkHeader,
    /// Types.
    pub metadata: Metadata,
    /// Number and bytes of the events of each type, ascending by type.
    pub counts: Vec<TypeCount>,
    /// Damaged checkpoints; the first ones.
    pub problems: Vec<FlightError>,
    pub(crate) pools: Pools,
    pub(crate) reader: Reader<'a>,
    bytes: &'a [u8],
    base: u64,
}

/// Number of events of a type.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TypeCount {
    /// ID of the type in this chunk.
    pub type_id: i64,
    /// Number of events.
    pub events: u64,
    /// Bytes of these events.
    pub bytes: u64,
}

/// Place of an event in its chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventHeader {
    /// ID of the type.
    pub type_id: i64,
    /// Offset of the event.
    pub start: usize,
    /// Offset of its fields.
    pub fields: usize,
    /// End offset (exclusive).
    pub end: usize,
}

/// Iterator over the events of a chunk. After an error it ends.
#[derive(Debug, Clone)]
pub struct Events<'a> {
    reader: Reader<'a>,
    is_done: bool,
}

/// An event whose type is described by the metadata.
#[derive(Debug, Clone, Copy)]
pub struct Event<'c> {
    /// Index of the type in [`Metadata::classes`].
    pub class: usize,
    /// Fields.
    pub fields: Record<'c>,
}

impl<'a> Events<'a> {
    /// Creates an iterator over the events of a chunk; `base` is its offset in the file.
    pub(crate) fn new(chunk: &'a [u8], base: u64, compressed: bool) -> Self {
        Self { reader: Reader::new(chunk, base, compressed).at(HEADER), is_done: false }
    }
}

impl Iterator for Events<'_> {
    type Item = Result<EventHeader, FlightError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_done || self.reader.remaining() == 0 {
            return None;
        }
        let start = self.reader.position();
        let mut reader = self.reader;
        let error = |kind| Some(Err(self.reader.error(kind)));
        let (Ok(size), Ok(type_id)) = (reader.int(), reader.long()) else {
            self.is_done = true;
            return error(FlightErrorKind::EventTruncated);
        };
        let fields = reader.position();
        let end = usize::try_from(size).ok().and_then(|size| start.checked_add(size));
        match end {
            Some(end) if end >= fields && end - fields <= reader.remaining() => {
                self.reader = reader.at(end);
                Some(Ok(EventHeader { type_id, start, fields, end }))
            }
            end => {
                self.is_done = true;
                let is_truncated = end.is_some_and(|end| end >= fields);
                error(if is_truncated {
                    FlightErrorKind::EventTruncated
                } else {
                    FlightErrorKind::NotAnEvent
                })
            }
        }
    }
}

impl<'a> Chunk<'a> {
    /// Reads the types and constants of a chunk.
    ///
    /// # Errors
    /// If it contains no metadata, or damaged metadata.
    pub fn read(file: &'a [u8], span: &ChunkSpan) -> Result<Self, FlightError> {
        let (header, base) = (span.header, span.start as u64);
        let bytes = file.get(span.start..span.end).unwrap_or_default();
        let reader = Reader::new(bytes, base, header.is_compressed());
        let (mut counts, mut checkpoints, mut metadata) = (Counts::default(), Vec::new(), None);
        let mut problems = Vec::new();
        for event in Events::new(bytes, base, header.is_compressed()) {
            match event {
                Ok(event) => {
                    counts.add(&event);
                    match event.type_id {
                        METADATA => metadata = Some(event),
                        CHECKPOINT => checkpoints.push(event),
                        _ => {}
                    }
                }
                // Of a chunk that is not whole, the end is known.
                Err(error) => problems.push(error),
            }
        }
        let event = metadata.ok_or(FlightError::new(FlightErrorKind::NoMetadata, base))?;
        let metadata = Metadata::read(reader.at(event.fields).until(event.end))?;
        let pools = Pools::read(reader, &checkpoints, &metadata, |problem| {
            if problems.len() < MAX_PROBLEMS {
                problems.push(problem);
            }
        });
        Ok(Self { header, metadata, counts: counts.finish(), problems, pools, reader, bytes, base })
    }

    /// Returns the events whose type is described, in the order of the file.
    pub fn events(&self) -> impl Iterator<Item = Event<'_>> {
        let found = Events::new(self.bytes, self.base, self.header.is_compressed()).map_while(Result::ok);
        found.filter_map(|event| {
            let class = self.metadata.index_of(event.type_id)?;
            let fields = Record::new(self, class, event.fields, event.end)?;
            Some(Event { class, fields })
        })
    }

    /// Returns a time in nanoseconds since 1970.
    pub fn nanos(&self, ticks: i64) -> i64 {
        let since = self.duration_nanos(ticks.saturating_sub(self.header.start_ticks));
        self.header.start_nanos.saturating_add(since)
    }

    /// Returns a duration in nanoseconds.
    pub fn duration_nanos(&self, ticks: i64) -> i64 {
        let per_second = i128::from(self.header.ticks_per_second.max(1));
        let nanos = i128::from(ticks) * 1_000_000_000 / per_second;
        i64::try_from(nanos).unwrap_or(if nanos < 0 { i64::MIN } else { i64::MAX })
    }
}

/// Counts of events by type. Types of the JVM have small IDs.
#[derive(Default)]
struct Counts {
    small: Vec<TypeCount>,
    other: FxHashMap<i64, TypeCount>,
}

/// Number of types that are counted in a table.
const SMALL: usize = 4096;

impl Counts {
    fn add(&mut self, event: &EventHeader) {
        let small = usize::try_from(event.type_id).ok().filter(|id| *id < SMALL);
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
