//! The index: what is known of a dump, in columns, in memory and on disk.
//!
//! A dump is read in stages. `contents` hops over the top-level records; `prelude` looks at the first objects; `pieces`
//! cuts the heap dump for all cores; `scan` and `worker` visit every object once and measure; out of that `build` makes
//! a [`summary::Summary`]. Sizes follow from it by [`fit`], [`layout`] and [`sizes`]. [`objects`] numbers the objects in
//! address order and finds their records again. [`store`] keeps stages on disk, and [`heap`] opens a dump with whatever
//! is there.

pub mod address;
mod address_set;
mod build;
mod class_table;
mod column;
mod contents;
mod describe;
mod error;
pub mod evidence;
pub mod fit;
mod free_space;
pub mod graph;
pub mod heap;
mod hop;
pub(crate) mod id_map;
mod jvm;
pub mod layout;
pub mod lazy;
mod lookup;
pub mod memory;
mod missing;
pub mod needs;
pub mod object_graph;
pub mod objects;
mod objects_file;
mod opening;
mod packed;
pub(crate) mod parts;
mod pieces;
mod prefetch;
mod prelude;
pub mod problem;
mod progress;
pub mod roots;
mod rows_file;
mod sampling;
mod scan;
pub(crate) mod scratch;
mod search;
pub(crate) mod shallow;
pub mod sizes;
mod stages;
pub mod store;
pub mod summary;
mod summary_file;
pub mod tables;
#[cfg_attr(not(unix), allow(dead_code))]
pub(crate) mod temporary;
mod texts;
mod tree_file;
mod unpack;
pub(crate) mod values;
mod wholeness;
mod worker;

pub use build::NoSuchHeapDump;
pub use column::Column;
pub use error::Error;
pub use heap::{Heap, Options};
pub use missing::MissingObjects;
pub use object_graph::ObjectGraph;
pub use progress::{Progress, Quiet};
