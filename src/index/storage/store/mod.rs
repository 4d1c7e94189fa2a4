//! The index on disk: one file per stage, in a directory beside the dump.
//!
//! * `format` writes and reads a stage's file: header, section table, sections, checksums.
//! * `identity` determines whether a file belongs to a dump.
//! * `stage` lists the stages.
//! * `directory` chooses the directory and publishes files by rename.
//! * `lock` is held by the process that builds.
//!
//! `docs/index-format.md` describes the bytes.

pub(crate) mod directory;
pub(crate) mod format;
pub(crate) mod identity;
pub(crate) mod lock;
mod stage;

pub use directory::user_cache;
pub use format::FORMAT_VERSION;
pub use stage::Stage;
