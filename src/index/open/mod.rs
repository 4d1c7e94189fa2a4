//! Opening a dump: from the stages of its index, or by reading the dump and writing an index beside it.
//!
//! * [`heap`] is the entry point; `options` are the options for opening.
//! * `opening` manages the files of an open dump: mapped, unpacked (`unpack`), with the directories of
//!   its index.
//! * `stages` reads the stages of the graph, or builds and writes them. `summary_file`, `objects_file`,
//!   `adjacency_file`, `tree_file` and `kept_file` define their sections.
//! * [`spool`] copies the input of a pipe.
//! * [`estimate`] estimates the cost of building; `error` contains the errors of opening a dump, with
//!   remedies.
//!
//! A stage is used only if it belongs to this dump and its checksums match; otherwise it is built again.

mod adjacency_file;
mod dump_form;
pub mod error;
pub mod estimate;
pub mod heap;
mod kept_file;
mod objects_file;
mod opening;
pub(crate) mod options;
pub mod spool;
mod stages;
mod summary_file;
mod tree_file;
mod unpack;

pub use unpack::unnamed_copy;
