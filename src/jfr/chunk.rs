//! A chunk: its events, their types and constants.

use std::ops::Range;

use rustc_hash::FxHashMap;

use crate::error::{FlightError, FlightErrorKind};
use crate::events::{EventHeader, Events, HEADER};
use crate::metadata::Metadata;
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

/// A chunk.
#[derive(Debug)]
pub struct Chunk<'a> {
    /// Header.
    pub header: ChunkHeader,
    /// Types.
    pub metadata: Metadata,
    /// Number and bytes of the events of each type, ascending by type.
    pub counts: Vec<TypeCount>,
    /// Damaged regions and checkpoints; the first ones.
    pub problems: Vec<FlightError>,
    pub(crate) plans: Plans,
    pub(crate) pools: Pools,
    pub(crate) reader: Reader<'a>,
    /// Offsets of the events that can be read, one after the other: one range, and one more after each damaged region.
    pub(crate) runs: Vec<Range<usize>>,
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
        let mut problem = |problem| {
            if problems.len() < MAX_PROBLEMS {
                problems.push(problem);
            }
        };
        let read = |event: &EventHeader| Metadata::read(reader.at(event.fields).until(event.end));
        // A header that the JVM was still writing states nothing that is certain.
        let is_stated = span.is_whole || !header.is_in_flight();
        let stated = if is_stated { Stated::read(reader, &header) } else { Stated::default() };
        let (mut runs, mut at) = (Vec::new(), HEADER);
        // No event extends into one whose offset is stated, so damage ends there at the latest.
        for end in stated.starts.iter().copied().chain([bytes.len()]) {
            let start = at;
            for event in Events::from(reader.at(start).until(end)) {
                match event {
                    Ok(event) => {
                        counts.add(&event);
                        match event.type_id {
                            METADATA => metadata = Some(event),
                            CHECKPOINT => checkpoints.push(event),
                            _ => {}
                        }
                        at = event.end;
                    }
                    Err(FlightError { kind: FlightErrorKind::EventTruncated, offset })
                        if end < bytes.len() =>
                    {
                        problem(FlightError::new(FlightErrorKind::EventOverlaps, offset));
                    }
                    Err(found) => problem(found),
                }
            }
            runs.push(start..at);
            at = end;
        }
        let metadata = match stated.metadata {
            Some(metadata) => metadata,
            None => read(&metadata.ok_or(FlightError::new(FlightErrorKind::NoMetadata, base))?)?,
        };
        let plans = plan::plans(&metadata, reader.is_compressed());
        let pools = Pools::read(reader, &checkpoints, (&metadata, &plans), problem);
        Ok(Self { header, metadata, counts: counts.finish(), problems, plans, pools, reader, runs })
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

/// What the header of a chunk says about its events.
#[derive(Default)]
struct Stated {
    /// Offsets of the metadata, and of the checkpoints, each of which states the offset of the one before; ascending.
    starts: Vec<usize>,
    metadata: Option<Metadata>,
}

impl Stated {
    fn read(reader: Reader<'_>, header: &ChunkHeader) -> Self {
        let mut stated = Self::default();
        if let Some((at, event)) = event_at(reader, header.metadata, METADATA) {
            // Bytes that happen to look like the start of an event are no metadata.
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
