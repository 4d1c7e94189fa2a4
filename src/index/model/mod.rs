//! Data about a dump that needs no access to single objects: summary, tables, measurements, problems.

pub mod array_contents;
pub mod class_table;
pub(crate) mod dangling;
pub mod measurements;
pub mod problem;
pub mod record_counts;
pub mod summary;
pub mod tables;
pub(crate) mod text_pool;
