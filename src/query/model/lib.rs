//! What a heap dump has, as its users see it: objects and their contents, classes, threads, paths from GC roots, the
//! dominator tree and retained sizes. No analysis and no judgement.

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
