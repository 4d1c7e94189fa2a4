//! The index on disk: one file a stage, in a directory beside the dump.
//!
//! * `format` writes and reads a stage's file: header, section table, sections, checksums.
//! * `identity` tells whether a file belongs to a dump.
//! * `place` chooses the directory, publishes by rename and takes the lock.
//!
//! `docs/index-format.md` describes the bytes.

pub(crate) mod format;
pub(crate) mod identity;
pub(crate) mod place;
mod stage;

pub use format::FORMAT_VERSION;
pub use stage::Stage;
