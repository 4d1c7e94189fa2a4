//! Opening a dump: from the stages of its index, or by reading it and leaving an index beside it.

pub(crate) mod adjacency_file;
pub(crate) mod error;
pub mod estimate;
pub mod heap;
pub(crate) mod objects_file;
pub(crate) mod opening;
pub(crate) mod options;
pub(crate) mod stages;
pub(crate) mod summary_file;
pub(crate) mod tree_file;
pub(crate) mod unpack;
