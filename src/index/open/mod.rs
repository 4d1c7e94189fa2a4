//! Opening a dump: from the stages of its index, or by reading it and leaving an index beside it.
//!
//! * [`heap`] is the way in; `options` says how to open.
//! * `opening` holds the files of a dump that is opened: mapped, unpacked (`unpack`), with the directories of its index.
//! * `stages` reads the stages of the graph, or builds and writes them. `summary_file`, `objects_file`,
//!   `adjacency_file` and `tree_file` are their sections.
//! * [`spool`] copies what comes through a pipe.
//! * [`estimate`] says what building takes; `error` why a dump cannot be opened, and what to do.
//!
//! A stage is used only if it belongs to this dump and its checksums are right; else it is built again.

mod adjacency_file;
pub mod error;
pub mod estimate;
pub mod heap;
mod objects_file;
mod opening;
pub(crate) mod options;
pub mod spool;
mod stages;
mod summary_file;
mod tree_file;
mod unpack;
