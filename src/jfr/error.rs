//! Errors in the bytes of a recording, with their offsets.

/// An error in the bytes of a recording: the kind, and the offset in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{kind} (at offset {offset:#x})")]
pub struct FlightError {
    /// Kind of the error.
    pub kind: FlightErrorKind,
    /// Offset in the (unpacked) file.
    pub offset: u64,
}

/// Kind of a [`FlightError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FlightErrorKind {
    /// The file does not start with the magic of a recording.
    #[error("not a recording of Java Flight Recorder")]
    NotARecording,
    /// A version of the format that is not read: that of Oracle JDK 7 and 8 is another format.
    #[error(
        "format version {major}.{minor} is not supported{}; expected 1.x or 2.x (JDK 9 and later, OpenJDK 8u262 and later)",
        if *major == 0 { ": Oracle JDK 7 and 8 write it, and JDK Mission Control opens it" } else { "" }
    )]
    Version {
        /// Major version.
        major: u16,
        /// Minor version.
        minor: u16,
    },
    /// The header of a chunk is truncated.
    #[error("the header of a chunk is truncated")]
    HeaderTruncated,
    /// An event extends beyond the end of its chunk, or of the file.
    #[error("an event is truncated")]
    EventTruncated,
    /// An event extends into another one, whose offset the chunk states.
    #[error("an event extends into the next one")]
    EventOverlaps,
    /// Bytes in a chunk that are not an event, up to the next event.
    #[error("expected an event; skipped {bytes} bytes with at least 1 event, up to the next one")]
    EventsSkipped {
        /// Number of skipped bytes.
        bytes: usize,
    },
    /// Bytes between chunks that are neither an event nor a chunk.
    #[error("expected an event or a chunk")]
    NotAnEvent,
    /// A value extends beyond the end of its event.
    #[error("a value is truncated")]
    ValueTruncated,
    /// A string with an encoding that no version of the format has.
    #[error("unknown string encoding {0}")]
    StringEncoding(u8),
    /// A string that is not valid in its encoding.
    #[error("a string is not valid UTF-8")]
    InvalidString,
    /// A chunk without the metadata that describes its events.
    #[error("the chunk contains no metadata")]
    NoMetadata,
    /// An index of a string that the metadata does not contain.
    #[error("the metadata refers to a string that does not exist")]
    StringIndex,
    /// Elements or types that are nested too deeply, or types that contain themselves.
    #[error("types are nested too deeply")]
    TooDeep,
    /// More strings, types or fields than any JVM has.
    #[error("the metadata contains too many strings, types or fields")]
    TooManyTypes,
    /// Names that types and fields share, so that they take more than the metadata itself, many times over.
    #[error("the total length of the names of types far exceeds the length of the metadata")]
    NamesTooLong,
    /// A type that the metadata does not describe.
    #[error("type {0} is not described by the metadata")]
    UnknownType(i64),
}

impl FlightError {
    #[cold]
    pub(crate) const fn new(kind: FlightErrorKind, offset: u64) -> Self {
        Self { kind, offset }
    }
}
