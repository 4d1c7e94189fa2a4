//! Reading a dump with all cores.
//!
//! * `record_walk` walks over the top-level records, past damaged regions (`search_budget` bounds the searches), and
//!   notes in `top_level` what there is.
//! * `chunks` divides the heap dump into chunks, for which it needs a `preview` of the classes.
//! * `scan_dump` scans all chunks in `parallel`: each thread is a `worker` that is given a `task` and counts `tallies`.
//! * `build_summary` puts the summary together: `class_rows`, `completeness`, `system_properties`; `find_objects`
//!   looks up single objects where there is no index yet.
//! * `file_order` walks over chunks in the order of the file, `sample` over some of them.
//!
//! What comes out does not depend on which thread took what. Nothing here reads or writes an index.

pub(crate) mod build_summary;
pub(crate) mod chunks;
mod class_rows;
mod completeness;
pub(crate) mod error;
pub mod file_order;
mod find_objects;
mod parallel;
mod preview;
mod record_walk;
pub(crate) mod sample;
pub(crate) mod scan_dump;
mod search_budget;
pub(crate) mod source;
mod system_properties;
mod tallies;
mod task;
mod top_level;
mod worker;
