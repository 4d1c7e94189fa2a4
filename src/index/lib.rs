//! The index: data about a dump, in columns, in memory and on disk.
//!
//! | module | contents |
//! |---|---|
//! | [`storage`] | columns on disk and in memory, the scratch arena, the memory budget, the store of files |
//! | [`model`] | data that needs no access to single objects: summary, tables, problems |
//! | [`layout`] | sizes of objects: measured, fitted, computed |
//! | `records` | the records of a dump, and its heap dump in chunks |
//! | `scan` | reads a dump on all cores and builds its summary |
//! | [`objects`] | objects by index: IDs, classes, records, references, roots |
//! | [`graph`] | adjacency lists, their transpose and the dominator tree; independent of dumps |
//! | [`open`] | opens a dump, from its index or by reading it |

#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

mod dump;
pub mod graph;
pub mod layout;
pub mod model;
pub mod objects;
pub mod open;
pub(crate) mod records;
pub mod scan;
pub mod storage;

pub use dump::{Dump, DumpGraph};
pub use hprof_input::progress::{Progress, Quiet};
pub use model::dangling::MissingObjects;
pub use objects::object_graph::ObjectGraph;
pub use open::error::Error;
pub use open::heap::Heap;
pub use open::options::Options;
pub use open::unnamed_copy;
pub use records::error::NoSuchHeapDump;
pub use records::{remains, stack_records};
pub use storage::column::IndexColumn;
