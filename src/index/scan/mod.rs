//! Reading a dump with all cores.
//!
//! * `scan_dump` scans all chunks in `parallel`: each thread is a `worker` that is given a `task` and counts `tallies`.
//! * `build_summary` puts the summary together: `class_rows`, `completeness`, `system_properties`; `find_objects`
//!   looks up single objects where there is no index yet.
//! * `file_order` walks over chunks in the order of the file, `sample` over some of them.
//!
//! What comes out does not depend on which thread took what. Nothing here reads or writes an index.

pub(crate) mod build_summary;
mod class_rows;
mod completeness;
pub mod file_order;
mod find_objects;
mod parallel;
pub(crate) mod sample;
pub(crate) mod scan_dump;
mod system_properties;
mod tallies;
mod task;
mod worker;
