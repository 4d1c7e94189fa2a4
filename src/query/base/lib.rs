//! Basics of all queries of hprof-cli: parallel work, sorting, results stored in the index, keyed functions, the dictionary of
//! all names of facts, and names: patterns, suggestions, names that mean the same in several dumps.

#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

pub mod change;
pub mod dictionary;
pub mod fact;
pub mod kept;
pub mod keyed;
pub mod naming;
pub mod parallel;
pub mod share;
pub mod sorting;
