//! The events of a chunk, one after the other.

use crate::error::{FlightError, FlightErrorKind};
use crate::reader::Reader;

/// Length of the header of a chunk.
pub(crate) const HEADER: usize = 68;

/// Type and offsets of an event in its chunk.
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

impl<'a> Events<'a> {
    /// Creates an iterator over the events of a chunk; `base` is its offset in the file.
    pub(crate) fn new(chunk: &'a [u8], base: u64, compressed: bool) -> Self {
        Self::from(Reader::new(chunk, base, compressed).at(HEADER))
    }

    /// Creates an iterator over the events from the position of a reader to its end.
    pub(crate) fn from(reader: Reader<'a>) -> Self {
        Self { reader, is_done: false }
    }
}

impl Iterator for Events<'_> {
    type Item = Result<EventHeader, FlightError>;

    #[inline]
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
