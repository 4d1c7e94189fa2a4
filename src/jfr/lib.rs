//! Parser for Java Flight Recorder files: bytes in, events out.
//!
//! A recording is a sequence of chunks, each complete in itself: a header, events, metadata that describes the types of
//! all events, and checkpoints with constants that events refer to.
//!
//! * [`recording`] finds the chunks of a file, including truncated ones and one that the JVM has not finished.
//! * [`events`] walks over the events of a chunk.
//! * [`chunk`] reads its types and constants.
//! * [`metadata`] parses the types. No fields of events are built in: newer JVMs add types and fields.
//! * [`NumberFields`] are integers and keys that are read in one walk over an event.
//! * [`values`] reads fields of events, and of the constants that they refer to, on request.
//!
//! Nothing here opens a file. Every error contains the offset in the file ([`FlightError`]). Nothing panics on any input,
//! allocates by a count that the file states, or recurses deeper than [`metadata::MAX_DEPTH`].
//!
//! Sources: `jfrChunkWriter.cpp`, `jfrCheckpointWriter.cpp` and `jdk.jfr.internal.consumer` of the JDK.

#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

pub mod chunk;
mod error;
pub mod events;
pub mod metadata;
mod numbers;
mod plan;
mod pools;
mod reader;
pub mod recording;
pub mod values;

pub use chunk::{Chunk, ChunkTables};
pub use error::{FlightError, FlightErrorKind};
pub use numbers::{ElementNumbers, NumberField, NumberFields};
pub use recording::{ChunkHeader, ChunkSpan, Recording};
pub use values::{Event, Record, Value};

#[cfg(test)]
mod tests;
