//! The memory of a JVM's process: what the kernel and the JVM say about it, and the ledger that adds it up.
//!
//! | question | where |
//! |---|---|
//! | Which memory has the process mapped, and how much of it is there? | [`mappings`] reads `/proc/PID/smaps` |
//! | Which memory does the JVM know to be its own? | [`native_memory`] reads `VM.native_memory` |
//! | At which addresses are the parts of the JVM? | [`jvm_layout`] reads `VM.info`, `GC.heap_info` and `System.map` |
//! | How much of malloc is free? | [`malloc_info`] reads `System.native_heap_info` |
//! | What does the JVM limit? | [`flags`] reads `VM.flags -all` |
//! | What does the control group count, and what is its limit? | [`cgroup`] |
//! | Which mappings are thread stacks, which are malloc arenas? | [`shapes`] |
//! | How does it add up? | [`ledger`] |
//! | What does it suggest? | [`advice`] |
//! | What grew? | [`growth`] |
//!
//! The crate reads texts and computes; it opens no files and depends on no other crate of the workspace. All texts may be
//! hostile.

#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

pub mod advice;
pub mod cgroup;
mod effective_layout;
pub mod flags;
pub mod growth;
pub mod jvm_layout;
pub mod ledger;
pub mod malloc_info;
pub mod mappings;
pub mod native_memory;
mod numbers;
pub mod shapes;
pub mod sources;

pub use ledger::Ledger;
pub use sources::Sources;
