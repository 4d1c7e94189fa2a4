//! Reading a dump on all cores.
//!
//! * `scan_dump` scans all chunks in `parallel`: each thread is a `worker` that receives a `task` and
//!   fills `tallies`.
//! * `build_summary` assembles the summary: `class_rows`, `completeness`, `system_properties`;
//!   `find_objects` finds single objects while there is no index yet.
//! * `file_order` walks over chunks in file order, `sample` over some of them; `heap_ranges` finds Android's heaps.
//!
//! Results do not depend on which thread processed which chunk. Nothing here reads or writes an index.

pub(crate) mod build_summary;
mod class_rows;
mod completeness;
pub mod file_order;
mod find_objects;
mod flat_objects;
pub mod heap_ranges;
mod parallel;
pub(crate) mod sample;
pub(crate) mod scan_dump;
mod stated_sizes;
mod system_properties;
mod tallies;
mod task;
mod worker;
