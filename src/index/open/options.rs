//! How to open a dump.

use std::path::PathBuf;

/// How to open a dump.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// Where indexes lie, if not beside the dump.
    pub index_dir: Option<PathBuf>,
    /// Which of several heap dumps, from 1; the last by default.
    pub heap_dump: Option<u32>,
    /// Memory that building may take; by default what the machine allows.
    pub memory_bytes: Option<u64>,
    /// Whether what objects hold is left out where answers name objects: labels, names of threads and loaders, keys of maps,
    /// properties of the user. Figures are the same. Queries that ask for values, such as those for strings, answer them.
    pub hide_values: bool,
}
