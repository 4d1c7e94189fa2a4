//! Opening files: mapping, detecting the format, unpacking.
//!
//! * `file` opens and maps; [`hprof_parser::sniff`] detects the format.
//! * [`packed`] unpacks gzip, Zstandard, tar and zip.
//! * [`text_events`] reads text reports, [`text_dump`] makes binary dumps of them.
//! * `mapped_files` records the mapped files, for the handler of bus errors.

#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

pub mod file;
#[cfg_attr(not(unix), allow(dead_code))]
pub mod mapped_files;
pub mod packed;
pub mod progress;
pub mod text_dump;
pub mod text_events;
