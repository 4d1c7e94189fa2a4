//! Contents of a heap dump: objects and their values, classes, threads, paths from GC roots, the dominator tree and retained
//! sizes. Analyses and verdicts are elsewhere.

#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

pub mod dominators;
pub mod dump;
pub mod framework_rules;
pub mod generated_loaders;
pub mod heap_facts;
pub mod histogram;
pub mod loaders;
pub mod objects;
pub mod paths;
pub mod refs;
pub mod secret_rules;
pub mod show;
pub mod strings;
pub mod threads;
