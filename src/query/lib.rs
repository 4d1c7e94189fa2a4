//! Queries on an open heap, answered as plain data: no text, no terminal.
//!
//! One file per query. Renderers are in the crate above, `hprof-report`.

#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

pub mod check;
pub mod classes;
pub mod compare;
pub mod containers;
pub mod dictionary;
pub mod dominators;
pub mod dump;
pub mod frameworks;
pub mod kept;
pub mod keyed;
pub mod leaks;
pub mod objects;
pub mod oql;
mod parallel;
pub mod paths;
pub mod recordings;
pub mod redact;
pub mod secrets;
mod sorting;
#[cfg(feature = "sql")]
pub mod sql;
pub mod strings;
pub mod tables;
pub mod threads;
pub mod waste;
