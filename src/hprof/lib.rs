//! The HPROF file formats, and nothing else: bytes in, records out.
//!
//! * [`sniff`] recognises what a file is by its first bytes.
//! * [`header`] reads the first line, the identifier size and the date.
//! * [`record`] walks over the top-level records and reads their bodies.
//! * [`heap`] walks over the sub-records of a heap dump or heap dump segment; [`class_dump`] reads the one of varying
//!   shape, [`heap_tag`] has their tags.
//! * [`resync`] finds a record boundary in the middle of a heap dump, for chunks and for damaged files.
//! * [`mutf8`] and [`names`] turn the bytes of names into the one form in which they are shown.
//! * [`text`] reads the text reports of the HPROF agent.
//! * [`stream`] follows the records of a recording while it arrives.
//!
//! Nothing here opens a file, or knows of an index, a class table or a question. Every error carries the offset in the file
//! ([`FormatError`]). Nothing panics on any input: positions are checked against the bytes that are there, and
//! lengths are added in `u64`, in which no sum of lengths that a file states can overflow.
//!
//! Sources: the HPROF agent's documentation ("Binary Dump Format"), `heapDumper.cpp` of the JDK, and
//! `art/runtime/hprof` of Android for the 1.0.3 sub-records.

#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

mod bytes;
pub mod class_dump;
mod error;
pub mod header;
pub mod heap;
mod ids;
pub mod mutf8;
pub mod record;
pub mod resync;
pub mod sniff;
pub mod stream;
pub mod text;
mod types;

pub use hprof_format::heap_binary::tag as heap_tag;
pub use hprof_format::names;

pub use bytes::{be_id, be_ids, be_u16, be_u32, be_u64, be_value};
pub use error::{FormatError, FormatErrorKind};
pub use header::{Header, Version};
pub use ids::{ObjectId, TraceSerial};
pub use types::{BasicType, IdSize, RootKind};
