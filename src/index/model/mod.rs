//! Data about a dump that needs no access to single objects: summary, tables, problems.

pub mod class_table;
pub(crate) mod dangling;
pub mod problem;
pub mod summary;
pub mod tables;
pub(crate) mod text_pool;
