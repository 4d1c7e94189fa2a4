//! Opening files: mapping them, recognising what they are, unpacking what is compressed.
//!
//! * `file` opens and maps; what a file looks like is told by [`hprof_parser::sniff`].
//! * [`packed`] unpacks gzip, Zstandard, tar and zip.
//! * `mapped_files` knows which files are mapped where, for the handler of bus errors.

#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

pub mod file;
#[cfg_attr(not(unix), allow(dead_code))]
pub mod mapped_files;
pub mod packed;
pub mod progress;
