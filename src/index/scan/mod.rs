//! Reading a dump with all cores: the top-level records, the chunks of its heap dump, every sub-record once, and the
//! summary that is built out of what was found.

pub(crate) mod build_summary;
pub(crate) mod chunks;
pub(crate) mod class_rows;
pub(crate) mod completeness;
pub(crate) mod error;
pub(crate) mod file_order;
pub(crate) mod find_objects;
pub(crate) mod parallel;
pub(crate) mod preview;
pub(crate) mod record_walk;
pub(crate) mod sample;
pub(crate) mod scan_dump;
pub(crate) mod search_budget;
pub(crate) mod source;
pub(crate) mod system_properties;
pub(crate) mod tallies;
pub(crate) mod task;
pub(crate) mod top_level;
pub(crate) mod worker;
