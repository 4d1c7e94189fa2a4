//! Parsers for the HPROF file formats: bytes in, records out.
//!
//! * [`sniff`] detects the format of a file from its first bytes.
//! * [`header`] parses the format name, the identifier size and the date.
//! * [`record`] walks over the top-level records and parses their bodies.
//! * [`heap`] walks over the sub-records of a heap dump or heap dump segment; [`class_dump`] parses the
//!   one of varying structure, [`heap_tag`] defines their tags.
//! * [`resync`] finds a record boundary in the middle of a heap dump, for chunks and for damaged files.
//! * [`mutf8`] decodes names and texts.
//! * [`text`] parses the text reports of the HPROF agent.
//! * [`class_histogram`] parses class histograms of `jmap` and `jcmd`.
//! * [`stream`] tracks the records of a recording while it arrives.
//!
//! Nothing here opens a file, or depends on an index or a class table. Every error contains the offset in
//! the file ([`FormatError`]). Nothing panics on any input: positions are checked against the available
//! bytes, and lengths are added as `u64`, which no sum of lengths in a file can overflow.
//!
//! Sources: the HPROF agent's documentation ("Binary Dump Format"), `heapDumper.cpp` of the JDK, and
//! `art/runtime/hprof` of Android for the 1.0.3 sub-records.

#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

pub mod class_dump;
pub mod class_histogram;
mod error;
pub mod header;
pub mod heap;
pub mod mutf8;
pub mod record;
pub mod resync;
pub mod sniff;
pub mod stream;
pub mod text;

pub use hprof_format::heap_binary::tag as heap_tag;

pub use error::{FormatError, FormatErrorKind};
pub use header::{Header, Version};
use hprof_values::{
    BasicType, IdSize, ObjectId, RootKind, TraceSerial, be_id, be_u16, be_u32, be_u64, be_value,
};
