//! Options for opening a dump.

use std::path::PathBuf;

/// Options for opening a dump.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// Directory for indexes, if not beside the dump.
    pub index_dir: Option<PathBuf>,
    /// Number of the heap dump to read, from 1; the last by default.
    pub heap_dump: Option<u32>,
    /// Memory limit for building; by default derived from the limits of the machine.
    pub memory_bytes: Option<u64>,
    /// Hides values of objects where results name objects: labels, names of threads and loaders, keys of
    /// maps, properties of the user. Counts and sizes are the same. Queries for values, such as those for
    /// strings, still return them.
    pub hide_values: bool,
}
