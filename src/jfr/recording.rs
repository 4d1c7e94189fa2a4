//! The chunks of a file.

use memchr::memmem;

use crate::error::{FlightError, FlightErrorKind};
use crate::events::{Events, HEADER};
use crate::reader::Reader;

/// First bytes of each chunk.
const MAGIC: &[u8; 4] = b"FLR\0";
/// Bit of the flags: integers are of variable length.
const COMPRESSED_INTS: u8 = 1;

/// A recording: a sequence of chunks.
#[derive(Debug)]
pub struct Recording<'a> {
    bytes: &'a [u8],
    chunks: Vec<ChunkSpan>,
    problems: Vec<FlightError>,
}

/// Header of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkHeader {
    /// Major and minor version of the format: 2.0 and 2.1 since JDK 11.
    pub version: (u16, u16),
    /// Length as stated; 0 if the JVM has not written it.
    pub size: i64,
    /// Offset in the chunk of the last checkpoint; 0 if it is not written.
    pub checkpoint: i64,
    /// Offset in the chunk of the metadata; 0 if it is not written.
    pub metadata: i64,
    /// Start, in nanoseconds since 1970.
    pub start_nanos: i64,
    /// Duration in nanoseconds.
    pub duration_nanos: i64,
    /// Start, in ticks.
    pub start_ticks: i64,
    /// Ticks per second.
    pub ticks_per_second: i64,
    /// 0 if the chunk is finished; else the JVM was still writing to it.
    pub generation: u8,
    /// Bits: 1 for integers of variable length, 2 for the last chunk of a JVM.
    pub flags: u8,
}

/// Header of a chunk, and its range in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkSpan {
    /// Header.
    pub header: ChunkHeader,
    /// Offset in the file.
    pub start: usize,
    /// End offset (exclusive).
    pub end: usize,
    /// `true` if the chunk is as long as its header says.
    pub is_whole: bool,
}

impl ChunkHeader {
    /// Returns whether integers are of variable length.
    pub fn is_compressed(&self) -> bool {
        self.flags & COMPRESSED_INTS != 0
    }

    /// Returns whether the JVM was still writing to the chunk.
    pub fn is_in_flight(&self) -> bool {
        self.generation != 0 || self.size == 0
    }

    fn read(bytes: &[u8], start: usize) -> Result<Self, FlightError> {
        let error = |kind| FlightError::new(kind, start as u64);
        let rest = bytes.get(start..).unwrap_or_default();
        if !rest.starts_with(MAGIC) {
            return Err(error(FlightErrorKind::NotARecording));
        }
        let mut reader = Reader::new(rest, start as u64, false).at(MAGIC.len());
        let mut header = || {
            let version = (reader.u16_be()?, reader.u16_be()?);
            if !matches!(version.0, 1 | 2) {
                let (major, minor) = version;
                return Err(error(FlightErrorKind::Version { major, minor }));
            }
            let (size, checkpoint, metadata) = (reader.i64_be()?, reader.i64_be()?, reader.i64_be()?);
            let [start_nanos, duration_nanos] = [reader.i64_be()?, reader.i64_be()?];
            let [start_ticks, ticks_per_second] = [reader.i64_be()?, reader.i64_be()?];
            let [generation, _, _, flags] = [reader.u8()?, reader.u8()?, reader.u8()?, reader.u8()?];
            let generation = if version.0 < 2 { 0 } else { generation };
            Ok(Self {
                version,
                size,
                checkpoint,
                metadata,
                start_nanos,
                duration_nanos,
                start_ticks,
                ticks_per_second,
                generation,
                flags,
            })
        };
        header().map_err(|found| match found.kind {
            FlightErrorKind::ValueTruncated => error(FlightErrorKind::HeaderTruncated),
            _ => found,
        })
    }
}

impl<'a> Recording<'a> {
    /// Finds the chunks of a file.
    ///
    /// # Errors
    /// If the file does not start with a chunk of a supported version.
    pub fn new(bytes: &'a [u8]) -> Result<Self, FlightError> {
        let mut recording = Self { bytes, chunks: Vec::new(), problems: Vec::new() };
        let mut at = 0;
        while at < bytes.len() || at == 0 {
            let header = match ChunkHeader::read(bytes, at) {
                Ok(header) => header,
                Err(error) if at == 0 => return Err(error),
                Err(error) => {
                    recording.problems.push(error);
                    at = recording.next_chunk(at + 1);
                    continue;
                }
            };
            at = recording.add(header, at);
        }
        Ok(recording)
    }

    /// Adds a chunk; returns the offset of the next one.
    fn add(&mut self, header: ChunkHeader, start: usize) -> usize {
        let stated = usize::try_from(header.size).ok().filter(|size| *size >= HEADER);
        let end = stated.and_then(|size| start.checked_add(size)).filter(|end| self.is_boundary(*end));
        if let Some(end) = end {
            self.chunks.push(ChunkSpan { header, start, end, is_whole: true });
            return end;
        }
        // The JVM writes the length last, and with each flush: what follows are events, up to the next chunk.
        let limit = self.next_chunk(start + MAGIC.len());
        if limit < start + HEADER {
            self.problems.push(FlightError::new(FlightErrorKind::HeaderTruncated, start as u64));
            return limit;
        }
        let rest = self.bytes.get(start..limit).unwrap_or_default();
        let mut end = HEADER;
        let mut problem = None;
        for event in Events::new(rest, start as u64, header.is_compressed()) {
            match event {
                Ok(event) => end = event.end,
                Err(error) => problem = Some(error),
            }
        }
        self.chunks.push(ChunkSpan { header, start, end: start + end, is_whole: false });
        // A finished chunk does not end where its header says, even if it ends with a whole event.
        let cut = || FlightError::new(FlightErrorKind::EventTruncated, (start + end) as u64);
        self.problems.extend(problem.or_else(|| (!header.is_in_flight()).then(cut)));
        limit
    }

    /// Returns whether a chunk may end here.
    fn is_boundary(&self, at: usize) -> bool {
        at == self.bytes.len() || ChunkHeader::read(self.bytes, at).is_ok()
    }

    /// Returns the offset of the next header, or the end of the file.
    fn next_chunk(&self, from: usize) -> usize {
        let rest = self.bytes.get(from..).unwrap_or_default();
        let found = memmem::find_iter(rest, MAGIC).map(|at| from + at);
        found.into_iter().find(|at| ChunkHeader::read(self.bytes, *at).is_ok()).unwrap_or(self.bytes.len())
    }

    /// Returns the bytes of the file.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Returns the chunks in the order of the file.
    pub fn chunks(&self) -> &[ChunkSpan] {
        &self.chunks
    }

    /// Returns the damaged regions between and at the end of chunks.
    pub fn problems(&self) -> &[FlightError] {
        &self.problems
    }
}
